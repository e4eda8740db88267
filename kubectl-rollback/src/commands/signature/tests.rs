use rstest::rstest;

use super::*;
use crate::printer::tests::captured;

const RELEASE: &str = "apiVersion: deploy.crd.gocardless.com/v1alpha1\nkind: Release\nconfig:\n  targetName: test-target\n  revisions:\n  - {name: application, id: abc123}\n";

fn printed(text: &str, output: Option<&str>) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let args = Args { filename: file.path().into(), output: output.map(|text| Output::parse(text).unwrap()) };
    let (mut printer, out, err) = captured();
    let result = run(&args, &mut printer);
    assert_eq!(err.text(), "");
    result.map(|()| out.text()).map_err(|failure| {
        assert_eq!((failure.kind.code(), out.text().as_str()), (1, ""));
        failure.text.replace(&file.path().display().to_string(), "FILE")
    })
}

#[test]
fn equals_the_reference() {
    assert_eq!(printed(RELEASE, None).unwrap(), "3978d50982   test-target-3978d50\n");
    assert_eq!(printed(RELEASE, Some("name")).unwrap(), "test-target-3978d50\n");
    assert_eq!(printed(RELEASE, Some("jsonpath={.signature}")).unwrap(), "3978d50982");
    insta::assert_snapshot!(printed(RELEASE, Some("yaml")).unwrap());
}

#[test]
fn takes_documents_lists_and_json_and_passes_other_kinds_over() {
    let other = "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n";
    let json = r#"{"apiVersion":"deploy.crd.gocardless.com/v1alpha1","kind":"Release","config":{"targetName":"test-target","revisions":[{"name":"application","id":"abc123","source":"","metadata":{}}]}}"#;
    let list = format!("apiVersion: v1\nkind: List\nitems: [{json}, {{apiVersion: v1, kind: Secret}}]\n");
    let text = format!("---\n{RELEASE}---\n# nothing\n---\n{other}---\n{list}");
    assert_eq!(
        printed(&text, None).unwrap(),
        "3978d50982   test-target-3978d50\n3978d50982   test-target-3978d50\n"
    );
    assert_eq!(printed(json, None).unwrap(), "3978d50982   test-target-3978d50\n");
    assert!(printed(&text, Some("json")).unwrap().contains("\"kind\": \"List\""));
}

#[test]
fn anchors_merge_keys_and_null_are_as_for_kubectl() {
    let text = "apiVersion: deploy.crd.gocardless.com/v1alpha1\nkind: Release\nx: &base {name: application, source: null}\nconfig:\n  targetName: test-target\n  revisions:\n  - <<: *base\n    id: abc123\n";
    assert_eq!(printed(text, None).unwrap(), "3978d50982   test-target-3978d50\n");
}

fn release(config: &str) -> String {
    format!("apiVersion: deploy.crd.gocardless.com/v1alpha1\nkind: Release\nconfig: {config}\n")
}

