//! Processes of the rig, and that none of them outlives it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::ensure;
use rollback_rig::{ControlPlane, Exit, Options, eventually, shared};

use crate::workloads::DEADLINE;

#[tokio::test]
async fn a_process_logs_ends_and_is_signalled() {
    let control_plane = shared().await.unwrap();
    let script = "trap 'echo stopping; exit 3' TERM; echo started with $WORD; echo oops >&2; while :; do sleep 0.05; done";
    let builder = control_plane.process("shell", "/bin/sh").args(["-c", script]).env("WORD", "luck");

    let process = builder.start().unwrap();
    assert_eq!(process.wait_for_line("started", DEADLINE).await.unwrap(), "started with luck");
    process.wait_for_line("oops", DEADLINE).await.unwrap();
    assert_eq!(process.exited().unwrap(), None);
    process.terminate().unwrap();
    assert_eq!(process.wait(DEADLINE).await.unwrap(), Exit::Code(3));
    let error = process.wait_for_line("never said", DEADLINE).await.unwrap_err().to_string();
    assert!(error.contains("stopping"), "the error shows the log: {error}");

    // A frozen process does not see SIGTERM; SIGKILL ends it all the same.
    let process = builder.start().unwrap();
    process.wait_for_line("oops", DEADLINE).await.unwrap();
    process.freeze().unwrap();
    process.terminate().unwrap();
    assert_eq!(process.exited().unwrap(), None);
    assert_eq!(process.kill().unwrap(), Exit::Signal(9));
    assert!(!process.log().contains("stopping"));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let control_plane = shared().await.unwrap();
    let process = control_plane.process("absent", "/nonexistent/program").start().unwrap();
    assert_eq!(process.wait(DEADLINE).await.unwrap(), Exit::Code(1));
    assert!(process.log().contains("cannot run /nonexistent/program"), "{}", process.log());
}

/// Not a test of its own: the parent that the tests below kill.
#[tokio::test]
#[ignore = "started by other tests as a process to kill"]
async fn parent_to_be_killed() {
    if std::env::var_os(PARENT).is_none() {
        return;
    }
    let control_plane = ControlPlane::launch(Options::default()).await.unwrap();
    println!("folder {}", control_plane.dir().display());
    std::future::pending::<()>().await;
}

/// Set in the parent.
const PARENT: &str = "RIG_TEST_PARENT";

#[tokio::test]
async fn nothing_outlives_a_killed_parent() {
    let mut parent = Parent::start().await;
    parent.process.kill().unwrap();
    assert_eq!(parent.process.wait().unwrap().signal(), Some(9));
    gone(&parent.folder).await;
    eventually(DEADLINE, "the removal of the data", || async {
        ensure!(!Path::new(&parent.folder).exists(), "the folder is still there");
        Ok(())
    })
    .await
    .unwrap();
}

/// Its folder stays behind: nobody is left to remove it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_outlives_a_killed_supervisor() {
    let mut parent = Parent::start().await;
    let listed =
        Command::new("ps").args(["-o", "pid=", "--ppid", &parent.process.id().to_string()]).output().unwrap();
    let supervisor = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success(), "{supervisor:?}");
    gone(&parent.folder).await;
    parent.process.kill().unwrap();
    parent.process.wait().unwrap();
    std::fs::remove_dir_all(&parent.folder).unwrap();
}

/// A test process with a control plane of its own.
struct Parent {
    process: Child,
    folder: String,
}

impl Parent {
    async fn start() -> Self {
        // Programs are built after this, so that the parent only has to start them.
        shared().await.unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::parent_to_be_killed", "--ignored", "--nocapture"])
            .env(PARENT, "yes")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let folder = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("folder ").map(|(_, folder)| folder.to_owned()))
            .unwrap();
        let parent = Self { process, folder };
        let running = processes_of(&parent.folder);
        for program in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "rig-node"] {
            assert!(
                running.iter().any(|command| command.contains(program)),
                "{program} runs not: {running:?}"
            );
        }
        parent
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        // Both fail when the test has done it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn gone(folder: &str) {
    eventually(DEADLINE, "the end of all processes", || async {
        let left = processes_of(folder);
        ensure!(left.is_empty(), "still running: {left:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Command lines that mention the folder: every process of a control plane has a path below its
/// folder among its arguments.
fn processes_of(folder: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().filter(|line| line.contains(folder)).map(str::to_owned).collect()
}
