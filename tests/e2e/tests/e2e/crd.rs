//! Every rule of the custom resource definitions, proven against the API server both ways: what it must refuse and
//! what it must let through.

use kube::api::DynamicObject;
use kube::{Api, Client};
use rollback_api::{Release, Rollback};
use rollback_e2e::json_api::{api, create, patch};
use rollback_e2e::with_kinds;
use rollback_rig::namespace;
use serde_json::{Value, json};

fn release(name: &str, config: &Value) -> Value {
    json!({"apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Release", "metadata": {"name": name}, "config": config})
}

fn rollback(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback", "metadata": {"name": name}, "spec": spec})
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "AutomatedRollbackPolicy", "metadata": {"name": name}, "spec": spec})
}

struct Apis {
    releases: Api<DynamicObject>,
    rollbacks: Api<DynamicObject>,
    policies: Api<DynamicObject>,
}

fn apis(client: &Client, namespace: &str) -> Apis {
    Apis {
        releases: api(client, "Release", "releases", namespace),
        rollbacks: api(client, "Rollback", "rollbacks", namespace),
        policies: api(client, "AutomatedRollbackPolicy", "automatedrollbackpolicies", namespace),
    }
}

/// Creates must fail, each with the text.
async fn refused(api: &Api<DynamicObject>, cases: Vec<(Value, &str)>) {
    for (object, expected) in cases {
        let text = object.to_string();
        match create(api, object).await {
            Ok(_) => panic!("was accepted: {text}"),
            Err(message) => {
                assert!(message.contains(expected), "{text}\nsaid: {message}\nexpected: {expected}");
            }
        }
    }
}

/// Patches of one object: refused with the text, or accepted where there is none.
async fn patched(api: &Api<DynamicObject>, name: &str, cases: Vec<(Value, Option<&str>)>) {
    for (change, expected) in cases {
        let text = change.to_string();
        match (patch(api, name, change).await, expected) {
            (Ok(_), None) => {}
            (Ok(_), Some(expected)) => panic!("was accepted: {text}\nexpected: {expected}"),
            (Err(message), None) => panic!("was refused: {text}\nsaid: {message}"),
            (Err(message), Some(expected)) => {
                assert!(message.contains(expected), "{text}\nsaid: {message}\nexpected: {expected}");
            }
        }
    }
}

#[tokio::test]
async fn release_schema() {
    let cp = with_kinds().await;
    let ns = namespace(cp).await.unwrap();
    let Apis { releases, .. } = apis(&cp.client().unwrap(), ns.name());
    let one = |target: &str, revisions: Value| {
        release("bad", &json!({"targetName": target, "revisions": revisions}))
    };
    let r = || json!([{"name": "a", "id": "1"}]);
    refused(
        &releases,
        vec![
            (one("", r()), "config.targetName"),
            (one("Not_DNS", r()), "config.targetName"),
            (one("-x", r()), "config.targetName"),
            (one(&"a".repeat(246), r()), "config.targetName"),
            (one("t", json!([])), "config.revisions"),
            (one("t", json!([{"name": "", "id": "1"}])), "config.revisions[0].name"),
            (one("t", json!([{"name": "a", "id": ""}])), "config.revisions[0].id"),
            (one("t", json!([{"name": "a"}])), "config.revisions[0].id"),
            (one("t", json!([{"name": "a", "id": "1"}, {"name": "a", "id": "2"}])), "Duplicate value"),
            (one("t", json!([{"name": "a", "id": 7}])), "config.revisions[0].id"),
            (one("t", json!((0..11).map(|n| json!({"name": format!("r{n}"), "id": "1"})).collect::<Vec<_>>())), "config.revisions"),
            (release("bad", &json!({"targetName": "t"})), "config.revisions"),
            (json!({"apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Release", "metadata": {"name": "x"}}), "config"),
        ],
    )
    .await;
    let config = json!({"targetName": "pay.ments-1", "revisions": [
        {"name": "a", "id": "1", "source": "o/r", "type": "github", "metadata": {"author": "A", "branch": "b", "message": "m"}},
        {"name": "b", "id": "2"},
    ]});
    create(&releases, release("good", &config)).await.unwrap();
    let config_with = |change: fn(&mut Value)| {
        let mut config = config.clone();
        change(&mut config);
        json!({"config": config})
    };
    patched(
        &releases,
        "good",
        vec![
            (config_with(|c| c["targetName"] = json!("other")), Some("config.targetName is immutable")),
            (config_with(|c| c["revisions"][0]["id"] = json!("9")), Some("config.revisions is immutable")),
            (config_with(|c| c["revisions"][0]["name"] = json!("c")), Some("config.revisions is immutable")),
            (
                config_with(|c| c["revisions"][1]["source"] = json!("x")),
                Some("config.revisions is immutable"),
            ),
            (
                config_with(|c| c["revisions"][0]["type"] = json!("git")),
                Some("config.revisions is immutable"),
            ),
            (
                config_with(|c| c["revisions"] = json!([c["revisions"][0]])),
                Some("config.revisions is immutable"),
            ),
            (
                config_with(|c| c["revisions"][0]["metadata"]["message"] = json!("z")),
                Some("metadata is immutable"),
            ),
            (config_with(|c| c["revisions"][0]["metadata"] = json!({})), Some("metadata is immutable")),
            // The same in canonical form (rule 8): theatre's typed client writes empty texts and objects.
            (config_with(|c| c["revisions"][1]["source"] = json!("")), None),
            (config_with(|c| c["revisions"][1]["metadata"] = json!({})), None),
            (config_with(|c| c["revisions"] = json!([c["revisions"][1], c["revisions"][0]])), None),
            (json!({"metadata": {"annotations": {"theatre.gocardless.com/active": "true"}}}), None),
        ],
    )
    .await;
}

