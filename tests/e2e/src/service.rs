//! A service of two Deployments and a ConfigMap for tests, as kubectl would apply it.

use rollback_core::workload::content;
use rollback_core::workload::object::WorkloadKind;
use rollback_rig::ControlPlane;
use serde_json::{Value, json};

use crate::soon;

/// What differs between two versions of the service.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Image tag of both Deployments; the rig's nodes read its behaviour off it.
    pub tag: &'static str,
    /// A value in the ConfigMap.
    pub rate: &'static str,
}

/// Works.
pub const GOOD: Version = Version { tag: "1.0", rate: "10" };
/// Works too.
pub const BETTER: Version = Version { tag: "1.1", rate: "20" };
/// Never becomes ready.
pub const BAD: Version = Version { tag: "2.0-never-ready", rate: "1000" };

/// The objects of a version.
pub fn objects(namespace: &str, target: &str, version: Version) -> Vec<Value> {
    let labels = json!({"theatre.gocardless.com/target": target});
    let deployment = |name: &str, replicas: u32| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{
                        "name": "app", "image": format!("{target}-{name}:{}", version.tag),
                        "envFrom": [{"configMapRef": {"name": format!("{target}-config")}}],
                    }]},
                },
            },
        })
    };
    vec![
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("{target}-config"), "namespace": namespace, "labels": labels},
            "data": {"rate": version.rate},
        }),
        deployment("web", 2),
        deployment("worker", 1),
    ]
}

/// Applies a version, server-side.
pub fn deploy(cp: &ControlPlane, namespace: &str, target: &str, version: Version) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects(namespace, target, version)});
    cp.apply(&list.to_string()).expect("the service is applied");
}

/// Runs kubectl; its output, or a panic with what it said.
pub fn kubectl(cp: &ControlPlane, arguments: &[&str]) -> String {
    let output = cp.kubectl().args(arguments).output().expect("kubectl runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Waits until the release of what runs now has a condition; its name.
pub async fn recorded(
    cp: &ControlPlane,
    namespace: &str,
    version: Version,
    condition: &str,
    status: &str,
) -> String {
    let json =
        |arguments: &[&str]| -> Value { serde_json::from_str(&kubectl(cp, arguments)).unwrap_or_default() };
    soon(&format!("a release of {} with {condition}={status}", version.tag), || async {
        let web = json(&["get", "deployment/web", "-n", namespace, "-o", "json"]);
        let image = web["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        anyhow::ensure!(image.ends_with(&format!(":{}", version.tag)), "Deployment web runs {image}");
        let id = content::id(WorkloadKind::Deployment, &web);
        let releases = json(&["get", "releases", "-n", namespace, "-o", "json"]);
        let items = releases["items"].as_array().cloned().unwrap_or_default();
        let its = items.iter().find(|item| {
            let mut revisions = item["config"]["revisions"].as_array().into_iter().flatten();
            revisions.any(|revision| revision["name"] == "deployment/web" && revision["id"] == id.as_str())
        });
        let its = its.ok_or_else(|| anyhow::anyhow!("no release of it is recorded"))?;
        let conditions = its["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let met = conditions.iter().any(|found| found["type"] == condition && found["status"] == status);
        anyhow::ensure!(met, "{} has {conditions:?}", its["metadata"]["name"]);
        Ok(its["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

/// Whether the whole service runs a version and every pod is ready.
pub fn runs(cp: &ControlPlane, namespace: &str, target: &str, version: Version) -> anyhow::Result<()> {
    for (name, path, wanted) in [
        (
            "deployment/web",
            "{.spec.template.spec.containers[*].image}",
            format!("{target}-web:{}", version.tag),
        ),
        (
            "deployment/worker",
            "{.spec.template.spec.containers[*].image}",
            format!("{target}-worker:{}", version.tag),
        ),
        (&format!("configmap/{target}-config"), "{.data.rate}", version.rate.to_owned()),
        (
            "deployment/web",
            "{.status.readyReplicas}/{.status.updatedReplicas}/{.status.replicas}",
            "2/2/2".to_owned(),
        ),
        (
            "deployment/worker",
            "{.status.readyReplicas}/{.status.updatedReplicas}/{.status.replicas}",
            "1/1/1".to_owned(),
        ),
    ] {
        let value = kubectl(cp, &["get", name, "-n", namespace, "-o", &format!("jsonpath={path}")]);
        anyhow::ensure!(value == wanted, "{name} {path} is {value:?}, not {wanted:?}");
    }
    Ok(())
}
