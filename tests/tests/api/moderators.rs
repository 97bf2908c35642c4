//! The moderators' lists: queue items, a user's comments, users, and banned users.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{Actor, TestResponse, World, reversed, seen};

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");
const DOUBTS: (&str, &str) = ("SVC_SPAM_REVIEW", "crypto");

async fn item(world: &World, state: &str, id: u64) -> Value {
    let queue = world.moderator().get(&format!("moderation/comments?state={state}&per_page=50")).await.ok(200);
    queue.find(id).unwrap_or_else(|| panic!("{id} is not in {:#}", queue.json))
}

async fn written(world: &World, user: u64) -> Vec<u64> {
    world.moderator().get(&format!("users/{user}/comments?per_page=50")).await.ok(200).ids()
}

async fn ban(moderator: &Actor, user: u64, body: Value) {
    moderator.put(&format!("users/{user}/ban"), body).await.ok(200);
}

async fn banned(world: &World) -> TestResponse {
    world.moderator().get("moderation/users?banned=true&per_page=50").await.ok(200)
}

#[tokio::test]
async fn an_item_has_its_record_and_the_comment_that_it_replies_to() {
    let world = World::with(&[HELD]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let parent = world.again(&[]).user(8, "Bob").comment("posts/1", "question").await;
    let (reply, top) = (ada.reply("posts/1", parent, "answer").await, ada.comment("posts/2", "x").await);
    moderator.put("posts/1", json!({ "title": "A post", "url": "https://host.test/1" })).await.ok(200);
    let row = item(&world, "pending", reply).await;
    let record =
        json!({ "type": "posts", "id": "1", "title": "A post", "url": "https://host.test/1", "closed": false });
    assert_eq!(row["thread"], record);
    assert_eq!(row["parent"], moderator.see("posts/1", parent).await);
    let row = item(&world, "pending", top).await;
    let record = json!({ "type": "posts", "id": "2", "title": null, "url": null, "closed": false });
    assert_eq!(row["thread"], record);
    assert_eq!(row["parent"], Value::Null);
}

#[tokio::test]
async fn the_comment_that_an_item_replies_to_is_shown_though_it_is_hidden() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let top = ada.comment("posts/1", "top").await;
    let parent = ada.reply("posts/1", top, "parent").await;
    let reply = ada.reply("posts/1", parent, "reply").await;
    world.user(8, "Bob").report(reply, "spam").await.ok(201);
    for hidden in [top, parent] {
        moderator.judge(hidden, "reject").await.ok(200);
        let row = item(&world, "reported", reply).await;
        assert_eq!((&row["parent"]["id"], &row["parent"]["replies"]), (&json!(parent), &json!([])));
    }
    assert_eq!(written(&world, 7).await, [reply, parent, top]);
}

#[tokio::test]
async fn an_item_says_why_it_is_held() {
    let (open, held) = (World::with(&[DOUBTS]), World::with(&[DOUBTS, HELD]));
    let spam = open.user(7, "Ada").comment("posts/1", "crypto").await;
    assert_eq!(item(&open, "pending", spam).await["held_for"], "spam");
    let ada = held.user(7, "Ada");
    let (approval, both) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "crypto").await);
    assert_eq!(item(&held, "pending", approval).await["held_for"], "approval");
    assert_eq!(item(&held, "pending", both).await["held_for"], "spam");
    // One comment's new text is doubtful. The other comment's previous text was doubtful.
    ada.edit(approval, "crypto").await.ok(200);
    ada.edit(both, "x").await.ok(200);
    for id in [approval, both] {
        assert_eq!(item(&held, "pending", id).await["held_for"], "spam");
    }
    held.moderator().judge(approval, "approve").await.ok(200);
    ada.edit(approval, "more crypto").await.ok(200);
    assert_eq!(item(&held, "pending", approval).await["held_for"], "edit");
}

#[tokio::test]
async fn a_comment_that_is_not_held_has_no_reasons() {
    let world = World::with(&[DOUBTS]);
    let ada = world.user(7, "Ada");
    let (spam, fine) = (ada.comment("posts/1", "crypto").await, ada.comment("posts/1", "x").await);
    world.moderator().judge(spam, "reject").await.ok(200);
    assert_eq!(item(&world, "rejected", spam).await["held_for"], Value::Null);
    world.user(8, "Bob").report(fine, "spam").await.ok(201);
    assert_eq!(item(&world, "reported", fine).await["held_for"], Value::Null);
}

