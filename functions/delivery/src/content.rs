//! Reads the comments of an email in their current state. Leaves out those that are gone, hidden, muted or no longer
//! wanted.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use shared::app::App;
use shared::aws::ses::RawMail;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ThreadId};
use shared::domain::language::Language;
use shared::domain::mail_keys::{Link, Purpose, Recipient};
use shared::domain::markdown;
use shared::domain::notifications::{Address, Asker, Notice, NotificationState, Reason};
use shared::domain::rejection::Grounds;
use shared::domain::texts::{Labels, Mails, ModeratorMails};
use shared::domain::thread::{PageInfo, Thread};
use shared::domain::visible::one_line;
use shared::error::Fault;
use shared::policy;
use shared::store::Reading;

use crate::compose::{self, Letter, Notification, Quote, Section};
use crate::{Content, Worker};

/// Maximum comments read concurrently.
const AT_ONCE: usize = 25;

/// The part of an email about one thread.
struct Listed {
    thread: Thread,
    /// The title and address that the page sent with one of the comments. Set only in the digest, because until a
    /// comment is approved, only moderators see them.
    page: Option<PageInfo>,
    entries: Vec<Entry>,
}

struct Entry {
    comment: Comment,
    headline: String,
    rejection: Option<Grounds>,
}

impl Entry {
    /// Returns the full text of a rejected comment, or an excerpt of a public one. Empty while the text is pending,
    /// because moderators read it on their page.
    fn text(&self) -> Quote {
        let shown = || markdown::shown(&self.comment.body);
        match self.rejection {
            Some(_) => Quote::whole(&shown()),
            None if self.comment.is_queued() => Quote::default(),
            None => Quote::excerpt(&shown()),
        }
    }
}

/// The outcome for a notice when its email is written.
enum Fate {
    Mailed(Box<(Thread, Entry)>),
    /// Left out of this email, but may be sent later.
    Aside,
    /// The comment is gone or hidden, or no longer concerns the recipient.
    Dropped,
}

type Threads = BTreeMap<String, (ThreadId, Listed)>;

impl Worker<'_> {
    /// Returns the address of the page where the recipient confirms an address or unsubscribes.
    fn link(&self, recipient: &Recipient, purpose: Purpose) -> String {
        let token = self.app.mail_keys().token(&Link { recipient: recipient.clone(), purpose });
        format!("{}/{}/mail/{token}", self.mail.public_url, self.app.config.api_prefix)
    }

    /// Returns the common parts of an email. `mail` distinguishes this email from others to the same address.
    pub(crate) fn letter<'a>(
        &'a self,
        recipient: &'a Recipient,
        mail: &str,
        to: String,
        language: Language,
    ) -> Letter<'a> {
        Letter {
            id: self.app.mail_keys().mail(recipient, mail),
            site: &self.mail.site_name,
            from: &self.mail.from,
            to,
            recipient,
            texts: Mails::of(language),
            stop_url: None,
            threads: Vec::new(),
        }
    }

    /// Composes a separate email for each moderator, so that moderators don't see each other's addresses and one
    /// rejected address doesn't block the rest.
    pub(crate) fn to_moderators(
        &self,
        mail: &str,
        compose: impl Fn(&Letter<'_>) -> Result<RawMail, Fault>,
    ) -> Result<Vec<RawMail>, Fault> {
        let recipient = Recipient::moderators();
        let letter = |to: &String| self.letter(&recipient, &format!("{mail} {to}"), to.clone(), Language::default());
        self.mail.moderators.iter().map(|to| compose(&letter(to))).collect()
    }

    pub(crate) fn moderation_page(&self) -> String {
        format!("{}/{}/moderate", self.mail.public_url, self.app.config.api_prefix)
    }

    /// Returns `None` when the address cannot be opened.
    fn letter_to<'a>(
        &'a self,
        recipient: &'a Recipient,
        state: &NotificationState,
        address: &Address,
    ) -> Option<Letter<'a>> {
        let to = self.app.mail_keys().open(&address.sealed)?;
        let stop = self.link(recipient, Purpose::Stop { thread: None });
        let letter = self.letter(recipient, &state.mail(), to, Language::of_tag(&address.language));
        Some(Letter { stop_url: Some(stop), ..letter })
    }

    /// Returns one section per thread. `link` makes the link to a comment from the address of its page.
    fn sections(
        &self,
        threads: &Threads,
        texts: Mails,
        mute: impl Fn(&ThreadId) -> Option<String>,
        link: impl Fn(&str, &Comment) -> String,
    ) -> Vec<Section> {
        let sections = threads.values().map(|(id, listed)| {
            let page = listed.page.as_ref();
            let url = listed.thread.known_url_or(page);
            let url = self.app.config.page_of(id, url).unwrap_or_else(|| self.mail.public_url.clone());
            let notification = |entry: &Entry| Notification {
                headline: entry.headline.clone(),
                body: entry.text(),
                details: entry.rejection.as_ref().map(|grounds| details(texts, grounds)).unwrap_or_default(),
                is_rejection: entry.rejection.is_some(),
                url: link(&url, &entry.comment),
            };
            let notifications = listed.entries.iter().map(notification).collect();
            let title = listed.thread.known_title_or(page);
            let title = title.map_or_else(|| format!("{}/{}", id.kind, id.record), str::to_owned);
            Section { title, mute_url: mute(id), notifications, url }
        });
        sections.collect()
    }
}

