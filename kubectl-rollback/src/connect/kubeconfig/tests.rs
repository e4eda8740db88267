//! Kubeconfigs, good and bad. Each bad one with its exact error (paths shortened to FILE).

use rstest::rstest;

use super::super::configuration;
use super::*;
use crate::session::Place;

const GOOD: &str = r"
apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: prod-eu-1, cluster: {server: 'https://k8s.example.com:6443', insecure-skip-tls-verify: true}}
- {name: stage-eu-1, cluster: {server: 'https://stage.example.com', proxy-url: 'http://proxy.example.com:3128'}}
users:
- {name: oncall, user: {username: u, password: p}}
contexts:
- {name: prod, context: {cluster: prod-eu-1, user: oncall, namespace: shop}}
- {name: stage, context: {cluster: stage-eu-1, user: gone}}
";

struct Files(tempfile::TempDir);

impl Files {
    fn with(texts: &[&str]) -> (Self, Environment) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> =
            (0..texts.len()).map(|n| folder.path().join(format!("config-{n}"))).collect();
        for (path, text) in paths.iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        let list = std::env::join_paths(&paths).unwrap();
        (Self(folder), Environment { kubeconfig: Some(list), ..Environment::default() })
    }
}

fn args(change: impl FnOnce(&mut ConnectArgs)) -> ConnectArgs {
    let mut args = ConnectArgs::default();
    change(&mut args);
    args
}

fn configured(args: &ConnectArgs, environment: &Environment) -> Result<(kube::Config, Place), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(configuration(args, environment))
}

fn place(change: impl FnOnce(&mut ConnectArgs)) -> Place {
    let (_files, environment) = Files::with(&[GOOD]);
    configured(&args(change), &environment).unwrap().1
}

fn error(text: &str, change: impl FnOnce(&mut ConnectArgs)) -> String {
    let (files, environment) = Files::with(&[text]);
    let failure = configured(&args(change), &environment).unwrap_err();
    failure
        .text
        .replace(&files.0.path().join("config-0").display().to_string(), "FILE")
        .replace(&files.0.path().display().to_string(), "FOLDER")
}

#[test]
fn the_current_context_says_where() {
    let expected = Place {
        cluster: "prod-eu-1".into(),
        context: "prod".into(),
        server: "https://k8s.example.com:6443".into(),
        namespace: "shop".into(),
    };
    assert_eq!(place(|_| {}), expected);
    assert_eq!(place(|args| args.namespace = Some("other".into())).namespace, "other");
    assert_eq!(place(|args| args.context = Some("stage".into())).namespace, "default");
}

#[test]
fn flags_go_over_the_context() {
    let of = |change: fn(&mut ConnectArgs)| place(change);
    assert_eq!(of(|args| args.cluster = Some("stage-eu-1".into())).server, "https://stage.example.com");
    assert_eq!(
        of(|args| args.server = Some("https://other.example.com".into())).server,
        "https://other.example.com"
    );
}

#[test]
fn credentials_of_flags_replace_others() {
    let (_files, environment) = Files::with(&[GOOD]);
    let given = args(|args| {
        args.token = Some("secret".into());
        args.as_user = Some("alice".into());
        args.as_group = vec!["oncall".into()];
        args.tls_server_name = Some("inner".into());
    });
    let (config, _) = configured(&given, &environment).unwrap();
    assert!(config.auth_info.username.is_none() && config.auth_info.token.is_some());
    assert_eq!(config.auth_info.impersonate.as_deref(), Some("alice"));
    assert_eq!(config.auth_info.impersonate_groups, Some(vec!["oncall".to_owned()]));
    assert_eq!(config.tls_server_name.as_deref(), Some("inner"));
    assert!(config.accept_invalid_certs);
    let (config, _) =
        configured(&args(|args| args.insecure_skip_tls_verify = Some(false)), &environment).unwrap();
    assert!(!config.accept_invalid_certs);
}

#[test]
fn several_files_are_one_and_missing_ones_are_none() {
    let second = "contexts:\n- {name: second, context: {cluster: prod-eu-1, user: oncall, namespace: two}}\ncurrent-context: second\n";
    let (files, mut environment) = Files::with(&[GOOD, second]);
    let list = environment.kubeconfig.take().unwrap();
    let with_missing = std::env::join_paths(
        std::iter::once(files.0.path().join("missing"))
            .chain(std::env::split_paths(&list))
            .chain([PathBuf::new()]),
    );
    environment.kubeconfig = Some(with_missing.unwrap());
    // The first file that says it wins.
    assert_eq!(configured(&args(|_| {}), &environment).unwrap().1.context, "prod");
    let chosen = configured(&args(|args| args.context = Some("second".into())), &environment).unwrap();
    assert_eq!(
        (chosen.1.server.as_str(), chosen.1.namespace.as_str()),
        ("https://k8s.example.com:6443", "two")
    );
}

#[test]
fn the_home_folder_is_the_default() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    std::fs::write(home.path().join(".kube/config"), GOOD).unwrap();
    let environment = Environment { home: Some(home.path().into()), ..Environment::default() };
    assert_eq!(configured(&args(|_| {}), &environment).unwrap().1.context, "prod");
}

