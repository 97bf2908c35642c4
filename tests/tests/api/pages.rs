//! Lists that include the configuration, `counts`, and `changes`.

use std::time::Duration;

use http::header::{ACCEPT_LANGUAGE, IF_NONE_MATCH};
use serde_json::{Value, json};
use tests::{Actor, World, reversed};

#[tokio::test]
async fn include_ui_adds_the_ui_response_to_a_list() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    for actor in [&ada, &world.guest(), &world.moderator(), &world.banned().await, &world.guest().with_token("bad")] {
        for query in ["include=ui", "include=ui&cursor=", "include=ui&sort=most_liked", "include=ui&mine=1"] {
            let list = actor.list("posts/1", query).await;
            assert_eq!(&list.json["ui"], actor.get("ui").await.ok(200).data(), "{query}");
            let mut without = list.json.clone();
            without.as_object_mut().unwrap().remove("ui");
            without["meta"].as_object_mut().unwrap().remove("count");
            let plain = actor.list("posts/1", &query.replace("include=ui", "")).await.json;
            assert_eq!((&without["data"], &without["meta"]), (&plain["data"], &plain["meta"]), "{query}");
        }
    }
    let german = ada.clone().with(ACCEPT_LANGUAGE, "de").list("posts/1", "include=ui").await;
    assert_eq!(german.json["ui"]["labels"]["reply"], "Antworten");
}

#[tokio::test]
async fn a_list_that_includes_ui_has_the_count_that_counts_returns() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    assert_eq!(bob.list("posts/1", "include=ui").await.json["meta"]["count"], 0);
    let id = ada.comment("posts/1", "x").await;
    bob.reply("posts/1", id, "y").await;
    let strict = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    strict.user(7, "Ada").comment("posts/1", "waits").await;
    world.wait_until_idle().await;
    let count = bob.get("counts?threads=posts/1").await.ok(200).data()["posts/1"].clone();
    assert_eq!(count, 2);
    for query in ["", "&cursor=", "&sort=most_liked", "&page=2"] {
        let list = ada.list("posts/1", &format!("include=ui{query}")).await;
        assert_eq!(list.json["meta"]["count"], count, "{query}");
        assert!(ada.list("posts/1", query.trim_start_matches('&')).await.json["meta"].get("count").is_none());
    }
}

#[tokio::test]
async fn a_list_that_includes_ui_costs_half_a_unit_more_and_is_cached_as_without_it() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    // Once the world is idle, the item with the count exists.
    world.wait_until_idle().await;
    for actor in [&ada, &world.guest()] {
        let (with, plain) = (actor.list("posts/1", "include=ui").await, actor.list("posts/1", "").await);
        assert_eq!((with.cost.calls, with.cost.read_units), (plain.cost.calls, plain.cost.read_units + 0.5));
        for header in ["cache-control", "vary"] {
            assert_eq!(with.header(header), plain.header(header));
        }
        assert!(!plain.json.as_object().unwrap().contains_key("ui"));
    }
}

#[tokio::test]
async fn a_list_can_include_only_ui() {
    let world = World::new();
    for value in ["", "UI", "ui,ui", "users", "ui%20", "1"] {
        world.guest().get(&format!("posts/1/comments?include={value}")).await.invalid("include");
    }
    // Only thread lists support `include`.
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    ada.get(&format!("comments/{id}/replies?include=x")).await.ok(200);
    ada.get("pages/1/comments?include=x").await.refused(404, "not_found");
}

async fn totals(actor: &Actor, path: &str) -> Vec<Value> {
    actor.walk(path).await.iter().map(|page| page.json["meta"]["total"].clone()).collect()
}

#[tokio::test]
async fn every_page_of_a_walk_has_the_total_and_queues_have_none() {
    let world = World::new();
    let ids = world.written(5).await;
    let (ada, held) = (world.user(7, "Ada"), world.again(&[("SVC_REQUIRE_APPROVAL", "true")]));
    ada.write_many("posts/1", ids[0], 3).await;
    let hidden = held.user(7, "Ada");
    hidden.comment("posts/1", "held").await;
    hidden.reply("posts/1", ids[0], "held").await;
    let guest = world.guest();
    for (actor, parents, replies) in [(&guest, 5, 3), (&ada, 6, 4)] {
        for sort in ["newest", "oldest"] {
            let path = format!("posts/1/comments?sort={sort}&per_page=2&cursor=");
            assert_eq!(totals(actor, &path).await, [parents; 3], "{sort}");
        }
        let path = format!("comments/{}/replies?per_page=2&cursor=", ids[0]);
        assert_eq!(totals(actor, &path).await, [replies; 2]);
    }
    let queue = world.moderator().get("moderation/comments").await.ok(200);
    assert!(!queue.json["meta"].as_object().unwrap().contains_key("total"));
}

