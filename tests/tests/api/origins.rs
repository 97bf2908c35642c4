//! Origins whose pages may write for guests. Browsers send an `Origin` with every such request, but no preflight for
//! `text/plain`.

use http::Method;
use http::header::{CONTENT_TYPE, ORIGIN};
use serde_json::{Value, json};
use tests::{Actor, TestResponse, World, by_guest};

const GUESTS: [(&str, &str); 2] = [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true")];
const LISTED: &str = "https://blog.example, http://shop.example:8080";
const ELSEWHERE: [&str; 6] = [
    "https://evil.example",
    "http://blog.example",
    "https://blog.example:444",
    "https://blog.example.evil.example",
    "http://api.test:444",
    "null",
];
const TYPES: [&str; 4] = ["application/json", "text/plain", "text/plain;charset=UTF-8", "multipart/form-data"];

fn world(origins: &str) -> World {
    World::with(&[&GUESTS[..], &[("SVC_CORS_ORIGINS", origins), ("SVC_UPLOAD_LIMIT", "100")]].concat())
}

/// Returns the path and body of each request by which a guest writes.
fn writes(id: u64) -> [(String, Value); 4] {
    [
        ("posts/1/comments".to_owned(), by_guest("Hello")),
        (format!("comments/{id}/like"), Value::Null),
        (format!("comments/{id}/report"), json!({ "reason": "spam" })),
        ("media".to_owned(), Value::Null),
    ]
}

async fn send(actor: &Actor, origin: &str, content_type: &str, path: &str, body: &Value) -> TestResponse {
    let actor = actor.clone().with(CONTENT_TYPE, content_type).with(ORIGIN, origin);
    actor.send_json(Method::POST, path, body.clone()).await
}

#[tokio::test]
async fn a_guest_from_another_origin_is_refused_whatever_the_content_type() {
    let world = world(LISTED);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let guest = world.guest();
    for (path, body) in writes(id) {
        for origin in ELSEWHERE {
            for content_type in TYPES {
                send(&guest, origin, content_type, &path, &body).await.refused(403, "forbidden");
            }
        }
    }
    let seen = guest.see("posts/1", id).await;
    assert_eq!((&seen["likes_count"], &seen["reported"]), (&json!(0), &json!(false)));
    assert_eq!(guest.list("posts/1", "").await.total(), 1);
}

#[tokio::test]
async fn a_guest_with_a_key_edits_and_deletes_from_a_listed_origin_alone() {
    let world = world(LISTED);
    let ada = world.guest().with_key("ada");
    let id = ada.comment("posts/1", "x").await;
    let (path, body) = (format!("comments/{id}"), json!({ "body": "y" }));
    let patch = Method::PATCH;
    for origin in ELSEWHERE {
        let page = ada.clone().with(ORIGIN, origin);
        for content_type in TYPES {
            let page = page.clone().with(CONTENT_TYPE, content_type);
            page.send_json(patch.clone(), &path, body.clone()).await.refused(403, "forbidden");
        }
        page.delete(&path).await.refused(403, "forbidden");
        page.with_key("bob").patch("comments/1", body.clone()).await.refused(403, "forbidden");
    }
    let stranger = world.guest().with(ORIGIN, "https://evil.example");
    stranger.patch(&path, body.clone()).await.refused(401, "unauthenticated");
    stranger.delete(&path).await.refused(401, "unauthenticated");
    let page = ada.with(ORIGIN, "https://blog.example");
    page.patch(&path, body).await.ok(200);
    page.delete(&path).await.ok(204);
}

#[tokio::test]
async fn a_guest_can_write_from_a_listed_origin_the_apis_own_or_without_an_origin() {
    let world = world(LISTED);
    let ada = world.user(7, "Ada");
    for origin in [Some("https://blog.example"), Some("http://shop.example:8080"), Some("http://api.test"), None] {
        let (id, guest) = (ada.comment("posts/1", "x").await, world.guest());
        let guest = origin.map_or_else(|| guest.clone(), |origin| guest.clone().with(ORIGIN, origin));
        let mut statuses = Vec::new();
        for (path, body) in writes(id) {
            statuses.push(guest.post(&path, body).await.status);
        }
        assert_eq!(statuses, [201, 200, 201, 422], "{origin:?}");
    }
}

#[tokio::test]
async fn the_apis_own_origin_is_that_of_its_public_url() {
    let settings = [("SVC_CORS_ORIGINS", "https://blog.example"), ("SVC_PUBLIC_URL", "https://Comments.example/x")];
    let world = World::with(&[&GUESTS[..], &settings].concat());
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let like = async |origin| world.guest().with(ORIGIN, origin).like(id).await;
    like("https://comments.example").await.ok(200);
    like("https://api.test").await.refused(403, "forbidden");
}

#[tokio::test]
async fn guests_from_anywhere_write_unless_origins_are_listed() {
    for world in [World::with(&GUESTS), world("*"), world("https://blog.example, *")] {
        let id = world.user(7, "Ada").comment("posts/1", "x").await;
        for origin in ELSEWHERE {
            send(&world.guest(), origin, "text/plain", &format!("comments/{id}/like"), &Value::Null).await.ok(200);
        }
    }
}

#[tokio::test]
async fn members_write_from_every_origin_and_everyone_reads() {
    let world = world(LISTED);
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    let id = ada.comment("posts/1", "x").await;
    let ada = ada.with(ORIGIN, "https://evil.example");
    for ((path, body), status) in writes(id).into_iter().zip([201, 200, 201, 422]) {
        assert_eq!(ada.post(&path, body).await.status, status, "{path}");
    }
    let page = guest.with(ORIGIN, "https://evil.example");
    page.list("posts/1", "").await;
    page.replies(id, "").await;
    page.get("ui").await.ok(200);
    page.post("markdown/preview", json!({ "body": "x" })).await.ok(200);
}

#[tokio::test]
async fn a_guests_permission_to_write_is_checked_before_the_origin() {
    let world = World::with(&[("SVC_CORS_ORIGINS", LISTED)]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let guest = world.guest().with(ORIGIN, "https://evil.example");
    for ((path, body), code) in writes(id).into_iter().zip([401, 401, 403, 401]) {
        assert_eq!(guest.post(&path, body).await.status, code, "{path}");
    }
    let bad = guest.clone().with_token("bad");
    bad.report(id, "spam").await.refused(401, "unauthenticated");
    guest.post("comments/1/report", json!({})).await.refused(403, "forbidden");
    let closed = world.again(&[("SVC_CORS_ORIGINS", LISTED), ("SVC_READ_ONLY", "true")]);
    let guest = closed.guest().with(ORIGIN, "https://evil.example");
    guest.report(id, "spam").await.refused(423, "read_only");
}

#[tokio::test]
async fn refusing_a_guest_from_another_origin_reads_nothing() {
    let world = world(LISTED);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let guest = world.guest().with(ORIGIN, "https://evil.example");
    for (path, body) in writes(id) {
        let cost = guest.post(&path, body).await.refused(403, "forbidden").cost;
        assert!(cost.read_units == 0.0 && cost.write_units <= 1.0, "{path}: {cost:?}");
    }
}
