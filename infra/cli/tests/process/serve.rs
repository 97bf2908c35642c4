//! The service in production: start, log, clients and shutdown.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::{Value, json};
use tests::{Actor, MAIL, SECRET, Service, dot};

use crate::{assert_in_order, done, fails, local, on_data, printed, under, unprivileged};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const SITE: &str = "https://comments.example.org";
/// Maximum wait on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn serve_command(data_dir: &Path, words: &[&str]) -> Command {
    let mut command = on_data(&["serve", "--listen", "127.0.0.1:0"], data_dir);
    command.args(words).env("SVC_PUBLIC_URL", SITE);
    command
}

pub(crate) fn serve(data_dir: &Path, words: &[&str]) -> (Service, String) {
    start(&mut serve_command(data_dir, words))
}

pub(crate) fn start(command: &mut Command) -> (Service, String) {
    let service = Service::start(command, "{");
    let address = line(&service.printed[0])["address"].as_str().unwrap().to_owned();
    (service, address)
}

fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn guest(service: &Service, address: &str) -> Actor {
    service.at(&format!("http://{address}/svc/api/v1"))
}

pub(crate) fn token(data_dir: &Path) -> String {
    printed(on_data(&["token", "--id", "7", "--name", "Ada", "--moderator"], data_dir)).trim().to_owned()
}

fn send(address: &str, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream
}

/// Everything received until the connection closes.
fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn serve_exposes_the_api_and_no_development_pages() {
    let folder = tempfile::tempdir().unwrap();
    let (service, address) = serve(folder.path(), &[]);
    assert_eq!(line(&service.printed[0])["message"], format!("listening on http://{address}"));
    let site = service.at(&format!("http://{address}"));
    for path in ["/", "/_mail", "/_mail/1", "/nowhere"] {
        site.send_at(Method::GET, path, "").await.refused(404, "not_found");
    }
    let health = site.send_at(Method::GET, "/healthz", "").await.ok(200);
    assert_eq!(health.json, "ok");
    site.send_at(Method::HEAD, "/healthz", "").await.ok(200);
    site.send_at(Method::POST, "/healthz", "").await.ok(405);

    let ada = guest(&service, &address).with_token(&token(folder.path()));
    let comment = ada.comment("posts/1", "Hello").await;
    let image = ada.upload(&[("file", "a.gif", &dot(0))]).await.ok(201).json;
    let path = image["url"].as_str().unwrap().strip_prefix(SITE).unwrap();
    assert!(path.starts_with("/media/uploads/"), "{path}");
    let image = site.send_at(Method::GET, path, "").await.ok(200);
    assert_eq!((image.header("content-type"), image.header("x-content-type-options")), ("image/gif", "nosniff"));
    assert_eq!(image.header("cache-control"), "public, max-age=86400");
    ada.get(&format!("comments/{comment}?secret=1")).await.ok(200);

    let lines: Vec<Value> = service.stop_reading().iter().map(|text| line(text)).collect();
    let of = |status: u64, route: &str| lines.iter().find(|line| line["status"] == status && line["route"] == route);
    let created = of(201, "/svc/api/v1/{type}/{id}/comments").unwrap();
    assert!(created["duration_ms"].as_f64().unwrap() > 0.0 && created["write_units"].as_f64().unwrap() > 0.0);
    assert!(of(200, "/svc/api/v1/comments/{id}").unwrap()["read_units"].as_f64().unwrap() > 0.0);
    assert!(of(200, "/media").is_some() && of(404, "unknown").is_some(), "{lines:#?}");
    let requests = lines.iter().filter(|line| line["route"].is_string());
    assert_eq!(requests.count(), 8, "{lines:#?}");
    let log = lines.iter().map(Value::to_string).collect::<String>();
    for private in ["healthz", "nowhere", "secret", "127.0.0.1", "Hello", &comment.to_string()] {
        assert!(!log.contains(private), "{private} in {log}");
    }
}

