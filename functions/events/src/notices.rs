//! Who is told of a comment: its id goes into their mailboxes. The function `delivery` writes the mails.

use shared::app::App;
use shared::app::mails::Enrolment;
use shared::config::Mail;
use shared::domain::comment::Comment;
use shared::domain::ids::UserId;
use shared::domain::mail_keys::Recipient;
use shared::domain::mailbox::{Cause, Mailbox, Told};
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
    let Some(mail) = app.config.mail.as_ref().filter(|_| app.config.features.subscriptions) else { return Ok(()) };
    enrol(app, mail, comment).await?;
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
    let news = News { comment, parent: parent.as_ref(), mentioned: &mentioned, thread: &thread };
    let muted = app.mail_keys().thread(&comment.thread);
    let (now, mut mentions) = (app.clock.now(), 0);
    for (recipient, causes) in policy::told(news) {
        let tell = |mailbox: &mut Mailbox| {
            let wanted = causes.iter().any(|cause| mailbox.wants_to_know(*cause));
            if wanted { mailbox.tell(comment.id, &muted, now.0, mail.wait) } else { Told::No }
        };
        if app.tell(&recipient, tell).await? == Told::Added && causes.contains(&Cause::Mention) {
            mentions += 1;
        }
    }
    if mentions > 0 {
        app.store.count_in_hour(MENTIONS, &comment.visitor().0, mentions, now).await?;
    }
    Ok(())
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

/// Moves the address of a new comment to its writer's mailbox.
async fn enrol(app: &App, mail: &Mail, comment: &Comment) -> Result<(), Fault> {
    let Some(subscription) = &comment.subscription else { return Ok(()) };
    let Some(address) = &subscription.address else { return Ok(()) };
    let member = comment.user.map(Recipient::from);
    let Some(recipient) = member.or_else(|| subscription.guest.clone()) else { return Ok(()) };
    let now = app.clock.now().0;
    let mailbox = app.store.mailbox(&recipient).await?;
    if app.enrolment(&comment.visitor(), &recipient, &mailbox, address).await? == Enrolment::Allowed {
        let (mailbox, ()) =
            app.store.change_mailbox(&recipient, |mailbox| mailbox.enrol(address.clone(), now, mail.wait)).await?;
        app.start_delivery(&recipient, &mailbox).await?;
    }
    app.store.forget_address(comment).await
}
