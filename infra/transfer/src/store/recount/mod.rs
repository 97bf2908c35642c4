//! Recounts the table. Whatever is stored twice (counts, ranks, index keys, queues, the directory of names) must follow
//! from what is stored once. Each difference is a finding, with the transaction that repairs it.
//!
//! What must always hold:
//!
//! - A comment's likes and replies, and a thread's top-level comments, are as many as the items say. Likes that were
//!   imported without voters are added.
//! - The count of a thread is the number of its items of counted comments, and these are the comments that everyone may see.
//! - The sorts `most_liked` and `most_replied` read ranks: count × 10^16 + id, so that ties fall by id.
//!   `reactions.rs` and `placement.rs` of the store change a rank with its count.
//! - Every inline reply of a comment is older than every separate one, however far an index lags.
//! - An unapproved comment is only in its writer's partitions, an approved one only in everyone's.
//! - A comment is in exactly the moderation queues that follow from its state.
//! - A placeholder of a deleted comment is approved and keeps its place and its replies. It has no writer, text, likes or
//!   reports. It does not count, but replies to it do. Every placeholder has a reply. One without a live reply, which is a
//!   reply that is not rejected, is left by a rejection, never by a deletion: `deletion.rs` of the store.
//! - A comment is imported once: no two have the same source, and the item of the source names the comment. When the comment
//!   is deleted, that item is its tombstone.
//! - A report whose reporter was forgotten is in no visitor's state.
//! - A comment keeps excerpts of its newest three reports. A decision covers the reports that the comment counted when it
//!   was stored, and no later one, whatever clocks say.
//! - A user or network with a ban is in the list of bans until the ban ends, and no other is.
//! - A thread with an approved top-level comment knows when the first one that everyone saw was written.
//! - A thread has at most one pin, on an approved top-level comment.
//! - A user is found by the present name only.
//!
//! These hold by conditions in transactions, never by reading first and writing later. So does the moderators' log: an
//! entry is written in the transaction that it describes.
//!
//! | file         | what |
//! |--------------|------|
//! | `snapshot`   | the whole table in memory by kind of item; a new kind gets its place here first |
//! | `comments`   | counts, ranks and index keys of comments, comments below a deleted one, and placeholders without replies |
//! | `threads`    | counts and pins of threads |
//! | `counted`    | comments that count in their thread, and how many |
//! | `imports`    | sources of imported comments, and tombstones |
//! | `visitors`   | visitors' likes, reports and counts of unapproved comments |
//! | `dependents` | items in the partition of a comment, which go when it goes or becomes a placeholder |
//! | `queues`     | moderation queues |
//! | `directory`  | handles and name fragments |
//! | `bans`       | the list of bans |
//! | `trust`      | comments that count as approved, where those of new writers wait |
//! | `addresses`  | hashes of addresses, where no Gravatars are shown |
//! | `repair`     | writes that hold only while what was read is unchanged |

mod addresses;
mod bans;
mod comments;
mod counted;
mod dependents;
mod directory;
mod imports;
mod queues;
mod repair;
mod snapshot;
mod threads;
pub mod trust;
mod visitors;

use std::fmt;

use shared::domain::ids::{CommentId, ThreadId};
use shared::domain::time::Timestamp;
use shared::error::Fault;
use shared::store::Store;
use shared::store::transaction::{Outcome, Write};

use self::snapshot::Snapshot;
use crate::store::for_each_item;

/// Something in the table that does not follow from the rest of it.
#[derive(Clone, Debug)]
pub struct Finding {
    text: String,
    /// One transaction, which fails when what was read has changed. Empty when there is no known repair.
    repair: Vec<Write>,
}

impl Finding {
    fn new(subject: impl fmt::Display, problem: impl fmt::Display, repair: Vec<Write>) -> Self {
        Self { text: format!("{subject}: {problem}"), repair }
    }

    /// Whether [`repair`] can correct it.
    #[must_use]
    pub fn has_repair(&self) -> bool {
        !self.repair.is_empty()
    }

    fn of_comment(id: CommentId, problem: impl fmt::Display, repair: Vec<Write>) -> Self {
        Self::new(format_args!("comment {id}"), problem, repair)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Scans the whole table and recounts it. While others write, only a finding that a second check repeats is
/// certain.
pub async fn check(store: &Store, now: Timestamp) -> Result<Vec<Finding>, Fault> {
    let snapshot = snapshot(store).await?;
    if snapshot.importing.is_empty() {
        let hidden = store.addresses().filter(|addresses| !addresses.has_gravatars());
        let mut findings = recount(&snapshot, now);
        findings.extend(hidden.map(|addresses| addresses::check(&snapshot, addresses)).unwrap_or_default());
        if store.asks_for_trust() {
            findings.extend(trust::check(&snapshot));
        }
        return Ok(findings);
    }
    // Replies are written before their parents, and counts last. A repair would take them for damage.
    let problem = "an import is not finished; the same command finishes it";
    let unfinished = |thread| Finding::new(format_args!("thread {thread}"), problem, Vec::new());
    Ok(snapshot.importing.iter().map(unfinished).collect())
}

/// Checks the remains of imports that ended early, in order to abandon these imports. The repair of each finding puts it in
/// order. Returns their threads too.
pub async fn check_unfinished(store: &Store, now: Timestamp) -> Result<(Vec<ThreadId>, Vec<Finding>), Fault> {
    let snapshot = snapshot(store).await?;
    let findings = recount(&snapshot, now);
    Ok((snapshot.importing, findings))
}

async fn snapshot(store: &Store) -> Result<Snapshot, Fault> {
    let mut snapshot = Snapshot::default();
    for_each_item(store, |item| snapshot.add(item)).await?;
    Ok(snapshot)
}

/// False when the table has changed since the check, or no repair is known.
pub async fn repair(store: &Store, finding: &Finding) -> Result<bool, Fault> {
    if finding.repair.is_empty() {
        return Ok(false);
    }
    Ok(store.transact(finding.repair.clone()).await? == Outcome::Done)
}

fn recount(snapshot: &Snapshot, now: Timestamp) -> Vec<Finding> {
    let unreadable = snapshot.unreadable.iter();
    let mut findings: Vec<Finding> = unreadable
        .map(|key| Finding::new(format_args!("{} {}", key.pk, key.sk), "cannot be read", Vec::new()))
        .collect();
    let orphans = snapshot.orphans();
    findings.extend(comments::check_orphans(snapshot, &orphans));
    findings.extend(comments::check_empty(snapshot, &orphans));
    findings.extend(comments::check(snapshot, &orphans));
    findings.extend(threads::check(snapshot));
    findings.extend(counted::check(snapshot));
    findings.extend(imports::check(snapshot));
    findings.extend(visitors::check_entries(snapshot));
    findings.extend(visitors::check_hidden_counts(snapshot));
    findings.extend(dependents::check(snapshot));
    findings.extend(queues::check(snapshot, &orphans));
    findings.extend(directory::check(snapshot));
    findings.extend(bans::check(snapshot, now));
    findings
}
