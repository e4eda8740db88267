//! The wire format of admission (admission.k8s.io/v1), as much of it as is used.
//!
//! Our own types: kube's write the patch as a list of numbers and a denial without a code.

use std::fmt;

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What the API server asks about.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Goes back with the answer.
    pub uid: String,
    /// What kind of object.
    pub resource: Resource,
    /// Set for `status` and the like.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// Its namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// What is done to it.
    pub operation: Operation,
    /// Who does it.
    pub user_info: UserInfo,
    /// The object as it would be stored.
    #[serde(default)]
    pub object: Value,
    /// The object as it is stored.
    #[serde(default)]
    pub old_object: Value,
}

/// A resource type. Its version does not matter: there is one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Resource {
    /// API group.
    pub group: String,
    /// Plural name.
    pub resource: String,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.resource, self.group)
    }
}

/// An authenticated user.
#[derive(Clone, Debug, Deserialize)]
pub struct UserInfo {
    /// The name.
    pub username: String,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// Created.
    Create,
    /// Changed.
    Update,
    /// Deleted.
    Delete,
    /// Connected to.
    Connect,
}

/// A body that is not a review; the answer has no uid to carry, so it is an HTTP error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// Not JSON, or not of this shape.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1: {0}")]
    Unreadable(String),
    /// Another kind or version.
    #[error("the body is {kind:?} of {api_version:?}, not an AdmissionReview of admission.k8s.io/v1")]
    OtherKind {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// A review that asks nothing.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// A field that must not be empty.
    #[error("{0} of the AdmissionReview is empty")]
    Empty(&'static str),
    /// The namespace is not one.
    #[error("request.namespace {0:?} of the AdmissionReview is not the name of a namespace")]
    Namespace(String),
    /// A rule of the webhook configuration sends other objects here.
    #[error("{path} admits {expected}, not {actual}: correct the rules of the webhook configuration")]
    OtherResource {
        /// The path that was called.
        path: &'static str,
        /// What it is for.
        expected: &'static str,
        /// What came.
        actual: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    // Read only when the kind is right, so that another kind is named instead of its first odd field.
    #[serde(default)]
    request: Option<Value>,
}

/// Reads a review.
pub fn parse(body: &[u8]) -> Result<Request, ReviewError> {
    let unreadable = |error: serde_json::Error| ReviewError::Unreadable(error.to_string());
    let Envelope { api_version, kind, request } = serde_json::from_slice(body).map_err(unreadable)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(ReviewError::OtherKind { api_version, kind });
    }
    let request = request.ok_or(ReviewError::NoRequest)?;
    let request: Request = serde_json::from_value(request).map_err(unreadable)?;
    if request.uid.is_empty() {
        return Err(ReviewError::Empty("request.uid"));
    }
    if request.user_info.username.is_empty() {
        return Err(ReviewError::Empty("request.userInfo.username"));
    }
    match request.namespace.as_deref().unwrap_or_default() {
        "" => Err(ReviewError::Empty("request.namespace")),
        name if !is_label(name) => Err(ReviewError::Namespace(name.to_owned())),
        _ => Ok(request),
    }
}

/// Whether a text is a DNS-1123 label, and so safe in a URL's path.
fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63 && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(allowed)
}

/// The answer to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Admitted, perhaps changed by a JSON patch.
    Allowed {
        /// The operations of the patch as JSON; empty when nothing is to be changed.
        patch: Vec<u8>,
        /// One line each.
        warnings: Vec<String>,
    },
    /// Refused.
    Denied {
        /// HTTP status.
        code: u16,
        /// Its word.
        reason: &'static str,
        /// Plain sentences.
        message: String,
    },
}

impl Answer {
    /// Admitted as it is.
    pub fn unchanged() -> Self {
        Self::Allowed { patch: Vec::new(), warnings: Vec::new() }
    }

    /// The bytes to send.
    pub fn to_json(&self, uid: &str) -> Result<Vec<u8>, serde_json::Error> {
        let response = match self {
            Self::Allowed { patch, warnings } => Response {
                uid,
                allowed: true,
                status: None,
                patch_type: (!patch.is_empty()).then_some("JSONPatch"),
                patch: (!patch.is_empty()).then(|| ByteString(patch.clone())),
                warnings: warnings.iter().map(|warning| one_line(warning)).collect(),
            },
            Self::Denied { code, reason, message } => Response {
                uid,
                allowed: false,
                status: Some(Status { code: *code, reason, message }),
                patch_type: None,
                patch: None,
                warnings: Vec::new(),
            },
        };
        serde_json::to_vec(&Reply { api_version: API_VERSION, kind: KIND, response })
    }
}

/// A warning travels in an HTTP header: the API server drops one that holds a control character.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Status<'a> {
    code: u16,
    reason: &'a str,
    message: &'a str,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(answer: &Answer) -> Value {
        serde_json::from_slice(&answer.to_json("u-1").unwrap()).unwrap()
    }

    #[test]
    fn an_answer_without_a_patch_has_neither_patch_nor_type() {
        assert_eq!(
            sent(&Answer::unchanged()),
            json!({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": "u-1", "allowed": true}})
        );
    }

    #[test]
    fn a_patch_is_base64() {
        let answer = Answer::Allowed { patch: b"[]".to_vec(), warnings: vec!["a\nb".into()] };
        assert_eq!(
            sent(&answer)["response"],
            json!({"uid": "u-1", "allowed": true, "patchType": "JSONPatch", "patch": "W10=", "warnings": ["a b"]})
        );
    }

    #[test]
    fn a_denial_has_a_code_and_a_reason() {
        let answer = Answer::Denied { code: 403, reason: "Forbidden", message: "no\nand no".into() };
        assert_eq!(
            sent(&answer)["response"],
            json!({"uid": "u-1", "allowed": false, "status": {"code": 403, "reason": "Forbidden", "message": "no\nand no"}})
        );
    }
}
