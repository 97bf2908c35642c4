//! The rules about who may see and do what, one function each. Pure: no I/O and no clock.
//!
//! A rule returns the refusal to send, or `Ok`. Handlers apply a rule with `?`. Code that only shows what a viewer may do
//! (`can` of a comment, `can_comment` of `ui`) uses `.is_ok()`. A rule makes its checks in the order of its lines.
//! `app::admission` lists the order of the checks for a whole request. `tests/permissions.out` has the result of every route
//! for every kind of caller.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::author::Author;
use crate::comment::{Comment, MAX_DEPTH, State};
use crate::config::{Config, RequireApproval};
use crate::error::{FieldErrors, Refusal};
use crate::ids::{ThreadId, UserId, Visitor};
use crate::language::Language;
use crate::mail_keys::Recipient;
use crate::notifications::Reason;
use crate::rejection::RejectionReason;
use crate::sign_in::Account;
use crate::texts::Errors;
use crate::thread::{Pin, Thread};
use crate::time::Timestamp;
use crate::trust::Trust;
use crate::user::Identity;
use crate::verdict::Verdict;
use crate::viewer::{Moderator, Viewer};

/// Hides the routes of a feature while its switch is off.
pub fn feature(on: bool) -> Result<(), Refusal> {
    if on { Ok(()) } else { Err(Refusal::NotFound) }
}

/// The thread that a path names, whether or not it has comments.
pub fn thread(config: &Config, kind: &str, record: &str) -> Result<ThreadId, Refusal> {
    if !config.types.iter().any(|alias| alias == kind) {
        return Err(Refusal::UnknownType);
    }
    ThreadId::new(kind, record).ok_or(Refusal::NotFound)
}

pub fn writable(config: &Config) -> Result<(), Refusal> {
    if config.read_only { Err(Refusal::ReadOnly) } else { Ok(()) }
}

/// Refuses a banned viewer. Checked for restricted requests ([`crate::rate_limit::RateClass::is_restricted`]) and on
/// moderators' routes.
pub fn not_banned(viewer: &Viewer) -> Result<(), Refusal> {
    if viewer.banned { Err(Refusal::CommentBanned) } else { Ok(()) }
}

/// Whether the viewer may post comments at all. Admission makes the same checks one by one for `comments.store`; `ui` shows the
/// result.
pub fn comment(config: &Config, viewer: &Viewer) -> Result<(), Refusal> {
    writable(config)?;
    if viewer.user.is_none() && !config.guests.allowed {
        return Err(Refusal::Unauthenticated);
    }
    not_banned(viewer)
}

/// Requires a name for writing comments, because our own accounts start without one.
pub fn has_name(viewer: &Viewer, language: Language) -> Result<(), Refusal> {
    match &viewer.user {
        Some(user) if user.name.is_empty() => Err(FieldErrors::one("name", Errors::of(language).no_name())),
        _ => Ok(()),
    }
}

/// Whether a page may sign in readers, refresh or end their sessions, or set their names. `is_from_elsewhere` is
/// whether the page's origin is neither listed nor the API's own.
pub fn sign_in(config: &Config, is_from_elsewhere: bool) -> Result<(), Refusal> {
    feature(config.sign_in.is_some())?;
    if is_from_elsewhere { Err(Refusal::Forbidden) } else { Ok(()) }
}

/// Requires an account of our own sign-in, which users with the host's tokens don't have.
pub fn own_account(identity: &Identity) -> Result<&Account, Refusal> {
    identity.claims.account.as_deref().ok_or(Refusal::Forbidden)
}

/// Whether a thread accepts comments only from moderators.
#[must_use]
pub fn is_closed(config: &Config, thread: &Thread, now: Timestamp) -> bool {
    thread.is_closed(config.close_after, now)
}

/// Whether the viewer may post a comment or a reply in a thread. A closed thread restricts nothing else.
pub fn may_write_in(config: &Config, viewer: &Viewer, thread: &Thread, now: Timestamp) -> Result<(), Refusal> {
    if is_closed(config, thread, now) && !viewer.is_moderator() { Err(Refusal::ThreadClosed) } else { Ok(()) }
}

