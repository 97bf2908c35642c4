//! Reasons and notes for rejections: who may set and read them, and when they are removed.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{Actor, World};

const GUESTS: (&str, &str) = ("SVC_ALLOW_GUESTS", "true");
const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");

/// Returns the `review` that the writer gets both in a list and with the single comment.
async fn review(writer: &Actor, id: u64) -> Value {
    let listed = writer.see("posts/1", id).await;
    let alone = writer.get(&format!("comments/{id}")).await.ok(200);
    assert_eq!(listed["review"], alone.data()["review"]);
    listed["review"].clone()
}

async fn rejection(moderator: &Actor, id: u64) -> Value {
    moderator.get(&format!("moderation/comments?id={id}")).await.ok(200).rows()[0]["rejection"].clone()
}

fn pending() -> Value {
    json!({ "state": "pending", "reason": null, "note": null, "decided_at": null })
}

fn rejected(reason: &Value, note: &Value, at: &str) -> Value {
    json!({ "state": "rejected", "reason": reason, "note": note, "decided_at": at })
}

#[tokio::test]
async fn only_the_writer_reads_why_a_comment_was_rejected() {
    let world = World::with(&[HELD]);
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let created = ada.write("posts/1", None, "x").await.ok(201);
    let id = created.id();
    assert_eq!(created.data()["review"], pending());
    assert_eq!(review(&ada, id).await, pending());
    world.pass(Duration::from_secs(1));
    let answer = moderator.reject(id, "off_topic", "Please ask in the forum.").await.ok(200);
    assert!(answer.data().get("review").is_none(), "{:#}", answer.json);
    let at = "2050-01-02T03:04:06+00:00";
    assert_eq!(review(&ada, id).await, rejected(&json!("off_topic"), &json!("Please ask in the forum."), at));
    assert_eq!(ada.edit(id, "y").await.ok(200).data()["review"]["reason"], "off_topic");
    let moderator = json!({ "id": 1, "name": "Mod" });
    let shown =
        json!({ "reason": "off_topic", "note": "Please ask in the forum.", "moderator": moderator, "created_at": at });
    assert_eq!(rejection(&world.moderator(), id).await, shown);
    assert!(bob.list("posts/1", "").await.ids().is_empty());
    bob.get(&format!("comments/{id}")).await.refused(404, "not_found");
}

#[tokio::test]
async fn rejecting_again_changes_the_reason_and_approving_drops_it() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let grace = world.claiming(&json!({ "sub": "9", "name": "Grace", "roles": ["moderator"] }));
    let id = ada.comment("posts/1", "x").await;
    assert!(ada.see("posts/1", id).await.get("review").is_none());
    assert_eq!(rejection(&moderator, id).await, Value::Null);
    moderator.reject(id, "spam", "no").await.ok(200);
    grace.reject(id, "offensive", "no").await.ok(200);
    let at = "2050-01-02T03:04:05+00:00";
    assert_eq!(review(&ada, id).await, rejected(&json!("offensive"), &json!("no"), at));
    assert_eq!(rejection(&moderator, id).await["moderator"]["name"], "Grace");
    // Repeating the rejection changes nothing, not even the moderator.
    moderator.reject(id, "offensive", "no").await.ok(200);
    assert_eq!(rejection(&moderator, id).await["moderator"]["name"], "Grace");
    moderator.judge(id, "reject").await.ok(200);
    assert_eq!(review(&ada, id).await, rejected(&Value::Null, &Value::Null, at));
    let log = moderator.get("moderation/log").await.ok(200);
    let by: Vec<&Value> = log.rows().iter().map(|entry| &entry["moderator"]["id"]).collect();
    assert_eq!(by, [1, 9, 1]);
    moderator.judge(id, "approve").await.ok(200);
    assert!(ada.see("posts/1", id).await.get("review").is_none());
    assert_eq!(rejection(&moderator, id).await, Value::Null);
    // A comment with a pending edit still counts as approved.
    world.again(&[HELD]).user(7, "Ada").edit(id, "y").await.ok(200);
    assert!(ada.see("posts/1", id).await.get("review").is_none());
}

