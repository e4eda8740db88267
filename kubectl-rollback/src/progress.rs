//! What a Rollback says about its course, in lines. One formatter, whether watched or looked at once.

use std::fmt::Write as _;

use jiff::Timestamp;
use rollback_api::conditions::{RollbackCondition, SucceededReason};
use rollback_api::rollback::{DEFAULT_MAX_ATTEMPTS, RollbackStatus};
use rollback_api::{Attempt, AttemptState, Backend, Rollback};
use rollback_core::conditions;
use rollback_core::rollback::{Outcome, Phase, RollbackView};

use crate::clock::{Clock, span};
use crate::failure::Kind;

/// Longest deployment id that is shown: longer ones are keys, for machines.
const LONGEST_ID: usize = 32;

/// Something that happened, or is happening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// When, if the object says it.
    pub(crate) time: Option<Timestamp>,
    /// What, in one line.
    pub(crate) text: String,
}

impl Event {
    /// The line: when and what. Without a time of its own it happens now.
    pub(crate) fn line(&self, clock: &Clock) -> String {
        format!("{}  {}", clock.date_and_time(self.time.unwrap_or(clock.now)), self.text)
    }
}

/// How a Rollback ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// `None`: as it was asked for.
    pub(crate) kind: Option<Kind>,
    /// In one sentence.
    pub(crate) text: String,
    /// When.
    pub(crate) time: Option<Timestamp>,
}

impl End {
    /// The end as a line among others.
    pub(crate) fn event(&self) -> Event {
        let text = match self.kind {
            None => self.text.clone(),
            Some(kind) => format!("{} {}", kind.label(), self.text),
        };
        Event { time: self.time, text }
    }
}

/// What happened so far, oldest first; the end is not among it.
pub(crate) fn events(rollback: &Rollback, clock: &Clock) -> Vec<Event> {
    let status = rollback.status.clone().unwrap_or_default();
    let ended = Phase::of(rollback).is_ended();
    let last = status.attempts.len().saturating_sub(1);
    let mut events = Vec::new();
    for (index, attempt) in status.attempts.iter().enumerate() {
        of_attempt(&mut events, rollback, &status, attempt, index == last && !ended);
    }
    if ended {
        return events;
    }
    match status.attempts.last() {
        Some(_) => {
            if let (Phase::Waiting, Some(next)) = (Phase::of(rollback), &status.next_attempt_time) {
                events.push(Event {
                    time: None,
                    text: format!("the next attempt begins at {}", clock.time(next.0)),
                });
            }
        }
        None => events.push(Event { time: None, text: before_attempts(rollback, &status) }),
    }
    events
}

/// What it waits for before anything was tried.
fn before_attempts(rollback: &Rollback, status: &RollbackStatus) -> String {
    match &status.message {
        Some(message) if !message.is_empty() => message.clone(),
        Some(_) | None if rollback.spec.dry_run == Some(true) => {
            "waits for spec.dryRun to be unset".to_owned()
        }
        Some(_) | None => "waits for the controller".to_owned(),
    }
}

fn of_attempt(
    events: &mut Vec<Event>,
    rollback: &Rollback,
    status: &RollbackStatus,
    attempt: &Attempt,
    current: bool,
) {
    let most = rollback.spec.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    let started = attempt.start_time.as_ref().map(|time| time.0);
    let completed = attempt.completion_time.as_ref().map(|time| time.0);
    let mut push = |time: Option<Timestamp>, text: &str| {
        events.push(Event { time, text: format!("attempt {} of {most}   {text}", attempt.number) });
    };
    if let Some(id) = &attempt.deployment_id {
        let mut text = if id.len() <= LONGEST_ID && *id != attempt.key {
            format!("deployment {id} created")
        } else {
            "deployment started".to_owned()
        };
        if let Some(url) = &attempt.deployment_url {
            let _ = write!(text, "   {url}");
        }
        push(started, &text);
    }
    let said = attempt.message.as_deref().unwrap_or_default();
    match attempt.state {
        AttemptState::Triggering if current && said.is_empty() => push(None, "triggering the deployment"),
        AttemptState::Triggering if current => push(None, &format!("{said}; trying again")),
        AttemptState::Running if current && said.is_empty() => push(None, "in progress"),
        AttemptState::Running if current => push(None, &format!("in progress: {}", words_of(status, said))),
        AttemptState::Succeeded if current => {
            let to = rollback.spec.to_release_ref.name.as_deref().unwrap_or_default();
            push(completed, &format!("deployed; making {to} the active release"));
        }
        // Of the last attempt of a Rollback that ended, the end tells it.
        AttemptState::Failed if is_last(status, attempt) && !current => {}
        AttemptState::Failed if said.is_empty() => push(completed, "failed"),
        AttemptState::Failed => push(completed, &format!("failed: {}", words_of(status, said))),
        AttemptState::Triggering
        | AttemptState::Running
        | AttemptState::Succeeded
        | AttemptState::Superseded
        | AttemptState::Cancelled
        | AttemptState::Abandoned => {}
    }
}

