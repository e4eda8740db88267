//! Tasks of this repository: `cargo xtask --help`.

mod check;
mod demo;
mod generate;
mod output;

use clap::{Parser, Subcommand};

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", version, about)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the generated files (custom resource definitions)
    Gen,
    /// Check layering, generated files and the README's claims about the tree
    Check,
    /// Show the main job end to end on a real Kubernetes control plane on this machine
    Demo {
        /// Leave the cluster running afterwards, until Ctrl-C
        #[arg(long)]
        keep: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Gen => generate::write(),
        Task::Check => check::run(),
        Task::Demo { keep } => tokio::runtime::Runtime::new()?.block_on(demo::run(keep)),
    }
}
