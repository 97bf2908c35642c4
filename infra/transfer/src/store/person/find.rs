//! Searches the whole table for one person: data that identifies the person, items to erase, and items that still name
//! the person after an erasure.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use shared::domain::avatar::Avatar;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ThreadId, UserId, Visitor};
use shared::domain::log::LogEntry;
use shared::domain::mail_keys::Recipient;
use shared::domain::name::ModeratorNames;
use shared::domain::notifications::NotificationState;
use shared::domain::person::{KnownBy, Person, Who};
use shared::domain::report::Report;
use shared::domain::thread::Thread;
use shared::domain::time::Timestamp;
use shared::domain::user::User;
use shared::error::Fault;
use shared::store::keys::{self, Item, ItemKind, Key};
use shared::store::schema::{
    Attribute, Names, PK, SK, Type, banned, comment, idempotency, import_journal, maps, native_import, redirect_flow,
    user,
};
use shared::store::{Store, read};

use crate::store::for_each_item;

/// An item of the table that names the person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match(pub(super) MatchKind);

/// An item to erase. The variants are in the order of erasure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchKind {
    /// A placeholder from an interrupted erasure.
    Placeholder(CommentId),
    /// Deepest first, so that a comment whose only replies are the person's is deleted too.
    Comment {
        height: std::cmp::Reverse<usize>,
        id: CommentId,
    },
    /// Likes and reports in a thread.
    VisitorState(Key, Visitor),
    Report(CommentId, u64),
    /// A thread whose author is the person.
    Record(Key),
    Log(Key),
    /// A rate limiter's item, a repeated request or an idempotency key.
    Request {
        key: Key,
        /// The name of the image that the request uploaded.
        upload: Option<String>,
    },
    Profile,
    /// The trust in a guest.
    Trust(Key),
    Notifications(Key),
    /// Codes, sessions or redirect flows of an account.
    SignIn(Key),
    /// A moderator's reserved name.
    ModeratorName,
    /// A handle or a name fragment.
    Directory(Key),
    /// An ended ban's entry in the list of bans.
    Ban(u64),
    /// Another writer's comment that names the person, by a handle or as the moderator who rejected it.
    Named(CommentId),
}

impl Match {
    /// The comment, if the match is one.
    #[must_use]
    pub fn comment(&self) -> Option<CommentId> {
        match self.0 {
            MatchKind::Comment { id, .. } => Some(id),
            _ => None,
        }
    }

    /// The name of the image, if the match is a request that uploaded one.
    #[must_use]
    pub fn upload(&self) -> Option<&str> {
        match &self.0 {
            MatchKind::Request { upload, .. } => upload.as_deref(),
            _ => None,
        }
    }
}

/// The items that still name a person.
#[derive(Debug, Default)]
pub struct Remains {
    /// The number of items that should have been erased.
    pub left: u64,
    pub stays: Vec<Retained>,
}

/// Data that names the person but isn't erased, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Retained {
    pub what: String,
    pub why: String,
}

