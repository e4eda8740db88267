//! After a rollback the tools that own the workloads go on as if nothing had happened: the next version applies without
//! conflict and leaves no stale field or container of either version (rules 15 and 19).

use std::path::Path;

use rollback_api::Backend;
use rollback_e2e::objects::{World, rollback, to};
use rollback_e2e::service::kubectl;
use rollback_e2e::soon;
use rollback_e2e::system::with_system;
use rollback_rig::{ControlPlane, TestNamespace, namespace};
use serde_json::{Value, json};

/// Deployment `web` of one version: what the versions have in common, plus containers and environment of their own.
fn web(namespace: &str, image: &str, env: &[&str], sidecar: Option<&str>, replicas: Option<u32>) -> Value {
    let env: Vec<Value> = env.iter().map(|name| json!({"name": name, "value": "x"})).collect();
    let mut containers = vec![json!({"name": "app", "image": image, "env": env})];
    if let Some(name) = sidecar {
        containers.push(json!({"name": name, "image": "sidecar:1"}));
    }
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace, "labels": {"theatre.gocardless.com/target": "web"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    });
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = json!(replicas);
    }
    object
}

/// Applies an object with kubectl; extra arguments choose how.
fn apply(cp: &ControlPlane, object: &Value, arguments: &[&str]) -> Result<(), String> {
    let file =
        cp.dir().join(format!("apply-{}.json", object["metadata"]["namespace"].as_str().unwrap_or_default()));
    std::fs::write(&file, object.to_string()).unwrap();
    let output = cp.kubectl().arg("apply").args(arguments).arg("-f").arg(&file).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn live(cp: &ControlPlane, namespace: &str) -> Value {
    serde_json::from_str(&kubectl(cp, &["get", "deployment", "web", "-n", namespace, "-o", "json"])).unwrap()
}

/// Names of the containers and of the app's environment.
fn shape(live: &Value) -> (Vec<String>, Vec<String>) {
    let names = |list: &Value| -> Vec<String> {
        let items = list.as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    };
    let containers = &live["spec"]["template"]["spec"]["containers"];
    (names(containers), names(&containers[0]["env"]))
}

/// Waits until what runs now is recorded and active; the release's name.
async fn active(world: &World, other_than: &[&str]) -> String {
    soon("the new version to be recorded and active", || async {
        let active = world.active("web").await;
        anyhow::ensure!(active.len() == 1 && !other_than.contains(&active[0].as_str()), "{active:?}");
        Ok(active[0].clone())
    })
    .await
}

async fn world() -> (&'static ControlPlane, TestNamespace, World) {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    (cp, ns, world)
}

async fn roll_back_to(world: &World, release: &str) {
    let name = world.roll_back(&to(release, rollback("web", Backend::Workload))).await.unwrap();
    let (outcome, ended) = world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
}

/// A, B and C by `kubectl apply` in one of its ways.
async fn kubectl_goes_on(arguments: &[&str]) {
    let (cp, ns, world) = world().await;
    let ns = ns.name();
    apply(cp, &web(ns, "web:a", &["BOTH", "ONLY_A"], None, None), arguments).unwrap();
    let a = active(&world, &[]).await;
    apply(cp, &web(ns, "web:b", &["BOTH", "ONLY_B"], Some("sidecar-b"), None), arguments).unwrap();
    let _b = active(&world, &[&a]).await;
    roll_back_to(&world, &a).await;
    let back = live(cp, ns);
    assert_eq!(shape(&back), (vec!["app".into()], vec!["BOTH".into(), "ONLY_A".into()]));
    // Nothing below the template belongs to us.
    let managers = back["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in managers {
        let ours = entry["manager"].as_str().is_some_and(|manager| manager.starts_with("rollback-"));
        assert!(!ours || entry["fieldsV1"]["f:spec"]["f:template"].is_null(), "{entry}");
    }
    // An empty diff: to its owner the object is as it was.
    apply(cp, &web(ns, "web:c", &["BOTH", "ONLY_C"], None, None), arguments)
        .unwrap_or_else(|error| panic!("the next apply conflicts: {error}"));
    let next = live(cp, ns);
    assert_eq!(shape(&next), (vec!["app".into()], vec!["BOTH".into(), "ONLY_C".into()]));
    active(&world, &[&a]).await;
}

#[tokio::test]
async fn kubectl_client_side_apply_goes_on() {
    kubectl_goes_on(&[]).await;
}

#[tokio::test]
async fn kubectl_server_side_apply_goes_on() {
    kubectl_goes_on(&["--server-side"]).await;
}

/// A count that an autoscaler took over after the snapshot stays (rule 15).
#[tokio::test]
async fn replicas_of_an_autoscaler_stay() {
    let (cp, ns, world) = world().await;
    let ns = ns.name();
    let arguments = ["--server-side"];
    apply(cp, &web(ns, "web:a", &["A"], None, Some(1)), &arguments).unwrap();
    let a = active(&world, &[]).await;
    // As the documentation tells users of an autoscaler: it owns the count, their manifest no longer names it.
    let scale = json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]).to_string();
    kubectl(
        cp,
        &[
            "patch",
            "deployment",
            "web",
            "-n",
            ns,
            "--subresource=scale",
            "--type=json",
            "--field-manager=autoscaler",
            "-p",
            &scale,
        ],
    );
    apply(cp, &web(ns, "web:b", &["B"], None, None), &["--server-side", "--force-conflicts"]).unwrap();
    let _b = active(&world, &[&a]).await;
    roll_back_to(&world, &a).await;
    assert_eq!(live(cp, ns)["spec"]["replicas"], 4);
    apply(cp, &web(ns, "web:c", &["C"], None, None), &arguments).unwrap();
    assert_eq!(live(cp, ns)["spec"]["replicas"], 4, "the next apply gives the count back to nobody");
}

fn chart(folder: &Path, version: &str, template: &Value) {
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    let about = json!({"apiVersion": "v2", "name": "web", "version": version});
    std::fs::write(folder.join("Chart.yaml"), about.to_string()).unwrap();
    std::fs::write(folder.join("templates/web.yaml"), template.to_string()).unwrap();
}

fn helm(cp: &ControlPlane, arguments: &[&str]) {
    let output = cp.helm().unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "helm {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn helm_upgrade_goes_on() {
    let (cp, ns, world) = world().await;
    let ns = ns.name();
    let folder = cp.dir().join(format!("chart-{ns}"));
    let path = folder.to_string_lossy().into_owned();
    chart(&folder, "1.0.0", &web(ns, "web:a", &["BOTH", "ONLY_A"], None, None));
    helm(cp, &["install", "web", &path, "-n", ns]);
    let a = active(&world, &[]).await;
    chart(&folder, "2.0.0", &web(ns, "web:b", &["BOTH", "ONLY_B"], Some("sidecar-b"), None));
    helm(cp, &["upgrade", "web", &path, "-n", ns]);
    let _b = active(&world, &[&a]).await;
    roll_back_to(&world, &a).await;
    assert_eq!(shape(&live(cp, ns)), (vec!["app".into()], vec!["BOTH".into(), "ONLY_A".into()]));
    chart(&folder, "3.0.0", &web(ns, "web:c", &["BOTH", "ONLY_C"], None, None));
    helm(cp, &["upgrade", "web", &path, "-n", ns]);
    assert_eq!(shape(&live(cp, ns)), (vec!["app".into()], vec!["BOTH".into(), "ONLY_C".into()]));
}
