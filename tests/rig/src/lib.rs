//! A real Kubernetes control plane for tests and the demo, without a container engine.
//!
//! [`ControlPlane`] starts etcd, the API server, the controller manager, the scheduler and two
//! simulated nodes; [`shared`] keeps one of them for a whole test binary. Programs under test run
//! as [`Process`]es. Everything that is started belongs to a supervisor process which kills it all
//! when this process ends, in whatever way it ends.
//!
//! Webhooks are registered by URL (`https://127.0.0.1:PORT/...`): there is no cluster network.

pub mod binaries;
mod client;
mod control_plane;
mod environment;
mod hex;
pub mod install;
mod kubeconfig;
mod kubectl;
mod namespace;
pub mod nodes;
mod pki;
mod ports;
mod process;
pub mod protocol;
mod service_account;
mod shared;
mod supervisor;
mod wait;
mod workspace;

pub use control_plane::{Component, ControlPlane, Options};
pub use namespace::{TestNamespace, namespace};
pub use ports::free_port;
pub use process::{Exit, Process, ProcessBuilder};
pub use shared::shared;
pub use wait::eventually;
pub use workspace::workspace_binary;
