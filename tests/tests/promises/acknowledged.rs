//! Acknowledged writes survive faults: replies outlive the deletions around them, bans reject the right comments, codes
//! sign in once, and erasures and imports lose no concurrent writes by others. `FAULTS_SECONDS` lengthens the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use shared::domain::ids::UserId;
use shared::domain::time::Clock;
use shared::store::{Reading, keys};
use tests::{Actor, Faults, SIGN_IN, Setup, TestResponse, World, code};

use crate::{moved, trust};

const WRITERS: u64 = 8;

/// Returns the number of comments that each writer tries to post.
fn rounds() -> usize {
    let seconds: Option<usize> = tests::setting("FAULTS_SECONDS").and_then(|seconds| seconds.parse().ok());
    seconds.map_or(8, |seconds| 8 * seconds)
}

/// Retries until the table accepts the request, and returns the response, which must have one of these statuses. A
/// request that was refused because of a fault may have been carried out.
async fn until_taken(actor: &Actor, method: Method, path: &str, body: Value, statuses: &[u16]) -> TestResponse {
    loop {
        let answer = actor.send_json(method.clone(), path, body.clone()).await;
        if answer.status != 503 {
            assert!(statuses.contains(&answer.status), "{path}: {} {:#}", answer.status, answer.json);
            return answer;
        }
    }
}

async fn written(actor: &Actor, parent: Option<u64>, body: &str) -> TestResponse {
    let comment = json!({ "body": body, "parent_id": parent });
    until_taken(actor, Method::POST, "posts/1/comments", comment, &[201, 422]).await
}

/// The responses that a thread's writers got.
#[derive(Default)]
struct Known {
    /// Acknowledged comments and their parents.
    created: BTreeMap<u64, Option<u64>>,
    /// Comments whose deletion was requested, whatever the response.
    deleting: BTreeSet<u64>,
    /// Comments whose deletion was acknowledged.
    deleted: BTreeSet<u64>,
    /// Comments whose rejection was requested, whatever the response. They may be deleted with a comment above them.
    rejecting: BTreeSet<u64>,
}

impl Known {
    /// Whether the comment must still exist: no one requested its deletion, or the rejection of it or of a comment
    /// above it.
    fn must_be_there(&self, id: u64) -> bool {
        let path: Vec<u64> = std::iter::successors(Some(id), |id| self.created.get(id).copied().flatten()).collect();
        !self.deleting.contains(&id) && path.iter().all(|id| !self.rejecting.contains(id))
    }

    fn pick(&self, turn: usize) -> u64 {
        *self.created.keys().nth(turn % self.created.len()).unwrap()
    }
}

