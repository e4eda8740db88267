//! The README's commands to install: what they apply is accepted, what they write is there.

use std::process::Command;

use rollback_e2e::service::kubectl;
use rollback_rig::install::manifests;
use rollback_rig::{ControlPlane, Options, workspace_binary};

#[tokio::test]
async fn the_manifests_apply_and_the_certificates_are_made() {
    let cp = ControlPlane::launch(Options::default()).await.unwrap();
    let folder = manifests().canonicalize().unwrap();
    let applied = kubectl(&cp, &["apply", "-k", &folder.to_string_lossy()]);
    for object in [
        "namespace/rollback-system",
        "deployment.apps/rollback-controller",
        "deployment.apps/rollback-webhook",
    ] {
        assert!(applied.contains(&format!("{object} created")), "{applied}");
    }
    kubectl(
        &cp,
        &[
            "create",
            "rolebinding",
            "on-call",
            "--clusterrole=rollback-responder",
            "--user=oncall",
            "-n",
            "default",
        ],
    );
    let can = kubectl(
        &cp,
        &["auth", "can-i", "create", "rollbacks.deploy.crd.gocardless.com", "-n", "default", "--as=oncall"],
    );
    assert_eq!(can.trim(), "yes");

    let out = cp.dir().join("certs");
    std::fs::create_dir_all(&out).unwrap();
    let webhook = workspace_binary("rollback-webhook").unwrap();
    let made = Command::new(webhook)
        .args(["certs", "--dns", "rollback-webhook.rollback-system.svc", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for file in ["ca.crt", "tls.crt", "tls.key"] {
        assert!(out.join(file).is_file(), "{file} is missing");
    }
}
