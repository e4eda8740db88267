//! Times as the API keeps them. What is compared with a stored time is cut the same way, or the two would never be equal.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;

/// Whole seconds: what a `Time` keeps.
pub(super) fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_nanosecond().div_euclid(1_000_000_000).try_into().unwrap_or_default())
        .unwrap_or(time)
}

/// Whole microseconds: what a `MicroTime` keeps.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_nanosecond().div_euclid(1_000).try_into().unwrap_or_default())
        .unwrap_or(time)
}

/// A `Time` that is stored as it is.
pub(super) fn time(time: Timestamp) -> Time {
    Time(seconds(time))
}

/// A `MicroTime` that is stored as it is.
pub(super) fn micro_time(time: Timestamp) -> MicroTime {
    MicroTime(micros(time))
}

/// Reads RFC 3339 as Go does, and nothing that only looks like it: no blank for the `T`, no zone name, seconds are there.
pub(super) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at_checked(19)?;
    let shaped = head.iter().zip(b"0000-00-00T00:00:00").all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    // A leap second would be read as the second before it.
    if !shaped || &head[17..] == b"60" {
        return None;
    }
    let zone = match rest.split_first() {
        Some((b'.', fraction)) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 { None } else { Some(&fraction[digits..]) }
        }
        Some(_) => Some(rest),
        None => None,
    }?;
    let zoned = match zone {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|digit| digit.is_ascii_digit()),
        _ => false,
    };
    if zoned { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rfc_3339_and_nothing_else() {
        for (good, microsecond) in [
            ("1970-01-01T00:00:01Z", 1_000_000),
            ("1970-01-01T00:00:01.5Z", 1_500_000),
            ("1970-01-01T01:00:01.000001+01:00", 1_000_001),
            ("1969-12-31T23:59:59-00:00", -1_000_000),
        ] {
            assert_eq!(parse_rfc3339(good).map(Timestamp::as_microsecond), Some(microsecond), "{good}");
        }
        for bad in [
            "",
            "now",
            "1970-01-01",
            "1970-01-01T00:00Z",
            "1970-01-01 00:00:01Z",
            "1970-01-01T00:00:01",
            "1970-01-01t00:00:01z",
            "1970-01-01T00:00:60Z",
            "1970-13-01T00:00:01Z",
            "1970-02-30T00:00:01Z",
            "1970-01-01T00:00:01.Z",
            "1970-01-01T00:00:01+01",
            "1970-01-01T00:00:01Z[UTC]",
            " 1970-01-01T00:00:01Z",
            "1970-01-01T00:00:01Z ",
            "1970-01-01T00:00:01+0100",
            "19700101T000001Z",
            "1970-01-01T00:00:01é",
            "+01970-01-01T00:00:01Z",
            "9999-99-99T99:99:99Z",
        ] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
    }

    #[test]
    fn cuts_downwards_also_before_1970() {
        let time = Timestamp::from_nanosecond(-1).unwrap();
        assert_eq!(seconds(time), Timestamp::from_second(-1).unwrap());
        assert_eq!(micros(time), Timestamp::from_microsecond(-1).unwrap());
        let time = Timestamp::from_nanosecond(1_999_999_999).unwrap();
        assert_eq!(seconds(time), Timestamp::from_second(1).unwrap());
        assert_eq!(micros(time), Timestamp::from_microsecond(1_999_999).unwrap());
    }
}
