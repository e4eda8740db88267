//! The real program against a scripted API server: output, requests, exit codes.

// So marked, the lints know its helpers for tests.
#[cfg(test)]
mod cli {
    mod connection;
    mod looking;
    mod refusals;
    mod server;
    mod start;

    use std::process::{Command, Output};

    use self::server::Server;

    /// What a run of the program gave.
    #[derive(Debug)]
    struct Ran {
        out: String,
        err: String,
        code: i32,
    }

    impl From<Output> for Ran {
        fn from(output: Output) -> Self {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            Self { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap() }
        }
    }

    /// The program with nothing of this machine's environment.
    fn program() -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-rollback"));
        command.env_clear().env("TZ", "UTC").env("HOME", "/nonexistent").stdin(std::process::Stdio::null());
        command
    }

    /// Runs the program against a server.
    fn run(server: &Server, arguments: &[&str]) -> Ran {
        program().args(arguments).args(["-n", "shop", "--server", &server.url()]).output().unwrap().into()
    }
}
