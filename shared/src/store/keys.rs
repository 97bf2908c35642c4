//! Builds every key of the table. Everything stored is listed here.
//!
//! # Items
//!
//! | item                       | pk                        | sk         | read by                                        |
//! |----------------------------|---------------------------|------------|------------------------------------------------|
//! | comment                    | `C#id`                    | `C`        | every route by id                              |
//! | report                     | `C#id`                    | `R#id`     | its moderators, newest first                   |
//! | hidden reply               | `C#parent`                | `H#id`     | the clean-up below a deleted comment           |
//! | guest bound                | `C#id`                    | `G#hash`   | limits of a network's guest likes and reports  |
//! | thread                     | `T#type#record`           | `T`        | lists: count, pin, author                      |
//! | counted comment            | `T#type#record`           | `K#id`     | the newest comments of a thread; a comment counts while it exists |
//! | count                      | `T#type#record`           | `K`        | how many comments of a thread count            |
//! | visitor's thread state     | `V#visitor#type#record`   | `V`        | lists: own likes, reports, unapproved comments; makes a second report impossible |
//! | its overflow               | `V#visitor#type#record`   | `V#parent` | the same, for one parent and its replies       |
//! | user                       | `U#id`                    | `U`        | everybody signed in                            |
//! | handle                     | `H#handle`                | `U#id`     | mentions                                       |
//! | name fragment              | `N#rank#letter`           | `text#id`  | the search of names                            |
//! | queue entry                | `Q#state#shard`           | `id`       | moderators                                     |
//! | source                     | `S#source`                | `S`        | imports: the comment that was imported from there; its tombstone once it is deleted |
//! | log                        | `A`                       | `id`       | moderators: what they did                      |
//! | banned                     | `B`                       | `id`       | moderators: who is banned; expires with the ban |
//! | forgotten person           | `F`                       | `hash`     | imports: nothing of this person comes back     |
//! | erasure                    | `F#hash`                  | `J`        | an erasure that is under way: whom it is about |
//! | erased comment             | `F#hash`                  | `id`       | an erasure that is under way: a placeholder that goes when nothing is below it |
//! | import journal             | `J#type#record`           | `J`        | imports: the thread is being written           |
//! | import lease               | `J#lease`                 | `J`        | imports: one runs at a time; expires           |
//! | imported salt              | `J#salt`                  | `J`        | exports: hashes were imported that another salt has made |
//! | limiter                    | `L#scope#caller#minute`   | `L`        | writes, every tenth read; by the hour: mentions and enrolments; expires |
//! | repeat                     | `P#visitor#hash`          | `P`        | the spam check; expires                        |
//! | idempotency                | `I#visitor#hash`          | `I`        | a POST sent again; expires                     |
//! | mailbox                    | `E#recipient`             | `E`        | what a recipient of mails is notified of       |
//! | endpoint                   | `W`                       | `id`       | webhooks: an address that is notified of events |
//! | number of endpoints        | `W`                       | `W`        | webhooks: their bound                          |
//! | delivery                   | `W#endpoint`              | `number#hash` | webhooks: a message and its attempts; expires |
//!
//! A hidden reply names an unapproved reply of `parent`. It, a handle and a queue entry are keys only, and most counted comments.
//!
//! # Indexes
//!
//! | index     | partition                                               | sort                        | holds      |
//! |-----------|---------------------------------------------------------|-----------------------------|------------|
//! | `thread`  | `tk`: `T#type#record`, or a parent's `C#parent`         | `ts`: `id`, or `parent#id`  | everything |
//! | `time`    | `ok`: `T#type#record` of parents, `C#parent` of replies | `i`: id                     | keys       |
//! | `likes`   | `ok`, parents only                                      | `l`: likes × 10^16 + id     | keys       |
//! | `replied` | `ok`, parents only                                      | `d`: replies × 10^16 + id   | keys       |
//! | `author`  | `a`: `U#id`                                             | `i`: id                     | keys       |
//!
//! Comments that only their writer may see (unapproved ones) are in the same indexes, in partitions that end in
//! `#visitor`. `placement` decides where a comment stands.
//!
//! # Attributes
//!
//! Names are short, because a page reads forty comments and pays by the byte. Types: `S` text, `N` number, `B` boolean, `L`
//! list, `M` map, `NS` set of numbers. A time is in Unix milliseconds unless it says otherwise. An attribute that has its
//! default value (false, 0, nothing) may be missing.
//!
//! | attribute | item     | type | meaning                                                                         |
//! |-----------|----------|------|---------------------------------------------------------------------------------|
//! | `i`       | comment  | N    | id; sort key of `time` and `author`                                             |
//! | `t`       | comment  | S    | thread: `type#record`                                                           |
//! | `p`       | comment  | L    | ids of the ancestors, top-level comment first                                   |
//! | `u`       | comment  | N    | the writer's user id; missing for guests                                        |
//! | `g`       | comment  | S    | visitor of a guest                                                              |
//! | `n`       | comment  | S    | the writer's name; missing from placeholders                                    |
//! | `av`      | comment  | S    | picture: a URL, or `g:` and a Gravatar hash                                     |
//! | `mo`      | comment  | B    | the writer was a moderator                                                      |
//! | `b`       | comment  | S    | body, Markdown; missing from placeholders                                       |
//! | `m`       | comment  | L    | handles mentioned in the body                                                   |
//! | `e`       | comment  | N    | time of the last edit                                                           |
//! | `s`       | comment  | S    | state: `pending` or `rejected`; missing when approved                           |
//! | `rv`      | comment  | B    | approved, but an edit waits for review                                          |
//! | `sp`      | comment  | B    | the spam check doubted a text that waited for approval                          |
//! | `ph`      | comment  | B    | placeholder of a deleted comment: approved, without writer and body             |
//! | `so`      | comment  | S    | source of an imported comment: format, site and id there: `disqus:558`, `disqus@blog:558` |
//! | `lc`      | comment  | N    | number of likes, imported ones included                                         |
//! | `il`      | comment  | N    | number of likes that were imported without voters                               |
//! | `rc`      | comment  | N    | number of approved direct replies                                               |
//! | `fp`      | comment  | N    | fingerprint of the replies counted in `rc`; of top-level comments               |
//! | `ld`      | comment  | NS   | ids of the inline replies                                                       |
//! | `tr`      | comment  | B    | there are, or were, separate replies; never unset                               |
//! | `rp`      | comment  | N    | number of reports                                                               |
//! | `ro`      | comment  | B    | a report is open                                                                |
//! | `rl`      | comment  | L    | the newest three reports: maps of `i` (N, id), `r` (S, reason, cut), `c` (N, time) |
//! | `rs`      | comment  | L    | resolutions of reports: maps of `u` (N, until), `s` (S, `reviewed` or `dismissed`) |
//! | `sb`      | comment  | B    | the writer subscribed to replies                                                |
//! | `su`      | comment  | M    | where notifications go: `g` (S, a guest's recipient), `a` (M, the address as in `ad`) and `n` (S, hash of the network), until the comment is approved |
//! | `ws`      | comment  | B    | everyone could see it before a moderator rejected it: it notifies no second time |
//! | `tk`      | comment  | S    | partition key of `thread`                                                       |
//! | `ts`      | comment  | S    | sort key of `thread`                                                            |
//! | `ok`      | comment  | S    | partition key of `time`, `likes` and `replied`                                  |
//! | `l`       | comment  | N    | sort key of `likes`; of top-level comments                                      |
//! | `d`       | comment  | N    | sort key of `replied`; of top-level comments                                    |
//! | `a`       | comment  | S    | partition key of `author`; missing for guests                                   |
//! | `id`      | report   | N    | id, ordered by time                                                             |
//! | `r`       | report   | S    | reason, and details after a colon                                               |
//! | `c`       | report   | N    | time of the report                                                              |
//! | `v`       | report   | S    | visitor who reported                                                            |
//! | `u`       | report   | N    | user id of the reporter; missing for guests                                     |
//! | `n`, `av` | report   | S    | name and picture of the reporter                                                |
//! | `i`       | source   | N    | id of the comment                                                               |
//! | `dl`      | source   | B    | the comment was deleted and does not come back: a tombstone                     |
//! | `th`, `wr` | source  | S    | short hashes of the page and of the writer there, by which two sites are told apart |
//! | `n`       | guest bound | N | likes or reports by guests of the network                                       |
//! | `n`       | thread   | N    | number of approved top-level comments                                           |
//! | `n`       | count    | N    | number of counted comments                                                      |
//! | `f`       | counted comment | B | counted when what was above it was shown for the first time: `events` tells of it |
//! | `pin`     | thread   | M    | the pin: `c` (N, comment id), `at` (N, time)                                    |
//! | `au`      | thread   | N    | user id of the record's author                                                  |
//! | `ti`      | thread   | S    | title of the record                                                             |
//! | `url`     | thread   | S    | address of the record                                                           |
//! | `lk`      | visitor's thread state, overflow | NS | ids of liked comments                                     |
//! | `rd`      | visitor's thread state, overflow | NS | ids of reported comments                                  |
//! | `fl`      | visitor's thread state | B | full: further entries go into overflow items; never unset            |
//! | `up`      | visitor's thread state | N | number of own unapproved top-level comments                          |
//! | `ur`      | visitor's thread state | N | number of own unapproved replies                                     |
//! | `ut`      | visitor's thread state | B | some of them are, or were, separate; never unset                     |
//! | `u`       | user, name fragment | N | user id                                                                 |
//! | `n`, `av` | user, name fragment | S | name and picture                                                        |
//! | `bn`      | user, name fragment | M | ban: `u` (N, until; missing for good), `r` (S, reason)                  |
//! | `bi`      | user     | N    | id of the ban, ordered by time                                                  |
//! | `ib`      | user     | N    | id of a ban that was imported, which is not imported again                      |
//! | `ia`      | user     | N    | `iat` of the newest token that named the user, in Unix seconds                  |
//! | `la`      | user     | N    | when the name was saved, in Unix seconds                                        |
//! | `ra`      | user     | N    | when the name or the picture last changed, in Unix seconds; no two changes have the same |
//! | `ca`      | user     | N    | when old comments took them, or the earliest time at which they may, in Unix seconds |
//! | `sh`      | user     | S    | hash of the token's subject, where the id is a hash as well                     |
//! | `id`      | log      | N    | id, ordered by time                                                             |
//! | `mo`, `n` | log      | N, S | user id and name of the moderator                                               |
//! | `ac`      | log      | S    | what the moderator did: `approve`, `reject`, `dismiss`, `pin`, `unpin`, `ban`, `unban`, `remove_image` |
//! | `c`, `t`  | log      | N, S | comment and thread                                                              |
//! | `u`       | log      | N    | user id of the banned user, or of the comment's writer; missing for guests      |
//! | `u`       | banned   | N    | user id                                                                         |
//! | `c`       | forgotten person | N | when                                                                       |
//! | `sf`      | forgotten person | S | fingerprint of the salt of the hash                                        |
//! | `nm`, `ad`, `vs`, `sj` | erasure | L | names, hashes of addresses, visitors, hashes of subjects                |
//! | `re`, `se` | erasure | L    | recipients of mails, sealed addresses                                            |
//! | `pi`      | erasure  | B    | the profile has a picture that does not come from an address                     |
//! | `n`       | limiter  | N    | requests booked                                                                 |
//! | `es`      | limiter  | SS   | hashes of the addresses that are asked for a confirmation, which are counted    |
//! | `n`       | import journal | N | transactions about visitors that are done                                    |
//! | `f`       | import journal | S | comments are written in batches: hash of all that they and their counts follow from |
//! | `c`       | import journal | N | comments are written one by one: id of the last one, which may not be counted |
//! | `h`       | import lease | S  | who holds it                                                                 |
//! | `h`       | imported salt | S | its fingerprint                                                              |
//! | `x`       | banned, delivery, import lease, limiter, repeat, idempotency | N | when the item expires, in Unix seconds           |
//! | `rq`      | repeat   | S    | the request that wrote the text                                                 |
//! | `rq`      | idempotency | S | hash of the request's content                                                   |
//! | `an`      | idempotency | any | reference to the result: a comment id, or null                                 |
//! | `vn`      | mailbox  | N    | number of changes, for the condition of the next one                            |
//! | `st`      | mailbox  | S    | state: `asked`, `on`, `off`, `bounced`; missing when new                        |
//! | `ad`      | mailbox  | M    | address that is confirmed, or bounced: `a` (S, sealed), `l` (S, language), `c` (B, confirmed) |
//! | `ak`      | mailbox  | L    | who gave the address without proof: maps of `v` (S, hash of the visitor, or of a member's address), `ad` (M, as above), `n` (S, hash of the network), `i` (N, comment), `t`, `f`, `s` (N: when it asked, when the confirmation may go, when it went), `h` (NS, comments that wait for it) |
//! | `re`, `me`, `ow` | mailbox | B | a member wants to know of replies, mentions, comments on own records           |
//! | `mu`      | mailbox  | L    | hashes of muted threads                                                         |
//! | `wt`, `wm` | mailbox | NS, N | comments that wait for the next mail, and how many more                        |
//! | `fl`, `fm` | mailbox | NS, N | comments of the mail that is being sent, and how many more                     |
//! | `td`, `ty` | mailbox | NS   | comments (for moderators, queue entries) that were mailed lately, and before    |
//! | `ro`      | mailbox  | N    | since when `td` is filled                                                       |
//! | `du`      | mailbox  | N    | when the next mail is due                                                       |
//! | `cl`      | mailbox  | M    | claim of a worker: `o` (S, owner), `u` (N, until), `r` (B, an earlier one died) |
//! | `se`      | mailbox  | L    | times of the mails of the last 24 hours                                         |
//! | `rf`, `rs` | mailbox | N    | how often the mail server has refused, and since when                           |
//! | `cf`      | mailbox  | S    | whose confirmation is being sent                                                |
//! | `cn`      | mailbox  | L    | confirmations of the last week: maps of `a` (N, time), `n` (S, hash of the network), `v` (S, hash of who asked, and when) |
//! | `as`      | mailbox  | NS   | comments that were left out of a mail because their text waits for a moderator  |
//! | `so`, `ch` | mailbox | N    | when the mails were last stopped, and when the member last chose                |
//! | `pv`      | mailbox  | S    | hash of a confirmed address that was forgotten because the mails were stopped   |
//! | `id`, `url` | endpoint | N, S | id, ordered by time, and address                                               |
//! | `vn`      | endpoint, delivery | N | number of changes, for the condition of the next one                     |
//! | `ev`      | endpoint | L    | names of the events that it wants                                               |
//! | `en`      | endpoint | B    | enabled                                                                         |
//! | `se`      | endpoint | S    | the secret that signs, sealed                                                   |
//! | `fs`      | endpoint | N    | since when every attempt has failed                                             |
//! | `un`      | endpoint | B    | it was disabled because it failed, and the moderators have not been warned      |
//! | `n`       | number of endpoints | N | how many there are                                                      |
//! | `mg`, `ev` | delivery | S   | id of the message, and name of the event                                        |
//! | `ha`      | delivery | N    | when it happened                                                                |
//! | `c`, `p`, `t` | delivery | N, N, S | comment, its parent, thread                                               |
//! | `st`      | delivery | S    | `pending`, `delivered` or `failed`                                              |
//! | `tr`      | delivery | L    | attempts: maps of `a` (N, time), `s` (N, status), `ms` (N, how long it took)    |
//! | `rn`      | delivery | N    | attempts since it was last sent again by hand                                   |
//! | `du`      | delivery | N    | when the next attempt is due                                                    |
//! | `cl`      | delivery | M    | claim of a worker: `o` (S, owner), `u` (N, until)                               |

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::domain::ids::{CommentId, SourceId, ThreadId, UserId, Visitor};
use crate::domain::mail_keys::Recipient;
use crate::domain::webhook::{EndpointId, MessageId};

