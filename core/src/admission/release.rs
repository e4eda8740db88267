//! Releases: a config that can be named and never changes (DESIGN 3, rules 8, 10 and 22).

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Activation, Release, annotations};

use super::verdict::{Allowed, Denial, Verdict};
use crate::signature::{canonical, release_name, signature, validate};

/// Fills in the name of a new Release when it has none (rule 10). A name that is there stays, whatever it is:
/// renaming a named object under server-side apply makes it undeletable.
pub fn fill_name(release: &Release) -> Verdict<Release> {
    let mut named = release.clone();
    if name(release).is_empty() {
        let name = release_name(&release.spec.config).map_err(|error| Denial::invalid(error.to_string()))?;
        named.metadata.name = Some(name);
    }
    Ok(Allowed::silently(named))
}

/// Checks a new Release. With `naming` its name must be the one that follows from its config.
pub fn validate_create(release: &Release, naming: bool) -> Verdict<()> {
    let config = &release.spec.config;
    validate(config).map_err(|error| Denial::invalid(error.to_string()))?;
    expected_signature(release)?;
    if naming {
        let right = release_name(config).map_err(|error| Denial::invalid(error.to_string()))?;
        if name(release) != right {
            return Err(Denial::forbidden(format!(
                "Release {:?} must be named {right:?}, after its target and its signature: set metadata.name to that, or \
                 leave it out",
                name(release)
            )));
        }
    }
    Ok(Allowed { object: (), warnings: unreadable(release) })
}

/// Checks a changed Release.
pub fn validate_update(old: &Release, new: &Release) -> Verdict<()> {
    if canonical(&old.spec.config) != canonical(&new.spec.config) {
        return Err(Denial::invalid(format!(
            "config of Release {} is immutable (revisions with their source, type and metadata too): it records what \
             was deployed. Record another combination as a new Release",
            name(new)
        )));
    }
    if annotation(old, annotations::SIGNATURE) != annotation(new, annotations::SIGNATURE) {
        expected_signature(new)?;
    }
    let before = unreadable(old);
    let warnings = unreadable(new).into_iter().filter(|warning| !before.contains(warning)).collect();
    Ok(Allowed { object: (), warnings })
}

