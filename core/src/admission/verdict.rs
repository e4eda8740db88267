//! The answer to a question of admission.

/// Admitted, or refused with a sentence.
pub type Verdict<T> = Result<Allowed<T>, Denial>;

/// An object that is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed<T> {
    /// The object as it should be stored; nothing for a check that changes nothing.
    pub object: T,
    /// For the person who sent it; each is one line.
    pub warnings: Vec<String>,
}

impl<T> Allowed<T> {
    /// Admitted without a word.
    pub fn silently(object: T) -> Self {
        Self { object, warnings: Vec::new() }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    /// What kind of refusal.
    pub code: Code,
    /// What is refused and what to do next, in plain sentences; may have several lines.
    pub message: String,
}

/// The HTTP status of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 403: the object is well formed, but may not be created or changed as things stand.
    Forbidden,
    /// 422: the object itself is wrong, whatever the state of the cluster.
    Invalid,
}

impl Code {
    /// The number on the wire.
    pub const fn status(self) -> u16 {
        match self {
            Self::Forbidden => 403,
            Self::Invalid => 422,
        }
    }

    /// The word that Kubernetes uses for it in a Status.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Forbidden => "Forbidden",
            Self::Invalid => "Invalid",
        }
    }
}

impl Denial {
    /// A refusal because of how things stand.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self { code: Code::Forbidden, message: message.into() }
    }

    /// A refusal because of what the object says.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: Code::Invalid, message: message.into() }
    }
}
