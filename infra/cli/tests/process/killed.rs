//! The process is killed in the middle of its work, or can't finish it. After the next start, everything acknowledged
//! is stored, all follow-up work is done, and the table is consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue::S;
use futures_util::future::join_all;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use server::engine::Engine;
use tests::{Actor, MAIL, Receiver, SECRET, Service, WEBHOOKS, dot, sign};

use crate::{assert_in_order, count, on_data, serve};

/// The default of the environment variable `KILLS`.
const KILLS: u64 = 5;
const ROUNDS: u64 = 3;
const WRITERS: u64 = 3;
/// Comments written per round before the kill.
const COMMENTS: u64 = 18;
/// Maximum wait on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The writes before the kill.
#[derive(Default)]
struct Answers {
    /// New comments with their parents.
    created: BTreeMap<u64, Option<u64>>,
    /// Comments whose deletion was requested, acknowledged or not.
    deleted: BTreeSet<u64>,
}

fn serve_writers(data_dir: &Path) -> Service {
    let mut command = on_data(&["--port", "0"], data_dir);
    command.env("SVC_WRITE_LIMIT", "1000000").env("SVC_READ_LIMIT", "1000000");
    Service::start(&mut command, "moderator")
}

/// Whether there are comments below a missing one.
fn has_orphans(data_dir: &Path) -> bool {
    let check = on_data(&["check"], data_dir).output().unwrap();
    String::from_utf8_lossy(&check.stdout).contains("its ancestor")
}

