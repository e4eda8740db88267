//! Labels by which deployment tools recognise what they manage (rule 13).
//!
//! A Rollback that carried one of them would be pruned, adopted or reported as drift by that tool.

/// Exact keys.
const KEYS: &[&str] = &[
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
    "kapp.k14s.io/app",
    "kapp.k14s.io/association",
    "objectset.rio.cattle.io/hash",
];

/// Every key below these prefixes; ours too, since they give a workload or a bookkeeping object its meaning.
const PREFIXES: &[&str] = &[
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "theatre.gocardless.com/",
];

/// Whether a label with this key must not be copied from a Release to a Rollback.
pub fn is_tracking_label(key: &str) -> bool {
    KEYS.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_tools_labels_from_the_users() {
        for key in [
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "helm.sh/chart",
            "argocd.argoproj.io/instance",
            "kustomize.toolkit.fluxcd.io/name",
            "helm.toolkit.fluxcd.io/namespace",
            "meta.helm.sh/release-name",
            "theatre.gocardless.com/target",
        ] {
            assert!(is_tracking_label(key), "{key}");
        }
        for key in ["app.kubernetes.io/name", "team", "severity", "release", "example.com/instance"] {
            assert!(!is_tracking_label(key), "{key}");
        }
    }
}
