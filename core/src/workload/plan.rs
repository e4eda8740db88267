//! What a rollback of workloads is asked to do, and what makes it impossible before anything is touched (rule 18).

use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Release, Revision};
use serde_json::Value;

use super::object::{ObjectKey, WorkloadKind};
use super::restore::Need;
use super::trackers::helm_release;

/// `type` of a revision that was recorded from workloads.
pub const REVISION_TYPE: &str = "workload";

/// Options of this backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `prune`: delete objects of the target that the release does not have. Otherwise they are left and named.
    pub prune: bool,
    /// `clientSideHelm`: go on although the next `helm upgrade` will keep fields of the version that comes back (rule 19).
    pub client_side_helm: bool,
}

/// Reads the options. Fails with a sentence on one that this backend does not have or that is no boolean.
pub fn options(options: &DeploymentOptions) -> Result<Options, String> {
    let mut read = Options::default();
    for (name, value) in &options.0 {
        let place = match name.as_str() {
            "prune" => &mut read.prune,
            "clientSideHelm" => &mut read.client_side_helm,
            _ => {
                return Err(format!(
                    "spec.deploymentOptions.{name}: backend workload has no such option; it has prune and clientSideHelm"
                ));
            }
        };
        *place = value
            .as_bool()
            .ok_or_else(|| format!("spec.deploymentOptions.{name} is {value}; it must be true or false"))?;
    }
    Ok(read)
}

/// Checks that the release can be deployed by this backend. Fails with a sentence.
pub fn deployable(release: &Release) -> Result<(), String> {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    match release.spec.config.revisions.iter().find(|revision| !is_recorded(revision)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "Release {name} has revision {} of type {:?}, which was not recorded from workloads; \
             use the backend that deployed it (spec.backend)",
            other.name,
            other.type_.as_deref().unwrap_or_default(),
        )),
    }
}

fn is_recorded(revision: &Revision) -> bool {
    revision.type_.as_deref() == Some(REVISION_TYPE)
}

