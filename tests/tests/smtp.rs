//! Emails through a real SMTP server, `smtp/server.py`. `.ci/run smtp` runs these tests. They need Python with
//! `aiosmtpd`, and a certificate for `localhost` in `SMTP_CERTIFICATE` with its key in `SMTP_KEY`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use delivery::Mailer;
use serde_json::json;
use shared::aws::ses::{NotSent, RawMail};
use shared::domain::secret::Secret;
use tempfile::TempDir;
use tests::{MAIL, World};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn variable(name: &str) -> String {
    tests::setting(name).unwrap_or_else(|| panic!("{name} is not set"))
}

fn serve(port: u16, folder: &Path, mode: &str) -> Server {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/smtp/server.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(port.to_string()).arg(folder).arg(mode).stdout(Stdio::piped());
    if mode != "plain" {
        command.arg(variable("SMTP_CERTIFICATE")).arg(variable("SMTP_KEY"));
    }
    let mut child = command.spawn().expect("python3 starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("an output")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready");
    Server(child)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn received(folder: &TempDir) -> Vec<String> {
    let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[tokio::test]
#[ignore = "needs an SMTP server; .ci/run smtp"]
async fn an_email_waits_for_a_server_that_is_down() {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let url = format!("smtp://user:p%40ss@localhost:{port}");
    let world = World::with(&[&MAIL[..], &[("SVC_SMTP_URL", &*url)]].concat());
    let ada = world.claiming(&json!({ "sub": "7", "name": "Ada", "email": "ada@example.org" }));
    let asked = json!({ "body": "x", "subscribe_to_replies": true });
    let asked = ada.post("posts/1/comments", asked).await.ok(201).id();
    world.user(8, "Bob").reply("posts/1", asked, "an answer").await;
    for _ in 0..3 {
        world.wait_until_idle().await;
        world.pass(Duration::from_mins(2));
    }
    world.wait_until_idle().await;
    let server = serve(port, folder.path(), "plain");
    world.finish_jobs().await;
    let mails = received(&folder);
    assert_eq!(mails.len(), 1);
    assert!(mails[0].starts_with("X-Envelope: comments@example.org ada@example.org tls=False"), "{}", mails[0]);
    assert!(mails[0].contains("Subject: Bob replied to your comment: posts/1"), "{}", mails[0]);

    drop(server);
    world.user(8, "Bob").reply("posts/1", asked, "another").await;
    world.wait_until_idle().await;
    world.pass(Duration::from_mins(16));
    world.wait_until_idle().await;
    let _server = serve(port, folder.path(), "plain");
    world.finish_jobs().await;
    // A new server process starts numbering emails at one.
    assert!(received(&folder)[0].contains("> another"));
}

fn mail(to: &str) -> RawMail {
    RawMail {
        from: "comments@example.org".to_owned(),
        to: to.to_owned(),
        raw: b"Subject: Hello\r\n\r\nAda\r\n".to_vec(),
        recipient: "u7".to_owned(),
    }
}

async fn send(url: String, root: Option<&[u8]>, to: &str) -> Result<(), NotSent> {
    Mailer::smtp(&Secret::from(url), root).unwrap().send(&mail(to)).await
}

#[tokio::test]
#[ignore = "needs an SMTP server; .ci/run smtp"]
async fn emails_go_by_tls_to_a_trusted_server_that_accepts_the_login() {
    let root = fs::read(variable("SMTP_CERTIFICATE")).unwrap();
    for (mode, scheme, query) in [("starttls", "smtp", "?tls=required"), ("tls", "smtps", "")] {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let _server = serve(port, folder.path(), mode);
        let url = |password: &str| format!("{scheme}://user:{password}@localhost:{port}{query}");
        send(url("p%40ss"), Some(&root), "ada@example.org").await.unwrap();
        let mails = received(&folder);
        assert!(mails[0].contains("ada@example.org tls=True"), "{}", mails[0]);
        for (url, root, to) in [
            (url("wrong"), Some(&*root), "ada@example.org"),
            (url("p%40ss"), None, "ada@example.org"),
            (url("p%40ss"), Some(&*root), "full@example.org"),
        ] {
            let error = send(url, root, to).await.unwrap_err();
            assert!(!error.unknown && !error.to_string().contains('@'), "{mode}: {error}");
        }
        assert_eq!(received(&folder).len(), 1);
    }
}
