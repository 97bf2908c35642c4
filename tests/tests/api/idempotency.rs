//! POST with an `Idempotency-Key`: a repeated request gets the first response, and nothing is done twice.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{Actor, TestResponse, World, dot};

#[tokio::test]
async fn a_comment_sent_again_gets_the_same_response_and_is_created_once() {
    let world = World::new();
    let ada = world.user(7, "Ada").keyed("4711");
    let body = json!({ "body": "once" });
    let first = ada.post("posts/1/comments", body.clone()).await.ok(201);
    world.pass(Duration::from_secs(86_000));
    let ada = world.user(7, "Ada").keyed("4711");
    let second = ada.post("posts/1/comments", body).await.ok(201);
    assert_eq!(second.json, first.json);
    assert_eq!(ada.list("posts/1", "").await.ids(), [first.id()]);
}

#[tokio::test]
async fn a_repeated_request_returns_the_comment_as_it_is_now() {
    let world = World::new();
    let (ada, keyed) = (world.user(7, "Ada"), world.user(7, "Ada").keyed("4711"));
    let body = json!({ "body": "first" });
    let id = keyed.post("posts/1/comments", body.clone()).await.ok(201).id();
    ada.edit(id, "second").await.ok(200);
    let again = keyed.post("posts/1/comments", body).await.ok(201);
    assert_eq!((again.id(), &again.data()["body"]), (id, &json!("second")));
}

#[tokio::test]
async fn a_repeat_whose_comment_is_deleted_is_404_and_nothing_of_its_text_is_kept() {
    let world = World::with(&[("SVC_SPAM_REVIEW_REPEATS", "true")]);
    let (ada, keyed) = (world.user(7, "Ada"), world.user(7, "Ada").keyed("4711"));
    let top = ada.comment("posts/1", "top").await;
    for parent in [Value::Null, json!(top)] {
        let body = json!({ "body": format!("a telling text {parent}"), "parent_id": parent });
        let keyed = keyed.clone().keyed(&parent.to_string());
        let id = keyed.post("posts/1/comments", body.clone()).await.ok(201).id();
        ada.remove(id).await.ok(204);
        keyed.post("posts/1/comments", body).await.refused(404, "not_found");
    }
    world.wait_until_idle().await;
    let items = world.items().await;
    assert!(!items.is_empty());
    for item in items {
        assert!(!format!("{item:?}").contains("telling"), "{item:?}");
    }
}

#[tokio::test]
async fn a_repeat_whose_comment_was_deleted_with_its_parent_is_404() {
    let world = World::new();
    let (ada, keyed) = (world.user(7, "Ada"), world.user(8, "Bob").keyed("4711"));
    let top = ada.comment("posts/1", "top").await;
    let body = json!({ "body": "below", "parent_id": top });
    let below = keyed.post("posts/1/comments", body.clone()).await.ok(201).id();
    world.moderator().judge(below, "reject").await.ok(200);
    ada.remove(top).await.ok(204);
    keyed.post("posts/1/comments", body).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_idempotency_key_is_free_again_after_a_day() {
    let world = World::new();
    let body = json!({ "body": "daily" });
    let first = world.user(7, "Ada").keyed("4711").post("posts/1/comments", body.clone()).await.ok(201).id();
    world.pass(Duration::from_secs(86_401));
    let second = world.user(7, "Ada").keyed("4711").post("posts/1/comments", body).await.ok(201).id();
    assert_ne!(first, second);
}

#[tokio::test]
async fn an_idempotency_key_used_for_another_request_is_refused() {
    let world = World::new();
    let ada = world.user(7, "Ada").keyed("4711");
    ada.post("posts/1/comments", json!({ "body": "one" })).await.ok(201);
    ada.post("posts/1/comments", json!({ "body": "another" })).await.invalid("idempotency-key");
}

#[tokio::test]
async fn an_idempotency_key_is_scoped_to_one_sender_and_one_route() {
    let world = World::new();
    let body = json!({ "body": "mine" });
    let (ada, bob) = (world.user(7, "Ada").keyed("4711"), world.user(8, "Bob").keyed("4711"));
    let mut ids = Vec::new();
    for (actor, thread) in [(&ada, "posts/1"), (&bob, "posts/1"), (&ada, "posts/2")] {
        ids.push(actor.post(&format!("{thread}/comments"), body.clone()).await.ok(201).id());
    }
    assert!(ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
}

#[tokio::test]
async fn an_idempotency_key_has_1_to_255_characters() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    for key in ["", " ", &"k".repeat(256)] {
        let reply = ada.clone().keyed(key).post("posts/1/comments", json!({ "body": "x" })).await;
        reply.invalid("idempotency-key");
    }
    ada.keyed(&"k".repeat(255)).post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
}

#[tokio::test]
async fn a_refused_request_may_be_sent_again_with_its_key() {
    let world = World::new();
    let ada = world.user(7, "Ada").keyed("4711");
    ada.post("posts/1/comments", json!({ "body": "" })).await.invalid("body");
    ada.post("posts/1/comments", json!({ "body": "now it has one" })).await.ok(201);
}

#[tokio::test]
async fn a_report_sent_again_is_not_a_second_report() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let bob = world.user(8, "Bob");
    let path = format!("comments/{id}/report");
    let keyed = bob.clone().keyed("4711");
    for reply in join_all((0..4).map(|_| keyed.post(&path, json!({ "reason": "spam" })))).await {
        assert_eq!(reply.ok(201).json, json!({ "reported": true }));
    }
    keyed.post(&path, json!({ "reason": "other" })).await.invalid("idempotency-key");
    bob.post(&path, json!({ "reason": "spam" })).await.refused(409, "already_reported");
    assert_eq!(world.moderator().get(&format!("comments/{id}/reports")).await.ok(200).rows().len(), 1);
}

async fn upload(actor: &Actor, boundary: &str, file: &[u8]) -> TestResponse {
    actor.upload_by(boundary, &[("file", "a.gif", file)]).await
}

#[tokio::test]
async fn an_image_sent_again_keeps_its_address_whatever_the_boundary() {
    let world = World::with(&[("SVC_UPLOAD_LIMIT", "100")]);
    let ada = world.user(7, "Ada");
    let keyed = ada.clone().keyed("4711");
    let first = upload(&keyed, "one", &dot(1)).await.ok(201);
    assert_eq!(upload(&keyed, "another", &dot(1)).await.ok(201).json, first.json);
    upload(&keyed, "one", &dot(2)).await.invalid("idempotency-key");
    for other in [ada, world.user(8, "Bob").keyed("4711"), keyed.keyed("4712")] {
        assert_ne!(upload(&other, "one", &dot(1)).await.ok(201).json["url"], first.json["url"]);
    }
}
