//! Pages of parents with their embedded replies, and pages of replies. Everything is read for two scopes and merged: what
//! everyone sees, and the visitor's own unapproved comments when there are any.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{self, AtomicUsize};

use futures_util::future::{try_join, try_join_all};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::keys::{Item, Scope, Span};
use super::{Index, Query, Reading, Store, keys, read};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, Visitor};
use crate::domain::list::{Cursor, Direction, Order, Paging, Place, Sort};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::error::Fault;

/// Own unapproved replies that lead; more of them trail, so that they never crowd out parents.
pub(super) const HIDDEN_INLINE: u64 = 100;
/// Comments that are read at once where each parent's are read by themselves.
const AT_ONCE: usize = 64;

/// A parent and the replies embedded in it.
#[derive(Clone, Debug)]
pub struct CommentWithReplies {
    pub parent: Comment,
    pub replies: Vec<Comment>,
}

/// One page of a thread.
#[derive(Debug)]
pub struct ThreadPage {
    pub thread: Thread,
    pub visitor_state: VisitorThreadState,
    pub families: Vec<CommentWithReplies>,
    pub cursors: PageCursors,
}

/// One page of the replies to a comment.
#[derive(Debug)]
pub struct ReplyPage {
    pub replies: Vec<Comment>,
    pub total: u64,
    pub cursors: PageCursors,
}

/// Where a walk by cursor goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageCursors {
    pub next: Option<Cursor>,
    pub previous: Option<Cursor>,
}

/// Bytes of text that may be read for one page. An answer holds no more; once they are read, embedded replies give way and
/// only the parents that are missing are read.
#[derive(Debug)]
pub struct Budget {
    bytes: usize,
    read: AtomicUsize,
}

impl Budget {
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { bytes, read: AtomicUsize::new(0) }
    }

    fn spend(&self, comment: &Comment) {
        self.read.fetch_add(comment.body.len(), atomic::Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        self.read.load(atomic::Ordering::Relaxed) > self.bytes
    }
}

/// What a list is of, and for whom.
#[derive(Clone, Copy)]
pub struct List<'a> {
    pub thread: &'a ThreadId,
    pub visitor: &'a Visitor,
    /// Embedded replies a parent.
    pub embedded: usize,
    /// Whether a pinned comment is shown as such.
    pub pins: bool,
    pub budget: &'a Budget,
}

impl List<'_> {
    /// How many replies of each parent may still be read.
    fn embeds(&self) -> usize {
        if self.budget.is_spent() { 0 } else { self.embedded }
    }

    /// How many parents are read at once, each with its replies.
    fn at_once(&self) -> usize {
        (AT_ONCE / (1 + self.embedded)).max(1)
    }

    fn pin(&self, thread: &Thread) -> Option<CommentId> {
        thread.pin.filter(|_| self.pins).map(|pin| pin.comment)
    }
}

fn scopes<'a>(visitor: &'a Visitor, visitor_state: &VisitorThreadState) -> Vec<Scope<'a>> {
    if visitor_state.has_hidden() { vec![Scope::Everyone, Scope::Own(visitor)] } else { vec![Scope::Everyone] }
}

/// A run of parents in the order asked for.
struct Run {
    families: Vec<CommentWithReplies>,
    /// Whether there are parents beyond them.
    more: bool,
}

/// What a part of the thread's index holds: parents, and replies of parents wherever these are.
#[derive(Default)]
struct Rows {
    parents: BTreeMap<CommentId, Comment>,
    replies: HashMap<CommentId, Vec<Comment>>,
    more: bool,
}

