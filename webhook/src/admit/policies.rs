//! Policies.

use rollback_api::AutomatedRollbackPolicy;
use rollback_core::admission::{Denial, policy};
use rollback_core::signature;

use super::{Admission, Refusal, namespace, read};
use crate::reader::Reader;
use crate::review::{Answer, Operation, Request};

/// Checks a new policy; the schema checks changes.
pub(super) async fn validate<R: Reader>(
    admission: &Admission<R>,
    request: &Request,
) -> Result<Answer, Refusal> {
    if request.operation != Operation::Create {
        return Ok(Answer::unchanged());
    }
    let sent = read::<AutomatedRollbackPolicy>("AutomatedRollbackPolicy", &request.object)?;
    let target = &sent.spec.target_name;
    if !signature::is_target(target) {
        return Err(Refusal::Denied(Denial::invalid(format!(
            "spec.targetName {target:?} is not the name of a target: use lower-case letters, digits, '-' and '.', \
             beginning and ending with a letter or digit"
        ))));
    }
    let existing = admission.reader.policies(namespace(request), target).await;
    let existing = existing.map_err(|error| Refusal::Unknown(format!("this policy for {target}"), error))?;
    policy::validate_create(&sent, &existing)?;
    Ok(Answer::unchanged())
}
