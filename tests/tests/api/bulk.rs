//! `moderation.bulk`: one decision about many comments.

use serde_json::{Value, json};
use tests::{Actor, Faults, Setup, TestResponse, World};

use crate::limits::remaining;

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");

async fn bulk(actor: &Actor, ids: &[u64], action: &str) -> TestResponse {
    actor.post("moderation/comments", json!({ "ids": ids, "action": action })).await
}

fn result(done: &[u64], failed: &[(u64, &str)]) -> Value {
    let failed: Vec<_> = failed.iter().map(|(id, code)| json!({ "id": id, "code": code })).collect();
    json!({ "data": { "done": done, "failed": failed } })
}

async fn logged(world: &World) -> usize {
    world.moderator().get("moderation/log?per_page=50").await.ok(200).rows().len()
}

#[tokio::test]
async fn many_comments_are_decided_in_the_order_given_and_each_once() {
    let world = World::with(&[HELD]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let mut ids = Vec::new();
    for thread in ["posts/1", "posts/2", "posts/1"] {
        ids.push(ada.comment(thread, "x").await);
    }
    let [first, second, third] = ids[..] else { panic!("three comments") };
    let answer = bulk(&moderator, &[second, first, second, 1, third, 1], "approve").await.ok(200);
    assert_eq!(answer.json, result(&[second, first, third], &[(1, "not_found")]));
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [third, first]);
    assert!(moderator.queue("pending").await.is_empty());
    let answer = bulk(&moderator, &[third, second], "reject").await.ok(200);
    assert_eq!(answer.json, result(&[third, second], &[]));
    assert_eq!(moderator.queue("rejected").await, [third, second]);
    assert_eq!(logged(&world).await, 5);
}

#[tokio::test]
async fn fifty_comments_of_one_thread_are_approved_together() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let parent = world.again(&[]).user(7, "Ada").comment("posts/1", "parent").await;
    let mut ids = Vec::new();
    for n in 0..50 {
        let parent = (n % 2 == 0).then_some(parent);
        ids.push(ada.write("posts/1", parent, "x").await.ok(201).id());
    }
    let answer = bulk(&world.moderator(), &ids, "approve").await.ok(200);
    assert_eq!(answer.json, result(&ids, &[]));
    world.wait_until_idle().await;
    assert_eq!(world.guest().list("posts/1", "").await.total(), 26);
    assert_eq!(world.guest().replies(parent, "").await.total(), 25);
    assert_eq!(logged(&world).await, 50);
}

#[tokio::test]
async fn dismissing_a_comment_without_reports_succeeds_and_is_not_logged() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (one, other) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    world.user(8, "Bob").report(one, "spam").await.ok(201);
    let answer = bulk(&world.moderator(), &[one, other], "dismiss").await.ok(200);
    assert_eq!(answer.json, result(&[one, other], &[]));
    assert!(world.moderator().queue("reported").await.is_empty());
    assert_eq!(logged(&world).await, 1);
}

#[tokio::test]
async fn a_comment_below_a_deleted_one_is_not_found() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", parent, "y").await;
    world.moderator().judge(reply, "reject").await.ok(200);
    ada.remove(parent).await.ok(204);
    let answer = bulk(&world.moderator(), &[reply, parent], "reject").await.ok(200);
    assert_eq!(answer.json, result(&[], &[(reply, "not_found"), (parent, "not_found")]));
}

#[tokio::test]
async fn comments_that_have_been_edited_since_are_not_decided() {
    let world = World::with(&[HELD]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let (kept, edited, unseen) =
        (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await, ada.comment("posts/1", "z").await);
    let seen = moderator.get("moderation/comments").await.ok(200);
    let seen = |id: u64| seen.find(id).unwrap()["updated_at"].clone();
    ada.edit(edited, "other").await.ok(200);
    ada.edit(unseen, "other").await.ok(200);
    let seen = json!({ kept.to_string(): seen(kept), edited.to_string(): seen(edited), "1": seen(kept) });
    let body = json!({ "ids": [edited, kept, unseen], "action": "approve", "seen": seen });
    let answer = moderator.post("moderation/comments", body).await.ok(200);
    assert_eq!(answer.json, result(&[kept, unseen], &[(edited, "comment_changed")]));
    assert_eq!(moderator.queue("pending").await, [edited]);
}

#[tokio::test]
async fn a_bulk_decision_counts_as_one_write() {
    let world = World::with(&[HELD, ("SVC_WRITE_LIMIT", "10")]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let ids = ada.write_many("posts/1", None, 10).await;
    let all = bulk(&moderator, &ids, "approve").await.ok(200);
    assert!(all.cost.write_units > 60.0, "{:?}", all.cost);
    assert_eq!(remaining(&all), 9);
    let next = bulk(&moderator, &ids, "dismiss").await.ok(200);
    assert_eq!(remaining(&next), 8);
}

#[tokio::test]
async fn the_fields_of_a_bulk_decision_are_checked() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let moderator = world.moderator();
    let send = async |body: Value| moderator.post("moderation/comments", body).await;
    let many: Vec<u64> = (1..=51).collect();
    for ids in
        [Value::Null, json!([]), json!(7), json!(["7"]), json!([0]), json!([1.5]), json!([1_u64 << 53]), json!(many)]
    {
        send(json!({ "ids": ids, "action": "reject" })).await.invalid("ids");
    }
    for action in [Value::Null, json!("pin"), json!("Approve"), json!(7)] {
        send(json!({ "ids": [id], "action": action })).await.invalid("action");
    }
    for seen in [json!([]), json!({ "x": "2050-01-02T03:04:05Z" }), json!({ "7": "now" }), json!({ "7": 7 })] {
        send(json!({ "ids": [id], "action": "reject", "seen": seen })).await.invalid("seen");
    }
    let refused = send(json!({})).await.refused(422, "validation_failed");
    assert_eq!(refused.json["errors"].as_object().unwrap().keys().collect::<Vec<_>>(), ["action", "ids"]);
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [id]);
}

#[tokio::test]
async fn a_bulk_decision_about_many_writers_proceeds_in_the_order_of_the_ids() {
    let faults = Faults::new(1);
    let world = Setup::new(&[HELD]).faults(&faults).start();
    let mut ids = Vec::new();
    for writer in 11..=40 {
        ids.push(world.user(writer, "Ada").comment(&format!("posts/{writer}"), "x").await);
    }
    // The table becomes unreachable midway. Decisions begin in order, five at a time, so at most four decisions before
    // the last successful one have failed.
    faults.kill_after(60);
    let answer = bulk(&world.moderator(), &ids, "approve").await.ok(200);
    faults.kill_after(u64::MAX);
    let done: Vec<u64> = answer.json["data"]["done"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!((5..28).contains(&done.len()), "{}", answer.json);
    let last = ids.iter().position(|id| done.last() == Some(id)).unwrap();
    assert!(last < done.len() + 4, "{}", answer.json);
}