impl Retained {
    fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

#[must_use]
pub fn wrote(person: &Person, comment: &Comment) -> bool {
    let recipient = comment.subscription.as_ref().and_then(|subscription| subscription.guest.as_ref());
    match (&person.who, comment.user, &comment.avatar) {
        (_, Some(writer), _) => writer == person.user(),
        // Different spellings of an address belong to the same recipient.
        (Who::Address { .. }, None, _) if recipient.is_some_and(|own| person.known.recipients.contains(own)) => true,
        (Who::Address { .. }, None, _)
            if comment.address.as_ref().is_some_and(|own| person.known.keyed.contains(own)) =>
        {
            true
        }
        (Who::Address { .. }, None, Avatar::Gravatar(hash)) => person.known.addresses.contains(hash),
        (_, None, _) => false,
    }
}

/// Collects everything that identifies a person in the table. `earlier` is the data that an unfinished erasure had
/// collected. Returns `None` while an import in batches or of a native file is unfinished.
pub async fn identify(store: &Store, who: Who, earlier: Option<KnownBy>) -> Result<Option<Person>, Fault> {
    let mut person = Person::new(who);
    person.known.extend(earlier.unwrap_or_default());
    let mut identified = Identification::default();
    for_each_item(store, |item| identified.add(&person, item)).await?;
    // If several people share a network and a browser, it's unknown who gave which like.
    identified.known.visitors.retain(|visitor| !identified.others.contains(visitor));
    person.known.extend(identified.known);
    Ok((!identified.is_importing).then_some(person))
}

/// All items to erase, in order. Calls `see` with every comment in the table, and whether the person wrote it.
pub async fn matches(
    store: &Store,
    person: &Person,
    who: &str,
    now: Timestamp,
    mut see: impl FnMut(&Comment, bool),
) -> Result<Vec<Match>, Fault> {
    let handles = person.handles();
    let mut matches = BTreeSet::new();
    for_each_item(store, |item| {
        matches.extend(match_of(person, &handles, who, now, item, &mut see)?.map(Match));
        Ok::<_, Fault>(())
    })
    .await?;
    Ok(matches.into_iter().collect())
}

/// Looks for the person in all items, except those that erasures themselves write.
pub async fn remains(store: &Store, person: &Person, who: &str, now: Timestamp) -> Result<Remains, Fault> {
    let mut search = Search::new(person, now);
    let journal = keys::erasure(who).pk;
    // The erasure's own item is deleted later. Items that keep imports from restoring the person stay.
    let is_searched = |key: &Key| key.pk != journal && !matches!(ItemKind::of(key), ItemKind::Forgotten);
    for_each_item(store, |item| {
        if let Some(key) = Key::of(&item).filter(is_searched) {
            search.look(&key, &item);
        }
        Ok::<_, Fault>(())
    })
    .await?;
    Ok(search.remains())
}

#[derive(Default)]
struct Identification {
    known: KnownBy,
    /// Guests who wrote comments that aren't the person's.
    others: BTreeSet<Visitor>,
    is_importing: bool,
}

impl Identification {
    fn add(&mut self, person: &Person, item: Item) -> Result<(), Fault> {
        let Some(key) = Key::of(&item) else { return Ok(()) };
        let user = person.user();
        match ItemKind::of(&key) {
            ItemKind::Comment(_) => {
                let comment: Comment = read(item)?;
                if rejected_by(user, &comment) {
                    self.known.names.extend(comment.rejection.as_ref().map(|rejection| rejection.name.clone()));
                }
                if wrote(person, &comment) {
                    self.picture(&comment.avatar);
                    self.known.names.insert(comment.name);
                    self.known.visitors.extend(comment.guest);
                    let subscription = comment.subscription.unwrap_or_default();
                    self.known.recipients.extend(subscription.guest);
                    self.known.sealed.extend(subscription.address.map(|address| address.sealed));
                } else {
                    self.others.extend(comment.guest);
                }
            }
            ItemKind::User(id) if id == user => {
                let User { name, avatar, renamed_at, subject, account, .. } = read(item)?;
                self.picture(&avatar);
                self.known.has_picture |= matches!(avatar, Avatar::Picture(_));
                self.known.profile_changed |= renamed_at.is_some();
                self.known.names.insert(name);
                self.known.subjects.extend(subject);
                if let Some(account) = account {
                    self.known.sealed.extend(account.address);
                    self.known.inboxes.extend(account.inbox);
                }
            }
            ItemKind::Report(_) => {
                let Report { user: reporter, name, avatar, .. } = read(item)?;
                if reporter == Some(user) {
                    self.picture(&avatar);
                    self.known.names.insert(name);
                }
            }
            ItemKind::Log => {
                let LogEntry { moderator, name, .. } = read(item)?;
                if moderator == Some(user) {
                    self.known.names.insert(name);
                }
            }
            ItemKind::NotificationState(recipient) if person.known.recipients.contains(&recipient) => {
                let state: NotificationState = read(item)?;
                self.known.sealed.extend(state.enrolment.addresses().map(|address| address.sealed.clone()));
            }
            ItemKind::ImportJournal(_) => self.is_importing |= !item.contains_key(import_journal::LAST),
            ItemKind::NativeImport => self.is_importing |= item.contains_key(native_import::UNFINISHED),
            _ => {}
        }
        self.known.names.remove("");
        Ok(())
    }

