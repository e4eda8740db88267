//! How things go as they should.

use std::time::Duration;

use rollback_api::annotations;
use rollback_core::pointer::Lock;
use rollback_core::workload::snapshot::Snapshot;
use serde_json::json;

use super::world::{World, annotation, name, path, started};
use crate::queue::Next;

#[tokio::test]
async fn a_change_is_recorded_when_it_is_quiet() {
    let mut world = World::new();
    assert_eq!(world.pass().await.unwrap(), Next::After(Duration::from_millis(5001)));
    world.later(3);
    world.config("11");
    assert_eq!(world.pass().await.unwrap(), Next::After(Duration::from_millis(5001)));
    world.later(4);
    assert_eq!(world.pass().await.unwrap(), Next::After(Duration::from_millis(1001)));
    assert_eq!(world.writes(), Vec::<String>::new());
    world.later(1);
    world.pass().await.unwrap();
    // The start of the deployment comes last: without it the release is half recorded.
    let expected =
        ["POST releases", "POST controllerrevisions", "POST controllerrevisions", "PATCH releases"];
    assert_eq!(world.writes(), expected);
    let release = world.release("1.0");
    let names: Vec<_> = release.spec.config.revisions.iter().map(|revision| revision.name.as_str()).collect();
    assert_eq!(names, ["configmap/config", "deployment/web"]);
    assert_eq!(name(&release).rsplit_once('-').unwrap().0, "payments");
    assert_eq!(release.metadata.labels, None);
    assert_eq!(world.snapshots(&release).len(), 2);
}

