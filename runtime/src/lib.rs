//! Process plumbing shared by the servers: logs, signals, the API client, HTTP
//! servers, leader election. It knows nothing about releases or rollbacks.
//!
//! A server's `main` begins with [`crypto::install_crypto_provider`].

pub mod admin;
pub mod args;
pub mod body;
pub mod client;
pub mod crypto;
pub mod lease;
pub mod readiness;
pub mod server;
pub mod shutdown;
pub mod telemetry;
