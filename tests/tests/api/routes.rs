//! Tests that the table of routes and the functions agree.

use http::Method;
use serde_json::json;
use shared::routes::ROUTES;
use tests::{MAIL, PROVIDERS, WEBHOOKS, World, mail_token};

use crate::files::WRITER;
use crate::images::IMAGE;
use crate::permissions::of_a_webhook;

#[tokio::test]
async fn the_first_segment_of_a_route_cannot_be_a_type() {
    let world = World::new();
    let moderator = world.moderator();
    for (method, path) in [
        (Method::POST, "users/7/comments"),
        (Method::POST, "comments/7/comments"),
        (Method::GET, "comments/7/comments"),
        (Method::GET, "comments/7/changes"),
        (Method::GET, "counts/7/changes"),
        (Method::GET, "embed.js/7/feed.atom"),
        (Method::GET, "me/7/feed.atom"),
    ] {
        let reply = moderator.send_json(method, path, json!({ "body": "x" })).await.refused(404, "not_found");
        assert_eq!(reply.json["message"], "Unknown commentable type.", "{path}");
    }
}

#[tokio::test]
async fn every_route_is_handled_by_its_function() {
    let world = World::with(&[&PROVIDERS[..], &MAIL, &WEBHOOKS].concat());
    let moderator = world.moderator();
    for route in ROUTES {
        let id = moderator.comment("posts/1", "x").await;
        let path = route.path.replace("{type}/{id}", "posts/1").replace("users/{id}", "users/8");
        let path = if path.starts_with("moderation/webhooks/") { of_a_webhook(&world, &path).await } else { path };
        let path = path
            .replace("{id}", &id.to_string())
            .replace("{name}", IMAGE)
            .replace("{provider}", "github")
            .replace("{token}", &mail_token())
            .replace("{file}", WRITER);
        let path = path.replace("counts", "counts?threads=posts/1");
        let method = Method::from_bytes(route.method.as_bytes()).unwrap();
        let reply = moderator.send_json(method, &path, json!({})).await;
        assert!(!matches!(reply.status, 404 | 405 | 500..), "{}: {} {:#}", route.name, reply.status, reply.json);
    }
}
