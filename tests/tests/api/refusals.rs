//! The cost of refusals. A world's clock starts five seconds into a minute.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use shared::routes::ROUTES;
use tests::{Actor, MAIL, SIGN_IN, TestResponse, WEBHOOKS, World};

use crate::permissions;

/// Routes that aren't rate-limited: files, actions from emails, and the steps of a sign-in.
const UNLIMITED: [&str; 8] = [
    "svc-pro.embed",
    "svc-pro.embed.part",
    "svc-pro.moderation.script",
    "svc-pro.moderation.page",
    "svc-pro.mail.act",
    "svc-pro.sign_in.start",
    "svc-pro.sign_in.callback",
    "svc-pro.sign_in.finish",
];

/// Calls every route except the `open` ones, for this comment and for threads of this type.
async fn ask_all_but(open: &[&str], actor: &Actor, kind: &str, id: u64) -> Vec<(&'static str, TestResponse)> {
    let mut replies = Vec::new();
    for route in ROUTES.iter().filter(|route| !open.contains(&route.name)) {
        let (path, body) = permissions::request(route, id);
        let path = path.replace("posts/1", &format!("{kind}/1"));
        let method = Method::from_bytes(route.method.as_bytes()).unwrap();
        replies.push((route.name, actor.send_json(method, &path, body).await));
    }
    replies
}

const OPEN: [&str; 23] = [
    "svc-pro.sign_in.start",
    "svc-pro.sign_in.callback",
    "svc-pro.sign_in.finish",
    "svc-pro.sign_in.refresh",
    "svc-pro.sign_in.end",
    "svc-pro.ui",
    "svc-pro.comments.index",
    "svc-pro.comments.page",
    "svc-pro.comments.public",
    "svc-pro.comments.replies",
    "svc-pro.comments.show",
    "svc-pro.markdown.preview",
    "svc-pro.counts",
    "svc-pro.changes",
    "svc-pro.feed",
    "svc-pro.mail.show",
    "svc-pro.mail.act",
    "svc-pro.embed",
    "svc-pro.embed.part",
    "svc-pro.moderation.script",
    "svc-pro.moderation.page",
    "svc-pro.openapi",
    "svc-pro.docs",
];

#[track_caller]
fn free(name: &str, reply: &TestResponse) {
    let cost = reply.cost;
    assert_eq!((cost.read_units, cost.write_units, cost.trips), (0.0, 0.0, 0), "{name}: {} {cost:?}", reply.status);
}

/// Calls every route except the `open` ones. All routes must refuse with `status` and cost nothing, except that the
/// first write of a minute is counted in the table.
async fn refused_for_nothing(actor: &Actor, kind: &str, id: u64, status: u16, open: &[&str]) {
    let refused = ask_all_but(open, actor, kind, id).await;
    for (name, reply) in &refused {
        assert_eq!(reply.status, status, "{name}");
    }
    let read: f64 = refused.iter().map(|(_, reply)| reply.cost.read_units).sum();
    let written: f64 = refused.iter().map(|(_, reply)| reply.cost.write_units).sum();
    // Uploads have a separate counter.
    assert!(read == 0.0 && written <= 2.0, "{read} read and {written} written for {} times {status}", refused.len());
    let mut last_of_each = ask_all_but(open, actor, kind, id).await;
    last_of_each.retain(|(_, reply)| reply.status == status);
    for (name, reply) in last_of_each {
        free(name, &reply);
    }
}

#[tokio::test]
async fn a_request_without_a_token_reads_nothing_before_its_401() {
    let mail = MAIL.into_iter().filter(|(name, _)| *name != "SVC_ALLOW_GUESTS");
    let settings = mail.chain(SIGN_IN).chain(WEBHOOKS).chain([("SVC_READ_LIMIT", "10")]);
    let world = World::with(&settings.collect::<Vec<_>>());
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let bad = world.guest().with_token("bad");
    refused_for_nothing(&bad, "posts", id, 401, &OPEN).await;
    let open_to_guests = [&OPEN[..], &["svc-pro.comments.report"]].concat();
    refused_for_nothing(&world.guest(), "posts", id, 401, &open_to_guests).await;
}

