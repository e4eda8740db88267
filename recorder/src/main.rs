//! The release recorder: an authenticated receiver for deployment notifications.
//!
//! It does not receive anything yet and says so: a process that answered "ok"
//! to a notification it does not store would lose releases.

fn main() -> anyhow::Result<()> {
    anyhow::bail!(
        "rollback-recorder does not receive notifications yet; releases of labelled workloads are \
         recorded by rollback-controller, others by creating Release objects"
    )
}
