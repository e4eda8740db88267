//! What a backend answers, in the words that decisions use.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

/// A deployment as its backend describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The backend's id; what `poll` and `cancel` take.
    pub id: String,
    /// Where a person can watch it.
    pub url: Option<String>,
    /// Where it stands.
    pub state: DeploymentState,
    /// What the backend says about it, for people; may be empty.
    pub message: String,
}

/// Where a deployment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentState {
    /// Accepted, not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Finished well. The time is when it finished, if the backend knows.
    Succeeded(Option<Timestamp>),
    /// Finished badly.
    Failed,
    /// Another deployment took over.
    Superseded,
}

/// What came of asking a backend to stop a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancellation {
    /// Nothing of it goes on.
    Stopped,
    /// It may still be running; the message says why.
    NotStopped(String),
}

/// An error of a backend call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    /// What it means for the rollback.
    pub class: ErrorClass,
    /// What happened and to what, in one sentence for people. Never holds a credential.
    pub message: String,
}

/// What an error means for the rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Outage, time-out or rate limit: ask again, after that long if the backend said so. Spends no attempt.
    Unavailable(Option<Duration>),
    /// Another operation is in the way: ask again. Spends no attempt.
    Busy,
    /// The call reached the backend and this try failed; another attempt may succeed.
    Failed,
    /// The credentials do not allow it. Trying again cannot help.
    NotPermitted,
    /// The request can never work. Trying again cannot help.
    Invalid,
    /// What the call is about does not exist. Trying again cannot help.
    NotFound,
}

impl BackendError {
    /// An error of that class.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}
