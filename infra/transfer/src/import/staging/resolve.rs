//! Decides the fate of each comment and its place.
//!
//! The order matters: a page is known before the comments of one page are joined, a refused comment is not a parent, and
//! which skipped comments become placeholders shows only when every comment has its final parent.

use rusqlite::{OptionalExtension, params};
use shared::domain::comment::MAX_DEPTH;

use super::{Reason, Staging, name_of};
use crate::import::record::Thread;
use crate::import::thread_key::{Target, ThreadKeys};

impl Staging {
    /// Decides the fate of each record. `keep_spam` makes spam, trash and pingbacks rejected comments instead of skipping
    /// them.
    pub fn resolve(&mut self, keys: &ThreadKeys, keep_spam: bool) -> rusqlite::Result<()> {
        self.name_threads(keys)?;
        self.skip_and_refuse(keep_spam)?;
        self.refuse_other_sites()?;
        self.find_parents()?;
        self.measure_depth()?;
        self.keep_placeholders()?;
        self.tag()
    }

    fn name_threads(&self, keys: &ThreadKeys) -> rusqlite::Result<()> {
        self.database.execute_batch("INSERT OR IGNORE INTO thread (key) SELECT DISTINCT thread FROM comment")?;
        let mut after = None;
        while let Some((key, record)) = self.thread_after(after.as_deref())? {
            let thread = record.and_then(|json| serde_json::from_str(&json).ok());
            let thread = thread.unwrap_or_else(|| Thread { key: key.clone(), ..Thread::default() });
            let (target, refused) = match keys.target(&thread) {
                Target::Thread(id) => (Some(name_of(&id)), None),
                Target::Unmapped => (None, Some(Reason::Thread)),
                Target::ForeignHost => (None, Some(Reason::Host)),
            };
            self.database
                .prepare_cached("UPDATE thread SET target = ?, refused = ? WHERE key = ?")?
                .execute(params![target, refused, key])?;
            after = Some(key);
        }
        Ok(())
    }

