use rstest::rstest;
use serde_json::json;

use super::*;

const NOW: &str = "2026-11-01T10:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

const LIMITS: Limits =
    Limits { minimum_active: SignedDuration::from_secs(60), failure_after: SignedDuration::from_secs(120) };

fn deploying() -> Subject {
    Subject { active_since: None, proven: false }
}

fn active(seconds: i64) -> Subject {
    Subject { active_since: Some(ago(seconds)), proven: false }
}

/// A Deployment of two pods whose rollout stands so.
fn web(updated: u32, available: u32) -> Value {
    json!({
        "metadata": {"name": "web", "uid": "web", "generation": 2, "annotations": {"deployment.kubernetes.io/revision": "2"}},
        "spec": {"replicas": 2, "selector": {}, "template": {}},
        "status": {"observedGeneration": 2, "replicas": updated, "updatedReplicas": updated, "availableReplicas": available},
    })
}

/// A pod of a ReplicaSet that is not ready since it was created.
fn pod(name: &str, owner: &str, created: Timestamp, container: &Value) -> Pod {
    let mut container = container.clone();
    for (key, value) in [
        ("name", json!("app")),
        ("image", json!("web:1")),
        ("imageID", json!("")),
        ("ready", json!(false)),
        ("restartCount", json!(0)),
    ] {
        if container[key].is_null() {
            container[key] = value;
        }
    }
    let ready = container["ready"] == true;
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "creationTimestamp": created.to_string(),
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": created.to_string()}],
            "containerStatuses": [container],
        },
    }))
    .unwrap()
}

fn ready(name: &str) -> Pod {
    pod(name, "new", ago(300), &json!({"ready": true, "state": {"running": {}}}))
}

fn judge(object: &Value, pods: Vec<Pod>, subject: Subject) -> Assessment {
    let key = ObjectKey::new(WorkloadKind::Deployment, "web");
    let template = Some(Template { owner: "new".into(), revision: None });
    assess(&[Running { key: &key, object, template, pods }], subject, LIMITS, now())
}

fn required(assessment: &Assessment) -> Option<&str> {
    match &assessment.verdict {
        HealthVerdict::RollbackRequired(why) => Some(why),
        HealthVerdict::Healthy(_) | HealthVerdict::InProgress(_) | HealthVerdict::NothingRunning => None,
    }
}

/// Each way in which the containers of a release fail, seen 30 seconds after the pod was created.
#[rstest]
#[case::crash_loop(
    json!({"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}),
    "pod web-1 container app: CrashLoopBackOff (exit code 1, 4 restarts)"
)]
#[case::between_two_crashes(
    json!({"restartCount": 2, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
    "pod web-1 container app: OOMKilled (exit code 137, 2 restarts)"
)]
#[case::running_again_for_a_moment(
    json!({"restartCount": 3, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}}),
    "pod web-1 container app: Error (exit code 2, 3 restarts)"
)]
#[case::image_missing(
    json!({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"web:1\""}}}),
    "pod web-1 container app: ImagePullBackOff (Back-off pulling image \"web:1\")"
)]
#[case::image_name(
    json!({"state": {"waiting": {"reason": "InvalidImageName"}}}),
    "pod web-1 container app: InvalidImageName"
)]
#[case::bad_config(
    json!({"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "configmap \"c\" not found"}}}),
    "pod web-1 container app: CreateContainerConfigError (configmap \"c\" not found)"
)]
fn a_container_that_cannot_run_condemns_the_release(#[case] container: Value, #[case] why: &str) {
    let broken = pod("web-1", "new", ago(30), &container);
    for object in [web(1, 0), web(2, 2)] {
        let found = judge(&object, vec![broken.clone(), ready("web-0")], deploying());
        assert_eq!(required(&found), Some(why));
        // The same container of the version before says nothing.
        let old = pod("web-1", "old", ago(30), &container);
        assert_eq!(required(&judge(&object, vec![old, ready("web-0")], deploying())), None);
        // Nor does a pod that is going away.
        let mut going = broken.clone();
        going.metadata.deletion_timestamp = going.metadata.creation_timestamp.clone();
        assert_eq!(required(&judge(&object, vec![going, ready("web-0")], deploying())), None);
    }
}

