//! Follows up on changes of the table, which its stream delivers. A record that fails fails its batch, and Lambda retries
//! it, so everything here is safe to repeat.

use std::time::Duration;

use serde_json::Value;
use shared::app::App;
use shared::error::Fault;
use shared::store::cleanup::Event;

/// How long an index may lag behind a write.
const MAX_INDEX_LAG: Duration = Duration::from_secs(3);

/// Handles the records of one batch in their order. `event` is a DynamoDB stream event.
pub async fn handle(app: &App, event: &Value) -> Result<(), Fault> {
    for record in event["Records"].as_array().into_iter().flatten() {
        let handled = match Event::read(record)? {
            None => Ok(()),
            Some(Event::CommentRemoved(comment, at)) => {
                let age = u64::try_from(app.clock.now().0.saturating_sub(at.0)).unwrap_or_default();
                app.store.clean_up_below(&comment, MAX_INDEX_LAG.saturating_sub(Duration::from_millis(age))).await
            }
            Some(Event::CommentChanged(parent)) => app.store.promote_below(&parent).await,
            Some(Event::UserRenamed(before, after)) => app.store.rename(&before, &after).await,
        };
        if let Err(fault) = &handled {
            tracing::error!(error = fault.chain(), "record not handled");
        }
        handled?;
    }
    Ok(())
}
