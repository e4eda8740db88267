//! YAML as kubectl writes and reads it: the one place that calls the YAML library.

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// All documents of a text that are not empty. `name` is what people call the text.
pub(crate) fn read(name: &str, text: &str) -> Result<Vec<Value>, Failure> {
    let options = serde_saphyr::options! {
        // As YAML 1.1 and so kubectl has it: 0644 is 420.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options::<Value>(text, options).map_err(|error| {
        Failure::error(format!("{name} cannot be read as YAML: {}", in_plain_words(&error.to_string())))
    })
}

/// The library's message without its own names for things.
pub(crate) fn in_plain_words(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    if first.contains("budget breached") {
        return "it is too large, or its aliases are".to_owned();
    }
    first.replace(", set DuplicateKeyPolicy in Options if acceptable", "")
}

/// A value as YAML.
pub(crate) fn write(value: &impl Serialize) -> Result<String, Failure> {
    serde_saphyr::to_string(value)
        .map_err(|error| Failure::error(format!("the object cannot be written as YAML: {error}")))
}
