//! Parameters of list operations: the sort order, and a page or a cursor.

use crate::ids::CommentId;

pub const MAX_PER_PAGE: usize = 50;
/// The number of comments in a list that numbered pages can reach. Cursors have no such limit.
pub const MAX_NUMBERED: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Newest,
    Oldest,
    MostLiked,
    MostReplied,
}

impl Sort {
    pub const NAMES: [&str; 4] = ["newest", "oldest", "most_liked", "most_replied"];
    const ALL: [Self; 4] = [Self::Newest, Self::Oldest, Self::MostLiked, Self::MostReplied];

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::MostLiked => "most_liked",
            Self::MostReplied => "most_replied",
        }
    }

    #[must_use]
    pub fn is_ranked(self) -> bool {
        matches!(self, Self::MostLiked | Self::MostReplied)
    }
}

/// The order of a list by id, which is the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    NewestFirst,
    OldestFirst,
}

impl Order {
    #[must_use]
    pub fn is_descending(self) -> bool {
        self == Self::NewestFirst
    }

    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::NewestFirst => Self::OldestFirst,
            Self::OldestFirst => Self::NewestFirst,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Paging {
    pub per_page: usize,
    pub position: PagePosition,
}

#[derive(Clone, Copy, Debug)]
pub enum PagePosition {
    /// A page number, starting at 1.
    Page(usize),
    /// `None` for the first page.
    Cursor(Option<Cursor>),
}

/// The position where a walk through a list continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub direction: Direction,
    /// The page begins after this comment, in the direction of the walk.
    pub edge: CommentId,
    /// The comment that was pinned when the walk began.
    pub pin: Option<CommentId>,
}

/// The position where a walk through all replies below a comment continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCursor {
    pub direction: Direction,
    /// The ids on the path from the comment, which is left out, to the reply that precedes the page in the direction of the
    /// walk.
    pub path: Vec<CommentId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Next,
    Previous,
}
