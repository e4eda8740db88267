//! The controller process: see [`rollback_controller::run`].

use clap::Parser as _;
use rollback_controller::args::Args;
use rollback_runtime::shutdown::Shutdown;
use rollback_runtime::{crypto, telemetry};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    crypto::install_crypto_provider()?;
    let args = Args::parse();
    telemetry::init(&args.log)?;
    let shutdown = Shutdown::on_signals(args.shutdown.shutdown_delay)?;
    rollback_controller::run::run(args, shutdown).await
}
