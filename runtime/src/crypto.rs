//! The one cryptography provider of every program: ring.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// Another provider was installed before ours.
#[derive(Debug, thiserror::Error)]
#[error(
    "another TLS cryptography provider is already installed: this is a defect of the build, please report it"
)]
pub struct ProviderInstalled;

/// Makes ring the provider of every TLS connection of this process. The first
/// statement of `main`: libraries pick a provider at their first use, and panic
/// when they find two.
pub fn install_crypto_provider() -> Result<(), ProviderInstalled> {
    rustls::crypto::ring::default_provider().install_default().map_err(|_| ProviderInstalled)
}

/// The provider, for configurations that take it explicitly.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
