//! A real HTTP server on this machine that receives webhooks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Value, json};
use server::http_server;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Settings that let webhooks call this machine.
pub const WEBHOOKS: [(&str, &str); 2] = [("SVC_WEBHOOKS", "true"), ("SVC_WEBHOOK_PRIVATE", "true")];

/// Returns a message that makes the function `delivery` notify the endpoint of a new comment in `posts/1`.
#[must_use]
pub fn webhook_message(endpoint: u64, comment: u64, message: &str) -> String {
    let due = json!({
        "Type": "Webhook", "webhook": endpoint, "message": message,
        "ev": "comment.created", "ha": 1, "c": comment, "t": "posts#1",
    });
    due.to_string()
}

#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Received {
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a body of JSON")
    }

    #[must_use]
    pub fn event(&self) -> String {
        self.json()["type"].as_str().expect("a type").to_owned()
    }

    #[track_caller]
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().expect("visible ASCII")
    }

    #[must_use]
    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }
}

/// A server that responds with 204 until a test sets another status. Stops when dropped.
pub struct Receiver {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

struct Shared {
    received: Vec<Received>,
    status: u16,
    /// `false` while responses are held.
    gate: watch::Sender<bool>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Shared { received: Vec::new(), status: 204, gate: watch::Sender::new(true) };
        let shared = Arc::new(Mutex::new(shared));
        let answering = Arc::clone(&shared);
        let task = tokio::spawn(http_server::serve(listener, move |request| {
            let (answer, mut gate) = answer(&mut lock(&answering), request);
            async move {
                // Waits for the gate to open. An error means that the receiver was dropped.
                drop(gate.wait_for(|open| *open).await);
                answer
            }
        }));
        Self { url, shared, task }
    }

    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared).received.clone()
    }

    #[must_use]
    pub fn events(&self) -> Vec<String> {
        self.received().iter().map(Received::event).collect()
    }

    /// Responds with this status from now on.
    pub fn answer(&self, status: u16) {
        lock(&self.shared).status = status;
    }

    /// Holds all responses from now on, until [`Self::release`].
    pub fn hold(&self) {
        lock(&self.shared).gate.send_replace(false);
    }

    /// Responds to held requests, and to all later ones.
    pub fn release(&self) {
        lock(&self.shared).gate.send_replace(true);
    }

    #[must_use]
    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap_or_default()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answer(shared: &mut Shared, request: Request<Bytes>) -> (Response<Bytes>, watch::Receiver<bool>) {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.to_vec()).expect("text");
    shared.received.push(Received { path: head.uri.path().to_owned(), headers: head.headers, body });
    let answer = http_server::empty(StatusCode::from_u16(shared.status).expect("a status"));
    (answer, shared.gate.subscribe())
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
