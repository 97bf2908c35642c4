//! A window of the top-level comments of a thread, each with its embedded replies.
//!
//! One Query of the thread's partition reads comments with their inline replies. Separate replies are read from the
//! partition of each comment that needs them.

use std::collections::{BTreeMap, HashMap};

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::walk::{Window, merge};
use super::{Budget, CommentWithReplies, List};
use crate::domain::comment::Comment;
use crate::domain::ids::CommentId;
use crate::domain::list::Order;
use crate::domain::thread::VisitorThreadState;
use crate::error::Fault;
use crate::store::keys::{self, Scope, Span};
use crate::store::{Index, Query, Reading, Store, placement, read};

/// Maximum comments read at once when each parent is read separately.
const AT_ONCE: usize = 64;

/// The parents in a window, in the window's order.
pub(super) struct Run {
    pub(super) parents: Vec<CommentWithReplies>,
    /// Whether more parents follow.
    pub(super) more: bool,
}

/// Parents in one scope, and inline replies by parent. The parent of a reply may be in another scope.
#[derive(Default)]
pub(super) struct Rows {
    parents: BTreeMap<CommentId, Comment>,
    replies: HashMap<CommentId, Vec<Comment>>,
    /// Whether more parents follow.
    more: bool,
}

impl Rows {
    fn add(&mut self, comment: Comment) {
        match comment.parent() {
            None => drop(self.parents.insert(comment.id, comment)),
            Some(parent) => self.replies.entry(parent).or_default().push(comment),
        }
    }

    fn extend(&mut self, other: Self) {
        self.parents.extend(other.parents);
        for (parent, replies) in other.replies {
            self.replies.entry(parent).or_default().extend(replies);
        }
        self.more |= other.more;
    }

    /// The part of `span` whose parents have all been read.
    fn complete_span(&self, span: Span, order: Order) -> Span {
        match (self.more, order) {
            (false, _) => span,
            (true, Order::NewestFirst) => Span { low: self.parents.keys().next().map_or(span.low, |id| id.0), ..span },
            (true, Order::OldestFirst) => {
                Span { high: self.parents.keys().next_back().map_or(span.high, |id| id.0), ..span }
            }
        }
    }
}

impl Store {
    /// The number of parents that are read at once, each with its replies.
    pub(super) fn parents_at_once(&self) -> usize {
        (AT_ONCE / (1 + self.embedded)).max(1)
    }

    /// The number of replies that may still be read for each parent.
    fn embedded_within(&self, budget: &Budget) -> usize {
        if budget.is_spent() { 0 } else { self.embedded }
    }

    pub(super) async fn run(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        window: Window,
    ) -> Result<Run, Fault> {
        let rows = self.rows(list, Scope::Everyone, window).await?;
        self.complete_run(list, visitor_state, rows, window).await
    }

    /// One top-level comment with its embedded replies, if the visitor can see it.
    pub(super) async fn comment_with_replies(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        id: CommentId,
    ) -> Result<Option<CommentWithReplies>, Fault> {
        if list.budget.is_spent() {
            let comment: Option<Comment> = self.get(&keys::comment(id), Reading::Eventual).await?;
            let seen = comment.filter(|comment| comment.is_approved() || comment.is_by(&list.owners.comments));
            return Ok(seen.map(|comment| CommentWithReplies { comment, replies: Vec::new() }));
        }
        let window = Window { span: Span { low: id.0, high: id.0 }, order: Order::OldestFirst, limit: 1 };
        Ok(self.run(list, visitor_state, window).await?.parents.into_iter().next())
    }

    /// Merges the visitor's own comments into `rows`, which everyone sees, and completes the embedded replies.
    pub(super) async fn complete_run(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        mut rows: Rows,
        window: Window,
    ) -> Result<Run, Fault> {
        let Window { span, order, limit } = window;
        if visitor_state.has_hidden() {
            // The visitor's own comments beyond this span belong to a later page.
            let window = Window { span: rows.complete_span(span, order), ..window };
            rows.extend(self.rows(list, Scope::Own(&list.owners.comments), window).await?);
        }
        let mut parents: Vec<Comment> = rows.parents.into_values().collect();
        if order.is_descending() {
            parents.reverse();
        }
        let more = rows.more || parents.len() > limit;
        parents.truncate(limit);
        let parents = parents.into_iter().map(|comment| {
            let replies = rows.replies.remove(&comment.id).unwrap_or_default();
            self.complete_replies(list, visitor_state, comment, replies)
        });
        let parents = stream::iter(parents).buffered(self.parents_at_once()).try_collect().await?;
        Ok(Run { parents, more })
    }

