//! kill -9 at every write of a workload rollback: whatever was done, the next process finishes it, once.
//!
//! On a control plane of its own, since there is one leader in a cluster.

use std::time::Duration;

use rollback_api::{Backend, Rollback};
use rollback_e2e::objects::{World, named, rollback, to};
use rollback_e2e::service::{BETTER, GOOD, deploy, kubectl, recorded, runs};
use rollback_e2e::soon;
use rollback_e2e::system::quick;
use rollback_rig::install::ready;
use rollback_rig::{ControlPlane, Exit, Options};

const NAMESPACE: &str = "sweep";
const TARGET: &str = "payments";
/// A rollback of three objects has fewer writes than this; more means that it never ends.
const MOST_WRITES: u32 = 60;

/// How often the pod template of a Deployment was replaced: the Deployment controller counts.
fn revision(cp: &ControlPlane, name: &str) -> u32 {
    let path = r"jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}";
    kubectl(cp, &["get", "deployment", name, "-n", NAMESPACE, "-o", path]).parse().unwrap()
}

#[tokio::test]
async fn every_write_may_be_the_last_one() {
    let cp = ControlPlane::launch(Options::default()).await.unwrap();
    // Without an election: the next process would have to wait out the lease of the one that was killed.
    let mut install = quick();
    install.controller.push("--leader-elect=false".to_owned());
    let installed = cp.install(&install).await.unwrap();
    cp.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n")).unwrap();
    let world = World::new(cp.client().unwrap(), NAMESPACE);
    deploy(&cp, NAMESPACE, TARGET, GOOD);
    let good = recorded(&cp, NAMESPACE, GOOD, "Healthy", "True").await;
    let admin = installed.controller_admin;
    let mut controller = installed.controller;
    let mut crashes = 0;
    for write in 1..=MOST_WRITES {
        deploy(&cp, NAMESPACE, TARGET, BETTER);
        let bad = recorded(&cp, NAMESPACE, BETTER, "Healthy", "True").await;
        world.condition(&bad, "Active", "True").await;
        let before = (revision(&cp, "web"), revision(&cp, "worker"));

        controller.kill().unwrap();
        let again = &installed.controller_again;
        controller = again.clone().env("ROLLBACK_CRASH_BEFORE_WRITE", &write.to_string()).start().unwrap();
        ready(&controller, admin).await.unwrap();
        let name = format!("at-write-{write}");
        let wanted = named(&name, to(&good, rollback(TARGET, Backend::Workload)));
        world.roll_back(&wanted).await.unwrap();
        let died = died_or_ended(&controller, &world, &name).await;
        if died {
            crashes += 1;
            controller = again.start().unwrap();
            ready(&controller, admin).await.unwrap();
        }

        let (outcome, ended) = world.ended(&name).await;
        assert_eq!(outcome, Ok(()), "write {write}: {:?}", ended.status);
        soon("the good version to run", || async { runs(&cp, NAMESPACE, TARGET, GOOD) }).await;
        world.only_active(TARGET, &good).await;
        let after = (revision(&cp, "web"), revision(&cp, "worker"));
        assert_eq!(
            after,
            (before.0 + 1, before.1 + 1),
            "write {write}: each Deployment was rolled exactly once"
        );
        attempts_of_one_key(&ended);
        if !died {
            println!("{crashes} crashes, one at each write of a rollback");
            assert!(crashes >= 10, "only {crashes} writes were met");
            return;
        }
    }
    panic!("a rollback with more than {MOST_WRITES} writes");
}

/// A crash spends no attempt: the same key is taken up again (invariant 6).
fn attempts_of_one_key(ended: &Rollback) {
    let attempts = &ended.status.as_ref().unwrap().attempts;
    let keys: Vec<&str> = attempts.iter().map(|attempt| attempt.key.as_str()).collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

/// Whether the controller died at its fail point before the Rollback was settled.
async fn died_or_ended(controller: &rollback_rig::Process, world: &World, name: &str) -> bool {
    soon("the crash, or the end", || async {
        if let Some(exit) = controller.exited()? {
            assert_eq!(exit, Exit::Signal(6), "{}", controller.log());
            return Ok(true);
        }
        let rollback = world.rollbacks.get(name).await?;
        let ended = rollback_core::rollback::Phase::of(&rollback).is_ended();
        anyhow::ensure!(
            ended && rollback.metadata.finalizers.unwrap_or_default().is_empty(),
            "it is under way"
        );
        // The last write of all is the finalizer's removal; give a crash after it no chance to be missed.
        match controller.wait(Duration::from_millis(500)).await {
            Ok(_) => Ok(true),
            Err(_) => Ok(false),
        }
    })
    .await
}
