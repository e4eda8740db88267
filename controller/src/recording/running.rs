//! The pods of a target's workloads, read live: which labels they have only their workload says, so they are not watched.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Api, Resource};
use rollback_core::workload::health::Running;
use rollback_core::workload::object::WorkloadKind;
use rollback_core::workload::pods::Template;
use serde::de::DeserializeOwned;

use super::live;
use super::watched::Seen;
use crate::context::Context;
use crate::error::PassError;
use crate::target::TargetKey;

/// The workloads of a target with their pods.
pub(super) async fn running<'a>(
    ctx: &Context,
    key: &TargetKey,
    seen: &'a [Arc<Seen>],
) -> Result<Vec<Running<'a>>, PassError> {
    let mut all = Vec::new();
    for seen in seen {
        if seen.key.kind == WorkloadKind::ConfigMap {
            continue;
        }
        let Some(selector) = selector(seen) else { continue };
        let params = ListParams::default().labels_from(&selector);
        let template = template(ctx, key, seen, &params).await?;
        let pods = list(Api::<Pod>::namespaced(ctx.client.clone(), &key.namespace), &params, seen).await?;
        all.push(Running { key: &seen.key, object: &seen.object, template, pods });
    }
    Ok(all)
}

/// What its pods are found by. The API server keeps no workload with a selector that cannot be read.
fn selector(seen: &Seen) -> Option<Selector> {
    let selector: LabelSelector = serde_json::from_value(seen.object["spec"]["selector"].clone()).ok()?;
    selector.try_into().ok()
}

async fn template(
    ctx: &Context,
    key: &TargetKey,
    seen: &Seen,
    params: &ListParams,
) -> Result<Option<Template>, PassError> {
    // Until its controller has seen the template, what it made is of an earlier one.
    if !seen.is_observed() {
        return Ok(None);
    }
    Ok(match seen.key.kind {
        WorkloadKind::ConfigMap => None,
        WorkloadKind::Deployment => {
            let sets = Api::<ReplicaSet>::namespaced(ctx.client.clone(), &key.namespace);
            Template::of_deployment(&seen.object, &list(sets, params, seen).await?)
        }
        WorkloadKind::StatefulSet => Template::of_stateful_set(&seen.object),
        WorkloadKind::DaemonSet => {
            Template::of_daemon_set(&seen.object, &list(live::revisions(ctx, key), params, seen).await?)
        }
    })
}

async fn list<K>(api: Api<K>, params: &ListParams, seen: &Seen) -> Result<Vec<K>, PassError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let doing = || format!("list the {} of {}", K::plural(&()), seen.key);
    Ok(api.list(params).await.map_err(PassError::api(doing))?.items)
}