pub(super) type Item = HashMap<String, AttributeValue>;

/// The highest id: keys have sixteen digits.
const LAST: u64 = 9_999_999_999_999_999;
/// Sorts after digits and `#`.
const END: &str = "~";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) pk: String,
    pub(super) sk: String,
}

impl Key {
    fn new(pk: String, sk: impl Into<String>) -> Self {
        Self { pk, sk: sk.into() }
    }

    /// A key that no item has. It is read to open the connection.
    pub(super) fn of_nothing() -> Self {
        Self::new("0".to_owned(), "0")
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

/// The partition of a comment and of the items below it.
pub(super) fn comment_partition(id: CommentId) -> String {
    format!("C#{id}")
}

/// The id of a comment from its item, or from its keys in an index.
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

/// The reply that a hidden reply's sort key names.
pub(super) fn hidden_reply_of(sk: &str) -> Option<CommentId> {
    sk.strip_prefix("H#")?.trim_start_matches('0').parse().ok()
}

pub(super) fn guest_bound(id: CommentId, network: &str) -> Key {
    Key::new(comment_partition(id), format!("G#{network}"))
}

pub(super) fn thread(thread: &ThreadId) -> Key {
    Key::new(format!("T#{thread}"), "T")
}

pub(super) fn counted(thread: &ThreadId, id: CommentId) -> Key {
    Key::new(format!("T#{thread}"), format!("K#{}", pad(id.0)))
}

/// Bounds of the sort keys of a thread's counted comments.
pub(super) fn all_counted() -> (AttributeValue, AttributeValue) {
    let key = |id| AttributeValue::S(format!("K#{}", pad(id)));
    (key(0), key(LAST))
}

/// The comment that a counted comment's item names.
pub(super) fn counted_of(item: &Item) -> Option<CommentId> {
    counted_by(item.get("sk")?.as_s().ok()?)
}

/// The same by the sort key.
pub(super) fn counted_by(sort_key: &str) -> Option<CommentId> {
    sort_key.strip_prefix("K#")?.trim_start_matches('0').parse().ok()
}

pub(super) fn count(thread: &ThreadId) -> Key {
    Key::new(format!("T#{thread}"), "K")
}

pub(super) fn visitor_state(visitor: &Visitor, thread: &ThreadId) -> Key {
    Key::new(format!("V#{visitor}#{thread}"), "V")
}

/// `parent` is a top-level comment, or the parent of a reply.
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

/// The user that a handle's sort key names.
pub(super) fn user_of_handle(item: &Item) -> Option<UserId> {
    item.get("sk")?.as_s().ok()?.strip_prefix("U#")?.parse().ok()
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

/// One partition takes a thousand writes a second, and a flood of unapproved comments may bring more.
pub(super) const QUEUE_SHARDS: u64 = 4;

pub(super) fn queue_partition(state: &str, shard: u64) -> String {
    format!("Q#{state}#{shard}")
}

pub(super) fn queued_comment(sk: &str) -> Option<CommentId> {
    sk.trim_start_matches('0').parse().ok()
}

pub(super) fn source(source: &SourceId) -> Key {
    Key::new(format!("S#{source}"), "S")
}

pub(super) fn log(id: u64) -> Key {
    Key::new(log_partition(), pad(id))
}

pub(super) fn log_partition() -> String {
    "A".to_owned()
}

/// `id` is that of the ban.
pub(super) fn banned(id: u64) -> Key {
    Key::new(banned_partition(), pad(id))
}

pub(super) fn banned_partition() -> String {
    "B".to_owned()
}

/// The id of a ban from the key of its row.
pub(super) fn ban_of(sk: &str) -> Option<u64> {
    sk.trim_start_matches('0').parse().ok()
}

/// Of those who were forgotten.
#[cfg(feature = "import")]
pub(super) fn forgotten_partition() -> String {
    "F".to_owned()
}

#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn forgotten(hash: &str) -> Key {
    Key::new("F".to_owned(), hash)
}

#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn erasure(hash: &str) -> Key {
    Key::new(format!("F#{hash}"), "J")
}

#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn erased_comment(hash: &str, id: CommentId) -> Key {
    Key::new(format!("F#{hash}"), pad(id.0))
}