async fn changes(world: &World) -> (Value, Value) {
    world.wait_until_idle().await;
    let data = world.guest().get("posts/1/changes").await.ok(200).data().clone();
    let counts = world.guest().get("counts?threads=posts/1").await.ok(200).data().clone();
    assert_eq!(counts, json!({ "posts/1": data["count"] }));
    (data["count"].clone(), data["newest"].clone())
}

#[tokio::test]
async fn approved_comments_with_no_hidden_ancestor_are_counted() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    assert_eq!(changes(&world).await, (json!(0), json!([])));
    let top = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", top, "y").await;
    let below = ada.reply("posts/1", reply, "z").await;
    let other = ada.comment("posts/1", "x").await;
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]).user(7, "Ada").comment("posts/1", "held").await;
    ada.comment("posts/2", "elsewhere").await;
    assert_eq!(changes(&world).await, (json!(4), json!([other, below, reply, top])));
    moderator.judge(top, "reject").await.ok(200);
    assert_eq!(changes(&world).await, (json!(1), json!([other])));
    moderator.judge(top, "approve").await.ok(200);
    moderator.judge(held, "approve").await.ok(200);
    assert_eq!(changes(&world).await, (json!(5), json!([held, other, below, reply, top])));
    ada.remove(reply).await.ok(204);
    assert_eq!(changes(&world).await, (json!(4), json!([held, other, below, top])));
}

#[tokio::test]
async fn changes_list_the_newest_20_comments_and_replies() {
    let world = World::new();
    let parents = world.written(15).await;
    let replies = world.user(7, "Ada").write_many("posts/1", parents[3], 10).await;
    let newest: Vec<u64> = reversed(&[parents, replies].concat())[..20].to_vec();
    assert_eq!(changes(&world).await, (json!(25), json!(newest)));
}

#[tokio::test]
async fn pages_poll_more_often_the_newer_the_newest_comment_is() {
    let world = World::new();
    let edge = world.again(&[("SVC_EDGE_SECRET", "a secret between the edge and us")]);
    let waits = async || {
        let mut waits = Vec::new();
        for world in [&edge, &world] {
            waits.push(world.guest().get("posts/1/changes").await.ok(200).data()["next"].as_u64().unwrap());
        }
        waits
    };
    assert_eq!(waits().await, [120, 120]);
    world.user(7, "Ada").comment("posts/1", "x").await;
    world.wait_until_idle().await;
    assert_eq!(waits().await, [15, 60]);
    world.turn_back(Duration::from_secs(1));
    assert_eq!(waits().await, [15, 60], "ahead of the clock");
    world.pass(Duration::from_secs(1));
    for (seconds, expected) in
        [(299, [15, 60]), (1, [30, 60]), (3_299, [30, 60]), (1, [60, 60]), (82_799, [60, 60]), (1, [120, 120])]
    {
        world.pass(Duration::from_secs(seconds));
        assert_eq!(waits().await, expected, "after {seconds} seconds more");
    }
}

#[tokio::test]
async fn changes_respond_whether_realtime_is_on_or_not() {
    for on in ["true", "false"] {
        World::with(&[("SVC_REALTIME", on)]).guest().get("posts/1/changes").await.ok(200);
    }
}

#[tokio::test]
async fn threads_are_counted_by_their_names_each_once() {
    let world = World::with(&[("SVC_TYPES", "posts,videos")]);
    let ada = world.user(7, "Ada");
    for (thread, count) in [("posts/1", 3), ("videos/1", 2), ("posts/a.b_c~d:e-f", 1)] {
        for n in 0..count {
            ada.comment(thread, &n.to_string()).await;
        }
    }
    world.wait_until_idle().await;
    let counts = async |threads: &str| world.guest().get(&format!("counts?threads={threads}")).await.ok(200).json;
    let all = json!({ "data": { "posts/1": 3, "videos/1": 2, "posts/a.b_c~d:e-f": 1, "posts/7": 0 } });
    assert_eq!(counts("posts/1,videos/1,posts/a.b_c~d:e-f,posts/7").await, all);
    assert_eq!(counts("posts%2F1%2Cvideos%2F1%2Cposts%2Fa.b_c~d:e-f%2Cposts%2F7").await, all);
    assert_eq!(counts("posts/1,posts/1,posts/1").await, json!({ "data": { "posts/1": 3 } }));
    let hundred: Vec<String> = (1..=100).map(|n| format!("posts/{n}")).collect();
    let data = counts(&format!("{},posts/1", hundred.join(","))).await["data"].take();
    assert_eq!(data.as_object().unwrap().len(), 100);
}

