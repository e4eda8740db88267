//! A running control plane with simulated nodes.

mod component;
pub(crate) mod readiness;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use kube::{Client, Config};

use crate::binaries::{self, Binaries};
use crate::client;
use crate::kubeconfig::{self, Credential};
use crate::pki::Pki;
use crate::process::ProcessBuilder;
use crate::protocol::{Reply, Signal};
use crate::supervisor::Supervisor;

pub use component::Component;
use component::Ports;

/// How often a start is tried again when another process took a port in between.
const START_ATTEMPTS: u32 = 3;

/// How a control plane is started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Let etcd wait for the disk, as it must in tests that kill it. Slower.
    pub fsync: bool,
}

/// etcd, API server, controller manager, scheduler and two nodes. Clones are the same control
/// plane; when the last one is dropped, or this process ends in whatever way, everything is killed
/// and its data removed.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    supervisor: Arc<Supervisor>,
    binaries: &'static Binaries,
    node_program: PathBuf,
    ports: Ports,
    ca_pem: String,
    config: Config,
    fsync: bool,
    /// Numbers the processes and files of this control plane.
    count: AtomicU32,
}

impl ControlPlane {
    /// Starts a control plane and waits until it is of use: the API server ready, the default
    /// service account there, the nodes schedulable. Builds the programs on first use (minutes).
    ///
    /// Fails when a program cannot be built or does not come up; the error shows the end of its log.
    pub async fn launch(options: Options) -> Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::launch_once(options).await {
                Err(error)
                    if attempt < START_ATTEMPTS
                        && format!("{error:#}").contains("address already in use") =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// A control plane of its own for a test that kills parts of it: etcd waits for the disk.
    pub async fn private() -> Result<Self> {
        Self::launch(Options { fsync: true }).await
    }

    async fn launch_once(options: Options) -> Result<Self> {
        let (binaries, node_program, supervisor) = tokio::task::spawn_blocking(|| {
            let binaries = binaries::control_plane()?;
            let node_program = crate::workspace_binary("rig-node")?;
            Ok::<_, anyhow::Error>((binaries, node_program, Supervisor::start()?))
        })
        .await??;
        let pki = Pki::create(&supervisor.dir().join("pki"))?;
        let ports = Ports::choose()?;
        let kubeconfig = |file: &str, user: &str, group: Option<&str>| {
            let client = pki.client(user, group)?;
            let text =
                kubeconfig::text(&ports.url(), &pki.ca_pem(), &Credential::Certificate(&client), "default");
            kubeconfig::write(&supervisor.dir().join(file), &text)
        };
        kubeconfig("admin.kubeconfig", "admin", Some("system:masters"))?;
        kubeconfig("controller-manager.kubeconfig", "system:kube-controller-manager", None)?;
        kubeconfig("scheduler.kubeconfig", "system:kube-scheduler", None)?;
        let config = client::config(&supervisor.dir().join("admin.kubeconfig")).await?;
        let control_plane = Self {
            parts: Arc::new(Parts {
                supervisor: Arc::new(supervisor),
                binaries,
                node_program,
                ports,
                ca_pem: pki.ca_pem(),
                config,
                fsync: options.fsync,
                count: AtomicU32::new(0),
            }),
        };
        for component in [Component::Etcd, Component::Apiserver] {
            control_plane.spawn(component)?;
        }
        control_plane.apiserver_ready().await?;
        for component in [Component::ControllerManager, Component::Scheduler, Component::Nodes] {
            control_plane.spawn(component)?;
        }
        control_plane.usable().await?;
        Ok(control_plane)
    }

    /// A new client with the rights of `system:masters`. Its connections belong to the current
    /// runtime: take one for each test. Answers 429 and 503 are errors at once, nothing is retried.
    pub fn client(&self) -> Result<Client> {
        client::client(&self.parts.config)
    }

    /// A new client for a kubeconfig file, for example of [`Self::kubeconfig_for_service_account`].
    pub async fn client_for(&self, kubeconfig: &Path) -> Result<Client> {
        client::client(&client::config(kubeconfig).await?)
    }

    /// The kubeconfig file of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir().join("admin.kubeconfig")
    }

    /// The API server's address, for example `https://127.0.0.1:20443`.
    pub fn url(&self) -> String {
        self.parts.ports.url()
    }

    /// The certificate that the API server's certificate is signed with, PEM.
    pub fn ca_pem(&self) -> &str {
        &self.parts.ca_pem
    }

    /// A folder for files of the run; removed at the end.
    pub fn dir(&self) -> &Path {
        self.parts.supervisor.dir()
    }

    /// Where kubectl and the others are.
    pub fn binaries(&self) -> &'static Binaries {
        self.parts.binaries
    }

    /// A program to run beside the control plane; it cannot outlive it. `name` is for messages and
    /// need not be unique.
    pub fn process(&self, name: &str, program: impl Into<PathBuf>) -> ProcessBuilder {
        ProcessBuilder::new(self.clone(), name, program.into())
    }

    /// Starts components that were killed or stopped, on their old data, and waits until the API
    /// server is ready. (Start etcd and the API server together: neither is ready without the other.)
    pub async fn start(&self, components: &[Component]) -> Result<()> {
        for component in components {
            self.spawn(*component)?;
        }
        self.apiserver_ready().await?;
        components.iter().try_for_each(|component| self.stays_up(*component))
    }

    /// Kills a component with SIGKILL; it is gone when this returns.
    pub fn kill(&self, component: Component) -> Result<()> {
        self.parts.supervisor.signal(component.name(), Signal::Kill).map(drop)
    }

    /// Ends a component with SIGTERM and waits until it is gone.
    pub async fn stop(&self, component: Component) -> Result<()> {
        self.parts.supervisor.signal(component.name(), Signal::Term)?;
        crate::eventually(readiness::DEADLINE, &format!("the end of {}", component.name()), || async {
            match self.parts.supervisor.status(component.name())? {
                Reply::Exited { .. } => Ok(()),
                other @ (Reply::Running(_) | Reply::Error(_)) => anyhow::bail!("{other:?}"),
            }
        })
        .await
    }

    /// Freezes a component (SIGSTOP): connections stay open and nothing answers.
    pub fn freeze(&self, component: Component) -> Result<()> {
        self.parts.supervisor.signal(component.name(), Signal::Stop).map(drop)
    }

    /// Lets a frozen component go on (SIGCONT).
    pub fn thaw(&self, component: Component) -> Result<()> {
        self.parts.supervisor.signal(component.name(), Signal::Cont).map(drop)
    }

    /// What a component has logged.
    pub fn log(&self, component: Component) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path(component)).unwrap_or_default()).into_owned()
    }

    fn log_path(&self, component: Component) -> PathBuf {
        self.dir().join(format!("{}.log", component.name()))
    }

    fn spawn(&self, component: Component) -> Result<()> {
        self.parts.supervisor.spawn(self.command(component)).map(drop)
    }

    pub(crate) fn supervisor(&self) -> &Arc<Supervisor> {
        &self.parts.supervisor
    }

    pub(crate) fn config(&self) -> &Config {
        &self.parts.config
    }

    /// A number that was not given before.
    pub(crate) fn next_number(&self) -> u32 {
        self.parts.count.fetch_add(1, Ordering::Relaxed)
    }
}
