//! Comments as presented to one viewer. Policy decides which comments a viewer sees.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::config::Config;
use crate::domain::avatar::Avatar;
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, ThreadId, UserId};
use crate::domain::language::Language;
use crate::domain::markdown;
use crate::domain::rejection::{Grounds, RejectionReason};
use crate::domain::thread::{PageInfo, Thread, VisitorThreadState};
use crate::domain::time::Timestamp;
use crate::domain::user::User;
use crate::domain::verdict::{Detail, Rule, Verdict};
use crate::domain::viewer::Viewer;
use crate::policy;

#[derive(Debug, Serialize)]
pub struct CommentResource {
    pub id: CommentId,
    /// Present only on placeholders.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_deleted: Option<bool>,
    body: String,
    html: String,
    parent_id: Option<CommentId>,
    is_approved: bool,
    /// Present only on the viewer's own unapproved comments.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<Review>,
    user: UserResource,
    likes_count: u64,
    liked: bool,
    reported: bool,
    replies_count: u64,
    pub replies: Vec<CommentResource>,
    /// The depth below the root of the branch; present only in lists of a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<usize>,
    can: Can,
    is_author: bool,
    is_moderator: bool,
    is_guest: bool,
    pinned: bool,
    pinned_at: Option<Timestamp>,
    created_at: Timestamp,
    relative_created_at: String,
    updated_at: Timestamp,
}

#[derive(Debug, Serialize)]
pub struct UserResource {
    pub id: Option<UserId>,
    pub name: String,
    pub avatar: String,
}

impl UserResource {
    #[must_use]
    pub fn new(config: &Config, id: Option<UserId>, name: String, avatar: &Avatar) -> Self {
        let avatar = match avatar {
            Avatar::Gravatar(_) if !config.guests.show_gravatar => String::new(),
            avatar => avatar.url(),
        };
        Self { id, name, avatar }
    }

    /// The writer of a placeholder.
    fn nobody() -> Self {
        Self { id: None, name: String::new(), avatar: String::new() }
    }
}

/// A user, as presented to that user.
#[derive(Debug, Serialize)]
pub struct OwnUser {
    id: UserId,
    /// `None` until the account has chosen a name.
    name: Option<String>,
    avatar: String,
}

/// The viewer, in the configuration of the widget.
#[derive(Debug, Serialize)]
pub struct Visitor {
    #[serde(flatten)]
    user: OwnUser,
    /// When the account may change its name again; `None` if it may do so now, and for users without an account.
    name_from: Option<Timestamp>,
}

impl Visitor {
    #[must_use]
    pub fn new(config: &Config, user: &User, now: Timestamp) -> Self {
        let from = user.renames_from(now).filter(|_| user.account.is_some());
        Self { user: OwnUser::new(config, user), name_from: from }
    }
}

impl OwnUser {
    #[must_use]
    pub fn new(config: &Config, user: &User) -> Self {
        let UserResource { avatar, .. } = UserResource::new(config, None, String::new(), &user.avatar);
        Self { id: user.id, name: Some(user.name.clone()).filter(|name| !name.is_empty()), avatar }
    }
}

/// The moderators' review of a comment, for its writer.
#[derive(Debug, Serialize)]
struct Review {
    state: State,
    reason: Option<RejectionReason>,
    note: Option<String>,
    decided_at: Option<Timestamp>,
}

impl Review {
    fn of(comment: &Comment) -> Self {
        let Grounds { reason, note } = comment.grounds();
        let decided_at = comment.rejection.as_ref().map(|rejection| rejection.at);
        Self { state: comment.state, reason, note, decided_at }
    }
}

#[derive(Debug, Serialize)]
struct Can {
    update: bool,
    delete: bool,
    pin: bool,
}

/// A thread as shown beside its comments.
#[derive(Debug, Serialize)]
pub struct ThreadResource {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    /// The record's title and address, from the host application or else from a page. Without either, the address is
    /// built from `SVC_PAGE_URL`.
    title: Option<String>,
    url: Option<String>,
}

