//! Recounts the table. All derived data (counts, ranks, index keys, queues, the directory of names) must match the data
//! that it's derived from. Each difference is a finding, with the transaction that repairs it, if a repair is known.
//!
//! Invariants:
//!
//! - The counts of a comment's likes and approved replies, and of a thread's approved top-level comments, equal the
//!   numbers of items. Likes imported without voters are added.
//! - A thread has an item for each comment that everyone may see, except placeholders. Its count is the number of these
//!   items.
//! - The sorts `most_liked` and `most_replied` read ranks: count × 10^16 + id, so that ties are in order of ids.
//!   `reactions.rs` and `placement.rs` of the store change a rank with its count.
//! - Every inline reply of a comment is older than every separate one, however far an index lags.
//! - An unapproved comment is only in its writer's partitions, an approved one only in everyone's.
//! - A comment is in exactly the moderation queues that follow from its state.
//! - A placeholder of a deleted comment is approved and keeps its place and its replies. It has no writer, text, likes
//!   or reports. It doesn't count, but replies to it do. Every placeholder has a reply, although all its replies may be
//!   rejected. That results only from rejections, never from a deletion: see `deletion.rs` of the store. Only an
//!   unfinished import leaves placeholders whose replies it hasn't written yet.
//! - A comment is imported once: no two have the same source, and the item of the source names the comment. When the
//!   comment is deleted, that item is its tombstone.
//! - A report whose reporter was erased is in no visitor's state.
//! - A comment has excerpts of its newest three reports. A decision covers the reports that the comment counted when
//!   the decision was stored, and no later one, regardless of clocks.
//! - The list of bans has every user and network with a ban until the ban ends, and no others.
//! - A thread with an approved top-level comment stores the time of the first one that everyone could see.
//! - A thread has at most one pin, on an approved top-level comment.
//! - A user is found only by the current name.
//!
//! Conditions in transactions maintain these invariants, never a read followed by a write. An entry in the moderators'
//! log is likewise written in the transaction that it describes.
//!
//! | file         | what |
//! |--------------|------|
//! | `snapshot`   | the whole table in memory, by kind of item; add a new kind here first |
//! | `comments`   | counts, ranks and index keys; comments below a deleted one; placeholders without replies |
//! | `threads`    | counts and pins of threads |
//! | `counted`    | items for the comments that count in their thread, and each thread's count of them |
//! | `imports`    | sources of imported comments, and tombstones |
//! | `visitors`   | visitors' likes, reports and counts of unapproved comments |
//! | `dependents` | items in the partition of a comment, which are removed with it or when it becomes a placeholder |
//! | `queues`     | moderation queues |
//! | `directory`  | handles and name fragments |
//! | `bans`       | the list of bans |
//! | `trust`      | comments that count as approved, while comments of new writers are held |
//! | `addresses`  | hashes of email addresses, while Gravatars aren't shown |
//! | `repair`     | writes that succeed only if the table is unchanged since it was read |

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

/// An inconsistency in the table.
#[derive(Clone, Debug)]
pub struct Finding {
    text: String,
    /// A single transaction, which fails if the table has changed since it was read. Empty if there is no known repair.
    repair: Vec<Write>,
}

impl Finding {
    fn new(subject: impl fmt::Display, problem: impl fmt::Display, repair: Vec<Write>) -> Self {
        Self { text: format!("{subject}: {problem}"), repair }
    }

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

/// Scans the whole table and recounts it. While other processes write, a finding is certain only if a second check
/// repeats it.
pub async fn check(store: &Store, now: Timestamp) -> Result<Vec<Finding>, Fault> {
    let snapshot = snapshot(store).await?;
    if snapshot.importing.is_empty() && !snapshot.is_importing_native {
        let hidden = store.addresses().filter(|addresses| !addresses.has_gravatars());
        let mut findings = recount(&snapshot, now);
        findings.extend(hidden.map(|addresses| addresses::check(&snapshot, addresses)).unwrap_or_default());
        if store.asks_for_trust() {
            findings.extend(trust::check(&snapshot));
        }
        return Ok(findings);
    }
    // Imports write replies before their parents, and counts last. A check would mistake this for damage.
    let problem = "an import is unfinished; run the same import command again";
    let unfinished = |thread| Finding::new(format_args!("thread {thread}"), problem, Vec::new());
    let native = snapshot.is_importing_native.then(|| Finding::new("table", problem, Vec::new()));
    Ok(snapshot.importing.iter().map(unfinished).chain(native).collect())
}

/// Checks a table with interrupted imports, in order to abandon them. Returns their threads, and findings whose repairs
/// make the table consistent.
pub async fn check_unfinished(store: &Store, now: Timestamp) -> Result<(Vec<ThreadId>, Vec<Finding>), Fault> {
    let snapshot = snapshot(store).await?;
    let findings = recount(&snapshot, now);
    Ok((snapshot.importing, findings))
}

async fn snapshot(store: &Store) -> Result<Snapshot, Fault> {
    let mut snapshot = Snapshot::default();
    for_each_item(store, |item| {
        snapshot.add(item);
        Ok::<_, Fault>(())
    })
    .await?;
    Ok(snapshot)
}

/// Repairs a finding. False if the table has changed since the check, or no repair is known.
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
