//! `moderation.*`: the queues, approval and rejection, bans, and the description of records.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::ids::UserId;
use shared::domain::secret::Secret;
use tests::{Actor, SALT, SIGN_IN, TestResponse, World, ids, reversed};

use crate::sign_in;

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");

async fn judge(world: &World, verdict: &str, id: u64) -> TestResponse {
    world.moderator().judge(id, verdict).await.ok(200)
}

#[tokio::test]
async fn comments_that_wait_are_in_the_queue_newest_first_with_their_reports() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let first = ada.comment("posts/1", "x").await;
    let second = ada.comment("posts/2", "y").await;
    let reply = world.moderator().get("moderation/comments").await.ok(200);
    assert_eq!(reply.ids(), [second, first]);
    let row = &reply.rows()[0];
    assert_eq!((&row["reports_count"], &row["is_approved"], &row["body"]), (&json!(0), &json!(false), &json!("y")));
    let path = "http://api.test/svc/api/v1/moderation/comments";
    assert_eq!(reply.json["links"], json!({ "first": null, "last": null, "prev": null, "next": null }));
    let counts = json!({ "pending": 2, "reported": 0 });
    let meta = json!({ "path": path, "per_page": 10, "next_cursor": null, "prev_cursor": null, "counts": counts });
    assert_eq!(reply.json["meta"], meta);
    assert_eq!(world.moderator().queue("pending").await, [second, first]);
}

#[tokio::test]
async fn a_comment_outside_of_the_queue_has_no_reports_count() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    assert!(world.moderator().see("posts/1", id).await.get("reports_count").is_none());
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    let reported = world.moderator().get("moderation/comments?state=reported").await.ok(200);
    assert_eq!((reported.ids(), &reported.rows()[0]["reports_count"]), (vec![id], &json!(1)));
}

#[tokio::test]
async fn a_moderator_gets_the_item_of_one_comment_in_every_state() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let parent = ada.comment("posts/1", "x").await;
    let id = ada.reply("posts/1", parent, "y").await;
    ada.comment("posts/1", "z").await;
    let path = format!("moderation/comments?id={id}");
    for verdict in ["approve", "reject"] {
        judge(&world, verdict, id).await;
        let reply = moderator.get(&path).await.ok(200);
        assert_eq!((reply.ids(), &reply.rows()[0]["parent"]["id"]), (vec![id], &json!(parent)));
        assert_eq!(reply.rows()[0]["is_approved"], verdict == "approve");
        assert_eq!((&reply.json["meta"]["next_cursor"], &reply.json["links"]["next"]), (&Value::Null, &Value::Null));
    }
    moderator.get(&format!("{path}&state=rejected")).await.invalid("state");
    ada.get(&path).await.refused(403, "forbidden");
    ada.delete(&format!("comments/{id}")).await.ok(204);
    for gone in [id.to_string(), "1".to_owned(), "x".to_owned(), String::new()] {
        moderator.get(&format!("moderation/comments?id={gone}")).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn the_queue_says_how_many_comments_wait_and_how_many_are_reported() {
    let world = World::with(&[HELD]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let waiting = ada.write_many("posts/1", None, 3).await;
    judge(&world, "approve", waiting[0]).await;
    world.user(8, "Bob").report(waiting[0], "spam").await.ok(201);
    let one = format!("id={}", waiting[1]);
    for query in ["state=pending", "state=reported", "state=rejected", "state=all", "per_page=1&cursor=", &one] {
        let reply = moderator.get(&format!("moderation/comments?{query}")).await.ok(200);
        assert_eq!(reply.json["meta"]["counts"], json!({ "pending": 2, "reported": 1 }), "{query}");
    }
    judge(&world, "reject", waiting[1]).await;
    let reply = moderator.get("moderation/comments").await.ok(200);
    assert_eq!(reply.json["meta"]["counts"], json!({ "pending": 1, "reported": 1 }));
    assert_eq!(moderator.get("users/7/comments").await.ok(200).json["meta"].get("counts"), None);
}

#[tokio::test]
async fn the_queue_of_all_comments_has_every_comment_of_the_last_30_days_in_any_state() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let held = world.again(&[HELD]);
    let old = world.user(7, "Ada").comment("posts/1", "old").await;
    world.pass(Duration::from_hours(24));
    let ada = world.user(7, "Ada");
    let approved = ada.comment("posts/1", "x").await;
    world.pass(Duration::from_secs(1));
    let pending = held.user(7, "Ada").comment("posts/2", "y").await;
    // The ids of different instances are ordered only by the clock.
    world.pass(Duration::from_secs(1));
    let rejected = world.guest().comment("posts/3", "z").await;
    judge(&world, "reject", rejected).await;
    let deleted = ada.comment("posts/1", "gone").await;
    let answered = ada.comment("posts/1", "a placeholder soon").await;
    let reply = ada.reply("posts/1", answered, "reply").await;
    for id in [deleted, answered] {
        ada.remove(id).await.ok(204);
    }
    world.wait_until_idle().await;
    let listed = [reply, rejected, pending, approved, old];
    assert_eq!(world.moderator().queue("all").await, listed);
    assert_eq!(world.moderator().walk_both_ways("moderation/comments?state=all&per_page=2&cursor=").await, listed);
    // Expired entries may stay in the table for a while.
    world.pass(Duration::from_hours(29 * 24));
    assert_eq!(world.moderator().queue("all").await, listed[..4]);
    world.pass(Duration::from_hours(24));
    assert!(world.moderator().queue("all").await.is_empty());
}

#[tokio::test]
async fn the_queue_is_walked_by_cursor_both_ways() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let created = reversed(&ada.write_many("posts/1", None, 7).await);
    let moderator = world.moderator();
    for per_page in 1..=4 {
        let path = format!("moderation/comments?per_page={per_page}&cursor=");
        assert_eq!(moderator.walk_both_ways(&path).await, created, "{per_page}");
    }
}

