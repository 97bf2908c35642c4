//! Finds for each comment the id under which it stands in the table, or will stand.
//!
//! An id follows from the time and the id in the source, so that every run finds the same one. If another comment has it,
//! the next one of that second is taken. What was imported before is recognised by its source; what was deleted since has
//! left a tombstone.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use shared::domain::ids::{CommentId, SourceId, ThreadId, sha256_hex};
use shared::domain::time;
use shared::error::Fault;
use shared::store::Store;

use super::scratch::{Scratch, name_of};

/// Comments at once.
const BATCH: usize = 100;
/// The comments below the one with the number `?1`.
const BELOW: &str = "WITH RECURSIVE below(seq) AS (SELECT seq FROM comment WHERE parent = ?1
    UNION ALL SELECT comment.seq FROM comment JOIN below ON comment.parent = below.seq)";

#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error("the scratch file: {0}")]
    Scratch(#[from] rusqlite::Error),
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
}

/// A comment whose id is looked for.
struct Seeker {
    seq: i64,
    source: SourceId,
    /// What stands for the source if the comment was erased.
    erased: Option<SourceId>,
    /// Those that it may have, the first choice first.
    slots: Box<dyn Iterator<Item = CommentId>>,
    candidate: Option<CommentId>,
}

impl Seeker {
    /// All under which the comment may stand in the table.
    fn sources(&self) -> impl Iterator<Item = &SourceId> {
        std::iter::once(&self.source).chain(&self.erased)
    }
}

/// What was found for a comment.
enum Place {
    Free(CommentId),
    /// In this thread: with another map the comment may have gone to another one.
    AlreadyThere(CommentId, ThreadId),
    Deleted(CommentId),
    /// Its time has no id, or all ids of that time are taken.
    None,
}

impl Scratch {
    /// Forgets what was found before. `None` when there is no table yet. `prefix` is the name of the source's system.
    pub async fn locate(&self, store: Option<&Store>, prefix: &str) -> Result<(), LocateError> {
        self.database.execute_batch(
            "CREATE UNIQUE INDEX IF NOT EXISTS by_slot ON comment (slot);
             UPDATE comment SET fate = CASE WHEN placeholder THEN 'placeholder' ELSE 'new' END, reason = NULL, slot = NULL,
                path = NULL, rank = NULL WHERE slot IS NOT NULL OR reason = 'taken';
             DELETE FROM entry;
             CREATE INDEX IF NOT EXISTS unlocated ON comment (level, created, tag)
                WHERE slot IS NULL AND fate IN ('new', 'placeholder');",
        )?;
        self.locate_kept(store).await?;
        loop {
            let seekers = self.seekers(prefix)?;
            if seekers.is_empty() {
                break;
            }
            self.locate_batch(store, seekers).await?;
        }
        self.follow_parents()?;
        self.collect_entries()?;
        Ok(())
    }

    /// The next comments without an id, in an order that is the same in every run.
    fn seekers(&self, prefix: &str) -> rusqlite::Result<Vec<Seeker>> {
        let mut statement = self.database.prepare_cached(
            "SELECT seq, tag, created FROM comment INDEXED BY unlocated WHERE slot IS NULL AND fate IN ('new', 'placeholder')
             ORDER BY level, created, tag LIMIT ?",
        )?;
        statement.query_map([BATCH], |row| self.seeker(row, prefix))?.collect()
    }

    fn seeker(&self, row: &Row<'_>, prefix: &str) -> rusqlite::Result<Seeker> {
        let tag: String = row.get("tag")?;
        let source = SourceId(format!("{prefix}:{tag}"));
        Ok(Seeker {
            seq: row.get("seq")?,
            slots: slots(row.get("created")?, &tag),
            erased: self.erased(&source),
            source,
            candidate: None,
        })
    }

    /// What stands for the source if its comment was erased.
    pub(super) fn erased(&self, source: &SourceId) -> Option<SourceId> {
        self.forgotten.as_ref().map(|forgotten| forgotten.source(source))
    }

