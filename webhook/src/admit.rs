//! The answer to a review, one file for each kind.

mod policies;
mod releases;
mod rollbacks;

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Backend, GROUP};
use rollback_core::admission::Denial;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::reader::{ReadError, Reader};
use crate::review::{Answer, Request, ReviewError};

/// What is served, by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// `/mutate-releases`
    MutateReleases,
    /// `/validate-releases`
    ValidateReleases,
    /// `/mutate-rollbacks`
    MutateRollbacks,
    /// `/validate-rollbacks`
    ValidateRollbacks,
    /// `/validate-automated-rollback-policies`
    ValidatePolicies,
}

impl Path {
    /// All paths.
    pub const ALL: [Self; 5] = [
        Self::MutateReleases,
        Self::ValidateReleases,
        Self::MutateRollbacks,
        Self::ValidateRollbacks,
        Self::ValidatePolicies,
    ];

    /// As it is written in the URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MutateReleases => "/mutate-releases",
            Self::ValidateReleases => "/validate-releases",
            Self::MutateRollbacks => "/mutate-rollbacks",
            Self::ValidateRollbacks => "/validate-rollbacks",
            Self::ValidatePolicies => "/validate-automated-rollback-policies",
        }
    }

    /// The path of a URL.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.as_str() == text)
    }

    /// The resource that it is for, and how it is written with its group.
    const fn resource(self) -> (&'static str, &'static str) {
        match self {
            Self::MutateReleases | Self::ValidateReleases => {
                ("releases", "releases.deploy.crd.gocardless.com")
            }
            Self::MutateRollbacks | Self::ValidateRollbacks => {
                ("rollbacks", "rollbacks.deploy.crd.gocardless.com")
            }
            Self::ValidatePolicies => {
                ("automatedrollbackpolicies", "automatedrollbackpolicies.deploy.crd.gocardless.com")
            }
        }
    }
}

/// How the webhook is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Backends that Rollbacks may ask for; the first is the default.
    pub backends: Vec<Backend>,
    /// Whether Releases are named after their signature.
    pub naming: bool,
    /// The clock.
    pub now: fn() -> Timestamp,
}

/// Answers reviews.
#[derive(Debug)]
pub struct Admission<R> {
    reader: R,
    settings: Settings,
}

/// Why a request is not admitted.
#[derive(Debug)]
enum Refusal {
    /// A rule says no.
    Denied(Denial),
    /// It is not known whether a rule says no: what was to be decided about.
    Unknown(String, ReadError),
    /// A defect.
    Internal(serde_json::Error),
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::Internal(error)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let internal = |message| Self::Denied { code: 500, reason: "InternalError", message };
        match refusal {
            Refusal::Denied(Denial { code, message }) => {
                Self::Denied { code: code.status(), reason: code.reason(), message }
            }
            Refusal::Unknown(what, error) => {
                tracing::warn!(%error, "{what} could not be decided");
                internal(format!("{what} could not be decided, so it is not admitted: {error}. Try again"))
            }
            Refusal::Internal(error) => internal(format!("the object could not be written as JSON: {error}")),
        }
    }
}

impl<R: Reader> Admission<R> {
    /// Answers with what that reader reads.
    pub fn new(reader: R, settings: Settings) -> Self {
        Self { reader, settings }
    }

    /// Answers a review that came on a path, not later than `until`. Fails when it is about another kind.
    pub async fn answer(&self, path: Path, request: &Request, until: Instant) -> Result<Answer, ReviewError> {
        let (resource, expected) = path.resource();
        if request.resource.group != GROUP || request.resource.resource != resource {
            let actual = request.resource.to_string();
            return Err(ReviewError::OtherResource { path: path.as_str(), expected, actual });
        }
        if request.sub_resource.as_deref().is_some_and(|name| !name.is_empty()) {
            return Ok(Answer::unchanged());
        }
        let answer = async {
            match path {
                Path::MutateReleases => releases::mutate(&self.settings, request),
                Path::ValidateReleases => releases::validate(&self.settings, request),
                Path::MutateRollbacks => rollbacks::mutate(self, request).await,
                Path::ValidateRollbacks => rollbacks::validate(self, request).await,
                Path::ValidatePolicies => policies::validate(self, request).await,
            }
        };
        let late = || Err(Refusal::Unknown(format!("this request on {}", path.as_str()), ReadError::Timeout));
        let answer = tokio::time::timeout_at(until, answer).await.unwrap_or_else(|_| late());
        Ok(answer.unwrap_or_else(Answer::from))
    }
}

/// The namespace of a request; a review without one is not accepted.
fn namespace(request: &Request) -> &str {
    request.namespace.as_deref().unwrap_or_default()
}

/// The object for a change: one that cannot be read is left as it is, since the schema, which is checked next, says
/// better what is wrong with it.
fn sent<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// The object for a check.
fn read<T: DeserializeOwned>(kind: &str, value: &Value) -> Result<T, Refusal> {
    T::deserialize(value).map_err(|error| {
        Refusal::Denied(Denial::invalid(format!("the object is not a readable {kind}: {error}")))
    })
}

/// Whether two objects differ in nothing but their metadata and status.
fn same_but_metadata(old: &Value, new: &Value) -> bool {
    ["spec", "config"].iter().all(|field| old.get(field) == new.get(field))
}
