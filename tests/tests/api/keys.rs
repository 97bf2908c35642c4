//! Guests with a `Comment-Key`: rules that use the key, and rules that still use the network and user agent.

use std::time::Duration;

use http::header::{IF_NONE_MATCH, ORIGIN, USER_AGENT};
use http::{HeaderName, Method};
use serde_json::{Value, json};
use tests::{Actor, World, by_guest, ids};

const OPEN: [(&str, &str); 2] = [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true")];
const HELD: [(&str, &str); 3] = [OPEN[0], OPEN[1], ("SVC_REQUIRE_APPROVAL", "true")];
const HEADER: HeaderName = HeaderName::from_static("comment-key");

fn two_behind_one_address(world: &World) -> [Actor; 2] {
    let shared = world.guest();
    [shared.clone().with_key("ada"), shared.with_key("bob")]
}

fn can_change(comment: &Value) -> bool {
    let can = &comment["can"];
    assert_eq!(can["update"], can["delete"]);
    can["update"] == true
}

#[tokio::test]
async fn a_guest_edits_and_deletes_with_the_key_until_fifteen_minutes_have_passed() {
    let world = World::with(&OPEN);
    let ada = world.guest().with_key("ada");
    let (kept, gone) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    world.pass(Duration::from_secs(14 * 60 + 59));
    assert_eq!(ada.edit(kept, "better").await.ok(200).data()["body"], "better");
    ada.remove(gone).await.ok(204);
    world.pass(Duration::from_secs(1));
    ada.edit(kept, "too late").await.refused(403, "edit_closed");
    ada.remove(kept).await.refused(403, "edit_closed");
    assert_eq!(ada.list("posts/1", "").await.bodies(), ["better"]);
}

#[tokio::test]
async fn every_response_to_a_guest_key_shows_which_comments_can_be_changed() {
    let world = World::with(&OPEN);
    let [ada, bob] = two_behind_one_address(&world);
    let created = ada.post("posts/1/comments", by_guest("x")).await.ok(201);
    assert!(can_change(created.data()));
    let top = created.id();
    let reply = ada.reply("posts/1", top, "y").await;
    assert!(can_change(ada.edit(top, "z").await.ok(200).data()));
    let can_all = async |actor: &Actor| {
        let listed = actor.see("posts/1", top).await;
        let replies = actor.replies(top, "").await;
        let shown = actor.get(&format!("comments/{reply}")).await.ok(200);
        let answers = [&listed, &listed["replies"][0], &replies.rows()[0], shown.data(), &shown.json["ancestors"][0]];
        answers.map(can_change)
    };
    assert_eq!(can_all(&ada).await, [true; 5]);
    for other in [bob, world.guest(), world.user(7, "Ada"), world.moderator()] {
        assert_eq!(can_all(&other).await, [false; 5]);
    }
    world.pass(Duration::from_mins(15));
    assert_eq!(can_all(&ada).await, [false; 5]);
}

#[tokio::test]
async fn two_guests_behind_one_address_are_told_apart_by_their_keys() {
    let world = World::with(&OPEN);
    let held = world.again(&HELD);
    let [ada, bob] = two_behind_one_address(&held);
    let top = world.user(7, "Cy").comment("posts/1", "top").await;
    world.pass(Duration::from_millis(3));
    let pending = ada.comment("posts/1", "waits").await;
    let reply = ada.reply("posts/1", top, "waits too").await;
    let below = ada.reply("posts/1", pending, "below what waits").await;
    let list = ada.list("posts/1", "").await;
    assert_eq!((list.ids(), list.total()), (vec![pending, top], 2));
    assert_eq!([&list.rows()[0], &list.rows()[1]].map(|row| ids(&row["replies"])), [vec![below], vec![reply]]);
    for sort in ["oldest", "most_liked", "most_replied"] {
        assert_eq!(ada.list("posts/1", &format!("sort={sort}")).await.total(), 2, "{sort}");
    }
    assert_eq!(ada.replies(top, "").await.ids(), [reply]);
    ada.get(&format!("comments/{below}")).await.ok(200);
    for other in [&bob, &world.guest()] {
        let list = other.list("posts/1", "").await;
        assert_eq!((list.ids(), list.total()), (vec![top], 1));
        assert_eq!(other.replies(top, "").await.ids(), [0; 0]);
        other.get(&format!("comments/{pending}")).await.refused(404, "not_found");
        let answer = json!({ "body": "x", "guest_name": "B", "guest_email": "b@example.org", "parent_id": pending });
        other.post("posts/1/comments", answer).await.invalid("parent_id");
    }
    bob.edit(pending, "x").await.refused(404, "not_found");
    bob.remove(pending).await.refused(404, "not_found");
    held.moderator().judge(pending, "approve").await.ok(200);
    bob.edit(pending, "x").await.refused(403, "forbidden");
    bob.remove(pending).await.refused(403, "forbidden");
    ada.remove(reply).await.ok(204);
    ada.edit(pending, "edited").await.ok(200);
    held.moderator().judge(pending, "reject").await.ok(200);
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
    ada.remove(pending).await.ok(204);
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_guest_key_works_from_every_address() {
    let world = World::with(&HELD);
    let laptop = world.guest().with_key("ada");
    let (pending, gone) = (laptop.comment("posts/1", "x").await, laptop.comment("posts/1", "y").await);
    let phone = world.guest().with_key("ada");
    assert_eq!(phone.list("posts/1", "").await.total(), 2);
    phone.edit(pending, "from the train").await.ok(200);
    phone.remove(gone).await.ok(204);
    assert_eq!(laptop.list("posts/1", "").await.bodies(), ["from the train"]);
}

#[tokio::test]
async fn a_guest_key_gives_access_only_to_comments_written_with_it() {
    let world = World::with(&HELD);
    let without = world.guest();
    let with = without.clone().with_key("ada");
    let (plain, keyed) = (without.comment("posts/1", "x").await, with.comment("posts/1", "y").await);
    assert_eq!(without.list("posts/1", "").await.ids(), [plain]);
    assert_eq!(with.list("posts/1", "").await.ids(), [keyed]);
    for id in [plain, keyed] {
        without.edit(id, "z").await.refused(401, "unauthenticated");
        without.remove(id).await.refused(401, "unauthenticated");
        world.moderator().judge(id, "approve").await.ok(200);
    }
    with.edit(plain, "z").await.refused(403, "forbidden");
    with.remove(plain).await.refused(403, "forbidden");
    with.remove(keyed).await.ok(204);
}

#[tokio::test]
async fn a_token_wins_over_a_key() {
    let world = World::with(&OPEN);
    let guest = world.guest().with_key("ada");
    let member = world.user(7, "Ada").with_key("ada");
    let (of_guest, of_member) = (guest.comment("posts/1", "x").await, member.comment("posts/1", "y").await);
    member.edit(of_guest, "z").await.refused(403, "forbidden");
    guest.remove(of_member).await.refused(403, "forbidden");
    let waits = world.again(&HELD).guest().with_key("ada").comment("posts/1", "waits").await;
    assert_eq!((guest.list("posts/1", "").await.total(), member.list("posts/1", "").await.total()), (3, 2));
    assert_eq!(member.see("posts/1", of_member).await["is_guest"], false);
    let bad = guest.clone().with_token("bad");
    assert!(bad.list("posts/1", "").await.ids().contains(&waits), "reads ignore bad tokens");
    bad.edit(of_guest, "z").await.refused(401, "unauthenticated");
    bad.remove(of_guest).await.refused(401, "unauthenticated");
    world.pass(Duration::from_mins(50));
    member.edit(of_member, "a member has all the time").await.ok(200);
}

#[tokio::test]
async fn writes_refuse_a_malformed_key_and_reads_ignore_it() {
    let world = World::with(&OPEN);
    let (ada, shared) = (world.guest().with_key("ada"), world.guest());
    let id = ada.comment("posts/1", "x").await;
    let pending = world.again(&HELD).guest().comment("posts/1", "waits").await;
    for key in
        ["", "short", &"a".repeat(42), &"a".repeat(44), &format!("{}=", "a".repeat(42)), &"a+/b".repeat(11)[..43]]
    {
        let guest = shared.clone().with(HEADER, key);
        for (method, path, body) in [
            (Method::POST, "posts/1/comments".to_owned(), by_guest("y")),
            (Method::PATCH, format!("comments/{id}"), json!({ "body": "y" })),
            (Method::DELETE, format!("comments/{id}"), Value::Null),
            (Method::POST, format!("comments/{id}/like"), Value::Null),
            (Method::POST, format!("comments/{id}/report"), json!({ "reason": "spam" })),
            (Method::POST, "media".to_owned(), Value::Null),
        ] {
            guest.send_json(method, &path, body).await.invalid("comment_key");
        }
        guest.edit(pending, "y").await.refused(404, "not_found");
        guest.like(pending).await.refused(404, "not_found");
        for path in ["posts/1/comments", &format!("comments/{id}"), &format!("comments/{id}/replies"), "ui"] {
            let (with, without) = (guest.get(path).await.ok(200), shared.get(path).await.ok(200));
            assert_eq!(with.header("cache-control"), without.header("cache-control"), "{path}");
            assert_eq!(with.json, without.json, "{path}");
        }
        world.user(7, "Ada").with(HEADER, key).comment("posts/2", "who has a token needs no key").await;
        world.pass(Duration::from_mins(1));
    }
}

#[tokio::test]
async fn a_missing_comment_and_read_only_mode_are_checked_before_the_guest_key() {
    let world = World::with(&OPEN);
    let ada = world.guest().with_key("ada");
    for id in ["1", "x", "007"] {
        ada.edit(id, "y").await.refused(404, "not_found");
        ada.remove(id).await.refused(404, "not_found");
    }
    let id = ada.comment("posts/1", "x").await;
    let closed = world.again(&[&OPEN[..], &[("SVC_READ_ONLY", "true")]].concat()).guest().with_key("ada");
    closed.edit(id, "y").await.refused(423, "read_only");
    closed.remove(id).await.refused(423, "read_only");
    ada.patch(&format!("comments/{id}"), json!({})).await.invalid("body");
    world.guest().with_key("bob").patch(&format!("comments/{id}"), json!({})).await.refused(403, "forbidden");
    ada.remove(id).await.ok(204);
    ada.remove(id).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_guest_key_still_changes_comments_from_before_guests_were_disallowed() {
    let world = World::with(&OPEN);
    let id = world.guest().with_key("ada").comment("posts/1", "x").await;
    let closed = world.again(&[]).guest().with_key("ada");
    closed.post("posts/1/comments", by_guest("y")).await.refused(401, "unauthenticated");
    closed.edit(id, "better").await.ok(200);
    closed.remove(id).await.ok(204);
}

#[tokio::test]
async fn an_edit_with_a_key_is_checked_like_every_edit() {
    let world = World::with(&[&HELD[..], &[("SVC_SPAM_DENY", "casino")]].concat());
    let ada = world.guest().with_key("ada");
    let id = ada.comment("posts/1", "x").await;
    world.moderator().judge(id, "approve").await.ok(200);
    ada.edit(id, "casino").await.refused(422, "spam_rejected");
    ada.edit(id, "y").await.ok(200);
    assert_eq!(world.moderator().queue("pending").await, [id]);
}

#[tokio::test]
async fn likes_and_reports_go_by_the_address_whatever_the_key() {
    let world = World::with(&OPEN);
    let [ada, bob] = two_behind_one_address(&world);
    let id = world.user(7, "Cy").comment("posts/1", "x").await;
    assert_eq!(ada.like(id).await.ok(200).json, json!({ "liked": true, "likes_count": 1 }));
    ada.report(id, "spam").await.ok(201);
    for actor in [&ada, &bob] {
        let shown = actor.get(&format!("comments/{id}")).await.ok(200);
        for comment in [&actor.see("posts/1", id).await, shown.data()] {
            assert_eq!((&comment["liked"], &comment["reported"]), (&json!(true), &json!(true)));
        }
    }
    bob.report(id, "spam").await.refused(409, "already_reported");
    assert_eq!(bob.like(id).await.ok(200).json, json!({ "liked": false, "likes_count": 0 }));
    for likes in 1..3 {
        let elsewhere = world.guest().with_key("ada");
        assert_eq!(elsewhere.like(id).await.ok(200).json, json!({ "liked": true, "likes_count": likes }));
        elsewhere.report(id, "spam").await.ok(201);
    }
}

#[tokio::test]
async fn repeated_texts_are_detected_by_address_whatever_the_key() {
    let world = World::with(&[&OPEN[..], &[("SVC_SPAM_REVIEW_REPEATS", "true")]].concat());
    let [ada, bob] = two_behind_one_address(&world);
    for (actor, approved) in [(&ada, true), (&bob, false), (&world.guest().with_key("ada"), true)] {
        assert_eq!(actor.write("posts/1", None, "again").await.ok(201).data()["is_approved"], approved);
    }
}

#[tokio::test]
async fn the_write_limiter_counts_by_the_address_whatever_the_key() {
    let world = World::with(&[&OPEN[..], &[("SVC_WRITE_LIMIT", "2")]].concat());
    let [ada, bob] = two_behind_one_address(&world);
    let id = ada.comment("posts/1", "x").await;
    bob.comment("posts/1", "y").await;
    ada.edit(id, "z").await.refused(429, "rate_limited");
    world.guest().with_key("ada").edit(id, "z").await.ok(200);
}

#[tokio::test]
async fn responses_to_a_key_are_never_cached() {
    let world = World::with(&OPEN);
    let ada = world.guest().with_key("ada");
    let id = ada.comment("posts/1", "x").await;
    let (shown, replies) = (format!("comments/{id}"), format!("comments/{id}/replies"));
    for path in ["posts/1/comments", &shown, &replies, "ui", "counts?threads=posts/1", "posts/1/changes", "embed.js"] {
        assert!(world.guest().get(path).await.ok(200).header("cache-control").starts_with("public"), "{path}");
        let reply = ada.get(path).await.ok(200);
        assert_eq!(reply.header("cache-control"), "private, no-store", "{path}");
        let known = ada.clone().with(IF_NONE_MATCH, reply.header("etag")).get(path).await.ok(304);
        assert_eq!(known.header("cache-control"), "private, no-store", "{path}");
    }
    let writes = [ada.post("posts/1/comments", by_guest("y")).await, ada.edit(id, "z").await, ada.remove(id).await];
    for reply in writes.into_iter().chain([ada.get("nowhere").await, ada.edit(id, "z").await]) {
        assert_eq!(reply.header("cache-control"), "private, no-store", "{}", reply.status);
    }
}

#[tokio::test]
async fn an_idempotency_key_is_scoped_to_one_guest_key() {
    let world = World::with(&OPEN);
    let [ada, bob] = two_behind_one_address(&world).map(|guest| guest.keyed("4711"));
    let body = by_guest("once");
    let first = ada.post("posts/1/comments", body.clone()).await.ok(201);
    assert_ne!(bob.post("posts/1/comments", body.clone()).await.ok(201).id(), first.id());
    let elsewhere = world.guest().with_key("ada").keyed("4711");
    assert_eq!(elsewhere.post("posts/1/comments", body.clone()).await.ok(201).json, first.json);
    world.pass(Duration::from_mins(15));
    let late = ada.post("posts/1/comments", body).await.ok(201);
    assert_eq!((late.id(), can_change(late.data())), (first.id(), false));
}

#[tokio::test]
async fn only_a_keyed_hash_of_a_key_is_stored() {
    let world = World::with(&[&HELD[..], &[("SVC_SPAM_REVIEW_REPEATS", "true")]].concat());
    let ada = world.guest().with_key("ada").with(USER_AGENT, "browser/x").with(ORIGIN, "https://blog.example");
    let id = ada.clone().keyed("4711").post("posts/1/comments", by_guest("x")).await.ok(201).id();
    ada.edit(id, "y").await.ok(200);
    ada.like(id).await.ok(200);
    world.finish_jobs().await;
    let writer = world.item(&format!("C#{id}"), "C").await.unwrap()["g"].as_s().unwrap().clone();
    assert!(writer.starts_with('k') && writer.len() == 23, "{writer}");
    for item in world.items().await {
        assert!(!format!("{item:?}").contains("key-of-ada"), "{item:?}");
    }
}
