//! kill -9 right before and right after every write of a rollback through an external deployment system, calls to that
//! system included: one deployment, the right end, every time (H-1).
//!
//! On a control plane of its own, since there is one leader in a cluster.

use rollback_api::{AttemptState, Backend};
use rollback_core::pointer::{Pointer, object_name};
use rollback_core::rollback::Phase;
use rollback_e2e::objects::{World, named, rollback};
use rollback_e2e::scripted::ScriptedBackend;
use rollback_e2e::soon;
use rollback_e2e::system::quick;
use rollback_rig::install::{Installed, ready};
use rollback_rig::{ControlPlane, Exit, Options};

const TARGET: &str = "payments";
/// A rollback has fewer writes than this; more means that it never ends.
const MOST_WRITES: u32 = 40;

#[tokio::test]
async fn every_write_may_be_the_last_one() {
    let cp = ControlPlane::launch(Options::default()).await.unwrap();
    let backend = ScriptedBackend::start();
    let mut install = quick();
    // No waiting for the lease of a process that was killed; only the controllers that take part.
    install.controller.extend(["--leader-elect=false", "--controllers=release,rollback"].map(str::to_owned));
    install.controller_env = vec![("ROLLBACK_SCRIPTED_BACKEND".to_owned(), backend.url().to_owned())];
    let installed = cp.install(&install).await.unwrap();
    // Each round starts its own.
    installed.controller.kill().unwrap();
    for when in ["BEFORE", "AFTER"] {
        let mut crashes = 0;
        for write in 1.. {
            assert!(write <= MOST_WRITES, "a rollback with more than {MOST_WRITES} writes");
            if !crash(&cp, &installed, &backend, when, write).await {
                break;
            }
            crashes += 1;
        }
        println!("{crashes} crashes, one {} each write of a rollback", when.to_lowercase());
        assert!(crashes >= 12, "only {crashes} writes were met");
    }
    backend.check();
}

/// One rollback in a namespace of its own, with a crash at that write; whether there was one.
async fn crash(
    cp: &ControlPlane,
    installed: &Installed,
    backend: &ScriptedBackend,
    when: &str,
    write: u32,
) -> bool {
    let namespace = format!("{}-{write}", when.to_lowercase());
    let what = format!("crash {when} write {write}");
    cp.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {namespace} }}\n")).unwrap();
    let world = World::new(cp.client().unwrap(), &namespace);
    backend.outcome(&namespace, "succeeded");
    let controller = installed.controller_again.start().unwrap();
    ready(&controller, installed.controller_admin).await.unwrap();
    let good = world.deploy(TARGET, "good", "True").await;
    world.deploy(TARGET, "bad", "False").await;
    controller.kill().unwrap();

    let variable = format!("ROLLBACK_CRASH_{when}_WRITE");
    let dying = installed.controller_again.clone().env(&variable, &write.to_string()).start().unwrap();
    ready(&dying, installed.controller_admin).await.unwrap();
    let name = world.roll_back(&named("r", rollback(TARGET, Backend::Github))).await.unwrap();
    let crashed = soon(&format!("{what}, or the end"), || async {
        if let Some(exit) = dying.exited()? {
            assert_eq!(exit, Exit::Signal(6), "{what}: {}", dying.log());
            return Ok(true);
        }
        settled(&world, &name).await?;
        Ok(false)
    })
    .await;
    let next = if crashed { Some(installed.controller_again.start().unwrap()) } else { None };

    soon(&format!("the end after {what}"), || settled(&world, &name)).await;
    let (outcome, ended) = world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{what}: {:?}", ended.status);
    let attempts = &ended.status.as_ref().unwrap().attempts;
    let states: Vec<AttemptState> = attempts.iter().map(|attempt| attempt.state).collect();
    assert_eq!(states, [AttemptState::Succeeded], "{what}: a crash spends no attempt");
    assert_eq!(backend.deployments(&namespace).len(), 1, "{what}");
    soon(&format!("{good} to be the only active release after {what}"), || async {
        let active = world.active(TARGET).await;
        anyhow::ensure!(active == [good.clone()], "{active:?}");
        Ok(())
    })
    .await;
    drop((dying, next));
    crashed
}

/// Nothing is left to do: it has ended, its outcome is in the ledger, the target is free.
async fn settled(world: &World, name: &str) -> anyhow::Result<()> {
    let rollback = world.rollbacks.get(name).await?;
    let finalizers = rollback.metadata.finalizers.clone().unwrap_or_default();
    anyhow::ensure!(Phase::of(&rollback).is_ended() && finalizers.is_empty(), "{:?}", rollback.status);
    let pointers: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(world.client.clone(), &world.namespace);
    let pointer = Pointer::parse(TARGET, &pointers.get(&object_name(TARGET)).await?)?;
    let uid = rollback.metadata.uid.as_deref().unwrap_or_default();
    anyhow::ensure!(pointer.lock.is_none() && pointer.has_outcome(uid), "{pointer:?}");
    Ok(())
}