fn is_last(status: &RollbackStatus, attempt: &Attempt) -> bool {
    status.attempts.last().is_some_and(|last| last.number == attempt.number)
}

/// The words of another system are quoted; those of our own deployers are not.
fn words_of(status: &RollbackStatus, said: &str) -> String {
    match status.plan.as_ref().map(|plan| plan.backend) {
        Some(Backend::Github | Backend::Argocd) => format!("{said:?}"),
        Some(Backend::Noop | Backend::Workload) | None => said.to_owned(),
    }
}

/// How it ended, if it has.
pub(crate) fn end(rollback: &Rollback) -> Option<End> {
    let Phase::Ended(outcome) = Phase::of(rollback) else { return None };
    let status = rollback.status.clone().unwrap_or_default();
    let time = status.completion_time.as_ref().map(|time| time.0);
    let view = RollbackView::of(rollback);
    let kind = match outcome {
        Outcome::Succeeded => {
            let took = match (status.start_time.as_ref().map(|time| time.0).or(view.created), time) {
                (Some(start), Some(end)) => format!(" in {}", span(end.as_second() - start.as_second())),
                (Some(_) | None, Some(_) | None) => String::new(),
            };
            return Some(End {
                kind: None,
                text: format!("{} is active and was deployed{took}", view.to),
                time,
            });
        }
        Outcome::NotSucceeded(reason) => kind_of(reason),
    };
    let condition = conditions::find(&status.conditions, RollbackCondition::Succeeded.as_str());
    let why = condition
        .map(|condition| condition.message.clone())
        .filter(|text| !text.is_empty())
        .or(status.message);
    let mut text = why.unwrap_or_else(|| "no reason is recorded".to_owned());
    if kind == Kind::Failed
        && let Some(url) = status.deployment_url.filter(|url| !text.contains(url.as_str()))
    {
        let _ = write!(text, " ({url})");
    }
    Some(End { kind: Some(kind), text: sentence(without_label(kind, &text)), time })
}

const fn kind_of(reason: SucceededReason) -> Kind {
    match reason {
        SucceededReason::DeploymentSuperseded => Kind::Superseded,
        SucceededReason::Cancelled => Kind::Cancelled,
        SucceededReason::NotNeeded => Kind::NotNeeded,
        SucceededReason::Pending
        | SucceededReason::DeploymentSucceeded
        | SucceededReason::DeploymentFailed
        | SucceededReason::DeadlineExceeded
        | SucceededReason::PreconditionFailed
        | SucceededReason::NotAdmitted => Kind::Failed,
    }
}

/// The controller's sentence without the word that the label says already.
fn without_label(kind: Kind, text: &str) -> &str {
    match kind {
        Kind::Cancelled => {
            text.strip_prefix("cancelled: ").or(text.strip_prefix("cancelled ")).unwrap_or(text)
        }
        Kind::Error
        | Kind::Refused
        | Kind::Failed
        | Kind::StillRunning
        | Kind::StoppedWatching
        | Kind::Superseded
        | Kind::NotNeeded => text,
    }
}

/// With a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

/// Where it stands right now, for a line that is redrawn.
pub(crate) fn live(rollback: &Rollback, clock: &Clock) -> String {
    let status = rollback.status.clone().unwrap_or_default();
    let mut text = match status.attempts.last() {
        Some(attempt) => standing(rollback, attempt),
        None => "waiting".to_owned(),
    };
    let since = status.start_time.as_ref().map(|time| time.0).or(RollbackView::of(rollback).created);
    if let Some(since) = since {
        let _ = write!(text, ", {} so far", span(clock.now.as_second() - since.as_second()));
    }
    if let Some(left) = deadline_in(rollback, clock) {
        let _ = write!(text, ", deadline in {left}");
    }
    text
}

/// `attempt 1 of 3, deadline in 27m`: for the last words of somebody who stops watching.
pub(crate) fn standing_with_deadline(rollback: &Rollback, clock: &Clock) -> String {
    let attempt = rollback.status.as_ref().and_then(|status| status.attempts.last());
    let standing =
        attempt.map_or_else(|| "not started yet".to_owned(), |attempt| standing(rollback, attempt));
    match deadline_in(rollback, clock) {
        Some(left) => format!("{standing}, deadline in {left}"),
        None => standing,
    }
}

fn standing(rollback: &Rollback, attempt: &Attempt) -> String {
    format!("attempt {} of {}", attempt.number, rollback.spec.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS))
}

/// How much time it has left.
pub(crate) fn deadline_in(rollback: &Rollback, clock: &Clock) -> Option<String> {
    let deadline = rollback.status.as_ref()?.deadline.as_ref()?.0;
    let seconds = deadline.as_second() - clock.now.as_second();
    // Minutes are enough for a person, unless it is about to end.
    Some(span(if seconds > 600 { seconds / 60 * 60 } else { seconds }))
}

#[cfg(test)]
mod tests;
