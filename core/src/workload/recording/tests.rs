use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use proptest::prelude::*;
use rollback_api::{Backend, ReleaseFields};
use rstest::rstest;

use super::*;
use crate::pointer::Abandoned;

const TARGET: &str = "web";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn set(objects: &str) -> Set {
    let pairs = objects.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(key, id)| (format!("deployment/{key}").parse().unwrap(), id.to_owned())).collect()
}

/// A release of these objects; `start` in seconds, 0 for none.
fn release(name: &str, objects: &str, start: i64) -> Release {
    let mut release = Release::new(name, ReleaseFields { config: set::config(TARGET, &set(objects)) });
    release.metadata.uid = Some(format!("uid-{name}"));
    if start != 0 {
        let annotation = (annotations::DEPLOYMENT_START_TIME.to_owned(), format!("{:.6}", at(start)));
        release.metadata.annotations = Some([annotation].into());
    }
    release
}

fn active(name: &str, since: i64, rollback: bool, left: Option<&str>) -> ActiveRelease {
    ActiveRelease {
        release: name.into(),
        uid: format!("uid-{name}"),
        activation: Activation {
            id: "1".into(),
            time: MicroTime(at(since)),
            rollback_ref: rollback.then(|| "rb".into()),
            rollback_uid: rollback.then(|| "uid-rb".into()),
        },
        replaced: None,
        left: left.map(str::to_owned),
    }
}

fn lock(from: &str, to: &str) -> Lock {
    Lock { rollback: "rb".into(), uid: "uid-rb".into(), to: to.into(), from: from.into(), abandoned: None }
}

struct World {
    releases: Vec<Release>,
    pointer: Pointer,
}

impl World {
    fn standing(&self, objects: &str) -> Standing {
        let (set, releases) = (set(objects), self.releases.iter().collect::<Vec<_>>());
        let observed = Observed { target: TARGET, set: &set, releases: &releases, pointer: &self.pointer };
        let named = |name: &str| {
            let release = self.releases.iter().find(|release| release.metadata.name.as_deref() == Some(name));
            release.and_then(set::named)
        };
        let compared = observed.compared();
        let to = compared.as_ref().and_then(|compared| named(compared.to));
        let from = compared.as_ref().and_then(|compared| named(compared.from));
        standing(&observed, to.as_ref(), from.as_ref())
    }
}

fn is_current(name: &str) -> Standing {
    Standing::Current(name.to_owned())
}

/// a is active, b was recorded and is being deployed.
fn deploying() -> World {
    World {
        releases: vec![release("a", "web=1 db=1", 10), release("b", "web=2 db=1", 30)],
        pointer: Pointer { active: Some(active("a", 20, false, None)), ..Pointer::default() },
    }
}

#[test]
fn the_release_that_was_deployed_last_is_current() {
    let mut world = World { releases: Vec::new(), pointer: Pointer::default() };
    assert_eq!(world.standing("web=1"), Standing::Changed, "nothing is recorded");
    world.releases.push(release("a", "web=1", 0));
    assert_eq!(world.standing("web=1"), Standing::Changed, "half recorded: its deployment was never marked");
    world = deploying();
    assert_eq!(world.standing("web=2 db=1"), is_current("b"));
    assert_eq!(
        world.standing("web=1 db=1"),
        Standing::Changed,
        "b was taken back by hand: a is deployed again"
    );
    assert_eq!(world.standing("web=2 db=2"), Standing::Changed);
    assert_eq!(world.standing("web=2"), Standing::Changed);
    world.releases[0] = release("a", "web=1 db=1", 40);
    assert_eq!(world.standing("web=1 db=1"), is_current("a"));
    world.pointer.active = Some(active("a", 41, false, None));
    assert_eq!(world.standing("web=1 db=1"), is_current("a"));
    assert_eq!(world.standing("web=2 db=1"), Standing::Changed, "back to b: it is deployed again");
}

#[test]
fn a_release_that_is_being_deleted_or_was_made_again_is_not_current() {
    let mut world = deploying();
    world.releases[1].metadata.deletion_timestamp = Some(Time(at(35)));
    assert_eq!(world.standing("web=2 db=1"), Standing::Changed);
    let mut world = deploying();
    world.releases = vec![release("a", "web=1 db=1", 0)];
    assert_eq!(world.standing("web=1 db=1"), is_current("a"));
    world.releases[0].metadata.uid = Some("another".into());
    assert_eq!(world.standing("web=1 db=1"), Standing::Changed);
}

