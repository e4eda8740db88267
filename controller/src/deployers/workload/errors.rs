//! What the API server's errors mean for a rollback of workloads.

use std::time::Duration;

use rollback_core::backend::{BackendError, ErrorClass};

use crate::error::sentence;

/// The error of a call to the API server.
pub(super) fn cannot(doing: &str, error: &kube::Error) -> BackendError {
    BackendError::new(class(error), format!("cannot {doing}: {}", sentence(error)))
}

/// What an error means. A server that cannot answer may answer later; one that refused will refuse again.
pub(super) fn class(error: &kube::Error) -> ErrorClass {
    let kube::Error::Api(status) = error else { return ErrorClass::Unavailable(None) };
    let after = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|after| *after > 0);
    match status.code {
        403 => ErrorClass::NotPermitted,
        404 | 410 => ErrorClass::NotFound,
        409 => ErrorClass::Busy,
        // 401: a token that is being rotated.
        401 | 408 | 429 | 500.. => {
            ErrorClass::Unavailable(after.map(|after| Duration::from_secs(after.into())))
        }
        _ => ErrorClass::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn api(code: u16, retry_after_seconds: u32) -> kube::Error {
        let details = kube::core::response::StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds,
        };
        kube::Error::Api(Box::new(Status {
            code,
            message: "no".into(),
            details: Some(details),
            ..Status::default()
        }))
    }

    #[test]
    fn classes() {
        for (code, expected) in [
            (400, ErrorClass::Invalid),
            (401, ErrorClass::Unavailable(None)),
            (403, ErrorClass::NotPermitted),
            (404, ErrorClass::NotFound),
            (409, ErrorClass::Busy),
            (413, ErrorClass::Invalid),
            (422, ErrorClass::Invalid),
            (429, ErrorClass::Unavailable(None)),
            (500, ErrorClass::Unavailable(None)),
            (503, ErrorClass::Unavailable(None)),
        ] {
            assert_eq!(class(&api(code, 0)), expected, "{code}");
        }
        assert_eq!(class(&api(429, 7)), ErrorClass::Unavailable(Some(Duration::from_secs(7))));
        assert_eq!(cannot("read Deployment web", &api(403, 0)).message, "cannot read Deployment web: no");
    }
}