/// The refusal for a reply whose parent does not exist or is not in the writer's lists.
pub fn missing_parent() -> Refusal {
    FieldErrors::one("parent_id", "The parent comment does not exist.")
}

pub fn reply(
    config: &Config,
    viewer: &Viewer,
    thread: &ThreadId,
    parent: &Comment,
    ancestors: &[Comment],
) -> Result<(), Refusal> {
    if exists(parent).is_err() || !in_lists(&viewer.owners.comments, parent, ancestors) {
        return Err(missing_parent());
    }
    if parent.ancestors.len() >= MAX_DEPTH {
        return Err(FieldErrors::one("parent_id", format!("Replies go at most {MAX_DEPTH} levels deep.")));
    }
    if !config.features.nesting {
        return Err(Refusal::NestingDisabled);
    }
    if parent.thread != *thread {
        return Err(Refusal::ParentMismatch);
    }
    Ok(())
}

/// Whether the viewer's comments need approval, and why; `None` if they don't. `writer` is the trust in the viewer, which
/// matters only if [`depends_on_trust`] returns true.
pub fn needs_approval(config: &Config, viewer: &Viewer, writer: &Trust, now: Timestamp) -> Option<Vec<Verdict>> {
    match config.require_approval {
        RequireApproval::Never => None,
        RequireApproval::Always => Some(Vec::new()),
        RequireApproval::OfNewWriters if viewer.is_moderator() => None,
        RequireApproval::OfNewWriters if !viewer.owners.comments.is_one_person() => Some(Vec::new()),
        RequireApproval::OfNewWriters => Some(writer.doubts(now)).filter(|doubts| !doubts.is_empty()),
    }
}

/// Like [`needs_approval`], for edits. Moderators' edits never need approval.
pub fn edit_needs_approval(config: &Config, viewer: &Viewer, writer: &Trust, now: Timestamp) -> Option<Vec<Verdict>> {
    needs_approval(config, viewer, writer, now).filter(|_| !viewer.is_moderator())
}

/// Whether comments without a moderator's decision are public only because their writers are trusted.
pub fn shows_by_trust(config: &Config) -> bool {
    config.require_approval == RequireApproval::OfNewWriters
}

/// Whether approval depends on the trust in the viewer. Only members and guests with a key can be trusted.
pub fn depends_on_trust(config: &Config, viewer: &Viewer) -> bool {
    shows_by_trust(config) && !viewer.is_moderator() && viewer.owners.comments.is_one_person()
}

/// Refuses placeholders, which exist only for listing them and their replies.
pub fn exists(comment: &Comment) -> Result<(), Refusal> {
    if comment.is_placeholder { Err(Refusal::NotFound) } else { Ok(()) }
}

/// Guests may edit and delete comments that they wrote with their key for this long. The widget has the same time in
/// `writer/menu.js`.
const GUEST_CHANGES: Duration = Duration::from_mins(15);

/// Only the writer may edit a comment. Moderators may not.
pub fn edit(viewer: &Viewer, comment: &Comment, now: Timestamp) -> Result<(), Refusal> {
    not_banned(viewer)?;
    exists(comment)?;
    own(viewer, comment, now)
}

/// Only the writer may delete a comment. Moderators may not.
pub fn delete(viewer: &Viewer, comment: &Comment, now: Timestamp) -> Result<(), Refusal> {
    not_banned(viewer)?;
    exists(comment)?;
    own(viewer, comment, now)
}

/// Whether the viewer may change a comment as its owner. Members own their comments. Guests own comments that they wrote with
/// their key, for [`GUEST_CHANGES`]. Guests without a key own nothing, because others with the same network and browser would
/// own the same comments.
fn own(viewer: &Viewer, comment: &Comment, now: Timestamp) -> Result<(), Refusal> {
    let writer = &viewer.owners.comments;
    if !writer.is_one_person() || !comment.is_by(writer) {
        return Err(Refusal::Forbidden);
    }
    let is_open = viewer.user.is_some() || now < comment.id.created_at() + GUEST_CHANGES;
    if is_open { Ok(()) } else { Err(Refusal::EditClosed) }
}

