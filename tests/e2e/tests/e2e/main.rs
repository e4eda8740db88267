//! End-to-end tests on a real Kubernetes control plane. One test binary, so that one control plane serves them all.

mod crd;
