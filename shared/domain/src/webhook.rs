//! Webhooks according to the Standard Webhooks specification (<https://www.standardwebhooks.com>): endpoints that are notified
//! of events, deliveries with their attempts, and signatures. Decisions are made here in memory; `store::webhooks` writes them
//! on condition that the stored item is unchanged.
//!
//! Signatures are computed here, because each is a single HMAC and the crate `standardwebhooks` would add a second crypto
//! library to the functions. Tests use the crate to verify signatures.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::comment::{Comment, State};
use crate::ids::{CommentId, Random, ThreadId, sha256_hex};
use crate::secret::Secret;
use crate::time::{Timestamp, stored};

pub const MAX_ENDPOINTS: usize = 10;
/// The last and longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_hours(10);
/// Pauses before the second and later attempts.
const RETRIES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    MAX_PAUSE,
];
/// An endpoint that fails for this long without any success is disabled.
const MAX_FAILING: Duration = Duration::from_hours(5 * 24);
/// If an attempt hasn't ended within this time, its worker has died.
const LEASE: Duration = Duration::from_mins(1);
/// A delivery is listed, and can be sent again, for this long.
const DELIVERY_TTL: Duration = Duration::from_hours(30 * 24);
/// Maximum stored attempts of a delivery. The newest attempts are stored.
const MAX_ATTEMPTS: usize = 20;
/// The length of a secret in bytes, before it is encoded.
const SECRET: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// A new comment was public immediately.
    #[serde(rename = "comment.created")]
    Created,
    /// A comment, or an edit of an approved one, waits for a moderator.
    #[serde(rename = "comment.pending")]
    Pending,
    #[serde(rename = "comment.approved")]
    Approved,
    #[serde(rename = "comment.rejected")]
    Rejected,
    /// The body changed, and does not wait for a moderator.
    #[serde(rename = "comment.updated")]
    Updated,
    #[serde(rename = "comment.deleted")]
    Deleted,
    #[serde(rename = "comment.reported")]
    Reported,
    /// A moderator requested a test.
    #[serde(rename = "webhook.test")]
    Test,
}

impl EventKind {
    /// The events that endpoints can subscribe to.
    pub const OF_COMMENTS: [Self; 7] =
        [Self::Created, Self::Pending, Self::Approved, Self::Rejected, Self::Updated, Self::Deleted, Self::Reported];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "comment.created",
            Self::Pending => "comment.pending",
            Self::Approved => "comment.approved",
            Self::Rejected => "comment.rejected",
            Self::Updated => "comment.updated",
            Self::Deleted => "comment.deleted",
            Self::Reported => "comment.reported",
            Self::Test => "webhook.test",
        }
    }

    /// Finds one of [`Self::OF_COMMENTS`] by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::OF_COMMENTS.into_iter().find(|event| event.name() == name)
    }
}

/// The events caused by one change of a comment: `old` is `None` for a new comment, `new` for a deleted one, and both
/// if only the approval of a comment above it made the comment visible. Likes and renames cause none, and neither do
/// new comments that aren't announced ([`Comment::is_announced`]).
///
/// `is_shown` is whether the change made a comment visible to everyone, by its own approval or the approval of a comment above
/// it.
#[must_use]
pub fn events_of(old: Option<&Comment>, new: Option<&Comment>, is_shown: bool) -> Vec<EventKind> {
    let exists = |comment: &&Comment| !comment.is_placeholder;
    match (old.filter(exists), new.filter(exists)) {
        (None, Some(new)) => match new.state {
            _ if !new.is_announced() => Vec::new(),
            State::Approved if is_shown => vec![EventKind::Created],
            State::Pending => vec![EventKind::Pending],
            State::Approved | State::Rejected => Vec::new(),
        },
        (Some(_), None) => vec![EventKind::Deleted],
        (Some(old), Some(new)) => {
            let accepted = |comment: &Comment| comment.is_approved() && !comment.in_review;
            let became = |is: fn(&Comment) -> bool| is(new) && !is(old);
            let is_edited = old.body != new.body;
            let is_announced = new.is_announced() || new.was_shown;
            let may_notify = old.is_approved() || (is_shown && is_announced);
            let changes = [
                (is_edited && !new.is_queued(), EventKind::Updated),
                (became(Comment::is_queued) || (is_edited && new.is_queued()), EventKind::Pending),
                (accepted(new) && !accepted(old) && may_notify, EventKind::Approved),
                (became(|comment| comment.state == State::Rejected), EventKind::Rejected),
                (new.reports > old.reports, EventKind::Reported),
            ];
            changes.into_iter().filter_map(|(changed, event)| changed.then_some(event)).collect()
        }
        (None, None) if is_shown => vec![EventKind::Approved],
        (None, None) => Vec::new(),
    }
}

