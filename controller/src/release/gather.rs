//! What a pass knows about its target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use rollback_api::{Release, Rollback, annotations};
use rollback_core::release::culling;
use rollback_core::release::pass::{TargetDecision, TargetObserved, decide};
use rollback_core::rollback::RollbackView;

use crate::context::Context;
use crate::error::PassError;
use crate::pointer::{self, Stored};
use crate::target::TargetKey;

/// The target of a pass.
pub(super) struct Target<'a> {
    pub(super) ctx: &'a Context,
    pub(super) key: &'a TargetKey,
    /// Its releases by name, as they were last seen or written.
    pub(super) releases: BTreeMap<String, Arc<Release>>,
    /// The pointer as it was last read or written.
    pub(super) pointer: Stored,
    /// Names of the releases that unfinished Rollbacks leave or deploy.
    pub(super) in_use: BTreeSet<String>,
}

impl<'a> Target<'a> {
    /// What the watches show. Fails when the pointer cannot be read.
    pub(super) fn cached(ctx: &'a Context, key: &'a TargetKey) -> Result<Self, PassError> {
        let releases = ctx.stores.releases.of(key);
        let rollbacks = ctx.stores.rollbacks.of(key);
        Ok(Self {
            ctx,
            key,
            releases: releases.into_iter().map(|release| (name(&release).to_owned(), release)).collect(),
            pointer: pointer::cached(ctx, key)?,
            in_use: in_use(rollbacks.iter().map(AsRef::as_ref)),
        })
    }

    /// Decides on what is known.
    pub(super) fn decide(&self, limit: usize) -> TargetDecision {
        let releases: Vec<&Release> = self.releases.values().map(AsRef::as_ref).collect();
        decide(&TargetObserved {
            now: Timestamp::now(),
            releases: &releases,
            pointer: &self.pointer.pointer,
            in_use: &self.in_use,
            limit,
        })
    }

    /// A release was read or written; `None`: it does not exist. Says whether that is what was known.
    pub(super) fn saw(&mut self, name: &str, live: Option<Release>) -> bool {
        let version = |release: &Release| release.metadata.resource_version.clone();
        // One that belongs to another target now is none of this one.
        let live = live.filter(|live| live.spec.config.target_name == self.key.target);
        let same = self.releases.get(name).map(|known| version(known)) == live.as_ref().map(version);
        match live {
            Some(mut live) => {
                live.metadata.managed_fields = None;
                self.releases.insert(name.to_owned(), Arc::new(live));
            }
            None => {
                self.releases.remove(name);
            }
        }
        same
    }

    /// Reads a release live. Says whether it is as it was known.
    pub(super) async fn look(&mut self, name: &str) -> Result<bool, PassError> {
        let live = api(self.ctx, self.key)
            .get_opt(name)
            .await
            .map_err(PassError::api(|| format!("read Release {}/{name}", self.key.namespace)))?;
        Ok(self.saw(name, live))
    }
}

/// Releases of the target's namespace.
pub(super) fn api(ctx: &Context, key: &TargetKey) -> Api<Release> {
    Api::namespaced(ctx.client.clone(), &key.namespace)
}

pub(super) fn name(release: &Release) -> &str {
    release.metadata.name.as_deref().unwrap_or_default()
}

/// Names of the releases that unfinished Rollbacks leave or deploy.
pub(super) fn in_use<'a>(rollbacks: impl Iterator<Item = &'a Rollback>) -> BTreeSet<String> {
    rollbacks
        .map(RollbackView::of)
        .filter(|view| !view.phase.is_ended())
        .flat_map(|view| [view.from, view.to])
        .filter(|name| !name.is_empty())
        .collect()
}

/// How many releases of the target to keep. One is always kept, so a single one needs no question.
pub(super) async fn limit(ctx: &Context, key: &TargetKey, releases: usize) -> Result<usize, PassError> {
    if releases <= 1 {
        return Ok(usize::MAX);
    }
    let namespace = Api::<Namespace>::all(ctx.client.clone())
        .get_opt(&key.namespace)
        .await
        .map_err(PassError::api(|| format!("read Namespace {}", key.namespace)))?;
    let annotation = namespace
        .as_ref()
        .and_then(|namespace| namespace.metadata.annotations.as_ref()?.get(annotations::RELEASE_LIMIT));
    let (limit, note) = culling::limit(annotation.map(String::as_str));
    if let Some(note) = note {
        tracing::warn!("Namespace {}: {note}", key.namespace);
    }
    Ok(limit)
}
