//! Writes what only an export holds.

use shared::domain::comment::{Comment, HeldFor, State};
use shared::domain::ids::{Provenance, SourceId, ThreadId, UserId, Visitor};
use shared::domain::report::Resolution;
use shared::domain::thread::{Thread, imported_address, imported_title};
use shared::domain::time::Timestamp;
use shared::error::Fault;
use shared::store::meter::measure;
use shared::store::restore::Attached;

use crate::import::record::own_source;
use crate::import::scratch::{Planned, thread_id};
use crate::import::write::{Course, Located, WriteError, Writer};

impl Writer<'_> {
    /// Writes users, tombstones, and threads without comments.
    pub(in crate::import) async fn write_around(&self, course: &mut Course<'_>) -> Result<(), WriteError> {
        if !self.scratch.is_export() {
            return Ok(());
        }
        if let Some(other) = &self.other_salt {
            self.store.keep_imported_salt(other).await?;
        }
        let mut last = None;
        loop {
            let users = self.scratch.accounts_after(last)?;
            let Some(user) = users.last() else { break };
            last = Some(user.id);
            self.paced(course, self.store.restore_users(&users)).await?;
        }
        let mut last = String::new();
        loop {
            let tombstones = self.scratch.tombstones_after(&last)?;
            let Some((source, _)) = tombstones.last() else { break };
            last.clone_from(&source.0);
            self.paced(course, self.store.restore_tombstones(&tombstones)).await?;
        }
        let mut last = String::new();
        loop {
            let threads = self.scratch.threads_after(&last)?;
            let Some((name, _)) = threads.last() else { return Ok(()) };
            last.clone_from(name);
            for (name, record) in threads {
                let author = record.author_id.map(UserId);
                let title = record.title.as_deref().and_then(imported_title);
                let url = record.url.as_deref().and_then(imported_address);
                let about = Thread { title, url, author, ..Thread::default() };
                self.paced(course, self.store.describe_thread(&thread_id(&name)?, &about)).await?;
            }
        }
    }

    /// Enters the likes and reports of a thread's new comments, before these are written.
    pub(in crate::import) async fn write_entries(
        &self,
        target: &str,
        thread: &ThreadId,
        course: &mut Course<'_>,
    ) -> Result<(), WriteError> {
        let mut last = Visitor(String::new());
        loop {
            let entries = self.scratch.entries_after(target, &last)?;
            let Some(of_visitor) = entries.last() else { return Ok(()) };
            last = of_visitor.visitor.clone();
            self.paced(course, self.store.restore_entries(thread, &entries)).await?;
        }
    }

    /// What stands in the partition of a comment of an export.
    pub(in crate::import) fn attached(&self, located: &Located) -> rusqlite::Result<Attached> {
        if located.planned.kept.is_some() { self.scratch.attached(located.id) } else { Ok(Attached::default()) }
    }

    async fn paced(
        &self,
        course: &mut Course<'_>,
        work: impl Future<Output = Result<(), Fault>>,
    ) -> Result<(), WriteError> {
        let (done, cost) = measure(work).await;
        done?;
        self.pace(course, cost.write_units).await;
        Ok(())
    }
}

impl Planned {
    /// Where the comment comes from. `prefix` is the name of the source's system.
    pub(in crate::import) fn source(&self, located: &Located, prefix: &str) -> SourceId {
        match &self.kept {
            Some(kept) => kept.source.clone().map_or_else(|| own_source(located.id), SourceId),
            None => SourceId(format!("{prefix}:{}", self.tag)),
        }
    }

    /// What tells the comment from one of another site.
    pub(in crate::import) fn provenance(&self) -> Provenance {
        self.kept.as_ref().map_or_else(|| self.provenance.clone(), |kept| kept.provenance.clone())
    }

    /// When the comment was pinned.
    pub(in crate::import) fn pinned_at(&self) -> Option<Timestamp> {
        self.kept.as_ref()?.pinned_at.map(|at| Timestamp(at.as_millisecond()))
    }

    /// The comment with what an export says besides.
    pub(in crate::import) fn restored(&self, comment: Comment) -> Comment {
        let Some(kept) = &self.kept else { return comment };
        let resolution = |record: &crate::import::record::Resolution| Resolution {
            until: record.until.as_millisecond(),
            status: record.status,
        };
        let comment = Comment {
            reported: kept.reported,
            resolutions: kept.resolutions.iter().map(resolution).collect(),
            ..comment
        };
        if comment.is_placeholder {
            return comment;
        }
        Comment {
            guest: kept.author.visitor.clone().map(Visitor).filter(|_| comment.user.is_none()),
            mentions: kept.mentions.clone(),
            edited_at: kept.edited_at.map(jiff::Timestamp::as_millisecond),
            in_review: comment.is_approved() && kept.held_for == Some(HeldFor::Edit),
            suspicious: comment.state == State::Pending && kept.held_for == Some(HeldFor::Spam),
            subscribed: kept.subscribed,
            ..comment
        }
    }
}
