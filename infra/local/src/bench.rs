//! `cargo local bench`: how fast this machine answers and what that costs its processor, over HTTP, in threads of several
//! sizes; beside Isso's figures for the same content, when there is an Isso.

mod isso;
mod load;
mod process;
pub mod seed;

use std::error::Error;
use std::future::pending;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use tokio::net::TcpListener;

use self::isso::Isso;
use self::load::{Ask, Load};
use self::process::Server;
use self::seed::{Models, Table, prose};
use crate::bucket::Bucket;
use crate::cli::Token;
use crate::data_dir::DataDir;
use crate::engine::Engine;
use crate::gateway::Mount;
use crate::service;
use crate::settings;

pub type Failure = Box<dyn Error + Send + Sync>;

/// Of each thread, its comments, oldest first: id and how many replies.
type Threads = Vec<Vec<(u64, usize)>>;

const SIZES: [usize; 3] = [20, 1_000, 10_000];
const PER_PAGE: usize = 10;
const REPLIES: usize = 3;
const CONNECTIONS: [usize; 2] = [1, 16];
/// Signed-in callers, who take turns.
const MEMBERS: usize = 64;
/// Where the server tells how long its table's engine was at work.
const ENGINE: &str = "/engine";
/// 2025-01-01, from which ids count.
const EPOCH: i64 = 1_735_689_600_000;

#[derive(Debug, PartialEq, Eq)]
pub struct Bench {
    /// How long each row is measured.
    pub seconds: u64,
    /// The program of an Isso to compare with.
    pub isso: Option<PathBuf>,
}

/// What was asked, and what it cost.
struct Row {
    parents: usize,
    operation: &'static str,
    connections: usize,
    load: Load,
    cpu: Option<Duration>,
    /// Of it, the table's engine.
    engine: Duration,
}

impl Bench {
    /// Makes the threads, measures, and prints tables of markdown.
    pub async fn run(&self) -> Result<(), Failure> {
        if cfg!(debug_assertions) {
            eprintln!("this is no release build: see infra/measure/README.md");
        }
        let folder = tempfile::tempdir()?;
        let data_dir = DataDir::open(folder.path())?;
        let config = settings::load(Some(&data_dir), None)?;
        let threads = seed(&data_dir, &config).await?;
        let ours = Arc::new(Ours::start(&data_dir, &config, &threads)?);
        check_page(&load::send(&load::client(), bare(ours.list(0))).await?, "data")?;
        let rows = self.measure(&ours.server, Some(&*ours), &threads, |thread| asks(&ours, thread)).await?;
        print(&rows)?;
        tell_memory("the server", &ours.server)?;
        drop(ours);

        let Some(program) = &self.isso else { return Ok(()) };
        let isso = Arc::new(Isso::start(program, folder.path(), &threads).await?);
        check_page(&load::send(&load::client(), isso.list(0)).await?, "replies")?;
        let theirs = self.measure(&isso.server, None, &threads, |thread| isso::asks(&isso, thread)).await?;
        compare(&theirs, &rows)?;
        tell_memory("Isso", &isso.server)?;
        Ok(())
    }

