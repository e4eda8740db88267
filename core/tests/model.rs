//! Model test of DESIGN 4's invariants: a pretend cluster carries out what `decide` says while crashes, lost and
//! conflicting writes, duplicate passes, clock steps, backend faults and user edits come at random.
//!
//! A case is a string of bytes; each choice of the pretend cluster takes the next one, so a failure shrinks to
//! the shortest string that still breaks an invariant.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "model/choices.rs"]
mod choices;
#[path = "model/controller.rs"]
mod controller;
#[path = "model/world.rs"]
mod world;

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use choices::Choices;
use controller::Controller;
use proptest::prelude::*;
use world::World;

const CASES: u32 = 1000;

static STEPS: AtomicU64 = AtomicU64::new(0);
static CRASHES: AtomicU64 = AtomicU64::new(0);
static ROLLBACKS: AtomicU64 = AtomicU64::new(0);
static DEPLOYMENTS: AtomicU64 = AtomicU64::new(0);
static SUCCESSES: AtomicU64 = AtomicU64::new(0);

fn run(bytes: Vec<u8>) {
    let mut choices = Choices::new(bytes);
    let mut world = World::new();
    let mut controller = Controller::new();
    while choices.left() {
        match choices.below(18) {
            0 => world.create_rollback(&mut choices),
            1 => world.recreate_rollback(&mut choices),
            2 => world.cancel(&mut choices),
            3 => world.delete(&mut choices),
            4 => world.deploy_something_else(&mut choices),
            5 | 6 => world.step_clock(&mut choices),
            7 | 8 => world.backend_moves(&mut choices),
            9 | 10 => world.release_pass(),
            _ => controller.pass(&mut world, &mut choices),
        }
        world.check();
    }
    // Left alone, with a healthy process and whatever backend it has, everything ends in time (invariant 4).
    world.settle(&mut controller);
    STEPS.fetch_add(controller.steps, Ordering::Relaxed);
    CRASHES.fetch_add(controller.crashes, Ordering::Relaxed);
    ROLLBACKS.fetch_add(world.created, Ordering::Relaxed);
    DEPLOYMENTS.fetch_add(world.deployments(), Ordering::Relaxed);
    SUCCESSES.fetch_add(world.successes(), Ordering::Relaxed);
}

#[test]
fn invariants_hold_under_random_faults() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    });
    runner
        .run(&proptest::collection::vec(any::<u8>(), 20..400), |bytes| {
            run(bytes);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    // Not captured by the test harness: the count is part of what a run shows.
    let _ = writeln!(
        std::io::stderr(),
        "{CASES} cases: {} rollbacks, {} steps, {} crashes, {} deployments, {} successes",
        total(&ROLLBACKS),
        total(&STEPS),
        total(&CRASHES),
        total(&DEPLOYMENTS),
        total(&SUCCESSES),
    );
    // A model in which nothing happens proves nothing.
    assert!(total(&SUCCESSES) > u64::from(CASES) / 10 && total(&CRASHES) > u64::from(CASES));
}
