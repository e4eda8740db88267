//! Rollbacks of releases that CI records, carried out by the noop backend: admission, the controller and the
//! release controller together.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use rollback_api::conditions::SucceededReason;
use rollback_api::{Backend, annotations};
use rollback_core::conditions;
use rollback_e2e::objects::{World, named, options, rollback, to};
use rollback_e2e::soon;
use rollback_e2e::system::with_system;
use rollback_rig::{TestNamespace, namespace};
use serde_json::json;

async fn world() -> (TestNamespace, World) {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    (ns, world)
}

/// Three releases a, b, c of a target, deployed in that order; c is active.
async fn three(world: &World, target: &str) -> [String; 3] {
    let mut names = Vec::new();
    for (id, healthy) in [("a", "True"), ("b", "True"), ("c", "False")] {
        names.push(world.deploy(target, id, healthy).await);
    }
    names.try_into().unwrap()
}

#[tokio::test]
async fn goes_back_to_the_newest_healthy_release_and_records_it() {
    let (_ns, world) = world().await;
    let [a, b, c] = three(&world, "payments").await;
    let name = world.roll_back(&rollback("payments", Backend::Noop)).await.unwrap();
    let (outcome, ended) = world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);

    // H-12: from is fixed at admission, and shown in the reference's field.
    let status = ended.status.clone().unwrap();
    assert_eq!(ended.spec.to_release_ref.name.as_deref(), Some(b.as_str()));
    assert_eq!(ended.spec.from_release_ref.as_ref().and_then(|from| from.name.as_deref()), Some(c.as_str()));
    assert_eq!(status.from_release_ref.and_then(|from| from.name), Some(c.clone()));
    // H-9: an entry for each attempt; the reference's fields hold the latest one.
    assert_eq!((status.attempts.len(), status.attempt_count), (1, Some(1)));
    assert_eq!(status.deployment_id, status.attempts[0].deployment_id);
    assert_eq!(status.deployment_id.as_deref(), Some(format!("noop-{}-{name}", world.namespace).as_str()));
    let key = format!("{}-1", ended.metadata.uid.clone().unwrap());
    assert_eq!(status.attempts[0].key, key);
    for condition in &status.conditions {
        assert_eq!(condition.observed_generation, ended.metadata.generation, "{condition:?}");
    }
    // H-17: who it was comes from the API server.
    assert!(ended.metadata.annotations.as_ref().unwrap().contains_key(annotations::AUTHENTICATED_AS));
    // H-28: the record outlives the release it left: nobody owns it.
    assert_eq!(ended.metadata.owner_references, None);
    assert!(
        ended.metadata.finalizers.unwrap_or_default().is_empty() || {
            soon("the finalizer to go", || async {
                let now = world.rollbacks.get(&name).await?;
                anyhow::ensure!(now.metadata.finalizers.unwrap_or_default().is_empty());
                Ok(())
            })
            .await;
            true
        }
    );

    // Invariant 8, H-19: one active release, and it is the one that was gone back to.
    soon("b to be the only active release", || async {
        let active = world.active("payments").await;
        anyhow::ensure!(active == [b.clone()], "{active:?}");
        Ok(())
    })
    .await;
    let b_status = world.releases.get(&b).await.unwrap().status.unwrap();
    assert_eq!(b_status.activation.and_then(|activation| activation.rollback_ref), Some(name.clone()));
    let left = world.releases.get(&c).await.unwrap();
    let active = conditions::find(&left.status.as_ref().unwrap().conditions, "Active").unwrap().clone();
    assert_eq!((active.status.as_str(), active.reason.as_str()), ("False", "Rollback"));
    assert_eq!(left.metadata.annotations.unwrap_or_default().get(annotations::ACTIVE), None);

    // Two in a row: B to A, never back to C, never to B (users.md A1).
    let second = world.roll_back(&rollback("payments", Backend::Noop)).await.unwrap();
    let (outcome, ended) = world.ended(&second).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(ended.spec.to_release_ref.name.as_deref(), Some(a.as_str()));
    let third = world.roll_back(&rollback("payments", Backend::Noop)).await.unwrap_err();
    assert!(third.contains("no healthy release of payments to go back to"), "{third}");
}

