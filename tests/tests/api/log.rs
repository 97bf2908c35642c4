//! `moderation.log`: the actions of moderators.

use http::Method;
use serde_json::{Value, json};
use tests::{Actor, World, reversed};

use crate::images::IMAGE;

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");

async fn actions(world: &World) -> Vec<String> {
    let log = world.moderator().get("moderation/log?per_page=50").await.ok(200);
    log.rows().iter().rev().map(|row| row["action"].as_str().unwrap().to_owned()).collect()
}

async fn approve(actor: &Actor, id: u64) {
    actor.judge(id, "approve").await.ok(200);
}

#[tokio::test]
async fn a_decision_is_logged_with_who_made_it_and_about_what() {
    let world = World::with(&[HELD, ("SVC_ALLOW_GUESTS", "true")]);
    let of_ada = world.user(7, "Ada").comment("posts/1", "x").await;
    let of_a_guest = world.guest().comment("posts/2", "y").await;
    let grace = world.claiming(&json!({ "sub": "9", "name": "Grace", "roles": ["moderator"] }));
    approve(&world.moderator(), of_ada).await;
    world.pass(std::time::Duration::from_secs(1));
    grace.judge(of_a_guest, "reject").await.ok(200);
    let log = grace.get("moderation/log").await.ok(200);
    let expected = json!([
        {
            "id": log.rows()[0]["id"], "created_at": "2050-01-02T03:04:06+00:00", "action": "reject",
            "moderator": { "id": 9, "name": "Grace" }, "comment_id": of_a_guest, "user_id": null, "thread": "posts/2",
            "excerpt": { "name": "Grace", "text": "y" },
        },
        {
            "id": log.rows()[1]["id"], "created_at": "2050-01-02T03:04:05+00:00", "action": "approve",
            "moderator": { "id": 1, "name": "Mod" }, "comment_id": of_ada, "user_id": 7, "thread": "posts/1",
            "excerpt": { "name": "Ada", "text": "x" },
        },
    ]);
    assert_eq!(log.data(), &expected);
    assert!(log.ids()[0] > log.ids()[1]);
    assert_eq!(log.header("cache-control"), "no-store");
}

#[tokio::test]
async fn the_log_has_the_present_names_of_the_users_in_it() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    world.user(8, "Bob").comment("posts/1", "y").await;
    moderator.judge(id, "reject").await.ok(200);
    moderator.put("users/99/ban", json!({})).await.ok(200);
    world.pass(std::time::Duration::from_mins(11));
    world.user(7, "Ada Lovelace").get("ui").await.ok(200);
    let log = moderator.get("moderation/log").await.ok(200);
    assert_eq!(log.json["names"], json!({ "1": "Mod", "7": "Ada Lovelace" }));
    assert_eq!(moderator.get("moderation/users?banned=true").await.ok(200).json.get("names"), None);
}

#[tokio::test]
async fn every_action_of_a_moderator_is_logged_once_unless_it_changes_nothing() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    let acts = [
        (Method::POST, format!("comments/{id}/reports/dismiss")),
        (Method::POST, format!("comments/{id}/pin")),
        (Method::DELETE, format!("comments/{id}/pin")),
        (Method::POST, format!("comments/{id}/reject")),
        (Method::POST, format!("comments/{id}/approve")),
        (Method::PUT, "users/7/ban".to_owned()),
        (Method::DELETE, "users/7/ban".to_owned()),
    ];
    for (method, path) in acts {
        for _ in 0..2 {
            let answer = moderator.send(method.clone(), &path, "").await;
            assert!(matches!(answer.status, 200 | 204), "{method} {path}: {:#}", answer.json);
        }
    }
    assert_eq!(actions(&world).await, ["dismiss", "pin", "unpin", "reject", "approve", "ban", "unban"]);
}

#[tokio::test]
async fn refused_actions_are_not_logged() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", id, "y").await;
    ada.judge(id, "reject").await.refused(403, "forbidden");
    world.moderator().pin(reply).await.refused(422, "cannot_pin_reply");
    world.moderator().unpin(reply).await.refused(422, "cannot_pin_reply");
    world.moderator().judge(1, "reject").await.refused(404, "not_found");
    world.moderator().put("users/7/ban", json!({ "reason": 7 })).await.invalid("reason");
    assert!(actions(&world).await.is_empty());
}

