//! `version`: which plugin this is.

use serde_json::json;

use crate::args::output;
use crate::failure::Failure;
use crate::output::Output;
use crate::printer::Printer;

/// Print the version
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output: json, yaml or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Prints it, offline.
pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let api = format!("{}/{}", rollback_api::GROUP, rollback_api::VERSION);
    let output = args.output.clone().unwrap_or_default();
    if output.is_for_people() {
        return printer.data(&format!("kubectl-rollback {version} ({api})"));
    }
    output.object(printer, &json!({"clientVersion": version, "apiVersion": api}))
}
