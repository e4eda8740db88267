//! Kubeconfig files, as JSON (which is YAML too).

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::pki::ClientCertificate;

/// How a client proves who it is.
pub(crate) enum Credential<'a> {
    /// A client certificate.
    Certificate(&'a ClientCertificate),
    /// A bearer token.
    Token(&'a str),
}

/// The text of a kubeconfig for one user of the API server at `url`.
pub(crate) fn text(url: &str, ca_pem: &str, credential: &Credential<'_>, namespace: &str) -> String {
    let user: Value = match credential {
        Credential::Certificate(client) => json!({
            "client-certificate-data": base64(&client.certificate),
            "client-key-data": base64(&client.key),
        }),
        Credential::Token(token) => json!({ "token": token }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "rig", "cluster": { "server": url, "certificate-authority-data": base64(ca_pem) } }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "rig", "context": { "cluster": "rig", "user": "user", "namespace": namespace } }],
        "current-context": "rig",
    });
    format!("{config:#}\n")
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}

/// Kubernetes' own type for bytes knows base64, so that no further crate is needed.
fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}
