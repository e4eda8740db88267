//! Every write is tried on the server before the first one is carried out (rule 18).

use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::object::ObjectKey;
use rollback_core::workload::restore::{self, Need, need};
use serde_json::Value;

use super::item::{Item, called};
use super::objects::{Mode, Objects, WriteError};

/// Tries for one object while somebody else changes it, its controller with its status above all.
const TRIES: u32 = 10;

/// Tries the next write of each item and the deletion of each object to prune. Any failure means that nothing was touched.
pub(super) async fn dry_run(
    objects: &Objects<'_>,
    items: &[Item],
    prune: &[(ObjectKey, Value)],
    key: &str,
) -> Result<(), BackendError> {
    for item in items {
        try_one(objects, item, key).await.map_err(|error| untouched(&error))?;
    }
    for (object, live) in prune {
        match objects.delete(object, live, Mode::DryRun).await {
            // It is read again before it is deleted.
            Ok(()) | Err(WriteError::Conflict) => {}
            Err(WriteError::Failed(error)) => return Err(untouched(&error)),
        }
    }
    Ok(())
}

fn untouched(error: &BackendError) -> BackendError {
    // A kind that is not served, or a namespace that is gone, stays so.
    let class = match error.class {
        ErrorClass::NotFound => ErrorClass::Invalid,
        other @ (ErrorClass::Unavailable(_)
        | ErrorClass::Busy
        | ErrorClass::Failed
        | ErrorClass::NotPermitted
        | ErrorClass::Invalid) => other,
    };
    BackendError::new(class, format!("nothing was touched: {}", error.message))
}

async fn try_one(objects: &Objects<'_>, item: &Item, key: &str) -> Result<(), BackendError> {
    for _ in 0..TRIES {
        let live = objects.get(&item.object).await?;
        let tried = match need(&item.object, live.as_ref(), &item.snapshot, key) {
            Need::Create(new) => objects.create(&item.object, &new, Mode::DryRun).await,
            Need::Restore(new) | Need::Mark(new) => objects.replace(&item.object, &new, Mode::DryRun).await,
            Need::HandBack(_) | Need::Nothing => return Ok(()),
        };
        match tried {
            Ok(stored) => return as_recorded(item, &stored),
            Err(WriteError::Conflict) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(BackendError::new(ErrorClass::Busy, format!("somebody else keeps changing {}", called(&item.object))))
}

/// The server may not change the content: what would run is not what ran before, and no later look would recognise it.
fn as_recorded(item: &Item, stored: &Value) -> Result<(), BackendError> {
    match restore::first_difference(item.object.kind, stored, &item.snapshot) {
        None => Ok(()),
        Some(path) => Err(BackendError::new(
            ErrorClass::Invalid,
            format!(
                "{} would not be what ran before: an admission webhook of the cluster, or a new default, changes {path} while \
                 it is restored; roll it back by its own tool, or change what is in the way",
                called(&item.object),
            ),
        )),
    }
}
