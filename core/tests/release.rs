//! The release pass over a pretend API server: what each annotation does to the status, which activation wins, what is
//! culled, what is chosen to go back to; and the same under random orders, crashes, stale caches and clock steps.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "release/activation.rs"]
mod activation;
#[path = "release/annotations.rs"]
mod annotations;
#[path = "release/apply.rs"]
mod apply;
#[path = "release/culling.rs"]
mod culling;
#[path = "release/deploying.rs"]
mod deploying;
#[path = "release/health.rs"]
mod health;
#[path = "release/migration.rs"]
mod migration;
#[path = "release/random.rs"]
mod random;
#[path = "release/rollbacks.rs"]
mod rollbacks;
#[path = "release/selection.rs"]
mod selection;
#[path = "release/world.rs"]
mod world;
