//! Data that only an export of a table contains: likes by voter, reports, guest counts, users with their bans,
//! tombstones, and some attributes of comments.

use std::collections::{BTreeMap, BTreeSet};

use shared::domain::comment::{Comment, HeldFor, State};
use shared::domain::ids::{CommentId, SourceId, UserId, Visitor};
use shared::domain::report::{Report, Resolution};
use shared::domain::time::Timestamp;
use shared::domain::trust::Trust;
use shared::domain::user::{Ban, User};
use shared::error::Fault;
use shared::store::Store;

use super::{Fate, Placed, Staging, Target};
use crate::import::author::{kept_avatar, kept_name};
use crate::import::record::{self, Record, own_source};
use crate::import::time::timestamp;
use crate::store::export::{GuestCount, StoredItem, for_each_stored};
use crate::store::import::Attached;
use crate::store::restore::{Entry, VisitorEntries, native_import};
use crate::store::sources::SourceRow;

/// An error that keeps a native file from being imported.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error(
        "the table already has comments; import a native file into an empty table, or repeat an interrupted import of the \
         same file"
    )]
    Occupied,
    #[error(
        "the import of another native file is unfinished; import that file again, or choose an empty data directory or table"
    )]
    Unfinished,
}

/// An export's users, likes, reports, guest counts and tombstones.
#[derive(Debug, Default)]
pub(super) struct Export {
    pub(super) accounts: BTreeMap<u64, record::User>,
    pub(super) likes: BTreeMap<u64, BTreeSet<Visitor>>,
    /// Reports by comment and id.
    pub(super) reports: BTreeMap<u64, BTreeMap<u64, record::Report>>,
    /// Counts by comment and network.
    bounds: BTreeMap<u64, BTreeMap<String, i64>>,
    tombstones: BTreeMap<String, record::Tombstone>,
}

impl Export {
    /// Adds a record. The first of several duplicates wins.
    pub(super) fn add(&mut self, record: Record) {
        match record {
            Record::User(user) => _ = self.accounts.entry(user.user_id.unwrap_or_default()).or_insert(user),
            Record::Like(like) => _ = self.likes.entry(like.comment).or_default().insert(Visitor(like.visitor)),
            Record::Report(report) => {
                self.reports.entry(report.comment).or_default().entry(report.id).or_insert(report);
            }
            Record::GuestBound(bound) => {
                self.bounds.entry(bound.comment).or_default().entry(bound.network).or_insert(bound.count);
            }
            Record::Tombstone(tombstone) => {
                self.tombstones.entry(tombstone.source.clone()).or_insert(tombstone);
            }
            Record::Head(_) | Record::Thread(_) | Record::Comment(_) | Record::Part(_) | Record::Missing(_) => {}
        }
    }
}

impl Staging {
    /// Fails if a native file was read and the table has other comments, apart from placeholders, or the unfinished
    /// import of another native file, unless the table's last native import is of the same file. Call this after
    /// [`locate`](Self::locate).
    pub async fn check_table(&self, store: &Store) -> Result<(), TableError> {
        let Some(file) = &self.native else { return Ok(()) };
        match native_import(store).await? {
            Some(began) if began.file == *file => return Ok(()),
            Some(began) if began.is_unfinished => return Err(TableError::Unfinished),
            _ => {}
        }
        for_each_stored(store, |item| match item {
            StoredItem::Comment(comment) if !comment.is_placeholder && !self.located.contains_key(&comment.id) => {
                Err(TableError::Occupied)
            }
            _ => Ok(()),
        })
        .await
    }

    /// Lets a native file be imported beside other comments. None of them may have the id of a comment in the file.
    pub fn accept_other_comments(&mut self) {
        self.native = None;
    }

    /// The reports and guest counts of a comment.
    pub(in crate::import) fn attached(&self, comment: CommentId) -> Attached {
        let reports = self.export.reports.get(&comment.0).into_iter().flat_map(BTreeMap::values);
        let bounds = self.export.bounds.get(&comment.0).into_iter().flatten();
        let bound = |(network, count): (&String, &i64)| GuestCount { comment, network: network.clone(), count: *count };
        Attached { reports: reports.cloned().map(report).collect(), bounds: bounds.map(bound).collect() }
    }

    pub(super) fn likes(&self, comment: CommentId) -> impl Iterator<Item = &Visitor> {
        self.export.likes.get(&comment.0).into_iter().flatten()
    }

    /// The ids of an exported comment's reports, with their reporters. An erased reporter is a hyphen and the report's
    /// id.
    pub(super) fn reporters(&self, comment: CommentId) -> impl Iterator<Item = (u64, &String)> {
        let reports = self.export.reports.get(&comment.0).into_iter().flat_map(BTreeMap::values);
        reports.map(|report| (report.id, &report.visitor))
    }

    pub(in crate::import) fn accounts(&self) -> Vec<User> {
        self.export.accounts.values().cloned().map(user).collect()
    }

