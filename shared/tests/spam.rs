//! The spam check: the configured rules, and Akismet, for which a local server stands in.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shared::app::akismet::{Akismet, Submission};
use shared::domain::markdown::{self, Shown};
use shared::domain::spam::{Action, Finding, Rules};
use shared::domain::verdict::{Failure, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

fn rules() -> Rules {
    Rules {
        deny: vec!["Cheap  Pills".into(), "straße".into()],
        review: vec!["casino".into(), "free money".into()],
        review_links: 2,
        deny_links: 4,
    }
}

const PASS: Option<Action> = None;
const REVIEW: Option<Action> = Some(Action::Review);
const DENY: Option<Action> = Some(Action::Deny);

/// The worst action of what the rules find.
fn judge_shown(rules: &Rules, shown: Shown) -> Option<Action> {
    rules.judge(&[shown]).into_iter().map(|found| found.action).max()
}

fn judge_body(rules: &Rules, body: &str) -> Option<Action> {
    judge_shown(rules, markdown::shown(body))
}

#[test]
fn a_body_without_phrases_passes() {
    assert_eq!(judge_body(&rules(), "cheap and good, no pills"), PASS);
    assert_eq!(judge_body(&Rules::default(), "cheap pills http://a.example"), PASS);
}

#[test]
fn phrases_match_whatever_their_case() {
    for body in ["CHEAP PILLS", "the cheap pills!", "STRASSE", "Straße"] {
        assert_eq!(judge_body(&rules(), body), DENY, "{body}");
    }
    assert_eq!(judge_body(&rules(), "CaSiNo"), REVIEW);
}

#[test]
fn phrases_match_whatever_form_their_letters_have() {
    for body in ["ＣＡＳＩＮＯ", "𝐜𝐚𝐬𝐢𝐧𝐨", "𝓒asi\u{2099}o", "ⓒⓐⓢⓘⓝⓞ", "ＦＲＥＥ\u{3000}ｍｏｎｅｙ"]
    {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body}");
    }
    let rules = Rules { deny: vec!["ﬁne café ΐ".into()], ..Rules::default() };
    for body in ["fine café ΐ", "FINE CAFE\u{301} Ι\u{308}\u{301}", "ﬁne cafe\u{301} ι\u{308}\u{301}"] {
        assert_eq!(judge_body(&rules, body), DENY, "{body}");
    }
    assert_eq!(judge_body(&rules, "fine cafe ι"), PASS);
}

#[test]
fn white_space_in_a_phrase_is_one_space() {
    for body in ["free \t\n money", "free\u{a0}money", "free\r\nmoney"] {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body:?}");
    }
    assert_eq!(judge_body(&rules(), "freemoney"), PASS);
}

#[test]
fn what_cannot_be_seen_does_not_split_a_phrase() {
    for body in ["ca\u{200b}sino", "c\u{200d}a\u{feff}sino", "cas\u{ad}ino", "\u{202e}casi\u{2060}no", "casi\u{fe0f}no"]
    {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body:?}");
    }
}

#[test]
fn a_denied_phrase_outweighs_one_to_review() {
    assert_eq!(judge_body(&rules(), "casino, cheap pills"), DENY);
}

#[test]
fn an_empty_phrase_matches_nothing() {
    let rules = Rules { deny: vec![String::new(), " \u{200b}".into()], ..Rules::default() };
    assert_eq!(judge_body(&rules, "anything"), PASS);
    assert_eq!(judge_body(&rules, ""), PASS);
}

#[test]
fn absolute_addresses_are_counted() {
    for (body, verdict) in [
        ("http://a.example", PASS),
        ("/a //b.example mailto:c@d.example ftp://e.example", PASS),
        ("http://a.example HTTPS://b.example", REVIEW),
        ("[a](http://a.example)<hTTp://b.example>http://c.example", REVIEW),
        ("http://a http://b https://c https://d", DENY),
        ("http://http://http://http://", DENY),
    ] {
        assert_eq!(judge_body(&rules(), body), verdict, "{body}");
    }
}

#[test]
fn a_phrase_is_found_as_it_is_rendered() {
    for body in [
        "c&#97;sino",
        "c&#x61;s&#105;no",
        "**cas**ino",
        "> ca&shy;sino",
        "free&nbsp;money",
        "free\\\nmoney",
        "# free\n\n> money",
        "`casino`",
        "    casino",
        "![casino](x.png)",
        "[cas](x)ino",
        "[x](y \"casino\")",
        "[x](http://casino.example)",
        "[x](//c%61sino.example)",
        "[x][y]\n\n[y]: http://c&#97;sino.example",
        "<http://casino.example>",
        "<b>casino",
    ] {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body:?}");
    }
    for body in ["`c&#97;sino`", "ca<i></i>sino", "ca\\sino", "[casino]: x\n\ny", "```casino\nx\n```"] {
        assert_eq!(judge_body(&rules(), body), PASS, "{body:?}");
    }
}

