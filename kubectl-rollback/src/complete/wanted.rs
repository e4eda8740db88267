//! What a half-typed command line wants next. Pure.

use clap::{Arg, Command};

use crate::args::ConnectArgs;

/// What to offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing of ours: file names.
    Files,
    /// These words.
    Words(Vec<String>),
    /// Names of targets.
    Targets,
    /// Names of a target's releases.
    Releases(String),
    /// Names of rollbacks.
    Rollbacks,
}

/// What is wanted, what of it is typed, and the connection flags that were given. The last word is being typed.
pub(super) fn wanted(words: &[String], command: &Command) -> (Wanted, String, ConnectArgs) {
    let (typed, before) =
        words.split_last().map_or((String::new(), words), |(last, before)| (last.clone(), before));
    let line = Line::read(before, command);
    if let Some(flag) = line.open {
        return (value(flag, &line), typed, line.connection);
    }
    // `--to=pay`: the shell wants the whole word back.
    if let Some((name, rest)) = typed.strip_prefix("--").and_then(|text| text.split_once('='))
        && let Some(flag) = line.flag_named(name)
    {
        let wanted = match value(flag, &line) {
            Wanted::Words(words) => {
                Wanted::Words(words.into_iter().map(|word| format!("--{name}={word}")).collect())
            }
            // Names of the cluster come without the flag; shells split at `=` anyway.
            other => return (other, rest.to_owned(), line.connection),
        };
        return (wanted, typed, line.connection);
    }
    if typed.starts_with('-') {
        return (Wanted::Words(flags(&line)), typed, line.connection);
    }
    let wanted = match (line.subcommand.map(Command::get_name), line.words.len()) {
        (None, 0) => {
            // Without anything typed the commands are what one looks for; a target is typed blind anyway.
            if typed.is_empty() || subcommands(command).iter().any(|name| name.starts_with(&typed)) {
                Wanted::Words(subcommands(command))
            } else {
                Wanted::Targets
            }
        }
        (Some("start" | "history" | "diff"), 0) => Wanted::Targets,
        (Some("status" | "cancel"), 0) => Wanted::Rollbacks,
        (Some("completion"), 0) => {
            Wanted::Words(["bash", "elvish", "fish", "powershell", "zsh"].map(str::to_owned).into())
        }
        (Some(_) | None, _) => Wanted::Words(Vec::new()),
    };
    (wanted, typed, line.connection)
}

fn subcommands(command: &Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|known| !known.is_hide_set());
    shown
        .map(|known| match known.get_about() {
            Some(about) => format!("{}\t{about}", known.get_name()),
            None => known.get_name().to_owned(),
        })
        .collect()
}

fn flags(line: &Line<'_>) -> Vec<String> {
    let flags = line.known().filter(|arg| !arg.is_hide_set());
    let mut all: Vec<String> = flags
        .filter_map(|arg| {
            let long = arg.get_long()?;
            Some(match arg.get_help() {
                Some(help) => format!("--{long}\t{help}"),
                None => format!("--{long}"),
            })
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// What may follow a flag.
fn value(flag: &Arg, line: &Line<'_>) -> Wanted {
    let words = |all: &[&str]| Wanted::Words(all.iter().map(|&word| word.to_owned()).collect());
    match flag.get_long().unwrap_or_default() {
        "to" => match &line.target() {
            Some(target) => Wanted::Releases((*target).to_owned()),
            None => words(&["healthy", "previous"]),
        },
        "output" => words(&["json", "yaml", "name", "wide", "jsonpath="]),
        "dry-run" => words(&["server", "none"]),
        "hold" => words(&["until-newer-release", "until-released", "none"]),
        "backend" => words(&["workload", "github", "argocd", "noop"]),
        "filename" | "kubeconfig" | "certificate-authority" | "client-certificate" | "client-key" | "dir" => {
            Wanted::Files
        }
        _ => words(&[]),
    }
}

/// A command line up to the word that is being typed.
struct Line<'a> {
    command: &'a Command,
    subcommand: Option<&'a Command>,
    /// Words that are neither flags nor their values, the subcommand left out.
    words: Vec<String>,
    /// The flag whose value is being typed.
    open: Option<&'a Arg>,
    connection: ConnectArgs,
}

impl<'a> Line<'a> {
    fn read(words: &[String], command: &'a Command) -> Self {
        let mut line = Self {
            command,
            subcommand: None,
            words: Vec::new(),
            open: None,
            connection: ConnectArgs::default(),
        };
        for word in words {
            if let Some(flag) = line.open.take() {
                line.connect(flag, word);
            } else if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
                match long.split_once('=') {
                    Some((name, value)) => {
                        if let Some(flag) = line.flag_named(name) {
                            line.connect(flag, value);
                        }
                    }
                    None => line.open = line.flag_named(long).filter(|arg| takes_word(arg)),
                }
            } else if let Some(letter) = word.strip_prefix('-').and_then(|rest| rest.chars().next()) {
                let flag =
                    line.known().find(|arg| arg.get_short() == Some(letter)).filter(|arg| takes_word(arg));
                match (flag, &word[1 + letter.len_utf8()..]) {
                    (Some(flag), "") => line.open = Some(flag),
                    (Some(flag), value) => line.connect(flag, value.trim_start_matches('=')),
                    (None, _) => {}
                }
            } else if line.subcommand.is_none() && line.words.is_empty() {
                line.subcommand = command.find_subcommand(word);
                if line.subcommand.is_none() {
                    line.subcommand = command.find_subcommand("start");
                    line.words.push(word.clone());
                }
            } else {
                line.words.push(word.clone());
            }
        }
        line
    }

    /// Flags that are valid here.
    fn known(&self) -> impl Iterator<Item = &'a Arg> + use<'a> {
        let start = self.command.find_subcommand("start");
        let own = self.subcommand.or(start).into_iter().flat_map(Command::get_arguments);
        own.chain(self.command.get_arguments()).filter(|arg| !arg.is_positional())
    }

    fn flag_named(&self, long: &str) -> Option<&'a Arg> {
        self.known().find(|arg| arg.get_long() == Some(long))
    }

    fn target(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }

    /// Remembers what leads to the cluster.
    fn connect(&mut self, flag: &Arg, value: &str) {
        let value = value.to_owned();
        let connection = &mut self.connection;
        match flag.get_long().unwrap_or_default() {
            "kubeconfig" => connection.kubeconfig = Some(value.into()),
            "context" => connection.context = Some(value),
            "cluster" => connection.cluster = Some(value),
            "user" => connection.user = Some(value),
            "namespace" => connection.namespace = Some(value),
            "server" => connection.server = Some(value),
            "as" => connection.as_user = Some(value),
            "as-group" => connection.as_group.push(value),
            "token" => connection.token = Some(value),
            "certificate-authority" => connection.certificate_authority = Some(value.into()),
            "client-certificate" => connection.client_certificate = Some(value.into()),
            "client-key" => connection.client_key = Some(value.into()),
            _ => {}
        }
    }
}

