//! Who may see and do what. Pure: values in, verdict out; no I/O, no clock. The order in which refusals are checked is
//! `admission`'s and the handlers'.

use crate::config::Config;
use crate::domain::comment::{Comment, MAX_DEPTH};
use crate::domain::ids::{ThreadId, Visitor};
use crate::domain::viewer::Viewer;
use crate::error::{FieldErrors, Refusal};

/// Unapproved comments are seen by their writers and by moderators; what hangs below one, by nobody else either.
pub fn may_see(viewer: &Viewer, comment: &Comment, ancestors: &[Comment]) -> bool {
    viewer.moderator
        || comment.visitor() == viewer.visitor
        || (comment.is_approved() && ancestors.iter().all(|above| shown_to(&viewer.visitor, above)))
}

/// Whether a comment by itself is in the lists of this visitor.
pub fn shown_to(visitor: &Visitor, comment: &Comment) -> bool {
    comment.is_approved() || comment.visitor() == *visitor
}

/// Whether this visitor meets the comment in lists.
pub fn in_lists(visitor: &Visitor, comment: &Comment, ancestors: &[Comment]) -> bool {
    with_ancestors(comment, ancestors).all(|comment| shown_to(visitor, comment))
}

/// The replies to a comment are listed where it and every comment above it are shown to the viewer.
pub fn may_list_replies(viewer: &Viewer, comment: &Comment, ancestors: &[Comment]) -> bool {
    viewer.moderator || in_lists(&viewer.visitor, comment, ancestors)
}

/// Whether everyone may see what hangs on a comment: only then is it for shared caches.
pub fn is_public(comment: &Comment, ancestors: &[Comment]) -> bool {
    with_ancestors(comment, ancestors).all(Comment::is_approved)
}

fn with_ancestors<'a>(comment: &'a Comment, ancestors: &'a [Comment]) -> impl Iterator<Item = &'a Comment> {
    std::iter::once(comment).chain(ancestors)
}

/// Guests own nothing: whoever shares their address and browser would own it too.
fn owns(viewer: &Viewer, comment: &Comment) -> bool {
    comment.user.is_some() && comment.user == viewer.user_id()
}

pub fn may_edit(viewer: &Viewer, comment: &Comment) -> bool {
    owns(viewer, comment) && !viewer.banned
}

pub fn may_delete(viewer: &Viewer, comment: &Comment) -> bool {
    owns(viewer, comment) && !viewer.banned
}

pub fn may_pin(config: &Config, viewer: &Viewer, comment: &Comment) -> bool {
    config.features.pins && viewer.moderator && !viewer.banned && comment.is_top_level()
}

pub fn moderate(viewer: &Viewer) -> Result<(), Refusal> {
    if viewer.moderator { Ok(()) } else { Err(Refusal::Forbidden) }
}

/// Whether `viewer` may comment at all: what the UI shows, and what `admission` enforces step by step.
pub fn can_comment(config: &Config, viewer: &Viewer) -> bool {
    let known = viewer.user.is_some() || config.guests.allowed;
    known && !viewer.banned && !config.read_only
}

pub fn missing_parent() -> Refusal {
    FieldErrors::one("parent_id", "The parent comment does not exist.")
}

/// Whether a reply may hang below `parent` (`None` when there is no such comment, or the viewer may not see it).
pub fn reply(
    config: &Config,
    viewer: &Viewer,
    thread: &ThreadId,
    parent: Option<&Comment>,
    ancestors: &[Comment],
) -> Result<(), Refusal> {
    let parent = parent.ok_or_else(missing_parent)?;
    if !in_lists(&viewer.visitor, parent, ancestors) {
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