#[tokio::test]
async fn rollback_schema() {
    let cp = with_kinds().await;
    let ns = namespace(cp).await.unwrap();
    let Apis { rollbacks, .. } = apis(&cp.client().unwrap(), ns.name());
    let with = |change: fn(&mut Value)| {
        let mut spec = json!({"toReleaseRef": {"target": "t", "name": "a"}, "reason": "x"});
        change(&mut spec);
        rollback("bad", &spec)
    };
    refused(
        &rollbacks,
        vec![
            (with(|s| s["toReleaseRef"] = json!({})), "spec.toReleaseRef.target"),
            (with(|s| s["toReleaseRef"]["target"] = json!("")), "spec.toReleaseRef.target"),
            (with(|s| s["reason"] = json!("")), "spec.reason"),
            (with(|s| s["reason"] = json!("x".repeat(513))), "spec.reason"),
            (with(|s| s["backend"] = json!("jenkins")), "spec.backend"),
            (with(|s| s["hold"] = json!("Forever")), "spec.hold"),
            (with(|s| s["maxAttempts"] = json!(0)), "spec.maxAttempts"),
            (with(|s| s["maxAttempts"] = json!(11)), "spec.maxAttempts"),
            (with(|s| s["progressDeadlineSeconds"] = json!(29)), "spec.progressDeadlineSeconds"),
            (with(|s| s["progressDeadlineSeconds"] = json!(86401)), "spec.progressDeadlineSeconds"),
            (with(|s| s["ttlSecondsAfterFinished"] = json!(599)), "spec.ttlSecondsAfterFinished"),
            (
                with(|s| s["fromReleaseRef"] = json!({"target": "other", "name": "b"})),
                "fromReleaseRef.target must equal",
            ),
            (
                with(|s| s["initiatedBy"] = json!({"principal": "p".repeat(257)})),
                "spec.initiatedBy.principal",
            ),
            (
                with(|s| s["deploymentOptions"] = (0..65).map(|n| (format!("k{n}"), json!(1))).collect()),
                "spec.deploymentOptions",
            ),
        ],
    )
    .await;
    let full = json!({
        "toReleaseRef": {"target": "t", "name": "a", "signature": "0123456789"},
        "fromReleaseRef": {"target": "t", "name": "b", "signature": "9876543210", "activation": "x"},
        "reason": "INC-1", "initiatedBy": {"principal": "me", "type": "user"}, "backend": "noop", "hold": "UntilReleased",
        "deploymentOptions": {"a": "x", "n": 1.5, "o": {"deep": [true, null]}},
        "progressDeadlineSeconds": 900, "maxAttempts": 2, "ttlSecondsAfterFinished": 600, "dryRun": true,
    });
    let stored = create(&rollbacks, rollback("full", &full)).await.unwrap();
    assert_eq!(
        stored.data["spec"]["deploymentOptions"], full["deploymentOptions"],
        "values of any JSON type are kept"
    );
    let spec = |change: Value| json!({"spec": change});
    patched(
        &rollbacks,
        "full",
        vec![
            (spec(json!({"toReleaseRef": {"target": "u"}})), Some("is immutable")),
            (spec(json!({"toReleaseRef": {"name": "c"}})), Some("Name is immutable once set")),
            (spec(json!({"toReleaseRef": {"name": ""}})), Some("Name is immutable once set")),
            (spec(json!({"toReleaseRef": {"name": null}})), Some("Name is immutable once set")),
            (spec(json!({"toReleaseRef": {"signature": "1111111111"}})), Some("signature is immutable")),
            (spec(json!({"fromReleaseRef": {"name": "c"}})), Some("fromReleaseRef is immutable")),
            (spec(json!({"fromReleaseRef": null})), Some("fromReleaseRef is immutable")),
            (spec(json!({"reason": "INC-2"})), Some("reason is immutable")),
            (spec(json!({"initiatedBy": {"principal": "you"}})), Some("initiatedBy is immutable")),
            (spec(json!({"initiatedBy": null})), Some("initiatedBy is immutable")),
            (spec(json!({"backend": "github"})), Some("backend is immutable")),
            (spec(json!({"hold": "None"})), Some("hold is immutable")),
            (spec(json!({"progressDeadlineSeconds": 901})), Some("progressDeadlineSeconds is immutable")),
            (spec(json!({"maxAttempts": 3})), Some("maxAttempts is immutable")),
            (spec(json!({"ttlSecondsAfterFinished": 601})), Some("ttlSecondsAfterFinished is immutable")),
            // One way only.
            (spec(json!({"dryRun": false})), None),
            (spec(json!({"dryRun": true})), Some("dryRun cannot be enabled after creation")),
            (json!({"metadata": {"labels": {"a": "b"}}}), None),
        ],
    )
    .await;
    // What admission fills in may be set once where it was absent.
    create(&rollbacks, rollback("open", &json!({"toReleaseRef": {"target": "t"}, "reason": "x"})))
        .await
        .unwrap();
    patched(
        &rollbacks,
        "open",
        vec![
            (spec(json!({"initiatedBy": {}})), None),
            (spec(json!({"toReleaseRef": {"name": "a"}})), None),
            (spec(json!({"fromReleaseRef": {"target": "t", "name": "b"}})), None),
            (spec(json!({"toReleaseRef": {"name": "c"}})), Some("Name is immutable once set")),
            (spec(json!({"dryRun": true})), Some("dryRun cannot be enabled after creation")),
        ],
    )
    .await;
}

