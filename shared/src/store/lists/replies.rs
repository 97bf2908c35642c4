//! Pages of the replies to one comment, oldest first. Inline replies are in the thread's partition, next to their
//! top-level comment. Separate replies are in the partition of their parent. Among approved replies, every inline one
//! is older than every separate one.

use futures_util::future::{try_join, try_join_all};

use super::walk::{Walk, Window, merge};
use super::{PageCursors, ReplyPage, scopes};
use crate::domain::comment::Comment;
use crate::domain::ids::CommentId;
use crate::domain::list::{MAX_NUMBERED, Order, PagePosition, Paging};
use crate::domain::viewer::Owners;
use crate::error::Fault;
use crate::store::keys::{self, Scope};
use crate::store::{Index, Query, Store, placement, read};

const ORDER: Order = Order::OldestFirst;

/// The replies to one comment that one visitor sees.
#[derive(Clone, Copy)]
pub(super) struct Replies<'a> {
    pub(super) parent: &'a Comment,
    pub(super) scopes: &'a [Scope<'a>],
    /// The ids of the visitor's own unapproved replies. Only numbered pages need them.
    pub(super) own: &'a [CommentId],
}

struct Run {
    replies: Vec<Comment>,
    cursors: PageCursors,
}

impl Store {
    /// A page of `comments.replies`.
    pub async fn reply_page(&self, parent: &Comment, owners: &Owners, paging: &Paging) -> Result<ReplyPage, Fault> {
        let list = Replies { parent, scopes: &[Scope::Everyone], own: &[] };
        let known = self.thread_and_visitor_state(&parent.thread, owners);
        let ((thread, mut visitor_state), mut run) = try_join(known, self.reply_run(list, paging)).await?;
        let mut own = Vec::new();
        if visitor_state.hidden_replies > 0 {
            let partition = keys::replies(parent.id, Scope::Own(&owners.comments));
            own = self.positions(partition, Window::first(ORDER, MAX_NUMBERED)).await?;
        }
        if !own.is_empty() {
            let scopes = scopes(&owners.comments, &visitor_state);
            run = self.reply_run(Replies { scopes: &scopes, own: &own, ..list }, paging).await?;
        }
        self.complete_visitor_state(&mut visitor_state, &owners.reactions, &parent.thread, [parent.id]).await?;
        let total = parent.replies + own.len() as u64;
        Ok(ReplyPage { thread, visitor_state, replies: run.replies, total, cursors: run.cursors })
    }

    async fn reply_run(&self, list: Replies<'_>, paging: &Paging) -> Result<Run, Fault> {
        let per_page = paging.per_page;
        let cursor = match paging.position {
            PagePosition::Page(page) => {
                let window = self.numbered_window(list, page, per_page).await?;
                let replies = match window {
                    Some(window) => self.replies(list, window).await?,
                    None => Vec::new(),
                };
                return Ok(Run { replies, cursors: PageCursors::default() });
            }
            PagePosition::Cursor(cursor) => cursor,
        };
        let walk = Walk::new(ORDER, cursor);
        // One extra reply shows whether the walk continues.
        let mut replies = self.replies(list, walk.window(per_page + 1)).await?;
        let more = walk.cut(&mut replies, per_page);
        let id = |reply: &Comment| reply.id;
        let cursors = walk.cursors(replies.first().map(id), replies.last().map(id), more);
        Ok(Run { replies, cursors })
    }

    /// The window of a numbered page; `None` if the page is past the end of the list.
    async fn numbered_window(&self, list: Replies<'_>, page: usize, per_page: usize) -> Result<Option<Window>, Fault> {
        if page == 1 {
            return Ok(Some(Window::first(ORDER, per_page)));
        }
        let offset = (page - 1) * per_page;
        let partition = keys::replies(list.parent.id, Scope::Everyone);
        let everyone = self.positions(partition, Window::first(ORDER, offset + 1)).await?;
        let start = merge([everyone, list.own.to_vec()], ORDER, |id| *id).into_iter().nth(offset);
        Ok(start.map(|start| Window::starting_at(start, ORDER, per_page)))
    }

    /// The replies of all scopes in a window.
    pub(super) async fn replies(&self, list: Replies<'_>, window: Window) -> Result<Vec<Comment>, Fault> {
        let scopes = list.scopes.iter().map(|scope| self.replies_of(list, *scope, window));
        let mut replies = merge(try_join_all(scopes).await?, window.order, |reply| reply.id);
        replies.truncate(window.limit);
        Ok(replies)
    }

    /// The inline and separate replies of one scope, in any order.
    async fn replies_of(&self, list: Replies<'_>, scope: Scope<'_>, window: Window) -> Result<Vec<Comment>, Fault> {
        let Replies { parent, .. } = list;
        let Window { span, order, limit } = window;
        let everyone = scope == Scope::Everyone;
        // The parent lists its approved inline replies, so only the separate replies that fit into the window are read.
        let (inline, separate) = if everyone {
            let inline = parent.inline.range(span.low..=span.high).count();
            let rest = if order.is_descending() { limit } else { limit.saturating_sub(inline) };
            (inline.min(limit), if parent.has_separate { rest } else { 0 })
        } else {
            (if parent.is_top_level() { limit } else { 0 }, limit)
        };
        if !(everyone && placement::missing_inline(parent, self.embedded) > 0) {
            let beside = self.inline(parent, scope, Window { limit: inline, ..window });
            let below = self.separate(parent.id, scope, Window { limit: separate, ..window });
            let (mut replies, below) = try_join(beside, below).await?;
            let missing = replies.len() < inline;
            replies.extend(below);
            if !(everyone && missing) {
                return Ok(replies);
            }
        }
        // Reads separate replies first, so that a reply that becomes inline between the two reads is seen twice, but never
        // missed.
        let mut replies = self.separate(parent.id, scope, window).await?;
        replies.extend(self.inline(parent, scope, window).await?);
        Ok(replies)
    }

    /// Inline replies, which are in the partition of the thread.
    pub(super) async fn inline(
        &self,
        parent: &Comment,
        scope: Scope<'_>,
        window: Window,
    ) -> Result<Vec<Comment>, Fault> {
        let Window { span, order, limit } = window;
        let partition = keys::parents(&parent.thread, scope);
        let bounds = Some(span.inline(parent.id));
        self.comments(Query { index: Index::Thread, partition, bounds, order, limit }).await
    }

    /// Separate replies, which are in the partition of their parent.
    pub(super) async fn separate(
        &self,
        parent: CommentId,
        scope: Scope<'_>,
        window: Window,
    ) -> Result<Vec<Comment>, Fault> {
        let Window { span, order, limit } = window;
        let partition = keys::replies(parent, scope);
        self.comments(Query { index: Index::Thread, partition, bounds: Some(span.texts()), order, limit }).await
    }

    async fn comments(&self, query: Query) -> Result<Vec<Comment>, Fault> {
        self.query_all(query).await?.into_iter().map(read).collect()
    }
}
