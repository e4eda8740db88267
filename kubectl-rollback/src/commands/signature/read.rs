//! Releases out of a manifest. What the API server would refuse is refused here too, with the place in the file.

use rollback_api::{ReleaseConfig, Revision, RevisionMetadata};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::yaml;

/// The configs of all releases in a text, each with its place.
pub(super) fn configs(name: &str, text: &str) -> Result<Vec<(String, ReleaseConfig)>, Failure> {
    let documents = yaml::read(name, text)?;
    let several = documents.len() > 1;
    let mut found = Vec::new();
    for (index, document) in documents.iter().enumerate() {
        let place = if several { format!("{name}, document {}", index + 1) } else { name.to_owned() };
        each(&place, document, &mut found)?;
    }
    if found.is_empty() {
        return Err(Failure::error(format!(
            "{name} holds no Release (apiVersion {}/{}, kind Release)",
            rollback_api::GROUP,
            rollback_api::VERSION
        )));
    }
    Ok(found)
}

/// Takes a Release, or the Releases of a List; other objects of the file are none of our business.
fn each(place: &str, document: &Value, found: &mut Vec<(String, ReleaseConfig)>) -> Result<(), Failure> {
    let object = At::root(place, document).object()?;
    let kind = text_or_empty(object, "kind");
    if matches!(kind.as_str(), "List" | "ReleaseList") {
        let items = At::root(place, document).required("items")?;
        for (index, item) in items.array()?.iter().enumerate() {
            each(&format!("{place}, items[{index}]"), item, found)?;
        }
        return Ok(());
    }
    if kind.is_empty() {
        return Err(Failure::error(format!("{place}: kind is missing: expected kind Release")));
    }
    let group = text_or_empty(object, "apiVersion");
    let ours = group.split('/').next() == Some(rollback_api::GROUP);
    if kind != "Release" || !ours {
        // A Release without our group would be passed over in silence although it is surely meant.
        if kind == "Release" {
            return Err(Failure::error(format!(
                "{place}: apiVersion is {group:?}: expected {}/{}",
                rollback_api::GROUP,
                rollback_api::VERSION
            )));
        }
        return Ok(());
    }
    found.push((place.to_owned(), config(&At::root(place, document))?));
    Ok(())
}

fn text_or_empty(object: &Map<String, Value>, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn config(release: &At<'_>) -> Result<ReleaseConfig, Failure> {
    let config = release.required("config")?;
    config.only(&["targetName", "revisions"])?;
    let list = config.required("revisions")?;
    let revisions =
        list.array()?.iter().enumerate().map(|(index, value)| revision(&list.index(index, value)));
    Ok(ReleaseConfig {
        target_name: config.required("targetName")?.text()?,
        revisions: revisions.collect::<Result<_, _>>()?,
    })
}

fn revision(revision: &At<'_>) -> Result<Revision, Failure> {
    revision.only(&["name", "id", "source", "type", "metadata"])?;
    let metadata = revision.optional("metadata")?;
    Ok(Revision {
        name: revision.required("name")?.text()?,
        id: revision.required("id")?.text()?,
        source: revision.optional_text("source")?,
        type_: revision.optional_text("type")?,
        metadata: metadata.map(|metadata| details(&metadata)).transpose()?,
    })
}

fn details(metadata: &At<'_>) -> Result<RevisionMetadata, Failure> {
    metadata.only(&["author", "branch", "message"])?;
    Ok(RevisionMetadata {
        author: metadata.optional_text("author")?,
        branch: metadata.optional_text("branch")?,
        message: metadata.optional_text("message")?,
    })
}

/// A value with its place, for errors that can be found in the file.
struct At<'a> {
    place: &'a str,
    path: String,
    value: &'a Value,
}

impl<'a> At<'a> {
    fn root(place: &'a str, value: &'a Value) -> Self {
        Self { place, path: String::new(), value }
    }

    fn child(&self, path: String, value: &'a Value) -> Self {
        Self { place: self.place, path, value }
    }

    fn index(&self, index: usize, value: &'a Value) -> Self {
        self.child(format!("{}[{index}]", self.path), value)
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn wrong(&self, expected: &str) -> Failure {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        let hint = match self.value {
            Value::Number(_) | Value::Bool(_) if expected == "text" => ": put it in quotes",
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => "",
        };
        Failure::error(format!(
            "{}: {path} is {}, expected {expected}{hint}",
            self.place,
            kind_of(self.value)
        ))
    }

    fn object(&self) -> Result<&'a Map<String, Value>, Failure> {
        self.value.as_object().ok_or_else(|| self.wrong("a map"))
    }

    fn array(&self) -> Result<&'a Vec<Value>, Failure> {
        self.value.as_array().ok_or_else(|| self.wrong("a list"))
    }

    fn text(&self) -> Result<String, Failure> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong("text"))
    }

    fn required(&self, key: &str) -> Result<Self, Failure> {
        match self.object()?.get(key) {
            Some(value) => Ok(self.child(self.key(key), value)),
            None => Err(Failure::error(format!("{}: {} is missing", self.place, self.key(key)))),
        }
    }

    /// Absent and null are the same, as for the API server.
    fn optional(&self, key: &str) -> Result<Option<Self>, Failure> {
        let value = self.object()?.get(key).filter(|value| !value.is_null());
        Ok(value.map(|value| self.child(self.key(key), value)))
    }

    fn optional_text(&self, key: &str) -> Result<Option<String>, Failure> {
        self.optional(key)?.map(|found| found.text()).transpose()
    }

    /// A field that nobody knows is a slip, and what it was to say would be missing from the signature.
    fn only(&self, known: &[&str]) -> Result<(), Failure> {
        let Some(unknown) = self.object()?.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let near = rollback_core::suggest::nearest(unknown, known.iter().copied());
        let hint = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
        Err(Failure::error(format!("{}: {} is not a field{hint}", self.place, self.key(unknown))))
    }
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the truth value {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}
