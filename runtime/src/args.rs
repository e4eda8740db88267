//! Parsers for command-line values.

use std::time::Duration;

/// Parses a duration as Go writes it (`5s`, `1m30s`, `250ms`); for clap's
/// `value_parser`. Refuses negative and empty ones, and ones without a unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let hint = "use a number with a unit, such as 250ms, 5s or 1m30s";
    // The parser takes an empty text for zero, and panics on a sign in the
    // middle and on more digits than a duration can hold.
    if text.contains(['-', '+']) {
        return Err(format!("a duration has no sign; {hint}"));
    }
    if text.is_empty() || text.chars().filter(char::is_ascii_digit).count() > 12 {
        return Err(hint.to_owned());
    }
    let parsed: kube::core::Duration = text.parse().map_err(|error| format!("{error}; {hint}"))?;
    Ok(parsed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads_and_nothing_else() {
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        for refused in ["", "5", "-5s", "5s-3s", "+5s", "1d", "s", "999999999999999999999h", "five seconds"] {
            assert!(parse_duration(refused).is_err(), "{refused:?} was accepted");
        }
        assert!(parse_duration("999999999999h").is_ok());
    }
}