#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn import_journal(thread: &ThreadId) -> Key {
    Key::new(format!("J#{thread}"), "J")
}

/// No thread has this text for an id.
#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn import_lease() -> Key {
    Key::new("J#lease".to_owned(), "J")
}

/// No thread has this text for an id.
#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn imported_salt() -> Key {
    Key::new("J#salt".to_owned(), "J")
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

pub(super) fn notification_state(recipient: &Recipient) -> Key {
    Key::new(format!("E#{recipient}"), "E")
}

/// The hash of the network in the sort key of a guest bound.
#[cfg_attr(not(feature = "import"), allow(dead_code))]
pub(super) fn network_of(sk: &str) -> Option<&str> {
    sk.strip_prefix("G#")
}

/// The visitor in the key of a visitor's thread state, a repeat, an idempotency or a limiter. A limiter may name a network
/// instead.
#[cfg(feature = "import")]
pub(super) fn visitor_of(key: &Key) -> Option<Visitor> {
    let mut parts = key.pk.split('#');
    let visitor = match parts.next()? {
        "V" | "P" | "I" => parts.next()?,
        "L" => parts.nth(1)?,
        _ => return None,
    };
    Some(Visitor(visitor.to_owned()))
}

/// The recipient in the key of a notification state.
#[cfg(feature = "import")]
pub(super) fn recipient_of(key: &Key) -> Option<Recipient> {
    key.pk.strip_prefix("E#").map(|recipient| Recipient(recipient.to_owned()))
}

