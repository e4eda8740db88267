//! Which requests are tried again, and how often.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use tower::retry::Policy;

const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(2);
const TRIES_MORE: u32 = 4;

/// kube's policy, held back where a repetition could do something twice.
#[derive(Clone)]
pub(super) struct BoundedRetry(Option<RetryPolicy>);

impl BoundedRetry {
    pub(super) fn new() -> Self {
        // Without heed to Retry-After, which has no bound. The delays are in
        // order, so the policy is always there.
        Self(RetryPolicy::new(FIRST_DELAY, LONGEST_DELAY, TRIES_MORE, false).ok())
    }
}

impl<R> Policy<Request<Body>, Response<R>, tower::BoxError> for BoundedRetry {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<R>, tower::BoxError>,
    ) -> Option<Self::Future> {
        let policy = self.0.as_mut()?;
        let status = result.as_ref().ok()?.status();
        // 429 says that the request was not carried out; 503 and 504 may come
        // from something in between, after it was.
        if request.method() != Method::GET && status != StatusCode::TOO_MANY_REQUESTS {
            return None;
        }
        policy.retry(request, result)
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let policy = self.0.as_mut()?;
        Policy::<_, Response<R>, tower::BoxError>::clone_request(policy, request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rstest::rstest;
    use tower::{Layer as _, ServiceExt as _};

    use super::*;

    #[rstest]
    #[case(Method::GET, 200, 1)]
    #[case(Method::GET, 429, 5)]
    #[case(Method::GET, 503, 5)]
    #[case(Method::GET, 504, 5)]
    #[case(Method::GET, 500, 1)]
    #[case(Method::POST, 429, 5)]
    #[case(Method::POST, 503, 1)]
    #[case(Method::PUT, 504, 1)]
    #[case(Method::PATCH, 503, 1)]
    #[tokio::test(start_paused = true)]
    async fn tries_again_only_what_is_safe(#[case] method: Method, #[case] status: u16, #[case] sent: usize) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let service = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, tower::BoxError>(Response::builder().status(status).body(()).unwrap()) }
        });
        let service = tower::retry::RetryLayer::new(BoundedRetry::new()).layer(service);
        let request = Request::builder().method(method).uri("/").body(Body::from(b"{}".to_vec())).unwrap();
        let begun = tokio::time::Instant::now();
        let response = service.oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(count.load(Ordering::SeqCst), sent);
        assert!(begun.elapsed() < Duration::from_secs(10), "the waiting is bounded");
    }
}
