//! A local HTTP server for tests that returns a fixed response and records requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

#[derive(Clone)]
pub(crate) struct Loopback {
    pub(crate) url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    status: u16,
    headers: String,
    body: String,
    delay: Duration,
    requests: Vec<String>,
}

impl Loopback {
    pub(crate) async fn start(body: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared {
            status: 200,
            headers: String::new(),
            body: body.into(),
            delay: Duration::ZERO,
            requests: Vec::new(),
        }));
        let server = Self { url, shared };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = accepting.clone();
                tokio::spawn(async move { server.answer(stream).await });
            }
        });
        server
    }

    pub(crate) fn set(&self, status: u16, body: impl Into<String>) {
        let mut shared = self.shared.lock().unwrap();
        shared.status = status;
        shared.body = body.into();
    }

    /// `headers` consists of complete lines, including their line endings.
    pub(crate) fn set_headers(&self, headers: &str) {
        self.shared.lock().unwrap().headers = headers.to_owned();
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.shared.lock().unwrap().delay = delay;
    }

    pub(crate) fn hits(&self) -> usize {
        self.requests().len()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.lock().unwrap().requests.clone()
    }

    /// Responds to one request and closes the connection.
    pub(crate) async fn answer(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let request = read(&mut stream).await;
        let (answer, delay) = {
            let mut shared = self.shared.lock().unwrap();
            shared.requests.push(request);
            let Shared { status, headers, body, .. } = &*shared;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
            );
            (answer, shared.delay)
        };
        tokio::time::sleep(delay).await;
        // The client may have disconnected.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut request = String::new();
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, length)| length.parse().unwrap());
            if body.len() >= length {
                return request;
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return request,
            Ok(read) => request.push_str(&String::from_utf8_lossy(&buffer[..read])),
        }
    }
}
