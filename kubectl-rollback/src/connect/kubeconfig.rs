//! The kubeconfig: found, merged, one context chosen, the flags put over it.

use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError, LoadDataError, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use rollback_core::suggest::nearest;

use super::Environment;
use crate::args::ConnectArgs;
use crate::explain::plain;
use crate::failure::Failure;
use crate::yaml::in_plain_words;

/// One context's worth of kubeconfig, with the flags put over it.
#[derive(Debug)]
pub(super) struct Chosen {
    /// One context, one cluster, one user.
    pub(super) kubeconfig: Kubeconfig,
    /// Name of the context; empty without one.
    pub(super) context: String,
    /// Name of the cluster; empty without one.
    pub(super) cluster: String,
    /// Whether the kubeconfig names the proxy; otherwise the environment may.
    pub(super) proxy_is_named: bool,
}

/// Reads and merges the kubeconfig files; `None` if there are none. Files of a list that do not exist are left out, as in kubectl.
pub(super) fn read(args: &ConnectArgs, environment: &Environment) -> Result<Option<Kubeconfig>, Failure> {
    if let Some(path) = &args.kubeconfig {
        return read_file(path).map(Some);
    }
    let files: Vec<PathBuf> = match &environment.kubeconfig {
        Some(list) => std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => environment.home.iter().map(|home| home.join(".kube").join("config")).collect(),
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in files.iter().filter(|path| path.exists()) {
        let next = read_file(path)?;
        merged = Some(match merged {
            None => next,
            Some(before) => before.merge(next).map_err(|_| {
                Failure::error(format!(
                    "kubeconfig {} is of another kind or version than the files before it in KUBECONFIG: expected kind Config, apiVersion v1",
                    path.display()
                ))
            })?,
        });
    }
    Ok(merged)
}

fn read_file(path: &Path) -> Result<Kubeconfig, Failure> {
    let file = path.display();
    if path.is_dir() {
        return Err(Failure::error(format!("kubeconfig {file} is a folder, not a file")));
    }
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(error, _) => Failure::error(format!("kubeconfig {file} cannot be read: {}", plain(&error))),
        KubeconfigError::Parse(error) => {
            let why = in_plain_words(&error.to_string());
            Failure::error(format!("kubeconfig {file} is not valid: {why}. Look at it with: kubectl config view --kubeconfig {file}"))
        }
        other => Failure::error(format!("kubeconfig {file}: {other}")),
    })
}

/// Chooses context, cluster and user, and puts the flags over them. `None`: there is nothing to choose from and no flag says where to go.
pub(super) fn choose(merged: Option<Kubeconfig>, args: &ConnectArgs) -> Result<Option<Chosen>, Failure> {
    if merged.is_none() && args.server.is_none() {
        return Ok(None);
    }
    let merged = merged.unwrap_or_default();
    let current = merged.current_context.clone().filter(|name| !name.is_empty());
    let context_name = args.context.clone().or(current);
    let context = match &context_name {
        Some(name) => context(&merged, name)?,
        // `--server` says enough.
        None if args.server.is_some() || args.cluster.is_some() => Context::default(),
        None => {
            let names = contexts(&merged);
            return Err(Failure::error(format!(
                "no context is chosen: name one with --context, or choose one: kubectl config use-context NAME. {}",
                one_of("Contexts", &names)
            )));
        }
    };
    let cluster_name = args.cluster.clone().unwrap_or_else(|| context.cluster.clone());
    let mut cluster = cluster(&merged, &cluster_name, args)?;
    let mut user = user(&merged, &context, args)?;
    let proxy_is_named = cluster.proxy_url.as_ref().is_some_and(|url| !url.is_empty());
    cluster_flags(&mut cluster, args);
    user_flags(&mut user, args);
    check_server(&cluster, &cluster_name)?;
    let named = |name: &str| if name.is_empty() { "flags".to_owned() } else { name.to_owned() };
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster {
            name: named(&cluster_name),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: "user".into(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: "chosen".into(),
            context: Some(Context { cluster: named(&cluster_name), user: Some("user".into()), ..context }),
            ..NamedContext::default()
        }],
        current_context: Some("chosen".into()),
        ..Kubeconfig::default()
    };
    Ok(Some(Chosen {
        kubeconfig,
        context: context_name.unwrap_or_default(),
        cluster: cluster_name,
        proxy_is_named,
    }))
}

fn contexts(merged: &Kubeconfig) -> Vec<&str> {
    merged.contexts.iter().map(|context| context.name.as_str()).collect()
}

fn context(merged: &Kubeconfig, name: &str) -> Result<Context, Failure> {
    let found = merged.contexts.iter().find(|context| context.name == name);
    found
        .and_then(|found| found.context.clone())
        .ok_or_else(|| unknown("context", name, &contexts(merged), "Contexts"))
}

