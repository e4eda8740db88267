//! Who may act: the decisions of leader election over a
//! `coordination.k8s.io/v1` Lease.
//!
//! Two clocks are kept apart. A *reading* is a [`Duration`] since some fixed
//! moment of this process, taken from a clock that never steps; every decision
//! uses readings only. The times inside the record come from other machines'
//! clocks and are written for people and for other tools: nothing here compares
//! them with anything.
//!
//! What keeps two candidates from acting at once:
//!
//! - a holder believes in itself for [`Terms::renew_deadline`] counted from the
//!   moment it *began* its last write that the server confirmed;
//! - everyone else waits for [`Terms::lease_duration`] counted from the moment
//!   it *learnt* of the last change;
//! - each write carries the version that was read, so only one of several wins.
//!
//! The gap between the two durations is the margin for effects that are already
//! on their way and for clocks that run at different speeds.

mod candidate;
mod record;
#[cfg(test)]
mod simulation;

use std::time::Duration;

pub use candidate::Candidate;
pub use record::LeaseRecord;

/// The three durations of an election, checked against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Why three durations cannot govern an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// A Lease stores whole seconds, and at least one.
    #[error("the lease duration must be a whole number of seconds, at least 1 and at most {max}", max = i32::MAX)]
    LeaseDuration,
    /// A holder that doubts itself no sooner than others take over leads twice.
    #[error("the renew deadline must be shorter than the lease duration")]
    RenewDeadline,
    /// At least two tries must fit before the holder gives up.
    #[error("the retry period must be above zero and at most half the renew deadline")]
    RetryPeriod,
}

impl Terms {
    /// Checks the three durations. Fails when the lease duration is not a
    /// whole number of seconds, the renew deadline is not below it, or fewer
    /// than two retry periods fit into the renew deadline.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TermsError> {
        let seconds = i32::try_from(lease_duration.as_secs()).map_err(|_| TermsError::LeaseDuration)?;
        if seconds < 1 || lease_duration.subsec_nanos() != 0 {
            return Err(TermsError::LeaseDuration);
        }
        if renew_deadline >= lease_duration {
            return Err(TermsError::RenewDeadline);
        }
        if retry_period.is_zero() || retry_period.saturating_mul(2) > renew_deadline {
            return Err(TermsError::RetryPeriod);
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long others wait, after the last change they saw, before they take over.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long the holder trusts its last confirmed write.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How often the record is read or renewed.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }
}

/// What one candidate knows beyond the record itself. All times are readings
/// of the candidate's own steady clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// When this candidate learnt of the record's present content (or absence).
    pub last_change_seen: Duration,
    /// Whether this candidate has ever seen a record. Then an absent record
    /// was deleted, and somebody may still be acting under it.
    pub record_seen: bool,
    /// When the last confirmed write that made or kept this candidate the
    /// holder was begun. None while it does not lead.
    pub renewal_began: Option<Duration>,
}

/// The next thing a candidate does about the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAction {
    /// There is no record: create it, as the holder.
    Create,
    /// The record is free or its holder is silent: replace it, as the holder.
    Acquire,
    /// The record is ours: replace it with a newer time.
    Renew,
    /// Another holder is to be respected at least until this reading.
    Yield {
        /// A reading of the candidate's steady clock.
        until: Duration,
    },
    /// This candidate led and must not act any more.
    StepDown,
}

/// Decides the next action of the candidate `identity` from the record it read
/// (None: there is no Lease), what it remembers, and its clock's reading `now`.
pub fn evaluate(
    record: Option<&LeaseRecord>,
    identity: &str,
    observed: &Observation,
    terms: &Terms,
    now: Duration,
) -> LeaseAction {
    if let Some(began) = observed.renewal_began {
        return evaluate_leading(record, identity, began, terms, now);
    }
    let silent_since = |patience: Duration, action: LeaseAction| {
        let until = observed.last_change_seen.saturating_add(patience);
        if now >= until { action } else { LeaseAction::Yield { until } }
    };
    match record {
        None if observed.record_seen => silent_since(terms.lease_duration, LeaseAction::Create),
        None => LeaseAction::Create,
        Some(record) if record.holder == identity => LeaseAction::Renew,
        Some(record) if record.is_free() => LeaseAction::Acquire,
        // The longer of the two durations: the holder may run under other terms.
        Some(record) => silent_since(record.lease_duration.max(terms.lease_duration), LeaseAction::Acquire),
    }
}

