//! What is recorded of labelled workloads, on a real control plane with its own Deployment, StatefulSet and DaemonSet
//! controllers. See `workload.rs` for rollbacks of what was recorded.

use kube::api::ListParams;
use rollback_api::{Backend, Release};
use rollback_core::conditions;
use rollback_e2e::objects::{World, rollback, to};
use rollback_e2e::service::{BETTER, GOOD, deploy, kubectl, objects, recorded};
use rollback_e2e::soon;
use rollback_e2e::system::with_system;
use rollback_rig::{ControlPlane, TestNamespace, namespace};
use serde_json::{Value, json};

const TARGET: &str = "shop";

async fn world() -> (&'static ControlPlane, TestNamespace, World) {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    (cp, ns, world)
}

fn workload(kind: &str, name: &str, target: &str, tag: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "labels": {"theatre.gocardless.com/target": target}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": format!("{name}:{tag}")}]},
            },
        },
    });
    match kind {
        "StatefulSet" => {
            object["spec"]["serviceName"] = json!(name);
            object["spec"]["replicas"] = json!(2);
        }
        "Deployment" => object["spec"]["replicas"] = json!(1),
        _ => {}
    }
    object
}

fn configmap(name: &str, target: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"theatre.gocardless.com/target": target}},
        "data": {"value": value},
    })
}

fn apply(cp: &ControlPlane, namespace: &str, mut objects: Vec<Value>) {
    for object in &mut objects {
        object["metadata"]["namespace"] = json!(namespace);
    }
    cp.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
}

pub(super) async fn releases(world: &World, target: &str) -> Vec<Release> {
    let mut all = world.releases.list(&ListParams::default()).await.unwrap().items;
    all.retain(|release| release.spec.config.target_name == target);
    all
}

/// Waits for an active release of the target that is none of these.
async fn next_active(world: &World, target: &str, but: &[&str]) -> String {
    soon("another release to become active", || async {
        let active = world.active(target).await;
        match active.as_slice() {
            [one] if !but.contains(&one.as_str()) => Ok(one.clone()),
            other => anyhow::bail!("active: {other:?}"),
        }
    })
    .await
}

pub(super) fn message(release: &Release, type_: &str) -> String {
    let status = release.status.clone().unwrap_or_default();
    conditions::find(&status.conditions, type_).map(|found| found.message.clone()).unwrap_or_default()
}

/// Everything that is to be recorded by now is: a target that changed later is recorded.
async fn quiet(cp: &ControlPlane, world: &World, name: &str) {
    let target = format!("later-{name}");
    apply(cp, &world.namespace, vec![configmap(&target, &target, "1")]);
    next_active(world, &target, &[]).await;
}

/// Every kind becomes healthy, fails with its reason, and comes back.
#[tokio::test]
async fn all_kinds_of_workloads() {
    let (cp, ns, world) = world().await;
    let version = |tag: &str, config: &str| {
        vec![
            configmap("config", TARGET, config),
            workload("DaemonSet", "agent", TARGET, tag),
            workload("Deployment", "web", TARGET, tag),
            workload("StatefulSet", "db", TARGET, tag),
        ]
    };
    apply(cp, ns.name(), version("1.0", "1"));
    let good = next_active(&world, TARGET, &[]).await;
    world.condition(&good, "Healthy", "True").await;
    let release = world.releases.get(&good).await.unwrap();
    let names: Vec<&str> = release.spec.config.revisions.iter().map(|revision| &*revision.name).collect();
    assert_eq!(names, ["configmap/config", "daemonset/agent", "deployment/web", "statefulset/db"]);
    for (kind, name) in [("DaemonSet", "agent"), ("StatefulSet", "db")] {
        apply(cp, ns.name(), vec![workload(kind, name, TARGET, "2.0-crash-loop")]);
        let bad = soon("the bad version to be recorded as such", || async {
            let all = releases(&world, TARGET).await;
            let bad = all
                .iter()
                .find(|release| message(release, "RollbackRequired").starts_with(&format!("pod {name}-")));
            let bad = bad.ok_or_else(|| anyhow::anyhow!("{} releases, none of them", all.len()))?;
            Ok(bad.clone())
        })
        .await;
        assert!(message(&bad, "Healthy").contains("container app: CrashLoopBackOff"), "{bad:?}");
        let created = world.roll_back(&rollback(TARGET, Backend::Workload)).await.unwrap();
        let (outcome, ended) = world.ended(&created).await;
        assert_eq!(outcome, Ok(()), "{name}: {:?}", ended.status);
        world.only_active(TARGET, &good).await;
        world.condition(&good, "Healthy", "True").await;
    }
    quiet(cp, &world, "kinds").await;
    assert_eq!(releases(&world, TARGET).await.len(), 3);
}

