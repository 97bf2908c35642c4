//! Finds the id that each comment has in the table, or will have.
//!
//! A comment that was imported before is found by the item of its source, whatever time, page or writer it has now, even if
//! it was deleted since. The id of a new comment follows from its time and its id in the source. If another comment has that
//! id, the next free one of the same second is used.

mod kept;

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use shared::domain::ids::{CommentId, Provenance, SourceId, sha256_hex};
use shared::domain::time;
use shared::error::Fault;
use shared::store::Store;

use super::staging::{Fate, Reason, Staging, name_of, provenance};
use crate::store::import::{Occupant, occupants};
use crate::store::sources::{SourceRow, rows_of};

/// Comments at once.
const BATCH: usize = 100;
/// The comments below the one with the number `?1`.
const BELOW: &str = "WITH RECURSIVE below(seq) AS (SELECT seq FROM comment WHERE parent = ?1
    UNION ALL SELECT comment.seq FROM comment JOIN below ON comment.parent = below.seq)";

#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error("the temporary file: {0}")]
    Staging(#[from] rusqlite::Error),
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
}

/// A comment whose id is looked for.
struct Seeker {
    seq: i64,
    source: SourceId,
    /// Hash that replaces the source after erasure.
    erased: Option<SourceId>,
    provenance: Provenance,
    /// The thread, as `type/id`.
    target: String,
    /// Ids that the comment may have, the best first.
    slots: Box<dyn Iterator<Item = CommentId>>,
    candidate: Option<CommentId>,
}

impl Seeker {
    /// All sources that the comment may have in the table.
    fn sources(&self) -> impl Iterator<Item = &SourceId> {
        std::iter::once(&self.source).chain(&self.erased)
    }
}

/// The result for a comment.
enum Placement {
    Free(CommentId),
    /// It is in this thread. Another map may have sent the comment to another one.
    AlreadyThere(CommentId, Occupant),
    Deleted(CommentId),
    /// Another comment has its source.
    OtherSite,
    /// Its time has no id, or all ids of that time are taken.
    None,
}