#[tokio::test]
async fn policy_schema() {
    let cp = with_kinds().await;
    let ns = namespace(cp).await.unwrap();
    let Apis { policies, .. } = apis(&cp.client().unwrap(), ns.name());
    refused(
        &policies,
        vec![
            (policy("bad", &json!({})), "spec.targetName"),
            (policy("bad", &json!({"targetName": ""})), "spec.targetName"),
            (
                policy("bad", &json!({"targetName": "t", "trigger": {"conditionStatus": "Unknown"}})),
                "conditionStatus",
            ),
        ],
    )
    .await;
    // H-43: a trigger that is left out has its defaults, as has one that is empty.
    for (name, spec) in
        [("none", json!({"targetName": "t"})), ("empty", json!({"targetName": "t", "trigger": {}}))]
    {
        let stored = create(&policies, policy(name, &spec)).await.unwrap();
        assert_eq!(
            stored.data["spec"],
            json!({"targetName": "t", "enabled": false, "trigger": {"conditionType": "RollbackRequired", "conditionStatus": "True"}})
        );
    }
    patched(
        &policies,
        "none",
        vec![
            (json!({"spec": {"targetName": "u"}}), Some("targetName is immutable")),
            (json!({"spec": {"enabled": true}}), None),
        ],
    )
    .await;
}

