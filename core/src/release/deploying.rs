//! Which release is being deployed and never became active (rule 11).

use k8s_openapi::jiff::Timestamp;
use rollback_api::ReleaseStatus;

use super::facts::Facts;
use super::settle::started;
use super::times::{seconds, time};
use crate::pointer::{ActiveRelease, Deploying};

/// The newest release whose deployment started after the latest activation of any, and was not left by a Rollback.
/// It stays until another release is activated: a deployment that ended without success may still be what runs.
///
/// `statuses` are those that the releases are to have, in the same order.
pub(super) fn find(
    facts: &[Facts<'_>],
    statuses: &[ReleaseStatus],
    active: Option<&ActiveRelease>,
) -> Option<Deploying> {
    let activated = |status: &ReleaseStatus| status.activation.as_ref().map(|activation| activation.time.0);
    let latest =
        statuses.iter().filter_map(activated).chain(active.map(|active| active.activation.time.0)).max();
    facts
        .iter()
        .zip(statuses)
        .filter(|(fact, status)| !fact.leaving && !fact.is(active) && status.left_by_rollback.is_none())
        .filter_map(|(fact, status)| Some((fact, started(fact)?, activated(status))))
        .filter(|(_, start, own)| own.is_none_or(|own| *start > own))
        .filter(|(_, start, _)| latest.is_none_or(|latest| is_after(*start, latest)))
        .map(|(fact, start, _)| (fact, start))
        .max_by_key(|(fact, start)| (*start, fact.created(), fact.name))
        .map(|(fact, start)| Deploying {
            release: fact.name.to_owned(),
            uid: fact.uid.to_owned(),
            since: time(start),
        })
}

/// Whether a deployment started after an activation. A start in whole seconds may be anywhere in its second.
fn is_after(start: Timestamp, activation: Timestamp) -> bool {
    if start == seconds(start) { start >= seconds(activation) } else { start > activation }
}
