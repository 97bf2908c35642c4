//! Everything that was read, in memory: a comment takes about a kilobyte and its text.
//!
//! [`Staging::add`] takes records in any order, [`Staging::resolve`] makes a decision about each comment,
//! [`Staging::locate`] finds a place for each, and [`Staging::report`] reports them.

mod exported;
mod fate;
mod forget;
mod placed;
mod resolve;
mod salts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::mem;

use jiff::Timestamp;
use shared::domain::ids::{CommentId, ID_BOUND, SourceId, ThreadId, sha256_hex};
use shared::domain::{markdown as rendering, thread, visible};

use self::exported::Export;
pub use self::exported::TableError;
pub(super) use self::fate::{Fate, Reason};
pub use self::placed::Placed;
pub(super) use self::resolve::Decision;
pub use self::salts::OtherSalt;
use self::salts::Salts;
use super::format::Format;
use super::markdown;
use super::record::{self, BodyFormat, Record, RecordState, User};
use super::report::{Entry, Missing, Report};
use super::time::timestamp;
use crate::store::person::forgotten::Forgotten;

/// Bytes of an id in the source. A hash replaces longer ones.
const MAX_ID: usize = 512;
/// Bytes of a body. What is longer is cut.
pub(super) const MAX_BODY: usize = 64 * 1024;

/// A comment as it was read.
#[derive(Debug)]
pub(super) struct Staged {
    /// Its id and body are bounded, its thread is the page, and an impossible edit is left out.
    pub(super) record: record::Comment,
    /// The number of its file.
    file: u64,
    pub(super) page: usize,
    /// Whether the source has an id for it.
    has_id: bool,
    /// Unix seconds; `None` if no comment can have the time.
    pub(super) created: Option<i64>,
    /// A short hash of who wrote it in the source; `None` where the source may have forgotten.
    pub(super) writer: Option<String>,
    /// Why the record itself cannot be imported.
    refusal: Option<Reason>,
    /// Readers do not see all of it.
    is_cut: bool,
    /// The writer was erased from the table.
    is_forgotten: bool,
}

impl Staged {
    /// The id in the source.
    fn id(&self) -> &str {
        &self.record.source_id
    }

    /// Whether it is a placeholder of an export.
    fn is_placeholder(&self) -> bool {
        self.record.id.is_some() && self.record.state == RecordState::Deleted && !self.is_forgotten
    }
}

/// The place of a comment in the table.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) fate: Fate,
    /// The number of its thread.
    pub(super) thread: Option<usize>,
    /// The id that it has, had or will have.
    pub(super) id: Option<CommentId>,
    /// Ancestors from the top-level comment down.
    pub(super) ancestors: Vec<CommentId>,
    /// Whether it is in the table already, where its ancestors may be others than in the source.
    pub(super) is_there: bool,
    /// Everyone may see it and all above it.
    pub(super) is_shown: bool,
    /// Place among the approved replies of its parent, from 1.
    pub(super) rank: Option<usize>,
}

/// A thread of the import.
#[derive(Debug)]
pub(super) struct Target {
    /// As `type/id`.
    pub(super) name: String,
    pub(super) thread: ThreadId,
    /// The source's data about its pages.
    pub(super) about: thread::Thread,
    /// The comments that are, were or will be in the table.
    pub(super) comments: Vec<usize>,
}

/// All threads of the import, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) all: Vec<Target>,
    numbers: HashMap<ThreadId, usize>,
}