    /// A row for each thread, each of its `asks`, and each number of connections.
    async fn measure<const N: usize>(
        &self,
        server: &Server,
        ours: Option<&Ours>,
        threads: &Threads,
        asks: impl Fn(usize) -> [(&'static str, Ask); N],
    ) -> Result<Vec<Row>, Failure> {
        let engine = async || match ours {
            Some(ours) => ours.engine().await,
            None => Ok(Duration::ZERO),
        };
        let mut rows = Vec::new();
        for (thread, comments) in threads.iter().enumerate() {
            let parents = comments.len();
            for (operation, ask) in asks(thread) {
                for connections in CONNECTIONS {
                    progress(&format!("{operation} of {parents}, {connections} at once"));
                    let before = (server.cpu(), engine().await?);
                    let load = Load::put(&ask, connections, Duration::from_secs(self.seconds)).await?;
                    let after = (server.cpu(), engine().await?);
                    let cpu = before.0.zip(after.0).map(|(before, after)| after.saturating_sub(before));
                    let engine = after.1.saturating_sub(before.1);
                    rows.push(Row { parents, operation, connections, load, cpu, engine });
                }
            }
        }
        progress("");
        Ok(rows)
    }
}

/// The server that is measured; prints its address and runs until it is killed.
pub async fn serve(data_dir: &Path) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let data_dir = DataDir::open(data_dir)?;
    let config = settings::load(Some(&data_dir), Some(address))?;
    let engine = Engine::open(&data_dir.file("table.db"))?;
    let told = engine.clone();
    let mount = Mount {
        prefix: ENGINE.to_owned(),
        handler: Arc::new(move |_| {
            let answer = Response::new(Bytes::from(told.busy().as_nanos().to_string()));
            Box::pin(async { answer })
        }),
    };
    let app = App::new(config.clone(), service::client(&engine), Clock::system(), Random::system());
    let stack = service::start(app, engine, Bucket::temporary(&config.media_bucket)?, vec![mount])?;
    writeln!(io::stdout(), "http://{address}")?;
    stack.gateway.clone().serve(listener, pending(), |_| ()).await;
    Ok(())
}

/// Threads in a new table: a comment and a reply by the API, the rest after their model.
async fn seed(data_dir: &DataDir, config: &Config) -> Result<Threads, Failure> {
    let engine = Engine::open(&data_dir.file("table.db"))?;
    let client = engine.client();
    let app = App::new(config.clone(), service::client(&engine), Clock::system(), Random::system());
    let stack = service::start(app, engine, Bucket::temporary(&config.media_bucket)?, Vec::new())?;
    let token = sign(config, 0)?;
    let create = async |body: Value| {
        let request = Request::post(format!("/{}/posts/model/comments", config.api_prefix))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))?;
        let answer = stack.gateway.call(request, IpAddr::V4(Ipv4Addr::LOCALHOST)).await;
        let answer: Value = serde_json::from_slice(answer.body())?;
        answer["data"]["id"].as_u64().ok_or_else(|| Failure::from(format!("no comment was made: {answer}")))
    };
    let parent = create(json!({ "body": prose(0) })).await?;
    let reply = create(json!({ "body": prose(1), "parent_id": parent })).await?;
    stack.wait_until_idle().await;
    drop(stack);

    let table = Table { client: &client, name: &config.table_name };
    let models = Models::read(&table, parent, reply).await?;
    let now = Timestamp::now().as_millisecond();
    let mut threads = Threads::new();
    for size in SIZES {
        // Room for its replies, and for comments of the same moment in the other threads.
        let apart = 16 * threads.len() as u64;
        let comment = |place: usize| {
            let age = i64::try_from((size - place) * 1000)?;
            Ok(((u64::try_from(now - EPOCH - age)? << 12) + apart, REPLIES))
        };
        let comments = (0..size).map(comment).collect::<Result<Vec<_>, Failure>>()?;
        let told = |written: usize| {
            if written.is_multiple_of(100) {
                progress(&format!("written: {written} of {size} comments, each with {REPLIES} replies"));
            }
        };
        table.write_thread(&models, &threads.len().to_string(), &comments, told).await?;
        threads.push(comments);
    }
    progress("");
    Ok(threads)
}

/// When a comment was written, in Unix seconds.
fn seconds(id: u64) -> f64 {
    Duration::from_millis(id >> 12).as_secs_f64() + Duration::from_millis(EPOCH.unsigned_abs()).as_secs_f64()
}

fn sign(config: &Config, member: usize) -> Result<String, Failure> {
    let lifetime = SignedDuration::from_hours(1);
    let (id, name) = ((member + 1).to_string(), "Ada Lovelace".to_owned());
    let token = Token { id, name, moderator: false, picture: None, email: None, lifetime };
    Ok(settings::sign(config, &token, Timestamp::now().as_second())?)
}

/// This program, in a process of its own.
struct Ours {
    server: Server,
    address: String,
    api: String,
    tokens: Vec<String>,
    ids: Vec<Vec<u64>>,
}

impl Ours {
    fn start(data_dir: &DataDir, config: &Config, threads: &Threads) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "--serve"]).arg(data_dir.file("")).stdout(Stdio::piped());
        // The limits are at work, and far away.
        for limit in ["SVC_READ_LIMIT", "SVC_WRITE_LIMIT"] {
            command.env(limit, "1000000");
        }
        let mut server = Server::start(&mut command)?;
        let mut address = String::new();
        if let Some(output) = server.child().stdout.take() {
            BufReader::new(output).read_line(&mut address)?;
        }
        let address = address.trim().to_owned();
        if address.is_empty() {
            return Err("the server did not start".into());
        }
        let api = format!("{address}/{}", config.api_prefix);
        let tokens = (0..MEMBERS).map(|member| sign(config, member)).collect::<Result<_, _>>()?;
        let ids = threads.iter().map(|comments| comments.iter().map(|(id, _)| *id).collect()).collect();
        Ok(Self { server, address, api, tokens, ids })
    }

    /// Processor time of the table's engine so far.
    async fn engine(&self) -> Result<Duration, Failure> {
        let request = Request::get(format!("{}{ENGINE}", self.address)).body(Full::default())?;
        let nanoseconds = load::send(&load::client(), request).await?;
        Ok(Duration::from_nanos(str::from_utf8(&nanoseconds)?.parse()?))
    }

    fn list(&self, thread: usize) -> http::request::Builder {
        Request::get(format!("{}/posts/{thread}/comments?per_page={PER_PAGE}&sort=newest", self.api))
    }

    fn post(&self, path: &str, number: usize, body: &Value) -> Request<Full<Bytes>> {
        let request = Request::post(format!("{}/{path}", self.api)).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {}", self.tokens[number % MEMBERS]));
        request.body(Full::from(body.to_string())).expect("a request's parts are well formed")
    }
}

