//! Indexes and eventually consistent reads that show an old state of some items for as long as a test wants: orders of
//! replies and answers by id do not depend on it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue::S;
use http::Method;
use local::engine::Engine;
use serde_json::{Value, json};

use crate::faults::Faulty;
use crate::world::{Person, TABLE, World};

/// The service on a table whose copies are held back item by item.
struct Lagging {
    faulty: Faulty,
    world: World,
}

impl Lagging {
    fn new() -> Self {
        let engine = Engine::memory().unwrap();
        let faulty = Faulty::new(engine.clone(), 1).calm().lagging(Duration::ZERO);
        let world = World::on(engine, faulty.client(), &[]);
        Self { faulty, world }
    }

    /// Copies hear nothing more of these comments, and of all others everything.
    async fn hold(&self, comments: &[u64]) {
        self.faulty.hold(comments.iter().map(|id| format!("\"C#{id}\"")).collect()).await;
    }

    /// Copies hear nothing more of any comment.
    async fn hold_all(&self) {
        self.faulty.hold(vec!["\"C#".to_owned()]).await;
    }

    /// The replies that stand beside their parent.
    async fn inline(&self, parent: u64) -> Vec<u64> {
        let get = self.world.engine.client().get_item().table_name(TABLE).consistent_read(true);
        let item = get.key("pk", S(format!("C#{parent}"))).key("sk", S("C".to_owned())).send().await.unwrap();
        let item = item.item.unwrap();
        let inline = item.get("ld").map_or(&[][..], |ids| ids.as_ns().unwrap());
        let mut inline: Vec<u64> = inline.iter().map(|id| id.parse().unwrap()).collect();
        inline.sort_unstable();
        inline
    }

    async fn in_order(&self) {
        assert_eq!(self.world.findings().await, [""; 0]);
    }
}

async fn parent(ada: &Person) -> u64 {
    ada.write("posts/1", None, "parent").await.ok(201).id()
}

async fn reply(ada: &Person, parent: u64) -> u64 {
    ada.write("posts/1", Some(parent), "reply").await.ok(201).id()
}

async fn replies(ada: &Person, parent: u64, count: usize) -> Vec<u64> {
    let mut replies = Vec::new();
    for _ in 0..count {
        replies.push(reply(ada, parent).await);
    }
    replies
}

async fn delete(ada: &Person, id: u64) {
    ada.call(Method::DELETE, &format!("comments/{id}"), None).await.ok(204);
}

/// All replies, by cursor.
async fn walk(person: &Person, parent: u64) -> Vec<u64> {
    let mut next = Some(format!("comments/{parent}/replies?per_page=1&cursor="));
    let mut met = Vec::new();
    while let Some(path) = next {
        let page = person.get(&path).await.ok(200).json;
        met.extend(ids(&page["data"]));
        next = page["links"]["next"].as_str().map(|link| link.split_once("/svc/api/v1/").unwrap().1.to_owned());
    }
    met
}

/// The replies that the list of the thread shows below its first comment.
async fn embedded(person: &Person) -> Vec<u64> {
    ids(&person.get("posts/1/comments").await.ok(200).json["data"][0]["replies"])
}

fn ids(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_reply_that_indexes_name_late_is_not_passed_by_when_replies_move_up() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = parent(&ada).await;
    let mut replies = replies(&ada, parent, 3).await;
    table.hold_all().await;
    let late = reply(&ada, parent).await;
    table.hold(&[late]).await;
    replies.extend([late, reply(&ada, parent).await]);
    delete(&ada, replies.remove(0)).await;
    table.world.stack.wait_until_idle().await;
    table.in_order().await;

    table.hold(&[]).await;
    assert_eq!(walk(&ada, parent).await, replies);
    assert_eq!(embedded(&ada).await, replies[..3]);
}