/// The hash of the key and the route in the key of an idempotency.
#[cfg(feature = "import")]
pub(super) fn idempotency_hash(key: &Key) -> Option<&str> {
    key.pk.strip_prefix("I#")?.split_once('#').map(|(_, hash)| hash)
}

/// Bounds of the sort keys of a comment's hidden replies.
#[cfg(feature = "import")]
pub(super) fn hidden_replies() -> (AttributeValue, AttributeValue) {
    let key = |id| AttributeValue::S(format!("H#{}", pad(id)));
    (key(0), key(LAST))
}

pub(super) fn endpoint(id: EndpointId) -> Key {
    Key::new(endpoint_partition(), pad(id.0))
}

pub(super) fn endpoint_partition() -> String {
    "W".to_owned()
}

pub(super) fn endpoint_count() -> Key {
    Key::new(endpoint_partition(), "W")
}

pub(super) fn delivery(endpoint: EndpointId, message: &MessageId) -> Key {
    Key::new(delivery_partition(endpoint), format!("{}#{}", pad(message.number), message.hash))
}

pub(super) fn delivery_partition(endpoint: EndpointId) -> String {
    format!("W#{endpoint}")
}

/// The kind of an item, parsed from its key.
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
    Counted(ThreadId, CommentId),
    Count(ThreadId),
    VisitorThreadState(Visitor, ThreadId),
    User(UserId),
    /// A handle or a name fragment.
    Directory(UserId),
    Queue {
        state: String,
        id: CommentId,
    },
    Source(SourceId),
    Log,
    /// With the id of the ban.
    Banned(u64),
    ImportJournal(ThreadId),
    /// Forgotten people, erasures, import lease, imported salt, limiter, repeat, idempotency, mailbox and webhooks: a recount
    /// ignores them.
    Other,
}

