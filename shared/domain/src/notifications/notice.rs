//! Notices: the comments and rejections that emails report. The sets of a schedule store notices as numbers.

use crate::ids::CommentId;

/// The bit that marks a rejection. Comment ids are below it.
const REJECTION: u64 = 1 << 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A comment that concerns the recipient.
    Comment(CommentId),
    /// The rejection of a comment, for its writer.
    Rejection(CommentId),
}

impl Notice {
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::Comment(id) => id.0,
            Self::Rejection(id) => id.0 | REJECTION,
        }
    }

    #[must_use]
    pub fn of_number(number: u64) -> Self {
        let id = CommentId(number & !REJECTION);
        if number == id.0 { Self::Comment(id) } else { Self::Rejection(id) }
    }

    #[must_use]
    pub fn comment(self) -> CommentId {
        match self {
            Self::Comment(id) | Self::Rejection(id) => id,
        }
    }
}

impl From<CommentId> for Notice {
    fn from(id: CommentId) -> Self {
        Self::Comment(id)
    }
}
