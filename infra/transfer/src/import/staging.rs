//! All records of an import, in memory. A comment takes about a kilobyte plus its text.
//!
//! [`Staging::add`] takes records in any order, [`Staging::resolve`] decides the fate of each comment,
//! [`Staging::locate`] finds its place in the table, and [`Staging::report`] summarizes the results.

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
use shared::domain::ids::{CommentId, SourceId, ThreadId, sha256_hex};
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

/// Maximum bytes of an id in the source. A hash replaces a longer one.
const MAX_ID: usize = 512;
/// Maximum bytes of a body. A longer one is cut.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// Maximum likes of a comment. JavaScript can't represent every greater integer.
const MAX_LIKES: u64 = 1 << 53;
const BLANK: [char; 2] = ['\n', ' '];

/// A comment as it was read.
#[derive(Debug)]
pub(super) struct Staged {
    /// The record, with its id and body bounded and an impossible edit time removed. `page` replaces its thread.
    pub(super) record: record::Comment,
    file: u64,
    pub(super) page: usize,
    /// Whether the source has an id for the comment.
    has_id: bool,
    /// Unix seconds; `None` if the time is impossible for a comment.
    pub(super) created: Option<i64>,
    /// A short hash of the writer in the source; `None` for comments that are exported or deleted, or whose writer was
    /// erased.
    pub(super) writer: Option<String>,
    /// Why the record itself cannot be imported.
    refusal: Option<Reason>,
    /// Whether readers see only a part of the body.
    is_cut: bool,
    /// Whether the writer was erased from the table.
    is_forgotten: bool,
}

impl Staged {
    fn id(&self) -> &str {
        &self.record.source_id
    }

    /// Whether this is a placeholder in an export.
    fn is_placeholder(&self) -> bool {
        self.record.id.is_some() && self.record.state == RecordState::Deleted && !self.is_forgotten
    }
}

#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) fate: Fate,
    /// The number of the comment's thread.
    pub(super) thread: Option<usize>,
    /// The id that the comment has, had or will have in the table.
    pub(super) id: Option<CommentId>,
    /// Ancestors from the top-level comment down.
    pub(super) ancestors: Vec<CommentId>,
    /// Whether the comment is already in the table, where its ancestors may differ from the source's.
    pub(super) is_there: bool,
    /// Whether the table has another version of an exported comment.
    pub(super) is_changed: bool,
    /// Whether everyone may see the comment and all its ancestors.
    pub(super) is_shown: bool,
    /// Position among the approved replies of its parent, from 1.
    pub(super) rank: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Target {
    /// The thread as `type/id`.
    pub(super) name: String,
    pub(super) thread: ThreadId,
    /// The source's data about the thread's pages.
    pub(super) about: thread::Thread,
    /// The comments with an id, including deleted ones.
    pub(super) comments: Vec<usize>,
}

/// All threads of the import. The number of a thread is its index in `all`.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) all: Vec<Target>,
    numbers: HashMap<ThreadId, usize>,
}

impl Targets {
    /// The number of a thread, which is added if it's new.
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

/// Everything that was read, and the decisions about it. `decisions` and `places` have an element for each comment.
#[derive(Default)]
pub struct Staging {
    pub(super) comments: Vec<Staged>,
    pub(super) decisions: Vec<Decision>,
    pub(super) places: Vec<Place>,
    /// The comments, parents before their replies.
    pub(super) order: Vec<usize>,
    /// Indices of the comments by their id in the table, including ids of deleted comments and of those not written
    /// yet.
    pub(super) located: HashMap<CommentId, usize>,
    pub(super) threads: Targets,
    pages: Vec<record::Thread>,
    page_numbers: HashMap<String, usize>,
    /// Keys of pages without a thread.
    unmapped: BTreeSet<String>,
    users: HashMap<String, User>,
    export: Export,
    /// The number of the current file.
    pub(super) file: u64,
    /// The site that the user or the source named.
    pub(super) site: Option<String>,
    /// The latest possible time of a comment, in Unix seconds.
    pub(super) latest: Option<i64>,
    /// The names of files without comments.
    pub silent: Vec<String>,
    /// Lists that are incomplete according to the sources, and texts that couldn't be read completely.
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

    /// The number of the page with this key, which is added if it's new.
    fn page(&mut self, key: &str) -> usize {
        if let Some(number) = self.page_numbers.get(key) {
            return *number;
        }
        self.pages.push(record::Thread { key: key.to_owned(), ..record::Thread::default() });
        self.page_numbers.insert(key.to_owned(), self.pages.len() - 1);
        self.pages.len() - 1
    }

    /// Adds a comment. An exported one keeps its id, and its body isn't cleaned.
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

    /// Resets every comment to its place in the source, without an id.
    pub(super) fn forget_places(&mut self) {
        let place = |decision: &Decision| Place { fate: decision.fate, thread: decision.thread, ..Place::default() };
        self.places = self.decisions.iter().map(place).collect();
        self.located.clear();
    }

    /// The state in the table. A placeholder is always approved.
    pub(super) fn state(&self, index: usize) -> RecordState {
        let is_placeholder = self.decisions[index].placeholder.is_some();
        if is_placeholder { RecordState::Approved } else { self.comments[index].record.state }
    }

