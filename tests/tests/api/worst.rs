//! The longest threads and queues, the most likes by one visitor, and the oddest names.

use std::time::Duration;

use serde_json::json;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, Visitor};
use shared::domain::thread::VisitorThreadState;
use shared::store::queue::QueueState;
use tests::World;
use tests::seed::{self, prose};
use transfer::store::fixtures::{Fixture, put_fixtures};

use crate::capacity::{self, Table};

async fn stored(world: &World, id: u64) -> Comment {
    seed::comment(&world.store(), id).await
}

async fn put_all(world: &World, fixtures: impl IntoIterator<Item = Fixture>) {
    put_fixtures(&world.store(), fixtures).await.unwrap();
}

/// Returns a separate reply, or a top-level comment.
fn separate(comment: Comment) -> Fixture {
    Fixture::Comment { comment, is_inline: false }
}

#[tokio::test]
async fn ten_thousand_replies_to_one_comment_cost_as_ten() {
    const REPLIES: u64 = 10_000;
    let world = capacity::metered(&[]);
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "x").await;
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(ada.reply("posts/1", parent, &prose(n)).await);
    }
    let model = stored(&world, ids[3]).await;
    // The stream skips imported comments.
    let source = Some(SourceId("disqus:1".to_owned()));
    let more = (1..=REPLIES - 4).map(|n| {
        let id = ids[3] + n;
        separate(Comment { id: CommentId(id), body: prose(id), source: source.clone(), ..model.clone() })
    });
    put_all(&world, more).await;
    let parent_item = Comment { replies: REPLIES, ..stored(&world, parent).await };
    put_all(&world, [separate(parent_item)]).await;
    let last = ids[3];
    ids.extend(last + 1..=last + REPLIES - 4);
    world.pass(Duration::from_mins(1));

    let mut table = Table::default();
    let guest = world.guest();
    let first = guest.replies(parent, "cursor=").await;
    assert_eq!(first.ids(), ids[..10]);
    let next = guest.get(first.next().unwrap()).await.ok(200);
    assert_eq!(next.ids(), ids[10..20]);
    table.row("first of 10,000 replies", first, (3.0, 0.0, 2));
    table.row("next of 10,000 replies", next, (3.0, 0.0, 2));
    let deep = guest.replies(parent, "page=200").await;
    assert_eq!((deep.ids(), deep.total()), (ids[1_990..2_000].to_vec(), REPLIES));
    // Each skipped comment costs a read of its keys, which take sixty bytes.
    table.row("page 200 of replies", deep, (20.0, 0.0, 3));
    let list = guest.list("posts/1", "").await;
    assert_eq!(list.find(parent).unwrap()["replies_count"], REPLIES);
    table.row("the list above them", list, (4.5, 0.0, 1));
    let bob = world.user(8, "Bob");
    bob.get("ui").await.ok(200);
    let reply = bob.post("posts/1/comments", json!({ "body": "late", "parent_id": parent })).await;
    table.row("one more reply", reply, (2.0, 11.0, 2));
    world.wait_until_idle().await;
    table.check();
}

#[tokio::test]
async fn twenty_thousand_likes_of_one_visitor_cost_one_item_for_each_parent_shown() {
    let world = capacity::metered(&[]);
    let parents = capacity::seed(&world, 1_000).await;
    let eve = world.user(2000, "Eve");
    eve.get("ui").await.ok(200);
    let state = |overflow: Option<u64>, likes: std::ops::RangeInclusive<u64>| Fixture::VisitorThreadState {
        visitor: Visitor("u2000".to_owned()),
        thread: ThreadId::new("posts", "big").unwrap(),
        overflow: overflow.map(CommentId),
        state: VisitorThreadState { liked: likes.collect(), full: overflow.is_none(), ..VisitorThreadState::default() },
    };
    let overflow = parents.iter().map(|id| state(Some(*id), *id..=*id + 19));
    put_all(&world, std::iter::once(state(None, 1..=100)).chain(overflow)).await;

    let mut table = Table::default();
    let list = eve.list("posts/big", "").await;
    for parent in list.rows() {
        assert_eq!(parent["liked"], true);
        assert!(parent["replies"].as_array().unwrap().iter().all(|reply| reply["liked"] == true));
    }
    table.row("list, of a visitor with 20,000 likes", list, (9.0, 0.0, 2));
    table.row("replies, of the same", eve.replies(parents[999], "").await, (3.5, 0.0, 3));
    let taken_back = eve.like(parents[999]).await;
    // One trip each for the comment, the visitor's thread state, its continuation, and the write.
    table.row("a like taken back", taken_back, (3.0, 8.0, 4));
    table.check();
}

