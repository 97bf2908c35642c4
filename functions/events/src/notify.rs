//! Notifies the recipients of a comment by adding its id to each recipient's notification state. The function
//! `delivery` writes the emails.

use std::collections::BTreeMap;

use shared::app::App;
use shared::config::Mail;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, UserId};
use shared::domain::mail_keys::Recipient;
use shared::domain::notifications::{Asker, NotificationState, Notified, Reason};
use shared::domain::thread::Thread;
use shared::error::Fault;
use shared::policy::{self, Notification};
use shared::store::Reading;

/// Maximum notifications per hour that one member's mentions may cause.
const MAX_MENTIONS: usize = 50;
/// The scope of the mention counter, which is part of the counter's key in the table.
const MENTIONS: &str = "told";

/// Notifies the recipients of a public comment, given in its current state. Safe to repeat.
pub(crate) async fn of_comment(app: &App, comment: &Comment) -> Result<(), Fault> {
    // Stores the moderator's name, which is now public with the badge, so that guests with a similar name are flagged.
    if let (true, Some(writer)) = (comment.by_moderator, comment.user) {
        app.store.keep_moderator_name(writer, &comment.name).await?;
    }
    if app.config.mail.as_ref().is_some_and(|mail| mail.digest_has_all) {
        moderators(app, comment).await?;
    }
    let Some(mail) = mail(app) else { return Ok(()) };
    enrol(app, mail, comment).await?;
    let thread = app.mail_keys().thread(&comment.thread);
    let (now, mut mentions) = (app.clock.now(), 0);
    for (recipient, reasons) in recipients(app, comment).await? {
        let notify = |state: &mut NotificationState| state.notify(comment.id, &reasons, &thread, now, mail.wait);
        if app.notify(&recipient, notify).await? == Notified::Added && reasons.contains(&Reason::Mention) {
            mentions += 1;
        }
    }
    if mentions > 0 {
        app.store.count_in_hour(MENTIONS, &comment.visitor().0, mentions, now).await?;
    }
    Ok(())
}

/// Notifies recipients of a comment that everyone sees again, or for the `first` time. Safe to repeat.
pub(crate) async fn of_shown(app: &App, comment: &Comment, first: bool) -> Result<(), Fault> {
    if first { of_comment(app, comment).await } else { again(app, comment).await }
}

/// Notifies recipients of a comment whose text was accepted, unless the text is pending again or the comment is no
/// longer approved. Safe to repeat.
pub(crate) async fn of_accepted(app: &App, id: CommentId) -> Result<(), Fault> {
    if mail(app).is_none() {
        return Ok(());
    }
    let comment = app.store.comment(id, Reading::Consistent).await?;
    match comment.filter(|comment| comment.may_count() && !comment.in_review) {
        Some(comment) => again(app, &comment).await,
        None => Ok(()),
    }
}

/// Notifies recipients whose email left out the comment because its text was pending.
async fn again(app: &App, comment: &Comment) -> Result<(), Fault> {
    let Some(mail) = mail(app) else { return Ok(()) };
    let (thread, now) = (app.mail_keys().thread(&comment.thread), app.clock.now());
    for (recipient, reasons) in recipients(app, comment).await? {
        let notify =
            |state: &mut NotificationState| state.notify_accepted(comment.id, &reasons, &thread, now, mail.wait);
        app.notify(&recipient, notify).await?;
    }
    Ok(())
}

/// Notifies the writer of a rejected comment, if [`policy::rejection_recipient`] still returns the writer. Never sends
/// a confirmation. Safe to repeat.
pub(crate) async fn of_rejected(app: &App, id: CommentId) -> Result<(), Fault> {
    let Some(mail) = mail(app) else { return Ok(()) };
    let Some(comment) = app.store.comment(id, Reading::Consistent).await? else { return Ok(()) };
    let comment = &comment;
    let Some((recipient, reason)) = policy::rejection_recipient(comment) else { return Ok(()) };
    let address = comment.subscription.as_ref().and_then(|subscription| subscription.address.as_ref());
    if address.is_some_and(|address| address.confirmed) {
        enrol(app, mail, comment).await?;
    }
    let (thread, now) = (app.mail_keys().thread(&comment.thread), app.clock.now());
    let notify = |state: &mut NotificationState| {
        state.notify_rejected(comment.id, std::slice::from_ref(&reason), &thread, now, mail.wait)
    };
    app.notify(&recipient, notify).await.map(drop)
}

fn mail(app: &App) -> Option<&Mail> {
    app.config.mail.as_ref().filter(|_| app.config.features.subscriptions)
}

