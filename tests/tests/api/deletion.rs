//! Deletions that keep other people's replies. `placeholders.rs` tests placeholders.

use futures_util::future::join_all;
use serde_json::json;
use shared::domain::ids::CommentId;
use shared::store::Reading;
use tests::{Actor, World, ids};

async fn state(world: &World, id: u64) -> &'static str {
    let answer = world.moderator().get(&format!("comments/{id}")).await;
    match answer.status {
        200 if answer.data()["is_deleted"] == true => "placeholder",
        200 => "there",
        _ => "gone",
    }
}

async fn states<const N: usize>(world: &World, ids: [u64; N]) -> [&'static str; N] {
    let states = join_all(ids.map(|id| state(world, id))).await;
    // The states stay the same once all follow-up work is done.
    world.finish_jobs().await;
    assert_eq!(join_all(ids.map(|id| state(world, id))).await, states);
    assert_eq!(world.findings().await, [""; 0]);
    states.try_into().unwrap()
}

async fn are_removed(world: &World, ids: &[u64]) {
    for id in ids {
        assert!(world.store().comment(CommentId(*id), Reading::Consistent).await.unwrap().is_none(), "{id}");
    }
}

async fn chain(world: &World) -> ([u64; 3], Actor, Actor) {
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let top = ada.comment("posts/1", "top").await;
    let middle = bob.reply("posts/1", top, "middle").await;
    let leaf = ada.reply("posts/1", middle, "leaf").await;
    ([top, middle, leaf], ada, bob)
}

#[tokio::test]
async fn a_deletion_keeps_the_replies_of_others_and_of_the_writer() {
    let world = World::new();
    let ([top, middle, leaf], ada, bob) = chain(&world).await;
    ada.remove(top).await.ok(204);
    bob.remove(middle).await.ok(204);
    assert_eq!(states(&world, [top, middle, leaf]).await, ["placeholder", "placeholder", "there"]);
    let guest = world.guest();
    let list = guest.list("posts/1", "").await;
    assert_eq!((list.ids(), list.total(), &list.rows()[0]["replies_count"]), (vec![top], 1, &json!(1)));
    assert_eq!(guest.replies(middle, "").await.ids(), [leaf]);
    let counts = guest.get("counts?threads=posts/1").await.ok(200);
    assert_eq!(counts.data()["posts/1"], 1);
    let changes = guest.get("posts/1/changes").await.ok(200);
    assert_eq!((&changes.data()["count"], &changes.data()["newest"]), (&json!(1), &json!([leaf])));
    for actor in [&ada, &bob] {
        actor.remove(top).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_deleted_comment_leaves_a_placeholder_for_a_pending_reply_but_not_for_a_rejected_one() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let tops = [ada.comment("posts/1", "a").await, ada.comment("posts/1", "b").await];
    let replies = [
        held.user(8, "Bob").reply("posts/1", tops[0], "pending").await,
        held.user(8, "Bob").reply("posts/1", tops[1], "rejected").await,
    ];
    moderator.judge(replies[1], "reject").await.ok(200);
    for top in tops {
        ada.remove(top).await.ok(204);
    }
    let [kept, rejected] = replies;
    assert_eq!(states(&world, [tops[0], kept, tops[1], rejected]).await, ["placeholder", "there", "gone", "gone"]);
    world.user(8, "Bob").remove(rejected).await.refused(404, "not_found");
    moderator.judge(kept, "approve").await.ok(200);
    assert_eq!(ids(&world.guest().see("posts/1", tops[0]).await["replies"]), [kept]);
}

#[tokio::test]
async fn deleting_the_last_live_reply_removes_the_placeholders_above_and_rejected_replies() {
    let world = World::new();
    let ([top, middle, leaf], ada, bob) = chain(&world).await;
    let rejected = [bob.reply("posts/1", top, "x").await, bob.reply("posts/1", middle, "y").await];
    for id in rejected {
        world.moderator().judge(id, "reject").await.ok(200);
    }
    let other = bob.comment("posts/1", "other").await;
    ada.remove(top).await.ok(204);
    bob.remove(middle).await.ok(204);
    ada.remove(leaf).await.ok(204);
    are_removed(&world, &[top, middle, leaf]).await;
    let [a, b] = rejected;
    assert_eq!(states(&world, [top, middle, leaf, a, b]).await, ["gone"; 5]);
    for sort in ["newest", "oldest", "most_liked", "most_replied"] {
        let list = world.guest().list("posts/1", &format!("sort={sort}")).await;
        assert_eq!((list.ids(), list.total()), (vec![other], 1), "{sort}");
    }
}

#[tokio::test]
async fn a_placeholder_stays_while_another_live_reply_does() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let ([top, middle, leaf], ada, bob) = chain(&world).await;
    let pending = held.user(9, "Cem").reply("posts/1", top, "pending").await;
    ada.remove(leaf).await.ok(204);
    ada.remove(top).await.ok(204);
    bob.remove(middle).await.ok(204);
    assert_eq!(states(&world, [top, middle, pending]).await, ["placeholder", "gone", "there"]);
    world.user(9, "Cem").remove(pending).await.ok(204);
    are_removed(&world, &[top, pending]).await;
    assert_eq!(states(&world, [top, pending]).await, ["gone"; 2]);
}

#[tokio::test]
async fn deleting_the_last_reply_keeps_a_comment_above_that_is_not_a_placeholder() {
    let world = World::new();
    let ([top, middle, leaf], ada, bob) = chain(&world).await;
    bob.remove(middle).await.ok(204);
    ada.remove(leaf).await.ok(204);
    assert_eq!(states(&world, [top, middle, leaf]).await, ["there", "gone", "gone"]);
    assert_eq!(world.guest().see("posts/1", top).await["replies_count"], 0);
}

#[tokio::test]
async fn a_placeholder_outlives_the_rejection_of_its_last_live_reply_because_that_can_be_undone() {
    let world = World::new();
    let ([top, middle, leaf], ada, bob) = chain(&world).await;
    ada.remove(leaf).await.ok(204);
    ada.remove(top).await.ok(204);
    world.moderator().judge(middle, "reject").await.ok(200);
    assert_eq!(states(&world, [top, middle]).await, ["placeholder", "there"]);
    world.moderator().judge(middle, "approve").await.ok(200);
    assert_eq!(ids(&world.guest().see("posts/1", top).await["replies"]), [middle]);
    world.moderator().judge(middle, "reject").await.ok(200);
    bob.remove(middle).await.ok(204);
    assert_eq!(states(&world, [top, middle]).await, ["gone"; 2]);
}

#[tokio::test]
async fn more_than_a_hundred_unapproved_replies_count_as_a_live_reply() {
    for (count, expected) in [(100, "gone"), (101, "placeholder")] {
        let world = World::new();
        let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
        let top = ada.comment("posts/1", "top").await;
        let replies = ada.write_many("posts/1", top, count).await;
        for some in replies.chunks(50) {
            let body = json!({ "ids": some, "action": "reject" });
            moderator.post("moderation/comments", body).await.ok(200);
        }
        ada.remove(top).await.ok(204);
        assert_eq!(state(&world, top).await, expected, "{count}");
    }
}