    pub fn report(&self) -> Report {
        let mut report = Report { read: self.comments(), missing: self.missing.clone(), ..Report::default() };
        for (index, place) in self.places.iter().enumerate() {
            let (comment, decision) = (&self.comments[index], &self.decisions[index]);
            // If the source has no id for a comment, its number in the import identifies it.
            let id = || if comment.has_id { comment.id().to_owned() } else { format!("#{}", index + 1) };
            let entry = |reason: &str| Entry { id: id(), reason: reason.to_owned() };
            match place.fate {
                Fate::New => {
                    report.new += 1;
                    report.moved.extend(decision.moved.map(|moved| entry(moved.name())));
                    report.cut.extend((comment.is_cut && decision.placeholder.is_none()).then(id));
                }
                Fate::AlreadyThere => {
                    report.already_there += 1;
                    report.changed.extend(place.is_changed.then(id));
                }
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

    /// The types of threads with imported comments.
    pub fn types(&self) -> BTreeSet<String> {
        let threads = self.places.iter().filter(|place| place.fate.stays()).filter_map(|place| place.thread);
        threads.map(|thread| self.threads.all[thread].thread.kind.clone()).collect()
    }
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Fills in attributes that earlier records of the page lack, and adds aliases.
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

/// The body of an exported comment, cut if it's too long, and whether readers see only a part of it.
fn kept_body(comment: &record::Comment) -> (String, bool) {
    if comment.state == RecordState::Deleted {
        return (String::new(), false);
    }
    let kept = &comment.body[..comment.body.floor_char_boundary(MAX_BODY)];
    (kept.to_owned(), kept.len() < comment.body.len() || !rendering::is_shown_whole(kept))
}

/// The body in Markdown, without characters that must not be stored, and whether readers see only a part of it. Empty
/// if nothing of it is visible.
fn body(comment: &record::Comment) -> (String, bool) {
    let body = match comment.format {
        BodyFormat::Markdown => comment.body.replace("\r\n", "\n").replace(['\r', '\u{b}', '\u{c}'], "\n"),
        BodyFormat::Html => markdown::from_html(&comment.body),
    };
    let body: String = body.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let body = without_written_overrides(&visible::without_bidi_overrides(without_blank_ends(&body)));
    let kept = &body[..body.floor_char_boundary(MAX_BODY)];
    if rendering::shown(kept).is_nothing() {
        return (String::new(), false);
    }
    (kept.to_owned(), kept.len() < body.len() || !rendering::is_shown_whole(kept))
}

/// The Markdown without entities of bidirectional overrides, if readers would see any.
fn without_written_overrides(body: &str) -> String {
    if !body.contains("&#") || !visible::has_bidi_override(&rendering::render(body, "", &[""; 0])) {
        return body.to_owned();
    }
    let mut parts = body.split("&#");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.split_once(';').and_then(|(number, rest)| {
            let hexadecimal = number.strip_prefix(['x', 'X']);
            let code = hexadecimal.map_or_else(|| number.parse(), |digits| u32::from_str_radix(digits, 16)).ok()?;
            Some((char::from_u32(code)?, rest))
        });
        match code {
            Some((c, rest)) if visible::has_bidi_override(&c.to_string()) => {
                let is_entity = |tail: &str| tail.chars().all(|c| c.is_ascii_alphanumeric() || c == '#');
                // The text on both sides must not make another entity.
                if out.rsplit_once('&').is_some_and(|(_, tail)| is_entity(tail)) {
                    out.push(' ');
                }
                out.push_str(rest);
            }
            _ => out.extend(["&#", part]),
        }
    }
    out
}

/// The text without blank lines at its start, and without line feeds and spaces at its end. Keeps the indent of the
/// first line, because it may be that of code or of a list.
fn without_blank_ends(text: &str) -> &str {
    let text = text.trim_end_matches(BLANK);
    let blank = text.len() - text.trim_start_matches(BLANK).len();
    &text[text[..blank].rfind('\n').map_or(0, |end| end + 1)..]
}

/// The reason to refuse the record regardless of its thread and time.
fn refusal(comment: &record::Comment) -> Option<Reason> {
    if comment.is_oversized {
        return Some(Reason::Size);
    }
    (comment.likes > MAX_LIKES).then_some(Reason::Likes)
}

/// Bounds an id, because the keys that contain it have a length limit.
fn bounded_id(id: String) -> String {
    if id.len() <= MAX_ID { id } else { format!("~{}", sha256_hex(&id)) }
}

/// A short hash of the writer's account or name. Uses the address only if both are missing, because anyone with a list
/// of addresses could identify it from the hashes of several comments. The hash differs for every comment, so that only
/// those who already know a writer's name can tell which comments have the same writer.
fn writer_hash(source_id: &str, author: &record::Author) -> String {
    let names = [author.key.clone(), author.name.clone(), author.email.trim().to_lowercase()];
    let name = names.into_iter().find(|name| !name.is_empty());
    sha256_hex(&json(&(source_id, name)))[..4].to_owned()
}

/// A stable id for a comment without one. Doesn't depend on `--zone`, or on the indent of the body, which earlier
/// versions removed.
fn content_id(comment: &record::Comment, body: &str) -> String {
    let created = comment.written_at.or(comment.created_at).map_or(0, Timestamp::as_second);
    let body = body.trim_start_matches(BLANK);
    let text = json(&(&comment.thread, &comment.parent, created, &comment.author.name, body));
    format!("~{}", &sha256_hex(&text)[..16])
}

/// Whether this time is within the range of comment ids.
fn has_ids(at: Timestamp) -> bool {
    CommentId::slots(timestamp(at), 0).is_some()
}
