//! With `SVC_REQUIRE_APPROVAL=new`, comments are held until moderators' decisions make their writer trusted.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{Actor, World};

const NEW: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "new");
const GUESTS: (&str, &str) = ("SVC_ALLOW_GUESTS", "true");
const DAY: Duration = Duration::from_hours(24);

/// A member, and a guest with a key who comes from a different network each time.
const WRITERS: [fn(&World) -> Actor; 2] = [|world| world.user(7, "Ada"), |world| world.guest().with_key("grace")];

async fn judge(world: &World, id: u64, verdict: &str) {
    world.moderator().judge(id, verdict).await.ok(200);
}

/// Returns the moderation item of a comment in any state.
async fn item(world: &World, id: u64) -> Value {
    world.moderator().get(&format!("moderation/comments?id={id}")).await.ok(200).rows()[0].clone()
}

/// Returns the rules that hold a comment, or `None` if it is public.
async fn held_by(world: &World, id: u64) -> Option<Vec<String>> {
    let item = item(world, id).await;
    let rules = item["verdicts"].as_array().unwrap().iter().map(|verdict| verdict["rule"].as_str().unwrap().to_owned());
    (!item["held_for"].is_null()).then(|| rules.collect())
}

async fn waits_as(world: &World, writer: &Actor, rules: &[&str]) {
    let id = writer.comment("posts/1", "x").await;
    assert_eq!(held_by(world, id).await.unwrap(), rules);
    assert_eq!(item(world, id).await["held_for"], "approval");
}

async fn is_shown(world: &World, writer: &Actor) -> u64 {
    let id = writer.comment("posts/1", "x").await;
    assert_eq!(held_by(world, id).await, None);
    id
}

