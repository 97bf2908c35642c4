//! Pages of everything below a comment, in reading order: each comment directly before its own replies, siblings oldest first.
//!
//! The walk descends and ascends the tree, with one level for each comment whose replies it is reading. A cursor is the path
//! from below the root to the comment at the edge of the page, so that the walk can continue there even if that comment is
//! gone.

use std::collections::VecDeque;

use super::replies::Replies;
use super::walk::Window;
use crate::domain::comment::Comment;
use crate::domain::ids::CommentId;
use crate::domain::list::{Direction, Order, PathCursor};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::viewer::Owners;
use crate::error::Fault;
use crate::store::keys::{self, Scope};
use crate::store::{Reading, Store, read};

/// Maximum comments that one page reads, including those on the path to its cursor.
const MAX_READ: usize = 200;
/// Siblings read at once. Few enough to leave room for comments at every level of the tree.
const SIBLINGS: usize = 16;

/// A page of all replies below a comment, direct and indirect ones.
#[derive(Debug)]
pub struct BranchPage {
    pub thread: Thread,
    pub visitor_state: VisitorThreadState,
    pub replies: Vec<Comment>,
    pub next: Option<PathCursor>,
    pub previous: Option<PathCursor>,
}

/// A comment whose replies the walk is reading.
struct Level {
    parent: Comment,
    /// The window of the next siblings.
    window: Window,
    siblings: VecDeque<Comment>,
    /// Whether `siblings` are the last ones.
    is_complete: bool,
}

impl Level {
    fn new(parent: Comment, window: Window) -> Self {
        Self { parent, window, siblings: VecDeque::new(), is_complete: false }
    }
}

/// A walk through the replies below a comment, in one direction.
struct BranchWalk<'a> {
    store: &'a Store,
    owners: &'a Owners,
    order: Order,
    /// The innermost level is last. The first level belongs to the branch's root.
    levels: Vec<Level>,
    /// The number of comments that may still be read.
    room: usize,
    /// The number of the visitor's own unapproved replies in the thread that the walk hasn't reached yet.
    hidden: u64,
    met: Vec<Comment>,
}

impl Store {
    /// A page of `comments.replies` with `deep=1`.
    pub async fn branch_page(
        &self,
        root: &Comment,
        owners: &Owners,
        cursor: Option<&PathCursor>,
        per_page: usize,
    ) -> Result<BranchPage, Fault> {
        let (thread, mut visitor_state) = self.thread_and_visitor_state(&root.thread, owners).await?;
        let direction = cursor.map_or(Direction::Next, |cursor| cursor.direction);
        let order = if direction == Direction::Next { Order::OldestFirst } else { Order::NewestFirst };
        let hidden = visitor_state.hidden_replies;
        let (levels, room) = (Vec::new(), MAX_READ);
        let mut walk = BranchWalk { store: self, owners, order, levels, room, hidden, met: Vec::new() };
        walk.start(root, cursor.map_or(&[], |cursor| &cursor.path)).await?;
        let more = walk.run(per_page).await?;
        let mut replies = walk.met;
        if direction == Direction::Previous {
            replies.reverse();
        }
        let parents = replies.iter().filter_map(Comment::parent);
        self.complete_visitor_state(&mut visitor_state, &owners.reactions, &root.thread, parents).await?;
        let beside = |direction, edge: Option<&Comment>| {
            let path = edge.map(|edge| path(root, edge)).or_else(|| turned(cursor?, direction))?;
            Some(PathCursor { direction, path })
        };
        let came_from = |side| cursor.is_some() && direction != side;
        let next = (more && direction == Direction::Next) || came_from(Direction::Next);
        let previous = (more && direction == Direction::Previous) || came_from(Direction::Previous);
        Ok(BranchPage {
            thread,
            visitor_state,
            next: next.then(|| beside(Direction::Next, replies.last())).flatten(),
            previous: previous.then(|| beside(Direction::Previous, replies.first())).flatten(),
            replies,
        })
    }
}

