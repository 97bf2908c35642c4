//! Writes that repair a finding. Each holds only while what it was derived from is unchanged.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::domain::ids::CommentId;
use crate::store::keys::{self, Item, Key};
use crate::store::transaction::Write;
use crate::store::{changes, number};

/// What a recount reads or decides of a comment: the attribute, and the names of its values as seen and as wanted.
const DERIVED: [(&str, &str, &str); 16] = [
    ("s", ":s", ":s_"),
    ("rv", ":rv", ":rv_"),
    ("ok", ":ok", ":ok_"),
    ("tk", ":tk", ":tk_"),
    ("ts", ":ts", ":ts_"),
    ("a", ":a", ":a_"),
    ("i", ":i", ":i_"),
    ("lc", ":lc", ":lc_"),
    ("l", ":l", ":l_"),
    ("rc", ":rc", ":rc_"),
    ("d", ":d", ":d_"),
    ("fp", ":fp", ":fp_"),
    ("ld", ":ld", ":ld_"),
    ("tr", ":tr", ":tr_"),
    ("rp", ":rp", ":rp_"),
    ("ro", ":ro", ":ro_"),
];

/// An attribute and the value it should have; `None` for none.
pub(super) type Wanted = (&'static str, Option<AttributeValue>);

/// Checks that the comment is as it was read, in every attribute that a recount uses.
pub(super) fn unchanged(id: CommentId, item: &Item) -> Write {
    let (condition, values) = seen(item);
    with_all(Write::check(keys::comment(id), condition), values)
}

/// Checks that there is no such comment.
pub(super) fn absent(id: CommentId) -> Write {
    Write::check(keys::comment(id), "attribute_not_exists(pk)")
}

/// Gives attributes of a comment their wanted values, if the comment is as it was read.
pub(super) fn correct(id: CommentId, item: &Item, wrong: &[Wanted]) -> Write {
    let (condition, mut values) = seen(item);
    let (mut sets, mut removes) = (Vec::new(), Vec::new());
    for (name, wanted) in wrong {
        let variable = DERIVED.iter().find(|(derived, _, _)| derived == name).map_or("", |(_, _, variable)| variable);
        match wanted {
            Some(AttributeValue::Bool(false)) | None => removes.push(*name),
            Some(value) => {
                sets.push(format!("{name} = {variable}"));
                values.push((variable, value.clone()));
            }
        }
    }
    let write = Write::update(keys::comment(id), changes(&sets, &removes)).when(condition);
    with_all(write, values)
}

/// Sets a count, if it is what was read.
pub(super) fn set_count(key: Key, name: &str, counted: u64, item: &Item) -> Write {
    let write = Write::update(key, format!("SET {name} = :counted")).with(":counted", number(counted));
    match item.get(name) {
        Some(seen) => write.when(format!("{name} = :seen")).with(":seen", seen.clone()),
        None => write.when(format!("attribute_not_exists({name})")),
    }
}

/// The condition that a comment is as it was read, with its values.
fn seen(item: &Item) -> (String, Vec<(&'static str, AttributeValue)>) {
    let mut values = Vec::new();
    let mut conditions = vec!["attribute_exists(pk)".to_owned()];
    for (name, seen, _) in DERIVED {
        match item.get(name) {
            Some(value) => {
                conditions.push(format!("{name} = {seen}"));
                values.push((seen, value.clone()));
            }
            None => conditions.push(format!("attribute_not_exists({name})")),
        }
    }
    (conditions.join(" AND "), values)
}

fn with_all(write: Write, values: Vec<(&'static str, AttributeValue)>) -> Write {
    values.into_iter().fold(write, |write, (name, value)| write.with(name, value))
}