/// H-14: the same manifest a hundred times, deleted, applied again: one deployment.
#[tokio::test]
async fn a_manifest_is_carried_out_once() {
    let (_ns, world) = world().await;
    let [_, b, c] = three(&world, "payments").await;
    let manifest = named("inc-311", rollback("payments", Backend::Noop));
    world.roll_back(&manifest).await.unwrap();
    assert_eq!(world.ended("inc-311").await.0, Ok(()));
    let activation = |status: Option<rollback_api::ReleaseStatus>| {
        status.and_then(|status| status.activation).map(|a| a.id)
    };
    let first = activation(world.releases.get(&b).await.unwrap().status);
    let apply = PatchParams::apply("gitops").force();
    for _ in 0..100 {
        world.rollbacks.patch("inc-311", &apply, &Patch::Apply(&manifest)).await.unwrap();
    }
    for _ in 0..2 {
        world.rollbacks.delete("inc-311", &DeleteParams::default()).await.unwrap();
        soon("the object to go", || async {
            anyhow::ensure!(world.rollbacks.get_opt("inc-311").await?.is_none());
            Ok(())
        })
        .await;
        // A newer release is out by now: it must not be rolled back by an old manifest.
        world.activate(&c).await;
        world.roll_back(&manifest).await.unwrap();
        let (outcome, again) = world.ended("inc-311").await;
        assert_eq!(outcome, Err(SucceededReason::NotNeeded), "{:?}", again.status);
        assert_eq!(again.status.unwrap().attempts.len(), 0);
        world.only_active("payments", &c).await;
    }
    assert_eq!(activation(world.releases.get(&b).await.unwrap().status), first, "b was not deployed again");
}

/// H-16: the spec never changes, in whatever way it is tried; metadata may.
#[tokio::test]
async fn the_spec_is_immutable() {
    let (_ns, world) = world().await;
    let [a, b, _] = three(&world, "payments").await;
    let manifest = options(&[("n", json!(1))], named("r", to(&b, rollback("payments", Backend::Noop))));
    world.roll_back(&manifest).await.unwrap();
    assert_eq!(world.ended("r").await.0, Ok(()));
    for change in [
        json!({"reason": "other"}),
        json!({"toReleaseRef": {"name": a}}),
        json!({"deploymentOptions": {"n": 2}}),
        json!({"deploymentOptions": {"m": 1}}),
        json!({"initiatedBy": {"principal": "somebody else"}}),
        json!({"backend": "workload"}),
    ] {
        let patch = json!({ "spec": change });
        let error =
            world.rollbacks.patch("r", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap_err();
        assert!(
            error.to_string().contains("is immutable") || error.to_string().contains("are immutable"),
            "{patch}: {error}"
        );
    }
    let patch = json!({"metadata": {"labels": {"seen": "yes"}}});
    world.rollbacks.patch("r", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// C17: a dry run goes through all of admission and leaves nothing behind.
#[tokio::test]
async fn a_dry_run_leaves_nothing_behind() {
    let (_ns, world) = world().await;
    let [_, b, c] = three(&world, "payments").await;
    let dry = kube::api::PostParams { dry_run: true, ..Default::default() };
    let answer = world.rollbacks.create(&dry, &rollback("payments", Backend::Noop)).await.unwrap();
    assert_eq!(answer.spec.to_release_ref.name.as_deref(), Some(b.as_str()));
    assert_eq!(answer.spec.from_release_ref.and_then(|from| from.name), Some(c.clone()));
    assert_eq!(world.rollbacks.list(&ListParams::default()).await.unwrap().items.len(), 0);
    world.only_active("payments", &c).await;
}

/// A Rollback whose release to leave is no longer active is admitted and ends as not needed (rule 6).
#[tokio::test]
async fn a_pinned_manifest_does_not_run_later() {
    let (_ns, world) = world().await;
    let [_, b, c] = three(&world, "payments").await;
    let dry = kube::api::PostParams { dry_run: true, ..Default::default() };
    let answer = world.rollbacks.create(&dry, &rollback("payments", Backend::Noop)).await.unwrap();
    let exported = rollback_core::admission::export(&answer);
    let newer = world.deploy("payments", "d", "True").await;
    let name = world.roll_back(&exported).await.unwrap();
    let (outcome, ended) = world.ended(&name).await;
    assert_eq!(outcome, Err(SucceededReason::NotNeeded));
    let message = ended.status.unwrap().message.unwrap();
    assert!(message.contains(&c) && message.contains(&newer), "{message}");
    assert_ne!(world.active("payments").await, [b]);
}

/// H-13 and H-26: a rollback to the active release is never one, and the chain may be a circle.
#[tokio::test]
async fn the_active_release_is_never_the_one_to_go_back_to() {
    let (_ns, world) = world().await;
    let [a, b, c] = three(&world, "payments").await;
    // A circle: every release names the next one as its predecessor.
    for (release, previous) in [(&a, &c), (&b, &a), (&c, &b)] {
        world.annotate(release, annotations::PREVIOUS_RELEASE, Some(previous)).await;
    }
    world.annotate(&b, annotations::ROLLBACK_BLOCKED, Some("migration")).await;
    let name = world.roll_back(&rollback("payments", Backend::Noop)).await.unwrap();
    assert_eq!(world.ended(&name).await.0, Ok(()));
    world.only_active("payments", &a).await;
    // Naming what is active is not an error under GitOps, and deploys nothing.
    let again = world
        .roll_back(&to(&world.active("payments").await[0], rollback("payments", Backend::Noop)))
        .await
        .unwrap();
    assert_eq!(world.ended(&again).await.0, Err(SucceededReason::NotNeeded));
}
