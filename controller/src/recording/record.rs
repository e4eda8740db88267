//! Recording what a target's objects are as a Release.
//!
//! The order is what makes a crash harmless: the Release, its snapshots, and last the start of its deployment. A Release
//! without a start is half recorded; it is never deployed, and the next pass goes on with it.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use rollback_api::conditions::{HealthReason, Status};
use rollback_api::{Release, ReleaseConfig, ReleaseFields, annotations};
use rollback_core::release::health::HealthReport;
use rollback_core::signature::{release_name, signature};
use rollback_core::workload::recording::{self, Observed, Standing};
use rollback_core::workload::set;
use serde_json::{Map, Value, json};

use super::keep::{self, Taken};
use super::memory::Memory;
use super::{Recording, Target, live};
use crate::error::{PassError, is_conflict};
use crate::events::CONTROLLER;
use crate::failpoint;
use crate::pointer;
use crate::queue::Next;

/// Records the objects, or marks the release that they were before as being deployed again (rule 16).
pub(super) async fn record(
    recording: &Recording,
    target: &Target<'_>,
    memory: &mut Memory,
    first_seen: Timestamp,
    now: Timestamp,
) -> Result<Next, PassError> {
    let Target { ctx, key, seen, set, .. } = target;
    let config = set::config(&key.target, set);
    if memory.refused.as_ref() == Some(&signature(&config)) {
        return Ok(Next::Idle);
    }
    let name = release_name(&config).map_err(|error| PassError::Other(error.to_string()))?;
    let read = || format!("read Release {}/{name}", key.namespace);
    let known = live::releases(ctx, key).get_opt(&name).await.map_err(PassError::api(read))?;
    // The watches may lag behind what this controller has just written itself.
    let stored = pointer::live(ctx, key).await?;
    let mut releases: Vec<&Release> = target.releases.iter().map(AsRef::as_ref).collect();
    releases.retain(|release| release.metadata.name.as_ref() != Some(&name));
    releases.extend(&known);
    let observed = Observed { target: &key.target, set, releases: &releases, pointer: &stored.pointer };
    match recording.standing(ctx, key, &observed).await? {
        Standing::Changed => {}
        Standing::Ours | Standing::Current(_) => return Ok(Next::After(super::SOON)),
    }
    let recorded = match keep::take(ctx, key, seen).await? {
        Taken::All(recorded) => recorded,
        // The watch will show it.
        Taken::Changed => return Ok(Next::After(super::SOON)),
        Taken::Refused(why) => {
            memory.refused = Some(signature(&config));
            target.complain(memory, &format!("target {} is not recorded: {why}", key.target));
            return Ok(Next::Idle);
        }
    };
    let start = recording::start_of(first_seen, &observed);
    let again = known.is_some();
    let release = match known {
        Some(release) => release,
        None => match create(target, &name, config.clone()).await? {
            Created::Release(release) => *release,
            Created::NamespaceEnds => return Ok(Next::Idle),
        },
    };
    usable(target, &release, &config)?;
    keep::store(ctx, key, &release, &recorded).await?;
    begin(target, &release, start, now).await?;
    memory.window = None;
    memory.complaint = None;
    memory.kept.clone_from(&release.metadata.uid);
    announce(target, &release, again);
    Ok(Next::After(super::SOON))
}

enum Created {
    Release(Box<Release>),
    /// Nothing new can be made in the namespace any more.
    NamespaceEnds,
}

async fn create(target: &Target<'_>, name: &str, config: ReleaseConfig) -> Result<Created, PassError> {
    let Target { ctx, key, .. } = target;
    let mut release = Release::new(name, ReleaseFields { config });
    release.metadata.namespace = Some(key.namespace.clone());
    let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
    let api = live::releases(ctx, key);
    ctx.fence.check()?;
    failpoint::write("release");
    let created = api.create(&params, &release).await;
    failpoint::written("release");
    match created {
        Ok(release) => Ok(Created::Release(Box::new(release))),
        Err(error) if is_conflict(&error) => {
            Err(PassError::Contended { doing: format!("create Release {}/{name}", key.namespace) })
        }
        Err(kube::Error::Api(status))
            if status.code == 403 && status.message.contains("being terminated") =>
        {
            Ok(Created::NamespaceEnds)
        }
        Err(error) => Err(PassError::api(|| format!("create Release {}/{name}", key.namespace))(error)),
    }
}

