//! Placeholders of deleted comments, which lists show above the replies.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::{Actor, World, ids};

use crate::list::comment;

/// Returns a placeholder as a list shows it to everyone.
fn placeholder(id: u64, parent: Option<u64>, replies: &[Value]) -> Value {
    let mut placeholder = comment(id, "", &json!({ "id": null, "name": "", "avatar": "" }), false, parent, replies);
    for (field, value) in
        [("is_deleted", json!(true)), ("html", json!("")), ("replies_count", json!(1)), ("is_guest", json!(true))]
    {
        placeholder[field] = value;
    }
    placeholder
}

/// A top-level comment, a reply to it, and a reply to that reply, all by the moderator. The first two are placeholders.
struct Scene {
    world: World,
    moderator: Actor,
    top: u64,
    reply: u64,
    deep: u64,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new();
        let moderator = world.moderator();
        world.moderator().put("posts/1", json!({ "author_id": 1 })).await.ok(200);
        let top = moderator.comment("posts/1", "top @mod").await;
        let reply = moderator.reply("posts/1", top, "reply").await;
        for id in [top, reply] {
            moderator.like(id).await.ok(200);
            world.user(7, "Ada").report(id, "spam").await.ok(201);
            world.guest().report(id, "spam").await.ok(201);
        }
        let deep = moderator.reply("posts/1", reply, "deep").await;
        moderator.edit(top, "edited").await.ok(200);
        world.wait_until_idle().await;
        for id in [top, reply] {
            moderator.remove(id).await.ok(204);
        }
        Self { world, moderator, top, reply, deep }
    }
}

#[tokio::test]
async fn a_placeholder_is_listed_with_its_replies_and_without_its_writer_and_text() {
    let Scene { world, moderator, top, reply, deep } = Scene::new().await;
    for actor in [world.guest(), world.user(7, "Ada"), moderator] {
        let embedded = placeholder(reply, Some(top), &[]);
        let list = actor.list("posts/1", "").await;
        assert_eq!(list.json["data"], json!([placeholder(top, None, std::slice::from_ref(&embedded))]));
        assert_eq!(actor.replies(top, "").await.json["data"], json!([embedded]));
        let below = actor.replies(reply, "").await;
        assert_eq!((below.ids(), &below.rows()[0]["body"]), (vec![deep], &json!("deep")));
        assert!(below.rows()[0].get("is_deleted").is_none());
    }
}

