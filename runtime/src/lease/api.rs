//! The Lease object as a record.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use rollback_core::lease::LeaseRecord;

/// One Lease, by name.
pub(super) struct LeaseApi {
    api: Api<Lease>,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Why a call did not do what was asked.
pub(super) enum CallError {
    /// Somebody else wrote in between, or removed or made the object.
    Conflict,
    /// Anything else.
    Failed(kube::Error),
}

impl LeaseApi {
    pub(super) fn new(client: Client, namespace: String, name: String) -> Self {
        Self { api: Api::namespaced(client, &namespace), namespace, name }
    }

    pub(super) async fn read(&self) -> Result<Option<Lease>, CallError> {
        self.api.get_opt(&self.name).await.map_err(CallError::Failed)
    }

    /// Creates the Lease, or replaces exactly the version in `over`. Returns
    /// the object as stored.
    pub(super) async fn write(&self, over: Option<&Lease>, record: &LeaseRecord) -> Result<Lease, CallError> {
        let params = PostParams::default();
        let written = match over {
            None => {
                let metadata = ObjectMeta {
                    name: Some(self.name.clone()),
                    namespace: Some(self.namespace.clone()),
                    ..ObjectMeta::default()
                };
                let lease = Lease { metadata, spec: Some(to_spec(record, LeaseSpec::default())) };
                self.api.create(&params, &lease).await
            }
            Some(over) => {
                let mut lease = over.clone();
                lease.spec = Some(to_spec(record, lease.spec.take().unwrap_or_default()));
                // The resourceVersion that was read goes with it.
                self.api.replace(&self.name, &params, &lease).await
            }
        };
        written.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 409 || (status.code == 404 && over.is_some()) => {
                CallError::Conflict
            }
            _ => CallError::Failed(error),
        })
    }
}

pub(super) fn to_record(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    LeaseRecord {
        holder: spec.holder_identity.unwrap_or_default(),
        lease_duration: Duration::from_secs(seconds.unwrap_or_default()),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

fn to_spec(record: &LeaseRecord, previous: LeaseSpec) -> LeaseSpec {
    let seconds = i32::try_from(record.lease_duration.as_secs()).unwrap_or(i32::MAX);
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        // The API refuses zero.
        lease_duration_seconds: Some(seconds.max(1)),
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        lease_transitions: Some(record.transitions),
        ..previous
    }
}
