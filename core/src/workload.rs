//! The workload mode: releases made of labelled Deployments, StatefulSets, DaemonSets and ConfigMaps.

pub mod content;
pub mod fieldset;
pub mod health;
pub mod last_applied;
pub mod object;
pub mod ownership;
pub mod plan;
pub mod pods;
pub mod progress;
pub mod recording;
pub mod references;
pub mod restore;
pub mod rollout;
pub mod set;
pub mod snapshot;
pub mod stuck;
pub mod trackers;
pub mod window;