    fn picture(&mut self, avatar: &Avatar) {
        if let Avatar::Gravatar(hash) = avatar {
            self.known.addresses.insert(hash.clone());
        }
    }
}

/// Determines how to erase an item for the person. `None` if the item stays.
pub(super) fn match_of(
    person: &Person,
    handles: &BTreeSet<String>,
    who: &str,
    now: Timestamp,
    item: Item,
    see: &mut impl FnMut(&Comment, bool),
) -> Result<Option<MatchKind>, Fault> {
    let Some(key) = Key::of(&item) else { return Ok(None) };
    let user = person.user();
    let is = |visitor: &Visitor| person.known.visitors.contains(visitor);
    Ok(match ItemKind::of(&key) {
        ItemKind::Comment(id) => {
            let comment: Comment = read(item)?;
            let wrote = wrote(person, &comment);
            see(&comment, wrote);
            let height = std::cmp::Reverse(comment.ancestors.len());
            let mentions = comment.mentions.iter().any(|handle| handles.contains(handle));
            let is_named = mentions || rejected_by(user, &comment);
            wrote.then_some(MatchKind::Comment { height, id }).or(is_named.then_some(MatchKind::Named(id)))
        }
        ItemKind::Report(comment) => {
            let report: Report = read(item)?;
            let is_own = is(&report.visitor) || report.user == Some(user);
            is_own.then_some(MatchKind::Report(comment, report.id))
        }
        ItemKind::VisitorState(visitor, _) | ItemKind::VisitorOverflow(visitor, _) => {
            is(&visitor).then_some(MatchKind::VisitorState(key, visitor))
        }
        ItemKind::Thread(_) => {
            let thread: Thread = read(item)?;
            (thread.author == Some(user)).then_some(MatchKind::Record(key))
        }
        ItemKind::Log => {
            let entry: LogEntry = read(item)?;
            [entry.moderator, entry.user].contains(&Some(user)).then_some(MatchKind::Log(key))
        }
        ItemKind::User(id) => (id == user && !is_ban_alone(item, now)?).then_some(MatchKind::Profile),
        ItemKind::Guest(visitor) => is(&visitor).then_some(MatchKind::Trust(key)),
        ItemKind::Sessions(id) => (id == user).then_some(MatchKind::SignIn(key)),
        ItemKind::Inbox(hash) => person.known.inboxes.contains(&hash).then_some(MatchKind::SignIn(key)),
        ItemKind::RedirectFlow => {
            let is_own = item.get(redirect_flow::USER) == Some(&shared::store::number(user.0));
            is_own.then_some(MatchKind::SignIn(key))
        }
        ItemKind::ModeratorNames => {
            let names: ModeratorNames = read(item)?;
            names.has_one_of(user).then_some(MatchKind::ModeratorName)
        }
        ItemKind::Handle(id) | ItemKind::NameFragment(id) => (id == user).then_some(MatchKind::Directory(key)),
        ItemKind::Banned(id) => {
            let is_own = item.get(banned::USER) == Some(&shared::store::number(user.0));
            (is_own && has_ended(&item, now)).then_some(MatchKind::Ban(id))
        }
        ItemKind::ErasedComment(id) => (key.pk == keys::erasure(who).pk).then_some(MatchKind::Placeholder(id)),
        ItemKind::NotificationState(recipient) if person.known.recipients.contains(&recipient) => {
            (!is_refusal_alone(&recipient, item)?).then_some(MatchKind::Notifications(key))
        }
        ItemKind::Limiter(visitor) | ItemKind::Repeat(visitor) => {
            is(&visitor).then_some(MatchKind::Request { key, upload: None })
        }
        ItemKind::Idempotency(visitor) if is(&visitor) => {
            let upload = item.get(idempotency::ANSWER).and_then(|answer| answer.as_s().ok().cloned());
            Some(MatchKind::Request { key, upload })
        }
        _ => None,
    })
}

pub(super) fn rejected_by(user: UserId, comment: &Comment) -> bool {
    comment.rejection.as_ref().is_some_and(|rejection| rejection.moderator == Some(user))
}

/// Whether a user's item contains only a ban in force, without its reason.
fn is_ban_alone(item: Item, now: Timestamp) -> Result<bool, Fault> {
    let has_reason = |ban: &AttributeValue| ban.as_m().is_ok_and(|ban| ban.contains_key(maps::ban::REASON));
    let is_bare = item.iter().all(|(name, value)| match name.as_str() {
        PK | SK | user::ID | user::BAN_ID | user::IMPORTED_BAN => true,
        user::BAN => !has_reason(value),
        _ => false,
    });
    let user: User = read(item)?;
    Ok(is_bare && user.present_ban(now).is_some())
}

/// Whether a guest's notification state contains only the refusal of emails.
fn is_refusal_alone(recipient: &Recipient, item: Item) -> Result<bool, Fault> {
    if !recipient.is_guest() {
        return Ok(false);
    }
    let state: NotificationState = read(item)?;
    Ok(state.refusal().as_ref() == Some(&state))
}

/// Whether the ban in this item has ended.
fn has_ended(item: &Item, now: Timestamp) -> bool {
    let expires = item.get(banned::EXPIRES).and_then(|x| x.as_n().ok()?.parse::<i64>().ok());
    expires.is_some_and(|expires| expires <= now.seconds())
}

pub(super) struct Search<'a> {
    person: &'a Person,
    now: Timestamp,
    left: u64,
    stays: BTreeSet<Retained>,
    /// Other users whose items have the person's email address, hashed or sealed.
    members: BTreeSet<UserId>,
    /// The number of guests' items with that address.
    guests: u64,
}