#[test]
fn a_server_alone_is_enough() {
    let given = args(|args| args.server = Some("http://127.0.0.1:8001".into()));
    let (config, place) = configured(&given, &Environment::default()).unwrap();
    assert_eq!(
        (place.cluster.as_str(), place.context.as_str(), place.namespace.as_str()),
        ("http://127.0.0.1:8001", "", "default")
    );
    assert_eq!(config.proxy_url, None);
}

#[test]
fn a_proxy_of_the_kubeconfig_is_used() {
    let (_files, environment) = Files::with(&[GOOD]);
    let (config, _) = configured(&args(|args| args.context = Some("stage".into())), &environment).unwrap();
    assert_eq!(config.proxy_url.unwrap().to_string(), "http://proxy.example.com:3128/");
}

// Tried: no file, an empty file, a folder, YAML that is none, a list, a wrong type, a duplicate key, an unknown context, cluster, user,
// no current context, no server, an address that is none, a missing CA file, CA data that is not base64, CA data that is not PEM,
// a missing client certificate, kinds that differ between files.
#[rstest]
#[case(
    "",
    "no context is chosen: name one with --context, or choose one: kubectl config use-context NAME. Contexts there: none."
)]
#[case(
    "a: b: c",
    "kubeconfig FILE is not valid: line 1 column 5: mapping values are not allowed in this context. Look at it with: kubectl config view --kubeconfig FILE"
)]
#[case(
    "- 1",
    "kubeconfig FILE is not valid: line 1 column 1: expected mapping start. Look at it with: kubectl config view --kubeconfig FILE"
)]
#[case(
    "clusters: 7",
    "kubeconfig FILE is not valid: line 1 column 11: expected sequence start. Look at it with: kubectl config view --kubeconfig FILE"
)]
#[case(
    "kind: Config\nkind: Config\n",
    "kubeconfig FILE is not valid: line 2 column 1: duplicate mapping key: kind. Look at it with: kubectl config view --kubeconfig FILE"
)]
#[case("current-context: nope", "no context \"nope\" in the kubeconfig. Contexts there: none.")]
#[case(
    "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]",
    "no cluster \"c\" in the kubeconfig. Clusters there: none."
)]
#[case(
    "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
    "the kubeconfig gives no server of cluster \"c\": set clusters[].cluster.server, or give --server"
)]
#[case(
    "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'k8s.example.com'}}]",
    "server \"k8s.example.com\" of cluster \"c\" is not an address such as https://k8s.example.com:6443"
)]
#[case(
    "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://k8s', certificate-authority: ca.pem}}]",
    "the kubeconfig of context a is not valid: certificate-authority FOLDER/ca.pem cannot be read: no such file or directory. Look at it with: kubectl config view --minify"
)]
#[case(
    "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://k8s', certificate-authority-data: '***'}}]",
    "the kubeconfig of context a is not valid: certificate-authority-data is not base64. Look at it with: kubectl config view --minify"
)]
fn bad_files_are_explained(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(error(text, |_| {}), expected);
}

#[rstest]
#[case(|args: &mut ConnectArgs| args.context = Some("prodd".into()), "no context \"prodd\" in the kubeconfig. Did you mean prod? Contexts there: prod, stage.")]
#[case(|args: &mut ConnectArgs| args.cluster = Some("prod".into()), "no cluster \"prod\" in the kubeconfig. Clusters there: prod-eu-1, stage-eu-1.")]
#[case(|args: &mut ConnectArgs| args.user = Some("onccall".into()), "no user \"onccall\" in the kubeconfig. Did you mean oncall? Users there: oncall.")]
#[case(|args: &mut ConnectArgs| args.server = Some("ftp://k8s".into()), "server \"ftp://k8s\" of cluster \"prod-eu-1\" is not an address such as https://k8s.example.com:6443")]
#[case(|args: &mut ConnectArgs| args.server = Some(String::new()), "the kubeconfig gives no server of cluster \"prod-eu-1\": set clusters[].cluster.server, or give --server")]
#[case(|args: &mut ConnectArgs| args.kubeconfig = Some("/nonexistent/config".into()), "kubeconfig /nonexistent/config cannot be read: no such file or directory")]
#[case(|args: &mut ConnectArgs| args.kubeconfig = Some("/".into()), "kubeconfig / is a folder, not a file")]
#[case(|args: &mut ConnectArgs| args.certificate_authority = Some("/nonexistent/ca".into()), "the kubeconfig of context prod is not valid: certificate-authority /nonexistent/ca cannot be read: no such file or directory. Look at it with: kubectl config view --minify")]
fn bad_flags_are_explained(#[case] change: fn(&mut ConnectArgs), #[case] expected: &str) {
    assert_eq!(error(GOOD, change), expected);
}

#[test]
fn files_of_different_kinds_do_not_mix() {
    let (files, environment) = Files::with(&[GOOD, "apiVersion: v2\nkind: Config\n"]);
    let said = configured(&args(|_| {}), &environment)
        .unwrap_err()
        .text
        .replace(&files.0.path().display().to_string(), "FOLDER");
    assert_eq!(
        said,
        "kubeconfig FOLDER/config-1 is of another kind or version than the files before it in KUBECONFIG: expected kind Config, apiVersion v1"
    );
}

#[test]
fn without_anything_it_says_what_to_name() {
    let said = configured(&args(|_| {}), &Environment::default()).unwrap_err();
    assert_eq!(
        said.text,
        "no kubeconfig: neither $KUBECONFIG nor ~/.kube/config names a file that exists. Name one with --kubeconfig, or a server with --server"
    );
}
