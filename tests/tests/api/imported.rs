//! Imported comments are older than the service, have likes without voters, and are never imported twice.

use futures_util::future::join_all;
use serde_json::{Value, json};
use server::template::DEPLOYED;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId};
use shared::domain::time::Timestamp;
use tests::{World, reversed};
use transfer::store::fixtures::{Fixture, put_fixtures};

/// Returns an imported comment in `posts/1` with this creation time. `tie` distinguishes comments with the same time.
fn imported(time: &str, tie: u64) -> Comment {
    Comment {
        id: CommentId::slots(Timestamp::parse(time).unwrap(), tie).unwrap().next().unwrap(),
        name: "Ada".to_owned(),
        body: time.to_owned(),
        source: Some(SourceId(format!("disqus:{tie}"))),
        ..Comment::blank(ThreadId::new("posts", "1").unwrap())
    }
}

async fn tombstones(world: &World) -> Vec<String> {
    assert_eq!(world.findings().await, [""; 0]);
    let items = world.items().await;
    let deleted = items.iter().filter(|item| item.contains_key("dl") && item["sk"].as_s().unwrap() == "S");
    let tombstones = deleted.filter_map(|item| item["pk"].as_s().unwrap().strip_prefix("S#"));
    let mut tombstones: Vec<String> = tombstones.map(str::to_owned).collect();
    tombstones.sort_unstable();
    tombstones
}

