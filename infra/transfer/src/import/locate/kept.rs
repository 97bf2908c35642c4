//! Finds which of the comments that keep their ids are new.

use std::collections::{HashMap, HashSet};

use rusqlite::params;
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId, Visitor};
use shared::store::Store;

use super::{Known, LocateError, Placement};
use crate::import::record::{self, own_source};
use crate::import::staging::{Fate, Reason, Staging, thread_id};
use crate::store::import::{Occupant, occupants};

/// Comments at once.
const BATCH: usize = 100;

/// A comment whose id may be taken.
struct Candidate {
    seq: i64,
    id: CommentId,
    thread: ThreadId,
    source: SourceId,
    /// Hash that replaces the source after erasure.
    erased: Option<SourceId>,
    writer: Visitor,
    is_placeholder: bool,
}

impl Candidate {
    /// Whether it is the comment that has its id. Only a deletion changes the writer.
    fn is(&self, occupant: &Occupant) -> bool {
        let source = occupant.source.clone().unwrap_or_else(|| own_source(self.id));
        let same_writer = self.writer == occupant.visitor || self.is_placeholder || occupant.is_placeholder;
        self.thread == occupant.thread && self.sources().any(|own| *own == source) && same_writer
    }

    /// All sources that the comment may have, or have had, in the table.
    fn sources(&self) -> impl Iterator<Item = &SourceId> {
        std::iter::once(&self.source).chain(&self.erased)
    }
}

impl Staging {
    /// `None` when there is no table yet.
    pub(super) async fn locate_kept(&self, store: Option<&Store>) -> Result<(), LocateError> {
        let mut last = -1;
        loop {
            let candidates = self.candidates_after(last)?;
            let Some(candidate) = candidates.last() else { return Ok(()) };
            last = candidate.seq;
            // The set has no doubles, which the table would refuse to look up.
            let sources: HashSet<SourceId> = candidates.iter().flat_map(Candidate::sources).cloned().collect();
            let ids: HashSet<CommentId> = candidates.iter().map(|candidate| candidate.id).collect();
            let (sources, ids): (Vec<_>, Vec<_>) = (sources.into_iter().collect(), ids.into_iter().collect());
            let (known, occupants) = match store {
                Some(store) => (Known::of(store, &sources).await?, occupants(store, &ids).await?),
                None => (Known::default(), HashMap::default()),
            };
            for candidate in candidates {
                let occupant = occupants.get(&candidate.id);
                let elsewhere = candidate.sources().find_map(|source| known.comment(source));
                if candidate.sources().any(|source| known.is_deleted(source)) {
                    self.decide(&candidate, Fate::Skipped, Some(Reason::Deleted))?;
                } else if let Some((id, imported)) = elsewhere.filter(|(id, _)| *id != candidate.id) {
                    self.place(candidate.seq, &Placement::AlreadyThere(id, imported.clone()))?;
                } else if occupant.is_some_and(|occupant| !candidate.is(occupant)) || self.is_double(&candidate)? {
                    self.refuse(&candidate)?;
                } else {
                    let fate = if occupant.is_some() { Fate::AlreadyThere } else { Fate::New };
                    self.decide(&candidate, fate, None)?;
                    if let Some(occupant) = occupant {
                        self.note_ancestors(candidate.seq, occupant)?;
                    }
                }
            }
        }
    }

    fn candidates_after(&self, last: i64) -> rusqlite::Result<Vec<Candidate>> {
        let mut statement = self.database.prepare_cached(
            "SELECT seq, id, target, kept, placeholder FROM comment
             WHERE seq > ? AND id IS NOT NULL AND fate IN ('new', 'placeholder') ORDER BY seq LIMIT ?",
        )?;
        let candidate = |row: &rusqlite::Row<'_>| {
            let id = CommentId(row.get(1)?);
            let kept: record::Comment =
                serde_json::from_str(&row.get::<_, String>(3)?).map_err(|_| rusqlite::Error::InvalidQuery)?;
            let writer = kept.author.user_id.map(|user| Visitor::from(UserId(user)));
            let source = kept.source.map_or_else(|| own_source(id), SourceId);
            Ok(Candidate {
                seq: row.get(0)?,
                id,
                thread: thread_id(&row.get::<_, String>(2)?)?,
                erased: self.erased(&source),
                source,
                writer: writer.unwrap_or_else(|| Visitor(kept.author.visitor.unwrap_or_default())),
                is_placeholder: row.get(4)?,
            })
        };
        statement.query_map(params![last, BATCH], candidate)?.collect()
    }

    /// Whether a comment of another id before it has the same source.
    fn is_double(&self, candidate: &Candidate) -> rusqlite::Result<bool> {
        let first = "INSERT INTO kept_source VALUES (?, ?) ON CONFLICT DO UPDATE SET id = id RETURNING id";
        let values = params![candidate.source.0, candidate.id.0];
        let first: u64 = self.database.prepare_cached(first)?.query_row(values, |row| row.get(0))?;
        Ok(first != candidate.id.0)
    }

    /// The comment has, or had, its id, unless another one of the source has it.
    fn decide(&self, candidate: &Candidate, fate: Fate, reason: Option<Reason>) -> rusqlite::Result<()> {
        let update = "UPDATE OR IGNORE comment SET slot = id, fate = ?, reason = ? WHERE seq = ?";
        let decided = self.database.prepare_cached(update)?.execute(params![fate, reason, candidate.seq])?;
        if decided == 0 { self.refuse(candidate) } else { Ok(()) }
    }

    fn refuse(&self, candidate: &Candidate) -> rusqlite::Result<()> {
        let update = "UPDATE comment SET fate = ?, reason = ? WHERE seq = ?";
        let values = params![Fate::Refused, Reason::Taken, candidate.seq];
        self.database.prepare_cached(update)?.execute(values).map(drop)
    }

    /// The likes and reports of comments that are new. A reporter who was forgotten has no entry.
    pub(super) fn collect_entries(&self) -> rusqlite::Result<()> {
        for (table, is_report) in [("vote", false), ("report", true)] {
            let collect = format!(
                "INSERT OR IGNORE INTO entry
                 SELECT c.target, said.visitor, c.id, {is_report}, coalesce(parent.slot, c.id)
                 FROM {table} said JOIN comment c ON c.slot = said.comment LEFT JOIN comment parent ON parent.seq = c.parent
                 WHERE c.id = said.comment AND c.fate = 'new' AND NOT c.placeholder AND said.visitor NOT LIKE '-%'"
            );
            self.database.execute(&collect, [])?;
        }
        Ok(())
    }
}
