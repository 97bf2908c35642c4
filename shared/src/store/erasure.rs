//! What stays of a comment that is gone: a placeholder above its replies, and a tombstone when it was imported.

use super::comments::Plan;
use super::keys;
use super::moderation::Decision;
use super::transaction::Write;
use super::{Reading, Store, number};
use crate::domain::comment::Comment;
use crate::domain::report::ReportStatus;
use crate::domain::thread::Thread;
use crate::domain::time::Clock;
use crate::error::Fault;

/// The attributes of a comment's writer and text, which placeholders do not have.
pub(super) const ERASED: [&str; 10] = ["u", "g", "n", "av", "mo", "b", "m", "e", "sb", "sp"];

impl Store {
    /// Turns a comment into a placeholder, which everyone may see: it keeps its id, replies, likes and reports, and loses
    /// its pin and its places in the moderation queues. False when it no longer exists or is a placeholder already.
    pub async fn make_placeholder(&self, comment: Comment, clock: &Clock) -> Result<bool, Fault> {
        let plan = |comment: Comment| async move {
            let after = comment.clone().into_placeholder();
            let decision = Decision::new(&comment, after, clock, ReportStatus::Reviewed)?.erasing();
            if !comment.is_approved() {
                return self.show(decision).await;
            }
            let thread = self.thread(&comment.thread, Reading::Consistent).await?;
            let (erasure, queues) = decision.into_writes();
            Ok(Plan::Together([erasure, without_pin(&comment, &thread)].into_iter().chain(queues).collect()))
        };
        Ok(self.change("erasing a comment", comment, plan).await?.is_some())
    }
}

/// Takes the pin from the comment, or checks that it has none.
fn without_pin(comment: &Comment, thread: &Thread) -> Write {
    let key = keys::thread(&comment.thread);
    let write = if thread.pin.is_some_and(|pin| pin.comment == comment.id) {
        Write::update(key).remove("pin").when("pin.c = :id")
    } else {
        Write::check(key, "attribute_not_exists(pin) OR pin.c <> :id")
    };
    write.with(":id", number(comment.id))
}

/// The tombstone of a comment that is deleted. It keeps later imports from bringing the comment back.
pub(super) fn tombstone(comment: &Comment) -> Option<Write> {
    let source = comment.source.as_ref()?;
    Some(Write::update(keys::tombstone(source)).set("i", number(comment.id)))
}
