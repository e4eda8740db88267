//! `start`: roll a target back. Preview, confirm, create, follow.

mod confirm;
mod request;

use std::time::Duration;

use rollback_api::conditions::Status;
use rollback_api::rollback::Hold;
use rollback_api::{Backend, Rollback};
use rollback_core::admission::export;
use rollback_core::release::ReleaseView;
use rollback_core::release::select;

use self::confirm::confirm;
use super::Context;
use crate::args::{duration, output, printable};
use crate::failure::{Failure, Kind};
use crate::follow::{self, Options};
use crate::output::Output;
use crate::preview::{self, Preview};
use crate::printer::Sink;
use crate::progress::End;
use crate::session::Session;
use crate::targets;

/// What the warning of an admitted Rollback begins with that will end as `NotNeeded`.
const NOTHING: &str = "nothing will be deployed: ";

/// Roll a target back
#[derive(Debug, clap::Args)]
#[command(override_usage = "kubectl rollback [start] TARGET --reason WHY [flags]")]
pub(crate) struct Args {
    /// The target: a service in the namespace
    pub(crate) target: String,
    /// Why: an incident number, a symptom. Kept in the record
    #[arg(long, value_name = "WHY", value_parser = reason)]
    pub(crate) reason: String,
    /// Where to: a release, `previous` (whatever its health), or `healthy` (the newest one that was)
    #[arg(long, value_name = "RELEASE|previous|healthy", default_value = "healthy", value_parser = To::parse)]
    pub(crate) to: To,
    /// Do not ask. Needed where nobody can be asked
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// `server`: have the API server check everything and store nothing; with -o print the manifest to commit
    #[arg(long, value_name = "none|server", num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "", value_parser = DryRun::parse)]
    pub(crate) dry_run: DryRun,
    /// Go on although the release is blocked
    #[arg(long)]
    pub(crate) force: bool,
    /// Option for the deployer, as text; may be a template such as {.config.revisions[0].id}
    #[arg(long, value_name = "KEY=VALUE", value_parser = request::option)]
    pub(crate) set: Vec<(String, serde_json::Value)>,
    /// Option for the deployer, as JSON
    #[arg(long, value_name = "KEY=JSON", value_parser = request::json_option)]
    pub(crate) set_json: Vec<(String, serde_json::Value)>,
    /// What carries it out: workload, github, argocd or noop [default: as the controller is set up]
    #[arg(long, value_name = "NAME", value_parser = backend)]
    pub(crate) backend: Option<Backend>,
    /// Give up after this long, 30s to 24h [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = deadline)]
    pub(crate) deadline: Option<i64>,
    /// How often to try, 1 to 10 [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=10))]
    pub(crate) max_attempts: Option<i32>,
    /// Keep automation from undoing it: none, until-newer-release (what a bare --hold means) or until-released
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "until-newer-release", value_parser = hold)]
    pub(crate) hold: Option<Hold>,
    /// Follow it to its end
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) wait: bool,
    /// Longest time to follow, such as 10m; 0 for no limit. The rollback goes on afterwards
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Output: json, yaml, name or jsonpath=TEMPLATE, printed at the end
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Where to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The newest release that was healthy.
    Healthy,
    /// The release that was active before.
    Previous,
    /// A release.
    Release(String),
}

impl To {
    /// Parses the value of `--to`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "healthy" => Ok(Self::Healthy),
            "previous" => Ok(Self::Previous),
            name if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c == '/') => {
                Err("the name of a release, previous or healthy".to_owned())
            }
            name => Ok(Self::Release(name.to_owned())),
        }
    }
}

/// Whether to store anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// Carry it out.
    None,
    /// Have the server check it.
    Server,
}

impl DryRun {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "server" => Ok(Self::Server),
            "client" => Err("without asking the server nobody knows what is active and what was healthy, so nothing could be shown: \
                             use --dry-run=server, which stores nothing either"
                .to_owned()),
            _ => Err("none or server: --dry-run=server".to_owned()),
        }
    }
}

fn reason(text: &str) -> Result<String, String> {
    let text = printable(text)?;
    if text.chars().count() > 512 { Err("must be at most 512 characters".to_owned()) } else { Ok(text) }
}

fn backend(text: &str) -> Result<Backend, String> {
    Backend::parse(text).ok_or_else(|| {
        let all: Vec<&str> = Backend::ALL.iter().map(|backend| backend.as_str()).collect();
        format!("one of {}", all.join(", "))
    })
}

fn deadline(text: &str) -> Result<i64, String> {
    let seconds = duration(text)?.as_secs();
    i64::try_from(seconds)
        .ok()
        .filter(|seconds| (30..=86_400).contains(seconds))
        .ok_or_else(|| "between 30s and 24h".to_owned())
}

fn hold(text: &str) -> Result<Hold, String> {
    match text {
        "none" => Ok(Hold::None),
        "until-newer-release" => Ok(Hold::UntilNewerRelease),
        "until-released" => Ok(Hold::UntilReleased),
        _ => Err("one of none, until-newer-release, until-released".to_owned()),
    }
}

