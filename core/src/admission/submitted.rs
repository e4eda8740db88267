//! A manifest as it was submitted, before admission filled anything in (rule 6).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rollback_api::{FromReleaseRef, InitiatedBy, ReleaseRef, RollbackSpec};

use super::canonical::{by_text, fields, from_text, to_text};
use crate::signature::sha256_hex;

/// Longest text of the fields that admission fills, in bytes, for which their submitted form is searched.
/// Real ones stay far below; the schema, which is checked later, allows about 2 KiB.
const MAX_FILLED: usize = 8 * 1024;

/// SHA-256 (hex) of a spec in canonical form.
pub fn submitted_hash(spec: &RollbackSpec) -> String {
    Hasher::of(spec).hash(&Fillable::of(spec))
}

/// The spec as it was submitted, before admission filled anything in: the spec without those of the
/// fillable fields whose absence gives `hash`. `None` if there is no such form.
///
/// So the annotation of a manifest that went through admission before (a second call for the same request, a
/// restored backup, `kubectl get | kubectl apply`) is recognised, and none can be made up.
pub(super) fn submitted(spec: &RollbackSpec, hash: &str) -> Option<RollbackSpec> {
    let given = Fillable::of(spec);
    if hash.len() != 64 || given.size() > MAX_FILLED {
        return None;
    }
    let hasher = Hasher::of(spec);
    let Fillable { from, to, by } = given.forms().into_iter().find(|form| hasher.hash(form) == hash)?;
    Some(RollbackSpec { from_release_ref: from, to_release_ref: to, initiated_by: by, ..spec.clone() })
}

/// The hash that belongs to the same manifest once its `dryRun` was unset.
pub(super) fn hash_without_dry_run(spec: &RollbackSpec, hash: &str) -> Option<String> {
    submitted(spec, hash).map(|submitted| submitted_hash(&RollbackSpec { dry_run: None, ..submitted }))
}

/// The fields that admission fills in when they are absent.
struct Fillable {
    from: Option<FromReleaseRef>,
    to: ReleaseRef,
    by: Option<InitiatedBy>,
}

impl Fillable {
    fn of(spec: &RollbackSpec) -> Self {
        Self {
            from: spec.from_release_ref.clone(),
            to: spec.to_release_ref.clone(),
            by: spec.initiated_by.clone(),
        }
    }

