//! The work of the function `events`: clean-up, promotion of replies, renaming.

use std::time::Duration;

use serde_json::json;
use shared::domain::ids::{CommentId, UserId};
use shared::domain::job::{CleanUp, ForgetReactions, Job, Rename};
use shared::domain::time::{Clock, Timestamp};
use shared::store::{Reading, Store};
use tests::{Item, World, ids};
use tokio::time::Instant;

async fn stored(world: &World, partition: &str) -> Vec<String> {
    let key = |item: &Item| format!("{} {}", item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
    world.items().await.iter().map(key).filter(|key| key.starts_with(partition)).collect()
}

#[tokio::test]
async fn everything_below_a_deleted_comment_is_cleaned_up() {
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
        bob.like(parent).await.ok(200);
        bob.report(parent, "spam").await.ok(201);
        parent = bob.reply("posts/1", parent, &n.to_string()).await;
    }
    let moderator = world.moderator();
    for reply in moderator.queue("pending").await.into_iter().chain(moderator.replies(top, "").await.ids()) {
        moderator.judge(reply, "reject").await.ok(200);
    }
    ada.remove(top).await.ok(204);
    world.wait_until_idle().await;
    assert_eq!(stored(&world, "C#").await, [format!("C#{kept} C")]);
    assert_eq!(stored(&world, "Q#").await, [format!("Q#all#{} {kept:016}", kept % 4)]);
    let list = bob.list("posts/1", "").await;
    assert_eq!((list.ids(), list.total()), (vec![kept], 1));
    assert!(world.moderator().get("moderation/comments").await.ok(200).ids().is_empty());
}

#[tokio::test]
async fn cleaning_up_below_a_reply_leaves_its_parent_and_siblings_alone() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = ada.comment("posts/1", "0").await;
    let gone = ada.reply("posts/1", top, "1").await;
    let below = ada.reply("posts/1", gone, "2").await;
    world.moderator().judge(below, "reject").await.ok(200);
    let sibling = ada.reply("posts/1", top, "1b").await;
    ada.reply("posts/1", sibling, "2b").await;
    ada.remove(gone).await.ok(204);
    world.wait_until_idle().await;
    assert_eq!(stored(&world, "C#").await.len(), 3);
    let shown = world.guest().see("posts/1", top).await;
    assert_eq!((ids(&shown["replies"]), &shown["replies_count"]), (vec![sibling], &json!(1)));
    assert_eq!(shown["replies"][0]["replies_count"], 1);
}

async fn run(store: &Store, job: Job) {
    let now = Clock::system().now();
    assert_eq!(store.run_job(job, now, Instant::now() + Duration::from_mins(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_record_of_the_stream_handled_twice_does_no_harm() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = ada.comment("posts/1", "0").await;
    let mut replies = ada.write_many("posts/1", top, 5).await;
    let store = world.store();
    let parent = store.comment_with_ancestors(CommentId(top), Reading::Consistent).await.unwrap().unwrap();
    let ada_before = store.user(UserId(7), Reading::Consistent).await.unwrap().unwrap();
    ada.remove(replies.remove(0)).await.ok(204);
    world.wait_until_idle().await;
    for _ in 0..2 {
        store.promote_below(&parent.comment).await.unwrap();
        assert!(store.rename_in_directory(&ada_before, &ada_before).await.unwrap());
        run(&store, Job::Rename(Rename::to(&ada_before))).await;
        // The comment exists, so nothing below it is removed.
        let job = CleanUp { comment: CommentId(top), replies: parent.comment.replies, deleted_at: Timestamp(0) };
        run(&store, Job::CleanUp(job)).await;
    }
    assert_eq!(ids(&ada.see("posts/1", top).await["replies"]), replies[..3]);
    assert_eq!(ada.replies(top, "").await.ids(), replies);
    for reply in replies {
        world.moderator().judge(reply, "reject").await.ok(200);
    }
    ada.remove(top).await.ok(204);
    for _ in 0..2 {
        run(&store, Job::ForgetReactions(ForgetReactions { comment: CommentId(top) })).await;
        let job = CleanUp { comment: CommentId(top), replies: parent.comment.replies, deleted_at: Timestamp(0) };
        run(&store, Job::CleanUp(job)).await;
    }
    world.wait_until_idle().await;
    assert!(stored(&world, "C#").await.is_empty());
}