#[tokio::test]
async fn the_log_says_why_a_text_or_a_token_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (service, address) = start(serve_command(folder.path(), &[]).env("SVC_SPAM_DENY", "casino"));
    let ada = guest(&service, &address).with_token(&token(folder.path()));
    ada.comment("posts/1", "Hello").await;
    ada.post("posts/1/comments", json!({ "body": "casino" })).await.refused(422, "spam_rejected");
    let stranger = guest(&service, &address).with_token("a.b.c");
    stranger.post("posts/1/comments", json!({ "body": "Hello" })).await.refused(401, "unauthenticated");
    let lines: Vec<Value> = service.stop_reading().iter().map(|text| line(text)).collect();
    let reasons: Vec<_> = lines.iter().filter_map(|line| line["refused_because"].as_str()).collect();
    assert_eq!(
        reasons,
        ["text refused by the spam rule phrase", "token not accepted: not a JSON Web Token with the required claims"]
    );
    let created = lines.iter().find(|line| line["status"] == 201).unwrap();
    assert!(created.get("refused_because").is_none(), "{created}");
}

#[test]
fn a_secret_of_several_lines_is_kept_as_it_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "the first line of a secret of\nsufficient length\tand the second\u{85}\u{7f}";
    let variables = ["SVC_VISITOR_SALT", "SVC_SIGN_IN_SEED", "SVC_JWT_SECRET"].map(|name| (name, lines));
    for is_set in [true, true, false] {
        let mut command = serve_command(folder.path(), &[]);
        command.envs(variables.into_iter().filter(|_| is_set));
        assert!(start(&mut command).0.stop().success());
    }
    assert_in_order(folder.path());
}

#[test]
fn wrong_settings_stop_the_start_with_2_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let with = |words: &[&str], settings: &[(&str, &str)]| {
        let mut command = serve_command(&data_dir, words);
        command.envs(settings.iter().copied());
        command
    };
    fails(with(&[], &[("SVC_PUBLIC_URL", "")]), 2, &["SVC_PUBLIC_URL", "https://comments.example.org"]);
    fails(with(&[], &[("SVC_PUBLIC_URL", "comments")]), 2, &["SVC_PUBLIC_URL"]);
    fails(with(&[], &[("SVC_PER_PAGE", "many")]), 2, &["SVC_PER_PAGE"]);
    fails(with(&[], &[("SVC_API_PREFIX", "healthz")]), 2, &["SVC_API_PREFIX"]);
    fails(with(&[], &[("SVC_API_PREFIX", "media/api")]), 2, &["SVC_API_PREFIX=\"media/api\": expected "]);
    fails(with(&[], &[MAIL.as_slice(), &[("SVC_PUBLIC_URL", SITE)]].concat()), 2, &["SVC_SMTP_URL"]);
    fails(with(&[], &[("SVC_SIGN_IN", "true")]), 2, &["SVC_MAIL_FROM"]);
    for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        fails(with(&["--listen", open], &[]), 2, &["--listen", "--trusted-proxies"]);
    }
    fails(with(&["--listen", "3000"], &[]), 2, &["--listen"]);
    fails(with(&["--trusted-proxies", "caddy"], &[]), 2, &["--trusted-proxies"]);
    assert!(!data_dir.exists());
}

#[test]
fn the_first_start_stores_the_salt_and_the_seed_permanently() {
    const OTHER: &str = "another value of more than 32 bytes";
    let folder = tempfile::tempdir().unwrap();
    let with = |settings: &[(&str, &str)]| {
        let mut command = serve_command(folder.path(), &[]);
        command.envs(settings.iter().copied());
        command
    };
    let start = |settings| assert!(Service::start(&mut with(settings), "{").stop().success());
    start(&[("SVC_VISITOR_SALT", SECRET), ("SVC_JWT_SECRET", SECRET)]);
    assert_eq!(fs::read_to_string(folder.path().join("visitor-salt")).unwrap(), SECRET);
    assert_ne!(fs::read_to_string(folder.path().join("jwt-secret")).unwrap(), SECRET);
    let seed = fs::read_to_string(folder.path().join("sign-in-seed")).unwrap();
    start(&[("SVC_JWT_SECRET", OTHER)]);
    start(&[("SVC_VISITOR_SALT", SECRET), ("SVC_SIGN_IN_SEED", &seed)]);
    fails(with(&[("SVC_VISITOR_SALT", OTHER)]), 2, &["SVC_VISITOR_SALT", "visitor-salt"]);
    fails(with(&[("SVC_SIGN_IN_SEED", OTHER)]), 2, &["SVC_SIGN_IN_SEED", "sign-in-seed"]);
}

