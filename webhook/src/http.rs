//! The HTTP side: one POST of JSON to one of the paths.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use hyper::body::{Body, Bytes};
use rollback_runtime::args::parse_duration;
use rollback_runtime::body::read_body;
use rollback_runtime::server::{Response, text};
use tokio::time::Instant;

use crate::admit::{Admission, Path};
use crate::metrics::{Metrics, Verdict};
use crate::reader::Reader;
use crate::review::{Answer, parse};

/// Largest body, in bytes: an object and its predecessor of the largest size that etcd stores, and their envelope.
pub const MAX_BODY: usize = 7 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the API server waits when it does not say so.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for what must be read.
const LONGEST: Duration = Duration::from_secs(8);

/// Answers HTTP requests with reviews.
#[derive(Debug)]
pub struct Webhook<R> {
    admission: Admission<R>,
    metrics: Metrics,
}

impl<R: Reader> Webhook<R> {
    /// Answers with that admission, and counts.
    pub fn new(admission: Admission<R>, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self { admission, metrics })
    }

    /// Answers one request.
    pub async fn respond<B>(&self, request: http::Request<B>) -> Response
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let begun = Instant::now();
        let path = Path::parse(request.uri().path());
        let (verdict, response) = match path {
            None => (Verdict::Malformed, text(StatusCode::NOT_FOUND, not_found())),
            Some(path) => self.review(path, request, begun).await,
        };
        self.metrics.observe(path.map_or("other", Path::as_str), verdict, begun.elapsed());
        response
    }

    async fn review<B>(&self, path: Path, request: http::Request<B>, begun: Instant) -> (Verdict, Response)
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let malformed = |status, message: String| (Verdict::Malformed, text(status, message + "\n"));
        if request.method() != Method::POST {
            let message = format!("{} takes POST, not {}", path.as_str(), request.method());
            let (verdict, mut response) = malformed(StatusCode::METHOD_NOT_ALLOWED, message);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            return (verdict, response);
        }
        if !is_json(request.headers()) {
            let message = format!("{} takes content type application/json", path.as_str());
            return malformed(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        let within = deadline(request.uri().query());
        let body = match read_body(request, MAX_BODY, BODY_TIMEOUT.min(within)).await {
            Ok(body) => body,
            Err(error) => return malformed(error.status(), error.to_string()),
        };
        let review = match parse(&body) {
            Ok(review) => review,
            Err(error) => return malformed(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let answer = match self.admission.answer(path, &review, begun + within).await {
            Ok(answer) => answer,
            Err(error) => return malformed(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let verdict = match &answer {
            Answer::Allowed { .. } => Verdict::Allowed,
            Answer::Denied { code, .. } if *code < 500 => Verdict::Denied,
            Answer::Denied { .. } => Verdict::Failed,
        };
        match answer.to_json(&review.uid) {
            Ok(json) => (verdict, respond_json(json)),
            Err(error) => (
                Verdict::Failed,
                text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("the answer could not be written: {error}\n"),
                ),
            ),
        }
    }
}

fn not_found() -> String {
    let paths: Vec<&str> = Path::ALL.into_iter().map(Path::as_str).collect();
    format!("there is {}\n", paths.join(", "))
}

/// Parameters such as a character set do not matter: JSON is UTF-8.
fn is_json(headers: &http::HeaderMap) -> bool {
    let essence = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split(';').next().unwrap_or_default().trim());
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"))
}

/// How long the answer may take. The API server says in the query how long it waits; a fifth is for the way back.
fn deadline(query: Option<&str>) -> Duration {
    let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout=")));
    let waits = asked.and_then(|text| parse_duration(text).ok()).unwrap_or(DEFAULT_TIMEOUT);
    waits.mul_f64(0.8).min(LONGEST)
}

fn respond_json(json: Vec<u8>) -> Response {
    let mut response = http::Response::new(json.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, 8000)]
    #[case(Some("timeout=10s"), 8000)]
    #[case(Some("a=b&timeout=2s"), 1600)]
    #[case(Some("timeout=500ms"), 400)]
    #[case(Some("timeout=30s"), 8000)]
    #[case(Some("timeout=soon"), 8000)]
    #[case(Some("timeout=99999999999999999999999h"), 8000)]
    fn answers_before_the_api_server_stops_waiting(#[case] query: Option<&str>, #[case] milliseconds: u64) {
        assert_eq!(deadline(query), Duration::from_millis(milliseconds));
    }
}
