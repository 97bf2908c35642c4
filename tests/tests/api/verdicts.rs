//! Verdicts: the reasons why checks hold a text, shown only to moderators.

use std::sync::Arc;

use serde_json::{Value, json};
use tests::{TestResponse, World};
use tokio::net::TcpListener;
use tracing_subscriber::util::SubscriberInitExt;

use crate::crossing::SlowCheck;

const DOUBTS: [(&str, &str); 2] = [("SVC_SPAM_REVIEW", "free crypto, casino"), ("SVC_SPAM_REVIEW_LINKS", "2")];

fn phrase(words: &str) -> Value {
    json!({ "rule": "phrase", "match": words, "detail": null })
}

async fn verdicts(world: &World, id: u64) -> Value {
    let item = world.moderator().get(&format!("moderation/comments?id={id}")).await.ok(200);
    item.rows()[0]["verdicts"].clone()
}

async fn judge(world: &World, id: u64, verdict: &str) {
    world.moderator().judge(id, verdict).await.ok(200);
}

#[tokio::test]
async fn a_moderator_reads_what_every_check_has_found() {
    let world = World::with(&DOUBTS);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "**Free** \u{a0} Crypto: http://a.example [x](http://CASINO.example)").await;
    let links = json!({ "rule": "links", "match": null, "detail": { "count": 2, "limit": 2 } });
    let expected = json!([phrase("Free \u{a0} Crypto"), phrase("CASINO"), links]);
    assert_eq!(verdicts(&world, id).await, expected);
    let moderator = world.moderator();
    for path in ["moderation/comments?state=pending", "users/7/comments"] {
        assert_eq!(moderator.get(path).await.ok(200).find(id).unwrap()["verdicts"], expected, "{path}");
    }
    let fine = ada.comment("posts/1", "hello").await;
    assert_eq!(verdicts(&world, fine).await, json!([]));
}

#[tokio::test]
async fn a_writer_never_sees_verdicts() {
    let world = World::with(&[&DOUBTS[..], &[("SVC_ALLOW_GUESTS", "true")]].concat());
    let (ada, guest) = (world.user(7, "Ada"), world.guest().with_key("guest"));
    for writer in [&ada, &guest] {
        let written = writer.write("posts/1", None, "casino").await.ok(201);
        let id = written.id();
        let edited = writer.edit(id, "casino!").await.ok(200);
        let shown = writer.get(&format!("comments/{id}")).await.ok(200);
        for answer in [written, edited, shown, writer.list("posts/1", "").await] {
            assert!(!answer.json.to_string().contains("verdict"), "{:#}", answer.json);
        }
    }
}

#[tokio::test]
async fn an_edit_replaces_the_verdicts() {
    let world = World::with(&DOUBTS);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "casino").await;
    for (body, found) in
        [("Free crypto", json!([phrase("Free crypto")])), ("hello", json!([])), ("Casino", json!([phrase("Casino")]))]
    {
        ada.edit(id, body).await.ok(200);
        assert_eq!(verdicts(&world, id).await, found, "{body}");
    }
    judge(&world, id, "reject").await;
    ada.edit(id, "CASINO").await.ok(200);
    assert_eq!(verdicts(&world, id).await, json!([phrase("CASINO")]));
}

#[tokio::test]
async fn an_approval_drops_the_verdicts_and_a_rejection_keeps_them() {
    let world = World::with(&DOUBTS);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "casino").await;
    judge(&world, id, "reject").await;
    assert_eq!(verdicts(&world, id).await, json!([phrase("casino")]));
    judge(&world, id, "approve").await;
    assert_eq!(verdicts(&world, id).await, json!([]));
    ada.edit(id, "Casino").await.ok(200);
    assert_eq!(verdicts(&world, id).await, json!([phrase("Casino")]));
    judge(&world, id, "approve").await;
    assert_eq!(verdicts(&world, id).await, json!([]));
    judge(&world, id, "reject").await;
    assert_eq!(verdicts(&world, id).await, json!([]));
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_comment_keeps_at_most_ten_verdicts() {
    let words: Vec<String> = ('a'..='l').map(|letter| letter.to_string().repeat(5)).collect();
    let world = World::with(&[("SVC_SPAM_REVIEW", &words.join(","))]);
    let id = world.user(7, "Ada").comment("posts/1", &words.join(" ")).await;
    let expected: Vec<Value> = words[..10].iter().map(|words| phrase(words)).collect();
    assert_eq!(verdicts(&world, id).await, json!(expected));
}

