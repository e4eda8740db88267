//! From flags, environment and kubeconfig to a connection.

mod environment;
mod kubeconfig;
mod no_proxy;

use std::time::Duration;

use http::Response;
use kube::Config;
use kube::client::ClientBuilder;
use kube::config::KubeConfigOptions;
use tower::util::MapResponseLayer;

pub(crate) use self::environment::Environment;
use self::kubeconfig::Chosen;
use crate::args::ConnectArgs;
use crate::explain;
use crate::failure::Failure;
use crate::session::{Place, Session, Warnings};

/// Longest time for one request unless the user says otherwise. The client has no limit of its own.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for a TCP and TLS connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects as the flags, the environment and the kubeconfig say. Nothing is sent yet, but a credential plugin may run.
pub(crate) async fn connect(args: &ConnectArgs, environment: &Environment) -> Result<Session, Failure> {
    let (mut config, place) = configuration(args, environment).await?;
    // Trap: by default the client repeats a request for minutes.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let warnings = Warnings::default();
    let builder =
        ClientBuilder::try_from(config).map_err(|error| explain::call("connect", &error, &place))?;
    let collect = warnings.clone();
    let client =
        builder.with_layer(&MapResponseLayer::new(move |response| collected(response, &collect))).build();
    let deadline = match args.request_timeout {
        None => Some(REQUEST_TIMEOUT),
        Some(Duration::ZERO) => None,
        Some(limit) => Some(limit),
    };
    Ok(Session { client, place, warnings, deadline })
}

async fn configuration(args: &ConnectArgs, environment: &Environment) -> Result<(Config, Place), Failure> {
    let merged = kubeconfig::read(args, environment)?;
    let Some(Chosen { kubeconfig, context, cluster, proxy_is_named }) = kubeconfig::choose(merged, args)?
    else {
        return in_cluster(args);
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| kubeconfig::broken(&error, &context))?;
    let host = config.cluster_url.host().unwrap_or_default();
    // Only the environment's proxy has exceptions; and without TLS it is not asked at all.
    let is_https = config.cluster_url.scheme_str() == Some("https");
    if !proxy_is_named
        && (!is_https || no_proxy::matches(host, environment.no_proxy.as_deref().unwrap_or_default()))
    {
        config.proxy_url = None;
    }
    if let Some(namespace) = &args.namespace {
        config.default_namespace.clone_from(namespace);
    }
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let place = Place {
        cluster: if cluster.is_empty() { server.clone() } else { cluster },
        context,
        server,
        namespace: config.default_namespace.clone(),
    };
    Ok((config, place))
}

/// Without any kubeconfig: the pod's own service account.
fn in_cluster(args: &ConnectArgs) -> Result<(Config, Place), Failure> {
    let mut config = Config::incluster().map_err(|_| {
        Failure::error(
            "no kubeconfig: neither $KUBECONFIG nor ~/.kube/config names a file that exists. Name one with --kubeconfig, \
             or a server with --server",
        )
    })?;
    if let Some(namespace) = &args.namespace {
        config.default_namespace.clone_from(namespace);
    }
    let place = Place {
        cluster: "this cluster".to_owned(),
        context: String::new(),
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        namespace: config.default_namespace.clone(),
    };
    Ok((config, place))
}

/// Takes the server's warnings down.
fn collected<B>(response: Response<B>, warnings: &Warnings) -> Response<B> {
    for value in response.headers().get_all(http::header::WARNING) {
        if let Some(text) = value.to_str().ok().and_then(warning_text) {
            warnings.push(text);
        }
    }
    response
}

/// The text of `299 - "text"`, with its quoted pairs resolved.
fn warning_text(value: &str) -> Option<String> {
    let quoted = value.strip_prefix("299 ")?.split_once('"')?.1;
    let mut text = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Some(text),
            '\\' => text.extend(letters.next()),
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"299 - "the health is unknown""#, Some("the health is unknown"))]
    #[case(r#"299 kube-apiserver "say \"x\" \\ y" "Sat, 25 Aug 2012 23:34:45 GMT""#, Some(r#"say "x" \ y"#))]
    #[case(r#"299 - "unterminated"#, None)]
    #[case("199 - \"other\"", None)]
    #[case("299", None)]
    fn reads_warning_headers(#[case] value: &str, #[case] expected: Option<&str>) {
        assert_eq!(warning_text(value).as_deref(), expected);
    }

    #[test]
    fn a_warning_is_shown_once() {
        let warnings = Warnings::default();
        let answer = || Response::builder().header("Warning", "299 - \"odd\"").body(()).unwrap();
        collected(answer(), &warnings);
        collected(answer(), &warnings);
        assert_eq!(warnings.take(), ["odd"]);
        collected(answer(), &warnings);
        assert_eq!(warnings.take(), Vec::<String>::new());
    }
}