/// Ids sort by creation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EndpointId(pub u64);

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EndpointId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().map(|CommentId(id)| Self(id))
    }
}

/// The id of a message, the same for every attempt: `msg_`, a number that sorts by time, and a hash that makes the id unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId {
    pub number: u64,
    /// 32 hexadecimal digits.
    pub hash: String,
}

impl MessageId {
    /// The id is the same for equal arguments, so that a stream record that is delivered twice causes one message. `cause` is
    /// the id of the stream record, or of a request.
    #[must_use]
    pub fn new(endpoint: EndpointId, event: EventKind, cause: &str, at: Timestamp) -> Self {
        let mut hash = sha256_hex(&format!("{endpoint} {} {cause}", event.name()));
        hash.truncate(32);
        let tie = u64::from_str_radix(&hash[..8], 16).unwrap_or_default();
        // The stream's times are in seconds, so the milliseconds can distinguish the messages of one second.
        let at = Timestamp(at.seconds() * 1_000 + i64::try_from(tie % 1_000).unwrap_or_default());
        let slot = CommentId::slots(at, tie / 1_000).and_then(|mut slots| slots.next());
        let number = slot.map_or(1, |slot| slot.0);
        Self { number, hash }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "msg_{}_{}", self.number, self.hash)
    }
}

impl FromStr for MessageId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (number, hash) = text.strip_prefix("msg_").and_then(|text| text.split_once('_')).ok_or("not msg_")?;
        let CommentId(number) = number.parse().map_err(|()| "not a number")?;
        let is_hash = hash.len() == 32 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if is_hash { Ok(Self { number, hash: hash.to_owned() }) } else { Err("not a hash") }
    }
}

impl TryFrom<String> for MessageId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> Self {
        id.to_string()
    }
}

/// An endpoint that is notified of events, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub id: EndpointId,
    /// Changes with every write. A write requires that the stored number is unchanged.
    #[serde(rename = "vn")]
    pub version: u64,
    pub url: String,
    #[serde(rename = "ev")]
    pub events: BTreeSet<EventKind>,
    #[serde(rename = "en")]
    pub enabled: bool,
    /// The secret, sealed.
    #[serde(rename = "se")]
    pub secret: String,
    /// When the attempts began to fail. `None` after a success.
    #[serde(rename = "fs", default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub failing_since: Option<Timestamp>,
    /// Whether the endpoint was disabled because it failed, and the moderators have not been warned yet.
    #[serde(rename = "un", default, skip_serializing_if = "is_default")]
    pub warning_due: bool,
}

impl Endpoint {
    #[must_use]
    pub fn wants(&self, event: EventKind) -> bool {
        self.enabled && self.events.contains(&event)
    }

    /// Changes the address. A different address resets `failing_since`.
    pub fn move_to(&mut self, url: String) {
        if self.url != url {
            self.failing_since = None;
        }
        self.url = url;
    }

    pub fn enable(&mut self, enabled: bool) {
        if enabled && !self.enabled {
            self.failing_since = None;
            self.warning_due = false;
        }
        self.enabled = enabled;
    }

