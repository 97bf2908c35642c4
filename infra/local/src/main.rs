//! `cargo local`: reads the command line, starts the stack and says where it is. What the stack is made of is the
//! library's.

use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use local::bench;
use local::bucket::{Bucket, BucketError};
use local::check::Check;
use local::cli::{self, Command, Serve, TableAt, Token};
use local::data_dir::{DataDir, Lock};
use local::engine::{Engine, EngineError};
use local::stop::stop_signal;
use local::template::{DEPLOYED, Template};
use local::{log, service, settings};
use shared::app::App;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use shared::store::Store;
use tokio::net::TcpListener;

/// What hangs on the last writes gets this long at the end.
const GRACE: Duration = Duration::from_secs(5);
/// Where `DynamoDB` Local listens too, and `MinIO`.
const TABLE_PORT: u16 = 8000;
const BUCKET_PORT: u16 = 9000;
/// What a deployed service is in the middle of is done after this.
const PATIENCE: Duration = Duration::from_secs(5);

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {error}\nTry --help.");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Help => write!(io::stdout(), "{}", cli::HELP).map_err(Failure::from),
        Command::Token { token, data_dir } => DataDir::open(&data_dir).map_err(Failure::from).and_then(|data_dir| {
            let config = settings::load(Some(&data_dir), None)?;
            Ok(writeln!(io::stdout(), "{}", settings::sign(&config, &token, Timestamp::now().as_second())?)?)
        }),
        Command::Check { table, repair } => check(&table, repair),
        Command::Bench(bench) => measure(bench.run()),
        Command::BenchServer { data_dir } => measure(bench::serve(&data_dir)),
        Command::Serve(options) => serve(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn measure(work: impl Future<Output = Result<(), bench::Failure>>) -> Result<(), Failure> {
    work.await.map_err(|failure| -> Failure { failure })
}

#[tokio::main]
async fn serve(options: &Serve) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(io::stderr).without_time().init();
    let data_dir = options.data_dir.as_deref().map(DataDir::open).transpose()?;
    let lock = data_dir.as_ref().map(DataDir::lock).transpose()?;
    let left_open = lock.as_ref().map(Lock::begin).transpose()?.flatten();
    if options.services_only {
        return serve_services(options, data_dir.as_ref()).await;
    }
    let listener = listen(options.port).await?;
    let address = listener.local_addr()?;
    let engine = open_table(data_dir.as_ref())?;
    let config = settings::load(data_dir.as_ref(), Some(address))?;
    let bucket = open_bucket(data_dir.as_ref(), &config.media_bucket)?;
    let app = App::new(config.clone(), service::client(&engine), Clock::system(), Random::system());
    let stack = service::start(app, engine.clone(), bucket.clone(), Vec::new())?;
    if let Some(since) = left_open {
        recover(&engine, &config.table_name, &bucket, since).await?;
    }

    // Whoever reads that it listens may stop it.
    let stopped = stop_signal()?;
    let now = Timestamp::now().as_second();
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{address}")?;
    writeln!(stdout, "API        http://{address}/{}", config.api_prefix)?;
    writeln!(stdout, "member     {}", settings::sign(&config, &user("1", "Ada", false), now)?)?;
    writeln!(stdout, "moderator  {}", settings::sign(&config, &user("2", "Grace", true), now)?)?;
    stdout.flush()?;

    stack.gateway.clone().serve(listener, stopped, |exchange| anstream::eprintln!("{}", log::line(exchange))).await;
    if tokio::time::timeout(GRACE, stack.wait_until_idle()).await.is_err() {
        tracing::warn!("stopped before everything that hangs on the last writes was done");
        return Ok(());
    }
    Ok(lock.as_ref().map_or(Ok(()), Lock::end)?)
}