#[tokio::test]
async fn a_release_that_is_rolled_out_becomes_active_and_healthy() {
    let mut world = World::new();
    world.deployment("web", "1.0", 1);
    world.quiet().await;
    let release = world.release("1.0");
    assert_eq!(world.active(), None);
    assert_eq!(world.pointer().deploying.map(|deploying| deploying.release), Some(name(&release)));
    assert_eq!(World::condition(&release, "Healthy"), ("Unknown".into(), "RolloutInProgress".into()));

    world.deployment("web", "1.0", 2);
    let next = world.settle().await;
    let release = world.release("1.0");
    assert_eq!(world.active(), Some(name(&release)));
    assert!(annotation(&release, annotations::DEPLOYMENT_END_TIME) > started(&release));
    assert_eq!(World::condition(&release, "Healthy"), ("Unknown".into(), "RolloutInProgress".into()));
    assert!(matches!(next, Next::After(_)), "{next:?}");

    world.later(61);
    assert_eq!(world.settle().await, Next::Idle);
    let release = world.release("1.0");
    assert_eq!(World::condition(&release, "Healthy"), ("True".into(), "RolloutSucceeded".into()));
    assert_eq!(World::condition(&release, "RollbackRequired").0, "False");
    // Another process finds nothing to do either.
    world.restart();
    world.api.take_log();
    assert_eq!(world.pass().await.unwrap(), Next::Idle);
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_failing_pod_is_told_once() {
    let mut world = World::new();
    world.quiet().await;
    world.web("2.0");
    world.deployment("web", "2.0", 1);
    let crash = |restarts: u32| json!({"restartCount": restarts, "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}});
    world.pod("2.0", &crash(2));
    world.quiet().await;
    let release = world.release("2.0");
    assert_eq!(World::condition(&release, "RollbackRequired"), ("True".into(), "RolloutFailed".into()));
    let message = &release.status.unwrap().conditions[1].message;
    assert_eq!(message, "pod web-1-x container app: CrashLoopBackOff (exit code 1, 2 restarts)");
    assert_eq!(world.active(), Some(name(&world.release("1.0"))), "it never became active");
    // More restarts are no news, and neither is a moment without a crash.
    world.pod("2.0", &crash(3));
    assert_eq!(world.settle().await, Next::After(Duration::from_secs(30)));
    world.pod("2.0", &json!({"ready": false, "state": {"running": {}}}));
    world.api.take_log();
    world.pass().await.unwrap();
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn old_content_is_the_old_release_deployed_again() {
    let mut world = World::new();
    world.quiet().await;
    world.later(61);
    world.settle().await;
    let first = world.release("1.0");
    world.web("2.0");
    world.quiet().await;
    let second = world.release("2.0");
    assert_eq!(world.active(), Some(name(&second)));
    world.web("1.0");
    world.quiet().await;
    assert_eq!(world.active(), Some(name(&first)));
    assert_eq!(world.releases().len(), 2);
    let again = world.release("1.0");
    assert!(started(&again) > started(&second), "{again:?} {second:?}");
    assert_ne!(annotation(&again, annotations::ACTIVATION), annotation(&first, annotations::ACTIVATION));
    // What was measured then says nothing about now.
    assert_eq!(World::condition(&again, "Healthy"), ("Unknown".into(), "RolloutInProgress".into()));
}

/// B was recorded and never became active; its author takes it back to A by hand.
#[tokio::test]
async fn a_bad_version_that_is_taken_back_by_hand_is_not_live_any_more() {
    let mut world = World::new();
    world.quiet().await;
    let good = name(&world.release("1.0"));
    let before = world.pointer().active.unwrap().activation;
    world.web("2.0");
    world.deployment("web", "2.0", 0);
    world.quiet().await;
    assert_eq!(world.pointer().live(), Some(name(&world.release("2.0")).as_str()));
    world.web("1.0");
    world.quiet().await;
    let pointer = world.pointer();
    assert_eq!((pointer.live(), pointer.deploying.as_ref()), (Some(good.as_str()), None));
    assert_ne!(pointer.active.unwrap().activation.id, before.id);
}

#[tokio::test]
async fn a_change_that_is_taken_back_at_once_is_nothing() {
    let mut world = World::new();
    world.quiet().await;
    world.web("2.0");
    world.pass().await.unwrap();
    world.later(2);
    world.web("1.0");
    world.settle().await;
    world.later(60);
    world.web("3.0");
    assert_eq!(world.pass().await.unwrap(), Next::After(Duration::from_millis(5001)), "a new window");
    assert_eq!(world.releases().len(), 1);
}

#[tokio::test]
async fn what_a_rollback_writes_is_not_recorded() {
    let mut world = World::new();
    world.quiet().await;
    let to = name(&world.release("1.0"));
    world.web("2.0");
    world.config("20");
    world.quiet().await;
    let from = name(&world.release("2.0"));
    let lock = Lock { rollback: "rb".into(), uid: "uid-rb".into(), to, from, abandoned: None };
    world.set_pointer(&rollback_core::pointer::Pointer { lock: Some(lock), ..world.pointer() });
    world.web("1.0");
    world.later(100);
    world.api.take_log();
    assert_eq!(world.pass().await.unwrap(), Next::Idle);
    assert_eq!(world.writes(), Vec::<String>::new());
    // Somebody else's change is recorded like any other.
    world.web("3.0");
    world.quiet().await;
    assert_eq!(world.releases().len(), 3);
    assert!(started(&world.release("3.0")).is_some());
    world.restart();
    world.settle().await;
    assert_eq!(world.releases().len(), 3, "and only once");
}

#[tokio::test]
async fn configmaps_that_templates_refer_to_are_kept_beside() {
    let mut world = World::new();
    world.api.put(&path("configmaps", "shared"), json!({"metadata": {"name": "shared"}, "data": {"x": "1"}}));
    world.quiet().await;
    let release = world.release("1.0");
    let revision = &release.spec.config.revisions[1];
    let snapshots = world.snapshots(&release);
    let snapshot = snapshots.iter().find_map(|stored| Snapshot::parse(revision, stored).ok()).unwrap();
    assert_eq!(snapshot.references.len(), 1);
    assert_eq!(snapshot.references[0]["data"], json!({"x": "1"}));
    assert_eq!(snapshot.references[0]["kind"], "ConfigMap");
}

#[tokio::test]
async fn a_target_without_objects_is_none_of_our_business() {
    let mut world = World::new();
    world.quiet().await;
    for (plural, object) in [("deployments", "web"), ("configmaps", "config")] {
        world.delete(plural, object);
    }
    world.api.take_log();
    assert_eq!(world.pass().await.unwrap(), Next::Idle);
    assert_eq!(world.api.take_log(), Vec::<String>::new());
}
