//! Simulates power failures. A trace of system calls shows which bytes and file names were synced at each moment. The
//! service restarts with only the synced data, or with some of the unsynced data as well. Nothing acknowledged may be
//! lost, and the table must be consistent.
//!
//! The tests need `strace`, so only `.ci/run tests` runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use tests::{MAIL, Received, Receiver, SECRET, Service, WEBHOOKS, dot, sign};

use crate::killed::{files, serve_all, token as member_token};
use crate::serve::{SITE, guest, serve_command, start};
use crate::{assert_in_order, count, on_data, printed, under};

/// The default of the environment variable `POWER_CUTS`.
const CUTS: u64 = 20;
const TRACED: &str = "trace=openat,pwrite64,write,writev,sendto,sendmsg,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,\
                      linkat,unlink,unlinkat,mkdir,mkdirat";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs strace"]
async fn after_a_power_cut_everything_acknowledged_is_stored_and_sent_and_the_table_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (data, trace) = (folder.path().join("data"), folder.path().join("trace"));
    // The receiver refuses all messages before the power cut.
    let receiver = Receiver::start().await;
    receiver.answer(503);
    let strace = ["-D", "-f", "-qq", "-y", "-x", "-s", "20000000", "-e", TRACED, "-e", "signal=none", "-o"];
    let (service, address) =
        start(&mut under("strace", &[&strace[..], &[trace.to_str().unwrap()]].concat(), &production(&data)));
    write(&service, &address, &receiver.url).await;
    // Reads the output to its end, which waits for the tracer to finish the trace.
    service.stop_reading();
    receiver.answer(204);

    let disk = Disk::read(&fs::read_to_string(&trace).unwrap(), &data);
    let first = disk.events.iter().position(|event| matches!(event, Event::Acknowledged(_))).unwrap();
    let cuts = usize::try_from(count("POWER_CUTS", CUTS)).unwrap();
    let last = disk.events.len();
    let mut acknowledged = 0;
    for cut in 0..cuts {
        let end = (first + 1 + (last - first - 1) * cut / cuts.max(2).saturating_sub(1).max(1)).min(last);
        let after = folder.path().join("after");
        // In every second power cut, some unsynced data has also reached the disk.
        let told = disk.after(end, (cut % 2 == 1).then_some(cut as u64), &after);
        acknowledged = acknowledged.max(told.len());
        let received = receiver.received().len();
        assert!(start(&mut production(&after)).0.stop().success());
        finish(&after);
        assert_in_order(&after);
        let sent = Sent::read(&after, &receiver.received()[received..]);
        let exported = printed(on_data(&["export"], &after));
        for told in told {
            let lost = match told.strip_prefix("/media/") {
                Some(image) => (!after.join("objects/media").join(image).exists()).then_some("an image"),
                None => match exported.lines().find(|line| line.contains(&told)) {
                    None => Some("a comment"),
                    Some(comment) => sent.lacks(comment, &told),
                },
            };
            assert!(lost.is_none(), "cut {cut} at {end} of {last} lost {} of {told}", lost.unwrap_or_default());
        }
        fs::remove_dir_all(&after).unwrap();
    }
    assert!(acknowledged >= 32, "{acknowledged}");
}

/// A service whose mail server is down.
fn production(data: &Path) -> Command {
    let mut serve = serve_command(data, &[]);
    serve.envs(MAIL).envs(WEBHOOKS).env("SVC_MAIL_WAIT", "0").env("SVC_SMTP_URL", "smtp://127.0.0.1:9");
    serve.env("SVC_PUBLIC_URL", SITE).env("SVC_JWT_SECRET", SECRET).env("SVC_WRITE_LIMIT", "1000000");
    serve
}

/// Restarts the service until no work is left, which can take several starts on a busy machine.
fn finish(data: &Path) {
    for _ in 0..10 {
        assert!(serve_all(data).stop().success());
        if fs::read(data.join("lock")).unwrap().is_empty() {
            return;
        }
    }
    panic!("the work is never finished");
}

/// Writes comments that notify a subscriber and a webhook, and uploads images.
async fn write(service: &Service, address: &str, receiver: &str) {
    let grace = guest(service, address).with_token(&moderator_token());
    let hook = json!({ "url": format!("{receiver}/hook"), "events": ["comment.created"] });
    grace.post("moderation/webhooks", hook).await.ok(201);
    let ada = guest(service, address).with_token(&member_token(8, "Ada", 60));
    let asked = json!({ "body": "Who replies?", "subscribe_to_replies": true });
    let parent = ada.post("posts/1/comments", asked).await.ok(201).id();
    for round in 0..8 {
        let writes = (0..4).map(|writer| {
            let grace = grace.clone();
            async move {
                let reply = grace.reply("posts/1", parent, &format!("acknowledged-{round}-{writer}-end")).await;
                grace.like(reply).await.ok(200);
                if writer == 0 {
                    grace.upload(&[("file", "a.gif", &dot(round))]).await.ok(201);
                }
            }
        });
        join_all(writes).await;
    }
}