impl Store {
    /// The parents of a thread. `sort` by time or by rank; cursors only by time.
    pub async fn thread_page(&self, list: List<'_>, sort: Sort, paging: &Paging) -> Result<ThreadPage, Fault> {
        let order = if sort == Sort::Newest { Order::NewestFirst } else { Order::OldestFirst };
        let (thread, mut visitor_state, mut families, cursors) = match (&paging.place, sort) {
            (Place::Page(page), Sort::Newest | Sort::Oldest) => {
                self.timed_page(list, order, *page, paging.per_page).await?
            }
            (Place::Cursor(cursor), Sort::Newest | Sort::Oldest) => {
                self.cursor_page(list, order, *cursor, paging.per_page).await?
            }
            (Place::Page(page), Sort::MostLiked) => {
                self.ranked_page(list, Index::Likes, *page, paging.per_page).await?
            }
            (Place::Page(page), Sort::MostReplied) => {
                self.ranked_page(list, Index::Replied, *page, paging.per_page).await?
            }
            (Place::Cursor(_), Sort::MostLiked | Sort::MostReplied) => {
                self.ranked_page(
                    list,
                    if sort == Sort::MostLiked { Index::Likes } else { Index::Replied },
                    1,
                    paging.per_page,
                )
                .await?
            }
        };
        if list.budget.is_spent() {
            for family in &mut families {
                family.replies.clear();
            }
        }
        let shown = families.iter().map(|family| family.parent.id);
        self.complete_visitor_state(&mut visitor_state, list.visitor, list.thread, shown).await?;
        Ok(ThreadPage { thread, visitor_state, families, cursors })
    }

    async fn timed_page(
        &self,
        list: List<'_>,
        order: Order,
        page: usize,
        per_page: usize,
    ) -> Result<(Thread, VisitorThreadState, Vec<CommentWithReplies>, PageCursors), Fault> {
        let known = self.thread_and_visitor_state(list.thread, list.visitor);
        if page == 1 {
            let first = self.rows(list, Scope::Everyone, Span::ALL, order, per_page);
            let ((thread, visitor_state), rows) = try_join(known, first).await?;
            let pin = list.pin(&thread);
            let run = self.finish_run(list, &visitor_state, rows, Span::ALL, order, per_page).await?;
            let families = self.put_pin_first(list, &visitor_state, pin, run.families, per_page).await?;
            return Ok((thread, visitor_state, families, PageCursors::default()));
        }
        let offset = (page - 1) * per_page;
        let partition = keys::parents(list.thread, Scope::Everyone);
        let positions = self.positions(partition, Span::ALL, order, offset + 1);
        let ((thread, visitor_state), everyone) = try_join(known, positions).await?;
        let pin = list.pin(&thread);
        let own = match visitor_state.hidden_parents {
            0 => Vec::new(),
            _ => {
                let own = keys::parents(list.thread, Scope::Own(list.visitor));
                self.positions(own, Span::ALL, order, offset + 1).await?
            }
        };
        // The pinned comment stands before all others, so the others stand one place further back.
        let skipped = offset - usize::from(pin.is_some());
        let start = merge(everyone, own, order).into_iter().filter(|id| Some(*id) != pin).nth(skipped);
        let Some(start) = start else { return Ok((thread, visitor_state, Vec::new(), PageCursors::default())) };
        let span = if order.is_descending() { Span::until(start) } else { Span::from(start) };
        let take = per_page + usize::from(pin.is_some());
        let mut run = self.run(list, &visitor_state, span, order, take).await?;
        run.families.retain(|family| Some(family.parent.id) != pin);
        run.families.truncate(per_page);
        Ok((thread, visitor_state, run.families, PageCursors::default()))
    }