/// Composes an email that asks the owner of an address to confirm a request. If the address was confirmed before, the
/// email goes to the spelling confirmed then, because another spelling may belong to someone else.
pub(crate) fn confirmation(
    worker: &Worker<'_>,
    recipient: &Recipient,
    state: &NotificationState,
    asker: &Asker,
) -> Result<Vec<RawMail>, Fault> {
    let address = state.enrolment.address.as_ref().unwrap_or(&asker.address);
    let address = Address { language: asker.address.language.clone(), ..address.clone() };
    let Some(letter) = worker.letter_to(recipient, state, &address) else { return Ok(Vec::new()) };
    let Some(owner) = worker.app.owner(&address) else { return Ok(Vec::new()) };
    let url = worker.link(recipient, Purpose::confirm(asker.name.clone(), worker.app.clock.now()));
    // The stop link unsubscribes the address from everything, for everyone who claimed it.
    let letter = Letter { stop_url: Some(worker.link(&owner, Purpose::Stop { thread: None })), ..letter };
    Ok(vec![compose::confirmation(&letter, &url)?])
}

/// Returns the reason and note of a rejection, in the language of the email.
fn details(texts: Mails, grounds: &Grounds) -> Vec<String> {
    let labels = Labels::of_widget(texts.language());
    let reason = grounds.reason.map(|reason| (texts.reason(), labels.text(reason.label()).to_owned()));
    let note = grounds.note.as_ref().map(|note| (texts.note(), compose::without_empty_paragraphs(note)));
    let details = reason.into_iter().chain(note);
    details.map(|(what, text)| format!("{} {text}", texts.colon(what))).collect()
}

/// Composes an email about these notices. `more` is the number of notices that it leaves out.
pub(crate) async fn notifications(
    worker: &Worker<'_>,
    recipient: &Recipient,
    state: &NotificationState,
    ids: &BTreeSet<u64>,
    more: u64,
) -> Result<Content, Fault> {
    let letter = state.enrolment.address.as_ref().and_then(|address| worker.letter_to(recipient, state, address));
    let Some(mut letter) = letter else { return Ok(Content::default()) };
    let texts = letter.texts;
    let keys = worker.app.mail_keys();
    let (mut threads, mut aside) = (Threads::new(), BTreeSet::new());
    for ids in ids.iter().copied().collect::<Vec<_>>().chunks(AT_ONCE) {
        let fates = ids.iter().map(|id| fate(worker.app, recipient, state, texts, *id));
        for (id, fate) in ids.iter().zip(try_join_all(fates).await?) {
            match fate {
                Fate::Mailed(found) => {
                    let (thread, entry) = *found;
                    if !state.enrolment.is_muted(&keys.thread(&entry.comment.thread)) {
                        collect(&mut threads, thread, entry);
                    }
                }
                Fate::Aside => drop(aside.insert(*id)),
                Fate::Dropped => {}
            }
        }
    }
    if threads.is_empty() {
        return Ok(Content { aside, ..Content::default() });
    }
    letter.threads = threads.values().map(|(id, _)| keys.thread(id)).collect();
    let mute = |id: &ThreadId| Some(worker.link(recipient, Purpose::Stop { thread: Some(keys.thread(id)) }));
    let mail = compose::notifications(&letter, &worker.sections(&threads, texts, mute, anchor), more)?;
    Ok(Content { aside, ..Content::of(vec![mail]) })
}

async fn fate(
    app: &App,
    recipient: &Recipient,
    state: &NotificationState,
    texts: Mails,
    notice: u64,
) -> Result<Fate, Fault> {
    match Notice::of_number(notice) {
        Notice::Comment(id) => notification(app, recipient, state, texts, id).await,
        Notice::Rejection(id) => rejection(app, recipient, state, texts, id).await,
    }
}

