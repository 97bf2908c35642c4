//! The fate of a comment, and why. In the staging file each value is its name.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

use crate::import::record::RecordState;

/// The fate of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    New,
    /// Deleted or skipped, but with replies that stay.
    Placeholder,
    AlreadyThere,
    Skipped,
    Refused,
}

impl Fate {
    const ALL: [Self; 5] = [Self::New, Self::Placeholder, Self::AlreadyThere, Self::Skipped, Self::Refused];

    fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Placeholder => "placeholder",
            Self::AlreadyThere => "there",
            Self::Skipped => "skipped",
            Self::Refused => "refused",
        }
    }
}

/// Why a comment is skipped or refused, by a decision in Rust. Reports show the name. `resolve` decides for other reasons in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Reason {
    Deleted,
    /// The page has no thread.
    Thread,
    /// The page is on another host.
    Host,
    Size,
    Likes,
    Time,
    /// Another site has the id.
    Site,
    /// Another comment has the id.
    Taken,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Thread => "thread",
            Self::Host => "host",
            Self::Size => "size",
            Self::Likes => "likes",
            Self::Time => "time",
            Self::Site => "site",
            Self::Taken => "taken",
        }
    }
}

impl RecordState {
    const ALL: [Self; 8] = [
        Self::Approved,
        Self::Pending,
        Self::Rejected,
        Self::Deleted,
        Self::Spam,
        Self::Trash,
        Self::Pingback,
        Self::Other,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Pending => "pending",
            Self::Rejected => "rejected",
            Self::Deleted => "deleted",
            Self::Spam => "spam",
            Self::Trash => "trash",
            Self::Pingback => "pingback",
            Self::Other => "other",
        }
    }
}

macro_rules! written_by_name {
    ($($value:ty)*) => {$(
        impl ToSql for $value {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.name().into())
            }
        }
    )*};
}

macro_rules! read_by_name {
    ($($value:ty)*) => {$(
        impl FromSql for $value {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let name = value.as_str()?;
                Self::ALL.into_iter().find(|value| value.name() == name).ok_or(FromSqlError::InvalidType)
            }
        }
    )*};
}

written_by_name!(Fate Reason RecordState);
read_by_name!(Fate RecordState);
