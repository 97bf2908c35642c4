//! Builds and parses every key of the table. `schema` lists the items and their attributes.
//!
//! Unapproved comments, which lists show only to their writers, are in the same indexes as others, in partitions that
//! end in `#visitor`. `placement` decides where a comment is placed.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::schema::{self, Kind};
use super::schema::{PK, SK};
use crate::domain::author::Author;
use crate::domain::ids::{CommentId, SourceId, ThreadId, UserId, Visitor};
use crate::domain::mail_keys::Recipient;
use crate::domain::webhook::{EndpointId, MessageId};

pub type Item = HashMap<String, AttributeValue>;

/// The highest number that fits in the sixteen digits of an id in a key.
const LAST: u64 = 9_999_999_999_999_999;
/// Sorts after digits and `#`.
const END: &str = "~";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

impl Key {
    fn new(pk: String, sk: impl Into<String>) -> Self {
        Self { pk, sk: sk.into() }
    }

    /// A key that no item has, for the read that opens the connection.
    pub fn of_nothing() -> Self {
        Self::new("0".to_owned(), "0")
    }

    pub fn item(&self) -> Item {
        HashMap::from([
            (PK.to_owned(), AttributeValue::S(self.pk.clone())),
            (SK.to_owned(), AttributeValue::S(self.sk.clone())),
        ])
    }

    pub fn of(item: &Item) -> Option<Self> {
        Some(Self::new(item.get(PK)?.as_s().ok()?.clone(), item.get(SK)?.as_s().ok()?))
    }
}

pub fn comment(id: CommentId) -> Key {
    Key::new(comment_partition(id), "C")
}

/// The partition of a comment and of the items below it.
pub fn comment_partition(id: CommentId) -> String {
    format!("C#{id}")
}

/// The id of a comment from its item, or from its keys in an index.
pub fn comment_of(item: &Item) -> Option<CommentId> {
    item.get(PK)?.as_s().ok()?.strip_prefix("C#")?.parse().ok()
}

pub fn report(comment: CommentId, id: u64) -> Key {
    Key::new(comment_partition(comment), format!("R#{}", pad(id)))
}

/// Bounds of the sort keys of a comment's reports.
pub fn reports() -> (AttributeValue, AttributeValue) {
    let key = |id| AttributeValue::S(format!("R#{}", pad(id)));
    (key(0), key(LAST))
}

/// Bounds of the sort keys of a comment's guest counts.
pub fn guest_bounds() -> (AttributeValue, AttributeValue) {
    (AttributeValue::S("G#".to_owned()), AttributeValue::S(format!("G#{END}")))
}

pub fn hidden_reply(parent: CommentId, id: CommentId) -> Key {
    Key::new(comment_partition(parent), format!("H#{}", pad(id.0)))
}

/// Parses the reply's id from a hidden reply's sort key.
pub fn hidden_reply_of(sk: &str) -> Option<CommentId> {
    sk.strip_prefix("H#")?.trim_start_matches('0').parse().ok()
}

pub fn guest_bound(id: CommentId, network: &str) -> Key {
    Key::new(comment_partition(id), format!("G#{network}"))
}

pub fn thread(thread: &ThreadId) -> Key {
    Key::new(format!("T#{thread}"), "T")
}

pub fn counted(thread: &ThreadId, id: CommentId) -> Key {
    Key::new(format!("T#{thread}"), format!("K#{}", pad(id.0)))
}

/// Bounds of the sort keys of a thread's counted comments.
pub fn all_counted() -> (AttributeValue, AttributeValue) {
    let key = |id| AttributeValue::S(format!("K#{}", pad(id)));
    (key(0), key(LAST))
}

/// Parses the comment's id from the key of an item that marks the comment as counted.
pub fn counted_of(item: &Item) -> Option<CommentId> {
    counted_by(item.get(SK)?.as_s().ok()?)
}

/// Like [`counted_of`], but takes the sort key.
pub fn counted_by(sort_key: &str) -> Option<CommentId> {
    sort_key.strip_prefix("K#")?.trim_start_matches('0').parse().ok()
}

