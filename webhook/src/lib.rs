//! The admission webhook: fills in and checks Rollbacks, Releases and policies
//! with the rules of [`rollback_core::admission`].
//!
//! A request passes through [`http`] (method, size, encoding), [`review`] (the
//! wire format), one file of [`admit`] for each kind (which reads what it needs
//! through a [`reader::Reader`]) and back.

pub mod admit;
mod args;
mod certs;
pub mod http;
pub mod metrics;
mod patch;
pub mod reader;
pub mod review;
mod serve;

pub use args::{Cli, Command, ServeArgs};

/// Runs what the command line asks for. Fails with a sentence for the person who started it.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Command::Certs(args)) => certs::write(&args),
        None => serve::run(cli.serve),
    }
}
