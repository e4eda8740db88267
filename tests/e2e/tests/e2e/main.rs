//! End-to-end tests on a real Kubernetes control plane. One test binary, so that one control plane serves them all.

#![expect(clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod crd;
mod workload;
mod workload_owners;
mod rollbacks;
mod readme;
mod crash_sweep;
