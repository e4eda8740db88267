//! How many ended Rollbacks a target keeps. The ledger outlives them.

use std::sync::Arc;

use rollback_api::Rollback;

use super::apply;
use super::gather::Target;
use crate::error::PassError;

/// Deletes the oldest ended Rollbacks above the limit. Only ones that nothing is left to do about.
pub(super) async fn trim(target: &Target<'_>, rollbacks: &[Arc<Rollback>]) -> Result<(), PassError> {
    let limit = target.ctx.settings.rollback_history_limit;
    for rollback in excess(rollbacks.iter().filter(|rollback| target.at_rest(rollback)), limit) {
        // Changed or gone meanwhile: the next pass sees it.
        apply::delete(target.ctx, target.key, rollback).await?;
        tracing::info!(
            target = %target.key, rollback = rollback.metadata.name.as_deref().unwrap_or_default(), limit,
            "deleted an ended Rollback above the history limit"
        );
    }
    Ok(())
}

/// All but the `limit` that ended last.
fn excess<'a>(rollbacks: impl Iterator<Item = &'a Arc<Rollback>>, limit: usize) -> Vec<&'a Arc<Rollback>> {
    let mut ended: Vec<&Arc<Rollback>> = rollbacks.collect();
    if ended.len() <= limit {
        return Vec::new();
    }
    ended.sort_by_key(|rollback| {
        let status = rollback.status.as_ref();
        let completed = status.and_then(|status| status.completion_time.as_ref()).map(|time| time.0);
        let created = rollback.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (completed.or(created), rollback.metadata.name.clone())
    });
    ended.truncate(ended.len() - limit);
    ended
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use rollback_api::{RollbackSpec, RollbackStatus};

    use super::*;

    fn ended(name: &str, second: i64) -> Arc<Rollback> {
        let mut rollback = Rollback::new(name, RollbackSpec::default());
        let completion_time = Some(Time(Timestamp::from_second(second).unwrap()));
        rollback.status = Some(RollbackStatus { completion_time, ..RollbackStatus::default() });
        Arc::new(rollback)
    }

    #[test]
    fn the_oldest_go_first() {
        let all = [ended("b", 20), ended("d", 40), ended("a", 10), ended("c", 30)];
        let names = |limit| {
            let excess = excess(all.iter(), limit);
            excess.iter().map(|rollback| rollback.metadata.name.clone().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(2), ["a", "b"]);
        assert_eq!(names(4), Vec::<String>::new());
        assert_eq!(names(9), Vec::<String>::new());
    }
}