/// What hung on the last writes was lost with the process that wrote them.
async fn recover(engine: &Engine, table: &str, bucket: &Bucket, since: SystemTime) -> Result<(), Failure> {
    let mut log = io::stderr();
    writeln!(log, "what hung on the last writes may not be done; checking the table")?;
    let store = Store::new(engine.client(), table.to_owned(), Random::system());
    Check { repair: true, patience: Duration::ZERO }.run(&store, &mut log).await?;
    Ok(bucket.tell_again(since)?)
}

fn open_table(data_dir: Option<&DataDir>) -> Result<Engine, EngineError> {
    data_dir.map_or_else(Engine::memory, |data_dir| Engine::open(&data_dir.file("table.db")))
}

fn open_bucket(data_dir: Option<&DataDir>, name: &str) -> Result<Bucket, BucketError> {
    data_dir.map_or_else(|| Bucket::temporary(name), |data_dir| Bucket::open(&data_dir.file("objects"), name))
}

/// What it prints is a shell script that sets what functions elsewhere need. The last line says that it is ready.
async fn serve_services(options: &Serve, data_dir: Option<&DataDir>) -> Result<(), Failure> {
    let port = |fixed| if options.port == 0 { 0 } else { fixed };
    let at_table = listen(port(TABLE_PORT)).await?;
    let at_bucket = listen(port(BUCKET_PORT)).await?;
    let (table, bucket) = (at_table.local_addr()?, at_bucket.local_addr()?);
    let config = settings::load(data_dir, Some(bucket))?;
    let engine = open_table(data_dir)?;
    engine.create_table(&config.table_name, &Template::parse(DEPLOYED, &[])?.table()?)?;
    let objects = open_bucket(data_dir, &config.media_bucket)?;

    let stopped = stop_signal()?;
    let now = Timestamp::now().as_second();
    let mut stdout = io::stdout();
    for (name, value) in settings::for_functions(&config, table, bucket) {
        writeln!(stdout, "export {name}='{value}'")?;
    }
    writeln!(stdout, "# member     {}", settings::sign(&config, &user("1", "Ada", false), now)?)?;
    writeln!(stdout, "# moderator  {}", settings::sign(&config, &user("2", "Grace", true), now)?)?;
    writeln!(stdout, "# listening  table http://{table}, bucket http://{bucket}")?;
    stdout.flush()?;
    tokio::select! {
        () = engine.serve(at_table) => {}
        () = objects.serve(at_bucket) => {}
        () = stopped => {}
    }
    Ok(())
}

/// Fails when something is wrong in the end.
#[tokio::main]
async fn check(table: &TableAt, repair: bool) -> Result<(), Failure> {
    let mut check = Check { repair, patience: Duration::ZERO };
    let _lock;
    let store = match table {
        TableAt::Deployed(name) => {
            check.patience = PATIENCE;
            let client = aws_sdk_dynamodb::Client::new(&shared::aws::config::sdk_config().await);
            Store::new(client, name.clone(), Random::system())
        }
        TableAt::DataDir(path) => {
            let file = path.join("table.db");
            if !file.exists() {
                return Err(format!("there is no table in {}", path.display()).into());
            }
            let data_dir = DataDir::open(path)?;
            _lock = data_dir.lock()?;
            let config = settings::load(Some(&data_dir), None)?;
            Store::new(Engine::open(&file)?.client(), config.table_name, Random::system())
        }
    };
    match check.run(&store, &mut io::stdout()).await? {
        0 => Ok(()),
        count => Err(format!("{count} things are wrong in the table").into()),
    }
}

fn user(id: &str, name: &str, moderator: bool) -> Token {
    let lifetime = SignedDuration::from_hours(24);
    Token { id: id.to_owned(), name: name.to_owned(), moderator, picture: None, email: None, lifetime }
}

async fn listen(port: u16) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse if matches!(port, TABLE_PORT | BUCKET_PORT) => {
            format!("port {port} is taken; --port 0 takes free ones").into()
        }
        io::ErrorKind::AddrInUse => format!("port {port} is taken; choose another with --port, or --port 0").into(),
        _ => format!("port {port}: {error}").into(),
    })
}
