//! Signals, seen from outside: this test runs itself as a child process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rollback_runtime::shutdown::Shutdown;
use rstest::rstest;

const AS_CHILD: &str = "ROLLBACK_TEST_SIGNAL_CHILD";

/// Not a test of its own: the child that the others start.
#[test]
fn child() {
    if std::env::var_os(AS_CHILD).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let shutdown = Shutdown::on_signals(Duration::ZERO).unwrap();
        println!("\nchild: up");
        shutdown.draining().cancelled().await;
        shutdown.stop().cancelled().await;
        println!("\nchild: stopping");
        // Work that never finishes.
        std::future::pending::<()>().await;
    });
}

struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[rstest]
#[case("TERM", "TERM", 143)]
#[case("TERM", "INT", 130)]
#[case("INT", "INT", 130)]
fn the_first_signal_stops_and_the_second_ends(
    #[case] first: &str,
    #[case] second: &str,
    #[case] status: i32,
) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "signals::child", "--nocapture"]).env(AS_CHILD, "1");
    let mut child = Guard(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "child: up"));
    signal(&child.0, first);
    assert!(lines.any(|line| line == "child: stopping"));
    signal(&child.0, second);
    assert_eq!(child.0.wait().unwrap().code(), Some(status));
}