#[tokio::test]
async fn in_read_only_mode_a_write_reads_nothing_before_its_423() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let closed = world.again(&[("SVC_READ_ONLY", "true"), ("SVC_READ_LIMIT", "10")]);
    let reads: Vec<_> = ROUTES.iter().filter(|route| route.method == "GET").map(|route| route.name).collect();
    let open = [&reads[..], &OPEN, &["svc-pro.me.notifications.destroy"]].concat();
    for actor in [closed.guest(), closed.user(7, "Ada"), closed.moderator()] {
        refused_for_nothing(&actor, "posts", id, 423, &open).await;
    }
}

#[tokio::test]
async fn an_unknown_type_reads_nothing_before_its_404() {
    let world = World::with(&[("SVC_READ_LIMIT", "10")]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    for actor in [world.guest(), world.user(7, "Ada"), world.moderator()] {
        for path in [
            "pages/1/comments",
            "posts/%20/comments",
            "comments/1/2/3",
            "nowhere",
            "pages/1/changes",
            "comments/1/changes",
            "posts/%20/changes",
            "pages/1/feed.atom",
            "posts/%20/feed.atom",
        ] {
            free(path, &actor.get(path).await.refused(404, "not_found"));
        }
        let actor = world.user(20, "Bob");
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            actor.send(method.clone(), "nowhere", "").await.refused(404, "not_found");
            free("nowhere", &actor.send(method, "nowhere", "").await.refused(404, "not_found"));
        }
    }
    let ada = world.user(7, "Ada");
    let body = json!({ "body": "x", "parent_id": id });
    ada.post("pages/1/comments", body.clone()).await.refused(404, "not_found");
    free("create", &ada.post("pages/1/comments", body).await.refused(404, "not_found"));
    let moderator = world.moderator();
    moderator.put("pages/1", json!({})).await.refused(404, "not_found");
    free("describe", &moderator.put("pages/1", json!({})).await.refused(404, "not_found"));
}

#[tokio::test]
async fn a_disabled_feature_reads_nothing_before_its_404() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let without = world.again(&[
        ("SVC_REPORTING", "false"),
        ("SVC_PINS", "false"),
        ("SVC_MEDIA", "false"),
        ("SVC_MARKDOWN_PREVIEW", "false"),
        ("SVC_FEEDS", "false"),
        ("SVC_ALLOW_GUESTS", "true"),
        ("SVC_GUEST_LIKES", "true"),
    ]);
    for actor in [without.guest(), without.user(9, "Cy"), without.user(1, "Mod")] {
        // The first request is counted in the table.
        let _counted = actor.post("media", Value::Null).await;
        for (method, path) in [
            (Method::POST, format!("comments/{id}/report")),
            (Method::POST, format!("comments/{id}/pin")),
            (Method::DELETE, format!("comments/{id}/pin")),
            (Method::POST, "media".to_owned()),
            (Method::POST, "markdown/preview".to_owned()),
            (Method::GET, "posts/1/feed.atom".to_owned()),
        ] {
            free(&path, &actor.send(method, &path, "").await.refused(404, "not_found"));
        }
    }
}

#[tokio::test]
async fn a_caller_who_was_refused_costs_nothing_until_the_minute_ends() {
    let limits = [("SVC_READ_LIMIT", "1"), ("SVC_WRITE_LIMIT", "1")];
    let world = World::with(&limits);
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    let id = ada.comment("posts/1", "x").await;
    let refused = ada.post("posts/1/comments", json!({ "body": "x", "parent_id": id })).await;
    let cost = refused.refused(429, "rate_limited").cost;
    assert_eq!((cost.read_units, cost.write_units, cost.trips), (0.0, 1.0, 1));
    for actor in [&ada, &guest] {
        actor.get("ui").await.ok(200);
        actor.get("posts/1/changes").await.ok(200);
    }
    guest.post("posts/1/comments", json!({ "body": "x" })).await.refused(401, "unauthenticated");
    for actor in [&ada, &guest] {
        for (name, reply) in ask_all_but(&UNLIMITED, actor, "posts", id).await {
            let reply = reply.refused(429, "rate_limited");
            free(name, &reply);
            assert_eq!((reply.header("retry-after"), reply.header("x-ratelimit-remaining")), ("55", "0"));
        }
        for method in [Method::GET, Method::POST] {
            free("nowhere", &actor.send(method, "nowhere", "").await.refused(429, "rate_limited"));
        }
    }
    world.pass(Duration::from_secs(55));
    ada.get("ui").await.ok(200);
    ada.comment("posts/1", "x").await;
}

