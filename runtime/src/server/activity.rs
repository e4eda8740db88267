//! How long a connection has had no request in progress.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Requests in progress on one connection.
#[derive(Clone)]
pub(super) struct Activity {
    state: Arc<Mutex<State>>,
}

struct State {
    in_progress: usize,
    since: Instant,
}

/// One request in progress, until dropped.
pub(super) struct Busy(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self { state: Arc::new(Mutex::new(State { in_progress: 0, since: Instant::now() })) }
    }

    pub(super) fn begin(&self) -> Busy {
        self.change(|state| state.in_progress += 1);
        Busy(self.clone())
    }

    /// Starts the idle time again.
    pub(super) fn touch(&self) {
        self.change(|state| state.since = Instant::now());
    }

    /// Waits until no request has been in progress for `limit`.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let until =
                self.change(
                    |state| {
                        if state.in_progress > 0 { Instant::now() + limit } else { state.since + limit }
                    },
                );
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.in_progress -= 1;
            state.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_counts_from_the_end_of_the_last_request() {
        let activity = Activity::new();
        let begun = Instant::now();
        let busy = activity.begin();
        let other = activity.clone();
        let request = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(25)).await;
            drop(busy);
        });
        other.idle_for(Duration::from_secs(10)).await;
        request.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 35);
    }
}
