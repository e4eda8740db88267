//! Rollbacks.

use rollback_api::Rollback;
use rollback_core::admission::{
    self, Allowed, TargetState, rollback_create, rollback_update, rollback_validate,
};

use super::{Admission, Refusal, namespace, read, same_but_metadata, sent};
use crate::patch;
use crate::reader::Reader;
use crate::review::{Answer, Operation, Request};

/// Fills in a new Rollback, or restores what an update must not touch.
pub(super) async fn mutate<R: Reader>(
    admission: &Admission<R>,
    request: &Request,
) -> Result<Answer, Refusal> {
    match request.operation {
        Operation::Create => {
            let Some(rollback) = sent::<Rollback>(&request.object) else { return Ok(Answer::unchanged()) };
            let state = state(admission, request, &rollback).await?;
            let Allowed { object, warnings } =
                rollback_create::fill(&asked(admission, request), &rollback, &state)?;
            Ok(Answer::Allowed { patch: patch::between(&rollback, &object)?, warnings })
        }
        Operation::Update => {
            let (Some(old), Some(new)) =
                (sent::<Rollback>(&request.old_object), sent::<Rollback>(&request.object))
            else {
                return Ok(Answer::unchanged());
            };
            let restored = rollback_update::restore(&request.user_info.username, &old, &new);
            Ok(Answer::Allowed { patch: patch::between(&new, &restored)?, warnings: Vec::new() })
        }
        Operation::Delete | Operation::Connect => Ok(Answer::unchanged()),
    }
}

/// Checks a new or changed Rollback.
pub(super) async fn validate<R: Reader>(
    admission: &Admission<R>,
    request: &Request,
) -> Result<Answer, Refusal> {
    let Allowed { object: (), warnings } = match request.operation {
        Operation::Create => {
            let rollback = read::<Rollback>("Rollback", &request.object)?;
            let state = state(admission, request, &rollback).await?;
            rollback_validate::validate(&asked(admission, request), &rollback, &state)?
        }
        Operation::Update => {
            let new = read::<Rollback>("Rollback", &request.object)?;
            match sent::<Rollback>(&request.old_object) {
                Some(old) => rollback_update::validate(&request.user_info.username, &old, &new)?,
                // Stored under an older schema: it may still be labelled and released from its finalizers.
                None if same_but_metadata(&request.old_object, &request.object) => Allowed::silently(()),
                None => {
                    return read::<Rollback>("stored Rollback", &request.old_object)
                        .map(|_| Answer::unchanged());
                }
            }
        }
        Operation::Delete | Operation::Connect => Allowed::silently(()),
    };
    Ok(Answer::Allowed { patch: Vec::new(), warnings })
}

fn asked<'a, R>(admission: &'a Admission<R>, request: &'a Request) -> admission::Request<'a> {
    admission::Request {
        user: &request.user_info.username,
        now: (admission.settings.now)(),
        backends: &admission.settings.backends,
    }
}

/// Reads the target live. A name that is none is refused before anything is asked of the API server.
async fn state<R: Reader>(
    admission: &Admission<R>,
    request: &Request,
    rollback: &Rollback,
) -> Result<TargetState, Refusal> {
    let target = rollback_create::target(rollback)?;
    let named = rollback_create::named_release(rollback);
    let state = admission.reader.target(namespace(request), target, named).await;
    state.map_err(|error| Refusal::Unknown(format!("this rollback of {target}"), error))
}
