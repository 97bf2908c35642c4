//! Nothing is lost or duplicated under faults between the service and its table, every count is right in the end, and
//! every error is in the envelope. `FAULTS_SECONDS` lengthens the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use shared::routes::ROUTES;
use tests::{Actor, Faults, Item, MAIL, Receiver, SIGN_IN, Setup, TestResponse, WEBHOOKS, World};

const WRITERS: u64 = 16;
/// A run continues, for up to `PATIENCE` longer, until it has written more than this many comments and met more than
/// `ENOUGH_FAULTS` faults.
const ENOUGH: usize = 20;
const ENOUGH_FAULTS: u64 = 50;
const PATIENCE: Duration = Duration::from_mins(1);
/// Maximum trips per response: a write is tried ten times, each with two reads and at most ten attempts. The test
/// counts trips because time depends on the machine.
const MOST_TRIPS: u32 = 130;

#[derive(Default)]
struct Answers {
    /// Ids by body, which no two comments share.
    created: BTreeMap<String, u64>,
    deleted: Vec<u64>,
    statuses: BTreeMap<u16, u64>,
    most_trips: u32,
}

#[derive(Clone)]
struct ConcurrentWriter {
    actor: Actor,
    moderates: bool,
    number: usize,
    faults: Faults,
    /// Comments that all writers reply to and like. None of them is deleted.
    parents: Arc<Mutex<Vec<u64>>>,
    answers: Arc<Mutex<Answers>>,
}

impl ConcurrentWriter {
    /// Counts the response. Fails if it is an error that no client should see.
    async fn ask(&self, method: Method, path: &str, body: Value) -> TestResponse {
        let answer = self.actor.send_json(method, path, body).await;
        let mut answers = self.answers.lock().unwrap();
        answers.most_trips = answers.most_trips.max(answer.cost.trips);
        *answers.statuses.entry(answer.status).or_default() += 1;
        if answer.status >= 400 {
            // A transient fault of the table causes a 503, never a 500.
            let expected = matches!(answer.status, 404 | 409 | 422 | 503);
            assert!(expected, "{} {path}: {:#}", answer.status, answer.json);
            assert!(answer.json["code"].is_string() && answer.json["errors"].is_object(), "{path}: {:#}", answer.json);
        }
        answer
    }

    async fn act(&self, method: Method, comment: u64, action: &str) -> TestResponse {
        let body = if action == "/report" { json!({ "reason": "spam" }) } else { Value::Null };
        self.ask(method, &format!("comments/{comment}{action}"), body).await
    }

    fn too_little(&self) -> bool {
        self.answers.lock().unwrap().created.len() <= ENOUGH || self.faults.made() <= ENOUGH_FAULTS
    }

    async fn run(self, until: Instant) {
        let mut own = Vec::new();
        let mut turn = 0_usize;
        while Instant::now() < until || (self.too_little() && Instant::now() < until + PATIENCE) {
            turn += 1;
            let any = {
                let parents = self.parents.lock().unwrap();
                parents[(turn * 7 + self.number) % parents.len()]
            };
            self.write(turn, any, &mut own).await;
            self.act(Method::POST, any, "/like").await;
            self.ask(Method::GET, "posts/1/comments?sort=most_replied", Value::Null).await;
            let newest = own.last().copied().unwrap_or(any);
            match turn % 6 {
                0 => drop(self.act(Method::POST, any, "/report").await),
                1 if self.moderates => {
                    self.act(Method::POST, newest, "/reject").await;
                    self.act(Method::POST, newest, "/approve").await;
                }
                2 if self.moderates => drop(self.act(Method::POST, any, "/pin").await),
                3 => self.delete(newest, &mut own).await,
                _ => drop(self.act(Method::GET, any, "/replies?cursor=").await),
            }
        }
    }

    /// Writes a reply to `any`, or a top-level comment every fourth turn.
    async fn write(&self, turn: usize, any: u64, own: &mut Vec<u64>) {
        let body = format!("{} {turn}{}", self.number, if turn.is_multiple_of(5) { " doubtful" } else { "" });
        let parent = (!turn.is_multiple_of(4)).then_some(any);
        let comment = json!({ "body": body, "parent_id": parent });
        let answer = self.ask(Method::POST, "posts/1/comments", comment).await;
        if answer.status == 201 {
            own.push(answer.id());
            self.answers.lock().unwrap().created.insert(body, answer.id());
            if turn.is_multiple_of(8) {
                self.parents.lock().unwrap().push(answer.id());
            }
        }
    }

