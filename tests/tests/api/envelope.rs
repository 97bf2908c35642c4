//! Properties of every response: the error envelope, and the headers for compression and caching.

use http::Method;
use http::header::{ACCEPT_ENCODING, ACCESS_CONTROL_REQUEST_METHOD, IF_NONE_MATCH, ORIGIN};
use serde_json::json;
use tests::{TestResponse, World};

#[tokio::test]
async fn an_unknown_address_is_404_in_the_envelope() {
    let world = World::new();
    for path in
        ["", "nowhere", "posts", "posts/1/comments/2", "ui/", "comments", "comments/1/replies/x", "posts//comments"]
    {
        world.guest().get(path).await.refused(404, "not_found");
    }
    for uri in
        ["/", "/svc/api/v1", "/svc/api/v2/ui", "/ui", "/svc/api/v1x/ui", "//svc/api/v1/ui", "/%00", "/svc%2Fapi/v1/ui"]
    {
        let reply = world.guest().send_at(Method::GET, uri, "").await;
        assert_eq!(reply.status, 404, "{uri} {:#}", reply.json);
        reply.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_wrong_method_is_405_in_the_envelope_with_the_right_ones() {
    let world = World::new();
    for (method, path, allow) in [
        (Method::POST, "ui", "GET, HEAD"),
        (Method::DELETE, "posts/1/comments", "GET, HEAD, POST"),
        (Method::PUT, "comments/1", "GET, HEAD, PATCH, DELETE"),
        (Method::POST, "comments/1", "GET, HEAD, PATCH, DELETE"),
        (Method::POST, "comments/1/replies", "GET, HEAD"),
        (Method::PUT, "mail/x", "GET, HEAD, POST"),
        (Method::GET, "markdown/preview", "POST"),
        (Method::OPTIONS, "ui", "GET, HEAD"),
        (Method::POST, "users", "GET"),
        (Method::PUT, "comments/1/pin", "POST, DELETE"),
        (Method::GET, "users/1/ban", "PUT, DELETE"),
        (Method::PATCH, "posts/1", "PUT"),
    ] {
        let reply = world.guest().send(method, path, "").await.refused(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), allow, "{path}");
    }
}

#[tokio::test]
async fn responses_are_json_and_forbid_sniffing() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for reply in [ada.get("ui").await, ada.get("nowhere").await, ada.replies(id, "").await] {
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn every_response_requires_https_for_this_host_only() {
    let guest = World::new().guest();
    for path in ["ui", "posts/1/comments", "nowhere", "moderate", "docs", "embed.js", "mail/x", "posts/1/feed.atom"] {
        let reply = guest.get(path).await;
        assert_eq!(reply.header("strict-transport-security"), "max-age=15768000", "{path}");
    }
}

#[tokio::test]
async fn long_responses_are_compressed_for_clients_that_accept_it() {
    let world = World::new();
    let guest = world.guest();
    let plain = guest.get("ui").await.ok(200);
    assert!(!plain.headers.contains_key("content-encoding"));
    for accepted in ["gzip", "GZip", "deflate, gzip;q=0.5", "*", "br, *;q=0.1", "br, gzip"] {
        let reply = guest.clone().with(ACCEPT_ENCODING, accepted).get("ui").await.ok(200);
        assert_eq!(reply.header("content-encoding"), "gzip", "{accepted}");
        assert_eq!(reply.json, plain.json);
        assert!(reply.body.len() * 2 < plain.body.len());
        assert!(reply.header("vary").contains("Accept-Encoding"));
    }
    for refused in ["br", "gzip;q=0", "gzip;q=0, *", "*, gzip; q=0.000", "GZIP;Q=0", "*;q=0", "identity", ""] {
        let reply = guest.clone().with(ACCEPT_ENCODING, refused).get("ui").await.ok(200);
        assert!(!reply.headers.contains_key("content-encoding"), "{refused}");
    }
    let short = guest.with(ACCEPT_ENCODING, "gzip").get("nowhere").await.refused(404, "not_found");
    assert!(!short.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn an_unchanged_response_is_304_without_a_body() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    for path in ["posts/1/comments", "ui"] {
        let first = ada.get(path).await.ok(200);
        let tag = first.header("etag").to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let reply = ada.clone().with(IF_NONE_MATCH, &known).get(path).await.ok(304);
            assert!(reply.body.is_empty());
            assert_eq!(reply.header("etag"), tag);
        }
        ada.clone().with(IF_NONE_MATCH, "\"x\"").get(path).await.ok(200);
    }
    let tag = ada.get("posts/1/comments").await.header("etag").to_owned();
    ada.comment("posts/1", "y").await;
    ada.clone().with(IF_NONE_MATCH, &tag).get("posts/1/comments").await.ok(200);
}

#[tokio::test]
async fn only_responses_for_everyone_may_be_shared() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true"), ("SVC_REQUIRE_APPROVAL", "true")]);
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    assert!(guest.get("posts/1/comments").await.header("cache-control").starts_with("public"));
    assert!(guest.get("ui").await.header("cache-control").starts_with("public"));
    assert!(ada.get("posts/1/comments").await.header("cache-control").starts_with("private"));
    assert!(ada.get("ui").await.header("cache-control").starts_with("private"));
    let list = guest.get("posts/1/comments").await;
    assert!(list.header("vary").contains("Authorization"));
    // A guest sees their own pending comment, but other guests don't.
    guest.comment("posts/1", "x").await;
    assert!(guest.get("posts/1/comments").await.header("cache-control").starts_with("private"));
}

#[tokio::test]
async fn responses_to_requests_marked_mine_are_never_shared() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true"), ("SVC_REQUIRE_APPROVAL", "true")]);
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    let top = world.again(&[]).user(7, "Ada").comment("posts/1", "x").await;
    let own = guest.comment("posts/1", "mine").await;
    for actor in [&ada, &guest, &world.guest()] {
        for path in ["posts/1/comments?mine=1", &format!("comments/{top}/replies?mine=1"), "ui?mine=1", "docs?mine=1"] {
            let reply = actor.get(path).await.ok(200);
            assert_eq!(reply.header("cache-control"), "private, no-store", "{path}");
            let known = actor.clone().with(IF_NONE_MATCH, reply.header("etag")).get(path).await.ok(304);
            assert_eq!(known.header("cache-control"), "private, no-store", "{path}");
        }
        for path in ["nowhere?mine=1", "comments/1/replies?mine=1"] {
            let reply = actor.get(path).await.refused(404, "not_found");
            assert_eq!(reply.header("cache-control"), "private, no-store", "{path}");
        }
    }
    assert!(guest.list("posts/1", "mine=1").await.ids().contains(&own));
    // Other values of the parameter are ignored.
    for query in ["mine=0", "mine=", "mine", "mine=true"] {
        assert!(world.guest().list("posts/1", query).await.header("cache-control").starts_with("public"), "{query}");
    }
}