#[test]
fn a_secret_file_that_was_cut_short_or_overwritten_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(serve(folder.path(), &[]).0.stop().success());
    for (name, variable, remedy) in [
        ("jwt-secret", "SVC_JWT_SECRET", "delete it, which invalidates"),
        ("sign-in-seed", "SVC_SIGN_IN_SEED", "delete it, which ends all sessions"),
        ("visitor-salt", "SVC_VISITOR_SALT", "delete it and set SVC_VISITOR_SALT to its old content"),
    ] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let named = format!("{} is damaged; restore it from a backup, or {remedy}", path.display());
        for cut in [&whole[..9], b"", b"\n", &[0; 43], &[0xff; 43]] {
            fs::write(&path, cut).unwrap();
            let commands = [["check"].as_slice(), &["backup", "--out", "-"], &["token", "--id", "7", "--name", "Ada"]];
            for words in commands {
                fails(on_data(words, folder.path()), 3, &[&named]);
            }
            for value in ["", SECRET] {
                let mut command = serve_command(folder.path(), &[]);
                command.env(variable, value);
                fails(command, 3, &[&named]);
            }
            assert_eq!(fs::read(&path).unwrap(), cut);
        }
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_directory_in_which_no_file_can_be_created_is_named() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    assert!(start(&mut unprivileged(&serve_command(&data_dir, &[]))).0.stop().success());
    set_permissions(&data_dir, Permissions::from_mode(0o555)).unwrap();
    let says = [&*format!("{}: Permission denied", data_dir.display()), "create files in this directory"];
    fails(unprivileged(&serve_command(&data_dir, &[])), 3, &says);
    fails(unprivileged(&on_data(&["check", "--repair"], &data_dir)), 3, &says);
    // A command that only reads works on a copy.
    done(unprivileged(&on_data(&["check"], &data_dir)));
    set_permissions(&data_dir, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_taken_port_exits_with_1_and_unusable_data_with_3() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let taken = TcpListener::bind(taken).unwrap();
    let address = taken.local_addr().unwrap();
    let command = serve_command(folder.path(), &["--listen", &address.to_string()]);
    fails(command, 1, &[&format!("port {}", address.port()), "--listen"]);
    fails(
        serve_command(folder.path(), &["--listen", "192.0.2.1:3000", "--trusted-proxies", ""]),
        1,
        &["192.0.2.1:3000", "--listen"],
    );

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    fails(serve_command(&file, &[]), 3, &["file"]);
    let data_dir = folder.path().join("data");
    let (service, _) = serve(&data_dir, &[]);
    fails(serve_command(&data_dir, &[]), 3, &["another process uses"]);
    assert!(service.stop().success());
    let table = data_dir.join("table.db");
    let names = || {
        let entries = fs::read_dir(&data_dir).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let (mut broken, before) = (fs::read(&table).unwrap(), names());
    // Overwrites a page of the database's B-tree.
    broken[4096..8192].fill(0xAB);
    for content in [b"no database".as_slice(), &broken] {
        fs::write(&table, content).unwrap();
        fails(serve_command(&data_dir, &[]), 3, &["table.db", "damaged"]);
        assert!(fs::read(&table).unwrap() == content && names() == before, "{:?}", names());
    }
}

#[test]
fn a_directory_without_a_version_is_upgraded_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    copy_tree(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data_dirs/unversioned")), &data_dir);
    let (service, address) = serve(&data_dir, &[]);
    let (runtime, guest) = (tokio::runtime::Runtime::new().unwrap(), guest(&service, &address));
    let thread = runtime.block_on(guest.list("posts/1", ""));
    assert!(thread.json.to_string().contains("Written before there were versions."), "{}", thread.json);
    let image = "/media/uploads/WUEu_ejWCIP_cI1nRhQNFnQr-1x1.gif";
    let image = runtime.block_on(guest.send_at(Method::GET, image, ""));
    assert_eq!((image.header("content-type"), image.header("cache-control")), ("image/gif", "public, max-age=86400"));
    assert_eq!(image.header("content-disposition"), "inline; filename=\"image.gif\"");
    assert!(service.stop().success());
    assert_eq!(fs::read_to_string(data_dir.join("version")).unwrap(), "1\n");
    assert_in_order(&data_dir);
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test]
async fn commands_find_the_data_directory_in_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let (service, address) = serve(folder.path(), &[]);
    let at = |words: &[&str]| {
        let mut command = local(words);
        command.env("COMMENTS_DATA_DIR", folder.path());
        command
    };
    let moderate = printed(at(&["moderate"]).env("SVC_PUBLIC_URL", SITE));
    let (page, token) = moderate.trim().split_once("#token=").unwrap();
    assert_eq!(page, format!("{SITE}/svc/api/v1/moderate"));
    guest(&service, &address).with_token(token).get("moderation/comments").await.ok(200);
    assert!(service.stop().success());
    done(at(&["check"]));
    done(at(&["export"]));
    let missing = folder.path().join("missing");
    for words in [
        &["token", "--id", "7", "--name", "Ada"][..],
        &["moderate"],
        &["check"],
        &["export"],
        &["person", "export", "--user", "7"],
    ] {
        fails(on_data(words, &missing), 3, &["missing"]);
    }
    assert!(!missing.exists());
}

