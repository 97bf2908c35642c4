//! Webhooks: the messages to other services, their signatures, and services that don't respond.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use shared::aws::outbound::Lookup;
use standardwebhooks::Webhook;
use tests::{MAIL, Received, Receiver, Setup, TestResponse, WEBHOOKS, World, ids, webhook_message};

use crate::capacity::metered;

const ALL: [&str; 7] = [
    "comment.created",
    "comment.pending",
    "comment.approved",
    "comment.rejected",
    "comment.updated",
    "comment.deleted",
    "comment.reported",
];

struct Hook {
    id: u64,
    secret: String,
}

impl Hook {
    fn path(&self) -> String {
        format!("moderation/webhooks/{}", self.id)
    }

    async fn deliveries(&self, world: &World) -> TestResponse {
        world.moderator().get(&format!("{}/deliveries", self.path())).await.ok(200)
    }
}

async fn add(world: &World, receiver: &Receiver, events: &[&str]) -> Hook {
    let webhook = json!({ "url": format!("{}/hook", receiver.url), "events": events });
    let added = world.moderator().post("moderation/webhooks", webhook).await.ok(201);
    Hook { id: added.id(), secret: added.data()["secret"].as_str().unwrap().to_owned() }
}

/// Returns the messages that arrived after the first `known` ones, once all due messages are sent.
async fn new_messages(world: &World, receiver: &Receiver, known: usize) -> Vec<Received> {
    world.wait_until_idle().await;
    receiver.received().split_off(known)
}

fn statuses(deliveries: &TestResponse) -> Vec<&str> {
    deliveries.data().as_array().unwrap().iter().map(|delivery| delivery["status"].as_str().unwrap()).collect()
}

/// Returns the event and this field of the comment in each message after the first `known`.
fn told(receiver: &Receiver, known: usize, field: &str) -> Vec<(Value, Value)> {
    let messages = receiver.received().split_off(known);
    let fields = messages.iter().map(Received::json).map(|json| (json["type"].clone(), json["data"][field].clone()));
    fields.collect()
}

#[tokio::test]
async fn a_new_comment_is_announced_as_everyone_sees_it() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    add(&world, &receiver, &ALL).await;
    world.moderator().put("posts/1", json!({ "author_id": 7, "title": "On threads" })).await.ok(200);
    let id = world.user(7, "Ada").comment("posts/1", "*Hello*").await;
    let messages = new_messages(&world, &receiver, 0).await;
    let shown = world.guest().get(&format!("comments/{id}")).await.ok(200);
    let mut payload = messages[0].json();
    let [thread, verdicts] = ["thread", "verdicts"].map(|name| payload["data"].as_object_mut().unwrap().remove(name));
    assert_eq!((&payload["data"], thread.as_ref()), (shown.data(), Some(&shown.json["thread"])));
    assert_eq!(verdicts, Some(json!([])));
    assert_eq!((payload["type"].as_str(), messages.len()), (Some("comment.created"), 1));
    assert!(payload["timestamp"].as_str().unwrap().ends_with("+00:00"), "{payload}");
    assert_eq!((messages[0].path.as_str(), messages[0].header("content-type")), ("/hook", "application/json"));
}

