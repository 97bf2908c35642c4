//! Jobs: work on many items, which the function `jobs` does in bounded parts.

use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::ids::{CommentId, ThreadId, UserId};
use crate::log::LogEntry;
use crate::time::{Timestamp, stored};
use crate::user::User;

/// A message of the queue `Jobs`. It may be delivered late or more than once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Removes all replies to a deleted comment, and the comment's other items.
    CleanUp(CleanUp),
    /// Removes the reports of a comment that has become a placeholder, and the counters that limit guests' likes and
    /// reports.
    ForgetReactions(ForgetReactions),
    /// Counts all replies below a comment that was shown, or stops counting them below one that was hidden.
    CountBelow(CountBelow),
    /// Writes a user's current name and picture into the user's comments.
    Rename(Rename),
    /// Rejects the recent comments of a banned writer.
    RejectRecent(RejectRecent),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanUp {
    pub comment: CommentId,
    /// The number of counted replies that haven't been removed yet. The index may not list all of them yet.
    pub replies: u64,
    #[serde(serialize_with = "stored::time")]
    pub deleted_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetReactions {
    pub comment: CommentId,
}

/// Maximum [`CountBelow::incomplete`] comments. The job is postponed when it reaches this number, because the size of a
/// queue message is limited.
pub const MAX_INCOMPLETE: usize = 1_000;

/// The progress of [`Job::CountBelow`], which counts depth first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountBelow {
    pub thread: ThreadId,
    /// Comments with replies still to count. The next comment is last. At most 25 per level, plus those that were incomplete.
    pub walks: Vec<CountReplies>,
    /// Comments that have more replies than the index listed. At most [`MAX_INCOMPLETE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<CommentId>,
    /// Whether the comment, and so everything below it, is shown for the first time.
    #[serde(default)]
    pub is_first: bool,
    /// When the comment was hidden or shown.
    #[serde(serialize_with = "stored::time")]
    pub changed_at: Timestamp,
}

/// The progress of counting the replies to one comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountReplies {
    pub comment: CommentId,
    /// The last reply counted so far, in order from the oldest to the newest; `None` at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<CommentId>,
    /// The number of replies counted so far.
    #[serde(default)]
    pub seen: u64,
}

impl CountReplies {
    #[must_use]
    pub fn of(comment: CommentId) -> Self {
        Self { comment, after: None, seen: 0 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    pub user: UserId,
    /// When the user's name or picture changed. A later change starts a separate job and ends this one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
    pub renamed_at: Option<Timestamp>,
    /// The last comment renamed so far, in order from the newest to the oldest; `None` at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CommentId>,
    /// Whether this is the second pass, over comments written around the time of the change.
    #[serde(default)]
    pub again: bool,
}

impl Rename {
    #[must_use]
    pub fn to(user: &User) -> Self {
        Self { user: user.id, renamed_at: user.renamed_at, before: None, again: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectRecent {
    pub author: Author,
    /// The moderator who banned the author and rejects the comments.
    pub moderator: UserId,
    pub name: String,
    /// The id of the ban, which is also the id of its log entry. Decisions with a later log entry are kept.
    pub ban: u64,
    /// The last comment visited so far, in order from the newest to the oldest; `None` at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CommentId>,
    #[serde(default)]
    pub seen: usize,
    #[serde(default)]
    pub rejected: usize,
    /// Whether this is the second pass, over comments written around the time of the ban.
    #[serde(default)]
    pub again: bool,
}

impl RejectRecent {
    /// The job for a ban's log entry; `None` if the ban rejects no comments.
    #[must_use]
    pub fn of(entry: &LogEntry) -> Option<Self> {
        Some(Self {
            author: entry.rejects.clone()?,
            moderator: entry.moderator?,
            name: entry.name.clone(),
            ban: entry.id,
            before: None,
            seen: 0,
            rejected: 0,
            again: false,
        })
    }

    #[must_use]
    pub fn banned_at(&self) -> Timestamp {
        CommentId(self.ban).created_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_its_way_through_the_queue() {
        let (comment, other, time) = (CommentId(12), CommentId(13), Timestamp(1_767_323_045_678));
        let walks = vec![CountReplies::of(comment), CountReplies { comment: other, after: Some(comment), seen: 3 }];
        let thread = ThreadId::new("posts", "1").unwrap();
        let user = User { renamed_at: Some(Timestamp::from_seconds(1_767_323_045)), ..User::named("Ada") };
        let rename = Rename { before: Some(comment), again: true, ..Rename::to(&user) };
        let jobs = [
            Job::CleanUp(CleanUp { comment, replies: 2, deleted_at: time }),
            Job::ForgetReactions(ForgetReactions { comment }),
            Job::CountBelow(CountBelow { thread, walks, incomplete: vec![other], is_first: true, changed_at: time }),
            Job::Rename(rename),
            Job::RejectRecent(RejectRecent {
                author: Author::Network("hash".to_owned()),
                moderator: UserId(1),
                name: "Mod".to_owned(),
                ban: 15,
                before: Some(comment),
                seen: 3,
                rejected: 2,
                again: true,
            }),
        ];
        for job in jobs {
            let message = serde_json::to_string(&job).unwrap();
            assert_eq!(serde_json::from_str::<Job>(&message).unwrap(), job, "{message}");
        }
    }
}
