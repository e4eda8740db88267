//! The end of the process: first not ready, then no new work, then gone.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::parse_duration;

/// How to end. Flatten into a program's arguments.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Shutdown")]
pub struct ShutdownArgs {
    /// How long to go on serving, while not ready, after the first signal: time
    /// for the cluster to stop sending requests
    #[arg(long, default_value = "0s", value_parser = parse_duration, env = "ROLLBACK_SHUTDOWN_DELAY")]
    pub shutdown_delay: Duration,

    /// How long work in progress may take to finish after that
    #[arg(long, default_value = "20s", value_parser = parse_duration, env = "ROLLBACK_DRAIN_TIMEOUT")]
    pub drain_timeout: Duration,
}

/// The two moments of a shutdown, for everything that must know them.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    stop: CancellationToken,
}

impl Shutdown {
    /// A shutdown that no signal starts.
    pub fn new() -> Self {
        Self::default()
    }

    /// A shutdown that SIGTERM or SIGINT starts. A second signal ends the
    /// process at once, with the status a shell would show for it (143 or 130).
    /// Must be called inside the runtime. Fails when the system refuses the
    /// signal handlers.
    pub fn on_signals(delay: Duration) -> io::Result<Self> {
        let mut signals = Signals::install()?;
        let shutdown = Self::new();
        let begun = shutdown.clone();
        tokio::spawn(async move {
            let first = signals.next().await;
            tracing::info!(signal = first.name(), "shutting down; a second signal ends the process at once");
            tokio::spawn(async move { begun.begin(delay).await });
            let second = signals.next().await;
            tracing::warn!(signal = second.name(), "second signal: ending without waiting");
            std::process::exit(second.exit_status());
        });
        Ok(shutdown)
    }

    /// Begins the shutdown: not ready now, no new work after `delay`.
    pub async fn begin(&self, delay: Duration) {
        self.draining.cancel();
        tokio::time::sleep(delay).await;
        self.stop.cancel();
    }

    /// Cancelled when the process must no longer count as ready.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// Cancelled when no new work may begin.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[derive(Clone, Copy)]
enum Received {
    Terminate,
    Interrupt,
}

impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.terminate.recv() => Received::Terminate,
            _ = self.interrupt.recv() => Received::Interrupt,
        }
    }
}

impl Received {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }

    /// 128 plus the signal's number.
    fn exit_status(self) -> i32 {
        match self {
            Self::Terminate => 143,
            Self::Interrupt => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn not_ready_comes_before_the_end() {
        let shutdown = Shutdown::new();
        let begun = shutdown.clone();
        let task = tokio::spawn(async move { begun.begin(Duration::from_secs(5)).await });
        shutdown.draining().cancelled().await;
        assert!(!shutdown.stop().is_cancelled());
        task.await.unwrap();
        assert!(shutdown.stop().is_cancelled());
    }
}
