//! kill -9 at every write of a recording: one release of each version, whole, and active.
//!
//! On a control plane of its own, since there is one leader in a cluster.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use rollback_api::{Release, annotations};
use rollback_core::workload::content;
use rollback_core::workload::object::WorkloadKind;
use rollback_core::workload::snapshot::{Snapshot, object_name};
use rollback_e2e::objects::World;
use rollback_e2e::service::{Version, deploy, kubectl, recorded, runs};
use rollback_e2e::soon;
use rollback_e2e::system::quick;
use rollback_rig::install::ready;
use rollback_rig::{ControlPlane, Exit, Options};

use super::recording::{message, releases};

const TARGET: &str = "shop";

#[tokio::test]
async fn every_write_may_be_the_last_one() {
    const NAMESPACE: &str = "recording";
    const MOST_WRITES: usize = 28;
    let cp = ControlPlane::launch(Options::default()).await.unwrap();
    let mut install = quick();
    install.controller.push("--leader-elect=false".to_owned());
    let installed = cp.install(&install).await.unwrap();
    cp.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n")).unwrap();
    let world = World::new(cp.client().unwrap(), NAMESPACE);
    let snapshots: Api<ControllerRevision> = Api::namespaced(cp.client().unwrap(), NAMESPACE);
    let mut controller = installed.controller;
    for write in 1..=MOST_WRITES {
        controller.kill().unwrap();
        let again = &installed.controller_again;
        controller = again.clone().env("ROLLBACK_CRASH_BEFORE_WRITE", &write.to_string()).start().unwrap();
        ready(&controller, installed.controller_admin).await.unwrap();
        let tag: &'static str = Box::leak(format!("1.{write}").into_boxed_str());
        let version = Version { tag, rate: "10" };
        deploy(&cp, NAMESPACE, TARGET, version);
        let died = soon("the crash, or the end", || async {
            if let Some(exit) = controller.exited()? {
                assert_eq!(exit, Exit::Signal(6), "{}", controller.log());
                return Ok(true);
            }
            anyhow::ensure!(is_healthy(&cp, &world).await, "it is under way");
            Ok(false)
        })
        .await;
        if died {
            controller = again.start().unwrap();
            ready(&controller, installed.controller_admin).await.unwrap();
        }
        let name = recorded(&cp, NAMESPACE, version, "Active", "True").await;
        world.only_active(TARGET, &name).await;
        let all = releases(&world, TARGET).await;
        assert_eq!(all.len(), write, "write {write}: one release a version");
        let release = all.iter().find(|release| release.metadata.name.as_ref() == Some(&name)).unwrap();
        for revision in &release.spec.config.revisions {
            let stored = snapshots.get(&object_name(&name, revision)).await.unwrap();
            Snapshot::parse(revision, &stored).unwrap();
        }
        if !died {
            let starts: BTreeSet<_> = all.iter().map(start).collect();
            assert_eq!(starts.len(), write, "each version has a start of its own");
            runs(&cp, NAMESPACE, TARGET, version).unwrap();
            println!("{} crashes, one at each write of a recording", write - 1);
            assert!(write > 8, "only {} writes were met", write - 1);
            return;
        }
    }
    panic!("a recording with more than {MOST_WRITES} writes");
}

fn start(release: &Release) -> String {
    let all = release.metadata.annotations.as_ref().unwrap();
    all[annotations::DEPLOYMENT_START_TIME].clone()
}

/// Whether what runs now is recorded as healthy.
async fn is_healthy(cp: &ControlPlane, world: &World) -> bool {
    let web = kubectl(cp, &["get", "deployment/web", "-n", &world.namespace, "-o", "json"]);
    let id = content::id(WorkloadKind::Deployment, &serde_json::from_str(&web).unwrap());
    releases(world, TARGET).await.iter().any(|release| {
        release.spec.config.revisions.iter().any(|revision| revision.id == id)
            && message(release, "Healthy").starts_with("every workload")
    })
}
