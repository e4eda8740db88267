//! Leader election over a Lease: the loop around [`rollback_core::lease`].
//!
//! [`Elector::start`] begins to compete; its [`Leadership`] tells whether this
//! process leads. Before every effect outside the process, ask
//! [`Leadership::is_leader_now`]. When [`Leadership::lost`] resolves, end the
//! process: nothing else is sure to stop work in progress. On a graceful end,
//! stop the work, then call [`Elector::release`].

mod api;
mod args;
mod elector;
mod leadership;

pub use args::LeaseArgs;
pub use elector::Elector;
pub use leadership::{Leadership, LeadershipLost};
