//! The release controller on a real API server: activation as a pipeline of theatre's does it, late reports, what is
//! healed, what is culled.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use rollback_api::annotations;
use rollback_core::conditions;
use rollback_core::pointer::{Pointer, object_name};
use rollback_e2e::objects::World;
use rollback_e2e::soon;
use rollback_e2e::system::with_system;
use rollback_rig::{TestNamespace, namespace};
use serde_json::json;

const TARGET: &str = "payments";

async fn world() -> (TestNamespace, World) {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    (ns, world)
}

fn pointers(world: &World) -> Api<ConfigMap> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

async fn active_in_pointer(world: &World) -> Option<String> {
    let object = pointers(world).get_opt(&object_name(TARGET)).await.unwrap()?;
    Some(Pointer::parse(TARGET, &object).unwrap().active?.release)
}

/// Waits until the pointer and the conditions name this release alone, and its request alone is left.
async fn settled(world: &World, release: &str) {
    soon(&format!("{release} to be the one active release"), || async {
        let (pointer, active) = (active_in_pointer(world).await, world.active(TARGET).await);
        anyhow::ensure!(
            pointer.as_deref() == Some(release) && active == [release],
            "{pointer:?}, {active:?}"
        );
        for other in world.releases.list(&kube::api::ListParams::default()).await?.items {
            let asks =
                other.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotations::ACTIVE));
            let name = other.metadata.name.unwrap_or_default();
            anyhow::ensure!(asks == (name == release), "{name} asks to be active: {asks}");
        }
        Ok(())
    })
    .await;
}

async fn reason(world: &World, release: &str) -> String {
    let status = world.releases.get(release).await.unwrap().status.unwrap();
    conditions::find(&status.conditions, "Active").unwrap().reason.clone()
}

async fn annotate(world: &World, release: &str, edits: &[(&str, Option<&str>)]) {
    let edits: serde_json::Map<_, _> =
        edits.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let patch = json!({ "metadata": { "annotations": edits } });
    world.releases.patch(release, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// H-19: both orders of the two writes that theatre's own pipeline makes end well.
#[tokio::test]
async fn the_two_writes_of_a_pipeline_in_either_order() {
    let (_ns, world) = world().await;
    let a = world.release(TARGET, "a").await;
    let b = world.release(TARGET, "b").await;
    world.activate(&a).await;
    settled(&world, &a).await;
    // The new one first.
    annotate(&world, &b, &[(annotations::ACTIVE, Some("true"))]).await;
    annotate(&world, &a, &[(annotations::ACTIVE, None)]).await;
    settled(&world, &b).await;
    assert_eq!(reason(&world, &a).await, "Superseded");
    // The old one first.
    annotate(&world, &b, &[(annotations::ACTIVE, None)]).await;
    annotate(&world, &a, &[(annotations::ACTIVE, Some("true"))]).await;
    settled(&world, &a).await;
    assert_eq!(reason(&world, &b).await, "Superseded");
    let previous = world.releases.get(&a).await.unwrap().status.unwrap().previous_release.unwrap();
    assert_eq!(previous.release_ref, Some(b));
}

#[tokio::test]
async fn a_report_that_comes_late_does_not_take_over() {
    let (_ns, world) = world().await;
    let a = world.release(TARGET, "a").await;
    let b = world.release(TARGET, "b").await;
    world.activate(&b).await;
    let late = [
        (annotations::DEPLOYMENT_END_TIME, Some("2026-01-01T00:00:00Z")),
        (annotations::ACTIVE, Some("true")),
    ];
    annotate(&world, &a, &late).await;
    soon("the late one to be history", || async {
        let status = world.releases.get(&a).await?.status.unwrap_or_default();
        anyhow::ensure!(
            status.activation.is_some() && !conditions::is_true(&status.conditions, "Active"),
            "{status:?}"
        );
        Ok(())
    })
    .await;
    settled(&world, &b).await;
}

/// H-12: a status that theatre wrote, and a pointer that somebody deleted.
#[tokio::test]
async fn a_deleted_pointer_comes_back_as_it_was() {
    let (_ns, world) = world().await;
    let a = world.release(TARGET, "a").await;
    let b = world.release(TARGET, "b").await;
    world.activate(&a).await;
    world.activate(&b).await;
    settled(&world, &b).await;
    let before = pointers(&world).get(&object_name(TARGET)).await.unwrap().data;
    pointers(&world).delete(&object_name(TARGET), &DeleteParams::default()).await.unwrap();
    settled(&world, &b).await;
    assert_eq!(pointers(&world).get(&object_name(TARGET)).await.unwrap().data, before);
}

/// H-27: the limit of the namespace, with the newest healthy release and the active one kept.
#[tokio::test]
async fn culling_keeps_what_is_needed() {
    let (ns, world) = world().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let limit = json!({ "metadata": { "annotations": { annotations::RELEASE_LIMIT: "0" } } });
    namespaces.patch(ns.name(), &PatchParams::default(), &Patch::Merge(limit)).await.unwrap();
    let good = world.deploy(TARGET, "good", "True").await;
    let mut last = String::new();
    for id in ["b", "c", "d"] {
        last = world.deploy(TARGET, id, "False").await;
    }
    settled(&world, &last).await;
    soon("only the active and the newest healthy one to be left", || async {
        let all = world.releases.list(&kube::api::ListParams::default()).await?.items;
        let mut names: Vec<String> = all.into_iter().filter_map(|release| release.metadata.name).collect();
        names.sort();
        let mut wanted = vec![good.clone(), last.clone()];
        wanted.sort();
        anyhow::ensure!(names == wanted, "{names:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn annotations_that_make_no_sense_are_told_and_do_no_harm() {
    let (_ns, world) = world().await;
    let a = world.release(TARGET, "a").await;
    let bad = [
        (annotations::DEPLOYMENT_START_TIME, Some("tomorrow")),
        (annotations::ACTIVATION, Some("{}")),
        (annotations::HEALTH, Some("fine")),
        (annotations::ACTIVE, Some("true")),
    ];
    annotate(&world, &a, &bad).await;
    settled(&world, &a).await;
    let status = world.releases.get(&a).await.unwrap().status.unwrap();
    assert_eq!((status.deployment_start_time, status.conditions.len()), (None, 1));
    soon("an event to say so", || async {
        let events: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(world.client.clone(), &world.namespace);
        let events = events.list(&kube::api::ListParams::default()).await?.items;
        let notes: Vec<_> = events
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some("AnnotationNotUnderstood"))
            .filter_map(|event| event.note)
            .collect();
        anyhow::ensure!(notes.iter().any(|note| note.contains("is not RFC 3339")), "{notes:?}");
        Ok(())
    })
    .await;
}
