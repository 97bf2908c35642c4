//! Every key of the table, and the only file that spells one.
//!
//! | item                  | pk                        | sk         | read by                                        |
//! |-----------------------|---------------------------|------------|------------------------------------------------|
//! | comment               | `C#id`                    | `C`        | every route by id                              |
//! | report                | `C#id`                    | `R#id`     | its moderators, the newest first               |
//! | hidden reply          | `C#parent`                | `H#id`     | the clean-up below a deleted comment           |
//! | guests of a network   | `C#id`                    | `G#hash`   | the bounds on their likes and reports          |
//! | thread                | `T#type#record`           | `T`        | lists: count, pin, author                      |
//! | visit                 | `V#visitor#type#record`   | `V`        | lists: own likes, reports, unapproved comments; makes a second report impossible |
//! | visit, past its bound | `V#visitor#type#record`   | `V#parent` | the same, for one parent and its replies       |
//! | user                  | `U#id`                    | `U`        | everybody signed in                            |
//! | handle                | `H#handle`                | `U#id`     | mentions                                       |
//! | name fragment         | `N#rank#letter`           | `text#id`  | the search of names                            |
//! | queue entry           | `Q#state#shard`           | `id`       | moderators                                     |
//! | limiter               | `L#scope#caller#minute`   | `L`        | writes, every tenth read; expires              |
//! | repeat                | `P#visitor#hash`          | `P`        | the spam check; expires                        |
//! | idempotency           | `I#visitor#hash`          | `I`        | a POST sent again; expires                     |
//!
//! | index     | partition                                             | sort                        | holds      |
//! |-----------|-------------------------------------------------------|-----------------------------|------------|
//! | `thread`  | `tk`: `T#type#record`, or a parent's `C#parent`       | `ts`: `id`, or `parent#id`  | everything |
//! | `time`    | `ok`: `T#type#record` of parents, `C#parent` of replies | `i`: id                   | keys       |
//! | `likes`   | `ok`, parents only                                    | `l`: likes × 10^16 + id     | keys       |
//! | `replied` | `ok`, parents only                                    | `d`: replies × 10^16 + id   | keys       |
//! | `author`  | `a`: `U#id`                                           | `i`: id                     | keys       |
//!
//! What only one visitor may see (unapproved comments) stands in the same indexes under partitions that end in `#visitor`.
//!
//! A parent's oldest replies *lead*: they stand in the thread's partition beside it, so that one Query reads a page with
//! its embedded replies. The others *trail* in the parent's own partition. Every leading reply is older than every
//! trailing one, however long an index lags: replies move up only when an index names exactly those that the parent
//! counts, which their fingerprint in the parent's item tells.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::domain::ids::{CommentId, ThreadId, UserId, Visitor};

pub(super) type Item = HashMap<String, AttributeValue>;

/// What ids are below in the text of keys: sixteen digits.
const LAST: u64 = 9_999_999_999_999_999;
/// Sorts after every digit and after `#`.
const END: &str = "~";
/// One count of likes or replies in a rank.
pub(super) const RANK_STEP: &str = "10000000000000000";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) pk: String,
    pub(super) sk: String,
}

impl Key {
    fn new(pk: String, sk: impl Into<String>) -> Self {
        Self { pk, sk: sk.into() }
    }

    pub(super) fn item(&self) -> Item {
        HashMap::from([
            ("pk".to_owned(), AttributeValue::S(self.pk.clone())),
            ("sk".to_owned(), AttributeValue::S(self.sk.clone())),
        ])
    }

    pub(super) fn of(item: &Item) -> Option<Self> {
        Some(Self::new(item.get("pk")?.as_s().ok()?.clone(), item.get("sk")?.as_s().ok()?))
    }
}

pub(super) fn comment(id: CommentId) -> Key {
    Key::new(comment_partition(id), "C")
}

/// Where a comment and all that hangs on it stand.
pub(super) fn comment_partition(id: CommentId) -> String {
    format!("C#{id}")
}

/// The comment whose item, or whose keys in an index, this is.
pub(super) fn comment_of(item: &Item) -> Option<CommentId> {
    item.get("pk")?.as_s().ok()?.strip_prefix("C#")?.parse().ok()
}

