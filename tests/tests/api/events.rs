//! What follows from a change behind the table's stream.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::{TABLE, World, ids};

/// All keys of the table that begin so.
async fn stored(world: &World, begin: &str) -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "a test may look at everything")]
    let items = world.client().scan().table_name(TABLE).send().await.unwrap().items.unwrap_or_default();
    let key = |item: &std::collections::HashMap<String, AttributeValue>| {
        format!("{} {}", item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap())
    };
    items.iter().map(key).filter(|key| key.starts_with(begin)).collect()
}

#[tokio::test]
async fn everything_below_a_deleted_comment_is_swept_up() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let kept = ada.comment("posts/1", "kept").await;
    let top = ada.comment("posts/1", "top").await;
    let mut parent = top;
    for n in 0..3 {
        for _ in 0..4 {
            bob.reply("posts/1", parent, "leaf").await;
        }
        held.user(8, "Bob").reply("posts/1", parent, "held").await;
        bob.post(&format!("comments/{parent}/like"), Value::Null).await.ok(200);
        bob.post(&format!("comments/{parent}/report"), json!({ "reason": "spam" })).await.ok(201);
        parent = bob.reply("posts/1", parent, &n.to_string()).await;
    }
    ada.delete(&format!("comments/{top}")).await.ok(204);
    world.wait_until_idle().await;
    assert_eq!(stored(&world, "C#").await, [format!("C#{kept} C")]);
    assert!(stored(&world, "Q#").await.is_empty());
    let list = bob.list("posts/1", "").await;
    assert_eq!((list.ids(), list.total()), (vec![kept], 1));
    assert!(world.moderator().get("moderation/comments").await.ok(200).ids().is_empty());
}

#[tokio::test]
async fn sweeping_a_reply_leaves_its_parent_and_siblings_alone() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = ada.comment("posts/1", "0").await;
    let gone = ada.reply("posts/1", top, "1").await;
    ada.reply("posts/1", gone, "2").await;
    let sibling = ada.reply("posts/1", top, "1b").await;
    ada.reply("posts/1", sibling, "2b").await;
    ada.delete(&format!("comments/{gone}")).await.ok(204);
    world.wait_until_idle().await;
    assert_eq!(stored(&world, "C#").await.len(), 3);
    let shown = world.guest().see("posts/1", top).await;
    assert_eq!((ids(&shown["replies"]), &shown["replies_count"]), (vec![sibling], &json!(1)));
    assert_eq!(shown["replies"][0]["replies_count"], 1);
}

#[tokio::test]
async fn a_record_handled_twice_does_no_harm() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = ada.comment("posts/1", "0").await;
    let mut replies = Vec::new();
    for n in 0..5 {
        replies.push(ada.reply("posts/1", top, &n.to_string()).await);
    }
    let store = world.store();
    let parent =
        store.find(shared::domain::ids::CommentId(top), shared::store::Reading::Consistent).await.unwrap().unwrap();
    let ada_before =
        store.user(shared::domain::ids::UserId(7), shared::store::Reading::Consistent).await.unwrap().unwrap();
    ada.delete(&format!("comments/{}", replies.remove(0))).await.ok(204);
    world.wait_until_idle().await;
    for _ in 0..2 {
        store.promote_below(&parent.comment, 3).await.unwrap();
        store.rename(&ada_before, &ada_before).await.unwrap();
    }
    assert_eq!(ids(&ada.see("posts/1", top).await["replies"]), replies[..3]);
    assert_eq!(ada.replies(top, "").await.ids(), replies);
    ada.delete(&format!("comments/{top}")).await.ok(204);
    for _ in 0..2 {
        store.clean_up_below(&parent.comment, Duration::ZERO).await.unwrap();
    }
    world.wait_until_idle().await;
    assert!(stored(&world, "C#").await.is_empty());
}
