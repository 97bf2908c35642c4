//! Calls every route as every kind of caller. The responses are committed in `permissions.out`, which
//! `UPDATE_FILES=1 cargo test --workspace permissions` writes.

use std::fmt::Write;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use shared::routes::{ROUTES, Route};
use tests::{Actor, MAIL, PROVIDERS, WEBHOOKS, World, assert_written, by_guest, mail_token, wants};

use crate::files::WRITER;
use crate::images::IMAGE;

/// Returns a valid path and body for this route.
pub(crate) fn request(route: &Route, id: u64) -> (String, Value) {
    let path = match route.name {
        "svc-pro.users.index" => "users?q=a".to_owned(),
        "svc-pro.moderation.users" => "moderation/users?q=a".to_owned(),
        "svc-pro.counts" => "counts?threads=posts/1".to_owned(),
        "svc-pro.moderation.ban" | "svc-pro.moderation.unban" => "users/99/ban".to_owned(),
        "svc-pro.moderation.close" | "svc-pro.moderation.open" => route.path.replace("{type}/{id}", "posts/closing"),
        "svc-pro.moderation.networks.unban" => "moderation/networks/none/ban".to_owned(),
        "svc-pro.media.destroy" => format!("media/{IMAGE}"),
        "svc-pro.embed.part" => format!("embed/{WRITER}"),
        "svc-pro.sign_in.callback" => "sign_in/callback/github".to_owned(),
        "svc-pro.mail.show" | "svc-pro.mail.act" => format!("mail/{}", mail_token()),
        _ => route.path.replace("{type}/{id}", "posts/1").replace("{id}", &id.to_string()),
    };
    let body = match route.name {
        "svc-pro.comments.store" => by_guest("Hello"),
        "svc-pro.comments.update" | "svc-pro.markdown.preview" => json!({ "body": "Hello" }),
        "svc-pro.comments.report" => json!({ "reason": "spam" }),
        "svc-pro.me.notifications.update" => wants(&["replies"]),
        "svc-pro.sign_in.start" => json!({ "email": format!("{id}@sign-in.example") }),
        "svc-pro.sign_in.name" => json!({ "name": "Ada" }),
        "svc-pro.moderation.bulk" => json!({ "ids": [id], "action": "approve" }),
        "svc-pro.moderation.webhooks.store" => json!({ "url": "http://127.0.0.1:9/", "events": ["comment.reported"] }),
        "svc-pro.moderation.ban"
        | "svc-pro.moderation.comments.ban"
        | "svc-pro.moderation.record"
        | "svc-pro.moderation.webhooks.update" => json!({}),
        _ => Value::Null,
    };
    (path, body)
}

/// Returns the path of a webhook route, for an existing webhook and a message sent to it.
pub(crate) async fn of_a_webhook(world: &World, path: &str) -> String {
    let moderator = world.moderator();
    let known = moderator.get("moderation/webhooks").await.ok(200);
    let id = match known.ids().first() {
        Some(id) => *id,
        None => {
            let webhook = json!({ "url": "http://127.0.0.1:9/", "events": ["comment.reported"] });
            moderator.post("moderation/webhooks", webhook).await.ok(201).id()
        }
    };
    let path = path.replace("{id}", &id.to_string());
    if !path.contains("{message}") {
        return path;
    }
    let sent = moderator.post(&format!("moderation/webhooks/{id}/test"), json!({})).await.ok(202);
    path.replace("{message}", sent.data()["id"].as_str().unwrap())
}

/// A column's name, its caller, and the writer of the comment in routes with a comment id.
type Column = (&'static str, Actor, Actor);

/// Returns one line per route. If `erased`, skips routes without a comment's id, and the comments are placeholders.
async fn lines(world: &World, columns: &[Column], erased: bool) -> String {
    let mut text = String::new();
    for route in ROUTES {
        if erased && !route.path.starts_with("comments/{id}") {
            continue;
        }
        let mut line = format!("{:40}", route.name);
        for (_, actor, writer) in columns {
            // Moves the clock, because instances assign the same ids while it is stopped.
            world.pass(Duration::from_millis(1));
            let id = writer.comment("posts/1", "x").await;
            if erased {
                writer.reply("posts/1", id, "reply").await;
                world.delete(id).await;
            }
            let (mut path, body) = request(route, id);
            if route.path.starts_with("moderation/webhooks/") {
                path = of_a_webhook(world, route.path).await;
            }
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            let reply = actor.send_json(method, &path, body).await;
            if route.name == "svc-pro.moderation.comments.ban" {
                world.moderator().delete("users/7/ban").await.ok(204);
            }
            let cell = format!("{} {}", reply.status, reply.json["code"].as_str().unwrap_or_default());
            write!(line, "{:24}", cell.trim_end()).unwrap();
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

async fn matrix() -> String {
    let mail: Vec<_> = MAIL.into_iter().filter(|(name, _)| *name != "SVC_ALLOW_GUESTS").collect();
    let world = World::with(&[&PROVIDERS[..], &mail, &WEBHOOKS].concat());
    let open = world.again(&[&PROVIDERS[..], &MAIL, &[("SVC_GUEST_LIKES", "true")], &WEBHOOKS].concat());
    let closed = world.again(&[&PROVIDERS[..], &mail, &[("SVC_READ_ONLY", "true")], &WEBHOOKS].concat());
    let banned_moderator = world.claiming(&json!({ "sub": "14", "name": "Eve", "roles": ["moderator"] }));
    banned_moderator.get("ui").await.ok(200);
    world.moderator().put("users/14/ban", json!({})).await.ok(200);
    let (ada, guest) = (world.user(7, "Ada"), open.guest().with_key("guest"));
    let of_ada = |name, actor| (name, actor, ada.clone());
    let columns: [Column; 9] = [
        of_ada("guest", world.guest()),
        of_ada("guest, when allowed", open.guest()),
        ("guest with the key", guest.clone(), guest),
        of_ada("member", world.user(8, "Bob")),
        of_ada("owner", world.user(7, "Ada")),
        of_ada("banned member", world.banned().await),
        of_ada("moderator", world.moderator()),
        of_ada("banned moderator", banned_moderator),
        of_ada("moderator, read-only", closed.moderator()),
    ];
    let mut text = format!("{:40}", "route");
    for (name, ..) in &columns {
        write!(text, "{name:24}").unwrap();
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text.push_str(&lines(&world, &columns, false).await);
    text.push_str("\nof a placeholder\n");
    text.push_str(&lines(&world, &columns, true).await);
    text
}

#[tokio::test]
async fn the_permissions_of_every_route_are_as_committed() {
    let now = matrix().await;
    assert_written("tests/permissions.out", &now);
    for route in ROUTES {
        assert!(now.lines().any(|line| line.split(' ').next() == Some(route.name)), "{}", route.name);
    }
}
