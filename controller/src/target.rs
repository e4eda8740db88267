//! What all passes are about: one target in one namespace.

use std::fmt;

/// A target (service) in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetKey {
    /// The namespace.
    pub namespace: String,
    /// The target.
    pub target: String,
}

impl TargetKey {
    /// The target of that name in that namespace.
    pub fn new(namespace: impl Into<String>, target: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), target: target.into() }
    }
}

impl fmt::Display for TargetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.target)
    }
}