/// Lets one writer reply to anyone's comments and delete their own, and sometimes has a moderator reject and approve a
/// comment.
async fn write_and_delete(world: &World, number: u64, known: &Mutex<Known>) {
    let (writer, moderator) = (world.user(100 + number, &format!("Writer {number}")), world.moderator());
    let mut own = Vec::new();
    for round in 0..rounds() {
        let turn = round * 7 + usize::try_from(number).unwrap() * 5;
        let parent = known.lock().unwrap().pick(turn);
        let answer = written(&writer, Some(parent), &format!("{number} {round}")).await;
        if answer.status == 201 {
            own.push(answer.id());
            known.lock().unwrap().created.insert(answer.id(), Some(parent));
        }
        if turn % 9 == 4 {
            let id = known.lock().unwrap().pick(turn / 2);
            known.lock().unwrap().rejecting.insert(id);
            for verdict in ["reject", "approve"] {
                until_taken(&moderator, Method::POST, &format!("comments/{id}/{verdict}"), json!({}), &[200, 404])
                    .await;
            }
        }
        if !own.is_empty() && round % 2 == 1 {
            let id = own.remove(turn % own.len());
            known.lock().unwrap().deleting.insert(id);
            let path = format!("comments/{id}");
            if until_taken(&writer, Method::DELETE, &path, Value::Null, &[204, 404]).await.status == 204 {
                known.lock().unwrap().deleted.insert(id);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_acknowledged_reply_outlives_the_deletions_around_it() {
    let faults = Faults::new(31);
    let world = crate::faulty(&faults, &[]);
    let first = world.user(1, "Ada").comment("posts/1", "the first").await;
    let known = Mutex::new(Known { created: [(first, None)].into(), ..Known::default() });
    faults.start();
    join_all((0..WRITERS).map(|number| write_and_delete(&world, number, &known))).await;
    faults.stop();
    world.finish_jobs().await;
    let (known, moderator) = (known.into_inner().unwrap(), world.moderator());
    assert!(faults.made() > 50 && known.deleted.len() > 10, "{} faults, {}", faults.made(), known.deleted.len());
    for id in known.created.keys() {
        let answer = moderator.get(&format!("comments/{id}")).await;
        let is_there = answer.status == 200 && answer.data().get("is_deleted").is_none();
        assert!(is_there || !known.must_be_there(*id), "{id} is lost: {:#}", answer.json);
        assert!(!is_there || !known.deleted.contains(id), "{id} is there: {:#}", answer.json);
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_ban_rejects_earlier_comments_but_none_decided_or_written_since_then() {
    let faults = Faults::new(32);
    let world = crate::faulty(&faults, &[("SVC_REQUIRE_APPROVAL", "new")]);
    let moderator = world.moderator();
    // Each writer has a separate network.
    let writers = [
        (world.user(7, "Ada"), false),
        (world.user(8, "Bob"), true),
        (world.guest().with_key("cem"), false),
        (world.guest().with_key("dee"), true),
    ];
    faults.start();
    let banned = join_all(writers.map(|(writer, is_lifted)| (writer, is_lifted, world.moderator())).into_iter().map(
        |(writer, is_lifted, moderator)| async move {
            let mut ids = Vec::new();
            for n in 0..5 {
                let comment =
                    json!({ "body": n.to_string(), "guest_name": "Guest", "guest_email": "guest@example.org" });
                let writer = writer.clone().keyed(&n.to_string());
                ids.push(until_taken(&writer, Method::POST, "posts/1/comments", comment, &[201]).await.id());
            }
            // The writer is trusted from now on, so later comments are public.
            until_taken(&moderator, Method::POST, &format!("comments/{}/approve", ids[0]), json!({}), &[200]).await;
            let path = format!("comments/{}/ban", ids[0]);
            let ban = until_taken(&moderator, Method::PUT, &path, json!({ "reject_recent": true }), &[200]).await;
            (writer, ids, ban.data()["network"].clone(), ban.data()["user_id"].clone(), is_lifted)
        },
    ))
    .await;
    faults.stop();
    world.wait_until_idle().await;
    let left = async || {
        let mut left: BTreeSet<u64> = world.guest().list("posts/1", "per_page=50").await.ids().into_iter().collect();
        // Uses a new token, because failed jobs are retried after the old token has expired.
        left.extend(world.moderator().queue("pending").await);
        left
    };
    let mut later = Vec::new();
    for (writer, ids, network, user, is_lifted) in &banned {
        moderator.judge(ids[1], "approve").await.ok(200);
        if *is_lifted {
            let path = match network.as_str() {
                Some(network) => format!("moderation/networks/{network}/ban"),
                None => format!("users/{user}/ban"),
            };
            moderator.delete(&path).await.ok(204);
            later.push(writer.comment("posts/1", "later").await);
        }
    }
    let mut expected = left().await;
    for (_, ids, ..) in banned.iter().filter(|(.., is_lifted)| !is_lifted) {
        // A walk that failed continues, because the ban is still in force.
        expected.retain(|id| *id == ids[1] || !ids.contains(id));
    }
    // Runs the second walks over recent comments, and first walks that failed or are redelivered.
    faults.start();
    world.finish_jobs().await;
    faults.stop();
    world.finish_jobs().await;
    assert!(faults.made() > 10, "{}", faults.made());
    let approved = banned.iter().map(|(_, ids, ..)| ids[1]);
    assert!(approved.chain(later).all(|id| expected.contains(&id)));
    assert_eq!(left().await, expected);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_code_signs_in_once_and_its_session_continues() {
    let faults = Faults::new(33);
    let world = Setup::new(&SIGN_IN).faults(&faults).start();
    let mut sessions = Vec::new();
    for n in 0..6 {
        let (actor, email) = (world.guest(), format!("reader{n}@sign-in.example"));
        let session = loop {
            faults.start();
            let started = until_taken(&actor, Method::POST, "sign_in", json!({ "email": email }), &[201]).await;
            faults.stop();
            world.finish_jobs().await;
            let mail = world.mails().into_iter().rfind(|mail| mail.to == email).expect("a mail");
            let right = json!({ "flow": started.data()["flow"], "code": code(&mail) });
            faults.start();
            let finished = until_taken(&actor, Method::POST, "sign_in/finish", right.clone(), &[200, 422]).await;
            faults.stop();
            actor.post("sign_in/finish", right).await.refused(422, "sign_in_failed");
            // A 422 means that an attempt was carried out but its response was lost.
            if finished.status == 200 {
                break finished;
            }
        };
        sessions.push((actor, session.data()["refresh_token"].clone()));
    }
    faults.start();
    for (actor, token) in sessions {
        let body = json!({ "refresh_token": token });
        let next = until_taken(&actor, Method::POST, "sign_in/refresh", body.clone(), &[200]).await;
        let again = until_taken(&actor, Method::POST, "sign_in/refresh", body, &[200]).await;
        assert_eq!(next.data()["refresh_token"], again.data()["refresh_token"]);
    }
    assert!(faults.made() > 5, "{}", faults.made());
}

#[tokio::test]
async fn a_sign_in_is_started_once_although_a_response_of_the_table_got_lost() {
    let faults = Faults::new(34);
    let world = Setup::new(&SIGN_IN).faults(&faults).start();
    let (guest, start) = (world.guest(), json!({ "email": "ada@sign-in.example" }));
    // Loses the response to the next request for the address's items.
    faults.lose_answer("O#");
    let flow = guest.post("sign_in", start.clone()).await.ok(201).data()["flow"].clone();
    world.finish_jobs().await;
    assert_eq!((faults.made(), world.mails().len()), (1, 1));
    let right = code(&world.mails()[0]);
    let wrong = format!("{:08}", (right.parse::<u32>().unwrap() + 1) % 100_000_000);
    // A network may have two unused codes.
    guest.post("sign_in", start).await.ok(201);
    world.finish_jobs().await;
    assert_eq!(world.mails().len(), 2);
    for _ in 0..5 {
        guest.post("sign_in/finish", json!({ "flow": flow, "code": wrong })).await.refused(422, "sign_in_failed");
    }
    guest.post("sign_in/finish", json!({ "flow": flow, "code": right })).await.refused(422, "sign_in_failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replies_to_a_person_who_is_being_erased_are_kept() {
    let faults = Faults::new(35);
    let world = crate::faulty(&faults, &[]);
    let eve = world.user(9, "Eve");
    let mut of_eve = Vec::new();
    for n in 0..4 {
        let top = eve.comment("posts/1", &format!("of Eve {n}")).await;
        of_eve.extend([top, eve.reply("posts/1", top, "of Eve").await]);
    }
    world.wait_until_idle().await;
    let kept = Mutex::new(BTreeSet::new());
    faults.start();
    let answering = (0..4).map(|number| {
        let (writer, of_eve, kept) = (world.user(100 + number, "Writer"), &of_eve, &kept);
        async move {
            for parent in of_eve {
                let answer = written(&writer, Some(*parent), "a reply").await;
                if answer.status == 201 {
                    kept.lock().unwrap().insert(answer.id());
                }
            }
        }
    });
    tokio::join!(join_all(answering), trust::erase(&world, UserId(9)));
    faults.stop();
    world.finish_jobs().await;
    for id in kept.into_inner().unwrap() {
        world.guest().get(&format!("comments/{id}")).await.ok(200);
    }
    assert!(
        !world
            .items()
            .await
            .iter()
            .any(|item| item.get("b").is_some_and(|body| format!("{body:?}").contains("of Eve")))
    );
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_import_that_fails_repeatedly_is_finished_while_others_write() {
    let source = crate::world(&[]);
    let ada = source.user(7, "Ada");
    let mut imported = BTreeSet::new();
    for n in 0..6 {
        let top = ada.comment("posts/1", &format!("imported {n}")).await;
        let reply = source.guest().reply("posts/1", top, "an imported reply").await;
        imported.extend([top, reply]);
        if n % 2 == 0 {
            ada.remove(top).await.ok(204);
        }
    }
    source.finish_jobs().await;
    let file = moved::export(&source).await;
    let faults = Faults::new(36);
    let world = crate::faulty(&faults, &[]);
    let writer = world.user(8, "Bob");
    let mut own = BTreeSet::new();
    faults.start();
    let store = world.store_behind(&faults);
    // The table accepts an import only if it is empty or the import has begun, so the import begins before the writes.
    while world.store().one_item(&keys::native_import(), Reading::Consistent).await.unwrap().is_none() {
        let _ = tests::import(&store, &file, 3, Clock::system()).await;
    }
    let importing = async { while tests::import(&store, &file, 3, Clock::system()).await.is_err() {} };
    let writing = async {
        for n in 0..10 {
            // Without the key, retrying a request that was carried out but refused would create a second comment.
            let once = writer.clone().keyed(&format!("comment {n}"));
            own.insert(written(&once, None, &n.to_string()).await.id());
        }
    };
    tokio::join!(importing, writing);
    faults.stop();
    world.finish_jobs().await;
    assert!(faults.made() > 10, "{}", faults.made());
    let moderator = world.moderator();
    for id in imported.iter().chain(&own) {
        moderator.get(&format!("comments/{id}")).await.ok(200);
    }
    assert_eq!(world.guest().list("posts/1", "").await.total(), 6 + own.len() as u64);
    assert_eq!(world.findings().await, [""; 0]);
}
