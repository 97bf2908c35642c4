//! Converts stored items to records. `docs/native-format.md` documents them.

use jiff::Timestamp;
use shared::domain::comment::{Comment, State};
use shared::domain::ids::{CommentId, Provenance, SourceId, ThreadId, Visitor};
use shared::domain::report::Report;
use shared::domain::thread::Thread;
use shared::domain::time;
use shared::domain::user::{Ban, User};

use crate::import::record::{self, BodyFormat, FORMAT, NATIVE, Record, VERSION, own_source};
use crate::store::export::GuestCount;

/// The head of an export. `salt` is the fingerprint of the hashes' salt, and `records` the number of records that
/// follow.
#[must_use]
pub fn head(salt: String, records: u64) -> Record {
    Record::Head(record::Head {
        format: FORMAT.to_owned(),
        version: VERSION,
        source: NATIVE.to_owned(),
        site: None,
        salt: Some(salt),
        records: Some(records),
    })
}

#[must_use]
pub fn thread(id: &ThreadId, stored: &Thread) -> Record {
    Record::Thread(record::Thread {
        key: thread_key(id),
        kind: Some(id.kind.clone()),
        id: Some(id.record.clone()),
        title: stored.title.clone(),
        url: stored.url.clone(),
        author_id: stored.author.map(|author| author.0),
        closed: stored.closed,
        ..record::Thread::default()
    })
}

/// The name by which comments refer to their thread.
#[must_use]
pub fn thread_key(id: &ThreadId) -> String {
    format!("{}/{}", id.kind, id.record)
}

#[must_use]
pub fn user(stored: &User) -> Record {
    let issued_at = stored.token_issued_at.and_then(|seconds| seconds.checked_mul(1000));
    Record::User(record::User {
        user_id: Some(stored.id.0),
        name: stored.name.clone(),
        picture: stored.avatar.clone().into(),
        token_issued_at: issued_at.map(time::Timestamp).map(instant),
        learned_at: stored.learned_at.map(instant),
        renamed_at: stored.renamed_at.map(instant),
        subject: stored.subject.clone(),
        // Bans that earlier versions stored have no id. The user's id replaces it.
        ban: stored.ban.as_ref().map(|ban| self::ban(stored.ban_id.unwrap_or(stored.id.0), ban)),
        ..record::User::default()
    })
}

fn ban(id: u64, stored: &Ban) -> record::Ban {
    record::Ban { id, until: stored.until.map(instant), reason: stored.reason.clone() }
}

/// The record of a comment; a placeholder becomes a deleted comment. The record lacks the pin and the provenance, which
/// are stored elsewhere.
#[must_use]
pub fn comment(stored: &Comment) -> Record {
    let resolutions = stored.resolutions.iter();
    let resolutions =
        resolutions.map(|stored| record::Resolution { until: instant(stored.until), status: stored.status });
    Record::Comment(Box::new(record::Comment {
        id: Some(stored.id.0),
        source_id: String::new(),
        thread: thread_key(&stored.thread),
        parent: stored.parent().map(|parent| parent.to_string()),
        created_at: Some(instant(stored.id.created_at())),
        written_at: None,
        edited_at: stored.edited_at.map(instant),
        author: author(stored),
        body: stored.body.clone(),
        format: BodyFormat::Markdown,
        state: state(stored),
        likes: stored.imported_likes,
        pinned: false,
        source: foreign_source(stored),
        provenance: Provenance::default(),
        pinned_at: None,
        held_for: stored.held_for(),
        mentions: stored.mentions.clone(),
        subscribed: stored.subscribed,
        reported: stored.reported,
        resolutions: resolutions.collect(),
        is_oversized: false,
    }))
}

fn author(stored: &Comment) -> record::Author {
    record::Author {
        user_id: stored.user.map(|user| user.0),
        visitor: stored.guest.as_ref().map(|guest| guest.0.clone()),
        name: stored.name.clone(),
        avatar: stored.avatar.clone().into(),
        address: stored.address.clone().unwrap_or_default(),
        moderator: stored.by_moderator,
        ..record::Author::default()
    }
}

fn state(stored: &Comment) -> record::RecordState {
    match stored.state {
        _ if stored.is_placeholder => record::RecordState::Deleted,
        State::Approved => record::RecordState::Approved,
        State::Pending => record::RecordState::Pending,
        State::Rejected => record::RecordState::Rejected,
    }
}

/// The source of a comment, unless it was written in this table, or in the table whose export brought it here.
fn foreign_source(stored: &Comment) -> Option<String> {
    let source = stored.source.as_ref()?;
    (*source != own_source(stored.id)).then(|| source.0.clone())
}

#[must_use]
pub fn like(comment: CommentId, visitor: &Visitor) -> Record {
    Record::Like(record::Like { comment: comment.0, visitor: visitor.0.clone() })
}

#[must_use]
pub fn report(comment: CommentId, stored: &Report) -> Record {
    Record::Report(record::Report {
        comment: comment.0,
        id: stored.id,
        reason: stored.reason.clone(),
        created_at: instant(stored.created_at),
        visitor: stored.visitor.0.clone(),
        user_id: stored.user.map(|user| user.0),
        name: stored.name.clone(),
        avatar: stored.avatar.clone().into(),
    })
}

#[must_use]
pub fn guest_bound(stored: &GuestCount) -> Record {
    Record::GuestBound(record::GuestBound {
        comment: stored.comment.0,
        network: stored.network.clone(),
        count: stored.count,
    })
}

#[must_use]
pub fn tombstone(source: &SourceId, id: CommentId, provenance: Provenance) -> Record {
    Record::Tombstone(record::Tombstone { source: source.0.clone(), id: id.0, provenance })
}

/// Converts a time. Clamps times that text can't represent, such as those after the year 9999.
fn instant(time: time::Timestamp) -> Timestamp {
    let bound = if time.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(time.0)
        .unwrap_or_else(|_| Timestamp::from_millisecond(bound.as_millisecond()).unwrap_or(bound))
}