#[tokio::test]
async fn reasons_and_notes_that_are_not_valid_are_refused() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    let path = format!("comments/{id}/reject");
    for reason in [json!("rude"), json!(""), json!("Spam"), json!(7), json!([])] {
        moderator.post(&path, json!({ "reason": reason })).await.invalid("reason");
        let bulk = json!({ "ids": [id], "action": "reject", "reason": reason });
        moderator.post("moderation/comments", bulk).await.invalid("reason");
    }
    for note in [json!("é".repeat(501)), json!(7), json!("\u{202e}x"), json!("a\n\u{0}b"), json!("a\u{85}b")] {
        moderator.post(&path, json!({ "note": note })).await.invalid("note");
        let bulk = json!({ "ids": [id], "action": "reject", "note": note });
        moderator.post("moderation/comments", bulk).await.invalid("note");
    }
    assert!(ada.see("posts/1", id).await.get("review").is_none());
    let longest = "é".repeat(500);
    moderator.post(&path, json!({ "reason": null, "note": longest })).await.ok(200);
    assert_eq!(ada.see("posts/1", id).await["review"]["note"], longest);
    let lines = "a\tb\r\nc\n";
    moderator.post(&path, json!({ "note": lines })).await.ok(200);
    assert_eq!(ada.see("posts/1", id).await["review"]["note"], lines);
    moderator.post(&path, json!({ "note": " \n" })).await.ok(200);
    assert_eq!(ada.see("posts/1", id).await["review"]["note"], Value::Null);
}

#[tokio::test]
async fn a_bulk_rejection_applies_one_reason_to_all_comments() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let ids = [ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await];
    let bulk = json!({ "ids": ids, "action": "reject", "reason": "illegal", "note": "the law" });
    moderator.post("moderation/comments", bulk).await.ok(200);
    for id in ids {
        let review = review(&ada, id).await;
        assert_eq!((&review["reason"], &review["note"]), (&json!("illegal"), &json!("the law")));
    }
    // Approvals ignore the reason.
    moderator.post("moderation/comments", json!({ "ids": ids, "action": "approve", "reason": "spam" })).await.ok(200);
    assert!(ada.see("posts/1", ids[0]).await.get("review").is_none());
}

#[tokio::test]
async fn guests_read_reviews_of_their_own_comments_in_responses_that_no_cache_shares() {
    let world = World::with(&[GUESTS, HELD]);
    let guest = world.guest();
    for writer in [guest.clone(), guest.with_key("one")] {
        let id = writer.comment("posts/1", "x").await;
        world.moderator().reject(id, "other", "no").await.ok(200);
        for path in ["posts/1/comments".to_owned(), format!("comments/{id}")] {
            let answer = writer.get(&path).await.ok(200);
            assert!(answer.json.to_string().contains("\"review\""), "{path}");
            assert!(answer.header("cache-control").starts_with("private"), "{path}");
        }
    }
    let stranger = world.guest().from("203.0.113.9").get("posts/1/comments").await.ok(200);
    assert!(stranger.ids().is_empty() && !stranger.json.to_string().contains("review"));
}

#[tokio::test]
async fn a_forgotten_moderator_leaves_rejections_without_a_name() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let grace = world.claiming(&json!({ "sub": "9", "name": "Grace Hopper", "roles": ["moderator"] }));
    let id = ada.comment("posts/1", "x").await;
    grace.reject(id, "spam", "no").await.ok(200);
    let receipt = crate::person::erase_user(&world, 9).await;
    assert_eq!((receipt.gone["rejections"], receipt.left), (1, 0));
    let rejection = rejection(&world.moderator(), id).await;
    assert_eq!((&rejection["reason"], &rejection["moderator"]), (&json!("spam"), &json!({ "id": null, "name": "" })));
    assert!(!world.items().await.iter().any(|item| format!("{item:?}").contains("Hopper")));
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_forgotten_writer_leaves_no_rejection() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    world.user(8, "Bob").reply("posts/1", id, "y").await;
    moderator.reject(id, "offensive", "said Ada's mother").await.ok(200);
    crate::person::erase_user(&world, 7).await;
    assert!(!world.items().await.iter().any(|item| format!("{item:?}").contains("mother")));
    assert_eq!(world.findings().await, [""; 0]);
}