fn asks(ours: &Arc<Ours>, thread: usize) -> [(&'static str, Ask); 4] {
    let ask = |make: fn(&Ours, usize, usize) -> Request<Full<Bytes>>| -> Ask {
        let ours = Arc::clone(ours);
        Arc::new(move |number| make(&ours, thread, number))
    };
    [
        ("list", ask(|ours, thread, _| bare(ours.list(thread)))),
        (
            "list, signed in, gzip",
            ask(|ours, thread, number| {
                let request = ours.list(thread).header("accept-encoding", "gzip");
                bare(request.header("authorization", format!("Bearer {}", ours.tokens[number % MEMBERS])))
            }),
        ),
        (
            "like",
            ask(|ours, thread, number| {
                let id = ours.ids[thread][number % ours.ids[thread].len()];
                ours.post(&format!("comments/{id}/like"), number, &Value::Null)
            }),
        ),
        (
            "create",
            ask(|ours, thread, number| {
                ours.post(&format!("posts/{thread}/comments"), number, &json!({ "body": prose(number as u64) }))
            }),
        ),
    ]
}

fn bare(request: http::request::Builder) -> Request<Full<Bytes>> {
    request.body(Full::default()).expect("a request's parts are well formed")
}

/// That there are as many comments and replies on it as asked for.
fn check_page(body: &[u8], rows: &str) -> Result<(), Failure> {
    let page: Value = serde_json::from_slice(body)?;
    let rows = page[rows].as_array().map(Vec::as_slice).unwrap_or_default();
    let whole = |row: &Value| row["replies"].as_array().is_some_and(|replies| replies.len() == REPLIES);
    if rows.len() == PER_PAGE && rows.iter().all(whole) {
        Ok(())
    } else {
        Err(format!("not a page of {PER_PAGE} comments with {REPLIES} replies each: {page}").into())
    }
}

/// One line that is written over by the next.
fn progress(line: &str) {
    eprint!("\r{line:<79}");
    if line.is_empty() {
        eprint!("\r");
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "counts of seconds' worth")]
    fn requests(&self) -> f64 {
        self.load.requests().max(1) as f64
    }

    /// Milliseconds of the processor a request, with the table's engine and without.
    fn cpu(&self) -> Option<(f64, f64)> {
        let cpu = self.cpu?;
        let each = |time| milliseconds(time) / self.requests();
        Some((each(cpu), each(cpu.saturating_sub(self.engine))))
    }

    fn per_second(&self) -> f64 {
        self.requests() / self.load.elapsed.as_secs_f64()
    }

    fn latencies(&self) -> String {
        let percentile = |percent| milliseconds(self.load.percentile(percent));
        format!("{:.1} | {:.1}", percentile(50), percentile(99))
    }

    fn name(&self) -> String {
        format!("{} | {} | {}", self.operation, self.parents, self.connections)
    }
}

fn print(rows: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| | parents | connections | requests/s | CPU ms a request | without the table | bytes | p50 ms | p99 ms |\n\
         |---|---|---|---|---|---|---|---|---|"
    )?;
    for row in rows {
        let cpu = row.cpu().map_or_else(|| "– | –".to_owned(), |(all, without)| format!("{all:.2} | {without:.2}"));
        let (name, per_second, bytes) = (row.name(), row.per_second(), row.load.bytes());
        writeln!(out, "| {name} | {per_second:.0} | {cpu} | {bytes} | {} |", row.latencies())?;
    }
    writeln!(out)
}

/// Their rows, each beside ours of the same name.
fn compare(theirs: &[Row], ours: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| Isso | parents | connections | requests/s | CPU ms a request | bytes | p50 ms | p99 ms | CPU, times ours | \
         times ours without the table |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for row in theirs {
        let (name, per_second, bytes) = (row.name(), row.per_second(), row.load.bytes());
        let own = ours.iter().find(|own| own.name() == name).and_then(Row::cpu);
        let (cpu, ratios) = match (row.cpu(), own) {
            (Some((cpu, _)), Some((all, without))) => {
                (format!("{cpu:.2}"), format!("{:.1} | {:.1}", cpu / all, cpu / without))
            }
            _ => ("–".to_owned(), "– | –".to_owned()),
        };
        writeln!(out, "| {name} | {per_second:.0} | {cpu} | {bytes} | {} | {ratios} |", row.latencies())?;
    }
    writeln!(out)
}

fn tell_memory(whose: &str, server: &Server) -> io::Result<()> {
    match server.memory() {
        Some(megabytes) => writeln!(io::stdout(), "Memory of {whose} in the end: {megabytes} MB\n"),
        None => Ok(()),
    }
}
