//! The workload backend: what is recorded, how healthy it is, and that everything goes back together.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::ListParams;
use rollback_api::Backend;
use rollback_api::conditions::SucceededReason;
use rollback_core::conditions;
use rollback_e2e::objects::{World, rollback, to};
use rollback_e2e::service::{BAD, BETTER, GOOD, Version, deploy, kubectl, recorded, runs};
use rollback_e2e::soon;
use rollback_e2e::system::{quick, with_system};
use rollback_rig::install::ready;
use rollback_rig::nodes::{configmap_digest, configmaps_seen};
use rollback_rig::{ControlPlane, Options, TestNamespace, namespace};

const TARGET: &str = "payments";

async fn world() -> (&'static ControlPlane, TestNamespace, World) {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    (cp, ns, world)
}

/// The main job: a bad version is out, everything goes back to the good one.
#[tokio::test]
async fn a_bad_version_is_taken_back() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    let good = recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    world.condition(&good, "Active", "True").await;
    let release = world.releases.get(&good).await.unwrap();
    let names: Vec<&str> =
        release.spec.config.revisions.iter().map(|revision| revision.name.as_str()).collect();
    assert_eq!(names, ["configmap/payments-config", "deployment/web", "deployment/worker"]);

    deploy(cp, ns.name(), TARGET, BAD);
    let bad = recorded(cp, ns.name(), BAD, "RollbackRequired", "True").await;
    assert_ne!(bad, good);
    // It never finished its rollout, so what is active is still the good one (rule 11).
    world.only_active(TARGET, &good).await;
    let status = world.releases.get(&bad).await.unwrap().status.unwrap();
    let health = conditions::find(&status.conditions, "Healthy").unwrap();
    assert_eq!(health.status, "False");
    assert!(
        health.message.contains("web-") || health.message.contains("worker-"),
        "names the pod: {}",
        health.message
    );

    let name = world.roll_back(&rollback(TARGET, Backend::Workload)).await.unwrap();
    let (outcome, ended) = world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
    assert_eq!(ended.spec.from_release_ref.unwrap().name.as_deref(), Some(bad.as_str()));
    assert_eq!(ended.spec.to_release_ref.name.as_deref(), Some(good.as_str()));
    soon("the good version to run", || async { runs(cp, ns.name(), TARGET, GOOD) }).await;
    soon("the bad release to be marked as left", || async {
        let status = world.releases.get(&bad).await?.status.unwrap_or_default();
        anyhow::ensure!(status.left_by_rollback.as_deref() == Some(name.as_str()), "{status:?}");
        Ok(())
    })
    .await;
    world.only_active(TARGET, &good).await;
    // Our own write is no new release.
    assert_eq!(world.releases.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

/// Pods that start after the rollback see the ConfigMap of the version they belong to.
#[tokio::test]
async fn configuration_comes_back_before_the_pods_that_read_it() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    let good = recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    deploy(cp, ns.name(), TARGET, BETTER);
    recorded(cp, ns.name(), BETTER, "Healthy", "True").await;
    let name = world.roll_back(&to(&good, rollback(TARGET, Backend::Workload))).await.unwrap();
    assert_eq!(world.ended(&name).await.0, Ok(()));
    soon("the good version to run", || async { runs(cp, ns.name(), TARGET, GOOD) }).await;
    let client = cp.client().unwrap();
    let config =
        Api::<ConfigMap>::namespaced(client.clone(), ns.name()).get("payments-config").await.unwrap();
    let pods = Api::<Pod>::namespaced(client, ns.name()).list(&ListParams::default()).await.unwrap();
    let ready = pods.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut seen = 0;
    for pod in ready {
        let image = pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default();
        assert!(image.ends_with(":1.0"), "{image}");
        assert_eq!(
            configmaps_seen(pod).unwrap()["payments-config"].sha256,
            configmap_digest(&config),
            "{:?}",
            pod.metadata.name
        );
        seen += 1;
    }
    assert_eq!(seen, 3);
}

/// Going back to old content is the old release again, whoever does it (rule 16).
#[tokio::test]
async fn old_content_is_the_old_release() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    let good = recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    deploy(cp, ns.name(), TARGET, BETTER);
    let better = recorded(cp, ns.name(), BETTER, "Healthy", "True").await;
    world.condition(&better, "Active", "True").await;
    deploy(cp, ns.name(), TARGET, GOOD);
    world.condition(&good, "Active", "True").await;
    // A restart changes no content: no release of its own.
    kubectl(cp, &["rollout", "restart", "deployment/web", "-n", ns.name()]);
    kubectl(cp, &["rollout", "status", "deployment/web", "-n", ns.name(), "--timeout=60s"]);
    soon("a quiet target", || async { runs(cp, ns.name(), TARGET, GOOD) }).await;
    assert_eq!(world.releases.list(&ListParams::default()).await.unwrap().items.len(), 2);
    world.only_active(TARGET, &good).await;
}

