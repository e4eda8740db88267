//! A Release as decisions see it, and what is decided about releases.

mod activation;
pub mod annotations;
pub mod culling;
mod deploying;
mod facts;
pub mod health;
pub mod pass;
pub mod select;
mod settle;
mod status;
mod times;
mod view;

pub use view::ReleaseView;
