//! Signature and name of a release (reference F). Being filled in.

use rollback_api::ReleaseConfig;
use sha2::{Digest, Sha256};

/// Lower-case hex of the SHA-256 of some bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// First 10 hex digits of the SHA-256 of the canonical config.
pub fn signature(config: &ReleaseConfig) -> String {
    sha256_hex(&serde_json::to_vec(config).unwrap_or_default())[..10].to_owned()
}
