//! Every command of the README's transcripts is run, and prints what the README says.
//!
//! `UPDATE_README=1 cargo test -p rollback-e2e readme` writes what they print now.

use std::path::{Path, PathBuf};

use rollback_e2e::service::{BAD, GOOD, deploy, recorded};
use rollback_e2e::system::with_system;
use rollback_rig::{ControlPlane, workspace_binary};

const NAMESPACE: &str = "shop";
const TARGET: &str = "payments";

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")
}

/// A command and what it prints.
struct Shown {
    command: String,
    output: String,
}

/// The fenced `console` blocks: lines that begin with `$ ` are commands, the others what they print.
fn transcripts(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (line, inside) {
            ("```console", _) => inside = true,
            ("```", true) => inside = false,
            (command, true) if command.starts_with("$ ") => {
                shown.push(Shown { command: command[2..].to_owned(), output: String::new() });
            }
            (output, true) => {
                let last = shown.last_mut().unwrap();
                last.output.push_str(output);
                last.output.push('\n');
            }
            (_, false) => {}
        }
    }
    shown
}

/// What may differ from run to run: ages, clock times, random suffixes, column widths.
fn normal(text: &str) -> String {
    let word = |word: &str| -> String {
        let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_age = !core.is_empty()
            && core.starts_with(|c: char| c.is_ascii_digit())
            && core.chars().all(|c| c.is_ascii_digit() || matches!(c, 'd' | 'h' | 'm' | 's' | '.'));
        let is_clock = core.len() == 8 && core.chars().filter(|c| *c == ':').count() == 2;
        if is_age || is_clock {
            return word.replace(core, "#");
        }
        match word.find("payments-") {
            // Releases are named by their content, which does not change; a Rollback's suffix does.
            Some(at)
                if word.contains("rollback/")
                    || word[at..].trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len() == 14 =>
            {
                let end = word[at..]
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                    .map_or(word.len(), |end| at + end);
                format!("{}payments-#####{}", &word[..at], &word[end..])
            }
            Some(_) | None => word.to_owned(),
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn run(cp: &ControlPlane, command: &str) -> String {
    let plugin = workspace_binary("kubectl-rollback").unwrap();
    let folders = [plugin.parent().unwrap(), cp.binaries().kubectl.parent().unwrap()];
    let old = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(folders.iter().map(PathBuf::from).chain(std::env::split_paths(&old))).unwrap();
    let mut shell = cp.command_as(Path::new("sh"), &cp.kubeconfig());
    let output = shell.args(["-c", &format!("{{ {command} ; }} 2>&1")]).env("PATH", path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn the_readme_shows_what_happens() {
    let (cp, _) = with_system().await;
    cp.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n")).unwrap();
    deploy(cp, NAMESPACE, TARGET, GOOD);
    recorded(cp, NAMESPACE, GOOD, "Healthy", "True").await;
    deploy(cp, NAMESPACE, TARGET, BAD);
    recorded(cp, NAMESPACE, BAD, "RollbackRequired", "True").await;

    let text = std::fs::read_to_string(readme()).unwrap();
    let shown = transcripts(&text);
    assert!(shown.len() >= 5, "the README shows {} commands", shown.len());
    let mut updated = text.clone();
    let mut wrong = Vec::new();
    for Shown { command, output } in &shown {
        let now = run(cp, command);
        if normal(&now) != normal(output) {
            wrong.push(format!("$ {command}\nprints:\n{now}\nthe README says:\n{output}"));
            let (old, new) = (format!("$ {command}\n{output}"), format!("$ {command}\n{}\n", now.trim_end()));
            updated = updated.replacen(&old, &new, 1);
        }
    }
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(readme(), updated).unwrap();
    } else {
        assert!(wrong.is_empty(), "{}\nUPDATE_README=1 writes what they print now", wrong.join("\n"));
    }
}
