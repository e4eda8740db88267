//! The rollback system on the rig's control plane, as an installation would have it: the shipped definitions,
//! roles and webhook registrations, and our programs running under their own service accounts.
//!
//! The programs run beside the control plane, not in pods: there is no container engine. So the webhooks are
//! registered by URL instead of by Service.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use rollback_certs::{Lifetimes, Names};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::control_plane::ControlPlane;
use crate::{Process, ProcessBuilder, eventually, free_port, workspace_binary};

/// The namespace of an installation.
pub const NAMESPACE: &str = "rollback-system";
const DEADLINE: Duration = Duration::from_secs(60);

/// What differs from one installation to another.
#[derive(Debug, Clone, Default)]
pub struct Install {
    /// Backends, the first one the default; for `--cicd-backend` of both programs.
    pub backends: Vec<String>,
    /// More arguments of the controller.
    pub controller: Vec<String>,
    /// More arguments of the webhook.
    pub webhook: Vec<String>,
    /// Environment of the controller.
    pub controller_env: Vec<(String, String)>,
}

/// A running installation. Dropping it kills the programs.
#[derive(Debug)]
pub struct Installed {
    /// The admission server.
    pub webhook: Process,
    /// The controller.
    pub controller: Process,
    /// How to start the controller again, for tests that kill it.
    pub controller_again: ProcessBuilder,
    /// Port of the controller's `/livez`, `/readyz` and `/metrics`.
    pub controller_admin: u16,
    /// Port of the webhook's `/livez`, `/readyz` and `/metrics`.
    pub webhook_admin: u16,
    /// Base URL of the webhook, and the authority that it shows.
    pub webhook_url: String,
    /// PEM.
    pub webhook_ca: String,
}

/// The folder with the manifests that we ship.
pub fn manifests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../manifests")
}

