//! Pending comments, which only their writers see in the list.

use std::time::Duration;

use serde_json::json;
use tests::{Actor, World, ids, reversed, seen};

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");

/// Ada's comments in `posts/1`, oldest first. Those at odd positions wait for approval.
struct Mixed {
    world: World,
    ada: Actor,
    all: Vec<u64>,
}

impl Mixed {
    async fn new(count: usize) -> Self {
        let world = World::new();
        let held = world.again(&[HELD]);
        let mut all = Vec::new();
        for n in 0..count {
            let world = if n % 2 == 1 { &held } else { &world };
            all.push(world.user(7, "Ada").comment("posts/1", &n.to_string()).await);
            world.pass(Duration::from_millis(3));
        }
        let ada = world.user(7, "Ada");
        Self { world, ada, all }
    }

    fn approved(&self) -> Vec<u64> {
        self.all.iter().copied().step_by(2).collect()
    }
}

#[tokio::test]
async fn lists_omit_unapproved_comments_except_for_their_writers() {
    let mixed = Mixed::new(6).await;
    let others = [mixed.world.guest(), mixed.world.user(8, "Bob"), mixed.world.moderator()];
    for other in others {
        let list = other.list("posts/1", "").await;
        assert_eq!((list.ids(), list.total()), (reversed(&mixed.approved()), 3));
    }
    let own = mixed.ada.list("posts/1", "").await;
    assert_eq!((own.ids(), own.total()), (reversed(&mixed.all), 6));
    assert_eq!(own.rows()[0]["is_approved"], false);
}

#[tokio::test]
async fn a_writers_pages_hold_unapproved_comments_in_their_place() {
    let mixed = Mixed::new(7).await;
    for sort in ["newest", "oldest", "most_liked", "most_replied", "newest&cursor=", "oldest&cursor="] {
        let order = if sort.starts_with("oldest") { mixed.all.clone() } else { reversed(&mixed.all) };
        for per_page in 1..=4 {
            let pages = mixed.ada.walk(&format!("posts/1/comments?per_page={per_page}&sort={sort}")).await;
            assert_eq!(seen(&pages), order, "{sort} {per_page}");
            assert!(pages.iter().all(|page| page.total() == 7), "{sort} {per_page}");
            let back = mixed.ada.walk_back(pages.last().unwrap()).await;
            assert_eq!(seen(&back), order, "back, {sort} {per_page}");
        }
    }
}

#[tokio::test]
async fn another_visitor_continues_from_a_cursor_at_a_comment_hidden_from_them() {
    let mixed = Mixed::new(6).await;
    let page = mixed.ada.list("posts/1", "per_page=1&cursor=").await;
    assert_eq!(page.ids(), [mixed.all[5]]);
    let next = mixed.world.guest().get(page.next().unwrap()).await.ok(200);
    assert_eq!(next.ids(), [mixed.all[4]]);
}

#[tokio::test]
async fn unapproved_replies_are_in_their_place_for_their_writer_alone_and_never_counted() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "0").await;
    let held = world.again(&[HELD]);
    let mut replies = Vec::new();
    for n in 0..7 {
        let actor = if n % 2 == 1 { held.user(7, "Ada") } else { world.user(7, "Ada") };
        replies.push(actor.reply("posts/1", parent, &n.to_string()).await);
        world.pass(Duration::from_millis(3));
    }
    let approved: Vec<u64> = replies.iter().copied().step_by(2).collect();
    let shown = world.guest().see("posts/1", parent).await;
    assert_eq!((ids(&shown["replies"]), &shown["replies_count"]), (approved[..3].to_vec(), &json!(4)));
    let own = ada.see("posts/1", parent).await;
    assert_eq!((ids(&own["replies"]), &own["replies_count"]), (replies[..3].to_vec(), &json!(4)));
    for (actor, expected, total) in [(&ada, &replies, 7), (&world.guest(), &approved, 4)] {
        for path in (1..=4).flat_map(|n| ["", "&cursor="].map(|cursor| format!("replies?per_page={n}{cursor}"))) {
            let pages = actor.walk(&format!("comments/{parent}/{path}")).await;
            assert!(pages.iter().all(|page| page.total() == total), "{path}");
            assert_eq!(seen(&pages), *expected, "{path}");
            assert_eq!(seen(&actor.walk_back(pages.last().unwrap()).await), *expected, "back, {path}");
        }
        let beyond = actor.replies(parent, "page=9").await;
        assert_eq!((beyond.ids(), beyond.total()), (vec![], total));
    }
}

