//! Opens the contents of a data directory: the table, the bucket, the queues and the emails. Without a directory, they
//! are temporary.

use std::io;

use server::bucket::{Bucket, BucketError};
use server::data_dir::DataDir;
use server::engine::Engine;
use server::outbox::Outbox;
use server::queue::Queues;
use server::service;
use server::settings::{self, DELIVERIES, TABLE};
use server::template::Template;
use shared::domain::ids::Random;
use shared::domain::time::Clock;

use super::Failure;

/// Opens or creates the table. Call this before generating a secret other than the salt, because a stored one means
/// that the table has been used. The caller must hold the lock.
pub(super) fn open_table(data_dir: Option<&DataDir>) -> Result<Engine, Failure> {
    let definition = Template::deployed(&[])?.table()?;
    let Some(data_dir) = data_dir else {
        let engine = Engine::memory()?;
        engine.create_table(TABLE, &definition)?;
        return Ok(engine);
    };
    let open = if data_dir.is_used() { Engine::open_used } else { Engine::open };
    data_dir.check_table()?;
    data_dir.check_secrets()?;
    Engine::check_file(&data_dir.table())?;
    settings::check_salt(data_dir)?;
    let engine = open(&data_dir.table())?;
    engine.create_table(TABLE, &definition)?;
    data_dir.record_version()?;
    Ok(engine)
}

pub(super) fn open_queues(data_dir: Option<&DataDir>) -> Result<Queues, Failure> {
    let (settings, clock, random) = (service::queue_settings()?, Clock::system(), Random::system());
    Ok(match data_dir {
        Some(data_dir) => Queues::open(&data_dir.file("queue"), settings, clock, random)?,
        None => Queues::temporary(settings, clock, random)?,
    })
}

pub(super) fn open_outbox(data_dir: Option<&DataDir>, queues: &Queues) -> io::Result<Outbox> {
    let clock = Clock::system();
    match data_dir {
        Some(data_dir) => Outbox::open(&data_dir.file("mail"), queues.clone(), DELIVERIES, clock),
        None => Outbox::temporary(queues.clone(), DELIVERIES, clock),
    }
}

pub(super) fn open_bucket(data_dir: Option<&DataDir>, name: &str) -> Result<Bucket, BucketError> {
    data_dir.map_or_else(|| Bucket::temporary(name), |data_dir| Bucket::open(&data_dir.file("objects"), name))
}
