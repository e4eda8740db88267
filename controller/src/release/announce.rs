//! What people are told: Kubernetes events and the log.

use rollback_core::release::annotations::Note;
use rollback_core::release::pass::Activated;

use super::gather::Target;

/// A release became the active one.
pub(super) fn activated(target: &Target<'_>, activated: &Activated) {
    let Activated { release, activation, replaced } = activated;
    let mut note = format!("{release} is active");
    if let Some(replaced) = replaced.as_ref().filter(|replaced| *replaced != release) {
        note = format!("{note}; it replaced {replaced}");
    }
    if let Some(rollback) = &activation.rollback_ref {
        note = format!("{note}, by rollback/{rollback}");
    }
    tracing::info!(target = %target.key, release, activation = activation.id, "{note}");
    if let Some(object) = target.releases.get(release) {
        target.ctx.events.normal(object.as_ref(), "ReleaseActivated", "Activate", &note);
    }
}

/// A release was deleted because the target has too many. It is told on the active release: the other one is gone.
pub(super) fn culled(target: &Target<'_>, name: &str) {
    let note = format!("{name} was deleted: target {} has more releases than are kept", target.key.target);
    tracing::info!(target = %target.key, release = name, "{note}");
    let active = target.pointer.pointer.active.as_ref().map_or(name, |active| &active.release);
    if let Some(object) = target.releases.get(active) {
        target.ctx.events.normal(object.as_ref(), "ReleaseCulled", "Cull", &note);
    }
}

/// Annotations that were not understood.
pub(super) fn notes(target: &Target<'_>, notes: &[Note]) {
    for Note { release, text } in notes {
        tracing::debug!(target = %target.key, release, "{text}");
        if let Some(object) = target.releases.get(release) {
            target.ctx.events.warning(object.as_ref(), "AnnotationNotUnderstood", "Read", text);
        }
    }
}
