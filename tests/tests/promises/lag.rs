//! Tests with lagging indexes and eventually consistent reads, which return an old state of some items for as long as
//! the test chooses. The order of replies and the responses by id don't depend on this lag.

use std::time::Duration;

use tests::{Actor, Faults, World, ids, seen};

/// The service on a table whose copies miss changes to some items.
struct Lagging {
    faults: Faults,
    world: World,
}

impl Lagging {
    fn new() -> Self {
        let faults = Faults::new(1).lagging(Duration::ZERO);
        let world = crate::faulty(&faults, &[]);
        Self { faults, world }
    }

    /// Makes copies miss further changes to these comments, and receive changes to all others.
    async fn hold(&self, comments: &[u64]) {
        self.faults.hold(comments.iter().map(|id| format!("\"C#{id}\"")).collect()).await;
    }

    async fn hold_all(&self) {
        self.faults.hold(vec!["\"C#".to_owned()]).await;
    }

    /// Returns the ids of the inline replies, as stored.
    async fn inline(&self, parent: u64) -> Vec<u64> {
        let item = self.world.item(&format!("C#{parent}"), "C").await.unwrap();
        let inline = item.get("ld").map_or(&[][..], |ids| ids.as_ns().unwrap());
        let mut inline: Vec<u64> = inline.iter().map(|id| id.parse().unwrap()).collect();
        inline.sort_unstable();
        inline
    }

    async fn is_in_order(&self) {
        assert_eq!(self.world.findings().await, [""; 0]);
    }
}

async fn walk(actor: &Actor, parent: u64) -> Vec<u64> {
    seen(&actor.walk(&format!("comments/{parent}/replies?per_page=1&cursor=")).await)
}

/// Returns the replies that the thread's list shows below its first comment.
async fn embedded(actor: &Actor) -> Vec<u64> {
    ids(&actor.list("posts/1", "").await.rows()[0]["replies"])
}

#[tokio::test]
async fn a_reply_that_the_index_lists_late_is_not_skipped_when_replies_move_up() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = ada.comment("posts/1", "parent").await;
    let mut replies = ada.write_many("posts/1", parent, 3).await;
    table.hold_all().await;
    let late = ada.reply("posts/1", parent, "reply").await;
    table.hold(&[late]).await;
    replies.extend([late, ada.reply("posts/1", parent, "reply").await]);
    ada.remove(replies.remove(0)).await.ok(204);
    table.world.finish_jobs().await;
    table.is_in_order().await;

    table.hold(&[]).await;
    assert_eq!(walk(&ada, parent).await, replies);
    assert_eq!(embedded(&ada).await, replies[..3]);
}

#[tokio::test]
async fn an_index_that_misses_a_reply_and_still_lists_a_deleted_one_is_not_taken_as_complete() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = ada.comment("posts/1", "parent").await;
    let mut replies = ada.write_many("posts/1", parent, 3).await;
    table.hold_all().await;
    replies.push(ada.reply("posts/1", parent, "reply").await);
    table.hold(&replies[3..]).await;
    let deleted = ada.reply("posts/1", parent, "reply").await;
    replies.push(ada.reply("posts/1", parent, "reply").await);
    table.hold(&[replies[3], deleted]).await;
    for id in [deleted, replies.remove(0), replies.remove(0)] {
        ada.remove(id).await.ok(204);
    }
    table.world.finish_jobs().await;
    table.is_in_order().await;

    table.hold(&[]).await;
    assert_eq!(walk(&ada, parent).await, replies);
    assert_eq!(embedded(&ada).await, replies);
}

#[tokio::test]
async fn replies_move_up_once_the_index_lists_all_of_them() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = ada.comment("posts/1", "parent").await;
    let mut replies = ada.write_many("posts/1", parent, 5).await;
    table.hold(&replies[..1]).await;
    ada.remove(replies.remove(0)).await.ok(204);
    table.world.finish_jobs().await;
    table.hold(&[]).await;
    ada.like(parent).await.ok(200);
    table.world.finish_jobs().await;
    assert_eq!(table.inline(parent).await, replies[..3]);
    table.is_in_order().await;
}

#[tokio::test]
async fn a_response_by_id_does_not_depend_on_copies_that_lag() {
    let table = Lagging::new();
    let (ada, bob) = (table.world.user(7, "Ada"), table.world.user(8, "Bob"));
    table.hold_all().await;
    let mut above = ada.comment("posts/1", "parent").await;
    for _ in 0..3 {
        let below = bob.reply("posts/1", above, "reply").await;
        bob.get(&format!("comments/{below}")).await.ok(200);
        bob.get(&format!("comments/{below}/replies")).await.ok(200);
        bob.like(below).await.ok(200);
        ada.report(below, "spam").await.ok(201);
        bob.edit(below, "edited").await.ok(200);
        above = below;
    }
}

