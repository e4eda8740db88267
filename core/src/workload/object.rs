//! The kinds of objects that make up a target, and how a release names them (rule 17).

use std::fmt;
use std::str::FromStr;

/// A kind whose objects can belong to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// A ConfigMap.
    ConfigMap,
    /// A DaemonSet.
    DaemonSet,
    /// A Deployment.
    Deployment,
    /// A StatefulSet.
    StatefulSet,
}

impl WorkloadKind {
    /// All kinds, in declaration order.
    pub const ALL: &'static [Self] = &[Self::ConfigMap, Self::DaemonSet, Self::Deployment, Self::StatefulSet];

    /// The kind as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::DaemonSet => "DaemonSet",
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
        }
    }

    /// The kind as revision names write it, and kubectl understands it.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::DaemonSet => "daemonset",
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
        }
    }

    /// The `apiVersion` of its objects.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMap => "v1",
            Self::DaemonSet | Self::Deployment | Self::StatefulSet => "apps/v1",
        }
    }
}

/// An object of a target within its namespace. As text it is the revision's name: `deployment/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The object of that kind and name.
    pub fn new(kind: WorkloadKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.prefix(), self.name)
    }
}

/// A text that names no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no workload: expected configmap/NAME, daemonset/NAME, deployment/NAME or statefulset/NAME"
)]
pub struct NotAnObject(pub String);

impl FromStr for ObjectKey {
    type Err = NotAnObject;

    fn from_str(text: &str) -> Result<Self, NotAnObject> {
        let error = || NotAnObject(text.to_owned());
        let (prefix, name) = text.split_once('/').ok_or_else(error)?;
        let kind =
            WorkloadKind::ALL.iter().copied().find(|kind| kind.prefix() == prefix).ok_or_else(error)?;
        if name.is_empty() || name.contains('/') {
            return Err(error());
        }
        Ok(Self::new(kind, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for (text, kind) in [
            ("configmap/web-config", WorkloadKind::ConfigMap),
            ("daemonset/agent", WorkloadKind::DaemonSet),
            ("deployment/web", WorkloadKind::Deployment),
            ("statefulset/db.main", WorkloadKind::StatefulSet),
        ] {
            let key: ObjectKey = text.parse().unwrap();
            assert_eq!(key.kind, kind);
            assert_eq!(key.to_string(), text);
        }
        for text in ["", "web", "deployment/", "deployment/a/b", "Deployment/web", "secret/x", "workloads"] {
            assert_eq!(text.parse::<ObjectKey>(), Err(NotAnObject(text.to_owned())), "{text}");
        }
    }
}
