//! `-o`: objects for programs. Stable: a list is a `List`, times are RFC 3339 in UTC.

use rollback_core::jsonpath::Template;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::printer::Printer;
use crate::yaml;

/// How to print what was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Table,
    /// For people with wide terminals.
    Wide,
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
    /// `resource.group/name`.
    Name,
    /// A kubectl JSONPath template.
    JsonPath(Template),
}

impl Output {
    /// Parses the value of `-o`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None => match text {
                "wide" => Ok(Self::Wide),
                "json" => Ok(Self::Json),
                "yaml" => Ok(Self::Yaml),
                "name" => Ok(Self::Name),
                "jsonpath" => Err("give the template: -o jsonpath='{.metadata.name}'".to_owned()),
                _ => Err("one of wide, json, yaml, name, jsonpath=TEMPLATE".to_owned()),
            },
            Some(("jsonpath", "")) => Err("give the template: -o jsonpath='{.metadata.name}'".to_owned()),
            Some(("jsonpath", template)) => {
                Template::parse_relaxed(template).map(Self::JsonPath).map_err(|error| error.to_string())
            }
            Some((other, _)) => {
                Err(format!("{other} is not supported: use jsonpath=TEMPLATE, or json and jq"))
            }
        }
    }

    /// Whether a person reads it.
    pub(crate) fn is_for_people(&self) -> bool {
        match self {
            Self::Table | Self::Wide => true,
            Self::Json | Self::Yaml | Self::Name | Self::JsonPath(_) => false,
        }
    }

    /// Prints one object. Nothing for a person: the commands have their own words.
    pub(crate) fn object(&self, printer: &mut Printer, object: &impl Serialize) -> Result<(), Failure> {
        self.value(printer, &plain(object)?)
    }

    /// Prints a list.
    pub(crate) fn list<'a, T: Serialize + 'a>(
        &self,
        printer: &mut Printer,
        objects: impl IntoIterator<Item = &'a T>,
    ) -> Result<(), Failure> {
        let items = objects.into_iter().map(plain).collect::<Result<Vec<_>, _>>()?;
        if *self == Self::Name {
            return items.iter().try_for_each(|item| printer.data(&name(item)));
        }
        self.value(printer, &json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items }))
    }

    fn value(&self, printer: &mut Printer, value: &Value) -> Result<(), Failure> {
        match self {
            Self::Table | Self::Wide => Ok(()),
            Self::Json => match serde_json::to_string_pretty(value) {
                Ok(text) => printer.data(&text),
                Err(error) => Err(Failure::error(format!("the object cannot be written as JSON: {error}"))),
            },
            Self::Yaml => printer.data(&yaml::write(value)?),
            Self::Name => printer.data(&name(value)),
            Self::JsonPath(template) => {
                let text = template
                    .render(value)
                    .map_err(|error| Failure::error(format!("the template of -o jsonpath fails: {error}")))?;
                // As kubectl: exactly what the template says, without a line end of our own.
                printer.raw(text.as_bytes())
            }
        }
    }
}

/// The object without what only the API server reads.
fn plain(object: &impl Serialize) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(object)
        .map_err(|error| Failure::error(format!("the object cannot be written as JSON: {error}")))?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(value)
}

/// `rollback.deploy.crd.gocardless.com/payments-x7k2p`.
fn name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["apiVersion"].as_str().and_then(|version| version.split_once('/')) {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use rollback_api::Release;
    use rstest::rstest;

    use super::*;
    use crate::printer::tests::captured;

    fn release() -> Release {
        serde_json::from_value(json!({
            "metadata": {"name": "payments-3978d50", "creationTimestamp": "2026-03-01T13:02:00Z", "managedFields": [{"manager": "x"}]},
            "config": {"targetName": "payments", "revisions": [{"name": "application", "id": "no"}]},
        }))
        .unwrap()
    }

    fn printed(output: &str, list: bool) -> String {
        let (mut printer, out, _) = captured();
        let output = Output::parse(output).unwrap();
        if list {
            output.list(&mut printer, [&release(), &release()]).unwrap();
        } else {
            output.object(&mut printer, &release()).unwrap();
        }
        out.text()
    }

    #[test]
    fn one_object() {
        assert_eq!(printed("name", false), "release.deploy.crd.gocardless.com/payments-3978d50\n");
        assert_eq!(printed("jsonpath=.metadata.name", false), "payments-3978d50");
        assert_eq!(printed("jsonpath={.metadata.managedFields}", false), "");
        assert_eq!(
            printed("jsonpath={.metadata.creationTimestamp}{\"\\n\"}", false),
            "2026-03-01T13:02:00Z\n"
        );
        assert!(printed("yaml", false).contains("id: \"no\"\n"), "{}", printed("yaml", false));
        assert!(
            printed("json", false)
                .starts_with("{\n  \"apiVersion\": \"deploy.crd.gocardless.com/v1alpha1\",\n")
        );
    }

    #[test]
    fn a_list_is_a_list() {
        assert_eq!(printed("name", true).lines().count(), 2);
        assert_eq!(
            printed("jsonpath={.kind} {.items[*].metadata.name}", true),
            "List payments-3978d50 payments-3978d50"
        );
        let value: Value = serde_json::from_str(&printed("json", true)).unwrap();
        assert_eq!((&value["apiVersion"], &value["kind"]), (&json!("v1"), &json!("List")));
        assert_eq!(value["items"][0]["kind"], "Release");
    }

    #[rstest]
    #[case("xml", "one of wide, json, yaml, name, jsonpath=TEMPLATE")]
    #[case("", "one of wide, json, yaml, name, jsonpath=TEMPLATE")]
    #[case("JSON", "one of wide, json, yaml, name, jsonpath=TEMPLATE")]
    #[case("jsonpath", "give the template: -o jsonpath='{.metadata.name}'")]
    #[case("jsonpath=", "give the template: -o jsonpath='{.metadata.name}'")]
    #[case("jsonpath={.a", "unclosed action: a '{' has no '}'")]
    #[case("go-template={{.a}}", "go-template is not supported: use jsonpath=TEMPLATE, or json and jq")]
    #[case("custom-columns=A:.a", "custom-columns is not supported: use jsonpath=TEMPLATE, or json and jq")]
    fn says_what_is_possible(#[case] text: &str, #[case] error: &str) {
        assert_eq!(Output::parse(text), Err(error.to_owned()));
    }
}