#[tokio::test]
async fn the_links_of_a_request_marked_mine_are_marked_too() {
    let world = World::new();
    for _ in 0..3 {
        world.user(7, "Ada").comment("posts/1", "x").await;
    }
    for query in ["mine=1&per_page=2", "mine=1&per_page=2&cursor="] {
        let pages = world.guest().walk(&format!("posts/1/comments?{query}")).await;
        assert_eq!(pages.len(), 2);
        assert!(pages.iter().all(|page| page.header("cache-control") == "private, no-store"), "{query}");
    }
}

#[tokio::test]
async fn every_read_that_holds_a_comment_varies_by_language() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    ada.reply("posts/1", id, "y").await;
    let (shown, replies) = (format!("comments/{id}"), format!("comments/{id}/replies"));
    let vary = "Authorization, Accept-Encoding, Accept-Language";
    for path in ["moderation/comments", "users/7/comments"] {
        let reply = moderator.get(path).await.ok(200);
        assert_eq!((reply.header("vary"), reply.header("cache-control")), (vary, "no-store"), "{path}");
    }
    for path in ["posts/1/comments", "posts/1/comments?mine=1", &shown, &replies, "ui"] {
        let reply = moderator.get(path).await.ok(200);
        assert_eq!(reply.header("vary"), vary, "{path}");
        let known = moderator.clone().with(IF_NONE_MATCH, reply.header("etag")).get(path).await.ok(304);
        assert_eq!(known.header("vary"), vary, "{path}");
    }
    assert_eq!(moderator.get("openapi.json").await.ok(200).header("vary"), "Authorization, Accept-Encoding");
}

