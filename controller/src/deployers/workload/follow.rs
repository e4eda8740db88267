//! How the rollout of restored objects stands.

use rollback_core::backend::{BackendError, Deployment, DeploymentState, ErrorClass};
use rollback_core::workload::object::ObjectKey;
use rollback_core::workload::ownership;
use rollback_core::workload::restore;
use rollback_core::workload::rollout::RolloutState;
use serde_json::Value;

use super::item::{Item, called};
use super::objects::Objects;
use super::rolling::rolling;

/// How one object stands.
enum Seen {
    /// It is as it was restored.
    Ours(RolloutState),
    /// Somebody else has changed it since.
    Changed(String),
}

/// Asks about every object of the release that comes back. `left` names objects that the release does not have.
pub(super) async fn follow(
    objects: &Objects<'_>,
    id: &str,
    items: &[Item],
    left: &str,
) -> Result<Deployment, BackendError> {
    let mut seen = Vec::new();
    for item in items {
        let state = match objects.get(&item.object).await? {
            None => Seen::Changed(format!("{} was deleted after it was restored", called(&item.object))),
            Some(live) if !restore::same_content(item.object.kind, &live, &item.snapshot) => {
                Seen::Changed(changed(&item.object, &live))
            }
            Some(live) => Seen::Ours(rolling(objects, &item.object, &live).await?),
        };
        seen.push((item.object.clone(), state));
    }
    Ok(deployment(id, seen, left))
}

/// The same for objects of which only the attempt's key is known: those that carry it.
pub(super) async fn follow_carrying(
    objects: &Objects<'_>,
    id: &str,
    carrying: Vec<(ObjectKey, Value)>,
) -> Result<Deployment, BackendError> {
    if carrying.is_empty() {
        return Err(BackendError::new(ErrorClass::NotFound, "no object carries the attempt's key any more"));
    }
    let mut seen = Vec::new();
    for (object, live) in carrying {
        let state = Seen::Ours(rolling(objects, &object, &live).await?);
        seen.push((object, state));
    }
    Ok(deployment(id, seen, ""))
}

fn changed(object: &ObjectKey, live: &Value) -> String {
    let entries = restore::managed_fields(live);
    match ownership::last_writer(object.kind, &entries) {
        Some(manager) => format!("{} was changed by {manager} after it was restored", called(object)),
        None => format!("{} was changed after it was restored", called(object)),
    }
}

/// One answer for all objects: what somebody else changed comes first, then what failed.
fn deployment(id: &str, seen: Vec<(ObjectKey, Seen)>, left: &str) -> Deployment {
    let mut changed = Vec::new();
    let mut failed = Vec::new();
    let mut waiting = Vec::new();
    for (object, seen) in seen {
        match seen {
            Seen::Changed(how) => changed.push(how),
            Seen::Ours(RolloutState::Failed(why)) => failed.push(format!("{}: {why}", called(&object))),
            Seen::Ours(RolloutState::InProgress(how)) => waiting.push(format!("{}: {how}", called(&object))),
            Seen::Ours(RolloutState::Finished) => {}
        }
    }
    let (state, mut message) = if !changed.is_empty() {
        (DeploymentState::Superseded, changed.join("; "))
    } else if !failed.is_empty() {
        (DeploymentState::Failed, failed.join("; "))
    } else if !waiting.is_empty() {
        (DeploymentState::InProgress, waiting.join("; "))
    } else {
        (DeploymentState::Succeeded(None), "every object is restored and rolled out".to_owned())
    };
    if !left.is_empty() {
        message = format!("{message}; {left}");
    }
    Deployment { id: id.to_owned(), url: None, state, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(seen: Vec<Seen>) -> (DeploymentState, String) {
        let keys = ["deployment/web", "deployment/worker", "statefulset/db"];
        let seen = keys.iter().map(|key| key.parse().unwrap()).zip(seen).collect();
        let deployment = deployment("id", seen, "");
        (deployment.state, deployment.message)
    }

    #[test]
    fn the_worst_news_wins() {
        let waiting = || Seen::Ours(RolloutState::InProgress("1 of 2 pods ready".into()));
        let failed = || Seen::Ours(RolloutState::Failed("no".into()));
        let finished = || Seen::Ours(RolloutState::Finished);
        assert_eq!(state(vec![finished(), finished()]).0, DeploymentState::Succeeded(None));
        assert_eq!(
            state(vec![finished(), waiting(), waiting()]),
            (
                DeploymentState::InProgress,
                "Deployment worker: 1 of 2 pods ready; StatefulSet db: 1 of 2 pods ready".to_owned()
            )
        );
        assert_eq!(
            state(vec![waiting(), failed(), finished()]),
            (DeploymentState::Failed, "Deployment worker: no".to_owned())
        );
        assert_eq!(
            state(vec![failed(), Seen::Changed("x was changed".into())]),
            (DeploymentState::Superseded, "x was changed".to_owned())
        );
    }
}
