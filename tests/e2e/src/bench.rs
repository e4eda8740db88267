//! The workload backend alone on a control plane of its own: no recording, no webhook, no state machine. A test records
//! what runs as the recording controller would, and makes the calls that the rollback controller would.

use std::path::Path;
use std::sync::Arc;

use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release, ReleaseConfig, ReleaseFields};
use rollback_controller::deployers::{DeployTarget, Deployer, Deployers};
use rollback_controller::fence::Fence;
use rollback_core::backend::{BackendError, Deployment, DeploymentState};
use rollback_core::signature::release_name;
use rollback_core::workload::object::ObjectKey;
use rollback_core::workload::{references, snapshot};
use rollback_rig::{ControlPlane, Options, TestNamespace, namespace};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::objects::rollback;
use crate::service::kubectl;
use crate::soon;

static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

/// The one target of a bench's namespace.
pub const TARGET: &str = "shop";

/// One namespace with one target.
pub struct Bench {
    /// The control plane.
    pub cp: &'static ControlPlane,
    /// The namespace.
    pub namespace: TestNamespace,
    /// The backend, under the controller's shipped service account.
    pub deployer: Arc<dyn Deployer>,
    admin: Client,
}

async fn plane() -> ControlPlane {
    let cp = ControlPlane::launch(Options::default()).await.expect("the control plane starts");
    cp.install_kinds().await.expect("the definitions are served");
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests");
    for part in ["namespace.yaml", "rbac"] {
        cp.apply_path(&manifests.join(part)).expect("the manifests apply");
    }
    cp
}

impl Bench {
    /// A new one.
    pub async fn new() -> Self {
        let cp = PLANE.get_or_init(plane).await;
        let namespace = namespace(cp).await.expect("a namespace");
        let account = cp.kubeconfig_for_service_account("rollback-system", "rollback-controller").await;
        let client = cp.client_for(&account.expect("a kubeconfig")).await.expect("a client");
        let deployers = Deployers::enable(&[Backend::Workload], &client, &Fence::open());
        let deployer = deployers.expect("the backend is there").get(Backend::Workload);
        let admin = cp.client().expect("a client");
        Self { cp, namespace, deployer, admin }
    }

    /// The namespace's name.
    pub fn ns(&self) -> &str {
        self.namespace.name()
    }

