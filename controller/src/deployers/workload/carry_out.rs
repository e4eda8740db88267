//! The writes: each object until it needs nothing more. What is done is read off the objects themselves, so a crash, a
//! time-out or another process in between changes nothing.

use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::object::ObjectKey;
use rollback_core::workload::plan::{self, Options};
use rollback_core::workload::progress::{Done, Progress};
use rollback_core::workload::restore::{self, Need, need};
use serde_json::Value;

use super::item::{Item, called};
use super::objects::{Mode, Objects, WriteError};
use crate::deployers::DeployTarget;

/// Writes to one object at most: content, ownership, and conflicts with its controller, which keeps writing its status.
const WRITES: u32 = 20;

/// Writes all items in their order, then deletes what is to be pruned. Stops at the first failure; the error says where
/// each object stands.
pub(super) async fn carry_out(
    objects: &Objects<'_>,
    target: &DeployTarget,
    items: &[Item],
    prune: &[(ObjectKey, Value)],
    key: &str,
    options: Options,
) -> Result<(), BackendError> {
    let mut progress = Progress::new(items.iter().map(|item| item.object.clone()).collect());
    for item in items {
        match bring(objects, item, key, options).await {
            Ok(done) => progress.done(&item.object, done),
            Err(failure) => {
                let why = progress.failure(&item.object, &failure.error.message, &target.from, &target.to);
                let touched = progress.touched() || failure.touched;
                return Err(BackendError::new(failed_class(failure.error.class, touched), why));
            }
        }
    }
    for (object, live) in prune {
        remove(objects, target, object, live.clone()).await?;
    }
    Ok(())
}

/// Outages are waited for under the same key; anything else that comes after a write needs a new attempt.
fn failed_class(class: ErrorClass, touched: bool) -> ErrorClass {
    match class {
        ErrorClass::Unavailable(_) | ErrorClass::Busy => class,
        ErrorClass::Failed | ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => {
            if touched {
                ErrorClass::Failed
            } else {
                class
            }
        }
    }
}

/// An object did not get to its end.
struct Failure {
    error: BackendError,
    /// Whether its content had been written.
    touched: bool,
}

/// Brings one object to where it needs nothing more.
async fn bring(objects: &Objects<'_>, item: &Item, key: &str, options: Options) -> Result<Done, Failure> {
    let object = &item.object;
    let mut done = Done::Unchanged;
    let failure = |error, done| Failure { error, touched: done != Done::Unchanged };
    let mut live = objects.get(object).await.map_err(|error| failure(error, done))?;
    if live.as_ref().is_some_and(|live| restore::carries(live, key)) {
        // An earlier try of this attempt was here.
        done = Done::Restored;
    }
    let mut handed_back = false;
    for _ in 0..WRITES {
        let next = need(object, live.as_ref(), &item.snapshot, key);
        if let Some(live) = &live
            && let Some(why) = plan::obstacle(object, objects.namespace(), live, &next, options)
        {
            return Err(failure(BackendError::new(ErrorClass::Invalid, why), done));
        }
        let (written, then) = match &next {
            Need::Create(new) => (objects.create(object, new, Mode::Real).await, Done::Created),
            Need::Restore(new) => (objects.replace(object, new, Mode::Real).await, Done::Restored),
            Need::Mark(new) => (objects.replace(object, new, Mode::Real).await, done),
            Need::HandBack(_) if handed_back => {
                tracing::warn!(
                    namespace = objects.namespace(),
                    %object,
                    "the server does not give restored fields back to their owners; the next server-side apply of this object \
                     may need --force-conflicts"
                );
                return Ok(done);
            }
            Need::HandBack(new) => {
                let answer = objects.replace(object, new, Mode::Real).await;
                handed_back = answer.is_ok();
                (answer, done)
            }
            Need::Nothing => return Ok(done),
        };
        match written {
            Ok(stored) => {
                live = Some(stored);
                done = then;
            }
            Err(WriteError::Conflict) => {
                live = objects.get(object).await.map_err(|error| failure(error, done))?;
            }
            Err(WriteError::Failed(error)) => return Err(failure(error, done)),
        }
    }
    let why = format!("somebody else keeps changing {}", called(object));
    Err(failure(BackendError::new(ErrorClass::Busy, why), done))
}

/// Deletes an object that the release does not have, if nobody took it out of the target meanwhile.
async fn remove(
    objects: &Objects<'_>,
    target: &DeployTarget,
    object: &ObjectKey,
    mut live: Value,
) -> Result<(), BackendError> {
    for _ in 0..WRITES {
        match objects.delete(object, &live, Mode::Real).await {
            Ok(()) => return Ok(()),
            Err(WriteError::Conflict) => match objects.get(object).await? {
                Some(again)
                    if again["metadata"]["labels"][rollback_api::labels::TARGET]
                        == target.target.as_str() =>
                {
                    live = again;
                }
                Some(_) | None => return Ok(()),
            },
            Err(WriteError::Failed(error)) => {
                let why = format!("all objects of {} are restored, but {}", target.to, error.message);
                return Err(BackendError::new(failed_class(error.class, true), why));
            }
        }
    }
    Err(BackendError::new(ErrorClass::Busy, format!("somebody else keeps changing {}", called(object))))
}