pub fn count(thread: &ThreadId) -> Key {
    Key::new(format!("T#{thread}"), "K")
}

pub fn visitor_state(visitor: &Visitor, thread: &ThreadId) -> Key {
    Key::new(format!("V#{visitor}#{thread}"), "V")
}

/// `parent` is the parent of the liked or reported comment, or that comment itself if it is top-level.
pub fn visitor_overflow(visitor: &Visitor, thread: &ThreadId, parent: CommentId) -> Key {
    Key::new(format!("V#{visitor}#{thread}"), format!("V#{parent}"))
}

pub fn user(id: UserId) -> Key {
    Key::new(format!("U#{id}"), "U")
}

/// An author's partition in the index `author`.
pub fn author(author: &Author) -> String {
    match author {
        Author::User(id) => format!("U#{id}"),
        Author::Network(hash) => format!("G#{hash}"),
    }
}

/// The item of a guest who has a `Comment-Key`.
pub fn guest(visitor: &Visitor) -> Key {
    Key::new(format!("G#{visitor}"), "G")
}

/// The item with a writer's trust; `None` for a visitor who may be several people.
pub fn trust(writer: &Visitor) -> Option<Key> {
    match writer.user() {
        Some(id) => Some(user(id)),
        None => writer.is_one_person().then(|| guest(writer)),
    }
}

pub fn handle(handle: &str, id: UserId) -> Key {
    Key::new(handle_partition(handle), format!("U#{id}"))
}

pub fn user_of_handle(item: &Item) -> Option<UserId> {
    item.get(SK)?.as_s().ok()?.strip_prefix("U#")?.parse().ok()
}

pub fn handle_partition(handle: &str) -> String {
    format!("H#{handle}")
}

/// `text` is the folded fragment.
pub fn name_fragment(rank: u8, text: &str, id: UserId) -> Key {
    Key::new(name_partition(rank, text), format!("{text}#{id}"))
}

pub fn name_partition(rank: u8, text: &str) -> String {
    format!("N#{rank}#{}", text.chars().next().unwrap_or_default())
}

pub fn queue(state: &str, id: CommentId) -> Key {
    Key::new(queue_partition(state, id.0 % QUEUE_SHARDS), pad(id.0))
}

/// Number of shards of each queue. One partition accepts a thousand writes per second, and a flood of unapproved comments may
/// cause more.
pub const QUEUE_SHARDS: u64 = 4;

pub fn queue_partition(state: &str, shard: u64) -> String {
    format!("Q#{state}#{shard}")
}

pub fn queued_comment(sk: &str) -> Option<CommentId> {
    sk.trim_start_matches('0').parse().ok()
}

pub fn source(source: &SourceId) -> Key {
    Key::new(format!("S#{source}"), "S")
}

pub fn log(id: u64) -> Key {
    Key::new(log_partition(), pad(id))
}

pub fn log_partition() -> String {
    "A".to_owned()
}

/// `id` is the ban's id.
pub fn banned(id: u64) -> Key {
    Key::new(banned_partition(), pad(id))
}

pub fn banned_partition() -> String {
    "B".to_owned()
}

/// The id of a ban from the sort key of its list entry.
pub fn ban_of(sk: &str) -> Option<u64> {
    sk.trim_start_matches('0').parse().ok()
}

pub fn network_ban(network: &str) -> Key {
    Key::new(format!("X#{network}"), "X")
}

/// The partition of erased people.
pub fn forgotten_partition() -> String {
    "F".to_owned()
}

pub fn forgotten(hash: &str) -> Key {
    Key::new("F".to_owned(), hash)
}

pub fn erasure(hash: &str) -> Key {
    Key::new(format!("F#{hash}"), "J")
}

pub fn erased_comment(hash: &str, id: CommentId) -> Key {
    Key::new(format!("F#{hash}"), pad(id.0))
}

pub fn import_journal(thread: &ThreadId) -> Key {
    Key::new(format!("J#{thread}"), "J")
}

/// Differs from every [`import_journal`], because no thread has the id `lease`.
pub fn import_lease() -> Key {
    Key::new("J#lease".to_owned(), "J")
}

