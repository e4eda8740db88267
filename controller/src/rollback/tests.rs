//! The driver against a pretend API server and a pretend backend.

mod backend;
mod failures;
mod path;
mod world;
