//! Processes of the rig, and that none of them outlives it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;
use rollback_rig::{Exit, eventually, shared};

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

/// Not a test of its own: the parent that [`nothing_outlives_a_killed_parent`] kills.
#[tokio::test]
async fn parent_to_be_killed() {
    if std::env::var_os("RIG_TEST_PARENT").is_none() {
        return;
    }
    let control_plane = rollback_rig::ControlPlane::launch(rollback_rig::Options::default()).await.unwrap();
    println!("folder {}", control_plane.dir().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_parent() {
    // Programs are built by now, so that the parent only has to start them.
    shared().await.unwrap();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::parent_to_be_killed", "--nocapture"])
        .env("RIG_TEST_PARENT", "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(parent.stdout.take().unwrap());
    let folder = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("folder ").map(|(_, folder)| folder.to_owned()))
        .expect("the parent says where its data is");
    // Every process of that control plane has a path below the folder on its command line.
    let before = processes_of(&folder);
    for program in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "rig-node"] {
        assert!(before.iter().any(|command| command.contains(program)), "{program} runs not: {before:?}");
    }

    parent.kill().unwrap();
    assert_eq!(parent.wait().unwrap().signal(), Some(9));
    eventually(DEADLINE, "the end of all processes and their data", || async {
        let left = processes_of(&folder);
        ensure!(left.is_empty(), "still running: {left:?}");
        ensure!(!Path::new(&folder).exists(), "the data is still there");
        Ok(())
    })
    .await
    .unwrap();
}

/// Command lines that mention the folder.
fn processes_of(folder: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().filter(|line| line.contains(folder)).map(str::to_owned).collect()
}