#[tokio::test]
async fn the_client_is_the_one_that_a_trusted_proxy_names() {
    let folder = tempfile::tempdir().unwrap();
    let remaining = async |words: &[&str], name: &str| {
        let (service, address) = serve(&folder.path().join(name), words);
        let client = guest(&service, &address);
        let mut remaining = Vec::new();
        for client_address in ["203.0.113.9", "203.0.113.9:80", "198.51.100.1, 203.0.113.10"] {
            let answer = client.clone().with(FORWARDED_FOR, client_address).post("comments/1/like", json!({})).await;
            remaining.push(answer.header("x-ratelimit-remaining").to_owned());
        }
        remaining
    };
    assert_eq!(remaining(&[], "trusted").await, ["59", "58", "59"]);
    assert_eq!(remaining(&["--trusted-proxies", ""], "untrusted").await, ["59", "58", "57"]);
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let (_service, address) = serve(folder.path(), &[]);
    let head = |path: &str, size: usize| {
        format!(
            "POST /svc/api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\nContent-Length: {size}\r\n\r\n"
        )
    };
    for (path, size) in [("posts/1/comments", 256 * 1024 + 1), ("media", 10 * 1024 * 1024 + 1)] {
        let answer = rest(send(&address, &head(path, size)));
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(
            answer.contains("\"payload_too_large\"") && answer.contains("access-control-allow-origin: *"),
            "{answer}"
        );
    }
    let chunk = format!("{:x}\r\n{}\r\n", 256 * 1024 + 1, "a".repeat(256 * 1024 + 1));
    let chunked = "POST /svc/api/v1/posts/1/comments HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = rest(send(&address, &format!("{chunked}{chunk}")));
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let mut whole = head("posts/1/comments", 256 * 1024).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    whole.push_str(&" ".repeat(256 * 1024));
    let answer = rest(send(&address, &whole));
    assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains("413"), "{answer}");
}

