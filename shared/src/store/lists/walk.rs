//! Computes the windows of a list and the cursors around its pages, without I/O. A walk follows cursors through a list in
//! either direction.

use super::PageCursors;
use crate::domain::ids::CommentId;
use crate::domain::list::{Cursor, Direction, Order};
use crate::store::keys::Span;

/// The first `limit` ids of `span` in `order`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub(in crate::store) span: Span,
    pub(in crate::store) order: Order,
    pub(in crate::store) limit: usize,
}

impl Window {
    pub fn first(order: Order, limit: usize) -> Self {
        Self { span: Span::ALL, order, limit }
    }

    pub(super) fn starting_at(start: CommentId, order: Order, limit: usize) -> Self {
        let span = if order.is_descending() { Span::until(start) } else { Span::from(start) };
        Self { span, order, limit }
    }

    /// A window after `edge`, which is not included.
    pub(in crate::store) fn beyond(edge: CommentId, order: Order, limit: usize) -> Self {
        let span = if order.is_descending() { Span::below(edge) } else { Span::above(edge) };
        Self { span, order, limit }
    }
}

/// Merges the items of several partitions into one list in `order`, without duplicates.
pub(in crate::store) fn merge<T>(
    parts: impl IntoIterator<Item = Vec<T>>,
    order: Order,
    id: impl Fn(&T) -> CommentId,
) -> Vec<T> {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    all.extend(parts.flatten());
    all.sort_unstable_by_key(&id);
    all.dedup_by_key(|item| id(item));
    if order.is_descending() {
        all.reverse();
    }
    all
}

/// One step of a walk: a page of a list, by cursor.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Walk {
    /// The order of the list, whatever the direction of the walk.
    order: Order,
    /// `None` on the first page.
    cursor: Option<Cursor>,
    /// The comment that was pinned when the walk began. It is on the first page only.
    pub(super) pin: Option<CommentId>,
}

impl Walk {
    pub(in crate::store) fn new(order: Order, cursor: Option<Cursor>) -> Self {
        Self { order, cursor, pin: cursor.and_then(|cursor| cursor.pin) }
    }

    /// The first page of a walk, with `pin` before all other comments.
    pub(super) fn pinned(order: Order, pin: Option<CommentId>) -> Self {
        Self { order, cursor: None, pin }
    }

    pub(in crate::store) fn goes_back(self) -> bool {
        self.cursor.is_some_and(|cursor| cursor.direction == Direction::Previous)
    }

    /// The items to read for this page, nearest to the cursor first. A walk back reads the list in reverse.
    pub(in crate::store) fn window(self, limit: usize) -> Window {
        match self.cursor {
            None => Window::first(self.order, limit),
            Some(cursor) => Window::beyond(cursor.edge, self.toward(cursor.direction), limit),
        }
    }

    /// The window after `last`, or at the beginning of the list if `last` is `None`.
    pub(super) fn after(self, last: Option<CommentId>, limit: usize) -> Window {
        match last {
            None => Window::first(self.order, limit),
            Some(last) => Window::beyond(last, self.order, limit),
        }
    }

    /// Turns the items that were read into a page: at most `per_page` items, in the list's order. Returns whether items were
    /// left out.
    pub(in crate::store) fn cut<T>(self, items: &mut Vec<T>, per_page: usize) -> bool {
        let more = items.len() > per_page;
        items.truncate(per_page);
        if self.goes_back() {
            items.reverse();
        }
        more
    }

    /// The cursors around the page from `first` to `last`, which are `None` on an empty page. `more`: whether the list
    /// continues in the direction of the walk. In the opposite direction, it continues except on the first page,
    /// because the walk came from there.
    pub(in crate::store) fn cursors(
        self,
        first: Option<CommentId>,
        last: Option<CommentId>,
        more: bool,
    ) -> PageCursors {
        let back = self.goes_back();
        let cursor = |direction, edge: Option<CommentId>| {
            let edge = edge.unwrap_or_else(|| self.empty_page_edge(direction));
            Cursor { direction, edge, pin: self.pin }
        };
        PageCursors {
            next: (back || more).then(|| cursor(Direction::Next, last)),
            previous: (self.cursor.is_some() && (!back || more)).then(|| cursor(Direction::Previous, first)),
        }
    }

