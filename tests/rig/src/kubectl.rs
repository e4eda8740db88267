//! kubectl and helm against the rig's API server.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::binaries;
use crate::control_plane::ControlPlane;
use crate::environment::PROXIES;

impl ControlPlane {
    /// kubectl as the administrator. (`tokio::process::Command::from` makes it asynchronous.)
    pub fn kubectl(&self) -> Command {
        self.command_as(&self.binaries().kubectl, &self.kubeconfig())
    }

    /// kubectl with another kubeconfig.
    pub fn kubectl_as(&self, kubeconfig: &Path) -> Command {
        self.command_as(&self.binaries().kubectl, kubeconfig)
    }

    /// helm as the administrator; built on first use (two minutes). Blocks while building.
    pub fn helm(&self) -> Result<Command> {
        let mut command = self.command_as(&binaries::helm()?, &self.kubeconfig());
        for (variable, folder) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            command.env(variable, self.dir().join("helm").join(folder));
        }
        Ok(command)
    }

    /// A command of any program, with the environment that kubectl has.
    pub fn command_as(&self, program: &Path, kubeconfig: &Path) -> Command {
        let mut command = Command::new(program);
        for variable in PROXIES {
            command.env_remove(variable);
        }
        command.env("KUBECONFIG", kubeconfig);
        // kubectl keeps what it learns of a server by its address, and another run's server may
        // have had the same one.
        command.env("KUBECACHEDIR", self.dir().join("kubectl-cache"));
        command
    }

    /// Applies manifests (YAML, several documents) by server-side apply with kubectl, and takes over
    /// fields that others own. Blocks. Returns what kubectl printed.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        let mut input = tempfile::tempfile_in(self.dir())?;
        input.write_all(manifests.as_bytes())?;
        input.seek(SeekFrom::Start(0))?;
        let mut command = self.apply_command();
        run(command.arg("-").stdin(input))
    }

    /// Applies a file, or a folder and the folders in it. See [`Self::apply`].
    pub fn apply_path(&self, path: &Path) -> Result<String> {
        let mut command = self.apply_command();
        run(command.arg(path).arg("--recursive"))
    }

    fn apply_command(&self) -> Command {
        let mut command = self.kubectl();
        command.args(["apply", "--server-side", "--force-conflicts", "--field-manager=rig", "-f"]);
        command
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().context("cannot run kubectl")?;
    if !output.status.success() {
        bail!("kubectl apply failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
