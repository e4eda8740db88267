//! The decision: what to do next about a Rollback.

use super::observed::Observed;
use super::step::Step;
use super::{Phase, retry, run, settle, start, trigger};

/// Says the next step. Pure and total: the same observation gives the same step (invariant 7).
pub fn decide(observed: &Observed<'_>) -> Step {
    match Phase::of(observed.rollback) {
        Phase::Pending | Phase::Queued => start::step(observed),
        Phase::Triggering => trigger::step(observed),
        Phase::Running => run::step(observed),
        Phase::Waiting => retry::step(observed),
        Phase::Ended(_) => settle::step(observed),
    }
}
