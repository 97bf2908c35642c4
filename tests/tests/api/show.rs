//! `comments.show`: a comment with all its ancestors.

use http::header::{ACCEPT_LANGUAGE, IF_NONE_MATCH};
use serde_json::{Value, json};
use tests::{Actor, TestResponse, World, ids};

async fn show(actor: &Actor, id: u64) -> TestResponse {
    actor.get(&format!("comments/{id}")).await
}

async fn chain(actor: &Actor, thread: &str, length: usize) -> Vec<u64> {
    let mut chain = vec![actor.comment(thread, "0").await];
    for n in 1..length {
        chain.push(actor.reply(thread, chain[n - 1], &n.to_string()).await);
    }
    chain
}

#[tokio::test]
async fn a_comment_is_shown_with_all_above_it_and_its_thread() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let chain = chain(&ada, "posts/1", 11).await;
    for (depth, id) in chain.iter().enumerate() {
        let shown = show(&ada, *id).await.ok(200);
        let names: Vec<&String> = shown.json.as_object().unwrap().keys().collect();
        assert_eq!(names, ["ancestors", "data", "thread"]);
        assert_eq!((shown.id(), ids(&shown.json["ancestors"])), (*id, chain[..depth].to_vec()));
    }
    let unknown = json!({ "type": "posts", "id": "1", "title": null, "url": null });
    assert_eq!(show(&ada, chain[0]).await.json["thread"], unknown);
    let record = json!({ "title": "On threads", "url": "https://example.org/1", "author_id": 7 });
    world.moderator().put("posts/1", record).await.ok(200);
    let shown = show(&ada, chain[1]).await.ok(200).json;
    let known = json!({ "type": "posts", "id": "1", "title": "On threads", "url": "https://example.org/1" });
    assert_eq!(shown["thread"], known);
    assert!(shown["data"]["is_author"] == true && shown["ancestors"][0]["is_author"] == true);
}

#[tokio::test]
async fn a_shown_comment_is_as_in_the_list_but_without_embedded_replies() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let top = ada.comment("posts/1", "Hi **all**").await;
    let reply = bob.reply("posts/1", top, "Hello").await;
    bob.like(top).await.ok(200);
    bob.report(reply, "spam").await.ok(201);
    world.moderator().pin(top).await.ok(200);
    for actor in [&ada, &bob, &world.guest(), &world.moderator()] {
        let mut listed = actor.see("posts/1", top).await;
        let listed_reply = listed["replies"][0].take();
        listed["replies"] = json!([]);
        assert_eq!(show(actor, top).await.ok(200).data(), &listed);
        let shown = show(actor, reply).await.ok(200);
        assert_eq!((shown.data(), &shown.json["ancestors"]), (&listed_reply, &json!([listed])));
    }
}

#[tokio::test]
async fn a_visitor_with_more_likes_than_an_item_takes_is_shown_all_of_them() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    for n in 0..101 {
        let id = ada.comment("posts/1", &n.to_string()).await;
        ada.like(id).await.ok(200);
    }
    let chain = chain(&ada, "posts/1", 3).await;
    for id in &chain {
        ada.like(*id).await.ok(200);
    }
    let shown = show(&ada, chain[2]).await.ok(200);
    let above = shown.json["ancestors"].as_array().unwrap();
    assert!(above.iter().chain([shown.data()]).all(|comment| comment["liked"] == true), "{:#}", shown.json);
}

#[tokio::test]
async fn an_id_without_a_comment_is_404() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = ada.comment("posts/1", "x").await;
    let below = ada.reply("posts/1", top, "y").await;
    for id in ["1", "0", "007", "x", "9007199254740992", "-1"] {
        ada.get(&format!("comments/{id}")).await.refused(404, "not_found");
    }
    world.moderator().judge(below, "reject").await.ok(200);
    ada.remove(top).await.ok(204);
    // The replies disappear immediately, before they are cleaned up.
    for id in [top, below] {
        show(&ada, id).await.refused(404, "not_found");
        show(&world.moderator(), id).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn an_unapproved_comment_is_shown_to_its_writer_and_to_moderators() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true"), ("SVC_ALLOW_GUESTS", "true")]);
    let (ada, guest) = (held.user(7, "Ada"), held.guest());
    for (writer, id) in [(&ada, ada.comment("posts/1", "x").await), (&guest, guest.comment("posts/1", "x").await)] {
        assert_eq!(show(writer, id).await.ok(200).data()["is_approved"], false);
        show(&world.moderator(), id).await.ok(200);
        for other in [world.user(8, "Bob"), world.guest()] {
            show(&other, id).await.refused(404, "not_found");
        }
    }
}

#[tokio::test]
async fn below_a_comment_that_is_hidden_from_the_visitor_nothing_is_shown() {
    let world = World::new();
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let top = ada.comment("posts/1", "x").await;
    let reply = bob.reply("posts/1", top, "y").await;
    moderator.judge(top, "reject").await.ok(200);
    // Even Bob, who wrote the reply, doesn't see it below the rejected comment. Ada, who wrote the rejected comment,
    // and moderators see both.
    show(&bob, reply).await.refused(404, "not_found");
    show(&world.guest(), reply).await.refused(404, "not_found");
    for actor in [&ada, &moderator] {
        assert_eq!(ids(&show(actor, reply).await.ok(200).json["ancestors"]), [top]);
    }
    moderator.judge(top, "approve").await.ok(200);
    show(&bob, reply).await.ok(200);
}

#[tokio::test]
async fn caches_share_only_comments_as_everyone_is_shown_them() {
    let world = World::new();
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true"), ("SVC_ALLOW_GUESTS", "true")]);
    let top = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", top, "y").await;
    let control = async |actor: &Actor, id| show(actor, id).await.ok(200).header("cache-control").to_owned();
    for id in [top, reply] {
        assert_eq!(control(&guest, id).await, "public, max-age=0, s-maxage=5");
        assert_eq!(control(&ada, id).await, "private, no-cache");
        let mine = guest.get(&format!("comments/{id}?mine=1")).await.ok(200);
        assert_eq!(mine.header("cache-control"), "private, no-store");
    }
    let writer = held.guest();
    let own = writer.comment("posts/2", "x").await;
    assert_eq!(control(&writer, own).await, "private, no-cache");
    let reporter = world.guest();
    reporter.report(top, "spam").await.ok(201);
    assert_eq!(control(&reporter, reply).await, "private, no-cache");

    let shown = show(&guest, top).await;
    assert_eq!(shown.header("vary"), "Authorization, Accept-Encoding, Accept-Language");
    let known = guest.clone().with(IF_NONE_MATCH, shown.header("etag"));
    assert_eq!(show(&known, top).await.ok(304).json, Value::Null);
    let german = show(&guest.clone().with(ACCEPT_LANGUAGE, "de"), top).await;
    assert_eq!(german.data()["relative_created_at"], "gerade eben");
}

#[tokio::test]
async fn a_bad_token_is_ignored_and_the_read_limiter_counts() {
    let world = World::with(&[("SVC_READ_LIMIT", "2")]);
    let top = world.user(7, "Ada").comment("posts/1", "x").await;
    let bad = world.guest().with_token("bad");
    assert_eq!(show(&bad, top).await.ok(200).header("x-ratelimit-remaining"), "1");
    show(&bad, 1).await.refused(404, "not_found");
    show(&bad, top).await.refused(429, "rate_limited");
}
