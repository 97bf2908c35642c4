//! Pages of a thread's top-level comments, sorted by time, and selected by page number or by cursor.

use futures_util::future::{try_join, try_join_all};

use super::parents::Run;
use super::walk::{Walk, Window, merge};
use super::{List, ThreadPage, scopes};
use crate::domain::ids::CommentId;
use crate::domain::list::{Cursor, Order, PagePosition, Paging};
use crate::domain::thread::VisitorThreadState;
use crate::error::Fault;
use crate::store::Store;
use crate::store::keys::{self, Scope};

/// The first page of a list sorted by time, without cursors.
struct FirstPage {
    page: ThreadPage,
    pin: Option<CommentId>,
    /// Whether more parents follow.
    more: bool,
    /// Whether the pinned comment may have pushed the last parent off the page.
    full: bool,
}

impl Store {
    pub(super) async fn page_by_time(
        &self,
        list: List<'_>,
        order: Order,
        paging: &Paging,
    ) -> Result<ThreadPage, Fault> {
        let per_page = paging.per_page;
        match paging.position {
            PagePosition::Page(1) => Ok(self.first_page(list, order, per_page).await?.page),
            PagePosition::Page(page) => self.later_page(list, order, (page - 1) * per_page, per_page).await,
            PagePosition::Cursor(None) => self.begin_walk(list, order, per_page).await,
            PagePosition::Cursor(Some(cursor)) => self.continue_walk(list, order, cursor, per_page).await,
        }
    }

    async fn first_page(&self, list: List<'_>, order: Order, per_page: usize) -> Result<FirstPage, Fault> {
        let (mut page, more) = self.first_window(list, Window::first(order, per_page)).await?;
        let pin = list.pin(&page.thread);
        let others = page.parents.len();
        self.put_pin_first(list, &mut page, pin, per_page).await?;
        let shown = page.parents.len();
        let full = shown == per_page && others + usize::from(pin.is_some()) > shown;
        Ok(FirstPage { page, pin, more, full })
    }

    /// A numbered page after the first one. Reads only keys to find its first parent. `offset` is at least 1.
    async fn later_page(
        &self,
        list: List<'_>,
        order: Order,
        offset: usize,
        per_page: usize,
    ) -> Result<ThreadPage, Fault> {
        let before = Window::first(order, offset + 1);
        let known = self.thread_of(list);
        let everyone = self.positions(keys::parents(list.thread, Scope::Everyone), before);
        let (known, everyone) = try_join(known, everyone).await?;
        let pin = list.pin(&known.thread);
        let own = match known.visitor_state.hidden_parents {
            0 => Vec::new(),
            _ => self.positions(keys::parents(list.thread, Scope::Own(&list.owners.comments)), before).await?,
        };
        // The pinned comment precedes all others, so it shifts them by one place.
        let pinned = usize::from(pin.is_some());
        let mut others = merge([everyone, own], order, |id| *id).into_iter().filter(|id| Some(*id) != pin);
        let (mut parents, mut more) = (Vec::new(), false);
        if let Some(start) = others.nth(offset - pinned) {
            let window = Window::starting_at(start, order, per_page + pinned);
            Run { parents, more } = self.run(list, &known.visitor_state, window).await?;
            parents.retain(|parent| Some(parent.comment.id) != pin);
            more |= parents.len() > per_page;
            parents.truncate(per_page);
        }
        let edges = [parents.first(), parents.last()].map(|parent| parent.map(|parent| parent.comment.id));
        let cursors = Walk::pinned(order, pin).cursors_within(edges[0], edges[1], more);
        Ok(ThreadPage { cursors, ..ThreadPage::new(known, parents) })
    }

    async fn begin_walk(&self, list: List<'_>, order: Order, per_page: usize) -> Result<ThreadPage, Fault> {
        let FirstPage { mut page, pin, more, full } = self.first_page(list, order, per_page).await?;
        let walk = Walk::pinned(order, pin);
        let last = page.parents.last().map(|parent| parent.comment.id).filter(|id| Some(*id) != pin);
        let more = more || (full && self.has_beyond(list, &page.visitor_state, last, walk).await?);
        page.cursors = walk.cursors(None, last, more);
        Ok(page)
    }

    async fn continue_walk(
        &self,
        list: List<'_>,
        order: Order,
        cursor: Cursor,
        per_page: usize,
    ) -> Result<ThreadPage, Fault> {
        let walk = Walk::new(order, Some(cursor));
        let pin = cursor.pin;
        // Reads one more, because the pinned comment is removed from its chronological place.
        let window = walk.window(per_page + usize::from(pin.is_some()));
        let (mut page, mut more) = self.first_window(list, window).await?;
        page.parents.retain(|parent| Some(parent.comment.id) != pin);
        more |= walk.cut(&mut page.parents, per_page);
        let edges = [page.parents.first(), page.parents.last()].map(|parent| parent.map(|parent| parent.comment.id));
        if walk.goes_back() && !more && pin.is_some() {
            // At the beginning of the list, the pinned comment is on a page before this one, or first on this page.
            more = page.parents.len() == per_page;
            if !more {
                self.put_pin_first(list, &mut page, pin, per_page).await?;
            }
        }
        page.cursors = walk.cursors(edges[0], edges[1], more);
        Ok(page)
    }

    /// The page in a window, without cursors, and whether more parents follow it. Usually takes one round trip.
    async fn first_window(&self, list: List<'_>, window: Window) -> Result<(ThreadPage, bool), Fault> {
        let known = self.thread_of(list);
        let everyone = self.rows(list, Scope::Everyone, window);
        let (known, rows) = try_join(known, everyone).await?;
        let Run { parents, more } = self.complete_run(list, &known.visitor_state, rows, window).await?;
        Ok((ThreadPage::new(known, parents), more))
    }

    /// Whether any parent except the pinned one follows `last`, or exists in the list if `last` is `None`.
    async fn has_beyond(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        last: Option<CommentId>,
        walk: Walk,
    ) -> Result<bool, Fault> {
        let window = walk.after(last, 2);
        let scopes = scopes(&list.owners.comments, visitor_state).into_iter();
        let beyond = scopes.map(|scope| self.positions(keys::parents(list.thread, scope), window));
        Ok(try_join_all(beyond).await?.into_iter().flatten().any(|id| walk.pin != Some(id)))
    }

    /// Puts the pinned comment first on the page. Reads it if it isn't on the page yet.
    async fn put_pin_first(
        &self,
        list: List<'_>,
        page: &mut ThreadPage,
        pin: Option<CommentId>,
        per_page: usize,
    ) -> Result<(), Fault> {
        let Some(pin) = pin else { return Ok(()) };
        let pinned = match page.parents.iter().position(|parent| parent.comment.id == pin) {
            Some(place) => Some(page.parents.remove(place)),
            None => self.comment_with_replies(list, &page.visitor_state, pin).await?,
        };
        page.parents.splice(0..0, pinned);
        page.parents.truncate(per_page);
        Ok(())
    }
}
