//! The decision: what to do next about a Rollback.

use super::observed::Observed;
use super::step::{Step, Until};

/// Says the next step. Pure and total: the same observation gives the same step.
pub fn decide(observed: &Observed<'_>) -> Step {
    let _ = observed;
    Step::Wait(Until::Change)
}
