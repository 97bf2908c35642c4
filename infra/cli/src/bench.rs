//! Measures throughput, latency and CPU time of the service on this machine, over HTTP, in threads of several sizes.
//! Isso and Waline, when there are any, are measured with the same content.

mod isso;
mod load;
mod process;
mod report;
pub mod seed;
mod service;
mod threads;
mod waline;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::request::Builder;
use http_body_util::Full;
use serde_json::Value;
use server::data_dir::DataDir;
use server::settings;

use self::isso::Isso;
use self::load::{Load, RequestMaker};
use self::process::Server;
use self::report::Row;
use self::service::Service;
pub use self::service::serve;
use self::threads::Threads;
use self::waline::Waline;

pub type Failure = Box<dyn Error + Send + Sync>;

const PER_PAGE: usize = 10;
/// Replies to each comment.
const REPLIES: usize = 3;
const CONNECTIONS: [usize; 2] = [1, 16];
/// The operation of a browser that shows the comments of a page for the first time.
const FIRST_VIEW: &str = "first view";

#[derive(Debug, PartialEq, Eq)]
pub struct Bench {
    /// How long each row is measured.
    pub seconds: u64,
    /// The program of an Isso to compare with.
    pub isso: Option<PathBuf>,
    /// The package of a Waline to compare with.
    pub waline: Option<PathBuf>,
}

/// What is measured, by name.
struct Operation {
    name: &'static str,
    requests: RequestMaker,
}

/// The CPU time of a server so far, and how much of it the table's engine took.
#[derive(Clone, Copy)]
struct CpuTime {
    /// `None` where the system does not measure it.
    server: Option<Duration>,
    engine: Duration,
}

/// A server to measure.
trait Target {
    fn server(&self) -> &Server;

    /// The CPU time of the table's engine so far; zero when it is not measured.
    async fn engine_time(&self) -> Result<Duration, Failure> {
        Ok(Duration::ZERO)
    }

    async fn cpu_time(&self) -> Result<CpuTime, Failure> {
        Ok(CpuTime { server: self.server().cpu_time(), engine: self.engine_time().await? })
    }

    /// The operations to measure in a thread, by its number.
    fn operations(self: &Arc<Self>, thread: usize) -> Vec<Operation>;
}

impl Bench {
    /// Creates the threads, measures, and prints tables in Markdown.
    pub async fn run(&self) -> Result<(), Failure> {
        if cfg!(debug_assertions) {
            eprintln!("warning: this is not a release build; see infra/measure/README.md");
        }
        let folder = tempfile::tempdir()?;
        let data_dir = DataDir::open(folder.path())?;
        let config = settings::load(Some(&data_dir), None)?;
        let threads = threads::create(&data_dir, &config).await?;
        let service = Arc::new(Service::start(&data_dir, &config, &threads)?);
        check_page(&load::send(&load::client(), without_body(service.list(0))).await?, "data")?;
        let rows = self.measure(&service, &threads).await?;
        report::print_rows(&rows)?;
        report::print_memory("the server", service.server())?;
        drop(service);

        if let Some(program) = &self.isso {
            let isso = Arc::new(Isso::start(program, folder.path(), &threads).await?);
            check_page(&load::send(&load::client(), isso.list(0)).await?, "replies")?;
            let isso_rows = self.measure(&isso, &threads).await?;
            report::print_comparison("Isso", &isso_rows, &rows)?;
            report::print_memory("Isso", isso.server())?;
        }
        if let Some(package) = &self.waline {
            let waline = Arc::new(Waline::start(package, folder.path(), &threads).await?);
            waline.check(&load::send(&load::client(), waline.list(0)).await?)?;
            let waline_rows = self.measure(&waline, &threads).await?;
            report::print_comparison("Waline", &waline_rows, &rows)?;
            report::print_memory("Waline", waline.server())?;
        }
        Ok(())
    }

    /// A row for each thread, operation and number of connections.
    async fn measure(&self, target: &Arc<impl Target>, threads: &Threads) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for (thread, comments) in threads.iter().enumerate() {
            let parents = comments.len();
            for Operation { name: operation, requests } in target.operations(thread) {
                for connections in CONNECTIONS {
                    report::progress(&format!("{operation} of {parents}, {connections} connections"));
                    let before = target.cpu_time().await?;
                    let load = Load::run(&requests, connections, Duration::from_secs(self.seconds)).await?;
                    let cpu = target.cpu_time().await?.since(before);
                    rows.push(Row { parents, operation, connections, load, cpu });
                }
            }
        }
        report::progress("");
        Ok(rows)
    }
}

impl CpuTime {
    fn since(self, before: Self) -> Self {
        let server = self.server.zip(before.server).map(|(now, before)| now.saturating_sub(before));
        Self { server, engine: self.engine.saturating_sub(before.engine) }
    }
}

fn without_body(request: Builder) -> Request<Full<Bytes>> {
    request.body(Full::default()).expect("a request's parts are well formed")
}

/// Fails unless the page has all comments and replies that were requested. `field` holds the comments.
fn check_page(body: &[u8], field: &str) -> Result<(), Failure> {
    let page: Value = serde_json::from_slice(body)?;
    let comments = page[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let complete = |comment: &Value| comment["replies"].as_array().is_some_and(|replies| replies.len() == REPLIES);
    if comments.len() == PER_PAGE && comments.iter().all(complete) {
        Ok(())
    } else {
        Err(format!("not a page of {PER_PAGE} comments with {REPLIES} replies each: {page}").into())
    }
}
