//! Pages of a thread, and of the replies to a comment. Each page merges two scopes: the comments that everyone sees, and the
//! visitor's own unapproved comments, if any.
//!
//! | file | reads |
//! |------|-------|
//! | `by_time` | pages of top-level comments by time, by number or by cursor |
//! | `by_rank` | pages of top-level comments by likes or replies |
//! | `parents` | a window of top-level comments with their inline and separate replies |
//! | `replies` | pages of the replies to one comment |
//! | `branch`  | pages of everything below one comment |
//! | `walk`    | nothing: the arithmetic of windows and cursors |

pub mod branch;
mod by_rank;
mod by_time;
mod parents;
mod replies;
pub mod walk;

use std::sync::atomic::{AtomicUsize, Ordering};

use self::walk::Window;
use super::comments::read_units;
use super::keys::{self, Scope};
use super::threads::ThreadForVisitor;
use super::{Index, Query, Reading, Store};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, Visitor};
use crate::domain::list::{Cursor, Order, Paging, Sort};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::user::User;
use crate::domain::viewer::Owners;
use crate::error::Fault;

/// Maximum read units of a thread's page. Even with the largest comments, a page stops reading replies once its budget is
/// spent.
const MAX_PAGE_UNITS: u32 = 700;

#[derive(Clone, Debug)]
pub struct CommentWithReplies {
    pub comment: Comment,
    pub replies: Vec<Comment>,
}

#[derive(Debug)]
pub struct ThreadPage {
    pub thread: Thread,
    pub visitor_state: VisitorThreadState,
    pub parents: Vec<CommentWithReplies>,
    pub cursors: PageCursors,
    /// The caller's item, see [`ThreadForVisitor`].
    pub user: Option<User>,
    pub count: Option<u64>,
}

impl ThreadPage {
    /// A page without cursors.
    fn new(known: ThreadForVisitor, parents: Vec<CommentWithReplies>) -> Self {
        let ThreadForVisitor { thread, visitor_state, user, count } = known;
        Self { thread, visitor_state, parents, cursors: PageCursors::default(), user, count }
    }
}

#[derive(Debug)]
pub struct ReplyPage {
    pub thread: Thread,
    pub visitor_state: VisitorThreadState,
    pub replies: Vec<Comment>,
    /// The number of replies that the visitor can see, on all pages.
    pub total: u64,
    pub cursors: PageCursors,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct PageCursors {
    pub next: Option<Cursor>,
    pub previous: Option<Cursor>,
}

/// Maximum bytes of text to read for one page. Once the budget is spent, the page omits embedded replies, and reads only
/// missing parents.
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
        self.read.fetch_add(comment.body.len(), Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        self.read.load(Ordering::Relaxed) > self.bytes
    }
}

/// A thread to list, and its viewer.
#[derive(Clone, Copy)]
pub struct List<'a> {
    pub thread: &'a ThreadId,
    pub owners: &'a Owners,
    /// Whether the pinned comment comes first.
    pub pins: bool,
    /// Whether to read the number of public comments.
    pub counted: bool,
    pub budget: &'a Budget,
}

impl List<'_> {
    fn pin(&self, thread: &Thread) -> Option<CommentId> {
        self.pins.then_some(thread.pin?.comment)
    }
}

impl Store {
    /// The maximum cost of a page of this many top-level comments, in read units.
    #[must_use]
    pub fn max_page_units(&self, per_page: usize) -> u32 {
        read_units(per_page * (1 + self.embedded), Reading::Eventual).min(MAX_PAGE_UNITS)
    }

    /// A page of `comments.index`. Lists sorted by rank have no cursors; a request with a cursor gets their first page.
    pub async fn thread_page(&self, list: List<'_>, sort: Sort, paging: &Paging) -> Result<ThreadPage, Fault> {
        let mut page = match sort {
            Sort::Newest => self.page_by_time(list, Order::NewestFirst, paging).await?,
            Sort::Oldest => self.page_by_time(list, Order::OldestFirst, paging).await?,
            Sort::MostLiked => self.page_by_rank(list, Index::Likes, paging).await?,
            Sort::MostReplied => self.page_by_rank(list, Index::Replied, paging).await?,
        };
        if list.budget.is_spent() {
            for parent in &mut page.parents {
                parent.replies.clear();
            }
        }
        let shown = page.parents.iter().map(|parent| parent.comment.id);
        self.complete_visitor_state(&mut page.visitor_state, &list.owners.reactions, list.thread, shown).await?;
        Ok(page)
    }

    async fn thread_of(&self, list: List<'_>) -> Result<ThreadForVisitor, Fault> {
        let user = list.owners.comments.user().map(keys::user);
        let count = list.counted.then(|| keys::count(list.thread));
        self.read_thread(list.thread, list.owners, user, count).await
    }

    /// The ids in a window of a partition in the index `time`. Cheap, because the index contains only keys.
    pub async fn positions(&self, partition: String, window: Window) -> Result<Vec<CommentId>, Fault> {
        let Window { span, order, limit } = window;
        let query = Query { index: Index::Time, partition, bounds: Some(span.numbers()), order, limit };
        Ok(self.query_all(query).await?.iter().filter_map(keys::comment_of).collect())
    }
}

fn scopes<'a>(visitor: &'a Visitor, visitor_state: &VisitorThreadState) -> Vec<Scope<'a>> {
    if visitor_state.has_hidden() { vec![Scope::Everyone, Scope::Own(visitor)] } else { vec![Scope::Everyone] }
}
