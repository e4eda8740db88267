//! Random interleavings: edits of annotations, activations in and out of order, Rollbacks, deletions, crashes between any
//! two writes, stale caches, duplicate passes, steps of the clock.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rollback_api::annotations as keys;
use rollback_api::conditions::Status;
use rollback_core::release::ReleaseView;

use crate::world::{Fate, START, World, event, event_of, report, rfc3339};

const CASES: u32 = 1500;

/// Something that happens. Releases are named by number.
#[derive(Clone, Debug)]
enum Op {
    Create(u8),
    SetActive(u8),
    TakeActive(u8),
    Start(u8, i64),
    End(u8, i64),
    Garbage(u8, u8),
    Health(u8, u8),
    /// Release, seconds from now.
    Ask(u8, i64),
    /// From what is live to the release; the activation's seconds from now.
    Rollback(u8, i64),
    Unlock,
    InUse(u8),
    Delete(u8),
    LosePointer,
    Clock(i64),
    Limit(u8),
    /// Decided on what the cache held before this many events; dies after this many writes.
    Pass(u8, Option<u8>),
}

fn op() -> impl Strategy<Value = Op> {
    let name = 0u8..6;
    let offset = prop_oneof![Just(0i64), -100i64..100, Just(1_000_000)];
    prop_oneof![
        3 => name.clone().prop_map(Op::Create),
        3 => name.clone().prop_map(Op::SetActive),
        1 => name.clone().prop_map(Op::TakeActive),
        2 => (name.clone(), offset.clone()).prop_map(|(name, offset)| Op::Start(name, offset)),
        1 => (name.clone(), offset.clone()).prop_map(|(name, offset)| Op::End(name, offset)),
        1 => (name.clone(), 0u8..5).prop_map(|(name, key)| Op::Garbage(name, key)),
        2 => (name.clone(), 0u8..3).prop_map(|(name, status)| Op::Health(name, status)),
        3 => (name.clone(), offset.clone()).prop_map(|(name, offset)| Op::Ask(name, offset)),
        2 => (name.clone(), offset).prop_map(|(name, offset)| Op::Rollback(name, offset)),
        1 => Just(Op::Unlock),
        1 => name.clone().prop_map(Op::InUse),
        1 => name.prop_map(Op::Delete),
        1 => Just(Op::LosePointer),
        2 => prop_oneof![1i64..60, -60i64..0, Just(0)].prop_map(Op::Clock),
        1 => (1u8..8).prop_map(Op::Limit),
        8 => (prop_oneof![3 => Just(0u8), 1 => 1u8..4], proptest::option::of(0u8..12))
            .prop_map(|(age, crash)| Op::Pass(age, crash)),
    ]
}

fn name(number: u8) -> String {
    format!("r{number}")
}

struct Run {
    world: World,
    /// Earlier states that a cache may still show, newest last.
    caches: Vec<World>,
    events: u32,
}

impl Run {
    fn happen(&mut self, op: &Op) {
        let world = &mut self.world;
        self.events += 1;
        let id = format!("e{}", self.events);
        let second = world.now.as_second() - START;
        match op {
            Op::Create(number) if !world.releases.contains_key(&name(*number)) => {
                world.create(&name(*number));
            }
            Op::Create(_) => {}
            Op::SetActive(number) => world.set_active(&name(*number)),
            Op::TakeActive(number) => world.annotate(&name(*number), keys::ACTIVE, None),
            Op::Start(number, offset) => {
                world.annotate(&name(*number), keys::DEPLOYMENT_START_TIME, Some(&rfc3339(second + offset)));
            }
            Op::End(number, offset) => {
                world.annotate(&name(*number), keys::DEPLOYMENT_END_TIME, Some(&rfc3339(second + offset)));
            }
            Op::Garbage(number, key) => {
                let key = [
                    keys::DEPLOYMENT_START_TIME,
                    keys::DEPLOYMENT_END_TIME,
                    keys::ACTIVATION,
                    keys::HEALTH,
                    keys::ACTIVE,
                ][usize::from(*key)];
                world.annotate(&name(*number), key, Some("{\"id\":1}"));
            }
            Op::Health(number, status) => {
                let status = [Status::True, Status::False, Status::Unknown][usize::from(*status)];
                world.annotate(&name(*number), keys::HEALTH, Some(&report(status, second)));
            }
            Op::Ask(number, offset) => world.ask(&name(*number), &event(&id, second + offset)),
            Op::Rollback(number, offset) => {
                let from = world.pointer().live().map(str::to_owned).unwrap_or_default();
                world.lock(&id, &from, &name(*number));
                world.ask(&name(*number), &event_of(&id, second + offset, &id));
            }
            Op::Unlock => world.unlock(),
            Op::InUse(number) => {
                world.in_use = BTreeSet::from([name(*number)]);
            }
            Op::Delete(number) => drop(world.releases.remove(&name(*number))),
            Op::LosePointer => world.pointer = None,
            Op::Clock(seconds) => world.later(*seconds),
            Op::Limit(limit) => world.limit = usize::from(*limit),
            Op::Pass(age, crash) => self.pass(*age, *crash),
        }
        self.caches.push(self.world.clone());
    }

