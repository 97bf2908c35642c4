//! The sources of imported comments. A later import finds a comment by the item of its source, and recognizes another
//! site's comment by its page and writer. A deletion turns the item into a tombstone.

use std::collections::HashMap;

use serde::Deserialize;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, Provenance, SourceId};
use shared::error::Fault;
use shared::store::keys::{self, Item};
use shared::store::schema::source;
use shared::store::transaction::Write;
use shared::store::{Reading, Store, number, read, text, yes};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SourceRow {
    /// The comment, which an interrupted import may not have written.
    #[serde(rename = "i")]
    pub comment: CommentId,
    #[serde(rename = "dl", default)]
    pub is_deleted: bool,
    #[serde(rename = "th", default)]
    thread: Option<String>,
    #[serde(rename = "wr", default)]
    writer: Option<String>,
}

impl SourceRow {
    #[must_use]
    pub fn new(comment: CommentId, is_deleted: bool, provenance: Provenance) -> Self {
        let Provenance { thread, writer } = provenance;
        Self { comment, is_deleted, thread, writer }
    }

    #[must_use]
    pub fn provenance(&self) -> Provenance {
        Provenance { thread: self.thread.clone(), writer: self.writer.clone() }
    }

    /// The part of the item that may stay after the comment is erased.
    pub(super) fn without_writer(self) -> Self {
        Self { writer: None, ..self }
    }

    pub(super) fn item(&self, source: &SourceId) -> Item {
        let mut item = keys::source(source).item();
        item.insert(source::COMMENT.to_owned(), number(self.comment.0));
        item.extend(self.is_deleted.then(|| (source::DELETED.to_owned(), yes())));
        for (name, value) in [(source::THREAD, &self.thread), (source::WRITER, &self.writer)] {
            item.extend(value.as_ref().map(|value| (name.to_owned(), text(value))));
        }
        item
    }

    pub(super) fn put(&self, source: &SourceId) -> Write {
        Write::put(self.item(source))
    }
}

pub(super) fn source_row(comment: &Comment, provenance: &Provenance) -> Option<Item> {
    let source = comment.source.as_ref()?;
    Some(SourceRow::new(comment.id, false, provenance.clone()).item(source))
}

pub async fn rows_of(store: &Store, sources: &[SourceId]) -> Result<HashMap<SourceId, SourceRow>, Fault> {
    let mut items = store.batch_get(sources.iter().map(keys::source).collect(), Reading::Consistent).await?;
    let found = sources.iter().filter_map(|source| Some((source.clone(), items.remove(&keys::source(source))?)));
    found.map(|(source, item)| Ok((source, read(item)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_row_survives_a_round_trip() {
        let provenance = Provenance { thread: Some("a page".to_owned()), writer: Some("a writer".to_owned()) };
        let row = SourceRow::new(CommentId(12), true, provenance);
        assert_eq!(read::<SourceRow>(row.item(&SourceId("disqus:5#58".to_owned()))).unwrap(), row);
    }
}