#[tokio::test]
async fn a_text_that_is_written_again_is_held_as_a_repeat_whatever_else_is_found() {
    let world = World::with(&[&DOUBTS[..], &[("SVC_SPAM_REVIEW_REPEATS", "true")]].concat());
    let ada = world.user(7, "Ada");
    let repeat = json!({ "rule": "repeat", "match": null, "detail": null });
    for (body, found) in [("hello", vec![]), ("casino", vec![phrase("casino")])] {
        let first = ada.comment("posts/1", body).await;
        let second = ada.comment("posts/1", body).await;
        assert_eq!(verdicts(&world, first).await, json!(found));
        assert_eq!(verdicts(&world, second).await, json!([found, vec![repeat.clone()]].concat()));
    }
}

#[tokio::test]
async fn a_text_is_held_while_akismet_does_not_respond_and_the_verdict_says_so() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let world = World::with(&[("SVC_AKISMET_KEY", "key"), ("SVC_AKISMET_URL", &url)]);
    let id = world.user(7, "Ada").comment("posts/1", "hello").await;
    let expected = json!([{ "rule": "akismet", "match": null, "detail": { "failure": "timeout" } }]);
    assert_eq!(verdicts(&world, id).await, expected);
}

/// Sends a request whose text is checked. Returns the comment's id and the permalink that the spam check received.
async fn permalink(check: &SlowCheck, request: impl Future<Output = TestResponse>) -> (u64, Option<String>) {
    let (answer, mut form) = tokio::join!(request, check.answer(false, async {}));
    (answer.id(), form.remove("permalink"))
}

#[tokio::test]
async fn akismet_gets_the_address_of_the_page_as_moderators_see_it() {
    let (check, url) = (SlowCheck::start().await, "https://blog.example/tea");
    let site = [("SVC_CORS_ORIGINS", "https://blog.example"), ("SVC_REQUIRE_APPROVAL", "true")];
    let world = World::with(&[site, check.settings()].concat());
    let ada = world.user(7, "Ada");
    let (bare, of_bare) = permalink(&check, ada.write("posts/1", None, "hello")).await;
    let page = json!({ "body": "hello", "page": { "url": url } });
    let (paged, of_paged) = permalink(&check, ada.post("posts/1/comments", page)).await;
    let (_, of_edit) = permalink(&check, ada.edit(paged, "hi")).await;
    assert_eq!((of_bare, of_paged.as_deref(), of_edit.as_deref()), (None, Some(url), Some(url)));
    world.moderator().put("posts/1", json!({ "url": "https://host.example/1" })).await.ok(200);
    let (_, of_reply) = permalink(&check, ada.write("posts/1", Some(paged), "hello")).await;
    let (_, of_edit) = permalink(&check, ada.edit(bare, "hi")).await;
    assert_eq!([of_reply, of_edit], [(); 2].map(|()| Some("https://host.example/1".to_owned())));
}

#[tokio::test]
async fn a_text_that_is_refused_leaves_its_rule_in_the_log_and_nothing_in_the_table() {
    let world = World::with(&[("SVC_SPAM_DENY", "casino")]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "hello").await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    let _guard = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).set_default();
    ada.write("posts/1", None, "the Casino").await.refused(422, "spam_rejected");
    ada.edit(id, "the Casino").await.refused(422, "spam_rejected");
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(log.matches(r#"rule="phrase""#).count(), 2, "{log}");
    let items = format!("{:?}", world.items().await);
    assert!(!items.contains("asino") && !items.contains("phrase") && !log.contains("asino"), "{items} {log}");
    assert_eq!(verdicts(&world, id).await, json!([]));
}

#[tokio::test]
async fn a_deleted_comment_keeps_no_verdicts() {
    let world = World::with(&DOUBTS);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "hello").await;
    world.user(8, "Bob").reply("posts/1", id, "hi").await;
    ada.edit(id, "casino").await.ok(200);
    ada.remove(id).await.ok(204);
    let placeholder = world.item(&format!("C#{id}"), "C").await.unwrap();
    assert!(placeholder.contains_key("ph") && !placeholder.contains_key("vd"), "{placeholder:?}");
}
