//! The admission rules of DESIGN 3 once through the API server; `webhook/tests/golden` has each as a request and its
//! answer.

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams, PostParams};
use rollback_api::{Backend, FromReleaseRef, Rollback, annotations};
use rollback_e2e::json_api::{api, create};
use rollback_e2e::objects::{World, named, options, rollback, to};
use rollback_e2e::system::with_system;
use rollback_rig::{TestNamespace, namespace};
use serde_json::json;

async fn world() -> (TestNamespace, World) {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    (ns, world)
}

fn noop(target: &str) -> Rollback {
    rollback(target, Backend::Noop)
}

fn from(release: &str, mut rollback: Rollback) -> Rollback {
    let target = rollback.spec.to_release_ref.target.clone();
    rollback.spec.from_release_ref =
        Some(FromReleaseRef { target, name: Some(release.into()), ..FromReleaseRef::default() });
    rollback
}

fn signed(signature: &str, mut rollback: Rollback) -> Rollback {
    rollback.spec.to_release_ref.signature = Some(signature.into());
    rollback
}

/// What must be refused is, each with its sentence, and leaves nothing behind.
#[tokio::test]
async fn refusals() {
    let (_ns, world) = world().await;
    let a = world.deploy("payments", "a", "True").await;
    let b = world.deploy("payments", "b", "False").await;
    let other = world.deploy("checkout", "x", "True").await;
    let idle = world.release("idle", "i").await;
    world.annotate(&idle, annotations::ROLLBACK_BLOCKED, None).await;
    let blocked = world.deploy("blocked", "old", "True").await;
    world.annotate(&blocked, annotations::ROLLBACK_BLOCKED, Some("schema migration")).await;
    world.deploy("blocked", "new", "False").await;
    let cases: Vec<(Rollback, Vec<&str>)> = vec![
        (noop("payment"), vec!["no releases of", "payments"]),
        (noop("Pay ments"), vec!["is not the name of a target"]),
        (noop("idle"), vec!["idle", "active"]),
        (noop("checkout"), vec!["no earlier release of checkout", &other]),
        (to("payments-nope", noop("payments")), vec!["payments-nope", &a]),
        (to(&other, noop("payments")), vec![&other, "checkout"]),
        (signed("0000000000", to(&a, noop("payments"))), vec!["signature", &a]),
        (from(&b, to(&b, noop("payments"))), vec![&b, "both name"]),
        (rollback("payments", Backend::Argocd), vec!["argocd is not enabled", "--cicd-backend"]),
        (
            options(&[("ref", json!("{.config.nope}"))], noop("payments")),
            vec!["spec.deploymentOptions.ref", "finds nothing"],
        ),
        (
            options(&[("ref", json!("{.config"))], noop("payments")),
            vec!["spec.deploymentOptions.ref", "not a JSONPath template"],
        ),
        (to(&blocked, noop("blocked")), vec![&blocked, "schema migration"]),
        (noop("blocked"), vec!["no healthy release of blocked", "schema migration"]),
    ];
    for (rollback, words) in cases {
        let told = serde_json::to_string(&rollback.spec).unwrap();
        let error = world.roll_back(&rollback).await.expect_err(&told);
        for word in words {
            assert!(error.contains(word), "{told}\nsaid: {error}\nexpected: {word}");
        }
    }
    let left = world.rollbacks.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 0);
    // What is blocked can be used on purpose.
    let mut forced = to(&blocked, noop("blocked"));
    forced.metadata.annotations = Some(BTreeMap::from([(annotations::FORCE.to_owned(), "true".to_owned())]));
    let name = world.roll_back(&forced).await.unwrap();
    assert_eq!(world.ended(&name).await.0, Ok(()));
}

