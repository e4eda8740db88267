use rstest::rstest;

use super::*;

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

/// The flags of every kubectl command, each with a value.
const CONNECTION: &[&[&str]] = &[
    &["--kubeconfig", "f"],
    &["--context", "c"],
    &["--cluster", "c"],
    &["--user", "u"],
    &["-n", "shop"],
    &["--namespace=shop"],
    &["-s", "https://x"],
    &["--server=https://x"],
    &["--token", "t"],
    &["--as", "alice", "--as-group", "a", "--as-group", "b", "--as-uid", "1"],
    &["--certificate-authority", "f"],
    &["--client-certificate", "f", "--client-key", "f"],
    &["--insecure-skip-tls-verify"],
    &["--insecure-skip-tls-verify=false"],
    &["--tls-server-name", "n"],
    &["--request-timeout", "5s"],
    &["--request-timeout=5"],
];

/// Each command with what it needs.
const COMMANDS: &[&[&str]] = &[
    &["payments", "--reason", "x"],
    &["start", "payments", "--reason", "x"],
    &["history", "payments"],
    &["status", "payments"],
    &["list"],
    &["diff", "payments"],
    &["cancel", "payments"],
    &["signature", "-f", "-"],
    &["completion", "bash"],
    &["version"],
];

fn parse(words: &[&str]) -> Result<Cli, String> {
    let arguments = std::iter::once(&"kubectl-rollback").chain(words).map(std::ffi::OsString::from).collect();
    Cli::try_parse_from(with_start(arguments, &command()).arguments).map_err(|error| error.to_string())
}

#[test]
fn connection_flags_go_before_and_after_every_command() {
    for flags in CONNECTION {
        for words in COMMANDS {
            for line in [[*words, *flags].concat(), [*flags, *words].concat()] {
                let cli = parse(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
                assert_ne!(format!("{:?}", cli.connect), format!("{:?}", ConnectArgs::default()), "{line:?}");
            }
        }
    }
}

// Tried: no reason, an empty one, one of two lines; no target, two; bad values of every flag that has a range, a list of words or a syntax;
// flags that need another one; flags of other commands.
#[rstest]
#[case(&["payments"], "the following required arguments were not provided:\n  --reason <WHY>")]
#[case(&["payments", "--reason", ""], "invalid value '' for '--reason <WHY>': must not be empty")]
#[case(&["payments", "--reason", "a\nb"], "for '--reason <WHY>': must be one line without control characters")]
#[case(&["--reason", "x"], "the following required arguments were not provided:\n  <TARGET>")]
#[case(&["payments", "more", "--reason", "x"], "unexpected argument 'more' found")]
#[case(&["payments", "--reason", "x", "--dry-run"], "invalid value '' for '--dry-run[=<none|server>]': none or server: --dry-run=server")]
#[case(&["payments", "--reason", "x", "--dry-run=client"], "nobody knows what is active and what was healthy")]
#[case(&["payments", "--reason", "x", "--set", "a"], "invalid value 'a' for '--set <KEY=VALUE>': KEY=VALUE, such as environment=production")]
#[case(&["payments", "--reason", "x", "--set", "=b"], "invalid value '=b' for '--set <KEY=VALUE>': KEY=VALUE, such as environment=production")]
#[case(&["payments", "--reason", "x", "--set-json", "a=b"], "the value of a is not JSON: expected value at line 1 column 1; text goes into --set")]
#[case(&["payments", "--reason", "x", "--backend", "jenkins"], "invalid value 'jenkins' for '--backend <NAME>': one of noop, workload, github, argocd")]
#[case(&["payments", "--reason", "x", "--deadline", "10s"], "invalid value '10s' for '--deadline <DURATION>': between 30s and 24h")]
#[case(&["payments", "--reason", "x", "--deadline", "25h"], "invalid value '25h' for '--deadline <DURATION>': between 30s and 24h")]
#[case(&["payments", "--reason", "x", "--deadline", "1d"], "invalid value '1d' for '--deadline <DURATION>': a duration such as 90s, 10m or 1h30m, or a number of seconds")]
#[case(&["payments", "--reason", "x", "--max-attempts", "0"], "invalid value '0' for '--max-attempts <N>': 0 is not in 1..=10")]
#[case(&["payments", "--reason", "x", "--max-attempts", "11"], "invalid value '11' for '--max-attempts <N>': 11 is not in 1..=10")]
#[case(&["payments", "--reason", "x", "--hold=forever"], "invalid value 'forever' for '--hold[=<HOW>]': one of none, until-newer-release, until-released")]
#[case(&["payments", "--reason", "x", "--to", ""], "for '--to <RELEASE|previous|healthy>': the name of a release, previous or healthy")]
#[case(&["payments", "--reason", "x", "--to", "release/x"], "for '--to <RELEASE|previous|healthy>': the name of a release, previous or healthy")]
#[case(&["payments", "--reason", "x", "--wait=maybe"], "invalid value 'maybe' for '--wait[=<BOOL>]'")]
#[case(&["history", "payments", "-o", "xml"], "invalid value 'xml' for '--output <FORMAT>': one of wide, json, yaml, name, jsonpath=TEMPLATE")]
#[case(&["history", "payments", "-o", "jsonpath={.a"], "unclosed action")]
#[case(&["history"], "the following required arguments were not provided:\n  <TARGET>")]
#[case(&["history", "payments", "-A"], "unexpected argument '-A' found")]
#[case(&["history", "payments", "--request-timeout", "soon"], "invalid value 'soon' for '--request-timeout <DURATION>'")]
#[case(&["history", "payments", "--as-group", "g"], "the following required arguments were not provided:\n  --as <USER>")]
#[case(&["status", "payments", "--timeout", "5s"], "the following required arguments were not provided:\n  --watch")]
#[case(&["completion", "tcsh"], "invalid value 'tcsh' for '[SHELL]'")]
#[case(&["completion"], "the following required arguments were not provided:\n  <SHELL>")]
#[case(&["completion", "bash", "--install"], "cannot be used with")]
fn wrong_lines_are_explained(#[case] line: &[&str], #[case] expected: &str) {
    let error = parse(line).unwrap_err();
    assert!(error.contains(expected), "{error}");
    assert!(error.starts_with("error: "), "{error}");
}

#[test]
fn a_bare_wait_and_hold_mean_yes() {
    let start = |line: &[&str]| match parse(&[&["payments", "--reason", "x"], line].concat()).unwrap().command
    {
        Command::Start(args) => (args.wait, args.hold.map(|hold| format!("{hold:?}"))),
        other => panic!("{other:?}"),
    };
    assert_eq!(start(&[]), (true, None));
    assert_eq!(start(&["--wait"]), (true, None));
    assert_eq!(start(&["--wait=false", "--hold"]), (false, Some("UntilNewerRelease".into())));
    assert_eq!(start(&["--hold=until-released"]), (true, Some("UntilReleased".into())));
}

#[test]
fn help_speaks_of_kubectl_rollback() {
    for words in COMMANDS {
        let help = parse(&[*words, &["--help"]].concat()).unwrap_err();
        assert!(help.contains("kubectl rollback"), "{help}");
        assert!(!help.contains("Usage: kubectl-rollback"), "{help}");
    }
}
