//! What requests cost, as `DynamoDB` counts it. `cargo test -p tests --test api capacity -- --nocapture` prints the table.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue::{self, N, Ns, S};
use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use futures_util::future::join_all;
use http::header::ACCEPT_ENCODING;
use serde_json::{Value, json};
use tests::{Actor, Reply, START, TABLE, World};

pub(crate) type Item = HashMap<String, AttributeValue>;

/// 2025-01-01, from which ids count.
const EPOCH: i64 = 1_735_689_600_000;
const RANK: u128 = 10_000_000_000_000_000;
/// Replies of each parent that has any.
const REPLIES: usize = 3;

/// 330 bytes of prose, never twice the same.
pub(crate) fn prose(seed: u64) -> String {
    const WORDS: [&str; 24] = [
        "the",
        "comment",
        "thread",
        "I",
        "think",
        "that",
        "nobody",
        "reads",
        "this",
        "far",
        "but",
        "a",
        "reply",
        "would",
        "help",
        "with",
        "something",
        "quite",
        "different",
        "and",
        "never",
        "says",
        "more",
        "than",
    ];
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let mut text = String::new();
    while text.len() < 330 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[usize::try_from(state >> 59).unwrap() % WORDS.len()]);
        text.push(' ');
    }
    text.truncate(330);
    text
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    S(value.into())
}

#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub(crate) fn number(value: impl ToString) -> AttributeValue {
    N(value.to_string())
}

/// A thread `posts/big` as it would be after `count` parents, the pages that are looked at with three replies a parent.
/// The ids of the parents, oldest first.
pub(crate) async fn seed(world: &World, count: usize) -> Vec<u64> {
    let author = world.user(7, "Ada Lovelace");
    let parent = author.comment("posts/model", &prose(0)).await;
    let reply = author.reply("posts/model", parent, &prose(1)).await;
    let (parent, reply) = (stored(world, parent).await, stored(world, reply).await);
    let mut items = Vec::new();
    let mut ids = Vec::new();
    for place in 0..count {
        let age = i64::try_from(count - place).unwrap() * 1000;
        let id = u64::try_from(START - EPOCH - age).unwrap() << 12;
        ids.push(id);
        let from_top = count - place;
        let looked_at = place < 60 || from_top < 60 || (980..1_010).contains(&from_top);
        let replies: Vec<u64> = (1..=REPLIES as u64).filter(|_| looked_at).map(|n| id + n).collect();
        items.push(parent_item(&parent, id, &replies));
        items.extend(replies.iter().map(|reply_id| reply_item(&reply, id, *reply_id)));
    }
    put_all(world, &items).await;
    let count_parents = world.client().update_item().table_name(TABLE).key("pk", text("T#posts#big"));
    let count_parents = count_parents.key("sk", text("T")).update_expression("SET n = :n");
    count_parents.expression_attribute_values(":n", number(count)).send().await.unwrap();
    ids
}

pub(crate) async fn put_all(world: &World, items: &[Item]) {
    for batch in items.chunks(25) {
        let put = |item: &Item| PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
        let writes = batch.iter().map(|item| WriteRequest::builder().put_request(put(item)).build()).collect();
        let answer = world.client().batch_write_item().request_items(TABLE, writes).send().await.unwrap();
        assert!(answer.unprocessed_items.is_none_or(|left| left.is_empty()));
    }
}

/// The item of a comment.
pub(crate) async fn stored(world: &World, id: u64) -> Item {
    let get = world.client().get_item().table_name(TABLE).key("pk", text(format!("C#{id}"))).key("sk", text("C"));
    get.send().await.unwrap().item.unwrap()
}

fn parent_item(model: &Item, id: u64, replies: &[u64]) -> Item {
    let mut item = model.clone();
    let rank = RANK * replies.len() as u128 + u128::from(id);
    for (name, value) in [
        ("pk", text(format!("C#{id}"))),
        ("i", number(id)),
        ("t", text("posts#big")),
        ("b", text(prose(id))),
        ("tk", text("T#posts#big")),
        ("ts", text(format!("{id:016}"))),
        ("ok", text("T#posts#big")),
        ("l", number(id)),
        ("d", number(rank)),
    ] {
        item.insert(name.to_owned(), value);
    }
    if replies.is_empty() {
        item.remove("ld");
        item.remove("rc");
    } else {
        item.insert("ld".to_owned(), Ns(replies.iter().map(u64::to_string).collect()));
        item.insert("rc".to_owned(), number(replies.len()));
    }
    item
}