fn moderator_token() -> String {
    let now = Timestamp::now().as_second();
    let claims = json!({ "sub": "7", "name": "Grace", "roles": ["moderator"], "iat": now, "exp": now + 3600 });
    sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET)
}

/// Messages sent after a power cut, and messages still waiting.
struct Sent {
    mails: Vec<String>,
    /// Comments whose webhook arrived.
    webhooks: BTreeSet<u64>,
    waiting: Vec<Value>,
}

impl Sent {
    fn read(data: &Path, received: &[Received]) -> Self {
        let mails = files(data.join("mail"), "eml").iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let webhooks = received.iter().filter_map(|message| message.json()["data"]["id"].as_u64()).collect();
        let waiting = files(data.join("queue/DeliveriesQueue"), "json").into_iter().map(|file| {
            let message: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            serde_json::from_str(message["body"].as_str().unwrap()).unwrap()
        });
        Self { mails, webhooks, waiting: waiting.collect() }
    }

    /// The kind of message about this exported comment that was lost, if any: neither sent nor waiting.
    fn lacks(&self, comment: &str, body: &str) -> Option<&'static str> {
        let comment: Value = serde_json::from_str(comment).unwrap();
        let id = comment["comment"]["id"].as_u64().unwrap();
        let waits =
            |kind: &str| self.waiting.iter().any(|due| due["Type"] == kind && (kind == "Mail" || due["c"] == id));
        if !self.webhooks.contains(&id) && !waits("Webhook") {
            Some("the webhook")
        } else if !self.mails.iter().any(|mail| mail.contains(body)) && !waits("Mail") {
            Some("the email")
        } else {
            None
        }
    }
}

enum Event {
    /// A new file, or a new folder if the flag is true.
    Made(PathBuf, bool),
    Truncated(PathBuf, usize),
    /// Bytes written at this offset; `None` is the end of the file.
    Wrote(PathBuf, Option<usize>, Vec<u8>),
    Renamed(PathBuf, PathBuf),
    Linked(PathBuf, PathBuf),
    Removed(PathBuf),
    /// A sync that began after this number of events and covers them.
    Synced(PathBuf, usize),
    Acknowledged(String),
}

/// The file events below a folder and the acknowledged writes, in order.
struct Disk {
    root: PathBuf,
    events: Vec<Event>,
}

