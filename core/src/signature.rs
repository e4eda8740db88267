//! Signature and name of a release: bit-equal to theatre's (reference F) for up to six revisions.
//!
//! Theatre hashes every revision twice, in full and stripped to name and id. From seven
//! revisions on its sort is unstable, so there its result depends on the input order;
//! ours sorts stably and never does.

use rollback_api::{ReleaseConfig, Revision};
use sha2::{Digest, Sha256};

/// Hex digits of the signature.
const SIGNATURE_LEN: usize = 10;
/// Hex digits at the end of a release's name: a prefix of its signature.
const SUFFIX_LEN: usize = 7;
/// Longest target, in bytes: a release's name is the target, a hyphen and seven digits, at most 253 bytes.
pub const MAX_TARGET: usize = 245;

/// A config that cannot be named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The target is not a DNS-1123 subdomain, or too long.
    #[error(
        "config.targetName {0:?} is not a DNS name of at most 245 characters: use lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
    )]
    Target(String),
    /// There is nothing to name.
    #[error("config.revisions is empty: a release has at least one revision")]
    NoRevisions,
    /// A revision has no name.
    #[error("config.revisions[{0}].name is empty: name what the revision is of, such as \"application\"")]
    EmptyName(usize),
    /// A revision has no id.
    #[error("config.revisions[{0}].id is empty: give the commit, tag or version that was deployed")]
    EmptyId(String),
    /// Two revisions share a name.
    #[error("config.revisions has two entries named {0:?}: revision names are unique in a release")]
    Duplicate(String),
}

/// Lower-case hex of the SHA-256 of some bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// First 10 hex digits of the SHA-256 of the canonical config.
pub fn signature(config: &ReleaseConfig) -> String {
    sha256_hex(canonical(config).as_bytes())[..SIGNATURE_LEN].to_owned()
}

/// `<target>-<first 7 digits of the signature>`, for a config that can be recorded.
pub fn release_name(config: &ReleaseConfig) -> Result<String, ConfigError> {
    validate(config)?;
    Ok(format!("{}-{}", config.target_name, &signature(config)[..SUFFIX_LEN]))
}

/// Checks what a name and a signature rest on: a DNS target, unique names, ids that are not empty.
pub fn validate(config: &ReleaseConfig) -> Result<(), ConfigError> {
    if !is_target(&config.target_name) {
        return Err(ConfigError::Target(config.target_name.clone()));
    }
    if config.revisions.is_empty() {
        return Err(ConfigError::NoRevisions);
    }
    for (index, revision) in config.revisions.iter().enumerate() {
        if revision.name.is_empty() {
            return Err(ConfigError::EmptyName(index));
        }
        if revision.id.is_empty() {
            return Err(ConfigError::EmptyId(revision.name.clone()));
        }
        if config.revisions[..index].iter().any(|earlier| earlier.name == revision.name) {
            return Err(ConfigError::Duplicate(revision.name.clone()));
        }
    }
    Ok(())
}

/// Whether a text is a DNS-1123 subdomain that a release of it can be named after.
pub fn is_target(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    !text.is_empty() && text.len() <= MAX_TARGET && text.split('.').all(is_label)
}

/// The text that is hashed: compact JSON as Go's encoding/json writes it.
pub fn canonical(config: &ReleaseConfig) -> String {
    let mut entries: Vec<(&Revision, bool)> =
        config.revisions.iter().map(|revision| (revision, true)).collect();
    entries.extend(config.revisions.iter().map(|revision| (revision, false)));
    entries.sort_by(|(a, _), (b, _)| a.name.as_bytes().cmp(b.name.as_bytes()));

    let mut json = format!("{{\"targetName\":{},\"revisions\":", go_string(&config.target_name));
    if entries.is_empty() {
        json.push_str("null");
    } else {
        let revisions: Vec<String> =
            entries.iter().map(|(revision, full)| go_revision(revision, *full)).collect();
        json.push('[');
        json.push_str(&revisions.join(","));
        json.push(']');
    }
    json.push('}');
    json
}

fn go_revision(revision: &Revision, full: bool) -> String {
    let detail = |text: &Option<String>| if full { text.clone().unwrap_or_default() } else { String::new() };
    let metadata = revision.metadata.as_ref().filter(|_| full);
    let fields: Vec<String> = [
        ("author", metadata.and_then(|metadata| metadata.author.as_deref())),
        ("branch", metadata.and_then(|metadata| metadata.branch.as_deref())),
        ("message", metadata.and_then(|metadata| metadata.message.as_deref())),
    ]
    .into_iter()
    .filter_map(|(key, value)| {
        value.filter(|text| !text.is_empty()).map(|text| format!("\"{key}\":{}", go_string(text)))
    })
    .collect();
    format!(
        "{{\"name\":{},\"id\":{},\"source\":{},\"type\":{},\"metadata\":{{{}}}}}",
        go_string(&revision.name),
        go_string(&revision.id),
        go_string(&detail(&revision.source)),
        go_string(&detail(&revision.type_)),
        fields.join(","),
    )
}

