//! The idempotency key of an attempt.

/// `<rollback uid>-<attempt number>`.
pub fn attempt_key(uid: &str, number: i32) -> String {
    format!("{uid}-{number}")
}
