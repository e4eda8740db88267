//! Calls to backends: each with a deadline, none without leadership.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Backend, Plan, Rollback};
use rollback_core::backend::{BackendError, Deployment, ErrorClass};
use rollback_core::options;
use rollback_core::pointer::Abandoned;
use rollback_core::rollback::RollbackView;
use rollback_core::rollback::observed::Evidence;
use rollback_core::rollback::step::Call;
use tokio::time::{Instant, timeout};

use super::driver::Follow;
use super::gather::{live_release, live_rollback};
use super::pacing::Polled;
use crate::deployers::{Answer, DeployTarget, Deployer};
use crate::error::PassError;
use crate::failpoint;

/// Makes the call. Fails only when the API server fails or this process must not act; what the backend says, errors
/// included, is evidence.
pub(super) async fn call(
    follow: &mut Follow<'_, '_>,
    backend: Backend,
    call: Call,
) -> Result<Evidence, PassError> {
    let ctx = follow.target.ctx;
    let deployer = ctx.deployers.get(backend);
    let caller = Caller { backend, deployer: &*deployer, timeout: ctx.settings.backend_timeout };
    let target = DeployTarget::of(&follow.target.key.namespace, &RollbackView::of(&follow.rollback));
    ctx.fence.check()?;
    Ok(match call {
        Call::Plan => Evidence::Planned(plan(follow, &caller, &target).await?),
        Call::Find { key, plan } => {
            Evidence::Found(caller.ask(follow, "find", deployer.find(&target, &key, &plan)).await)
        }
        Call::Trigger { key, plan } => {
            failpoint::write("trigger");
            let answer = caller.ask(follow, "trigger", deployer.trigger(&target, &key, &plan)).await;
            failpoint::written("trigger");
            Evidence::Triggered(answer)
        }
        Call::Poll { key, id, plan } => {
            let ask = deployer.poll(&target, &key, &id, plan.as_deref());
            Evidence::Polled(poll(follow, &caller, since(&follow.rollback), ask).await)
        }
        Call::Cancel { key, id } => {
            failpoint::write("cancel");
            let answer = caller.ask(follow, "cancel", deployer.cancel(&target, &key, &id)).await;
            failpoint::written("cancel");
            Evidence::Cancelled(answer)
        }
        Call::PollAbandoned(abandoned) => {
            let answer = poll_abandoned(follow, &caller, &abandoned).await?;
            follow.abandoned_id = answer.as_ref().ok().map(|deployment| deployment.id.clone());
            Evidence::AbandonedPolled(answer)
        }
        Call::CancelAbandoned(abandoned) => {
            let target = abandoned_target(follow);
            let Some(id) = abandoned.deployment_id.or_else(|| follow.abandoned_id.clone()) else {
                return Ok(Evidence::AbandonedCancelled(Err(not_found(&abandoned.key))));
            };
            failpoint::write("cancel");
            let answer = caller.ask(follow, "cancel", deployer.cancel(&target, &abandoned.key, &id)).await;
            failpoint::written("cancel");
            Evidence::AbandonedCancelled(answer)
        }
    })
}

fn not_found(key: &str) -> BackendError {
    BackendError::new(ErrorClass::NotFound, format!("no deployment carries the key {key}"))
}

/// When the current attempt began.
fn since(rollback: &Rollback) -> Option<Timestamp> {
    let attempt = rollback.status.as_ref()?.attempts.last()?;
    Some(attempt.start_time.as_ref()?.0)
}

struct Caller<'a> {
    backend: Backend,
    deployer: &'a dyn Deployer,
    timeout: Duration,
}

impl Caller<'_> {
    async fn ask<T>(
        &self,
        follow: &Follow<'_, '_>,
        what: &'static str,
        answer: Answer<'_, T>,
    ) -> Result<T, BackendError> {
        let begun = Instant::now();
        let answer = timeout(self.timeout, answer).await.unwrap_or_else(|_| {
            let message =
                format!("backend {} did not answer within {:?} ({what})", self.backend, self.timeout);
            Err(BackendError::new(ErrorClass::Unavailable(None), message))
        });
        let outcome = answer.as_ref().map_or_else(|error| class(error.class), |_| "ok");
        follow.target.ctx.metrics.backend_call(self.backend.as_str(), what, outcome, begun.elapsed());
        if let Err(error) = &answer {
            tracing::info!(
                backend = %self.backend, call = what, target = %follow.target.key,
                rollback = follow.name(), class = outcome, "{error}"
            );
        }
        answer
    }
}

