//! The rig's end of the line to its supervisor.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::protocol::{Hello, Reply, Request, Signal, Spawn};
use crate::workspace::workspace_binary;

/// A running supervisor. Dropping it kills everything it runs and removes its folder.
#[derive(Debug)]
pub(crate) struct Supervisor {
    dir: PathBuf,
    line: Mutex<Line>,
}

/// One request at a time.
#[derive(Debug)]
struct Line {
    process: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts a supervisor; builds it first when that was not done yet. Blocks.
    pub(crate) fn start() -> Result<Self> {
        let program = workspace_binary("rig-supervisor")?;
        let mut process = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let requests = process.stdin.take();
        let replies = BufReader::new(process.stdout.take().context("the supervisor has no output")?);
        let mut line = Line { process, requests, replies };
        let Hello { dir } = line.receive()?;
        Ok(Self { dir, line: Mutex::new(line) })
    }

    /// The folder for data and logs.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a program and returns its process id.
    pub(crate) fn spawn(&self, spawn: Spawn) -> Result<u32> {
        let name = spawn.name.clone();
        match self.ask(&Request::Spawn(spawn))? {
            Reply::Running(pid) => Ok(pid),
            other @ Reply::Exited { .. } => bail!("{name} did not start: {other:?}"),
            Reply::Error(error) => bail!("{name} did not start: {error}"),
        }
    }

    /// Sends a signal. After [`Signal::Kill`] the process is gone.
    pub(crate) fn signal(&self, name: &str, signal: Signal) -> Result<Reply> {
        self.checked(name, &Request::Signal { name: name.to_owned(), signal })
    }

    /// [`Reply::Running`] or [`Reply::Exited`].
    pub(crate) fn status(&self, name: &str) -> Result<Reply> {
        self.checked(name, &Request::Status { name: name.to_owned() })
    }

    fn checked(&self, name: &str, request: &Request) -> Result<Reply> {
        match self.ask(request)? {
            Reply::Error(error) => bail!("process {name}: {error}"),
            reply @ (Reply::Running(_) | Reply::Exited { .. }) => Ok(reply),
        }
    }

    fn ask(&self, request: &Request) -> Result<Reply> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.send(request)?;
        line.receive()
    }
}

impl Line {
    fn send(&mut self, request: &Request) -> Result<()> {
        let mut text = serde_json::to_vec(request)?;
        text.push(b'\n');
        let requests = self.requests.as_mut().context("the supervisor was ended")?;
        requests.write_all(&text).and_then(|()| requests.flush()).context("the supervisor is gone")
    }

    fn receive<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut text = String::new();
        self.replies.read_line(&mut text)?;
        serde_json::from_str(&text).context("the supervisor is gone or speaks another version: rebuild it")
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The end of its input is the supervisor's order to clean up; wait until it has.
        self.requests = None;
        let _ = self.process.wait();
    }
}
