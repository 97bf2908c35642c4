//! A comment as stored. `store::keys` defines its keys, and `http::resource` its form in responses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::avatar::Avatar;
use crate::ids::{CommentId, SourceId, ThreadId, UserId, Visitor, fingerprint};
use crate::mail_keys::Recipient;
use crate::notifications::Address;
use crate::rejection::{Grounds, Rejection};
use crate::report::{ReportExcerpt, Resolution};
use crate::thread::PageInfo;
use crate::time::{Timestamp, stored};
use crate::verdict::Verdict;

/// Maximum depth of a reply. A top-level comment has depth 0.
pub const MAX_DEPTH: usize = 10;

/// Attribute names are short, because a page reads about forty comments and DynamoDB bills reads by size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comment {
    #[serde(rename = "i")]
    pub id: CommentId,
    #[serde(rename = "t")]
    pub thread: ThreadId,
    /// Ancestors from the top-level comment down to the direct parent; empty for a top-level comment.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<CommentId>,
    /// `None` for guests.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// `None` for users, whose [`Visitor`] is derived from the user id, and for comments imported from other services.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Visitor>,
    /// Keyed hash of a guest's network. `None` for users, for imported comments, and for comments from before networks were
    /// stored.
    #[serde(rename = "nw", default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(rename = "av", default, skip_serializing_if = "is_default")]
    pub avatar: Avatar,
    /// Keyed hash of a guest's email address, used to find the guest's comments: [`crate::person::PersonHashes::address`].
    #[serde(rename = "ah", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether the writer was a moderator when the comment was posted.
    #[serde(rename = "mo", default, skip_serializing_if = "is_default")]
    pub by_moderator: bool,
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Mentioned handles that belonged to users when the body was written.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub edited_at: Option<Timestamp>,
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    pub state: State,
    /// Whether an edit of the approved comment is waiting for a moderator.
    #[serde(rename = "rv", default, skip_serializing_if = "is_default")]
    pub in_review: bool,
    /// Whether the spam check flagged a text of this comment while the comment was pending.
    #[serde(rename = "sp", default, skip_serializing_if = "is_default")]
    pub suspicious: bool,
    /// Whether the comment became public without a moderator's decision while new writers needed approval. Such a
    /// comment earns its writer no trust.
    #[serde(rename = "bt", default, skip_serializing_if = "is_default")]
    pub by_trust: bool,
    /// The reasons for holding the current text, until a moderator approves it.
    #[serde(rename = "vd", default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// A placeholder for a deleted comment with replies. It is approved, and has no writer, text, likes or reports.
    #[serde(rename = "ph", default, skip_serializing_if = "is_default")]
    pub is_placeholder: bool,
    /// The comment's id on the service it was imported from.
    #[serde(rename = "so", default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceId>,
    /// The number of likes, including imported ones.
    #[serde(rename = "lc", default, skip_serializing_if = "is_default")]
    pub likes: u64,
    /// The number of likes that were imported as a count, without voters.
    #[serde(rename = "il", default, skip_serializing_if = "is_default")]
    pub imported_likes: u64,
    /// The number of approved direct replies.
    #[serde(rename = "rc", default, skip_serializing_if = "is_default")]
    pub replies: u64,
    /// The [`fingerprint()`] of the counted replies, which shows whether an index lists all of them. Top-level comments only.
    #[serde(rename = "fp", default, skip_serializing_if = "is_default")]
    pub fingerprint: i64,
    /// The ids of the oldest replies, which the index `thread` stores next to this comment in the thread's partition.
    #[serde(rename = "ld", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub inline: BTreeSet<u64>,
    /// Whether any reply is or was stored separately, in this comment's own partition of the index `thread`. Never unset.
    #[serde(rename = "tr", default, skip_serializing_if = "is_default")]
    pub has_separate: bool,
    /// The number of reports, including resolved ones.
    #[serde(rename = "rp", default, skip_serializing_if = "is_default")]
    pub reports: u64,
    /// Whether any report waits for a moderator.
    #[serde(rename = "ro", default, skip_serializing_if = "is_default")]
    pub reported: bool,
    /// Newest first.
    #[serde(rename = "rl", default, skip_serializing_if = "Vec::is_empty")]
    pub newest_reports: Vec<ReportExcerpt>,
    /// Moderators' decisions about the reports, oldest first.
    #[serde(rename = "rs", default, skip_serializing_if = "Vec::is_empty")]
    pub resolutions: Vec<Resolution>,
    /// The title and address that the host page reported. Top-level comments only.
    #[serde(rename = "pg", default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Box<PageInfo>>,
    /// Whether the writer wants to be notified of replies.
    #[serde(rename = "sb", default, skip_serializing_if = "is_default")]
    pub subscribed: bool,
    /// The recipient and address for reply notifications. Members need none once their notification state has an address.
    #[serde(rename = "su", default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<Box<Subscription>>,
    /// Whether the comment was public before a moderator rejected it.
    #[serde(rename = "ws", default, skip_serializing_if = "is_default")]
    pub was_shown: bool,
    /// The rejection. May be missing if the comment was imported, or rejected before rejections were stored.
    #[serde(rename = "rj", default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Box<Rejection>>,
    /// The log entry id of the latest moderator decision; 0 if there is none. A decision that changes nothing isn't
    /// logged. It is recorded here only if it is an approval and the writer was banned after the previous decision.
    #[serde(rename = "de", default, skip_serializing_if = "is_default")]
    pub decided: u64,
    /// Lets a deletion detect concurrent changes to replies that don't change a count (`store::deletion`). While it is
    /// 0, no reply has ever been unapproved.
    #[serde(rename = "dg", default, skip_serializing_if = "is_default")]
    pub deletion_guard: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// `None` for members.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Recipient>,
    /// The address for notifications, until the comment is approved and the address moves to the notification state.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Keyed hash of the network that submitted the address, [`crate::mail_keys::MailKeys::network`]. Empty if the
    /// address is confirmed or no longer stored.
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub network: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    #[default]
    Approved,
    Pending,
    Rejected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldFor {
    /// The settings require approval.
    Approval,
    /// The spam check flagged the comment.
    Spam,
    /// An edit of an approved comment: the spam check flagged it, or the settings require approval.
    Edit,
}