/// The reason that a person needs: which pod, which container, what state.
#[tokio::test]
async fn health_says_which_pod_and_why() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    for (tag, words) in [
        ("3.0-crash-loop", ["CrashLoopBackOff", "app"]),
        ("4.0-image-missing", ["ImagePullBackOff", "app"]),
        ("5.0-bad-config", ["CreateContainerConfigError", "app"]),
    ] {
        let version = Version { tag, rate: "1" };
        deploy(cp, ns.name(), TARGET, version);
        let name = recorded(cp, ns.name(), version, "RollbackRequired", "True").await;
        let status = world.releases.get(&name).await.unwrap().status.unwrap();
        let message = &conditions::find(&status.conditions, "RollbackRequired").unwrap().message;
        assert!(
            words.iter().all(|word| message.contains(word)) && message.contains("pod"),
            "{tag}: {message}"
        );
    }
}

/// What cannot work is refused before anything is touched, with the command that mends it (rule 18).
#[tokio::test]
async fn a_paused_deployment_is_refused_untouched() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    let good = recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    deploy(cp, ns.name(), TARGET, BETTER);
    let better = recorded(cp, ns.name(), BETTER, "Healthy", "True").await;
    world.condition(&better, "Active", "True").await;
    kubectl(cp, &["rollout", "pause", "deployment/worker", "-n", ns.name()]);
    let name = world.roll_back(&to(&good, rollback(TARGET, Backend::Workload))).await.unwrap();
    let (outcome, ended) = world.ended(&name).await;
    assert!(
        matches!(outcome, Err(SucceededReason::PreconditionFailed | SucceededReason::DeploymentFailed)),
        "{outcome:?}"
    );
    let message = ended.status.unwrap().message.unwrap();
    assert!(message.contains("kubectl rollout resume") && message.contains("worker"), "{message}");
    runs(cp, ns.name(), TARGET, BETTER).unwrap();
    // Mended, it works.
    kubectl(cp, &["rollout", "resume", "deployment/worker", "-n", ns.name()]);
    let name = world.roll_back(&to(&good, rollback(TARGET, Backend::Workload))).await.unwrap();
    assert_eq!(world.ended(&name).await.0, Ok(()));
}

/// A ConfigMap that the newer version deleted is there again before the pods need it.
#[tokio::test]
async fn what_the_newer_version_deleted_comes_back() {
    let (cp, ns, world) = world().await;
    deploy(cp, ns.name(), TARGET, GOOD);
    let good = recorded(cp, ns.name(), GOOD, "Healthy", "True").await;
    kubectl(cp, &["delete", "deployment", "worker", "-n", ns.name()]);
    let without = soon("the smaller set to be recorded", || async {
        let active = world.active(TARGET).await;
        anyhow::ensure!(active.len() == 1 && active[0] != good, "{active:?}");
        Ok(active[0].clone())
    })
    .await;
    assert_ne!(without, good);
    let name = world.roll_back(&to(&good, rollback(TARGET, Backend::Workload))).await.unwrap();
    let (outcome, ended) = world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
    soon("the good version to run", || async { runs(cp, ns.name(), TARGET, GOOD) }).await;
}

/// What changed while the controller was down is recorded when it starts.
#[tokio::test]
async fn releases_made_while_the_controller_was_down_are_caught_up() {
    let cp = ControlPlane::launch(Options::default()).await.unwrap();
    let installed = cp.install(&quick()).await.unwrap();
    cp.apply("apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n").unwrap();
    let world = World::new(cp.client().unwrap(), "shop");
    deploy(&cp, "shop", TARGET, GOOD);
    let good = recorded(&cp, "shop", GOOD, "Healthy", "True").await;
    installed.controller.kill().unwrap();
    deploy(&cp, "shop", TARGET, BETTER);
    soon("the better version to run", || async { runs(&cp, "shop", TARGET, BETTER) }).await;
    let again = installed.controller_again.start().unwrap();
    ready(&again, installed.controller_admin).await.unwrap();
    let better = recorded(&cp, "shop", BETTER, "Healthy", "True").await;
    world.condition(&better, "Active", "True").await;
    let previous = world.releases.get(&better).await.unwrap().status.unwrap().previous_release.unwrap();
    assert_eq!(previous.release_ref, Some(good));
    again.terminate().unwrap();
    again.wait(Duration::from_secs(30)).await.unwrap();
}