#[tokio::test]
async fn every_change_causes_its_own_event_and_likes_and_names_cause_none() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let held = world.again(&[&WEBHOOKS[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    add(&world, &receiver, &ALL).await;
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    world.wait_until_idle().await;
    bob.like(id).await.ok(200);
    moderator.pin(id).await.ok(200);
    world.pass(Duration::from_mins(20));
    world.user(7, "Ada Lovelace").get("ui").await.ok(200);
    world.finish_jobs().await;
    assert_eq!(receiver.events(), ["comment.created"]);
    let (ada, bob, moderator) = (world.user(7, "Ada Lovelace"), world.user(8, "Bob"), world.moderator());
    ada.edit(id, "y").await.ok(200);
    world.wait_until_idle().await;
    bob.report(id, "spam").await.ok(201);
    world.wait_until_idle().await;
    moderator.judge(id, "reject").await.ok(200);
    world.wait_until_idle().await;
    moderator.judge(id, "approve").await.ok(200);
    world.wait_until_idle().await;
    let pending = held.user(9, "Eve").comment("posts/1", "z").await;
    held.wait_until_idle().await;
    let expected = ["created", "updated", "reported", "rejected", "approved", "pending"];
    assert_eq!(receiver.events(), expected.map(|event| format!("comment.{event}")));
    let last = receiver.received().pop().unwrap().json();
    assert_eq!((&last["data"]["id"], &last["data"]["is_approved"]), (&json!(pending), &json!(false)));
}

#[tokio::test]
async fn a_reply_below_a_pending_comment_is_announced_when_everyone_sees_it() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let held = world.again(&[&WEBHOOKS[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let parent = held.user(7, "Ada").comment("posts/1", "held").await;
    held.wait_until_idle().await;
    add(&world, &receiver, &ALL).await;
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let reply = ada.reply("posts/1", parent, "below").await;
    let last = ada.reply("posts/1", reply, "below that").await;
    world.finish_jobs().await;
    assert_eq!(receiver.events(), [""; 0]);
    moderator.judge(parent, "approve").await.ok(200);
    world.finish_jobs().await;
    let approved = |id| (json!("comment.approved"), json!(id));
    let first = told(&receiver, 0, "id");
    assert_eq!(first.len(), 3, "{first:?}");
    assert!([parent, reply, last].map(approved).iter().all(|expected| first.contains(expected)), "{first:?}");
    moderator.judge(parent, "reject").await.ok(200);
    world.finish_jobs().await;
    moderator.judge(parent, "approve").await.ok(200);
    world.finish_jobs().await;
    assert_eq!(told(&receiver, 3, "id"), [(json!("comment.rejected"), json!(parent)), approved(parent)]);
}

#[tokio::test]
async fn a_held_text_is_announced_only_as_pending() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let strict = world.again(&[&WEBHOOKS[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let id = world.user(7, "Ada").comment("posts/1", "first").await;
    world.wait_until_idle().await;
    add(&world, &receiver, &ALL).await;
    for body in ["second", "third"] {
        strict.user(7, "Ada").edit(id, body).await.ok(200);
        strict.wait_until_idle().await;
    }
    world.user(8, "Bob").report(id, "spam").await.ok(201);
    world.wait_until_idle().await;
    world.moderator().judge(id, "approve").await.ok(200);
    world.wait_until_idle().await;
    let expected = [
        (json!("comment.pending"), json!("second")),
        (json!("comment.pending"), json!("third")),
        (json!("comment.reported"), Value::Null),
        (json!("comment.approved"), json!("third")),
    ];
    assert_eq!(told(&receiver, 0, "body"), expected);
    let reported = receiver.received().swap_remove(2).json();
    assert!(reported["data"].get("body").is_none() && reported["data"].get("html").is_none(), "{reported}");
}

#[tokio::test]
async fn webhooks_about_pending_and_updated_comments_have_the_verdicts_of_the_checks() {
    let world = World::with(&[&WEBHOOKS[..], &[("SVC_SPAM_REVIEW", "crypto")]].concat());
    let receiver = Receiver::start().await;
    add(&world, &receiver, &ALL).await;
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "*Crypto* for you").await;
    world.wait_until_idle().await;
    world.moderator().judge(id, "approve").await.ok(200);
    world.wait_until_idle().await;
    ada.edit(id, "nothing for you").await.ok(200);
    let messages = new_messages(&world, &receiver, 0).await;
    let messages: Vec<Value> = messages.iter().map(Received::json).collect();
    let messages: Vec<_> = messages.iter().map(|message| (&message["type"], message["data"].get("verdicts"))).collect();
    let found = json!([{ "rule": "phrase", "match": "Crypto", "detail": null }]);
    let [pending, approved, updated] = ["pending", "approved", "updated"].map(|name| json!(format!("comment.{name}")));
    assert_eq!(messages, [(&pending, Some(&found)), (&approved, None), (&updated, Some(&json!([])))]);
}

#[tokio::test]
async fn webhooks_get_the_ids_of_deleted_comments_without_any_text() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let parent = ada.comment("posts/1", "a secret").await;
    let reply = bob.reply("posts/1", parent, "another").await;
    add(&world, &receiver, &["comment.deleted"]).await;
    let thread = json!({ "type": "posts", "id": "1" });
    let mut expected = Vec::new();
    // The parent becomes a placeholder because of the reply, and is removed together with it.
    for (writer, id, parent) in [(&ada, parent, Value::Null), (&bob, reply, json!(parent))] {
        writer.remove(id).await.ok(204);
        world.finish_jobs().await;
        expected.push(json!({ "id": id, "parent_id": parent, "thread": thread }));
        let messages: Vec<Value> = receiver.received().iter().map(|message| message.json()["data"].clone()).collect();
        assert_eq!(messages, expected);
    }
    assert!(world.moderator().get(&format!("comments/{parent}")).await.status == 404);
}

#[tokio::test]
async fn a_comment_that_is_gone_by_then_is_announced_without_its_text() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    add(&world, &receiver, &["comment.created"]).await;
    receiver.answer(500);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "a secret").await;
    world.wait_until_idle().await;
    ada.remove(id).await.ok(204);
    receiver.answer(204);
    world.finish_jobs().await;
    let received = receiver.received();
    assert!(received[0].body.contains("a secret") && received.len() == 2);
    assert_eq!(received[1].json()["data"]["id"], id);
    assert!(!received[1].body.contains("a secret"), "{}", received[1].body);
}

#[tokio::test]
async fn an_endpoint_gets_the_events_it_subscribed_to_while_it_is_enabled() {
    let (world, first, second) = (World::with(&WEBHOOKS), Receiver::start().await, Receiver::start().await);
    let hook = add(&world, &first, &["comment.created"]).await;
    add(&world, &second, &["comment.updated", "comment.deleted"]).await;
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    ada.edit(id, "y").await.ok(200);
    world.wait_until_idle().await;
    assert_eq!((first.events(), second.events()), (vec!["comment.created".into()], vec!["comment.updated".into()]));
    let off = world.moderator().patch(&hook.path(), json!({ "enabled": false })).await.ok(200);
    assert_eq!((&off.data()["enabled"], &off.data()["events"]), (&json!(false), &json!(["comment.created"])));
    ada.comment("posts/1", "x").await;
    world.wait_until_idle().await;
    world.moderator().post(&format!("{}/test", hook.path()), json!({})).await.invalid("enabled");
    assert_eq!(first.received().len(), 1);
}

#[tokio::test]
async fn messages_are_signed_as_standard_webhooks_says() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    world.user(7, "Ada").comment("posts/1", "Grüße, \u{1f600}").await;
    world.moderator().post(&format!("{}/test", hook.path()), json!({})).await.ok(202);
    let messages = new_messages(&world, &receiver, 0).await;
    assert_eq!(messages.len(), 2);
    for message in messages {
        let timestamp: i64 = message.header("webhook-timestamp").parse().unwrap();
        assert_eq!(timestamp, world.now().seconds());
        let expected = Webhook::new(&hook.secret).unwrap().sign(message.id(), timestamp, message.body.as_bytes());
        assert_eq!(message.header("webhook-signature"), expected.unwrap());
    }
}

#[tokio::test]
async fn a_test_is_delivered_like_a_message() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    let sent = world.moderator().post(&format!("{}/test", hook.path()), json!({})).await.ok(202);
    assert_eq!((&sent.data()["event"], &sent.data()["status"]), (&json!("webhook.test"), &json!("pending")));
    assert_eq!(hook.deliveries(&world).await.data()[0]["id"], sent.data()["id"]);
    let messages = new_messages(&world, &receiver, 0).await;
    assert_eq!(messages[0].id(), sent.data()["id"]);
    let payload = messages[0].json();
    assert_eq!((&payload["type"], &payload["data"]), (&json!("webhook.test"), &json!({})));
    let listed = hook.deliveries(&world).await.data()[0].clone();
    assert_eq!((&listed["status"], &listed["comment_id"]), (&json!("delivered"), &Value::Null));
    assert_eq!(listed["attempts"][0]["status"], 204);
    assert_eq!(listed["attempts"][0]["at"], "2050-01-02T03:04:05+00:00");
}