#[tokio::test]
async fn a_queue_of_fifty_thousand_costs_as_a_short_one() {
    const WAITING: u64 = 50_000;
    let world = capacity::metered(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let ada = world.user(7, "Ada");
    let last = ada.comment("posts/1", &prose(0)).await;
    let model = stored(&world, last).await;
    let first = last - WAITING + 1;
    let entries = (first..=last).map(|id| Fixture::QueueEntry(QueueState::Pending, CommentId(id)));
    // Only the newest comments are read.
    let comments = (last - 99..=last).map(|id| separate(Comment { id: CommentId(id), ..model.clone() }));
    put_all(&world, entries.chain(comments)).await;
    world.pass(Duration::from_mins(1));

    let mut table = Table::default();
    let moderator = world.moderator();
    moderator.get("ui").await.ok(200);
    let page = moderator.get("moderation/comments").await.ok(200);
    assert_eq!(page.ids(), (last - 9..=last).rev().collect::<Vec<_>>());
    assert_eq!(page.json["meta"]["counts"], json!({ "pending": 100, "reported": 0 }));
    let next = moderator.get(page.next().unwrap()).await.ok(200);
    assert_eq!(next.ids(), (last - 19..last - 9).rev().collect::<Vec<_>>());
    let back = moderator.get(next.prev().unwrap()).await.ok(200);
    assert_eq!(back.ids(), page.ids());
    // The queue has four shards, and each comment's consistent read costs a unit. The counts take eight queries.
    for (name, reply) in [("first of the queue", page), ("next of the queue", next), ("back in the queue", back)] {
        table.row(name, reply, (20.0, 0.0, 4));
    }
    table.check();
}

#[tokio::test]
async fn unusual_names_are_shown_as_written_and_can_be_found_and_mentioned() {
    let world = World::new();
    let names = [
        ("👩‍🚀 Zoë 🚀", "zoë"),
        ("שלום עולם", "עולם"),
        ("محمد بن سلمان", "سلمان"),
        ("e\u{301}lodie", "e\u{301}lo"),
        ("Zero\u{200b}Width\u{feff}", "width"),
        ("\u{2067}isolated\u{2069}", "isolated"),
        ("#!~%_\\'\"<b>&amp;", "%_"),
        ("İstanbul ẞtraße ǅ", "straße"),
        ("ﬀ ligature", "ligature"),
        ("名前", "前"),
    ];
    for (id, (name, query)) in (100..).zip(names) {
        let actor = world.user(id, name);
        let comment = actor.comment("posts/odd", &format!("by {name} @{name}")).await;
        let seen = actor.see("posts/odd", comment).await;
        assert_eq!(seen["user"]["name"], name);
        assert!(!seen["html"].as_str().unwrap().contains("<b>"), "{seen:#}");
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let found = actor.get(&format!("users?q={query}")).await.ok(200);
        assert!(found.rows().iter().any(|user| user["id"] == id), "{name}: {:#}", found.json);
    }
    let mentioned = world.user(300, "Reader").comment("posts/odd", "@zero_width_ and @ﬀ_ligature, not @zero").await;
    let html = world.guest().see("posts/odd", mentioned).await["html"].as_str().unwrap().to_owned();
    for handle in ["zero_width_", "%EF%AC%80_ligature"] {
        assert!(html.contains(&format!("<a href=\"/users/{handle}\"")), "{html}");
    }
    assert_eq!(html.matches("<a ").count(), 2, "{html}");
    let long = "x".repeat(300);
    let actor = world.user(200, &long);
    actor.comment("posts/odd", "long").await;
    assert_eq!(actor.get("users?q=xxx").await.ok(200).rows()[0]["name"], "x".repeat(100));
}
