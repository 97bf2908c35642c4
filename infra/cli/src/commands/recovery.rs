//! Completes the work that the last process left unfinished.

use std::io::Write;
use std::time::{Duration, SystemTime};

use server::bucket::Bucket;
use server::engine::Engine;
use server::stack::Stack;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use shared::store::Store;
use shared::store::addresses::Addresses;
use transfer::check::Check;

use super::Failure;

/// Waits at most `grace` for unhandled events and messages, repairs the table, and then repeats the events of all
/// objects stored since `since`.
pub(super) async fn recover(
    stack: &Stack,
    engine: &Engine,
    config: &Config,
    bucket: &Bucket,
    since: SystemTime,
    grace: Duration,
    log: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(log, "the last process did not finish its work; finishing it and checking the table")?;
    // Work that takes longer continues in the background.
    let _ = tokio::time::timeout(grace, stack.wait_until_idle()).await;
    let store = Store::new(engine.client(), config.table_name.clone(), Random::system());
    let store = store.keeping(Addresses::new(Some(&config.visitor_salt), config.guests.show_gravatar));
    Check { repair: true, patience: Duration::ZERO }.run(&store, &Clock::system(), log).await?;
    Ok(bucket.publish_again(since)?)
}