impl BranchWalk<'_> {
    /// Opens the levels on the path of the cursor.
    async fn start(&mut self, root: &Comment, path: &[CommentId]) -> Result<(), Fault> {
        let keys = path.iter().copied().map(keys::comment).collect();
        let mut found = self.store.batch_get(keys, Reading::Eventual).await?;
        self.room -= path.len();
        let mut parent = root.clone();
        for id in path {
            self.levels.push(Level::new(parent, Window::beyond(*id, self.order, SIBLINGS)));
            let row: Option<Comment> = found.remove(&keys::comment(*id)).map(read).transpose()?;
            // Replies below a comment that is gone or hidden are gone or hidden too.
            let Some(row) = row.filter(|row| row.is_approved() || row.is_by(&self.owners.comments)) else {
                return Ok(());
            };
            parent = row;
        }
        // Replies below the edge come after it, so a walk back doesn't include them.
        if self.order == Order::OldestFirst || path.is_empty() {
            self.descend(parent);
        }
        Ok(())
    }

    /// Continues with the replies of `parent`, if it may have any. Otherwise returns `parent`.
    fn descend(&mut self, parent: Comment) -> Option<Comment> {
        if parent.replies == 0 && self.hidden == 0 {
            return Some(parent);
        }
        self.levels.push(Level::new(parent, Window::first(self.order, SIBLINGS)));
        None
    }

    /// Continues the walk until it has reached `count` comments. Returns whether the list may continue.
    async fn run(&mut self, count: usize) -> Result<bool, Fault> {
        while let Some(level) = self.levels.last_mut() {
            if let Some(comment) = level.siblings.pop_front() {
                let is_forward = self.order == Order::OldestFirst;
                if is_forward && self.met.len() == count {
                    return Ok(true);
                }
                if is_forward {
                    self.met.push(comment.clone());
                    self.descend(comment);
                } else if let Some(leaf) = self.descend(comment)
                    && !self.meet(leaf, count)
                {
                    return Ok(true);
                }
            } else if !level.is_complete {
                if self.room == 0 {
                    return Ok(true);
                }
                self.read_siblings().await?;
            } else if let Some(Level { parent, .. }) = self.levels.pop()
                && self.order == Order::NewestFirst
                && !self.levels.is_empty()
                && !self.meet(parent, count)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the comment to the page, unless the page already has `count` comments. Returns whether it was added.
    fn meet(&mut self, comment: Comment, count: usize) -> bool {
        let has_room = self.met.len() < count;
        if has_room {
            self.met.push(comment);
        }
        has_room
    }

    async fn read_siblings(&mut self) -> Result<(), Fault> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let everyone = (level.parent.replies > 0).then_some(Scope::Everyone);
        let own = (self.hidden > 0).then_some(Scope::Own(&self.owners.comments));
        let scopes: Vec<Scope<'_>> = everyone.into_iter().chain(own).collect();
        let window = Window { limit: SIBLINGS.min(self.room), ..level.window };
        let list = Replies { parent: &level.parent, scopes: &scopes, own: &[] };
        let siblings = self.store.replies(list, window).await?;
        self.room -= siblings.len();
        self.hidden -= self.hidden.min(siblings.iter().filter(|reply| !reply.is_approved()).count() as u64);
        level.is_complete = siblings.len() < window.limit;
        if let Some(last) = siblings.last() {
            level.window = Window::beyond(last.id, self.order, SIBLINGS);
        }
        level.siblings = siblings.into();
        Ok(())
    }
}

/// The ids from below `root` down to `edge`.
fn path(root: &Comment, edge: &Comment) -> Vec<CommentId> {
    let above = edge.ancestors.iter().skip(root.ancestors.len() + 1);
    above.copied().chain([edge.id]).collect()
}

/// The cursor path for an empty page. For the other direction, the last id is shifted by one, so that paging back
/// includes the comment at the page's edge again.
fn turned(cursor: &PathCursor, direction: Direction) -> Option<Vec<CommentId>> {
    let mut path = cursor.path.clone();
    if direction != cursor.direction {
        let edge = path.last_mut()?;
        edge.0 = if direction == Direction::Next { edge.0.saturating_sub(1) } else { edge.0.saturating_add(1) };
    }
    Some(path)
}
