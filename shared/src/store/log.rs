//! The moderation log. An entry is written in the same transaction as its action, so an action is logged only if it
//! took effect. Sign-ins and removals of images, which have no such transaction, are logged separately.

use super::keys;
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window};
use super::transaction::{Label, Outcome, Write, absent};
use super::{Index, Query, Reading, Store, read, write};
use crate::domain::author::Author;
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, IdSource, ThreadId, UserId};
use crate::domain::list::{Cursor, Order};
use crate::domain::log::{Action, LogEntry};
use crate::domain::rejection::{Grounds, Rejection};
use crate::domain::time::Clock;
use crate::domain::user::{NetworkBan, User};
use crate::error::Fault;

/// The acting moderator, with the data for a log entry.
#[derive(Clone, Copy)]
pub struct By<'a> {
    pub id: UserId,
    pub name: &'a str,
    pub ids: &'a IdSource,
    pub clock: &'a Clock,
}

#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Comment(&'a Comment),
    /// The user whose ban begins or ends. With `rejects`, their recent comments are rejected.
    User {
        id: UserId,
        rejects: bool,
    },
    Network {
        ban: &'a NetworkBan,
        rejects: bool,
    },
    Thread(&'a ThreadId),
    Image,
    Webhook,
}

impl By<'_> {
    pub fn rejection(self, grounds: &Grounds) -> Rejection {
        Rejection {
            grounds: grounds.clone(),
            moderator: Some(self.id),
            name: self.name.to_owned(),
            at: self.clock.now(),
            is_silent: false,
        }
    }

    /// The write that logs an action. `id` must be new.
    pub(super) fn entry(self, id: u64, action: Action, subject: Subject<'_>) -> Result<Write, Fault> {
        let (comment, user, thread) = match subject {
            Subject::Comment(comment) => (Some(comment.id), comment.user, Some(&comment.thread)),
            Subject::User { id, .. } => (None, Some(id), None),
            Subject::Network { ban, .. } => (Some(ban.comment), None, Some(&ban.thread)),
            Subject::Thread(thread) => (None, None, Some(thread)),
            Subject::Image | Subject::Webhook => (None, None, None),
        };
        let rejects = match subject {
            Subject::User { id, rejects: true } => Some(Author::User(id)),
            Subject::Network { ban, rejects: true } => Some(Author::Network(ban.network.clone())),
            _ => None,
        };
        let entry = LogEntry {
            id,
            moderator: Some(self.id),
            name: self.name.to_owned(),
            action,
            comment,
            user,
            thread: thread.cloned(),
            rejects,
        };
        let put = Write::put(write(&keys::log(entry.id), &entry)?).when(absent());
        Ok(put.label(Label::Log))
    }
}

impl Store {
    /// Performs and logs all `writes`, or does nothing.
    pub(super) async fn transact_logged(
        &self,
        writes: Vec<Write>,
        by: By<'_>,
        action: Action,
        subject: Subject<'_>,
    ) -> Result<Outcome, Fault> {
        let mut attempts = self.attempts("writing the log");
        loop {
            attempts.next().await?;
            let logged = writes.iter().cloned().chain([by.entry(by.ids.next().0, action, subject)?]).collect();
            match self.transact(logged).await? {
                // Another instance has used the id.
                Outcome::Failed(failed) if failed.is_only(Label::Log) => {}
                outcome => return Ok(outcome),
            }
        }
    }

    /// Logs that a moderator has signed in, with a code or a provider account.
    pub async fn log_sign_in(&self, moderator: &User, ids: &IdSource) -> Result<(), Fault> {
        let doing = "logging a sign-in";
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let entry = LogEntry {
                id: ids.next().0,
                moderator: Some(moderator.id),
                name: moderator.name.clone(),
                action: Action::SignIn,
                comment: None,
                user: None,
                thread: None,
                rejects: None,
            };
            // Another instance may have used the id.
            if self.put(doing, Write::put(write(&keys::log(entry.id), &entry)?).when(absent())).await? {
                return Ok(());
            }
        }
    }

    /// Logs the removal of an image by a moderator. Images aren't in the table, so only the log entry is written.
    pub async fn log_removal_of_image(&self, by: By<'_>) -> Result<(), Fault> {
        self.transact_logged(Vec::new(), by, Action::RemoveImage, Subject::Image).await.map(drop)
    }

    pub async fn log_entry(&self, id: u64) -> Result<Option<LogEntry>, Fault> {
        self.get(&keys::log(id), Reading::Consistent).await
    }

    /// A page of the log, newest first.
    pub async fn log(&self, cursor: Option<Cursor>, per_page: usize) -> Result<(Vec<LogEntry>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let Window { span, order, limit } = walk.window(per_page + 1);
        let partition = keys::log_partition();
        let query =
            Query { index: Index::Table(Reading::Eventual), partition, bounds: Some(span.texts()), order, limit };
        let items = self.query_all(query).await?;
        let mut entries: Vec<LogEntry> = items.into_iter().map(read).collect::<Result<_, _>>()?;
        let more = walk.cut(&mut entries, per_page);
        let id = |entry: &LogEntry| CommentId(entry.id);
        let cursors = walk.cursors(entries.first().map(id), entries.last().map(id), more);
        Ok((entries, cursors))
    }
}
