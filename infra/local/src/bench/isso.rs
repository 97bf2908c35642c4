//! Isso, the comment server from Python's package index, with the same content.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::load::Ask;
use super::process::Server;
use super::seed::prose;
use super::{Failure, REPLIES, Threads};

const PATIENCE: u32 = 100;

pub(super) struct Isso {
    pub(super) server: Server,
    address: String,
    /// Top-level comments by thread.
    ids: Vec<Vec<i64>>,
}

impl Isso {
    /// `folder` is where its configuration and its table go.
    pub(super) async fn start(program: &Path, folder: &Path, threads: &Threads) -> Result<Self, Failure> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let (configuration, table) = (folder.join("isso.cfg"), folder.join("isso.db"));
        // Anybody may ask as often as they like, from whatever address they say.
        let text = format!(
            "[general]\ndbpath = {}\nhost = http://{address}\n\
             [server]\nlisten = http://{address}\ntrusted-proxies = 127.0.0.1\n\
             [guard]\nenabled = false\n",
            table.display()
        );
        std::fs::write(&configuration, text)?;
        let mut command = Command::new(program);
        command.arg("-c").arg(&configuration).arg("run").stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server::start(&mut command)?;
        for _ in 0..PATIENCE {
            if TcpStream::connect(address).is_ok() {
                let ids = fill(&table, threads)?;
                return Ok(Self { server, address: format!("http://{address}"), ids });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("Isso does not listen".into())
    }

    fn post(&self, path: &str, visitor: usize, body: &Value) -> Request<Full<Bytes>> {
        let request = Request::post(format!("{}{path}", self.address))
            .header("content-type", "application/json")
            .header("origin", &self.address)
            .header("x-forwarded-for", format!("10.{}.{}.1", visitor / 256 % 256, visitor % 256));
        request.body(Full::from(body.to_string())).expect("a request's parts are well formed")
    }

    pub(super) fn list(&self, thread: usize) -> Request<Full<Bytes>> {
        let uri =
            format!("{}/?uri=/{thread}&limit={}&nested_limit={REPLIES}&sort=newest", self.address, super::PER_PAGE);
        super::bare(Request::get(uri))
    }
}

/// What it is asked: lists, likes, new comments of a thread.
pub(super) fn asks(isso: &Arc<Isso>, thread: usize) -> [(&'static str, Ask); 3] {
    let ask = |make: fn(&Isso, usize, usize) -> Request<Full<Bytes>>| -> Ask {
        let isso = Arc::clone(isso);
        Arc::new(move |number| make(&isso, thread, number))
    };
    [
        ("list", ask(|isso, thread, _| isso.list(thread))),
        (
            "like",
            ask(|isso, thread, number| {
                let id = isso.ids[thread][number % isso.ids[thread].len()];
                isso.post(&format!("/id/{id}/like"), number, &Value::Null)
            }),
        ),
        (
            "create",
            ask(|isso, thread, number| {
                let body = json!({ "text": prose(number as u64), "author": "Ada Lovelace" });
                isso.post(&format!("/new?uri=/{thread}"), number, &body)
            }),
        ),
    ]
}

/// Into the tables it has made.
fn fill(table: &Path, threads: &Threads) -> Result<Vec<Vec<i64>>, Failure> {
    const COMMENT: &str = "INSERT INTO comments (tid, id, parent, created, mode, remote_addr, text, author, voters)
        VALUES (?, ?, ?, ?, 1, '127.0.0.0', ?, 'Ada Lovelace', zeroblob(256))";
    let mut connection = Connection::open(table)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    let transaction = connection.transaction()?;
    let mut next = 1_i64;
    let mut ids = Vec::new();
    for (thread, comments) in threads.iter().enumerate() {
        let tid = i64::try_from(thread)? + 1;
        transaction.execute(
            "INSERT INTO threads (id, uri, title) VALUES (?, ?, ?)",
            params![tid, format!("/{thread}"), thread.to_string()],
        )?;
        let mut insert = transaction.prepare_cached(COMMENT)?;
        let mut parents = Vec::new();
        for (id, replies) in comments {
            let parent = next;
            parents.push(parent);
            // Seconds; a reply comes a moment after what it answers.
            let created = super::seconds(*id);
            for reply in 0..=*replies {
                let above = (reply > 0).then_some(parent);
                let moment = f64::from(u32::try_from(reply)?) / 1000.0;
                insert.execute(params![tid, next, above, created + moment, prose(id + reply as u64)])?;
                next += 1;
            }
        }
        ids.push(parents);
    }
    transaction.commit()?;
    Ok(ids)
}