    fn thread_after(&self, key: Option<&str>) -> rusqlite::Result<Option<(String, Option<String>)>> {
        let query = "SELECT key, record FROM thread WHERE ?1 IS NULL OR key > ?1 ORDER BY key LIMIT 1";
        self.database.prepare_cached(query)?.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// A reason to skip comes before a reason to refuse, because a deleted comment with a bad time isn't missed. Of
    /// duplicates, the first that is neither counts.
    fn skip_and_refuse(&self, keep_spam: bool) -> rusqlite::Result<()> {
        if keep_spam {
            self.database
                .execute_batch("UPDATE comment SET state = 'rejected' WHERE state IN ('spam', 'trash', 'pingback')")?;
        }
        self.database.execute_batch(
            "
            UPDATE comment SET target = thread.target, reason = thread.refused,
                    fate = CASE WHEN thread.refused IS NULL THEN 'new' ELSE 'refused' END
                FROM thread WHERE thread.key = comment.thread;
            UPDATE comment SET fate = 'skipped', reason = 'deleted' WHERE fate = 'new'
                AND thread IN (SELECT key FROM thread WHERE deleted);
            UPDATE comment SET fate = 'skipped', reason = CASE state
                    WHEN 'deleted' THEN 'deleted' WHEN 'spam' THEN 'spam' WHEN 'trash' THEN 'trash'
                    WHEN 'pingback' THEN 'pingback' ELSE 'type' END
                WHERE fate = 'new' AND state NOT IN ('approved', 'pending', 'rejected');
            UPDATE comment SET fate = 'refused', reason = refusal WHERE fate IN ('new', 'refused') AND refusal IS NOT NULL;
            UPDATE comment SET fate = 'refused', reason = 'time' WHERE fate = 'new' AND created IS NULL;
            UPDATE comment SET fate = 'refused', reason = 'empty' WHERE fate = 'new' AND body = '' AND NOT placeholder;
            CREATE INDEX by_source_id ON comment (target, source_id, seq);
            CREATE INDEX by_id ON comment (source_id, seq);
            UPDATE comment SET fate = 'there' WHERE fate = 'new' AND EXISTS (SELECT 1 FROM comment earlier
                WHERE earlier.target = comment.target AND earlier.source_id = comment.source_id
                AND earlier.seq < comment.seq AND earlier.fate IN ('new', 'there')
                AND coalesce(earlier.writer = comment.writer, 1));
            ",
        )
    }

    /// Files of one command are parts of one site, where an id names one comment. Within a file some systems write an id
    /// twice, on two pages ([`tag`](Self::tag)). Replies to a refused comment are refused with it,
    /// unless the file has another comment with its id.
    fn refuse_other_sites(&self) -> rusqlite::Result<()> {
        self.database.execute_batch(
            "UPDATE comment SET fate = 'refused', reason = 'site' WHERE fate = 'new' AND id IS NULL
                AND EXISTS (SELECT 1 FROM comment earlier WHERE earlier.source_id = comment.source_id
                    AND earlier.seq < comment.seq AND earlier.fate IN ('new', 'there')
                    AND CASE WHEN earlier.target = comment.target THEN earlier.writer <> comment.writer
                        ELSE earlier.file <> comment.file END)",
        )?;
        let below = "UPDATE comment SET fate = 'refused', reason = 'site' WHERE fate = 'new' AND parent_id IS NOT NULL
            AND EXISTS (SELECT 1 FROM comment parent WHERE parent.target = comment.target AND parent.source_id = comment.parent_id
                AND parent.file = comment.file AND parent.reason = 'site')
            AND NOT EXISTS (SELECT 1 FROM comment parent WHERE parent.target = comment.target
                AND parent.source_id = comment.parent_id AND parent.file = comment.file AND parent.fate = 'new')";
        while self.database.execute(below, [])? > 0 {}
        Ok(())
    }

    /// Finds parents in the same thread of the host application, whichever page of the source it was on. A skipped comment
    /// can be a parent if it can become a placeholder, which needs a time and a thread that is not deleted.
    fn find_parents(&self) -> rusqlite::Result<()> {
        self.database.execute_batch(
            "
            UPDATE comment SET parent = (SELECT parent.seq FROM comment parent
                    WHERE parent.target = comment.target AND parent.source_id = comment.parent_id
                    AND (parent.fate = 'new' OR parent.fate = 'skipped' AND parent.created IS NOT NULL)
                    ORDER BY parent.fate = 'skipped', parent.seq LIMIT 1)
                WHERE parent_id IS NOT NULL AND fate IN ('new', 'skipped');
            UPDATE comment SET moved = CASE WHEN EXISTS (SELECT 1 FROM comment other
                    WHERE other.source_id = comment.parent_id AND other.target IS NOT comment.target)
                    THEN 'thread' ELSE 'parent' END
                WHERE parent_id IS NOT NULL AND parent IS NULL AND fate IN ('new', 'skipped');
            CREATE INDEX by_parent ON comment (parent);
            CREATE INDEX by_level ON comment (level);
            UPDATE comment SET level = 0 WHERE parent IS NULL AND fate IN ('new', 'skipped');
            ",
        )
    }

    /// Level by level from the top. A reply to a comment at the greatest depth is attached to that comment's parent.
    fn measure_depth(&self) -> rusqlite::Result<()> {
        // The levels of the source. The deepest become the greatest depth at the end. The plus makes SQLite begin with the
        // parents: most levels are null.
        let mut next = self.database.prepare(
            "UPDATE comment SET level = ?1 WHERE +level IS NULL AND parent IN (SELECT seq FROM comment WHERE level = ?1 - 1)",
        )?;
        let mut attach = self.database.prepare(
            "UPDATE comment SET moved = 'depth', parent = (SELECT above.parent FROM comment above WHERE above.seq = comment.parent)
             WHERE level = ?",
        )?;
        let mut levels = 1_usize;
        loop {
            let mut level = 1_usize;
            while next.execute([level])? > 0 {
                level += 1;
            }
            levels = levels.max(level);
            if !self.break_circles()? {
                break;
            }
        }
        for deep in MAX_DEPTH + 1..levels {
            attach.execute([deep])?;
        }
        self.database.execute("UPDATE comment SET level = ?1 WHERE level > ?1", [MAX_DEPTH])?;
        Ok(())
    }

    /// Comments that weren't reached from the top are in a circle of parents, or below one. The oldest comment of each
    /// circle moves to the top. False if there is no circle.
    fn break_circles(&self) -> rusqlite::Result<bool> {
        self.database
            .execute_batch("CREATE TEMP TABLE IF NOT EXISTS walked (seq INTEGER PRIMARY KEY, walk INTEGER NOT NULL)")?;
        let mut starts = self.database.prepare(
            "SELECT seq FROM comment WHERE level IS NULL AND fate IN ('new', 'skipped') AND seq > ? ORDER BY seq LIMIT 1",
        )?;
        let mut walk_of = self.database.prepare("SELECT walk FROM walked WHERE seq = ?")?;
        let mut walked = self.database.prepare("INSERT INTO walked VALUES (?, ?)")?;
        let mut above = self.database.prepare("SELECT parent, created FROM comment WHERE seq = ?")?;
        let mut up =
            |seq: i64| above.query_row([seq], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)));
        let (mut start, mut found) = (0, false);
        while let Some(next) = starts.query_row([start], |row| row.get::<_, i64>(0)).optional()? {
            start = next;
            let mut at = start;
            let met = loop {
                match walk_of.query_row([at], |row| row.get::<_, i64>(0)).optional()? {
                    None => walked.execute([at, start])?,
                    Some(walk) => break (walk == start).then_some(at),
                };
                at = up(at)?.0;
            };
            let Some(first) = met else { continue };
            let (mut oldest, mut at) = (None, first);
            loop {
                let (parent, created) = up(at)?;
                oldest = oldest.max(Some(std::cmp::Reverse((created, at))));
                at = parent;
                if at == first {
                    break;
                }
            }
            if let Some(std::cmp::Reverse((_, oldest))) = oldest {
                let top = "UPDATE comment SET level = 0, parent = NULL, moved = 'parent' WHERE seq = ?";
                self.database.prepare_cached(top)?.execute([oldest])?;
                found = true;
            }
        }
        Ok(found)
    }

    /// Goes from the deepest level up: a skipped comment with a live reply that stays becomes a placeholder, which stays as well.
    /// Rejected replies to one without any go with it.
    fn keep_placeholders(&self) -> rusqlite::Result<()> {
        let mut keep = self.database.prepare(
            "UPDATE comment SET fate = 'placeholder', placeholder = 1, state = 'approved', edited = NULL, body = '', author = '{}', writer = NULL,
                likes = 0, pinned = 0
             WHERE level = ? AND fate = 'skipped'
             AND EXISTS (SELECT 1 FROM comment reply WHERE reply.parent = comment.seq
                AND reply.fate IN ('new', 'placeholder') AND reply.state <> 'rejected')",
        )?;
        for level in (0..MAX_DEPTH).rev() {
            keep.execute([level])?;
        }
        let mut skip = self.database.prepare(
            "UPDATE comment SET fate = 'skipped', reason = 'deleted' WHERE level = ? AND fate = 'new'
             AND EXISTS (SELECT 1 FROM comment parent WHERE parent.seq = comment.parent AND parent.fate = 'skipped')",
        )?;
        for level in 1..=MAX_DEPTH {
            skip.execute([level])?;
        }
        Ok(())
    }

    /// An id that two pages share names the comment of the first; the other gets the thread's name as well.
    fn tag(&self) -> rusqlite::Result<()> {
        self.database.execute_batch(
            "
            UPDATE comment SET tag = CASE WHEN EXISTS (SELECT 1 FROM comment earlier
                    WHERE earlier.source_id = comment.source_id AND earlier.seq < comment.seq
                    AND earlier.target IS NOT NULL AND earlier.target <> comment.target)
                    THEN source_id || '@' || target ELSE source_id END
                WHERE fate IN ('new', 'placeholder');
            DROP INDEX by_id;
            ",
        )
    }
}
