//! HEAD returns GET's response without the body, on routes that everyone may read.

use http::Method;
use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
use serde_json::json;
use shared::routes::ROUTES;
use tests::{Actor, MAIL, TestResponse, WEBHOOKS, World, mail_token, wants};

use crate::permissions::request;

async fn head(who: &Actor, path: &str) -> TestResponse {
    let reply = who.send(Method::HEAD, path, "").await;
    assert_eq!(reply.body.len(), 0, "{path}");
    reply
}

/// Returns the headers that are the same for GET and HEAD.
fn headers(reply: &TestResponse) -> Vec<String> {
    let passing = ["apigw-requestid", "x-ratelimit-remaining"];
    let headers = reply.headers.iter().filter(|(name, _)| !passing.contains(&name.as_str()));
    let mut headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    headers.sort_unstable();
    headers
}

#[tokio::test]
async fn every_route_that_everyone_may_read_serves_head_as_get_and_no_other_does() {
    let world = World::with(&[&MAIL[..], &WEBHOOKS].concat());
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let guest = world.guest().with(ACCEPT_ENCODING, "gzip");
    let mut open = 0;
    for route in ROUTES.iter().filter(|route| route.method == "GET") {
        let (path, _) = request(route, id);
        let (got, asked) = (guest.get(&path).await, head(&guest, &path).await);
        if got.status == 200 {
            assert_eq!((asked.status, headers(&asked)), (200, headers(&got)), "{path}");
            open += 1;
        } else {
            // `users/{id}/comments` also matches the route for posting a comment, which returns 404 because `users` is
            // not a commentable type.
            let refused = if route.name == "svc-pro.sign_in.callback" { 404 } else { 401 };
            let is_typed = route.name == "svc-pro.moderation.users.comments";
            assert_eq!((got.status, asked.status), (refused, if is_typed { 404 } else { 405 }), "{path}");
            assert!(is_typed || !asked.header("allow").contains("HEAD"), "{path}");
        }
    }
    assert!(open > 10, "{open}");
}

#[tokio::test]
async fn head_counts_like_get_and_is_refused_like_it() {
    let world = World::with(&[("SVC_READ_LIMIT", "2")]);
    let guest = world.guest();
    assert_eq!(head(&guest, "ui").await.ok(200).header("x-ratelimit-remaining"), "1");
    assert_eq!(guest.get("ui").await.ok(200).header("x-ratelimit-remaining"), "0");
    let refused = head(&guest, "posts/1/comments").await.ok(429);
    assert!(refused.headers.contains_key("retry-after"));
    let other = world.guest();
    head(&other, "pages/1/comments").await.ok(404);
    head(&other, "nowhere").await.ok(404);
    head(&other, "ui").await.ok(429);
}

#[tokio::test]
async fn head_returns_304_to_a_client_that_has_the_body() {
    let world = World::new();
    let tag = world.guest().get("ui").await.ok(200).header("etag").to_owned();
    let known = head(&world.guest().with(IF_NONE_MATCH, &tag), "ui").await.ok(304);
    assert_eq!(known.header("etag"), tag);
}

#[tokio::test]
async fn head_at_an_unsubscribe_link_unsubscribes_no_one() {
    let world = World::with(&MAIL);
    let ada = world.claiming(&json!({ "sub": "7", "name": "Ada", "email": "ada@example.org" }));
    let chosen = ada.put("me/notifications", wants(&["replies"])).await.ok(200);
    head(&world.guest(), &format!("mail/{}", mail_token())).await.ok(200);
    assert_eq!(ada.get("me/notifications").await.ok(200).data(), chosen.data());
}