#[tokio::test]
async fn nothing_that_names_the_writer_or_the_text_stays_in_the_item_of_a_placeholder() {
    let Scene { world, top, .. } = Scene::new().await;
    let item = world.item(&format!("C#{top}"), "C").await.unwrap();
    for attribute in ["u", "g", "n", "av", "mo", "b", "m", "e", "sb", "sp", "su", "a", "lc", "rp", "ro", "rl", "rs"] {
        assert!(!item.contains_key(attribute), "{attribute}: {item:?}");
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_placeholder_counts_in_lists_but_not_among_the_comments_of_the_thread() {
    let Scene { world, moderator, top, deep, .. } = Scene::new().await;
    assert_eq!((moderator.list("posts/1", "").await.total(), moderator.replies(top, "").await.total()), (1, 1));
    world.wait_until_idle().await;
    let counted = world.items().await.into_iter().filter(|item| item["sk"].as_s().unwrap().starts_with("K#"));
    let counted: Vec<String> = counted.map(|item| item["sk"].as_s().unwrap().clone()).collect();
    assert_eq!(counted, [format!("K#{deep:016}")]);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_placeholder_is_404_except_for_its_replies_and_refuses_new_replies() {
    let Scene { world, moderator, top, .. } = Scene::new().await;
    let open = world.again(&[("SVC_GUEST_LIKES", "true")]);
    for actor in [open.guest(), world.user(7, "Ada"), moderator.clone()] {
        actor.like(top).await.refused(404, "not_found");
        actor.report(top, "spam").await.refused(404, "not_found");
    }
    for actor in [world.user(7, "Ada"), moderator] {
        actor.edit(top, "new").await.refused(404, "not_found");
        actor.remove(top).await.refused(404, "not_found");
        actor.pin(top).await.refused(404, "not_found");
        actor.unpin(top).await.refused(404, "not_found");
        for verdict in ["approve", "reject", "reports/dismiss"] {
            actor.judge(top, verdict).await.refused(404, "not_found");
        }
        actor.get(&format!("comments/{top}/reports")).await.refused(404, "not_found");
        actor.write("posts/1", Some(top), "reply").await.invalid("parent_id");
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_comment_that_becomes_a_placeholder_leaves_its_pin_its_queues_and_its_writers_comments() {
    let world = World::with(&[("SVC_GUEST_LIKES", "true")]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let held = world.again(&[("SVC_SPAM_REVIEW", "doubtful")]);
    let top = ada.comment("posts/1", "top").await;
    let reply = ada.reply("posts/1", top, "reply").await;
    moderator.pin(top).await.ok(200);
    for visitor in [&ada, &world.guest()] {
        visitor.like(top).await.ok(200);
        visitor.report(top, "spam").await.ok(201);
    }
    held.user(7, "Ada").edit(top, "doubtful").await.ok(200);
    assert_eq!((moderator.queue("pending").await, moderator.queue("reported").await), (vec![top], vec![top]));
    ada.remove(top).await.ok(204);
    assert_eq!((moderator.queue("pending").await, moderator.queue("reported").await), (vec![], vec![]));
    world.user(7, "Ada Lovelace").get("ui").await.ok(200);
    world.wait_until_idle().await;
    let shown = ada.see("posts/1", top).await;
    assert_eq!((&shown["pinned"], &shown["likes_count"]), (&json!(false), &json!(0)));
    assert_eq!((&shown["liked"], &shown["reported"]), (&json!(false), &json!(false)));
    assert_eq!((&shown["user"]["name"], &shown["replies"][0]["user"]["name"]), (&json!(""), &json!("Ada Lovelace")));
    assert_eq!(ids(&shown["replies"]), [reply]);
    let below = world.items().await.into_iter().filter(|item| item["pk"].as_s().unwrap() == &format!("C#{top}"));
    assert_eq!(below.map(|item| item["sk"].as_s().unwrap().clone()).collect::<Vec<_>>(), ["C"]);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_placeholder_is_ranked_without_its_likes() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (liked, other) = (ada.comment("posts/1", "liked").await, ada.comment("posts/1", "other").await);
    ada.reply("posts/1", liked, "reply").await;
    ada.like(liked).await.ok(200);
    assert_eq!(ada.list("posts/1", "sort=most_liked").await.ids(), [liked, other]);
    ada.remove(liked).await.ok(204);
    assert_eq!(ada.list("posts/1", "sort=most_liked").await.ids(), [other, liked]);
}

#[tokio::test]
async fn a_new_name_reaches_no_placeholder_that_the_index_still_lists() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "text").await;
    ada.reply("posts/1", id, "reply").await;
    ada.remove(id).await.ok(204);
    world.set_of_comment(id, "a", Some(AttributeValue::S("U#7".to_owned()))).await;
    world.user(7, "Ada Lovelace").get("ui").await.ok(200);
    world.wait_until_idle().await;
    assert_eq!(world.guest().see("posts/1", id).await["user"]["name"], "");
}

#[tokio::test]
async fn a_hidden_comment_that_becomes_a_placeholder_is_shown_to_everyone_with_its_replies() {
    let world = World::new();
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let top = ada.comment("posts/1", "top").await;
    let middle = ada.reply("posts/1", top, "middle").await;
    let below = bob.reply("posts/1", middle, "below").await;
    for id in [top, middle] {
        moderator.judge(id, "reject").await.ok(200);
    }
    assert_eq!(bob.list("posts/1", "").await.total(), 0);
    for id in [middle, top] {
        ada.remove(id).await.ok(204);
    }
    world.wait_until_idle().await;
    let shown = bob.see("posts/1", top).await;
    assert_eq!((ids(&shown["replies"]), &shown["replies"][0]["is_deleted"]), (vec![middle], &json!(true)));
    assert_eq!(bob.replies(middle, "").await.ids(), [below]);
    assert!(moderator.queue("rejected").await.is_empty());
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_repeated_request_is_404_when_its_comment_is_a_placeholder() {
    let world = World::new();
    let ada = world.user(7, "Ada").keyed("once");
    let id = ada.comment("posts/1", "text").await;
    world.user(8, "Bob").reply("posts/1", id, "reply").await;
    ada.remove(id).await.ok(204);
    ada.write("posts/1", None, "text").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_reply_below_a_placeholder_may_still_be_approved() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let top = world.user(7, "Ada").comment("posts/1", "top").await;
    let pending = held.user(8, "Bob").reply("posts/1", top, "pending").await;
    world.delete(top).await;
    world.moderator().judge(pending, "approve").await.ok(200);
    assert_eq!(ids(&world.guest().see("posts/1", top).await["replies"]), [pending]);
    assert_eq!(world.findings().await, [""; 0]);
}