    async fn cursor_page(
        &self,
        list: List<'_>,
        order: Order,
        cursor: Option<Cursor>,
        per_page: usize,
    ) -> Result<(Thread, VisitorThreadState, Vec<CommentWithReplies>, PageCursors), Fault> {
        let known = self.thread_and_visitor_state(list.thread, list.visitor);
        let Some(cursor) = cursor else {
            let first = self.rows(list, Scope::Everyone, Span::ALL, order, per_page);
            let ((thread, visitor_state), rows) = try_join(known, first).await?;
            let pin = list.pin(&thread);
            let run = self.finish_run(list, &visitor_state, rows, Span::ALL, order, per_page).await?;
            let found = run.families.len();
            let families = self.put_pin_first(list, &visitor_state, pin, run.families, per_page).await?;
            let others = families.iter().rev().find(|family| Some(family.parent.id) != pin);
            let left_out = found + usize::from(pin.is_some()) > families.len()
                && families.len() == per_page
                && (run.more || self.has_beyond(list, &visitor_state, others, pin, order).await?);
            let next = (run.more || left_out).then(|| {
                // With nothing but the pin on the page, the walk begins at the very start.
                let start = CommentId(if order.is_descending() { Span::ALL.high } else { 0 });
                let edge = others.map_or(start, |family| family.parent.id);
                Cursor { direction: Direction::Next, edge, pin }
            });
            return Ok((thread, visitor_state, families, PageCursors { next, previous: None }));
        };
        let back = cursor.direction == Direction::Previous;
        // Going back, the list is read in the other direction and turned round.
        let reading = if back { order.reversed() } else { order };
        let span = if reading.is_descending() { Span::below(cursor.edge) } else { Span::above(cursor.edge) };
        let take = per_page + usize::from(cursor.pin.is_some());
        let first = self.rows(list, Scope::Everyone, span, reading, take);
        let ((thread, visitor_state), rows) = try_join(known, first).await?;
        let mut run = self.finish_run(list, &visitor_state, rows, span, reading, take).await?;
        run.families.retain(|family| Some(family.parent.id) != cursor.pin);
        let mut more = run.more || run.families.len() > per_page;
        run.families.truncate(per_page);
        let mut pin_ahead = false;
        if back {
            run.families.reverse();
            if let (Some(pin), false) = (cursor.pin, more) {
                if run.families.len() < per_page {
                    run.families = self.put_pin_first(list, &visitor_state, Some(pin), run.families, per_page).await?;
                } else {
                    pin_ahead = true;
                }
            }
            more |= pin_ahead;
        }
        let edge = |family: Option<&CommentWithReplies>, direction| {
            let edge = family.map_or_else(|| beyond(cursor, direction, order), |family| family.parent.id);
            Cursor { direction, edge, pin: cursor.pin }
        };
        let others: Vec<&CommentWithReplies> =
            run.families.iter().filter(|family| Some(family.parent.id) != cursor.pin).collect();
        let next = (back || more).then(|| edge(others.last().copied(), Direction::Next));
        let previous = (!back || more).then(|| edge(others.first().copied(), Direction::Previous));
        Ok((thread, visitor_state, run.families, PageCursors { next, previous }))
    }

    /// Whether any parent but the pinned one comes after `last` (after nothing, at all).
    async fn has_beyond(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        last: Option<&CommentWithReplies>,
        pin: Option<CommentId>,
        order: Order,
    ) -> Result<bool, Fault> {
        let span = match last.map(|family| family.parent.id) {
            None => Span::ALL,
            Some(id) if order.is_descending() => Span::below(id),
            Some(id) => Span::above(id),
        };
        let beyond = scopes(list.visitor, visitor_state).into_iter();
        let beyond = beyond.map(|scope| self.positions(keys::parents(list.thread, scope), span, order, 2));
        Ok(try_join_all(beyond).await?.into_iter().flatten().any(|id| Some(id) != pin))
    }

    /// By rank: keys first, then each family by itself.
    async fn ranked_page(
        &self,
        list: List<'_>,
        index: Index,
        page: usize,
        per_page: usize,
    ) -> Result<(Thread, VisitorThreadState, Vec<CommentWithReplies>, PageCursors), Fault> {
        let offset = (page - 1) * per_page;
        let take = offset + per_page + 1;
        let known = self.thread_and_visitor_state(list.thread, list.visitor);
        let ((thread, visitor_state), mut ranks) =
            try_join(known, self.ranks(list, index, Scope::Everyone, take)).await?;
        if visitor_state.hidden_parents > 0 {
            ranks.extend(self.ranks(list, index, Scope::Own(list.visitor), take).await?);
            ranks.sort_unstable_by(|a, b| b.cmp(a));
        }
        let pin = list.pin(&thread);
        let mut ranked: Vec<CommentId> = ranks.into_iter().map(|(_, id)| id).filter(|id| Some(*id) != pin).collect();
        if let Some(pin) = pin {
            ranked.insert(0, pin);
        }
        let page = ranked.into_iter().skip(offset).take(per_page);
        let families = stream::iter(page.map(|id| self.family(list, &visitor_state, id))).buffered(list.at_once());
        let families: Vec<Option<CommentWithReplies>> = families.try_collect().await?;
        Ok((thread, visitor_state, families.into_iter().flatten().collect(), PageCursors::default()))
    }

