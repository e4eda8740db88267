//! The workload mode: releases made of labelled Deployments, StatefulSets, DaemonSets and ConfigMaps.

pub mod fieldset;
pub mod last_applied;
pub mod object;
pub mod ownership;
pub mod references;
pub mod trackers;