/// Whether the viewer may read the moderators' review of an unapproved comment, which only its writer may. Shared caches must
/// not store responses with such a comment.
pub fn review(viewer: &Viewer, comment: &Comment) -> Result<(), Refusal> {
    let is_own = comment.is_by(&viewer.owners.comments);
    if is_own && !comment.is_approved() { Ok(()) } else { Err(Refusal::NotFound) }
}

/// Guards everything that only moderators may do or read. The [`Moderator`] proves that the check was made.
pub fn moderate(viewer: Viewer) -> Result<Moderator, Refusal> {
    only_moderators(&viewer).map(|()| Moderator(viewer))
}

fn only_moderators(viewer: &Viewer) -> Result<(), Refusal> {
    if viewer.is_moderator() { Ok(()) } else { Err(Refusal::Forbidden) }
}

/// Whether the moderator may ban this user, who may be neither the moderator nor a user named in `SVC_MODERATORS`. `issuers` are
/// the possible issuers of the user's tokens.
pub fn ban(config: &Config, moderator: &Moderator, issuers: &[&str], user: UserId) -> Result<(), Refusal> {
    let is_spared = moderator.user_id() == Some(user) || config.named_moderators(issuers).any(|named| named == user);
    if is_spared { Err(Refusal::Forbidden) } else { Ok(()) }
}

/// The author to ban for this comment: the user who wrote it, or the guest's network. Refuses imported comments, and
/// comments of guests whose network is unknown.
pub fn banned_for(comment: &Comment) -> Result<Author, Refusal> {
    let author = comment.author().filter(|_| comment.is_announced());
    author.ok_or_else(|| FieldErrors::one("comment", "The author of this comment is unknown."))
}

/// Only moderators who are not banned may pin and unpin. A pin also needs [`pinnable`].
pub fn pin(config: &Config, viewer: &Viewer, comment: &Comment) -> Result<(), Refusal> {
    feature(config.features.pins)?;
    not_banned(viewer)?;
    exists(comment)?;
    only_moderators(viewer)?;
    if comment.is_top_level() { Ok(()) } else { Err(Refusal::CannotPinReply) }
}

/// Only an approved comment can be pinned. A comment that has lost its approval can still be unpinned.
pub fn pinnable(comment: &Comment) -> Result<(), Refusal> {
    if comment.is_approved() { Ok(()) } else { Err(unapproved_pin()) }
}

pub fn unapproved_pin() -> Refusal {
    FieldErrors::one("comment", "Only approved comments can be pinned.")
}

/// The pin of a comment, if pins are on. Turning pins off doesn't remove stored pins.
pub fn shown_pin(config: &Config, thread: &Thread, comment: &Comment) -> Option<Pin> {
    thread.pin.filter(|pin| config.features.pins && pin.comment == comment.id)
}

/// Whether the comment's writer is the author of the record. Guests never are.
pub fn is_author(thread: &Thread, comment: &Comment) -> bool {
    comment.user.is_some() && comment.user == thread.author
}

/// Whether the viewer may see one comment by its id, to change, like or report it. Moderators see all comments, and writers see
/// their own. Everyone else sees an approved comment unless a comment above it is hidden from them. Placeholders are never
/// seen.
pub fn see(viewer: &Viewer, comment: &Comment, ancestors: &[Comment]) -> Result<(), Refusal> {
    exists(comment)?;
    let seen = viewer.is_moderator()
        || comment.is_by(&viewer.owners.comments)
        || (comment.is_approved() && ancestors.iter().all(|above| shown_to(&viewer.owners.comments, above)));
    if seen { Ok(()) } else { Err(Refusal::NotFound) }
}

/// Whether the viewer may read a comment in its place, with the comments above it or the replies below it. The comment may be a
/// placeholder.
pub fn read_in_place(viewer: &Viewer, comment: &Comment, ancestors: &[Comment]) -> Result<(), Refusal> {
    let listed = viewer.is_moderator() || in_lists(&viewer.owners.comments, comment, ancestors);
    if listed { Ok(()) } else { Err(Refusal::NotFound) }
}

