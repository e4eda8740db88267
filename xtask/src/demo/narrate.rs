//! One line for each step, with the time since the start.

use std::time::Instant;

use crate::output::line;

/// Tells what happens.
pub(super) struct Narrator {
    started: Instant,
}

impl Narrator {
    pub(super) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(super) fn step(&mut self, text: &str) {
        line(&format!("{:>6.1}s  {text}", self.started.elapsed().as_secs_f64()));
    }
}