/// How an item names the person.
#[derive(PartialEq, Eq)]
enum Naming {
    No,
    Directly,
    /// By an email address, hashed or sealed, in an item that belongs to a guest or to another user.
    ByAddress,
    InWords,
}

impl<'a> Search<'a> {
    pub(super) fn new(person: &'a Person, now: Timestamp) -> Self {
        Self { person, now, left: 0, stays: BTreeSet::new(), members: BTreeSet::new(), guests: 0 }
    }

    /// Whether an item names the person directly or in its text, not just by an email address that others have too.
    pub(super) fn is_named_anywhere(&self, key: &Key, item: &Item) -> bool {
        let kind = ItemKind::of(key);
        self.naming(&kind, item) == Naming::Directly || self.in_words(&kind, item) == Naming::InWords
    }

    fn look(&mut self, key: &Key, item: &Item) {
        let kind = ItemKind::of(key);
        match (self.naming(&kind, item), kind) {
            (Naming::No, _) => {}
            (Naming::Directly, ItemKind::User(id)) if is_ban_alone(item.clone(), self.now).unwrap_or_default() => {
                let why = "bans are kept, with their id and end";
                self.stays.insert(Retained::new(format!("ban of user {id}"), why));
            }
            (Naming::Directly, ItemKind::Banned(_)) if !has_ended(item, self.now) => {}
            (Naming::Directly, ItemKind::NotificationState(recipient))
                if is_refusal_alone(&recipient, item.clone()).unwrap_or_default() =>
            {
                let why = "a keyed hash of the address is kept, so that no one can subscribe it again";
                self.stays.insert(Retained::new("an unsubscription", why));
            }
            (Naming::Directly, _) => self.left += 1,
            (Naming::ByAddress, kind) => match user_of(&kind, item) {
                Some(user) => drop(self.members.insert(user)),
                None => self.guests += 1,
            },
            (Naming::InWords, kind) => {
                let why = "others' words, which contain the name";
                self.stays.insert(Retained::new(describe(&kind, item), why));
            }
        }
    }

