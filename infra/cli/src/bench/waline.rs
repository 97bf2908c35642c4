//! Waline, a comment server from npm (`@waline/vercel`), on `SQLite`, with the same content. Only its lists are measured.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::Value;

use super::process::Server;
use super::seed::prose;
use super::threads::{Threads, created_at};
use super::{Failure, Operation, PER_PAGE, REPLIES, Target, without_body};

/// Attempts to connect at the start, a tenth of a second apart.
const ATTEMPTS: u32 = 200;
/// Starts the package in the folder that is the first argument, on the port that is the second.
const START: &str = include_str!("../../../../tests/import/waline.cjs");
/// It asks another service which sign-ins there are, before every request. The answer: none.
const NO_SIGN_IN: &str = r#"data:application/json,{"services":[]}"#;
/// Its documentation has these tables as a file.
const TABLES: &str = "
    CREATE TABLE wl_Comment (id INTEGER PRIMARY KEY, user_id INTEGER, comment TEXT, insertedAt TEXT, ip TEXT, link TEXT,
        mail TEXT, nick TEXT, pid INTEGER, rid INTEGER, sticky INTEGER, status TEXT, \"like\" INTEGER, ua TEXT, url TEXT,
        createdAt TEXT, updatedAt TEXT);
    CREATE TABLE wl_Counter (id INTEGER PRIMARY KEY, time INTEGER, url TEXT, createdAt TEXT, updatedAt TEXT);
    CREATE TABLE wl_Users (id INTEGER PRIMARY KEY, display_name TEXT, email TEXT, password TEXT, type TEXT, url TEXT,
        avatar TEXT, label TEXT, createdAt TEXT, updatedAt TEXT);";

pub(super) struct Waline {
    server: Server,
    address: String,
}

impl Waline {
    /// Waline keeps its table in `folder`. `package` is the folder of `@waline/vercel`.
    pub(super) async fn start(package: &Path, folder: &Path, threads: &Threads) -> Result<Self, Failure> {
        fill(&folder.join("waline.sqlite"), threads)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new("node");
        command.args(["--eval", START]).arg(package.canonicalize()?).arg(address.port().to_string());
        command.env("SQLITE_PATH", folder).env("JWT_TOKEN", "secret").env("OAUTH_URL", NO_SIGN_IN);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server::start(&mut command)?;
        for _ in 0..ATTEMPTS {
            if TcpStream::connect(address).is_ok() {
                return Ok(Self { server, address: format!("http://{address}") });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("Waline does not listen".into())
    }

    /// Waline sends all replies of a comment.
    pub(super) fn list(&self, thread: usize) -> Request<Full<Bytes>> {
        let query = format!("path=/{thread}&page=1&pageSize={PER_PAGE}&sortBy=insertedAt_desc");
        without_body(Request::get(format!("{}/api/comment?{query}", self.address)))
    }

    /// Fails unless the page has all comments and replies that were requested.
    pub(super) fn check(&self, body: &[u8]) -> Result<(), Failure> {
        let page: Value = serde_json::from_slice(body)?;
        let comments = page["data"]["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let complete = |comment: &Value| comment["children"].as_array().is_some_and(|all| all.len() == REPLIES);
        if comments.len() == PER_PAGE && comments.iter().all(complete) {
            Ok(())
        } else {
            Err(format!("not a page of {PER_PAGE} comments with {REPLIES} replies each from {}: {page}", self.address)
                .into())
        }
    }
}

impl Target for Waline {
    fn server(&self) -> &Server {
        &self.server
    }

    fn operations(self: &Arc<Self>, thread: usize) -> Vec<Operation> {
        let waline = Arc::clone(self);
        vec![Operation { name: "list", requests: Arc::new(move |_| vec![waline.list(thread)]) }]
    }
}

fn fill(table: &Path, threads: &Threads) -> Result<(), Failure> {
    const COMMENT: &str = "INSERT INTO wl_Comment (id, comment, insertedAt, ip, nick, pid, rid, status, ua, url)
        VALUES (?, ?, ?, '127.0.0.1', 'Ada Lovelace', ?, ?, 'approved', '', ?)";
    let mut connection = Connection::open(table)?;
    connection.execute_batch(TABLES)?;
    let transaction = connection.transaction()?;
    let mut next = 1_i64;
    for (thread, comments) in threads.iter().enumerate() {
        let mut insert = transaction.prepare_cached(COMMENT)?;
        for (id, replies) in comments {
            let parent = next;
            #[expect(clippy::cast_possible_truncation, reason = "seconds of this century")]
            let written = Timestamp::from_second(created_at(*id) as i64)?.strftime("%F %T").to_string();
            for reply in 0..=*replies {
                let above = (reply > 0).then_some(parent);
                let body = prose(id + reply as u64);
                insert.execute(params![next, body, written, above, above, format!("/{thread}")])?;
                next += 1;
            }
        }
    }
    transaction.commit()?;
    Ok(())
}