#[tokio::test]
async fn a_caller_without_uploads_left_costs_nothing() {
    let world = World::with(&[("SVC_UPLOAD_LIMIT", "1")]);
    let ada = world.user(7, "Ada");
    ada.post("media", Value::Null).await.invalid("file");
    ada.post("media", Value::Null).await.refused(429, "rate_limited");
    free("media", &ada.post("media", Value::Null).await.refused(429, "rate_limited"));
    ada.comment("posts/1", "x").await;
}

#[tokio::test]
async fn refusals_that_were_not_written_to_the_table_count_all_the_same() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "4")]);
    let ada = world.user(7, "Ada");
    for remaining in ["3", "2"] {
        let reply = ada.delete("nowhere").await.refused(404, "not_found");
        assert_eq!(reply.header("x-ratelimit-remaining"), remaining);
    }
    let reply = ada.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    assert_eq!(reply.header("x-ratelimit-remaining"), "1");
    // The table now counts all three requests.
    let other = world.again(&[("SVC_WRITE_LIMIT", "4")]).user(7, "Ada");
    assert_eq!(other.delete("nowhere").await.refused(404, "not_found").header("x-ratelimit-remaining"), "0");
    other.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
    ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn a_reader_who_used_up_the_limit_in_another_instance_is_refused_without_reading() {
    let limit = [("SVC_READ_LIMIT", "30")];
    let world = World::with(&limit);
    let id = world.user(8, "Bob").comment("posts/1", "x").await;
    let ada = world.user(7, "Ada");
    for _ in 0..30 {
        ada.get("ui").await.ok(200);
    }
    let elsewhere = world.again(&limit).user(7, "Ada");
    for _ in 0..10 {
        elsewhere.get("ui").await.ok(200);
    }
    let cost = elsewhere.get("posts/1/comments").await.refused(429, "rate_limited").cost;
    assert_eq!((cost.read_units, cost.write_units), (0.0, 1.0));
    free("list", &elsewhere.get("posts/1/comments").await.refused(429, "rate_limited"));
    free("replies", &elsewhere.get(&format!("comments/{id}/replies")).await.refused(429, "rate_limited"));
}

/// Fills `posts/1` so that its first page costs fifteen read units.
async fn long_thread(world: &World) {
    let ada = world.user(7, "Ada");
    let body = "x".repeat(10_000);
    for _ in 0..12 {
        ada.comment("posts/1", &body).await;
    }
}

#[tokio::test]
async fn an_expensive_read_counts_once_for_every_ten_units_started() {
    let world = World::with(&[("SVC_READ_LIMIT", "300")]);
    long_thread(&world).await;
    let guest = world.guest();
    let remaining = |reply: &TestResponse| reply.header("x-ratelimit-remaining").parse::<u32>().unwrap();
    let mut expected = 300;
    for per_page in [50, 1, 10, 1, 50, 10] {
        let list = guest.list("posts/1", &format!("per_page={per_page}")).await;
        let counted = [10.0, 20.0, 30.0].iter().filter(|bound| list.cost.read_units > **bound).count();
        assert_eq!(counted, usize::from(per_page > 1), "{:?}", list.cost);
        let surplus = u32::try_from(counted).unwrap();
        let at_once = if per_page == 50 { surplus } else { 0 };
        assert_eq!(remaining(&list), expected - 1 - at_once, "the surplus of an ordinary page shows from the next one");
        expected -= 1 + surplus;
    }
    assert_eq!(remaining(&guest.get("ui").await.ok(200)), expected - 1);
}

#[tokio::test]
async fn an_expensive_read_beyond_the_limit_refuses_the_next_one() {
    for (limit, more) in [("1", 0), ("2", 0), ("3", 1), ("13", 11)] {
        for per_page in [10, 50] {
            let world = World::with(&[("SVC_READ_LIMIT", limit)]);
            long_thread(&world).await;
            let guest = world.guest();
            guest.list("posts/1", &format!("per_page={per_page}")).await;
            for _ in 0..more {
                guest.get("ui").await.ok(200);
            }
            let reply = guest.get("ui").await.refused(429, "rate_limited");
            assert_eq!(reply.header("x-ratelimit-remaining"), "0");
        }
    }
}
