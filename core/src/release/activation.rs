//! Which release becomes the active one (rules 1, 2 and 4): activations are events, ordered by the time at which
//! their deployments finished, whenever they are reported. The latest one wins; in a tie the newcomer.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::Activation;
use rollback_api::conditions::{ReleaseCondition, Status};

use super::annotations::Moment;
use super::facts::Facts;
use super::times::{micro_time, micros};
use crate::conditions;
use crate::pointer::{ActiveRelease, Pointer};
use crate::signature::sha256_hex;

/// An activation that did not make its release the active one, or only for a moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lost {
    /// The event.
    pub(super) activation: Activation,
    /// When the next one came.
    pub(super) until: Timestamp,
    /// The release that was active before it, if that is known.
    pub(super) previous: Option<String>,
}

/// What became of the requests for activation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// The active release after them.
    pub(super) active: Option<ActiveRelease>,
    /// Lost activations, by the index of their release.
    pub(super) lost: Vec<(usize, Lost)>,
    /// Events that have to be persisted on their releases (by index) before anything rests on them.
    pub(super) stamps: Vec<(usize, Activation)>,
    /// Releases (by index) whose requests wait for the next round.
    pub(super) waiting: Vec<usize>,
}

/// A request for activation.
struct Request {
    index: usize,
    activation: Activation,
    /// Whether the event is persisted on the release.
    persisted: bool,
    /// Its own time, before it was limited to now.
    claimed: Timestamp,
}