#[tokio::test]
async fn a_request_for_counts_that_names_no_thread_or_too_many_is_refused() {
    let guest = World::new().guest();
    guest.get("counts").await.invalid("threads");
    let many: Vec<String> = (1..=101).map(|n| format!("posts/{n}")).collect();
    let many = many.join(",");
    let long = format!("posts/{}", "x".repeat(129));
    for threads in [
        "",
        ",",
        "posts",
        "posts/",
        "/1",
        "posts/1,",
        "posts/1,,posts/2",
        "pages/1",
        "posts/1,pages/1",
        "comments/1",
        "posts/1/2",
        "posts/a%20b",
        "posts/%00",
        "Posts/1",
        "posts/1;posts/2",
        &many,
        &long,
    ] {
        let refused = guest.get(&format!("counts?threads={threads}")).await.invalid("threads");
        let message = refused.json["message"].as_str().unwrap();
        assert!(!message.starts_with(' ') && !message.contains("  "), "{message}");
    }
}

#[tokio::test]
async fn counts_changes_and_feeds_are_the_same_for_everyone_and_kept_by_caches() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    world.wait_until_idle().await;
    for (path, seconds) in [("counts?threads=posts/1", 60), ("posts/1/changes", 10), ("posts/1/feed.atom", 300)] {
        let plain = world.guest().get(path).await.ok(200);
        assert_eq!(plain.header("cache-control"), format!("public, max-age=0, s-maxage={seconds}"));
        assert_eq!(plain.header("vary"), "Accept-Encoding");
        let known = world.guest().with(IF_NONE_MATCH, plain.header("etag")).get(path).await.ok(304);
        assert!(known.body.is_empty());
        assert_eq!(known.header("cache-control"), plain.header("cache-control"));
        let (bad, banned) = (world.guest().with_token("bad"), world.banned().await);
        for actor in [&ada, &world.moderator(), &bad, &banned, &world.guest().with(ACCEPT_LANGUAGE, "de")] {
            let reply = actor.get(path).await.ok(200);
            assert_eq!(reply.body, plain.body, "{path}");
            assert_eq!(
                (reply.header("cache-control"), reply.header("vary")),
                (plain.header("cache-control"), "Accept-Encoding")
            );
        }
        let separator = if path.contains('?') { '&' } else { '?' };
        let mine = ada.get(&format!("{path}{separator}mine=1")).await.ok(200);
        assert_eq!(mine.header("cache-control"), "private, no-store");
    }
    for path in ["counts", "pages/1/changes", "pages/1/feed.atom"] {
        assert_eq!(world.guest().get(path).await.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn changes_have_a_separate_limiter_as_large_as_that_of_reads() {
    let world = World::with(&[("SVC_READ_LIMIT", "3")]);
    for actor in [world.user(7, "Ada"), world.guest()] {
        for remaining in ["2", "1", "0"] {
            let reply = actor.get("posts/1/changes").await.ok(200);
            assert_eq!((reply.header("x-ratelimit-limit"), reply.header("x-ratelimit-remaining")), ("3", remaining));
        }
        let refused = actor.get("posts/1/changes").await.refused(429, "rate_limited");
        assert_eq!((refused.header("retry-after"), refused.header("x-ratelimit-remaining")), ("55", "0"));
        for path in ["counts?threads=posts/1", "posts/1/feed.atom", "ui"] {
            actor.get(path).await.ok(200);
        }
        actor.get("counts?threads=posts/1").await.refused(429, "rate_limited");
        actor.get("posts/1/feed.atom").await.refused(429, "rate_limited");
    }
    world.pass(Duration::from_secs(55));
    world.guest().get("posts/1/changes").await.ok(200);
}
