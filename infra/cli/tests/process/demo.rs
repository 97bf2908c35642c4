//! The page at `/` of `cargo local`, and the thread that the page's first GET fills.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tests::{Actor, MAIL, SECRET, Service, TestResponse, sign, wants};

use crate::{assert_in_order, on_data, serve};

const THREAD: &str = "posts/demo";
const PEOPLE: usize = 6;
const COMMENTS: u64 = 13;
const DAY: i64 = 24 * 60 * 60;

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

async fn open(service: &Service) -> TestResponse {
    service.at(service.said("listening")).send_at(Method::GET, "/", "").await.ok(200)
}

async fn count(reader: &Actor) -> u64 {
    reader.get(&format!("counts?threads={THREAD}")).await.ok(200).data()[THREAD].as_u64().unwrap()
}

/// All comments of the thread, replies after their parents.
async fn all(reader: &Actor) -> Vec<Value> {
    let mut wait = reader.list(THREAD, "per_page=50").await.data().as_array().unwrap().clone();
    let mut found = Vec::new();
    while let Some(mut comment) = wait.pop() {
        comment.as_object_mut().unwrap().remove("replies");
        if comment["replies_count"] != 0 {
            let replies = reader.get(&format!("comments/{}/replies", comment["id"])).await.ok(200);
            wait.extend(replies.data().as_array().unwrap().clone());
        }
        found.push(comment);
    }
    found
}

fn depth(comment: &Value, all: &[Value]) -> usize {
    all.iter().find(|other| other["id"] == comment["parent_id"]).map_or(0, |parent| 1 + depth(parent, all))
}

fn time(comment: &Value) -> i64 {
    comment["created_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
}

#[tokio::test]
async fn the_first_visit_to_the_demo_page_creates_a_month_of_conversation() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    let guest = service.guest();
    assert_eq!(count(&guest).await, 0, "nothing is written before the page is opened");
    service.at(service.said("listening")).send_at(Method::HEAD, "/", "").await.ok(200);
    assert_eq!(count(&guest).await, 0, "HEAD writes nothing");
    open(&service).await;
    assert_eq!(count(&guest).await, COMMENTS);

    let mut comments = all(&guest).await;
    comments.sort_unstable_by_key(|comment| comment["id"].as_u64());
    assert_eq!(comments.len() as u64, COMMENTS);
    assert!(comments.is_sorted_by_key(time), "ids are in order of time");
    let (oldest, newest) = (time(&comments[0]), time(&comments[comments.len() - 1]));
    assert!(oldest < now() - 28 * DAY && newest < now(), "{oldest} to {newest}");
    let names: BTreeSet<&str> = comments.iter().map(|comment| comment["user"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), PEOPLE, "{names:?}");
    assert_eq!(comments.iter().map(|comment| depth(comment, &comments)).max(), Some(4));
    let pinned = guest.list(THREAD, "").await;
    assert_eq!((&pinned.data()[0]["pinned"], &pinned.data()[0]["is_moderator"]), (&json!(true), &json!(true)));
    let with = |key: &str, value: Value| comments.iter().filter(|comment| comment[key] == value).count();
    assert_eq!(with("pinned", json!(true)), 1);
    assert!(with("likes_count", json!(0)) < comments.len() / 2 && with("is_author", json!(true)) > 0);
    let mention = |comment: &Value| comment["html"].as_str().unwrap().contains("href=\"/users/ada\"");
    assert!(comments.iter().any(mention), "the mention is a link");
    let found = service.member().get("users?q=wanj").await.ok(200);
    assert_eq!(found.data()[0]["name"], "Wanjiru Kamau");
    assert!(service.stop().success());
    assert_in_order(data_dir.path());
}

#[tokio::test]
async fn concurrent_first_visits_fill_the_demo_thread_once() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    join_all((0..8).map(|_| open(&service))).await;
    assert_eq!(count(&service.guest()).await, COMMENTS);
    assert_eq!(all(&service.guest()).await.len() as u64, COMMENTS);
    assert!(service.stop().success());
    let service = serve(data_dir.path());
    open(&service).await;
    assert_eq!(count(&service.guest()).await, COMMENTS, "the next process leaves it alone");
}