async fn recipients(app: &App, comment: &Comment) -> Result<BTreeMap<Recipient, Vec<Reason>>, Fault> {
    let parent = match comment.parent() {
        Some(parent) => app.store.comment(parent, Reading::Eventual).await?,
        None => None,
    };
    // The thread is needed only to notify its author, and authors are notified only of top-level comments.
    let thread = match parent {
        None => app.store.thread(&comment.thread, Reading::Eventual).await?,
        Some(_) => Thread::default(),
    };
    let mentioned = mentioned(app, comment).await?;
    Ok(policy::recipients(Notification { comment, parent: parent.as_ref(), mentioned: &mentioned, thread: &thread }))
}

/// Notifies the moderators of a comment that is pending, reported or new. Safe to repeat.
pub(crate) async fn moderators(app: &App, comment: &Comment) -> Result<(), Fault> {
    let Some(mail) = app.config.mail.as_ref().filter(|mail| !mail.moderators.is_empty()) else { return Ok(()) };
    let now = app.clock.now();
    let alert = |state: &mut NotificationState| state.alert(comment.id, comment.queue_entry(), now, mail.wait);
    app.notify(&Recipient::moderators(), alert).await.map(drop)
}

/// Notifies the moderators of a comment that is still pending or reported.
pub(crate) async fn moderators_if_waiting(app: &App, id: CommentId) -> Result<(), Fault> {
    if app.config.mail.as_ref().is_none_or(|mail| mail.moderators.is_empty()) {
        return Ok(());
    }
    let comment = app.store.comment(id, Reading::Consistent).await?;
    match comment.filter(Comment::waits_for_moderators) {
        Some(comment) => moderators(app, &comment).await,
        None => Ok(()),
    }
}

/// Returns the mentioned members, up to the limits per comment and per hour. If there are more, members who have
/// written in the thread take precedence.
async fn mentioned(app: &App, comment: &Comment) -> Result<Vec<UserId>, Fault> {
    if comment.mentions.is_empty() || comment.user.is_none() {
        return Ok(Vec::new());
    }
    let mut mentioned = app.store.users_of_handles(&comment.mentions).await?;
    mentioned.retain(|user| comment.user != Some(*user));
    let counted = app.store.counted_in_hour(MENTIONS, &comment.visitor().0, app.clock.now()).await?;
    let left = MAX_MENTIONS.saturating_sub(usize::try_from(counted).unwrap_or(usize::MAX));
    let most = policy::MAX_MENTIONED.min(left);
    if mentioned.len() > most {
        let writers = app.store.writers_in(&comment.thread, &mentioned).await?;
        mentioned.sort_by_key(|user| !writers.contains(user));
        mentioned.truncate(most);
    }
    Ok(mentioned)
}

/// Moves the address that a comment was posted with to its writer's notification state. A confirmed address whose owner
/// unsubscribed, or an unconfirmed one over the network's limit, is only removed from the comment. A visitor who has
/// already confirmed the address needs no new confirmation.
async fn enrol(app: &App, mail: &Mail, comment: &Comment) -> Result<(), Fault> {
    let Some(subscription) = &comment.subscription else { return Ok(()) };
    let Some(address) = &subscription.address else { return Ok(()) };
    let member = comment.user.map(Recipient::from);
    let Some(recipient) = member.as_ref().or(subscription.guest.as_ref()) else { return Ok(()) };
    let now = app.clock.now();
    let enrolment = app.store.notification_state(recipient).await?.enrolment;
    let name = match member {
        Some(_) => app.mail_keys().address(&address.sealed).unwrap_or_default(),
        None => Asker::of(&comment.visitor()),
    };
    let asker = || Asker::new(name.clone(), address.clone(), subscription.network.clone(), Some(comment.id));
    let change = |state: &mut NotificationState| match member {
        Some(_) if address.confirmed => state.enrol(address.clone(), now, mail.wait),
        Some(_) => state.claim_address(asker(), now, mail.wait),
        None => state.ask(asker(), now, mail.wait),
    };
    let is_admitted = if address.confirmed {
        !app.is_stopped_at(recipient, &enrolment, address).await?
    } else {
        let counts = enrolment.receives(address) && !enrolment.has_heard(&name, now);
        !counts || app.count_asking(&subscription.network, address).await?
    };
    if is_admitted {
        let (state, ()) = app.store.change_notification_state(recipient, change).await?;
        app.start_delivery(recipient, &state).await?;
    }
    app.store.forget_address(comment).await
}