#[tokio::test]
async fn the_queue_refuses_wrong_states_and_foreign_cursors() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    ada.comment("posts/1", "x").await;
    let moderator = world.moderator();
    for state in ["", "approved", "Pending", "ALL"] {
        moderator.get(&format!("moderation/comments?state={state}")).await.invalid("state");
    }
    moderator.get("moderation/comments?per_page=51").await.invalid("per_page");
    moderator.get("moderation/comments?cursor=x").await.invalid("cursor");
    let page = moderator.get("moderation/comments?per_page=1&cursor=").await.ok(200);
    let cursor = page.json["meta"]["next_cursor"].as_str().unwrap();
    moderator.get(&format!("moderation/comments?state=rejected&cursor={cursor}")).await.invalid("cursor");
}

#[tokio::test]
async fn approval_shows_the_comment_to_everyone_and_counts_it() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    let reply = judge(&world, "approve", id).await;
    assert_eq!(reply.data()["is_approved"], true);
    for actor in [world.guest(), ada] {
        for query in ["", "sort=oldest", "sort=most_liked", "sort=most_replied", "cursor="] {
            assert_eq!(actor.list("posts/1", query).await.ids(), [id], "{query}");
        }
        assert_eq!(actor.list("posts/1", "").await.total(), 1);
    }
    assert!(world.moderator().queue("pending").await.is_empty());
    judge(&world, "approve", id).await;
    assert_eq!(world.guest().list("posts/1", "").await.total(), 1);
}

#[tokio::test]
async fn rejection_hides_a_comment_from_all_but_its_writer_and_approval_undoes_it() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (kept, id) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    world.user(8, "Bob").like(id).await.ok(200);
    let before = world.guest().see("posts/1", id).await;
    for _ in 0..2 {
        assert_eq!(judge(&world, "reject", id).await.data()["is_approved"], false);
        for query in ["", "sort=oldest", "sort=most_liked", "cursor="] {
            let list = world.guest().list("posts/1", query).await;
            assert_eq!(list.ids(), [kept], "{query}");
        }
        assert_eq!(world.guest().list("posts/1", "").await.total(), 1);
        assert_eq!(ada.list("posts/1", "").await.ids(), [id, kept]);
        assert_eq!(ada.list("posts/1", "").await.total(), 2);
        world.guest().get(&format!("comments/{id}/replies")).await.refused(404, "not_found");
        assert_eq!(world.moderator().queue("rejected").await, [id]);
        assert!(world.moderator().queue("pending").await.is_empty());
    }
    for _ in 0..2 {
        judge(&world, "approve", id).await;
        assert_eq!(world.guest().see("posts/1", id).await, before);
        assert_eq!(world.guest().list("posts/1", "sort=most_liked").await.ids(), [id, kept]);
        assert_eq!(world.guest().list("posts/1", "").await.total(), 2);
        assert!(world.moderator().queue("rejected").await.is_empty());
    }
}

