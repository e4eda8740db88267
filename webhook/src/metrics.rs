//! What is measured. Every label has a fixed set of values.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds: admission is to take milliseconds, and the API server waits for ten seconds.
const BUCKETS: [f64; 12] = [0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.5, 2.0, 10.0];

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Admitted.
    Allowed,
    /// Refused by a rule.
    Denied,
    /// Refused because something could not be read.
    Failed,
    /// Not a review.
    Malformed,
}

impl Verdict {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "error",
            Self::Malformed => "malformed",
        }
    }
}

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The webhook's metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<Labels<2>, Counter>,
    duration: Family<Labels<1>, Histogram, fn() -> Histogram>,
    expiry: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            expiry: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Adds them to what `/metrics` shows.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "rollback_webhook_requests",
            "Admission requests by path and verdict",
            self.requests.clone(),
        );
        registry.register(
            "rollback_webhook_request_duration_seconds",
            "Time from the head of an admission request to its answer",
            self.duration.clone(),
        );
        registry.register(
            "rollback_webhook_certificate_expiry_timestamp_seconds",
            "When the server certificate expires, in seconds since 1970; 0 when it cannot be read",
            self.expiry.clone(),
        );
    }

    /// Counts one request. `path` is one of the paths that are served, or `other`.
    pub fn observe(&self, path: &'static str, verdict: Verdict, took: Duration) {
        self.requests.get_or_create(&[("path", path), ("verdict", verdict.as_str())]).inc();
        self.duration.get_or_create(&[("path", path)]).observe(took.as_secs_f64());
    }

    /// Notes when the server certificate expires.
    pub fn certificate_expires(&self, seconds: i64) {
        self.expiry.set(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_names_that_dashboards_use() {
        let (metrics, mut registry) = (Metrics::default(), Registry::default());
        metrics.register(&mut registry);
        metrics.observe("/mutate-rollbacks", Verdict::Denied, Duration::from_millis(4));
        metrics.certificate_expires(7);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "rollback_webhook_requests_total{path=\"/mutate-rollbacks\",verdict=\"denied\"} 1",
            "rollback_webhook_request_duration_seconds_bucket{le=\"0.005\",path=\"/mutate-rollbacks\"} 1",
            "rollback_webhook_certificate_expiry_timestamp_seconds 7",
        ] {
            assert!(text.lines().any(|actual| actual == line), "{line}\n{text}");
        }
    }
}
