//! `cargo local --services-only`: serves the table, the bucket and the queues for functions that run elsewhere.

use std::io::{self, Write};

use server::data_dir::{DataDir, Lock};
use server::settings;

use super::backup::Door;
use super::kept::{open_bucket, open_queues, open_table};
use super::stop::stop_signal;
use super::{Failure, listen, sample_tokens};

/// The default ports of `DynamoDB` Local, `MinIO` and `ElasticMQ`.
const TABLE_PORT: u16 = 8000;
const BUCKET_PORT: u16 = 9000;
const QUEUE_PORT: u16 = 9324;

/// Serves until a signal. Prints a shell script that sets the functions' environment; its last line means that the
/// services are ready. Port 0 selects free ports.
pub(super) async fn serve(port: u16, data_dir: Option<&DataDir>, lock: Option<&Lock>) -> Result<(), Failure> {
    let port = |fixed| if port == 0 { 0 } else { fixed };
    let hint = "pass --port 0 for free ports";
    let table_listener = listen(port(TABLE_PORT), hint).await?;
    let bucket_listener = listen(port(BUCKET_PORT), hint).await?;
    let queue_listener = listen(port(QUEUE_PORT), hint).await?;
    let (table, bucket) = (table_listener.local_addr()?, bucket_listener.local_addr()?);
    let queue = queue_listener.local_addr()?;
    let engine = open_table(data_dir)?;
    let config = settings::load(data_dir, Some(bucket))?;
    let objects = open_bucket(data_dir, &config.media_bucket)?;
    let queues = open_queues(data_dir)?;
    let _door = data_dir.map(|data_dir| Door::open(data_dir, &engine)).transpose()?;
    // No function here processes the writes, so the next start does the follow-up work.
    lock.map(Lock::begin).transpose()?;

    let stopped = stop_signal()?;
    let mut stdout = io::stdout();
    for (name, value) in settings::for_functions(&config, table, bucket, queue) {
        writeln!(stdout, "export {name}='{value}'")?;
    }
    for (role, token) in sample_tokens(&config)? {
        writeln!(stdout, "# {role:<10} {token}")?;
    }
    writeln!(stdout, "# listening  table http://{table}, bucket http://{bucket}, queues http://{queue}")?;
    stdout.flush()?;
    tokio::select! {
        () = engine.serve(table_listener) => {}
        () = objects.serve(bucket_listener) => {}
        () = queues.serve(queue_listener) => {}
        () = stopped => {}
    }
    Ok(())
}