#[tokio::test]
async fn approved_and_rejected_replies_keep_counts_and_embedding_right() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "0").await;
    let held = world.again(&[HELD]);
    let mut replies = Vec::new();
    for n in 0..6 {
        let actor = if n % 2 == 0 { held.user(8, "Bob") } else { world.user(8, "Bob") };
        replies.push(actor.reply("posts/1", parent, &n.to_string()).await);
        world.pass(Duration::from_millis(3));
    }
    let mut shown: Vec<u64> = vec![replies[1], replies[3], replies[5]];
    let steps =
        [("approve", 0), ("reject", 1), ("approve", 4), ("reject", 3), ("approve", 1), ("approve", 2), ("reject", 5)];
    for (verdict, n) in steps {
        judge(&world, verdict, replies[n]).await;
        world.wait_until_idle().await;
        shown.retain(|id| *id != replies[n]);
        if verdict == "approve" {
            shown.push(replies[n]);
        }
        shown.sort_unstable();
        let row = world.guest().see("posts/1", parent).await;
        assert_eq!(
            (&row["replies_count"], ids(&row["replies"])),
            (&json!(shown.len()), shown[..3.min(shown.len())].to_vec()),
            "{verdict} {n}"
        );
        let page = world.guest().replies(parent, "").await;
        assert_eq!((page.ids(), page.total()), (shown.clone(), shown.len() as u64), "{verdict} {n}");
        let own = world.user(8, "Bob").replies(parent, "").await;
        assert_eq!((own.ids(), own.total()), (replies.clone(), 6), "{verdict} {n}");
        assert_eq!(ids(&world.user(8, "Bob").see("posts/1", parent).await["replies"]), replies[..3], "{verdict} {n}");
    }
}

#[tokio::test]
async fn the_replies_below_a_rejected_comment_are_hidden_and_come_back_with_it() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let parent = ada.comment("posts/1", "x").await;
    let replies = bob.write_many("posts/1", parent, 5).await;
    let other = ada.comment("posts/1", "other").await;
    judge(&world, "reject", parent).await;
    world.wait_until_idle().await;
    for query in ["", "sort=oldest", "per_page=1", "cursor=", "sort=most_replied"] {
        assert_eq!(world.guest().list("posts/1", query).await.ids(), [other], "{query}");
    }
    world.guest().get(&format!("comments/{}/replies", replies[0])).await.refused(404, "not_found");
    let own = ada.see("posts/1", parent).await;
    assert_eq!((ids(&own["replies"]), &own["replies_count"]), (replies[..3].to_vec(), &json!(5)));
    judge(&world, "approve", parent).await;
    world.wait_until_idle().await;
    let row = world.guest().see("posts/1", parent).await;
    assert_eq!((ids(&row["replies"]), &row["replies_count"]), (replies[..3].to_vec(), &json!(5)));
    assert_eq!(world.guest().replies(parent, "").await.ids(), replies);
    assert_eq!(world.guest().list("posts/1", "sort=most_replied").await.ids(), [parent, other]);
}