/// Writes until the service is down.
async fn write(actor: Actor, number: u64, answers: Arc<Mutex<Answers>>) -> Option<()> {
    let mut parents: Vec<u64> = Vec::new();
    for turn in 0_u64.. {
        let parent = if turn.is_multiple_of(5) { None } else { parents.last().copied() };
        let comment = json!({ "body": format!("{number} {turn}"), "parent_id": parent });
        let id = actor.try_send(Method::POST, "posts/1/comments", &comment).await?.ok(201).id();
        answers.lock().unwrap().created.insert(id, parent);
        if parent.is_none() {
            parents.push(id);
        }
        actor.try_send(Method::POST, &format!("comments/{id}/like"), &Value::Null).await?;
        if turn % 4 == 3 {
            let gone = parents.remove(0);
            answers.lock().unwrap().deleted.insert(gone);
            actor.try_send(Method::DELETE, &format!("comments/{gone}"), &Value::Null).await?;
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_everything_acknowledged_is_stored_and_the_table_in_order() {
    let data_dir = tempfile::tempdir().unwrap();
    let answers = Arc::<Mutex<Answers>>::default();
    for round in 0..count("KILLS", KILLS) {
        let mut service = serve_writers(data_dir.path());
        let writers = (0..WRITERS)
            .map(|writer| tokio::spawn(write(service.member(), round * WRITERS + writer, Arc::clone(&answers))));
        let writers: Vec<_> = writers.collect();
        let enough = usize::try_from((round + 1) * COMMENTS).unwrap();
        let start = Instant::now();
        while answers.lock().unwrap().created.len() < enough && start.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        service.kill();
        for writer in writers {
            writer.await.unwrap();
        }
    }
    let Answers { created, deleted } = std::mem::take(&mut *answers.lock().unwrap());
    assert!(deleted.len() > 5, "too little was deleted");

    let service = serve_writers(data_dir.path());
    let member = service.member();
    let gone = |id: &u64| deleted.contains(id);
    for (id, parent) in &created {
        if !gone(id) && !parent.as_ref().is_some_and(gone) {
            member.replies(*id, "").await;
        }
    }
    assert!(service.stop().success());
    assert_in_order(data_dir.path());
}

pub(crate) fn serve_all(data_dir: &Path) -> Service {
    let mut command = on_data(&["--port", "0"], data_dir);
    command.envs(MAIL).envs(WEBHOOKS).env("SVC_MAIL_WAIT", "0");
    command.env("SVC_JWT_SECRET", SECRET).env("SVC_WRITE_LIMIT", "1000000").env("SVC_READ_LIMIT", "1000000");
    Service::start(&mut command, "moderator")
}

/// A member with an email address who took this name `seconds` ago.
fn member(service: &Service, id: u64, name: &str, seconds: i64) -> Actor {
    service.guest().with_token(&token(id, name, seconds))
}

pub(crate) fn token(id: u64, name: &str, seconds: i64) -> String {
    let now = Timestamp::now().as_second();
    let claims = json!({
        "sub": id.to_string(), "name": name, "email": format!("{id}@example.org"),
        "iat": now - seconds, "exp": now + 3600,
    });
    sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET)
}

pub(crate) fn files(folder: PathBuf, extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_emails_webhooks_names_and_counts_reflect_all_acknowledged_changes() {
    const MEMBERS: u64 = 12;
    let data_dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let service = serve_all(data_dir.path());
    let hook = json!({ "url": format!("{}/hook", receiver.url), "events": ["comment.created"] });
    service.guest().with_token(service.said("moderator")).post("moderation/webhooks", hook).await.ok(201);
    assert!(service.stop().success());

    let (mut answers, mut written) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut service = serve_all(data_dir.path());
        let members = (1..=MEMBERS).map(|number| (round + 1) * 100 + number);
        let asked = members.clone().map(|id| {
            let member = member(&service, id, &format!("Old {id}"), 60);
            async move {
                let comment = json!({ "body": "x", "subscribe_to_replies": true });
                (id, member.post("posts/1/comments", comment).await.ok(201).id())
            }
        });
        let asked = join_all(asked).await;
        // Each member replies to another one under a new name.
        let answered = asked.iter().zip(asked.iter().cycle().skip(1)).map(|((id, _), (_, parent))| {
            let renamed = member(&service, *id, &format!("New {id}"), 0);
            let body = format!("answer-{id}-end");
            async move { (renamed.reply("posts/1", *parent, &body).await, body) }
        });
        let answered = join_all(answered).await;
        service.kill();
        written.extend(asked.into_iter().map(|(_, comment)| comment));
        answers.extend(answered);
    }

    assert!(serve_all(data_dir.path()).stop().success());
    let mails = files(data_dir.path().join("mail"), "eml");
    let mails: Vec<_> = mails.iter().map(|mail| fs::read_to_string(mail).unwrap()).collect();
    let received: BTreeSet<_> =
        receiver.received().iter().map(|message| message.json()["data"]["id"].as_u64().unwrap()).collect();
    let unsent = answers.iter().filter(|(_, body)| !mails.iter().any(|mail| mail.contains(body)));
    let comments = answers.iter().map(|(answer, _)| answer).chain(&written);
    let undelivered = comments.filter(|comment| !received.contains(comment));
    let missing: Vec<_> = unsent.map(|(answer, _)| answer).chain(undelivered).collect();
    // Messages that the killed process was sending are still in the queue.
    let waiting = files(data_dir.path().join("queue/DeliveriesQueue"), "json").len();
    assert!(missing.len() <= waiting, "of {missing:?}, only {waiting} wait");

    let service = serve_all(data_dir.path());
    let page = service.member().list("posts/1", "per_page=50").await;
    let comments = page.data().as_array().unwrap();
    assert_eq!(comments.len(), written.len());
    for comment in comments {
        let name = comment["user"]["name"].as_str().unwrap();
        assert!(name.starts_with("New "), "{name} in {comment}");
        assert_eq!(comment["replies_count"], 1, "{comment}");
    }
    assert!(service.stop().success());
    assert_in_order(data_dir.path());
}

#[tokio::test]
async fn changes_that_could_not_be_followed_up_are_reported_and_retried_at_the_next_start() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve_all(data_dir.path());
    member(&service, 7, "Ada", 60).comment("posts/1", "x").await;
    assert!(service.stop().success());

    // Without its directory, the jobs queue accepts no messages.
    let jobs = data_dir.path().join("queue/JobsQueue");
    let service = serve_all(data_dir.path());
    fs::remove_dir(&jobs).unwrap();
    fs::write(&jobs, "").unwrap();
    member(&service, 7, "Lovelace", 0).comment("posts/1", "y").await;
    assert!(service.stop().success());
    let dead_letters = data_dir.path().join("queue/EventsDeadLetters");
    assert_eq!(files(dead_letters.clone(), "json").len(), 1);
    assert_ne!(fs::read(data_dir.path().join("lock")).unwrap(), b"", "the work is not finished");

    fs::remove_file(&jobs).unwrap();
    let service = serve_all(data_dir.path());
    let log = service.log();
    assert!(log.contains("EventsDeadLetters: retrying messages given up earlier (1)"), "{log}");
    assert!(service.stop().success());
    assert!(files(dead_letters, "json").is_empty());
    assert_eq!(fs::read(data_dir.path().join("lock")).unwrap(), b"");
    let service = serve_all(data_dir.path());
    assert_eq!(service.log(), "");
    let page = service.member().list("posts/1", "").await;
    assert!(
        page.data().as_array().unwrap().iter().all(|comment| comment["user"]["name"] == "Lovelace"),
        "{}",
        page.json
    );
}

#[tokio::test]
async fn a_job_that_was_given_up_or_interrupted_by_five_kills_is_finished_at_the_next_start() {
    for queue in ["JobsDeadLetters", "JobsQueue"] {
        let data_dir = tempfile::tempdir().unwrap();
        let service = serve(data_dir.path());
        let member = service.member();
        let parent = member.comment("posts/1", "x").await;
        member.reply("posts/1", parent, "x").await;
        assert!(service.stop().success());

        remove_comment(data_dir.path(), parent).await;
        assert!(has_orphans(data_dir.path()));
        // A job in `JobsQueue` was received but never deleted.
        let file = put_clean_up(data_dir.path(), queue, parent);
        let service = serve(data_dir.path());
        let log = service.log();
        if queue == "JobsDeadLetters" {
            assert!(log.contains("JobsDeadLetters: retrying messages given up earlier (1)"), "{log}");
            assert!(log.contains(file.parent().unwrap().to_str().unwrap()), "{log}");
        }
        assert!(service.stop().success());
        assert!(!file.exists() && !has_orphans(data_dir.path()), "{queue}");
    }
}

/// Puts a hidden job into a queue, as if it had been received five times.
fn put_clean_up(data_dir: &Path, queue: &str, comment: u64) -> PathBuf {
    let job = json!({ "job": "clean_up", "comment": comment, "replies": 1, "deleted_at": 0 });
    let message = json!({
        "id": "1", "body": job.to_string(), "sent_at": 0, "visible_at": i64::MAX, "receives": 5, "received_at": 0,
    });
    let file = data_dir.join("queue").join(queue).join("1.json");
    fs::write(&file, message.to_string()).unwrap();
    file
}

#[tokio::test]
async fn after_a_crash_the_next_start_finishes_the_work_that_was_left() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    let member = service.member();
    let parent = member.comment("posts/1", "x").await;
    member.reply("posts/1", parent, "x").await;
    let image = member.upload(&[("file", "a.gif", &dot(0))]).await.ok(201).json;
    let thumbnail = image["thumbnail_url"].as_str().unwrap().rsplit_once("/media/").unwrap().1;
    let thumbnail = data_dir.path().join("objects/media").join(thumbnail);
    assert!(service.stop().success());

    // Simulates a process that ended between the writes and their follow-up work.
    fs::remove_file(&thumbnail).unwrap();
    remove_comment(data_dir.path(), parent).await;
    let lock = data_dir.path().join("lock");
    fs::write(&lock, "in use\n").unwrap();
    let uploads = data_dir.path().join("objects/media/uploads");
    let upload = fs::read_dir(uploads).unwrap().next().unwrap().unwrap().path();
    let later = fs::metadata(lock).unwrap().modified().unwrap();
    fs::File::options().append(true).open(upload).unwrap().set_modified(later).unwrap();

    assert!(!on_data(&["check"], data_dir.path()).output().unwrap().status.success());
    assert!(serve(data_dir.path()).stop().success());
    assert!(thumbnail.exists());
    assert_in_order(data_dir.path());
}

async fn remove_comment(data_dir: &Path, id: u64) {
    let table = Engine::open(&data_dir.join("table.db")).unwrap().client();
    let delete = table.delete_item().table_name("comments");
    delete.key("pk", S(format!("C#{id}"))).key("sk", S("C".to_owned())).send().await.unwrap();
}