impl ItemKind {
    pub(super) fn of(key: &Key) -> Self {
        Self::parse(key).unwrap_or(Self::Other)
    }

    fn parse(key: &Key) -> Option<Self> {
        let (letter, rest) = key.pk.split_once('#').unwrap_or((&key.pk, ""));
        Some(match (letter, key.sk.split_once('#').unwrap_or((&key.sk, ""))) {
            ("C", ("C", "")) => Self::Comment(rest.parse().ok()?),
            ("C", ("R", _)) => Self::Report(rest.parse().ok()?),
            ("C", ("H", _)) => Self::HiddenReply { parent: rest.parse().ok()?, id: hidden_reply_of(&key.sk)? },
            ("C", ("G", _)) => Self::GuestBound(rest.parse().ok()?),
            ("T", ("T", "")) => Self::Thread(ThreadId::try_from(rest.to_owned()).ok()?),
            ("T", ("K", "")) => Self::Count(ThreadId::try_from(rest.to_owned()).ok()?),
            ("T", ("K", id)) => Self::Counted(
                ThreadId::try_from(rest.to_owned()).ok()?,
                CommentId(id.trim_start_matches('0').parse().ok()?),
            ),
            ("V", ("V", _)) => {
                let (visitor, thread) = rest.split_once('#')?;
                Self::VisitorThreadState(Visitor(visitor.to_owned()), ThreadId::try_from(thread.to_owned()).ok()?)
            }
            ("U", ("U", "")) => Self::User(rest.parse().ok()?),
            ("H", ("U", id)) => Self::Directory(id.parse().ok()?),
            ("N", _) => Self::Directory(key.sk.rsplit_once('#')?.1.parse().ok()?),
            ("S", ("S", "")) => Self::Source(SourceId(rest.to_owned())),
            ("Q", _) => Self::Queue { state: rest.split_once('#')?.0.to_owned(), id: queued_comment(&key.sk)? },
            ("A", _) => Self::Log,
            ("J", ("J", "")) => Self::ImportJournal(ThreadId::try_from(rest.to_owned()).ok()?),
            ("B", _) => Self::Banned(ban_of(&key.sk)?),
            _ => return None,
        })
    }
}

