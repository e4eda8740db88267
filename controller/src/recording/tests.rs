//! The recording against a pretend API server, together with the release controller.

mod failures;
mod path;
mod world;