    async fn ranks(
        &self,
        list: List<'_>,
        index: Index,
        scope: Scope<'_>,
        limit: usize,
    ) -> Result<Vec<(u128, CommentId)>, Fault> {
        let partition = keys::parents(list.thread, scope);
        let items = self.query_all(Query { index, partition, bounds: None, order: Order::NewestFirst, limit }).await?;
        let (_, _, rank) = index.names();
        let ranked = |item: &Item| {
            // Ranks pass 2^64 at 1,845 likes.
            let rank: u128 = item.get(rank)?.as_n().ok()?.parse().ok()?;
            Some((rank, keys::comment_of(item)?))
        };
        Ok(items.iter().filter_map(ranked).collect())
    }

    /// One parent with its embedded replies, wherever it stands.
    async fn family(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        id: CommentId,
    ) -> Result<Option<CommentWithReplies>, Fault> {
        if list.budget.is_spent() {
            let parent: Option<Comment> = self.get(&keys::comment(id), Reading::Eventual).await?;
            let shown = parent.filter(|parent| parent.is_approved() || parent.visitor() == *list.visitor);
            return Ok(shown.map(|parent| CommentWithReplies { parent, replies: Vec::new() }));
        }
        let span = Span { low: id.0, high: id.0 };
        let run = self.run(list, visitor_state, span, Order::OldestFirst, 1).await?;
        Ok(run.families.into_iter().next())
    }

    async fn run(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        span: Span,
        order: Order,
        take: usize,
    ) -> Result<Run, Fault> {
        let rows = self.rows(list, Scope::Everyone, span, order, take).await?;
        self.finish_run(list, visitor_state, rows, span, order, take).await
    }

    /// Merges the visitor's own into what everyone sees, and completes the embedded replies.
    async fn finish_run(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        mut rows: Rows,
        span: Span,
        order: Order,
        take: usize,
    ) -> Result<Run, Fault> {
        if visitor_state.has_hidden() {
            // Own comments matter as far as the others' run reaches.
            let reach = if !rows.more {
                span
            } else if order.is_descending() {
                Span { low: rows.parents.keys().next().map_or(span.low, |id| id.0), ..span }
            } else {
                Span { high: rows.parents.keys().next_back().map_or(span.high, |id| id.0), ..span }
            };
            let own = self.rows(list, Scope::Own(list.visitor), reach, order, take).await?;
            rows.more |= own.more;
            rows.parents.extend(own.parents);
            for (parent, replies) in own.replies {
                rows.replies.entry(parent).or_default().extend(replies);
            }
        }
        let mut parents: Vec<Comment> = rows.parents.into_values().collect();
        if order.is_descending() {
            parents.reverse();
        }
        let more = rows.more || parents.len() > take;
        parents.truncate(take);
        let families = parents.into_iter().map(|parent| {
            let mut replies = rows.replies.remove(&parent.id).unwrap_or_default();
            replies.sort_unstable_by_key(|reply| reply.id);
            CommentWithReplies { parent, replies }
        });
        let families = stream::iter(families.map(|family| self.complete_family(list, visitor_state, family)));
        let families = families.buffered(list.at_once()).try_collect().await?;
        Ok(Run { families, more })
    }

