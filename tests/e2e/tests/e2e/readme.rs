//! Every command of the README's transcripts is run, and prints what the README says.
//!
//! `UPDATE_README=1 cargo test -p rollback-e2e readme` writes what they print now.

use std::path::{Path, PathBuf};

use rollback_e2e::service::{BAD, GOOD, deploy, kubectl, recorded};
use rollback_e2e::soon;
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

/// The text with other outputs, one for each command.
fn refreshed(text: &str, outputs: &[String]) -> String {
    let mut outputs = outputs.iter();
    let (mut inside, mut lines) = (false, Vec::new());
    for line in text.lines() {
        let is_command = inside && line.starts_with("$ ");
        inside = (inside || line == "```console") && line != "```";
        if is_command || !inside || line == "```console" {
            lines.push(line.to_owned());
        }
        if is_command {
            let output = outputs.next().map(|output| output.trim_end().to_owned()).unwrap_or_default();
            lines.extend(output.lines().map(str::to_owned));
        }
    }
    lines.join("\n") + "\n"
}

/// What may differ from run to run: ages, clock times, the random ends of names, column widths, and how many lines
/// of progress there were.
fn normal(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.contains("in progress:") && !line.contains("waits for the controller"));
    let lines = lines.map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn word(word: &str) -> String {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_age = core.starts_with(|c: char| c.is_ascii_digit())
        && core.chars().all(|c| c.is_ascii_digit() || matches!(c, 'd' | 'h' | 'm' | 's' | '.'));
    let is_clock = core.len() == 8 && core.chars().filter(|c| *c == ':').count() == 2;
    if is_age || is_clock {
        return word.replace(core, "#");
    }
    if core.starts_with("web-") || core.starts_with("worker-") {
        return "pod-#".to_owned();
    }
    // Releases are named by their content, with seven digits; Rollbacks end in five random letters.
    let random = |part: &str| part.len() == 5 && part.chars().all(|c| c.is_ascii_alphanumeric());
    word.split('-')
        .map(
            |part| {
                if random(part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())) { "#" } else { part }
            },
        )
        .collect::<Vec<_>>()
        .join("-")
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
    let bad = recorded(cp, NAMESPACE, BAD, "RollbackRequired", "True").await;
    soon("both workloads to be found unhealthy", || async {
        let path = "jsonpath={.status.conditions[?(@.type==\"Healthy\")].message}";
        let message = kubectl(cp, &["get", "release", &bad, "-n", NAMESPACE, "-o", path]);
        anyhow::ensure!(message.contains("pod web-") && message.contains("pod worker-"), "{message}");
        Ok(())
    })
    .await;

    let text = std::fs::read_to_string(readme()).unwrap();
    let shown = transcripts(&text);
    assert!(shown.len() >= 5, "the README shows {} commands", shown.len());
    let mut outputs = Vec::new();
    let mut wrong = Vec::new();
    for Shown { command, output } in &shown {
        let now = run(cp, command);
        if normal(&now) == normal(output) {
            outputs.push(output.clone());
        } else {
            wrong.push(format!("$ {command}\nprints:\n{now}\nthe README says:\n{output}"));
            outputs.push(now);
        }
    }
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(readme(), refreshed(&text, &outputs)).unwrap();
    } else {
        assert!(wrong.is_empty(), "{}\nUPDATE_README=1 writes what they print now", wrong.join("\n"));
    }
}