    fn texts(&self) -> [(&'static str, String); 3] {
        [
            ("fromReleaseRef", self.from.as_ref().map(from_text).unwrap_or_default()),
            ("toReleaseRef", to_text(&self.to)),
            ("initiatedBy", self.by.as_ref().map(by_text).unwrap_or_default()),
        ]
    }

    fn size(&self) -> usize {
        self.texts().iter().map(|(_, text)| text.len()).sum()
    }

    /// Every form that admission may have turned into this one: at most 9 × 4 × 4.
    fn forms(&self) -> Vec<Self> {
        let mut forms = Vec::new();
        for from in from_forms(self.from.as_ref()) {
            for to in to_forms(&self.to) {
                for by in by_forms(self.by.as_ref()) {
                    forms.push(Self { from: from.clone(), to: to.clone(), by });
                }
            }
        }
        forms
    }
}

/// Hashes forms of one spec; what may be long and never differs between them goes in as a digest.
struct Hasher(BTreeMap<&'static str, String>);

impl Hasher {
    fn of(spec: &RollbackSpec) -> Self {
        let mut all = fields(spec);
        for name in ["reason", "deploymentOptions"] {
            if let Some(text) = all.get_mut(name).filter(|text| !text.is_empty()) {
                *text = sha256_hex(text.as_bytes());
            }
        }
        Self(all)
    }

    /// Empty fields leave no trace, so a field that is added to the API later changes no hash.
    fn hash(&self, form: &Fillable) -> String {
        let filled = form.texts();
        let text = self.0.iter().fold(String::new(), |mut text, (name, value)| {
            let own = filled.iter().find(|(filled, _)| filled == name).map(|(_, text)| text);
            let value = own.unwrap_or(value);
            if !value.is_empty() {
                let _ = writeln!(text, "{name}:{value}");
            }
            text
        });
        sha256_hex(text.as_bytes())
    }
}

/// Both: with and without.
fn either(value: Option<&String>) -> impl Iterator<Item = Option<String>> {
    std::iter::once(value.cloned()).chain(value.is_some().then_some(None))
}

fn from_forms(from: Option<&FromReleaseRef>) -> Vec<Option<FromReleaseRef>> {
    let Some(from) = from else { return vec![None] };
    let mut forms = vec![None];
    for name in either(from.name.as_ref()) {
        for signature in either(from.signature.as_ref()) {
            for activation in either(from.activation.as_ref()) {
                let target = from.target.clone();
                let (name, signature) = (name.clone(), signature.clone());
                forms.push(Some(FromReleaseRef { target, name, signature, activation }));
            }
        }
    }
    forms
}

fn to_forms(to: &ReleaseRef) -> Vec<ReleaseRef> {
    let mut forms = Vec::new();
    for name in either(to.name.as_ref()) {
        for signature in either(to.signature.as_ref()) {
            forms.push(ReleaseRef { target: to.target.clone(), name: name.clone(), signature });
        }
    }
    forms
}

fn by_forms(by: Option<&InitiatedBy>) -> Vec<Option<InitiatedBy>> {
    let Some(by) = by else { return vec![None] };
    let mut forms = Vec::new();
    for principal in either(by.principal.as_ref()) {
        for type_ in either(by.type_.as_ref()) {
            forms.push(Some(InitiatedBy { principal: principal.clone(), type_ }));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::admission::canonical::changed_fields;

    fn bare() -> RollbackSpec {
        serde_json::from_value(json!({"toReleaseRef": {"target": "payments"}, "reason": "r"})).unwrap()
    }

    #[test]
    fn the_hash_stays_what_is_in_the_ledgers() {
        assert_eq!(
            submitted_hash(&bare()),
            "11c4374263243d8562c7b392e9c46f3285cc8ec84c2a15c080f8eff9dbfb6093"
        );
    }

    #[test]
    fn a_hash_that_is_not_of_the_spec_is_not_recognised() {
        assert_eq!(submitted(&bare(), ""), None);
        assert_eq!(submitted(&bare(), &"0".repeat(64)), None);
        let other = RollbackSpec { reason: "other".into(), ..bare() };
        assert_eq!(submitted(&bare(), &submitted_hash(&other)), None);
    }

    #[test]
    fn unsetting_dry_run_keeps_the_manifest() {
        let dormant = RollbackSpec { dry_run: Some(true), ..bare() };
        let filled = RollbackSpec {
            from_release_ref: Some(FromReleaseRef {
                target: "payments".into(),
                name: Some("payments-b".into()),
                ..FromReleaseRef::default()
            }),
            ..dormant.clone()
        };
        assert_eq!(hash_without_dry_run(&filled, &submitted_hash(&dormant)), Some(submitted_hash(&bare())));
    }

    proptest! {
        #[test]
        fn finds_the_submitted_form_whatever_was_filled(given in proptest::array::uniform7(any::<bool>()), from in any::<bool>()) {
            let [from_name, from_signature, from_activation, to_name, to_signature, principal, type_] = given;
            let full = RollbackSpec {
                from_release_ref: Some(FromReleaseRef {
                    target: "payments".into(), name: Some("b".to_owned()), signature: Some("sb".to_owned()), activation: Some("act".to_owned()),
                }),
                to_release_ref: ReleaseRef { target: "payments".into(), name: Some("a".to_owned()), signature: Some("sa".to_owned()) },
                initiated_by: Some(InitiatedBy { principal: Some("alice".to_owned()), type_: Some("user".to_owned()) }),
                ..bare()
            };
            let keep = |given: bool, value: Option<String>| value.filter(|_| given);
            let sent = RollbackSpec {
                from_release_ref: full.from_release_ref.clone().filter(|_| from).map(|all| FromReleaseRef {
                    name: keep(from_name, all.name),
                    signature: keep(from_signature, all.signature),
                    activation: keep(from_activation, all.activation),
                    ..all
                }),
                to_release_ref: ReleaseRef {
                    target: "payments".into(),
                    name: keep(to_name, Some("a".to_owned())),
                    signature: keep(to_signature, Some("sa".to_owned())),
                },
                initiated_by: full.initiated_by.clone().map(|all| InitiatedBy {
                    principal: keep(principal, all.principal),
                    type_: keep(type_, all.type_),
                }),
                ..bare()
            };
            let found = submitted(&full, &submitted_hash(&sent)).unwrap();
            prop_assert_eq!(changed_fields(&found, &sent), Vec::<String>::new());
        }
    }
}
