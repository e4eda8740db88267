//! What the workload backend refuses, and that nothing is touched then; what an attempt that stops half-way says (rule 18).

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use rollback_core::backend::{DeploymentState, ErrorClass};
use rollback_e2e::bench::{Bench, configmap, deployment, key};
use rollback_e2e::soon;
use serde_json::{Value, json};

/// What cannot work is refused before anything is touched, with the command that mends it (rule 18).
#[tokio::test]
async fn obstacles_are_refused_untouched() {
    let bench = Bench::new().await;
    let set = |image: &str, strategy: &str| {
        let mut set = deployment("db", image, &[], None);
        set["kind"] = "StatefulSet".into();
        set["spec"]["serviceName"] = "db".into();
        set["spec"]["updateStrategy"] = json!({"type": strategy});
        set
    };
    let all = |image: &str, value: &str, strategy: &str| {
        let mut web = deployment("web", image, &[], None);
        if value == "a" {
            web["spec"]["template"]["spec"]["serviceAccountName"] = "robot".into();
            web["spec"]["template"]["spec"]["volumes"] =
                json!([{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]);
        }
        vec![configmap("c", value), deployment("worker", image, &[], None), set(image, strategy), web]
    };
    bench.kubectl(&["create", "serviceaccount", "robot"]);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    });
    bench.apply(&[claim], &[]).unwrap();
    bench.apply(&all("x:a", "a", "RollingUpdate"), &["--server-side"]).unwrap();
    let a = bench.record().await;
    bench.apply(&all("x:b", "b", "OnDelete"), &["--server-side", "--force-conflicts"]).unwrap();
    bench.kubectl(&["delete", "serviceaccount", "robot"]);
    bench.kubectl(&["delete", "pvc", "disk"]);
    bench.kubectl(&["rollout", "pause", "deployment/worker"]);
    bench.kubectl(&["patch", "configmap", "c", "--type=merge", "-p", r#"{"immutable":true}"#]);

    let error = bench.roll_back(&a, json!({})).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    assert!(error.message.starts_with("nothing was touched: "), "{error}");
    for part in [
        format!("kubectl delete configmap/c -n {}", bench.ns()),
        format!("kubectl rollout resume deployment/worker -n {}", bench.ns()),
        format!("kubectl patch statefulset/db -n {}", bench.ns()),
        "Deployment web needs ServiceAccount robot, which does not exist".to_owned(),
        "Deployment web needs PersistentVolumeClaim disk, which does not exist".to_owned(),
    ] {
        assert!(error.message.contains(&part), "{part}\nis not in\n{error}");
    }
    for object in ["configmap/c", "deployment/worker", "statefulset/db", "deployment/web"] {
        let live = bench.live(object);
        assert!(live["metadata"]["annotations"]["theatre.gocardless.com/attempt-key"].is_null(), "{object}");
    }

    // Mended as it says, it works.
    bench.kubectl(&["create", "serviceaccount", "robot"]);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    });
    bench.apply(&[claim], &["--server-side"]).unwrap();
    bench.kubectl(&["delete", "configmap/c"]);
    bench.kubectl(&["rollout", "resume", "deployment/worker"]);
    let rolling = r#"{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}"#;
    bench.kubectl(&["patch", "statefulset/db", "--type=merge", "-p", rolling]);
    let target = bench.rollback_to(&a).await;
    let plan = bench.plan(&target, &a, &json!({})).await.unwrap();
    bench.deployer.trigger(&target, &format!("{}-1", target.rollback_uid), &plan).await.unwrap();
    assert_eq!(bench.live("configmap/c")["data"]["rate"], "a");
}

