//! The service in a process of its own.

use std::future::pending;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Builder;
use http::{Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use server::data_dir::DataDir;
use server::engine::Engine;
use server::gateway::{Front, Mount};
use server::service::{self, Services};
use server::settings;
use server::token::Token;
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use tokio::net::TcpListener;

use super::process::Server;
use super::seed::prose;
use super::threads::Threads;
use super::{FIRST_VIEW, Failure, Operation, PER_PAGE, Target, load, without_body};

/// Signed-in callers, who take turns.
const MEMBERS: usize = 64;
/// The path of the engine's CPU time.
const ENGINE: &str = "/engine";

/// Serves the service that a bench measures; prints its address and runs until it is killed.
pub async fn serve(data_dir: &Path) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let data_dir = DataDir::open(data_dir)?;
    let config = settings::load(Some(&data_dir), Some(address))?;
    let engine = Engine::open(&data_dir.file("table.db"))?;
    let measured = engine.clone();
    let mount = Mount {
        prefix: ENGINE.to_owned(),
        handler: Arc::new(move |_| {
            let answer = Response::new(Bytes::from(measured.cpu_time().as_nanos().to_string()));
            Box::pin(async { answer })
        }),
    };
    let services = Services::temporary(engine, &config.media_bucket)?;
    let (client, queues) = (service::client(&services.engine), service::app_queues(&services.queues));
    let app = App::new(config.clone(), client, queues, Clock::system(), Random::system());
    let stack = service::start(app, services, vec![mount])?;
    writeln!(io::stdout(), "http://{address}")?;
    stack.gateway.clone().serve(listener, Front::default(), pending(), |_| ()).await;
    Ok(())
}

pub(super) struct Service {
    server: Server,
    address: String,
    api: String,
    tokens: Vec<String>,
    /// The comments of each thread.
    ids: Vec<Vec<u64>>,
}

impl Service {
    /// Starts this program as the server.
    pub(super) fn start(data_dir: &DataDir, config: &Config, threads: &Threads) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "--serve"]).arg(data_dir.file("")).stdout(Stdio::piped());
        // The limiter does its work but refuses nothing.
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
        let now = Clock::system().now();
        let token = |member: usize| Token::new(&member.to_string(), "Ada Lovelace").sign(&config.auth, now);
        let tokens = (1..=MEMBERS).map(token).collect::<Result<_, _>>()?;
        let ids = threads.iter().map(|comments| comments.iter().map(|(id, _)| *id).collect()).collect();
        Ok(Self { server, address, api, tokens, ids })
    }

    pub(super) fn list(&self, thread: usize) -> Builder {
        Request::get(format!("{}/posts/{thread}/comments?per_page={PER_PAGE}&sort=newest", self.api))
    }

    /// What a browser asks for that has nothing of the widget yet.
    fn first_view(&self, thread: usize) -> Vec<Request<Full<Bytes>>> {
        let module = Request::get(format!("{}/embed.js", self.api));
        let list = Request::get(format!("{}/public/posts/{thread}/comments?cursor=&include=ui", self.api));
        [module, list].map(|request| without_body(request.header("accept-encoding", "gzip"))).into()
    }

    fn list_as_member(&self, thread: usize, number: usize) -> Request<Full<Bytes>> {
        let request = self.list(thread).header("accept-encoding", "gzip");
        without_body(request.header("authorization", self.authorization(number)))
    }

    fn like(&self, thread: usize, number: usize) -> Request<Full<Bytes>> {
        let id = self.ids[thread][number % self.ids[thread].len()];
        self.post(&format!("comments/{id}/like"), number, &Value::Null)
    }

    fn create(&self, thread: usize, number: usize) -> Request<Full<Bytes>> {
        self.post(&format!("posts/{thread}/comments"), number, &json!({ "body": prose(number as u64) }))
    }

    fn post(&self, path: &str, number: usize, body: &Value) -> Request<Full<Bytes>> {
        let request = Request::post(format!("{}/{path}", self.api)).header("content-type", "application/json");
        let request = request.header("authorization", self.authorization(number));
        request.body(Full::from(body.to_string())).expect("a request's parts are well formed")
    }

    fn authorization(&self, number: usize) -> String {
        format!("Bearer {}", self.tokens[number % MEMBERS])
    }
}

impl Target for Service {
    fn server(&self) -> &Server {
        &self.server
    }

    async fn engine_time(&self) -> Result<Duration, Failure> {
        let request = without_body(Request::get(format!("{}{ENGINE}", self.address)));
        let nanoseconds = load::send(&load::client(), request).await?;
        Ok(Duration::from_nanos(str::from_utf8(&nanoseconds)?.parse()?))
    }

    fn operations(self: &Arc<Self>, thread: usize) -> Vec<Operation> {
        let operation = |name, make: fn(&Self, usize, usize) -> Request<Full<Bytes>>| {
            let service = Arc::clone(self);
            Operation { name, requests: Arc::new(move |number| vec![make(&service, thread, number)]) }
        };
        let service = Arc::clone(self);
        vec![
            Operation { name: FIRST_VIEW, requests: Arc::new(move |_| service.first_view(thread)) },
            operation("list", |service, thread, _| without_body(service.list(thread))),
            operation("list, signed in, gzip", Self::list_as_member),
            operation("like", Self::like),
            operation("create", Self::create),
        ]
    }
}