impl Comment {
    /// An empty approved comment, to be filled in. The store sets the id.
    #[must_use]
    pub fn blank(thread: ThreadId) -> Self {
        Self {
            id: CommentId(0),
            thread,
            ancestors: Vec::new(),
            user: None,
            guest: None,
            network: None,
            name: String::new(),
            avatar: Avatar::Neutral,
            address: None,
            by_moderator: false,
            body: String::new(),
            mentions: Vec::new(),
            edited_at: None,
            state: State::Approved,
            in_review: false,
            is_placeholder: false,
            source: None,
            suspicious: false,
            by_trust: false,
            verdicts: Vec::new(),
            likes: 0,
            imported_likes: 0,
            replies: 0,
            fingerprint: 0,
            inline: BTreeSet::new(),
            has_separate: false,
            reports: 0,
            reported: false,
            newest_reports: Vec::new(),
            resolutions: Vec::new(),
            page: None,
            subscribed: false,
            subscription: None,
            was_shown: false,
            rejection: None,
            decided: 0,
            deletion_guard: 0,
        }
    }

    #[must_use]
    pub fn parent(&self) -> Option<CommentId> {
        self.ancestors.last().copied()
    }

    #[must_use]
    pub fn is_top_level(&self) -> bool {
        self.ancestors.is_empty()
    }

    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.state == State::Approved
    }

    /// Whether the thread's count includes the comment, provided that no ancestor is hidden.
    #[must_use]
    pub fn may_count(&self) -> bool {
        self.is_approved() && !self.is_placeholder
    }

    /// Whether the comment earns its writer trust without a decision: it is public, and was imported or posted while new
    /// writers needed no approval.
    #[must_use]
    pub fn earns_trust(&self) -> bool {
        self.may_count() && !self.by_trust
    }

    /// Whether creating or first approving the comment notifies anyone. Imported comments notify only on later changes.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        self.source.is_none()
    }

    /// Converts the comment into a placeholder, which keeps its place and replies but none of its content.
    #[must_use]
    pub fn into_placeholder(self) -> Self {
        Self {
            id: self.id,
            ancestors: self.ancestors,
            is_placeholder: true,
            source: self.source,
            replies: self.replies,
            fingerprint: self.fingerprint,
            inline: self.inline,
            has_separate: self.has_separate,
            was_shown: self.was_shown,
            deletion_guard: self.deletion_guard,
            ..Self::blank(self.thread)
        }
    }

    /// The comment's writer; [`Visitor::nobody`] if unknown.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        match (self.user, &self.guest) {
            (Some(user), _) => user.into(),
            (None, Some(guest)) => guest.clone(),
            (None, None) => Visitor::nobody(),
        }
    }

    /// The author that the comment is listed under. `None` for guests whose network is unknown.
    #[must_use]
    pub fn author(&self) -> Option<Author> {
        self.user.map(Author::User).or_else(|| self.network.clone().map(Author::Network))
    }

    #[must_use]
    pub fn is_by(&self, visitor: &Visitor) -> bool {
        match (self.user, &self.guest) {
            (Some(user), _) => visitor.user() == Some(user),
            (None, Some(guest)) => guest == visitor,
            (None, None) => false,
        }
    }

    /// The reason and note of the rejection, which the writer can see. Empty if there are none.
    #[must_use]
    pub fn grounds(&self) -> Grounds {
        self.rejection.as_ref().map(|rejection| rejection.grounds.clone()).unwrap_or_default()
    }

    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.edited_at.unwrap_or_else(|| self.id.created_at())
    }

    #[must_use]
    pub fn waits_for_moderators(&self) -> bool {
        self.is_queued() || self.reported
    }

    /// Identifies the latest event that moderators are notified of: the creation of the comment, an edit or a report.
    #[must_use]
    pub fn queue_entry(&self) -> u64 {
        let edited_at = u64::try_from(self.edited_at.unwrap_or_default().0).unwrap_or_default();
        fingerprint([self.id, CommentId(edited_at), CommentId(self.reports)]).unsigned_abs()
    }

    /// Whether the comment waits for a moderator, as a new comment or with an edit.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.held_for().is_some()
    }

    #[must_use]
    pub fn held_for(&self) -> Option<HeldFor> {
        match self.state {
            State::Pending if self.suspicious => Some(HeldFor::Spam),
            State::Pending => Some(HeldFor::Approval),
            State::Approved | State::Rejected => self.in_review.then_some(HeldFor::Edit),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