/// Whether a visitor sees the comment in lists: it and every comment above it are approved or the visitor's own.
pub fn in_lists(visitor: &Visitor, comment: &Comment, ancestors: &[Comment]) -> bool {
    with_ancestors(comment, ancestors).all(|comment| shown_to(visitor, comment))
}

/// Whether everyone sees the comment in lists. Shared caches may then keep the list of its replies.
pub fn is_public(comment: &Comment, ancestors: &[Comment]) -> bool {
    with_ancestors(comment, ancestors).all(Comment::is_approved)
}

/// A comment, with the data that determines who is notified of it.
#[derive(Clone, Copy, Debug)]
pub struct Notification<'a> {
    pub comment: &'a Comment,
    pub parent: Option<&'a Comment>,
    /// Users whose handles `comment` mentions.
    pub mentioned: &'a [UserId],
    pub thread: &'a Thread,
}

/// Maximum members notified of one comment because it mentions them.
pub const MAX_MENTIONED: usize = 5;

/// The recipients to notify of a public comment, with the reasons. The writer is never notified. Mentions by guests notify no
/// one, and neither do comments that aren't announced ([`Comment::is_announced`]). Recipients' own choices apply as well.
#[must_use]
pub fn recipients(notification: Notification<'_>) -> BTreeMap<Recipient, Vec<Reason>> {
    let Notification { comment, parent, mentioned, thread } = notification;
    let mut recipients: BTreeMap<Recipient, Vec<Reason>> = BTreeMap::new();
    if !comment.is_announced() {
        return recipients;
    }
    let mut add = |recipient: Recipient, reason| recipients.entry(recipient).or_default().push(reason);
    let parent = parent.filter(|parent| parent.visitor() != comment.visitor());
    if let Some((writer, reason)) = parent.and_then(writer) {
        add(writer, reason);
    }
    let is_other = |user: &UserId| comment.user != Some(*user);
    let mentioned = if comment.user.is_some() { mentioned } else { &[] };
    for user in mentioned.iter().filter(|user| is_other(user)).take(MAX_MENTIONED) {
        add((*user).into(), Reason::Mention);
    }
    if let Some(author) = thread.author.filter(|author| comment.is_top_level() && is_other(author)) {
        add(author.into(), Reason::OwnRecord);
    }
    recipients
}

/// The recipient to notify of a comment's rejection: its writer, with the same reason as for a reply. `None` if the comment
/// isn't rejected or was imported, or if the rejection is for spam or follows from a ban.
#[must_use]
pub fn rejection_recipient(comment: &Comment) -> Option<(Recipient, Reason)> {
    let is_silent = comment.rejection.as_ref().is_some_and(|rejection| rejection.is_silent);
    let is_notified = comment.state == State::Rejected && comment.grounds().reason != Some(RejectionReason::Spam);
    if is_notified && !is_silent && comment.is_announced() { writer(comment) } else { None }
}

/// The writer of a comment as a recipient, with the reason for notifications of replies.
fn writer(comment: &Comment) -> Option<(Recipient, Reason)> {
    let guest = || comment.subscription.as_ref()?.guest.clone();
    match comment.user {
        Some(user) => Some((user.into(), Reason::Reply { subscribed: comment.subscribed })),
        None => Some((guest()?, Reason::ReplyToGuest(comment.visitor()))),
    }
}

fn shown_to(visitor: &Visitor, comment: &Comment) -> bool {
    comment.is_approved() || comment.is_by(visitor)
}