#[tokio::test]
async fn the_expiry_of_a_ban_is_not_logged_but_a_changed_ban_is() {
    let world = World::new();
    let moderator = world.moderator();
    let ban = async |body: Value| moderator.put("users/7/ban", body).await.ok(200);
    ban(json!({ "until": "2050-01-02T03:05:05+00:00" })).await;
    ban(json!({ "until": "2050-01-02T03:05:05+00:00", "reason": "spam" })).await;
    world.pass(std::time::Duration::from_mins(1));
    moderator.delete("users/7/ban").await.ok(204);
    assert_eq!(actions(&world).await, ["ban", "ban"]);
    let log = moderator.get("moderation/log").await.ok(200);
    let row = &log.rows()[0];
    assert_eq!((&row["user_id"], &row["comment_id"], &row["thread"]), (&json!(7), &Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_removed_image_is_logged_and_a_missing_one_is_not() {
    let world = World::new();
    let (fay, moderator) = (world.user(6, "Fay"), world.moderator());
    let file: [(&str, &str, &[u8]); 1] = [("file", "a.png", include_bytes!("../../events/upload.png"))];
    let stored = fay.upload(&file).await.ok(201).json;
    let name = stored["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    for _ in 0..2 {
        moderator.delete(&format!("media/{name}")).await.ok(204);
    }
    moderator.delete(&format!("media/{IMAGE}")).await.ok(204);
    assert_eq!(actions(&world).await, ["remove_image"]);
    let log = moderator.get("moderation/log").await.ok(200);
    let row = &log.rows()[0];
    assert_eq!((&row["user_id"], &row["comment_id"], &row["thread"]), (&Value::Null, &Value::Null, &Value::Null));
}

#[tokio::test]
async fn the_log_is_walked_by_cursor_both_ways() {
    let world = World::with(&[HELD]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let mut decided = Vec::new();
    for _ in 0..7 {
        let id = ada.comment("posts/1", "x").await;
        approve(&moderator, id).await;
        decided.push(id);
    }
    let all = moderator.get("moderation/log?per_page=50").await.ok(200);
    let comments = all.rows().iter().map(|row| row["comment_id"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(comments, reversed(&decided));
    for per_page in 1..=4 {
        let path = format!("moderation/log?per_page={per_page}&cursor=");
        assert_eq!(moderator.walk_both_ways(&path).await, all.ids(), "{per_page}");
    }
    let page = moderator.get("moderation/log?per_page=1&cursor=").await.ok(200);
    let cursor = page.json["meta"]["next_cursor"].as_str().unwrap();
    moderator.get(&format!("moderation/comments?cursor={cursor}")).await.invalid("cursor");
    moderator.get("moderation/log?cursor=x").await.invalid("cursor");
    moderator.get("moderation/log?per_page=51").await.invalid("per_page");
}

#[tokio::test]
async fn an_entry_stays_when_its_comment_is_deleted() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    approve(&world.moderator(), id).await;
    ada.remove(id).await.ok(204);
    world.wait_until_idle().await;
    let log = world.moderator().get("moderation/log").await.ok(200);
    assert_eq!((log.rows().len(), &log.rows()[0]["comment_id"]), (1, &json!(id)));
}

#[tokio::test]
async fn a_decision_about_a_text_that_has_been_edited_since_is_409_and_decides_nothing() {
    let world = World::with(&[HELD]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    let seen = moderator.get("moderation/comments").await.ok(200).rows()[0]["updated_at"].clone();
    // This edit is within the same second as the comment.
    ada.edit(id, "y").await.ok(200);
    let judge = async |verdict: &str, seen: &Value| {
        moderator.post(&format!("comments/{id}/{verdict}"), json!({ "updated_at": seen })).await
    };
    for verdict in ["approve", "reject"] {
        judge(verdict, &seen).await.refused(409, "comment_changed");
    }
    assert_eq!(moderator.queue("pending").await, [id]);
    assert!(actions(&world).await.is_empty());
    let seen = moderator.get("moderation/comments").await.ok(200).rows()[0]["updated_at"].clone();
    assert_eq!(judge("approve", &seen).await.ok(200).data()["body"], "y");
    // The same time in another time zone is accepted.
    let elsewhere = seen.as_str().unwrap().replace("T03", "T04").replace("+00", "+01");
    assert_eq!(judge("reject", &json!(elsewhere)).await.ok(200).data()["is_approved"], false);
    judge("approve", &Value::Null).await.ok(200);
    for bad in [json!("now"), json!(7), json!([])] {
        judge("reject", &bad).await.invalid("updated_at");
    }
    assert_eq!(actions(&world).await, ["approve", "reject", "approve"]);
}