fn evaluate_leading(
    record: Option<&LeaseRecord>,
    identity: &str,
    began: Duration,
    terms: &Terms,
    now: Duration,
) -> LeaseAction {
    if now >= began.saturating_add(terms.renew_deadline) {
        return LeaseAction::StepDown;
    }
    match record {
        // Deleted under us. Creating is safe: it fails when another was first.
        None => LeaseAction::Create,
        Some(record) if record.holder == identity => LeaseAction::Renew,
        Some(_) => LeaseAction::StepDown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use rstest::rstest;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn terms() -> Terms {
        Terms::new(s(15), s(10), s(2)).unwrap()
    }

    fn record(holder: &str, lease_seconds: u64) -> LeaseRecord {
        LeaseRecord {
            holder: holder.to_owned(),
            lease_duration: s(lease_seconds),
            acquired: Some(Timestamp::UNIX_EPOCH),
            renewed: Some(Timestamp::UNIX_EPOCH),
            transitions: 3,
        }
    }

    /// Every combination of what the record says with what the candidate
    /// remembers, at the last reading before and the first at each limit.
    #[rstest]
    // Not leading, no record.
    #[case(None, false, None, s(100), LeaseAction::Create)]
    #[case(None, true, None, s(114), LeaseAction::Yield { until: s(115) })]
    #[case(None, true, None, s(115), LeaseAction::Create)]
    // Not leading, our own record: a write of ours whose answer was lost.
    #[case(Some(record("me", 15)), false, None, s(100), LeaseAction::Renew)]
    #[case(Some(record("me", 15)), true, None, s(200), LeaseAction::Renew)]
    // Not leading, released.
    #[case(Some(record("", 15)), true, None, s(100), LeaseAction::Acquire)]
    // Not leading, held by another: by how long we have seen it unchanged.
    #[case(Some(record("other", 15)), true, None, s(100), LeaseAction::Yield { until: s(115) })]
    #[case(Some(record("other", 15)), true, None, s(114), LeaseAction::Yield { until: s(115) })]
    #[case(Some(record("other", 15)), true, None, s(115), LeaseAction::Acquire)]
    // The longer of the record's duration and ours.
    #[case(Some(record("other", 60)), true, None, s(159), LeaseAction::Yield { until: s(160) })]
    #[case(Some(record("other", 60)), true, None, s(160), LeaseAction::Acquire)]
    #[case(Some(record("other", 0)), true, None, s(101), LeaseAction::Yield { until: s(115) })]
    // Leading, in time.
    #[case(Some(record("me", 15)), false, Some(s(100)), s(109), LeaseAction::Renew)]
    #[case(None, false, Some(s(100)), s(109), LeaseAction::Create)]
    #[case(None, true, Some(s(100)), s(109), LeaseAction::Create)]
    #[case(Some(record("other", 15)), true, Some(s(100)), s(101), LeaseAction::StepDown)]
    #[case(Some(record("", 15)), false, Some(s(100)), s(101), LeaseAction::StepDown)]
    // Leading, too late: whatever the record says.
    #[case(Some(record("me", 15)), false, Some(s(100)), s(110), LeaseAction::StepDown)]
    #[case(None, false, Some(s(100)), s(110), LeaseAction::StepDown)]
    #[case(Some(record("other", 15)), true, Some(s(100)), s(110), LeaseAction::StepDown)]
    fn decides(
        #[case] record: Option<LeaseRecord>,
        #[case] record_seen: bool,
        #[case] renewal_began: Option<Duration>,
        #[case] now: Duration,
        #[case] expected: LeaseAction,
    ) {
        let observed = Observation { last_change_seen: s(100), record_seen, renewal_began };
        assert_eq!(evaluate(record.as_ref(), "me", &observed, &terms(), now), expected);
    }

    #[rstest]
    #[case(s(15), s(10), s(2), None)]
    #[case(s(1), Duration::from_millis(600), Duration::from_millis(200), None)]
    #[case(s(0), s(0), s(0), Some(TermsError::LeaseDuration))]
    #[case(Duration::from_millis(1500), s(1), Duration::from_millis(100), Some(TermsError::LeaseDuration))]
    #[case(s(u64::MAX), s(10), s(2), Some(TermsError::LeaseDuration))]
    #[case(s(15), s(15), s(2), Some(TermsError::RenewDeadline))]
    #[case(s(15), s(10), s(0), Some(TermsError::RetryPeriod))]
    #[case(s(15), s(10), s(6), Some(TermsError::RetryPeriod))]
    fn terms_fit_together(
        #[case] lease: Duration,
        #[case] renew: Duration,
        #[case] retry: Duration,
        #[case] expected: Option<TermsError>,
    ) {
        assert_eq!(Terms::new(lease, renew, retry).err(), expected);
    }
}
