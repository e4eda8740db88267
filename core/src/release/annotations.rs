//! What the annotations of a Release ask for (reference A.4 and B.1).

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Activation, Release, annotations};

use super::health::HealthReport;
use super::times::{micro_time, parse_rfc3339};
use crate::conditions::cut;

/// Longest id of an activation, in characters; the schema's bound.
const MAX_ID: usize = 128;
/// Longest name of a Rollback, in characters; the schema's bound.
const MAX_NAME: usize = 253;
/// Longest UID, in characters; the schema's bound.
const MAX_UID: usize = 64;

/// A time that an annotation gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Absent or empty: clears the status field.
    Absent,
    /// Not RFC 3339: the status field keeps its value.
    Unreadable,
    /// This time.
    At(Timestamp),
}

/// An annotation that was not understood, and what is done about it; for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The release (name).
    pub release: String,
    /// The whole sentence.
    pub text: String,
}

/// The annotations of one Release, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    /// `active` is exactly `true`.
    pub(super) wants: bool,
    /// When the deployment started.
    pub(super) start: Moment,
    /// When the deployment ended.
    pub(super) end: Moment,
    /// The release that it replaced, if somebody says so.
    pub(super) previous: Option<String>,
    /// The event that activates it, if it is given and readable.
    pub(super) activation: Option<Activation>,
    /// Whether the annotation is there at all.
    pub(super) has_activation: bool,
    /// What a health source says.
    pub(super) health: Option<HealthReport>,
    /// Whether the annotation is there at all.
    pub(super) has_health: bool,
}

impl Inputs {
    /// Reads them. Total: what cannot be read gets a note and counts as if it were not there.
    pub(super) fn of(release: &Release, notes: &mut Vec<Note>) -> Self {
        let name = release.metadata.name.as_deref().unwrap_or_default();
        let all = release.metadata.annotations.as_ref();
        let text =
            |key: &str| all.and_then(|all| all.get(key)).map(String::as_str).filter(|text| !text.is_empty());
        let mut note = |key: &str, value: &str, why: &str| {
            let text = format!("Release {name}: annotation {key}={:?} {why}", cut(value, 128));
            notes.push(Note { release: name.to_owned(), text });
        };
        let mut moment = |key: &str| match text(key) {
            None => Moment::Absent,
            Some(value) => parse_rfc3339(value).map_or_else(
                || {
                    note(
                        key,
                        value,
                        "is not RFC 3339 (2026-01-31T14:02:00Z); the last readable time is kept",
                    );
                    Moment::Unreadable
                },
                Moment::At,
            ),
        };
        let start = moment(annotations::DEPLOYMENT_START_TIME);
        let end = moment(annotations::DEPLOYMENT_END_TIME);
        let activation = text(annotations::ACTIVATION).and_then(|value| {
            parse_activation(value)
                .map_err(|why| note(annotations::ACTIVATION, value, &format!("{why}; it is ignored")))
                .ok()
        });
        let health = text(annotations::HEALTH).and_then(|value| {
            HealthReport::parse(value)
                .map_err(|error| note(annotations::HEALTH, value, &format!("{error}; it is ignored")))
                .ok()
        });
        Self {
            wants: text(annotations::ACTIVE) == Some("true"),
            start,
            end,
            previous: text(annotations::PREVIOUS_RELEASE).map(|name| cut(name, MAX_NAME)),
            activation,
            has_activation: all.is_some_and(|all| all.contains_key(annotations::ACTIVATION)),
            health,
            has_health: all.is_some_and(|all| all.contains_key(annotations::HEALTH)),
        }
    }
}

/// Reads an activation that the schema of a Release's status would take.
fn parse_activation(text: &str) -> Result<Activation, String> {
    let mut activation: Activation =
        serde_json::from_str(text).map_err(|error| format!("is not an activation: {error}"))?;
    let empty_is_absent = |text: Option<String>| text.filter(|text| !text.is_empty());
    activation.rollback_ref = empty_is_absent(activation.rollback_ref);
    activation.rollback_uid = empty_is_absent(activation.rollback_uid);
    if activation.id.is_empty() {
        return Err("has an empty id".to_owned());
    }
    let too_long = |text: &str, max: usize| text.chars().nth(max).is_some();
    let refers = |text: &Option<String>, max| text.as_deref().is_some_and(|text| too_long(text, max));
    if too_long(&activation.id, MAX_ID) {
        return Err(format!("has an id of more than {MAX_ID} characters"));
    }
    if refers(&activation.rollback_ref, MAX_NAME) || refers(&activation.rollback_uid, MAX_UID) {
        return Err("names a Rollback with a name or UID that no object can have".to_owned());
    }
    activation.time = micro_time(activation.time.0);
    Ok(activation)
}
