//! Closed threads: closing them, and the requests that they refuse or still accept.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{Actor, World, by_guest};

const MONTH: (&str, &str) = ("SVC_CLOSE_AFTER_DAYS", "30");
const DAY: Duration = Duration::from_hours(24);

async fn decide(moderator: &Actor, decision: &str, thread: &str) -> Value {
    moderator.post(&format!("{thread}/{decision}"), Value::Null).await.ok(200).json
}

async fn is_closed(actor: &Actor, thread: &str) -> bool {
    let by_cursor = actor.list(thread, "cursor=").await.json["meta"]["closed"].as_bool().unwrap();
    assert_eq!(actor.list(thread, "").await.json["meta"]["closed"], by_cursor);
    by_cursor
}

/// Returns the actions in the log, oldest first, with their threads.
async fn logged(moderator: &Actor) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let log = moderator.get("moderation/log").await.ok(200);
    log.rows().iter().rev().map(|row| (text(&row["action"]), text(&row["thread"]))).collect()
}

#[tokio::test]
async fn a_closed_thread_takes_comments_and_replies_of_moderators_only() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let (ada, guest, moderator) = (world.user(7, "Ada"), world.guest(), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    assert_eq!(decide(&moderator, "close", "posts/1").await, json!({ "data": { "closed": true } }));
    for actor in [&ada, &guest] {
        actor.write("posts/1", None, "y").await.refused(403, "thread_closed");
        actor.write("posts/1", Some(id), "y").await.refused(403, "thread_closed");
        assert!(is_closed(actor, "posts/1").await);
    }
    moderator.reply("posts/1", id, "the last word").await;
    moderator.comment("posts/1", "and another").await;
    ada.edit(id, "z").await.ok(200);
    guest.report(id, "spam").await.ok(201);
    world.user(8, "Bob").like(id).await.ok(200);
    ada.comment("posts/2", "elsewhere").await;
    assert!(!is_closed(&ada, "posts/2").await);
    assert!(ada.replies(id, "").await.json["meta"].get("closed").is_none());
    assert_eq!(decide(&moderator, "open", "posts/1").await, json!({ "data": { "closed": false } }));
    ada.comment("posts/1", "y").await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_closed_thread_is_checked_before_the_fields_and_after_a_ban() {
    let world = World::new();
    let (moderator, banned) = (world.moderator(), world.banned().await);
    decide(&moderator, "close", "posts/1").await;
    world.user(7, "Ada").post("posts/1/comments", json!({ "body": 7 })).await.refused(403, "thread_closed");
    moderator.post("posts/1/comments", json!({ "body": 7 })).await.invalid("body");
    banned.write("posts/1", None, "x").await.refused(403, "comment_banned");
    world.guest().post("posts/1/comments", by_guest("x")).await.refused(401, "unauthenticated");
    world
        .again(&[("SVC_READ_ONLY", "true")])
        .user(7, "Ada")
        .write("posts/1", None, "x")
        .await
        .refused(423, "read_only");
}

#[tokio::test]
async fn a_request_from_before_a_thread_was_closed_can_be_repeated() {
    let world = World::new();
    let ada = world.user(7, "Ada").keyed("once");
    let id = ada.comment("posts/1", "x").await;
    decide(&world.moderator(), "close", "posts/1").await;
    assert_eq!(ada.comment("posts/1", "x").await, id);
    ada.write("posts/1", None, "another text").await.refused(403, "thread_closed");
}

#[tokio::test]
async fn only_moderators_close_threads_and_only_changes_are_logged() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let moderator = world.moderator();
    for decision in ["close", "open"] {
        let path = format!("posts/1/{decision}");
        world.user(7, "Ada").post(&path, Value::Null).await.refused(403, "forbidden");
        world.guest().post(&path, Value::Null).await.refused(401, "unauthenticated");
        moderator.post(&format!("pages/1/{decision}"), Value::Null).await.refused(404, "not_found");
        moderator.post(&format!("users/1/{decision}"), Value::Null).await.refused(404, "not_found");
        moderator.get(&path).await.refused(405, "method_not_allowed");
    }
    for decision in ["open", "open", "close", "close", "open"] {
        decide(&moderator, decision, "posts/1").await;
    }
    let entry = |action: &str| (action.to_owned(), "posts/1".to_owned());
    assert_eq!(logged(&moderator).await, [entry("open"), entry("close"), entry("open")]);
    let newest = moderator.get("moderation/log").await.ok(200).rows()[0].clone();
    assert_eq!((&newest["comment_id"], &newest["user_id"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_thread_closes_by_its_age_unless_a_moderator_opened_it() {
    let world = World::with(&[MONTH]);
    let held = world.again(&[MONTH, ("SVC_REQUIRE_APPROVAL", "true")]).user(8, "Bob").comment("posts/1", "waits").await;
    world.pass(40 * DAY);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "the first that everyone sees").await;
    moderator.judge(held, "approve").await.ok(200);
    world.pass(29 * DAY + Duration::from_secs(86_399));
    assert!(!is_closed(&world.guest(), "posts/1").await);
    world.pass(Duration::from_secs(1));
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    assert!(is_closed(&ada, "posts/1").await);
    ada.write("posts/1", None, "late").await.refused(403, "thread_closed");
    // The thread stays closed even without its first comment.
    ada.remove(id).await.ok(204);
    assert!(is_closed(&ada, "posts/1").await);
    decide(&moderator, "open", "posts/1").await;
    ada.comment("posts/1", "late").await;
    decide(&moderator, "close", "posts/1").await;
    assert!(is_closed(&world.again(&[]).user(7, "Ada"), "posts/1").await);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn an_item_of_the_queue_says_whether_its_thread_is_closed() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    let item =
        async || moderator.get(&format!("moderation/comments?id={id}")).await.ok(200).rows()[0]["thread"].clone();
    assert_eq!(item().await["closed"], false);
    decide(&moderator, "close", "posts/1").await;
    assert_eq!(item().await["closed"], true);
}

#[tokio::test]
async fn the_hosts_description_of_a_record_opens_no_thread() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    decide(&moderator, "close", "posts/1").await;
    for record in [json!({ "title": "On threads" }), json!({})] {
        moderator.put("posts/1", record).await.ok(200);
        assert!(is_closed(&ada, "posts/1").await);
    }
}