/// What may be an accident, or mended in a moment, is no verdict yet; it is looked at again in time.
#[rstest]
#[case::one_restart(
    json!({"restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}), 5, 115
)]
#[case::image_young(json!({"state": {"waiting": {"reason": "ErrImagePull"}}}), 5, 5)]
#[case::config_young(json!({"state": {"waiting": {"reason": "CreateContainerConfigError"}}}), 9, 1)]
#[case::starting(json!({"state": {"waiting": {"reason": "ContainerCreating"}}}), 30, 90)]
#[case::not_ready(json!({"state": {"running": {}}}), 119, 1)]
#[case::ended_well(json!({"restartCount": 5, "state": {"terminated": {"exitCode": 0}}}), 30, 90)]
fn what_may_pass_is_no_verdict(#[case] container: Value, #[case] age: i64, #[case] again_in: i64) {
    let found =
        judge(&web(2, 1), vec![pod("web-1", "new", ago(age), &container), ready("web-0")], deploying());
    assert_eq!(found.verdict, HealthVerdict::InProgress("Deployment web: 1 of 2 pods ready".into()));
    assert_eq!(found.again, Some(ago(-again_in)));
}

#[rstest]
#[case::not_ready(json!({"state": {"running": {}}}), "pod web-1 container app: running, not ready")]
#[case::creating(json!({"state": {"waiting": {"reason": "ContainerCreating"}}}), "pod web-1 container app: ContainerCreating, not ready")]
#[case::nothing_known(json!({"state": {}}), "pod web-1 is not ready")]
fn a_pod_that_is_never_ready_condemns_the_release_in_the_end(#[case] container: Value, #[case] why: &str) {
    let found = judge(&web(2, 1), vec![pod("web-1", "new", ago(120), &container)], deploying());
    assert_eq!(required(&found), Some(why));
}

#[test]
fn an_image_that_is_gone_after_a_crash_gets_the_same_time() {
    let state = json!({"waiting": {"reason": "ImagePullBackOff"}});
    let crashed = |when: Timestamp| json!({"restartCount": 1, "state": state, "lastState": {"terminated": {"exitCode": 1, "finishedAt": when.to_string()}}});
    let judged = |when| judge(&web(2, 1), vec![pod("web-1", "new", ago(5000), &crashed(when))], deploying());
    assert_eq!(required(&judged(ago(9))), None);
    assert!(required(&judged(ago(10))).is_some());
}

#[test]
fn pods_that_find_no_node_and_init_containers_are_named() {
    let mut pending = pod("web-1", "new", ago(120), &json!({}));
    pending.status = serde_json::from_value(json!({
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient cpu."}],
    }))
    .unwrap();
    assert_eq!(
        required(&judge(&web(2, 0), vec![pending], deploying())),
        Some("pod web-1 is not scheduled: Unschedulable (0/2 nodes are available: 2 Insufficient cpu.)")
    );
    let mut initialising =
        pod("web-1", "new", ago(30), &json!({"state": {"waiting": {"reason": "PodInitializing"}}}));
    let status = initialising.status.as_mut().unwrap();
    status.init_container_statuses = serde_json::from_value(json!([
        {"name": "migrate", "image": "x", "imageID": "", "ready": false, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 3}}},
    ]))
    .unwrap();
    assert_eq!(
        required(&judge(&web(2, 0), vec![initialising], deploying())),
        Some("pod web-1 container migrate: CrashLoopBackOff (exit code 3, 2 restarts)")
    );
}

