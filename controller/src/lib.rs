//! The controllers: releases, rollbacks and the recording of workloads.
//!
//! Every controller works target by target: a [`queue`] runs passes, a pass reads what the watches show ([`index`])
//! and what it must know live, asks the pure decisions of `rollback_core` what to do, and does it. A pass may be cut
//! off anywhere: the next one, in this process or another, goes on from what is stored.

pub mod args;
pub mod chance;
pub mod context;
pub mod deployers;
pub mod error;
pub mod events;
pub mod failpoint;
#[cfg(test)]
mod fake_api;
pub mod fence;
pub mod index;
pub mod metrics;
pub mod pointer;
pub mod queue;
pub mod recording;
pub mod release;
pub mod rollback;
pub mod run;
pub mod target;
pub mod watch;
