//! Every decision of the rollback system, pure: no client, no clock, no
//! randomness, no environment, no files. Time and chance are arguments.

pub mod admission;
pub mod backend;
pub mod conditions;
pub mod diff;
pub mod history;

pub mod lease;

pub mod jsonpath;
pub mod options;
pub mod pointer;
pub mod release;
pub mod rollback;
pub mod signature;
pub mod suggest;
pub mod workload;
