//! Releases and Rollbacks for tests, made as CI or a person would make them.

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rollback_api::conditions::SucceededReason;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{
    Backend, Release, ReleaseConfig, ReleaseFields, ReleaseRef, Revision, Rollback, RollbackSpec, annotations,
};
use rollback_core::conditions;
use rollback_core::rollback::{Outcome, Phase};
use serde_json::json;

use crate::soon;

/// The API objects of one namespace.
#[derive(Clone)]
pub struct World {
    /// The namespace.
    pub namespace: String,
    /// An admin client.
    pub client: Client,
    /// Releases.
    pub releases: Api<Release>,
    /// Rollbacks.
    pub rollbacks: Api<Rollback>,
}

impl World {
    /// The objects of a namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            releases: Api::namespaced(client.clone(), namespace),
            rollbacks: Api::namespaced(client.clone(), namespace),
            client,
        }
    }

    /// Records a release of a target, not active.
    pub async fn release(&self, target: &str, id: &str) -> String {
        let config = ReleaseConfig {
            target_name: target.to_owned(),
            revisions: vec![Revision { name: "application".into(), id: id.into(), ..Revision::default() }],
        };
        let name = rollback_core::signature::release_name(&config).expect("a config that can be named");
        let release = Release::new(&name, ReleaseFields { config });
        self.releases.create(&PostParams::default(), &release).await.expect("the release is created");
        self.initialised(&name).await;
        name
    }

    /// Records a release, makes it the active one and gives its health: `True` or `False`.
    pub async fn deploy(&self, target: &str, id: &str, healthy: &str) -> String {
        let name = self.release(target, id).await;
        self.activate(&name).await;
        self.judge(&name, healthy).await;
        name
    }

    /// Gives a verdict on the health of the active release, as a health source does.
    pub async fn judge(&self, name: &str, healthy: &str) {
        let reason = if healthy == "True" { "AnalysisSucceeded" } else { "AnalysisFailed" };
        // A verdict counts from the deployment on; whole seconds may lie before it.
        let time = k8s_openapi::jiff::Timestamp::now() + k8s_openapi::jiff::SignedDuration::from_secs(1);
        let report = json!({ "status": healthy, "reason": reason, "message": "set by a test", "time": time.to_string() });
        self.annotate(name, annotations::HEALTH, Some(&report.to_string())).await;
        self.condition(name, "Healthy", healthy).await;
    }

    async fn initialised(&self, name: &str) {
        soon(&format!("Release {name} to be initialised"), || async {
            let status = self.releases.get(name).await?.status.unwrap_or_default();
            anyhow::ensure!(status.signature.is_some(), "{status:?}");
            Ok(())
        })
        .await;
    }

    /// Sets or removes an annotation of a release.
    pub async fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.releases
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("the release is annotated");
    }

    /// Makes a release the active one, as CI does, and waits until it is.
    pub async fn activate(&self, name: &str) {
        self.annotate(name, annotations::ACTIVE, Some("true")).await;
        self.condition(name, "Active", "True").await;
    }

    /// Waits for a condition of a release.
    pub async fn condition(&self, name: &str, type_: &str, status: &str) {
        soon(&format!("Release {name} to have {type_}={status}"), || async {
            let conditions = self.releases.get(name).await?.status.unwrap_or_default().conditions;
            let found = conditions::find(&conditions, type_);
            anyhow::ensure!(found.is_some_and(|found| found.status == status), "{conditions:?}");
            Ok(())
        })
        .await;
    }

    /// Names of the releases of a target that are active.
    pub async fn active(&self, target: &str) -> Vec<String> {
        let all = self.releases.list(&kube::api::ListParams::default()).await.expect("releases are listed");
        let active = all.items.into_iter().filter(|release| {
            release.spec.config.target_name == target
                && conditions::is_true(&release.status.clone().unwrap_or_default().conditions, "Active")
        });
        active.filter_map(|release| release.metadata.name).collect()
    }

    /// Waits until a release is the only active one of its target: statuses follow the pointer.
    pub async fn only_active(&self, target: &str, release: &str) {
        soon(&format!("{release} to be the only active release of {target}"), || async {
            let active = self.active(target).await;
            anyhow::ensure!(active == [release], "{active:?}");
            Ok(())
        })
        .await;
    }

    /// Creates a Rollback; the error is the API server's sentence.
    pub async fn roll_back(&self, rollback: &Rollback) -> Result<String, String> {
        match self.rollbacks.create(&PostParams::default(), rollback).await {
            Ok(created) => Ok(created.metadata.name.unwrap_or_default()),
            Err(kube::Error::Api(status)) => Err(status.message.clone()),
            Err(other) => Err(other.to_string()),
        }
    }

    /// Waits until a Rollback has ended; what it ended as.
    pub async fn ended(&self, name: &str) -> (Result<(), SucceededReason>, Rollback) {
        let rollback = soon(&format!("Rollback {name} to end"), || async {
            let rollback = self.rollbacks.get(name).await?;
            anyhow::ensure!(Phase::of(&rollback).is_ended(), "{:?}", rollback.status);
            Ok(rollback)
        })
        .await;
        match Phase::of(&rollback) {
            Phase::Ended(Outcome::Succeeded) => (Ok(()), rollback),
            Phase::Ended(Outcome::NotSucceeded(reason)) => (Err(reason), rollback),
            Phase::Pending | Phase::Queued | Phase::Triggering | Phase::Running | Phase::Waiting => {
                panic!("Rollback {name} has ended and has not")
            }
        }
    }
}

/// A Rollback without a name of its own.
pub fn rollback(target: &str, backend: Backend) -> Rollback {
    let mut rollback = Rollback::new(
        "",
        RollbackSpec {
            to_release_ref: ReleaseRef { target: target.into(), ..ReleaseRef::default() },
            reason: "a test".into(),
            backend: Some(backend),
            ..RollbackSpec::default()
        },
    );
    rollback.metadata.name = None;
    rollback.metadata.generate_name = Some(format!("{target}-"));
    rollback
}

/// The same with a name.
pub fn named(name: &str, mut rollback: Rollback) -> Rollback {
    rollback.metadata.generate_name = None;
    rollback.metadata.name = Some(name.into());
    rollback
}

/// The same to a named release.
pub fn to(release: &str, mut rollback: Rollback) -> Rollback {
    rollback.spec.to_release_ref.name = Some(release.into());
    rollback
}

/// The same with options.
pub fn options(all: &[(&str, serde_json::Value)], mut rollback: Rollback) -> Rollback {
    let all: BTreeMap<_, _> = all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    rollback.spec.deployment_options = Some(DeploymentOptions(all));
    rollback
}
