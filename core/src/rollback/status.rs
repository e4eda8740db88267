//! The statuses that a Rollback passes through, built from the one it has.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::{InProgressReason, RollbackCondition, Status, SucceededReason};
use rollback_api::rollback::{DEFAULT_MAX_ATTEMPTS, DEFAULT_PROGRESS_DEADLINE_SECONDS, MAX_ATTEMPTS};
use rollback_api::{Attempt, AttemptState, Plan, Rollback, RollbackStatus};

use super::Outcome;
use super::key::attempt_key;
use super::observed::Observed;
use super::standing::Stop;
use super::step::{Step, Until};
use crate::backend::Deployment;
use crate::conditions::{self, MAX_MESSAGE, Wanted, cut};

/// Reason of the condition DryRun, as in the reference.
const SET_IN_SPEC: &str = "SetInSpec";

/// A status being built.
pub(super) struct Draft<'a> {
    observed: &'a Observed<'a>,
    status: RollbackStatus,
}

/// How often a Rollback may try.
pub(super) fn max_attempts(rollback: &Rollback) -> i32 {
    rollback.spec.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS).clamp(1, MAX_ATTEMPTS)
}

/// Seconds that a Rollback may take once it has left the queue; also the longest that it may be queued.
pub(super) fn progress_deadline(rollback: &Rollback) -> i64 {
    rollback.spec.progress_deadline_seconds.unwrap_or(DEFAULT_PROGRESS_DEADLINE_SECONDS).max(1)
}

