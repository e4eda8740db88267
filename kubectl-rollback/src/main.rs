//! `kubectl rollback`: the kubectl plugin.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_rollback::main(std::env::args_os())
}
