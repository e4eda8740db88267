//! Deployment options: kubectl JSONPath templates over the target release (reference D.1, H-44).

use std::collections::BTreeMap;

use rollback_api::Release;
use rollback_api::rollback::DeploymentOptions;
use serde_json::Value;

use crate::jsonpath::Template;

/// An option that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.deploymentOptions.{option}: {why}")]
pub struct OptionError {
    /// Name of the option.
    pub option: String,
    /// What is wrong and what would be right.
    pub why: String,
}

/// Resolves every string option as a kubectl JSONPath template over the release. Strings stay strings (`1.10`
/// does not become 1.1); other JSON stays as it is; a path that finds nothing is an error, never an empty string.
pub fn resolve(options: &DeploymentOptions, release: &Release) -> Result<DeploymentOptions, OptionError> {
    let mut data = None;
    let resolved = options.0.iter().map(|(name, value)| {
        let error = |why: String| OptionError { option: name.clone(), why };
        let Value::String(text) = value else { return Ok((name.clone(), value.clone())) };
        if !text.contains('{') {
            return Ok((name.clone(), value.clone()));
        }
        let template = Template::parse(text)
            .map_err(|parse| error(format!("{text:?} is not a JSONPath template: {parse}")))?;
        let data = match &data {
            Some(data) => data,
            None => data.insert(serde_json::to_value(release).map_err(|json| error(json.to_string()))?),
        };
        let value = template.resolve(data).map_err(|eval| {
            let release = release.metadata.name.as_deref().unwrap_or_default();
            error(format!(
                "{eval} in Release {release}; see `kubectl get release {release} -o yaml` for what is there"
            ))
        })?;
        Ok((name.clone(), value))
    });
    resolved.collect::<Result<BTreeMap<_, _>, _>>().map(DeploymentOptions)
}

#[cfg(test)]
mod tests {
    use rollback_api::{ReleaseConfig, ReleaseFields, Revision};
    use serde_json::json;

    use super::*;

    fn release() -> Release {
        let revision =
            |name: &str, id: &str| Revision { name: name.into(), id: id.into(), ..Revision::default() };
        Release::new(
            "payments-1",
            ReleaseFields {
                config: ReleaseConfig {
                    target_name: "payments".into(),
                    revisions: vec![
                        revision("application", "1.10"),
                        revision("chart", "0012345678901234567890"),
                    ],
                },
            },
        )
    }

    fn one(value: Value) -> Result<Value, OptionError> {
        let options = DeploymentOptions(BTreeMap::from([("o".to_owned(), value)]));
        resolve(&options, &release()).map(|resolved| resolved.0["o"].clone())
    }

    /// H-44: nothing that looks like a number or a boolean becomes one.
    #[test]
    fn strings_stay_strings() {
        for text in ["true", "300", "1.10", "null", "{\"a\":1", "[1]"].map(|text| json!(text)) {
            if text.as_str().is_some_and(|text| !text.contains('{')) {
                assert_eq!(one(text.clone()), Ok(text));
            }
        }
        assert_eq!(one(json!(r#"{.config.revisions[?(@.name=="application")].id}"#)), Ok(json!("1.10")));
        assert_eq!(one(json!("{.config.revisions[1].id}")), Ok(json!("0012345678901234567890")));
    }

    #[test]
    fn other_json_stays_as_it_is() {
        for value in [json!(1.5), json!(true), json!(null), json!({"a": "{.config}"}), json!(["x"])] {
            assert_eq!(one(value.clone()), Ok(value));
        }
        assert_eq!(one(json!("{.config.revisions[0]}")), Ok(json!({"name": "application", "id": "1.10"})));
    }

    #[test]
    fn what_is_not_found_is_an_error_that_names_it() {
        let error = one(json!("{.config.revisions[?(@.name==\"infra\")].id}")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "spec.deploymentOptions.o: {.config.revisions[?(@.name==\"infra\")].id} finds nothing in Release payments-1; \
             see `kubectl get release payments-1 -o yaml` for what is there"
        );
        let error = one(json!("{.config")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "spec.deploymentOptions.o: \"{.config\" is not a JSONPath template: unclosed action: a '{' has no '}'"
        );
    }
}
