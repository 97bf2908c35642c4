//! `comments.report`: POST `comments/{id}/report`, and the reports as moderators see them.

use std::time::Duration;

use http::header::USER_AGENT;
use serde_json::{Value, json};
use shared::domain::ids::CommentId;
use tests::{Actor, TestResponse, World};

async fn report_with(actor: &Actor, id: u64, body: Value) -> TestResponse {
    actor.post(&format!("comments/{id}/report"), body).await
}

/// Returns this field of a comment's reports, newest report first.
async fn reports(world: &World, id: u64, field: &str) -> Vec<String> {
    let reply = world.moderator().get(&format!("comments/{id}/reports")).await.ok(200);
    reply.rows().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_report_is_accepted_and_shows_to_its_writer_alone() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let bob = world.user(8, "Bob");
    let reply = report_with(&bob, id, json!({ "reason": "spam", "additional_details": null })).await.ok(201);
    assert_eq!(reply.json, json!({ "reported": true }));
    for (actor, reported) in [(&bob, true), (&world.user(7, "Ada"), false), (&world.guest(), false)] {
        assert_eq!(actor.see("posts/1", id).await["reported"], reported);
    }
}

#[tokio::test]
async fn reasons_and_details_are_checked() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let bob = world.user(8, "Bob");
    for reason in [json!(null), json!(""), json!(7), json!("Spam"), json!("boring")] {
        report_with(&bob, id, json!({ "reason": reason })).await.invalid("reason");
    }
    report_with(&bob, id, Value::Null).await.invalid("reason");
    for details in [json!(7), json!("ß".repeat(501)), json!([]), json!("\u{202e}txet"), json!("a\u{0}b")] {
        let body = json!({ "reason": "spam", "additional_details": details });
        report_with(&bob, id, body).await.invalid("additional_details");
    }
    assert_eq!(bob.see("posts/1", id).await["reported"], false);
    report_with(&bob, id, json!({ "reason": "other", "additional_details": "ß".repeat(500) })).await.ok(201);
}

#[tokio::test]
async fn reasons_come_from_the_settings() {
    let world = World::with(&[("SVC_REPORT_REASONS", "rude")]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.user(8, "Bob").report(id, "spam").await.invalid("reason");
    world.user(8, "Bob").report(id, "rude").await.ok(201);
}

#[tokio::test]
async fn details_are_stored_behind_the_reason() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    for (user, details) in [(9, "sells: things"), (10, "\u{200b}\n")] {
        let report = json!({ "reason": "other", "additional_details": details });
        report_with(&world.user(user, "Cy"), id, report).await.ok(201);
    }
    assert_eq!(reports(&world, id, "reason").await, ["other", "other: sells: things", "spam"]);
}

#[tokio::test]
async fn the_second_report_of_a_visitor_is_409() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    for actor in [world.user(8, "Bob"), world.guest()] {
        actor.report(id, "spam").await.ok(201);
        actor.report(id, "other").await.refused(409, "already_reported");
    }
    assert_eq!(reports(&world, id, "reason").await.len(), 2);
}

#[tokio::test]
async fn guests_of_one_network_report_a_comment_five_times_at_most() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (id, other) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    let at = |ip: &str, agent: u32| world.guest().from(ip).with(USER_AGENT, &agent.to_string());
    for agent in 1..=5 {
        at("2001:db8:1:2::1", agent).report(id, "spam").await.ok(201);
    }
    let refused = at("2001:db8:1:2::2", 6).report(id, "spam").await.refused(429, "rate_limited");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    assert_eq!(reports(&world, id, "reason").await.len(), 5);
    // A second report is refused as already reported. Other comments, networks and users have separate limits.
    at("2001:db8:1:2::1", 1).report(id, "spam").await.refused(409, "already_reported");
    at("2001:db8:1:2::1", 6).report(other, "spam").await.ok(201);
    at("2001:db8:1:3::1", 6).report(id, "spam").await.ok(201);
    ada.from("2001:db8:1:2::1").report(id, "spam").await.ok(201);
}

#[tokio::test]
async fn the_bound_on_guests_reports_is_a_setting_and_zero_is_no_bound() {
    for (bound, most) in [("2", 2), ("0", 12)] {
        let world = World::with(&[("SVC_GUEST_REPORTS_PER_IP", bound)]);
        let id = world.user(7, "Ada").comment("posts/1", "x").await;
        for agent in 1..=12 {
            let guest = world.guest().from("192.0.2.1").with(USER_AGENT, &agent.to_string());
            let reply = guest.report(id, "spam").await;
            assert_eq!(reply.status, if agent <= most { 201 } else { 429 }, "{agent} of {bound}");
        }
    }
}

