//! The backends: what carries a rollback out.
//!
//! A new one is a folder here and a line in [`Deployers::enable`].

mod missing;
mod noop;
#[cfg(debug_assertions)]
pub mod scripted;
mod workload;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release};
use rollback_core::backend::{BackendError, Cancellation, Deployment};
use rollback_core::pointer::Lock;
use rollback_core::rollback::RollbackView;

use crate::fence::Fence;

/// What a call is about: one rollback of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployTarget {
    /// The namespace.
    pub namespace: String,
    /// The target.
    pub target: String,
    /// Name of the Rollback.
    pub rollback: String,
    /// Its UID.
    pub rollback_uid: String,
    /// Name of the release that is left.
    pub from: String,
    /// Name of the release that is deployed.
    pub to: String,
    /// Who asked for it; empty if that is not known.
    pub by: String,
    /// Why, as its author wrote it; empty if that is not known.
    pub reason: String,
}

impl DeployTarget {
    /// The Rollback in that namespace.
    pub fn of(namespace: &str, view: &RollbackView) -> Self {
        Self {
            namespace: namespace.to_owned(),
            target: view.target.clone(),
            rollback: view.name.clone(),
            rollback_uid: view.uid.clone(),
            from: view.from.clone(),
            to: view.to.clone(),
            by: view.by.clone(),
            reason: view.reason.clone(),
        }
    }

    /// The Rollback that a lock names; it may be gone.
    pub fn of_lock(namespace: &str, target: &str, lock: &Lock) -> Self {
        Self {
            namespace: namespace.to_owned(),
            target: target.to_owned(),
            rollback: lock.rollback.clone(),
            rollback_uid: lock.uid.clone(),
            from: lock.from.clone(),
            to: lock.to.clone(),
            by: String::new(),
            reason: String::new(),
        }
    }
}

/// The answer to a call, later.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, BackendError>>;

/// A backend. Every call may be cut off after the backend time-out, and may be made again by another process.
pub trait Deployer: Send + Sync + Debug {
    /// Works out what to deploy: checks the options (resolved already) and the release. Changes nothing.
    fn plan<'a>(
        &'a self,
        target: &'a DeployTarget,
        release: &'a Release,
        options: &'a DeploymentOptions,
    ) -> Answer<'a, Plan>;

    /// Looks for the deployment that carries the key.
    fn find<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        plan: &'a Plan,
    ) -> Answer<'a, Option<Deployment>>;

    /// Deploys, marked with the key. Twice with one key is one deployment.
    fn trigger<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        plan: &'a Plan,
    ) -> Answer<'a, Deployment>;

    /// Asks how the deployment stands. There is no plan for a rollback that the reference implementation began.
    fn poll<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        id: &'a str,
        plan: Option<&'a Plan>,
    ) -> Answer<'a, Deployment>;

    /// Stops the deployment, as far as that is possible.
    fn cancel<'a>(&'a self, target: &'a DeployTarget, key: &'a str, id: &'a str) -> Answer<'a, Cancellation>;
}

/// The backends that are enabled.
#[derive(Clone, Debug, Default)]
pub struct Deployers {
    enabled: BTreeMap<Backend, Arc<dyn Deployer>>,
}

/// A backend that was asked for is not in this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--cicd-backend={0}: this version has no such backend; it has noop and workload")]
pub struct NotAvailable(pub Backend);

impl Deployers {
    /// Sets the backends up. Fails on one that this program does not have.
    pub fn enable(backends: &[Backend], client: &Client, fence: &Fence) -> Result<Self, NotAvailable> {
        let mut enabled = Self::default();
        for &backend in backends {
            let deployer: Arc<dyn Deployer> = match backend {
                Backend::Noop => Arc::new(noop::Noop),
                Backend::Workload => Arc::new(workload::Workload::new(client, fence)),
                #[cfg(debug_assertions)]
                Backend::Github => match scripted::Scripted::from_environment() {
                    Some(scripted) => Arc::new(scripted),
                    None => return Err(NotAvailable(backend)),
                },
                #[cfg(not(debug_assertions))]
                Backend::Github => return Err(NotAvailable(backend)),
                Backend::Argocd => return Err(NotAvailable(backend)),
            };
            enabled.enabled.insert(backend, deployer);
        }
        Ok(enabled)
    }

    /// Only that one, for tests.
    pub fn only(backend: Backend, deployer: Arc<dyn Deployer>) -> Self {
        Self { enabled: BTreeMap::from([(backend, deployer)]) }
    }

    /// The backend. If it is not enabled, one whose every call fails like in an outage.
    pub fn get(&self, backend: Backend) -> Arc<dyn Deployer> {
        self.enabled.get(&backend).cloned().unwrap_or_else(|| Arc::new(missing::Missing(backend)))
    }
}

/// The plan that deploys all revisions of the release with these options: what most backends do.
pub fn whole_release(backend: Backend, release: &Release, options: &DeploymentOptions) -> Plan {
    Plan {
        backend,
        options: (!options.0.is_empty()).then(|| options.clone()),
        revisions: release.spec.config.revisions.clone(),
        signature: rollback_core::signature::signature(&release.spec.config),
        release_uid: release.metadata.uid.clone().unwrap_or_default(),
    }
}
