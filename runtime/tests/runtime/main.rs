//! The servers' plumbing with real sockets, real files and real signals; only
//! the API server of the election is a stand-in.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod admin;
mod certificate;
mod client;
mod drain;
mod lease;
mod limits;
mod signals;
mod support;