    /// The cursors around a numbered page other than the first. A page beyond the end of the list is empty, and walking back
    /// from it begins at the end.
    pub(super) fn cursors_within(self, first: Option<CommentId>, last: Option<CommentId>, more: bool) -> PageCursors {
        let end = CommentId(if self.order.is_descending() { Span::ALL.low } else { Span::ALL.high });
        let cursor = |direction, edge| Cursor { direction, edge, pin: self.pin };
        PageCursors {
            next: last.filter(|_| more).map(|last| cursor(Direction::Next, last)),
            previous: Some(cursor(Direction::Previous, first.unwrap_or(end))),
        }
    }

    /// The order in which a walk in this direction reads the list.
    fn toward(self, direction: Direction) -> Order {
        match direction {
            Direction::Next => self.order,
            Direction::Previous => self.order.reversed(),
        }
    }

    /// The cursor position for a page without comments other than the pin. A walk that turns around there includes the comment
    /// at the old cursor.
    fn empty_page_edge(self, direction: Direction) -> CommentId {
        let reading = self.toward(direction);
        match self.cursor {
            None if reading.is_descending() => CommentId(Span::ALL.high),
            None => CommentId(Span::ALL.low),
            Some(cursor) if direction == cursor.direction => cursor.edge,
            Some(Cursor { edge: CommentId(edge), .. }) if reading.is_descending() => CommentId(edge.saturating_add(1)),
            Some(Cursor { edge: CommentId(edge), .. }) => CommentId(edge.saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [Order; 2] = [Order::NewestFirst, Order::OldestFirst];

    /// One page of the list of `ids`, as the store reads it.
    fn page(ids: &[u64], order: Order, cursor: Option<Cursor>, per_page: usize) -> (Vec<u64>, PageCursors) {
        let walk = Walk::new(order, cursor);
        let Window { span, order, limit } = walk.window(per_page + 1);
        let within = ids.iter().filter(|id| (span.low..=span.high).contains(*id)).map(|id| CommentId(*id));
        let mut read = merge([within.collect()], order, |id| *id);
        read.truncate(limit);
        let more = walk.cut(&mut read, per_page);
        let cursors = walk.cursors(read.first().copied(), read.last().copied(), more);
        (read.into_iter().map(|id| id.0).collect(), cursors)
    }

    #[test]
    fn a_walk_that_turns_back_on_an_empty_page_returns_the_comment_at_its_edge() {
        for order in ORDERS {
            for direction in [Direction::Next, Direction::Previous] {
                let cursor = Cursor { direction, edge: CommentId(7), pin: Some(CommentId(3)) };
                let (nothing, cursors) = page(&[], order, Some(cursor), 5);
                assert!(nothing.is_empty());
                let turned = match direction {
                    Direction::Next => cursors.previous.unwrap(),
                    Direction::Previous => cursors.next.unwrap(),
                };
                assert_eq!(turned.pin, cursor.pin);
                assert_eq!(page(&[7], order, Some(turned), 5).0, [7], "{order:?} {direction:?}");
            }
        }
    }

    #[test]
    fn after_a_first_page_with_only_the_pinned_comment_the_list_starts_at_its_beginning() {
        for order in ORDERS {
            let pin = Some(CommentId(3));
            let next = Walk::pinned(order, pin).cursors(None, None, true).next.unwrap();
            assert_eq!(next.pin, pin);
            let Window { span, order: reading, .. } = Walk::new(order, Some(next)).window(1);
            assert_eq!(reading, order);
            assert!(span.low <= 1 && span.high >= Span::ALL.high - 1, "{span:?}");
        }
    }

    #[test]
    fn merging_keeps_the_order_and_drops_repetitions() {
        let parts = || [vec![5, 1, 3], vec![3, 4]];
        assert_eq!(merge(parts(), Order::OldestFirst, |id| CommentId(*id)), [1, 3, 4, 5]);
        assert_eq!(merge(parts(), Order::NewestFirst, |id| CommentId(*id)), [5, 4, 3, 1]);
    }
}
