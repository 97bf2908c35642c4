//! Writes that repair a finding. Each succeeds only if the data that it's derived from is unchanged.

use aws_sdk_dynamodb::types::AttributeValue;
use shared::domain::ids::CommentId;
use shared::store::keys::{self, Item, Key};
use shared::store::schema::comment;
use shared::store::transaction::{self, Write};
use shared::store::{number, stored_number};

/// Attributes of a comment that a recount reads or derives. A repair requires that they are unchanged.
const DERIVED: [&str; 20] = [
    comment::STATE,
    comment::IN_REVIEW,
    comment::PLACEHOLDER,
    comment::ORDER_KEY,
    comment::THREAD_KEY,
    comment::THREAD_SORT,
    comment::AUTHOR_KEY,
    comment::ID,
    comment::LIKES,
    comment::IMPORTED_LIKES,
    comment::LIKES_RANK,
    comment::REPLIES,
    comment::REPLIES_RANK,
    comment::FINGERPRINT,
    comment::INLINE,
    comment::HAS_SEPARATE,
    comment::REPORTS,
    comment::NEWEST_REPORTS,
    comment::REPORTED,
    comment::DELETION_GUARD,
];

/// An attribute and the value it should have; `None` if it should be missing.
pub(super) type Wanted = (&'static str, Option<AttributeValue>);

/// Checks that the comment's [`DERIVED`] attributes are unchanged since it was read.
pub(super) fn unchanged(id: CommentId, item: &Item) -> Write {
    still_as(Write::check(keys::comment(id), transaction::exists()), item)
}

pub(super) fn absent(id: CommentId) -> Write {
    Write::check(keys::comment(id), transaction::absent())
}

/// Corrects attributes of a comment, if its [`DERIVED`] attributes are unchanged since it was read.
pub(super) fn correct(id: CommentId, item: &Item, wrong: &[Wanted]) -> Write {
    let update = still_as(Write::update(keys::comment(id)).exists(), item);
    wrong.iter().fold(update, |update, (name, wanted)| {
        update.assign(name, wanted.clone().filter(|value| *value != AttributeValue::Bool(false)))
    })
}

/// The stored count if it's wrong, and a write that corrects it unless it has changed.
pub(super) fn recounted(key: Key, name: &'static str, counted: u64, item: &Item) -> Option<(i64, Write)> {
    let stored = stored_number(item, name);
    let set = || Write::update(key).set(name, number(counted)).still(name, item.get(name).cloned());
    (i64::try_from(counted) != Ok(stored)).then(|| (stored, set()))
}

/// Adds the condition that the [`DERIVED`] attributes are unchanged since the item was read.
fn still_as(write: Write, item: &Item) -> Write {
    DERIVED.iter().fold(write, |write, name| write.still(name, item.get(*name).cloned()))
}