/// A JSON string escaped as Go does by default: also `<`, `>`, `&` and the two Unicode line separators.
fn go_string(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let mut escaped = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rollback_api::RevisionMetadata;

    use super::*;

    fn revision(name: &str, id: &str) -> Revision {
        Revision { name: name.into(), id: id.into(), ..Revision::default() }
    }

    fn example() -> ReleaseConfig {
        ReleaseConfig {
            target_name: "payments-service".into(),
            revisions: vec![
                Revision {
                    source: Some("gocardless/anu".into()),
                    type_: Some("github".into()),
                    ..revision("infrastructure", "9f8e7d6")
                },
                Revision {
                    source: Some("gocardless/payments-service".into()),
                    type_: Some("github".into()),
                    metadata: Some(RevisionMetadata {
                        author: Some("Alice <alice@example.com>".into()),
                        branch: Some("main".into()),
                        message: Some("Fix R&D rounding".into()),
                    }),
                    ..revision("application", "e79564fbef044b63d560296cdc8e84c130175016")
                },
            ],
        }
    }

    #[test]
    fn equals_the_reference_on_bare_revisions() {
        let config = ReleaseConfig {
            target_name: "test-target".into(),
            revisions: vec![revision("application", "abc123")],
        };
        assert_eq!(canonical(&config).len(), 188);
        assert_eq!(
            sha256_hex(canonical(&config).as_bytes()),
            "3978d5098256e8a6a7d9feec18211d71e972b09c22b8590243416c354a9aceeb"
        );
        assert_eq!(release_name(&config).unwrap(), "test-target-3978d50");
        assert_eq!(signature(&config), "3978d50982");
    }

    #[test]
    fn equals_the_reference_with_details_in_either_order() {
        let mut config = example();
        assert_eq!(canonical(&config).len(), 564);
        assert_eq!(
            sha256_hex(canonical(&config).as_bytes()),
            "c329c3bcd6edf999aeee79054b161f6de7309cf58dffef365a7a77fc9a55a573"
        );
        config.revisions.reverse();
        assert_eq!(release_name(&config).unwrap(), "payments-service-c329c3b");
    }

    #[test]
    fn details_count() {
        let mut config = example();
        for revision in &mut config.revisions {
            (revision.source, revision.type_, revision.metadata) = (None, None, None);
        }
        assert_eq!(signature(&config), "2e003b336d");
    }

    #[test]
    fn absent_and_empty_are_the_same() {
        let bare = ReleaseConfig { target_name: "t".into(), revisions: vec![revision("a", "1")] };
        let mut written = bare.clone();
        written.revisions[0].source = Some(String::new());
        written.revisions[0].type_ = Some(String::new());
        written.revisions[0].metadata = Some(RevisionMetadata::default());
        assert_eq!(canonical(&bare), canonical(&written));
    }

    #[test]
    fn escapes_as_go_does() {
        assert_eq!(go_string("a\u{8}\u{c}\n\r\t\"\\"), r#""a\b\f\n\r\t\"\\""#);
        assert_eq!(go_string("\u{1}\u{1f}\u{7f}é"), "\"\\u0001\\u001f\u{7f}é\"");
        assert_eq!(go_string("<&>\u{2028}\u{2029}"), r#""\u003c\u0026\u003e\u2028\u2029""#);
    }

    #[test]
    fn refuses_what_cannot_be_named() {
        let with = |target: &str, revisions: Vec<Revision>| {
            release_name(&ReleaseConfig { target_name: target.into(), revisions }).unwrap_err()
        };
        for bad in ["", "-a", "a-", "a..b", "A", "a_b", "ž", ".a", &"a".repeat(246)] {
            assert_eq!(with(bad, vec![revision("a", "1")]), ConfigError::Target(bad.to_owned()));
        }
        assert_eq!(with("t", vec![]), ConfigError::NoRevisions);
        assert_eq!(with("t", vec![revision("", "1")]), ConfigError::EmptyName(0));
        assert_eq!(with("t", vec![revision("a", "")]), ConfigError::EmptyId("a".into()));
        assert_eq!(
            with("t", vec![revision("a", "1"), revision("a", "2")]),
            ConfigError::Duplicate("a".into())
        );
    }

    proptest! {
        #[test]
        fn never_depends_on_the_order(ids in proptest::collection::vec("[a-z<&]{1,5}", 1..10), rotation in 0usize..10) {
            let mut config = ReleaseConfig {
                target_name: "t".into(),
                revisions: ids.iter().enumerate().map(|(n, id)| Revision {
                    source: (n % 2 == 0).then(|| "s".to_owned()),
                    ..revision(&format!("r{n}"), id)
                }).collect(),
            };
            let before = canonical(&config);
            let by = rotation % config.revisions.len();
            config.revisions.rotate_left(by);
            prop_assert_eq!(canonical(&config), before);
        }
    }
}