impl Targets {
    /// The number of a thread, which may be new.
    pub(super) fn number(&mut self, thread: &ThreadId) -> usize {
        if let Some(number) = self.numbers.get(thread) {
            return *number;
        }
        let (name, about) = (format!("{}/{}", thread.kind, thread.record), thread::Thread::default());
        self.all.push(Target { name, thread: thread.clone(), about, comments: Vec::new() });
        self.numbers.insert(thread.clone(), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Everything that was read, and what was decided about it. `decisions` and `places` have an element for each comment.
#[derive(Default)]
pub struct Staging {
    pub(super) comments: Vec<Staged>,
    pub(super) decisions: Vec<Decision>,
    pub(super) places: Vec<Place>,
    /// The comments, parents before their replies.
    pub(super) order: Vec<usize>,
    /// The comments by the ids that they have, had or will have.
    pub(super) located: HashMap<CommentId, usize>,
    pub(super) threads: Targets,
    pages: Vec<record::Thread>,
    page_numbers: HashMap<String, usize>,
    /// Keys of pages without a thread.
    unmapped: BTreeSet<String>,
    users: HashMap<String, User>,
    export: Export,
    /// The number of the file that is read.
    pub(super) file: u64,
    /// The site that the source names.
    pub(super) site: Option<String>,
    /// Unix seconds after which no comment can have been written.
    pub(super) latest: Option<i64>,
    /// The names of files without comments.
    pub silent: Vec<String>,
    /// Data that the sources say they lack, and texts that could not be read completely.
    pub(super) missing: Vec<Missing>,
    salts: Salts,
    /// A hash of the records of a native file.
    pub(super) native: Option<String>,
    /// People whose comments may have been erased from the table.
    pub(super) forgotten: Option<Forgotten>,
}

impl Staging {
    /// The prefix of the comments' sources.
    #[must_use]
    pub fn prefix(&self, format: Format) -> String {
        SourceId::prefix(format.name(), self.site.as_deref())
    }

    /// The number of comments that were added.
    pub fn comments(&self) -> u64 {
        self.comments.len() as u64
    }

    pub fn add(&mut self, record: Record) {
        self.salts.note(&record);
        if let Some(hash) = &mut self.native {
            *hash = sha256_hex(&(mem::take(hash) + &json(&record)));
        }
        match record {
            Record::Thread(thread) => {
                let page = self.page(&thread.key);
                merge(&mut self.pages[page], thread);
            }
            Record::User(user) if user.user_id.is_none() => _ = self.users.entry(user.id.clone()).or_insert(user),
            Record::Comment(comment) => self.add_comment(*comment),
            exported => self.export.add(exported),
        }
    }

    /// The number of the page with this key.
    fn page(&mut self, key: &str) -> usize {
        if let Some(number) = self.page_numbers.get(key) {
            return *number;
        }
        self.pages.push(record::Thread { key: key.to_owned(), ..record::Thread::default() });
        self.page_numbers.insert(key.to_owned(), self.pages.len() - 1);
        self.pages.len() - 1
    }

    /// A comment with an id keeps it, and its body.
    fn add_comment(&mut self, mut record: record::Comment) {
        let refusal = refusal(&record);
        let is_kept = record.id.is_some();
        let (body, is_cut) = match (refusal, is_kept) {
            (Some(_), _) => (String::new(), false),
            (None, true) => kept_body(&record),
            (None, false) => body(&record),
        };
        let kept = record.id.map(|id| id.to_string());
        let created = match &kept {
            Some(id) => id.parse::<CommentId>().ok().map(|id| id.created_at().seconds()),
            None => record.created_at.filter(|at| has_ids(*at)).map(Timestamp::as_second),
        };
        let latest = self.latest.filter(|_| !is_kept).unwrap_or(i64::MAX);
        let created = created.filter(|at| *at <= latest);
        let has_id = is_kept || !record.source_id.is_empty();
        record.source_id = match kept {
            _ if !has_id => content_id(&record, &body),
            Some(id) if record.source_id.is_empty() => id,
            Some(_) => record.source_id,
            None => bounded_id(record.source_id),
        };
        let is_live = !is_kept && record.state != RecordState::Deleted;
        let writer = is_live.then(|| writer_hash(&record.source_id, &record.author));
        let is_edit = |at: &Timestamp| created.is_some_and(|created| (created..=latest).contains(&at.as_second()));
        record.edited_at = record.edited_at.filter(|at| is_kept || is_edit(at));
        record.parent = record.parent.map(|parent| if is_kept { parent } else { bounded_id(parent) });
        record.body = body;
        let page = self.page(&mem::take(&mut record.thread));
        let (file, is_forgotten) = (self.file, false);
        self.comments.push(Staged { record, file, page, has_id, created, writer, refusal, is_cut, is_forgotten });
    }

    /// Every comment is where the source has it, and has no id.
    pub(super) fn forget_places(&mut self) {
        let place = |decision: &Decision| Place { fate: decision.fate, thread: decision.thread, ..Place::default() };
        self.places = self.decisions.iter().map(place).collect();
        self.located.clear();
    }

    /// A placeholder is approved.
    pub(super) fn state(&self, index: usize) -> RecordState {
        let is_placeholder = self.decisions[index].placeholder.is_some();
        if is_placeholder { RecordState::Approved } else { self.comments[index].record.state }
    }

    pub fn report(&self) -> Report {
        let mut report = Report { read: self.comments(), missing: self.missing.clone(), ..Report::default() };
        for (index, place) in self.places.iter().enumerate() {
            let (comment, decision) = (&self.comments[index], &self.decisions[index]);
            // A comment without an id in its source is named by its number.
            let id = || if comment.has_id { comment.id().to_owned() } else { format!("#{}", index + 1) };
            let entry = |reason: &str| Entry { id: id(), reason: reason.to_owned() };
            match place.fate {
                Fate::New => {
                    report.new += 1;
                    report.moved.extend(decision.moved.map(|moved| entry(moved.name())));
                    report.cut.extend((comment.is_cut && decision.placeholder.is_none()).then(id));
                }
                Fate::AlreadyThere => report.already_there += 1,
                Fate::Skipped(reason) => *report.skipped.entry(reason.name().to_owned()).or_default() += 1,
                Fate::Refused(reason) => report.refused.push(entry(reason.name())),
            }
            if let Some(thread) = place.thread.filter(|_| place.fate.stays()) {
                *report.threads.entry(self.threads.all[thread].name.clone()).or_default() += 1;
            }
        }
        report.unmapped = self.unmapped.iter().cloned().collect();
        report
    }

    /// The types of threads that have comments of the source.
    pub fn types(&self) -> BTreeSet<String> {
        let threads = self.places.iter().filter(|place| place.fate.stays()).filter_map(|place| place.thread);
        threads.map(|thread| self.threads.all[thread].thread.kind.clone()).collect()
    }
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Adds what earlier records of the page left out.
fn merge(known: &mut record::Thread, new: record::Thread) {
    known.kind = known.kind.take().or(new.kind);
    known.id = known.id.take().or(new.id);
    known.title = known.title.take().or(new.title);
    known.url = known.url.take().or(new.url);
    known.author_id = known.author_id.or(new.author_id);
    known.closed = known.closed.or(new.closed);
    known.deleted |= new.deleted;
    for alias in new.aliases {
        if !known.aliases.contains(&alias) {
            known.aliases.push(alias);
        }
    }
}

/// The body of a comment of an export, as far as it is kept, and whether readers do not see all of it.
fn kept_body(comment: &record::Comment) -> (String, bool) {
    if comment.state == RecordState::Deleted {
        return (String::new(), false);
    }
    let kept = &comment.body[..comment.body.floor_char_boundary(MAX_BODY)];
    (kept.to_owned(), kept.len() < comment.body.len() || !rendering::is_shown_whole(kept))
}

/// The body in Markdown without characters that must not be stored, and whether readers do not see all of it. The body is
/// empty when it shows nothing.
fn body(comment: &record::Comment) -> (String, bool) {
    let body = match comment.format {
        BodyFormat::Markdown => comment.body.replace("\r\n", "\n"),
        BodyFormat::Html => markdown::from_html(&comment.body),
    };
    let body: String = body.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let body = visible::without_bidi_overrides(body.trim_matches(['\n', ' ']));
    let kept = &body[..body.floor_char_boundary(MAX_BODY)];
    if rendering::shown(kept).is_nothing() {
        return (String::new(), false);
    }
    (kept.to_owned(), kept.len() < body.len() || !rendering::is_shown_whole(kept))
}

/// Why the record cannot be imported, whatever else it says.
fn refusal(comment: &record::Comment) -> Option<Reason> {
    if comment.is_oversized {
        return Some(Reason::Size);
    }
    (comment.likes >= ID_BOUND).then_some(Reason::Likes)
}

/// Ids are part of keys, which have a bound.
fn bounded_id(id: String) -> String {
    if id.len() <= MAX_ID { id } else { format!("~{}", sha256_hex(&id)) }
}

/// Hash of the account or the name; of the address only when both are missing, because anyone with a list of addresses could
/// find it by the hashes of several comments. It differs for every comment: comments with one name are known only to those
/// who know the name.
fn writer_hash(source_id: &str, author: &record::Author) -> String {
    let names = [author.key.clone(), author.name.clone(), author.email.trim().to_lowercase()];
    let name = names.into_iter().find(|name| !name.is_empty());
    sha256_hex(&json(&(source_id, name)))[..4].to_owned()
}

/// An id for a comment without one, the same in every run.
fn content_id(comment: &record::Comment, body: &str) -> String {
    let created = comment.created_at.map_or(0, Timestamp::as_second);
    let text = json(&(&comment.thread, &comment.parent, created, &comment.author.name, body));
    format!("~{}", &sha256_hex(&text)[..16])
}

/// Whether a comment of this time can have an id.
fn has_ids(at: Timestamp) -> bool {
    CommentId::slots(timestamp(at), 0).is_some()
}