/// Differs from every [`import_journal`], because no thread has the id `salt`.
pub fn native_import() -> Key {
    Key::new("J#salt".to_owned(), "J")
}

/// `time` is the number of the minute, the hour or the day.
pub fn limiter(scope: &str, caller: &str, time: i64) -> Key {
    Key::new(format!("L#{scope}#{caller}#{time}"), "L")
}

pub fn repeat(visitor: &Visitor, hash: &str) -> Key {
    Key::new(format!("P#{visitor}#{hash}"), "P")
}

pub fn idempotency(visitor: &Visitor, hash: &str) -> Key {
    Key::new(format!("I#{visitor}#{hash}"), "I")
}

pub fn notification_state(recipient: &Recipient) -> Key {
    Key::new(format!("E#{recipient}"), "E")
}

/// Bounds of the sort keys of a comment's hidden replies.
pub fn hidden_replies() -> (AttributeValue, AttributeValue) {
    let key = |id| AttributeValue::S(format!("H#{}", pad(id)));
    (key(0), key(LAST))
}

pub fn inbox(hash: &str) -> Key {
    Key::new(format!("O#{hash}"), "O")
}

/// `name` is a keyed hash of the flow.
pub fn redirect_flow(name: &str) -> Key {
    Key::new(format!("R#{name}"), "R")
}

pub fn sessions(account: UserId) -> Key {
    Key::new(format!("Z#{account}"), "Z")
}

/// `template.yaml` lets only the function that signs tokens write to this partition, so it must contain no other item.
pub fn public_keys() -> Key {
    Key::new("K".to_owned(), "K")
}

pub fn moderator_names() -> Key {
    Key::new("Y".to_owned(), "M")
}

pub fn endpoint(id: EndpointId) -> Key {
    Key::new(endpoint_partition(), pad(id.0))
}

pub fn endpoint_partition() -> String {
    "W".to_owned()
}

pub fn endpoint_count() -> Key {
    Key::new(endpoint_partition(), "W")
}

pub fn delivery(endpoint: EndpointId, message: &MessageId) -> Key {
    Key::new(delivery_partition(endpoint), format!("{}#{}", pad(message.number), message.hash))
}

pub fn delivery_partition(endpoint: EndpointId) -> String {
    format!("W#{endpoint}")
}

/// The kind of an item, with the ids in its key. There is one kind for each item of `schema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Comment(CommentId),
    Report(CommentId),
    HiddenReply {
        parent: CommentId,
        id: CommentId,
    },
    GuestBound {
        comment: CommentId,
        network: String,
    },
    Thread(ThreadId),
    Counted(ThreadId, CommentId),
    Count(ThreadId),
    VisitorState(Visitor, ThreadId),
    VisitorOverflow(Visitor, ThreadId),
    User(UserId),
    /// A guest who has a `Comment-Key`.
    Guest(Visitor),
    Handle(UserId),
    NameFragment(UserId),
    Queue {
        state: String,
        id: CommentId,
    },
    Source(SourceId),
    Log,
    /// The ban's id.
    Banned(u64),
    NetworkBan(String),
    Forgotten,
    Erasure,
    ErasedComment(CommentId),
    ImportJournal(ThreadId),
    ImportLease,
    NativeImport,
    /// The caller may be a network.
    Limiter(Visitor),
    Repeat(Visitor),
    Idempotency(Visitor),
    NotificationState(Recipient),
    Inbox(String),
    RedirectFlow,
    Sessions(UserId),
    PublicKeys,
    ModeratorNames,
    Endpoint,
    EndpointCount,
    Delivery,
    /// Not an item of this table.
    Unknown,
}

impl ItemKind {
    pub fn of(key: &Key) -> Self {
        Self::parse(key).unwrap_or(Self::Unknown)
    }

