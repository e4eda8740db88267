//! Owns the processes of one test run and lets none of them outlive it.
//!
//! Reads [`Request`]s from its input. When the input ends (the rig dropped it, or the test process
//! died, even by SIGKILL) or a terminating signal arrives, it kills every process and removes its
//! folder. It runs in a process group of its own, so that Ctrl-C at the terminal ends the test
//! and leaves the supervisor to clean up.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use rollback_rig::protocol::{Hello, Reply, Request, Signal, Spawn};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, Stdin, Stdout};
use tokio::signal::unix::{SignalKind, signal};

/// First argument with which the supervisor runs itself to become a child (see [`become_program`]).
const BECOME: &str = "become";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, parent, program, rest @ ..] = args.as_slice()
        && first == BECOME
    {
        return become_program(parent, program, rest);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(supervise());
    // A read of the input may still be under way on a helper thread; do not wait for it.
    runtime.shutdown_background();
    result
}

/// Turns this process into `program`, after asking the kernel to kill it when the supervisor dies:
/// the last defence, for the case that the supervisor itself is killed.
fn become_program(parent: &str, program: &str, args: &[String]) -> Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let parent_now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().to_string());
    if parent_now.as_deref() != Some(parent) {
        bail!("the supervisor ended before {program} started");
    }
    Err(Command::new(program).args(args).exec()).with_context(|| format!("cannot run {program}"))
}

/// This program. On Linux by the link that stays right when a rebuild replaces the file.
fn own_program() -> Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { Ok(std::env::current_exe()?) }
}

async fn supervise() -> Result<()> {
    let dir = tempfile::Builder::new().prefix("rollback-rig-").tempdir()?;
    let mut children = Children::default();
    let served = serve(&mut children, &Hello { dir: dir.path().to_path_buf() }).await;
    children.kill_all();
    dir.close().context("cannot remove the data folder")?;
    served
}

/// Answers requests until the input ends or a signal says so.
async fn serve(children: &mut Children, hello: &Hello) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut requests: Lines<BufReader<Stdin>> = BufReader::new(tokio::io::stdin()).lines();
    let mut replies: Stdout = tokio::io::stdout();
    say(&mut replies, hello).await?;
    loop {
        let line = tokio::select! {
            line = requests.next_line() => line?,
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            _ = hang_up.recv() => None,
        };
        let Some(line) = line else { return Ok(()) };
        let reply = serde_json::from_str(&line)
            .context("not a request")
            .and_then(|request| children.answer(request))
            .unwrap_or_else(|error| Reply::Error(format!("{error:#}")));
        say(&mut replies, &reply).await?;
    }
}

async fn say<T: serde::Serialize>(replies: &mut Stdout, message: &T) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    replies.write_all(&line).await?;
    Ok(replies.flush().await?)
}

/// Every process started, by name; ended ones stay until the name is used again.
#[derive(Default)]
struct Children(BTreeMap<String, Child>);

impl Children {
    fn answer(&mut self, request: Request) -> Result<Reply> {
        match request {
            Request::Spawn(spawn) => self.spawn(spawn),
            Request::Signal { name, signal } => self.signal(&name, signal),
            Request::Status { name } => self.status(&name),
        }
    }

    fn spawn(&mut self, spawn: Spawn) -> Result<Reply> {
        if let Some(child) = self.0.get_mut(&spawn.name)
            && child.try_wait()?.is_none()
        {
            bail!("{} runs already", spawn.name);
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&spawn.log)
            .with_context(|| format!("cannot open the log of {}", spawn.name))?;
        let mut command = Command::new(own_program()?);
        command.arg(BECOME).arg(std::process::id().to_string()).arg(&spawn.program).args(&spawn.args);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        for name in &spawn.unset {
            command.env_remove(name);
        }
        // A group for each child: killing the group takes along whatever the child started.
        let child = command
            .envs(&spawn.env)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", spawn.name))?;
        let pid = child.id();
        self.0.insert(spawn.name, child);
        Ok(Reply::Running(pid))
    }

    fn signal(&mut self, name: &str, signal: Signal) -> Result<Reply> {
        let child = self.child(name)?;
        // A process that has been waited for must not be signalled: its id may be somebody else's.
        if let Some(status) = child.try_wait()? {
            return Ok(exited(status));
        }
        match signal {
            Signal::Kill => {
                signal_group(child, rustix::process::Signal::KILL)?;
                return Ok(exited(child.wait()?));
            }
            Signal::Term => signal_group(child, rustix::process::Signal::TERM)?,
            Signal::Stop => signal_group(child, rustix::process::Signal::STOP)?,
            Signal::Cont => signal_group(child, rustix::process::Signal::CONT)?,
        }
        Ok(Reply::Running(child.id()))
    }

    fn status(&mut self, name: &str) -> Result<Reply> {
        let child = self.child(name)?;
        Ok(child.try_wait()?.map_or(Reply::Running(child.id()), exited))
    }

    fn child(&mut self, name: &str) -> Result<&mut Child> {
        self.0.get_mut(name).with_context(|| format!("no process is named {name}"))
    }

    /// Kills first and waits afterwards, so that nothing reacts to the end of something else.
    fn kill_all(&mut self) {
        let mut running: Vec<&mut Child> = self
            .0
            .values_mut()
            .filter_map(|child| matches!(child.try_wait(), Ok(None)).then_some(child))
            .collect();
        for child in &mut running {
            // Fails only when the group is gone already.
            let _ = signal_group(child, rustix::process::Signal::KILL);
        }
        for child in running {
            let _ = child.wait();
        }
    }
}

fn signal_group(child: &Child, signal: rustix::process::Signal) -> Result<()> {
    Ok(rustix::process::kill_process_group(rustix::process::Pid::from_child(child), signal)?)
}

fn exited(status: ExitStatus) -> Reply {
    Reply::Exited { code: status.code(), signal: status.signal() }
}