#[test]
fn concurrent_bodies_of_more_than_64_megabytes_in_total_are_refused_temporarily() {
    const UPLOAD: usize = 10 * 1024 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let (_service, address) = serve(folder.path(), &[]);
    let head = format!(
        "POST /svc/api/v1/media HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {UPLOAD}\r\n\r\n"
    );
    let part = "a".repeat(UPLOAD - 1);
    let uploads: Vec<TcpStream> = (0..7).map(|_| send(&address, &format!("{head}{part}"))).collect();
    let (answers, answered) = mpsc::channel();
    for upload in &uploads {
        let (upload, answers) = (upload.try_clone().unwrap(), answers.clone());
        thread::spawn(move || answers.send(rest(upload)));
    }
    // One upload is refused, because the incomplete bodies together exceed the limit.
    let refused = answered.recv().unwrap();
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("\"unavailable\""), "{refused}");
    for mut upload in uploads {
        // A refused client may have hung up.
        let _ = upload.write_all(b"a");
    }
    drop(answers);
    let held: Vec<String> = answered.iter().filter(|answer| !answer.starts_with("HTTP/1.1 503")).collect();
    assert!(!held.is_empty() && held.iter().all(|answer| answer.starts_with("HTTP/1.1 413")), "{held:?}");
}

/// Asserts that `most` connections are served at once, and that another one waits until one of them closes.
fn the_next_waits(address: &str, most: usize) {
    const ASK: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answered = |stream: &mut TcpStream| {
        let mut status = [0; 15];
        stream.read_exact(&mut status).map(|()| assert_eq!(&status, b"HTTP/1.1 200 OK"))
    };
    let mut open: Vec<TcpStream> = (0..most).map(|_| send(address, ASK)).collect();
    for stream in &mut open {
        answered(stream).unwrap();
    }
    let mut next = send(address, ASK);
    next.set_nonblocking(true).unwrap();
    assert_eq!(answered(&mut next).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    next.set_nonblocking(false).unwrap();
    open.truncate(most - 1);
    answered(&mut next).unwrap();
}

#[test]
fn the_hundred_and_first_connection_of_an_address_waits() {
    let folder = tempfile::tempdir().unwrap();
    let (_service, address) = serve(folder.path(), &["--trusted-proxies", ""]);
    the_next_waits(&address, 100);
}

#[test]
fn the_thousand_and_first_connection_waits_and_the_limit_of_files_is_raised() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // This process needs a file descriptor per connection too.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // All clients here are proxies, so the limit for an address doesn't apply.
    let few_files = ["-c", "ulimit -S -n 128; exec \"$0\" \"$@\""];
    let (_service, address) = start(&mut under("sh", &few_files, &serve_command(folder.path(), &[])));
    the_next_waits(&address, 1_000);
}

#[test]
fn a_stop_finishes_active_requests_and_closes_idle_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (mut service, address) = serve(folder.path(), &[]);
    let idle = send(&address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let new = TcpStream::connect(&address).unwrap();
    new.set_read_timeout(Some(PATIENCE)).unwrap();
    let token = token(folder.path());
    let body = r#"{"body": "the last one"}"#;
    let head = format!(
        "POST /svc/api/v1/posts/1/comments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut begun = send(&address, &head);
    let mut goes_on = [0; 25];
    begun.read_exact(&mut goes_on).unwrap();
    service.signal("TERM");
    assert!(rest(idle).ends_with("ok") && rest(new).is_empty());
    assert!(service.is_running());
    begun.write_all(body.as_bytes()).unwrap();
    let answer = rest(begun);
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("the last one"), "{answer}");
    assert!(service.wait().success());
    assert!(!folder.path().join("backup.sock").exists());
    assert_in_order(folder.path());
}

#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_is_notified_of_readiness_and_of_the_stop() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let name = format!("comments-test-{}", std::process::id());
    let sockets = [
        (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
        (UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(), format!("@{name}")),
    ];
    for (socket, named) in sockets {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let heard = || {
            let mut bytes = [0; 64];
            let length = socket.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        let mut command = serve_command(&folder.path().join("data"), &[]);
        let service = Service::start(command.env("NOTIFY_SOCKET", named), "{");
        assert_eq!(heard(), "READY=1");
        assert!(service.stop().success());
        assert_eq!(heard(), "STOPPING=1");
    }
}
