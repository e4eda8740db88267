//! When a change of a target's objects is recorded: one deployment touches several objects within seconds, and they
//! make one release (rule 16).

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// A change is recorded at the latest this long after it began, however often the objects change meanwhile.
pub const LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// A change of a target's objects that is not recorded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What the objects come to: the signature of their release.
    pub signature: String,
    /// When the first change was seen.
    pub first: Timestamp,
    /// When the latest change was seen.
    pub last: Timestamp,
}

/// What to do about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is quiet: record what is there.
    Record,
    /// Look again then.
    WaitUntil(Timestamp),
}

impl Window {
    /// The window after the objects were seen at `now`: each further change makes it longer.
    #[must_use]
    pub fn seen(before: Option<Self>, signature: &str, now: Timestamp) -> Self {
        match before {
            Some(window) if window.signature == signature => window,
            Some(window) => Self { signature: signature.to_owned(), last: now, ..window },
            None => Self { signature: signature.to_owned(), first: now, last: now },
        }
    }

    /// Whether the objects have been quiet for long enough. `observed`: whether every workload's own controller has seen
    /// its template; one that does not work must not keep the change from being recorded for ever.
    pub fn decide(&self, quiet: SignedDuration, observed: bool, now: Timestamp) -> Decision {
        let after = |time: Timestamp, wait| time.checked_add(wait).unwrap_or(time);
        let latest = after(self.first, LONGEST.max(quiet));
        let due = if observed { after(self.last, quiet).min(latest) } else { latest };
        // A clock that was set back makes no window longer than it can be.
        if now >= due || now < self.first { Decision::Record } else { Decision::WaitUntil(due) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn quiet() -> SignedDuration {
        SignedDuration::from_secs(5)
    }

    #[test]
    fn every_change_starts_the_quiet_period_again() {
        let window = Window::seen(None, "a", at(100));
        assert_eq!(window.decide(quiet(), true, at(100)), Decision::WaitUntil(at(105)));
        // Seen again without a change.
        let window = Window::seen(Some(window), "a", at(104));
        assert_eq!(window.decide(quiet(), true, at(104)), Decision::WaitUntil(at(105)));
        let window = Window::seen(Some(window), "b", at(104));
        assert_eq!(window.first, at(100), "the deployment began with its first change");
        assert_eq!(window.decide(quiet(), true, at(108)), Decision::WaitUntil(at(109)));
        assert_eq!(window.decide(quiet(), true, at(109)), Decision::Record);
    }

    #[test]
    fn a_target_that_never_rests_is_recorded_after_a_minute() {
        let mut window = Window::seen(None, "0", at(0));
        for second in 1..60 {
            window = Window::seen(Some(window), &second.to_string(), at(second));
            let due = (second + 5).min(60);
            assert_eq!(window.decide(quiet(), true, at(second)), Decision::WaitUntil(at(due)));
        }
        window = Window::seen(Some(window), "60", at(60));
        assert_eq!(window.decide(quiet(), true, at(60)), Decision::Record);
    }

    #[test]
    fn waits_for_controllers_but_not_for_ever() {
        let window = Window::seen(None, "a", at(0));
        assert_eq!(window.decide(quiet(), false, at(30)), Decision::WaitUntil(at(60)));
        assert_eq!(window.decide(quiet(), false, at(60)), Decision::Record);
        assert_eq!(window.decide(quiet(), true, at(30)), Decision::Record);
    }

    #[test]
    fn a_long_quiet_period_is_kept_and_a_clock_set_back_holds_up_nothing() {
        let window = Window::seen(None, "a", at(1000));
        assert_eq!(
            window.decide(SignedDuration::from_mins(2), true, at(1060)),
            Decision::WaitUntil(at(1120))
        );
        assert_eq!(window.decide(quiet(), true, at(999)), Decision::Record);
        assert_eq!(window.decide(SignedDuration::ZERO, true, at(1000)), Decision::Record);
    }
}
