//! `cargo local` killed in the middle of its work: what it answered is there after the next start, and the table in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue::S;
use local::engine::Engine;
use serde_json::{Value, json};

const ROUNDS: u64 = 3;
const WRITERS: u64 = 6;
/// Written in a round before it ends.
const COMMENTS: u64 = 60;
/// With a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone)]
struct Api {
    address: SocketAddr,
    member: String,
}

struct Service {
    process: Child,
    api: Api,
}

/// What the writers were told.
#[derive(Default)]
struct Told {
    /// With the parents.
    created: BTreeMap<u64, Option<u64>>,
    /// Asked to be deleted, with an answer or not.
    deleted: BTreeSet<u64>,
}

fn local(words: &[&str], data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
    command.args(words).arg("--data-dir").arg(data_dir);
    command.env("SVC_WRITE_LIMIT", "1000000").env("SVC_READ_LIMIT", "1000000");
    command
}

impl Service {
    fn start(data_dir: &Path) -> Self {
        let mut command = local(&["--port", "0"], data_dir);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        let address = next().strip_prefix("listening on http://").unwrap().parse().unwrap();
        next();
        let member = next().split_whitespace().last().unwrap().to_owned();
        // It has said all that it says there.
        next();
        Self { process, api: Api { address, member } }
    }

    fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }

    /// As a user would; true when it ended well.
    fn stop(&mut self) -> bool {
        assert!(Command::new("kill").arg(self.process.id().to_string()).status().unwrap().success());
        self.process.wait().unwrap().success()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Api {
    /// None when the service is gone before the answer is whole.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        self.send(method, path, "application/json", body.to_string().as_bytes())
    }

    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let head = format!(
            "{method} /svc/api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.member,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, if body.is_empty() { Value::Null } else { serde_json::from_str(body).ok()? }))
    }

    /// Until the service is gone.
    fn write(&self, number: u64, told: &Mutex<Told>) -> Option<()> {
        let mut parents: Vec<u64> = Vec::new();
        for turn in 0_u64.. {
            let parent = parents.last().copied().filter(|_| !turn.is_multiple_of(5));
            let comment = json!({ "body": format!("{number} {turn}"), "parent_id": parent });
            let (status, answer) = self.ask("POST", "posts/1/comments", &comment)?;
            assert_eq!(status, 201, "{answer}");
            let id = answer["data"]["id"].as_u64()?;
            told.lock().unwrap().created.insert(id, parent);
            if parent.is_none() {
                parents.push(id);
            }
            self.ask("POST", &format!("comments/{id}/like"), &Value::Null)?;
            if turn % 4 == 3 {
                let gone = parents.remove(0);
                told.lock().unwrap().deleted.insert(gone);
                self.ask("DELETE", &format!("comments/{gone}"), &Value::Null)?;
            }
        }
        None
    }
}

#[test]
fn what_was_answered_is_there_and_the_table_in_order() {
    let data_dir = tempfile::tempdir().unwrap();
    let told = Mutex::new(Told::default());
    for round in 0..ROUNDS {
        let mut service = Service::start(data_dir.path());
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (api, told) = (service.api.clone(), &told);
                scope.spawn(move || api.write(round * WRITERS + writer, told));
            }
            let enough = usize::try_from((round + 1) * COMMENTS).unwrap();
            let start = Instant::now();
            while told.lock().unwrap().created.len() < enough && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(10));
            }
            service.kill();
        });
    }
    let Told { created, deleted } = told.into_inner().unwrap();
    assert!(deleted.len() > 5, "too little was deleted");

    let mut service = Service::start(data_dir.path());
    let gone = |id: &u64| deleted.contains(id);
    for (id, parent) in &created {
        if !gone(id) && !parent.as_ref().is_some_and(gone) {
            let (status, answer) = service.api.ask("GET", &format!("comments/{id}/replies"), &Value::Null).unwrap();
            assert_eq!(status, 200, "{id}: {answer}");
        }
    }
    assert!(service.stop());
    let check = local(&["check"], data_dir.path()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn what_hung_on_the_last_writes_is_made_up_for_at_the_next_start() {
    const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let data_dir = tempfile::tempdir().unwrap();
    let mut service = Service::start(data_dir.path());
    let write = |parent: Option<u64>| {
        let comment = json!({ "body": "x", "parent_id": parent });
        let (_, answer) = service.api.ask("POST", "posts/1/comments", &comment).unwrap();
        answer["data"]["id"].as_u64().unwrap()
    };
    let parent = write(None);
    write(Some(parent));
    let form = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    let form = [form, PIXEL, b"\r\n--b--\r\n"].concat();
    let (status, image) = service.api.send("POST", "media", "multipart/form-data; boundary=b", &form).unwrap();
    assert_eq!(status, 201, "{image}");
    let thumbnail = image["thumbnail_url"].as_str().unwrap().rsplit_once("/media/").unwrap().1;
    let thumbnail = data_dir.path().join("objects/media").join(thumbnail);
    assert!(service.stop());

    // As if the process had gone between the writes and what follows from them.
    std::fs::remove_file(&thumbnail).unwrap();
    remove_comment(data_dir.path(), parent);
    std::fs::write(data_dir.path().join("lock"), "in use\n").unwrap();
    let uploaded = data_dir.path().join("objects/media/uploads");
    let uploaded = std::fs::read_dir(uploaded).unwrap().next().unwrap().unwrap().path();
    let later = std::fs::metadata(data_dir.path().join("lock")).unwrap().modified().unwrap();
    std::fs::File::options().append(true).open(uploaded).unwrap().set_modified(later).unwrap();

    assert!(!local(&["check"], data_dir.path()).output().unwrap().status.success());
    let mut service = Service::start(data_dir.path());
    assert!(service.stop());
    assert!(thumbnail.exists());
    assert!(local(&["check"], data_dir.path()).output().unwrap().status.success());
}

#[tokio::main]
async fn remove_comment(data_dir: &Path, id: u64) {
    let table = Engine::open(&data_dir.join("table.db")).unwrap().client();
    let delete =
        table.delete_item().table_name("comments").key("pk", S(format!("C#{id}"))).key("sk", S("C".to_owned()));
    delete.send().await.unwrap();
}