#[tokio::test]
async fn an_edit_that_needs_review_waits_in_the_queue_for_a_decision() {
    let world = World::with(&[("SVC_SPAM_REVIEW", "crypto")]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for _ in 0..2 {
        assert_eq!(ada.edit(id, "crypto").await.ok(200).data()["is_approved"], true);
    }
    assert_eq!(world.guest().see("posts/1", id).await["body"], "crypto");
    assert_eq!(world.moderator().queue("pending").await, [id]);
    assert_eq!(judge(&world, "approve", id).await.data()["is_approved"], true);
    assert!(world.moderator().queue("pending").await.is_empty());
    ada.edit(id, "more crypto").await.ok(200);
    judge(&world, "reject", id).await;
    assert!(world.moderator().queue("pending").await.is_empty());
    assert_eq!(world.guest().list("posts/1", "").await.total(), 0);
}

#[tokio::test]
async fn the_queue_shows_which_users_name_a_guests_name_resembles() {
    let world = World::with(&[HELD, ("SVC_ALLOW_GUESTS", "true"), ("SVC_MODERATORS", "5")]);
    let moderator = world.claiming(&json!({ "sub": "9", "name": "Grace Hopper", "roles": ["moderator"] }));
    let id = moderator.comment("posts/1", "x").await;
    judge(&world, "approve", id).await;
    world.claiming(&json!({ "sub": "5", "name": "Linus" })).list("posts/1", "").await;
    world.user(7, "Ada").get("ui").await.ok(200);
    world.moderator().put("posts/1", json!({ "author_id": 7 })).await.ok(200);
    world.wait_until_idle().await;
    for (thread, name, like) in [
        ("posts/1", "Grace Hopper ✓", json!({ "id": 9, "name": "Grace Hopper" })),
        ("posts/1", "LINUS", json!({ "id": 5, "name": "Linus" })),
        ("posts/1", "Аda", json!({ "id": 7, "name": "Ada" })),
        ("posts/2", "Ada", Value::Null),
        ("posts/1", "Bob", Value::Null),
    ] {
        let comment = json!({ "body": "x", "guest_name": name, "guest_email": "g@example.org" });
        let id = world.guest().post(&format!("{thread}/comments"), comment).await.ok(201).id();
        let item = world.moderator().get(&format!("moderation/comments?id={id}")).await.ok(200);
        assert_eq!(item.rows()[0]["looks_like"], like, "{name} in {thread}");
    }
    let id = world.user(20, "Grace Hopper").comment("posts/1", "x").await;
    let item = world.moderator().get("moderation/comments").await.ok(200);
    assert_eq!((item.ids()[0], &item.rows()[0]["looks_like"]), (id, &Value::Null));
}

#[tokio::test]
async fn a_ban_refuses_writes_until_it_is_lifted() {
    let world = World::new();
    let (bob, moderator) = (world.user(8, "Bob"), world.moderator());
    let id = bob.comment("posts/1", "x").await;
    let reply = moderator.put("users/8/ban", json!({ "reason": "spam" })).await.ok(200);
    assert_eq!(reply.json, json!({ "data": { "user_id": 8, "banned_until": null, "reason": "spam" } }));
    bob.post("posts/1/comments", json!({ "body": "y" })).await.refused(403, "comment_banned");
    assert_eq!(bob.get("ui").await.ok(200).data()["auth"]["banned"], true);
    assert_eq!(bob.see("posts/1", id).await["can"], json!({ "update": false, "delete": false, "pin": false }));
    let reply = moderator.delete("users/8/ban").await.ok(204);
    assert!(reply.body.is_empty());
    bob.comment("posts/1", "y").await;
    moderator.delete("users/8/ban").await.ok(204);
}

#[tokio::test]
async fn a_ban_ends_automatically() {
    let world = World::new();
    let (bob, moderator) = (world.user(8, "Bob"), world.moderator());
    let reply =
        moderator.put("users/8/ban", json!({ "until": "2050-01-02T04:05:05+01:00", "reason": null })).await.ok(200);
    let ban = json!({ "user_id": 8, "banned_until": "2050-01-02T03:05:05+00:00", "reason": null });
    assert_eq!(reply.json, json!({ "data": ban }));
    bob.post("posts/1/comments", json!({ "body": "x" })).await.refused(403, "comment_banned");
    world.pass(Duration::from_secs(59));
    bob.post("posts/1/comments", json!({ "body": "x" })).await.refused(403, "comment_banned");
    world.pass(Duration::from_secs(1));
    bob.comment("posts/1", "x").await;
    assert_eq!(bob.get("ui").await.ok(200).data()["auth"]["banned"], false);
}

#[tokio::test]
async fn a_bans_fields_are_checked() {
    let world = World::new();
    let moderator = world.moderator();
    for until in [json!("tomorrow"), json!(7), json!("2050-01-02"), json!("2020-01-01T00:00:00Z")] {
        moderator.put("users/8/ban", json!({ "until": until })).await.invalid("until");
    }
    for reason in [json!(7), json!("a\nb"), json!("a\u{0}b"), json!("a\u{202e}b")] {
        moderator.put("users/8/ban", json!({ "reason": reason })).await.invalid("reason");
    }
    for id in ["0", "x", "007", "9007199254740992"] {
        moderator.put(&format!("users/{id}/ban"), json!({})).await.refused(404, "not_found");
    }
    moderator.put("users/999/ban", Value::Null).await.ok(200);
    world.user(999, "New").post("posts/1/comments", json!({ "body": "x" })).await.refused(403, "comment_banned");
}

async fn known(world: &World, claims: Value) -> (Actor, u64) {
    let actor = world.claiming(&claims);
    let id = actor.get("ui").await.ok(200).data()["auth"]["user"]["id"].as_u64().unwrap();
    (actor, id)
}

#[tokio::test]
async fn moderators_cannot_ban_themselves_or_users_named_in_the_settings() {
    let world = World::with(&[("SVC_MODERATORS", "9, auth0|grace, 7007007007007007")]);
    let (moderator, bob) = (world.moderator(), world.user(8, "Bob"));
    let grace = json!({ "sub": "auth0|grace", "iss": "https://login.example" });
    let (grace, of_grace) = known(&world, grace).await;
    let other = json!({ "sub": "auth0|mod", "iss": "https://login.example", "roles": ["moderator"] });
    let (other, of_other) = known(&world, other).await;
    let ban = async |who: &Actor, id: u64| who.put(&format!("users/{id}/ban"), json!({})).await;
    for (who, id) in
        [(&moderator, 1), (&moderator, 9), (&moderator, 7_007_007_007_007_007), (&other, of_other), (&other, of_grace)]
    {
        ban(who, id).await.refused(403, "forbidden");
    }
    moderator.put("users/1/ban", json!({ "until": 7 })).await.refused(403, "forbidden");
    ban(&grace, of_grace).await.refused(403, "forbidden");
    assert!(moderator.get("moderation/users?banned=true").await.ok(200).ids().is_empty());
    // Moderators whose token has a different issuer, or none, can't ban Grace either.
    let third = json!({ "sub": "auth0|third", "roles": ["moderator"] });
    let fourth = json!({ "sub": "auth0|fourth", "iss": "https://other.example", "roles": ["moderator"] });
    for claims in [third, fourth] {
        ban(&known(&world, claims).await.0, of_grace).await.refused(403, "forbidden");
    }
    // A moderator whose role comes from the token may be banned by another moderator, and any ban may be lifted.
    ban(&grace, of_other).await.ok(200);
    ban(&grace, 8).await.ok(200);
    bob.post("posts/1/comments", json!({ "body": "x" })).await.refused(403, "comment_banned");
    for id in [1, 9, of_grace, of_other] {
        moderator.delete(&format!("users/{id}/ban")).await.ok(204);
    }
}

#[tokio::test]
async fn a_moderator_named_by_subject_cannot_be_banned_before_the_first_sign_in() {
    let claims = json!({ "sub": "auth0|grace" });
    let (_, id) = known(&World::new(), claims).await;
    let world = World::with(&[("SVC_MODERATORS", "auth0|grace")]);
    world.moderator().put(&format!("users/{id}/ban"), json!({})).await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_moderator_signed_in_by_a_code_cannot_ban_users_that_the_settings_name_by_sub() {
    let issuer = "https://id.example";
    let named = ("SVC_MODERATORS", "auth0|grace, auth0|new, email:mod@example.org");
    let world = World::with(&[&SIGN_IN[..], &[named, ("SVC_JWT_ISSUER", issuer)]].concat());
    let moderator = sign_in::member(&world, "mod@example.org", "Mod").await.actor;
    let (_, of_grace) = known(&world, json!({ "sub": "auth0|grace", "iss": issuer })).await;
    let (_, of_bob) = known(&world, json!({ "sub": "auth0|bob", "iss": issuer })).await;
    let (of_new, _) = UserId::hashed(&Secret::from(SALT.to_owned()), issuer, "auth0|new");
    for id in [of_grace, of_new.0] {
        moderator.put(&format!("users/{id}/ban"), json!({})).await.refused(403, "forbidden");
    }
    moderator.put(&format!("users/{of_bob}/ban"), json!({})).await.ok(200);
}

#[tokio::test]
async fn a_ban_suspends_moderator_rights_until_it_ends() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let shown = ada.comment("posts/1", "shown").await;
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]).user(7, "Ada").comment("posts/1", "held").await;
    let (eve, id) = known(&world, json!({ "sub": "14", "name": "Eve", "roles": ["moderator"] })).await;
    eve.get(&format!("comments/{held}")).await.ok(200);
    world.moderator().put(&format!("users/{id}/ban"), json!({ "until": "2050-01-02T03:34:05Z" })).await.ok(200);

    let auth = eve.get("ui").await.ok(200).data()["auth"].clone();
    assert_eq!((&auth["moderator"], &auth["banned"]), (&json!(false), &json!(true)));
    eve.get(&format!("comments/{held}")).await.refused(404, "not_found");
    assert_eq!(eve.see("posts/1", shown).await["can"], json!({ "update": false, "delete": false, "pin": false }));
    for path in [
        "moderation/comments",
        "moderation/users?q=a",
        "moderation/users?banned=true",
        "moderation/log",
        "users/7/comments",
        &format!("comments/{shown}/reports"),
        &format!("comments/{held}/reports"),
        "comments/1/reports",
    ] {
        eve.get(path).await.refused(403, "comment_banned");
    }
    eve.judge(held, "approve").await.refused(403, "comment_banned");
    eve.delete(&format!("users/{id}/ban")).await.refused(403, "comment_banned");
    // This banned member has never been a moderator.
    world.banned().await.get("moderation/comments").await.refused(403, "forbidden");

    world.pass(Duration::from_mins(30));
    eve.judge(held, "approve").await.ok(200);
}

