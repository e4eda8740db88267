//! End-to-end tests on a real Kubernetes control plane. One test binary, so that one control plane serves them all.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod admission;
mod crash_external;
mod crash_recording;
mod crash_sweep;
mod crd;
mod external_backend;
mod installing;
mod leadership;
mod plugin;
mod readme;
mod recording;
mod releases;
mod rollbacks;
mod workload;
mod workload_apply;
mod workload_owners;
mod workload_refusals;
