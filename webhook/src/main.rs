//! The webhook process.

use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    rollback_runtime::crypto::install_crypto_provider()?;
    rollback_webhook::run(rollback_webhook::Cli::parse())
}