// Tried: nothing, comments only, no YAML, a tab, a duplicate key, an alias that does not exist, a scalar, a list, no kind, another kind, no group,
// no config, null config, a config that is text, no target, a target that is a number, a bad target, no revisions, empty revisions, revisions that
// are a map, an id that is a number, an octal number, a truth value, null, an id that is empty, two revisions of one name, an unknown field, a metadata field that is a
// list, a second document that is bad, a list without items, an item that is bad.
#[rstest]
#[case("", "FILE holds no Release (apiVersion deploy.crd.gocardless.com/v1alpha1, kind Release)")]
#[case(
    "# nothing\n---\n",
    "FILE holds no Release (apiVersion deploy.crd.gocardless.com/v1alpha1, kind Release)"
)]
#[case(
    "apiVersion: v1\nkind: ConfigMap\n",
    "FILE holds no Release (apiVersion deploy.crd.gocardless.com/v1alpha1, kind Release)"
)]
#[case("just words", "FILE: the document is text, expected a map")]
#[case("- 1\n", "FILE: the document is a list, expected a map")]
#[case("config: {}\n", "FILE: kind is missing: expected kind Release")]
#[case(
    "kind: Release\napiVersion: example.com/v1\n",
    "FILE: apiVersion is \"example.com/v1\": expected deploy.crd.gocardless.com/v1alpha1"
)]
#[case("apiVersion: deploy.crd.gocardless.com/v1alpha1\nkind: Release\n", "FILE: config is missing")]
#[case(&release("null"), "FILE: config is null, expected a map")]
#[case(&release("text"), "FILE: config is text, expected a map")]
#[case(&release("{revisions: []}"), "FILE: config.targetName is missing")]
#[case(&release("{targetName: t}"), "FILE: config.revisions is missing")]
#[case(&release("{targetName: 7, revisions: []}"), "FILE: config.targetName is the number 7, expected text: put it in quotes")]
#[case(&release("{targetName: t, revisions: []}"), "FILE: config.revisions is empty: a release has at least one revision")]
#[case(&release("{targetName: t, revisions: {name: a}}"), "FILE: config.revisions is a map, expected a list")]
#[case(&release("{targetName: t, revisions: [a]}"), "FILE: config.revisions[0] is text, expected a map")]
#[case(&release("{targetName: Payments, revisions: [{name: a, id: b}]}"), "FILE: config.targetName \"Payments\" is not a DNS name of at most 245 characters: use lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit")]
#[case(&release("{targetName: t, revisions: [{name: a, id: 1234567}]}"), "FILE: config.revisions[0].id is the number 1234567, expected text: put it in quotes")]
#[case(&release("{targetName: t, revisions: [{name: a, id: 0644}]}"), "FILE: config.revisions[0].id is the number 420, expected text: put it in quotes")]
#[case(&release("{targetName: t, revisions: [{name: a, id: 1e7}]}"), "FILE: config.revisions[0].id is the number 10000000.0, expected text: put it in quotes")]
#[case(&release("{targetName: t, revisions: [{name: a, id: yes}]}"), "FILE: config.revisions[0].id is the truth value true, expected text: put it in quotes")]
#[case(&release("{targetName: t, revisions: [{name: a, id: null}]}"), "FILE: config.revisions[0].id is null, expected text")]
#[case(&release("{targetName: t, revisions: [{name: a}]}"), "FILE: config.revisions[0].id is missing")]
#[case(&release("{targetName: t, revisions: [{name: a, id: ''}]}"), "FILE: config.revisions[a].id is empty: give the commit, tag or version that was deployed")]
#[case(&release("{targetName: t, revisions: [{name: a, id: b}, {name: a, id: c}]}"), "FILE: config.revisions has two entries named \"a\": revision names are unique in a release")]
#[case(&release("{targetName: t, revisions: [{name: a, id: b, sourc: c}]}"), "FILE: config.revisions[0].sourc is not a field: did you mean source?")]
#[case(&release("{targetName: t, revisions: [{name: a, id: b, metadata: {author: [x]}}]}"), "FILE: config.revisions[0].metadata.author is a list, expected text")]
#[case("apiVersion: v1\nkind: List\n", "FILE: items is missing")]
#[case(
    "apiVersion: v1\nkind: List\nitems:\n- {kind: Release, apiVersion: deploy.crd.gocardless.com/v1alpha1, config: 1}\n",
    "FILE, items[0]: config is the number 1, expected a map"
)]
fn bad_manifests_are_explained(#[case] text: &str, #[case] error: &str) {
    assert_eq!(printed(text, None), Err(error.to_owned()));
}

#[test]
fn a_bad_document_is_named() {
    assert_eq!(
        printed(&format!("{RELEASE}---\n{}", release("7")), None),
        Err("FILE, document 2: config is the number 7, expected a map".into())
    );
}

#[rstest]
#[case("mapping", "a: b: c\n")]
#[case("tab", "a:\n\t- b\n")]
#[case("duplicate_key", "kind: Release\nkind: Release\n")]
#[case("unknown_alias", "a: *nobody\n")]
#[case("unclosed", "config: {targetName: t\n")]
#[case(
    "bomb",
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"
)]
fn what_is_no_yaml_is_refused(#[case] name: &str, #[case] text: &str) {
    let error = printed(text, None).unwrap_err();
    assert!(error.starts_with("FILE cannot be read as YAML: "), "{error}");
    insta::assert_snapshot!(format!("no_yaml_{name}"), error);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let (mut printer, _, _) = captured();
    let mut failure =
        |path: &str| run(&Args { filename: path.into(), output: None }, &mut printer).unwrap_err().text;
    assert_eq!(
        failure("/nonexistent/release.yaml"),
        "/nonexistent/release.yaml cannot be read: no such file or directory"
    );
    assert_eq!(failure("/"), "/ cannot be read: is a directory");
    let latin = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(latin.path(), b"kind: \xe9\n").unwrap();
    assert!(failure(latin.path().to_str().unwrap()).ends_with(" is not UTF-8 text"));
}
