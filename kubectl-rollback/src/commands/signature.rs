//! `signature`: signature and name of releases in a manifest, offline.

mod read;

use std::io::Read as _;

use rollback_api::ReleaseConfig;
use rollback_core::signature::{release_name, signature};
use serde_json::{Value, json};

use crate::args::output;
use crate::columns::aligned;
use crate::explain::plain;
use crate::failure::Failure;
use crate::output::Output;
use crate::printer::Printer;

/// Largest manifest, in bytes; the API server takes 3 MiB.
const MOST: u64 = 16 << 20;

/// Print signature and name of the releases in a manifest, offline
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The manifest, in YAML or JSON; - reads standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: std::path::PathBuf,
    /// Output: name (names alone), json, yaml or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Prints them.
pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<(), Failure> {
    let (name, text) = load(args)?;
    let configs = read::configs(&name, &text)?;
    let mut signed = Vec::with_capacity(configs.len());
    for (place, config) in &configs {
        let release = release_name(config).map_err(|error| Failure::error(format!("{place}: {error}")))?;
        signed.push((signature(config), release, config));
    }
    match args.output.clone().unwrap_or_default() {
        Output::Table | Output::Wide => {
            let rows = signed.into_iter().map(|(signature, name, _)| vec![signature, name]).collect();
            printer.data(&aligned(rows))
        }
        Output::Name => signed.iter().try_for_each(|(_, name, _)| printer.data(name)),
        other => match signed.as_slice() {
            [one] => other.object(printer, &value(one)),
            all => other.list(printer, &all.iter().map(value).collect::<Vec<_>>()),
        },
    }
}

fn value((signature, name, config): &(String, String, &ReleaseConfig)) -> Value {
    json!({"signature": signature, "name": name, "targetName": config.target_name})
}

/// The text, and what people call it.
fn load(args: &Args) -> Result<(String, String), Failure> {
    let path = &args.filename;
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let cannot = |error: &std::io::Error| Failure::error(format!("{name} cannot be read: {}", plain(error)));
    let mut bytes = Vec::new();
    let read = if stdin {
        std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| cannot(&error))?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::error(format!("{name} is larger than {} MiB: that is no manifest", MOST >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::error(format!("{name} is not UTF-8 text")))?;
    Ok((name, text))
}

#[cfg(test)]
mod tests;
