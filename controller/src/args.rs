//! The command line.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use rollback_api::Backend;
use rollback_core::rollback::observed;
use rollback_runtime::admin::AdminArgs;
use rollback_runtime::args::parse_duration;
use rollback_runtime::client::ClientArgs;
use rollback_runtime::lease::LeaseArgs;
use rollback_runtime::shutdown::ShutdownArgs;
use rollback_runtime::telemetry::LogArgs;

use crate::context::Settings;

/// Carries rollbacks out: the controllers of releases, rollbacks and recorded workloads.
#[derive(Debug, Clone, Parser)]
#[command(version, max_term_width = 100)]
pub struct Args {
    /// Controllers to run in this process
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "release,rollback,recording",
        env = "ROLLBACK_CONTROLLERS"
    )]
    pub controllers: Vec<Controller>,

    /// Backends that may be used; the first is the default for Rollbacks that name none
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "noop",
        value_parser = backend,
        env = "ROLLBACK_MANAGER_CICD_BACKEND"
    )]
    pub cicd_backend: Vec<Backend>,

    /// Passes at the same time, for each controller
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024), env = "ROLLBACK_WORKERS")]
    pub workers: u16,

    /// Carry out Rollbacks that the admission webhook has not seen, filled in by the same rules
    #[arg(long, env = "ROLLBACK_ADOPT_UNADMITTED")]
    pub adopt_unadmitted: bool,

    /// Ended Rollbacks to keep for each target
    #[arg(
        long,
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..),
        env = "ROLLBACK_MANAGER_HISTORY_LIMIT"
    )]
    pub rollback_history_limit: u32,

    /// Wait before the second attempt; doubles with each further one
    #[arg(long, default_value = "10s", value_parser = parse_duration, env = "ROLLBACK_BACKOFF_BASE")]
    pub backoff_base: Duration,

    /// Longest wait between two attempts
    #[arg(long, default_value = "5m", value_parser = parse_duration, env = "ROLLBACK_BACKOFF_CAP")]
    pub backoff_cap: Duration,

    /// How long a backend may take to answer one call
    #[arg(long, default_value = "30s", value_parser = parse_duration, env = "ROLLBACK_BACKEND_TIMEOUT")]
    pub backend_timeout: Duration,

    /// How long a target's workloads must have been quiet before they are recorded as a Release
    #[arg(long, default_value = "5s", value_parser = parse_duration, env = "ROLLBACK_RECORDING_QUIET_PERIOD")]
    pub recording_quiet_period: Duration,

    /// How long workloads must have been ready before their Release counts as healthy
    #[arg(long, default_value = "60s", value_parser = parse_duration, env = "ROLLBACK_MINIMUM_ACTIVE_TIME")]
    pub minimum_active_time: Duration,

    /// How long pods of a new version may stay unready before it counts as failed
    #[arg(long, default_value = "120s", value_parser = parse_duration, env = "ROLLBACK_ROLLOUT_FAILURE_AFTER")]
    pub rollout_failure_after: Duration,

    /// Probes and metrics.
    #[command(flatten)]
    pub admin: AdminArgs,
    /// The API client.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Leader election.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Logs.
    #[command(flatten)]
    pub log: LogArgs,
    /// Shutdown.
    #[command(flatten)]
    pub shutdown: ShutdownArgs,
}

/// A controller that this process can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Controller {
    /// Which release is active, and how healthy releases are.
    Release,
    /// Carries Rollbacks out.
    Rollback,
    /// Records labelled workloads as Releases.
    Recording,
}

fn backend(text: &str) -> Result<Backend, String> {
    Backend::parse(text).ok_or_else(|| {
        let known: Vec<&str> = Backend::ALL.iter().map(|backend| backend.as_str()).collect();
        format!("there is no such backend; there are {}", known.join(", "))
    })
}

/// What is wrong with arguments that are well-formed one by one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    /// The bounds of the back-off are the wrong way round.
    #[error("--backoff-base={base:?} is longer than --backoff-cap={cap:?}; make it shorter or raise the cap")]
    Backoff {
        /// The shortest wait.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// Nothing can be done in no time.
    #[error("{0}=0s leaves no time at all; use at least 1ms")]
    Zero(&'static str),
}

impl Args {
    /// The settings they come to. Fails when they do not fit together.
    pub fn settings(&self) -> Result<Settings, ArgsError> {
        if self.backoff_base > self.backoff_cap {
            return Err(ArgsError::Backoff { base: self.backoff_base, cap: self.backoff_cap });
        }
        for (flag, value) in
            [("--backoff-base", self.backoff_base), ("--backend-timeout", self.backend_timeout)]
        {
            if value.is_zero() {
                return Err(ArgsError::Zero(flag));
            }
        }
        Ok(Settings {
            rollback: observed::Settings {
                backends: self.backends(),
                adopt_unadmitted: self.adopt_unadmitted,
                backoff_base: self.backoff_base,
                backoff_cap: self.backoff_cap,
            },
            backend_timeout: self.backend_timeout,
            rollback_history_limit: usize::try_from(self.rollback_history_limit).unwrap_or(usize::MAX),
            recording_quiet_period: self.recording_quiet_period,
            minimum_active_time: self.minimum_active_time,
            rollout_failure_after: self.rollout_failure_after,
        })
    }

    /// The enabled backends, each once, in the given order.
    pub fn backends(&self) -> Vec<Backend> {
        let mut backends = Vec::new();
        for &backend in &self.cicd_backend {
            if !backends.contains(&backend) {
                backends.push(backend);
            }
        }
        backends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args, String> {
        Args::try_parse_from([&["rollback-controller"], arguments].concat())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn lists_are_comma_separated_or_repeated() {
        let args = parse(&["--cicd-backend=workload,noop", "--cicd-backend=workload"]).unwrap();
        assert_eq!(args.backends(), [Backend::Workload, Backend::Noop]);
        assert_eq!(args.settings().unwrap().rollback.backends, [Backend::Workload, Backend::Noop]);
        let args = parse(&["--controllers=rollback"]).unwrap();
        assert_eq!(args.controllers, [Controller::Rollback]);
        assert_eq!(
            parse(&[]).unwrap().controllers,
            [Controller::Release, Controller::Rollback, Controller::Recording]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (argument, said) in [
            ("--controllers=policy", "[possible values: release, rollback, recording]"),
            ("--cicd-backend=jenkins", "there is no such backend; there are noop, workload, github, argocd"),
            ("--workers=0", "0 is not in 1..=1024"),
            ("--rollback-history-limit=0", "0 is not in 1.."),
            ("--backoff-base=5", "use a number with a unit"),
        ] {
            let error = parse(&[argument]).unwrap_err();
            assert!(error.contains(said), "{argument}: {error}");
        }
        let error = parse(&["--backoff-base=10m"]).unwrap().settings().unwrap_err();
        assert_eq!(
            error.to_string(),
            "--backoff-base=600s is longer than --backoff-cap=300s; make it shorter or raise the cap"
        );
        let error = parse(&["--backend-timeout=0s"]).unwrap().settings().unwrap_err();
        assert_eq!(error, ArgsError::Zero("--backend-timeout"));
    }
}
