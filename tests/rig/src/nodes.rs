//! Simulated nodes: what kubelets would report, without containers.
//!
//! A pod that is bound to a node runs and is ready after about 100 ms. Words in the tag of an image
//! make its container behave otherwise:
//!
//! | the tag contains | the container |
//! | --- | --- |
//! | `never-ready` | runs and never becomes ready |
//! | `crash-loop` | exits with code 1 again and again: `CrashLoopBackOff`, a growing restart count |
//! | `image-missing` | is not there: `ImagePullBackOff` |
//! | `bad-config` | cannot be created: `CreateContainerConfigError` |
//!
//! In a pod with restart policy Never or `OnFailure`, every other container exits with code 0 after
//! 200 ms; with `crash-loop` and Never, with code 1.
//!
//! A ConfigMap or Secret that a container's environment needs and that does not exist, or lacks the
//! key, gives `CreateContainerConfigError`; one that a volume needs keeps the pod in
//! `ContainerCreating` with a `FailedMount` event, as a kubelet does. Both go on once it exists.
//!
//! Each pod carries, from the moment its containers start, the annotation [`CONFIGMAPS_SEEN`].

mod behaviour;
mod config;
mod node;
mod pod;
mod references;
mod status;

pub use config::{SeenConfigMap, configmap_digest, configmaps_seen};
pub use node::run;

/// How many nodes there are: enough to see a `DaemonSet` with more than one pod.
pub const COUNT: usize = 2;

/// Annotation of a pod: the ConfigMaps that it read when its containers started, as JSON
/// (ConfigMap name to [`SeenConfigMap`]).
pub const CONFIGMAPS_SEEN: &str = "rig.rollback/configmaps";

/// Names of the nodes.
pub fn names() -> Vec<String> {
    (0..COUNT).map(|index| format!("rig-node-{index}")).collect()
}
