//! Bans through a comment, bans of networks, and rejections of banned writers' recent comments.

use std::time::Duration;

use http::header::USER_AGENT;
use serde_json::{Value, json};
use shared::domain::author::Author;
use shared::domain::ids::UserId;
use shared::domain::job::{Job, RejectRecent};
use shared::domain::time::Timestamp;
use shared::store::Reading;
use tests::{Actor, Faults, Setup, World, by_guest, reversed};

const GUESTS: [(&str, &str); 2] = [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true")];
const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");
const DAY: Duration = Duration::from_hours(24);

async fn ban(moderator: &Actor, comment: u64, body: Value) -> Value {
    moderator.put(&format!("comments/{comment}/ban"), body).await.ok(200).data().clone()
}

async fn banned(moderator: &Actor) -> Vec<Value> {
    moderator.get("moderation/users?banned=true").await.ok(200).rows().to_vec()
}

/// Returns the actions in the log, oldest first, with their comments and users.
async fn logged(moderator: &Actor) -> Vec<(String, Value, Value)> {
    let log = moderator.get("moderation/log?per_page=50").await.ok(200);
    let entry =
        |row: &Value| (row["action"].as_str().unwrap().to_owned(), row["comment_id"].clone(), row["user_id"].clone());
    log.rows().iter().rev().map(entry).collect()
}

/// Bans user 7. Returns the job that rejects the user's recent comments.
async fn ban_of_ada(world: &World, body: Value) -> RejectRecent {
    world.moderator().put("users/7/ban", body).await.ok(200);
    let user = world.store().user(UserId(7), Reading::Consistent).await.unwrap().unwrap();
    RejectRecent {
        author: Author::User(UserId(7)),
        moderator: UserId(1),
        name: "Mod".to_owned(),
        ban: user.ban_id.unwrap(),
        before: None,
        seen: 0,
        rejected: 0,
        again: false,
    }
}

#[tokio::test]
async fn a_banned_network_blocks_its_guests_but_not_its_members() {
    let world = World::with(&GUESTS);
    let (guest, ada, moderator) = (world.guest().from("203.0.113.7"), world.user(7, "Ada"), world.moderator());
    let (id, other) = (guest.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    let answer = ban(&moderator, id, json!({ "reason": "spam" })).await;
    let network = answer["network"].as_str().unwrap().to_owned();
    assert!(!network.contains("203"), "{network}");
    let until = "2050-01-03T03:04:05+00:00";
    assert_eq!(answer, json!({ "user_id": null, "network": network, "banned_until": until, "reason": "spam" }));
    for same in [guest.clone(), guest.clone().with(USER_AGENT, "another browser"), guest.clone().with_key("ada")] {
        same.write("posts/1", None, "z").await.refused(403, "comment_banned");
        same.like(other).await.refused(403, "comment_banned");
        same.report(other, "spam").await.refused(403, "comment_banned");
        let auth = same.get("ui").await.ok(200).data()["auth"].clone();
        assert_eq!((&auth["banned"], &auth["can_comment"]), (&json!(false), &json!(true)));
        assert_eq!(same.list("posts/1", "").await.ids(), [other, id]);
    }
    world.user(8, "Bob").from("203.0.113.7").comment("posts/1", "a member of the network").await;
    world.guest().from("203.0.113.8").comment("posts/1", "a neighbour").await;
    world.pass(DAY);
    guest.comment("posts/1", "the ban has ended").await;
    assert!(banned(&world.moderator()).await.is_empty());
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn moderators_see_which_comments_the_ban_of_a_network_concerns() {
    let world = World::with(&GUESTS);
    let moderator = world.moderator();
    let guest = |ip: &str| world.guest().from(ip);
    for (guest, body) in [(guest("203.0.113.7"), "one"), (guest("203.0.113.7"), "two"), (guest("203.0.113.8"), "three")]
    {
        guest.comment("posts/1", body).await;
    }
    world.user(7, "Ada").comment("posts/1", "four").await;
    world.wait_until_idle().await;
    let items = moderator.get("moderation/comments?state=all").await.ok(200);
    let networks: Vec<_> = items.rows().iter().map(|item| item["network"].clone()).collect();
    let [of_ada, third, second, first] = networks.as_slice() else { panic!("{networks:?}") };
    assert_eq!((of_ada, first == second, second == third), (&Value::Null, true, false));
    let id = items.rows()[3]["id"].as_u64().unwrap();
    assert_eq!(&ban(&moderator, id, json!({})).await["network"], first);
}

#[tokio::test]
async fn a_network_of_version_six_is_banned_as_a_whole() {
    let world = World::with(&GUESTS);
    let id = world.guest().from("2001:db8:1:2::1").comment("posts/1", "x").await;
    ban(&world.moderator(), id, json!({})).await;
    let neighbour = world.guest().from("2001:db8:1:2:ffff::9");
    neighbour.write("posts/1", None, "y").await.refused(403, "comment_banned");
    world.guest().from("2001:db8:1:3::1").comment("posts/1", "y").await;
}

#[tokio::test]
async fn moderators_list_banned_networks_and_lift_their_bans() {
    let world = World::with(&GUESTS);
    let (guest, moderator) = (world.guest(), world.moderator());
    let id = guest.comment("posts/1", "x").await;
    moderator.put("users/99/ban", json!({})).await.ok(200);
    let until = "2050-01-20T00:00:00+00:00";
    let network = ban(&moderator, id, json!({ "until": until, "reason": "spam" })).await["network"].clone();
    let listed = banned(&moderator).await;
    let expected = json!({
        "id": null, "name": "Grace", "avatar": "", "banned": true, "banned_until": until, "reason": "spam",
        "network": network, "comment_id": id,
    });
    assert_eq!((&listed[0], &listed[1]["id"], listed.len()), (&expected, &json!(99), 2));
    let path = format!("moderation/networks/{}/ban", network.as_str().unwrap());
    world.user(7, "Ada").delete(&path).await.refused(403, "forbidden");
    for _ in 0..2 {
        moderator.delete(&path).await.ok(204);
    }
    for unknown in ["unknown", &"x".repeat(22), &"x".repeat(3_000), "a%00b"] {
        moderator.delete(&format!("moderation/networks/{unknown}/ban")).await.ok(204);
    }
    guest.comment("posts/1", "again").await;
    assert_eq!(banned(&moderator).await.len(), 1);
    let entry = |action: &str, comment: Value, user: Value| (action.to_owned(), comment, user);
    let network = |action: &str| entry(action, json!(id), Value::Null);
    assert_eq!(logged(&moderator).await, [entry("ban", Value::Null, json!(99)), network("ban"), network("unban")]);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn the_same_ban_again_changes_nothing_and_another_one_replaces_it() {
    let world = World::with(&GUESTS);
    let moderator = world.moderator();
    let id = world.guest().comment("posts/1", "x").await;
    for reason in ["one", "one", "two"] {
        ban(&moderator, id, json!({ "until": "2050-01-20T00:00:00+00:00", "reason": reason })).await;
    }
    assert_eq!(logged(&moderator).await.len(), 2);
    let listed = banned(&moderator).await;
    assert_eq!((&listed[0]["reason"], listed.len()), (&json!("two"), 1));
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn the_member_who_wrote_a_comment_is_banned_as_a_user() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    let answer = ban(&moderator, id, json!({})).await;
    assert_eq!(answer, json!({ "user_id": 7, "network": null, "banned_until": null, "reason": null }));
    ada.write("posts/1", None, "y").await.refused(403, "comment_banned");
    let own = moderator.comment("posts/1", "mine").await;
    moderator.put(&format!("comments/{own}/ban"), json!({})).await.refused(403, "forbidden");
    ada.put(&format!("comments/{own}/ban"), json!({})).await.refused(403, "comment_banned");
    world.user(8, "Bob").put(&format!("comments/{own}/ban"), json!({})).await.refused(403, "forbidden");
    moderator.put("comments/1/ban", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_ban_that_is_not_valid_is_refused() {
    let world = World::with(&GUESTS);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let (of_guest, of_ada) = (world.guest().comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    let path = format!("comments/{of_guest}/ban");
    for until in ["2050-02-01T03:04:06+00:00", "2050-01-02T03:04:05+00:00", "tomorrow"] {
        moderator.put(&path, json!({ "until": until })).await.invalid("until");
    }
    moderator.put(&path, json!({ "until": "2050-02-01T03:04:05+00:00" })).await.ok(200);
    for path in [path, format!("comments/{of_ada}/ban"), "users/7/ban".to_owned()] {
        moderator.put(&path, json!({ "reject_recent": "yes" })).await.invalid("reject_recent");
    }
    // Simulates a guest's comment from before networks were stored with comments.
    let old = world.guest().comment("posts/1", "z").await;
    world.set_of_comment(old, "nw", None).await;
    moderator.put(&format!("comments/{old}/ban"), json!({})).await.invalid("comment");
}

#[tokio::test]
async fn a_ban_rejects_pending_comments_and_comments_of_the_last_week() {
    let world = World::with(&GUESTS);
    let held = world.again(&[&GUESTS[..], &[HELD]].concat());
    let old = world.user(7, "Ada").comment("posts/1", "old").await;
    let waits = held.user(7, "Ada").comment("posts/1", "waits").await;
    world.pass(8 * DAY);
    let (writer, moderator) = (world.user(7, "Ada"), world.moderator());
    let rejected = writer.comment("posts/1", "rejected before").await;
    moderator.reject(rejected, "off_topic", "elsewhere").await.ok(200);
    let recent = writer.comment("posts/2", "recent").await;
    let other = world.user(8, "Bob").comment("posts/1", "of another").await;
    moderator.put("users/7/ban", json!({ "reject_recent": true })).await.ok(200);
    world.finish_jobs().await;
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [other, old]);
    assert_eq!(moderator.queue("rejected").await, [recent, rejected, waits]);
    assert!(moderator.queue("pending").await.is_empty());
    let review = writer.get(&format!("comments/{rejected}")).await.ok(200).data()["review"].clone();
    assert_eq!(review["reason"], "off_topic");
    let review = writer.get(&format!("comments/{recent}")).await.ok(200).data()["review"].clone();
    assert_eq!((&review["reason"], &review["note"]), (&Value::Null, &Value::Null));
    let log = logged(&moderator).await;
    let count = |action: &str| log.iter().filter(|(logged, ..)| logged == action).count();
    assert_eq!((count("reject"), count("ban")), (3, 1));
    // Lifting a ban restores nothing, and an identical ban rejects comments again.
    moderator.delete("users/7/ban").await.ok(204);
    let later = writer.comment("posts/2", "later").await;
    moderator.put("users/7/ban", json!({})).await.ok(200);
    moderator.put("users/7/ban", json!({ "reject_recent": true })).await.ok(200);
    world.finish_jobs().await;
    assert_eq!(moderator.queue("rejected").await, [later, recent, rejected, waits]);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_ban_of_a_network_rejects_what_all_its_guests_wrote() {
    let world = World::with(&GUESTS);
    let (guest, moderator) = (world.guest(), world.moderator());
    let mut ids = Vec::new();
    for browser in ["one", "two", "three"] {
        let same = guest.clone().with(USER_AGENT, browser);
        ids.insert(0, same.post("posts/1/comments", by_guest(browser)).await.ok(201).id());
    }
    ids.insert(0, guest.clone().with_key("ada").comment("posts/1", "with a key").await);
    let parent = world.guest().comment("posts/1", "of another network").await;
    ids.insert(0, guest.reply("posts/1", parent, "a reply").await);
    ban(&moderator, ids[0], json!({ "reject_recent": true })).await;
    world.finish_jobs().await;
    assert_eq!(moderator.queue("rejected").await, ids);
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [parent]);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_job_that_dies_at_any_step_rejects_everything_once_in_the_end() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let ids = reversed(&ada.write_many("posts/1", None, 12).await);
    let store = world.store();
    // Each run of a job takes one step. Each job runs twice, like a job whose message is redelivered.
    let mut left = Some(Job::RejectRecent(ban_of_ada(&world, json!({})).await));
    while let Some(job) = left {
        let now = Timestamp(world.now().0 + 30_000);
        store.run_job(job.clone(), now, tokio::time::Instant::now()).await.unwrap();
        left = store.run_job(job, now, tokio::time::Instant::now()).await.unwrap().map(|rest| rest.job);
    }
    assert_eq!(moderator.queue("rejected").await, ids);
    assert_eq!(logged(&moderator).await.len(), 13);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_ban_rejects_a_thousand_comments_and_the_next_one_continues_with_older_ones() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let ids = reversed(&ada.write_many("posts/1", None, 5).await);
    world.pass(DAY);
    let store = world.store();
    for (reason, expected) in ["a", "b", "c"].into_iter().zip([&ids[..2], &ids[..4], &ids]) {
        // Each job begins two rejections below the maximum of 1,000, and is delivered twice.
        world.pass(Duration::from_secs(1));
        let walk = ban_of_ada(&world, json!({ "reason": reason })).await;
        for _ in 0..2 {
            let mut left = Some(Job::RejectRecent(RejectRecent { seen: 998, rejected: 998, ..walk.clone() }));
            while let Some(job) = left {
                let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
                left = store.run_job(job, world.now(), deadline).await.unwrap().map(|rest| rest.job);
            }
            assert_eq!(world.moderator().queue("rejected").await, expected);
        }
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_moderators_decision_after_a_ban_is_kept() {
    let world = World::with(&GUESTS);
    let moderator = world.moderator();
    for (writer, thread) in [(world.user(7, "Ada"), "posts/1"), (world.guest().with_key("bob"), "posts/2")] {
        let ids = reversed(&writer.write_many(thread, None, 3).await);
        ban(&moderator, ids[0], json!({ "reject_recent": true })).await;
        world.wait_until_idle().await;
        assert!(world.guest().list(thread, "").await.ids().is_empty());
        moderator.judge(ids[1], "approve").await.ok(200);
        world.finish_jobs().await;
        assert_eq!(world.guest().list(thread, "").await.ids(), [ids[1]]);
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn approving_a_visible_comment_protects_it_from_an_earlier_ban() {
    let faults = Faults::new(22);
    let world = Setup::new(&GUESTS).faults(&faults).start();
    let moderator = world.moderator();
    let writers = [
        (world.user(7, "Ada"), "posts/1", Duration::ZERO),
        (world.guest().with_key("bob"), "posts/2", Duration::ZERO),
        (world.user(8, "Cy"), "posts/3", Duration::from_secs(20)),
    ];
    for (writer, thread, set_back) in writers {
        let id = writer.comment(thread, "x").await;
        world.wait_until_idle().await;
        world.pass(set_back);
        let delayed = faults.delay("TransactWriteItems", "Q#rejected");
        ban(&moderator, id, json!({ "reject_recent": true })).await;
        let entries = logged(&moderator).await.len();
        let approval = async {
            world.turn_back(set_back);
            moderator.judge(id, "approve").await.ok(200);
        };
        delayed.during(approval).await;
        world.finish_jobs().await;
        assert_eq!(world.guest().list(thread, "").await.ids(), [id]);
        // The delayed rejection changed nothing.
        assert_eq!(logged(&moderator).await.len(), entries);
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn approvals_after_a_ban_stand_although_the_clock_was_set_back() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    world.pass(Duration::from_secs(20));
    let walk = Job::RejectRecent(ban_of_ada(&world, json!({ "reject_recent": true })).await);
    world.wait_until_idle().await;
    world.turn_back(Duration::from_secs(20));
    moderator.judge(id, "approve").await.ok(200);
    world.send_job(&walk).await;
    world.finish_jobs().await;
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [id]);
}

#[tokio::test]
async fn a_ban_that_is_lifted_rejects_nothing_more_even_when_another_one_follows() {
    let world = World::with(&GUESTS);
    let moderator = world.moderator();
    for (writer, thread) in [(world.user(7, "Ada"), "posts/1"), (world.guest().with_key("bob"), "posts/2")] {
        let ids = reversed(&writer.write_many(thread, None, 3).await);
        let network = ban(&moderator, ids[0], json!({ "reject_recent": true })).await["network"].clone();
        world.wait_until_idle().await;
        world.pass(Duration::from_secs(3));
        match network.as_str() {
            Some(network) => moderator.delete(&format!("moderation/networks/{network}/ban")).await.ok(204),
            None => moderator.delete("users/7/ban").await.ok(204),
        };
        let after = writer.comment(thread, "after the ban").await;
        ban(&moderator, after, json!({})).await;
        world.finish_jobs().await;
        assert_eq!(world.guest().list(thread, "").await.ids(), [after]);
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_rejection_job_continues_after_another_ban_replaces_its_own() {
    let world = World::with(&GUESTS);
    let moderator = world.moderator();
    for (writer, thread) in [(world.user(7, "Ada"), "posts/1"), (world.guest().with_key("bob"), "posts/2")] {
        let id = writer.comment(thread, "before").await;
        ban(&moderator, id, json!({ "reject_recent": true })).await;
        for reason in ["spam", "more spam"] {
            ban(&moderator, id, json!({ "reason": reason })).await;
        }
        world.finish_jobs().await;
        assert_eq!(world.guest().list(thread, "").await.ids(), [0; 0]);
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn comments_written_after_the_end_of_a_short_ban_stay() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let before = ada.comment("posts/1", "before").await;
    let until = "2050-01-02T03:04:15+00:00";
    moderator.put("users/7/ban", json!({ "until": until, "reject_recent": true })).await.ok(200);
    world.pass(Duration::from_secs(10));
    let after = ada.comment("posts/1", "after").await;
    world.finish_jobs().await;
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [after]);
    assert_eq!(moderator.queue("rejected").await, [before]);
}

#[tokio::test]
async fn a_redelivered_rejection_job_overturns_nothing() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    let walk = Job::RejectRecent(ban_of_ada(&world, json!({ "reject_recent": true })).await);
    world.finish_jobs().await;
    moderator.judge(id, "approve").await.ok(200);
    world.send_job(&walk).await;
    world.finish_jobs().await;
    moderator.delete("users/7/ban").await.ok(204);
    let later = ada.comment("posts/1", "later").await;
    world.send_job(&walk).await;
    moderator.put("users/7/ban", json!({})).await.ok(200);
    world.send_job(&walk).await;
    world.finish_jobs().await;
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [later, id]);
}

#[tokio::test]
async fn a_delayed_rejection_is_dropped_if_the_ban_ends_or_the_comment_is_approved() {
    for ends in [true, false] {
        let faults = Faults::new(21);
        let world = Setup::new(&[&GUESTS[..], &[HELD]].concat()).faults(&faults).start();
        let moderator = world.moderator();
        for writer in [world.user(7, "Ada"), world.guest().with_key("bob")] {
            let id = writer.comment("posts/1", "x").await;
            world.wait_until_idle().await;
            let delayed = faults.delay("TransactWriteItems", "Q#pending");
            let network = ban(&moderator, id, json!({ "reject_recent": true })).await["network"].clone();
            let meanwhile = async {
                match network.as_str() {
                    _ if !ends => moderator.judge(id, "approve").await.ok(200),
                    Some(network) => moderator.delete(&format!("moderation/networks/{network}/ban")).await.ok(204),
                    None => moderator.delete("users/7/ban").await.ok(204),
                };
            };
            delayed.during(meanwhile).await;
            world.finish_jobs().await;
            assert_eq!(moderator.queue("pending").await.len(), usize::from(ends), "{network}");
            assert!(moderator.queue("rejected").await.is_empty(), "{network}");
            if ends {
                moderator.judge(id, "approve").await.ok(200);
            }
        }
        assert_eq!(world.findings().await, [""; 0]);
    }
}