impl ControlPlane {
    /// Applies the definitions of our kinds and waits until they are served.
    pub async fn install_kinds(&self) -> Result<()> {
        self.apply_path(&manifests().join("crds"))?;
        let client = self.client()?;
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for name in ["releases", "rollbacks", "automatedrollbackpolicies"] {
            let path = format!("/apis/deploy.crd.gocardless.com/v1alpha1/{name}?limit=1");
            let name = format!("{name}.deploy.crd.gocardless.com");
            eventually(DEADLINE, &format!("CustomResourceDefinition {name} to be served"), || async {
                let conditions =
                    crds.get(&name).await?.status.unwrap_or_default().conditions.unwrap_or_default();
                ensure!(
                    conditions.iter().any(|c| c.type_ == "Established" && c.status == "True"),
                    "{conditions:?}"
                );
                // The first request of all to a new kind may be told that its storage is being set up.
                client.request_text(http::Request::get(&path).body(Vec::new())?).await?;
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Installs everything and waits until both programs are ready.
    pub async fn install(&self, install: &Install) -> Result<Installed> {
        self.apply_path(&manifests().join("namespace.yaml"))?;
        self.install_kinds().await?;
        self.apply_path(&manifests().join("rbac"))?;
        let (webhook, webhook_admin, webhook_url, webhook_ca) = self.start_webhook(install).await?;
        self.register_webhooks(&webhook_url, &webhook_ca).await?;
        let controller_admin = free_port()?;
        let controller_again = self.controller(install, controller_admin).await?;
        let controller = controller_again.start()?;
        ready(&controller, controller_admin).await?;
        Ok(Installed {
            webhook,
            controller,
            controller_again,
            controller_admin,
            webhook_admin,
            webhook_url,
            webhook_ca,
        })
    }

    async fn start_webhook(&self, install: &Install) -> Result<(Process, u16, String, String)> {
        let (port, admin) = (free_port()?, free_port()?);
        let names = Names { dns: vec!["localhost".to_owned()], ips: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)] };
        let bundle = rollback_certs::generate(SystemTime::now(), &names, Lifetimes::default())?;
        let folder = self.dir().join(format!("webhook-certs-{port}"));
        std::fs::create_dir_all(&folder)?;
        bundle.write_files(&folder)?;
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let process = self
            .process("webhook", workspace_binary("rollback-webhook")?)
            .args(["--bind-address=127.0.0.1", "--metrics-address=127.0.0.1"])
            .args([format!("--port={port}"), format!("--metrics-port={admin}")])
            .args([
                format!("--tls-cert-file={}", file("tls.crt")),
                format!("--tls-private-key-file={}", file("tls.key")),
            ])
            .args(backends(&install.backends))
            .args(install.webhook.clone())
            .kubeconfig(&self.kubeconfig_for_service_account(NAMESPACE, "rollback-webhook").await?)
            .start()?;
        ready(&process, admin).await?;
        Ok((process, admin, format!("https://127.0.0.1:{port}"), bundle.ca_pem))
    }

    /// How to start a controller of that installation with another admin port: a second one stands by.
    pub async fn controller(&self, install: &Install, admin: u16) -> Result<ProcessBuilder> {
        let builder = self
            .process("controller", workspace_binary("rollback-controller")?)
            .args([
                "--metrics-address=127.0.0.1".to_owned(),
                format!("--metrics-port={admin}"),
                format!("--leader-elect-lease-namespace={NAMESPACE}"),
            ])
            .args(backends(&install.backends))
            .args(install.controller.clone())
            .kubeconfig(&self.kubeconfig_for_service_account(NAMESPACE, "rollback-controller").await?);
        Ok(install.controller_env.iter().fold(builder, |builder, (name, value)| builder.env(name, value)))
    }

    /// Registers the shipped webhooks with that URL in place of the Service.
    async fn register_webhooks(&self, url: &str, ca: &str) -> Result<()> {
        let client = self.client()?;
        let by_url = |config: &mut WebhookClientConfig| {
            let path = config.service.take().and_then(|service| service.path).unwrap_or_default();
            config.url = Some(format!("{url}{path}"));
            config.ca_bundle = Some(ByteString(ca.as_bytes().to_vec()));
        };
        let file = manifests().join("webhooks/webhooks.yaml");
        let mut mutating: MutatingWebhookConfiguration = document(&file, "MutatingWebhookConfiguration")?;
        mutating.webhooks.iter_mut().flatten().for_each(|webhook| by_url(&mut webhook.client_config));
        apply(&client, &mutating).await?;
        let mut validating: ValidatingWebhookConfiguration =
            document(&file, "ValidatingWebhookConfiguration")?;
        validating.webhooks.iter_mut().flatten().for_each(|webhook| by_url(&mut webhook.client_config));
        apply(&client, &validating).await
    }
}

/// The document of that kind in a file of several.
fn document<T: DeserializeOwned>(file: &Path, kind: &str) -> Result<T> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let wanted = text.split("\n---\n").find(|part| part.lines().any(|line| line == format!("kind: {kind}")));
    let wanted = wanted.with_context(|| format!("{} has no {kind}", file.display()))?;
    serde_saphyr::from_str(wanted).with_context(|| format!("{kind} in {} cannot be read", file.display()))
}

async fn apply<K>(client: &Client, object: &K) -> Result<()>
where
    K: Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let name = object.meta().name.clone().unwrap_or_default();
    let api: Api<K> = Api::all(client.clone());
    api.patch(&name, &PatchParams::apply("rig").force(), &Patch::Apply(object)).await?;
    Ok(())
}

fn backends(backends: &[String]) -> Option<String> {
    (!backends.is_empty()).then(|| format!("--cicd-backend={}", backends.join(",")))
}

/// Waits until a program answers that it is ready; fails at once, with its log, when it ended.
pub async fn ready(process: &Process, admin: u16) -> Result<()> {
    let waited = eventually(DEADLINE, "readiness", || async {
        if let Some(exit) = process.exited()? {
            return Ok(Some(exit));
        }
        let answer = get(admin, "/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Ok(None)
    })
    .await;
    match waited {
        Ok(None) => Ok(()),
        Ok(Some(exit)) => anyhow::bail!("a program ended before it was ready: {exit:?}\n{}", process.log()),
        Err(error) => Err(error.context(process.log())),
    }
}

/// GETs a path of a program's admin port; the answer with its head.
pub async fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
