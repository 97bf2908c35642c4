//! Follows up on changes to the table, which arrive through its stream. Only quick work is done here; walks over many
//! items become jobs. A failed record fails its batch, which Lambda retries, so everything here is safe to repeat.
//!
//! A record may be old, and its item may have been edited, deleted or erased since. A changed comment or ban therefore
//! has effects only if the item, read consistently, still agrees with the record. A pending comment is an exception:
//! only its id is stored, in the moderators' list and digest, and both read the comment again.

mod notify;
mod webhooks;

use std::time::Duration;

use serde_json::Value;
use shared::app::App;
use shared::domain::comment::Comment;
use shared::domain::job::{CleanUp, CountBelow, CountReplies, ForgetReactions, Job, Rename};
use shared::domain::time::Timestamp;
use shared::error::Fault;
use shared::store::Reading;
use shared::store::counts::{RecountTrigger, Recounted};
use shared::store::events::{Event, Queueing, Record};

use self::webhooks::Endpoints;

/// Handles the records of one batch in order. `event` is a DynamoDB stream event.
pub async fn handle(app: &App, event: &Value) -> Result<(), Fault> {
    let mut endpoints = Endpoints::default();
    for record in event["Records"].as_array().into_iter().flatten() {
        let handled = handle_record(app, record, &mut endpoints).await;
        handled.inspect_err(|fault| tracing::error!(error = fault.chain(), "record not handled"))?;
    }
    Ok(())
}

async fn handle_record(app: &App, record: &Value, endpoints: &mut Endpoints) -> Result<(), Fault> {
    let record = Record::read(record)?;
    let shown = match record.event() {
        Some(event) => follow(app, event).await?,
        None => None,
    };
    if let Some(comment) = record.rejected() {
        notify::of_rejected(app, comment.id).await?;
    }
    webhooks::notify(app, endpoints, &record, shown.as_ref()).await
}

/// Returns the comment if the event made it public.
async fn follow(app: &App, event: Event<'_>) -> Result<Option<Comment>, Fault> {
    match event {
        Event::CommentCreated(comment) => return welcome(app, comment).await,
        Event::BecamePlaceholder(comment) => {
            recount(app, comment).await?;
            clear_away(app, comment).await?;
        }
        Event::CommentRemoved(comment, deleted_at) => {
            if comment.is_approved() {
                recount(app, comment).await?;
            }
            app.store.leave_queues(comment).await?;
            let job = Job::CleanUp(CleanUp { comment: comment.id, replies: comment.replies, deleted_at });
            app.start_job(&job, Duration::ZERO).await?;
        }
        Event::CommentShownOrHidden(comment, changed_at) => return show_or_hide(app, comment, changed_at).await,
        Event::ReplyShown(reply) => {
            let reply = app.store.comment(reply, Reading::Consistent).await?;
            let reply = reply.filter(|reply| reply.may_count() && reply.is_announced());
            if let Some(reply) = &reply {
                notify::of_comment(app, reply).await?;
            }
            return Ok(reply);
        }
        Event::CommentChanged(comment, queueing) => {
            match queueing {
                Some(Queueing::Joined) => notify::moderators_if_waiting(app, comment.id).await?,
                Some(Queueing::TextAccepted) => notify::of_accepted(app, comment.id).await?,
                None => {}
            }
            app.store.promote_below(comment).await?;
        }
        Event::RecentRejected(job) => app.start_job(&Job::RejectRecent(job), Duration::ZERO).await?,
        Event::UserRenamed(before, after) => {
            if app.store.rename_in_directory(before, after).await? {
                let now = app.clock.now().start_of_second();
                let delay = after.comments_at.map_or(Duration::ZERO, |at| at.since(now));
                app.start_job(&Job::Rename(Rename::to(after)), delay).await?;
            }
        }
    }
    Ok(None)
}

/// Lists a new comment for moderators, counts it, and notifies its recipients. Returns the comment if everyone sees it.
async fn welcome(app: &App, comment: &Comment) -> Result<Option<Comment>, Fault> {
    if !comment.may_count() {
        app.store.join_new(comment).await?;
        if comment.waits_for_moderators() {
            notify::moderators(app, comment).await?;
        }
        return Ok(None);
    }
    let recounted = recount(app, comment).await?.filter(|recounted| !recounted.comment.is_placeholder);
    let Some(Recounted { comment, counts }) = recounted else { return Ok(None) };
    app.store.join_new(&comment).await?;
    if counts {
        notify::of_comment(app, &comment).await?;
    }
    Ok(counts.then_some(comment))
}

/// Recounts the comment, and starts a job that recounts its replies. If everyone sees the comment, notifies its
/// recipients and returns it.
async fn show_or_hide(app: &App, comment: &Comment, changed_at: Timestamp) -> Result<Option<Comment>, Fault> {
    let shown = recount(app, comment).await?.filter(|recounted| recounted.counts).map(|recounted| recounted.comment);
    let is_first = comment.is_approved() && !comment.was_shown;
    if comment.is_placeholder {
        clear_away(app, comment).await?;
    }
    if let Some(shown) = &shown {
        notify::of_shown(app, shown, is_first).await?;
    }
    if comment.replies > 0 {
        app.store.promote_below(comment).await?;
        let (thread, walks) = (comment.thread.clone(), vec![CountReplies::of(comment.id)]);
        let job = CountBelow { thread, walks, incomplete: Vec::new(), is_first, changed_at };
        app.start_job(&Job::CountBelow(job), Duration::ZERO).await?;
    }
    Ok(shown)
}

/// Removes a comment that has become a placeholder from the queues, and starts removing its reports and its counters of
/// guests.
async fn clear_away(app: &App, comment: &Comment) -> Result<(), Fault> {
    app.store.leave_queues(comment).await?;
    let job = Job::ForgetReactions(ForgetReactions { comment: comment.id });
    app.start_job(&job, Duration::ZERO).await
}

/// Counts the comment again, and returns its current state, or `None` if it is gone.
async fn recount(app: &App, comment: &Comment) -> Result<Option<Recounted>, Fault> {
    app.store.recount_comment(&comment.thread, comment.id, RecountTrigger::Event).await
}