fn reply_item(model: &Item, parent: u64, id: u64) -> Item {
    let mut item = model.clone();
    for (name, value) in [
        ("pk", text(format!("C#{id}"))),
        ("i", number(id)),
        ("t", text("posts#big")),
        ("p", AttributeValue::L(vec![number(parent)])),
        ("b", text(prose(id))),
        ("tk", text("T#posts#big")),
        ("ts", text(format!("{parent:016}#{id:016}"))),
        ("ok", text(format!("C#{parent}"))),
    ] {
        item.insert(name.to_owned(), value);
    }
    item
}

/// Read units, write units, trips.
pub(crate) type Bound = (f64, f64, u32);

#[derive(Default)]
pub(crate) struct Table(Vec<(String, Reply, Bound)>);

impl Table {
    #[track_caller]
    pub(crate) fn row(&mut self, operation: impl Into<String>, reply: Reply, bound: Bound) {
        assert!(reply.status < 300, "{:#}", reply.json);
        self.0.push((operation.into(), reply, bound));
    }

    /// Prints the rows, and fails when one costs more than its bound.
    pub(crate) fn check(self) {
        println!("| operation | read units | write units | trips | bounds |\n|---|---|---|---|---|");
        let mut over = Vec::new();
        for (operation, reply, (read, write, trips)) in self.0 {
            let cost = reply.cost;
            println!(
                "| {operation} | {} | {} | {} | {read} / {write} / {trips} |",
                cost.read_units, cost.write_units, cost.trips
            );
            if cost.read_units > read || cost.write_units > write || cost.trips > trips {
                over.push(operation);
            }
        }
        assert!(over.is_empty(), "cost more than they may: {over:#?}");
    }
}

/// A user the table knows, who liked something in the thread.
async fn reader(world: &World, id: u64, liked: u64) -> Actor {
    let reader = world.user(id, "Reader");
    reader.post(&format!("comments/{liked}/like"), Value::Null).await.ok(200);
    reader
}

#[tokio::test]
async fn lists_cost_the_same_whatever_the_size_of_the_thread() {
    let mut table = Table::default();
    for count in [10, 1_000, 10_000] {
        let world = World::new();
        let ids = seed(&world, count).await;
        let newest = *ids.last().unwrap();
        let ada = reader(&world, 1000, newest).await;
        for sort in ["newest", "oldest"] {
            let reply = ada.list("posts/big", &format!("sort={sort}")).await;
            assert_eq!(reply.rows().len(), 10);
            assert!(reply.rows().iter().all(|row| row["replies"].as_array().unwrap().len() == REPLIES));
            table.row(format!("list, {sort}, of {count}"), reply, (4.5, 0.0, 1));
        }
        let reply = ada.list("posts/big", "cursor=").await;
        let next = reply.next().map(str::to_owned);
        table.row(format!("list, first of a walk, of {count}"), reply, (4.5, 0.0, 1));
        if let Some(next) = next {
            let reply = ada.get(&next).await;
            let prev = reply.prev().unwrap().to_owned();
            table.row(format!("list, next of a walk, of {count}"), reply, (4.5, 0.0, 1));
            table.row(format!("list, back in a walk, of {count}"), ada.get(&prev).await, (4.5, 0.0, 1));
        }
        let ada = reader(&world, 1001, newest).await;
        if count >= 1_000 {
            let reply = ada.list("posts/big", "page=100").await;
            assert_eq!(reply.rows().len(), 10);
            table.row(format!("list, page=100, of {count}"), reply, (20.0, 0.0, 2));
        }
        for sort in ["most_liked", "most_replied"] {
            let reply = ada.list("posts/big", &format!("sort={sort}")).await;
            assert_eq!(reply.rows().len(), 10);
            table.row(format!("list, {sort}, of {count}"), reply, (12.0, 0.0, 3));
        }
        world.seed_pin("posts/big", ids[0]).await;
        let reply = ada.list("posts/big", "").await;
        assert_eq!(reply.ids()[0], ids[0]);
        table.row(format!("list, newest, with a pin, of {count}"), reply, (5.0, 0.0, 2));
    }
    table.check();
}