/// What is filled in, and what only admission writes, whatever the client claims.
#[tokio::test]
async fn fills_in_and_stamps() {
    let (_ns, world) = world().await;
    let a = world.deploy("payments", "a", "True").await;
    let labels = json!({"metadata": {"labels": {"team": "pay", "severity": "low", "app.kubernetes.io/instance": "app"}}});
    world.releases.patch(&a, &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    let b = world.deploy("payments", "b", "False").await;
    let mut wanted = noop("payments");
    wanted.metadata.labels = Some(BTreeMap::from([("severity".to_owned(), "high".to_owned())]));
    wanted.metadata.annotations = Some(
        [annotations::AUTHENTICATED_AS, annotations::SUBMITTED_HASH, annotations::CANCELLED_BY]
            .map(|key| (key.to_owned(), "forged".to_owned()))
            .into(),
    );
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let filled = world.rollbacks.create(&dry, &wanted).await.unwrap();
    let (a_signature, b_signature) = (signature(&world, &a).await, signature(&world, &b).await);
    assert_eq!(filled.spec.to_release_ref.name, Some(a));
    assert_eq!(filled.spec.to_release_ref.signature, Some(a_signature));
    let from = filled.spec.from_release_ref.unwrap();
    assert_eq!((from.name, from.signature), (Some(b), Some(b_signature)));
    assert!(from.activation.is_some());
    // The user's label stays, a missing one is filled in, a tracking label never is (rule 13, H-41).
    let labels = filled.metadata.labels.unwrap();
    assert_eq!(
        (labels.get("severity").map(String::as_str), labels.get("team").map(String::as_str)),
        (Some("high"), Some("pay"))
    );
    assert_eq!(labels.get("app.kubernetes.io/instance"), None);
    let stamps = filled.metadata.annotations.unwrap();
    assert_eq!(stamps.get(annotations::AUTHENTICATED_AS).map(String::as_str), Some("admin"));
    assert_eq!(stamps.get(annotations::CANCELLED_BY), None);
    assert_ne!(stamps.get(annotations::SUBMITTED_HASH).map(String::as_str), Some("forged"));
    assert_eq!(filled.spec.initiated_by.and_then(|by| by.principal).as_deref(), Some("admin"));
}

async fn signature(world: &World, release: &str) -> String {
    world.releases.get(release).await.unwrap().status.unwrap().signature.unwrap()
}

/// The stamps cannot be changed afterwards either.
#[tokio::test]
async fn stamps_stay() {
    let (_ns, world) = world().await;
    world.deploy("payments", "a", "True").await;
    world.deploy("payments", "b", "False").await;
    world.roll_back(&named("r", noop("payments"))).await.unwrap();
    assert_eq!(world.ended("r").await.0, Ok(()));
    let patch = json!({"metadata": {"annotations": {annotations::AUTHENTICATED_AS: "somebody else", annotations::SUBMITTED_HASH: null}}});
    let now = world.rollbacks.patch("r", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let stamps = now.metadata.annotations.unwrap();
    assert_eq!(stamps.get(annotations::AUTHENTICATED_AS).map(String::as_str), Some("admin"));
    assert!(stamps.contains_key(annotations::SUBMITTED_HASH));
}

/// Releases and policies have rules of their own.
#[tokio::test]
async fn releases_and_policies() {
    let (ns, world) = world().await;
    let releases = api(&world.client, "Release", "releases", ns.name());
    let release = json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Release",
        "metadata": {"name": "r", "annotations": {annotations::SIGNATURE: "0000000000"}},
        "config": {"targetName": "t", "revisions": [{"name": "a", "id": "1"}]},
    });
    let error = create(&releases, release).await.unwrap_err();
    assert!(error.contains("signature"), "{error}");
    let policies = api(&world.client, "AutomatedRollbackPolicy", "automatedrollbackpolicies", ns.name());
    let policy = |name: &str| {
        json!({
            "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "AutomatedRollbackPolicy",
            "metadata": {"name": name}, "spec": {"targetName": "t"},
        })
    };
    create(&policies, policy("first")).await.unwrap();
    let error = create(&policies, policy("second")).await.unwrap_err();
    assert!(error.contains("first") && error.contains('t'), "{error}");
}
