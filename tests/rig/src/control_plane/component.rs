//! The programs of a control plane and their command lines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;

use super::ControlPlane;
use crate::environment::PROXIES;
use crate::ports::free_port;
use crate::protocol::Spawn;

/// One program of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// The database.
    Etcd,
    /// The API server.
    Apiserver,
    /// Deployments, `ReplicaSets`, garbage collection, service accounts and so on.
    ControllerManager,
    /// Binds pods to nodes.
    Scheduler,
    /// The simulated nodes: the part of the kubelet.
    Nodes,
}

impl Component {
    /// Its name as a program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Nodes => "rig-node",
        }
    }
}

/// Each one on 127.0.0.1, and the same for the whole life of a control plane.
#[derive(Debug)]
pub(super) struct Ports {
    etcd_clients: u16,
    etcd_peers: u16,
    apiserver: u16,
    controller_manager: u16,
    scheduler: u16,
}

impl Ports {
    pub(super) fn choose() -> Result<Self> {
        Ok(Self {
            etcd_clients: free_port()?,
            etcd_peers: free_port()?,
            apiserver: free_port()?,
            controller_manager: free_port()?,
            scheduler: free_port()?,
        })
    }

    /// The API server's address.
    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.apiserver)
    }
}

impl ControlPlane {
    pub(super) fn command(&self, component: Component) -> Spawn {
        let binaries = self.parts.binaries;
        let (program, args): (&PathBuf, Vec<String>) = match component {
            Component::Etcd => (&binaries.etcd, self.etcd_args()),
            Component::Apiserver => (&binaries.apiserver, self.apiserver_args()),
            Component::ControllerManager => (&binaries.controller_manager, self.controller_manager_args()),
            Component::Scheduler => (&binaries.scheduler, self.scheduler_args()),
            Component::Nodes => {
                (&self.parts.node_program, vec![format!("--kubeconfig={}", self.file("admin.kubeconfig"))])
            }
        };
        Spawn {
            name: component.name().to_owned(),
            program: program.clone(),
            args,
            env: BTreeMap::new(),
            unset: PROXIES.map(str::to_owned).to_vec(),
            log: self.log_path(component),
        }
    }

    fn file(&self, name: &str) -> String {
        self.dir().join(name).to_string_lossy().into_owned()
    }

    fn etcd_args(&self) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.parts.ports.etcd_clients);
        let peers = format!("http://127.0.0.1:{}", self.parts.ports.etcd_peers);
        let mut args = vec![
            "--name=rig".to_owned(),
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=rig={peers}"),
            "--log-level=warn".to_owned(),
        ];
        if !self.parts.fsync {
            args.push("--unsafe-no-fsync".to_owned());
        }
        args
    }

    fn apiserver_args(&self) -> Vec<String> {
        vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.parts.ports.etcd_clients),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.parts.ports.apiserver),
            // No service is reachable here, so nobody needs the endpoints of `kubernetes`; the
            // address is only there because the loopback one is refused.
            "--endpoint-reconciler-type=none".to_owned(),
            "--advertise-address=10.9.9.9".to_owned(),
            format!("--tls-cert-file={}", self.file("pki/apiserver.crt")),
            format!("--tls-private-key-file={}", self.file("pki/apiserver.key")),
            format!("--client-ca-file={}", self.file("pki/ca.crt")),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-account-key-file={}", self.file("pki/sa.pub")),
            format!("--service-account-signing-key-file={}", self.file("pki/sa.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--allow-privileged=true".to_owned(),
        ]
    }

    fn controller_manager_args(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.file("controller-manager.kubeconfig")),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.parts.ports.controller_manager),
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", self.file("pki/sa.key")),
            format!("--root-ca-file={}", self.file("pki/ca.crt")),
            // A machine under load, or a test that freezes the API server, must not make the nodes
            // look dead and their pods evicted.
            "--node-monitor-grace-period=10m".to_owned(),
            // The defaults (20 and 30 requests a second) hold up tests that run side by side.
            "--kube-api-qps=300".to_owned(),
            "--kube-api-burst=600".to_owned(),
        ]
    }

    fn scheduler_args(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.file("scheduler.kubeconfig")),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.parts.ports.scheduler),
        ]
    }
}
