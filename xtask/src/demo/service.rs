//! The service of the demo: two Deployments and a ConfigMap that both read, labelled as target `payments`.

/// A version of the service.
pub(super) struct Version {
    web: &'static str,
    worker: &'static str,
    rate: &'static str,
}

/// Works.
pub(super) const GOOD: Version =
    Version { web: "payments-web:1.0", worker: "payments-worker:1.0", rate: "10" };
/// Never becomes ready: the rig's nodes read that off the tag.
pub(super) const BAD: Version =
    Version { web: "payments-web:2.0-never-ready", worker: "payments-worker:2.0-never-ready", rate: "1000" };

pub(super) fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n")
}

pub(super) fn manifests(namespace: &str, version: &Version) -> String {
    let Version { web, worker, rate } = version;
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: payments-config
  namespace: {namespace}
  labels: {{ theatre.gocardless.com/target: payments }}
data:
  rate: \"{rate}\"
---
{}---
{}",
        deployment(namespace, "web", web, 2),
        deployment(namespace, "worker", worker, 1)
    )
}

fn deployment(namespace: &str, name: &str, image: &str, replicas: u8) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{ theatre.gocardless.com/target: payments }}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{ app: {name} }}
  template:
    metadata:
      labels: {{ app: {name} }}
    spec:
      containers:
        - name: app
          image: {image}
          envFrom:
            - configMapRef: {{ name: payments-config }}
"
    )
}