fn cluster(merged: &Kubeconfig, name: &str, args: &ConnectArgs) -> Result<Cluster, Failure> {
    let found = merged.clusters.iter().find(|cluster| cluster.name == name);
    match found.and_then(|found| found.cluster.clone()) {
        Some(cluster) => Ok(cluster),
        None if name.is_empty() || (args.server.is_some() && args.cluster.is_none()) => {
            Ok(Cluster::default())
        }
        None => {
            let names: Vec<&str> = merged.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
            Err(unknown("cluster", name, &names, "Clusters"))
        }
    }
}

/// A context may name a user that does not exist, as in kubectl: its requests are anonymous. A flag may not.
fn user(merged: &Kubeconfig, context: &Context, args: &ConnectArgs) -> Result<AuthInfo, Failure> {
    let find = |name: &str| merged.auth_infos.iter().find(|user| user.name == name);
    match (&args.user, &context.user) {
        (Some(name), _) => {
            find(name).map(|found| found.auth_info.clone().unwrap_or_default()).ok_or_else(|| {
                let names: Vec<&str> = merged.auth_infos.iter().map(|user| user.name.as_str()).collect();
                unknown("user", name, &names, "Users")
            })
        }
        (None, Some(name)) => Ok(find(name).and_then(|found| found.auth_info.clone()).unwrap_or_default()),
        (None, None) => Ok(AuthInfo::default()),
    }
}

fn unknown(what: &str, name: &str, known: &[&str], plural: &str) -> Failure {
    let hint =
        nearest(name, known.iter().copied()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    Failure::error(format!("no {what} {name:?} in the kubeconfig.{hint} {}", one_of(plural, known)))
}

fn one_of(plural: &str, names: &[&str]) -> String {
    if names.is_empty() {
        format!("{plural} there: none.")
    } else {
        format!("{plural} there: {}.", names.join(", "))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn cluster_flags(cluster: &mut Cluster, args: &ConnectArgs) {
    if let Some(server) = &args.server {
        cluster.server = Some(server.clone());
    }
    if let Some(path) = &args.certificate_authority {
        cluster.certificate_authority = Some(text(path));
        cluster.certificate_authority_data = None;
        cluster.insecure_skip_tls_verify = None;
    }
    if let Some(insecure) = args.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(insecure);
        if insecure {
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = None;
        }
    }
    if let Some(name) = &args.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
}

fn user_flags(user: &mut AuthInfo, args: &ConnectArgs) {
    if let Some(token) = &args.token {
        // The client would prefer a password or run a plugin although a token was given.
        *user = AuthInfo {
            token: Some(token.clone().into()),
            username: None,
            password: None,
            exec: None,
            auth_provider: None,
            token_file: None,
            ..user.clone()
        };
    }
    if let Some(path) = &args.client_certificate {
        user.client_certificate = Some(text(path));
        user.client_certificate_data = None;
    }
    if let Some(path) = &args.client_key {
        user.client_key = Some(text(path));
        user.client_key_data = None;
    }
    if let Some(name) = &args.as_user {
        user.impersonate = Some(name.clone());
        user.impersonate_groups = None;
        user.impersonate_uid = None;
    }
    if !args.as_group.is_empty() {
        user.impersonate_groups = Some(args.as_group.clone());
    }
    if let Some(uid) = &args.as_uid {
        user.impersonate_uid = Some(uid.clone());
    }
}

/// The address must be one that can be asked: with a scheme and a host.
fn check_server(cluster: &Cluster, name: &str) -> Result<(), Failure> {
    let of = if name.is_empty() { String::new() } else { format!(" of cluster {name:?}") };
    let Some(server) = cluster.server.as_deref().filter(|server| !server.is_empty()) else {
        return Err(Failure::error(format!(
            "the kubeconfig gives no server{of}: set clusters[].cluster.server, or give --server"
        )));
    };
    let uri = server.parse::<http::Uri>().ok();
    let fits = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    if fits {
        return Ok(());
    }
    Err(Failure::error(format!(
        "server {server:?}{of} is not an address such as https://k8s.example.com:6443"
    )))
}

/// What else of a kubeconfig can be wrong.
pub(super) fn broken(error: &KubeconfigError, context: &str) -> Failure {
    let data = |what: &str, error: &LoadDataError| match error {
        LoadDataError::DecodeBase64(_) => format!("{what}-data is not base64"),
        LoadDataError::ReadFile(error, path) => {
            format!("{what} {} cannot be read: {}", path.display(), plain(error))
        }
        LoadDataError::NoBase64DataOrFile => format!("{what} is empty"),
    };
    let why = match error {
        KubeconfigError::LoadCertificateAuthority(error) => data("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => data("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => data("client-key", error),
        KubeconfigError::ParseCertificates(_) => "certificate-authority holds no PEM certificates".to_owned(),
        KubeconfigError::ParseProxyUrl(error) => format!("proxy-url is not an address: {error}"),
        other => other.to_string(),
    };
    let of = if context.is_empty() { String::new() } else { format!(" of context {context}") };
    Failure::error(format!(
        "the kubeconfig{of} is not valid: {why}. Look at it with: kubectl config view --minify"
    ))
}

#[cfg(test)]
mod tests;
