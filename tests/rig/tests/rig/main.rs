//! The rig proves itself: one control plane for most tests, private ones where parts are killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod control_plane;
mod pods;
mod process;
mod workloads;