fn takes_word(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn of(line: &str) -> (Wanted, String, ConnectArgs) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        wanted(&words, &crate::args::command())
    }

    #[rstest]
    #[case("history ", Wanted::Targets)]
    #[case("history pay", Wanted::Targets)]
    #[case("diff -n shop ", Wanted::Targets)]
    #[case("start ", Wanted::Targets)]
    #[case("pay", Wanted::Targets)]
    #[case("status ", Wanted::Rollbacks)]
    #[case("cancel pay", Wanted::Rollbacks)]
    #[case("payments --to ", Wanted::Releases("payments".into()))]
    #[case("start payments --reason x --to pay", Wanted::Releases("payments".into()))]
    #[case("payments --to=pay", Wanted::Releases("payments".into()))]
    #[case("signature -f ", Wanted::Files)]
    #[case("history payments --kubeconfig ", Wanted::Files)]
    #[case("history payments more", Wanted::Words(vec![]))]
    #[case("payments --reason ", Wanted::Words(vec![]))]
    #[case("version ", Wanted::Words(vec![]))]
    #[case("payments --hold=", Wanted::Words(vec!["--hold=until-newer-release".into(), "--hold=until-released".into(), "--hold=none".into()]))]
    fn knows_what_comes_next(#[case] line: &str, #[case] expected: Wanted) {
        assert_eq!(of(line).0, expected);
    }

    fn offered(line: &str) -> Vec<String> {
        match of(line) {
            (Wanted::Words(words), typed, _) => words
                .iter()
                .filter(|word| word.starts_with(&typed))
                .filter_map(|word| word.split('\t').next())
                .map(str::to_owned)
                .collect(),
            (other, _, _) => panic!("{line:?} wants {other:?}"),
        }
    }

    #[test]
    fn offers_commands_flags_and_values() {
        assert_eq!(
            offered(""),
            ["start", "history", "status", "list", "diff", "cancel", "signature", "completion", "version"]
        );
        assert_eq!(offered("his"), ["history"]);
        assert_eq!(offered("payments --dr"), ["--dry-run"]);
        assert_eq!(offered("payments --names"), ["--namespace"]);
        assert_eq!(offered("history payments -o j"), ["json", "jsonpath="]);
        assert!(!offered("history payments --").contains(&"--reason".to_owned()));
        assert_eq!(offered("completion z"), ["zsh"]);
    }

    #[test]
    fn the_given_connection_is_used() {
        let (_, typed, connection) = of("-n shop --context=prod history -s http://x pay");
        assert_eq!(typed, "pay");
        assert_eq!(connection.namespace.as_deref(), Some("shop"));
        assert_eq!(connection.context.as_deref(), Some("prod"));
        assert_eq!(connection.server.as_deref(), Some("http://x"));
    }
}