#[tokio::test]
async fn an_index_that_misses_one_reply_and_still_names_a_deleted_one_does_not_pass_for_whole() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = parent(&ada).await;
    let mut replies = replies(&ada, parent, 3).await;
    table.hold_all().await;
    replies.push(reply(&ada, parent).await);
    table.hold(&replies[3..]).await;
    let deleted = reply(&ada, parent).await;
    replies.push(reply(&ada, parent).await);
    table.hold(&[replies[3], deleted]).await;
    for id in [deleted, replies.remove(0), replies.remove(0)] {
        delete(&ada, id).await;
    }
    table.world.stack.wait_until_idle().await;
    table.in_order().await;

    table.hold(&[]).await;
    assert_eq!(walk(&ada, parent).await, replies);
    assert_eq!(embedded(&ada).await, replies);
}

#[tokio::test]
async fn replies_move_up_once_indexes_name_them_all() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = parent(&ada).await;
    let mut replies = replies(&ada, parent, 5).await;
    table.hold(&replies[..1]).await;
    delete(&ada, replies.remove(0)).await;
    table.world.stack.wait_until_idle().await;
    table.hold(&[]).await;
    ada.post(&format!("comments/{parent}/like"), None).await.ok(200);
    table.world.stack.wait_until_idle().await;
    assert_eq!(table.inline(parent).await, replies[..3]);
    table.in_order().await;
}

#[tokio::test]
async fn replies_move_up_below_a_parent_without_a_fingerprint_of_them() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = parent(&ada).await;
    let mut replies = replies(&ada, parent, 5).await;
    let forget = table.world.engine.client().update_item().table_name(TABLE).update_expression("REMOVE fp");
    forget.key("pk", S(format!("C#{parent}"))).key("sk", S("C".to_owned())).send().await.unwrap();
    delete(&ada, replies.remove(0)).await;
    table.world.stack.wait_until_idle().await;
    assert_eq!(table.inline(parent).await, replies[..3]);
    table.in_order().await;
}

#[tokio::test]
async fn an_answer_by_id_does_not_depend_on_copies_that_lag() {
    let table = Lagging::new();
    let (ada, bob) = (table.world.user(7, "Ada"), table.world.user(8, "Bob"));
    table.hold_all().await;
    let mut above = parent(&ada).await;
    for _ in 0..3 {
        let below = reply(&bob, above).await;
        bob.get(&format!("comments/{below}/replies")).await.ok(200);
        bob.post(&format!("comments/{below}/like"), None).await.ok(200);
        ada.post(&format!("comments/{below}/report"), Some(json!({ "reason": "spam" }))).await.ok(201);
        let edit = Some(json!({ "body": "edited" }));
        bob.call(Method::PATCH, &format!("comments/{below}"), edit).await.ok(200);
        above = below;
    }
}

#[tokio::test]
async fn what_a_moderator_just_approved_is_there_by_id_whatever_copies_say() {
    let table = Lagging::new();
    let (ada, bob) = (table.world.user(7, "Ada"), table.world.user(8, "Bob"));
    let moderator = table.world.moderator(9, "Grace");
    let held = ada.write("posts/1", None, "doubtful").await.ok(201).id();
    let below = reply(&ada, held).await;
    table.hold(&[held]).await;
    moderator.post(&format!("comments/{held}/approve"), None).await.ok(200);
    for id in [held, below] {
        bob.get(&format!("comments/{id}/replies")).await.ok(200);
        bob.post(&format!("comments/{id}/like"), None).await.ok(200);
        bob.post(&format!("comments/{id}/report"), Some(json!({ "reason": "spam" }))).await.ok(201);
        reply(&bob, id).await;
    }
}

#[tokio::test]
async fn a_hidden_reply_goes_with_its_parent_though_copies_do_not_know_it_yet() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = parent(&ada).await;
    table.faulty.hold(vec!["\"H#".to_owned()]).await;
    ada.write("posts/1", Some(parent), "doubtful").await.ok(201);
    delete(&ada, parent).await;
    table.world.stack.wait_until_idle().await;
    table.in_order().await;
}
