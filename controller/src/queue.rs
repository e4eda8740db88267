//! A queue of targets: each one once, never two passes over the same target at the same time, several over
//! different ones, again later when a pass says so or fails.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc;
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::chance;
use crate::error::PassError;
use crate::metrics::Metrics;
use crate::target::TargetKey;

/// The first wait after a pass failed; doubles each time.
const FIRST_RETRY: Duration = Duration::from_millis(200);
/// The longest wait after a pass failed.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Longer waits are cut: a timer cannot hold any time.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The way into a queue. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Queue {
    requests: mpsc::UnboundedSender<ScheduleRequest<TargetKey>>,
}

/// The other end: what [`run`] takes.
#[derive(Debug)]
pub struct Requests {
    queue: Queue,
    requests: mpsc::UnboundedReceiver<ScheduleRequest<TargetKey>>,
}

/// When to look at the target again, if nothing happens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not before something changes.
    Idle,
    /// After that long.
    After(Duration),
}

impl Next {
    /// The earlier of the two.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::After(a), Self::After(b)) => Self::After(a.min(b)),
            (Self::After(a), Self::Idle) | (Self::Idle, Self::After(a)) => Self::After(a),
            (Self::Idle, Self::Idle) => Self::Idle,
        }
    }
}

impl Queue {
    /// A new queue.
    pub fn new() -> (Self, Requests) {
        let (sender, requests) = mpsc::unbounded();
        let queue = Self { requests: sender };
        (queue.clone(), Requests { queue, requests })
    }

    /// Asks for a pass over the target as soon as possible. During a pass over the same target: right after it.
    pub fn now(&self, key: &TargetKey) {
        self.after(key, Duration::ZERO);
    }

    /// Asks for a pass after that long, unless one is due before.
    pub fn after(&self, key: &TargetKey, wait: Duration) {
        let run_at = Instant::now() + wait.min(LONGEST_WAIT);
        // Refused only when nobody runs the queue any more.
        let _ = self.requests.unbounded_send(ScheduleRequest { message: key.clone(), run_at });
    }
}

/// How to run a queue.
#[derive(Clone, Debug)]
pub struct Running {
    /// What the passes do: `release`, `rollback`, `recording`.
    pub name: &'static str,
    /// Most passes at the same time; at least one runs.
    pub workers: usize,
    /// Cancelled when no new pass may begin.
    pub stop: CancellationToken,
    /// How long passes under way may take to end after that.
    pub drain: Duration,
    /// Counts passes.
    pub metrics: Metrics,
}

/// A pass panicked: the state of this process is not to be trusted any more.
#[derive(Debug, thiserror::Error)]
#[error("a {queue} pass broke off: {why}; this is a defect, please report it")]
pub struct Broken {
    queue: &'static str,
    why: String,
}

/// Runs passes until the queue is stopped. Fails only when a pass panics.
pub async fn run<P, F>(running: Running, requests: Requests, pass: P) -> Result<(), Broken>
where
    P: Fn(TargetKey) -> F,
    F: Future<Output = Result<Next, PassError>> + Send + 'static,
{
    let Requests { queue, requests } = requests;
    let mut scheduler = pin!(scheduler(requests));
    let mut busy: HashSet<TargetKey> = HashSet::new();
    let mut failures: HashMap<TargetKey, u32> = HashMap::new();
    let mut passes: JoinSet<(TargetKey, Result<Next, PassError>)> = JoinSet::new();
    let broken = |why: tokio::task::JoinError| Broken { queue: running.name, why: why.to_string() };
    loop {
        let free = busy.len() < running.workers.max(1);
        let next = async {
            if free {
                scheduler.as_mut().hold_unless(|key| !busy.contains(key)).next().await
            } else {
                scheduler.as_mut().hold().next().await
            }
        };
        tokio::select! {
            biased;
            () = running.stop.cancelled() => break,
            Some(done) = passes.join_next(), if !passes.is_empty() => {
                let (key, result) = done.map_err(broken)?;
                busy.remove(&key);
                settle(&running, &queue, &mut failures, &key, result);
            }
            next = next => {
                let Some(key) = next else { break };
                busy.insert(key.clone());
                let future = pass(key.clone());
                passes.spawn(async move { (key, future.await) });
            }
        }
    }
    let drained = async {
        while let Some(done) = passes.join_next().await {
            let (key, result) = done.map_err(broken)?;
            running.metrics.pass(running.name, result.is_ok());
            if let Err(error) = result {
                tracing::debug!(controller = running.name, target = %key, "while shutting down: {error}");
            }
        }
        Ok(())
    };
    // What is cut off here is found again by the next process, like after a crash.
    tokio::time::timeout(running.drain, drained).await.unwrap_or(Ok(()))
}

fn settle(
    running: &Running,
    queue: &Queue,
    failures: &mut HashMap<TargetKey, u32>,
    key: &TargetKey,
    result: Result<Next, PassError>,
) {
    running.metrics.pass(running.name, result.is_ok());
    match result {
        Ok(next) => {
            failures.remove(key);
            if let Next::After(wait) = next {
                queue.after(key, wait);
            }
        }
        Err(PassError::Stopped(why)) => {
            tracing::debug!(controller = running.name, target = %key, %why, "pass ended early");
        }
        Err(error) => {
            let failed = failures.entry(key.clone()).or_default();
            let wait = retry_after(*failed, chance::fraction());
            *failed = failed.saturating_add(1);
            tracing::warn!(controller = running.name, target = %key, retry_in_ms = wait.as_millis(), "{error}");
            queue.after(key, wait);
        }
    }
}

/// The wait after `failures` earlier failures in a row: between half of its full length and all of it.
fn retry_after(failures: u32, chance: f64) -> Duration {
    let full = FIRST_RETRY.saturating_mul(1 << failures.min(16)).min(LONGEST_RETRY);
    full.mul_f64(0.5 + 0.5 * chance)
}

#[cfg(test)]
mod tests;
