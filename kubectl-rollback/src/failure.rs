//! Everything that can go wrong for a person, with its exit code.

use crate::exit;

/// Why a command did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What kind.
    pub(crate) kind: Kind,
    /// What happened, to which object, and what to do next; may have several lines.
    pub(crate) text: String,
}

/// The kinds of failure: the first word that a person reads, and the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Wrong usage, API server, network, kubeconfig.
    Error,
    /// Admission, permission or a precondition.
    Refused,
    /// The rollback failed.
    Failed,
    /// It goes on without us.
    StillRunning,
    /// The person stopped watching; it goes on.
    StoppedWatching,
    /// Another deployment took over.
    Superseded,
    /// A person stopped it.
    Cancelled,
    /// There was nothing to do.
    NotNeeded,
}

impl Kind {
    /// The first words of the message.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Error => "Error:",
            Self::Refused => "Refused:",
            Self::Failed => "Failed:",
            Self::StillRunning => "Still running:",
            Self::StoppedWatching => "Stopped watching.",
            Self::Superseded => "Superseded:",
            Self::Cancelled => "Cancelled:",
            Self::NotNeeded => "Not needed:",
        }
    }

    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Error => exit::ERROR,
            Self::Refused => exit::REFUSED,
            Self::Failed => exit::FAILED,
            Self::StillRunning | Self::StoppedWatching => exit::STILL_RUNNING,
            Self::Superseded | Self::Cancelled | Self::NotNeeded => exit::NOT_CARRIED_OUT,
        }
    }
}

impl Failure {
    /// A failure of a kind.
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Wrong usage or an error around the cluster.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::new(Kind::Error, text)
    }

    /// A refusal.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::new(Kind::Refused, text)
    }
}