pub(super) fn report(comment: CommentId, id: u64) -> Key {
    Key::new(comment_partition(comment), format!("R#{}", pad(id)))
}

/// Bounds of the sort keys of a comment's reports.
pub(super) fn reports() -> (AttributeValue, AttributeValue) {
    let key = |id| AttributeValue::S(format!("R#{}", pad(id)));
    (key(0), key(LAST))
}

pub(super) fn hidden_reply(parent: CommentId, id: CommentId) -> Key {
    Key::new(comment_partition(parent), format!("H#{}", pad(id.0)))
}

/// The reply a hidden reply's sort key names.
pub(super) fn hidden_reply_of(sk: &str) -> Option<CommentId> {
    sk.strip_prefix("H#")?.trim_start_matches('0').parse().ok()
}

pub(super) fn guest_bound(id: CommentId, network: &str) -> Key {
    Key::new(comment_partition(id), format!("G#{network}"))
}

pub(super) fn thread(thread: &ThreadId) -> Key {
    Key::new(format!("T#{thread}"), "T")
}

pub(super) fn visitor_state(visitor: &Visitor, thread: &ThreadId) -> Key {
    Key::new(format!("V#{visitor}#{thread}"), "V")
}

/// `parent` is a top-level comment, or the parent of replies.
pub(super) fn visitor_overflow(visitor: &Visitor, thread: &ThreadId, parent: CommentId) -> Key {
    Key::new(format!("V#{visitor}#{thread}"), format!("V#{parent}"))
}

pub(super) fn user(id: UserId) -> Key {
    Key::new(format!("U#{id}"), "U")
}

/// A user's partition in the author index.
pub(super) fn author(id: UserId) -> String {
    format!("U#{id}")
}

pub(super) fn handle(handle: &str, id: UserId) -> Key {
    Key::new(handle_partition(handle), format!("U#{id}"))
}

pub(super) fn handle_partition(handle: &str) -> String {
    format!("H#{handle}")
}

/// `text` is folded and begins with the fragment's first letter.
pub(super) fn name_fragment(rank: u8, text: &str, id: UserId) -> Key {
    Key::new(name_partition(rank, text), format!("{text}#{id}"))
}

pub(super) fn name_partition(rank: u8, text: &str) -> String {
    format!("N#{rank}#{}", text.chars().next().unwrap_or_default())
}

pub(super) fn queue(state: &str, id: CommentId) -> Key {
    Key::new(queue_partition(state, id.0 % QUEUE_SHARDS), pad(id.0))
}

/// One partition takes a thousand writes a second; a flood of unapproved comments may bring more.
pub(super) const QUEUE_SHARDS: u64 = 4;

pub(super) fn queue_partition(state: &str, shard: u64) -> String {
    format!("Q#{state}#{shard}")
}

pub(super) fn queued_comment(sk: &str) -> Option<CommentId> {
    sk.trim_start_matches('0').parse().ok()
}

pub(super) fn limiter(scope: &str, caller: &str, minute: i64) -> Key {
    Key::new(format!("L#{scope}#{caller}#{minute}"), "L")
}

pub(super) fn repeat(visitor: &Visitor, hash: &str) -> Key {
    Key::new(format!("P#{visitor}#{hash}"), "P")
}

pub(super) fn idempotency(visitor: &Visitor, hash: &str) -> Key {
    Key::new(format!("I#{visitor}#{hash}"), "I")
}

/// What a row of the table is, told by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Comment(CommentId),
    Report(CommentId),
    HiddenReply {
        parent: CommentId,
        id: CommentId,
    },
    GuestBound(CommentId),
    Thread(ThreadId),
    VisitorThreadState(Visitor, ThreadId),
    User(UserId),
    /// A handle or a name fragment.
    Directory(UserId),
    Queue {
        state: String,
        id: CommentId,
    },
    /// What nothing is counted from.
    Other,
}

impl ItemKind {
    pub(super) fn of(key: &Key) -> Self {
        Self::parse(key).unwrap_or(Self::Other)
    }