#[tokio::test]
async fn a_thread_whose_comments_were_all_deleted_is_not_filled_again() {
    let data_dir = tempfile::tempdir().unwrap();
    let start =
        || Service::start(on_data(&["--port", "0"], data_dir.path()).env("SVC_JWT_SECRET", SECRET), "moderator");
    let service = start();
    open(&service).await;
    let mut comments = all(&service.guest()).await;
    comments.sort_unstable_by_key(|comment| comment["id"].as_u64());
    for comment in comments.iter().rev() {
        let claims = json!({ "sub": comment["user"]["id"].to_string(), "exp": now() + DAY });
        let token = sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET);
        service.guest().with_token(&token).delete(&format!("comments/{}", comment["id"])).await.ok(204);
    }
    assert_eq!(all(&service.guest()).await, Vec::<Value>::new());
    open(&service).await;
    assert!(service.stop().success());
    let service = start();
    open(&service).await;
    assert_eq!(all(&service.guest()).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_thread_that_already_has_a_comment_is_not_filled() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    service.member().comment(THREAD, "First!").await;
    open(&service).await;
    assert_eq!(all(&service.guest()).await.len(), 1);
}

#[tokio::test]
async fn the_demo_thread_is_filled_even_if_other_threads_have_comments() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    service.member().comment("posts/1", "First!").await;
    open(&service).await;
    assert_eq!(count(&service.guest()).await, COMMENTS);
    assert_eq!(service.guest().list("posts/1", "").await.rows().len(), 1);
}

#[tokio::test]
async fn without_a_demonstration_the_page_shows_an_empty_thread() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = Service::start(&mut on_data(&["--port", "0", "--no-demo"], data_dir.path()), "moderator");
    let page = open(&service).await;
    assert!(page.json.as_str().unwrap().contains("<comment-thread type=\"posts\" record=\"demo\">"));
    assert_eq!(all(&service.guest()).await, Vec::<Value>::new());
    assert!(service.stop().success());
    let service = serve(data_dir.path());
    open(&service).await;
    assert_eq!(count(&service.guest()).await, COMMENTS, "the next process has one");
}

#[tokio::test]
async fn the_demo_conversation_notifies_no_one_and_counts_toward_no_limit() {
    let data_dir = tempfile::tempdir().unwrap();
    let mut command = on_data(&["--port", "0"], data_dir.path());
    command.envs(MAIL).envs([
        ("SVC_MAIL_WAIT", "0"),
        ("SVC_WEBHOOKS", "true"),
        ("SVC_WEBHOOK_PRIVATE", "true"),
        ("SVC_WRITE_LIMIT", "3"),
    ]);
    let service = Service::start(&mut command, "moderator");
    let (ada, moderator) = (service.member(), service.guest().with_token(service.said("moderator")));
    ada.put("me/notifications", wants(&["replies", "mentions", "own_records"])).await.ok(200);
    let endpoint = json!({ "url": "http://127.0.0.1:9/", "events": ["comment.created", "comment.approved"] });
    let endpoint = moderator.post("moderation/webhooks", endpoint).await.ok(201);
    open(&service).await;
    assert_eq!(count(&ada).await, COMMENTS);
    let written = ada.comment("posts/1", "Still within the limit.").await;
    assert!(service.stop().success(), "all events are handled");

    let service = Service::start(on_data(&["--port", "0"], data_dir.path()).env("SVC_WEBHOOKS", "true"), "moderator");
    let moderator = service.guest().with_token(service.said("moderator"));
    let deliveries = format!("moderation/webhooks/{}/deliveries", endpoint.data()["id"]);
    let about = |delivery: &Value| delivery["comment_id"] != written;
    let deliveries = moderator.get(&deliveries).await.ok(200);
    assert!(!deliveries.data().as_array().unwrap().iter().any(about), "{}", deliveries.json);
    let mails = std::fs::read_dir(data_dir.path().join("mail")).unwrap().count();
    assert_eq!(mails, 0, "Ada was mentioned, and answered");
}