    /// After deletions and approvals, or when more replies are embedded than once, some of the first replies trail.
    async fn complete_family(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        mut family: CommentWithReplies,
    ) -> Result<CommentWithReplies, Fault> {
        let parent = &family.parent;
        let embedded = list.embeds();
        let wanted = embedded.min(usize::try_from(parent.replies).unwrap_or(usize::MAX));
        let inline = family.replies.iter().filter(|reply| reply.is_approved()).count();
        let everyone = (parent.has_separate && inline < wanted).then_some(Scope::Everyone);
        let own = (visitor_state.hidden_separate && embedded > 0).then_some(Scope::Own(list.visitor));
        let rest = everyone.into_iter().chain(own);
        let rest = rest.map(|scope| self.separate(parent.id, scope, Span::ALL, Order::OldestFirst, embedded));
        let mut more: Vec<Comment> = try_join_all(rest).await?.into_iter().flatten().collect();
        if everyone.is_some() {
            // One that trailed may lead since the family was read.
            more.extend(self.inline(parent, Scope::Everyone, Span::ALL, Order::OldestFirst, embedded).await?);
        }
        for reply in &more {
            list.budget.spend(reply);
        }
        family.replies.extend(more);
        family.replies.sort_unstable_by_key(|reply| reply.id);
        family.replies.dedup_by_key(|reply| reply.id);
        family.replies.truncate(embedded);
        Ok(family)
    }

    /// Reads one scope of the thread's index until `take` families are whole and one more row is seen, or the end; without
    /// replies once the budget is spent.
    async fn rows(
        &self,
        list: List<'_>,
        scope: Scope<'_>,
        span: Span,
        order: Order,
        take: usize,
    ) -> Result<Rows, Fault> {
        let query = Query {
            index: Index::Thread,
            partition: keys::parents(list.thread, scope),
            bounds: Some(span.families()),
            order,
            limit: take * (1 + list.embeds()) + 1,
        };
        let mut rows = Rows::default();
        let mut start = None;
        loop {
            let (items, next) = self.query(&query, start).await?;
            for item in items {
                let comment: Comment = read(item)?;
                list.budget.spend(&comment);
                // Newest first, replies come before their parent: a reply beyond the last parent is of another one.
                let family = comment.ancestors.first().copied().unwrap_or(comment.id);
                if rows.parents.len() == take && !rows.parents.contains_key(&family) {
                    if scope != Scope::Everyone && !comment.is_top_level() {
                        // Own replies stand below others' comments too, and say nothing of those.
                        continue;
                    }
                    rows.more = true;
                    return Ok(rows);
                }
                match comment.parent() {
                    None => drop(rows.parents.insert(comment.id, comment)),
                    Some(parent) => rows.replies.entry(parent).or_default().push(comment),
                }
            }
            if next.is_none() {
                return Ok(rows);
            }
            if list.budget.is_spent() {
                return Box::pin(self.parents(list, scope, span, order, take, rows)).await;
            }
            start = next;
        }
    }