    fn parse(key: &Key) -> Option<Self> {
        let (letter, rest) = key.pk.split_once('#')?;
        Some(match (letter, key.sk.split_once('#').unwrap_or((&key.sk, ""))) {
            ("C", ("C", "")) => Self::Comment(rest.parse().ok()?),
            ("C", ("R", _)) => Self::Report(rest.parse().ok()?),
            ("C", ("H", _)) => Self::HiddenReply { parent: rest.parse().ok()?, id: hidden_reply_of(&key.sk)? },
            ("C", ("G", _)) => Self::GuestBound(rest.parse().ok()?),
            ("T", ("T", "")) => Self::Thread(ThreadId::try_from(rest.to_owned()).ok()?),
            ("V", ("V", _)) => {
                let (visitor, thread) = rest.split_once('#')?;
                Self::VisitorThreadState(Visitor(visitor.to_owned()), ThreadId::try_from(thread.to_owned()).ok()?)
            }
            ("U", ("U", "")) => Self::User(rest.parse().ok()?),
            ("H", ("U", id)) => Self::Directory(id.parse().ok()?),
            ("N", _) => Self::Directory(key.sk.rsplit_once('#')?.1.parse().ok()?),
            ("Q", _) => Self::Queue { state: rest.split_once('#')?.0.to_owned(), id: queued_comment(&key.sk)? },
            _ => return None,
        })
    }
}

/// Whose lists a comment stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope<'a> {
    Everyone,
    /// Unapproved: its writer's alone.
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

/// The parents of a thread, with the replies that lead.
pub(super) fn parents(thread: &ThreadId, scope: Scope<'_>) -> String {
    scope.partition(format!("T#{thread}"))
}

/// The replies of a comment: in the `time` index all, in the `thread` index those that trail.
pub(super) fn replies(parent: CommentId, scope: Scope<'_>) -> String {
    scope.partition(comment_partition(parent))
}

/// A sort key of the `thread` index.
pub(super) fn sort_key(id: CommentId) -> String {
    pad(id.0)
}

/// A sort key of the `thread` index: of a reply that leads.
pub(super) fn inline_sort_key(parent: CommentId, id: CommentId) -> String {
    format!("{}#{}", pad(parent.0), pad(id.0))
}

fn pad(id: u64) -> String {
    format!("{id:016}")
}

/// A run of ids, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Span {
    pub(super) const ALL: Self = Self { low: 0, high: LAST };

    pub(super) fn from(id: CommentId) -> Self {
        Self { low: id.0, ..Self::ALL }
    }

    pub(super) fn until(id: CommentId) -> Self {
        Self { high: id.0, ..Self::ALL }
    }

    pub(super) fn above(id: CommentId) -> Self {
        Self { low: id.0 + 1, ..Self::ALL }
    }

    pub(super) fn below(id: CommentId) -> Self {
        Self { high: id.0.saturating_sub(1), ..Self::ALL }
    }

    /// Bounds of sort keys of the `thread` index: these parents and all that leads with them.
    pub(super) fn families(self) -> (AttributeValue, AttributeValue) {
        let high = format!("{}{END}", pad(self.high));
        (AttributeValue::S(pad(self.low)), AttributeValue::S(high))
    }

    /// Bounds of sort keys of the `thread` index: these replies, among those that lead below `parent`.
    pub(super) fn inline(self, parent: CommentId) -> (AttributeValue, AttributeValue) {
        let key = |id| AttributeValue::S(format!("{}#{}", pad(parent.0), pad(id)));
        (key(self.low), key(self.high))
    }

    /// Bounds of sort keys that are ids: of replies that trail, and of queues.
    pub(super) fn texts(self) -> (AttributeValue, AttributeValue) {
        (AttributeValue::S(pad(self.low)), AttributeValue::S(pad(self.high)))
    }

    /// Bounds of sort keys that are numbers.
    pub(super) fn numbers(self) -> (AttributeValue, AttributeValue) {
        (AttributeValue::N(self.low.to_string()), AttributeValue::N(self.high.to_string()))
    }
}
