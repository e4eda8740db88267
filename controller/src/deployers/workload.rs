//! The embedded backend: puts the recorded content of a target's workloads and ConfigMaps back, all of them together.
//!
//! Everything that has been done is read off the objects: each carries the attempt's key and its content. So one key
//! can be carried out by several processes, one after the other, and is still one deployment.

mod carry_out;
mod check;
mod dry_run;
mod errors;
mod follow;
mod item;
mod objects;
mod owner;
mod rolling;
mod snapshots;

use std::fmt;

use futures::FutureExt as _;
use kube::Client;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release};
use rollback_core::backend::{BackendError, Cancellation, Deployment, DeploymentState, ErrorClass};
use rollback_core::workload::object::ObjectKey;
use rollback_core::workload::plan::{self, Options};
use rollback_core::workload::restore::{self, Need};
use serde_json::Value;

use self::item::Item;
use self::objects::Objects;
use super::{Answer, DeployTarget, Deployer, whole_release};
use crate::fence::Fence;

/// See the module.
pub(super) struct Workload {
    client: Client,
    fence: Fence,
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload").finish_non_exhaustive()
    }
}

impl Workload {
    pub(super) fn new(client: &Client, fence: &Fence) -> Self {
        Self { client: client.clone(), fence: fence.clone() }
    }

    fn objects<'a>(&'a self, target: &'a DeployTarget) -> Objects<'a> {
        Objects::new(&self.client, &self.fence, &target.namespace)
    }

    async fn plan(
        &self,
        target: &DeployTarget,
        release: &Release,
        asked: &DeploymentOptions,
    ) -> Result<Plan, BackendError> {
        plan::deployable(release).map_err(invalid)?;
        plan::options(asked).map_err(invalid)?;
        let plan = whole_release(Backend::Workload, release, asked);
        snapshots::load(&self.objects(target), &target.to, &plan).await?;
        Ok(plan)
    }

    async fn find(
        &self,
        target: &DeployTarget,
        key: &str,
        plan: &Plan,
    ) -> Result<Option<Deployment>, BackendError> {
        let objects = self.objects(target);
        let loaded = match snapshots::load(&objects, &target.to, plan).await {
            Ok(loaded) => loaded,
            // Then nothing can have been begun, unless something was.
            Err(error) if matches!(error.class, ErrorClass::NotFound | ErrorClass::Invalid) => {
                let begun = !objects.carrying(&target.target, key).await?.is_empty();
                return if begun { Err(error) } else { Ok(None) };
            }
            Err(error) => return Err(error),
        };
        for Item { object, snapshot, .. } in &loaded.items {
            let live = objects.get(object).await?;
            if restore::need(object, live.as_ref(), snapshot, key) != Need::Nothing {
                return Ok(None);
            }
        }
        Ok(Some(begun(target, key, "every object is restored".to_owned())))
    }

    async fn trigger(
        &self,
        target: &DeployTarget,
        key: &str,
        plan: &Plan,
    ) -> Result<Deployment, BackendError> {
        let options = options_of(plan)?;
        let objects = self.objects(target);
        let loaded = snapshots::load(&objects, &target.to, plan).await?;
        let added = added(&objects, target, &loaded.items).await?;
        let items = check::check(&objects, loaded.items, key, options).await?;
        let prune: &[(ObjectKey, Value)] = if options.prune { &added } else { &[] };
        dry_run::dry_run(&objects, &items, prune, key).await?;
        owner::own(&objects, target, &loaded.names).await?;
        carry_out::carry_out(&objects, target, &items, prune, key, options).await?;
        let mut message = format!("{} objects are restored", items.len());
        if let Some(left) = left(&added, options, target) {
            message = format!("{message}; {left}");
        }
        Ok(begun(target, key, message))
    }

    async fn poll(
        &self,
        target: &DeployTarget,
        key: &str,
        id: &str,
        plan: Option<&Plan>,
    ) -> Result<Deployment, BackendError> {
        let objects = self.objects(target);
        let Some(plan) = plan else {
            let carrying = objects.carrying(&target.target, key).await?;
            return follow::follow_carrying(&objects, id, carrying).await;
        };
        let options = options_of(plan)?;
        let loaded = snapshots::load(&objects, &target.to, plan).await?;
        let added = added(&objects, target, &loaded.items).await?;
        let left = left(&added, options, target).unwrap_or_default();
        follow::follow(&objects, id, &loaded.items, &left).await
    }

    async fn cancel(&self, target: &DeployTarget, key: &str) -> Result<Cancellation, BackendError> {
        let carrying = self.objects(target).carrying(&target.target, key).await?;
        if carrying.is_empty() {
            return Ok(Cancellation::Stopped);
        }
        let names: Vec<String> = carrying.iter().map(|(object, _)| object.to_string()).collect();
        Ok(Cancellation::NotStopped(format!(
            "nothing more is written, but Kubernetes goes on rolling out what was: {}; kubectl rollout status shows how far it is",
            names.join(", ")
        )))
    }
}

fn invalid(why: String) -> BackendError {
    BackendError::new(ErrorClass::Invalid, why)
}

fn options_of(plan: &Plan) -> Result<Options, BackendError> {
    plan::options(&plan.options.clone().unwrap_or_default()).map_err(invalid)
}

/// Objects of the target that the release does not have.
async fn added(
    objects: &Objects<'_>,
    target: &DeployTarget,
    items: &[Item],
) -> Result<Vec<(ObjectKey, Value)>, BackendError> {
    let mut all = objects.of_target(&target.target).await?;
    all.retain(|(object, live)| {
        live["metadata"]["deletionTimestamp"].is_null() && !items.iter().any(|item| item.object == *object)
    });
    Ok(all)
}

/// What is left although the release does not have it.
fn left(added: &[(ObjectKey, Value)], options: Options, target: &DeployTarget) -> Option<String> {
    if added.is_empty() || options.prune {
        return None;
    }
    let names: Vec<String> = added.iter().map(|(object, _)| object.to_string()).collect();
    Some(format!(
        "left as they are, since {} does not have them: {} (option prune deletes them)",
        target.to,
        names.join(", ")
    ))
}

/// The deployment that carries the key. Its id says which attempt of which Rollback.
fn begun(target: &DeployTarget, key: &str, message: String) -> Deployment {
    let number = key.rsplit('-').next().unwrap_or_default();
    Deployment {
        id: format!("workload-{}-{}-{number}", target.namespace, target.rollback),
        url: None,
        state: DeploymentState::InProgress,
        message,
    }
}

impl Deployer for Workload {
    fn plan<'a>(
        &'a self,
        target: &'a DeployTarget,
        release: &'a Release,
        options: &'a DeploymentOptions,
    ) -> Answer<'a, Plan> {
        self.plan(target, release, options).boxed()
    }

    fn find<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        plan: &'a Plan,
    ) -> Answer<'a, Option<Deployment>> {
        self.find(target, key, plan).boxed()
    }

    fn trigger<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        plan: &'a Plan,
    ) -> Answer<'a, Deployment> {
        self.trigger(target, key, plan).boxed()
    }

    fn poll<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        id: &'a str,
        plan: Option<&'a Plan>,
    ) -> Answer<'a, Deployment> {
        self.poll(target, key, id, plan).boxed()
    }

    fn cancel<'a>(&'a self, target: &'a DeployTarget, key: &'a str, _: &'a str) -> Answer<'a, Cancellation> {
        self.cancel(target, key).boxed()
    }
}
