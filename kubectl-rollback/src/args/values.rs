//! Values of flags.

use std::time::Duration;

use crate::output::Output;

/// A duration as Go writes it (`90s`, `1h30m`), or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration such as 90s, 10m or 1h30m, or a number of seconds".to_owned();
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let parsed: kube::core::Duration = text.parse().map_err(|_| wrong())?;
    if text.is_empty() || parsed.is_negative() || text.starts_with('-') {
        return Err(wrong());
    }
    Ok(parsed.into())
}

/// The value of `-o`.
pub(crate) fn output(text: &str) -> Result<Output, String> {
    Output::parse(text)
}

/// Text that may go into an object: not empty, no control characters.
pub(crate) fn printable(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("must be one line without control characters".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("10", Some(10.0))]
    #[case("0", Some(0.0))]
    #[case("90s", Some(90.0))]
    #[case("1h30m", Some(5400.0))]
    #[case("1.5s", Some(1.5))]
    #[case("500ms", Some(0.5))]
    #[case("-5s", None)]
    #[case("-0s", None)]
    #[case("1d", None)]
    #[case("ten", None)]
    #[case("", None)]
    #[case("10 s", None)]
    fn durations_are_gos_or_seconds(#[case] text: &str, #[case] seconds: Option<f64>) {
        assert_eq!(duration(text).ok().map(|duration| duration.as_secs_f64()), seconds);
    }

    #[rstest]
    #[case("  INC-311 ", Ok("INC-311"))]
    #[case("", Err("must not be empty"))]
    #[case(" \t", Err("must not be empty"))]
    #[case("a\nb", Err("must be one line without control characters"))]
    #[case("a\u{1b}[31m", Err("must be one line without control characters"))]
    fn texts_are_one_line(#[case] text: &str, #[case] expected: Result<&str, &str>) {
        assert_eq!(printable(text), expected.map(str::to_owned).map_err(str::to_owned));
    }
}