    pub fn note_outcome(&mut self, outcome: Outcome, now: Timestamp) {
        match outcome {
            Outcome::Delivered => self.failing_since = None,
            Outcome::Gone => self.enabled = false,
            Outcome::Failed => {
                let since = self.failing_since.map_or(now, |since| since.or_now(Duration::ZERO, now));
                self.failing_since = Some(since);
                if self.enabled && now.since(since) >= MAX_FAILING {
                    self.enabled = false;
                    self.warning_due = true;
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// The endpoint accepts no more messages.
    Gone,
    Failed,
}

impl Outcome {
    /// The outcome for a response status, which is `None` without a response. A redirect is a failure.
    #[must_use]
    pub fn of(status: Option<u16>) -> Self {
        match status {
            Some(200..=299) => Self::Delivered,
            Some(410) => Self::Gone,
            _ => Self::Failed,
        }
    }
}

/// An event without the data of its comment, because every attempt sends the comment's current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    #[serde(rename = "ev")]
    pub kind: EventKind,
    #[serde(rename = "ha", serialize_with = "stored::time")]
    pub at: Timestamp,
    /// `None` for a test delivery.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
}

/// The ids of a comment, which may have been deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    #[serde(rename = "c")]
    pub comment: CommentId,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CommentId>,
    #[serde(rename = "t")]
    pub thread: ThreadId,
}

impl Subject {
    #[must_use]
    pub fn of(comment: &Comment) -> Self {
        Self { comment: comment.id, parent: comment.parent(), thread: comment.thread.clone() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Delivered,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    #[serde(rename = "a", serialize_with = "stored::time")]
    pub at: Timestamp,
    /// `None` without a response.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Duration in milliseconds.
    #[serde(rename = "ms")]
    pub took: u64,
}

/// A message to one endpoint, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    #[serde(rename = "mg")]
    pub message: MessageId,
    #[serde(rename = "vn")]
    pub version: u64,
    #[serde(flatten)]
    pub event: Event,
    #[serde(rename = "st")]
    pub status: Status,
    /// Oldest first.
    #[serde(rename = "tr", default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The number of attempts since the delivery was last sent again manually.
    #[serde(rename = "rn", default, skip_serializing_if = "is_default")]
    round: usize,
    #[serde(rename = "du", serialize_with = "stored::time")]
    due: Timestamp,
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    claim: Option<Claim>,
    /// Expiry of the item, in whole seconds.
    #[serde(rename = "x", with = "stored::seconds")]
    expires: Timestamp,
}

pub type DeliveryStep = claim::WorkerStep<()>;

impl Delivery {
    #[must_use]
    pub fn new(message: MessageId, event: Event, now: Timestamp) -> Self {
        Self {
            message,
            version: 0,
            event,
            status: Status::Pending,
            attempts: Vec::new(),
            round: 0,
            due: now,
            claim: None,
            expires: (now + DELIVERY_TTL).start_of_second(),
        }
    }

    /// When the next attempt is due; `None` if no attempt is left.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        (self.status == Status::Pending).then_some(self.due)
    }

    /// Claims the delivery for `worker` if an attempt is due.
    pub fn take(&mut self, now: Timestamp, worker: &str) -> DeliveryStep {
        if self.status != Status::Pending {
            return DeliveryStep::Nothing;
        }
        if let Some(claim) = &mut self.claim {
            claim.shorten(LEASE, now);
        }
        self.due = self.due.or_now(MAX_PAUSE, now);
        // The claim is this worker's own if the response to writing it was lost.
        if let Some(until) = self.claim.as_ref().and_then(|claim| claim.blocks(worker, now)) {
            return DeliveryStep::Wait(until);
        }
        if self.due > now {
            return DeliveryStep::Wait(self.due);
        }
        self.claim = Some(Claim::new(worker, now + LEASE, false));
        DeliveryStep::Send(())
    }

    /// Records the result of this worker's attempt. Does nothing if another worker has taken over.
    pub fn finish(&mut self, worker: &str, attempt: Attempt, now: Timestamp) {
        if self.claim.as_ref().is_none_or(|claim| !claim.is_of(worker)) {
            return;
        }
        self.claim = None;
        let outcome = Outcome::of(attempt.status);
        self.attempts.push(attempt);
        let surplus = self.attempts.len().saturating_sub(MAX_ATTEMPTS);
        self.attempts.drain(..surplus);
        self.round += 1;
        self.status = match (outcome, RETRIES.get(self.round - 1)) {
            (Outcome::Delivered, _) => Status::Delivered,
            (Outcome::Failed, Some(pause)) => {
                self.due = now + *pause;
                Status::Pending
            }
            _ => Status::Failed,
        };
    }

    /// Cancels further attempts, because the endpoint was disabled.
    pub fn give_up(&mut self) {
        if self.status == Status::Pending {
            self.status = Status::Failed;
            self.claim = None;
        }
    }

    /// Schedules the delivery again, whatever its status.
    pub fn send_again(&mut self, now: Timestamp) {
        self.status = Status::Pending;
        self.round = 0;
        self.due = now;
    }
}

#[must_use]
pub fn new_secret(random: &Random) -> Secret {
    Secret::from(format!("whsec_{}", STANDARD.encode(random.bytes::<SECRET>())))
}

/// The value of the header `webhook-signature` for an attempt at this time.
#[must_use]
pub fn signature(secret: &Secret, message: &str, at: Timestamp, body: &str) -> String {
    let encoded = secret.expose().strip_prefix("whsec_").unwrap_or_default();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(encoded).unwrap_or_default());
    let tag = hmac::sign(&key, format!("{message}.{}.{body}", at.seconds()).as_bytes());
    format!("v1,{}", STANDARD.encode(tag))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SourceId;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn comment() -> Comment {
        Comment { id: CommentId(12), body: "x".to_owned(), ..Comment::blank(ThreadId::new("posts", "1").unwrap()) }
    }

    fn delivery() -> Delivery {
        let message = MessageId::new(EndpointId(7), EventKind::Created, "record", NOW);
        let subject = Some(Subject::of(&comment()));
        Delivery::new(message, Event { kind: EventKind::Created, at: NOW, subject }, NOW)
    }

    fn endpoint() -> Endpoint {
        let events = BTreeSet::from([EventKind::Created]);
        let (url, secret) = ("https://example.org/".to_owned(), String::new());
        let (version, failing_since, warning_due) = (1, None, false);
        Endpoint { id: EndpointId(7), version, url, events, enabled: true, secret, failing_since, warning_due }
    }

    fn answered(status: Option<u16>) -> Attempt {
        Attempt { at: NOW, status, took: 3 }
    }

    #[test]
    fn a_secret_has_at_least_24_bytes_and_is_never_the_same() {
        let (one, other) = (new_secret(&Random::system()), new_secret(&Random::system()));
        assert!(STANDARD.decode(one.expose().strip_prefix("whsec_").unwrap()).unwrap().len() >= 24);
        assert_ne!(one.expose(), other.expose());
    }

    #[test]
    fn each_change_of_a_comment_causes_exactly_the_expected_events() {
        let with = |change: fn(&mut Comment)| {
            let mut changed = comment();
            change(&mut changed);
            changed
        };
        let (plain, pending) = (comment(), with(|comment| comment.state = State::Pending));
        let rejected = with(|comment| comment.state = State::Rejected);
        let edited = with(|comment| comment.body = "y".to_owned());
        let doubted = with(|comment| {
            comment.body = "y".to_owned();
            comment.in_review = true;
        });
        let doubted_again = Comment { body: "z".to_owned(), ..doubted.clone() };
        let pending_edited = Comment { body: "z".to_owned(), ..pending.clone() };
        let placeholder = comment().into_placeholder();
        let pending_import = with(|comment| {
            comment.source = Some(SourceId("disqus:1".to_owned()));
            comment.state = State::Pending;
        });
        let imported = with(|comment| comment.source = Some(SourceId("disqus:1".to_owned())));
        let rejected_import = Comment { state: State::Rejected, was_shown: true, ..imported.clone() };
        let import_shown_again = Comment { was_shown: true, ..imported.clone() };
        let other = with(|comment| {
            comment.likes = 1;
            comment.name = "Ada".to_owned();
            comment.replies = 3;
            comment.reported = true;
        });
        for (old, new, events) in [
            (None, Some(&plain), vec![EventKind::Created]),
            (None, Some(&pending), vec![EventKind::Pending]),
            (None, Some(&imported), vec![]),
            (Some(&pending_import), Some(&imported), vec![]),
            (Some(&imported), Some(&rejected_import), vec![EventKind::Rejected]),
            (Some(&rejected_import), Some(&import_shown_again), vec![EventKind::Approved]),
            (None, Some(&placeholder), vec![]),
            (Some(&pending), Some(&plain), vec![EventKind::Approved]),
            (Some(&pending), Some(&rejected), vec![EventKind::Rejected]),
            (Some(&plain), Some(&rejected), vec![EventKind::Rejected]),
            (Some(&rejected), Some(&plain), vec![EventKind::Approved]),
            (Some(&plain), Some(&edited), vec![EventKind::Updated]),
            (Some(&plain), Some(&doubted), vec![EventKind::Pending]),
            (Some(&doubted), Some(&doubted_again), vec![EventKind::Pending]),
            (Some(&pending), Some(&pending_edited), vec![EventKind::Pending]),
            (Some(&doubted), Some(&edited), vec![EventKind::Approved]),
            (Some(&plain), Some(&with(|comment| comment.reports = 1)), vec![EventKind::Reported]),
            (Some(&plain), Some(&other), vec![]),
            (Some(&plain), Some(&placeholder), vec![EventKind::Deleted]),
            (Some(&pending), Some(&placeholder), vec![EventKind::Deleted]),
            (Some(&plain), None, vec![EventKind::Deleted]),
            (Some(&placeholder), None, vec![]),
        ] {
            let is_shown = new.is_some_and(Comment::may_count);
            assert_eq!(events_of(old, new, is_shown), events, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_reply_below_a_hidden_comment_is_announced_once_everyone_sees_it() {
        let (plain, pending) = (comment(), Comment { state: State::Pending, ..comment() });
        for old in [None, Some(&pending)] {
            assert_eq!(events_of(old, Some(&plain), false), []);
        }
        assert_eq!(events_of(None, None, true), [EventKind::Approved]);
        assert_eq!(events_of(Some(&plain), Some(&pending), false), [EventKind::Pending]);
    }

    #[test]
    fn attempts_of_a_clock_that_was_ahead_do_not_delay_a_delivery() {
        let (mut delivery, ahead) = (delivery(), NOW + Duration::from_hours(400 * 24));
        assert_eq!(delivery.take(ahead, "a"), DeliveryStep::Send(()));
        assert_eq!(delivery.take(NOW, "b"), DeliveryStep::Wait(NOW + LEASE), "the first worker may still be sending");
        assert_eq!(delivery.take(NOW + LEASE, "b"), DeliveryStep::Send(()));
        delivery.finish("b", answered(Some(500)), ahead);
        assert_eq!(delivery.take(NOW + LEASE, "c"), DeliveryStep::Send(()));
    }

    #[test]
    fn an_endpoint_that_failed_while_the_clock_was_ahead_is_disabled_five_days_after_its_next_failure() {
        let day = Duration::from_hours(24);
        let mut endpoint = endpoint();
        endpoint.note_outcome(Outcome::Failed, NOW + 400 * day);
        endpoint.note_outcome(Outcome::Failed, NOW);
        endpoint.note_outcome(Outcome::Failed, NOW + 5 * day - Duration::from_millis(1));
        assert!(endpoint.enabled);
        endpoint.note_outcome(Outcome::Failed, NOW + 5 * day);
        assert!(!endpoint.enabled);
    }

    #[test]
    fn a_delivery_is_sent_by_one_worker_at_a_time_and_by_another_when_that_one_died() {
        let mut delivery = delivery();
        assert_eq!(delivery.take(NOW, "a"), DeliveryStep::Send(()));
        assert_eq!(delivery.take(NOW + Duration::from_millis(1), "b"), DeliveryStep::Wait(NOW + LEASE));
        assert_eq!(delivery.take(NOW + LEASE, "b"), DeliveryStep::Send(()));
        let before = delivery.clone();
        delivery.finish("a", answered(Some(200)), NOW + LEASE);
        assert_eq!(delivery, before);
        delivery.finish("b", answered(Some(200)), NOW + LEASE);
        assert_eq!(delivery.status, Status::Delivered);
    }

    #[test]
    fn only_successful_statuses_count_as_delivered() {
        for status in [200, 202, 204, 299] {
            assert_eq!(Outcome::of(Some(status)), Outcome::Delivered);
        }
        for status in [None, Some(101), Some(301), Some(304), Some(307), Some(404), Some(429), Some(500)] {
            assert_eq!(Outcome::of(status), Outcome::Failed);
        }
        assert_eq!(Outcome::of(Some(410)), Outcome::Gone);
    }

    #[test]
    fn an_endpoint_that_fails_for_five_days_is_disabled_and_one_success_begins_anew() {
        let mut endpoint = endpoint();
        let day = Duration::from_hours(24);
        endpoint.note_outcome(Outcome::Failed, NOW);
        endpoint.note_outcome(Outcome::Delivered, NOW + 4 * day);
        endpoint.note_outcome(Outcome::Failed, NOW + 6 * day);
        endpoint.note_outcome(Outcome::Failed, NOW + 11 * day - Duration::from_millis(1));
        assert!(endpoint.enabled && endpoint.wants(EventKind::Created) && !endpoint.wants(EventKind::Deleted));
        endpoint.note_outcome(Outcome::Failed, NOW + 11 * day);
        assert!(!endpoint.enabled && endpoint.warning_due && !endpoint.wants(EventKind::Created));
        endpoint.enable(true);
        endpoint.note_outcome(Outcome::Failed, NOW + 20 * day);
        assert!(endpoint.enabled && !endpoint.warning_due);
        endpoint.move_to("https://example.org/".to_owned());
        assert_eq!(endpoint.failing_since, Some(NOW + 20 * day));
        endpoint.move_to("https://example.org/new".to_owned());
        assert_eq!(endpoint.failing_since, None);
        endpoint.note_outcome(Outcome::Gone, NOW);
        assert!(!endpoint.enabled && !endpoint.warning_due);
    }

    #[test]
    fn a_repeated_record_is_the_same_message_and_other_records_are_different_ones() {
        let id = |endpoint, event, cause, at| MessageId::new(EndpointId(endpoint), event, cause, at);
        let message = id(7, EventKind::Created, "record", NOW);
        assert_eq!(message, id(7, EventKind::Created, "record", NOW));
        for other in [
            id(8, EventKind::Created, "record", NOW),
            id(7, EventKind::Deleted, "record", NOW),
            id(7, EventKind::Created, "other", NOW),
        ] {
            assert_ne!(message, other);
        }
        assert!(message.number < id(7, EventKind::Created, "record", NOW + Duration::from_secs(1)).number);
        assert_eq!(message.to_string().parse(), Ok(message));
        for odd in ["", "msg_1", "msg_x_00", "msg_1_é", "msg_01_00000000000000000000000000000000"] {
            assert!(odd.parse::<MessageId>().is_err(), "{odd}");
        }
    }

    #[test]
    fn the_name_of_every_event_is_its_stored_form() {
        for event in EventKind::OF_COMMENTS.into_iter().chain([EventKind::Test]) {
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
        }
        assert_eq!(EventKind::parse("comment.created"), Some(EventKind::Created));
        assert_eq!(EventKind::parse("webhook.test"), None);
    }
}
