//! A Release as decisions see it, and what is decided about releases.

pub mod select;
mod view;

pub use view::ReleaseView;
