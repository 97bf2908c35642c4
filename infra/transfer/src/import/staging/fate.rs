//! The fate of a comment, and the reason.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::import) enum Fate {
    #[default]
    New,
    AlreadyThere,
    Skipped(Reason),
    Refused(Reason),
}

impl Fate {
    /// Whether the comment is in the table after the import.
    pub(in crate::import) fn stays(self) -> bool {
        matches!(self, Self::New | Self::AlreadyThere)
    }
}

/// Why a comment is skipped or refused. Reports show the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Reason {
    Deleted,
    Spam,
    Trash,
    Pingback,
    /// The record isn't a reader's comment.
    Type,
    /// The page has no thread.
    Thread,
    /// The page is on another host.
    Host,
    Size,
    Likes,
    Time,
    /// Nothing of the body is visible.
    Empty,
    /// A comment of another site has the id.
    Site,
    /// Another comment has the id or the source.
    Taken,
}

impl Reason {
    pub(in crate::import) fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Spam => "spam",
            Self::Trash => "trash",
            Self::Pingback => "pingback",
            Self::Type => "type",
            Self::Thread => "thread",
            Self::Host => "host",
            Self::Size => "size",
            Self::Likes => "likes",
            Self::Time => "time",
            Self::Empty => "empty",
            Self::Site => "site",
            Self::Taken => "taken",
        }
    }
}

/// Why a comment's parent differs from the source's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The parent is missing or refused, or the parents form a cycle.
    Parent,
    /// The parent is in another thread.
    Thread,
    Depth,
}

impl Move {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Parent => "parent",
            Self::Thread => "thread",
            Self::Depth => "depth",
        }
    }
}
