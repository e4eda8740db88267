//! What else a Rollback that is to be carried out must pass, and what its author should know.

use std::collections::BTreeMap;

use rollback_api::conditions::Status;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, FromReleaseRef, ReleaseRef, Rollback, annotations};

use super::resolve::given;
use super::state::TargetState;
use super::verdict::Denial;
use super::{Request, refusal};
use crate::options;
use crate::release::ReleaseView;

/// Checks a Rollback from `from` to `to`; the answer is what its author should know.
pub(super) fn check(
    request: &Request<'_>,
    rollback: &Rollback,
    from: &FromReleaseRef,
    to: &ReleaseRef,
    state: &TargetState,
) -> Result<Vec<String>, Denial> {
    let from_name = given(from.name.as_ref()).unwrap_or_default();
    let to_name = given(to.name.as_ref()).unwrap_or_default();
    let (Some(view), Some(release)) = (state.view(to_name), state.release(to_name)) else {
        return Err(refusal::not_a_release(state, to_name, from_name, request.now));
    };
    if from_name == to_name {
        return Err(Denial::invalid(format!(
            "spec.fromReleaseRef and spec.toReleaseRef both name {to_name}: name another release to go back to"
        )));
    }
    signature("toReleaseRef", view, to.signature.as_ref())?;
    if let Some(from_view) = state.view(from_name) {
        signature("fromReleaseRef", from_view, from.signature.as_ref())?;
    }
    let forced = annotation(rollback, annotations::FORCE) == Some("true");
    if let Some(reason) = view.blocked.as_ref().filter(|_| !forced) {
        return Err(refusal::blocked(state, to_name, reason));
    }
    let backend = backend(request, rollback.spec.backend)?;
    let none = DeploymentOptions::default();
    options::resolve(rollback.spec.deployment_options.as_ref().unwrap_or(&none), release)
        .map_err(|error| Denial::invalid(error.to_string()))?;
    let mut warnings = about_release(view);
    if backend == Some(Backend::Noop) {
        warnings.push("the noop backend deploys nothing: the release is only recorded as active".to_owned());
    }
    warnings.extend(tracked(rollback, release.metadata.labels.as_ref(), state));
    Ok(warnings)
}

fn signature(field: &str, view: &ReleaseView, sent: Option<&String>) -> Result<(), Denial> {
    match given(sent) {
        Some(sent) if sent != view.signature => {
            Err(refusal::other_signature(field, &view.name, sent, &view.signature))
        }
        Some(_) | None => Ok(()),
    }
}

/// The backend that will carry the rollback out, as far as the webhook knows.
fn backend(request: &Request<'_>, asked: Option<Backend>) -> Result<Option<Backend>, Denial> {
    match asked {
        Some(asked) if !request.backends.contains(&asked) => {
            let enabled: Vec<&str> = request.backends.iter().map(|backend| backend.as_str()).collect();
            Err(Denial::forbidden(format!(
                "spec.backend {asked} is not enabled here (enabled: {}): leave it out for the default, or have it enabled \
                 with --cicd-backend on the webhook and the controller",
                enabled.join(", ")
            )))
        }
        Some(asked) => Ok(Some(asked)),
        None => Ok(request.backends.first().copied()),
    }
}

/// A release that was named on purpose although it would not have been chosen.
fn about_release(view: &ReleaseView) -> Vec<String> {
    let name = &view.name;
    let mut warnings = Vec::new();
    if let Some(reason) = &view.blocked {
        warnings.push(format!("Release {name} is blocked ({reason}) and used by force"));
    }
    if let Some(rollback) = &view.left_by_rollback {
        warnings.push(format!("Release {name} was rolled back from by rollback/{rollback}"));
    }
    match view.healthy {
        Status::True => {}
        Status::False => warnings.push(format!("Release {name} was measured to be unhealthy")),
        Status::Unknown => warnings.push(format!("the health of Release {name} is unknown")),
    }
    if !view.initialised {
        warnings.push(format!("Release {name} has not been seen by the release controller yet"));
    }
    warnings
}

/// Rule 13: the app that a tool tracks this Rollback for, if that is the app which is rolled back.
fn tracked(
    rollback: &Rollback,
    release_labels: Option<&BTreeMap<String, String>>,
    state: &TargetState,
) -> Option<String> {
    let label =
        |labels: Option<&BTreeMap<String, String>>, key: &str| labels.and_then(|all| all.get(key)).cloned();
    let by_label = |labels: Option<&BTreeMap<String, String>>| {
        ["app.kubernetes.io/instance", "argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name"]
            .into_iter()
            .find_map(|key| label(labels, key))
    };
    let app = annotation(rollback, "argocd.argoproj.io/tracking-id")
        .and_then(|id| id.split(':').next())
        .or_else(|| annotation(rollback, "meta.helm.sh/release-name"))
        .map(str::to_owned)
        .or_else(|| by_label(rollback.metadata.labels.as_ref()))
        .filter(|app| !app.is_empty())?;
    let options = rollback.spec.deployment_options.as_ref();
    let named =
        options.and_then(|options| options.0.get("argocd_app_name")).and_then(serde_json::Value::as_str);
    let same =
        app == state.target || named == Some(app.as_str()) || by_label(release_labels).as_ref() == Some(&app);
    same.then(|| {
        format!("this Rollback belongs to {app}, the app that it rolls back: keep it in another app, or its sync may wait for itself")
    })
}

/// An annotation that is there and not empty.
pub(super) fn annotation<'a>(rollback: &'a Rollback, key: &str) -> Option<&'a str> {
    rollback.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|text| !text.is_empty())
}
