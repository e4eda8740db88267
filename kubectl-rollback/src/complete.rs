//! Completion as kubectl wants it of its plugins: the words typed so far come in, one candidate a line goes out,
//! and the last line says what the shell should do with them.

mod wanted;

use std::time::Duration;

use kube::api::ListParams;
use rollback_core::rollback::RollbackView;

use self::wanted::{Wanted, wanted};
use crate::args::ConnectArgs;
use crate::connect::{Environment, connect};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::targets;

/// A shell waits for us: rather no candidates than late ones.
const PATIENCE: Duration = Duration::from_secs(2);
/// Cobra's directives: complete file names when there is no candidate; do not.
const FILES: &str = ":0";
const NO_FILES: &str = ":4";

/// Candidates for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The words after `kubectl rollback`; the last one is being typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Prints the candidates. What cannot be found out has none; a shell has no use for errors.
pub(crate) async fn run(
    args: &Args,
    environment: &Environment,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let command = crate::args::command();
    let (wanted, typed, connection) = wanted(&args.words, &command);
    let (candidates, directive) = match wanted {
        Wanted::Files => (Vec::new(), FILES),
        Wanted::Words(words) => (words, NO_FILES),
        other => {
            let asked = tokio::time::timeout(PATIENCE, from_cluster(&other, &connection, environment)).await;
            (asked.ok().and_then(Result::ok).unwrap_or_default(), NO_FILES)
        }
    };
    for candidate in candidates.iter().filter(|candidate| candidate.starts_with(&typed)) {
        printer.data(candidate)?;
    }
    printer.data(directive)
}

async fn from_cluster(
    wanted: &Wanted,
    connection: &ConnectArgs,
    environment: &Environment,
) -> Result<Vec<String>, Failure> {
    let args = ConnectArgs { request_timeout: Some(PATIENCE), ..connection.clone() };
    let session = connect(&args, environment).await?;
    match wanted {
        Wanted::Files | Wanted::Words(_) => Ok(Vec::new()),
        Wanted::Targets => {
            let releases = session.list_releases(&session.releases_api(), &ListParams::default()).await?;
            Ok(targets::names(&releases).into_iter().map(str::to_owned).collect())
        }
        Wanted::Releases(target) => {
            let releases = session.releases(target).await?;
            let mut all = vec![
                "healthy\tthe newest release that was healthy".to_owned(),
                "previous\tthe release before".to_owned(),
            ];
            all.extend(releases.into_iter().filter_map(|release| release.metadata.name));
            Ok(all)
        }
        Wanted::Rollbacks => {
            let rollbacks = session.list_rollbacks(&session.rollbacks_api(), &ListParams::default()).await?;
            let mut views: Vec<RollbackView> = rollbacks.iter().map(RollbackView::of).collect();
            views.sort_by(|a, b| (a.phase.is_ended(), b.created).cmp(&(b.phase.is_ended(), a.created)));
            Ok(views
                .into_iter()
                .map(|view| format!("{}\t{}: {}", view.name, view.target, view.reason))
                .collect())
        }
    }
}