fn expected_signature(release: &Release) -> Result<(), Denial> {
    let actual = signature(&release.spec.config);
    match annotation(release, annotations::SIGNATURE) {
        Some(expected) if expected != actual => Err(Denial::invalid(format!(
            "annotation {} of Release {} expects {expected:?}, but the signature of its config is {actual:?}: the config \
             is not the one that was signed. Compare: kubectl rollback signature -f FILE",
            annotations::SIGNATURE,
            name(release)
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Annotations that the release controller will not be able to read.
fn unreadable(release: &Release) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in [annotations::DEPLOYMENT_START_TIME, annotations::DEPLOYMENT_END_TIME] {
        if let Some(text) = annotation(release, key).filter(|text| text.parse::<Timestamp>().is_err()) {
            warnings.push(format!("annotation {key}: {text:?} is not an RFC 3339 time and is ignored"));
        }
    }
    if let Some(Err(error)) =
        annotation(release, annotations::ACTIVATION).map(serde_json::from_str::<Activation>)
    {
        warnings
            .push(format!("annotation {} is not readable and is ignored: {error}", annotations::ACTIVATION));
    }
    warnings
}

fn name(release: &Release) -> &str {
    release.metadata.name.as_deref().unwrap_or_default()
}

fn annotation<'a>(release: &'a Release, key: &str) -> Option<&'a str> {
    release.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn release(metadata: &Value, config: &Value) -> Release {
        serde_json::from_value(json!({"metadata": metadata, "config": config})).unwrap()
    }

    fn config() -> Value {
        json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc123"}]})
    }

    #[test]
    fn fills_an_empty_name_only() {
        let filled =
            |metadata: Value| fill_name(&release(&metadata, &config())).unwrap().object.metadata.name;
        assert_eq!(filled(json!({})).as_deref(), Some("test-target-3978d50"));
        assert_eq!(filled(json!({"generateName": "test-"})).as_deref(), Some("test-target-3978d50"));
        assert_eq!(filled(json!({"name": "mine"})).as_deref(), Some("mine"));
    }

    #[test]
    fn with_naming_a_wrong_name_is_refused_with_the_right_one() {
        let named = |name: &str| release(&json!({"name": name}), &config());
        validate_create(&named("test-target-3978d50"), true).unwrap();
        validate_create(&named("mine"), false).unwrap();
        let denial = validate_create(&named("mine"), true).unwrap_err();
        assert_eq!(
            (denial.code.status(), denial.message.as_str()),
            (
                403,
                "Release \"mine\" must be named \"test-target-3978d50\", after its target and its signature: set metadata.name to that, or leave it out"
            )
        );
    }

    #[rstest]
    #[case(json!({"targetName": "A", "revisions": [{"name": "a", "id": "1"}]}), "config.targetName \"A\" is not a DNS name")]
    #[case(json!({"targetName": "", "revisions": [{"name": "a", "id": "1"}]}), "config.targetName \"\" is not a DNS name")]
    #[case(json!({"targetName": "t", "revisions": []}), "config.revisions is empty")]
    #[case(json!({"targetName": "t", "revisions": [{"name": "", "id": "1"}]}), "config.revisions[0].name is empty")]
    #[case(json!({"targetName": "t", "revisions": [{"name": "a", "id": ""}]}), "config.revisions[a].id is empty")]
    #[case(json!({"targetName": "t", "revisions": [{"name": "a", "id": "1"}, {"name": "a", "id": "2"}]}), "config.revisions has two entries named \"a\"")]
    fn refuses_what_cannot_be_named(#[case] config: Value, #[case] says: &str) {
        // H-31: without the naming webhook too, and with 422.
        for denial in [
            validate_create(&release(&json!({"name": "x"}), &config), false).unwrap_err(),
            fill_name(&release(&json!({}), &config)).unwrap_err(),
        ] {
            assert_eq!(denial.code.status(), 422);
            assert!(denial.message.starts_with(says), "{denial}");
        }
    }

    #[test]
    fn a_signature_that_is_given_must_match() {
        let signed = |signature: &str| {
            release(
                &json!({"name": "x", "annotations": {"theatre.gocardless.com/signature": signature}}),
                &config(),
            )
        };
        validate_create(&signed("3978d50982"), false).unwrap();
        validate_create(&signed(""), false).unwrap();
        let denial = validate_create(&signed("0000000000"), false).unwrap_err();
        assert_eq!(denial.code.status(), 422);
        assert!(
            denial
                .message
                .contains("expects \"0000000000\", but the signature of its config is \"3978d50982\""),
            "{denial}"
        );
        validate_update(&signed("3978d50982"), &signed("0000000000")).unwrap_err();
        // One that was wrong before admission looked at it is in nobody's way.
        validate_update(&signed("0000000000"), &signed("0000000000")).unwrap();
    }

    #[rstest]
    #[case(json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc123", "source": "", "type": "", "metadata": {}}]}))]
    #[case(json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc123", "metadata": {"author": ""}}]}))]
    fn the_same_config_in_another_form_is_no_change(#[case] other: Value) {
        let old = release(&json!({"name": "x"}), &config());
        validate_update(&old, &release(&json!({"name": "x", "labels": {"a": "b"}}), &other)).unwrap();
    }

    #[rstest]
    #[case(json!({"targetName": "other", "revisions": [{"name": "application", "id": "abc123"}]}))]
    #[case(json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc124"}]}))]
    #[case(json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc123", "source": "s"}]}))]
    #[case(json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc123", "metadata": {"message": "m"}}]}))]
    #[case(json!({"targetName": "test-target", "revisions": [{"name": "application", "id": "abc123"}, {"name": "b", "id": "1"}]}))]
    fn the_config_never_changes(#[case] other: Value) {
        let old = release(&json!({"name": "x"}), &config());
        let denial = validate_update(&old, &release(&json!({"name": "x"}), &other)).unwrap_err();
        assert_eq!(denial.code.status(), 422);
        assert!(denial.message.starts_with("config of Release x is immutable"), "{denial}");
    }

    #[test]
    fn warns_about_annotations_that_will_be_ignored() {
        let annotated = |annotations: Value| {
            let release = release(&json!({"name": "x", "annotations": annotations}), &config());
            validate_create(&release, false).unwrap().warnings
        };
        assert_eq!(
            annotated(json!({"theatre.gocardless.com/deployment-end-time": "2026-03-01T12:00:00Z"})).len(),
            0
        );
        assert_eq!(
            annotated(json!({"theatre.gocardless.com/deployment-end-time": "yesterday"})),
            [
                "annotation theatre.gocardless.com/deployment-end-time: \"yesterday\" is not an RFC 3339 time and is ignored"
            ]
        );
        assert_eq!(annotated(json!({"theatre.gocardless.com/activation": "{}"})).len(), 1);
    }
}
