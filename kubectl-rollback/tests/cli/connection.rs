//! What reaches the server: credentials, impersonation, namespace.

use std::path::Path;

use super::program;
use super::server::{Answer, Request, Server};

fn kubeconfig(folder: &Path, server: &str, user: &str) -> std::path::PathBuf {
    let path = folder.join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u, namespace: shop}}}}]\nusers:\n- name: u\n  user: {user}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn first_request(user: &str, arguments: &[&str]) -> (Request, super::Ran) {
    let server = Server::start(|_| Answer::list(&[]));
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &server.url(), user);
    let mut command = program();
    command.env("KUBECONFIG", &config).env("PATH", "/usr/bin:/bin").arg("list").args(arguments);
    let ran = super::Ran::from(command.output().unwrap());
    let requests = server.requests();
    (requests.first().cloned().unwrap_or_else(|| panic!("no request: {ran:?}")), ran)
}

#[test]
fn the_token_of_the_kubeconfig_and_its_namespace_are_used() {
    let (request, ran) = first_request("{token: t0ken}", &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err, "No releases in namespace shop. All namespaces: kubectl rollback list -A\n");
    assert_eq!(request.header("authorization"), ["Bearer t0ken"]);
    assert!(
        request.is("GET", "/apis/deploy.crd.gocardless.com/v1alpha1/namespaces/shop/releases"),
        "{request:?}"
    );
    assert_eq!(
        first_request("{token: t}", &["--token", "other"]).0.header("authorization"),
        ["Bearer other"]
    );
    assert!(
        first_request("{token: t}", &["-A"]).0.is("GET", "/apis/deploy.crd.gocardless.com/v1alpha1/releases")
    );
    assert!(first_request("{token: t}", &["-n", "other"]).0.is("GET", "/namespaces/other/releases"));
}

#[test]
fn impersonation_reaches_the_server() {
    let (request, _) = first_request(
        "{token: t}",
        &["--as", "alice", "--as-group", "a", "--as-group", "b", "--as-uid", "7"],
    );
    assert_eq!(request.header("impersonate-user"), ["alice"]);
    assert_eq!(request.header("impersonate-group"), ["a", "b"]);
    assert_eq!(request.header("impersonate-uid"), ["7"]);
}

#[cfg(unix)]
#[test]
fn a_credential_plugin_is_run() {
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, args: ['-c', 'echo ''{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"from-plugin\"}}''']}}";
    let (request, ran) = first_request(user, &[]);
    assert_eq!(request.header("authorization"), ["Bearer from-plugin"], "{}", ran.err);
}

fn failing(user: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), "https://k8s.example.com", user);
    let output =
        program().env("KUBECONFIG", &config).env("PATH", "/usr/bin:/bin").arg("list").output().unwrap();
    let ran = super::Ran::from(output);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    ran.err.replace(&folder.path().display().to_string(), "FOLDER")
}

#[cfg(unix)]
#[test]
fn credentials_that_cannot_be_had_are_explained() {
    let exec = |command: &str, script: &str| {
        format!(
            "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, interactiveMode: Never, args: ['-c', '{script}']}}}}"
        )
    };
    for (user, why) in [
        (exec("no-such-plugin", ""), "the credential plugin of its user is not installed, or not in PATH"),
        (
            exec("sh", "echo s3cret; echo log in first >&2; exit 3"),
            "the credential plugin of its user failed (exit status: 3): log in first",
        ),
        (exec("sh", "echo s3cret"), "the credential plugin of its user did not print an ExecCredential"),
        (
            "{tokenFile: nowhere}".to_owned(),
            "the token file FOLDER/nowhere cannot be read: no such file or directory",
        ),
    ] {
        let said = failing(&user);
        assert_eq!(
            said,
            format!(
                "Error: no credentials for https://k8s.example.com (context c): {why}. Try the same with kubectl: kubectl auth whoami\n"
            )
        );
        assert!(!said.contains("s3cret"));
    }
}

#[test]
fn a_proxy_of_the_environment_has_exceptions() {
    let server = Server::start(|_| Answer::list(&[]));
    let run = |url: &str, no_proxy: &str| {
        let mut command = program();
        command.env("HTTPS_PROXY", server.url()).env("NO_PROXY", no_proxy).args([
            "list",
            "--request-timeout=5s",
            "--server",
            url,
        ]);
        super::Ran::from(command.output().unwrap())
    };
    // Asked for a tunnel, which this server does not give.
    assert_eq!(run("https://k8s.example.invalid", "").code, 1);
    assert_eq!(server.requests().first().map(|request| request.method.clone()), Some("CONNECT".to_owned()));
    let before = server.requests().len();
    assert_eq!(run("https://k8s.example.invalid", "example.invalid").code, 1);
    assert_eq!(server.requests().len(), before, "reached directly, or not at all");
    // A plain address is never sent through the proxy for TLS.
    assert_eq!(run(&server.url(), "").code, 0);
}
