//! Checking a new Rollback after it was filled in: everything is derived again, and what only admission
//! writes must be what admission would write (rule 9).

use rollback_api::{Rollback, RollbackSpec, annotations};

use super::Request;
use super::canonical::changed_fields;
use super::checks::{annotation, check};
use super::resolve::{Course, Question, Resolved, given, resolve, target_name};
use super::rollback_create::is_pinned;
use super::state::TargetState;
use super::submitted::submitted;
use super::verdict::{Allowed, Denial, Verdict};

/// Admits a filled-in Rollback, with what its author should know, or says why not.
pub fn validate(request: &Request<'_>, rollback: &Rollback, state: &TargetState) -> Verdict<()> {
    target_name(&rollback.spec)?;
    stamped(request.user, rollback)?;
    let hash = annotation(rollback, annotations::SUBMITTED_HASH).unwrap_or_default();
    let Some(sent) = submitted(&rollback.spec, hash) else {
        return Err(not_ours(annotations::SUBMITTED_HASH, "is not the hash of this spec"));
    };
    let name = rollback.metadata.name.as_deref().unwrap_or_default();
    if state.has_rollback(name) {
        return Ok(Allowed::silently(()));
    }
    let pinned = is_pinned(&sent);
    let question = Question { spec: &rollback.spec, name, hash, pinned, now: request.now };
    let Resolved { from, to, course } = resolve(&question, state)?;
    let derived =
        RollbackSpec { from_release_ref: from.clone(), to_release_ref: to.clone(), ..rollback.spec.clone() };
    let mut unfilled = changed_fields(&derived, &rollback.spec);
    if !claims_somebody(&rollback.spec) {
        unfilled.push("spec.initiatedBy".to_owned());
    }
    if !unfilled.is_empty() {
        return Err(Denial::forbidden(format!(
            "{} not filled in as admission does it: {} changed while this Rollback was on its way, or the mutating \
             webhook /mutate-rollbacks did not run. Send it again; if that does not help, look for its \
             MutatingWebhookConfiguration",
            plural(&unfilled),
            state.target
        )));
    }
    let warnings = match (course, from) {
        (Course::NotNeeded(why), _) => vec![format!("nothing will be deployed: {why}")],
        (Course::Needed, Some(from)) => check(request, rollback, &from, &to, state)?,
        (Course::Needed, None) => Vec::new(),
    };
    Ok(Allowed { object: (), warnings })
}

/// The annotations that say who.
fn stamped(user: &str, rollback: &Rollback) -> Result<(), Denial> {
    if annotation(rollback, annotations::AUTHENTICATED_AS) != Some(user) {
        return Err(not_ours(
            annotations::AUTHENTICATED_AS,
            &format!("is not the authenticated user {user:?}"),
        ));
    }
    let expected = annotation(rollback, annotations::CANCEL).map(|_| user);
    if annotation(rollback, annotations::CANCELLED_BY) != expected {
        return Err(not_ours(annotations::CANCELLED_BY, "does not say who asked for cancellation"));
    }
    Ok(())
}

/// An annotation is not what admission writes.
pub(super) fn not_ours(key: &str, what: &str) -> Denial {
    Denial::forbidden(format!(
        "annotation {key} {what}: only admission writes it. Leave it out; if you did, the mutating webhook \
         /mutate-rollbacks did not run: look for its MutatingWebhookConfiguration"
    ))
}

fn claims_somebody(spec: &RollbackSpec) -> bool {
    let by = spec.initiated_by.as_ref();
    by.is_some_and(|by| given(by.principal.as_ref()).is_some() && given(by.type_.as_ref()).is_some())
}

