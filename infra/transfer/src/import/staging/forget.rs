//! Leaves out what is of people who were forgotten. Their comments count as deleted, their reports have no reporter.

use std::collections::BTreeSet;

use rusqlite::types::FromSql;
use rusqlite::{ToSql, params};
use shared::domain::ids::{UserId, Visitor};

use super::{Staging, json, kept, writer};
use crate::import::author::{ImportedAuthor, Users};
use crate::import::record::{Author, Comment, Report, Thread};
use crate::store::person::forgotten::Forgotten;

/// Comments at once.
const BATCH: i64 = 1_000;

/// A comment that may be by an erased person.
struct Written {
    seq: i64,
    writer: ImportedAuthor,
    /// The comment of an export.
    kept: Option<Box<Comment>>,
}

impl Staging {
    /// Marks what was erased. Callers do this before [`Staging::resolve`]. [`Staging::locate`] then finds comments that were
    /// erased.
    pub fn forget(&mut self, users: &Users, forgotten: &Forgotten) -> rusqlite::Result<()> {
        if forgotten.is_empty() {
            return Ok(());
        }
        self.forgotten = Some(forgotten.clone());
        let visitors = self.forget_comments(users, forgotten)?;
        let is_user = |id: u64| forgotten.has_user(UserId(id));
        let is_visitor = |visitor: &str| {
            let visitor = Visitor(visitor.to_owned());
            visitors.contains(&visitor) || visitor.user().is_some_and(|user| forgotten.has_user(user))
        };
        self.forget_authors(is_user)?;
        self.delete("SELECT id FROM account", |id: &u64| is_user(*id), "DELETE FROM account WHERE id = ?")?;
        let voters = "SELECT DISTINCT visitor FROM vote";
        self.delete(voters, |visitor: &String| is_visitor(visitor), "DELETE FROM vote WHERE visitor = ?")?;
        self.forget_reporters(|report| is_visitor(&report.visitor) || report.user_id.is_some_and(is_user))
    }

    /// Returns the guests among the writers.
    fn forget_comments(&self, users: &Users, forgotten: &Forgotten) -> rusqlite::Result<BTreeSet<Visitor>> {
        let mut visitors = BTreeSet::new();
        let mut last = 0;
        loop {
            let written = self.written_after(last, users)?;
            let Some(newest) = written.last() else { return Ok(visitors) };
            last = newest.seq;
            for Written { seq, kept, .. } in
                written.into_iter().filter(|written| written.writer.is_forgotten(forgotten))
            {
                let kept = kept.map(|mut kept| {
                    visitors.extend(kept.author.visitor.take().map(Visitor));
                    let (author, mentions) = (Author::default(), Vec::new());
                    json(&Comment { author, mentions, edited_at: None, held_for: None, subscribed: false, ..*kept })
                });
                let mark =
                    "UPDATE comment SET state = 'deleted', writer = NULL, placeholder = 0, kept = ? WHERE seq = ?";
                self.database.prepare_cached(mark)?.execute(params![kept, seq])?;
            }
        }
    }

    fn written_after(&self, last: i64, users: &Users) -> rusqlite::Result<Vec<Written>> {
        let mut statement = self.database.prepare_cached(
            "SELECT c.seq, c.author, c.kept, u.record AS account FROM comment c LEFT JOIN user u ON u.id = c.author ->> 'key'
             WHERE c.seq > ? ORDER BY c.seq LIMIT ?",
        )?;
        let written = |row: &rusqlite::Row<'_>| {
            let kept = kept(row)?;
            Ok(Written { seq: row.get("seq")?, writer: writer(row, users, kept.as_deref())?, kept })
        };
        statement.query_map(params![last, BATCH], written)?.collect()
    }

    /// Records keep everything but their author.
    fn forget_authors(&self, is_forgotten: impl Fn(u64) -> bool) -> rusqlite::Result<()> {
        let threads: Vec<(String, String)> =
            self.rows("SELECT key, record FROM thread WHERE record ->> 'author_id' IS NOT NULL")?;
        for (key, record) in threads {
            let thread: Thread = serde_json::from_str(&record).unwrap_or_default();
            if thread.author_id.is_some_and(&is_forgotten) {
                let record = json(&Thread { author_id: None, ..thread });
                let update = "UPDATE thread SET record = ? WHERE key = ?";
                self.database.prepare_cached(update)?.execute(params![record, key])?;
            }
        }
        Ok(())
    }

    fn forget_reporters(&self, is_forgotten: impl Fn(&Report) -> bool) -> rusqlite::Result<()> {
        let reports: Vec<(i64, i64)> = self.rows("SELECT comment, id FROM report")?;
        for (comment, id) in reports {
            let query = "SELECT record FROM report WHERE comment = ? AND id = ?";
            let record: String = self.database.prepare_cached(query)?.query_row([comment, id], |row| row.get(0))?;
            let Ok(report) = serde_json::from_str::<Report>(&record) else { continue };
            if is_forgotten(&report) {
                let report = report.without_reporter();
                let update = "UPDATE report SET visitor = ?, record = ? WHERE comment = ? AND id = ?";
                let values = params![report.visitor, json(&report), comment, id];
                self.database.prepare_cached(update)?.execute(values)?;
            }
        }
        Ok(())
    }

    /// Deletes the rows of those keys that are `forgotten`.
    fn delete<T: FromSql + ToSql>(
        &self,
        query: &str,
        forgotten: impl Fn(&T) -> bool,
        delete: &str,
    ) -> rusqlite::Result<()> {
        let keys =
            self.database.prepare(query)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<T>>>()?;
        for key in keys.iter().filter(|key| forgotten(key)) {
            self.database.prepare_cached(delete)?.execute([key])?;
        }
        Ok(())
    }

    fn rows<A: FromSql, B: FromSql>(&self, query: &str) -> rusqlite::Result<Vec<(A, B)>> {
        let mut statement = self.database.prepare(query)?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}
