//! The objects of a target as a whole, and the release config that they come to (rule 17).

use std::collections::BTreeMap;

use rollback_api::{Release, ReleaseConfig, Revision};

use super::object::{ObjectKey, WorkloadKind};
use super::plan::REVISION_TYPE;
use crate::signature::sha256_hex;

/// Most objects that a release names one by one; above, they are aggregated into [`WORKLOADS`] and [`CONFIG`].
pub const MAX_OBJECTS: usize = 10;
/// Revision that stands for all workloads of a big target.
pub const WORKLOADS: &str = "workloads";
/// Revision that stands for all ConfigMaps of a big target.
pub const CONFIG: &str = "config";

/// The objects of a target and the ids of their contents ([`super::content::id`]).
pub type Set = BTreeMap<ObjectKey, String>;

/// The revisions of a set in the order of their names, with the objects that each stands for: one an object, or two for
/// all of them when there are more than [`MAX_OBJECTS`].
pub fn revisions(set: &Set) -> Vec<(Revision, Vec<ObjectKey>)> {
    if set.len() <= MAX_OBJECTS {
        let single = set.iter().map(|(key, id)| (revision(key.to_string(), id.clone()), vec![key.clone()]));
        return single.collect();
    }
    let (config, workloads): (Set, Set) =
        set.clone().into_iter().partition(|(key, _)| key.kind == WorkloadKind::ConfigMap);
    let groups = [(CONFIG, config), (WORKLOADS, workloads)];
    let groups = groups.into_iter().filter(|(_, objects)| !objects.is_empty());
    groups
        .map(|(name, set)| (revision(name.to_owned(), aggregate(&set)), set.into_keys().collect()))
        .collect()
}

/// What a release of this set records.
pub fn config(target: &str, set: &Set) -> ReleaseConfig {
    let revisions = revisions(set).into_iter().map(|(revision, _)| revision).collect();
    ReleaseConfig { target_name: target.to_owned(), revisions }
}

/// The id of a revision that stands for several objects: which object has which content counts.
pub fn aggregate(set: &Set) -> String {
    let lines: Vec<String> = set.iter().map(|(key, id)| format!("{key} {id}\n")).collect();
    sha256_hex(lines.concat().as_bytes())
}

/// Whether the release was recorded from workloads.
pub fn is_recorded(release: &Release) -> bool {
    let revisions = &release.spec.config.revisions;
    !revisions.is_empty() && revisions.iter().all(|revision| revision.type_.as_deref() == Some(REVISION_TYPE))
}

/// The set that a release names one by one; `None` when it only names aggregates, or nothing that was recorded here.
pub fn named(release: &Release) -> Option<Set> {
    if !is_recorded(release) {
        return None;
    }
    let revisions = release.spec.config.revisions.iter();
    revisions.map(|revision| Some((revision.name.parse().ok()?, revision.id.clone()))).collect()
}

fn revision(name: String, id: String) -> Revision {
    Revision { name, id, source: Some(String::new()), type_: Some(REVISION_TYPE.to_owned()), metadata: None }
}

#[cfg(test)]
mod tests {
    use rollback_api::ReleaseFields;

    use super::*;

    fn set(names: &[String]) -> Set {
        names.iter().map(|name| (name.parse().unwrap(), format!("id of {name}"))).collect()
    }

    fn names(set: &Set) -> Vec<String> {
        revisions(set).into_iter().map(|(revision, _)| revision.name).collect()
    }

    #[test]
    fn up_to_ten_objects_are_named() {
        let mut all: Vec<String> = (0..9).map(|n| format!("deployment/web-{n}")).collect();
        all.push("configmap/c".to_owned());
        let ten = set(&all);
        assert_eq!(names(&ten).len(), 10);
        let release = Release::new("x", ReleaseFields { config: config("web", &ten) });
        assert_eq!(named(&release), Some(ten));
        all.push("statefulset/db".to_owned());
        let eleven = set(&all);
        let groups = revisions(&eleven);
        let sizes: Vec<_> =
            groups.iter().map(|(revision, keys)| (revision.name.as_str(), keys.len())).collect();
        assert_eq!(sizes, [(CONFIG, 1), (WORKLOADS, 10)]);
        let release = Release::new("x", ReleaseFields { config: config("web", &eleven) });
        assert!(is_recorded(&release));
        assert_eq!(named(&release), None);
    }

    #[test]
    fn big_targets_without_configmaps_have_one_revision() {
        let all: Vec<String> = (0..11).map(|n| format!("daemonset/agent-{n}")).collect();
        assert_eq!(names(&set(&all)), [WORKLOADS]);
    }

    #[test]
    fn an_aggregate_says_which_object_has_which_content() {
        let mut one = set(&["deployment/a".to_owned(), "deployment/b".to_owned()]);
        let before = aggregate(&one);
        let (a, b): (ObjectKey, ObjectKey) =
            ("deployment/a".parse().unwrap(), "deployment/b".parse().unwrap());
        let (id_a, id_b) = (one[&a].clone(), one[&b].clone());
        one.insert(a, id_b);
        one.insert(b, id_a);
        assert_ne!(aggregate(&one), before);
    }

    #[test]
    fn releases_of_other_tools_are_not_ours() {
        let mut release =
            Release::new("x", ReleaseFields { config: config("web", &set(&["deployment/a".to_owned()])) });
        assert!(is_recorded(&release));
        release.spec.config.revisions[0].type_ = Some("github".to_owned());
        assert!(!is_recorded(&release));
        assert_eq!(named(&release), None);
        release.spec.config.revisions.clear();
        assert!(!is_recorded(&release));
    }
}