#[tokio::test]
async fn comments_are_listed_by_the_time_at_which_they_were_written() {
    const TIMES: [&str; 5] = [
        "2049-12-31T23:59:59+00:00",
        "2026-02-02T16:22:19+00:00",
        "2026-02-02T16:22:18+00:00",
        "2009-02-13T23:31:30+00:00",
        "1970-01-01T00:00:00+00:00",
    ];
    let world = World::new();
    let ada = world.user(7, "Ada");
    let mut listed = vec![ada.comment("posts/1", "now").await];
    for (tie, time) in (1..).zip(TIMES) {
        listed.push(world.import(&imported(time, tie)).await);
    }
    let newest = ada.list("posts/1", "sort=newest").await;
    assert_eq!(newest.ids(), listed);
    assert_eq!(ada.list("posts/1", "sort=oldest").await.ids(), reversed(&listed));
    for row in &newest.rows()[1..] {
        assert_eq!((&row["created_at"], &row["updated_at"]), (&row["body"], &row["body"]));
    }
    assert_eq!(newest.rows()[4]["relative_created_at"], "40 years ago");
    let walked: Vec<u64> =
        ada.walk("posts/1/comments?per_page=2&cursor=").await.iter().flat_map(|page| page.ids()).collect();
    assert_eq!(walked, listed);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_reply_that_is_older_than_others_comes_before_them() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = world.import(&imported("2010-01-01T00:00:00Z", 1)).await;
    let newer = ada.write_many("posts/1", top, 4).await;
    let old = Comment { ancestors: vec![CommentId(top)], ..imported("2011-01-01T00:00:00Z", 2) };
    let old = world.import(&old).await;
    let shown = ada.see("posts/1", top).await;
    assert_eq!((tests::ids(&shown["replies"]), &shown["replies_count"]), (vec![old, newer[0], newer[1]], &json!(5)));
    assert_eq!(ada.replies(top, "").await.ids(), [&[old], &newer[..]].concat());
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_reply_to_a_comment_from_the_future_does_not_change_the_time_of_others() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let future = world.import(&imported("2060-01-01T00:00:00Z", 1)).await;
    let mut replies = Vec::new();
    for n in 0..8 {
        let writer = if n % 2 == 0 { &ada } else { &bob };
        let reply = writer.write("posts/1", Some(future), "to the future").await.ok(201);
        assert_eq!(reply.data()["created_at"], "2060-01-01T00:00:00+00:00");
        let other = writer.write("posts/2", None, "now").await.ok(201);
        assert_eq!(other.data()["created_at"], "2050-01-02T03:04:05+00:00");
        let below = writer.write("posts/2", Some(other.id()), "now").await.ok(201);
        assert_eq!(below.data()["created_at"], "2050-01-02T03:04:05+00:00");
        replies.push(reply.id());
    }
    assert!(replies.is_sorted() && replies[0] > future, "{future} {replies:?}");
    assert_eq!(ada.replies(future, "").await.ids(), replies);
    assert_eq!(tests::ids(&ada.see("posts/1", future).await["replies"]), replies[..3]);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_replies_to_a_comment_of_the_future_are_all_kept() {
    let world = World::new();
    let (again, future) = (world.again(&[]), world.import(&imported("2060-01-01T00:00:00Z", 1)).await);
    let writers = (0..48).map(|n| (if n % 2 == 0 { &world } else { &again }).user(100 + n, "Writer"));
    let writers: Vec<_> = writers.collect();
    let mut written = join_all(writers.iter().map(|writer| writer.reply("posts/1", future, "at once"))).await;
    written.sort_unstable();
    assert_eq!(world.guest().replies(future, "per_page=50").await.ids(), written);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn imported_likes_count_and_rank_and_visitors_add_theirs() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let with_likes = |tie, likes| Comment { likes, imported_likes: likes, ..imported("2010-01-01T00:00:00Z", tie) };
    let many = world.import(&with_likes(1, 3)).await;
    let few = world.import(&with_likes(2, 2)).await;
    let own = ada.comment("posts/1", "own").await;
    let ranked = async || ada.list("posts/1", "sort=most_liked").await.ids();
    assert_eq!(ranked().await, [many, few, own]);
    assert_eq!(ada.like(few).await.ok(200).json, json!({ "liked": true, "likes_count": 3 }));
    assert_eq!(bob.like(few).await.ok(200).json, json!({ "liked": true, "likes_count": 4 }));
    assert_eq!(ranked().await, [few, many, own]);
    assert_eq!(bob.like(few).await.ok(200).json, json!({ "liked": false, "likes_count": 3 }));
    assert_eq!(ada.see("posts/1", few).await["likes_count"], 3);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn an_imported_comment_and_replies_below_leave_tombstones_when_deleted() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let of_ada = |tie| Comment { user: Some(UserId(7)), ..imported("2010-01-01T00:00:00Z", tie) };
    let (top, kept) = (world.import(&of_ada(1)).await, world.import(&of_ada(2)).await);
    let below = |tie, above: &[u64]| {
        let ancestors = above.iter().copied().map(CommentId).collect();
        Comment { ancestors, ..imported("2010-01-02T00:00:00Z", tie) }
    };
    let reply = world.import(&below(3, &[top])).await;
    world.import(&below(4, &[top, reply])).await;
    let other = ada.reply("posts/1", top, "never imported").await;
    for id in [reply, other] {
        world.moderator().judge(id, "reject").await.ok(200);
    }
    let own = ada.comment("posts/1", "never imported").await;
    ada.remove(own).await.ok(204);
    assert!(tombstones(&world).await.is_empty());
    ada.remove(top).await.ok(204);
    assert_eq!(tombstones(&world).await, ["disqus:1", "disqus:3", "disqus:4"]);
    assert_eq!(ada.list("posts/1", "").await.ids(), [kept]);
    let tombstone = world.item("S#disqus:3", "S").await.unwrap();
    assert_eq!(tombstone["i"].as_n().unwrap(), &reply.to_string());
}

#[tokio::test]
async fn a_placeholder_of_an_import_keeps_its_source_and_leaves_a_tombstone_when_it_goes() {
    let world = World::new();
    let id = world.import(&imported("2010-01-01T00:00:00Z", 1)).await;
    let reply = world.user(7, "Ada").reply("posts/1", id, "reply").await;
    world.delete(id).await;
    assert!(tombstones(&world).await.is_empty());
    assert_eq!(world.item(&format!("C#{id}"), "C").await.unwrap()["so"].as_s().unwrap(), "disqus:1");
    world.user(7, "Ada").remove(reply).await.ok(204);
    assert_eq!(tombstones(&world).await, ["disqus:1"]);
}

/// Imports write the items of counted comments, so no work is left for the function `events`.
#[tokio::test]
async fn a_newly_imported_comment_causes_no_further_work() {
    let world = World::new();
    let count = async || {
        world.wait_until_idle().await;
        world.item("T#posts#1", "K").await.is_some()
    };
    let put = |comment| Fixture::Comment { comment, is_inline: false };
    put_fixtures(&world.store(), [put(imported("2010-01-01T00:00:00Z", 1))]).await.unwrap();
    assert!(!count().await);
    let not_imported = Comment { source: None, ..imported("2010-01-01T00:00:00Z", 2) };
    put_fixtures(&world.store(), [put(not_imported)]).await.unwrap();
    assert!(count().await);
}

#[test]
fn the_stream_does_not_deliver_new_comments_that_were_imported() {
    let patterns = DEPLOYED.lines().filter_map(|line| line.trim().strip_prefix("- Pattern: '")?.strip_suffix('\''));
    let patterns: Vec<Value> = patterns.map(|pattern| serde_json::from_str(pattern).unwrap()).collect();
    let of_comments = patterns.iter().filter(|pattern| pattern["dynamodb"]["Keys"]["sk"]["S"] == json!(["C"]));
    let of_inserts: Vec<&Value> = of_comments
        .filter(|pattern| pattern["eventName"].as_array().is_none_or(|names| names.contains(&json!("INSERT"))))
        .collect();
    assert!(!of_inserts.is_empty());
    for pattern in of_inserts {
        assert_eq!(pattern["dynamodb"]["NewImage"], json!({ "so": { "S": [{ "exists": false }] } }));
    }
}
