//! The loop that competes for the Lease.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use rollback_core::lease::{Candidate, LeaseAction, LeaseRecord, TermsError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::api::{CallError, LeaseApi, to_record};
use super::args::{LeaseArgs, identity};
use super::leadership::{Leadership, LeadershipLost, State, Trust};

/// Competes for the Lease in the background.
#[derive(Debug)]
pub struct Elector {
    leadership: Leadership,
    end: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Elector {
    /// Begins to compete, in the client's own namespace and under the name
    /// `program` unless the arguments say otherwise; leads at once when
    /// election is off. Must be called inside the runtime. Fails when the
    /// durations do not fit together.
    pub fn start(client: Client, args: &LeaseArgs, program: &str) -> Result<Self, TermsError> {
        let terms = args.terms()?;
        let end = CancellationToken::new();
        if !args.leader_elect {
            return Ok(Self { leadership: Leadership::always(), end, task: None });
        }
        let namespace = args.leader_elect_lease_namespace.clone();
        let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        let name = args.leader_elect_lease_name.clone().unwrap_or_else(|| program.to_owned());
        let (state, leadership) = watch::channel(State::Waiting);
        let contest = Contest {
            api: LeaseApi::new(client, namespace, name),
            candidate: Candidate::new(identity(program), terms),
            origin: Instant::now(),
            known: Known::Nothing,
            rival: None,
            state,
        };
        let task = tokio::spawn(contest.run(end.clone()));
        Ok(Self { leadership: Leadership::new(leadership), end, task: Some(task) })
    }

    /// Whether this process leads, for everybody who must know.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Ends the competition and frees the Lease, so that the next replica need
    /// not wait. Only after all work has stopped. Takes at most a few seconds;
    /// when the Lease cannot be freed it runs out by itself.
    pub async fn release(mut self) {
        self.end.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the leader election panicked: this is a defect, please report it");
        }
    }
}

impl Drop for Elector {
    /// Ends the competition; without [`Elector::release`] the Lease is freed
    /// only if the runtime lives on.
    fn drop(&mut self) {
        self.end.cancel();
    }
}

struct Contest {
    api: LeaseApi,
    candidate: Candidate,
    /// The zero of the candidate's clock.
    origin: Instant,
    known: Known,
    /// The holder last waited for, to log it once.
    rival: Option<String>,
    state: watch::Sender<State>,
}

/// What the server last showed.
enum Known {
    /// Nothing that still counts: read first.
    Nothing,
    /// There is no Lease.
    Absent,
    /// The Lease, with the version to write over.
    Found(Box<Lease>),
}

/// Whether the loop goes on.
enum Next {
    After(Duration),
    Ended,
}

