//! The handler within its limits: so many at once, so long each, panics caught.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use http::{HeaderValue, StatusCode, header};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Limits, Request, Response, text};

pub(super) struct Requests<H> {
    handler: H,
    turns: Semaphore,
    limits: Limits,
}

impl<H> Requests<H> {
    pub(super) fn new(handler: H, limits: Limits) -> Self {
        Self { handler, turns: Semaphore::new(limits.requests), limits }
    }

    /// Always an answer: the handler's, or 503 or 500 with the reason.
    pub(super) async fn answer<F>(&self, request: Request) -> Response
    where
        H: Fn(Request) -> F,
        F: Future<Output = Response>,
    {
        // The semaphore is never closed, so an error is a timeout too.
        let Ok(Ok(_turn)) = timeout(self.limits.queue, self.turns.acquire()).await else {
            return busy("too many requests in progress");
        };
        let path = request.uri().path().to_owned();
        // Calling the handler may panic as well as polling what it returns.
        let handled = AssertUnwindSafe(async { (self.handler)(request).await }).catch_unwind();
        match timeout(self.limits.request, handled).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => {
                tracing::error!(path, "a request made its handler panic: this is a defect, please report it");
                text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal error: the log of this server has the details\n",
                )
            }
            Err(_) => {
                tracing::error!(path, "a request took too long and was given up");
                busy("the request took too long")
            }
        }
    }
}

fn busy(why: &str) -> Response {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}; try again\n"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
