//! A Release as decisions see it, and what is decided about releases.

pub mod health;
pub mod select;
mod times;
mod view;

pub use view::ReleaseView;
