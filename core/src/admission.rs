//! Admission: what is filled in, what is refused and in which words (DESIGN 3, rules 6 to 11).
//!
//! Everything here is pure. The webhook reads a [`TargetState`] live, asks one of these
//! functions and turns the answer into a patch or a denial. The plugin uses [`export`].

mod age;
mod canonical;
mod checks;
mod export;
pub mod policy;
mod refusal;
pub mod release;
mod resolve;
pub mod rollback_create;
pub mod rollback_update;
pub mod rollback_validate;
mod state;
mod submitted;
#[cfg(test)]
mod testing;
mod tracking;
mod verdict;

pub use age::age;
pub use canonical::changed_fields;
pub use export::export;
pub use state::{ActiveNow, TargetState};
pub use submitted::submitted_hash;
pub use tracking::is_tracking_label;
pub use verdict::{Allowed, Code, Denial, Verdict};

use k8s_openapi::jiff::Timestamp;
use rollback_api::Backend;

/// What admission of a Rollback depends on beside the object and its target.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The authenticated user, as the API server names it.
    pub user: &'a str,
    /// Now.
    pub now: Timestamp,
    /// The backends that may be asked for; the first is the default.
    pub backends: &'a [Backend],
}