#[test]
fn a_workload_whose_controller_gave_up_condemns_the_release() {
    let mut slow = web(2, 1);
    slow["status"]["conditions"] = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet \"web-new\" has timed out progressing."}]);
    assert_eq!(
        required(&judge(&slow, vec![ready("web-0")], deploying())),
        Some("Deployment web: 1 of 2 pods ready: ReplicaSet \"web-new\" has timed out progressing.")
    );
    // The pod says more.
    let broken = pod("web-1", "new", ago(30), &json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}}));
    let found = judge(&slow, vec![broken], deploying());
    assert!(
        required(&found).unwrap().starts_with("pod web-1 container app: ImagePullBackOff; Deployment web:"),
        "{found:?}"
    );
    for (since, condemned) in [(ago(9), false), (ago(10), true)] {
        let mut refused = web(0, 0);
        refused["status"]["conditions"] = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: pods=2", "lastTransitionTime": since.to_string()}]);
        let found = judge(&refused, Vec::new(), deploying());
        let expected = condemned.then_some("Deployment web: pods cannot be created: exceeded quota: pods=2");
        assert_eq!(required(&found), expected);
    }
}

/// Healthy needs a finished rollout, a ready pod and a minimum time.
#[test]
fn healthy_after_a_minimum_time() {
    let pods = || vec![ready("web-0"), ready("web-1")];
    let verdict = |object: &Value, subject| judge(object, pods(), subject).verdict;
    let done = web(2, 2);
    assert_eq!(
        verdict(&web(2, 1), active(100)),
        HealthVerdict::InProgress("Deployment web: 1 of 2 pods ready".into())
    );
    assert_eq!(
        verdict(&done, deploying()),
        HealthVerdict::InProgress("rolled out: 2 pods are ready; about to become active".into())
    );
    let young = judge(&done, pods(), active(59));
    assert_eq!(
        young.verdict,
        HealthVerdict::InProgress(
            "rolled out: 2 pods are ready; healthy if it stays so until 2026-11-01T10:00:01Z".into()
        )
    );
    assert_eq!(young.again, Some(ago(-1)));
    let healthy = HealthVerdict::Healthy("every workload is rolled out: 2 pods are ready".into());
    assert_eq!(judge(&done, pods(), active(60)), Assessment { verdict: healthy, again: None });
}

#[test]
fn nothing_that_runs_is_no_verdict() {
    let mut none = web(0, 0);
    none["spec"]["replicas"] = json!(0);
    assert_eq!(judge(&none, Vec::new(), active(1000)).verdict, HealthVerdict::NothingRunning);
    assert_eq!(
        assess(&[], active(1000), LIMITS, now()).verdict,
        HealthVerdict::NothingRunning,
        "only ConfigMaps"
    );
    // Finished, but the pods were listed before they were there.
    let found = judge(&web(2, 2), Vec::new(), active(1000)).verdict;
    assert!(matches!(found, HealthVerdict::InProgress(_)), "{found:?}");
}

/// One pod of a release that was healthy may fail with its node; all of them do not.
#[test]
fn a_proven_release_is_condemned_only_as_a_whole() {
    let broken = |name| {
        let container = json!({"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        pod(name, "new", ago(30), &container)
    };
    let proven = Subject { active_since: Some(ago(1000)), proven: true };
    let found = judge(&web(2, 1), vec![ready("web-0"), broken("web-1")], proven);
    assert_eq!(found.verdict, HealthVerdict::InProgress("Deployment web: 1 of 2 pods ready".into()));
    assert!(required(&judge(&web(2, 1), vec![ready("web-0"), broken("web-1")], active(1000))).is_some());
    let found = judge(&web(2, 0), vec![broken("web-0"), broken("web-1")], proven);
    assert_eq!(
        required(&found),
        Some(
            "pod web-0 container app: CrashLoopBackOff (4 restarts); pod web-1 container app: CrashLoopBackOff (4 restarts)"
        )
    );
}

#[test]
fn a_message_names_the_first_few() {
    let broken = |n: usize| {
        pod(
            &format!("web-{n}"),
            "new",
            ago(30),
            &json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}}),
        )
    };
    let found = judge(&web(5, 0), (0..5).map(broken).collect(), deploying());
    assert!(
        required(&found).unwrap().ends_with("pod web-2 container app: ImagePullBackOff; and 2 more"),
        "{found:?}"
    );
}