impl Contest {
    async fn run(mut self, end: CancellationToken) {
        loop {
            let Some(next) = end.run_until_cancelled(self.turn()).await else { break };
            let Next::After(wait) = next else { return };
            // Wake at the deadline at the latest, to step down in time.
            let wait = match self.candidate.leads_until() {
                Some(until) => wait.min(until.saturating_sub(self.now())),
                None => wait,
            };
            if end.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                break;
            }
        }
        self.release().await;
    }

    /// One look at the Lease and at most one write.
    async fn turn(&mut self) -> Next {
        let retry = self.candidate.terms().retry_period();
        if self.candidate.action(self.now()) == LeaseAction::StepDown {
            return self.step_down();
        }
        if matches!(self.known, Known::Nothing)
            && let Err(error) = self.read().await
        {
            return self.failed(&error, "read");
        }
        match self.candidate.action(self.now()) {
            LeaseAction::Create | LeaseAction::Acquire | LeaseAction::Renew => {
                let wall = Timestamp::now();
                let record = self.next_record(wall);
                match self.write(record).await {
                    Ok(()) => Next::After(retry),
                    Err(CallError::Conflict) => Next::After(retry / 4),
                    Err(CallError::Failed(error)) => self.failed(&error.to_string(), "written"),
                }
            }
            LeaseAction::Yield { .. } => {
                self.known = Known::Nothing;
                self.log_rival();
                Next::After(retry)
            }
            LeaseAction::StepDown => self.step_down(),
        }
    }

    fn next_record(&self, wall: Timestamp) -> LeaseRecord {
        let candidate = &self.candidate;
        LeaseRecord::held_by(candidate.identity(), candidate.record(), candidate.terms(), wall)
    }

    async fn read(&mut self) -> Result<(), String> {
        let read = timeout(self.call_timeout(), self.api.read()).await;
        let lease = match read {
            Ok(Ok(lease)) => lease,
            Ok(Err(CallError::Failed(error))) => return Err(error.to_string()),
            Ok(Err(CallError::Conflict)) => return Err("conflict".to_owned()),
            Err(_) => return Err("the API server did not answer in time".to_owned()),
        };
        self.candidate.observe(lease.as_ref().map(to_record), self.now());
        self.known = lease.map_or(Known::Absent, |lease| Known::Found(Box::new(lease)));
        Ok(())
    }

    /// Writes over what is known. On any error the outcome is unknown, so the
    /// Lease is read again.
    async fn write(&mut self, record: LeaseRecord) -> Result<(), CallError> {
        let over = match std::mem::replace(&mut self.known, Known::Nothing) {
            Known::Found(lease) => Some(lease),
            Known::Nothing | Known::Absent => None,
        };
        let (began, began_wall) = (self.now(), SystemTime::now());
        let written = timeout(self.call_timeout(), self.api.write(over.as_deref(), &record)).await;
        let lease = match written {
            Ok(written) => written?,
            Err(elapsed) => return Err(CallError::Failed(kube::Error::Service(Box::new(elapsed)))),
        };
        // What the server stored, in case something on the way changed it.
        self.candidate.confirm(to_record(&lease), began);
        self.known = Known::Found(Box::new(lease));
        if let Some(until) = self.candidate.leads_until() {
            let lasts = self.candidate.terms().renew_deadline();
            let trust = Trust { until: self.origin + until, began: began_wall, lasts };
            if !matches!(self.state.send_replace(State::Leading(trust)), State::Leading(_)) {
                tracing::info!(lease = self.api.name, identity = self.candidate.identity(), "leading");
            }
        }
        Ok(())
    }

    fn failed(&self, error: &str, what: &str) -> Next {
        tracing::warn!(
            lease = self.api.name,
            namespace = self.api.namespace,
            error,
            "the Lease could not be {what}; trying again (this needs get, create and update on leases)"
        );
        Next::After(self.candidate.terms().retry_period())
    }

    fn step_down(&mut self) -> Next {
        let holder = self.candidate.record().map(|record| record.holder.clone());
        let reason = match holder {
            Some(holder) if holder.is_empty() => "somebody freed the Lease".to_owned(),
            Some(holder) if holder != self.candidate.identity() => format!("{holder} took the Lease"),
            Some(_) | None => "the Lease could not be renewed in time".to_owned(),
        };
        self.candidate.step_down();
        let lost =
            LeadershipLost { reason: format!("Lease {}/{}: {reason}", self.api.namespace, self.api.name) };
        tracing::error!("{lost}");
        self.state.send_replace(State::Lost(lost));
        Next::Ended
    }

    fn log_rival(&mut self) {
        let rival = self.candidate.record().map(|record| record.holder.clone());
        if rival != self.rival {
            tracing::info!(lease = self.api.name, holder = rival, "waiting for the Lease");
            self.rival = rival;
        }
    }

    /// Frees the Lease if this process holds it. From its first line on this
    /// process does not lead.
    async fn release(mut self) {
        self.state.send_replace(State::Released);
        if self.candidate.leads_until().is_none() && !matches!(self.known, Known::Nothing) {
            return;
        }
        self.candidate.step_down();
        // A second try when the first one met an outdated version.
        for _ in 0..2 {
            if matches!(self.known, Known::Nothing)
                && let Err(error) = self.read().await
            {
                tracing::warn!(error, "the Lease could not be freed; it runs out by itself");
                return;
            }
            let ours = self.candidate.record().filter(|record| record.holder == self.candidate.identity());
            let Some(record) = ours else { return };
            let released = record.released(Timestamp::now());
            match self.write(released).await {
                Ok(()) => return tracing::info!(lease = self.api.name, "freed the Lease"),
                Err(CallError::Conflict) => {}
                Err(CallError::Failed(error)) => {
                    return tracing::warn!(%error, "the Lease could not be freed; it runs out by itself");
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Half the deadline, so that one lost answer leaves time for another try;
    /// never past the deadline itself.
    fn call_timeout(&self) -> Duration {
        let half = self.candidate.terms().renew_deadline() / 2;
        match self.candidate.leads_until() {
            Some(until) => half.min(until.saturating_sub(self.now())),
            None => half,
        }
    }
}
