//! Threads, and the state of a visitor in a thread: likes, reports and unapproved comments.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::try_join_all;

use super::counts::count_of;
use super::keys::{self, Key};
use super::schema::visitor_state;
use super::transaction::{Label, Write};
use super::{Reading, Store, id_set, number, read, yes};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, Visitor};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::user::User;
use crate::domain::viewer::Owners;
use crate::error::Fault;

/// Maximum entries in a visitor's item for a thread. Further entries are stored in one overflow item per parent.
pub const MAX_ENTRIES: usize = 100;

#[derive(Debug, Default)]
pub struct ThreadForVisitor {
    pub thread: Thread,
    pub visitor_state: VisitorThreadState,
    /// The visitor's own item. `None` for guests, and for users who aren't in the table.
    pub user: Option<User>,
    /// The number of public comments, if it was requested.
    pub count: Option<u64>,
}

/// The item for a visitor's next entry (a like or a report): the visitor's item for the thread until it is full, then
/// the overflow item of the comment's parent.
#[derive(Clone, Debug)]
pub(super) struct VisitorSlot {
    pub(super) key: Key,
    is_overflow: bool,
    /// Whether the entry fills the item.
    fills: bool,
}

impl VisitorSlot {
    pub(super) fn next(visitor_state: &VisitorThreadState, visitor: &Visitor, comment: &Comment) -> Self {
        let thread = &comment.thread;
        if visitor_state.full {
            let parent = comment.parent().unwrap_or(comment.id);
            return Self { key: keys::visitor_overflow(visitor, thread, parent), is_overflow: true, fills: false };
        }
        let fills = visitor_state.liked.len() + visitor_state.reported.len() + 1 >= MAX_ENTRIES;
        Self { key: keys::visitor_state(visitor, thread), is_overflow: false, fills }
    }

    /// Adds the comment to one of the item's sets, on condition that the set doesn't contain it and the item isn't full.
    pub(super) fn enter(self, set: &'static str, id: CommentId) -> Write {
        let entry = Write::update(self.key)
            .add(set, id_set(id))
            .when(format!("attribute_not_exists({set}) OR NOT contains({set}, :id)"))
            .with(":id", number(id.0))
            .label(Label::Entry);
        let entry = if self.is_overflow { entry } else { entry.still(visitor_state::FULL, None) };
        if self.fills { entry.set(visitor_state::FULL, yes()) } else { entry }
    }
}

impl Store {
    /// A thread, the caller's state in it and the caller's own item, in one request.
    pub async fn thread_for_visitor(&self, thread: &ThreadId, owners: &Owners) -> Result<ThreadForVisitor, Fault> {
        self.read_thread(thread, owners, owners.comments.user().map(keys::user), None).await
    }

    /// A thread and the caller's state in it, in one request.
    pub async fn thread_and_visitor_state(
        &self,
        thread: &ThreadId,
        owners: &Owners,
    ) -> Result<(Thread, VisitorThreadState), Fault> {
        let ThreadForVisitor { thread, visitor_state, .. } = self.read_thread(thread, owners, None, None).await?;
        Ok((thread, visitor_state))
    }

    /// Reads the thread in one request, with the items under the keys `user` and `count`. An anonymous visitor has no state.
    pub(super) async fn read_thread(
        &self,
        thread: &ThreadId,
        owners: &Owners,
        user: Option<Key>,
        count: Option<Key>,
    ) -> Result<ThreadForVisitor, Fault> {
        let state_of = |owner: &Visitor| (!owner.is_nobody()).then(|| keys::visitor_state(owner, thread));
        let [reactions, comments] = [&owners.reactions, &owners.comments].map(state_of);
        let comments = comments.filter(|comments| Some(comments) != reactions.as_ref());
        let thread = keys::thread(thread);
        let wanted = [&thread].into_iter().chain(&reactions).chain(&comments).chain(&user).chain(&count);
        let mut items = self.batch_get(wanted.cloned().collect(), Reading::Eventual).await?;
        let state = reactions.and_then(|reactions| items.remove(&reactions)).map(read).transpose()?;
        let mut visitor_state: VisitorThreadState = state.unwrap_or_default();
        if let Some(comments) = comments {
            let own: VisitorThreadState = items.remove(&comments).map(read).transpose()?.unwrap_or_default();
            visitor_state = visitor_state.with_comments_of(&own);
        }
        Ok(ThreadForVisitor {
            thread: items.remove(&thread).map(read).transpose()?.unwrap_or_default(),
            visitor_state,
            user: user.and_then(|user| items.remove(&user)).map(read).transpose()?,
            count: count.map(|count| items.get(&count).map_or(0, count_of)),
        })
    }

    pub async fn thread(&self, thread: &ThreadId, reading: Reading) -> Result<Thread, Fault> {
        Ok(self.get(&keys::thread(thread), reading).await?.unwrap_or_default())
    }

    /// Adds the overflow entries about these parents and their replies to a full `visitor_state`.
    pub async fn complete_visitor_state(
        &self,
        visitor_state: &mut VisitorThreadState,
        visitor: &Visitor,
        thread: &ThreadId,
        parents: impl IntoIterator<Item = CommentId>,
    ) -> Result<(), Fault> {
        if !visitor_state.full {
            return Ok(());
        }
        let parents: BTreeSet<CommentId> = parents.into_iter().collect();
        let keys = parents.into_iter().map(|parent| keys::visitor_overflow(visitor, thread, parent)).collect();
        for item in self.batch_get(keys, Reading::Eventual).await?.into_values() {
            let more: VisitorThreadState = read(item)?;
            visitor_state.liked.extend(more.liked);
            visitor_state.reported.extend(more.reported);
        }
        Ok(())
    }

    /// The threads of these comments, with the caller's state in each.
    pub async fn threads_and_visitor_states(
        &self,
        comments: &[Comment],
        owners: &Owners,
    ) -> Result<HashMap<ThreadId, (Thread, VisitorThreadState)>, Fault> {
        let mut parents: HashMap<ThreadId, Vec<CommentId>> = HashMap::new();
        for comment in comments {
            parents.entry(comment.thread.clone()).or_default().push(comment.parent().unwrap_or(comment.id));
        }
        let states = parents.into_iter().map(|(thread, parents)| async move {
            let (found, mut visitor_state) = self.thread_and_visitor_state(&thread, owners).await?;
            self.complete_visitor_state(&mut visitor_state, &owners.reactions, &thread, parents).await?;
            Ok::<_, Fault>((thread, (found, visitor_state)))
        });
        Ok(try_join_all(states).await?.into_iter().collect())
    }
}
