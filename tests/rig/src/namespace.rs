//! A namespace for one test.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Config};

use crate::client::client;
use crate::control_plane::ControlPlane;
use crate::control_plane::readiness::default_service_account;
use crate::eventually;

const DEADLINE: Duration = Duration::from_secs(60);

/// A namespace with a unique name; its deletion starts when this is dropped.
#[derive(Debug)]
pub struct TestNamespace {
    name: String,
    config: Config,
}

impl TestNamespace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Makes a namespace in which pods can be created at once.
pub async fn namespace(control_plane: &ControlPlane) -> Result<TestNamespace> {
    let client = control_plane.client()?;
    let wanted = Namespace {
        metadata: ObjectMeta { generate_name: Some("test-".to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let created = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &wanted).await?;
    let name = created.metadata.name.context("the API server made a namespace without a name")?;
    // From here on it is deleted even when the wait fails.
    let namespace = TestNamespace { name, config: control_plane.config().clone() };
    eventually(DEADLINE, "the default service account", || {
        default_service_account(&client, namespace.name())
    })
    .await?;
    Ok(namespace)
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        // A destructor cannot wait, and the runtime of the test may be ending: a thread of its own,
        // which nobody waits for. With the control plane, the namespace goes anyway.
        let (name, config) = (std::mem::take(&mut self.name), self.config.clone());
        std::thread::spawn(move || delete(&name, &config));
    }
}

/// Asks for the deletion; a failure is no failure of the test.
fn delete(name: &str, config: &Config) -> Option<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let client: Client = client(config).ok()?;
        let deletion = Api::<Namespace>::all(client).delete(name, &DeleteParams::background()).await;
        deletion.ok().map(drop)
    })
}