    pub(in crate::import) fn tombstones(&self) -> Vec<(SourceId, SourceRow)> {
        let row = |record: &record::Tombstone| SourceRow::new(CommentId(record.id), true, record.provenance.clone());
        let all = self.export.tombstones.values();
        all.map(|tombstone| (SourceId(tombstone.source.clone()), row(tombstone))).collect()
    }

    /// Threads that the source describes, but that have no comments.
    pub(in crate::import) fn silent_threads(&self) -> impl Iterator<Item = &Target> {
        let with_comments: BTreeSet<usize> = self.places.iter().filter_map(|place| place.thread).collect();
        let all = self.threads.all.iter().enumerate();
        all.filter(move |(number, _)| !with_comments.contains(number)).map(|(_, target)| target)
    }

    /// Likes and reports of a thread's new comments, by visitor.
    pub(in crate::import) fn entries(&self, target: &Target) -> Vec<VisitorEntries> {
        let mut all: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
        for index in target.comments.iter().copied() {
            let (place, decision) = (&self.places[index], &self.decisions[index]);
            let is_exported = self.comments[index].record.id.is_some() && decision.placeholder.is_none();
            let Some(comment) = place.id.filter(|_| place.fate == Fate::New && is_exported) else { continue };
            let group = decision.parent.and_then(|parent| self.places[parent].id).unwrap_or(comment);
            let likes = self.likes(comment).map(|visitor| (visitor.0.as_str(), false));
            let reports = self.reporters(comment).map(|(_, visitor)| (visitor.as_str(), true));
            let said: BTreeSet<_> = likes.chain(reports).filter(|(visitor, _)| !visitor.starts_with('-')).collect();
            for (visitor, is_report) in said {
                all.entry(visitor).or_default().push(Entry { comment, group, is_report });
            }
        }
        let of_visitor = |(visitor, mut entries): (&str, Vec<Entry>)| {
            entries.sort_unstable_by_key(|entry| (entry.comment, entry.is_report));
            VisitorEntries { visitor: Visitor(visitor.to_owned()), entries }
        };
        all.into_iter().map(of_visitor).collect()
    }
}

impl Placed {
    /// The source of the comment. `prefix` is [`Staging::prefix`].
    pub(in crate::import) fn source(&self, prefix: &str) -> SourceId {
        match &self.record {
            kept if self.is_kept() => kept.source.clone().map_or_else(|| own_source(self.id), SourceId),
            _ => SourceId(format!("{prefix}:{}", self.tag)),
        }
    }

    /// Whether the comment is from an export, and keeps its id.
    pub(in crate::import) fn is_kept(&self) -> bool {
        self.record.id.is_some()
    }

    /// The time when the comment was pinned, if it's from an export.
    pub(in crate::import) fn pinned_at(&self) -> Option<Timestamp> {
        self.record.pinned_at.filter(|_| self.is_kept()).map(timestamp)
    }

    /// Adds the extra attributes of an export to the comment.
    pub(in crate::import) fn restored(&self, comment: Comment) -> Comment {
        if !self.is_kept() {
            return comment;
        }
        let kept = &self.record;
        let resolution =
            |known: &record::Resolution| Resolution { until: timestamp(known.until), status: known.status };
        Comment {
            reported: kept.reported,
            resolutions: kept.resolutions.iter().map(resolution).collect(),
            guest: kept.author.visitor.clone().map(Visitor).filter(|_| comment.user.is_none()),
            mentions: kept.mentions.clone(),
            in_review: comment.is_approved() && kept.held_for == Some(HeldFor::Edit),
            suspicious: comment.state == State::Pending && kept.held_for == Some(HeldFor::Spam),
            subscribed: kept.subscribed,
            ..comment
        }
    }
}

fn report(record: record::Report) -> Report {
    Report {
        id: record.id,
        reason: record.reason,
        created_at: timestamp(record.created_at),
        visitor: Visitor(record.visitor),
        user: record.user_id.map(UserId),
        name: kept_name(&record.name),
        avatar: kept_avatar(&record.avatar),
    }
}

fn user(record: record::User) -> User {
    let second = |at: Option<jiff::Timestamp>| at.map(|at| Timestamp::from_seconds(at.as_second()));
    User {
        id: UserId(record.user_id.unwrap_or_default()),
        name: kept_name(&record.name),
        avatar: kept_avatar(&record.picture),
        token_issued_at: record.token_issued_at.map(jiff::Timestamp::as_second),
        learned_at: second(record.learned_at),
        renamed_at: second(record.renamed_at),
        comments_at: None,
        subject: record.subject,
        issuer: None,
        ban_id: record.ban.as_ref().map(|ban| ban.id),
        ban: record.ban.map(|ban| Ban { until: ban.until.map(timestamp), reason: ban.reason, first: None }),
        account: None,
        trust: Trust::default(),
    }
}