    async fn locate_batch(&self, store: Option<&Store>, mut seekers: Vec<Seeker>) -> Result<(), LocateError> {
        let deleted = match store {
            Some(store) => {
                let sources: Vec<SourceId> = seekers.iter().flat_map(Seeker::sources).cloned().collect();
                store.tombstones(&sources).await?
            }
            None => HashMap::default(),
        };
        let deletion = |seeker: &Seeker| seeker.sources().find_map(|source| deleted.get(source).copied());
        for seeker in seekers.extract_if(.., |seeker| deletion(seeker).is_some()).collect::<Vec<_>>() {
            if let Some(id) = deletion(&seeker) {
                self.place(seeker.seq, &Place::Deleted(id))?;
            }
        }
        while !seekers.is_empty() {
            self.choose(&mut seekers)?;
            for seeker in seekers.extract_if(.., |seeker| seeker.candidate.is_none()).collect::<Vec<_>>() {
                self.place(seeker.seq, &Place::None)?;
            }
            let candidates: Vec<CommentId> = seekers.iter().filter_map(|seeker| seeker.candidate).collect();
            let occupants = match store {
                Some(store) => store.occupants(&candidates).await?,
                None => HashMap::default(),
            };
            let mut left = Vec::new();
            for seeker in seekers {
                let Some(candidate) = seeker.candidate else { continue };
                match occupants.get(&candidate) {
                    None => self.place(seeker.seq, &Place::Free(candidate))?,
                    Some(occupant) if seeker.sources().any(|source| occupant.source.as_ref() == Some(source)) => {
                        self.place(seeker.seq, &Place::AlreadyThere(candidate, occupant.thread.clone()))?;
                    }
                    Some(_) => left.push(seeker),
                }
            }
            seekers = left;
        }
        Ok(())
    }

    /// Gives each its next id that no other comment of the import has.
    fn choose(&self, seekers: &mut [Seeker]) -> rusqlite::Result<()> {
        let mut chosen = HashSet::new();
        let mut taken = self.database.prepare_cached("SELECT 1 FROM comment WHERE slot = ?")?;
        for seeker in seekers {
            seeker.candidate = loop {
                let Some(slot) = seeker.slots.next() else { break None };
                let is_taken = taken.query_row([slot.0], |_| Ok(())).optional()?.is_some();
                if !is_taken && chosen.insert(slot) {
                    break Some(slot);
                }
            };
        }
        Ok(())
    }

    fn place(&self, seq: i64, place: &Place) -> rusqlite::Result<()> {
        let (slot, fate, reason) = match place {
            Place::Free(slot) => (Some(slot.0), None, None),
            Place::AlreadyThere(slot, _) => (Some(slot.0), Some("there"), None),
            Place::Deleted(slot) => (Some(slot.0), Some("skipped"), Some("deleted")),
            Place::None => (None, Some("refused"), Some("time")),
        };
        // Of two sources with tombstones of one id, the first counts.
        let update = "UPDATE OR IGNORE comment SET slot = ?, fate = coalesce(?, fate), reason = coalesce(?, reason) WHERE seq = ?";
        if self.database.prepare_cached(update)?.execute(params![slot, fate, reason, seq])? == 0 {
            let update = "UPDATE comment SET fate = ?, reason = ? WHERE seq = ?";
            self.database.prepare_cached(update)?.execute(params![fate, reason, seq])?;
        }
        if let Place::AlreadyThere(_, thread) = place {
            let update = "UPDATE comment SET target = ?1 WHERE seq = ?2 AND target <> ?1";
            self.database.prepare_cached(update)?.execute(params![name_of(thread), seq])?;
        }
        Ok(())
    }