#[tokio::test]
async fn a_failed_delivery_is_retried_for_nineteen_hours_under_the_same_id_and_by_hand_after_that() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    receiver.answer(500);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.wait_until_idle().await;
    assert_eq!(statuses(&hook.deliveries(&world).await), ["pending"]);
    world.finish_jobs().await;
    let received = receiver.received();
    let times: Vec<i64> = received.iter().map(|message| message.header("webhook-timestamp").parse().unwrap()).collect();
    let pauses: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [5, 60, 300, 1_800, 7_200, 21_600, 36_000]);
    let same: BTreeSet<&str> = received.iter().map(Received::id).collect();
    assert_eq!(same.len(), 1);
    let listed = hook.deliveries(&world).await.data()[0].clone();
    assert_eq!((&listed["status"], &listed["comment_id"]), (&json!("failed"), &json!(id)));
    assert_eq!(listed["attempts"].as_array().unwrap().len(), 8);

    receiver.answer(204);
    let again = format!("{}/deliveries/{}/redeliver", hook.path(), received[0].id());
    let sent = world.moderator().post(&again, json!({})).await.ok(202);
    assert_eq!((&sent.data()["id"], &sent.data()["status"]), (&json!(received[0].id()), &json!("pending")));
    world.finish_jobs().await;
    assert_eq!((receiver.received().len(), receiver.received()[8].id()), (9, received[0].id()));
    assert_eq!(statuses(&hook.deliveries(&world).await), ["delivered"]);
    for unknown in ["msg_1_00000000000000000000000000000000", "x", "%20"] {
        let path = format!("{}/deliveries/{unknown}/redeliver", hook.path());
        world.moderator().post(&path, json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled_at_once() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    receiver.answer(410);
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    world.finish_jobs().await;
    ada.comment("posts/1", "y").await;
    world.finish_jobs().await;
    assert_eq!(receiver.received().len(), 1);
    let list = world.moderator().get("moderation/webhooks").await.ok(200);
    assert_eq!(list.rows()[0]["enabled"], false);
    assert_eq!(statuses(&hook.deliveries(&world).await), ["failed"]);
}

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_is_disabled_and_the_moderators_are_warned_once() {
    let mail = [&MAIL[..], &WEBHOOKS, &[("SVC_MODERATION_MAIL", "mods@example.org")]].concat();
    let (world, receiver) = (World::with(&mail), Receiver::start().await);
    add(&world, &receiver, &["comment.created"]).await;
    receiver.answer(503);
    let is_enabled = async || world.moderator().get("moderation/webhooks").await.rows()[0]["enabled"] == true;
    let began = world.now();
    while is_enabled().await {
        for body in ["x", "y"] {
            world.user(7, "Ada").comment("posts/1", body).await;
        }
        world.finish_jobs().await;
    }
    let took = Duration::from_millis((world.now().0 - began.0).unsigned_abs());
    assert!((Duration::from_hours(120)..Duration::from_hours(140)).contains(&took), "{took:?}");
    let mails = world.mails();
    let subjects: Vec<&str> = mails.iter().map(|mail| mail.subject.as_str()).collect();
    assert_eq!(subjects, ["A webhook was disabled"]);
    assert!(mails[0].text.contains(&receiver.url) && mails[0].to == "mods@example.org", "{}", mails[0].text);
}

#[tokio::test]
async fn a_slow_endpoint_delays_no_other() {
    let (world, slow, fast) = (World::with(&WEBHOOKS), Receiver::start().await, Receiver::start().await);
    let hook = add(&world, &slow, &["comment.created"]).await;
    add(&world, &fast, &["comment.created"]).await;
    slow.hold();
    world.user(7, "Ada").comment("posts/1", "x").await;
    while fast.received().is_empty() || slow.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let held = Instant::now();
    assert_eq!(hook.deliveries(&world).await.data()[0]["attempts"], json!([]));
    let held = held.elapsed().as_millis();
    slow.release();
    world.wait_until_idle().await;
    let deliveries = hook.deliveries(&world).await;
    assert_eq!(statuses(&deliveries), ["delivered"]);
    assert!(u128::from(deliveries.data()[0]["attempts"][0]["ms"].as_u64().unwrap()) >= held);
}

#[tokio::test]
async fn an_address_in_a_private_network_is_refused() {
    let world = World::with(&[("SVC_WEBHOOKS", "true")]);
    let moderator = world.moderator();
    for host in ["2130706433", "api.localhost."] {
        let webhook = json!({ "url": format!("https://{host}/"), "events": ["comment.created"] });
        moderator.post("moderation/webhooks", webhook).await.invalid("url");
    }
    let webhook = json!({ "url": "https://Example.org", "events": ["comment.created"] });
    let added = moderator.post("moderation/webhooks", webhook).await.ok(201);
    assert_eq!(added.data()["url"], "https://example.org/");
    let path = format!("moderation/webhooks/{}", added.id());
    moderator.patch(&path, json!({ "url": "https://127.0.0.1/" })).await.invalid("url");
}

#[tokio::test]
async fn a_name_that_leads_into_a_private_network_is_not_connected_to() {
    let receiver = Receiver::start().await;
    for address in ["127.0.0.1", "::ffff:127.0.0.1"] {
        let lookup: Lookup = Arc::new(move |_| Box::pin(async move { Ok(vec![address.parse::<IpAddr>().unwrap()]) }));
        let world = Setup::new(&[("SVC_WEBHOOKS", "true")]).lookup(Arc::clone(&lookup)).start();
        let webhook = json!({
            "url": format!("https://rebound.example:{}/", receiver.port()), "events": ["comment.created"],
        });
        let added = world.moderator().post("moderation/webhooks", webhook).await.ok(201);
        world.user(7, "Ada").comment("posts/1", "x").await;
        world.wait_until_idle().await;
        let hook = Hook { id: added.id(), secret: String::new() };
        assert_eq!(hook.deliveries(&world).await.data()[0]["attempts"][0]["status"], Value::Null);
    }
    assert_eq!(receiver.received().len(), 0);
}

#[tokio::test]
async fn a_message_that_is_redelivered_late_is_not_sent_again() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let first = new_messages(&world, &receiver, 0).await[0].clone();
    for _ in 0..3 {
        world.send_to_delivery(&webhook_message(hook.id, id, first.id()));
        world.pass(Duration::from_hours(1));
        world.finish_jobs().await;
    }
    assert_eq!((receiver.received().len(), hook.deliveries(&world).await.rows().len()), (1, 1));
}

