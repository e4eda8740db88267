//! The controller's metrics. Labels are bounded: namespace and target by what is deployed, the rest by lists.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds that a rollback may take: from 15 seconds to two hours.
const COMPLETION_SECONDS: [f64; 10] = [15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0];
/// Attempts after the first.
const RETRIES: [f64; 10] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
/// Seconds that a call to a backend may take.
const CALL_SECONDS: [f64; 10] = [0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Labels of an ended Rollback.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Ended {
    /// `succeeded`, `failed`, `superseded`, `cancelled` or `not_needed`.
    pub status: &'static str,
    /// Namespace of the Rollback.
    pub namespace: String,
    /// The target.
    pub target: String,
    /// `user`, `system`, `other` or empty: what kind of initiator it claims.
    pub initiator_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pass {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendCall {
    backend: &'static str,
    call: &'static str,
    outcome: &'static str,
}

/// All of them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    terminal: Family<Ended, Counter>,
    duration: Family<Ended, Histogram, fn() -> Histogram>,
    retries: Family<Ended, Histogram, fn() -> Histogram>,
    passes: Family<Pass, Counter>,
    calls: Family<BackendCall, Histogram, fn() -> Histogram>,
    events_dropped: Counter,
}

impl Metrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            terminal: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(COMPLETION_SECONDS)),
            retries: Family::new_with_constructor(|| Histogram::new(RETRIES)),
            passes: Family::default(),
            calls: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            events_dropped: Counter::default(),
        };
        registry.register("theatre_rollback_terminal", "Rollbacks that ended", metrics.terminal.clone());
        registry.register(
            "theatre_rollback_completion_duration_seconds",
            "Time from the creation of a Rollback to its end",
            metrics.duration.clone(),
        );
        registry.register(
            "theatre_rollback_retry_count",
            "Attempts of an ended Rollback after the first",
            metrics.retries.clone(),
        );
        registry.register("rollback_passes", "Passes over a target", metrics.passes.clone());
        registry.register(
            "rollback_backend_call_duration_seconds",
            "Calls to a deployment backend",
            metrics.calls.clone(),
        );
        registry.register(
            "rollback_events_dropped",
            "Kubernetes events that were not published",
            metrics.events_dropped.clone(),
        );
        metrics
    }

    /// A Rollback ended.
    pub fn ended(&self, labels: &Ended, took: Duration, retries: u32) {
        self.terminal.get_or_create(labels).inc();
        self.duration.get_or_create(labels).observe(took.as_secs_f64());
        self.retries.get_or_create(labels).observe(f64::from(retries));
    }

    /// A pass ended; `controller` is the name of its queue.
    pub fn pass(&self, controller: &'static str, succeeded: bool) {
        let outcome = if succeeded { "succeeded" } else { "failed" };
        self.passes.get_or_create(&Pass { controller, outcome }).inc();
    }

    /// A backend answered, or did not in time. `outcome` is `ok` or the class of the error.
    pub fn backend_call(
        &self,
        backend: &'static str,
        call: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        self.calls.get_or_create(&BackendCall { backend, call, outcome }).observe(took.as_secs_f64());
    }

    /// An event could not be published.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_s_names_are_served() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let labels = Ended {
            status: "succeeded",
            namespace: "shop".into(),
            target: "payments".into(),
            initiator_type: "user",
        };
        metrics.ended(&labels, Duration::from_secs(40), 1);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"theatre_rollback_terminal_total{status="succeeded",namespace="shop",target="payments",initiator_type="user"} 1"#,
            r#"theatre_rollback_completion_duration_seconds_bucket{le="30.0",status="succeeded",namespace="shop",target="payments",initiator_type="user"} 0"#,
            r#"theatre_rollback_completion_duration_seconds_bucket{le="60.0",status="succeeded",namespace="shop",target="payments",initiator_type="user"} 1"#,
            r#"theatre_rollback_retry_count_bucket{le="0.0",status="succeeded",namespace="shop",target="payments",initiator_type="user"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