impl Staging {
    /// Forgets what was found before. `None` when there is no table yet. `prefix` is the name of the source's system.
    pub async fn locate(&self, store: Option<&Store>, prefix: &str) -> Result<(), LocateError> {
        self.database.execute_batch(
            "CREATE UNIQUE INDEX IF NOT EXISTS by_slot ON comment (slot);
             UPDATE comment SET fate = CASE WHEN placeholder THEN 'placeholder' ELSE 'new' END, reason = NULL, slot = NULL,
                path = NULL, rank = NULL, stands = NULL WHERE slot IS NOT NULL OR reason = 'taken' OR reason = 'site' AND tag IS NOT NULL;
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
            "SELECT seq, tag, created, thread, writer, target FROM comment INDEXED BY unlocated WHERE slot IS NULL AND fate IN ('new', 'placeholder')
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
            provenance: provenance(row)?,
            target: row.get("target")?,
            candidate: None,
        })
    }

    /// Hash that replaces the source after erasure.
    fn erased(&self, source: &SourceId) -> Option<SourceId> {
        self.forgotten.as_ref().map(|forgotten| forgotten.source(source))
    }

    async fn locate_batch(&self, store: Option<&Store>, mut seekers: Vec<Seeker>) -> Result<(), LocateError> {
        if let Some(store) = store {
            let sources: Vec<SourceId> = seekers.iter().flat_map(Seeker::sources).cloned().collect();
            let known = Known::of(store, &sources).await?;
            let mut unknown = Vec::new();
            for seeker in seekers {
                match known.place(&seeker) {
                    Some(placement) => self.place(seeker.seq, &placement)?,
                    None => unknown.push(seeker),
                }
            }
            seekers = unknown;
        }
        while !seekers.is_empty() {
            self.choose(&mut seekers)?;
            for seeker in seekers.extract_if(.., |seeker| seeker.candidate.is_none()).collect::<Vec<_>>() {
                self.place(seeker.seq, &Placement::None)?;
            }
            let candidates: Vec<CommentId> = seekers.iter().filter_map(|seeker| seeker.candidate).collect();
            let occupants = match store {
                Some(store) => occupants(store, &candidates).await?,
                None => HashMap::default(),
            };
            let mut left = Vec::new();
            for seeker in seekers {
                let Some(candidate) = seeker.candidate else { continue };
                match occupants.get(&candidate) {
                    None => self.place(seeker.seq, &Placement::Free(candidate))?,
                    Some(occupant) if seeker.sources().any(|source| occupant.source.as_ref() == Some(source)) => {
                        self.place(seeker.seq, &Placement::AlreadyThere(candidate, occupant.clone()))?;
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

    fn place(&self, seq: i64, placement: &Placement) -> rusqlite::Result<()> {
        let (slot, fate, reason) = match placement {
            Placement::Free(slot) => (Some(slot.0), None, None),
            Placement::AlreadyThere(slot, _) => (Some(slot.0), Some(Fate::AlreadyThere), None),
            Placement::Deleted(slot) => (Some(slot.0), Some(Fate::Skipped), Some(Reason::Deleted)),
            Placement::OtherSite => (None, Some(Fate::Refused), Some(Reason::Site)),
            Placement::None => (None, Some(Fate::Refused), Some(Reason::Time)),
        };
        // The first of two sources with tombstones of one id counts.
        let update = "UPDATE OR IGNORE comment SET slot = ?, fate = coalesce(?, fate), reason = coalesce(?, reason) WHERE seq = ?";
        if self.database.prepare_cached(update)?.execute(params![slot, fate, reason, seq])? == 0 {
            let update = "UPDATE comment SET fate = ?, reason = ? WHERE seq = ?";
            self.database.prepare_cached(update)?.execute(params![fate, reason, seq])?;
        }
        if let Placement::AlreadyThere(_, occupant) = placement {
            let update = "UPDATE comment SET target = ?1 WHERE seq = ?2 AND target <> ?1";
            self.database.prepare_cached(update)?.execute(params![name_of(&occupant.thread), seq])?;
            self.note_ancestors(seq, occupant)?;
        }
        Ok(())
    }

    /// An existing comment stays where it is, whatever the source says now, and replies to it follow.
    fn note_ancestors(&self, seq: i64, occupant: &Occupant) -> rusqlite::Result<()> {
        let ancestors: Vec<String> = occupant.ancestors.iter().map(ToString::to_string).collect();
        let update = "UPDATE comment SET stands = ?1, path = nullif(?1, '') WHERE seq = ?2";
        self.database.prepare_cached(update)?.execute(params![ancestors.join(","), seq]).map(drop)
    }

    /// Goes from the deepest level up: a placeholder is written only above what is or will be there.
    fn drop_empty_placeholders(&self) -> rusqlite::Result<()> {
        let mut drop = self.database.prepare(
            "UPDATE comment SET fate = 'skipped', reason = coalesce(reason, 'deleted')
             WHERE level = ? AND placeholder AND fate IN ('new', 'placeholder') AND NOT EXISTS (
                SELECT 1 FROM comment reply WHERE reply.parent = comment.seq
                AND (reply.fate IN ('new', 'placeholder') OR reply.fate = 'there' AND ',' || reply.stands LIKE '%,' || comment.slot))",
        )?;
        for level in (0..=shared::domain::comment::MAX_DEPTH).rev() {
            drop.execute([level])?;
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
        let query = "SELECT seq, tag, created, thread, writer, target, slot FROM comment WHERE seq = ?";
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

    /// Skips replies below a comment that was deleted after its import. Refuses replies below one whose id is taken, or that
    /// belongs to another site. Moves replies to a comment that was imported into another thread before. Fills in the ids of
    /// the ancestors, whether everyone may see a comment, and its rank among the replies of its parent.
    fn follow_parents(&self) -> rusqlite::Result<()> {
        let mut below = self.database.prepare(
            "UPDATE comment SET
                fate = CASE WHEN parent.reason IN ('taken', 'site') THEN 'refused'
                    WHEN parent.fate IN ('skipped', 'refused') THEN 'skipped' ELSE comment.fate END,
                reason = CASE WHEN parent.reason IN ('taken', 'site') THEN parent.reason
                    WHEN parent.fate IN ('skipped', 'refused') THEN 'deleted' ELSE comment.reason END,
                path = CASE WHEN comment.stands IS NULL THEN coalesce(parent.path || ',', '') || parent.slot
                    ELSE nullif(comment.stands, '') END,
                shown = parent.shown AND comment.state = 'approved'
             FROM comment parent
             WHERE comment.level = ? AND parent.seq = comment.parent AND comment.fate IN ('new', 'placeholder', 'there')",
        )?;
        let mut elsewhere = self.database.prepare(
            "UPDATE comment SET target = parent.target FROM comment parent
             WHERE comment.level = ? AND parent.seq = comment.parent AND comment.target <> parent.target",
        )?;
        self.database.execute("UPDATE comment SET shown = (state = 'approved') WHERE level = 0", [])?;
        for level in 1..=shared::domain::comment::MAX_DEPTH {
            elsewhere.execute([level])?;
            below.execute([level])?;
        }
        self.drop_empty_placeholders()?;
        self.database.execute_batch(
            "UPDATE comment SET rank = ranked.n FROM (
                SELECT seq, row_number() OVER (PARTITION BY parent ORDER BY slot) AS n FROM comment
                WHERE parent IS NOT NULL AND slot IS NOT NULL AND state = 'approved'
                AND fate IN ('new', 'placeholder', 'there')) ranked
             WHERE ranked.seq = comment.seq;
             CREATE INDEX IF NOT EXISTS by_target ON comment (target, level, slot);",
        )
    }
}

/// The items of some sources.
#[derive(Default)]
struct Known {
    rows: HashMap<SourceId, SourceRow>,
    /// Comments by their ids.
    comments: HashMap<CommentId, Occupant>,
}

impl Known {
    async fn of(store: &Store, sources: &[SourceId]) -> Result<Self, Fault> {
        let rows = rows_of(store, sources).await?;
        let ids: BTreeSet<CommentId> = rows.values().filter(|row| !row.is_deleted).map(|row| row.comment).collect();
        let comments = occupants(store, &ids.into_iter().collect::<Vec<_>>()).await?;
        Ok(Self { rows, comments })
    }

    fn is_deleted(&self, source: &SourceId) -> bool {
        self.rows.get(source).is_some_and(|row| row.is_deleted)
    }

    /// The existing comment that was imported from there.
    fn comment(&self, source: &SourceId) -> Option<(CommentId, &Occupant)> {
        let id = self.rows.get(source).filter(|row| !row.is_deleted)?.comment;
        let occupant = self.comments.get(&id)?;
        (occupant.source.as_ref() == Some(source)).then_some((id, occupant))
    }

    /// `None` when the source was not imported, or an import ended early before the comment was written.
    fn place(&self, seeker: &Seeker) -> Option<Placement> {
        seeker.sources().find_map(|source| {
            let row = self.rows.get(source)?;
            let provenance = row.provenance();
            let elsewhere = provenance.is_on_another_page(&seeker.provenance);
            let placement = if row.is_deleted {
                (!elsewhere).then_some(Placement::Deleted(row.comment))
            } else {
                let (id, occupant) = self.comment(source)?;
                // A page may have got another address.
                let same_thread = name_of(&occupant.thread) == seeker.target;
                (!elsewhere || same_thread).then(|| Placement::AlreadyThere(id, occupant.clone()))
            };
            let same_writer = !provenance.is_by_another_writer(&seeker.provenance);
            Some(placement.filter(|_| same_writer).unwrap_or(Placement::OtherSite))
        })
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