#[tokio::test]
async fn single_requests_cost_what_they_may() {
    let world = World::with(&[("SVC_GUEST_LIKES", "true")]);
    let mut table = Table::default();
    let ada = world.user(7, "Ada Lovelace");
    let parent = ada.comment("posts/1", &prose(1)).await;
    let mut deepest = parent;
    for n in 0..12 {
        let id = ada.reply("posts/1", parent, &prose(n)).await;
        deepest = if n == 0 { id } else { deepest };
    }
    let below = ada.reply("posts/1", deepest, &prose(3)).await;
    let bob = reader(&world, 1000, parent).await;
    let guest = world.guest();
    table.row("replies, 10 of 12", guest.replies(parent, "").await, (3.0, 0.0, 2));
    table.row("replies, 10 of 12, signed in", bob.replies(parent, "").await, (3.0, 0.0, 2));
    let page = guest.replies(parent, "cursor=").await;
    let next = page.next().unwrap().to_owned();
    table.row("replies, first of a walk", page, (3.0, 0.0, 2));
    table.row("replies, next of a walk", guest.get(&next).await, (3.0, 0.0, 2));
    let body = json!({ "body": prose(4) });
    table.row("create a parent", bob.post("posts/1/comments", body).await, (2.0, 10.0, 2));
    // What stands above the parent is read once the parent is known: half a unit more for each, and a trip for all.
    for (name, parent, read, trips) in
        [("create a reply", parent, 2.0, 2), ("create a reply two deep", deepest, 2.5, 3)]
    {
        let body = json!({ "body": prose(5), "parent_id": parent });
        table.row(name, bob.post("posts/1/comments", body).await, (read, 11.0, trips));
    }
    let like = async |actor: &Actor, id: u64| actor.post(&format!("comments/{id}/like"), Value::Null).await;
    let cy = world.user(1001, "Cy");
    cy.get("ui").await.ok(200);
    table.row("like a parent", like(&cy, parent).await, (2.0, 8.0, 3));
    table.row("take the like back", like(&cy, parent).await, (2.0, 8.0, 3));
    table.row("like a reply", like(&cy, deepest).await, (2.5, 8.0, 3));
    table.row("like a reply two deep", like(&cy, below).await, (3.0, 8.0, 3));
    table.row("a guest likes a parent", like(&world.guest(), parent).await, (2.0, 10.0, 3));
    table.row("ui, signed in", bob.get("ui").await, (0.5, 0.0, 1));
    for (id, name) in (2000..).zip(["Dan", "Dana", "Daniel", "Jordan", "Big Dan", "Sedan"]) {
        world.user(id, name).get("ui").await.ok(200);
    }
    table.row("users search", bob.get("users?q=dan").await, (3.0, 0.0, 2));
    table.check();
}

#[tokio::test]
async fn the_list_page_compresses_to_8_kilobytes() {
    let world = World::new();
    let ids = seed(&world, 10).await;
    let ada = reader(&world, 1000, ids[0]).await.with(ACCEPT_ENCODING, "gzip");
    let reply = ada.list("posts/big", "").await;
    println!("the list page: {} bytes compressed, of {}", reply.body.len(), reply.json.to_string().len());
    assert!(reply.body.len() <= 8 * 1024, "{}", reply.body.len());
}

#[tokio::test]
async fn a_seeded_thread_is_as_one_written_through_the_api() {
    let world = World::new();
    let ids = seed(&world, 12).await;
    let ada = world.user(7, "Ada Lovelace");
    let written = join_all((0..2).map(|_| ada.comment("posts/big", "x"))).await;
    let reply = ada.reply("posts/big", ids[3], "y").await;
    let all = ada.list("posts/big", "sort=oldest&per_page=50").await;
    assert_eq!((all.ids()[..12].to_vec(), all.total()), (ids.clone(), 14));
    assert!(written.iter().all(|id| all.ids().contains(id)));
    assert_eq!(ada.replies(ids[3], "").await.ids(), [ids[3] + 1, ids[3] + 2, ids[3] + 3, reply]);
    assert_eq!(ada.list("posts/big", "sort=most_replied").await.ids()[0], ids[3]);
}
