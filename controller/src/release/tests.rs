//! The release pass against a pretend API server.

mod failures;
mod path;
mod world;