/// Rolls back.
pub(crate) async fn run(args: Args, context: Context<'_>) -> Result<(), Failure> {
    let Context { session, printer, clock } = context;
    let output = args.output.clone().unwrap_or_default();
    let releases =
        targets::releases(session, &args.target).await.map_err(|why| why.unwrap_or_else(Failure::refused))?;
    let views: Vec<ReleaseView> = releases.iter().map(ReleaseView::of).collect();
    let to = match &args.to {
        To::Healthy => None,
        To::Release(name) => Some(name.clone()),
        To::Previous => Some(previous(&args.target, &views)?.name.clone()),
    };
    let mut wanted = request::rollback(&args, to)?;
    let answer = match session.create(&wanted, true).await {
        Err(failure)
            if failure.kind == Kind::Refused && args.to == To::Healthy && printer.is_interactive() =>
        {
            // Rule 20: nothing says that any release was healthy. A person may decide; nobody else.
            let Some(previous) = offered(&views) else { return Err(failure) };
            printer.failure(&failure);
            printer.note(&format!(
                "The previous release is {}: {}.",
                previous.name,
                preview::offer(previous, clock)
            ))?;
            wanted = request::rollback(&args, Some(previous.name.clone()))?;
            session.create(&wanted, true).await?
        }
        result => result?,
    };
    let warnings = session.warnings.take();
    if args.dry_run == DryRun::Server && !output.is_for_people() {
        warnings.iter().try_for_each(|text| printer.warning(text))?;
        return output.object(printer, &manifest(answer));
    }
    if let Some(why) = warnings.iter().find_map(|text| text.strip_prefix(NOTHING)) {
        return Err(not_needed(&args.target, why));
    }
    let preview = Preview {
        place: &session.place,
        answer: &answer,
        releases: &releases,
        chosen: wanted.spec.to_release_ref.name.is_none(),
    };
    printer.note(&preview.text(clock))?;
    warnings.iter().try_for_each(|text| printer.warning(text))?;
    if args.dry_run == DryRun::Server {
        return printer.note(
            "Dry run: the server checked permissions, schema and admission. Nothing was stored, and the deployer was not asked.",
        );
    }
    if !args.yes {
        confirm(&args.target, &preview, printer)?;
    }
    let created = session.create(&request::pinned(wanted, &answer), false).await?;
    session.show_warnings(printer)?;
    carry_on(&args, &output, created, Context { session, printer, clock }).await
}

/// From the created object to the end.
async fn carry_on(
    args: &Args,
    output: &Output,
    created: Rollback,
    context: Context<'_>,
) -> Result<(), Failure> {
    let Context { session, printer, clock } = context;
    let name = created.metadata.name.clone().unwrap_or_default();
    if output.is_for_people() {
        printer.data(&format!("rollback/{name} created"))?;
    }
    if !args.wait {
        return output.object(printer, &created);
    }
    let options = Options { timeout: args.timeout.filter(|limit| !limit.is_zero()), sink: Sink::Err };
    let (ended, end) = match follow::follow(session, printer, clock, created.clone(), options).await {
        Ok(ended) => ended,
        Err(failure) => {
            // A program that asked for the object needs its name to go on.
            output.object(printer, &created)?;
            return Err(failure);
        }
    };
    output.object(printer, &ended)?;
    match end {
        End { kind: None, .. } => Ok(()),
        End { kind: Some(kind), text, .. } => {
            let after = aftermath(kind, &ended, session).await;
            Err(Failure::new(kind, format!("{text}{after}")))
        }
    }
}

/// What is true after a failure, if that is known for certain.
async fn aftermath(kind: Kind, ended: &Rollback, session: &Session) -> String {
    let status = ended.status.as_ref();
    let backend = status.and_then(|status| status.plan.as_ref()).map(|plan| plan.backend);
    // The workload deployer may have changed some objects and others not (rule 18); its message names each.
    if kind != Kind::Failed || backend == Some(Backend::Workload) {
        return String::new();
    }
    let from = status
        .and_then(|status| status.from_release_ref.as_ref())
        .and_then(|from| from.name.clone())
        .unwrap_or_default();
    match session.release(&from).await {
        Ok(Some(release)) if ReleaseView::of(&release).is_active() => format!(" {from} is still active."),
        // Whatever kept us from knowing it must not hide the failure.
        Ok(Some(_) | None) | Err(_) => String::new(),
    }
}

/// The release before the active one.
fn previous<'a>(target: &str, views: &'a [ReleaseView]) -> Result<&'a ReleaseView, Failure> {
    let live = views.iter().filter(|view| view.is_active()).max_by_key(|view| view.deployed());
    let found = live.and_then(|live| select::previous(&live.name, views));
    found.ok_or_else(|| {
        Failure::refused(format!(
            "no earlier release of {target} to go back to. Look: kubectl rollback history {target}"
        ))
    })
}

/// The release to offer when none is known to have been healthy: the one before, unless it is known to have been bad.
fn offered(views: &[ReleaseView]) -> Option<&ReleaseView> {
    let live = views.iter().filter(|view| view.is_active()).max_by_key(|view| view.deployed())?;
    if select::select(&live.name, views).chosen.is_some() {
        return None;
    }
    select::previous(&live.name, views).filter(|view| view.healthy == Status::Unknown)
}

/// The answer of a dry run as a manifest to commit (rule 7): its made-up name is not kept.
fn manifest(mut answer: Rollback) -> Rollback {
    if answer.metadata.generate_name.is_some() {
        answer.metadata.name = None;
    }
    export(&answer)
}

fn not_needed(target: &str, why: &str) -> Failure {
    let why = why.trim_end_matches('.');
    Failure::new(
        Kind::NotNeeded,
        format!("{why}. Nothing was created. Other releases: kubectl rollback history {target}"),
    )
}

/// For the refusal where nobody can be asked.
pub(super) fn needs_yes(target: &str, from: &str, to: &str, cluster: &str) -> Failure {
    Failure::refused(format!(
        "not a terminal, and --yes was not given. Add --yes to roll {target} back from {from} to {to} on {cluster}."
    ))
}

#[cfg(test)]
mod tests;
