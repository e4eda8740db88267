//! The workload backend by itself on a real API server: who owns what afterwards, what a crash or somebody else's change
//! leaves, and how the rollout is followed.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use rollback_core::backend::{Cancellation, DeploymentState, ErrorClass};
use rollback_core::workload::restore::{self, Need, need};
use rollback_e2e::bench::{Bench, configmap, deployment, key};
use rollback_e2e::soon;
use serde_json::{Value, json};

/// Names of the containers and of the first one's environment.
fn shape(live: &Value) -> (Vec<String>, Vec<String>) {
    let names = |list: &Value| -> Vec<String> {
        let items = list.as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    };
    let containers = &live["spec"]["template"]["spec"]["containers"];
    (names(containers), names(&containers[0]["env"]))
}

fn names(containers: &[&str], env: &[&str]) -> (Vec<String>, Vec<String>) {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    (owned(containers), owned(env))
}

fn version(live: &Value) -> u64 {
    live["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// A, B and C by `kubectl apply` in one of its ways; an autoscaler takes the replicas over in B.
async fn kubectl_goes_on(arguments: &[&str]) {
    let bench = Bench::new().await;
    bench
        .apply(&[deployment("web", "web:a", &["BOTH", "ONLY_A"], None), configmap("c", "a")], arguments)
        .unwrap();
    let a = bench.record().await;
    bench
        .apply(
            &[deployment("web", "web:b", &["BOTH", "ONLY_B"], Some("sidecar-b")), configmap("c", "b")],
            arguments,
        )
        .unwrap();
    let scale = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]).to_string();
    let patch =
        ["patch", "deployment/web", "--subresource=scale", "--type=json", "--field-manager=autoscaler", "-p"];
    bench.kubectl(&[&patch[..], &[&scale]].concat());

    let done = bench.roll_back(&a, json!({})).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
    let live = bench.live("deployment/web");
    assert_eq!(shape(&live), names(&["app"], &["BOTH", "ONLY_A"]));
    assert_eq!(live["spec"]["replicas"], 3, "an autoscaler's count stays");
    assert_eq!(bench.live("configmap/c")["data"], json!({"rate": "a", "a": "only here"}));
    for object in [&live, &bench.live("configmap/c")] {
        for entry in object["metadata"]["managedFields"].as_array().unwrap() {
            if entry["manager"] == "rollback-controller" {
                let key =
                    json!({"f:metadata": {"f:annotations": {"f:theatre.gocardless.com/attempt-key": {}}}});
                assert_eq!(entry["fieldsV1"], key, "we own the key and nothing else");
            }
        }
    }

    bench
        .apply(&[deployment("web", "web:c", &["BOTH", "ONLY_C"], None), configmap("c", "c")], arguments)
        .unwrap_or_else(|error| panic!("the next apply fails: {error}"));
    let live = bench.live("deployment/web");
    assert_eq!(shape(&live), names(&["app"], &["BOTH", "ONLY_C"]), "no field of A or B is left");
    assert_eq!(live["spec"]["replicas"], 3);
    assert_eq!(bench.live("configmap/c")["data"], json!({"rate": "c", "c": "only here"}));
}

#[tokio::test]
async fn client_side_apply_goes_on() {
    kubectl_goes_on(&[]).await;
}

#[tokio::test]
async fn server_side_apply_goes_on() {
    kubectl_goes_on(&["--server-side"]).await;
}

