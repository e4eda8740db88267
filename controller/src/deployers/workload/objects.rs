//! Reads and writes of the objects that make up a target, in one namespace. Every write asks the fence first and passes
//! the fail points.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::{NamespaceResourceScope, Selector};
use kube::{Api, Client, Resource};
use rollback_api::labels;
use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use rollback_core::workload::ownership::FIELD_MANAGER;
use rollback_core::workload::references::{Reference, ReferenceKind};
use rollback_core::workload::restore;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::errors::{cannot, class};
use crate::error::{is_conflict, is_not_found};
use crate::failpoint;
use crate::fence::Fence;

/// Whether a write is carried out or only tried by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The server checks it and stores nothing.
    DryRun,
    /// It is stored.
    Real,
}

/// Why a write was not done.
#[derive(Debug)]
pub(super) enum WriteError {
    /// Somebody else wrote first: read again.
    Conflict,
    /// Anything else.
    Failed(BackendError),
}

/// Whether an object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existence {
    Present,
    Absent,
    /// This controller may not look.
    Unknown,
}

/// The objects of one namespace.
pub(super) struct Objects<'a> {
    client: &'a Client,
    fence: &'a Fence,
    namespace: &'a str,
}

impl<'a> Objects<'a> {
    pub(super) fn new(client: &'a Client, fence: &'a Fence, namespace: &'a str) -> Self {
        Self { client, fence, namespace }
    }