/// Leaves all requests to the next round.
pub(super) fn postpone(facts: &[Facts<'_>], pointer: &Pointer) -> Outcome {
    let waiting = facts.iter().enumerate().filter(|(_, fact)| asks(fact, pointer.active.as_ref()));
    Outcome {
        active: pointer.active.clone(),
        waiting: waiting.map(|(index, _)| index).collect(),
        ..Outcome::default()
    }
}

/// Decides all requests, up to the first one that a Rollback made: what that one left has to be written
/// down before the next one is looked at.
pub(super) fn decide(facts: &[Facts<'_>], pointer: &Pointer, now: Timestamp) -> Outcome {
    let base = base(facts, pointer);
    let mut requests: Vec<Request> = facts
        .iter()
        .enumerate()
        .filter(|(_, fact)| asks(fact, base.as_ref()))
        .map(|(index, fact)| request(index, fact, base.as_ref(), now))
        .collect();
    requests.sort_by(|a, b| {
        let order = |request: &Request| {
            let fact = &facts[request.index];
            (request.activation.time.0, request.claimed, fact.created(), fact.name)
        };
        order(a).cmp(&order(b))
    });
    let mut outcome = Outcome { active: base, ..Outcome::default() };
    // The winner so far, if it is one of these requests.
    let mut leader: Option<usize> = None;
    let mut requests = requests.into_iter();
    for request in requests.by_ref() {
        let Request { index, mut activation, persisted, .. } = request;
        let fact = &facts[index];
        let current = outcome.active.as_ref();
        if let Some(current) = current.filter(|current| current.activation.time > activation.time) {
            // An older event of the release that is active now changes nothing.
            if !fact.is(Some(current)) {
                let until = current.activation.time.0;
                outcome.lost.push((index, Lost { activation: activation.clone(), until, previous: None }));
                outcome.stamps.extend((!persisted).then_some((index, activation)));
            }
            continue;
        }
        if !persisted {
            outcome.stamps.push((index, activation.clone()));
        }
        attribute(&mut activation, fact.name, pointer);
        if let (Some(before), Some(current)) = (leader.filter(|before| *before != index), current) {
            let lost = Lost {
                activation: current.activation.clone(),
                until: activation.time.0,
                previous: current.replaced.clone(),
            };
            outcome.lost.push((before, lost));
        }
        let replaced = match current {
            Some(current) if current.release == fact.name => current.replaced.clone(),
            Some(current) => Some(current.release.clone()),
            None => last_active(facts, pointer, index),
        };
        let left = left(&activation, pointer, replaced.as_ref()).filter(|left| left != fact.name);
        let by_rollback = activation.rollback_ref.is_some();
        outcome.active = Some(ActiveRelease {
            release: fact.name.to_owned(),
            uid: fact.uid.to_owned(),
            activation,
            replaced,
            left,
        });
        leader = Some(index);
        if by_rollback {
            break;
        }
    }
    outcome.waiting = requests.map(|request| request.index).collect();
    outcome
}

/// Whether the annotations ask for an event that is not recorded yet.
fn asks(fact: &Facts<'_>, active: Option<&ActiveRelease>) -> bool {
    if !fact.inputs.wants || fact.leaving {
        return false;
    }
    let asked = fact.inputs.activation.as_ref();
    if let Some(active) = active.filter(|active| fact.is(Some(active))) {
        let known = &active.activation;
        return asked.is_some_and(|asked| {
            let same_rollback = asked.rollback_uid.is_some() && asked.rollback_uid == known.rollback_uid;
            asked.id != known.id && !same_rollback
        });
    }
    match asked {
        Some(asked) => fact.status.activation.as_ref().is_none_or(|known| known.id != asked.id),
        None => fact.active != Status::True,
    }
}

fn request(index: usize, fact: &Facts<'_>, active: Option<&ActiveRelease>, now: Timestamp) -> Request {
    let asked = fact.inputs.activation.clone();
    let claimed = asked.as_ref().map(|asked| asked.time.0).or_else(|| finished(fact));
    let now = micros(now);
    let current = active.map(|active| active.activation.time.0);
    let time = match claimed {
        // No deployment finished in the future. Its author's clock or ours is wrong; the order still holds.
        Some(claimed) if claimed > now => {
            let after = current.and_then(|current| current.checked_add(SignedDuration::from_micros(1)).ok());
            claimed.min(after.map_or(now, |after| after.max(now)))
        }
        Some(claimed) => claimed,
        // It says "now", so it comes after what is active, also when our clock was set back.
        None => current.map_or(now, |current| current.max(now)),
    };
    let claimed = claimed.unwrap_or(time);
    let persisted = asked.is_some();
    let activation = asked.unwrap_or_else(|| derived(fact.uid, claimed));
    let activation = Activation { time: micro_time(time), ..activation };
    Request { index, activation, persisted, claimed }
}

/// The end of the deployment, if it is not that of an earlier one.
fn finished(fact: &Facts<'_>) -> Option<Timestamp> {
    let Moment::At(end) = fact.inputs.end else { return None };
    let end = micros(end);
    let earlier = fact.activated().max(fact.left());
    earlier.is_none_or(|earlier| end > earlier).then_some(end)
}

/// An event that nobody named: its id follows from the object and the time.
fn derived(uid: &str, time: Timestamp) -> Activation {
    let id = sha256_hex(format!("{uid}\n{}", time.as_microsecond()).as_bytes())[..16].to_owned();
    Activation { id, time: micro_time(time), rollback_ref: None, rollback_uid: None }
}

/// The active release before any request.
fn base(facts: &[Facts<'_>], pointer: &Pointer) -> Option<ActiveRelease> {
    let Some(active) = &pointer.active else { return rebuilt(facts) };
    let Some(fact) = facts.iter().find(|fact| fact.is(Some(active))) else {
        // Its record was deleted. A Rollback that is under way leaves what was active all the same.
        let held = pointer.lock.as_ref().is_some_and(|lock| lock.abandoned.is_none());
        let remade = facts.iter().any(|fact| fact.name == active.release);
        return (held && !remade).then(|| active.clone());
    };
    (fact.inputs.wants || fact.leaving).then(|| active.clone())
}

/// Without a pointer, the release whose status says that it is active; of several the latest (H-12, H-19).
fn rebuilt(facts: &[Facts<'_>]) -> Option<ActiveRelease> {
    facts
        .iter()
        .filter(|fact| fact.active == Status::True && fact.inputs.wants && !fact.leaving)
        .map(|fact| (fact, recorded(fact)))
        .max_by(|(a, a_event), (b, b_event)| {
            (a_event.time.0, a.created(), a.name).cmp(&(b_event.time.0, b.created(), b.name))
        })
        .map(|(fact, activation)| ActiveRelease {
            release: fact.name.to_owned(),
            uid: fact.uid.to_owned(),
            activation,
            replaced: fact.status.previous_release.as_ref().and_then(|previous| previous.release_ref.clone()),
            left: None,
        })
}

/// The event that made a release active whose status says that it is. Theatre recorded none.
fn recorded(fact: &Facts<'_>) -> Activation {
    if let Some(activation) = &fact.status.activation {
        return activation.clone();
    }
    let end = fact.status.deployment_end_time.as_ref().map(|time| time.0);
    let condition = conditions::find(&fact.status.conditions, ReleaseCondition::Active.as_str());
    let time = end
        .or_else(|| condition.map(|condition| condition.last_transition_time.0))
        .or_else(|| fact.created())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    derived(fact.uid, time)
}

/// The release that was active last, when none is.
fn last_active(facts: &[Facts<'_>], pointer: &Pointer, but: usize) -> Option<String> {
    let known = pointer.active.as_ref().filter(|active| active.release != facts[but].name);
    if let Some(active) = known {
        return Some(active.release.clone());
    }
    facts
        .iter()
        .enumerate()
        .filter(|(index, fact)| *index != but && fact.activated().is_some())
        .max_by_key(|(_, fact)| (fact.left().max(fact.activated()), fact.activated(), fact.name))
        .map(|(_, fact)| fact.name.to_owned())
}

/// An activation of `to` while a Rollback from→to is under way belongs to that Rollback, whoever reports it (rule 1).
fn attribute(activation: &mut Activation, release: &str, pointer: &Pointer) {
    let lock = pointer.lock.as_ref().filter(|lock| lock.abandoned.is_none() && lock.to == release);
    if let Some(lock) =
        lock.filter(|_| activation.rollback_ref.is_none() && activation.rollback_uid.is_none())
    {
        activation.rollback_ref = Some(lock.rollback.clone());
        activation.rollback_uid = Some(lock.uid.clone());
    }
}

/// The release that the activation's Rollback left.
fn left(activation: &Activation, pointer: &Pointer, replaced: Option<&String>) -> Option<String> {
    activation.rollback_ref.as_ref()?;
    let lock = pointer.lock.as_ref().filter(|lock| Some(&lock.uid) == activation.rollback_uid.as_ref());
    lock.map(|lock| lock.from.clone()).or_else(|| replaced.cloned()).filter(|name| !name.is_empty())
}
