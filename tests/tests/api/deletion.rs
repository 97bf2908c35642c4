//! Deletions that keep others' replies. `placeholders.rs` tests placeholders.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use shared::domain::ids::CommentId;
use shared::store::Reading;
use tests::{Actor, World, ids};

/// Moves the clocks of all instances forward, so that no instance assigns the id of another's earlier comment. Otherwise their
/// ids are from the same few milliseconds, and the id of a deleted comment is free again.
fn pass(world: &World) {
    world.pass(Duration::from_millis(3));
}

/// The state in which the comment can be read by its id.
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
    // And the same once everything that follows is done.
    world.finish_jobs().await;
    assert_eq!(join_all(ids.map(|id| state(world, id))).await, states);
    assert_eq!(world.findings().await, [""; 0]);
    states.try_into().unwrap()
}

/// A top-level comment by Ada, a reply by Bob, and Ada's reply to that.
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
async fn a_pending_reply_keeps_the_place_of_its_parent_and_a_rejected_one_does_not() {
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
async fn the_last_live_reply_takes_the_placeholders_above_it_and_rejected_replies_along() {
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
    assert_eq!(states(&world, [top, pending]).await, ["gone"; 2]);
}

#[tokio::test]
async fn a_comment_above_that_is_not_a_placeholder_stays_without_replies() {
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
async fn one_of_more_than_a_hundred_unapproved_replies_counts_as_live() {
    for (count, expected) in [(100, "gone"), (101, "placeholder")] {
        let world = World::new();
        let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
        let top = ada.comment("posts/1", "top").await;
        let replies = ada.write_replies("posts/1", top, count).await;
        for some in replies.chunks(50) {
            let body = json!({ "ids": some, "action": "reject" });
            moderator.post("moderation/comments", body).await.ok(200);
        }
        ada.remove(top).await.ok(204);
        assert_eq!(state(&world, top).await, expected, "{count}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn siblings_that_are_deleted_at_once_leave_no_empty_place() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let ada = world.user(7, "Ada");
    for round in 0..8 {
        pass(&world);
        let thread = format!("posts/{round}");
        let top = ada.comment(&thread, "top").await;
        let writer = if round % 2 == 0 { &ada } else { &held.user(7, "Ada") };
        let replies = join_all((0..4).map(|_| writer.reply(&thread, top, "reply"))).await;
        ada.remove(top).await.ok(204);
        for answer in join_all(replies.iter().map(|id| ada.remove(*id))).await {
            answer.ok(204);
        }
        assert_eq!(state(&world, top).await, "gone", "{round}");
    }
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_come_and_go_while_their_parent_is_deleted_have_a_parent_and_leave_no_empty_place() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let (ada, bob, cem, moderator) =
        (world.user(7, "Ada"), world.user(8, "Bob"), held.user(9, "Cem"), world.moderator());
    for round in 0..12 {
        pass(&world);
        let thread = format!("posts/{round}");
        let top = ada.comment(&thread, "top").await;
        let (gone, decided) = (bob.reply(&thread, top, "gone").await, cem.reply(&thread, top, "decided").await);
        let verdict = if round % 2 == 0 { "reject" } else { "approve" };
        pass(&world);
        let (deleted, removed, judged, one, other) = tokio::join!(
            ada.remove(top),
            bob.remove(gone),
            moderator.judge(decided, verdict),
            bob.write(&thread, Some(top), "new"),
            cem.write(&thread, Some(top), "new"),
        );
        deleted.ok(204);
        removed.ok(204);
        assert!([200, 404].contains(&judged.status), "{judged:?}");
        let new: Vec<_> = [one, other].into_iter().filter(|answer| answer.status == 201).collect();
        for answer in new {
            let states = (state(&world, answer.id()).await, state(&world, top).await);
            assert_eq!(states, ("there", "placeholder"), "{round}");
        }
    }
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_deletion_that_read_the_parent_before_it_became_a_placeholder_takes_it_along() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    for (thread, writer) in [("posts/1", world.user(8, "Bob")), ("posts/2", held.user(8, "Bob"))] {
        let ada = world.user(7, "Ada");
        let top = ada.comment(thread, "top").await;
        let reply = writer.reply(thread, top, "reply").await;
        let read = world.store().comment_with_ancestors(CommentId(reply), Reading::Consistent).await.unwrap().unwrap();
        ada.remove(top).await.ok(204);
        assert!(world.store().delete(read).await.unwrap());
        assert_eq!(states(&world, [top, reply]).await, ["gone"; 2], "{thread}");
    }
}

#[tokio::test]
async fn a_deletion_that_did_not_read_the_newest_reply_keeps_it() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    for (thread, writer) in [("posts/1", world.user(8, "Bob")), ("posts/2", held.user(8, "Bob"))] {
        let top = world.user(7, "Ada").comment(thread, "top").await;
        let read = world.store().comment_with_ancestors(CommentId(top), Reading::Consistent).await.unwrap().unwrap();
        let reply = writer.reply(thread, top, "reply").await;
        assert!(world.store().delete(read).await.unwrap());
        assert_eq!(states(&world, [top, reply]).await, ["placeholder", "there"], "{thread}");
    }
}
