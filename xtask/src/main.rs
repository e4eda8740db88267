//! Tasks of this repository: `cargo xtask --help`.

mod check;
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
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Gen => generate::write(),
        Task::Check => check::run(),
    }
}
