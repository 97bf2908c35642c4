//! Large threads, written directly into the table, with the items that the API would have written.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue::{self, L, N, Ns, S};
use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use shared::domain::ids::{CommentId, fingerprint};

use super::Failure;

pub type Item = HashMap<String, AttributeValue>;

/// The limit of `BatchWriteItem`.
const BATCH: usize = 25;
/// Bytes.
const BODY: usize = 330;
/// A rank is a count times this, plus the id.
const RANK: u128 = 10_000_000_000_000_000;

/// Items of comments that the API wrote. All others are copies of them.
pub struct Models {
    parent: Item,
    reply: Item,
}

impl Models {
    /// Reads a top-level comment and a reply to it, by their ids.
    pub async fn read(table: &Table<'_>, parent: u64, reply: u64) -> Result<Self, Failure> {
        Ok(Self { parent: table.stored(parent).await?, reply: table.stored(reply).await? })
    }
}

/// The table to write to.
pub struct Table<'a> {
    pub client: &'a Client,
    pub name: &'a str,
}

impl Table<'_> {
    /// The item of a comment.
    pub async fn stored(&self, id: u64) -> Result<Item, Failure> {
        let get = self.client.get_item().table_name(self.name).key("pk", text(format!("C#{id}"))).key("sk", text("C"));
        get.send().await?.item.ok_or_else(|| format!("there is no comment {id}").into())
    }

    /// Writes the thread `posts/{record}`. `comments` are ids, oldest first, each with a number of replies, whose ids
    /// follow their parent's. `progress` is called with the number of parents written.
    pub async fn write_thread(
        &self,
        models: &Models,
        record: &str,
        comments: &[(u64, usize)],
        mut progress: impl FnMut(usize),
    ) -> Result<(), Failure> {
        let thread = format!("posts#{record}");
        let mut items = Vec::new();
        for (place, (id, replies)) in comments.iter().enumerate() {
            let replies: Vec<u64> = (1..=*replies as u64).map(|n| id + n).collect();
            items.push(parent_item(&models.parent, &thread, *id, &replies));
            items.extend(replies.iter().map(|reply| reply_item(&models.reply, &thread, *id, *reply)));
            if items.len() >= BATCH || place + 1 == comments.len() {
                self.put(&items).await?;
                items.clear();
                progress(place + 1);
            }
        }
        let count = self.client.update_item().table_name(self.name).key("pk", text(format!("T#{thread}")));
        let count = count.key("sk", text("T")).update_expression("SET n = :n");
        count.expression_attribute_values(":n", number(comments.len())).send().await?;
        Ok(())
    }

    pub async fn put(&self, items: &[Item]) -> Result<(), Failure> {
        for batch in items.chunks(BATCH) {
            let write = |item: &Item| {
                let put = PutRequest::builder().set_item(Some(item.clone())).build()?;
                Ok(WriteRequest::builder().put_request(put).build())
            };
            let writes = batch.iter().map(write).collect::<Result<_, Failure>>()?;
            let answer = self.client.batch_write_item().request_items(self.name, writes).send().await?;
            if answer.unprocessed_items.is_some_and(|left| !left.is_empty()) {
                return Err("the table did not write all items".into());
            }
        }
        Ok(())
    }
}

/// 330 bytes of prose, different for each seed.
#[must_use]
pub fn prose(seed: u64) -> String {
    const WORDS: &str = "the comment thread I think that nobody reads this far but a reply would help with something \
                         quite different and never says more than";
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut state = seed;
    let mut text = String::new();
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 59).unwrap_or_default()
    };
    next();
    while text.len() < BODY {
        text.push_str(words[next() % words.len()]);
        text.push(' ');
    }
    text.truncate(BODY);
    text
}

#[must_use]
pub fn text(value: impl Into<String>) -> AttributeValue {
    S(value.into())
}

#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub fn number(value: impl ToString) -> AttributeValue {
    N(value.to_string())
}

fn parent_item(model: &Item, thread: &str, id: u64, replies: &[u64]) -> Item {
    let mut item = model.clone();
    let rank = RANK * replies.len() as u128 + u128::from(id);
    for (name, value) in [
        ("pk", text(format!("C#{id}"))),
        ("i", number(id)),
        ("t", text(thread)),
        ("b", text(prose(id))),
        ("tk", text(format!("T#{thread}"))),
        ("ts", text(format!("{id:016}"))),
        ("ok", text(format!("T#{thread}"))),
        ("l", number(id)),
        ("d", number(rank)),
    ] {
        item.insert(name.to_owned(), value);
    }
    if replies.is_empty() {
        item.remove("ld");
        item.remove("rc");
        item.remove("fp");
    } else {
        item.insert("ld".to_owned(), Ns(replies.iter().map(u64::to_string).collect()));
        item.insert("rc".to_owned(), number(replies.len()));
        let fingerprint = fingerprint(replies.iter().map(|id| CommentId(*id)));
        item.insert("fp".to_owned(), number(fingerprint));
    }
    item
}

fn reply_item(model: &Item, thread: &str, parent: u64, id: u64) -> Item {
    let mut item = model.clone();
    for (name, value) in [
        ("pk", text(format!("C#{id}"))),
        ("i", number(id)),
        ("t", text(thread)),
        ("p", L(vec![number(parent)])),
        ("b", text(prose(id))),
        ("tk", text(format!("T#{thread}"))),
        ("ts", text(format!("{parent:016}#{id:016}"))),
        ("ok", text(format!("C#{parent}"))),
    ] {
        item.insert(name.to_owned(), value);
    }
    item
}