impl ThreadResource {
    #[must_use]
    pub fn new(config: &Config, id: &ThreadId, thread: &Thread) -> Self {
        Self::with_page(config, id, thread, None)
    }

    /// Like [`Self::new`], for moderators: falls back to the title and address of `page` if the thread has none.
    #[must_use]
    pub fn with_page(config: &Config, id: &ThreadId, thread: &Thread, page: Option<&PageInfo>) -> Self {
        Self {
            kind: id.kind.clone(),
            id: id.record.clone(),
            title: thread.known_title_or(page).map(str::to_owned),
            url: config.page_of(id, thread.known_url_or(page)),
        }
    }
}

/// A reason for holding a text, for moderators and webhooks.
#[derive(Debug, Serialize)]
pub struct VerdictResource {
    rule: Rule,
    #[serde(rename = "match")]
    matched: Option<String>,
    detail: Option<Detail>,
}

impl From<&Verdict> for VerdictResource {
    fn from(verdict: &Verdict) -> Self {
        let Verdict { rule, matched, detail } = verdict.clone();
        Self { rule, matched, detail }
    }
}

/// The envelope of a response that is not a page of a list.
#[derive(Debug, Serialize)]
pub struct Data<T> {
    pub data: T,
}

pub struct CommentPresenter<'a> {
    pub config: &'a Config,
    pub viewer: &'a Viewer,
    pub thread: &'a Thread,
    pub visitor_state: &'a VisitorThreadState,
    pub now: Timestamp,
    /// The time that `relative_created_at` counts from.
    pub relative_to: Timestamp,
    pub language: Language,
}

impl CommentPresenter<'_> {
    #[must_use]
    pub fn present(&self, comment: &Comment) -> CommentResource {
        let pin = policy::shown_pin(self.config, self.thread, comment);
        let created_at = comment.id.created_at();
        // Visitors' items may still list a comment that has become a placeholder.
        let said = |said: &BTreeSet<u64>| !comment.is_placeholder && said.contains(&comment.id.0);
        CommentResource {
            id: comment.id,
            is_deleted: comment.is_placeholder.then_some(true),
            html: markdown::render(&comment.body, &self.config.users_route_prefix, &comment.mentions),
            body: comment.body.clone(),
            parent_id: comment.parent(),
            is_approved: comment.is_approved(),
            review: policy::review(self.viewer, comment).is_ok().then(|| Review::of(comment)),
            user: self.writer(comment),
            likes_count: comment.likes,
            liked: said(&self.visitor_state.liked),
            reported: said(&self.visitor_state.reported),
            replies_count: comment.replies,
            replies: Vec::new(),
            depth: None,
            can: Can {
                update: policy::edit(self.viewer, comment, self.now).is_ok(),
                delete: policy::delete(self.viewer, comment, self.now).is_ok(),
                pin: policy::pin(self.config, self.viewer, comment).is_ok(),
            },
            is_author: policy::is_author(self.thread, comment),
            is_moderator: comment.by_moderator,
            is_guest: comment.user.is_none(),
            pinned: pin.is_some(),
            pinned_at: pin.map(|pin| pin.at),
            created_at,
            relative_created_at: created_at.relative(self.relative_to, self.language),
            updated_at: comment.updated_at(),
        }
    }

    /// A comment in a list of all replies below `root`, with its depth.
    #[must_use]
    pub fn present_below(&self, root: &Comment, comment: &Comment) -> CommentResource {
        let depth = comment.ancestors.len() - root.ancestors.len();
        CommentResource { depth: Some(depth), ..self.present(comment) }
    }

    #[must_use]
    pub fn present_with_replies(&self, parent: &Comment, replies: &[Comment]) -> CommentResource {
        let mut resource = self.present(parent);
        resource.replies = replies.iter().map(|reply| self.present(reply)).collect();
        resource
    }

    fn writer(&self, comment: &Comment) -> UserResource {
        if comment.is_placeholder {
            return UserResource::nobody();
        }
        UserResource::new(self.config, comment.user, comment.name.clone(), &comment.avatar)
    }
}