#[tokio::test]
async fn a_redelivered_record_of_the_stream_is_the_same_message() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.wait_until_idle().await;
    let hook = add(&world, &receiver, &["comment.created"]).await;
    for _ in 0..3 {
        world.repeat_creation(id).await;
        world.wait_until_idle().await;
        world.pass(Duration::from_hours(1));
    }
    assert_eq!((receiver.events(), hook.deliveries(&world).await.rows().len()), (vec!["comment.created".into()], 1));
}

#[tokio::test]
async fn a_worker_that_is_killed_at_any_step_calls_an_endpoint_at_least_once_under_one_id() {
    for steps in 1.. {
        let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
        let id = world.user(7, "Ada").comment("posts/1", "x").await;
        world.wait_until_idle().await;
        let hook = add(&world, &receiver, &["comment.created"]).await;
        let message = webhook_message(hook.id, id, "msg_1_00000000000000000000000000000000");
        let lived = world.deliver_messages(&[message.clone(), message.clone()], steps).await;
        for _ in 0..2 {
            world.pass(Duration::from_secs(61));
            world.deliver_messages(std::slice::from_ref(&message), usize::MAX).await;
        }
        world.finish_jobs().await;
        let received = receiver.received();
        let names: BTreeSet<&str> = received.iter().map(Received::id).collect();
        assert!(names.len() == 1 && received.len() <= 2, "{steps} steps: {} messages, {names:?}", received.len());
        assert!(received.iter().all(|message| message.json()["data"]["id"] == id), "{steps} steps");
        let deliveries = hook.deliveries(&world).await;
        assert_eq!(statuses(&deliveries), ["delivered"], "{steps} steps");
        assert_eq!(deliveries.rows()[0]["attempts"].as_array().unwrap().len(), 1, "{steps} steps");
        if lived {
            assert_eq!(received.len(), 1);
            break;
        }
    }
}