#[tokio::test]
async fn likes_and_reports_of_guests_have_separate_bounds() {
    let world =
        World::with(&[("SVC_GUEST_LIKES", "true"), ("SVC_GUEST_LIKES_PER_IP", "1"), ("SVC_GUEST_REPORTS_PER_IP", "1")]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let guest = world.guest();
    guest.like(id).await.ok(200);
    guest.report(id, "spam").await.ok(201);
}

#[tokio::test]
async fn a_comment_that_is_missing_or_hidden_is_404() {
    let world = World::new();
    let bob = world.user(8, "Bob");
    bob.report(1, "spam").await.refused(404, "not_found");
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]).user(7, "Ada").comment("posts/1", "x").await;
    bob.report(held, "spam").await.refused(404, "not_found");
}

#[tokio::test]
async fn moderators_see_all_fields_of_a_report() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    world.guest().report(id, "other").await.ok(201);
    let reply = world.moderator().get(&format!("comments/{id}/reports")).await.ok(200);
    let row = |at: usize, reason: &str, user: Value| {
        json!({
            "id": reply.rows()[at]["id"],
            "reason": reason,
            "status": "pending",
            "created_at": "2050-01-02T03:04:05+00:00",
            "user": user,
        })
    };
    assert_eq!(
        reply.json,
        json!({ "data": [
            row(0, "other", json!(null)),
            row(1, "spam", json!({ "id": 8, "name": "Bob", "avatar": "" })),
        ] })
    );
    assert!(reply.rows()[0]["id"].is_u64());
}

#[tokio::test]
async fn the_newest_of_very_many_reports_are_listed() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    for user in [30, 8, 200, 9, 10] {
        world.user(user, "Bob").report(id, "spam").await.ok(201);
        world.pass(Duration::from_secs(1));
    }
    let newest = world.store().reports(CommentId(id), 3).await.unwrap();
    let users: Vec<_> = newest.iter().map(|report| report.user.unwrap().0).collect();
    assert_eq!(users, [10, 9, 200]);
}

#[tokio::test]
async fn a_visitor_with_very_many_reports_reports_nothing_twice() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let mut ids = Vec::new();
    for _ in 0..103 {
        let id = ada.comment("posts/1", "x").await;
        bob.report(id, "spam").await.ok(201);
        ids.push(id);
    }
    for id in [ids[0], ids[99], ids[100], ids[102]] {
        bob.report(id, "spam").await.refused(409, "already_reported");
        assert_eq!(reports(&world, id, "reason").await, ["spam"]);
    }
}

#[tokio::test]
async fn dismissing_marks_reports_and_takes_the_comment_off_the_queue() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    let moderator = world.moderator();
    assert_eq!(moderator.queue("reported").await, [id]);
    let reply = moderator.judge(id, "reports/dismiss").await.ok(200);
    assert_eq!(reply.rows()[0]["status"], "dismissed");
    assert!(moderator.queue("reported").await.is_empty());
    world.pass(Duration::from_secs(1));
    world.user(9, "Cy").report(id, "other").await.ok(201);
    assert_eq!(moderator.queue("reported").await, [id]);
    assert_eq!(reports(&world, id, "status").await, ["pending", "dismissed"]);
    // A visitor whose report was dismissed may not report again either.
    world.user(8, "Bob").report(id, "spam").await.refused(409, "already_reported");
}

#[tokio::test]
async fn approving_or_rejecting_marks_reports_as_reviewed() {
    let world = World::new();
    let moderator = world.moderator();
    for verdict in ["approve", "reject"] {
        let id = world.user(7, "Ada").comment("posts/1", "x").await;
        world.user(8, "Bob").report(id, "spam").await.ok(201);
        moderator.post(&format!("comments/{id}/{verdict}"), Value::Null).await.ok(200);
        assert_eq!(reports(&world, id, "status").await, ["reviewed"], "{verdict}");
        assert!(moderator.queue("reported").await.is_empty(), "{verdict}");
    }
}

#[tokio::test]
async fn a_deleted_comments_reports_are_gone() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    ada.remove(id).await.ok(204);
    world.moderator().get(&format!("comments/{id}/reports")).await.refused(404, "not_found");
    assert!(world.moderator().queue("reported").await.is_empty());
}

#[tokio::test]
async fn the_reports_that_a_decision_covers_do_not_depend_on_clocks() {
    let world = World::new();
    let moderator = world.moderator();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.pass(Duration::from_mins(1));
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    world.turn_back(Duration::from_mins(1));
    moderator.judge(id, "reports/dismiss").await.ok(200);
    assert_eq!(reports(&world, id, "status").await, ["dismissed"]);
    world.user(9, "Cy").report(id, "spam").await.ok(201);
    world.user(10, "Di").report(id, "spam").await.ok(201);
    assert_eq!(reports(&world, id, "status").await, ["pending", "pending", "dismissed"]);
    assert_eq!(moderator.queue("reported").await, [id]);
    assert_eq!(world.findings().await, [""; 0]);
    moderator.judge(id, "approve").await.ok(200);
    assert_eq!(reports(&world, id, "status").await, ["reviewed", "reviewed", "dismissed"]);
    assert!(moderator.queue("reported").await.is_empty());
    assert_eq!(world.findings().await, [""; 0]);
}
