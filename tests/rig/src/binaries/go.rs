//! A Go module of `tests/control-plane` and how its programs are built.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A folder with a go.mod that lists programs as tools.
pub(super) struct Module {
    /// Its name below `tests/control-plane`.
    pub(super) folder: &'static str,
    /// The required module whose version is the version of the programs.
    pub(super) requirement: &'static str,
    /// The package whose variables hold the version, for programs that do not know their own.
    pub(super) version_package: Option<&'static str>,
    /// How long a first build takes on two cores, in words.
    pub(super) duration: &'static str,
    /// What is built from it.
    pub(super) programs: &'static [Program],
}

/// One program.
pub(super) struct Program {
    /// Its file name.
    pub(super) name: &'static str,
    /// The Go package it is built from.
    pub(super) package: &'static str,
}

/// How often a long build says that it is alive.
const PROGRESS: Duration = Duration::from_secs(20);

/// Lines of the compiler's output that an error repeats.
const ERROR_LINES: usize = 20;

impl Module {
    /// The folder of its go.mod.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../control-plane")).join(self.folder)
    }

    /// Its version by its go.mod, for example `v1.37.2`.
    pub(super) fn version(&self) -> Result<String> {
        let text = std::fs::read_to_string(self.path().join("go.mod"))
            .with_context(|| format!("cannot read tests/control-plane/{}/go.mod", self.folder))?;
        required_version(&text, self.requirement).with_context(|| {
            format!(
                "tests/control-plane/{}/go.mod requires no {}: run update.sh there",
                self.folder, self.requirement
            )
        })
    }

    /// Builds every program into `out`.
    pub(super) fn build(&self, out: &Path) -> Result<()> {
        let version = self.version()?;
        let names: Vec<&str> = self.programs.iter().map(|program| program.name).collect();
        let what = format!("{} {version}", names.join(", "));
        say(&format!("building {what}; the first time takes {}", self.duration));
        let mut command = Command::new("go");
        command.current_dir(self.path()).args(["build", "-v", "-trimpath", "-buildvcs=false"]);
        command.arg("-ldflags").arg(ldflags(&version, self.version_package)).arg("-o").arg(self.output(out));
        command.args(self.programs.iter().map(|program| program.package));
        command.env("CGO_ENABLED", "0").env("GOWORK", "off");
        run(command, &what)
    }

    /// Go names a program after its package's folder; with one program the name can be given.
    fn output(&self, out: &Path) -> OsString {
        if let [program] = self.programs {
            return out.join(program.name).into();
        }
        // The trailing slash makes Go take it for a folder.
        let mut folder = out.as_os_str().to_owned();
        folder.push("/");
        folder
    }
}

/// The version that a go.mod requires of `module`.
fn required_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        let version = (words.next()? == module).then(|| words.next())??;
        version.starts_with('v').then(|| version.to_owned())
    })
}

fn ldflags(version: &str, package: Option<&str>) -> String {
    let mut flags = "-s -w".to_owned();
    if let Some(package) = package {
        let mut numbers = version.trim_start_matches('v').split('.');
        let major = numbers.next().unwrap_or_default();
        let minor = numbers.next().unwrap_or_default();
        for (variable, value) in [
            ("gitVersion", version),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "clean"),
            ("buildDate", "2026-01-01T00:00:00Z"),
        ] {
            flags = format!("{flags} -X {package}.{variable}={value}");
        }
    }
    flags
}

/// Runs a Go build and says now and then how far it is.
fn run(mut command: Command, what: &str) -> Result<()> {
    let started = Instant::now();
    let mut child = match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
            "Go is needed to build {what} and `go` is not in PATH: install Go (https://go.dev/dl), \
             or set KUBEBUILDER_ASSETS to a folder that holds these programs"
        ),
        Err(error) => return Err(error).with_context(|| format!("cannot run go to build {what}")),
    };
    let output = child.stderr.take().context("go has no error output")?;
    let mut said = Instant::now();
    let mut compiled = 0_u32;
    let mut errors: Vec<String> = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        // -v prints one import path a line; everything else is for the user, if the build fails.
        if line.contains(' ') || line.starts_with('#') {
            errors.push(line);
        } else {
            compiled += 1;
        }
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            say(&format!("still building {what}: {compiled} packages in {} s", started.elapsed().as_secs()));
        }
    }
    if !child.wait()?.success() {
        let tail = &errors[errors.len().saturating_sub(ERROR_LINES)..];
        bail!("go could not build {what}:\n{}", tail.join("\n"));
    }
    say(&format!("built {what} in {} s", started.elapsed().as_secs()));
    Ok(())
}

/// A progress line; straight to the error output, because the test harness hides what is printed by macros.
pub(super) fn say(text: &str) {
    // Nobody to tell when the error output is closed.
    let _ = writeln!(std::io::stderr(), "rig: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_in_a_block_and_on_a_line() {
        let block = "tool a/b\nrequire (\n\ta/b/c v9.0.0\n\ta/b v1.2.3 // indirect\n)\n";
        assert_eq!(required_version(block, "a/b").as_deref(), Some("v1.2.3"));
        assert_eq!(required_version("require a/b v1.2.4\n", "a/b").as_deref(), Some("v1.2.4"));
        assert_eq!(required_version("replace a/b => a/b v1.2.4\n", "a/b"), None);
    }

    #[test]
    fn stamps_the_minor_version() {
        let flags = ldflags("v1.37.2", Some("p/version"));
        assert!(
            flags.starts_with("-s -w -X p/version.gitVersion=v1.37.2 -X p/version.gitMajor=1 "),
            "{flags}"
        );
        assert!(flags.contains("gitMinor=37 "), "{flags}");
        assert_eq!(ldflags("v1.37.2", None), "-s -w");
    }
}
