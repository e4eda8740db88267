//! Programs under test, run as children that cannot outlive the test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use crate::control_plane::ControlPlane;
use crate::control_plane::readiness::tail;
use crate::environment::PROXIES;
use crate::eventually;
use crate::protocol::{Reply, Signal, Spawn};

/// How to run a program; it can be started as often as needed.
#[derive(Debug, Clone)]
pub struct ProcessBuilder {
    control_plane: ControlPlane,
    name: String,
    program: PathBuf,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, for example 9 for SIGKILL and 6 for an abort.
    Signal(i32),
}

/// A started program. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    control_plane: ControlPlane,
    id: String,
    log: PathBuf,
    pid: u32,
}

impl ProcessBuilder {
    pub(crate) fn new(control_plane: ControlPlane, name: &str, program: PathBuf) -> Self {
        Self { control_plane, name: name.to_owned(), program, args: Vec::new(), env: BTreeMap::new() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. The rest of the environment is inherited, without proxies.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets `KUBECONFIG`; without this call the program finds none.
    #[must_use]
    pub fn kubeconfig(self, path: &Path) -> Self {
        self.env("KUBECONFIG", &path.to_string_lossy())
    }

    /// Starts the program. Its log is a new file each time.
    pub fn start(&self) -> Result<Process> {
        let id = format!("{}-{}", self.name, self.control_plane.next_number());
        let log = self.control_plane.dir().join(format!("{id}.log"));
        let mut unset: Vec<String> = PROXIES.map(str::to_owned).to_vec();
        unset.push("KUBECONFIG".to_owned());
        let pid = self.control_plane.supervisor().spawn(Spawn {
            name: id.clone(),
            program: self.program.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            unset,
            log: log.clone(),
        })?;
        Ok(Process { control_plane: self.control_plane.clone(), id, log, pid })
    }
}

impl Process {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Everything it has written so far, output and errors in one.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Kills it with SIGKILL; it is gone when this returns.
    pub fn kill(&self) -> Result<Exit> {
        match self.signal(Signal::Kill)? {
            Some(exit) => Ok(exit),
            None => bail!("{} still runs after SIGKILL", self.id),
        }
    }

    /// Asks it to end (SIGTERM) and returns at once; see [`Self::wait`].
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::Term).map(drop)
    }

    /// Freezes it (SIGSTOP).
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::Stop).map(drop)
    }

    /// Lets it go on after a freeze (SIGCONT).
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::Cont).map(drop)
    }

    /// How it ended; `None` while it runs.
    pub fn exited(&self) -> Result<Option<Exit>> {
        self.exit(&self.control_plane.supervisor().status(&self.id)?)
    }

    /// Waits until it has ended. Fails after `deadline`, with the end of its log.
    pub async fn wait(&self, deadline: Duration) -> Result<Exit> {
        eventually(deadline, &format!("the end of {}", self.id), || async {
            self.exited()?.ok_or_else(|| anyhow!("it still runs; its log ends:\n{}", tail(&self.log())))
        })
        .await
    }

    /// Waits for a line of its log that contains `text`, and returns the line.
    ///
    /// Fails after `deadline`, or as soon as it has ended without such a line, with the end of its log.
    pub async fn wait_for_line(&self, text: &str, deadline: Duration) -> Result<String> {
        eventually(deadline, &format!("{} to log {text:?}", self.id), || async {
            // Asked before the log is read, so that the last words of an ended program count.
            let exit = self.exited()?;
            let log = self.log();
            match (log.lines().find(|line| line.contains(text)), exit) {
                (Some(line), _) => Ok(Ok(line.to_owned())),
                (None, Some(exit)) => {
                    Ok(Err(anyhow!("{} ended ({exit:?}) before it logged {text:?}\n{}", self.id, tail(&log))))
                }
                (None, None) => bail!("its log ends:\n{}", tail(&log)),
            }
        })
        .await?
    }

    fn signal(&self, signal: Signal) -> Result<Option<Exit>> {
        self.exit(&self.control_plane.supervisor().signal(&self.id, signal)?)
    }

    fn exit(&self, reply: &Reply) -> Result<Option<Exit>> {
        match reply {
            Reply::Running(_) => Ok(None),
            Reply::Exited { code: Some(code), .. } => Ok(Some(Exit::Code(*code))),
            Reply::Exited { code: None, signal: Some(signal) } => Ok(Some(Exit::Signal(*signal))),
            Reply::Exited { code: None, signal: None } => bail!("{} ended in an unknown way", self.id),
            Reply::Error(error) => bail!("{}: {error}", self.id),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // When the supervisor is gone, so is the process.
        let _ = self.kill();
    }
}
