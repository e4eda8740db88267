//! `kubectl rollback TARGET` means `kubectl rollback start TARGET`.

use std::ffi::OsString;

/// A command line that says which command is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// The arguments; the first one is the program.
    pub(crate) arguments: Vec<OsString>,
    /// The first word, if it is no command and so was taken for a target. One after `--` is a target for certain and not here.
    pub(crate) target: Option<String>,
}

/// Puts `start` in where no command is given.
pub(crate) fn with_start(mut arguments: Vec<OsString>, command: &clap::Command) -> Inserted {
    let Some(first) = first_word(&arguments, command) else {
        return Inserted { arguments, target: None };
    };
    let known = |name: &str| {
        command
            .get_subcommands()
            .any(|known| known.get_name_and_visible_aliases().contains(&name) || known.get_name() == name)
    };
    let target = match first {
        First::Word(word) if word.to_str().is_some_and(known) => return Inserted { arguments, target: None },
        First::Word(word) => Some(word.to_string_lossy().into_owned()),
        First::OnlyFlags => None,
    };
    arguments.insert(1, "start".into());
    Inserted { arguments, target }
}

/// What the command line begins with, flags of every command left out.
enum First {
    /// A word.
    Word(OsString),
    /// Nothing but flags, or `--` before any word.
    OnlyFlags,
}

/// `None` if nothing is asked for but help or the version.
fn first_word(arguments: &[OsString], command: &clap::Command) -> Option<First> {
    let mut rest = arguments.iter().skip(1).peekable();
    rest.peek()?;
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        match text.as_ref() {
            "--" => return Some(First::OnlyFlags),
            "-h" | "--help" | "-V" | "--version" => return None,
            // Alone it is a word by convention: standard input.
            flag if flag.starts_with('-') && flag != "-" => {
                if takes_next(flag, command) {
                    rest.next();
                }
            }
            _ => return Some(First::Word(argument.clone())),
        }
    }
    Some(First::OnlyFlags)
}

/// Whether the argument after this flag is its value. Flags of all commands count: which one it is, is not known yet.
fn takes_next(flag: &str, command: &clap::Command) -> bool {
    let all = || command.get_subcommands().chain([command]).flat_map(clap::Command::get_arguments);
    let wants_word = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    if let Some(long) = flag.strip_prefix("--") {
        // `--flag=value` has its value already.
        return all().any(|arg| arg.get_long() == Some(long) && wants_word(arg));
    }
    // `-nshop` has its value already; `-wn shop` ends with a flag that wants one.
    let mut letters = flag.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        if all().any(|arg| arg.get_short() == Some(letter) && wants_word(arg)) {
            return letters.peek().is_none();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::args::command;

    #[rstest]
    #[case("payments", "start payments", Some("payments"))]
    #[case("start payments", "start payments", None)]
    #[case("history payments", "history payments", None)]
    #[case("ls", "ls", None)]
    #[case("start history", "start history", None)]
    #[case("-n shop payments --yes", "start -n shop payments --yes", Some("payments"))]
    #[case("-n shop history payments", "-n shop history payments", None)]
    #[case("--namespace=shop history payments", "--namespace=shop history payments", None)]
    #[case("-nshop history payments", "-nshop history payments", None)]
    #[case("--reason history payments", "start --reason history payments", Some("payments"))]
    #[case("--dry-run=server payments", "start --dry-run=server payments", Some("payments"))]
    #[case("--insecure-skip-tls-verify list", "--insecure-skip-tls-verify list", None)]
    #[case("--yes history", "--yes history", None)]
    #[case("-y payments", "start -y payments", Some("payments"))]
    #[case("-- history", "start -- history", None)]
    #[case("--reason x", "start --reason x", None)]
    #[case("histroy payments", "start histroy payments", Some("histroy"))]
    #[case("__complete -- x", "__complete -- x", None)]
    #[case("--help", "--help", None)]
    #[case("-n shop --help", "-n shop --help", None)]
    #[case("payments --help", "start payments --help", Some("payments"))]
    #[case("", "", None)]
    fn start_is_the_default(#[case] given: &str, #[case] expected: &str, #[case] target: Option<&str>) {
        let words = |text: &str| {
            std::iter::once("kubectl-rollback")
                .chain(text.split_whitespace())
                .map(OsString::from)
                .collect::<Vec<_>>()
        };
        let expected = Inserted { arguments: words(expected), target: target.map(str::to_owned) };
        assert_eq!(with_start(words(given), &command()), expected);
    }
}
