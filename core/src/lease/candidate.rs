//! One candidate's memory between two looks at the Lease.

use std::time::Duration;

use super::{LeaseAction, LeaseRecord, Observation, Terms, evaluate};

/// One process that wants to lead. It is told what was read and what was
/// written, and answers what to do next. All times are readings of one steady
/// clock (see the module's introduction).
#[derive(Debug, Clone)]
pub struct Candidate {
    identity: String,
    terms: Terms,
    seen: Option<Seen>,
    record_seen: bool,
    renewal_began: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Seen {
    record: Option<LeaseRecord>,
    since: Duration,
}

impl Candidate {
    /// A candidate that has seen nothing yet. The identity must be unique to
    /// this run of the process: a second run under the same name would take
    /// the first one's lease for its own.
    pub fn new(identity: impl Into<String>, terms: Terms) -> Self {
        Self { identity: identity.into(), terms, seen: None, record_seen: false, renewal_began: None }
    }

    /// The name written into the record.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The durations this candidate runs under.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Takes in what was read (None: there is no Lease); `now` is taken *after*
    /// the answer came, so that a slow answer makes this candidate wait longer.
    pub fn observe(&mut self, record: Option<LeaseRecord>, now: Duration) {
        self.record_seen |= record.is_some();
        if self.seen.as_ref().is_none_or(|seen| seen.record != record) {
            self.seen = Some(Seen { record, since: now });
        }
    }

    /// Takes in that the server confirmed a write of `record` by this
    /// candidate. `began` was taken *before* the request was sent, so that a
    /// slow answer makes this candidate doubt itself sooner.
    pub fn confirm(&mut self, record: LeaseRecord, began: Duration) {
        self.renewal_began = (record.holder == self.identity).then_some(began);
        self.record_seen = true;
        self.seen = Some(Seen { record: Some(record), since: began });
    }

    /// Takes in that this candidate gave up leading.
    pub fn step_down(&mut self) {
        self.renewal_began = None;
    }

    /// The record last seen. None when there was none or nothing was read yet.
    pub fn record(&self) -> Option<&LeaseRecord> {
        self.seen.as_ref().and_then(|seen| seen.record.as_ref())
    }

    /// What to do now. Call [`Candidate::observe`] first: before anything was
    /// seen the answer is to wait.
    pub fn action(&self, now: Duration) -> LeaseAction {
        let Some(seen) = &self.seen else {
            return LeaseAction::Yield { until: now };
        };
        let observed = Observation {
            last_change_seen: seen.since,
            record_seen: self.record_seen,
            renewal_began: self.renewal_began,
        };
        evaluate(seen.record.as_ref(), &self.identity, &observed, &self.terms, now)
    }

    /// Until which reading this candidate may act; None when it does not lead.
    pub fn leads_until(&self) -> Option<Duration> {
        self.renewal_began.map(|began| began.saturating_add(self.terms.renew_deadline()))
    }

    /// Whether this candidate may act at `now`.
    pub fn is_leader(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn candidate(identity: &str) -> Candidate {
        Candidate::new(identity, Terms::new(s(15), s(10), s(2)).unwrap())
    }

    fn held(identity: &str, second: i64) -> LeaseRecord {
        let wall = Timestamp::from_second(second).unwrap();
        LeaseRecord::held_by(identity, None, candidate(identity).terms(), wall)
    }

    #[test]
    fn before_the_first_look_it_waits() {
        assert_eq!(candidate("a").action(s(7)), LeaseAction::Yield { until: s(7) });
    }

    #[test]
    fn an_unchanged_record_keeps_its_first_sighting_and_a_changed_one_starts_again() {
        let mut me = candidate("me");
        me.observe(Some(held("other", 1)), s(100));
        me.observe(Some(held("other", 1)), s(110));
        assert_eq!(me.action(s(110)), LeaseAction::Yield { until: s(115) });
        me.observe(Some(held("other", 2)), s(112));
        assert_eq!(me.action(s(115)), LeaseAction::Yield { until: s(127) });
    }

    #[test]
    fn a_leader_is_one_from_the_start_of_its_write_for_the_renew_deadline() {
        let mut me = candidate("me");
        me.observe(None, s(100));
        assert!(!me.is_leader(s(100)));
        me.confirm(held("me", 1), s(100));
        assert!(me.is_leader(s(109)));
        assert!(!me.is_leader(s(110)));
        assert_eq!(me.action(s(110)), LeaseAction::StepDown);
        me.step_down();
        assert!(!me.is_leader(s(101)));
    }

    #[test]
    fn a_deleted_record_is_not_replaced_at_once() {
        let mut me = candidate("me");
        me.observe(Some(held("other", 1)), s(100));
        me.observe(None, s(101));
        assert_eq!(me.action(s(101)), LeaseAction::Yield { until: s(116) });
        assert_eq!(me.action(s(116)), LeaseAction::Create);
    }

    #[test]
    fn releasing_ends_the_leadership() {
        let mut me = candidate("me");
        let record = held("me", 1);
        me.confirm(record.clone(), s(100));
        me.confirm(record.released(Timestamp::from_second(2).unwrap()), s(101));
        assert!(!me.is_leader(s(101)));
        assert_eq!(me.action(s(101)), LeaseAction::Acquire);
    }
}
