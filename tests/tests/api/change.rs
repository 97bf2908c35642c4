//! `comments.update` and `comments.destroy`: PATCH and DELETE `comments/{id}`.

use std::time::Duration;

use serde_json::json;
use tests::World;

#[tokio::test]
async fn an_edit_returns_the_comment_with_its_new_body_and_time() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "old").await;
    let before = ada.see("posts/1", id).await;
    world.pass(Duration::from_secs(90));
    let reply = ada.edit(id, "**new**").await.ok(200);
    let mut expected = before;
    expected["body"] = json!("**new**");
    expected["html"] = json!("<p><strong>new</strong></p>\n");
    expected["updated_at"] = json!("2050-01-02T03:05:35+00:00");
    expected["relative_created_at"] = json!("1 minute ago");
    assert_eq!(reply.json, json!({ "data": expected }));
    assert_eq!(world.user(7, "Ada").see("posts/1", id).await, expected);
}

#[tokio::test]
async fn updated_at_moves_on_an_edit_only() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    world.pass(Duration::from_mins(1));
    ada.reply("posts/1", id, "y").await;
    world.moderator().pin(id).await.ok(200);
    assert_eq!(ada.see("posts/1", id).await["updated_at"], "2050-01-02T03:04:05+00:00");
}

#[tokio::test]
async fn an_edited_body_is_checked_as_a_new_one_is() {
    let world = World::with(&[("SVC_SPAM_DENY", "casino")]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    let path = format!("comments/{id}");
    for body in [json!({}), json!({ "body": " " }), json!({ "body": 7 }), json!({ "body": "a".repeat(10_001) })] {
        ada.patch(&path, body).await.invalid("body");
    }
    ada.patch(&path, json!([])).await.refused(422, "validation_failed");
    ada.patch(&path, json!({ "body": "C**a**sino" })).await.refused(422, "spam_rejected");
    assert_eq!(ada.see("posts/1", id).await["body"], "x");
}

#[tokio::test]
async fn where_comments_need_approval_an_edit_waits_too_unless_a_moderator_wrote_it() {
    let world = World::with(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    for (writer, held) in [(&ada, Some(json!("edit"))), (&moderator, None)] {
        let comment = writer.comment("posts/1", "one").await;
        moderator.judge(comment, "approve").await.ok(200);
        writer.edit(comment, "two").await.ok(200);
        let queue = moderator.get("moderation/comments?state=pending").await.ok(200);
        assert_eq!(queue.find(comment).map(|item| item["held_for"].clone()), held);
        assert_eq!(world.guest().list("posts/1", "").await.find(comment).unwrap()["body"], "two", "it stays approved");
    }
    let waits = ada.comment("posts/1", "three").await;
    ada.edit(waits, "four").await.ok(200);
    let queue = moderator.get("moderation/comments?state=pending").await.ok(200);
    assert_eq!(queue.find(waits).unwrap()["held_for"], "approval");
}

#[tokio::test]
async fn mentions_follow_the_edit() {
    let world = World::new();
    world.user(8, "Bob").get("ui").await.ok(200);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "@bob").await;
    let html = |reply: &tests::TestResponse| reply.data()["html"].as_str().unwrap().to_owned();
    let reply = ada.edit(id, "@ada and @bob").await.ok(200);
    assert!(html(&reply).contains("/users/ada") && html(&reply).contains("/users/bob"));
    let reply = ada.edit(id, "nobody").await.ok(200);
    assert_eq!(html(&reply), "<p>nobody</p>\n");
    let reply = ada.edit(id, "@bob again").await.ok(200);
    assert!(html(&reply).contains("/users/bob"));
}

#[tokio::test]
async fn replies_are_edited_and_counted_as_before() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", parent, "y").await;
    ada.reply("posts/1", reply, "z").await;
    let edited = ada.edit(reply, "yy").await.ok(200);
    assert_eq!((&edited.data()["parent_id"], &edited.data()["replies_count"]), (&json!(parent), &json!(1)));
    assert_eq!(ada.see("posts/1", reply).await["body"], "yy");
}

#[tokio::test]
async fn a_refused_edit_or_deletion_changes_nothing() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let id = ada.comment("posts/1", "x").await;
    bob.edit(id, "y").await.refused(403, "forbidden");
    bob.remove(id).await.refused(403, "forbidden");
    assert_eq!(ada.see("posts/1", id).await["body"], "x");
}

#[tokio::test]
async fn a_deleted_comment_is_gone_from_lists_and_counts_and_by_id() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (kept, gone) = (ada.comment("posts/1", "a").await, ada.comment("posts/1", "b").await);
    let reply = ada.remove(gone).await.ok(204);
    assert!(reply.body.is_empty() && !reply.headers.contains_key("content-type"));
    for sort in ["newest", "oldest", "most_liked", "most_replied"] {
        let list = world.guest().list("posts/1", &format!("sort={sort}")).await;
        assert_eq!((list.ids(), list.total()), (vec![kept], 1), "{sort}");
    }
    let path = format!("comments/{gone}");
    ada.delete(&path).await.refused(404, "not_found");
    ada.patch(&path, json!({ "body": "y" })).await.refused(404, "not_found");
    ada.get(&format!("{path}/replies")).await.refused(404, "not_found");
}

async fn reject_replies(world: &World, id: u64) {
    let moderator = world.moderator();
    for reply in moderator.replies(id, "per_page=50").await.ids() {
        moderator.judge(reply, "reject").await.ok(200);
    }
}

#[tokio::test]
async fn everything_below_a_deleted_comment_is_404_from_that_moment() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let top = ada.comment("posts/1", "0").await;
    let mut chain = vec![bob.reply("posts/1", top, "1").await];
    for n in 2..5 {
        chain.push(bob.reply("posts/1", *chain.last().unwrap(), &n.to_string()).await);
    }
    for _ in 0..5 {
        bob.reply("posts/1", top, "more").await;
    }
    let other = ada.comment("posts/1", "other").await;
    reject_replies(&world, top).await;
    ada.remove(top).await.ok(204);
    for id in chain {
        bob.get(&format!("comments/{id}/replies")).await.refused(404, "not_found");
        bob.edit(id, "y").await.refused(404, "not_found");
        bob.remove(id).await.refused(404, "not_found");
    }
    for query in ["", "sort=oldest", "sort=most_replied", "cursor=", "per_page=1"] {
        assert_eq!(bob.list("posts/1", query).await.ids(), [other], "{query}");
    }
    world.wait_until_idle().await;
    assert_eq!(world.guest().list("posts/1", "").await.total(), 1);
}
