//! The deployment state machine of one Rollback (DESIGN 4): a pure step function.
//!
//! [`decide::decide`] looks at what was [`observed::Observed`] and says the next
//! [`step::Step`]: one read, one write or one backend call. The driver carries it
//! out, puts the answer into the observation and asks again, until the step is to wait.

mod backoff;
pub mod decide;
pub mod key;
pub mod observed;
mod retry;
mod run;
mod settle;
mod standing;
mod start;
mod status;
pub mod step;
mod trigger;
pub mod view;

pub use settle::{FINALIZER, has_finalizer};
pub use view::{Outcome, Phase, RollbackView};