#[tokio::test]
async fn an_item_has_the_newest_three_reports_newest_first() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let details = "ß".repeat(500);
    for (user, reason, details) in
        [(20, "spam", ""), (21, "offensive", ""), (22, "other", "sells things"), (23, "other", &*details)]
    {
        let body = json!({ "reason": reason, "additional_details": details });
        world.user(user, "Bob").post(&format!("comments/{id}/report"), body).await.ok(201);
        world.pass(Duration::from_secs(1));
    }
    let row = item(&world, "reported", id).await;
    let at = |second: u32| format!("2050-01-02T03:04:0{second}+00:00");
    let expected = json!([
        { "reason": format!("other: {}…", "ß".repeat(92)), "created_at": at(8) },
        { "reason": "other: sells things", "created_at": at(7) },
        { "reason": "offensive", "created_at": at(6) },
    ]);
    assert_eq!((&row["reports"], &row["reports_count"]), (&expected, &json!(4)));
    // Reports remain, whatever the decision on them.
    world.moderator().judge(id, "reject").await.ok(200);
    assert_eq!(item(&world, "rejected", id).await["reports"], expected);
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_users_comments_are_listed_in_every_state_newest_first() {
    let world = World::with(&[DOUBTS]);
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let top = bob.comment("posts/1", "top").await;
    let mut ids = vec![ada.comment("posts/2", "x").await, ada.reply("posts/1", top, "crypto").await];
    ids.extend(ada.write_many("posts/1", top, 4).await);
    moderator.judge(ids[2], "reject").await.ok(200);
    for per_page in 1..=4 {
        let path = format!("users/7/comments?per_page={per_page}&cursor=");
        assert_eq!(moderator.walk_both_ways(&path).await, reversed(&ids), "{per_page}");
    }
    let page = moderator.get("users/7/comments?per_page=50").await.ok(200);
    assert_eq!(page.find(ids[1]).unwrap(), item(&world, "pending", ids[1]).await);
    assert_eq!(page.find(ids[5]).unwrap()["parent"]["id"], top);
    assert_eq!(written(&world, 8).await, [top]);
}

#[tokio::test]
async fn deleted_comments_are_not_among_a_users_comments() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let top = bob.comment("posts/1", "top").await;
    let (below, gone, kept) =
        (ada.reply("posts/1", top, "x").await, ada.comment("posts/1", "y").await, ada.comment("posts/1", "z").await);
    assert_eq!(written(&world, 7).await, [kept, gone, below]);
    ada.remove(gone).await.ok(204);
    bob.remove(top).await.ok(204);
    // Only a placeholder of the top comment remains.
    for _ in 0..2 {
        assert_eq!((written(&world, 7).await, written(&world, 8).await), (vec![kept, below], vec![]));
        world.wait_until_idle().await;
    }
}

#[tokio::test]
async fn an_unknown_user_has_no_comments_and_an_impossible_user_id_is_404() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    ada.comment("posts/1", "x").await;
    ada.comment("posts/1", "y").await;
    assert!(written(&world, 99).await.is_empty());
    for id in ["0", "x", "007", "9007199254740992"] {
        moderator.get(&format!("users/{id}/comments")).await.refused(404, "not_found");
    }
    let page = moderator.get("users/7/comments?per_page=1&cursor=").await.ok(200);
    let cursor = page.json["meta"]["next_cursor"].as_str().unwrap();
    moderator.get(&format!("users/8/comments?cursor={cursor}")).await.invalid("cursor");
    moderator.get("users/7/comments?per_page=0").await.invalid("per_page");
    // `users` is not a commentable type.
    let refused = ada.post("users/7/comments", json!({ "body": "x" })).await.refused(404, "not_found");
    assert_eq!(refused.json["message"], "Unknown commentable type.");
    let refused = ada.put("users/7/comments", json!({})).await.refused(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), "GET, HEAD, POST");
}

