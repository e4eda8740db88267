//! What a Lease says, without the object around it.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::Terms;

/// The content of a Lease (`coordination.k8s.io/v1`, `spec`). Two equal records
/// mean that nobody wrote in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds the lease. Empty: nobody does.
    pub holder: String,
    /// How long others wait after a renewal. Zero when the Lease names none.
    pub lease_duration: Duration,
    /// When the holder took it, by the holder's wall clock.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's wall clock.
    pub renewed: Option<Timestamp>,
    /// How often the lease went from one holder to another.
    pub transitions: i32,
}

impl LeaseRecord {
    /// Whether nobody holds the lease.
    pub fn is_free(&self) -> bool {
        self.holder.is_empty()
    }

    /// The record that makes or keeps `identity` the holder, to replace
    /// `previous` (None: to be created). `wall` is the writer's wall clock.
    pub fn held_by(identity: &str, previous: Option<&Self>, terms: &Terms, wall: Timestamp) -> Self {
        let renewed = later(wall, previous);
        let kept = previous.filter(|record| record.holder == identity);
        Self {
            holder: identity.to_owned(),
            lease_duration: terms.lease_duration(),
            acquired: kept.and_then(|record| record.acquired).or(Some(renewed)),
            renewed: Some(renewed),
            transitions: match (previous, kept) {
                (None, _) => 0,
                (Some(record), Some(_)) => record.transitions,
                (Some(record), None) => record.transitions.saturating_add(1),
            },
        }
    }

    /// The record that frees the lease, so that the next candidate need not
    /// wait. To be written only after all work has stopped.
    #[must_use]
    pub fn released(&self, wall: Timestamp) -> Self {
        Self { holder: String::new(), renewed: Some(later(wall, Some(self))), ..self.clone() }
    }
}

/// The wall clock, but always after the previous renewal: a clock that stepped
/// back must not produce the same record twice, since others judge by change.
/// Whole microseconds, because a Lease stores no finer time.
fn later(wall: Timestamp, previous: Option<&LeaseRecord>) -> Timestamp {
    let micros = wall.as_microsecond();
    let after = previous.and_then(|record| record.renewed).map_or(micros, |time| time.as_microsecond() + 1);
    Timestamp::from_microsecond(micros.max(after)).unwrap_or(wall)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms::new(Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2)).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_renewal_keeps_the_time_of_acquisition_and_the_count() {
        let first = LeaseRecord::held_by("a", None, &terms(), at(100));
        assert_eq!((first.acquired, first.renewed, first.transitions), (Some(at(100)), Some(at(100)), 0));
        let second = LeaseRecord::held_by("a", Some(&first), &terms(), at(102));
        assert_eq!((second.acquired, second.renewed, second.transitions), (Some(at(100)), Some(at(102)), 0));
    }

    #[test]
    fn a_new_holder_starts_its_own_time_and_counts_the_transition() {
        let first = LeaseRecord::held_by("a", None, &terms(), at(100));
        let taken = LeaseRecord::held_by("b", Some(&first), &terms(), at(120));
        assert_eq!((taken.acquired, taken.transitions), (Some(at(120)), 1));
        let free = taken.released(at(130));
        assert!(free.is_free());
        assert_eq!(LeaseRecord::held_by("b", Some(&free), &terms(), at(131)).transitions, 2);
    }

    #[test]
    fn every_write_differs_even_when_the_clock_steps_back() {
        let first = LeaseRecord::held_by("a", None, &terms(), at(100));
        let second = LeaseRecord::held_by("a", Some(&first), &terms(), at(40));
        assert_ne!(first, second);
        assert!(second.renewed > first.renewed);
        assert!(second.released(at(0)).renewed > second.renewed);
    }
}
