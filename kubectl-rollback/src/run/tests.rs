use rstest::rstest;

use super::*;

#[rstest]
#[case("histroy", Some("history"))]
#[case("hist", Some("history"))]
#[case("comp", Some("completion"))]
#[case("com", None)]
#[case("statsu", Some("status"))]
#[case("lst", Some("list"))]
#[case("dif", Some("diff"))]
#[case("cancell", Some("cancel"))]
#[case("versoin", Some("version"))]
#[case("payments", None)]
#[case("web", None)]
fn near_misses_of_commands_are_refused(#[case] target: &str, #[case] near: Option<&str>) {
    let expected = near.map(|near| {
        format!("{target} looks like a mistyped {near}: kubectl rollback {near}\nIf the target is really called {target}: kubectl rollback start {target} --reason …")
    });
    assert_eq!(mistyped(target).map(|failure| failure.text), expected);
}

#[rstest]
#[case("kubectl_complete-rollback", true)]
#[case("/usr/local/bin/kubectl_complete-rollback", true)]
#[case("kubectl_complete-rollback.exe", true)]
#[case("kubectl-rollback", false)]
#[case("/opt/kubectl_complete-rollback/kubectl-rollback", false)]
fn the_name_it_is_called_by_counts(#[case] program: &str, #[case] helper: bool) {
    let arguments = as_helper(vec![program.into(), "his".into()]);
    let expected: &[&str] = if helper { &["__complete", "--", "his"] } else { &["his"] };
    assert_eq!(arguments[1..], *expected);
}

#[rstest]
#[case("diff --nope", true)]
#[case("-n shop diff payments --nope", true)]
#[case("history diff --nope", false)]
#[case("start diff --nope", false)]
fn errors_of_diff_are_known_without_parsing(#[case] line: &str, #[case] expected: bool) {
    let words: Vec<OsString> =
        std::iter::once("kubectl-rollback").chain(line.split(' ')).map(OsString::from).collect();
    assert_eq!(begins_with_diff(&words), expected);
}