#[tokio::test]
async fn a_comment_that_was_just_approved_is_found_by_id_even_if_copies_lag() {
    let table = Lagging::new();
    let (ada, bob) = (table.world.user(7, "Ada"), table.world.user(8, "Bob"));
    let moderator = table.world.moderator();
    let held = ada.comment("posts/1", "doubtful").await;
    let below = ada.reply("posts/1", held, "reply").await;
    table.hold(&[held]).await;
    moderator.judge(held, "approve").await.ok(200);
    for id in [held, below] {
        bob.get(&format!("comments/{id}")).await.ok(200);
        bob.get(&format!("comments/{id}/replies")).await.ok(200);
        bob.like(id).await.ok(200);
        bob.report(id, "spam").await.ok(201);
        bob.reply("posts/1", id, "reply").await;
    }
}

#[tokio::test]
async fn a_hidden_reply_is_deleted_with_its_parent_even_if_copies_still_lack_it() {
    let table = Lagging::new();
    let ada = table.world.user(7, "Ada");
    let parent = ada.comment("posts/1", "parent").await;
    table.faults.hold(vec!["\"H#".to_owned()]).await;
    let reply = ada.reply("posts/1", parent, "doubtful").await;
    table.world.moderator().judge(reply, "reject").await.ok(200);
    ada.remove(parent).await.ok(204);
    table.world.finish_jobs().await;
    table.is_in_order().await;
}

#[tokio::test]
async fn an_erased_comment_is_not_listed_for_its_writer_even_if_the_index_still_has_it() {
    let table = Lagging::new();
    let (ada, moderator) = (table.world.user(7, "Ada"), table.world.moderator());
    let id = ada.comment("posts/1", "text").await;
    table.world.user(8, "Bob").reply("posts/1", id, "reply").await;
    table.hold(&[id]).await;
    ada.remove(id).await.ok(204);
    assert_eq!(moderator.get("users/7/comments").await.ok(200).ids(), [0; 0]);
}

#[tokio::test]
async fn a_reply_that_the_index_lists_late_stops_counting_when_its_parent_is_hidden() {
    let table = Lagging::new();
    let (ada, moderator) = (table.world.user(7, "Ada"), table.world.moderator());
    let parent = ada.comment("posts/1", "parent").await;
    table.hold_all().await;
    ada.reply("posts/1", parent, "reply").await;
    table.world.wait_until_idle().await;
    moderator.judge(parent, "reject").await.ok(200);
    table.world.wait_until_idle().await;
    table.hold(&[]).await;
    table.world.finish_jobs().await;
    table.is_in_order().await;
}

#[tokio::test]
async fn a_comment_that_the_index_lists_late_gets_its_writers_new_name() {
    let table = Lagging::new();
    let byron = table.world.user(7, "Ada Byron");
    table.hold_all().await;
    let id = byron.comment("posts/1", "text").await;
    table.world.user(7, "Ada Lovelace").get("ui").await.ok(200);
    table.world.wait_until_idle().await;
    table.hold(&[]).await;
    table.world.finish_jobs().await;
    assert_eq!(byron.see("posts/1", id).await["user"]["name"], "Ada Lovelace");
}

#[tokio::test]
async fn a_feed_has_comments_and_replies_that_copies_miss_or_still_show_as_hidden() {
    let table = Lagging::new();
    let (ada, moderator) = (table.world.user(7, "Ada"), table.world.moderator());
    let shown = ada.comment("posts/1", "shown").await;
    moderator.judge(shown, "reject").await.ok(200);
    table.hold_all().await;
    moderator.judge(shown, "approve").await.ok(200);
    let missed = ada.comment("posts/1", "missed").await;
    for parent in [shown, missed] {
        ada.reply("posts/1", parent, "reply").await;
    }
    // Once the feed has twenty entries, it excludes the parents, which are then read as ancestors of replies.
    for entries in [4, 20] {
        table.world.wait_until_idle().await;
        let feed = ada.get("posts/1/feed.atom").await.ok(200);
        assert_eq!(feed.json.as_str().unwrap().matches("<entry>").count(), entries);
        for n in 0..9 {
            ada.reply("posts/1", shown, &format!("{n}")).await;
            ada.reply("posts/1", missed, &format!("{n}")).await;
        }
    }
}
