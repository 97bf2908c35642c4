//! What should be so of imported comments: each was imported once, and has no tombstone while it exists.

use std::collections::BTreeMap;

use super::Finding;
use super::snapshot::Snapshot;
use crate::domain::ids::{CommentId, SourceId};
use crate::store::transaction::Write;
use crate::store::{keys, text};

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut imported: BTreeMap<&SourceId, CommentId> = BTreeMap::new();
    let mut findings = Vec::new();
    for (id, stored) in &snapshot.comments {
        let Some(source) = &stored.comment.source else { continue };
        if let Some(other) = imported.insert(source, *id) {
            // Nobody knows which of the two has the replies and likes to keep.
            findings.push(Finding::of_comment(*id, format!("{source} was imported as {other} too"), Vec::new()));
        }
        if snapshot.tombstones.contains(source) {
            let exists = Write::check(keys::comment(*id), "so = :source").with(":source", text(source.to_string()));
            let repair = vec![Write::delete(keys::tombstone(source)), exists];
            findings.push(Finding::of_comment(*id, format!("exists, but {source} has a tombstone"), repair));
        }
    }
    findings
}
