//! The threads that are measured.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use server::data_dir::DataDir;
use server::engine::Engine;
use server::service::{self, Services};
use server::stack::Stack;
use server::token::Token;
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::{CommentId, Random};
use shared::domain::time::{Clock, Timestamp};
use shared::store::Store;

use super::report::progress;
use super::seed::{self, Models, prose};
use super::{Failure, REPLIES};

/// The comments of each thread, oldest first: id and number of replies.
pub(super) type Threads = Vec<Vec<(u64, usize)>>;

/// Top-level comments of each thread.
const SIZES: [usize; 3] = [20, 1_000, 10_000];

/// Creates the threads in a new table: a comment and a reply through the API, all others as copies of them.
pub(super) async fn create(data_dir: &DataDir, config: &Config) -> Result<Threads, Failure> {
    let engine = Engine::open(&data_dir.file("table.db"))?;
    let client = engine.client();
    let services = Services::temporary(engine, &config.media_bucket)?;
    let queues = service::app_queues(&services.queues);
    let app = App::new(config.clone(), service::client(&services.engine), queues, Clock::system(), Random::system());
    let stack = service::start(app, services, Vec::new())?;
    let parent = post(&stack, config, json!({ "body": prose(0) })).await?;
    let reply = post(&stack, config, json!({ "body": prose(1), "parent_id": parent })).await?;
    stack.wait_until_idle().await;
    drop(stack);

    let store = Store::new(client, config.table_name.clone(), Random::system());
    let models = Models::read(&store, parent, reply).await?;
    let now = Clock::system().now();
    let mut threads = Threads::new();
    for size in SIZES {
        let thread = threads.len();
        let comments = comments(thread, size, now)?;
        let written = |written: usize| {
            if written.is_multiple_of(100) {
                progress(&format!("{written} of {size} comments written, each with {REPLIES} replies"));
            }
        };
        seed::write_thread(&store, &models, &thread.to_string(), &comments, written).await?;
        threads.push(comments);
    }
    progress("");
    Ok(threads)
}

/// Creates a comment through the API and returns its id.
async fn post(stack: &Stack, config: &Config, body: Value) -> Result<u64, Failure> {
    let token = Token::new("1", "Ada Lovelace").sign(&config.auth, Clock::system().now())?;
    let request = Request::post(format!("/{}/posts/model/comments", config.api_prefix))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_string()))?;
    let answer = stack.gateway.call(request, IpAddr::V4(Ipv4Addr::LOCALHOST)).await;
    let answer: Value = serde_json::from_slice(answer.body())?;
    answer["data"]["id"].as_u64().ok_or_else(|| format!("no comment was created: {answer}").into())
}

/// Ids of comments a second apart, the last one now. The 16 ids of each thread leave room for replies, and for comments
/// of the same millisecond in other threads.
fn comments(thread: usize, size: usize, now: Timestamp) -> Result<Vec<(u64, usize)>, Failure> {
    let offset = 16 * thread as u64;
    let comment = |place: usize| {
        let age = Duration::from_secs((size - place) as u64);
        let id = CommentId::slots(now - age, offset).and_then(|mut ids| ids.next());
        Ok((id.ok_or("no id holds this time")?.0, REPLIES))
    };
    (0..size).map(comment).collect()
}

/// When a comment was written, in Unix seconds.
pub(super) fn created_at(id: u64) -> f64 {
    Duration::from_millis(CommentId(id).created_at().0.unsigned_abs()).as_secs_f64()
}
