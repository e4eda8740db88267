//! `cargo xtask demo`: a bad release on a real Kubernetes, and the one command that takes it back.
//!
//! Every step checks what it claims; the first one that is not as claimed ends the demo with an error.

mod narrate;
mod service;

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rollback_rig::install::{Install, Installed};
use rollback_rig::{ControlPlane, Options, eventually, workspace_binary};

use self::narrate::Narrator;
use crate::output::line;

const NAMESPACE: &str = "shop";
const DEADLINE: Duration = Duration::from_secs(90);

/// Runs the demo; with `keep` the cluster stays up until Ctrl-C.
pub async fn run(keep: bool) -> Result<()> {
    let mut say = Narrator::start();
    say.step("building Kubernetes, the webhook, the controller and the plugin (minutes the first time)");
    let plugin = workspace_binary("kubectl-rollback")?;
    let cp = ControlPlane::launch(Options::default()).await?;
    say.step("Kubernetes is up: etcd, API server, controller manager, scheduler, two simulated nodes");
    let installed = cp.install(&install()).await?;
    say.step(
        "installed: definitions, roles, webhooks; webhook and controller run under their service accounts",
    );
    let demo = Demo { cp: &cp, path: path_with(&plugin)? };
    demo.scene(&mut say).await.map_err(|error| with_log(error, &installed))?;
    say.step("done");
    if keep {
        line("\nThe cluster keeps running. Point kubectl at it:");
        line(&format!(
            "    export KUBECONFIG={} PATH={}:$PATH",
            cp.kubeconfig().display(),
            demo.plugin_folder()
        ));
        line(&format!("    kubectl rollback history payments -n {NAMESPACE}"));
        line("Ctrl-C stops it.");
        tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
    }
    Ok(())
}

/// The last lines of the controller's log say why a step did not come about.
fn with_log(error: anyhow::Error, installed: &Installed) -> anyhow::Error {
    let log = installed.controller.log();
    let tail: Vec<&str> = log.lines().rev().take(15).collect();
    error.context(tail.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

/// Timings that fit a demo: a minute is long here.
fn install() -> Install {
    let arguments = |all: &[&str]| all.iter().map(|&argument| argument.to_owned()).collect();
    Install {
        backends: arguments(&["workload"]),
        controller: arguments(&[
            "--recording-quiet-period=1s",
            "--minimum-active-time=2s",
            "--rollout-failure-after=5s",
        ]),
        ..Install::default()
    }
}

/// PATH with the plugin's folder first, so that kubectl finds it.
fn path_with(plugin: &Path) -> Result<std::ffi::OsString> {
    let folder = plugin.parent().context("the plugin is in no folder")?.to_path_buf();
    let old = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&old)))
        .context("PATH cannot be extended")
}

struct Demo<'a> {
    cp: &'a ControlPlane,
    path: std::ffi::OsString,
}

impl Demo<'_> {
    fn plugin_folder(&self) -> String {
        std::env::split_paths(&self.path).next().unwrap_or_default().display().to_string()
    }

    async fn scene(&self, say: &mut Narrator) -> Result<()> {
        self.cp.apply(&service::namespace(NAMESPACE))?;
        self.cp.apply(&service::manifests(NAMESPACE, &service::GOOD))?;
        say.step("payments 1.0 is deployed: Deployments web and worker, ConfigMap payments-config");
        self.release("web=payments-web:1.0", "Healthy", "True").await?;
        say.step("it was recorded as a Release, is active and measured to be healthy");

        self.cp.apply(&service::manifests(NAMESPACE, &service::BAD))?;
        say.step("payments 2.0 is let out; its pods never become ready");
        self.release("web=payments-web:2.0-never-ready", "RollbackRequired", "True").await?;
        say.step("it was recorded too, and measured to be unhealthy");
        self.show(&["rollback", "history", "payments", "-n", NAMESPACE])?;

        say.step("an engineer on call rolls it back");
        self.show(&[
            "rollback",
            "payments",
            "-n",
            NAMESPACE,
            "--reason",
            "5xx since 14:02, INC-311",
            "--yes",
        ])?;

        for workload in ["deployment/web", "deployment/worker"] {
            let arguments = ["rollout", "status", workload, "-n", NAMESPACE, "--timeout=60s"];
            let output = self.kubectl(&arguments)?;
            ensure!(output.status.success(), "{workload} is not healthy: {}", text(&output));
        }
        self.is("deployment/web", "{.spec.template.spec.containers[*].image}", "payments-web:1.0")?;
        self.is("deployment/worker", "{.spec.template.spec.containers[*].image}", "payments-worker:1.0")?;
        self.is("configmap/payments-config", "{.data.rate}", "10")?;
        say.step("both workloads and the ConfigMap are back on 1.0, every pod is ready");
        self.show(&["rollback", "history", "payments", "-n", NAMESPACE])?;
        Ok(())
    }

    /// Waits until the newest release whose Deployment web has that image carries a condition.
    async fn release(&self, image: &str, condition: &str, status: &str) -> Result<()> {
        let (_, image) = image.split_once('=').unwrap_or(("", image));
        eventually(DEADLINE, &format!("condition {condition}={status} on the release of {image}"), || async {
            let live = self.value("deployment/web", "{.spec.template.spec.containers[*].image}")?;
            ensure!(live == image, "Deployment web runs {live}");
            let path = format!(
                "{{range .items[*]}}{{.metadata.name}}={{.status.conditions[?(@.type==\"{condition}\")].status}} {{end}}"
            );
            let all = text(&self.kubectl(&[
                "get", "releases", "-n", NAMESPACE, "--sort-by=.metadata.creationTimestamp", "-o",
                &format!("jsonpath={path}"),
            ])?);
            let newest = all.split_whitespace().next_back().unwrap_or_default().to_owned();
            ensure!(newest.ends_with(&format!("={status}")), "releases: {all}");
            Ok(())
        })
        .await
    }

    fn value(&self, object: &str, path: &str) -> Result<String> {
        let output = self.kubectl(&["get", object, "-n", NAMESPACE, "-o", &format!("jsonpath={path}")])?;
        ensure!(output.status.success(), "{}", text(&output));
        Ok(text(&output))
    }

    fn is(&self, object: &str, path: &str, wanted: &str) -> Result<()> {
        let value = self.value(object, path)?;
        ensure!(value == wanted, "{object} {path} is {value:?}, not {wanted:?}");
        Ok(())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<Output> {
        self.cp.kubectl().args(arguments).env("PATH", &self.path).output().context("cannot run kubectl")
    }

    /// Runs a kubectl command as a person would see it; a failure ends the demo.
    fn show(&self, arguments: &[&str]) -> Result<()> {
        let quoted: Vec<String> = arguments
            .iter()
            .map(
                |argument| {
                    if argument.contains(' ') { format!("\"{argument}\"") } else { (*argument).to_owned() }
                },
            )
            .collect();
        line(&format!("\n    $ kubectl {}", quoted.join(" ")));
        // Both streams into one, as on a terminal.
        let mut shell = self.cp.command_as(Path::new("sh"), &self.cp.kubeconfig());
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(&self.cp.binaries().kubectl).args(arguments);
        let output = shell.env("PATH", &self.path).output().context("cannot run kubectl")?;
        for text in text(&output).lines() {
            line(&format!("    {text}"));
        }
        line("");
        ensure!(output.status.success(), "kubectl {} ended with {}", quoted.join(" "), output.status);
        Ok(())
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{err}{out}")
}
