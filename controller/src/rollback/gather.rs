//! What a pass knows about its target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Api;
use kube::api::ListParams;
use rollback_api::{Release, Rollback};
use rollback_core::release::ReleaseView;
use rollback_core::rollback::observed::Releases;
use rollback_core::rollback::{RollbackView, has_finalizer};

use crate::chance;
use crate::context::Context;
use crate::error::PassError;
use crate::pointer::{self, Stored};
use crate::target::TargetKey;

/// The target of a pass.
pub(super) struct Target<'a> {
    pub(super) ctx: &'a Context,
    pub(super) key: &'a TargetKey,
    /// The pointer as it was last read or written.
    pub(super) pointer: Stored,
    /// Jitter of the back-off, one for the pass.
    pub(super) jitter: f64,
    /// The target's Rollbacks by UID, as they were last seen.
    views: BTreeMap<String, RollbackView>,
    /// UIDs of holders of the lock that do not exist any more.
    gone: BTreeSet<String>,
}

impl<'a> Target<'a> {
    /// What the watches show. Fails when the pointer cannot be read.
    pub(super) fn gather(
        ctx: &'a Context,
        key: &'a TargetKey,
        rollbacks: &[Arc<Rollback>],
    ) -> Result<Self, PassError> {
        let views = rollbacks.iter().map(|rollback| RollbackView::of(rollback));
        Ok(Self {
            ctx,
            key,
            pointer: pointer::cached(ctx, key)?,
            jitter: chance::fraction(),
            views: views.map(|view| (view.uid.clone(), view)).collect(),
            gone: BTreeSet::new(),
        })
    }

    /// The Rollback was read or written.
    pub(super) fn saw(&mut self, rollback: &Rollback) {
        let view = RollbackView::of(rollback);
        self.views.insert(view.uid.clone(), view);
    }

    /// The Rollback does not exist any more.
    pub(super) fn lost(&mut self, uid: &str) {
        self.views.remove(uid);
        self.gone.insert(uid.to_owned());
    }

    /// The other Rollbacks that a decision may depend on: all that have not ended, and the holder of the lock, which is
    /// read live if the watch does not show it.
    pub(super) async fn others(&mut self, uid: &str) -> Result<Vec<RollbackView>, PassError> {
        if let Some(lock) = &self.pointer.pointer.lock
            && lock.uid != uid
            && !self.views.contains_key(&lock.uid)
            && !self.gone.contains(&lock.uid)
        {
            let holder = live_rollback(self.ctx, self.key, &lock.rollback).await?;
            match holder.filter(|holder| holder.metadata.uid.as_ref() == Some(&lock.uid)) {
                Some(holder) => self.saw(&holder),
                None => {
                    self.gone.insert(lock.uid.clone());
                }
            }
        }
        let lock = self.pointer.pointer.lock.as_ref().map(|lock| lock.uid.as_str());
        let matter = |view: &&RollbackView| {
            view.uid != uid && (!view.phase.is_ended() || lock == Some(view.uid.as_str()))
        };
        Ok(self.views.values().filter(matter).cloned().collect())
    }

    /// Whether nothing is left to do about a Rollback, whatever time it is.
    pub(super) fn at_rest(&self, rollback: &Rollback) -> bool {
        let view = RollbackView::of(rollback);
        let pointer = &self.pointer.pointer;
        view.phase.is_ended()
            && !has_finalizer(rollback)
            && rollback.spec.ttl_seconds_after_finished.is_none()
            && pointer.lock.as_ref().is_none_or(|lock| lock.uid != view.uid)
            && pointer.has_outcome(&view.uid)
    }
}

/// The API of the target's Rollbacks.
pub(super) fn rollbacks(ctx: &Context, key: &TargetKey) -> Api<Rollback> {
    Api::namespaced(ctx.client.clone(), &key.namespace)
}

/// The API of the target's Releases.
pub(super) fn releases(ctx: &Context, key: &TargetKey) -> Api<Release> {
    Api::namespaced(ctx.client.clone(), &key.namespace)
}

/// The Rollback of that name as it is now.
pub(super) async fn live_rollback(
    ctx: &Context,
    key: &TargetKey,
    name: &str,
) -> Result<Option<Rollback>, PassError> {
    let doing = || format!("read Rollback {}/{name}", key.namespace);
    rollbacks(ctx, key).get_opt(name).await.map_err(PassError::api(doing))
}

/// The Release of that name as it is now.
pub(super) async fn live_release(
    ctx: &Context,
    key: &TargetKey,
    name: &str,
) -> Result<Option<Release>, PassError> {
    if name.is_empty() {
        return Ok(None);
    }
    let doing = || format!("read Release {}/{name}", key.namespace);
    releases(ctx, key).get_opt(name).await.map_err(PassError::api(doing))
}

/// Everything that the preconditions of a deployment are about, as it is now.
pub(super) struct Live {
    pub(super) rollback: Option<Rollback>,
    pub(super) pointer: Stored,
    pub(super) releases: Releases,
    /// The release to deploy, whole: options are resolved against it.
    pub(super) to: Option<Release>,
}

/// Reads it all at once.
pub(super) async fn live(
    ctx: &Context,
    key: &TargetKey,
    rollback: &str,
    from: &str,
    to: &str,
    all: bool,
) -> Result<Live, PassError> {
    let listed = async {
        if !all {
            return Ok(Vec::new());
        }
        let of_target = ListParams::default().fields(&format!("config.targetName={}", key.target));
        let doing = || format!("list the Releases of target {key}");
        releases(ctx, key).list(&of_target).await.map_err(PassError::api(doing)).map(|list| list.items)
    };
    let (rollback, pointer, from, to, listed) = futures::try_join!(
        live_rollback(ctx, key, rollback),
        pointer::live(ctx, key),
        live_release(ctx, key, from),
        live_release(ctx, key, to),
        listed,
    )?;
    let releases = Releases {
        from: from.as_ref().map(ReleaseView::of),
        to: to.as_ref().map(ReleaseView::of),
        all: listed.iter().map(ReleaseView::of).collect(),
    };
    Ok(Live { rollback, pointer, releases, to })
}