#[tokio::test]
async fn moderators_find_up_to_twenty_users_and_banned_ones_too() {
    let world = World::new();
    let moderator = world.moderator();
    for id in 100..125 {
        world.user(id, &format!("Dan {id}")).get("ui").await.ok(200);
    }
    ban(&moderator, 100, json!({ "until": "2050-01-02T03:05:05+00:00", "reason": "spam" })).await;
    let found = moderator.get("moderation/users?q=DAN").await.ok(200);
    assert_eq!((found.rows().len(), found.json.as_object().unwrap().len()), (20, 1));
    let dan = |banned: bool, until: Value, reason: Value| {
        json!([{
            "id": 100, "name": "Dan 100", "avatar": "",
            "banned": banned, "banned_until": until, "reason": reason,
        }])
    };
    let search = async || moderator.get("moderation/users?q=dan%20100").await.ok(200).data().clone();
    assert_eq!(search().await, dan(true, json!("2050-01-02T03:05:05+00:00"), json!("spam")));
    assert!(moderator.get("users?q=dan%20100").await.ok(200).rows().is_empty());
    world.pass(Duration::from_mins(1));
    assert_eq!(search().await, dan(false, Value::Null, Value::Null));
}

#[tokio::test]
async fn users_are_searched_or_listed_and_not_both() {
    let moderator = World::new().moderator();
    for query in ["", "q=a&banned=true", &format!("q={}", "a".repeat(51)), "q="] {
        moderator.get(&format!("moderation/users?{query}")).await.invalid("q");
    }
    for value in ["", "false", "1"] {
        moderator.get(&format!("moderation/users?banned={value}")).await.invalid("banned");
    }
    moderator.get("moderation/users?banned=true&cursor=x").await.invalid("cursor");
    moderator.get("moderation/users?banned=true&per_page=51").await.invalid("per_page");
}

#[tokio::test]
async fn currently_banned_users_are_listed_by_the_time_of_the_ban() {
    let world = World::new();
    let moderator = world.moderator();
    world.user(8, "Bob").get("ui").await.ok(200);
    ban(&moderator, 8, json!({ "reason": "spam" })).await;
    // This user is banned before their first request.
    ban(&moderator, 99, json!({ "until": "2050-01-02T03:05:05+00:00" })).await;
    let list = banned(&world).await;
    let row = |id: u64, name: &str, until: Value, reason: Value| json!({ "id": id, "name": name, "avatar": "", "banned": true, "banned_until": until, "reason": reason });
    let bob = row(8, "Bob", Value::Null, json!("spam"));
    let new = row(99, "User 99", json!("2050-01-02T03:05:05+00:00"), Value::Null);
    assert_eq!(list.data(), &json!([new, bob]));
    assert_eq!(list.json["meta"]["next_cursor"], Value::Null);
    // Another ban of the same user replaces the first ban.
    ban(&moderator, 8, json!({ "reason": "more spam" })).await;
    assert_eq!(banned(&world).await.ids(), [8, 99]);
    world.pass(Duration::from_mins(1));
    assert_eq!(banned(&world).await.ids(), [8]);
    moderator.delete("users/8/ban").await.ok(204);
    assert!(banned(&world).await.ids().is_empty());
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn banned_users_are_walked_by_cursor_both_ways() {
    let world = World::new();
    let moderator = world.moderator();
    for user in 100..107 {
        ban(&moderator, user, json!({})).await;
    }
    let all: Vec<u64> = (100..107).rev().collect();
    for per_page in 1..=4 {
        let path = format!("moderation/users?banned=true&per_page={per_page}&cursor=");
        assert_eq!(moderator.walk_both_ways(&path).await, all, "{per_page}");
    }
}

#[tokio::test]
async fn banned_users_are_found_behind_very_many_bans_that_have_ended() {
    let world = World::new();
    let moderator = world.moderator();
    for user in [7, 8] {
        ban(&moderator, user, json!({})).await;
    }
    for user in 100..310 {
        ban(&moderator, user, json!({ "until": "2050-01-02T03:05:05+00:00" })).await;
    }
    ban(&moderator, 9, json!({})).await;
    world.pass(Duration::from_mins(1));
    let pages = moderator.walk("moderation/users?banned=true&cursor=").await;
    assert_eq!((seen(&pages), pages.len()), (vec![9, 8, 7], 2));
    assert_eq!(seen(&moderator.walk_back(pages.last().unwrap()).await), [9, 8, 7]);
}
