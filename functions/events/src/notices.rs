//! Who is told of a comment: its id goes into their mailboxes. The function `delivery` writes the mails.

use std::collections::BTreeMap;

use shared::app::App;
use shared::config::Mail;
use shared::domain::comment::Comment;
use shared::domain::ids::UserId;
use shared::domain::mail_keys::Recipient;
use shared::domain::mailbox::{Asker, Cause, Mailbox, Told};
use shared::domain::thread::Thread;
use shared::error::Fault;
use shared::policy::{self, News};
use shared::store::Reading;

/// Mentions by one member that are told in an hour.
const MAX_MENTIONS: usize = 50;
/// What counts them.
const MENTIONS: &str = "told";

/// Tells of a comment that everyone may see now. Safe to repeat.
pub(crate) async fn tell(app: &App, comment: &Comment) -> Result<(), Fault> {
    let Some(mail) = mail(app) else { return Ok(()) };
    enrol(app, mail, comment).await?;
    let thread = app.mail_keys().thread(&comment.thread);
    let (now, mut mentions) = (app.clock.now(), 0);
    for (recipient, causes) in recipients(app, comment).await? {
        let tell = |mailbox: &mut Mailbox| mailbox.tell(comment.id, &causes, &thread, now.0, mail.wait);
        if app.tell(&recipient, tell).await? == Told::Added && causes.contains(&Cause::Mention) {
            mentions += 1;
        }
    }
    if mentions > 0 {
        app.store.count_in_hour(MENTIONS, &comment.visitor().0, mentions, now).await?;
    }
    Ok(())
}

/// Tells of a comment that everyone sees again, or for the `first` time. Safe to repeat.
pub(crate) async fn tell_shown(app: &App, comment: &Comment, first: bool) -> Result<(), Fault> {
    if first { tell(app, comment).await } else { tell_accepted(app, comment).await }
}

/// Tells of a comment whose text was accepted, where a mail left it out because the text waited. Safe to repeat.
pub(crate) async fn tell_accepted(app: &App, comment: &Comment) -> Result<(), Fault> {
    let Some(mail) = mail(app) else { return Ok(()) };
    let (thread, now) = (app.mail_keys().thread(&comment.thread), app.clock.now().0);
    for (recipient, causes) in recipients(app, comment).await? {
        let tell = |mailbox: &mut Mailbox| mailbox.tell_accepted(comment.id, &causes, &thread, now, mail.wait);
        app.tell(&recipient, tell).await?;
    }
    Ok(())
}

fn mail(app: &App) -> Option<&Mail> {
    app.config.mail.as_ref().filter(|_| app.config.features.subscriptions)
}

/// Whom the comment concerns, and why.
async fn recipients(app: &App, comment: &Comment) -> Result<BTreeMap<Recipient, Vec<Cause>>, Fault> {
    let parent = match comment.parent() {
        Some(parent) => app.store.comment(parent, Reading::Eventual).await?,
        None => None,
    };
    // Only the author of a record is told because of it, and of top-level comments.
    let thread = match parent {
        None => app.store.thread(&comment.thread, Reading::Eventual).await?,
        Some(_) => Thread::default(),
    };
    let mentioned = mentioned(app, comment).await?;
    Ok(policy::told(News { comment, parent: parent.as_ref(), mentioned: &mentioned, thread: &thread }))
}

/// Tells the moderators of a comment that waits for them. Safe to repeat.
pub(crate) async fn alert(app: &App, comment: &Comment) -> Result<(), Fault> {
    let Some(mail) = app.config.mail.as_ref().filter(|mail| !mail.moderators.is_empty()) else { return Ok(()) };
    let now = app.clock.now().0;
    let alert = |mailbox: &mut Mailbox| mailbox.alert(comment.id, comment.occasion(), now, mail.wait);
    app.tell(&Recipient::moderators(), alert).await.map(drop)
}

/// The members whom the comment mentions, as far as its writer may mention more in this hour.
async fn mentioned(app: &App, comment: &Comment) -> Result<Vec<UserId>, Fault> {
    if comment.mentions.is_empty() || comment.user.is_none() {
        return Ok(Vec::new());
    }
    let mut mentioned = app.store.users_of_handles(&comment.mentions).await?;
    let told = app.store.counted_in_hour(MENTIONS, &comment.visitor().0, app.clock.now()).await?;
    let left = MAX_MENTIONS.saturating_sub(usize::try_from(told).unwrap_or(usize::MAX));
    mentioned.truncate(policy::MAX_MENTIONED.min(left));
    Ok(mentioned)
}

/// Moves the address of a new comment to its writer's mailbox. A visitor who was confirmed asks for nothing.
async fn enrol(app: &App, mail: &Mail, comment: &Comment) -> Result<(), Fault> {
    let Some(subscription) = &comment.subscription else { return Ok(()) };
    let Some(address) = &subscription.address else { return Ok(()) };
    let member = comment.user.map(Recipient::from);
    let Some(recipient) = member.as_ref().or(subscription.guest.as_ref()) else { return Ok(()) };
    let now = app.clock.now().0;
    let mailbox = app.store.mailbox(recipient).await?;
    let name = match member {
        Some(_) => app.mail_keys().address(&address.sealed).unwrap_or_default(),
        None => Asker::of(&comment.visitor()),
    };
    let asker = || Asker::new(name.clone(), address.clone(), subscription.network.clone(), Some(comment.id));
    let change = |mailbox: &mut Mailbox| match member {
        Some(_) if address.confirmed => mailbox.enrol(address.clone(), now, mail.wait),
        Some(_) => mailbox.claim(asker(), now, mail.wait),
        None => mailbox.ask(asker(), now, mail.wait),
    };
    let is_admitted = if address.confirmed {
        !app.is_stopped_at(recipient, &mailbox, address).await?
    } else {
        let counts = mailbox.hears(address) && !mailbox.has_heard(&name, now);
        !counts || app.count_asking(&subscription.network, address).await?
    };
    if is_admitted {
        let (mailbox, ()) = app.store.change_mailbox(recipient, change).await?;
        app.start_delivery(recipient, &mailbox).await?;
    }
    app.store.forget_address(comment).await
}
