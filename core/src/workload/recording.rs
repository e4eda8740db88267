//! Which release a target's objects are, as far as that is recorded (rules 11 and 16).

use std::collections::BTreeSet;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::{Activation, Release, annotations};

use super::object::ObjectKey;
use super::set::{self, Set};
use crate::pointer::{ActiveRelease, Lock, Pointer};
use crate::signature::{sha256_hex, signature};

/// What is known about a target.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The target.
    pub target: &'a str,
    /// Its objects.
    pub set: &'a Set,
    /// Its releases.
    pub releases: &'a [&'a Release],
    /// Its pointer.
    pub pointer: &'a Pointer,
}

/// What the objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// What a Rollback that is under way makes of them: nothing to record, nothing to judge.
    Ours,
    /// The release of that name: the one that was deployed last.
    Current(String),
    /// Something else than what was deployed last: to be recorded once it is quiet.
    Changed,
}

/// Whose objects have to be known to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared<'a> {
    /// Name of the release that a Rollback brings, or brought, back.
    pub to: &'a str,
    /// Name of the release that it leaves, or left.
    pub from: &'a str,
}

/// When the release's deployment began, as its annotation says.
pub fn started(release: &Release) -> Option<Timestamp> {
    release.metadata.annotations.as_ref()?.get(annotations::DEPLOYMENT_START_TIME)?.parse().ok()
}

/// The release that was deployed last: the one whose deployment began after the latest activation, else the active one.
pub fn current<'a>(observed: &Observed<'a>) -> Option<&'a Release> {
    let active = observed.pointer.active.as_ref();
    let since = active.map(|active| active.activation.time.0);
    let newer = observed
        .releases
        .iter()
        .copied()
        .filter(|release| release.metadata.deletion_timestamp.is_none())
        .filter_map(|release| Some((started(release)?, release)))
        .filter(|(start, _)| since.is_none_or(|since| *start > since))
        .max_by_key(|(start, release)| (*start, release.metadata.name.as_deref()));
    newer.map(|(_, release)| release).or_else(|| {
        observed.releases.iter().copied().find(|release| active.is_some_and(|active| is(release, active)))
    })
}

fn is(release: &Release, active: &ActiveRelease) -> bool {
    release.metadata.name.as_ref() == Some(&active.release)
        && release.metadata.uid.as_ref() == Some(&active.uid)
}

impl<'a> Observed<'a> {
    /// The two releases whose objects [`standing`] compares with, if it has to.
    pub fn compared(&self) -> Option<Compared<'a>> {
        if let Some(lock) = self.lock() {
            return Some(Compared { to: &lock.to, from: &lock.from });
        }
        let active = self.pointer.active.as_ref()?;
        let from = active.left.as_deref()?;
        let brought_back = active.activation.rollback_ref.is_some()
            && current(self).is_some_and(|release| is(release, active) && self.differs_from(release));
        brought_back.then_some(Compared { to: &active.release, from })
    }

    fn lock(&self) -> Option<&'a Lock> {
        // An abandoned deployment ends like anybody's: its release becomes active in the ordinary way (rule 5).
        self.pointer.lock.as_ref().filter(|lock| lock.abandoned.is_none())
    }

    fn differs_from(&self, release: &Release) -> bool {
        signature(&release.spec.config) != signature(&set::config(self.target, self.set))
    }
}

/// What the objects are. `to` and `from` are the objects of the releases that [`Observed::compared`] names; `None` when
/// they cannot be known any more.
pub fn standing(observed: &Observed<'_>, to: Option<&Set>, from: Option<&Set>) -> Standing {
    let both = to.zip(from);
    let locked = observed.lock().is_some();
    // What cannot be compared is the Rollback's until it has ended.
    if locked && both.is_none_or(|(to, from)| is_between(observed.set, to, from)) {
        return Standing::Ours;
    }
    let Some(release) = current(observed) else { return Standing::Changed };
    let left_over = !locked
        && observed.compared().is_some()
        && both.is_some_and(|(to, from)| is_left_over(observed.set, to, from));
    if left_over || !observed.differs_from(release) {
        Standing::Current(release.metadata.name.clone().unwrap_or_default())
    } else {
        Standing::Changed
    }
}

/// Whether each object is as in one of the two releases: what a Rollback from one to the other can make of them.
fn is_between(set: &Set, to: &Set, from: &Set) -> bool {
    let keys: BTreeSet<&ObjectKey> = set.keys().chain(to.keys()).chain(from.keys()).collect();
    keys.into_iter().all(|key| {
        let live = set.get(key);
        live == to.get(key) || live == from.get(key)
    })
}

/// Whether the objects are those of `to`, and beside them only what `from` had added: a Rollback leaves those alone.
fn is_left_over(set: &Set, to: &Set, from: &Set) -> bool {
    to.iter().all(|(key, id)| set.get(key) == Some(id))
        && set.iter().all(|(key, id)| to.contains_key(key) || from.get(key) == Some(id))
}

/// When the deployment began that a change shows: when the change was seen, and after everything that is recorded.
pub fn start_of(first_seen: Timestamp, observed: &Observed<'_>) -> Timestamp {
    let active = observed.pointer.active.as_ref().map(|active| active.activation.time.0);
    let started = observed.releases.iter().filter_map(|release| started(release)).max();
    let after = active.max(started).and_then(|last| last.checked_add(SignedDuration::from_micros(1)).ok());
    after.map_or(first_seen, |after| after.max(first_seen))
}

/// The event that makes a release active whose deployment began at its start time. One deployment is one event, however
/// often it is reported.
pub fn activation(release: &Release, now: Timestamp) -> Option<Activation> {
    let start = started(release)?;
    let uid = release.metadata.uid.as_deref()?;
    let id = sha256_hex(format!("{uid}\n{}", start.as_microsecond()).as_bytes())[..16].to_owned();
    // Stored times end at microseconds; it may not come before its start.
    let now = Timestamp::from_microsecond(now.max(start).as_microsecond()).unwrap_or(now);
    let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(now);
    Some(Activation { id, time, rollback_ref: None, rollback_uid: None })
}

/// When the release's current deployment made it active; `None` while it is being deployed.
pub fn active_since(release: &Release, pointer: &Pointer) -> Option<Timestamp> {
    let active = pointer.active.as_ref().filter(|active| is(release, active))?;
    let since = active.activation.time.0;
    started(release).is_none_or(|start| start <= since).then_some(since)
}

/// Since when a verdict about the release's health can be about its current deployment.
pub fn measured_since(release: &Release, pointer: &Pointer) -> Option<Timestamp> {
    let active = pointer.active.as_ref().filter(|active| is(release, active));
    let by_rollback = active.filter(|active| active.activation.rollback_ref.is_some());
    by_rollback.map(|active| active.activation.time.0).max(started(release))
}

#[cfg(test)]
mod tests;
