//! Releases. Nothing has to be looked up for them.

use rollback_api::Release;
use rollback_core::admission::{Allowed, release};

use super::{Refusal, Settings, read, same_but_metadata, sent};
use crate::patch;
use crate::review::{Answer, Operation, Request};

/// Names a new Release, if names are given here at all.
pub(super) fn mutate(settings: &Settings, request: &Request) -> Result<Answer, Refusal> {
    if !settings.naming || request.operation != Operation::Create {
        return Ok(Answer::unchanged());
    }
    let Some(sent) = sent::<Release>(&request.object) else { return Ok(Answer::unchanged()) };
    let Allowed { object, warnings } = release::fill_name(&sent)?;
    Ok(Answer::Allowed { patch: patch::between(&sent, &object)?, warnings })
}

/// Checks a new or changed Release.
pub(super) fn validate(settings: &Settings, request: &Request) -> Result<Answer, Refusal> {
    let Allowed { object: (), warnings } = match request.operation {
        Operation::Create => {
            release::validate_create(&read::<Release>("Release", &request.object)?, settings.naming)?
        }
        // Stored before this check existed, or changed in metadata only: never in the way of a label or an annotation.
        Operation::Update => {
            match (sent::<Release>(&request.old_object), read::<Release>("Release", &request.object)) {
                (Some(old), Ok(new)) => release::validate_update(&old, &new)?,
                (None, _) | (_, Err(_)) if same_but_metadata(&request.old_object, &request.object) => {
                    Allowed::silently(())
                }
                (_, Err(refusal)) => return Err(refusal),
                (None, Ok(_)) => {
                    return read::<Release>("stored Release", &request.old_object)
                        .map(|_| Answer::unchanged());
                }
            }
        }
        Operation::Delete | Operation::Connect => Allowed::silently(()),
    };
    Ok(Answer::Allowed { patch: Vec::new(), warnings })
}
