//! Why a pass over a target could not go on, and what API errors mean.

use rollback_core::pointer::PointerError;

/// Why a pass could not go on. The queue logs it and runs the pass again later.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// This process must not act any more. Not a failure: the pass ends silently.
    #[error("{0}")]
    Stopped(#[from] Stopped),
    /// A call to the API server failed.
    #[error("cannot {doing}: {}", sentence(.source))]
    Api {
        /// What was being done and to what, as in `write the status of Rollback payments-1`.
        doing: String,
        /// What the client or the server said.
        source: kube::Error,
    },
    /// Somebody else wrote first, several times in a row.
    #[error("cannot {doing}: somebody else changed it each time; trying again later")]
    Contended {
        /// What was being done and to what.
        doing: String,
    },
    /// The target's pointer says something unreadable.
    #[error("{0}")]
    Pointer(#[from] PointerError),
    /// Anything else that a later pass may find mended.
    #[error("{0}")]
    Other(String),
}

/// This process lost its leadership or is shutting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Another process may lead.
    #[error("leadership is not certain any more")]
    NotLeading,
    /// The process is shutting down.
    #[error("the controller is shutting down")]
    ShuttingDown,
}

impl PassError {
    /// Wraps an API error: `.map_err(PassError::api(|| format!("read Rollback {name}")))`.
    pub fn api<D: FnOnce() -> String>(doing: D) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { doing: doing(), source }
    }
}

/// What the API server said, without the client's decoration.
pub fn sentence(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("HTTP {} {}", status.code, status.reason),
        other => {
            // The chain holds the cause that a person needs: refused, timed out, which name was unknown.
            let mut text = other.to_string();
            let mut source = std::error::Error::source(other);
            while let Some(cause) = source {
                let cause_text = cause.to_string();
                if !text.contains(&cause_text) {
                    text = format!("{text}: {cause_text}");
                }
                source = cause.source();
            }
            text
        }
    }
}

/// Whether the object does not exist.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether somebody else wrote first: a stale resourceVersion, a failed precondition, or a name that is taken.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