/// Objects as theatre's typed client writes them are stored and read without error.
#[tokio::test]
async fn objects_of_the_reference_are_read() {
    let cp = with_kinds().await;
    let ns = namespace(cp).await.unwrap();
    let client = cp.client().unwrap();
    let Apis { releases, rollbacks, .. } = apis(&client, ns.name());
    let config = json!({"targetName": "t", "revisions": [{"name": "a", "id": "1", "source": "", "type": "", "metadata": {}}]});
    create(&releases, release("theatre", &config)).await.unwrap();
    let status = json!({
        "conditions": [{"type": "Active", "status": "Unknown", "reason": "Initialised", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "deploymentStartTime": null, "deploymentEndTime": null,
        "previousRelease": {"releaseRef": "", "transitionTime": null}, "signature": "0123456789", "message": "m",
    });
    let put = |name: &str, status: &Value| {
        let body = json!({"status": status});
        let (name, releases) = (name.to_owned(), releases.clone());
        async move {
            releases
                .patch_status(&name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&body))
                .await
        }
    };
    put("theatre", &status).await.unwrap();
    let typed: Api<Release> = Api::namespaced(client.clone(), ns.name());
    let read = typed.get("theatre").await.unwrap();
    assert_eq!(read.status.unwrap().deployment_start_time, None);
    // A status with the same condition twice is refused: conditions are a map list (H-32).
    let condition = |reason: &str| json!({"type": "Active", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let twice = put("theatre", &json!({"conditions": [condition("A"), condition("B")]})).await.unwrap_err();
    assert!(twice.to_string().contains("Duplicate value"), "{twice}");

    create(
        &rollbacks,
        rollback(
            "theatre",
            &json!({"toReleaseRef": {"target": "t", "name": ""}, "reason": "x", "initiatedBy": {}}),
        ),
    )
    .await
    .unwrap();
    let typed: Api<Rollback> = Api::namespaced(client, ns.name());
    assert_eq!(typed.get("theatre").await.unwrap().spec.to_release_ref.name.as_deref(), Some(""));
}

/// Listing by target is done by the server.
#[tokio::test]
async fn targets_are_selectable_fields() {
    let cp = with_kinds().await;
    let ns = namespace(cp).await.unwrap();
    let client = cp.client().unwrap();
    let Apis { releases, rollbacks, policies } = apis(&client, ns.name());
    for target in ["t", "u"] {
        let config = json!({"targetName": target, "revisions": [{"name": "a", "id": "1"}]});
        create(&releases, release(&format!("{target}-1"), &config)).await.unwrap();
        let spec = json!({"toReleaseRef": {"target": target, "name": "a"}, "reason": "x"});
        create(&rollbacks, rollback(&format!("{target}-rb"), &spec)).await.unwrap();
        create(&policies, policy(target, &json!({"targetName": target}))).await.unwrap();
    }
    for (api, field) in [
        (&releases, "config.targetName"),
        (&rollbacks, "spec.toReleaseRef.target"),
        (&policies, "spec.targetName"),
    ] {
        let list = api.list(&kube::api::ListParams::default().fields(&format!("{field}=t"))).await.unwrap();
        assert_eq!(list.items.len(), 1, "{field}");
    }
    let list =
        rollbacks.list(&kube::api::ListParams::default().fields("spec.toReleaseRef.name=a")).await.unwrap();
    assert_eq!(list.items.len(), 2);
}

/// Short names, categories and columns are what users of the reference type and see.
#[tokio::test]
async fn kubectl_get_shows_the_columns() {
    let cp = with_kinds().await;
    let ns = namespace(cp).await.unwrap();
    let Apis { releases, .. } = apis(&cp.client().unwrap(), ns.name());
    let config = json!({"targetName": "t", "revisions": [{"name": "a", "id": "1"}]});
    create(&releases, release("t-1", &config)).await.unwrap();
    for (name, columns) in [
        ("rel", "NAME TARGET_NAME ACTIVE HEALTHY SIGNATURE STARTED_AT ENDED_AT AGE"),
        ("rb", "NAME FROM TO INITIATOR SUCCEEDED AGE"),
        ("arbp", "NAME TARGET TRIGGER_CONDITION TRIGGER_WHEN AUTOMATED REASON AGE"),
    ] {
        if name == "rb" {
            let Apis { rollbacks, .. } = apis(&cp.client().unwrap(), ns.name());
            create(&rollbacks, rollback("r", &json!({"toReleaseRef": {"target": "t"}, "reason": "x"})))
                .await
                .unwrap();
        } else if name == "arbp" {
            let Apis { policies, .. } = apis(&cp.client().unwrap(), ns.name());
            create(&policies, policy("p", &json!({"targetName": "t"}))).await.unwrap();
        }
        let output = cp.kubectl().args(["get", name, "-n", ns.name()]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let header: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(header.join(" "), columns, "{text}");
    }
    // The singular name works too: no category may shadow it.
    let output = cp.kubectl().args(["get", "rollback", "r", "-n", ns.name(), "-o", "name"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "rollback.deploy.crd.gocardless.com/r\n");
    let all = cp.kubectl().args(["get", "theatre", "-n", ns.name(), "-o", "name"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&all.stdout).lines().count(), 3);
}
