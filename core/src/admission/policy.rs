//! Policies: one a target.

use rollback_api::AutomatedRollbackPolicy;

use super::verdict::{Allowed, Denial, Verdict};

/// Admits a new policy unless its target has one. `existing` are the policies of the target in the namespace.
pub fn validate_create(
    policy: &AutomatedRollbackPolicy,
    existing: &[AutomatedRollbackPolicy],
) -> Verdict<()> {
    let own = policy.metadata.name.as_deref();
    let named = |other: &AutomatedRollbackPolicy| other.metadata.name.clone();
    // A policy of the same name is for the API server to refuse: the name is taken.
    let other = existing.iter().filter_map(named).find(|name| Some(name.as_str()) != own);
    match other {
        None => Ok(Allowed::silently(())),
        Some(other) => {
            let target = &policy.spec.target_name;
            Err(Denial::forbidden(format!(
                "{target} has a policy already: automatedrollbackpolicy/{other}. A target has one. Change it: kubectl edit \
                 automatedrollbackpolicy {other}    Or delete it first: kubectl delete automatedrollbackpolicy {other}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(name: &str) -> AutomatedRollbackPolicy {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"targetName": "payments"}}))
            .unwrap()
    }

    #[test]
    fn a_target_has_one() {
        validate_create(&policy("a"), &[]).unwrap();
        validate_create(&policy("a"), &[policy("a")]).unwrap();
        let denial = validate_create(&policy("b"), &[policy("a")]).unwrap_err();
        assert_eq!(denial.code.status(), 403);
        assert!(
            denial.message.starts_with("payments has a policy already: automatedrollbackpolicy/a."),
            "{denial}"
        );
        let unnamed = AutomatedRollbackPolicy { metadata: kube::core::ObjectMeta::default(), ..policy("b") };
        validate_create(&unnamed, &[policy("a")]).unwrap_err();
    }
}