    fn naming(&self, kind: &ItemKind, item: &Item) -> Naming {
        let Some(schema) = kind.schema() else {
            return if self.is_traced(item) { Naming::Directly } else { self.in_words(kind, item) };
        };
        let known = &self.person.known;
        let attributes = || schema.attributes.iter().chain(schema.index_keys);
        if self.is_in_key(kind) || self.is_traced(item) || attributes().any(|attribute| self.is_named(attribute, item))
        {
            return Naming::Directly;
        }
        let addresses = || known.addresses.iter().chain(&known.sealed);
        let has_address = |text: &&str| addresses().any(|hash| text.contains(hash.as_str()));
        if texts(item).iter().any(has_address) {
            // A guest who is erased by email address isn't the user whose token has the address, and vice versa.
            let is_other = matches!(self.person.who, Who::User(_)) || user_of(kind, item).is_some();
            return if is_other { Naming::ByAddress } else { Naming::Directly };
        }
        self.in_words(kind, item)
    }

    fn is_in_key(&self, kind: &ItemKind) -> bool {
        let known = &self.person.known;
        match kind {
            ItemKind::VisitorState(visitor, _)
            | ItemKind::VisitorOverflow(visitor, _)
            | ItemKind::Limiter(visitor)
            | ItemKind::Repeat(visitor)
            | ItemKind::Idempotency(visitor)
            | ItemKind::Guest(visitor) => known.visitors.contains(visitor),
            ItemKind::NotificationState(recipient) => known.recipients.contains(recipient),
            ItemKind::User(id) | ItemKind::Handle(id) | ItemKind::NameFragment(id) | ItemKind::Sessions(id) => {
                self.person.user() == *id
            }
            ItemKind::Inbox(hash) => known.inboxes.contains(hash),
            _ => false,
        }
    }

    /// Whether the attribute names the person. Searches a map's attributes too.
    fn is_named(&self, attribute: &Attribute, of: &Item) -> bool {
        let Some(value) = of.get(attribute.name) else { return false };
        let inside = match (attribute.ty, value) {
            (Type::M(_, attributes), AttributeValue::M(map)) => {
                attributes.iter().any(|attribute| self.is_named(attribute, map))
            }
            _ => false,
        };
        inside || attribute.names.is_some_and(|names| self.is_in(value, names))
    }

    fn in_words(&self, kind: &ItemKind, item: &Item) -> Naming {
        let texts = match kind.schema() {
            Some(schema) => {
                let attributes = schema.attributes.iter().chain(schema.index_keys);
                let words = attributes.filter(|attribute| attribute.names == Some(Names::Words));
                words.filter_map(|attribute| item.get(attribute.name)).flat_map(texts_of).collect()
            }
            None => texts(item),
        };
        let named = texts.into_iter().any(|text| self.person.is_named_in(text));
        if named { Naming::InWords } else { Naming::No }
    }

    fn is_in(&self, value: &AttributeValue, names: Names) -> bool {
        let (known, user) = (&self.person.known, self.person.user());
        let text = value.as_s().map(String::as_str).unwrap_or_default();
        match names {
            Names::User => *value == shared::store::number(user.0),
            Names::Visitor => known.visitors.iter().any(|visitor| visitor.0 == text),
            Names::Index => {
                let visitor = text.rsplit('#').next().unwrap_or_default();
                let of_visitor = known.visitors.iter().any(|known| known.0 == visitor);
                of_visitor || keys::author(&user.into()) == text
            }
            Names::Hash | Names::Picture | Names::Name | Names::Words => false,
        }
    }

