//! The pinned manifest of a Rollback (rule 7): safe to commit, to apply twice, and to apply as somebody else.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;
use rollback_api::{Rollback, RollbackSpec, annotations};

use super::checks::annotation;
use super::submitted::submitted_hash;

/// Keeps Argo CD from deleting the record when the manifest leaves Git.
const ARGOCD_SYNC_OPTIONS: (&str, &str) = ("argocd.argoproj.io/sync-options", "Prune=false");

/// The manifest that asks for exactly this rollback: `admitted` is the answer to a (dry-run) create.
///
/// It holds a fixed name, both references with the activation that is left, the reason and the options; no uid, time,
/// status, label or managed field, and nothing about who asked: that would belong to the first one who applied it. A
/// Rollback without a name gets one that follows from its spec.
pub fn export(admitted: &Rollback) -> Rollback {
    let spec = RollbackSpec { initiated_by: None, ..admitted.spec.clone() };
    let name = admitted.metadata.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let target: String = spec.to_release_ref.target.chars().take(200).collect();
        let target = target.trim_end_matches(['-', '.']);
        format!("{target}-rollback-{}", &submitted_hash(&spec)[..10])
    });
    let mut annotations =
        BTreeMap::from([(ARGOCD_SYNC_OPTIONS.0.to_owned(), ARGOCD_SYNC_OPTIONS.1.to_owned())]);
    if let Some(force) = annotation(admitted, annotations::FORCE) {
        annotations.insert(annotations::FORCE.to_owned(), force.to_owned());
    }
    Rollback {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: admitted.metadata.namespace.clone(),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn admitted(name: &str) -> Rollback {
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "namespace": "shop", "uid": "u1", "resourceVersion": "7", "generation": 1,
                "creationTimestamp": "2026-03-01T14:09:12Z",
                "labels": {"team": "payments"},
                "annotations": {
                    "theatre.gocardless.com/authenticated-as": "alice",
                    "theatre.gocardless.com/submitted-hash": "00",
                    "theatre.gocardless.com/force": "true",
                },
                "managedFields": [{"manager": "kubectl-rollback"}],
            },
            "spec": {
                "fromReleaseRef": {"target": "payments", "name": "payments-b", "signature": "bb", "activation": "act-b"},
                "toReleaseRef": {"target": "payments", "name": "payments-a", "signature": "aa"},
                "reason": "INC-311",
                "initiatedBy": {"principal": "alice", "type": "user"},
                "deploymentOptions": {"environment": "production"},
                "maxAttempts": 2,
            },
            "status": {"message": "m"},
        }))
        .unwrap()
    }

    #[test]
    fn holds_what_pins_the_rollback_and_nothing_else() {
        assert_eq!(
            serde_json::to_value(export(&admitted("payments-x7k2p"))).unwrap(),
            json!({
                "apiVersion": "deploy.crd.gocardless.com/v1alpha1",
                "kind": "Rollback",
                "metadata": {
                    "name": "payments-x7k2p", "namespace": "shop",
                    "annotations": {
                        "argocd.argoproj.io/sync-options": "Prune=false",
                        "theatre.gocardless.com/force": "true",
                    },
                },
                "spec": {
                    "fromReleaseRef": {"target": "payments", "name": "payments-b", "signature": "bb", "activation": "act-b"},
                    "toReleaseRef": {"target": "payments", "name": "payments-a", "signature": "aa"},
                    "reason": "INC-311",
                    "deploymentOptions": {"environment": "production"},
                    "maxAttempts": 2,
                },
            })
        );
    }

    #[test]
    fn a_rollback_without_a_name_gets_one_that_follows_from_its_spec() {
        let name = |reason: &str| {
            let mut rollback = admitted("");
            rollback.spec.reason = reason.to_owned();
            export(&rollback).metadata.name.unwrap()
        };
        assert_eq!(name("INC-311"), name("INC-311"));
        assert_ne!(name("INC-311"), name("INC-312"));
        assert!(name("INC-311").starts_with("payments-rollback-"));
    }

    #[test]
    fn who_asked_does_not_show() {
        let mut other = admitted("");
        other.spec.initiated_by = None;
        assert_eq!(export(&admitted("")), export(&other));
    }

    #[test]
    fn a_long_target_gives_a_valid_name() {
        let mut rollback = admitted("");
        rollback.spec.to_release_ref.target = format!("{}.{}", "a".repeat(199), "b".repeat(40));
        let name = export(&rollback).metadata.name.unwrap();
        assert!(crate::signature::is_target(&name), "{name}");
    }
}
