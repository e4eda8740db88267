//! The Rollback that is asked for.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{ReleaseRef, Rollback, RollbackSpec, annotations};
use serde_json::Value;

use super::Args;
use crate::failure::Failure;

/// The object as the flags say, to the named release or to one that the server chooses.
pub(super) fn rollback(args: &Args, to: Option<String>) -> Result<Rollback, Failure> {
    let options = options(args)?;
    let spec = RollbackSpec {
        to_release_ref: ReleaseRef { target: args.target.clone(), name: to, signature: None },
        reason: args.reason.clone(),
        deployment_options: (!options.is_empty()).then_some(DeploymentOptions(options)),
        backend: args.backend,
        progress_deadline_seconds: args.deadline,
        max_attempts: args.max_attempts,
        hold: args.hold,
        ..RollbackSpec::default()
    };
    let annotations =
        args.force.then(|| BTreeMap::from([(annotations::FORCE.to_owned(), "true".to_owned())]));
    let metadata =
        ObjectMeta { generate_name: Some(format!("{}-", args.target)), annotations, ..ObjectMeta::default() };
    Ok(Rollback { metadata, spec, status: None })
}

/// The same with what the person saw in the preview: if anything has moved since, nothing else is deployed instead.
pub(super) fn pinned(mut wanted: Rollback, answer: &Rollback) -> Rollback {
    wanted.spec.from_release_ref.clone_from(&answer.spec.from_release_ref);
    wanted.spec.to_release_ref.clone_from(&answer.spec.to_release_ref);
    wanted
}

fn options(args: &Args) -> Result<BTreeMap<String, Value>, Failure> {
    let mut options = BTreeMap::new();
    for (name, value) in args.set.iter().chain(&args.set_json) {
        if options.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::error(format!(
                "option {name} is given twice: use --set or --set-json once for each option"
            )));
        }
    }
    Ok(options)
}

fn key_value(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim(), value)),
        Some(_) | None => Err("KEY=VALUE, such as environment=production".to_owned()),
    }
}

/// The value of `--set`: always text, whatever it looks like.
pub(super) fn option(text: &str) -> Result<(String, Value), String> {
    let (key, value) = key_value(text)?;
    Ok((key.to_owned(), Value::String(value.to_owned())))
}

/// The value of `--set-json`.
pub(super) fn json_option(text: &str) -> Result<(String, Value), String> {
    let (key, value) = key_value(text)?;
    let value = serde_json::from_str(value)
        .map_err(|error| format!("the value of {key} is not JSON: {error}; text goes into --set"))?;
    Ok((key.to_owned(), value))
}