/// More than ten objects are two revisions, and come back all the same (rule 17).
#[tokio::test]
async fn a_target_of_many_objects() {
    let (cp, ns, world) = world().await;
    let version = |tag: &str, config: &str| {
        let mut all: Vec<Value> =
            (0..10).map(|n| workload("Deployment", &format!("web-{n}"), TARGET, tag)).collect();
        all.extend((0..2).map(|n| configmap(&format!("config-{n}"), TARGET, config)));
        all
    };
    apply(cp, ns.name(), version("1.0", "1"));
    let good = next_active(&world, TARGET, &[]).await;
    let release = world.releases.get(&good).await.unwrap();
    let names: Vec<&str> = release.spec.config.revisions.iter().map(|revision| &*revision.name).collect();
    assert_eq!(names, ["config", "workloads"]);
    apply(cp, ns.name(), version("1.1", "2"));
    next_active(&world, TARGET, &[&good]).await;
    let created = world.roll_back(&to(&good, rollback(TARGET, Backend::Workload))).await.unwrap();
    let (outcome, ended) = world.ended(&created).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
    let images = kubectl(
        cp,
        &[
            "get",
            "deployments",
            "-n",
            ns.name(),
            "-o",
            "jsonpath={.items[*].spec.template.spec.containers[0].image}",
        ],
    );
    assert!(images.split(' ').all(|image| image.ends_with(":1.0")), "{images}");
    // The rollback's own writes, half of which the aggregate of neither release holds, made no release.
    quiet(cp, &world, "many").await;
    assert_eq!(releases(&world, TARGET).await.len(), 2);
    world.only_active(TARGET, &good).await;
}

/// What the bad version added stays, and is no new release.
#[tokio::test]
async fn what_a_rollback_leaves_is_not_recorded() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    let good = recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    let mut better = objects(ns.name(), TARGET, BETTER);
    better.push(workload("Deployment", "extra", TARGET, "1.0"));
    apply(cp, ns.name(), better);
    let bad = next_active(&world, TARGET, &[&good]).await;
    let release = world.releases.get(&bad).await.unwrap();
    assert!(
        release.spec.config.revisions.iter().any(|revision| revision.name == "deployment/extra"),
        "{release:?}"
    );
    let created = world.roll_back(&to(&good, rollback(TARGET, Backend::Workload))).await.unwrap();
    assert_eq!(world.ended(&created).await.0, Ok(()));
    kubectl(cp, &["get", "deployment", "extra", "-n", ns.name()]);
    quiet(cp, &world, "left").await;
    world.only_active(TARGET, &good).await;
    let before = releases(&world, TARGET).await.len();
    // The next change counts again.
    apply(cp, ns.name(), vec![workload("Deployment", "extra", TARGET, "1.1")]);
    next_active(&world, TARGET, &[&good, &bad]).await;
    assert_eq!(releases(&world, TARGET).await.len(), before + 1);
}

/// Nothing runs, so nothing is healthy or not (rule 20).
#[tokio::test]
async fn nothing_that_runs_is_not_judged() {
    let (cp, ns, world) = world().await;
    let mut web = workload("Deployment", "web", TARGET, "1.0");
    web["spec"]["replicas"] = json!(0);
    apply(cp, ns.name(), vec![web]);
    let active = next_active(&world, TARGET, &[]).await;
    soon("the release to be unknown for that reason", || async {
        let status = world.releases.get(&active).await?.status.unwrap_or_default();
        let health = conditions::find(&status.conditions, "Healthy").cloned();
        let reason = health.map(|health| (health.status, health.reason));
        anyhow::ensure!(reason == Some(("Unknown".into(), "NothingRunning".into())), "{reason:?}");
        Ok(())
    })
    .await;
    kubectl(cp, &["scale", "deployment", "web", "-n", ns.name(), "--replicas=1"]);
    world.condition(&active, "Healthy", "True").await;
    assert_eq!(releases(&world, TARGET).await.len(), 1, "replicas are no content");
}

/// A target that no release can be named after is refused with a sentence on the object.
#[tokio::test]
async fn what_cannot_be_recorded_is_said_on_the_object() {
    let (cp, ns, world) = world().await;
    apply(cp, ns.name(), vec![configmap("config", "Shop_1", "1")]);
    soon("the event", || async {
        let events = kubectl(cp, &["get", "events", "-n", ns.name(), "-o", "json"]);
        let events: Value = serde_json::from_str(&events)?;
        let found =
            events["items"].as_array().into_iter().flatten().find(|event| event["reason"] == "NotRecorded");
        let event = found.ok_or_else(|| anyhow::anyhow!("no such event"))?;
        let text = event["message"].as_str().unwrap_or_default();
        anyhow::ensure!(event["involvedObject"]["name"] == "config", "{event}");
        anyhow::ensure!(text.contains("\"Shop_1\" is not recorded") && text.contains("DNS name"), "{text}");
        Ok(())
    })
    .await;
    assert_eq!(releases(&world, "Shop_1").await.len(), 0);
}