/// Whose lists a comment is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope<'a> {
    Everyone,
    /// The writer's alone: unapproved comments.
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

/// The partition of a thread's parents; in the index `thread`, their inline replies are in it too.
pub(super) fn parents(thread: &ThreadId, scope: Scope<'_>) -> String {
    scope.partition(format!("T#{thread}"))
}

/// The partition of a comment's replies: of all in the index `time`, of separate ones in the index `thread`.
pub(super) fn replies(parent: CommentId, scope: Scope<'_>) -> String {
    scope.partition(comment_partition(parent))
}

/// The sort key of a parent or a separate reply in the index `thread`.
pub(super) fn sort_key(id: CommentId) -> String {
    pad(id.0)
}

/// The sort key of an inline reply in the index `thread`.
pub(super) fn inline_sort_key(parent: CommentId, id: CommentId) -> String {
    format!("{}#{}", pad(parent.0), pad(id.0))
}

fn pad(id: u64) -> String {
    format!("{id:016}")
}

/// A range of ids, both ends included.
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

    /// Bounds of sort keys in the index `thread`: these parents and their inline replies. And of deliveries with these numbers.
    pub(super) fn families(self) -> (AttributeValue, AttributeValue) {
        let high = format!("{}{END}", pad(self.high));
        (AttributeValue::S(pad(self.low)), AttributeValue::S(high))
    }

    /// Bounds of sort keys in the index `thread`: these replies among the inline ones of `parent`.
    pub(super) fn inline(self, parent: CommentId) -> (AttributeValue, AttributeValue) {
        let key = |id| AttributeValue::S(format!("{}#{}", pad(parent.0), pad(id)));
        (key(self.low), key(self.high))
    }

    /// Bounds of sort keys that are ids as text: of separate replies, queues, the log, those banned and endpoints.
    pub(super) fn texts(self) -> (AttributeValue, AttributeValue) {
        (AttributeValue::S(pad(self.low)), AttributeValue::S(pad(self.high)))
    }

    /// Bounds of sort keys that are numbers.
    pub(super) fn numbers(self) -> (AttributeValue, AttributeValue) {
        (AttributeValue::N(self.low.to_string()), AttributeValue::N(self.high.to_string()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A key of every constructor, with its kind.
    pub(in crate::store) fn keys_and_kinds() -> Vec<(Key, ItemKind)> {
        let (id, other, ada) = (CommentId(12), CommentId(3), UserId(7));
        let (visitor, post) = (Visitor::from(ada), ThreadId::new("post", "a-1").unwrap());
        let source = SourceId("disqus:5#58".to_owned());
        let hook = EndpointId(5);
        let message = MessageId { number: 12, hash: "hash".to_owned() };
        let visitor_state = || ItemKind::VisitorThreadState(visitor.clone(), post.clone());
        vec![
            (comment(id), ItemKind::Comment(id)),
            (report(id, 5), ItemKind::Report(id)),
            (hidden_reply(id, other), ItemKind::HiddenReply { parent: id, id: other }),
            (guest_bound(id, "hash"), ItemKind::GuestBound(id)),
            (thread(&post), ItemKind::Thread(post.clone())),
            (counted(&post, id), ItemKind::Counted(post.clone(), id)),
            (count(&post), ItemKind::Count(post.clone())),
            (self::visitor_state(&visitor, &post), visitor_state()),
            (visitor_overflow(&visitor, &post, id), visitor_state()),
            (user(ada), ItemKind::User(ada)),
            (handle("ada", ada), ItemKind::Directory(ada)),
            (name_fragment(1, "a#d#a", ada), ItemKind::Directory(ada)),
            (queue("pending", id), ItemKind::Queue { state: "pending".to_owned(), id }),
            (self::source(&source), ItemKind::Source(source.clone())),
            (log(5), ItemKind::Log),
            (banned(5), ItemKind::Banned(5)),
            (forgotten("hash"), ItemKind::Other),
            (erasure("hash"), ItemKind::Other),
            (erased_comment("hash", id), ItemKind::Other),
            (import_journal(&post), ItemKind::ImportJournal(post.clone())),
            (import_lease(), ItemKind::Other),
            (imported_salt(), ItemKind::Other),
            (limiter("read", "caller", 1), ItemKind::Other),
            (repeat(&visitor, "hash"), ItemKind::Other),
            (idempotency(&visitor, "hash"), ItemKind::Other),
            (notification_state(&ada.into()), ItemKind::Other),
            (endpoint(hook), ItemKind::Other),
            (endpoint_count(), ItemKind::Other),
            (delivery(hook, &message), ItemKind::Other),
        ]
    }

    #[test]
    fn every_key_is_parsed_as_its_kind() {
        let keys = keys_and_kinds();
        for (key, kind) in &keys {
            assert_eq!(ItemKind::of(key), *kind, "{key:?}");
        }
        let constructors = include_str!("keys.rs")
            .lines()
            .filter(|line| line.starts_with("pub(super) fn") && line.ends_with("-> Key {"));
        assert_eq!(keys.len(), constructors.count(), "a key without a kind in this test");
    }

    #[test]
    fn the_table_of_items_has_every_key() {
        let items = include_str!("keys.rs").lines().skip_while(|line| *line != "//! # Items");
        let items = items.take_while(|line| *line != "//! # Indexes").filter(|line| line.starts_with("//! | "));
        let documented: Vec<char> = items.filter_map(|row| row.split('`').nth(1)?.chars().next()).collect();
        let built: Vec<char> = keys_and_kinds().iter().filter_map(|(key, _)| key.pk.chars().next()).collect();
        assert_eq!(documented, built);
    }
}