    fn pass(&mut self, age: u8, crash: Option<u8>) {
        let now = &self.world;
        let cache = self.caches.iter().rev().nth(usize::from(age)).unwrap_or(now).clone();
        let decision = self.world.decide_on(&cache);
        let fate = crash.map_or(Fate::Fine, |writes| Fate::CrashAfter(usize::from(writes)));
        // The driver reads the pointer live before it acts on anything.
        let same =
            |world: &World| world.pointer.as_ref().map(|object| object.metadata.resource_version.clone());
        if decision.is_idle() || same(&cache) == same(&self.world) {
            self.world.apply(&cache, &decision, fate);
        }
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 2000, ..ProptestConfig::default() }
}

#[test]
fn releases_and_pointer_agree_in_the_end_whatever_happens() {
    let (mut runs, mut active, mut culled, mut left) = (0u32, 0u32, 0usize, 0u32);
    let mut runner = proptest::test_runner::TestRunner::new(config(CASES));
    let totals = std::cell::RefCell::new((&mut runs, &mut active, &mut culled, &mut left));
    runner
        .run(&proptest::collection::vec(op(), 1..60), |ops| {
            let mut run = Run { world: World::new(), caches: Vec::new(), events: 0 };
            for op in &ops {
                run.happen(op);
            }
            run.world.settle();
            run.world.check_settled();
            let mut totals = totals.borrow_mut();
            *totals.0 += 1;
            *totals.1 += u32::from(run.world.active().is_some());
            *totals.2 += run.world.deleted.len();
            *totals.3 += u32::from(run.world.views().iter().any(|view| view.left_by_rollback.is_some()));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    println!(
        "{runs} cases: {active} ended with an active release, {culled} culled, {left} left by a Rollback"
    );
    // A model in which nothing happens proves nothing.
    assert!(active > CASES / 4 && culled > 50 && left > CASES / 50);
}

/// Events of distinct releases at distinct times, in the order in which they are reported, with what the
/// process does in between.
fn reports() -> impl Strategy<Value = Vec<(u8, i64, Option<u8>)>> {
    let times = Just((0i64..12).map(|number| number * 10).collect::<Vec<_>>()).prop_shuffle();
    (times, proptest::collection::vec(proptest::option::of(0u8..8), 12), 2usize..12).prop_map(
        |(times, crashes, count)| {
            let numbered = times.into_iter().zip(crashes).take(count).enumerate();
            numbered.map(|(number, (second, crash))| (u8::try_from(number).unwrap(), second, crash)).collect()
        },
    )
}

#[test]
fn the_last_activation_by_time_wins_in_any_order_of_reports_and_crashes() {
    let mut runner = proptest::test_runner::TestRunner::new(config(CASES));
    runner
        .run(&reports(), |reports| {
            let mut world = World::new();
            world.later(1000);
            for (number, second, crash) in &reports {
                world.create(&name(*number));
                world.ask(&name(*number), &event(&format!("e{number}"), *second));
                // Some are seen one by one, some several at once, some by a process that dies half-way.
                let fate = crash.map(|writes| Fate::CrashAfter(usize::from(writes)));
                if let Some(fate) = fate {
                    let (cache, decision) = (world.clone(), world.decide());
                    world.apply(&cache, &decision, fate);
                }
            }
            world.settle();
            world.check_settled();
            let times: BTreeMap<i64, u8> =
                reports.iter().map(|(number, second, _)| (*second, *number)).collect();
            let (_, last) = times.last_key_value().unwrap();
            prop_assert_eq!(world.active(), Some(name(*last)));
            for (second, number) in &times {
                let view = ReleaseView::of(&world.releases[&name(*number)]);
                // Everyone that was deployed is history, with its own event.
                prop_assert_eq!(view.active, if number == last { Status::True } else { Status::False });
                let activation = view.activation.unwrap();
                prop_assert_eq!(
                    (activation.id, activation.time.0.as_second() - START),
                    (format!("e{number}"), *second)
                );
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{CASES} cases");
}

#[test]
fn a_rollbacks_mark_survives_every_crash() {
    // Every prefix of the writes of the pass, then a newer release, then recovery: c is never chosen again.
    for writes in 0..12 {
        let mut world = World::new();
        for name in ["a", "b", "c", "d"] {
            world.create(name);
        }
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            world.later(10);
            world.ask(name, &event(name, 10 + 10 * i64::try_from(number).unwrap()));
            world.settle();
        }
        world.lock("rb", "c", "b");
        world.later(10);
        world.ask("b", &event_of("k", 40, "rb"));
        let (cache, decision) = (world.clone(), world.decide());
        world.apply(&cache, &decision, Fate::CrashAfter(writes));
        world.unlock();
        world.later(10);
        world.ask("d", &event("d", 50));
        world.settle();
        world.check_settled();
        assert_eq!(world.active().as_deref(), Some("d"));
        if writes > 0 {
            // The pointer moved, so the mark is made whatever happened after that.
            assert_eq!(world.status("c").left_by_rollback.as_deref(), Some("rb"), "after {writes} writes");
        }
    }
}