impl Disk {
    fn read(trace: &str, root: &Path) -> Self {
        let mut disk = Self { root: root.to_owned(), events: Vec::new() };
        let mut unfinished: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        for text in trace.lines() {
            let (thread, call) = text.split_once(' ').unwrap();
            let call = call.trim_start();
            if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
                unfinished.insert(thread, (begun, disk.events.len()));
            } else if let Some((_, rest)) = call.strip_prefix("<... ").and_then(|call| call.split_once(" resumed>")) {
                let (begun, at) = unfinished.remove(thread).unwrap();
                disk.call(&format!("{begun}{rest}"), at);
            } else {
                disk.call(call, disk.events.len());
            }
        }
        disk
    }

    /// Adds the events of one system call. `began` is the number of events before the call began.
    fn call(&mut self, call: &str, began: usize) {
        let Some((call, result)) = call.rsplit_once(" = ") else { return };
        if result.starts_with('-') {
            return;
        }
        let (name, arguments) = call.trim_end().split_once('(').unwrap();
        let texts = || texts(arguments);
        let open = arguments.split_once('<').and_then(|(_, rest)| Some(PathBuf::from(rest.split_once('>')?.0)));
        let last =
            |arguments: &str| arguments.trim_end_matches(')').rsplit(", ").next().unwrap().parse::<usize>().unwrap();
        match name {
            "write" | "writev" | "sendto" | "sendmsg" if arguments.contains("HTTP/1.1 201") => {
                let sent = String::from_utf8_lossy(&texts().concat()).into_owned();
                let comment = sent.split_once("acknowledged-").and_then(|(_, rest)| rest.split_once("-end"));
                let image = sent.split_once("/media/").and_then(|(_, rest)| rest.split_once('"'));
                let told = comment.map(|(name, _)| format!("acknowledged-{name}-end"));
                let told = told.or_else(|| image.map(|(name, _)| format!("/media/{name}")));
                self.events.extend(told.map(Event::Acknowledged));
            }
            "openat" if arguments.contains("O_CREAT") => {
                // The result has the full path even if the call used a relative one.
                let path = result.split_once('<').and_then(|(_, rest)| Some(rest.split_once('>')?.0));
                let Some(path) = path.and_then(|path| self.ours(PathBuf::from(path))) else { return };
                self.events.push(Event::Made(path.clone(), false));
                if arguments.contains("O_TRUNC") {
                    self.events.push(Event::Truncated(path, 0));
                }
            }
            "mkdir" | "mkdirat" => self.named(&texts(), |path, _| Event::Made(path, true)),
            "unlink" | "unlinkat" => self.named(&texts(), |path, _| Event::Removed(path)),
            "rename" | "renameat" | "renameat2" => self.named(&texts(), Event::Renamed),
            "link" | "linkat" => self.named(&texts(), Event::Linked),
            _ => {
                let Some(path) = open.and_then(|path| self.ours(path)) else { return };
                self.events.push(match name {
                    "fsync" | "fdatasync" => Event::Synced(path, began),
                    "ftruncate" => Event::Truncated(path, last(arguments)),
                    "pwrite64" => Event::Wrote(path, Some(last(arguments)), texts().concat()),
                    _ => Event::Wrote(path, None, texts().concat()),
                });
            }
        }
    }

    fn named(&mut self, texts: &[Vec<u8>], event: impl FnOnce(PathBuf, PathBuf) -> Event) {
        let path = |text: &Vec<u8>| self.ours(PathBuf::from(String::from_utf8(text.clone()).unwrap()));
        let Some(first) = texts.first().and_then(path) else { return };
        let last = texts.last().and_then(path).unwrap_or_default();
        self.events.push(event(first, last));
    }

    /// The path, if it's below the root and the file's content matters. `SQLite` rebuilds its `-shm` file.
    fn ours(&self, path: PathBuf) -> Option<PathBuf> {
        (path.starts_with(&self.root) && !path.to_string_lossy().ends_with("-shm")).then_some(path)
    }

    /// Writes the state of the disk after a power failure at event `end` to the folder `to`. With a seed, includes some
    /// of the unsynced bytes. Returns the acknowledged writes.
    fn after(&self, end: usize, seed: Option<u64>, to: &Path) -> BTreeSet<String> {
        let (mut files, mut names, mut kept, mut told) =
            (Vec::<File>::new(), BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let root = files.len();
        files.push(File::default());
        kept.insert(self.root.clone(), root);
        names.insert(self.root.clone(), root);
        for (number, event) in self.events[..end].iter().enumerate() {
            match event {
                Event::Made(path, is_folder) => {
                    names.entry(path.clone()).or_insert_with(|| {
                        files.push(File { is_folder: *is_folder, ..File::default() });
                        files.len() - 1
                    });
                }
                Event::Truncated(path, size) => files[names[path]].changes.push((number, Change::Truncate(*size))),
                Event::Wrote(path, at, bytes) => {
                    if let Some(file) = names.get(path) {
                        files[*file].changes.push((number, Change::Write(*at, bytes)));
                    }
                }
                Event::Renamed(from, to) => {
                    let file = names.remove(from).unwrap();
                    names.insert(to.clone(), file);
                }
                Event::Linked(from, to) => {
                    let file = names[from];
                    names.insert(to.clone(), file);
                }
                Event::Removed(path) => drop(names.remove(path)),
                Event::Synced(path, began) => {
                    let Some(file) = names.get(path) else { continue };
                    files[*file].synced = files[*file].synced.max(*began);
                    // Syncing a folder makes the names in it durable.
                    let of_folder = |name: &PathBuf| name.parent() == Some(path.as_path());
                    kept.retain(|name, _| !of_folder(name));
                    let now = names.iter().filter(|(name, _)| of_folder(name));
                    kept.extend(now.map(|(name, file)| (name.clone(), *file)));
                }
                Event::Acknowledged(what) => drop(told.insert(what.clone())),
            }
        }
        fs::create_dir_all(to).unwrap();
        for (name, file) in &kept {
            let is_there =
                name.ancestors().take_while(|path| path.starts_with(&self.root)).all(|path| kept.contains_key(path));
            if !is_there || *file == root {
                continue;
            }
            let place = to.join(name.strip_prefix(&self.root).unwrap());
            if files[*file].is_folder {
                fs::create_dir_all(place).unwrap();
            } else {
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::write(place, files[*file].content(seed)).unwrap();
            }
        }
        told
    }
}

#[derive(Default)]
struct File<'a> {
    is_folder: bool,
    changes: Vec<(usize, Change<'a>)>,
    /// The number of the event before which all changes are synced.
    synced: usize,
}

enum Change<'a> {
    Truncate(usize),
    Write(Option<usize>, &'a [u8]),
}

impl File<'_> {
    fn content(&self, seed: Option<u64>) -> Vec<u8> {
        let mut content = Vec::new();
        for (number, change) in &self.changes {
            let by_chance =
                seed.is_some_and(|seed| (*number as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1);
            if *number >= self.synced && !by_chance {
                continue;
            }
            match change {
                Change::Truncate(size) => content.resize(*size, 0),
                Change::Write(at, bytes) => {
                    let at = at.unwrap_or(content.len());
                    content.resize(content.len().max(at + bytes.len()), 0);
                    content[at..at + bytes.len()].copy_from_slice(bytes);
                }
            }
        }
        content
    }
}

/// The string arguments of a call, as bytes.
fn texts(arguments: &str) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let mut bytes = arguments.bytes();
    while bytes.by_ref().any(|byte| byte == b'"') {
        let mut text = Vec::new();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => break,
                b'\\' => text.push(match bytes.next().unwrap() {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 11,
                    b'f' => 12,
                    b'x' => {
                        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                        u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
                    }
                    other => other,
                }),
                byte => text.push(byte),
            }
        }
        texts.push(text);
    }
    texts
}