/// While a Rollback is under way, each object may be as in either release; anything else is somebody's change.
#[rstest]
#[case("web=2 db=1", true)]
#[case("web=1 db=1", true)]
#[case("web=1", false)]
#[case("web=3 db=1", false)]
#[case("web=1 db=1 new=1", false)]
fn a_rollbacks_own_writes_are_no_change(#[case] objects: &str, #[case] ours: bool) {
    let mut world = deploying();
    world.pointer.lock = Some(lock("b", "a"));
    let expected = if ours { Standing::Ours } else { Standing::Changed };
    assert_eq!(world.standing(objects), expected);
    // It can also make mixtures of releases with other objects.
    world.releases[1] = release("b", "web=2 new=1", 30);
    for mixture in ["web=1 new=1", "web=2 db=1 new=1", "web=2", "web=1 db=1"] {
        assert_eq!(world.standing(mixture), Standing::Ours, "{mixture}");
    }
    // Somebody else's change is recorded like any other.
    world.releases.push(release("c", "web=3 db=1", 40));
    assert_eq!(world.standing("web=3 db=1"), is_current("c"));
    world.releases.pop();
    // What the releases held cannot be known: wait for the Rollback's end.
    world.releases.remove(1);
    assert_eq!(world.standing("web=9"), Standing::Ours);
    // An abandoned deployment ends like anybody's.
    let mut world = deploying();
    let abandoned =
        Abandoned { key: "k".into(), backend: Backend::Workload, deployment_id: None, since: Time(at(50)) };
    world.pointer.lock = Some(Lock { abandoned: Some(abandoned), ..lock("b", "a") });
    assert_eq!(world.standing("web=1 db=1"), Standing::Changed);
    assert_eq!(world.standing("web=2 db=1"), is_current("b"));
}

/// Objects that the bad release added are left by the rollback; that makes no new release.
#[test]
fn what_a_rollback_leaves_is_no_change() {
    let mut world = World {
        releases: vec![release("a", "web=1 db=1", 10), release("b", "web=2 new=1", 30)],
        pointer: Pointer { active: Some(active("a", 50, true, Some("b"))), ..Pointer::default() },
    };
    assert_eq!(world.standing("web=1 db=1"), is_current("a"));
    assert_eq!(world.standing("web=1 db=1 new=1"), is_current("a"));
    for changed in ["web=1 db=1 new=2", "web=2 db=1 new=1", "web=1 new=1", "web=1 db=1 other=1"] {
        assert_eq!(world.standing(changed), Standing::Changed, "{changed}");
    }
    world.pointer.active = Some(active("a", 50, false, None));
    assert_eq!(world.standing("web=1 db=1 new=1"), Standing::Changed, "nobody rolled back");
}

#[test]
fn a_deployment_begins_after_all_that_is_recorded() {
    let world = deploying();
    let (set, releases) = (set("web=1"), world.releases.iter().collect::<Vec<_>>());
    let observed = Observed { target: TARGET, set: &set, releases: &releases, pointer: &world.pointer };
    assert_eq!(start_of(at(100), &observed), at(100));
    assert_eq!(start_of(at(30), &observed), Timestamp::from_microsecond(30_000_001).unwrap());
    let nothing = Observed { releases: &[], pointer: &Pointer::default(), ..observed };
    assert_eq!(start_of(at(30), &nothing), at(30));
}

#[test]
fn one_deployment_is_one_activation() {
    let (one, again) = (release("a", "web=1", 10), release("a", "web=1", 11));
    let id = |release: &Release, now| activation(release, at(now)).map(|activation| activation.id).unwrap();
    assert_eq!(id(&one, 20), id(&one, 30));
    assert_ne!(id(&one, 20), id(&again, 20));
    assert_eq!(activation(&one, at(20)).unwrap().time.0, at(20));
    assert_eq!(activation(&one, at(5)).unwrap().time.0, at(10), "not before its start");
    assert_eq!(activation(&release("a", "web=1", 0), at(5)), None);
}

#[test]
fn active_from_its_own_deployment_on() {
    let world = deploying();
    let (a, b) = (&world.releases[0], &world.releases[1]);
    assert_eq!(active_since(a, &world.pointer), Some(at(20)));
    assert_eq!(active_since(b, &world.pointer), None);
    assert_eq!(active_since(&release("a", "web=1", 25), &world.pointer), None, "deployed again since");
    assert_eq!(measured_since(a, &world.pointer), Some(at(10)));
    let by_rollback = Pointer { active: Some(active("a", 20, true, None)), ..Pointer::default() };
    assert_eq!(measured_since(a, &by_rollback), Some(at(20)));
    assert_eq!(measured_since(&release("a", "web=1", 25), &by_rollback), Some(at(25)));
}

proptest! {
    /// Whatever a Rollback from one set to another can write object by object is its own, and nothing else is.
    #[test]
    fn between_means_between(
        to in proptest::collection::btree_map("[a-d]", "[12]", 0..4),
        from in proptest::collection::btree_map("[a-d]", "[12]", 0..4),
        live in proptest::collection::btree_map("[a-d]", "[123]", 0..4),
    ) {
        let set = |pairs: &std::collections::BTreeMap<String, String>| -> Set {
            pairs.iter().map(|(key, id)| (format!("deployment/{key}").parse().unwrap(), id.clone())).collect()
        };
        let expected = ["a", "b", "c", "d"].iter().all(|&key| {
            live.get(key) == to.get(key) || live.get(key) == from.get(key)
        });
        prop_assert_eq!(is_between(&set(&live), &set(&to), &set(&from)), expected);
        prop_assert!(is_between(&set(&to), &set(&to), &set(&from)));
        prop_assert!(is_left_over(&set(&to), &set(&to), &set(&from)));
    }
}