    fn parse(key: &Key) -> Option<Self> {
        let (letter, rest) = key.pk.split_once('#').unwrap_or((&key.pk, ""));
        let of_visitor = || rest.split_once('#').map(|(visitor, rest)| (Visitor(visitor.to_owned()), rest.to_owned()));
        Some(match (letter, key.sk.split_once('#').unwrap_or((&key.sk, ""))) {
            ("C", ("C", "")) => Self::Comment(rest.parse().ok()?),
            ("C", ("R", _)) => Self::Report(rest.parse().ok()?),
            ("C", ("H", _)) => Self::HiddenReply { parent: rest.parse().ok()?, id: hidden_reply_of(&key.sk)? },
            ("C", ("G", network)) => Self::GuestBound { comment: rest.parse().ok()?, network: network.to_owned() },
            ("T", ("T", "")) => Self::Thread(ThreadId::try_from(rest.to_owned()).ok()?),
            ("T", ("K", "")) => Self::Count(ThreadId::try_from(rest.to_owned()).ok()?),
            ("T", ("K", id)) => Self::Counted(
                ThreadId::try_from(rest.to_owned()).ok()?,
                CommentId(id.trim_start_matches('0').parse().ok()?),
            ),
            ("V", ("V", parent)) => {
                let (visitor, thread) = of_visitor()?;
                let thread = ThreadId::try_from(thread).ok()?;
                if parent.is_empty() {
                    Self::VisitorState(visitor, thread)
                } else {
                    Self::VisitorOverflow(visitor, thread)
                }
            }
            ("U", ("U", "")) => Self::User(rest.parse().ok()?),
            ("G", ("G", "")) => Self::Guest(Visitor(rest.to_owned())),
            ("H", ("U", id)) => Self::Handle(id.parse().ok()?),
            ("N", _) => Self::NameFragment(key.sk.rsplit_once('#')?.1.parse().ok()?),
            ("S", ("S", "")) => Self::Source(SourceId(rest.to_owned())),
            ("Q", _) => Self::Queue { state: rest.split_once('#')?.0.to_owned(), id: queued_comment(&key.sk)? },
            ("A", _) => Self::Log,
            ("B", _) => Self::Banned(ban_of(&key.sk)?),
            ("X", ("X", "")) => Self::NetworkBan(rest.to_owned()),
            ("F", _) if rest.is_empty() => Self::Forgotten,
            ("F", ("J", "")) => Self::Erasure,
            ("F", _) => Self::ErasedComment(queued_comment(&key.sk)?),
            ("J", ("J", "")) => match rest {
                "lease" => Self::ImportLease,
                "salt" => Self::NativeImport,
                thread => Self::ImportJournal(ThreadId::try_from(thread.to_owned()).ok()?),
            },
            ("L", ("L", "")) => Self::Limiter(Visitor(rest.split('#').nth(1)?.to_owned())),
            ("P", ("P", "")) => Self::Repeat(of_visitor()?.0),
            ("I", ("I", "")) => Self::Idempotency(of_visitor()?.0),
            ("E", ("E", "")) => Self::NotificationState(Recipient(rest.to_owned())),
            ("O", ("O", "")) => Self::Inbox(rest.to_owned()),
            ("R", ("R", "")) => Self::RedirectFlow,
            ("Z", ("Z", "")) => Self::Sessions(rest.parse().ok()?),
            ("K", ("K", "")) => Self::PublicKeys,
            ("Y", ("M", "")) => Self::ModeratorNames,
            ("W", ("W", "")) => Self::EndpointCount,
            ("W", _) if rest.is_empty() => Self::Endpoint,
            ("W", _) => Self::Delivery,
            _ => return None,
        })
    }

