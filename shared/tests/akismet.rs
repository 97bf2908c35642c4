//! Tests the Akismet client against a local fake server.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shared::app::akismet::{Akismet, Submission};
use shared::domain::spam::{Action, Finding};
use shared::domain::verdict::{Failure, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const SUBMISSION: Submission<'_> = Submission {
    blog: "https://site.example/",
    user_ip: "192.0.2.7",
    user_agent: "Browser/1.0 (Éa)",
    author: "Ada & Co",
    author_email: Some("ada@mail.example"),
    content: "secret body = 1 + 1\n",
    permalink: Some("https://site.example/posts/1?a=b&c"),
};

/// Responds to one request with `answer` and returns the request. If `answer` is empty, the server doesn't respond in time.
async fn serve(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !is_whole(&request) {
            assert_ne!(stream.read_buf(&mut request).await.expect("more of the request"), 0);
        }
        if answer.is_empty() {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        stream.write_all(answer.as_bytes()).await.expect("an answer");
        String::from_utf8(request).expect("a form is ASCII")
    });
    (address, asked)
}

fn is_whole(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    head.lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .and_then(|length| length.parse().ok())
        .is_some_and(|length: usize| body.len() >= length)
}

async fn judge(answer: &'static str) -> Option<Finding> {
    let (address, _) = serve(answer).await;
    Akismet::new("k3y".into(), &format!("http://{address}")).judge(&SUBMISSION).await
}

fn failed(failure: Failure) -> Finding {
    Finding::new(Action::Review, Verdict::akismet_failed(failure))
}

#[tokio::test]
async fn a_comment_passes_is_for_review_or_is_denied_as_the_response_says() {
    for (answer, action) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfalse", None),
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue", Some(Action::Review)),
        ("HTTP/1.1 200 OK\r\nX-akismet-pro-tip: discard\r\ncontent-length: 5\r\n\r\ntrue\n", Some(Action::Deny)),
    ] {
        assert_eq!(judge(answer).await, action.map(|action| Finding::new(action, Verdict::akismet())), "{answer}");
    }
}

#[tokio::test]
async fn any_other_response_is_for_review() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ninvalid",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-akismet-pro-tip: discard\r\ncontent-length: 6\r\n\r\nfalse!",
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 5\r\n\r\nfalse",
        "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 5\r\n\r\nfalse",
    ] {
        assert_eq!(judge(answer).await, Some(failed(Failure::Answer)), "{answer}");
    }
    assert_eq!(judge("garbage\r\n\r\n").await, Some(failed(Failure::Timeout)));
}

#[tokio::test]
async fn a_slow_response_is_for_review() {
    let start = Instant::now();
    assert_eq!(judge("").await, Some(failed(Failure::Timeout)));
    assert!(start.elapsed() < Akismet::TIMEOUT + Duration::from_secs(1));
}

#[tokio::test]
async fn a_failed_connection_or_an_invalid_address_is_for_review() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let closed = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    for url in [closed.as_str(), "", "http://", "not an address"] {
        let found = Akismet::new("k3y".into(), url).judge(&SUBMISSION).await;
        assert_eq!(found, Some(failed(Failure::Timeout)), "{url}");
    }
}

#[tokio::test]
async fn akismet_gets_the_fields_that_it_needs() {
    for (path, asked_path) in [
        ("", "/1.1/comment-check"),
        ("/", "/1.1/comment-check"),
        ("/stand/in/comment-check", "/stand/in/comment-check"),
    ] {
        let (address, asked) = serve("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfalse").await;
        let akismet = Akismet::new("k3y".into(), &format!("http://{address}{path}"));
        assert_eq!(akismet.judge(&SUBMISSION).await, None);

        let request = asked.await.expect("the server is done");
        let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with(&format!("POST {asked_path} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains("content-type: application/x-www-form-urlencoded"));
        let fields: Vec<(String, String)> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
        let expected = [
            ("api_key", "k3y"),
            ("blog", "https://site.example/"),
            ("user_ip", "192.0.2.7"),
            ("user_agent", "Browser/1.0 (Éa)"),
            ("comment_type", "comment"),
            ("comment_author", "Ada & Co"),
            ("comment_content", "secret body = 1 + 1\n"),
            ("comment_author_email", "ada@mail.example"),
            ("permalink", "https://site.example/posts/1?a=b&c"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut log = self.0.lock().expect("no test panics while it writes");
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_fault_is_logged_without_what_is_private() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    judge("HTTP/1.1 403 Forbidden\r\ncontent-length: 7\r\n\r\ninvalid").await;
    judge("garbage\r\n\r\n").await;

    let log = String::from_utf8(log.0.lock().expect("no test panics while it writes").clone()).expect("UTF-8");
    assert_eq!(log.matches("WARN").count(), 2, "{log}");
    assert!(log.contains("403"), "{log}");
    for private in ["k3y", "ada@", "192.0.2.7", "secret"] {
        assert!(!log.contains(private), "{private} in {log}");
    }
}
