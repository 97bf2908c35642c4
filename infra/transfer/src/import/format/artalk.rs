//! Artalk's export format Artrans: an array of comments, each an object or a string that contains one. Most values are
//! strings.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, Comment, RecordState};
use super::super::source::{Marking, ReadError, Reader};
use super::json::{self, Attributes};
use super::{Sink, comment_record, created, page};

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let is_damaged = input.is_damaged();
    let mut number = 0;
    json::read(input, &[&[]], &mut |_, value| {
        number += 1;
        let is_oversized = value.is_oversized();
        let value = match &value {
            Value::String(text) => {
                let mut marked = Vec::with_capacity(text.len());
                Marking::new(is_damaged.clone()).pass(text.as_bytes(), &mut marked);
                let object: Map<String, Value> = serde_json::from_slice(&marked).map_err(|error| {
                    ReadError::whole(format!("record {number} is not valid: {}", json::without_place(&error)))
                })?;
                Value::Object(object)
            }
            _ => value,
        };
        let comment = comment(&value, zone);
        let page = page(&comment.thread, value.optional("page_title"));
        json::send([page], comment_record(comment, is_oversized), &value, sink)
    })
}

fn comment(value: &Value, zone: &TimeZone) -> Comment {
    Comment {
        source_id: value.text("id"),
        thread: value.text("page_key"),
        parent: value.optional("rid").filter(|parent| parent != "0"),
        author: Author {
            key: value.optional("user_id").unwrap_or_default(),
            name: value.text("nick"),
            email: value.text("email"),
            ..Author::default()
        },
        body: markdown::from_dialect(&value.body("content"), Dialect::ARTALK),
        state: if value.flag("is_pending") { RecordState::Pending } else { RecordState::Approved },
        likes: value.count("vote_up"),
        pinned: value.flag("is_pinned"),
        // `updated_at` also changes with votes, so it isn't the time of an edit.
        ..created(zone, |zone| value.time("created_at", zone))
    }
}
