//! The API server as the commands use it: typed calls, each under a deadline, each error explained.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rollback_api::{Release, Rollback};

use crate::explain;
use crate::failure::Failure;
use crate::printer::Printer;

/// Who writes: in managedFields and audit logs.
const FIELD_MANAGER: &str = "kubectl-rollback";

/// Where we are, in the words of the kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Name of the cluster; the server's address where there is no name.
    pub(crate) cluster: String,
    /// Name of the context; empty without one.
    pub(crate) context: String,
    /// The server's address.
    pub(crate) server: String,
    /// The namespace.
    pub(crate) namespace: String,
}

/// Warnings of the API server that were not shown yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    all: Vec<String>,
    shown: usize,
}

impl Warnings {
    /// Takes a warning down; one that was seen before is not shown again.
    pub(crate) fn push(&self, text: String) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.all.contains(&text) {
            seen.all.push(text);
        }
    }

    /// Those that were not taken before.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = seen.all[seen.shown..].to_vec();
        seen.shown = seen.all.len();
        new
    }
}

/// A connection.
#[derive(Clone)]
pub(crate) struct Session {
    /// The client. It never retries by itself.
    pub(crate) client: Client,
    /// Where it leads.
    pub(crate) place: Place,
    /// What the server warned of.
    pub(crate) warnings: Warnings,
    /// Longest time for one call.
    pub(crate) deadline: Option<Duration>,
}

impl Session {
    /// The namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.place.namespace
    }

    /// Releases of the namespace.
    pub(crate) fn releases_api(&self) -> Api<Release> {
        Api::namespaced(self.client.clone(), self.namespace())
    }

    /// Rollbacks of the namespace.
    pub(crate) fn rollbacks_api(&self) -> Api<Rollback> {
        Api::namespaced(self.client.clone(), self.namespace())
    }

    /// Runs one call under the deadline. `what` is what the call is about, as in `list releases`.
    pub(crate) async fn call<T>(
        &self,
        what: &str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failure> {
        let result = match self.deadline {
            None => call.await,
            Some(deadline) => match tokio::time::timeout(deadline, call).await {
                Ok(result) => result,
                Err(_) => return Err(explain::timed_out(what, deadline, &self.place)),
            },
        };
        result.map_err(|error| explain::call(what, &error, &self.place))
    }

    /// All releases of a target.
    pub(crate) async fn releases(&self, target: &str) -> Result<Vec<Release>, Failure> {
        let params = ListParams::default().fields(&format!("config.targetName={target}"));
        self.list_releases(&self.releases_api(), &params).await
    }

    /// Releases, of this namespace or all.
    pub(crate) async fn list_releases(
        &self,
        api: &Api<Release>,
        params: &ListParams,
    ) -> Result<Vec<Release>, Failure> {
        Ok(self.call("list releases", api.list(params)).await?.items)
    }

    /// All Rollbacks of a target.
    pub(crate) async fn rollbacks(&self, target: &str) -> Result<Vec<Rollback>, Failure> {
        let params = ListParams::default().fields(&format!("spec.toReleaseRef.target={target}"));
        self.list_rollbacks(&self.rollbacks_api(), &params).await
    }

    /// Rollbacks, of this namespace or all.
    pub(crate) async fn list_rollbacks(
        &self,
        api: &Api<Rollback>,
        params: &ListParams,
    ) -> Result<Vec<Rollback>, Failure> {
        Ok(self.call("list rollbacks", api.list(params)).await?.items)
    }

    /// The Rollback of that name, if there is one.
    pub(crate) async fn rollback(&self, name: &str) -> Result<Option<Rollback>, Failure> {
        self.call("get rollbacks", found(self.rollbacks_api().get(name))).await
    }

    /// The release of that name, if there is one.
    pub(crate) async fn release(&self, name: &str) -> Result<Option<Release>, Failure> {
        self.call("get releases", found(self.releases_api().get(name))).await
    }

    /// Creates a Rollback, or has the server pretend to.
    pub(crate) async fn create(&self, rollback: &Rollback, dry_run: bool) -> Result<Rollback, Failure> {
        let params = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        self.call("create rollbacks", self.rollbacks_api().create(&params, rollback)).await
    }

    /// Merges a patch into a Rollback.
    pub(crate) async fn patch(&self, name: &str, patch: &serde_json::Value) -> Result<Rollback, Failure> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.call("patch rollbacks", self.rollbacks_api().patch(name, &params, &Patch::Merge(patch))).await
    }

    /// Shows the warnings that were not shown yet.
    pub(crate) fn show_warnings(&self, printer: &mut Printer) -> Result<(), Failure> {
        self.warnings.take().iter().try_for_each(|text| printer.warning(text))
    }
}

/// An object that does not exist is no error. A kind that does not exist is one: its 404 names no object.
async fn found<T>(get: impl Future<Output = kube::Result<T>>) -> kube::Result<Option<T>> {
    match get.await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 && explain::names_an_object(&status) => Ok(None),
        Err(error) => Err(error),
    }
}