    pub(super) fn namespace(&self) -> &'a str {
        self.namespace
    }

    fn api(&self, kind: WorkloadKind) -> Api<DynamicObject> {
        let (group, version) = kind.api_version().rsplit_once('/').unwrap_or(("", kind.api_version()));
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: kind.api_version().to_owned(),
            kind: kind.as_str().to_owned(),
            plural: format!("{}s", kind.prefix()),
        };
        Api::namespaced_with(self.client.clone(), self.namespace, &resource)
    }

    /// The object as it is now; `None` if there is none.
    pub(super) async fn get(&self, object: &ObjectKey) -> Result<Option<Value>, BackendError> {
        let doing = || format!("read {} {}", object.kind.as_str(), object.name);
        let found =
            self.api(object.kind).get_opt(&object.name).await.map_err(|error| cannot(&doing(), &error))?;
        found.map(|found| to_json(&doing(), &found)).transpose()
    }

    /// All objects of the target.
    pub(super) async fn of_target(&self, target: &str) -> Result<Vec<(ObjectKey, Value)>, BackendError> {
        let mut all = Vec::new();
        // Targets of this mode fit a label's value (rule 17), and a value that fits needs no quoting.
        let params = ListParams::default().labels(&format!("{}={target}", labels::TARGET));
        for &kind in WorkloadKind::ALL {
            let doing = || format!("list {}s of {target}", kind.as_str());
            let list = self.api(kind).list(&params).await.map_err(|error| cannot(&doing(), &error))?;
            for object in list.items {
                let name = object.metadata.name.clone().unwrap_or_default();
                all.push((ObjectKey::new(kind, name), to_json(&doing(), &object)?));
            }
        }
        Ok(all)
    }

    /// Objects of the target that the attempt wrote.
    pub(super) async fn carrying(
        &self,
        target: &str,
        key: &str,
    ) -> Result<Vec<(ObjectKey, Value)>, BackendError> {
        let mut all = self.of_target(target).await?;
        all.retain(|(_, object)| restore::carries(object, key));
        Ok(all)
    }

    /// Creates an object.
    pub(super) async fn create(
        &self,
        object: &ObjectKey,
        new: &Value,
        mode: Mode,
    ) -> Result<Value, WriteError> {
        let doing = format!("create {} {}", object.kind.as_str(), object.name);
        let new = from_json(&doing, new)?;
        let api = self.api(object.kind);
        let params = params(mode);
        self.write(object, mode, &doing, async move { api.create(&params, &new).await }).await
    }

    /// Replaces an object; its resourceVersion says which version of it.
    pub(super) async fn replace(
        &self,
        object: &ObjectKey,
        new: &Value,
        mode: Mode,
    ) -> Result<Value, WriteError> {
        let doing = format!("replace {} {}", object.kind.as_str(), object.name);
        let new = from_json(&doing, new)?;
        let api = self.api(object.kind);
        let params = params(mode);
        self.write(object, mode, &doing, async move { api.replace(&object.name, &params, &new).await }).await
    }

    async fn write(
        &self,
        object: &ObjectKey,
        mode: Mode,
        doing: &str,
        write: impl Future<Output = kube::Result<DynamicObject>>,
    ) -> Result<Value, WriteError> {
        let what = object.to_string();
        let answer = self.guarded(&what, mode, write).await.map_err(WriteError::Failed)?;
        let stored = answer.map_err(|error| write_error(doing, &error))?;
        to_json(doing, &stored).map_err(WriteError::Failed)
    }

    /// Deletes this very object, and what it owns, in the background. One that is gone is fine.
    pub(super) async fn delete(
        &self,
        object: &ObjectKey,
        live: &Value,
        mode: Mode,
    ) -> Result<(), WriteError> {
        let doing = format!("delete {} {}", object.kind.as_str(), object.name);
        let params = DeleteParams {
            dry_run: mode == Mode::DryRun,
            ..DeleteParams::background().preconditions(Preconditions {
                uid: live["metadata"]["uid"].as_str().map(str::to_owned),
                resource_version: live["metadata"]["resourceVersion"].as_str().map(str::to_owned),
            })
        };
        let api = self.api(object.kind);
        let what = object.to_string();
        let delete = async move { api.delete(&object.name, &params).await };
        match self.guarded(&what, mode, delete).await.map_err(WriteError::Failed)? {
            Err(error) if !is_not_found(&error) => Err(write_error(&doing, &error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Deletes a pod, only the one with this UID. One that is gone is fine.
    pub(super) async fn delete_pod(&self, name: &str, uid: &str) -> Result<(), BackendError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace);
        let params = DeleteParams::default()
            .preconditions(Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let delete = async move { api.delete(name, &params).await };
        match self.guarded(&format!("pod/{name}"), Mode::Real, delete).await? {
            Err(error) if !is_not_found(&error) && !is_conflict(&error) => {
                Err(cannot(&format!("delete Pod {name}"), &error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Objects of a kind that a workload's selector matches: its pods, or what stands between it and them.
    pub(super) async fn selected<K>(&self, workload: &Value) -> Result<Vec<K>, BackendError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let doing = || format!("list the {} of a workload", K::plural(&()));
        let selector: LabelSelector = serde_json::from_value(workload["spec"]["selector"].clone())
            .map_err(|error| unreadable(&doing(), &error))?;
        let selector: Selector = selector.try_into().map_err(|error| {
            BackendError::new(ErrorClass::Invalid, format!("cannot {}: {error}", doing()))
        })?;
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        let params = ListParams::default().labels_from(&selector);
        Ok(api.list(&params).await.map_err(|error| cannot(&doing(), &error))?.items)
    }

    /// Whether something that a pod template refers to exists.
    pub(super) async fn exists(&self, reference: &Reference) -> Result<Existence, BackendError> {
        let found = match reference.kind {
            ReferenceKind::ConfigMap => self.has::<ConfigMap>(&reference.name).await,
            ReferenceKind::Secret => self.has::<Secret>(&reference.name).await,
            ReferenceKind::ServiceAccount => self.has::<ServiceAccount>(&reference.name).await,
            ReferenceKind::PersistentVolumeClaim => self.has::<PersistentVolumeClaim>(&reference.name).await,
        };
        match found {
            Ok(true) => Ok(Existence::Present),
            Ok(false) => Ok(Existence::Absent),
            // The shipped role reads no Secrets.
            Err(error) if class(&error) == ErrorClass::NotPermitted => Ok(Existence::Unknown),
            Err(error) => Err(cannot(&format!("look for {reference}"), &error)),
        }
    }

    /// Whether there is an object of that kind and name; its content is not read.
    async fn has<K>(&self, name: &str) -> kube::Result<bool>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        Ok(api.get_metadata_opt(name).await?.is_some())
    }

    /// A snapshot by name.
    pub(super) async fn revision(&self, name: &str) -> Result<Option<ControllerRevision>, BackendError> {
        let api: Api<ControllerRevision> = Api::namespaced(self.client.clone(), self.namespace);
        api.get_opt(name).await.map_err(|error| cannot(&format!("read ControllerRevision {name}"), &error))
    }

    /// Merge-patches a snapshot.
    pub(super) async fn patch_revision(&self, name: &str, patch: &Value) -> Result<(), WriteError> {
        let api: Api<ControllerRevision> = Api::namespaced(self.client.clone(), self.namespace);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(patch);
        let write = async move { api.patch(name, &params, &patch).await };
        let answer = self.guarded(&format!("controllerrevision/{name}"), Mode::Real, write).await;
        match answer.map_err(WriteError::Failed)? {
            Ok(_) => Ok(()),
            Err(error) => Err(write_error(&format!("own ControllerRevision {name}"), &error)),
        }
    }

    /// A write with the fence before it and the fail points around it; a dry run is none.
    async fn guarded<T>(
        &self,
        what: &str,
        mode: Mode,
        write: impl Future<Output = kube::Result<T>>,
    ) -> Result<kube::Result<T>, BackendError> {
        match mode {
            Mode::DryRun => Ok(write.await),
            Mode::Real => {
                self.fence.check().map_err(|stopped| {
                    BackendError::new(ErrorClass::Unavailable(None), stopped.to_string())
                })?;
                failpoint::write(what);
                let answer = write.await;
                failpoint::written(what);
                Ok(answer)
            }
        }
    }
}

fn params(mode: Mode) -> PostParams {
    PostParams { dry_run: mode == Mode::DryRun, field_manager: Some(FIELD_MANAGER.to_owned()) }
}

fn write_error(doing: &str, error: &kube::Error) -> WriteError {
    // Gone since it was read: created again, like a conflict.
    if is_conflict(error) || (is_not_found(error) && doing.starts_with("replace")) {
        WriteError::Conflict
    } else {
        WriteError::Failed(cannot(doing, error))
    }
}

fn to_json(doing: &str, object: &DynamicObject) -> Result<Value, BackendError> {
    serde_json::to_value(object).map_err(|error| unreadable(doing, &error))
}

fn from_json(doing: &str, object: &Value) -> Result<DynamicObject, WriteError> {
    serde_json::from_value(object.clone()).map_err(|error| WriteError::Failed(unreadable(doing, &error)))
}

fn unreadable(doing: &str, error: &serde_json::Error) -> BackendError {
    BackendError::new(ErrorClass::Invalid, format!("cannot {doing}: {error}"))
}