/// The server refuses one write of three: in the dry run nothing is touched; afterwards the error says what is.
#[tokio::test]
async fn refusals_of_the_server() {
    let bench = Bench::new().await;
    let all = |image: &str, value: &str| {
        [configmap("c", value), deployment("web", image, &[], None), deployment("worker", image, &[], None)]
    };
    bench.apply(&all("x:a", "a"), &["--server-side"]).unwrap();
    let a = bench.record().await;
    bench.apply(&all("x:b", "b"), &["--server-side"]).unwrap();
    let policy = |expression: &str| {
        let name = format!("deny-{}", bench.ns());
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}]},
                "validations": [{"expression": expression, "message": "no changes on Fridays"}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {
                "policyName": name, "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bench.ns()}}},
            },
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]});
        bench.cp.apply(&list.to_string()).unwrap();
    };
    let annotate = |value: &str| {
        let output = bench
            .cp
            .kubectl()
            .args(["annotate", "deployment/worker", "-n", bench.ns(), "--overwrite", value])
            .output();
        output.unwrap().status.success()
    };
    policy("object.metadata.name != 'worker' || !has(object.metadata.annotations)");
    soon("the policy to be in force", || async {
        anyhow::ensure!(!annotate("probe=x"), "it is not");
        Ok(())
    })
    .await;
    let error = bench.roll_back(&a, json!({})).await.unwrap_err();
    assert!(error.message.starts_with("nothing was touched: "), "{error}");
    assert!(
        error.message.contains("Deployment worker") && error.message.contains("no changes on Fridays"),
        "{error}"
    );
    assert_eq!(bench.live("configmap/c")["data"]["rate"], "b");

    // Now only the real write is refused.
    policy("object.metadata.name != 'worker' || (has(request.dryRun) && request.dryRun)");
    soon("the other policy to be in force", || async {
        anyhow::ensure!(annotate("probe=y") || !annotate("probe=z"), "it is not");
        let dry =
            ["annotate", "deployment/worker", "-n", bench.ns(), "--overwrite", "--dry-run=server", "probe=w"];
        anyhow::ensure!(bench.cp.kubectl().args(dry).output()?.status.success(), "it is not");
        Ok(())
    })
    .await;
    let target = bench.rollback_to(&a).await;
    let plan = bench.plan(&target, &a, &json!({})).await.unwrap();
    let attempt = format!("{}-1", target.rollback_uid);
    let error = bench.deployer.trigger(&target, &attempt, &plan).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Failed, "{error}");
    for part in [
        "Deployment worker was not restored: ",
        "no changes on Fridays",
        &format!("configmap/c, deployment/web are as in {}", target.to),
    ] {
        assert!(error.message.contains(part), "{part}\nis not in\n{error}");
    }
    assert!(!error.message.contains("still active"));
    // The next attempt starts over and gets to the end.
    bench
        .cp
        .kubectl()
        .args(["delete", "validatingadmissionpolicybinding", &format!("deny-{}", bench.ns())])
        .output()
        .unwrap();
    soon("the policy to be gone", || async {
        anyhow::ensure!(annotate("probe=gone"), "it is not");
        Ok(())
    })
    .await;
    let attempt = format!("{}-2", target.rollback_uid);
    let begun = bench.deployer.trigger(&target, &attempt, &plan).await.unwrap();
    let done = bench.follow(&target, &attempt, &begun.id, &plan).await.unwrap();
    assert_eq!(done.state, DeploymentState::Succeeded(None), "{}", done.message);
}

/// Snapshots that are gone or altered, options that do not exist, releases of another backend.
#[tokio::test]
async fn plans_that_cannot_be_made() {
    let bench = Bench::new().await;
    bench.apply(&[deployment("web", "web:a", &[], None)], &["--server-side"]).unwrap();
    let a = bench.record().await;
    let target = bench.rollback_to(&a).await;
    let plan = bench.plan(&target, &a, &json!({})).await.unwrap();
    assert_eq!(plan.revisions, a.spec.config.revisions);
    let error = bench.plan(&target, &a, &json!({"environment": "x"})).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    let name = rollback_core::workload::snapshot::object_name(&target.to, &plan.revisions[0]);
    let text = bench.kubectl(&["get", "controllerrevision", &name, "-o", "json"]);
    let mut stored: Value = serde_json::from_str(&text).unwrap();
    bench.kubectl(&["delete", "controllerrevision", &name]);
    let error = bench.plan(&target, &a, &json!({})).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound, "{error}");
    assert_eq!(bench.deployer.find(&target, "key-1", &plan).await, Ok(None), "and nothing was begun");
    stored["data"]["objects"][0]["spec"]["template"]["spec"]["containers"][0]["image"] = "web:evil".into();
    stored["metadata"] = json!({"name": name, "namespace": bench.ns()});
    bench.apply(&[stored], &["--server-side"]).unwrap();
    let error = bench.plan(&target, &a, &json!({})).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.message.contains("does not hold what was recorded as deployment/web"), "{error}");
    let mut other = a.clone();
    other.spec.config.revisions[0].type_ = Some("github".into());
    let error = bench.plan(&target, &other, &json!({})).await.unwrap_err();
    assert!(error.message.contains("use the backend that deployed it"), "{error}");
}

/// An admission policy that changes what is restored: then it would not be what ran before.
#[tokio::test]
async fn content_that_the_cluster_changes_is_refused() {
    let bench = Bench::new().await;
    bench.apply(&[deployment("web", "web:a", &[], None)], &["--server-side"]).unwrap();
    let a = bench.record().await;
    bench.apply(&[deployment("web", "web:b", &[], None)], &["--server-side"]).unwrap();
    // Stands for a mutating webhook: the recorded object lacks what the server adds to every template.
    let snapshots: Api<ControllerRevision> = Api::namespaced(bench.cp.client().unwrap(), bench.ns());
    let revision = &a.spec.config.revisions[0];
    let name = rollback_core::workload::snapshot::object_name(a.metadata.name.as_deref().unwrap(), revision);
    let mut stored = snapshots.get(&name).await.unwrap();
    stored.data.0["objects"][0]["spec"]["template"]["spec"].as_object_mut().unwrap().remove("dnsPolicy");
    let object = &stored.data.0["objects"][0];
    let id = rollback_core::workload::content::id(key(object).kind, object);
    let mut revision = revision.clone();
    revision.id = id;
    stored.metadata.name =
        Some(rollback_core::workload::snapshot::object_name(a.metadata.name.as_deref().unwrap(), &revision));
    stored.metadata.resource_version = None;
    snapshots.create(&kube::api::PostParams::default(), &stored).await.unwrap();
    let mut other = a.clone();
    other.spec.config.revisions = vec![revision];
    let error = bench.roll_back(&other, json!({})).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.message.contains("Deployment web would not be what ran before"), "{error}");
    assert!(error.message.contains(".spec.template.spec.dnsPolicy"), "{error}");
    let image = &bench.live("deployment/web")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "web:b");
}