/// Configuration first; the same key twice is one deployment; the Rollback owns the snapshots beside the Release.
#[tokio::test]
async fn one_key_is_one_deployment() {
    let bench = Bench::new().await;
    let all = |image: &str, value: &str| {
        [deployment("web", image, &[], None), deployment("idle", "idle:1", &[], None), configmap("c", value)]
    };
    bench.apply(&all("web:a", "a"), &["--server-side"]).unwrap();
    let a = bench.record().await;
    bench.apply(&all("web:b", "b"), &["--server-side"]).unwrap();
    let revision = |object: &str| {
        bench.live(object)["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone()
    };
    soon("the idle deployment to be rolled out", || async {
        anyhow::ensure!(revision("deployment/idle") == "1", "it is not");
        Ok(())
    })
    .await;
    let target = bench.rollback_to(&a).await;
    let plan = bench.plan(&target, &a, &json!({})).await.unwrap();
    let attempt = format!("{}-1", target.rollback_uid);
    assert_eq!(
        bench.deployer.cancel(&target, &attempt, "").await,
        Ok(Cancellation::Stopped),
        "nothing is written yet"
    );

    let begun = bench.deployer.trigger(&target, &attempt, &plan).await.unwrap();
    assert_eq!(begun.id, format!("workload-{}-{}-1", bench.ns(), target.rollback));
    let objects = ["configmap/c", "deployment/idle", "deployment/web"];
    let written = objects.map(|object| bench.live(object)["metadata"]["generation"].clone());
    assert!(version(&bench.live("configmap/c")) < version(&bench.live("deployment/web")));
    let template = |object: &str| bench.live(object)["spec"]["template"].clone();
    let before = objects.map(template);
    let again = bench.deployer.trigger(&target, &attempt, &plan).await.unwrap();
    assert_eq!(again.id, begun.id);
    assert_eq!(bench.deployer.find(&target, &attempt, &plan).await.unwrap().unwrap().id, begun.id);
    assert_eq!(objects.map(template), before);
    assert_eq!(objects.map(|object| bench.live(object)["metadata"]["generation"].clone()), written);

    let snapshots: Api<ControllerRevision> = Api::namespaced(bench.cp.client().unwrap(), bench.ns());
    for revision in &plan.revisions {
        let name = rollback_core::workload::snapshot::object_name(&target.to, revision);
        let owners = snapshots.get(&name).await.unwrap().metadata.owner_references.unwrap();
        let kinds: Vec<&str> = owners.iter().map(|owner| owner.kind.as_str()).collect();
        assert_eq!(kinds, ["Release", "Rollback"], "once, although triggered twice");
    }
    match bench.deployer.cancel(&target, &attempt, &begun.id).await.unwrap() {
        Cancellation::NotStopped(why) => assert!(why.contains("deployment/web"), "{why}"),
        Cancellation::Stopped => panic!("the rollout goes on"),
    }
    let done = bench.follow(&target, &attempt, &begun.id, &plan).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
    assert_eq!(revision("deployment/idle"), "1", "what had the content already is not rolled out again");
    assert_eq!(revision("deployment/web"), "3");
    // Without the plan, as for an attempt that an ended Rollback left.
    let late = bench.deployer.poll(&target, &attempt, &begun.id, None).await.unwrap();
    assert_eq!(late.state, DeploymentState::Succeeded(None));
}

/// A crash after any number of writes: the next process finds nothing finished and finishes it, with the same end.
#[tokio::test]
async fn a_crash_between_two_writes_changes_nothing() {
    let bench = Bench::new().await;
    let all = |image: &str, value: &str| {
        let mut web = deployment("web", image, &[value], None);
        web["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
            json!([{"configMapRef": {"name": "c"}}]);
        [configmap("c", value), web, deployment("worker", image, &[value], None)]
    };
    bench.apply(&all("web:a", "a"), &["--server-side"]).unwrap();
    let a = bench.record().await;
    let objects = ["configmap/c", "deployment/web", "deployment/worker"];
    let snapshots = objects.map(|object| bench.live(object));
    let client = bench.cp.client().unwrap();
    // Two writes an object: content, then ownership.
    for crash_after in 0..=2 * objects.len() {
        bench.apply(&all("web:b", "b"), &["--server-side", "--force-conflicts"]).unwrap();
        let target = bench.rollback_to(&a).await;
        let plan = bench.plan(&target, &a, &json!({})).await.unwrap();
        let attempt = format!("{}-1", target.rollback_uid);
        let mut writes = 0;
        for (object, snapshot) in objects.iter().zip(&snapshots) {
            while writes < crash_after {
                let live = bench.live(object);
                let path = live["kind"].as_str().unwrap().to_lowercase();
                let group = if path == "configmap" { "api/v1" } else { "apis/apps/v1" };
                match need(&key(&live), Some(&live), snapshot, &attempt) {
                    Need::Restore(new) | Need::Mark(new) | Need::HandBack(new) => {
                        let url = format!("/{group}/namespaces/{}/{object}", bench.ns());
                        let url = url.replace(&format!("{path}/"), &format!("{path}s/"));
                        let request = http_put(&format!("{url}?fieldManager=rollback-controller"), &new);
                        match client.request::<Value>(request).await {
                            Ok(_) => writes += 1,
                            // The status changed meanwhile.
                            Err(kube::Error::Api(status)) if status.code == 409 => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    Need::Nothing => break,
                    Need::Create(_) => panic!("{object} is there"),
                }
            }
        }
        let found = bench.deployer.find(&target, &attempt, &plan).await.unwrap();
        assert_eq!(found.is_some(), writes == 2 * objects.len(), "after {writes} writes");
        let begun = bench.deployer.trigger(&target, &attempt, &plan).await.unwrap();
        for (object, snapshot) in objects.iter().zip(&snapshots) {
            let live = bench.live(object);
            assert_eq!(
                need(&key(&live), Some(&live), snapshot, &attempt),
                Need::Nothing,
                "{object} after {writes} writes"
            );
        }
        let done = bench.follow(&target, &attempt, &begun.id, &plan).await.unwrap();
        assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
    }
    // The owner finds its object as it was.
    bench.apply(&all("web:c", "c"), &["--server-side"]).unwrap();
    assert_eq!(shape(&bench.live("deployment/web")), names(&["app"], &["c"]));
}

fn http_put(path: &str, body: &Value) -> http::Request<Vec<u8>> {
    let request = http::Request::put(path).header("content-type", "application/json");
    request.body(body.to_string().into_bytes()).unwrap()
}

/// What the newer version deleted is created again and belongs to whom it belonged; what it added is left and named, or
/// deleted on request. A ConfigMap beside the target is created again only when it is gone.
#[tokio::test]
async fn deleted_and_added_objects() {
    let bench = Bench::new().await;
    let beside =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"}, "data": {"x": "y"}});
    let mut worker = deployment("worker", "worker:a", &["A"], None);
    worker["spec"]["replicas"] = json!(2);
    worker["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "beside"}}]);
    bench
        .apply(&[beside, deployment("web", "web:a", &[], None), worker.clone()], &["--server-side"])
        .unwrap();
    let a = bench.record().await;
    bench.kubectl(&["delete", "deployment/worker", "configmap/beside"]);
    bench
        .apply(
            &[deployment("web", "web:b", &[], None), deployment("extra", "extra:b", &[], None)],
            &["--server-side"],
        )
        .unwrap();

    let done = bench.roll_back(&a, json!({})).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
    assert!(done.message.contains("deployment/extra") && done.message.contains("prune"), "{}", done.message);
    let live = bench.live("deployment/worker");
    assert_eq!(live["spec"]["replicas"], 2);
    assert_eq!(bench.live("configmap/beside")["data"], json!({"x": "y"}));
    let owners: Vec<String> =
        restore::managed_fields(&live).into_iter().filter_map(|entry| entry.manager).collect();
    assert!(owners.contains(&"kubectl".to_owned()), "{owners:?}");
    // Its owner goes on with it, fields that it gives up included.
    worker["spec"]["template"]["spec"]["containers"][0] = json!({"name": "app", "image": "worker:c"});
    worker["spec"]["replicas"] = json!(1);
    bench
        .apply(&[worker], &["--server-side"])
        .unwrap_or_else(|error| panic!("the next apply fails: {error}"));
    let container = &bench.live("deployment/worker")["spec"]["template"]["spec"]["containers"][0];
    assert!(container["env"].is_null() && container["envFrom"].is_null(), "{container}");

    let done = bench.roll_back(&a, json!({"prune": true})).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
    assert!(!done.message.contains("extra"), "{}", done.message);
    assert_eq!(bench.kubectl(&["get", "deployment/extra", "--ignore-not-found", "-o", "name"]), "");
}

/// A StatefulSet that waits for its broken pod gets it out of its way.
#[tokio::test]
async fn a_broken_pod_of_an_ordered_set_is_deleted() {
    let bench = Bench::new().await;
    let set = |image: &str| {
        let mut set = deployment("db", image, &[], None);
        set["kind"] = "StatefulSet".into();
        set["spec"]["serviceName"] = "db".into();
        set["spec"]["replicas"] = json!(2);
        set
    };
    bench.apply(&[set("db:1.0")], &["--server-side"]).unwrap();
    let ready = |wanted: &'static str| {
        let bench = &bench;
        async move {
            let ready = bench.kubectl(&["get", "statefulset/db", "-o", "jsonpath={.status.readyReplicas}"]);
            anyhow::ensure!(ready == wanted, "{ready:?} pods are ready");
            Ok(())
        }
    };
    soon("two pods", || ready("2")).await;
    let a = bench.record().await;
    bench.apply(&[set("db:2.0-never-ready")], &["--server-side"]).unwrap();
    soon("the broken pod", || ready("1")).await;
    let broken =
        bench.kubectl(&["get", "pod/db-1", "-o", "jsonpath={.metadata.uid} {.spec.containers[0].image}"]);
    assert!(broken.ends_with(" db:2.0-never-ready"), "{broken}");
    let healthy = bench.kubectl(&["get", "pod/db-0", "-o", "jsonpath={.metadata.uid}"]);
    let done = bench.roll_back(&a, json!({})).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
    let images = bench.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}"]);
    assert_eq!(images, "db:1.0 db:1.0");
    assert_eq!(
        bench.kubectl(&["get", "pod/db-0", "-o", "jsonpath={.metadata.uid}"]),
        healthy,
        "the ready pod stayed"
    );
}

/// Somebody deploys something else while the rollout runs.
#[tokio::test]
async fn a_change_by_somebody_else_supersedes() {
    let bench = Bench::new().await;
    bench.apply(&[deployment("web", "web:a-never-ready", &[], None)], &["--server-side"]).unwrap();
    let a = bench.record().await;
    bench.apply(&[deployment("web", "web:b", &[], None)], &["--server-side"]).unwrap();
    let target = bench.rollback_to(&a).await;
    let plan = bench.plan(&target, &a, &json!({})).await.unwrap();
    let attempt = format!("{}-1", target.rollback_uid);
    let begun = bench.deployer.trigger(&target, &attempt, &plan).await.unwrap();
    let running = bench.deployer.poll(&target, &attempt, &begun.id, Some(&plan)).await.unwrap();
    assert_eq!(running.state, DeploymentState::InProgress);
    assert!(running.message.starts_with("Deployment web: "), "{}", running.message);
    bench.kubectl(&["set", "image", "deployment/web", "app=web:hotfix", "--field-manager=oncall"]);
    let after = bench.follow(&target, &attempt, &begun.id, &plan).await.unwrap();
    assert_eq!(after.state, DeploymentState::Superseded);
    assert_eq!(after.message, "Deployment web was changed by oncall after it was restored");
}

/// Helm on the server goes on as kubectl does; Helm on the client would keep fields of the version that comes back, so
/// that takes a word (rule 19).
#[tokio::test]
async fn helm_goes_on() {
    for (server_side, options) in [("true", json!({})), ("false", json!({"clientSideHelm": true}))] {
        let bench = Bench::new().await;
        let folder = bench.cp.dir().join(format!("chart-{}", bench.ns()));
        let chart = |version: &str, env: &[&str], sidecar: Option<&str>| {
            std::fs::create_dir_all(folder.join("templates")).unwrap();
            let about = json!({"apiVersion": "v2", "name": "web", "version": version});
            std::fs::write(folder.join("Chart.yaml"), about.to_string()).unwrap();
            let web = deployment("web", &format!("web:{version}"), env, sidecar);
            std::fs::write(folder.join("templates/web.yaml"), web.to_string()).unwrap();
        };
        let helm = |command: &str| {
            let mut helm = bench.cp.helm().unwrap();
            helm.args([command, "web", "-n", bench.ns(), &format!("--server-side={server_side}")])
                .arg(&folder);
            let output = helm.output().unwrap();
            assert!(output.status.success(), "helm {command}: {}", String::from_utf8_lossy(&output.stderr));
        };
        chart("1.0.0", &["BOTH", "ONLY_A"], None);
        helm("install");
        let a = bench.record().await;
        chart("2.0.0", &["BOTH", "ONLY_B"], Some("sidecar-b"));
        helm("upgrade");
        if server_side == "false" {
            let error = bench.roll_back(&a, json!({})).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid);
            assert!(
                error.message.contains(&format!("helm rollback web REVISION -n {}", bench.ns())),
                "{error}"
            );
        }
        let done = bench.roll_back(&a, options).await.unwrap();
        assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
        assert_eq!(shape(&bench.live("deployment/web")), names(&["app"], &["BOTH", "ONLY_A"]));
        chart("3.0.0", &["BOTH", "ONLY_C"], None);
        helm("upgrade");
        if server_side == "true" {
            assert_eq!(shape(&bench.live("deployment/web")), names(&["app"], &["BOTH", "ONLY_C"]));
        }
    }
}

/// The bad version was out for so long that its progress deadline passed: that is no failure of the good one. What is
/// wrong with the good one is said by pod and container.
#[tokio::test]
async fn the_rollout_is_told_from_the_one_before() {
    let bench = Bench::new().await;
    let web = |image: &str| {
        let mut web = deployment("web", image, &[], None);
        web["spec"]["progressDeadlineSeconds"] = json!(2);
        web["spec"]["minReadySeconds"] = json!(1);
        web
    };
    bench.apply(&[web("web:1.0")], &["--server-side"]).unwrap();
    let status = |path: &str| bench.kubectl(&["get", "deployment/web", "-o", &format!("jsonpath={path}")]);
    soon("a pod", || async {
        anyhow::ensure!(status("{.status.availableReplicas}") == "1", "there is none");
        Ok(())
    })
    .await;
    let good = bench.record().await;
    bench.apply(&[web("web:2.0-image-missing")], &["--server-side"]).unwrap();
    let bad = bench.record().await;
    let reason = r#"{.status.conditions[?(@.type=="Progressing")].reason}"#;
    soon("the bad version's deadline to pass", || async {
        anyhow::ensure!(status(reason) == "ProgressDeadlineExceeded", "it has not");
        Ok(())
    })
    .await;
    let done = bench.roll_back(&good, json!({})).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);

    let failed = bench.roll_back(&bad, json!({})).await.unwrap();
    assert_eq!(failed.state, DeploymentState::Failed, "{}", failed.message);
    for part in ["Deployment web: 0 of 1 pods ready", "pod web-", "container app", "ImagePullBackOff"] {
        assert!(failed.message.contains(part), "{part} is not in {}", failed.message);
    }
}