    /// Runs kubectl in the namespace.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-n", self.ns()];
        all.extend(arguments);
        kubectl(self.cp, &all)
    }

    /// Applies objects to the namespace in the way that the arguments say; the error is kubectl's.
    pub fn apply(&self, objects: &[Value], arguments: &[&str]) -> Result<(), String> {
        let file = self.cp.dir().join(format!("apply-{}.json", self.ns()));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(&file, list.to_string()).expect("the file is written");
        let apply =
            self.cp.kubectl().args(["apply", "-n", self.ns()]).args(arguments).arg("-f").arg(&file).output();
        let output = apply.expect("kubectl runs");
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// An object as it is now, with its managedFields.
    pub fn live(&self, object: &str) -> Value {
        let text = self.kubectl(&["get", object, "-o", "json", "--show-managed-fields"]);
        serde_json::from_str(&text).expect("kubectl prints JSON")
    }

    /// Records what the target consists of now.
    pub async fn record(&self) -> Release {
        let kinds = "configmaps,daemonsets,deployments,statefulsets";
        let selector = format!("theatre.gocardless.com/target={TARGET}");
        let text = self.kubectl(&["get", kinds, "-l", &selector, "-o", "json", "--show-managed-fields"]);
        let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let objects: Vec<(ObjectKey, Value)> =
            items.into_iter().map(|object| (key(&object), object)).collect();
        let beside = |of: &ObjectKey| -> Vec<Value> {
            let object = objects.iter().find(|(key, _)| key == of).map(|(_, object)| object);
            let needed = object.map(|object| references::of_template(&object["spec"]["template"]));
            let needed = needed.into_iter().flatten();
            let others = needed.filter(|reference| reference.kind.as_str() == "ConfigMap");
            others.map(|reference| self.live(&format!("configmap/{}", reference.name))).collect()
        };
        let recorded = snapshot::record(&objects, beside);
        let config = ReleaseConfig {
            target_name: TARGET.to_owned(),
            revisions: recorded.iter().map(|recorded| recorded.revision.clone()).collect(),
        };
        let name = release_name(&config).expect("a config that can be named");
        let releases = Api::namespaced(self.admin.clone(), self.ns());
        let release = Release::new(&name, ReleaseFields { config });
        let release =
            releases.create(&PostParams::default(), &release).await.expect("the release is created");
        let snapshots = Api::namespaced(self.admin.clone(), self.ns());
        for snapshot::Recorded { revision, snapshot } in recorded {
            let object = snapshot.to_object(&release, &revision).expect("a snapshot that fits");
            snapshots.create(&PostParams::default(), &object).await.expect("the snapshot is created");
        }
        release
    }

    /// A Rollback to the release, for calls to the backend.
    pub async fn rollback_to(&self, to: &Release) -> DeployTarget {
        let rollbacks = Api::namespaced(self.admin.clone(), self.ns());
        let created = rollbacks.create(&PostParams::default(), &rollback(TARGET, Backend::Workload)).await;
        let created = created.expect("the rollback is created");
        DeployTarget {
            namespace: self.ns().to_owned(),
            target: TARGET.to_owned(),
            rollback: created.name_any(),
            rollback_uid: created.uid().expect("a uid"),
            from: "shop-left".to_owned(),
            to: to.name_any(),
            by: String::new(),
            reason: String::new(),
        }
    }

    /// The plan of a rollback to the release.
    pub async fn plan(
        &self,
        target: &DeployTarget,
        to: &Release,
        options: &Value,
    ) -> Result<Plan, BackendError> {
        let options: DeploymentOptions = serde_json::from_value(options.clone()).expect("options");
        self.deployer.plan(target, to, &options).await
    }

    /// The first attempt of a new Rollback to the release, until it is at an end.
    pub async fn roll_back(&self, to: &Release, options: Value) -> Result<Deployment, BackendError> {
        let target = self.rollback_to(to).await;
        let plan = self.plan(&target, to, &options).await?;
        let key = format!("{}-1", target.rollback_uid);
        let found = self.deployer.find(&target, &key, &plan).await?;
        assert_eq!(found, None, "nothing carries a new key");
        let begun = self.deployer.trigger(&target, &key, &plan).await?;
        self.follow(&target, &key, &begun.id, &plan).await
    }

    /// Asks until the deployment is at an end.
    pub async fn follow(
        &self,
        target: &DeployTarget,
        key: &str,
        id: &str,
        plan: &Plan,
    ) -> Result<Deployment, BackendError> {
        soon("the rollout to end", || async {
            match self.deployer.poll(target, key, id, Some(plan)).await {
                Ok(deployment) => match deployment.state {
                    DeploymentState::Pending | DeploymentState::InProgress => {
                        anyhow::bail!(deployment.message)
                    }
                    DeploymentState::Succeeded(_) | DeploymentState::Failed | DeploymentState::Superseded => {
                        Ok(Ok(deployment))
                    }
                },
                Err(error) => Ok(Err(error)),
            }
        })
        .await
    }
}

/// The key of an object that kubectl printed.
pub fn key(object: &Value) -> ObjectKey {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{kind}/{name}").parse().expect("an object of a kind of ours")
}

/// A Deployment of the target: its image, the environment of its container, further containers.
pub fn deployment(name: &str, image: &str, env: &[&str], sidecar: Option<&str>) -> Value {
    let env: Vec<Value> = env.iter().map(|name| json!({"name": name, "value": "x"})).collect();
    let mut containers = vec![json!({"name": "app", "image": image, "env": env})];
    if let Some(name) = sidecar {
        containers.push(json!({"name": name, "image": "sidecar:1"}));
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"theatre.gocardless.com/target": TARGET}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
        },
    })
}

/// A ConfigMap of the target.
pub fn configmap(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"theatre.gocardless.com/target": TARGET}},
        "data": {"rate": value, value: "only here"},
    })
}
