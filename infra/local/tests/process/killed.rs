//! The process is killed in the middle of its work. After the next start everything it answered is stored, and the table is
//! in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue::S;
use http::Method;
use local::engine::Engine;
use serde_json::{Value, json};
use tests::{Actor, Service, dot};

use crate::{on_data, serve};

const ROUNDS: u64 = 3;
const WRITERS: u64 = 6;
/// Written in a round before it ends.
const COMMENTS: u64 = 60;
/// With a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The answers that the writers got.
#[derive(Default)]
struct Answers {
    /// New comments with their parents.
    created: BTreeMap<u64, Option<u64>>,
    /// Comments whose deletion was requested, answered or not.
    deleted: BTreeSet<u64>,
}

/// Without limits on how much is written.
fn serve_writers(data_dir: &Path) -> Service {
    let mut command = on_data(&["--port", "0"], data_dir);
    command.env("SVC_WRITE_LIMIT", "1000000").env("SVC_READ_LIMIT", "1000000");
    Service::start(&mut command, "moderator")
}

fn is_in_order(data_dir: &Path) -> bool {
    on_data(&["check"], data_dir).output().unwrap().status.success()
}

/// Writes until the service is gone.
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
async fn after_a_kill_everything_answered_is_stored_and_the_table_in_order() {
    let data_dir = tempfile::tempdir().unwrap();
    let answers = Arc::<Mutex<Answers>>::default();
    for round in 0..ROUNDS {
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
    let check = on_data(&["check"], data_dir.path()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
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

    // As if the process had ended between the writes and the work that follows from them.
    std::fs::remove_file(&thumbnail).unwrap();
    remove_comment(data_dir.path(), parent).await;
    let lock = data_dir.path().join("lock");
    std::fs::write(&lock, "in use\n").unwrap();
    let uploads = data_dir.path().join("objects/media/uploads");
    let upload = std::fs::read_dir(uploads).unwrap().next().unwrap().unwrap().path();
    let later = std::fs::metadata(lock).unwrap().modified().unwrap();
    std::fs::File::options().append(true).open(upload).unwrap().set_modified(later).unwrap();

    assert!(!is_in_order(data_dir.path()));
    assert!(serve(data_dir.path()).stop().success());
    assert!(thumbnail.exists());
    assert!(is_in_order(data_dir.path()));
}

#[tokio::test]
async fn a_job_that_a_killed_process_was_doing_is_done_by_the_next() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    let member = service.member();
    let parent = member.comment("posts/1", "x").await;
    member.reply("posts/1", parent, "x").await;
    assert!(service.stop().success());

    // Received, and never deleted.
    let job = json!({ "job": "clean_up", "comment": parent, "replies": 1, "deleted_at": 0 });
    let message = json!({
        "id": "1", "body": job.to_string(), "sent_at": 0, "visible_at": i64::MAX, "receives": 1, "received_at": 0,
    });
    let file = data_dir.path().join("queue/JobsQueue/1.json");
    std::fs::write(&file, message.to_string()).unwrap();
    assert!(serve(data_dir.path()).stop().success());
    assert!(!file.exists());
    let service = serve(data_dir.path());
    service.member().get(&format!("comments/{parent}/replies")).await.refused(404, "not_found");
}

async fn remove_comment(data_dir: &Path, id: u64) {
    let table = Engine::open(&data_dir.join("table.db")).unwrap().client();
    let delete = table.delete_item().table_name("comments");
    delete.key("pk", S(format!("C#{id}"))).key("sk", S("C".to_owned())).send().await.unwrap();
}
