//! Which release to go back to when nobody names one (DESIGN 3, rules 11, 20 and 22).

use std::collections::BTreeSet;

use rollback_api::conditions::Status;

use super::ReleaseView;

/// Why a release is not chosen by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ineligible {
    /// It is what is deployed now.
    Active,
    /// Its author marked it: the reason.
    Blocked(String),
    /// A Rollback (name) left it and nobody deployed it since.
    LeftByRollback(String),
    /// It was measured to be unhealthy.
    Unhealthy,
    /// Nothing says that it was healthy.
    HealthUnknown,
}

/// Whether a release may be chosen automatically while `active` is deployed.
pub fn eligibility(release: &ReleaseView, active: &str) -> Result<(), Ineligible> {
    if release.name == active {
        return Err(Ineligible::Active);
    }
    if let Some(reason) = &release.blocked {
        return Err(Ineligible::Blocked(reason.clone()));
    }
    if let Some(rollback) = &release.left_by_rollback {
        return Err(Ineligible::LeftByRollback(rollback.clone()));
    }
    match release.healthy {
        Status::True => Ok(()),
        Status::False => Err(Ineligible::Unhealthy),
        Status::Unknown => Err(Ineligible::HealthUnknown),
    }
}

/// The result of a selection.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection<'a> {
    /// The newest eligible release.
    pub chosen: Option<&'a ReleaseView>,
    /// Newer releases that were passed over (all others, if nothing was chosen), newest first, the active one left out.
    pub skipped: Vec<(&'a ReleaseView, Ineligible)>,
}

/// Picks the newest eligible release of a target: the first along the chain of
/// `previousRelease` links from the active one, then by time where the chain is broken or circular.
///
/// `releases` are all releases of the target, in any order.
pub fn select<'a>(active: &str, releases: &'a [ReleaseView]) -> Selection<'a> {
    let mut skipped = Vec::new();
    for release in candidates(active, releases) {
        match eligibility(release, active) {
            Ok(()) => return Selection { chosen: Some(release), skipped },
            Err(Ineligible::Active) => {}
            Err(reason) => skipped.push((release, reason)),
        }
    }
    Selection { chosen: None, skipped }
}

/// The release that was active before `active`, whatever its health: `--to previous`
/// (rule 20). Releases that a rollback left or that are blocked are passed over.
pub fn previous<'a>(active: &str, releases: &'a [ReleaseView]) -> Option<&'a ReleaseView> {
    candidates(active, releases).find(|release| match eligibility(release, active) {
        Ok(()) | Err(Ineligible::Unhealthy | Ineligible::HealthUnknown) => release.activation.is_some(),
        Err(Ineligible::Active | Ineligible::Blocked(_) | Ineligible::LeftByRollback(_)) => false,
    })
}

/// All releases but the active one: first along the chain, then newest first; ties by name.
fn candidates<'a>(active: &str, releases: &'a [ReleaseView]) -> impl Iterator<Item = &'a ReleaseView> {
    let named = |name: &str| releases.iter().find(|release| release.name == name);
    let mut seen = BTreeSet::from([active]);
    let mut ordered = Vec::with_capacity(releases.len());
    let mut next = named(active).and_then(|release| release.previous.as_deref());
    while let Some(release) = next.and_then(named) {
        if !seen.insert(&release.name) {
            break;
        }
        ordered.push(release);
        next = release.previous.as_deref();
    }
    let mut rest: Vec<_> = releases.iter().filter(|release| !seen.contains(release.name.as_str())).collect();
    rest.sort_by(|a, b| b.deployed().cmp(&a.deployed()).then_with(|| b.name.cmp(&a.name)));
    ordered.into_iter().chain(rest)
}