    /// Whether the item contains a hash that belongs only to the person.
    fn is_traced(&self, item: &Item) -> bool {
        let known = &self.person.known;
        let visitors =
            known.visitors.iter().filter(|visitor| visitor.user().is_none()).map(|visitor| visitor.0.as_str());
        let recipients =
            known.recipients.iter().map(|recipient| recipient.0.as_str()).filter(|name| name.starts_with('m'));
        let hashes: Vec<&str> =
            visitors.chain(recipients).chain(known.subjects.iter().chain(&known.keyed).map(String::as_str)).collect();
        texts(item).iter().any(|text| hashes.iter().any(|hash| text.contains(hash)))
    }

    fn remains(mut self) -> Remains {
        for user in self.members {
            let why = format!("also has this address; --user {user} erases that user's data");
            self.stays.insert(Retained::new(format!("user {user}"), why));
        }
        if self.guests > 0 {
            let what = format!("{} items of guests", self.guests);
            self.stays.insert(Retained::new(what, "they have this user's address; --email erases them"));
        }
        if self.person.known.has_picture && self.person.known.addresses.is_empty() {
            let why = "not searched for, because the user's picture doesn't reveal the address; --email erases them";
            self.stays.insert(Retained::new("guests' items with the user's address", why));
        }
        if self.person.known.profile_changed {
            let why = "not searched for, because the profile has changed and former names are not stored";
            self.stays.insert(Retained::new("others' mentions, words and emails with a former name", why));
        }
        Remains { left: self.left, stays: self.stays.into_iter().collect() }
    }
}

/// The user that the item belongs to; `None` for guests.
fn user_of(kind: &ItemKind, item: &Item) -> Option<UserId> {
    match kind {
        ItemKind::NotificationState(recipient) => recipient.0.strip_prefix('u')?.parse().ok(),
        _ => item.get(user::ID)?.as_n().ok()?.parse().ok(),
    }
}

fn texts(item: &Item) -> Vec<&str> {
    item.values().flat_map(texts_of).collect()
}

fn texts_of(value: &AttributeValue) -> Vec<&str> {
    match value {
        AttributeValue::S(text) => vec![text],
        AttributeValue::Ss(set) => set.iter().map(String::as_str).collect(),
        AttributeValue::L(list) => list.iter().flat_map(texts_of).collect(),
        AttributeValue::M(map) => map.values().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

/// A description of the item for the service's owner.
fn describe(kind: &ItemKind, item: &Item) -> String {
    let in_thread = || {
        let thread = item.get(comment::THREAD).and_then(|thread| ThreadId::try_from(thread.as_s().ok()?.clone()).ok());
        thread.map(|thread| format!(" in {}/{}", thread.kind, thread.record)).unwrap_or_default()
    };
    match kind {
        ItemKind::Comment(id) => format!("comment {id}{}", in_thread()),
        ItemKind::Report(id) => format!("report of comment {id}"),
        ItemKind::Thread(thread) => format!("{}/{}", thread.kind, thread.record),
        ItemKind::User(id) => format!("ban of user {id}"),
        _ => Key::of(item).map(|key| format!("{} {}", key.pk, key.sk)).unwrap_or_default(),
    }
}

/// Images by name, with the oldest comment that links to each. The comment's writer is assumed to have uploaded the
/// image.
#[derive(Debug, Default)]
pub struct Links(BTreeMap<String, (CommentId, bool)>);

impl Links {
    pub fn add(&mut self, image: String, comment: CommentId, is_own: bool) {
        let oldest = self.0.entry(image).or_insert((comment, is_own));
        *oldest = (*oldest).min((comment, is_own));
    }

    /// Whether the oldest comment that links to the image is the person's. True if no comment links to it.
    #[must_use]
    pub fn is_own(&self, image: &str) -> bool {
        self.0.get(image).is_none_or(|(_, is_own)| *is_own)
    }
}
