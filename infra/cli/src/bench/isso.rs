//! Isso, a comment server from PyPI, with the same content.

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

use super::process::Server;
use super::seed::prose;
use super::threads::{Threads, created_at};
use super::{FIRST_VIEW, Failure, Operation, PER_PAGE, REPLIES, Target, without_body};

/// Attempts to connect at the start, a tenth of a second apart.
const ATTEMPTS: u32 = 100;

pub(super) struct Isso {
    server: Server,
    address: String,
    /// The top-level comments of each thread.
    ids: Vec<Vec<i64>>,
}

impl Isso {
    /// Isso keeps its configuration and its table in `folder`.
    pub(super) async fn start(program: &Path, folder: &Path, threads: &Threads) -> Result<Self, Failure> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let (configuration, table) = (folder.join("isso.cfg"), folder.join("isso.db"));
        // No limits, and the address of a caller is what its headers say.
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
        for _ in 0..ATTEMPTS {
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

    fn like(&self, thread: usize, number: usize) -> Request<Full<Bytes>> {
        let id = self.ids[thread][number % self.ids[thread].len()];
        self.post(&format!("/id/{id}/like"), number, &Value::Null)
    }

    fn create(&self, thread: usize, number: usize) -> Request<Full<Bytes>> {
        let body = json!({ "text": prose(number as u64), "author": "Ada Lovelace" });
        self.post(&format!("/new?uri=/{thread}"), number, &body)
    }

    pub(super) fn list(&self, thread: usize) -> Request<Full<Bytes>> {
        let uri = format!("{}/?uri=/{thread}&limit={}&nested_limit={REPLIES}&sort=newest", self.address, PER_PAGE);
        without_body(Request::get(uri))
    }
}

impl Isso {
    /// What a browser asks for that has nothing of Isso's client yet.
    fn first_view(&self, thread: usize) -> Vec<Request<Full<Bytes>>> {
        let files = ["/js/embed.min.js", "/css/isso.css", "/config"].map(|path| {
            let request = Request::get(format!("{}{path}", self.address));
            without_body(request.header("accept-encoding", "gzip"))
        });
        files.into_iter().chain([self.list(thread)]).collect()
    }
}

impl Target for Isso {
    fn server(&self) -> &Server {
        &self.server
    }

    fn operations(self: &Arc<Self>, thread: usize) -> Vec<Operation> {
        let operation = |name, make: fn(&Self, usize, usize) -> Request<Full<Bytes>>| {
            let isso = Arc::clone(self);
            Operation { name, requests: Arc::new(move |number| vec![make(&isso, thread, number)]) }
        };
        let isso = Arc::clone(self);
        vec![
            Operation { name: FIRST_VIEW, requests: Arc::new(move |_| isso.first_view(thread)) },
            operation("list", |isso, thread, _| isso.list(thread)),
            operation("like", Self::like),
            operation("create", Self::create),
        ]
    }
}

/// Writes the threads into the tables that Isso has created, and returns the ids of their top-level comments.
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
            // Replies follow a millisecond apart.
            let created = created_at(*id);
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
