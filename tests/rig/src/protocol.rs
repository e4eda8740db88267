//! What the rig and its supervisor say to each other: one JSON document a line.
//!
//! The supervisor's first line is [`Hello`]. Then it answers each [`Request`] with one [`Reply`].
//! The end of its input is the order to kill everything.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The supervisor is up; this folder is its own and is removed at the end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// For data, keys and logs of what the supervisor runs.
    pub dir: PathBuf,
}

/// One order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub enum Request {
    /// Start a program. A name that is taken by a running program is refused.
    Spawn(Spawn),
    /// Send a signal; after [`Signal::Kill`] the reply comes when the process is gone.
    Signal {
        /// The name given at spawn.
        name: String,
        /// What to send.
        signal: Signal,
    },
    /// Ask whether it still runs.
    Status {
        /// The name given at spawn.
        name: String,
    },
}

/// A program to start. Its input is empty; both its outputs are appended to `log`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Spawn {
    /// A name of the caller's choice, for later requests.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables to set.
    pub env: BTreeMap<String, String>,
    /// Environment variables to remove.
    pub unset: Vec<String>,
    /// The log file; created when missing.
    pub log: PathBuf,
}

/// The signals the rig sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// End now, without a chance to clean up.
    Kill,
    /// End in good order.
    Term,
    /// Freeze.
    Stop,
    /// Go on after a freeze.
    Cont,
}

/// The answer to one [`Request`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Started, or still running, with this process id.
    Running(u32),
    /// It ended.
    Exited {
        /// The exit code, when it ended by itself.
        code: Option<i32>,
        /// The signal that ended it, else.
        signal: Option<i32>,
    },
    /// The request failed; the sentence says how.
    Error(String),
}
