//! A comment with replies that is deleted becomes a placeholder above them.

use super::comments::Plan;
use super::keys;
use super::moderation::Decision;
use super::schema::{maps, thread};
use super::transaction::Write;
use super::{Reading, Store, number};
use crate::domain::comment::Comment;
use crate::domain::report::ReportStatus;
use crate::domain::thread::Thread;
use crate::domain::time::Clock;
use crate::error::Fault;

impl Store {
    /// Turns a comment into a placeholder, which everyone may see: it keeps its id, replies, likes and reports, and loses
    /// its pin and its places in the moderation queues. False when it no longer exists or is a placeholder already.
    pub async fn make_placeholder(&self, comment: Comment, clock: &Clock) -> Result<bool, Fault> {
        self.make_placeholder_and(comment, clock, None).await
    }

    /// Makes a placeholder, with a further write in the same transaction.
    pub(super) async fn make_placeholder_and(
        &self,
        comment: Comment,
        clock: &Clock,
        also: Option<&Write>,
    ) -> Result<bool, Fault> {
        let plan = |comment: Comment| async move {
            let after = comment.clone().into_placeholder();
            let decision = Decision::new(&comment, after, clock, ReportStatus::Reviewed)?.erasing();
            if !comment.is_approved() {
                return Ok(match self.show(decision).await? {
                    Plan::Together(writes) => Plan::Together(writes.into_iter().chain(also.cloned()).collect()),
                    plan => plan,
                });
            }
            let thread = self.thread(&comment.thread, Reading::Consistent).await?;
            let (erasure, queues) = decision.into_writes();
            let writes = [erasure, without_pin(&comment, &thread)].into_iter().chain(queues);
            Ok(Plan::Together(writes.chain(also.cloned()).collect()))
        };
        Ok(self.change("erasing a comment", comment, plan).await?.is_some())
    }
}

/// Takes the pin from the comment, or checks that it has none.
fn without_pin(comment: &Comment, thread: &Thread) -> Write {
    let key = keys::thread(&comment.thread);
    let write = if thread.pin.is_some_and(|pin| pin.comment == comment.id) {
        Write::update(key).remove(thread::PIN).when(format!("{0}.{1} = :id", thread::PIN, maps::pin::COMMENT))
    } else {
        Write::check(key, format!("attribute_not_exists({0}) OR {0}.{1} <> :id", thread::PIN, maps::pin::COMMENT))
    };
    write.with(":id", number(comment.id))
}
