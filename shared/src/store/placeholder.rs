//! Turns a deleted comment that has replies into a placeholder.

use super::comments::{Plan, as_read, leave_pin};
use super::keys;
use super::moderation::Decision;
use super::schema::comment;
use super::transaction::Write;
use super::{Reading, Store, placement, yes};
use crate::domain::comment::Comment;
use crate::error::Fault;

/// The attributes that a comment loses when it becomes a placeholder.
pub const LOST: [&str; 25] = [
    comment::USER,
    comment::GUEST,
    comment::NETWORK,
    comment::NAME,
    comment::AVATAR,
    comment::ADDRESS,
    comment::BY_MODERATOR,
    comment::BODY,
    comment::MENTIONS,
    comment::EDITED_AT,
    comment::STATE,
    comment::REJECTION,
    comment::IN_REVIEW,
    comment::SUSPICIOUS,
    comment::VERDICTS,
    comment::PAGE,
    comment::SUBSCRIBED,
    comment::SUBSCRIPTION,
    comment::LIKES,
    comment::IMPORTED_LIKES,
    comment::REPORTS,
    comment::REPORTED,
    comment::NEWEST_REPORTS,
    comment::RESOLUTIONS,
    comment::DECIDED,
];

impl Store {
    /// The plan that turns a comment into a placeholder, which everyone may see. The comment keeps its place and its replies,
    /// and loses its pin and its entries in the moderation queues. `conditions` may add conditions on the comment.
    pub async fn placeholder_plan(
        &self,
        comment: &Comment,
        conditions: impl FnOnce(Write) -> Write,
    ) -> Result<Plan, Fault> {
        let decision = Decision::new(comment, comment.clone().into_placeholder(), conditions(erase(comment)));
        if !comment.is_approved() {
            return self.show(decision).await;
        }
        let (erasure, queues) = decision.into_writes();
        let mut writes: Vec<Write> = std::iter::once(erasure).chain(queues).collect();
        if comment.is_top_level() {
            let thread = self.thread(&comment.thread, Reading::Consistent).await?;
            writes.push(leave_pin(comment, &thread));
        }
        Ok(Plan::Together(writes))
    }
}

fn erase(comment: &Comment) -> Write {
    let erase = as_read(Write::update(keys::comment(comment.id)), comment);
    let erase = erase.still(comment::REPORTED, comment.reported.then(yes));
    let erase = erase.set(comment::PLACEHOLDER, yes()).remove(comment::AUTHOR_KEY);
    let erase = LOST.into_iter().fold(erase, Write::remove);
    if comment.is_top_level() { erase.set(comment::LIKES_RANK, placement::rank(0, comment.id)) } else { erase }
}