#[test]
fn plain_text_is_judged_as_it_was_typed() {
    assert_eq!(judge_shown(&rules(), Shown::plain("[casino]: x")), REVIEW);
    assert_eq!(judge_shown(&rules(), Shown::plain("[a](http://a.example) [b]: http://b.example")), REVIEW);
}

#[test]
fn links_are_counted_as_they_are_rendered() {
    let count = |body: &str| {
        let reached = |limit: &usize| {
            let rules = Rules { review_links: *limit, ..Rules::default() };
            judge_body(&rules, body) == REVIEW
        };
        (1..10).take_while(reached).count()
    };
    for (body, links) in [
        ("http&#58;//a.example", 1),
        ("http:/\\/a.example", 1),
        ("h*tt*p://a.example", 1),
        ("<http://a.example>", 1),
        ("<HTTPS://a.example> http://a.example", 2),
        ("[a](http://a.example)", 1),
        ("[a](http&#58;//a.example 'http://title.example')", 1),
        ("[a](//a.example)", 1),
        ("[a](///a.example)", 1),
        ("[a](https:a.example)", 1),
        ("![a](//a.example)", 1),
        ("[![a](//a.example)](//b.example)", 2),
        ("[a] [a]\n\n[a]: //a.example", 2),
        ("`http://a.example`", 1),
        ("<a href=\"http://a.example\">", 1),
        // A link counts once whatever its text is. Further addresses in its text count too.
        ("[http://a.example](http://a.example)", 1),
        ("[http://a.example](http://b.example)", 1),
        ("[http://a.example http://b.example](http://c.example)", 2),
        ("[http://a.example http://b.example](/c)", 2),
        // None of these leads to another host.
        ("[a]: http://a.example\n\nb", 0),
        ("[a](/b) [c](d) [e](mailto:f@g.example) <h@i.example>", 0),
        ("[a](ftp://a.example) //b.example", 0),
        ("[a](/\\\\b.example)", 0),
    ] {
        assert_eq!(count(body), links, "{body:?}");
    }
}

#[test]
fn a_limit_of_zero_is_none() {
    let rules = Rules { review_links: 0, deny_links: 0, ..rules() };
    assert_eq!(judge_body(&rules, &"http://a.example ".repeat(100)), PASS);
}

const SUBMISSION: Submission<'_> = Submission {
    blog: "https://site.example/",
    user_ip: "192.0.2.7",
    user_agent: "Browser/1.0 (Éa)",
    author: "Ada & Co",
    author_email: Some("ada@mail.example"),
    content: "secret body = 1 + 1\n",
    permalink: Some("https://site.example/posts/1?a=b&c"),
};

/// Answers one request with `answer` and returns the request. With an empty answer it stays silent.
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

fn finding(action: Action) -> Finding {
    Finding::new(action, Verdict::akismet())
}

fn failed(failure: Failure) -> Finding {
    Finding::new(Action::Review, Verdict::akismet_failed(failure))
}

#[tokio::test]
async fn the_answer_false_passes() {
    assert_eq!(judge("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfalse").await, None);
}

#[tokio::test]
async fn the_answer_true_is_for_review() {
    assert_eq!(judge("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue").await, Some(finding(Action::Review)));
}

#[tokio::test]
async fn spam_to_discard_is_denied() {
    let answer = "HTTP/1.1 200 OK\r\nX-akismet-pro-tip: discard\r\ncontent-length: 5\r\n\r\ntrue\n";
    assert_eq!(judge(answer).await, Some(finding(Action::Deny)));
}

#[tokio::test]
async fn any_other_answer_is_for_review() {
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
async fn a_slow_answer_is_for_review() {
    let start = Instant::now();
    assert_eq!(judge("").await, Some(failed(Failure::Timeout)));
    assert!(start.elapsed() < Akismet::TIMEOUT + Duration::from_secs(1));
}

#[tokio::test]
async fn no_connection_and_no_address_are_for_review() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let closed = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    for url in [closed.as_str(), "", "http://", "not an address"] {
        let found = Akismet::new("k3y".into(), url).judge(&SUBMISSION).await;
        assert_eq!(found, Some(failed(Failure::Timeout)), "{url}");
    }
}

#[tokio::test]
async fn akismet_is_told_what_it_needs() {
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