/// A time some seconds later; the end of time if there is none.
pub(super) fn seconds_later(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(time.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}

impl<'a> Draft<'a> {
    /// Starts from the persisted status.
    pub(super) fn of(observed: &'a Observed<'a>) -> Self {
        let mut status = observed.rollback.status.clone().unwrap_or_default();
        status.observed_generation = observed.rollback.metadata.generation;
        if status.from_release_ref.is_none() {
            status.from_release_ref.clone_from(&observed.rollback.spec.from_release_ref);
        }
        if observed.rollback.spec.dry_run != Some(true) {
            status.conditions.retain(|condition| condition.type_ != RollbackCondition::DryRun.as_str());
        }
        Self { observed, status }
    }

    fn condition(&mut self, type_: RollbackCondition, status: Status, reason: &str, message: &str) {
        let generation = self.observed.rollback.metadata.generation;
        let wanted = Wanted { type_: type_.as_str(), status, reason, message, generation };
        conditions::set(&mut self.status.conditions, &wanted, self.observed.now);
    }

    /// Not ended: `Succeeded` is Unknown, `InProgress` says where it stands, the message says it in a sentence.
    fn unfinished(&mut self, in_progress: Status, reason: InProgressReason, message: &str) {
        self.condition(RollbackCondition::InProgress, in_progress, reason.as_str(), message);
        self.condition(
            RollbackCondition::Succeeded,
            Status::Unknown,
            SucceededReason::Pending.as_str(),
            "the rollback has not finished",
        );
        self.status.message = Some(cut(message, MAX_MESSAGE));
    }

    /// Waits behind another Rollback.
    pub(super) fn queued(mut self, message: &str) -> Self {
        self.unfinished(Status::False, InProgressReason::Queued, message);
        self
    }

    /// Is next, but cannot begin. Its deadline runs from the first time.
    pub(super) fn held_up(mut self, message: &str) -> Self {
        self.start_deadline();
        self.unfinished(Status::False, InProgressReason::Waiting, message);
        self
    }

    /// Waits for `spec.dryRun` to be unset.
    pub(super) fn dry_run(mut self) -> Self {
        let message = "Dry-run mode enabled, no deployment will be performed. Unset spec.dryRun to deploy";
        self.unfinished(Status::False, InProgressReason::Waiting, message);
        self.condition(RollbackCondition::DryRun, Status::True, SET_IN_SPEC, message);
        self
    }

    fn start_deadline(&mut self) {
        if self.status.deadline.is_none() {
            let seconds = progress_deadline(self.observed.rollback);
            self.status.deadline = Some(Time(seconds_later(self.observed.now, seconds)));
        }
    }

    /// Adds the next attempt, which is persisted before the backend is called (invariant 5).
    pub(super) fn next_attempt(mut self, plan: Option<Plan>) -> Self {
        let now = Time(self.observed.now);
        let rollback = self.observed.rollback;
        let number = self.status.attempts.last().map_or(1, |attempt| attempt.number.saturating_add(1));
        self.start_deadline();
        self.status.start_time.get_or_insert_with(|| now.clone());
        self.status.next_attempt_time = None;
        self.status.plan = self.status.plan.take().or(plan);
        self.status.attempt_count = Some(number);
        self.status.attempts.push(Attempt {
            number,
            key: attempt_key(rollback.metadata.uid.as_deref().unwrap_or_default(), number),
            state: AttemptState::Triggering,
            start_time: Some(now),
            completion_time: None,
            deployment_id: None,
            deployment_url: None,
            message: None,
        });
        let message = format!("{}: triggering the deployment", attempt_text(rollback, number));
        self.unfinished(Status::False, InProgressReason::DeploymentTriggering, &message);
        self
    }

    /// Takes over a rollback that theatre began: its one deployment becomes the first attempt, and the deadline runs.
    pub(super) fn taken_over(mut self) -> Self {
        self.start_deadline();
        self.status.attempt_count.get_or_insert(1);
        self.status.attempts.push(Attempt {
            number: 1,
            key: attempt_key(self.observed.rollback.metadata.uid.as_deref().unwrap_or_default(), 1),
            state: AttemptState::Running,
            start_time: self.status.start_time.clone().or(Some(Time(self.observed.now))),
            completion_time: None,
            deployment_id: self.status.deployment_id.clone(),
            deployment_url: self.status.deployment_url.clone(),
            message: None,
        });
        self
    }

    /// The call of the current attempt is put off until then.
    pub(super) fn put_off(mut self, until: Timestamp, why: &str) -> Self {
        self.status.next_attempt_time = Some(Time(until));
        let message = format!("{}: {why}; trying again", self.attempt_text());
        if let Some(attempt) = self.status.attempts.last_mut() {
            attempt.message = Some(cut(why, MAX_MESSAGE));
        }
        self.unfinished(Status::False, InProgressReason::DeploymentTriggering, &message);
        self
    }

    /// The backend has the attempt: this is what it says.
    pub(super) fn running(mut self, deployment: &Deployment) -> Self {
        let text =
            if deployment.message.is_empty() { "the deployment is running" } else { &deployment.message };
        let message = format!("{}: {text}", self.attempt_text());
        self.status.next_attempt_time = None;
        self.status.deployment_id = Some(deployment.id.clone());
        if deployment.url.is_some() {
            self.status.deployment_url.clone_from(&deployment.url);
        }
        if let Some(attempt) = self.status.attempts.last_mut() {
            attempt.state = AttemptState::Running;
            attempt.deployment_id = Some(deployment.id.clone());
            if deployment.url.is_some() {
                attempt.deployment_url.clone_from(&deployment.url);
            }
            attempt.message = (!deployment.message.is_empty()).then(|| cut(&deployment.message, MAX_MESSAGE));
        }
        self.unfinished(Status::True, InProgressReason::DeploymentTriggered, &message);
        self
    }

    /// The running attempt could not be asked about.
    pub(super) fn poll_failed(mut self, why: &str) -> Self {
        let message = format!("{}: its state cannot be read: {why}; trying again", self.attempt_text());
        if let Some(attempt) = self.status.attempts.last_mut() {
            attempt.message = Some(cut(why, MAX_MESSAGE));
        }
        self.unfinished(Status::True, InProgressReason::DeploymentTriggered, &message);
        self
    }

    /// The backend finished; the release is yet to be made active.
    pub(super) fn deployed(mut self, finished: Timestamp, release: &str) -> Self {
        let message = format!("{}: deployed; making {release} the active release", self.attempt_text());
        self.close_attempt(AttemptState::Succeeded, finished, None);
        self.unfinished(Status::True, InProgressReason::DeploymentTriggered, &message);
        self
    }

    /// The attempt failed and another one may follow, not before `next`.
    pub(super) fn attempt_failed(mut self, next: Timestamp, why: &str) -> Self {
        let message = format!("{} failed: {why}; the next one begins at {next:.0}", self.attempt_text());
        self.close_attempt(AttemptState::Failed, self.observed.now, Some(why));
        self.status.next_attempt_time = Some(Time(next));
        self.unfinished(Status::False, InProgressReason::Waiting, &message);
        self
    }

    fn close_attempt(&mut self, state: AttemptState, time: Timestamp, message: Option<&str>) {
        if let Some(attempt) = self.status.attempts.last_mut() {
            attempt.state = state;
            attempt.completion_time.get_or_insert(Time(time));
            if let Some(message) = message {
                attempt.message = Some(cut(message, MAX_MESSAGE));
            }
        }
    }

    /// The end. `attempt` is what becomes of an attempt that is still open.
    pub(super) fn ended(mut self, outcome: Outcome, attempt: AttemptState, message: &str) -> Self {
        let (in_progress, text, succeeded, reason) = ending(outcome);
        if self.status.attempts.last().is_some_and(|attempt| match attempt.state {
            AttemptState::Triggering | AttemptState::Running => true,
            AttemptState::Succeeded
            | AttemptState::Failed
            | AttemptState::Superseded
            | AttemptState::Cancelled
            | AttemptState::Abandoned => false,
        }) {
            self.close_attempt(attempt, self.observed.now, Some(message));
        }
        self.status.completion_time = Some(Time(self.observed.now));
        self.status.next_attempt_time = None;
        self.condition(RollbackCondition::InProgress, Status::False, in_progress.as_str(), text);
        self.condition(RollbackCondition::Succeeded, succeeded, reason.as_str(), message);
        self.status.message = Some(cut(message, MAX_MESSAGE));
        self
    }

    /// The end that a reason to stop leads to.
    pub(super) fn stopped(self, stop: &Stop, attempt: AttemptState, detail: &str) -> Self {
        let deadline = progress_deadline(self.observed.rollback);
        let (reason, mut message) = match stop {
            Stop::Cancel { by: Some(by), why } => {
                (SucceededReason::Cancelled, format!("cancelled by {by}: {why}"))
            }
            Stop::Cancel { by: None, why } => (SucceededReason::Cancelled, format!("cancelled: {why}")),
            Stop::Deleted => {
                (SucceededReason::Cancelled, "the Rollback was deleted while it was running".to_owned())
            }
            Stop::Deadline => (
                SucceededReason::DeadlineExceeded,
                format!("not finished within its deadline of {deadline}s"),
            ),
            Stop::Superseded(by) => (
                SucceededReason::DeploymentSuperseded,
                format!("{by} was deployed while the rollback was running"),
            ),
        };
        if !detail.is_empty() {
            message = format!("{message}; {detail}");
        }
        self.ended(Outcome::NotSucceeded(reason), attempt, &message)
    }

    fn attempt_text(&self) -> String {
        attempt_text(self.observed.rollback, self.status.attempts.last().map_or(1, |attempt| attempt.number))
    }

    /// Persists the status.
    pub(super) fn persist(self) -> Step {
        Step::Persist(Box::new(self.status))
    }

    /// Persists the status if it differs from the persisted one, else waits.
    pub(super) fn or_wait(self, until: Until) -> Step {
        if self.observed.rollback.status.as_ref() == Some(&self.status) {
            Step::Wait(until)
        } else {
            self.persist()
        }
    }
}

fn attempt_text(rollback: &Rollback, number: i32) -> String {
    format!("attempt {number} of {}", max_attempts(rollback))
}

/// Reason and text of InProgress, status and reason of Succeeded.
fn ending(outcome: Outcome) -> (InProgressReason, &'static str, Status, SucceededReason) {
    let reason = match outcome {
        Outcome::Succeeded => {
            return (
                InProgressReason::Completed,
                "Rollback deployment completed",
                Status::True,
                SucceededReason::DeploymentSucceeded,
            );
        }
        Outcome::NotSucceeded(reason) => reason,
    };
    let (in_progress, text) = match reason {
        SucceededReason::DeploymentSuperseded => {
            (InProgressReason::Superseded, "Rollback deployment superseded")
        }
        SucceededReason::Cancelled => (InProgressReason::Cancelled, "Rollback cancelled"),
        SucceededReason::NotNeeded => (InProgressReason::NotNeeded, "Rollback not needed"),
        SucceededReason::Pending
        | SucceededReason::DeploymentSucceeded
        | SucceededReason::DeploymentFailed
        | SucceededReason::DeadlineExceeded
        | SucceededReason::PreconditionFailed
        | SucceededReason::NotAdmitted => (InProgressReason::Failed, "Rollback deployment failed"),
    };
    (in_progress, text, Status::False, reason)
}