/// Why an object cannot take the write that it needs, with the command that mends it; `None`: it can.
pub fn obstacle(
    object: &ObjectKey,
    namespace: &str,
    live: &Value,
    need: &Need,
    options: Options,
) -> Option<String> {
    if !live["metadata"]["deletionTimestamp"].is_null() {
        return Some(format!(
            "{} {} is being deleted; wait until it is gone",
            object.kind.as_str(),
            object.name
        ));
    }
    match need {
        Need::Restore(_) => {}
        // These leave the content alone.
        Need::Create(_) | Need::Mark(_) | Need::HandBack(_) | Need::Nothing => return None,
    }
    let spec = &live["spec"];
    let found = match object.kind {
        WorkloadKind::Deployment if spec["paused"] == true => Some(format!(
            "is paused, so the pods of a restored template would not start; resume it: kubectl rollout resume {object} -n {namespace}"
        )),
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet
            if spec["updateStrategy"]["type"] == "OnDelete" =>
        {
            Some(format!(
                "has update strategy OnDelete, so its pods would keep running the template that is left; let it roll: \
                 kubectl patch {object} -n {namespace} --type=merge -p '{{\"spec\":{{\"updateStrategy\":{{\"type\":\"RollingUpdate\"}}}}}}'"
            ))
        }
        WorkloadKind::ConfigMap if live["immutable"] == true => Some(format!(
            "is immutable; delete it, and the rollback creates it again: kubectl delete {object} -n {namespace}"
        )),
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::ConfigMap => None,
    };
    let found = found.or_else(|| {
        let helm = helm_release(live).filter(|helm| helm.client_side && !options.client_side_helm)?;
        Some(format!(
            "belongs to Helm release {name}, which Helm merges on the client: its next upgrade would keep fields of the \
             version that comes back; use Helm: helm rollback {name} REVISION -n {in_namespace} (helm history {name} -n \
             {in_namespace} lists them), or go on with spec.deploymentOptions.clientSideHelm: true",
            name = helm.name,
            in_namespace = helm.namespace,
        ))
    });
    found.map(|why| format!("{} {} {why}", object.kind.as_str(), object.name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rollback_api::{ReleaseConfig, ReleaseFields};
    use serde_json::json;

    use super::*;

    fn read(all: &[(&str, Value)]) -> Result<Options, String> {
        options(&DeploymentOptions(
            all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<BTreeMap<_, _>>(),
        ))
    }

    #[test]
    fn options_are_typed() {
        assert_eq!(read(&[]), Ok(Options::default()));
        assert_eq!(
            read(&[("prune", json!(true)), ("clientSideHelm", json!(false))]),
            Ok(Options { prune: true, client_side_helm: false })
        );
        assert_eq!(
            read(&[("prune", json!("true"))]),
            Err("spec.deploymentOptions.prune is \"true\"; it must be true or false".to_owned())
        );
        assert_eq!(
            read(&[("environment", json!("production"))]),
            Err("spec.deploymentOptions.environment: backend workload has no such option; it has prune and clientSideHelm".to_owned())
        );
    }

    #[test]
    fn only_recorded_releases_can_be_deployed() {
        let release = |type_: Option<&str>| {
            let revision = Revision {
                name: "deployment/web".into(),
                id: "x".into(),
                type_: type_.map(str::to_owned),
                ..Revision::default()
            };
            Release::new(
                "web-1",
                ReleaseFields {
                    config: ReleaseConfig { target_name: "web".into(), revisions: vec![revision] },
                },
            )
        };
        assert_eq!(deployable(&release(Some("workload"))), Ok(()));
        assert_eq!(
            deployable(&release(Some("github"))),
            Err("Release web-1 has revision deployment/web of type \"github\", which was not recorded from workloads; use the backend that deployed it (spec.backend)".to_owned())
        );
        assert!(deployable(&release(None)).is_err());
    }

    #[test]
    fn each_obstacle_names_the_command_that_mends_it() {
        let key = |kind| ObjectKey::new(kind, "x");
        let restore = Need::Restore(json!({}));
        for (kind, live, expected) in [
            (
                WorkloadKind::Deployment,
                json!({"spec": {"paused": true}}),
                Some("kubectl rollout resume deployment/x -n shop"),
            ),
            (
                WorkloadKind::StatefulSet,
                json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}),
                Some(
                    "kubectl patch statefulset/x -n shop --type=merge -p '{\"spec\":{\"updateStrategy\":{\"type\":\"RollingUpdate\"}}}'",
                ),
            ),
            (
                WorkloadKind::DaemonSet,
                json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}),
                Some("kubectl patch daemonset/x"),
            ),
            (WorkloadKind::ConfigMap, json!({"immutable": true}), Some("kubectl delete configmap/x -n shop")),
            (
                WorkloadKind::Deployment,
                json!({"metadata": {"deletionTimestamp": "2026-11-01T10:00:00Z"}}),
                Some("is being deleted"),
            ),
            (
                WorkloadKind::Deployment,
                json!({"metadata": {"namespace": "shop", "annotations": {"meta.helm.sh/release-name": "web"}, "managedFields": [{"manager": "helm", "operation": "Update"}]}}),
                Some("helm rollback web REVISION -n shop"),
            ),
            (WorkloadKind::Deployment, json!({"spec": {"paused": false}}), None),
            (WorkloadKind::StatefulSet, json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}}), None),
            (WorkloadKind::ConfigMap, json!({"immutable": false}), None),
        ] {
            let found = obstacle(&key(kind), "shop", &live, &restore, Options::default());
            match expected {
                None => assert_eq!(found, None),
                Some(text) => {
                    let found = found.unwrap();
                    assert!(
                        found.starts_with(&format!("{} x ", kind.as_str())) && found.contains(text),
                        "{found}"
                    );
                }
            }
            // What keeps its content may be paused, immutable or whatever.
            if live["metadata"]["deletionTimestamp"].is_null() {
                assert_eq!(
                    obstacle(&key(kind), "shop", &live, &Need::Mark(json!({})), Options::default()),
                    None
                );
            }
        }
    }

    #[test]
    fn client_side_helm_can_be_accepted() {
        let live = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "web"}, "managedFields": [{"manager": "helm", "operation": "Update"}]}});
        let accepted = Options { client_side_helm: true, ..Options::default() };
        let key = ObjectKey::new(WorkloadKind::Deployment, "x");
        assert_eq!(obstacle(&key, "shop", &live, &Need::Restore(json!({})), accepted), None);
    }
}