    /// Adds the separate replies that belong on the page to the inline `replies`. Such replies exist after deletions and
    /// approvals, and after the number of embedded replies was raised.
    async fn complete_replies(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        comment: Comment,
        replies: Vec<Comment>,
    ) -> Result<CommentWithReplies, Fault> {
        let embedded = self.embedded_within(list.budget);
        let wanted = placement::expected_inline(&comment, embedded);
        let inline = replies.iter().filter(|reply| reply.is_approved()).count();
        let everyone = (comment.has_separate && inline < wanted).then_some(Scope::Everyone);
        let own = (visitor_state.hidden_separate && embedded > 0).then_some(Scope::Own(&list.owners.comments));
        let window = Window::first(Order::OldestFirst, embedded);
        let separate = everyone.into_iter().chain(own).map(|scope| self.separate(comment.id, scope, window));
        let mut parts = try_join_all(separate).await?;
        if everyone.is_some() {
            // A separate reply may have become inline since `replies` were read.
            parts.push(self.inline(&comment, Scope::Everyone, window).await?);
        }
        for reply in parts.iter().flatten() {
            list.budget.spend(reply);
        }
        let mut replies = merge([replies].into_iter().chain(parts), Order::OldestFirst, |reply| reply.id);
        replies.truncate(embedded);
        Ok(CommentWithReplies { comment, replies })
    }

    /// Reads one scope of the thread's partition until `window.limit` parents have all their inline replies and one more item
    /// is seen, or until the span ends. Once the budget is spent, the rest is read without replies.
    pub(super) async fn rows(&self, list: List<'_>, scope: Scope<'_>, window: Window) -> Result<Rows, Fault> {
        let Window { span, order, limit } = window;
        let query = Query {
            index: Index::Thread,
            partition: keys::parents(list.thread, scope),
            bounds: Some(span.families()),
            order,
            limit: limit * (1 + self.embedded_within(list.budget)) + 1,
        };
        let mut rows = Rows::default();
        let mut start = None;
        loop {
            let (items, next) = self.query(&query, start).await?;
            for item in items {
                let comment: Comment = read(item)?;
                list.budget.spend(&comment);
                // In newest-first order, replies precede their parent, so a reply after the last parent belongs to another
                // parent.
                let top = comment.ancestors.first().copied().unwrap_or(comment.id);
                if rows.parents.len() == limit && !rows.parents.contains_key(&top) {
                    if scope != Scope::Everyone && !comment.is_top_level() {
                        // The visitor's own reply may have a public parent, which is in another partition.
                        continue;
                    }
                    rows.more = true;
                    return Ok(rows);
                }
                rows.add(comment);
            }
            if next.is_none() {
                return Ok(rows);
            }
            if list.budget.is_spent() {
                return Box::pin(self.parents(list, scope, window, rows)).await;
            }
            start = next;
        }
    }

    /// Like [`Self::rows`], but without replies. Parents in the argument `rows` aren't read again.
    async fn parents(&self, list: List<'_>, scope: Scope<'_>, window: Window, rows: Rows) -> Result<Rows, Fault> {
        let limit = window.limit;
        let ids = Window { limit: limit + 1, ..window };
        let mut ids = self.positions(keys::parents(list.thread, scope), ids).await?;
        let more = ids.len() > limit;
        ids.truncate(limit);
        let mut parents = rows.parents;
        ids.retain(|id| !parents.contains_key(id));
        let missing = ids.into_iter().map(keys::comment).collect();
        for item in self.batch_get(missing, Reading::Eventual).await?.into_values() {
            let comment: Comment = read(item)?;
            if comment.is_approved() == (scope == Scope::Everyone) {
                parents.insert(comment.id, comment);
            }
        }
        Ok(Rows { parents, replies: HashMap::new(), more })
    }
}