fn class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Unavailable(_) => "unavailable",
        ErrorClass::Busy => "busy",
        ErrorClass::Failed => "failed",
        ErrorClass::NotPermitted => "not_permitted",
        ErrorClass::Invalid => "invalid",
        ErrorClass::NotFound => "not_found",
    }
}

/// Resolves the options against the release as it was read live, then lets the backend check them.
async fn plan(
    follow: &Follow<'_, '_>,
    caller: &Caller<'_>,
    target: &DeployTarget,
) -> Result<Result<Plan, BackendError>, PassError> {
    let mut read = None;
    if follow.to.is_none() {
        read = live_release(follow.target.ctx, follow.target.key, &target.to).await?;
    }
    let Some(release) = follow.to.as_ref().or(read.as_ref()) else {
        let message = format!("Release {} does not exist any more", target.to);
        return Ok(Err(BackendError::new(ErrorClass::NotFound, message)));
    };
    let asked = follow.rollback.spec.deployment_options.clone().unwrap_or_default();
    let resolved = match options::resolve(&asked, release) {
        Ok(resolved) => resolved,
        Err(error) => return Ok(Err(BackendError::new(ErrorClass::Invalid, error.to_string()))),
    };
    Ok(caller.ask(follow, "plan", caller.deployer.plan(target, release, &resolved)).await)
}

/// A poll, and when the next one is due.
async fn poll(
    follow: &Follow<'_, '_>,
    caller: &Caller<'_>,
    since: Option<Timestamp>,
    ask: Answer<'_, Deployment>,
) -> Result<Deployment, BackendError> {
    let (pacing, key, uid) = (&follow.target.ctx.pacing, follow.target.key, follow.uid());
    pacing.begin(key, uid);
    let answer = caller.ask(follow, "poll", ask).await;
    let polled = match &answer {
        Ok(_) => Polled::Answered,
        Err(error) => match error.class {
            ErrorClass::Unavailable(asked) => Polled::Unavailable(asked),
            ErrorClass::Busy | ErrorClass::Failed => Polled::Unavailable(None),
            ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => Polled::Refused,
        },
    };
    let age =
        since.map(|since| Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default());
    pacing.end(key, uid, age.unwrap_or_default(), polled);
    answer
}

/// What the lock is about; the Rollback itself if there is none.
fn abandoned_target(follow: &Follow<'_, '_>) -> DeployTarget {
    let key = follow.target.key;
    match &follow.target.pointer.pointer.lock {
        Some(lock) => DeployTarget::of_lock(&key.namespace, &key.target, lock),
        None => DeployTarget::of(&key.namespace, &RollbackView::of(&follow.rollback)),
    }
}

/// A deployment whose id was never learned is looked for by its key.
async fn poll_abandoned(
    follow: &Follow<'_, '_>,
    caller: &Caller<'_>,
    abandoned: &Abandoned,
) -> Result<Result<Deployment, BackendError>, PassError> {
    let target = abandoned_target(follow);
    let plan = abandoned_plan(follow, &target).await?;
    let key = &abandoned.key;
    let ask: Answer<'_, Deployment> = match (&abandoned.deployment_id, &plan) {
        (Some(id), plan) => caller.deployer.poll(&target, key, id, plan.as_ref()),
        (None, Some(plan)) => {
            let found = caller.deployer.find(&target, key, plan);
            Box::pin(async move { found.await?.ok_or_else(|| not_found(key)) })
        }
        (None, None) => {
            let message = format!(
                "whether a deployment carries the key {key} cannot be found out: Rollback {}, which began it, is gone",
                target.rollback
            );
            return Ok(Err(BackendError::new(ErrorClass::Invalid, message)));
        }
    };
    Ok(poll(follow, caller, Some(abandoned.since.0), ask).await)
}

async fn abandoned_plan(follow: &Follow<'_, '_>, target: &DeployTarget) -> Result<Option<Plan>, PassError> {
    let plan = |rollback: &Rollback| rollback.status.as_ref()?.plan.clone();
    if follow.uid() == target.rollback_uid {
        return Ok(plan(&follow.rollback));
    }
    let (ctx, key) = (follow.target.ctx, follow.target.key);
    let began = |rollback: &Rollback| rollback.metadata.uid.as_ref() == Some(&target.rollback_uid);
    if let Some(known) = ctx.stores.rollbacks.get(key, &target.rollback).filter(|known| began(known)) {
        return Ok(plan(&known));
    }
    let live = live_rollback(ctx, key, &target.rollback).await?;
    Ok(live.filter(began).as_ref().and_then(plan))
}
