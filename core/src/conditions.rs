//! Reading and merging conditions: a list with one entry for each type.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::Status;

/// Longest condition message, in characters; the API server refuses more than 32,768 bytes.
pub const MAX_MESSAGE: usize = 1024;

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// The status of the condition of that type; a text that is none of the three counts as Unknown.
pub fn status(conditions: &[Condition], type_: &str) -> Option<Status> {
    find(conditions, type_).map(|condition| Status::parse(&condition.status).unwrap_or(Status::Unknown))
}

/// Whether the condition of that type is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    status(conditions, type_) == Some(Status::True)
}

/// What a condition is to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Condition type.
    pub type_: &'a str,
    /// Its status.
    pub status: Status,
    /// One stable CamelCase word.
    pub reason: &'a str,
    /// For people; cut at [`MAX_MESSAGE`] characters.
    pub message: &'a str,
    /// The generation that was looked at.
    pub generation: Option<i64>,
}

/// Sets a condition, keeping `lastTransitionTime` unless the status changes (API conventions).
pub fn set(conditions: &mut Vec<Condition>, wanted: &Wanted<'_>, now: Timestamp) {
    let Wanted { type_, status, reason, message, generation } = *wanted;
    let old = find(conditions, type_);
    let last_transition_time = match old {
        Some(old) if old.status == status.as_str() => old.last_transition_time.clone(),
        Some(_) | None => Time(now),
    };
    let new = Condition {
        type_: type_.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: cut(message, MAX_MESSAGE),
        observed_generation: generation,
        last_transition_time,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == type_) {
        Some(slot) => *slot = new,
        None => conditions.push(new),
    }
}

/// The first `max` characters of a text, with `…` for what was cut.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wanted(status: Status, reason: &'static str) -> Wanted<'static> {
        Wanted { type_: "Active", status, reason, message: "m", generation: Some(1) }
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        set(&mut conditions, &wanted(Status::True, "Deployed"), at(1));
        set(&mut conditions, &wanted(Status::True, "Other"), at(2));
        assert_eq!((conditions.len(), conditions[0].last_transition_time.0), (1, at(1)));
        assert_eq!(conditions[0].reason, "Other");
        set(&mut conditions, &wanted(Status::False, "Superseded"), at(3));
        assert_eq!((conditions.len(), conditions[0].last_transition_time.0), (1, at(3)));
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(cut("žluť", 4), "žluť");
        assert_eq!(cut("žluťoučký", 4), "žlu…");
    }
}
