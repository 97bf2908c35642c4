//! Writes that repair a finding. Each holds only while what it was derived from is unchanged.

use aws_sdk_dynamodb::types::AttributeValue;
use shared::domain::ids::CommentId;
use shared::store::keys::{self, Item, Key};
use shared::store::schema::comment;
use shared::store::transaction::{self, Write};
use shared::store::{number, stored_number};

/// The attributes of a comment that a recount reads or decides.
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

/// An attribute and the value it should have; `None` for none.
pub(super) type Wanted = (&'static str, Option<AttributeValue>);

/// Checks that the comment is as it was read, in every attribute that a recount uses.
pub(super) fn unchanged(id: CommentId, item: &Item) -> Write {
    still_as(Write::check(keys::comment(id), transaction::exists()), item)
}

/// Checks that there is no such comment.
pub(super) fn absent(id: CommentId) -> Write {
    Write::check(keys::comment(id), transaction::absent())
}

/// Gives attributes of a comment their wanted values, if the comment is as it was read.
pub(super) fn correct(id: CommentId, item: &Item, wrong: &[Wanted]) -> Write {
    let update = still_as(Write::update(keys::comment(id)).exists(), item);
    wrong.iter().fold(update, |update, (name, wanted)| {
        update.assign(name, wanted.clone().filter(|value| *value != AttributeValue::Bool(false)))
    })
}

/// A stored count that is wrong, and the write that sets it, if it is still what was read.
pub(super) fn recounted(key: Key, name: &'static str, counted: u64, item: &Item) -> Option<(i64, Write)> {
    let stored = stored_number(item, name);
    let set = || Write::update(key).set(name, number(counted)).still(name, item.get(name).cloned());
    (i64::try_from(counted) != Ok(stored)).then(|| (stored, set()))
}

/// The condition that every derived attribute is as it was read.
fn still_as(write: Write, item: &Item) -> Write {
    DERIVED.iter().fold(write, |write, name| write.still(name, item.get(*name).cloned()))
}
