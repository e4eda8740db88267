//! What a server allows its clients.

use std::time::Duration;

/// Bounds of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once; more wait to be accepted.
    pub connections: usize,
    /// Requests in progress at once; more wait for [`Limits::queue`].
    pub requests: usize,
    /// How long a request waits for its turn before it is answered with 503.
    pub queue: Duration,
    /// How long a handler may take before its request is answered with 503.
    pub request: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long the head of an HTTP/1.1 request may take, from the end of the
    /// request before; it bounds an idle HTTP/1.1 connection too.
    pub header: Duration,
    /// The largest head of a request, in bytes.
    pub header_bytes: usize,
    /// How long a connection may be without any request in progress.
    pub idle: Duration,
    /// How often an HTTP/2 client is asked whether it is still there, and how
    /// long it may take to answer.
    pub keep_alive: Duration,
    /// How long requests in progress may take to finish at the end.
    pub drain: Duration,
}

impl Default for Limits {
    /// For an admission webhook: the API server gives up on a request after
    /// at most 30 seconds.
    fn default() -> Self {
        Self {
            connections: 512,
            requests: 256,
            queue: Duration::from_secs(2),
            request: Duration::from_secs(30),
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(10),
            header_bytes: 64 * 1024,
            idle: Duration::from_secs(120),
            keep_alive: Duration::from_secs(20),
            drain: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// For probes and metrics: few clients, short answers.
    pub fn small() -> Self {
        Self {
            connections: 32,
            requests: 16,
            request: Duration::from_secs(10),
            header: Duration::from_secs(5),
            header_bytes: 16 * 1024,
            idle: Duration::from_secs(60),
            drain: Duration::from_secs(2),
            ..Self::default()
        }
    }
}
