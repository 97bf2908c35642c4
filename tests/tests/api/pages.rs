//! What pages read besides lists: the configuration within a list.

use http::header::ACCEPT_LANGUAGE;
use serde_json::Value;
use tests::{Actor, World};

#[tokio::test]
async fn a_list_includes_what_ui_answers() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    for actor in [&ada, &world.guest(), &world.moderator(), &world.banned().await, &world.guest().with_token("bad")] {
        for query in ["include=ui", "include=ui&cursor=", "include=ui&sort=most_liked", "include=ui&mine=1"] {
            let list = actor.list("posts/1", query).await;
            assert_eq!(&list.json["ui"], actor.get("ui").await.ok(200).data(), "{query}");
            let mut without = list.json.clone();
            without.as_object_mut().unwrap().remove("ui");
            let plain = actor.list("posts/1", &query.replace("include=ui", "")).await.json;
            assert_eq!((&without["data"], &without["meta"]), (&plain["data"], &plain["meta"]), "{query}");
        }
    }
    let german = ada.clone().with(ACCEPT_LANGUAGE, "de").list("posts/1", "include=ui").await;
    assert_eq!(german.json["ui"]["labels"]["reply"], "Antworten");
}

#[tokio::test]
async fn a_list_that_includes_ui_costs_and_is_cached_as_without_it() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    for actor in [&ada, &world.guest()] {
        let (with, plain) = (actor.list("posts/1", "include=ui").await, actor.list("posts/1", "").await);
        assert_eq!(with.cost, plain.cost);
        for header in ["cache-control", "vary"] {
            assert_eq!(with.header(header), plain.header(header));
        }
        assert!(!plain.json.as_object().unwrap().contains_key("ui"));
    }
}

#[tokio::test]
async fn nothing_else_can_be_included() {
    let world = World::new();
    for value in ["", "UI", "ui,ui", "users", "ui%20", "1"] {
        world.guest().get(&format!("posts/1/comments?include={value}")).await.invalid("include");
    }
    // Only lists of threads include anything.
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    ada.get(&format!("comments/{id}/replies?include=x")).await.ok(200);
    ada.get("pages/1/comments?include=x").await.refused(404, "not_found");
}

/// `meta` of the pages of a walk.
async fn totals(actor: &Actor, path: &str) -> Vec<Value> {
    actor.walk(path).await.iter().map(|page| page.json["meta"]["total"].clone()).collect()
}

#[tokio::test]
async fn every_page_of_a_walk_has_the_total_and_queues_have_none() {
    let world = World::new();
    let ids = world.written(5).await;
    let (ada, held) = (world.user(7, "Ada"), world.again(&[("SVC_REQUIRE_APPROVAL", "true")]));
    ada.write_replies("posts/1", ids[0], 3).await;
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