    /// The item's kind in `schema`; `None` for an unknown item.
    pub fn schema(&self) -> Option<&'static Kind> {
        Some(match self {
            Self::Comment(_) => &schema::comment::KIND,
            Self::Report(_) => &schema::report::KIND,
            Self::HiddenReply { .. } => &schema::hidden_reply::KIND,
            Self::GuestBound { .. } => &schema::guest_bound::KIND,
            Self::Thread(_) => &schema::thread::KIND,
            Self::Counted(..) => &schema::counted::KIND,
            Self::Count(_) => &schema::count::KIND,
            Self::VisitorState(..) => &schema::visitor_state::KIND,
            Self::VisitorOverflow(..) => &schema::visitor_overflow::KIND,
            Self::User(_) => &schema::user::KIND,
            Self::Guest(_) => &schema::guest::KIND,
            Self::Handle(_) => &schema::handle::KIND,
            Self::NameFragment(_) => &schema::name_fragment::KIND,
            Self::Queue { .. } => &schema::queue::KIND,
            Self::Source(_) => &schema::source::KIND,
            Self::Log => &schema::log::KIND,
            Self::Banned(_) => &schema::banned::KIND,
            Self::NetworkBan(_) => &schema::network_ban::KIND,
            Self::Forgotten => &schema::forgotten::KIND,
            Self::Erasure => &schema::erasure::KIND,
            Self::ErasedComment(_) => &schema::erased_comment::KIND,
            Self::ImportJournal(_) => &schema::import_journal::KIND,
            Self::ImportLease => &schema::import_lease::KIND,
            Self::NativeImport => &schema::native_import::KIND,
            Self::Limiter(_) => &schema::limiter::KIND,
            Self::Repeat(_) => &schema::repeat::KIND,
            Self::Idempotency(_) => &schema::idempotency::KIND,
            Self::NotificationState(_) => &schema::notification_state::KIND,
            Self::Inbox(_) => &schema::inbox::KIND,
            Self::RedirectFlow => &schema::redirect_flow::KIND,
            Self::Sessions(_) => &schema::sessions::KIND,
            Self::PublicKeys => &schema::public_keys::KIND,
            Self::ModeratorNames => &schema::moderator_names::KIND,
            Self::Endpoint => &schema::endpoint::KIND,
            Self::EndpointCount => &schema::endpoint_count::KIND,
            Self::Delivery => &schema::delivery::KIND,
            Self::Unknown => return None,
        })
    }
}

/// The audience of the lists that a comment is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    Everyone,
    /// Only the writer, for unapproved comments.
    Own(&'a Visitor),
}

impl Scope<'_> {
    fn partition(self, of_everyone: String) -> String {
        match self {
            Self::Everyone => of_everyone,
            Self::Own(visitor) => format!("{of_everyone}#{visitor}"),
        }
    }
}

/// The partition of a thread's parents. In the index `thread`, it also contains their inline replies.
pub fn parents(thread: &ThreadId, scope: Scope<'_>) -> String {
    scope.partition(format!("T#{thread}"))
}

/// The partition of a comment's replies: all of them in the index `time`, separate ones in the index `thread`.
pub fn replies(parent: CommentId, scope: Scope<'_>) -> String {
    scope.partition(comment_partition(parent))
}

/// The sort key of a parent or a separate reply in the index `thread`.
pub fn sort_key(id: CommentId) -> String {
    pad(id.0)
}

/// The sort key of an inline reply in the index `thread`.
pub fn inline_sort_key(parent: CommentId, id: CommentId) -> String {
    format!("{}#{}", pad(parent.0), pad(id.0))
}

fn pad(id: u64) -> String {
    format!("{id:016}")
}

/// A range of ids, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub low: u64,
    pub high: u64,
}

impl Span {
    pub const ALL: Self = Self { low: 0, high: LAST };

    pub fn from(id: CommentId) -> Self {
        Self { low: id.0, ..Self::ALL }
    }

    pub fn until(id: CommentId) -> Self {
        Self { high: id.0, ..Self::ALL }
    }

    pub fn above(id: CommentId) -> Self {
        Self { low: id.0 + 1, ..Self::ALL }
    }

    pub fn below(id: CommentId) -> Self {
        Self { high: id.0.saturating_sub(1), ..Self::ALL }
    }

    /// Bounds of sort keys that begin with these padded ids: parents and their inline replies in the index `thread`, or
    /// an endpoint's deliveries.
    pub fn families(self) -> (AttributeValue, AttributeValue) {
        let high = format!("{}{END}", pad(self.high));
        (AttributeValue::S(pad(self.low)), AttributeValue::S(high))
    }

    /// Bounds of the sort keys of these inline replies of `parent` in the index `thread`.
    pub fn inline(self, parent: CommentId) -> (AttributeValue, AttributeValue) {
        let key = |id| AttributeValue::S(format!("{}#{}", pad(parent.0), pad(id)));
        (key(self.low), key(self.high))
    }