fn plural(fields: &[String]) -> String {
    let verb = if fields.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", fields.join(" and "))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::rollback_create::fill;
    use crate::admission::testing::{
        a, active, b, condition, patched, pointer, release, request, rollback, state, with,
    };

    fn filled(more: &Value, state: &TargetState) -> Rollback {
        fill(&request(), &rollback(more), state).unwrap().object
    }

    fn warnings(rollback: &Rollback, state: &TargetState) -> Vec<String> {
        validate(&request(), rollback, state).unwrap().warnings
    }

    #[test]
    fn what_was_filled_in_passes() {
        let deploying = pointer(&active("payments-b", "act-b"), Some("payments-c"), &json!([]));
        let state_c = with(vec![a(), b(), release("payments-c", &json!({}))], Some(deploying), &[]);
        for state in [state(), with(vec![a(), b()], None, &[]), state_c] {
            for more in [
                json!({}),
                json!({"metadata": {"name": null, "generateName": "payments-"}}),
                json!({"spec": {"toReleaseRef": {"name": "payments-a"}}}),
                json!({"spec": {"toReleaseRef": {"name": "payments-b"}}}),
                json!({"spec": {"fromReleaseRef": {"target": "payments", "name": "payments-z"}}}),
                json!({"spec": {"backend": "github", "deploymentOptions": {"environment": "production"}}}),
                json!({"metadata": {"annotations": {"theatre.gocardless.com/cancel": "changed my mind"}}}),
            ] {
                validate(&request(), &filled(&more, &state), &state).unwrap();
            }
        }
    }

    #[test]
    fn the_usual_rollback_passes_without_a_word() {
        assert_eq!(warnings(&filled(&json!({}), &state()), &state()), Vec::<String>::new());
    }

    #[rstest]
    #[case(json!({"metadata": {"annotations": {"theatre.gocardless.com/authenticated-as": "root"}}}), "authenticated-as")]
    #[case(json!({"metadata": {"annotations": {"theatre.gocardless.com/authenticated-as": null}}}), "authenticated-as")]
    #[case(json!({"metadata": {"annotations": {"theatre.gocardless.com/submitted-hash": "0"}}}), "submitted-hash")]
    #[case(json!({"metadata": {"annotations": {"theatre.gocardless.com/cancelled-by": "root"}}}), "cancelled-by")]
    #[case(json!({"metadata": {"annotations": {"theatre.gocardless.com/cancel": "stop"}}}), "cancelled-by")]
    fn what_only_admission_writes_cannot_be_forged(#[case] forged: Value, #[case] key: &str) {
        let object = patched(&filled(&json!({}), &state()), &forged);
        let denial = validate(&request(), &object, &state()).unwrap_err();
        assert_eq!(denial.code.status(), 403);
        assert!(denial.message.starts_with(&format!("annotation theatre.gocardless.com/{key} ")), "{denial}");
    }

    #[rstest]
    #[case(json!({"fromReleaseRef": null}))]
    #[case(json!({"fromReleaseRef": {"activation": null}}))]
    #[case(json!({"toReleaseRef": {"name": null, "signature": null}}))]
    #[case(json!({"toReleaseRef": {"signature": null}}))]
    #[case(json!({"initiatedBy": null}))]
    #[case(json!({"initiatedBy": {"type": null}}))]
    fn what_was_not_filled_in_is_refused(#[case] missing: Value) {
        // As if the mutating webhook had been skipped: everything else is in order.
        let object = patched(&filled(&json!({}), &state()), &json!({"spec": missing}));
        let denial = validate(&request(), &object, &state()).unwrap_err();
        assert_eq!(denial.code.status(), 403, "{denial}");
        assert!(denial.message.contains("not filled in as admission does it"), "{denial}");
    }

    #[test]
    fn every_check_is_made_again() {
        let object = filled(&json!({}), &state());
        let busy = rollback(&json!({"metadata": {"name": "other", "uid": "u-other"}}));
        let later = with(state().releases, state().pointer, &[busy]);
        let denial = validate(&request(), &object, &later).unwrap_err();
        assert!(denial.message.starts_with("rollback/other "), "{denial}");
    }

    #[test]
    fn a_target_that_moved_on_between_the_two_calls_needs_nothing() {
        let object = filled(&json!({}), &state());
        let moved =
            with(state().releases, Some(pointer(&active("payments-a", "act-2"), None, &json!([]))), &[]);
        assert_eq!(
            warnings(&object, &moved),
            [
                "nothing will be deployed: payments is no longer on payments-b, which this rollback was to leave; payments-a is active"
            ]
        );
    }

    #[test]
    fn says_why_nothing_will_be_deployed() {
        let already = filled(&json!({"spec": {"toReleaseRef": {"name": "payments-b"}}}), &state());
        assert_eq!(warnings(&already, &state()), ["nothing will be deployed: payments-b is already active"]);
        let hash = crate::admission::submitted_hash(&rollback(&json!({})).spec);
        let ledger = json!([{
            "name": "back", "uid": "u1", "hash": hash, "outcome": "DeploymentSucceeded",
            "from": "payments-b", "to": "payments-a", "time": "2026-02-28T12:00:00Z",
        }]);
        let state = with(vec![a(), b()], Some(pointer(&active("payments-b", "act-b"), None, &ledger)), &[]);
        assert_eq!(
            warnings(&filled(&json!({}), &state), &state),
            [
                "nothing will be deployed: rollback/back was carried out before with the same spec (DeploymentSucceeded, 1d ago); give it another name to roll back again"
            ]
        );
    }

    #[rstest]
    #[case(json!({"conditions": [condition("Active", "False"), condition("Healthy", "False")]}), "Release payments-a was measured to be unhealthy")]
    #[case(json!({"conditions": [condition("Active", "False")]}), "the health of Release payments-a is unknown")]
    #[case(json!({"leftByRollback": "m2m4z"}), "Release payments-a was rolled back from by rollback/m2m4z")]
    #[case(json!({"signature": ""}), "Release payments-a has not been seen by the release controller yet")]
    fn warns_about_a_release_that_would_not_have_been_chosen(#[case] status: Value, #[case] warning: &str) {
        let odd = release("payments-a", &json!({"status": status}));
        let state = with(vec![odd, b()], state().pointer, &[]);
        let object = filled(&json!({"spec": {"toReleaseRef": {"name": "payments-a"}}}), &state);
        assert_eq!(warnings(&object, &state), [warning]);
    }

    #[rstest]
    #[case(json!({"annotations": {"argocd.argoproj.io/tracking-id": "payments:deploy.crd.gocardless.com/Rollback:shop/back"}}), true)]
    #[case(json!({"labels": {"app.kubernetes.io/instance": "payments"}}), true)]
    #[case(json!({"annotations": {"meta.helm.sh/release-name": "payments"}}), true)]
    #[case(json!({"labels": {"app.kubernetes.io/instance": "rollbacks"}}), false)]
    fn warns_when_the_app_holds_its_own_rollback(#[case] metadata: Value, #[case] warned: bool) {
        let object = filled(&json!({"metadata": metadata}), &state());
        assert_eq!(!warnings(&object, &state()).is_empty(), warned);
    }

    #[test]
    fn every_warning_is_one_line() {
        let odd = release(
            "payments-a",
            &json!({
                "metadata": {"annotations": {"theatre.gocardless.com/rollback-blocked": "bad"}},
                "status": {"leftByRollback": "r", "signature": "", "conditions": []},
            }),
        );
        let state = with(vec![odd, b()], state().pointer, &[]);
        let more = json!({
            "metadata": {"annotations": {"theatre.gocardless.com/force": "true"}, "labels": {"app.kubernetes.io/instance": "payments"}},
            "spec": {"toReleaseRef": {"name": "payments-a"}},
        });
        let all = warnings(&filled(&more, &state), &state);
        assert_eq!(all.len(), 5, "{all:?}");
        assert!(all.iter().all(|warning| !warning.contains('\n')), "{all:?}");
    }
}
