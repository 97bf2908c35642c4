//! Does long work in bounded steps, such as cleaning up below a deleted comment, renaming a user in old comments, and
//! rejecting a banned writer's comments. The messages come from the queue `Jobs`. Every job may run twice.

use std::time::Duration;

use serde_json::{Value, json};
use shared::app::App;
use shared::domain::job::Job;
use shared::error::Fault;
use tokio::time::Instant;

/// Time limit for one message. Work that remains is sent as a new message.
const LIMIT: Duration = Duration::from_secs(20);

/// Handles a batch of messages, as Lambda receives it from SQS. Returns the failed messages, which SQS redelivers.
pub async fn handle(app: &App, event: &Value) -> Value {
    let mut failures = Vec::new();
    for message in event["Records"].as_array().into_iter().flatten() {
        if let Err(fault) = run(app, message["body"].as_str().unwrap_or_default()).await {
            tracing::error!(error = fault.chain(), message = message["messageId"].as_str(), "job failed");
            failures.push(json!({ "itemIdentifier": message["messageId"] }));
        }
    }
    json!({ "batchItemFailures": failures })
}

async fn run(app: &App, body: &str) -> Result<(), Fault> {
    let job: Job = serde_json::from_str(body).map_err(|error| Fault::new("reading a job", error))?;
    match app.store.run_job(job, app.clock.now(), Instant::now() + LIMIT).await? {
        None => Ok(()),
        Some(rest) => app.start_job(&rest.job, rest.delay).await,
    }
}