#[tokio::test]
async fn comments_of_a_writer_wait_until_a_moderator_has_approved_one() {
    let world = World::with(&[NEW, GUESTS]);
    for writer in WRITERS.map(|writer| writer(&world)) {
        let first = writer.comment("posts/1", "x").await;
        let second = writer.comment("posts/1", "y").await;
        let held = item(&world, second).await;
        assert_eq!(held["verdicts"], json!([{ "rule": "first_comment", "match": null, "detail": null }]));
        assert_eq!(
            (&held["held_for"], &held["writer"]),
            (&json!("approval"), &json!({ "approved": 0, "rejected": 0 }))
        );
        judge(&world, first, "approve").await;
        is_shown(&world, &writer).await;
        assert_eq!(item(&world, second).await["writer"], json!({ "approved": 1, "rejected": 0 }));
    }
    is_shown(&world, &world.moderator()).await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn comments_of_guests_without_a_key_always_wait_without_a_verdict() {
    let world = World::with(&[NEW, GUESTS]);
    let guest = world.guest();
    for _ in 0..2 {
        let id = guest.comment("posts/1", "x").await;
        assert_eq!(held_by(&world, id).await.unwrap(), [""; 0]);
        assert_eq!(
            (&item(&world, id).await["held_for"], &item(&world, id).await["writer"]),
            (&json!("approval"), &json!(null))
        );
        judge(&world, id, "approve").await;
    }
    waits_as(&world, &guest.with_key("another"), &["first_comment"]).await;
}

#[tokio::test]
async fn a_writer_waits_while_a_comment_of_the_last_thirty_days_is_rejected() {
    let world = World::with(&[NEW, GUESTS]);
    for again in WRITERS {
        let writer = again(&world);
        let first = writer.comment("posts/1", "x").await;
        judge(&world, first, "approve").await;
        let second = is_shown(&world, &writer).await;
        judge(&world, second, "reject").await;
        let held = writer.comment("posts/1", "x").await;
        let rejections = json!([{ "rule": "rejections", "match": null, "detail": { "rejected": 1 } }]);
        assert_eq!(item(&world, held).await["verdicts"], rejections);
        assert_eq!(item(&world, held).await["writer"], json!({ "approved": 1, "rejected": 1 }));
        judge(&world, second, "approve").await;
        is_shown(&world, &writer).await;
        judge(&world, second, "reject").await;
        writer.remove(second).await.ok(204);
        waits_as(&world, &writer, &["rejections"]).await;
        world.pass(30 * DAY);
        is_shown(&world, &again(&world)).await;
    }
}

#[tokio::test]
async fn a_writer_with_only_rejections_waits_for_both_reasons_and_spam_comes_first() {
    let world = World::with(&[NEW, ("SVC_SPAM_REVIEW", "casino")]);
    let ada = world.user(7, "Ada");
    let first = ada.comment("posts/1", "casino").await;
    assert_eq!(held_by(&world, first).await.unwrap(), ["phrase", "first_comment"]);
    assert_eq!(item(&world, first).await["held_for"], "spam");
    judge(&world, first, "approve").await;
    judge(&world, first, "reject").await;
    waits_as(&world, &ada, &["first_comment", "rejections"]).await;
}

#[tokio::test]
async fn an_edit_waits_if_a_new_comment_of_its_writer_would() {
    let world = World::with(&[NEW]);
    let ada = world.user(7, "Ada");
    let first = ada.comment("posts/1", "x").await;
    judge(&world, first, "approve").await;
    ada.edit(first, "y").await.ok(200);
    assert_eq!(held_by(&world, first).await, None);
    let other = is_shown(&world, &ada).await;
    judge(&world, other, "reject").await;
    ada.edit(first, "z").await.ok(200);
    assert_eq!(
        (held_by(&world, first).await.unwrap(), &item(&world, first).await["held_for"]),
        (vec!["rejections".to_owned()], &json!("edit"))
    );
    let moderator = world.moderator();
    let own = is_shown(&world, &moderator).await;
    moderator.edit(own, "y").await.ok(200);
    assert_eq!(held_by(&world, own).await, None);
}

#[tokio::test]
async fn comments_shown_before_the_setting_changed_count_once_the_table_was_repaired() {
    let open = World::with(&[GUESTS]);
    let world = open.again(&[NEW, GUESTS]);
    for writer in WRITERS {
        let shown = writer(&open).comment("posts/1", "x").await;
        waits_as(&world, &writer(&world), &["first_comment"]).await;
        world.repair().await;
        is_shown(&world, &writer(&world)).await;
        judge(&world, shown, "reject").await;
        waits_as(&world, &writer(&world), &["first_comment", "rejections"]).await;
    }
    // A repair keeps rejections.
    world.repair().await;
    waits_as(&world, &world.user(7, "Ada"), &["first_comment", "rejections"]).await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn every_comment_from_before_the_setting_changed_counts_until_it_is_rejected() {
    let open = World::with(&[GUESTS]);
    let world = open.again(&[NEW, GUESTS]);
    for writer in WRITERS {
        let (first, second) =
            (writer(&open).comment("posts/1", "x").await, writer(&open).comment("posts/1", "x").await);
        world.repair().await;
        judge(&world, first, "reject").await;
        world.pass(31 * DAY);
        is_shown(&world, &writer(&world)).await;
        judge(&world, second, "reject").await;
        world.pass(31 * DAY);
        waits_as(&world, &writer(&world), &["first_comment"]).await;
    }
}

#[tokio::test]
async fn a_comment_shown_by_trust_alone_does_not_count_as_approved() {
    let world = World::with(&[NEW, GUESTS]);
    for writer in WRITERS {
        let first = writer(&world).comment("posts/1", "x").await;
        judge(&world, first, "approve").await;
        is_shown(&world, &writer(&world)).await;
        judge(&world, first, "reject").await;
        world.pass(31 * DAY);
        world.repair().await;
        waits_as(&world, &writer(&world), &["first_comment"]).await;
    }
    let eve = |roles: &[&str]| world.claiming(&json!({ "sub": "9", "name": "Eve", "roles": roles }));
    is_shown(&world, &eve(&["moderator"])).await;
    waits_as(&world, &eve(&[]), &["first_comment"]).await;
}

#[tokio::test]
async fn approving_a_visible_comment_counts_as_an_approval_but_is_not_logged() {
    let open = World::with(&[GUESTS]);
    let world = open.again(&[NEW, GUESTS]);
    for again in WRITERS {
        let before = again(&open).comment("posts/1", "x").await;
        for _ in 0..2 {
            judge(&world, before, "approve").await;
        }
        assert_eq!(item(&world, before).await["writer"], json!({ "approved": 1, "rejected": 0 }));
        let by_trust = is_shown(&world, &again(&world)).await;
        judge(&world, by_trust, "approve").await;
        judge(&world, before, "reject").await;
        world.pass(31 * DAY);
        is_shown(&world, &again(&world)).await;
    }
    let log = world.moderator().get("moderation/log").await.ok(200);
    assert!(log.rows().iter().all(|entry| entry["action"] == "reject"), "{:#}", log.json);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn decisions_count_whatever_the_setting_was() {
    let open = World::with(&[("SVC_SPAM_REVIEW", "casino")]);
    let (ada, bob) = (open.user(7, "Ada"), open.user(8, "Bob"));
    let (held, shown) = (ada.comment("posts/1", "casino").await, bob.comment("posts/1", "x").await);
    judge(&open, held, "approve").await;
    judge(&open, shown, "reject").await;
    let world = open.again(&[NEW]);
    is_shown(&world, &world.user(7, "Ada")).await;
    waits_as(&world, &world.user(8, "Bob"), &["first_comment", "rejections"]).await;
}
