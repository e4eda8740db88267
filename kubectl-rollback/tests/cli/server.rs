//! A scripted API server: plain HTTP/1.1, one request a connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A request as it came in.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// `GET`, `POST`, `PATCH`.
    pub(super) method: String,
    /// Path and query.
    pub(super) target: String,
    /// Header lines, names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// The body, if it is JSON.
    pub(super) body: Value,
}

impl Request {
    /// The values of a header.
    pub(super) fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Whether the path (without query) ends so.
    pub(super) fn is(&self, method: &str, end: &str) -> bool {
        self.method == method && self.target.split('?').next().unwrap_or_default().ends_with(end)
    }

    /// Whether the query holds this.
    pub(super) fn asks(&self, query: &str) -> bool {
        self.target.contains(query)
    }
}

/// What to answer.
pub(super) struct Answer {
    code: u16,
    warnings: Vec<String>,
    body: String,
    silent: bool,
}

impl Answer {
    /// JSON with a code.
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self { code, warnings: Vec::new(), body: body.to_string(), silent: false }
    }

    /// Text that is no JSON.
    pub(super) fn text(code: u16, body: &str) -> Self {
        Self { code, warnings: Vec::new(), body: body.to_owned(), silent: false }
    }

    /// A list.
    pub(super) fn list(items: &[Value]) -> Self {
        Self::json(
            200,
            &json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}),
        )
    }

    /// Events of a watch, which ends then.
    pub(super) fn watch(objects: &[Value]) -> Self {
        let events =
            objects.iter().map(|object| format!("{}\n", json!({"type": "MODIFIED", "object": object})));
        Self::text(200, &events.collect::<Vec<_>>().concat())
    }

    /// A Status.
    pub(super) fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::json(
            code,
            &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code}),
        )
    }

    /// A 404 of an object.
    pub(super) fn missing(name: &str) -> Self {
        Self::json(
            404,
            &json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": format!("{name} not found"), "details": {"name": name}}),
        )
    }

    /// Nothing, with the connection kept open.
    pub(super) fn silence() -> Self {
        Self { code: 0, warnings: Vec::new(), body: String::new(), silent: true }
    }

    /// The same with a warning of the API server.
    pub(super) fn warning(mut self, text: &str) -> Self {
        self.warnings.push(text.to_owned());
        self
    }
}

/// A running server; its thread ends with the test's process.
pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    news: Receiver<Request>,
}

impl Server {
    /// Starts a server that answers by a script.
    pub(super) fn start(script: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let (tell, news) = channel();
        let log = seen.clone();
        std::thread::spawn(move || {
            // Connections that are to stay silent are kept open here.
            let mut silent = Vec::new();
            for stream in listener.incoming().flatten() {
                silent.extend(serve(stream, &script, &log, &tell));
            }
        });
        Self { address, seen, news }
    }

    /// The address.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// Bodies of the requests with that method.
    pub(super) fn sent(&self, method: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.method == method).collect()
    }

    /// Waits until a request fits.
    pub(super) fn wait_for(&self, fits: impl Fn(&Request) -> bool) {
        while let Ok(request) = self.news.recv_timeout(std::time::Duration::from_secs(60)) {
            if fits(&request) {
                return;
            }
        }
        panic!("the request did not come; seen: {:?}", self.requests());
    }
}

fn serve(
    mut stream: TcpStream,
    script: &impl Fn(&Request) -> Answer,
    log: &Mutex<Vec<Request>>,
    tell: &Sender<Request>,
) -> Option<TcpStream> {
    let request = read(&stream)?;
    let answer = script(&request);
    log.lock().unwrap().push(request.clone());
    // Nobody may be listening any more.
    let _ = tell.send(request);
    if answer.silent {
        return Some(stream);
    }
    let warnings: Vec<String> =
        answer.warnings.iter().map(|text| format!("Warning: 299 - \"{text}\"\r\n")).collect();
    let warnings = warnings.concat();
    let head = format!(
        "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nConnection: close\r\n{warnings}Content-Length: {}\r\n\r\n",
        answer.code,
        answer.body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.body.as_bytes()));
    None
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}