    /// Bounds of sort keys that are padded ids: those of separate replies, queues, the log, bans and endpoints.
    pub fn texts(self) -> (AttributeValue, AttributeValue) {
        (AttributeValue::S(pad(self.low)), AttributeValue::S(pad(self.high)))
    }

    /// Bounds of sort keys that are numbers.
    pub fn numbers(self) -> (AttributeValue, AttributeValue) {
        (AttributeValue::N(self.low.to_string()), AttributeValue::N(self.high.to_string()))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One key from each constructor, with its kind.
    pub fn keys_and_kinds() -> Vec<(Key, ItemKind)> {
        let (id, other, ada) = (CommentId(12), CommentId(3), UserId(7));
        let (visitor, post) = (Visitor::from(ada), ThreadId::new("post", "a-1").unwrap());
        let keyed = Visitor("khash".to_owned());
        let source = SourceId("disqus:5#58".to_owned());
        let hook = EndpointId(5);
        let message = MessageId { number: 12, hash: "hash".to_owned() };
        vec![
            (comment(id), ItemKind::Comment(id)),
            (report(id, 5), ItemKind::Report(id)),
            (hidden_reply(id, other), ItemKind::HiddenReply { parent: id, id: other }),
            (guest_bound(id, "hash"), ItemKind::GuestBound { comment: id, network: "hash".to_owned() }),
            (thread(&post), ItemKind::Thread(post.clone())),
            (counted(&post, id), ItemKind::Counted(post.clone(), id)),
            (count(&post), ItemKind::Count(post.clone())),
            (visitor_state(&visitor, &post), ItemKind::VisitorState(visitor.clone(), post.clone())),
            (visitor_overflow(&visitor, &post, id), ItemKind::VisitorOverflow(visitor.clone(), post.clone())),
            (user(ada), ItemKind::User(ada)),
            (guest(&keyed), ItemKind::Guest(keyed.clone())),
            (handle("ada", ada), ItemKind::Handle(ada)),
            (name_fragment(1, "a#d#a", ada), ItemKind::NameFragment(ada)),
            (queue("pending", id), ItemKind::Queue { state: "pending".to_owned(), id }),
            (self::source(&source), ItemKind::Source(source.clone())),
            (log(5), ItemKind::Log),
            (banned(5), ItemKind::Banned(5)),
            (network_ban("hash"), ItemKind::NetworkBan("hash".to_owned())),
            (forgotten("hash"), ItemKind::Forgotten),
            (erasure("hash"), ItemKind::Erasure),
            (erased_comment("hash", id), ItemKind::ErasedComment(id)),
            (import_journal(&post), ItemKind::ImportJournal(post.clone())),
            (import_lease(), ItemKind::ImportLease),
            (native_import(), ItemKind::NativeImport),
            (limiter("read", "caller", 1), ItemKind::Limiter(Visitor("caller".to_owned()))),
            (repeat(&visitor, "hash"), ItemKind::Repeat(visitor.clone())),
            (idempotency(&visitor, "hash"), ItemKind::Idempotency(visitor.clone())),
            (notification_state(&ada.into()), ItemKind::NotificationState(ada.into())),
            (inbox("hash"), ItemKind::Inbox("hash".to_owned())),
            (redirect_flow("hash"), ItemKind::RedirectFlow),
            (sessions(ada), ItemKind::Sessions(ada)),
            (public_keys(), ItemKind::PublicKeys),
            (moderator_names(), ItemKind::ModeratorNames),
            (endpoint(hook), ItemKind::Endpoint),
            (endpoint_count(), ItemKind::EndpointCount),
            (delivery(hook, &message), ItemKind::Delivery),
        ]
    }

    #[test]
    fn every_key_is_parsed_as_its_kind() {
        let keys = keys_and_kinds();
        for (key, kind) in &keys {
            assert_eq!(ItemKind::of(key), *kind, "{key:?}");
        }
        let constructors =
            include_str!("keys.rs").lines().filter(|line| line.starts_with("pub fn") && line.ends_with("-> Key {"));
        assert_eq!(keys.len(), constructors.count(), "a key without a kind in this test");
    }
}
