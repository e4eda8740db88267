//! Reading a request's body within limits.

use std::time::Duration;

use http::{StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};

/// Why a request's body could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed.
    #[error("the request body is larger than {limit} bytes")]
    TooLarge {
        /// The most bytes allowed.
        limit: usize,
    },
    /// It did not arrive in time.
    #[error("the request body did not arrive within {} ms", after.as_millis())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// The connection broke or the encoding is wrong.
    #[error("the request body could not be read: {0}")]
    Broken(String),
}

impl BodyError {
    /// The HTTP status that tells the client.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a request's whole body: at most `limit` bytes, within `timeout`. A
/// declared length over the limit is refused before anything is read.
pub async fn read_body<B>(
    request: http::Request<B>,
    limit: usize,
    timeout: Duration,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let declared = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    // A length that does not even fit is over the limit too.
    if declared.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > limit)) {
        return Err(BodyError::TooLarge { limit });
    }
    let collected = Limited::new(request.into_body(), limit).collect();
    match tokio::time::timeout(timeout, collected).await {
        Err(_) => Err(BodyError::Timeout { after: timeout }),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge { limit }),
        Ok(Err(error)) => Err(BodyError::Broken(error.to_string())),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    fn request<B>(body: B) -> http::Request<B> {
        http::Request::new(body)
    }

    #[tokio::test]
    async fn the_limit_itself_is_allowed_and_one_more_is_not() {
        let at = read_body(request(Full::from("12345678")), 8, Duration::from_secs(5)).await;
        assert_eq!(at, Ok(Bytes::from("12345678")));
        let over = read_body(request(Full::from("123456789")), 8, Duration::from_secs(5)).await;
        assert_eq!(over, Err(BodyError::TooLarge { limit: 8 }));
    }

    #[tokio::test]
    async fn a_declared_length_over_the_limit_is_refused_unread() {
        let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
        let mut request = request(never);
        request.headers_mut().insert(header::CONTENT_LENGTH, 9.into());
        assert_eq!(
            read_body(request, 8, Duration::from_secs(3600)).await,
            Err(BodyError::TooLarge { limit: 8 })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_times_out() {
        let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
        let after = Duration::from_secs(5);
        let error = read_body(request(never), 8, after).await.unwrap_err();
        assert_eq!((error.status(), error), (StatusCode::REQUEST_TIMEOUT, BodyError::Timeout { after }));
    }

    #[tokio::test]
    async fn a_broken_body_says_why() {
        let broken =
            futures::stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("the client went away"))]);
        let error = read_body(request(StreamBody::new(broken)), 8, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
        assert!(error.to_string().contains("the client went away"));
    }
}