/// A Release that has the name may be another one, or be on its way out.
fn usable(target: &Target<'_>, release: &Release, config: &ReleaseConfig) -> Result<(), PassError> {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    let place = format!("{}/{name}", target.key.namespace);
    if signature(&release.spec.config) != signature(config) {
        return Err(PassError::Other(format!(
            "target {} cannot be recorded: Release {place} has the name that its objects come to, and other revisions; \
             delete that Release if it is not needed: kubectl delete release {name} -n {}",
            target.key.target, target.key.namespace
        )));
    }
    if release.metadata.deletion_timestamp.is_some() {
        return Err(PassError::Other(format!(
            "target {} is recorded once Release {place}, which has its objects' name, is deleted",
            target.key.target
        )));
    }
    Ok(())
}

/// The deployment of the release begins: what an earlier one left on it goes.
async fn begin(
    target: &Target<'_>,
    release: &Release,
    start: Timestamp,
    now: Timestamp,
) -> Result<(), PassError> {
    let report = HealthReport {
        status: Status::Unknown,
        reason: HealthReason::RolloutInProgress,
        message: "the rollout has begun".to_owned(),
        time: start.max(now),
    };
    let mut edits = Map::new();
    edits.insert(annotations::DEPLOYMENT_START_TIME.to_owned(), json!(rfc3339(start)));
    edits.insert(annotations::DEPLOYMENT_END_TIME.to_owned(), Value::Null);
    edits.insert(annotations::HEALTH.to_owned(), json!(report.to_json()));
    annotate(target, release, "release start", edits).await.map(|_| ())
}

/// RFC 3339 in microseconds, so that texts sort like times.
pub(super) fn rfc3339(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Changes annotations of this very Release; false if there is another one of its name now, or none.
pub(super) async fn annotate(
    target: &Target<'_>,
    release: &Release,
    what: &str,
    edits: Map<String, Value>,
) -> Result<bool, PassError> {
    let Target { ctx, key, .. } = target;
    let name = release.metadata.name.as_deref().unwrap_or_default();
    let patch = json!({"metadata": {"uid": release.metadata.uid, "annotations": edits}});
    let params = PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() };
    let api = live::releases(ctx, key);
    ctx.fence.check()?;
    failpoint::write(what);
    let patched = api.patch(name, &params, &Patch::Merge(&patch)).await;
    failpoint::written(what);
    match patched {
        Ok(_) => Ok(true),
        Err(error) if is_conflict(&error) || crate::error::is_not_found(&error) => Ok(false),
        Err(error) => Err(PassError::api(|| format!("annotate Release {}/{name}", key.namespace))(error)),
    }
}

fn announce(target: &Target<'_>, release: &Release, again: bool) {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    let objects: Vec<String> = target.set.keys().map(ToString::to_string).collect();
    let what = if again { "is deployed again" } else { "is recorded" };
    let note = format!("{name} {what}: {}", objects.join(", "));
    tracing::info!(target = %target.key, release = name, "{note}");
    target.ctx.events.normal(release, "ReleaseRecorded", "Record", &note);
}

/// Stores again what is missing of a release's snapshots, as long as its objects are what it recorded.
pub(super) async fn restore_snapshots(
    target: &Target<'_>,
    memory: &mut Memory,
    release: &Arc<Release>,
) -> Result<(), PassError> {
    let Target { ctx, key, seen, set, .. } = target;
    if memory.kept == release.metadata.uid
        || signature(&release.spec.config) != signature(&set::config(&key.target, set))
    {
        return Ok(());
    }
    if !keep::is_stored(ctx, key, release).await? {
        match keep::take(ctx, key, seen).await? {
            Taken::All(recorded) => keep::store(ctx, key, release, &recorded).await?,
            Taken::Changed => return Ok(()),
            Taken::Refused(why) => {
                let name = release.metadata.name.as_deref().unwrap_or_default();
                target.complain(
                    memory,
                    &format!("the snapshots of Release {name} cannot be stored again: {why}"),
                );
            }
        }
    }
    memory.kept.clone_from(&release.metadata.uid);
    Ok(())
}
