//! Times for people: in the user's zone, no more of them than is needed.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const DAY: i64 = 86_400;

/// Now, and the zone in which people read times.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Now.
    pub(crate) now: Timestamp,
    /// The user's zone.
    pub(crate) zone: TimeZone,
}

impl Clock {
    /// The system's clock and zone.
    pub(crate) fn system() -> Self {
        Self { now: Timestamp::now(), zone: TimeZone::system() }
    }

    /// The same zone, now.
    pub(crate) fn tick(&self) -> Self {
        Self { now: Timestamp::now(), zone: self.zone.clone() }
    }

    /// How long ago, in one unit: `40s`, `5m`, `3h`, `12d`.
    pub(crate) fn age(&self, then: Timestamp) -> String {
        rollback_core::admission::age(self.now, then)
    }

    /// `14:09:12`.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string()
    }

    /// `14:09:12` today, else with its date: `2026-02-28 14:09:12`.
    pub(crate) fn date_and_time(&self, at: Timestamp) -> String {
        let date = |at: Timestamp| at.to_zoned(self.zone.clone()).date();
        if date(at) == date(self.now) { self.time(at) } else { format!("{} {}", date(at), self.time(at)) }
    }

    /// `14:02` today, `Monday` within the last six days, else `2026-03-01`.
    pub(crate) fn moment(&self, at: Timestamp) -> String {
        let (at, now) = (at.to_zoned(self.zone.clone()), self.now.to_zoned(self.zone.clone()));
        let days = (now.date().duration_since(at.date()).as_secs()) / DAY;
        let format = match days {
            0 => "%H:%M",
            1..=6 => "%A",
            _ => "%Y-%m-%d",
        };
        at.strftime(format).to_string()
    }

    /// `at 14:02`, `on Monday`, `on 2026-03-01`.
    pub(crate) fn on(&self, at: Timestamp) -> String {
        let moment = self.moment(at);
        if moment.contains(':') { format!("at {moment}") } else { format!("on {moment}") }
    }
}

/// A span in at most two units: `40s`, `1m29s`, `2h5m`, `3d`. A negative one is `0s`.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (large, small) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3600 => ((seconds / 60, "m"), (seconds % 60, "s")),
        3600..DAY => ((seconds / 3600, "h"), (seconds % 3600 / 60, "m")),
        _ => ((seconds / DAY, "d"), (seconds % DAY / 3600, "h")),
    };
    let mut text = format!("{}{}", large.0, large.1);
    if small.0 > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}{}", small.0, small.1);
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use rstest::rstest;

    use super::*;

    /// Sunday, 2026-03-01 14:09:12 in Prague.
    pub(crate) fn clock() -> Clock {
        Clock { now: "2026-03-01T13:09:12Z".parse().unwrap(), zone: TimeZone::posix("CET-1").unwrap() }
    }

    #[rstest]
    #[case("2026-03-01T13:02:00Z", "14:02", "at 14:02")]
    #[case("2026-02-28T23:30:00Z", "00:30", "at 00:30")]
    #[case("2026-02-28T22:30:00Z", "Saturday", "on Saturday")]
    #[case("2026-02-23T10:00:00Z", "Monday", "on Monday")]
    #[case("2026-02-22T10:00:00Z", "2026-02-22", "on 2026-02-22")]
    #[case("2026-03-02T10:00:00Z", "2026-03-02", "on 2026-03-02")]
    fn tells_a_moment_as_people_do(#[case] at: &str, #[case] moment: &str, #[case] on: &str) {
        let at = at.parse().unwrap();
        assert_eq!((clock().moment(at).as_str(), clock().on(at).as_str()), (moment, on));
    }

    #[rstest]
    #[case(-1, "0s")]
    #[case(0, "0s")]
    #[case(59, "59s")]
    #[case(60, "1m")]
    #[case(89, "1m29s")]
    #[case(3600, "1h")]
    #[case(7_530, "2h5m")]
    #[case(259_200, "3d")]
    #[case(273_600, "3d4h")]
    fn spans_have_two_units_at_most(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(span(seconds), expected);
    }

    #[test]
    fn clock_times_are_in_the_users_zone() {
        assert_eq!(clock().time(clock().now), "14:09:12");
        assert_eq!(clock().date_and_time(clock().now), "14:09:12");
        assert_eq!(clock().date_and_time("2026-02-28T22:30:00Z".parse().unwrap()), "2026-02-28 23:30:00");
    }
}