#[tokio::test]
async fn there_are_at_most_ten_webhooks_however_many_are_added_at_once() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let moderator = world.moderator();
    let webhook = || json!({ "url": receiver.url, "events": ["comment.created"] });
    let added = join_all((0..15).map(|_| moderator.post("moderation/webhooks", webhook()))).await;
    assert_eq!(added.iter().filter(|added| added.status == 201).count(), 10);
    moderator.post("moderation/webhooks", webhook()).await.invalid("url");
    let list = moderator.get("moderation/webhooks").await.ok(200);
    let known = ids(list.data());
    assert!(known.len() == 10 && known.is_sorted(), "{known:?}");
    moderator.delete(&format!("moderation/webhooks/{}", known[3])).await.ok(204);
    moderator.delete(&format!("moderation/webhooks/{}", known[3])).await.refused(404, "not_found");
    moderator.post("moderation/webhooks", webhook()).await.ok(201);
    moderator.post("moderation/webhooks", webhook()).await.invalid("url");
}

#[tokio::test]
async fn the_secret_is_returned_once_and_stored_sealed() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    assert!(hook.secret.starts_with("whsec_"), "{}", hook.secret);
    let list = world.moderator().get("moderation/webhooks").await.ok(200);
    let url = format!("{}/hook", receiver.url);
    let expected = json!([{ "id": hook.id, "url": url, "events": ["comment.created"], "enabled": true }]);
    assert_eq!(list.data(), &expected);
    let changed = world.moderator().patch(&hook.path(), json!({ "enabled": true })).await.ok(200);
    assert_eq!(changed.data(), &expected[0]);
    let stored = format!("{:?}", world.items().await);
    assert!(!stored.contains("whsec_") && !stored.contains(&hook.secret[6..]), "{stored}");
}

