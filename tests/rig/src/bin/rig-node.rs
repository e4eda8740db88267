//! Plays the kubelets of the simulated nodes.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Simulated nodes for tests.
#[derive(Parser)]
struct Args {
    /// The kubeconfig of an administrator.
    #[arg(long)]
    kubeconfig: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    rollback_rig::nodes::run(&args.kubeconfig).await
}