/// Returns the fate of a rejection notice. It is set aside if the writer isn't to be notified at present, for example
/// after an undo, because the comment may be rejected again.
async fn rejection(
    app: &App,
    recipient: &Recipient,
    state: &NotificationState,
    texts: Mails,
    id: CommentId,
) -> Result<Fate, Fault> {
    let comment = app.store.comment(id, Reading::Consistent).await?.filter(|comment| !comment.is_placeholder);
    let Some(comment) = comment else { return Ok(Fate::Dropped) };
    let Some((writer, reason)) = policy::rejection_recipient(&comment) else { return Ok(Fate::Aside) };
    if writer != *recipient || !state.enrolment.wants_to_know(&reason) {
        return Ok(Fate::Dropped);
    }
    let thread = app.store.thread(&comment.thread, Reading::Eventual).await?;
    let (headline, rejection) = (texts.rejected().to_owned(), Some(comment.grounds()));
    Ok(Fate::Mailed(Box::new((thread, Entry { comment, headline, rejection }))))
}

/// Returns the fate of a notice about a comment. The headline gives the reason for notifying the recipient.
async fn notification(
    app: &App,
    recipient: &Recipient,
    state: &NotificationState,
    texts: Mails,
    id: CommentId,
) -> Result<Fate, Fault> {
    let found = app.store.comment_with_ancestors(id, Reading::Consistent).await?;
    let found = found.filter(|found| policy::is_public(&found.comment, &found.ancestors));
    let Some(found) = found else { return Ok(Fate::Dropped) };
    let thread = app.store.thread(&found.comment.thread, Reading::Eventual).await?;
    let mut mentioned = app.store.users_of_handles(&found.comment.mentions).await?;
    // Several users may share a handle. The users to notify were chosen earlier, and this recipient is one of them.
    mentioned.retain(|user| Recipient::from(*user) == *recipient);
    let (comment, parent) = (&found.comment, found.ancestors.last());
    let concerned =
        policy::recipients(policy::Notification { comment, parent, mentioned: &mentioned, thread: &thread });
    let mut reasons = concerned.get(recipient).into_iter().flatten();
    let Some(reason) = reasons.find(|reason| state.enrolment.wants_to_know(reason)) else { return Ok(Fate::Dropped) };
    if comment.in_review {
        return Ok(Fate::Aside);
    }
    let name = one_line(&found.comment.name);
    let headline = match reason {
        Reason::Reply { .. } | Reason::ReplyToGuest(_) => texts.answered(&name),
        Reason::Mention => texts.mentioned(&name),
        Reason::OwnRecord => texts.commented(&name),
    };
    Ok(Fate::Mailed(Box::new((thread, Entry { comment: found.comment, headline, rejection: None }))))
}

fn collect(threads: &mut Threads, thread: Thread, entry: Entry) {
    let id = &entry.comment.thread;
    let new = || (id.clone(), Listed { thread, page: None, entries: Vec::new() });
    let (_, listed) = threads.entry(id.to_string()).or_insert_with(new);
    listed.entries.push(entry);
}

fn anchor(page: &str, comment: &Comment) -> String {
    format!("{}#comment-{}", page.split('#').next().unwrap_or_default(), comment.id)
}

/// Composes emails to the moderators about comments that are still pending or reported, and about all public comments
/// if the digest covers them.
pub(crate) async fn digest(
    worker: &Worker<'_>,
    state: &NotificationState,
    ids: &BTreeSet<u64>,
    more: u64,
) -> Result<Vec<RawMail>, Fault> {
    let (app, has_all) = (worker.app, worker.mail.digest_has_all);
    let texts = ModeratorMails::of(Language::default());
    let is_named = |comment: &Comment| comment.waits_for_moderators() || (has_all && comment.may_count());
    let mut threads = Threads::new();
    for ids in ids.iter().copied().collect::<Vec<_>>().chunks(AT_ONCE) {
        let found = ids.iter().map(|id| app.store.comment(CommentId(*id), Reading::Consistent));
        for comment in try_join_all(found).await?.into_iter().flatten().filter(is_named) {
            let thread = app.store.thread(&comment.thread, Reading::Eventual).await?;
            let name = one_line(&comment.name);
            let headline = match (comment.is_queued(), comment.reported) {
                (true, _) => texts.waits(&name),
                (false, true) => texts.reported(&name),
                (false, false) => name,
            };
            collect(&mut threads, thread, Entry { comment, headline, rejection: None });
        }
    }
    if threads.is_empty() {
        return Ok(Vec::new());
    }
    for (_, listed) in threads.values_mut() {
        listed.page = listed.entries.iter().find_map(|entry| entry.comment.page.as_deref().cloned());
    }
    let page = worker.moderation_page();
    let sections =
        worker.sections(&threads, Mails::of(texts.language()), |_| None, |_, comment| anchor(&page, comment));
    worker.to_moderators(&state.mail(), |letter| compose::digest(letter, &sections, more, &page, has_all))
}