    /// Finds another id for a comment whose id was taken since. `None` when it has none, or was deleted meanwhile.
    pub(super) async fn relocate(
        &self,
        store: &Store,
        prefix: &str,
        seq: i64,
    ) -> Result<Option<CommentId>, LocateError> {
        let query = "SELECT seq, tag, created, slot FROM comment WHERE seq = ?";
        let (seeker, taken) =
            self.database.query_row(query, [seq], |row| Ok((self.seeker(row, prefix)?, row.get::<_, u64>("slot")?)))?;
        self.locate_batch(Some(store), vec![seeker]).await?;
        let query = "SELECT slot FROM comment WHERE seq = ? AND fate IN ('new', 'placeholder')";
        let found: Option<u64> = self.database.query_row(query, [seq], |row| row.get(0)).optional()?;
        if let Some(found) = found {
            // The paths of those below it name it.
            let update = format!(
                "{BELOW} UPDATE comment SET path = trim(replace(',' || path || ',', ',' || ?2 || ',', ',' || ?3 || ','), ',')
                 WHERE seq IN (SELECT seq FROM below)"
            );
            self.database.execute(&update, params![seq, taken.to_string(), found.to_string()])?;
        }
        Ok(found.map(CommentId))
    }

    /// Refuses a comment that keeps its id, which another one was given since, with what is below it.
    pub(super) fn refuse_taken(&self, seq: i64) -> rusqlite::Result<()> {
        let update = format!(
            "{BELOW} UPDATE comment SET fate = 'refused', reason = 'taken'
             WHERE seq = ?1 OR seq IN (SELECT seq FROM below) AND fate IN ('new', 'placeholder', 'there')"
        );
        self.database.execute(&update, [seq]).map(drop)
    }

    /// What is below a comment that was deleted after its import went with it, and does not come back either. What is below
    /// one whose id is taken is refused with it. Replies to what was imported into another thread before follow it. Fills in
    /// the ids of the ancestors, whether everyone may see a comment, and its rank among the replies of its parent.
    fn follow_parents(&self) -> rusqlite::Result<()> {
        let mut below = self.database.prepare(
            "UPDATE comment SET
                fate = CASE WHEN parent.reason = 'taken' THEN 'refused'
                    WHEN parent.fate IN ('skipped', 'refused') THEN 'skipped' ELSE comment.fate END,
                reason = CASE WHEN parent.reason = 'taken' THEN 'taken'
                    WHEN parent.fate IN ('skipped', 'refused') THEN 'deleted' ELSE comment.reason END,
                path = coalesce(parent.path || ',', '') || parent.slot,
                shown = parent.shown AND comment.state = '\"approved\"'
             FROM comment parent
             WHERE comment.level = ? AND parent.seq = comment.parent AND comment.fate IN ('new', 'placeholder', 'there')",
        )?;
        let mut elsewhere = self.database.prepare(
            "UPDATE comment SET target = parent.target FROM comment parent
             WHERE comment.level = ? AND parent.seq = comment.parent AND comment.target <> parent.target",
        )?;
        self.database.execute("UPDATE comment SET shown = (state = '\"approved\"') WHERE level = 0", [])?;
        for level in 1..=shared::domain::comment::MAX_DEPTH {
            elsewhere.execute([level])?;
            below.execute([level])?;
        }
        self.database.execute_batch(
            "UPDATE comment SET rank = ranked.n FROM (
                SELECT seq, row_number() OVER (PARTITION BY parent ORDER BY slot) AS n FROM comment
                WHERE parent IS NOT NULL AND slot IS NOT NULL AND state = '\"approved\"'
                AND fate IN ('new', 'placeholder', 'there')) ranked
             WHERE ranked.seq = comment.seq;
             CREATE INDEX IF NOT EXISTS by_target ON comment (target, level, slot);",
        )
    }
}

/// The ids that a comment may have.
fn slots(created: i64, tag: &str) -> Box<dyn Iterator<Item = CommentId>> {
    let at = Timestamp::from_second(created).map(Timestamp::as_millisecond).unwrap_or_default();
    let tie = tag.parse().unwrap_or_else(|_| u64::from_str_radix(&sha256_hex(tag)[..16], 16).unwrap_or_default());
    match CommentId::slots(time::Timestamp(at), tie) {
        Some(slots) => Box::new(slots),
        None => Box::new(std::iter::empty()),
    }
}