#[tokio::test]
async fn an_unapproved_comment_is_404_except_to_its_writer_and_moderators() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for other in [world.guest(), world.user(8, "Bob")] {
        other.get(&format!("comments/{id}/replies")).await.refused(404, "not_found");
    }
    world.user(8, "Bob").edit(id, "y").await.refused(404, "not_found");
    world.user(8, "Bob").remove(id).await.refused(404, "not_found");
    ada.replies(id, "").await;
    world.moderator().replies(id, "").await;
    world.moderator().edit(id, "y").await.refused(403, "forbidden");
}

#[tokio::test]
async fn the_replies_below_an_unapproved_comment_are_hidden_with_it() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let held = world.again(&[HELD]).user(7, "Ada").comment("posts/1", "x").await;
    let below = ada.reply("posts/1", held, "y").await;
    world.guest().get(&format!("comments/{below}/replies")).await.refused(404, "not_found");
    assert_eq!(world.guest().list("posts/1", "").await.total(), 0);
    let own = ada.list("posts/1", "").await;
    assert_eq!((own.ids(), ids(&own.rows()[0]["replies"])), (vec![held], vec![below]));
    assert_eq!(ada.replies(held, "").await.ids(), [below]);
}

#[tokio::test]
async fn a_writer_edits_and_deletes_unapproved_comments_and_totals_follow() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    let edited = ada.edit(id, "y").await.ok(200);
    assert_eq!((&edited.data()["body"], &edited.data()["is_approved"]), (&json!("y"), &json!(false)));
    assert_eq!(ada.list("posts/1", "").await.total(), 1);
    ada.remove(id).await.ok(204);
    assert_eq!(ada.list("posts/1", "").await.total(), 0);
}

#[tokio::test]
async fn a_writers_reply_below_a_hidden_comment_does_not_add_an_empty_page() {
    let world = World::new();
    let held = world.again(&[HELD]);
    let own = held.user(7, "Ada").comment("posts/1", "own").await;
    world.pass(Duration::from_millis(3));
    let hidden = world.user(8, "Bob").comment("posts/1", "hidden soon").await;
    held.user(7, "Ada").reply("posts/1", hidden, "below").await;
    world.moderator().judge(hidden, "reject").await.ok(200);
    for sort in ["oldest", "newest"] {
        let pages = world.user(7, "Ada").walk(&format!("posts/1/comments?per_page=1&sort={sort}&cursor=")).await;
        assert_eq!(pages.iter().map(tests::TestResponse::ids).collect::<Vec<_>>(), [[own]], "{sort}");
    }
}

#[tokio::test]
async fn below_a_hidden_comment_the_writer_of_a_reply_lists_no_replies() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let (ada, bob, guest, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.guest(), world.moderator());
    let hidden = world.user(9, "Cy").comment("posts/1", "hidden soon").await;
    let of_guest = guest.reply("posts/1", hidden, "own").await;
    let of_ada = ada.reply("posts/1", hidden, "own").await;
    for (writer, own) in [(&guest, of_guest), (&ada, of_ada)] {
        let below = bob.reply("posts/1", own, "another's").await;
        assert_eq!(writer.replies(own, "").await.ids(), [below]);
        assert!(guest.replies(own, "").await.header("cache-control").starts_with("public"));
    }
    moderator.judge(hidden, "reject").await.ok(200);
    for (writer, own) in [(&guest, of_guest), (&ada, of_ada)] {
        for query in ["", "cursor="] {
            writer.get(&format!("comments/{own}/replies?{query}")).await.refused(404, "not_found");
            assert_eq!(moderator.replies(own, query).await.ids().len(), 1);
        }
    }
}

#[tokio::test]
async fn the_replies_below_an_own_unapproved_comment_are_not_shared() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let guest = world.guest();
    let top = guest.comment("posts/1", "x").await;
    let below = guest.reply("posts/1", top, "x").await;
    world.moderator().judge(top, "reject").await.ok(200);
    for id in [top, below] {
        assert!(guest.replies(id, "").await.header("cache-control").starts_with("private"));
    }
}
