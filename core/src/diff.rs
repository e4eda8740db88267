//! What a rollback changes, revision by revision.

use std::borrow::Cow;

use rollback_api::{ReleaseConfig, Revision};

/// Longest id that is shown whole, in characters.
const LONGEST: usize = 24;
/// Digits that are shown of a hash, as git does.
const HASH_DIGITS: usize = 7;
/// Shortest run of hex digits that is taken for a hash: SHA-1.
const HASH: usize = 40;

/// One named revision on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionChange<'a> {
    /// Its name.
    pub name: &'a str,
    /// In the release that is left; `None` if it has no such revision.
    pub from: Option<&'a Revision>,
    /// In the release that is deployed; `None` if it has no such revision.
    pub to: Option<&'a Revision>,
}

impl RevisionChange<'_> {
    /// Whether another content is deployed: the id or where it comes from differs. Author and message do not count.
    pub fn is_change(&self) -> bool {
        match (self.from, self.to) {
            (Some(from), Some(to)) => from.id != to.id || source(from) != source(to),
            (Some(_), None) | (None, Some(_)) => true,
            (None, None) => false,
        }
    }

    /// Where the revision comes from; empty if neither side says it.
    pub fn source(&self) -> &str {
        self.to.map(source).filter(|text| !text.is_empty()).or(self.from.map(source)).unwrap_or_default()
    }
}

fn source(revision: &Revision) -> &str {
    revision.source.as_deref().unwrap_or_default()
}

/// All revisions of both sides: in the order of the release that is left, then those that only the other one has.
pub fn revisions<'a>(from: &'a ReleaseConfig, to: &'a ReleaseConfig) -> Vec<RevisionChange<'a>> {
    let find =
        |config: &'a ReleaseConfig, name: &str| config.revisions.iter().find(|other| other.name == name);
    let left = from.revisions.iter().map(|revision| RevisionChange {
        name: &revision.name,
        from: Some(revision),
        to: find(to, &revision.name),
    });
    let added = to.revisions.iter().filter(|revision| find(from, &revision.name).is_none());
    left.chain(added.map(|revision| RevisionChange { name: &revision.name, from: None, to: Some(revision) }))
        .collect()
}

/// An id as people read it: seven digits of a hash, the beginning of anything else that is long.
pub fn short_id(id: &str) -> Cow<'_, str> {
    let digits = id.strip_prefix("sha256:").unwrap_or(id);
    if digits.len() >= HASH && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Cow::Borrowed(&digits[..HASH_DIGITS]);
    }
    if id.chars().nth(LONGEST).is_none() && !id.chars().any(char::is_control) {
        return Cow::Borrowed(id);
    }
    let printable: String = id.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Cow::Owned(crate::conditions::cut(&printable, LONGEST))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn config(revisions: &[(&str, &str, &str)]) -> ReleaseConfig {
        let revision = |(name, id, source): &(&str, &str, &str)| Revision {
            name: (*name).into(),
            id: (*id).into(),
            source: (!source.is_empty()).then(|| (*source).to_owned()),
            ..Revision::default()
        };
        ReleaseConfig { target_name: "t".into(), revisions: revisions.iter().map(revision).collect() }
    }

    #[test]
    fn pairs_revisions_by_name() {
        let from = config(&[("app", "2", "o/app"), ("infra", "9", ""), ("gone", "1", "")]);
        let to = config(&[("new", "1", ""), ("infra", "9", ""), ("app", "1", "o/app")]);
        let changes = revisions(&from, &to);
        let seen: Vec<_> = changes
            .iter()
            .map(|change| {
                (
                    change.name,
                    change.from.map(|r| r.id.as_str()),
                    change.to.map(|r| r.id.as_str()),
                    change.is_change(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("app", Some("2"), Some("1"), true),
                ("infra", Some("9"), Some("9"), false),
                ("gone", Some("1"), None, true),
                ("new", None, Some("1"), true),
            ]
        );
        assert_eq!(changes[0].source(), "o/app");
        assert_eq!(changes[1].source(), "");
    }

    #[test]
    fn another_source_is_a_change_and_an_empty_one_is_none() {
        let (a, b) = (config(&[("app", "1", "o/app")]), config(&[("app", "1", "o/fork")]));
        assert!(revisions(&a, &b)[0].is_change());
        let mut empty = config(&[("app", "1", "")]);
        empty.revisions[0].source = Some(String::new());
        assert!(!revisions(&empty, &config(&[("app", "1", "")]))[0].is_change());
    }

    #[rstest]
    #[case("e79564fbef044b63d560296cdc8e84c130175016", "e79564f")]
    #[case("sha256:e79564fbef044b63d560296cdc8e84c130175016cdc8e84c130175016cdc8e84", "e79564f")]
    #[case("abc1234", "abc1234")]
    #[case("v1.2.3", "v1.2.3")]
    #[case("registry.example/payments:2026-03-01", "registry.example/paymen…")]
    #[case("ab\ncd", "ab cd")]
    #[case("žluťoučký kůň úpěl ďábelské ódy", "žluťoučký kůň úpěl ďábe…")]
    #[case("", "")]
    fn shortens_for_people(#[case] id: &str, #[case] expected: &str) {
        assert_eq!(short_id(id), expected);
    }
}
