//! Arguments of leader election.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use rollback_core::lease::{Terms, TermsError};

use crate::args::parse_duration;

/// How to compete for leadership. Flatten into a program's arguments.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaseArgs {
    /// Act only while holding the Lease; false: act at once, for a single
    /// replica that never overlaps with another
    #[arg(
        long,
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set,
        env = "ROLLBACK_LEADER_ELECT"
    )]
    pub leader_elect: bool,

    /// Name of the Lease [default: the program's name]
    #[arg(long, env = "ROLLBACK_LEADER_ELECT_LEASE_NAME")]
    pub leader_elect_lease_name: Option<String>,

    /// Namespace of the Lease [default: the program's own namespace]
    #[arg(long, env = "ROLLBACK_LEADER_ELECT_LEASE_NAMESPACE")]
    pub leader_elect_lease_namespace: Option<String>,

    /// How long others wait for a silent leader
    #[arg(long, default_value = "15s", value_parser = parse_duration)]
    pub leader_elect_lease_duration: Duration,

    /// How long the leader acts without a successful renewal
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub leader_elect_renew_deadline: Duration,

    /// How often the Lease is read or renewed
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub leader_elect_retry_period: Duration,
}

impl LeaseArgs {
    /// The durations, checked against each other.
    pub fn terms(&self) -> Result<Terms, TermsError> {
        Terms::new(
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )
    }
}

/// A name for this run of this process, readable and unique: the Pod's name and
/// a random part, since a restarted container keeps the Pod's name.
pub(super) fn identity(program: &str) -> String {
    let host = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| program.to_owned());
    // The standard library's hash keys are random for each process.
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{host}_{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        lease: LeaseArgs,
    }

    fn parse(arguments: &[&str]) -> LeaseArgs {
        Program::try_parse_from([&["program"], arguments].concat()).unwrap().lease
    }

    #[test]
    fn election_is_on_unless_said_otherwise() {
        assert!(parse(&[]).leader_elect);
        assert!(parse(&["--leader-elect"]).leader_elect);
        assert!(!parse(&["--leader-elect=false"]).leader_elect);
        assert!(parse(&[]).terms().is_ok());
        assert_eq!(parse(&["--leader-elect-renew-deadline=20s"]).terms(), Err(TermsError::RenewDeadline));
    }

    #[test]
    fn two_identities_of_one_process_differ() {
        assert_ne!(identity("controller"), identity("controller"));
    }
}
