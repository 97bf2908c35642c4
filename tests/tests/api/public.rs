//! `comments.public`: lists that are the same for everyone, at a separate address.

use http::Method;
use http::header::{ACCEPT_LANGUAGE, COOKIE, IF_MODIFIED_SINCE, IF_NONE_MATCH, ORIGIN};
use serde_json::Value;
use tests::{Actor, TestResponse, World, seen};

const LIST: &str = "public/posts/1/comments";

async fn list(who: &Actor, query: &str) -> TestResponse {
    who.get(&format!("{LIST}?{query}")).await.ok(200)
}

/// Posts a thread with a pin, replies, a like, and pending comments. Returns the id of its first comment.
async fn thread(world: &World) -> u64 {
    let ids = world.written(4).await;
    let ada = world.user(7, "Ada");
    ada.reply("posts/1", ids[0], "answer").await;
    world.user(8, "Bob").like(ids[1]).await.ok(200);
    world.user(8, "Bob").report(ids[1], "spam").await.ok(201);
    world.moderator().pin(ids[2]).await.ok(200);
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true"), ("SVC_ALLOW_GUESTS", "true")]);
    held.user(7, "Ada").comment("posts/1", "waits").await;
    held.guest().with_key("guest").comment("posts/1", "waits too").await;
    world.wait_until_idle().await;
    ids[0]
}

#[tokio::test]
async fn the_public_list_is_the_list_of_a_guest_without_activity() {
    let world = World::new();
    thread(&world).await;
    for query in ["", "include=ui", "sort=oldest&per_page=2", "sort=most_liked", "page=2&per_page=3", "cursor="] {
        let (plain, public) = (world.guest().list("posts/1", query).await, list(&world.guest(), query).await);
        assert_eq!(public.json["data"], plain.json["data"], "{query}");
        assert_eq!(public.json["ui"], plain.json["ui"], "{query}");
        for key in ["total", "count", "next_cursor", "last_page"] {
            assert_eq!(public.json["meta"][key], plain.json["meta"][key], "{query} {key}");
        }
    }
}

#[tokio::test]
async fn tokens_keys_languages_and_marks_do_not_change_the_public_list() {
    let world = World::new();
    thread(&world).await;
    let query = "include=ui&per_page=2&cursor=";
    let plain = list(&world.guest(), query).await;
    let guest = world.guest();
    let others = [
        world.user(7, "Ada"),
        world.user(8, "Bob"),
        world.moderator(),
        world.banned().await,
        guest.clone().with_token("bad"),
        guest.clone().with_key("guest"),
        guest.clone().with(COOKIE, "session=1"),
        guest.clone().with(ACCEPT_LANGUAGE, "de"),
    ];
    for other in &others {
        for query in [query, &format!("{query}&mine=1"), &format!("newest=7&{query}&utm_source=mail")] {
            let reply = list(other, query).await;
            assert_eq!(reply.body, plain.body, "{query}");
            for header in ["cache-control", "vary", "etag"] {
                assert_eq!(reply.header(header), plain.header(header), "{query}");
            }
        }
    }
}

#[tokio::test]
async fn lang_chooses_labels_and_times() {
    let world = World::new();
    world.user(7, "Ada").comment("posts/1", "x").await;
    for (lang, reply, now) in [
        ("", "Reply", "just now"),
        ("lang=de", "Antworten", "gerade eben"),
        ("lang=DE-AT", "Antworten", "gerade eben"),
        ("lang=de,fr", "Reply", "just now"),
        ("lang=tlh", "Reply", "just now"),
    ] {
        let list = list(&world.guest().with(ACCEPT_LANGUAGE, "fr"), &format!("include=ui&{lang}")).await;
        assert_eq!(list.json["ui"]["labels"]["reply"], reply, "{lang}");
        assert_eq!(list.rows()[0]["relative_created_at"], now, "{lang}");
    }
}

#[tokio::test]
async fn caches_keep_the_public_list_and_may_serve_it_stale() {
    let world = World::new();
    thread(&world).await;
    let guest = world.guest();
    let reply = list(&guest, "").await;
    let control = "public, max-age=0, s-maxage=15, stale-while-revalidate=45, stale-if-error=86400";
    assert_eq!((reply.header("cache-control"), reply.header("vary")), (control, "Accept-Encoding"));
    assert!(!reply.headers.contains_key("last-modified"));
    let known = list_known(&guest, reply.header("etag")).await.ok(304);
    assert_eq!(known.header("cache-control"), control);
    // `If-Modified-Since` is ignored, because a deletion may make the latest time earlier.
    let since = guest.with(IF_MODIFIED_SINCE, "Sun, 02 Jan 2101 03:04:05 GMT");
    since.get(LIST).await.ok(200);
    for path in ["public/pages/1/comments", "public/posts/1/comments?page=0", "public/posts/1/comments?include=all"] {
        assert_eq!(world.guest().get(path).await.header("cache-control"), "no-store", "{path}");
    }
}

async fn list_known(who: &Actor, tag: &str) -> TestResponse {
    who.clone().with(IF_NONE_MATCH, tag).get(LIST).await
}

#[tokio::test]
async fn public_responses_vary_by_origin_if_origins_are_listed_and_there_is_no_edge() {
    const LISTED: (&str, &str) = ("SVC_CORS_ORIGINS", "https://a.example,https://b.example");
    for (settings, vary) in [
        (&[][..], "Accept-Encoding"),
        (&[LISTED], "Accept-Encoding, Origin"),
        (&[LISTED, ("SVC_EDGE_SECRET", "edge")], "Accept-Encoding"),
    ] {
        let world = World::with(settings);
        for guest in [world.guest(), world.guest().with(ORIGIN, "https://a.example")] {
            for path in [LIST, "posts/1/comments.html"] {
                assert_eq!(guest.get(path).await.ok(200).header("vary"), vary, "{path} {settings:?}");
            }
        }
    }
}

#[tokio::test]
async fn links_of_the_public_list_stay_in_the_list_and_reach_every_comment() {
    let world = World::new();
    let mut ids = world.written(7).await;
    ids.reverse();
    for query in ["per_page=2&cursor=", "per_page=2", "per_page=2&lang=de&sort=newest"] {
        let pages = world.guest().walk(&format!("{LIST}?{query}")).await;
        assert_eq!(seen(&pages), ids, "{query}");
        let below = format!("http://api.test/svc/api/v1/{LIST}");
        for page in &pages {
            assert_eq!(page.json["meta"]["path"], below);
            let links = page.json["links"].as_object().unwrap().values().filter_map(Value::as_str);
            assert!(links.clone().all(|link| link.starts_with(&format!("{below}?"))), "{query}");
            assert!(links.clone().all(|link| link.contains("lang=de") == query.contains("lang=de")), "{query}");
        }
        assert_eq!(seen(&world.guest().walk_back(pages.last().unwrap()).await), ids, "{query}, back");
    }
}

#[tokio::test]
async fn the_public_list_counts_as_a_read() {
    let world = World::with(&[("SVC_READ_LIMIT", "3")]);
    let guest = world.guest();
    assert_eq!(list(&guest, "").await.header("x-ratelimit-remaining"), "2");
    guest.send(Method::HEAD, LIST, "").await.ok(200);
    guest.get("public/pages/1/comments").await.refused(404, "not_found");
    let refused = guest.get(LIST).await.refused(429, "rate_limited");
    assert_eq!(refused.header("cache-control"), "no-store");
}