#[tokio::test]
async fn responses_to_writes_and_errors_are_not_cached() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let created = ada.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    for reply in [created, ada.get("nowhere").await, ada.get("posts/1/comments?page=0").await] {
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn the_prefix_is_the_configured_one() {
    let world = World::with(&[("SVC_API_PREFIX", "talk")]);
    world.guest().send_at(Method::GET, "/talk/ui", "").await.ok(200);
    world.guest().send_at(Method::GET, "/svc/api/v1/ui", "").await.refused(404, "not_found");
}

#[tokio::test]
async fn every_request_leaves_a_line_in_the_log() {
    let world = World::new();
    let before = tests::lines_logged();
    world.guest().get("ui").await.ok(200);
    world.guest().get("nowhere").await.refused(404, "not_found");
    assert_eq!(tests::lines_logged(), before + 2);
}

#[tokio::test]
async fn pages_of_other_origins_get_the_cors_headers_of_the_template() {
    let world = World::new();
    let page = world.guest().with(ORIGIN, "https://blog.example");
    let asks = page.clone().with(ACCESS_CONTROL_REQUEST_METHOD, "PATCH");
    let preflight = asks.send(Method::OPTIONS, "comments/7", "").await.ok(204);
    assert_eq!(
        access_control(&preflight),
        [
            (
                "access-control-allow-headers",
                "accept-language,authorization,comment-key,content-type,idempotency-key,if-none-match"
            ),
            ("access-control-allow-methods", "GET,POST,PUT,PATCH,DELETE"),
            ("access-control-allow-origin", "*"),
            ("access-control-max-age", "7200"),
        ]
    );
    for reply in [page.get("ui").await.ok(200), page.get("nowhere").await.refused(404, "not_found")] {
        assert_eq!(
            access_control(&reply),
            [
                ("access-control-allow-origin", "*"),
                ("access-control-expose-headers", "etag,retry-after,x-ratelimit-limit,x-ratelimit-remaining"),
            ]
        );
    }
    assert_eq!(access_control(&world.guest().get("ui").await), []);
}

#[tokio::test]
async fn a_preflight_to_any_path_gets_a_response_and_is_not_counted() {
    let world = World::with(&[("SVC_READ_LIMIT", "1"), ("SVC_WRITE_LIMIT", "1"), ("SVC_READ_ONLY", "true")]);
    let page = world.guest().with(ORIGIN, "https://blog.example").with(ACCESS_CONTROL_REQUEST_METHOD, "PUT");
    for path in ["ui", "posts/1/comments", "comments/7/like", "pages/1", "moderation/log", "media", "users", "nowhere"]
    {
        let preflight = page.send(Method::OPTIONS, path, "").await.ok(204);
        assert_eq!(access_control(&preflight).len(), 4, "{path}");
        assert!(!preflight.headers.contains_key("x-ratelimit-limit"), "{path}");
        assert_eq!((preflight.cost.trips, preflight.body.len()), (0, 0), "{path}");
    }
    world.guest().send(Method::OPTIONS, "ui", "").await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn a_preflight_of_an_origin_that_is_not_listed_names_none() {
    let world = World::with(&[("SVC_CORS_ORIGINS", "https://blog.example, http://*")]);
    let asked = async |origin| {
        let page = world.guest().with(ORIGIN, origin).with(ACCESS_CONTROL_REQUEST_METHOD, "POST");
        let preflight = page.send(Method::OPTIONS, "posts/1/comments", "").await.ok(204);
        preflight.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap().to_owned())
    };
    for listed in ["https://blog.example", "http://localhost:8080"] {
        assert_eq!(asked(listed).await.as_deref(), Some(listed));
    }
    for other in ["https://evil.example", "null"] {
        assert_eq!(asked(other).await, None);
    }
}

/// Returns the CORS headers sorted by name, with duplicates.
fn access_control(reply: &TestResponse) -> Vec<(&str, &str)> {
    let headers = reply.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let mut headers: Vec<_> = headers.filter(|(name, _)| name.starts_with("access-control-")).collect();
    headers.sort_unstable();
    headers
}
