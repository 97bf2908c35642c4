//! Checks imported comments: each was imported once, and the item of its source refers to it.

use std::collections::BTreeMap;

use shared::domain::ids::{CommentId, SourceId};
use shared::store::deletion::tombstone_of;
use shared::store::schema::{comment, source};
use shared::store::transaction::Write;
use shared::store::{keys, number, text};

use super::Finding;
use super::repair::absent;
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut imported: BTreeMap<&SourceId, Vec<CommentId>> = BTreeMap::new();
    for (id, stored) in &snapshot.comments {
        if let Some(source) = &stored.comment.source {
            imported.entry(source).or_default().push(*id);
        }
    }
    let mut findings = Vec::new();
    for (source, ids) in &imported {
        match ids.as_slice() {
            [id] => findings.extend(check_row(snapshot, source, *id)),
            // No repair: it's unknown which of the comments has the replies and likes to keep.
            [first, others @ ..] => findings.extend(others.iter().map(|other| {
                Finding::of_comment(*other, format_args!("{source} was also imported as comment {first}"), Vec::new())
            })),
            [] => {}
        }
    }
    let live = snapshot.sources.iter().filter(|(_, row)| !row.is_deleted);
    let gone = live.filter(|(source, _)| !imported.contains_key(source));
    findings.extend(gone.map(|(source, row)| {
        // An interrupted import may not have written the comment, so a missing one wasn't necessarily deleted.
        let row_of = Write::delete(keys::source(source))
            .when(format!("{0} = :id", source::COMMENT))
            .with(":id", number(row.comment.0));
        let row_of = if snapshot.importing.is_empty() { tombstone_of(source, row.comment) } else { row_of };
        Finding::of_comment(
            row.comment,
            format_args!("is gone, but {source} names it"),
            vec![row_of, absent(row.comment)],
        )
    }));
    findings
}

fn check_row(snapshot: &Snapshot, source: &SourceId, id: CommentId) -> Option<Finding> {
    let problem = match snapshot.sources.get(source) {
        Some(row) if row.is_deleted => format!("exists, but {source} has a tombstone"),
        Some(row) if row.comment != id => format!("{source} names {} instead", row.comment),
        Some(_) => return None,
        None => format!("{source} does not name it"),
    };
    let row = Write::update(keys::source(source)).set(source::COMMENT, number(id.0)).remove(source::DELETED);
    let exists = Write::check(keys::comment(id), format!("{0} = :source", comment::SOURCE))
        .with(":source", text(source.to_string()));
    Some(Finding::of_comment(id, problem, vec![row, exists]))
}