#[tokio::test]
async fn the_hosts_author_of_a_record_is_marked_on_every_comment() {
    let world = World::new();
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let (first, second) = (ada.comment("posts/1", "x").await, bob.comment("posts/1", "y").await);
    let body = json!({ "author_id": 7, "title": "A post", "url": "https://host.test/posts/1" });
    let reply = moderator.put("posts/1", body).await.ok(200);
    assert_eq!(
        reply.json,
        json!({ "data": {
            "type": "posts", "id": "1", "author_id": 7, "title": "A post", "url": "https://host.test/posts/1",
        } })
    );
    assert_eq!(world.guest().see("posts/1", first).await["is_author"], true);
    assert_eq!(world.guest().see("posts/1", second).await["is_author"], false);
    let created = ada.post("posts/1/comments", json!({ "body": "z" })).await.ok(201);
    assert_eq!(created.data()["is_author"], true);
    assert_eq!(ada.post("posts/2/comments", json!({ "body": "z" })).await.ok(201).data()["is_author"], false);
    assert_eq!(world.guest().list("posts/1", "").await.total(), 3);
    moderator.put("posts/1", json!({})).await.ok(200);
    assert_eq!(world.guest().see("posts/1", first).await["is_author"], false);
}

#[tokio::test]
async fn the_fields_of_a_record_are_checked() {
    let moderator = World::new().moderator();
    for author in [json!("7"), json!(0), json!(-1), json!(1.5)] {
        moderator.put("posts/1", json!({ "author_id": author })).await.invalid("author_id");
    }
    for title in
        [json!(7), json!("a\u{202e}b"), json!("a\nb"), json!("a\u{2028}b"), json!("a\u{0}b"), json!("a\u{85}b")]
    {
        moderator.put("posts/1", json!({ "title": title })).await.invalid("title");
    }
    for url in [
        json!(7),
        json!("javascript:alert(1)"),
        json!("posts/1"),
        json!("https://ada@example.org/"),
        json!("https://ada:secret@example.org/"),
        json!("https://example.org/a\u{202e}b"),
        json!("https://example.org/a\u{2028}b"),
        json!("https://example.org/a\nb"),
    ] {
        moderator.put("posts/1", json!({ "url": url })).await.invalid("url");
    }
    let fine = json!({ "title": "\u{2067}עדה\u{2069} – 李", "url": "https://example.org/@ada/é?a=b@c:d#e" });
    assert_eq!(moderator.put("posts/1", fine.clone()).await.ok(200).data()["url"], fine["url"]);
    let reply = moderator.put("pages/1", json!({})).await.refused(404, "not_found");
    assert_eq!(reply.json["message"], "Unknown commentable type.");
    for id in ["a%20b", ".", "..", "%2e", "%2E%2e"] {
        moderator.put(&format!("posts/{id}"), json!({})).await.refused(404, "not_found");
        moderator.get(&format!("posts/{id}/comments")).await.refused(404, "not_found");
    }
    moderator.get("counts?threads=posts/..").await.invalid("threads");
    moderator.put("posts/...", json!({})).await.ok(200);
}

#[tokio::test]
async fn a_comment_whose_stored_number_of_reports_is_zero_can_be_rejected() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "fine").await;
    world.set_of_comment(id, "rp", Some(AttributeValue::N("0".to_owned()))).await;
    world.moderator().judge(id, "reject").await.ok(200);
}
