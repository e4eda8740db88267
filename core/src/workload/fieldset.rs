//! Sets of fields as `metadata.managedFields` writes them (FieldsV1), and what can be done with them.
//!
//! In JSON a field is a key (`f:image`, `k:{"name":"web"}`, `v:"x"`, `.` for the object itself); `{}` ends a path.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of fields: a tree whose nodes may belong to it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Reads FieldsV1. Anything that is no object reads as empty: the server writes none such.
    pub fn parse(fields: &Value) -> Self {
        let mut set = Self::default();
        for (key, below) in fields.as_object().into_iter().flatten() {
            if key == "." {
                set.member = true;
                continue;
            }
            let mut child = Self::parse(below);
            child.member |= child.children.is_empty();
            set.children.insert(key.clone(), child);
        }
        set
    }

    /// Writes FieldsV1.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (key, child) in &self.children {
            fields.insert(key.clone(), child.to_json());
        }
        Value::Object(fields)
    }

    /// Whether it holds no field.
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// The field at `path` and all below it, still under that path.
    #[must_use]
    pub fn only(&self, path: &[&str]) -> Self {
        let Some((first, rest)) = path.split_first() else { return self.clone() };
        let below = self.children.get(*first).map(|child| child.only(rest)).unwrap_or_default();
        let mut set = Self::default();
        if !below.is_empty() {
            set.children.insert((*first).to_owned(), below);
        }
        set
    }

    /// Takes away the field at `path` and all below it.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else {
            *self = Self::default();
            return;
        };
        if let Some(child) = self.children.get_mut(*first) {
            child.remove(rest);
            if child.is_empty() {
                self.children.remove(*first);
            }
        }
    }

    /// Adds all fields of the other set.
    pub fn add(&mut self, other: &Self) {
        self.member |= other.member;
        for (key, below) in &other.children {
            self.children.entry(key.clone()).or_default().add(below);
        }
    }

    /// The fields that both sets hold.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = self.children.iter().filter_map(|(key, child)| {
            let below = child.and(other.children.get(key)?);
            (!below.is_empty()).then(|| (key.clone(), below))
        });
        Self { children: both.collect(), member: self.member && other.member }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Any set of fields below the given first keys, as the server would write it.
    pub(crate) fn any_set() -> impl Strategy<Value = FieldSet> {
        let key = prop::sample::select(vec![
            "f:spec",
            "f:template",
            "f:replicas",
            "f:metadata",
            "f:annotations",
            "f:data",
            "k:{\"name\":\"web\"}",
        ]);
        let leaf = Just(FieldSet { member: true, children: BTreeMap::new() });
        let tree = leaf.prop_recursive(4, 24, 4, move |inner| {
            (any::<bool>(), prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 1..4))
                .prop_map(|(member, children)| FieldSet { member, children })
        });
        tree.prop_map(|mut set| {
            set.member = false;
            set
        })
    }

    #[test]
    fn reads_and_writes_what_the_server_writes() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}}},
        });
        assert_eq!(FieldSet::parse(&fields).to_json(), fields);
        assert!(FieldSet::parse(&json!({})).is_empty());
        assert!(FieldSet::parse(&json!(null)).is_empty());
    }

    #[test]
    fn takes_parts_out_and_drops_what_becomes_empty() {
        let mut set = FieldSet::parse(
            &json!({"f:spec": {"f:template": {"f:spec": {"f:volumes": {}}}}, "f:data": {".": {}, "f:a": {}}}),
        );
        assert_eq!(
            set.only(&["f:spec", "f:template"]).to_json(),
            json!({"f:spec": {"f:template": {"f:spec": {"f:volumes": {}}}}})
        );
        assert!(set.only(&["f:spec", "f:replicas"]).is_empty());
        set.remove(&["f:spec", "f:template"]);
        assert_eq!(set.to_json(), json!({"f:data": {".": {}, "f:a": {}}}));
        set.remove(&["f:data", "f:a"]);
        assert_eq!(set.to_json(), json!({"f:data": {}}));
        set.remove(&["f:data"]);
        assert!(set.is_empty());
    }

    #[test]
    fn an_object_that_ends_a_path_keeps_itself_when_fields_below_join_it() {
        let mut set = FieldSet::parse(&json!({"f:data": {}}));
        set.add(&FieldSet::parse(&json!({"f:data": {"f:a": {}}})));
        assert_eq!(set.to_json(), json!({"f:data": {".": {}, "f:a": {}}}));
    }

    proptest! {
        #[test]
        fn writing_and_reading_is_the_identity(set in any_set()) {
            prop_assert_eq!(FieldSet::parse(&set.to_json()), set);
        }

        #[test]
        fn a_set_is_its_part_and_the_rest(set in any_set()) {
            let path = ["f:spec", "f:template"];
            let mut rest = set.clone();
            rest.remove(&path);
            prop_assert!(rest.only(&path).is_empty());
            let mut whole = rest;
            whole.add(&set.only(&path));
            prop_assert_eq!(whole, set);
        }

        #[test]
        fn union_and_intersection_are_what_they_are_called(a in any_set(), b in any_set()) {
            let mut union = a.clone();
            union.add(&b);
            prop_assert_eq!(&a.and(&union), &a);
            prop_assert_eq!(&b.and(&union), &b);
            let both = a.and(&b);
            prop_assert_eq!(&both, &b.and(&a));
            prop_assert_eq!(&both.and(&a), &both);
            let mut again = a.clone();
            again.add(&both);
            prop_assert_eq!(again, a);
        }
    }
}