    /// The same without replies; parents that `rows` has are not read again.
    async fn parents(
        &self,
        list: List<'_>,
        scope: Scope<'_>,
        span: Span,
        order: Order,
        take: usize,
        rows: Rows,
    ) -> Result<Rows, Fault> {
        let partition = keys::parents(list.thread, scope);
        let mut ids = self.positions(partition, span, order, take + 1).await?;
        let more = ids.len() > take;
        ids.truncate(take);
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

    /// Puts the pinned comment first, fetching it when it is not on the page.
    async fn put_pin_first(
        &self,
        list: List<'_>,
        visitor_state: &VisitorThreadState,
        pin: Option<CommentId>,
        mut families: Vec<CommentWithReplies>,
        per_page: usize,
    ) -> Result<Vec<CommentWithReplies>, Fault> {
        let Some(pin) = pin else { return Ok(families) };
        let place = families.iter().position(|family| family.parent.id == pin);
        let pinned = match place {
            Some(place) => Some(families.remove(place)),
            None => self.family(list, visitor_state, pin).await?,
        };
        families.splice(0..0, pinned);
        families.truncate(per_page);
        Ok(families)
    }

    /// The first ids of a partition's span, keys only.
    pub(super) async fn positions(
        &self,
        partition: String,
        span: Span,
        order: Order,
        limit: usize,
    ) -> Result<Vec<CommentId>, Fault> {
        let query = Query { index: Index::Time, partition, bounds: Some(span.numbers()), order, limit };
        Ok(self.query_all(query).await?.iter().filter_map(keys::comment_of).collect())
    }

    /// The replies of `parent`, oldest first, with the thread they are in. `embedded` is how many of a parent lead.
    pub async fn reply_page(
        &self,
        parent: &Comment,
        visitor: &Visitor,
        paging: &Paging,
        embedded: usize,
    ) -> Result<(Thread, VisitorThreadState, ReplyPage), Fault> {
        let known = self.thread_and_visitor_state(&parent.thread, visitor);
        let everyone = self.reply_run(parent, &[Scope::Everyone], &[], paging, embedded);
        let ((thread, visitor_state), mut page) = try_join(known, everyone).await?;
        if visitor_state.hidden_replies > 0 {
            let own = keys::replies(parent.id, Scope::Own(visitor));
            let own = self.positions(own, Span::ALL, Order::OldestFirst, crate::domain::list::MAX_DEPTH).await?;
            if !own.is_empty() {
                page = self.reply_run(parent, &scopes(visitor, &visitor_state), &own, paging, embedded).await?;
            }
        }
        Ok((thread, visitor_state, page))
    }

    /// `own` are the ids of the visitor's unapproved replies, when `scopes` has them.
    async fn reply_run(
        &self,
        parent: &Comment,
        scopes: &[Scope<'_>],
        own: &[CommentId],
        paging: &Paging,
        embedded: usize,
    ) -> Result<ReplyPage, Fault> {
        let total = parent.replies + own.len() as u64;
        let per_page = paging.per_page;
        let (span, order) = match paging.place {
            Place::Page(1) | Place::Cursor(None) => (Span::ALL, Order::OldestFirst),
            Place::Page(page) => {
                let offset = (page - 1) * per_page;
                let everyone = keys::replies(parent.id, Scope::Everyone);
                let everyone = self.positions(everyone, Span::ALL, Order::OldestFirst, offset + 1).await?;
                let Some(start) = merge(everyone, own.to_vec(), Order::OldestFirst).into_iter().nth(offset) else {
                    return Ok(ReplyPage { replies: Vec::new(), total, cursors: PageCursors::default() });
                };
                (Span::from(start), Order::OldestFirst)
            }
            Place::Cursor(Some(Cursor { direction: Direction::Next, edge, .. })) => {
                (Span::above(edge), Order::OldestFirst)
            }
            Place::Cursor(Some(Cursor { direction: Direction::Previous, edge, .. })) => {
                (Span::below(edge), Order::NewestFirst)
            }
        };
        let limit = match paging.place {
            Place::Page(_) => per_page,
            // One more, to know whether the walk goes on.
            Place::Cursor(_) => per_page + 1,
        };
        let mut replies = self.replies(parent, scopes, span, order, limit, embedded).await?;
        let more = replies.len() > per_page;
        replies.truncate(per_page);
        if order.is_descending() {
            replies.reverse();
        }
        let cursors = match paging.place {
            Place::Page(_) => PageCursors::default(),
            Place::Cursor(at) => {
                let cursor = |direction, reply: Option<&Comment>| {
                    let edge = reply
                        .map(|reply| reply.id)
                        .or(at.map(|cursor| beyond(cursor, direction, Order::OldestFirst)))?;
                    Some(Cursor { direction, edge, pin: None })
                };
                let next = if order.is_descending() || more { cursor(Direction::Next, replies.last()) } else { None };
                let begins = at.is_none() || (order.is_descending() && !more);
                let previous = if begins { None } else { cursor(Direction::Previous, replies.first()) };
                PageCursors { next, previous }
            }
        };
        Ok(ReplyPage { replies, total, cursors })
    }

    /// The replies of all scopes, merged by id.
    async fn replies(
        &self,
        parent: &Comment,
        scopes: &[Scope<'_>],
        span: Span,
        order: Order,
        limit: usize,
        embedded: usize,
    ) -> Result<Vec<Comment>, Fault> {
        let all = scopes.iter().map(|scope| self.replies_of(parent, *scope, span, order, limit, embedded));
        let mut replies: Vec<Comment> = try_join_all(all).await?.into_iter().flatten().collect();
        replies.sort_unstable_by_key(|reply| reply.id);
        replies.dedup_by_key(|reply| reply.id);
        if order.is_descending() {
            replies.reverse();
        }
        replies.truncate(limit);
        Ok(replies)
    }

    /// Leading and trailing replies of one scope, in any order.
    async fn replies_of(
        &self,
        parent: &Comment,
        scope: Scope<'_>,
        span: Span,
        order: Order,
        limit: usize,
        embedded: usize,
    ) -> Result<Vec<Comment>, Fault> {
        // Which of everyone's lead is known, and that they come first.
        let (inline_count, rest) = match scope {
            Scope::Everyone => {
                let inline_count = parent.inline.range(span.low..=span.high).count();
                let rest = if order.is_descending() { limit } else { limit.saturating_sub(inline_count) };
                (inline_count, if parent.has_separate { rest } else { 0 })
            }
            Scope::Own(_) => (if parent.is_top_level() { limit } else { 0 }, limit),
        };
        let everyone = scope == Scope::Everyone;
        if !(everyone && moves_up(parent, embedded)) {
            let inline = self.inline(parent, scope, span, order, inline_count.min(limit));
            let separate = self.separate(parent.id, scope, span, order, rest);
            let (mut replies, separate) = try_join(inline, separate).await?;
            let gone = replies.len() < inline_count.min(limit);
            replies.extend(separate);
            if !(everyone && gone) {
                return Ok(replies);
            }
        }
        // In this order none slips through that moves up meanwhile.
        let mut replies = self.separate(parent.id, scope, span, order, limit).await?;
        replies.extend(self.inline(parent, scope, span, order, limit).await?);
        Ok(replies)
    }

    /// Replies beside the parent.
    async fn inline(
        &self,
        parent: &Comment,
        scope: Scope<'_>,
        span: Span,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Comment>, Fault> {
        let partition = keys::parents(&parent.thread, scope);
        let bounds = Some(span.inline(parent.id));
        self.comments(Query { index: Index::Thread, partition, bounds, order, limit }).await
    }

    /// Replies in the parent's own partition.
    pub(super) async fn separate(
        &self,
        parent: CommentId,
        scope: Scope<'_>,
        span: Span,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Comment>, Fault> {
        let partition = keys::replies(parent, scope);
        self.comments(Query { index: Index::Thread, partition, bounds: Some(span.texts()), order, limit }).await
    }

    async fn comments(&self, query: Query) -> Result<Vec<Comment>, Fault> {
        self.query_all(query).await?.into_iter().map(read).collect()
    }
}

/// Whether a reply that trails is about to lead.
fn moves_up(parent: &Comment, embedded: usize) -> bool {
    let inline_count = embedded.min(usize::try_from(parent.replies).unwrap_or(usize::MAX));
    parent.is_top_level() && parent.has_separate && parent.inline.len() < inline_count
}

/// The edge of a page that holds nothing: turning round, the comment at the old edge is met again.
pub(super) fn beyond(cursor: Cursor, direction: Direction, order: Order) -> CommentId {
    let CommentId(edge) = cursor.edge;
    match (direction == cursor.direction, order.is_descending() == (direction == Direction::Next)) {
        (true, _) => cursor.edge,
        (false, true) => CommentId(edge.saturating_add(1)),
        (false, false) => CommentId(edge.saturating_sub(1)),
    }
}

fn merge(everyone: Vec<CommentId>, own: Vec<CommentId>, order: Order) -> Vec<CommentId> {
    let mut all = everyone;
    all.extend(own);
    all.sort_unstable();
    all.dedup();
    if order.is_descending() {
        all.reverse();
    }
    all
}
