//! The JSON patch that turns the object that was sent into the one that is to be stored.

use serde::Serialize;

/// The operations as JSON; empty when both say the same. Both sides are written by the same types, so that fields
/// which neither touches never show up, however the client wrote them.
pub(crate) fn between<T: Serialize>(sent: &T, wanted: &T) -> Result<Vec<u8>, serde_json::Error> {
    let patch = json_patch::diff(&serde_json::to_value(sent)?, &serde_json::to_value(wanted)?);
    if patch.0.is_empty() { Ok(Vec::new()) } else { serde_json::to_vec(&patch) }
}