fn with_ancestors<'a>(comment: &'a Comment, ancestors: &'a [Comment]) -> impl Iterator<Item = &'a Comment> {
    std::iter::once(comment).chain(ancestors)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::comment::Subscription;
    use crate::ids::{CommentId, SourceId};
    use crate::trust::Decided;
    use crate::user::User;

    /// The viewers in the tables below, in the order of their columns. The owner is the writer of the comments.
    const VIEWERS: [&str; 6] = ["guest", "member", "owner", "banned owner", "moderator", "banned moderator"];

    fn viewer(name: &str) -> Viewer {
        let id = match name {
            "guest" => None,
            "member" => Some(8),
            "owner" | "banned owner" => Some(7),
            _ => Some(1),
        };
        let user: Option<User> = id.map(|id| serde_json::from_value(json!({ "u": id })).unwrap());
        Viewer {
            owners: user.as_ref().map_or_else(|| Visitor("guest".to_owned()).into(), |user| user.id.into()),
            user,
            has_role: name.ends_with("moderator"),
            banned: name.starts_with("banned"),
        }
    }

    fn config(settings: &[(&str, &str)]) -> Config {
        let var = |asked: &str| match settings.iter().find(|(name, _)| *name == asked) {
            Some((_, value)) => Some((*value).to_owned()),
            None if ["TABLE_NAME", "SVC_JWT_SECRET", "SVC_VISITOR_SALT"].contains(&asked) => Some("x".repeat(32)),
            None => None,
        };
        Config::from_vars(var).unwrap()
    }

    fn in_thread(record: &str) -> ThreadId {
        ThreadId::new("posts", record).unwrap()
    }

    fn owned(state: State, depth: u64) -> Comment {
        let ancestors = (1..=depth).map(CommentId).collect();
        Comment { user: Some(UserId(7)), state, ancestors, ..Comment::blank(in_thread("1")) }
    }

    /// `ok`, the code of the refusal, or the refusal's message if fields are invalid.
    fn verdict(result: Result<(), Refusal>) -> String {
        match result {
            Ok(()) => "ok".to_owned(),
            Err(refusal @ Refusal::Invalid(_)) => refusal.row().2.to_owned(),
            Err(refusal) => refusal.row().1.to_owned(),
        }
    }

    #[track_caller]
    fn check(state: &str, rule: impl Fn(&Viewer) -> Result<(), Refusal>, expected: [&str; 6]) {
        let verdicts = VIEWERS.map(|name| verdict(rule(&viewer(name))));
        assert_eq!(verdicts, expected, "{state}: {VIEWERS:?}");
    }

    #[test]
    fn the_author_is_the_user_that_the_host_names_and_never_a_guest() {
        let of = |author: Option<u64>| Thread { author: author.map(UserId), ..Thread::default() };
        let (by_owner, by_guest) = (owned(State::Approved, 0), Comment { user: None, ..owned(State::Approved, 0) });
        assert!(is_author(&of(Some(7)), &by_owner));
        assert!(!is_author(&of(Some(8)), &by_owner) && !is_author(&of(None), &by_owner));
        assert!(!is_author(&of(Some(7)), &by_guest) && !is_author(&of(None), &by_guest));
    }

    #[test]
    fn only_the_owner_edits_and_deletes() {
        let (no, banned) = ("forbidden", "comment_banned");
        for state in [State::Approved, State::Pending, State::Rejected] {
            let comment = owned(state, 0);
            let expected = [no, no, "ok", banned, no, banned];
            check("edit", |viewer| edit(viewer, &comment, Timestamp(0)), expected);
            check("delete", |viewer| delete(viewer, &comment, Timestamp(0)), expected);
        }
        let of_a_guest = Comment { user: None, guest: Some(Visitor("guest".to_owned())), ..owned(State::Approved, 0) };
        check("of a guest", |viewer| edit(viewer, &of_a_guest, Timestamp(0)), [no, no, no, banned, no, banned]);
        check("of a guest", |viewer| delete(viewer, &of_a_guest, Timestamp(0)), [no, no, no, banned, no, banned]);
    }

    #[test]
    fn guests_edit_and_delete_what_they_wrote_with_their_key_for_fifteen_minutes() {
        let id = CommentId::slots(Timestamp(1_700_000_000_000), 0).unwrap().next().unwrap();
        let by = |visitor: &str| Visitor(visitor.to_owned());
        let wrote = |visitor| Comment { id, user: None, guest: Some(by(visitor)), ..owned(State::Approved, 0) };
        let sends = |visitor| Viewer { owners: by(visitor).into(), ..viewer("guest") };
        let minutes = |minutes: i64| Timestamp(id.created_at().0 + minutes * 60_000);
        let just_before = Timestamp(minutes(15).0 - 1);
        for (writer, caller, now, expected) in [
            ("ka", "ka", minutes(0), "ok"),
            ("ka", "ka", just_before, "ok"),
            ("ka", "ka", minutes(15), "edit_closed"),
            ("ka", "kb", minutes(0), "forbidden"),
            ("ka", "kb", minutes(15), "forbidden"),
            ("ka", "ga", minutes(0), "forbidden"),
            ("ga", "ga", minutes(0), "forbidden"),
            ("ga", "ka", minutes(0), "forbidden"),
        ] {
            let verdicts = [edit, delete].map(|rule| verdict(rule(&sends(caller), &wrote(writer), now)));
            assert_eq!(verdicts, [expected; 2], "{caller} changes what {writer} wrote, at {now:?}");
        }
    }

    #[test]
    fn moderators_moderate_unless_they_are_banned() {
        let no = "forbidden";
        let verdicts = VIEWERS.map(|name| verdict(moderate(viewer(name)).map(drop)));
        assert_eq!(verdicts, [no, no, no, no, "ok", no], "{VIEWERS:?}");
    }

    #[test]
    fn moderators_cannot_ban_themselves_or_users_named_in_the_settings() {
        let no = "forbidden";
        let config = config(&[("SVC_MODERATORS", "9, auth0|grace"), ("SVC_JWT_ISSUER", "https://id.example")]);
        let salt = config.visitor_salt.clone();
        let of_grace = |issuer| UserId::hashed(&salt, issuer, "auth0|grace").0;
        let (login, other) = ("https://login.example", "https://other.example");
        let moderator = moderate(viewer("moderator")).unwrap();
        for (user, issuers, expected) in [
            (UserId(8), &[][..], "ok"),
            (UserId(1), &[], no),
            (UserId(9), &[], no),
            (of_grace(""), &[], no),
            (of_grace(""), &[login], no),
            (of_grace("https://id.example"), &[], no),
            (of_grace(login), &[login], no),
            (of_grace(login), &[other, login], no),
            (of_grace(login), &[other], "ok"),
        ] {
            assert_eq!(verdict(ban(&config, &moderator, issuers, user)), expected, "{user:?} {issuers:?}");
        }
    }

    #[test]
    fn moderators_pin_top_level_comments() {
        let (no, banned, reply) = ("forbidden", "comment_banned", "cannot_pin_reply");
        let on = config(&[]);
        for state in [State::Approved, State::Pending, State::Rejected] {
            check("top level", |viewer| pin(&on, viewer, &owned(state, 0)), [no, no, no, banned, "ok", banned]);
            check("reply", |viewer| pin(&on, viewer, &owned(state, 1)), [no, no, no, banned, reply, banned]);
        }
        let off = config(&[("SVC_PINS", "false")]);
        check("off", |viewer| pin(&off, viewer, &owned(State::Approved, 0)), ["not_found"; 6]);
        assert_eq!(verdict(pinnable(&owned(State::Approved, 0))), "ok");
        for state in [State::Pending, State::Rejected] {
            assert_eq!(verdict(pinnable(&owned(state, 0))), "Only approved comments can be pinned.");
        }
    }

    #[test]
    fn unapproved_comments_are_seen_by_their_writers_and_by_moderators() {
        use State::{Approved, Pending, Rejected};
        let no = "not_found";
        let hidden = [no, no, "ok", "ok", "ok", no];
        for (of, above, expected) in [
            (Approved, Approved, ["ok"; 6]),
            (Pending, Approved, hidden),
            (Rejected, Approved, hidden),
            (Approved, Pending, hidden),
        ] {
            let (comment, ancestors) = (owned(of, 1), [owned(above, 0)]);
            let state = format!("{of:?} below {above:?}");
            check(&state, |viewer| see(viewer, &comment, &ancestors), expected);
            check(&state, |viewer| read_in_place(viewer, &comment, &ancestors), expected);
            assert_eq!(is_public(&comment, &ancestors), expected == ["ok"; 6], "{state}");
        }
    }

    #[test]
    fn a_placeholder_is_visible_only_in_lists() {
        let (missing, banned) = ("not_found", "comment_banned");
        let placeholder = owned(State::Approved, 0).into_placeholder();
        let config = config(&[]);
        let written = [missing, missing, missing, banned, missing, banned];
        check("see", |viewer| see(viewer, &placeholder, &[]), [missing; 6]);
        check("edit", |viewer| edit(viewer, &placeholder, Timestamp(0)), written);
        check("delete", |viewer| delete(viewer, &placeholder, Timestamp(0)), written);
        check("pin", |viewer| pin(&config, viewer, &placeholder), written);
        let refused = ["The parent comment does not exist."; 6];
        check("reply", |viewer| reply(&config, viewer, &in_thread("1"), &placeholder, &[]), refused);

        check("list", |viewer| read_in_place(viewer, &placeholder, &[]), ["ok"; 6]);
        assert!(is_public(&placeholder, &[]));
        let reply = owned(State::Approved, 1);
        check("a reply to it", |viewer| see(viewer, &reply, std::slice::from_ref(&placeholder)), ["ok"; 6]);
        let listed = |viewer: &Viewer| read_in_place(viewer, &reply, std::slice::from_ref(&placeholder));
        check("replies to a reply to it", listed, ["ok"; 6]);
    }

    #[test]
    fn writers_see_their_own_comment_below_a_hidden_one_but_list_no_replies() {
        let theirs = Comment { user: Some(UserId(9)), ..owned(State::Pending, 0) };
        let (comment, ancestors) = (owned(State::Approved, 1), [theirs]);
        let no = "not_found";
        check("see", |viewer| see(viewer, &comment, &ancestors), [no, no, "ok", "ok", "ok", no]);
        check("read in place", |viewer| read_in_place(viewer, &comment, &ancestors), [no, no, no, no, "ok", no]);
    }

    #[test]
    fn a_reply_needs_a_parent_that_its_writer_sees_in_lists() {
        let (missing, deep) = ("The parent comment does not exist.", "Replies go at most 10 levels deep.");
        let (on, off) = (config(&[]), config(&[("SVC_NESTING", "false")]));
        let everyone = |message| [message; 6];
        // A moderator sees the parent, but may reply only if everyone may.
        let hidden = |message| [missing, missing, message, message, missing, missing];
        for (config, record, parent, expected) in [
            (&on, "1", owned(State::Approved, 0), everyone("ok")),
            (&on, "1", owned(State::Approved, 9), everyone("ok")),
            (&on, "1", owned(State::Pending, 0), hidden("ok")),
            (&on, "2", owned(State::Approved, 0), everyone("parent_mismatch")),
            (&off, "2", owned(State::Approved, 0), everyone("nesting_disabled")),
            (&off, "2", owned(State::Approved, 10), everyone(deep)),
            (&off, "2", owned(State::Pending, 10), hidden(deep)),
        ] {
            let state = format!("posts/{record}, {:?} at depth {}", parent.state, parent.ancestors.len());
            check(&state, |viewer| reply(config, viewer, &in_thread(record), &parent, &[]), expected);
        }
    }

    /// The recipients of a comment that mentions these users, in a thread whose author is user 3.
    fn recipients_of(comment: &Comment, parent: Option<&Comment>, mentioned: &[u64]) -> Vec<(String, Vec<Reason>)> {
        let thread = Thread { author: Some(UserId(3)), ..Thread::default() };
        let mentioned: Vec<UserId> = mentioned.iter().copied().map(UserId).collect();
        let recipients = recipients(Notification { comment, parent, mentioned: &mentioned, thread: &thread });
        recipients.into_iter().map(|(recipient, reasons)| (recipient.0, reasons)).collect()
    }

    #[test]
    fn the_parents_writer_mentioned_users_and_the_author_are_notified_but_never_the_writer() {
        let by = |user| Comment { user: Some(UserId(user)), ..owned(State::Approved, 0) };
        let reply = |user| Comment { user: Some(UserId(user)), ..owned(State::Approved, 1) };
        let name = |recipient: &str| recipient.to_owned();
        let answer = |subscribed| Reason::Reply { subscribed };
        assert_eq!(
            recipients_of(&by(7), None, &[8, 7]),
            [(name("u3"), vec![Reason::OwnRecord]), (name("u8"), vec![Reason::Mention]),]
        );
        assert!(recipients_of(&by(3), None, &[]).is_empty());
        assert_eq!(recipients_of(&reply(8), Some(&by(7)), &[7]), [(name("u7"), vec![answer(false), Reason::Mention])]);
        assert!(recipients_of(&reply(7), Some(&by(7)), &[]).is_empty());
        let subscribed = Comment { subscribed: true, ..by(7) };
        assert_eq!(recipients_of(&reply(8), Some(&subscribed), &[]), [(name("u7"), vec![answer(true)])]);
        assert_eq!(recipients_of(&by(7), None, &[11, 12, 13, 14, 15, 16]).len(), 1 + MAX_MENTIONED);
    }

    #[test]
    fn imported_comments_notify_no_one() {
        let imported = Comment { source: Some(SourceId("isso:1".to_owned())), ..owned(State::Approved, 0) };
        assert!(recipients_of(&imported, None, &[8]).is_empty());
    }

    #[test]
    fn guests_are_notified_of_replies_where_they_subscribed_and_mention_no_one() {
        let guest =
            |name: &str| Comment { user: None, guest: Some(Visitor(name.to_owned())), ..owned(State::Approved, 0) };
        let recipient = Recipient("mHash".to_owned());
        let subscription = Some(Box::new(Subscription { guest: Some(recipient.clone()), ..Subscription::default() }));
        let asked = Comment { subscribed: true, subscription, ..guest("g1") };
        assert_eq!(
            recipients_of(&guest("g2"), Some(&asked), &[8]),
            [
                ("mHash".to_owned(), vec![Reason::ReplyToGuest(Visitor("g1".to_owned()))]),
                ("u3".to_owned(), vec![Reason::OwnRecord]),
            ]
        );
        assert_eq!(recipients_of(&guest("g1"), Some(&asked), &[]).len(), 1);
        assert_eq!(recipients_of(&guest("g2"), Some(&guest("g3")), &[]).len(), 1);
    }

    /// The names of the rules that hold a comment or an edit; `None` if it isn't held.
    fn held_by(approval: Option<Vec<Verdict>>) -> Option<Vec<&'static str>> {
        approval.map(|verdicts| verdicts.into_iter().map(|verdict| verdict.rule.name()).collect())
    }

    #[test]
    fn comments_are_held_where_approval_is_required_of_everyone_or_of_untrusted_writers() {
        let now = Timestamp(1_700_000_000_000);
        let id = CommentId::slots(now, 0).unwrap().next().unwrap();
        let (new, approved) = (Trust::default(), Trust::default().after(id, Decided::Approved));
        let keyed = Viewer { owners: Visitor("ka".to_owned()).into(), ..viewer("guest") };
        let (all, first) = (Some(vec![]), Some(vec!["first_comment"]));
        for (setting, who, trust, expected, of_edit) in [
            ("false", viewer("member"), &new, None, None),
            ("true", viewer("member"), &approved, all.clone(), all.clone()),
            ("true", viewer("moderator"), &approved, all.clone(), None),
            ("new", viewer("member"), &new, first.clone(), first.clone()),
            ("new", viewer("member"), &approved, None, None),
            ("new", viewer("moderator"), &new, None, None),
            ("new", viewer("banned moderator"), &new, first.clone(), first.clone()),
            ("new", viewer("guest"), &approved, all.clone(), all.clone()),
            ("new", keyed, &approved, None, None),
        ] {
            let config = config(&[("SVC_REQUIRE_APPROVAL", setting)]);
            let verdicts = [needs_approval, edit_needs_approval].map(|rule| held_by(rule(&config, &who, trust, now)));
            assert_eq!(verdicts, [expected, of_edit], "{setting}, {}", who.owners.comments);
        }
    }
}
