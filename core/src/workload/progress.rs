//! How far the writes of an attempt came, for people: after a partial failure each object's state is named (rule 18).

use std::fmt::Write as _;

use super::object::ObjectKey;

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It has the content of the release that comes back.
    Restored,
    /// It was gone and was created again.
    Created,
    /// It had that content before.
    Unchanged,
}

/// How far an attempt came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    done: Vec<(ObjectKey, Done)>,
    left: Vec<ObjectKey>,
}

impl Progress {
    /// Nothing is done yet about these objects, in the order in which they are written.
    pub fn new(objects: Vec<ObjectKey>) -> Self {
        Self { done: Vec::new(), left: objects }
    }

    /// That became of the object.
    pub fn done(&mut self, object: &ObjectKey, done: Done) {
        self.left.retain(|left| left != object);
        self.done.push((object.clone(), done));
    }

    /// Whether the content of any object was changed.
    pub fn touched(&self) -> bool {
        self.done.iter().any(|(_, done)| match done {
            Done::Restored | Done::Created => true,
            Done::Unchanged => false,
        })
    }

    /// Why `object` failed and where everything else stands.
    pub fn failure(&self, object: &ObjectKey, why: &str, from: &str, to: &str) -> String {
        let mut text = format!("{} {} was not restored: {why}", object.kind.as_str(), object.name);
        let written: Vec<&ObjectKey> = self
            .done
            .iter()
            .filter(|(_, done)| match done {
                Done::Restored | Done::Created => true,
                Done::Unchanged => false,
            })
            .map(|(object, _)| object)
            .collect();
        let left: Vec<&ObjectKey> = self.left.iter().filter(|left| *left != object).collect();
        if !written.is_empty() {
            let _ = write!(text, "; {} as in {to}", verb(&written, "is", "are"));
        }
        if !left.is_empty() {
            let _ = write!(text, "; {} left as in {from}", verb(&left, "was", "were"));
        }
        text
    }
}

fn verb(objects: &[&ObjectKey], one: &str, several: &str) -> String {
    let names: Vec<String> = objects.iter().map(ToString::to_string).collect();
    format!("{} {}", names.join(", "), if objects.len() == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_state_of_each_object() {
        let [config, web, worker]: [ObjectKey; 3] =
            ["configmap/c", "deployment/web", "deployment/worker"].map(|text| text.parse().unwrap());
        let mut progress = Progress::new(vec![config.clone(), web.clone(), worker.clone()]);
        assert!(!progress.touched());
        progress.done(&config, Done::Unchanged);
        assert!(!progress.touched());
        assert_eq!(
            progress.failure(&web, "no", "b", "a"),
            "Deployment web was not restored: no; deployment/worker was left as in b"
        );
        progress.done(&web, Done::Restored);
        assert!(progress.touched());
        assert_eq!(
            progress.failure(&worker, "no", "b", "a"),
            "Deployment worker was not restored: no; deployment/web is as in a"
        );
        let mut progress = Progress::new(vec![config.clone(), web.clone(), worker.clone()]);
        progress.done(&config, Done::Created);
        assert_eq!(
            progress.failure(&web, "no", "b", "a"),
            "Deployment web was not restored: no; configmap/c is as in a; deployment/worker was left as in b"
        );
    }
}