    async fn delete(&self, id: u64, own: &mut Vec<u64>) {
        if self.parents.lock().unwrap().contains(&id) {
            return;
        }
        let answer = self.act(Method::DELETE, id, "").await;
        let mut answers = self.answers.lock().unwrap();
        own.pop();
        if answer.status < 500 {
            answers.deleted.push(id);
        } else {
            // It is unknown whether the comment is deleted.
            answers.created.retain(|_, created| *created != id);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_faults_nothing_is_lost_or_doubled_and_counts_are_right() {
    keeps_its_promises(Faults::new(7)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_faults_with_lagging_indexes_nothing_is_lost_or_doubled_and_counts_are_right() {
    keeps_its_promises(Faults::new(8).lagging(Duration::from_secs(1))).await;
}

async fn keeps_its_promises(faults: Faults) {
    let seconds = tests::setting("FAULTS_SECONDS").and_then(|seconds| seconds.parse().ok()).unwrap_or(3);
    let world = crate::faulty(&faults, &[]);
    let first = world.user(1, "Ada").comment("posts/1", "the first").await;
    let (parents, answers) = (Arc::new(Mutex::new(vec![first])), Arc::<Mutex<Answers>>::default());
    faults.start();

    let until = Instant::now() + Duration::from_secs(seconds);
    let writers = (0..WRITERS).map(|number| {
        let moderates = number.is_multiple_of(4);
        let roles: &[&str] = if moderates { &["moderator"] } else { &[] };
        let claims = json!({ "sub": (100 + number).to_string(), "name": format!("Writer {number}"), "roles": roles });
        let writer = ConcurrentWriter {
            actor: world.claiming(&claims),
            moderates,
            number: usize::try_from(number).unwrap(),
            faults: faults.clone(),
            parents: Arc::clone(&parents),
            answers: Arc::clone(&answers),
        };
        tokio::spawn(writer.run(until))
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    faults.stop();
    world.finish_jobs().await;

    let answers = std::mem::take(&mut *answers.lock().unwrap());
    let made = faults.made();
    eprintln!("{made} faults; answers {:?}; at most {} trips", answers.statuses, answers.most_trips);
    assert!(made > ENOUGH_FAULTS && answers.created.len() > ENOUGH, "too little happened");
    assert!((1..=MOST_TRIPS).contains(&answers.most_trips), "an answer took {} trips", answers.most_trips);
    let stored = bodies(&world).await;
    for (body, id) in answers.created.iter().filter(|(_, id)| !answers.deleted.contains(id)) {
        assert_eq!(stored.get(body), Some(&vec![*id]), "{body}");
    }
    for (body, ids) in &stored {
        assert_eq!(ids.len(), 1, "{body}: {ids:?}");
        assert!(!answers.deleted.contains(&ids[0]), "{body} was deleted");
    }
    check_log(&world).await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn replies_of_a_deleted_comment_are_removed_though_the_index_does_not_list_them_yet() {
    let world = crate::faulty(&Faults::new(9).lagging(Duration::from_secs(1)), &[]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    for _ in 0..3 {
        let parent = ada.comment("posts/1", "parent").await;
        let reply = ada.reply("posts/1", parent, "reply").await;
        for above in [reply, reply, reply, reply] {
            let below = ada.reply("posts/1", above, "below").await;
            ada.reply("posts/1", below, "deeper").await;
        }
        moderator.judge(reply, "reject").await.ok(200);
        ada.remove(parent).await.ok(204);
    }
    world.finish_jobs().await;
    assert_eq!(bodies(&world).await, BTreeMap::new());
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn an_edit_that_meets_a_transaction_is_tried_again() {
    let faults = Faults::new(12);
    let world = crate::faulty(&faults, &[]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "first").await;
    faults.conflict(2);
    assert_eq!(ada.edit(id, "second").await.ok(200).data()["body"], "second");
    assert_eq!(faults.conflicts(), 0);
}

#[tokio::test]
async fn a_decision_is_logged_once_although_a_response_of_the_table_got_lost() {
    let faults = Faults::new(14);
    let world = crate::faulty(&faults, &[]);
    let moderator = world.moderator();
    let id = world.user(7, "Ada").comment("posts/1", "first").await;
    for (verdict, made) in [("reject", 1), ("approve", 2)] {
        // Loses the response to the next request for the log's items.
        faults.lose_answer("A\"");
        moderator.judge(id, verdict).await.ok(200);
        assert_eq!(faults.made(), made);
    }
    let log = moderator.get("moderation/log").await.ok(200);
    let actions: Vec<_> = log.rows().iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["approve", "reject"]);
}

#[tokio::test]
async fn a_bulk_decision_reports_a_failed_write_and_applies_to_the_other_comments() {
    let faults = Faults::new(15);
    let world = crate::faulty(&faults, &[]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let (one, other) = (ada.comment("posts/1", "first").await, ada.comment("posts/2", "second").await);
    moderator.get("ui").await.ok(200);
    faults.fail("T#posts#2");
    let body = json!({ "ids": [other, one], "action": "reject" });
    let answer = moderator.post("moderation/comments", body).await.ok(200);
    assert_eq!(answer.data(), &json!({ "done": [one], "failed": [{ "id": other, "code": "unavailable" }] }));
    let log = moderator.get("moderation/log").await.ok(200);
    assert_eq!((log.rows().len(), &log.rows()[0]["comment_id"]), (1, &json!(one)));
}

#[tokio::test]
async fn a_lost_response_of_the_table_does_not_make_a_text_a_repeat() {
    let faults = Faults::new(13);
    let world = crate::faulty(&faults, &[("SVC_SPAM_REVIEW_REPEATS", "true")]);
    let ada = world.user(7, "Ada");
    faults.lose_answer("P#");
    let first = ada.write("posts/1", None, "once").await.ok(201);
    assert_eq!((faults.made(), &first.data()["is_approved"]), (1, &json!(true)));
    let second = ada.write("posts/1", None, "once").await.ok(201);
    assert_eq!(second.data()["is_approved"], false);
}

#[tokio::test]
async fn without_the_limiters_rows_reads_are_served_and_writes_are_refused() {
    let faults = Faults::new(10);
    let world = crate::faulty(&faults, &[("SVC_READ_LIMIT", "300")]);
    faults.fail("L#");
    let ada = world.user(7, "Ada");
    for _ in 0..25 {
        ada.list("posts/1", "").await;
    }
    ada.write("posts/1", None, "lost?").await.refused(503, "unavailable");
    assert_eq!(bodies(&world).await, BTreeMap::new());
}

#[tokio::test]
async fn without_the_table_every_route_reports_the_outage_in_the_envelope() {
    // The documentation page isn't JSON, files need no table, and links from emails and providers are checked first.
    const OTHERS: [&str; 7] = [
        "docs",
        "embed.js",
        "embed/{file}",
        "moderation.js",
        "moderate",
        "mail/{token}",
        "sign_in/callback/{provider}",
    ];
    let faults = Faults::new(11);
    let world = crate::faulty(&faults, &[&MAIL[..], &WEBHOOKS, &SIGN_IN].concat());
    faults.fail("");
    let moderator = world.claiming(&json!({ "sub": "1", "roles": ["moderator"], "email": "mod@example.org" }));
    let asked = ROUTES.iter().filter(|route| !OTHERS.contains(&route.path)).map(|route| {
        let (moderator, path) = (moderator.clone(), route.path.replace("{type}", "posts").replace("{id}", "7"));
        let path = path.replace("{name}", "aaaaaaaaaaaaaaaaaaaaaaaa.png");
        async move {
            let body = json!({ "body": "x", "reason": "spam", "email": "ada@example.org" });
            let method: Method = route.method.parse().unwrap();
            let query = match route.path {
                "users" => "?q=a",
                "counts" => "?threads=posts/1",
                _ => "",
            };
            let answer = moderator.send_json(method, &format!("{path}{query}"), body).await;
            assert!(answer.cost.trips <= MOST_TRIPS, "{} took {} trips", route.name, answer.cost.trips);
            answer.refused(503, "unavailable");
        }
    });
    futures_util::future::join_all(asked).await;
}

/// Fails unless the log has one entry for each decision that took effect: a rejected comment has one more rejection
/// than approvals, and any other comment has as many. Skips comments that were reported or began pending.
async fn check_log(world: &World) {
    let items = world.items().await;
    let text = |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok().cloned());
    let mut balance: BTreeMap<String, i64> = BTreeMap::new();
    for entry in items.iter().filter(|item| text(item, "pk").as_deref() == Some("A")) {
        let change = match text(entry, "ac").as_deref() {
            Some("reject") => 1,
            Some("approve") => -1,
            _ => 0,
        };
        *balance.entry(entry["c"].as_n().unwrap().clone()).or_default() += change;
    }
    assert!(!balance.is_empty(), "nothing was logged");
    for comment in items.iter().filter(|item| text(item, "sk").as_deref() == Some("C") && !item.contains_key("rp")) {
        let (id, is_rejected) = (comment["i"].as_n().unwrap(), comment.get("s").is_some());
        if !text(comment, "b").unwrap().contains("doubtful") {
            assert_eq!(balance.get(id).copied().unwrap_or_default(), i64::from(is_rejected), "{id}");
        }
    }
}

#[tokio::test]
async fn under_faults_every_subscriber_is_notified_of_each_reply_once() {
    let faults = Faults::new(14);
    let settings = [&MAIL[..], &[("SVC_MAIL_WAIT", "0")]].concat();
    let world = Setup::new(&settings).faults(&faults).start();
    let reader = |id: u64| {
        world.claiming(&json!({ "sub": id.to_string(), "name": format!("Reader {id}"), "email": format!("reader{id}@example.org") }))
    };
    let mut asked = Vec::new();
    for id in 1..=5 {
        let comment = json!({ "body": "x", "subscribe_to_replies": true });
        asked.push(reader(id).post("posts/1/comments", comment).await.ok(201).id());
    }
    world.finish_jobs().await;
    let bob = world.user(99, "Bob");
    let mut answers = Vec::new();
    faults.start();
    for round in 0..6 {
        for parent in &asked {
            let answer = bob.write("posts/1", Some(*parent), &round.to_string()).await;
            answers.extend((answer.status == 201).then(|| answer.id()));
        }
        // Messages arrive twice and early.
        for id in 1..=5 {
            world.send_delivery(&format!("u{id}"));
        }
        world.finish_jobs().await;
    }
    faults.stop();
    // Messages arrive late, too.
    for id in 1..=5 {
        world.send_delivery(&format!("u{id}"));
    }
    world.finish_jobs().await;
    let mails = world.mails();
    for answer in &answers {
        let link = format!("#comment-{answer}\n");
        let mailed: usize = mails.iter().map(|mail| mail.text.replace("\r\n", "\n").matches(&link).count()).sum();
        assert_eq!(mailed, 1, "{answer} of {} after {} faults", answers.len(), faults.made());
    }
    assert!(answers.len() > 10 && faults.made() > 50, "{} answers and {} faults", answers.len(), faults.made());
}

#[tokio::test]
async fn under_faults_a_webhook_is_notified_of_each_comment_once() {
    let faults = Faults::new(15);
    let (world, receiver) = (Setup::new(&WEBHOOKS).faults(&faults).start(), Receiver::start().await);
    let webhook = json!({ "url": receiver.url, "events": ["comment.created"] });
    world.moderator().post("moderation/webhooks", webhook).await.ok(201);
    let ada = world.user(7, "Ada");
    let mut written = Vec::new();
    faults.start();
    for round in 0..30 {
        let comment = ada.write("posts/1", None, &round.to_string()).await;
        written.extend((comment.status == 201).then(|| comment.id()));
    }
    world.finish_jobs().await;
    faults.stop();
    world.finish_jobs().await;
    let mut sent: Vec<u64> =
        receiver.received().iter().map(|message| message.json()["data"]["id"].as_u64().unwrap()).collect();
    sent.retain(|id| written.contains(id));
    sent.sort_unstable();
    assert_eq!(sent, written, "after {} faults", faults.made());
    assert!(written.len() > 10 && faults.made() > 30, "{} comments and {} faults", written.len(), faults.made());
}

/// Returns the ids of all stored comments, by body.
async fn bodies(world: &World) -> BTreeMap<String, Vec<u64>> {
    let mut bodies: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for item in world.items().await.iter().filter(|item| item["sk"].as_s().is_ok_and(|sk| sk == "C")) {
        let id = item["i"].as_n().unwrap().parse().unwrap();
        bodies.entry(item["b"].as_s().unwrap().clone()).or_default().push(id);
    }
    bodies
}