#[tokio::test]
async fn invalid_fields_are_named() {
    let world = World::with(&WEBHOOKS);
    let moderator = world.moderator();
    let url = "https://example.org/";
    for (body, field) in [
        (json!({ "events": ["comment.created"] }), "url"),
        (json!({ "url": 7, "events": ["comment.created"] }), "url"),
        (json!({ "url": url }), "events"),
        (json!({ "url": url, "events": [] }), "events"),
        (json!({ "url": url, "events": "comment.created" }), "events"),
        (json!({ "url": url, "events": ["comment.liked"] }), "events"),
        (json!({ "url": url, "events": ["webhook.test"] }), "events"),
        (json!({ "url": url, "events": ["comment.created"], "enabled": "yes" }), "enabled"),
    ] {
        moderator.post("moderation/webhooks", body).await.invalid(field);
    }
    let webhook = json!({ "url": url, "events": ["comment.created", "comment.created"] });
    let id = moderator.post("moderation/webhooks", webhook).await.ok(201).id();
    let path = format!("moderation/webhooks/{id}");
    for (body, field) in
        [(json!({ "url": "x" }), "url"), (json!({ "events": [] }), "events"), (json!({ "enabled": 1 }), "enabled")]
    {
        moderator.patch(&path, body).await.invalid(field);
    }
    moderator.get(&format!("{path}/deliveries?cursor=x")).await.invalid("cursor");
    for (method, path) in [
        (Method::PATCH, "moderation/webhooks/7"),
        (Method::DELETE, "moderation/webhooks/x"),
        (Method::POST, "moderation/webhooks/7/test"),
        (Method::GET, "moderation/webhooks/7/deliveries"),
    ] {
        moderator.send_json(method, path, json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn webhook_routes_are_404_unless_webhooks_are_on() {
    let world = World::new();
    for (method, path) in [
        (Method::GET, "moderation/webhooks"),
        (Method::POST, "moderation/webhooks"),
        (Method::PATCH, "moderation/webhooks/7"),
        (Method::DELETE, "moderation/webhooks/7"),
        (Method::POST, "moderation/webhooks/7/test"),
        (Method::GET, "moderation/webhooks/7/deliveries"),
        (Method::POST, "moderation/webhooks/7/deliveries/x/redeliver"),
    ] {
        world.moderator().send_json(method, path, json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn deliveries_are_listed_newest_first_and_by_cursor() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    let moderator = world.moderator();
    let mut sent = Vec::new();
    for _ in 0..5 {
        let test = moderator.post(&format!("{}/test", hook.path()), json!({})).await.ok(202);
        sent.insert(0, test.data()["id"].as_str().unwrap().to_owned());
        world.pass(Duration::from_secs(1));
    }
    world.wait_until_idle().await;
    for per_page in [1, 2, 5, 9] {
        let pages = moderator.walk(&format!("{}/deliveries?per_page={per_page}&cursor=", hook.path())).await;
        let listed: Vec<_> = pages.iter().flat_map(|page| page.rows().to_vec()).collect();
        assert_eq!(listed.iter().map(|row| row["id"].as_str().unwrap()).collect::<Vec<_>>(), sent);
    }
}

#[tokio::test]
async fn changes_of_webhooks_by_moderators_are_logged() {
    let (world, receiver) = (World::with(&WEBHOOKS), Receiver::start().await);
    let hook = add(&world, &receiver, &["comment.created"]).await;
    let moderator = world.moderator();
    world.pass(Duration::from_millis(5));
    moderator.patch(&hook.path(), json!({ "enabled": true })).await.ok(200);
    moderator.patch(&hook.path(), json!({ "events": ["comment.deleted"] })).await.ok(200);
    world.pass(Duration::from_millis(5));
    moderator.delete(&hook.path()).await.ok(204);
    let log = moderator.get("moderation/log").await.ok(200);
    let actions: Vec<&str> = log.rows().iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["remove_webhook", "change_webhook", "add_webhook"]);
    assert_eq!((&log.rows()[0]["comment_id"], &log.rows()[0]["thread"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_webhook_costs_the_writer_of_a_comment_nothing() {
    let (plain, world, receiver) = (metered(&[]), metered(&WEBHOOKS), Receiver::start().await);
    add(&world, &receiver, &ALL).await;
    let cost = async |world: &World| {
        let ada = world.user(7, "Ada");
        ada.comment("posts/1", "x").await;
        let cost = ada.write("posts/1", None, "y").await.ok(201).cost;
        (cost.read_units.to_bits(), cost.write_units.to_bits(), cost.trips)
    };
    assert_eq!(cost(&plain).await, cost(&world).await);
}
