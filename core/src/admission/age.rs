//! How long ago, in the one unit that people read at a glance.

use k8s_openapi::jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// `40s`, `5m`, `3h` or `12d`: whole units, rounded down. A time that lies ahead (clocks differ) is `0s`.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(-5, "0s")]
    #[case(0, "0s")]
    #[case(59, "59s")]
    #[case(60, "1m")]
    #[case(3599, "59m")]
    #[case(3600, "1h")]
    #[case(86_399, "23h")]
    #[case(86_400, "1d")]
    #[case(400 * 86_400, "400d")]
    fn rounds_down_to_one_unit(#[case] seconds: i64, #[case] expected: &str) {
        let then = Timestamp::from_second(1_700_000_000).unwrap();
        let now = Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        assert_eq!(age(now, then), expected);
    }
}
