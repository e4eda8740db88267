//! How long to wait before the next attempt, and before a call that was put off.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::observed::Settings;

/// The wait after attempt `number` failed: doubles each time, between half of it and all of it.
pub(super) fn after_attempt(settings: &Settings, number: i32, jitter: f64) -> Duration {
    let doublings = u32::try_from(number.saturating_sub(1)).unwrap_or(0).min(16);
    let full = settings.backoff_base.saturating_mul(1 << doublings).min(settings.backoff_cap);
    full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

/// The wait before a call is tried again that has been put off since `since`. Half of the time that has passed:
/// grows exponentially and needs no counter that a restart would lose. What the backend asked for is the least.
pub(super) fn put_off(
    settings: &Settings,
    since: Timestamp,
    now: Timestamp,
    asked: Option<Duration>,
) -> Duration {
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let own = (passed / 2).clamp(settings.backoff_base, settings.backoff_cap);
    asked.map_or(own, |asked| asked.max(own))
}

/// A time that much later; the end of time if there is none.
pub(super) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| now.checked_add(wait).ok()).unwrap_or(Timestamp::MAX)
}
