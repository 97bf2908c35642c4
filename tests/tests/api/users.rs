//! `users.index`: GET `users`, and the names and pictures of users on their comments.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::ids::UserId;
use shared::domain::job::{Job, Rename};
use shared::domain::user::User;
use shared::store::Reading;
use tests::{Actor, World};
use tokio::time::Instant;

use crate::largest;

/// Calls the service as this user, so that it stores the name.
async fn known(world: &World, id: u64, name: &str) {
    world.user(id, name).get("ui").await.ok(200);
}

async fn names(actor: &Actor, q: &str) -> Vec<String> {
    let reply = actor.get(&format!("users?q={q}")).await.ok(200);
    reply.rows().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn names_that_contain_the_query_are_found() {
    let world = World::new();
    for (id, name) in [(20, "Ada Lovelace"), (21, "Grace Hopper"), (22, "Alan Turing")] {
        known(&world, id, name).await;
    }
    let ada = world.user(20, "Ada Lovelace");
    let reply = ada.get("users?q=hop").await.ok(200);
    assert_eq!(reply.json, json!({ "data": [{ "id": 21, "name": "Grace Hopper", "avatar": "" }] }));
    for (q, found) in
        [("LOVE", "Ada Lovelace"), ("a%20l", "Ada Lovelace"), ("ing", "Alan Turing"), ("grace+h", "Grace Hopper")]
    {
        assert_eq!(names(&ada, q).await, [found], "{q}");
    }
    assert!(names(&ada, "zz").await.is_empty());
}

#[tokio::test]
async fn names_are_found_whatever_their_case_and_normal_form() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    for (id, name, q) in [(20, "Straße", "STRASSE"), (21, "Ｚoé", "ｚOE\u{301}"), (22, "İpek", "ip")] {
        known(&world, id, name).await;
        assert_eq!(names(&ada, &form(q)).await, [name], "{q}");
    }
    assert_eq!(names(&ada, &form("\u{307}")).await, [""; 0], "nothing is left of it");
}

fn form(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn percent_and_underscore_are_literal() {
    let world = World::new();
    known(&world, 20, "100% Ada").await;
    known(&world, 21, "under_score").await;
    let ada = world.user(7, "Ada");
    assert_eq!(names(&ada, "%25").await, ["100% Ada"]);
    assert_eq!(names(&ada, "_").await, ["under_score"]);
    assert!(names(&ada, "1%25").await.is_empty());
    assert!(names(&ada, "u_d").await.is_empty());
}

#[tokio::test]
async fn the_query_is_1_to_50_characters() {
    let ada = World::new().user(7, "Ada");
    for query in ["users", "users?q=", "users?x=1"] {
        ada.get(query).await.invalid("q");
    }
    ada.get(&format!("users?q={}", form(&"ß".repeat(51)))).await.invalid("q");
    ada.get(&format!("users?q={}", form(&"ß".repeat(50)))).await.ok(200);
}

#[tokio::test]
async fn at_most_five_names_are_found_and_those_that_begin_with_the_query_come_first() {
    let world = World::new();
    for (id, name) in
        [(20, "Bandana"), (21, "Big Dan"), (22, "Daniel"), (23, "Jordan"), (24, "Dana"), (25, "Aidan"), (26, "Sedan")]
    {
        known(&world, id, name).await;
    }
    let found = names(&world.user(7, "Zoe"), "dan").await;
    assert_eq!(found.len(), 5);
    let mut first = found[..2].to_vec();
    first.sort_unstable();
    assert_eq!(first, ["Dana", "Daniel"]);
    assert_eq!(found[2], "Big Dan");
}

#[tokio::test]
async fn a_new_name_is_found_and_the_old_one_is_not() {
    let world = World::new();
    known(&world, 20, "Ada Byron").await;
    let bob = world.user(8, "Bob");
    assert_eq!(names(&bob, "byron").await, ["Ada Byron"]);
    world.pass(Duration::from_secs(1));
    known(&world, 20, "Ada Lovelace").await;
    assert_eq!(names(&bob, "lovelace").await, ["Ada Lovelace"]);
    assert!(names(&bob, "byron").await.is_empty());
    assert_eq!(names(&bob, "ada").await, ["Ada Lovelace"]);
}

#[tokio::test]
async fn banned_users_are_not_offered_until_the_ban_ends() {
    let world = World::new();
    known(&world, 20, "Mallory").await;
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    moderator.put("users/20/ban", json!({ "until": "2050-01-02T03:05:05Z" })).await.ok(200);
    assert!(names(&ada, "mal").await.is_empty());
    world.pass(Duration::from_mins(1));
    assert_eq!(names(&ada, "mal").await, ["Mallory"]);
    moderator.put("users/20/ban", Value::Null).await.ok(200);
    assert!(names(&ada, "mal").await.is_empty());
    moderator.delete("users/20/ban").await.ok(204);
    assert_eq!(names(&ada, "mal").await, ["Mallory"]);
}

/// Returns the actor's name in the response, and the request's write units.
async fn called(actor: &Actor) -> (String, f64) {
    let reply = actor.get("ui").await.ok(200);
    (reply.data()["auth"]["user"]["name"].as_str().unwrap().to_owned(), reply.cost.write_units)
}

#[tokio::test]
async fn tokens_without_iat_change_a_name_at_most_every_ten_minutes() {
    let world = World::new();
    let token = |name: &str| world.claiming(&json!({ "sub": "7", "name": name, "iat": null }));
    let (byron, lovelace) = (token("Ada Byron"), token("Ada Lovelace"));
    let id = byron.comment("posts/1", "x").await;
    for _ in 0..3 {
        assert_eq!(called(&lovelace).await, ("Ada Byron".to_owned(), 0.0));
        assert_eq!(called(&byron).await, ("Ada Byron".to_owned(), 0.0));
    }
    world.pass(Duration::from_secs(599));
    assert_eq!(called(&lovelace).await.0, "Ada Byron");
    world.pass(Duration::from_secs(1));
    assert_eq!(called(&byron).await, ("Ada Byron".to_owned(), 0.0));
    assert_eq!(called(&lovelace).await.0, "Ada Lovelace");
    assert_eq!(called(&byron).await, ("Ada Lovelace".to_owned(), 0.0));
    world.wait_until_idle().await;
    assert_eq!(world.guest().see("posts/1", id).await["user"]["name"], "Ada Lovelace");
    assert_eq!(names(&world.user(8, "Bob"), "ada").await, ["Ada Lovelace"]);
}

#[tokio::test]
async fn only_a_newer_iat_changes_a_name_and_an_older_one_never() {
    let world = World::new();
    let now = world.now().seconds();
    let token =
        |name: &str, iat: Value| world.claiming(&json!({ "sub": "7", "name": name, "iat": iat, "exp": now + 86_400 }));
    assert_eq!(called(&token("New", json!(now))).await.0, "New");
    world.pass(Duration::from_secs(61));
    for (name, iat) in [("Old", now - 1), ("Same", now)] {
        assert_eq!(called(&token(name, json!(iat))).await, ("New".to_owned(), 0.0), "{name}");
    }
    world.pass(Duration::from_mins(10));
    assert_eq!(called(&token("Undated", Value::Null)).await.0, "Undated");
    for (name, iat) in [("Old", now - 1), ("New", now)] {
        assert_eq!(called(&token(name, json!(iat))).await, ("Undated".to_owned(), 0.0), "{name}");
    }
    assert_eq!(called(&token("Newest", json!(now + 1))).await.0, "Newest");
}

#[tokio::test]
async fn an_iat_of_the_future_counts_as_absent() {
    let world = World::new();
    let now = world.now().seconds();
    let token =
        |name: &str, iat: i64| world.claiming(&json!({ "sub": "7", "name": name, "iat": iat, "exp": now + 86_400 }));
    for (name, iat) in
        [("Ada", now + 61), ("Ada B.", now * 1_000), ("Ada C.", i64::MAX), ("Ada D.", now + 60), ("Ada E.", now + 61)]
    {
        assert_eq!(called(&token(name, iat)).await.0, name);
        world.pass(Duration::from_mins(10));
    }
    world.pass(Duration::from_hours(1));
    // Stores milliseconds, as an earlier version did.
    world.seed_issued_at(7, now * 1_000).await;
    assert_eq!(called(&token("Ada F.", now + 600)).await.0, "Ada F.");
    assert_eq!(called(&token("Ada E.", now + 599)).await.0, "Ada F.");
}

#[tokio::test]
async fn an_iat_counts_up_to_a_minute_ahead() {
    let world = World::new();
    let now = world.now().seconds();
    for (id, ahead, expected) in [("7", 60, "First"), ("8", 61, "Second"), ("9", 3_600, "Second")] {
        let token = |name: &str, iat: i64| world.claiming(&json!({ "sub": id, "name": name, "iat": iat }));
        assert_eq!(called(&token("First", now + ahead)).await.0, "First");
        assert_eq!(called(&token("Second", now)).await.0, expected, "{ahead} seconds ahead");
    }
}

#[tokio::test]
async fn marks_that_pile_up_are_left_out_of_the_name_of_a_token() {
    let world = World::new();
    let ada = world.user(7, "A\u{300}\u{301}\u{302}\u{303}da");
    assert_eq!(called(&ada).await.0, "\u{c0}\u{301}da");
}

#[tokio::test]
async fn among_tokens_issued_in_one_second_the_last_one_seen_counts() {
    let world = World::new();
    for name in ["Ada Byron", "Ada Lovelace"] {
        assert_eq!(world.user(7, name).get("ui").await.ok(200).data()["auth"]["user"]["name"], name);
    }
}

#[tokio::test]
async fn an_outdated_change_of_name_is_ignored() {
    let world = World::new();
    let ada = |name: &str| world.user(7, name);
    let id = ada("Ada").comment("posts/1", "x").await;
    let store = world.store();
    let row = async || store.user(UserId(7), Reading::Consistent).await.unwrap().unwrap();
    let mut rows = vec![row().await];
    for name in ["Ada Byron", "Ada Lovelace"] {
        world.pass(Duration::from_secs(1));
        ada(name).get("ui").await.ok(200);
        rows.push(row().await);
    }
    world.wait_until_idle().await;
    // Restores the old name on the comment.
    world.set_of_comment(id, "n", Some(AttributeValue::S("Ada".to_owned()))).await;
    let shown = async || world.guest().see("posts/1", id).await["user"]["name"].clone();
    let job = |user: &User| {
        let rename = Rename::to(user);
        store.run_job(Job::Rename(rename), world.now(), Instant::now() + Duration::from_mins(1))
    };
    assert!(!store.rename_in_directory(&rows[0], &rows[1]).await.unwrap());
    assert_eq!(job(&rows[1]).await.unwrap(), None);
    assert_eq!(shown().await, "Ada");
    assert!(store.rename_in_directory(&rows[1], &rows[2]).await.unwrap());
    world.pass(Duration::from_mins(1));
    let second = job(&rows[2]).await.unwrap().unwrap();
    assert_eq!(second.delay, Duration::from_secs(30));
    let again = store.run_job(second.job, world.now(), Instant::now() + Duration::from_mins(1));
    assert_eq!(again.await.unwrap(), None);
    assert_eq!(shown().await, "Ada Lovelace");
    assert_eq!(names(&world.user(8, "Bob"), "ada").await, ["Ada Lovelace"]);
}

#[tokio::test]
async fn a_name_in_a_token_shows_as_written_and_is_ignored_if_invisible() {
    let world = World::new();
    let name = async |sub: &str, name: &str| called(&world.claiming(&json!({ "sub": sub, "name": name }))).await.0;
    assert_eq!(name("7", "\u{202e}Ada\u{202c} \u{2067}עדה\u{2069}").await, "Ada \u{2067}עדה\u{2069}");
    world.pass(Duration::from_secs(1));
    assert_eq!(name("7", "\u{3164}\u{200b}").await, "Ada \u{2067}עדה\u{2069}");
    for (sub, nothing) in [("20", "\u{200b}\u{2800}"), ("21", "\u{202d}\u{202c}"), ("22", "\u{3164}")] {
        assert_eq!(name(sub, nothing).await, format!("User {sub}"));
    }
}

#[tokio::test]
async fn a_new_name_and_picture_show_on_old_comments() {
    let world = World::new();
    let old = world.user(7, "Ada Byron");
    let first = old.comment("posts/1", "x").await;
    let reply = old.reply("posts/1", first, "y").await;
    let elsewhere = old.comment("posts/2", "z").await;
    world.user(8, "Bob").reply("posts/1", first, "bob's").await;
    world.pass(Duration::from_secs(1));
    let claims = json!({ "sub": "7", "name": "Ada Lovelace", "picture": "https://a.test/ada.png" });
    world.claiming(&claims).get("ui").await.ok(200);
    world.wait_until_idle().await;
    let user = json!({ "id": 7, "name": "Ada Lovelace", "avatar": "https://a.test/ada.png" });
    for (thread, id) in [("posts/1", first), ("posts/1", reply), ("posts/2", elsewhere)] {
        assert_eq!(world.guest().see(thread, id).await["user"], user);
    }
    let shown = world.guest().see("posts/1", first).await;
    assert_eq!((&shown["updated_at"], &shown["replies"][1]["user"]["name"]), (&shown["created_at"], &json!("Bob")));
    // An older token does not change the name back.
    old.get("ui").await.ok(200);
    world.wait_until_idle().await;
    assert_eq!(world.guest().see("posts/1", first).await["user"], user);
}

/// Renames Ada with a token for this name, a second after all earlier requests.
async fn rename(world: &World, name: &str) {
    world.pass(Duration::from_secs(1));
    world.user(7, name).get("ui").await.ok(200);
    world.wait_until_idle().await;
}

async fn names_on_comments(world: &World) -> Vec<String> {
    let page = world.guest().list("posts/1", "per_page=50").await;
    let names = page.rows().iter().map(|row| row["user"]["name"].as_str().unwrap().to_owned());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

#[tokio::test]
async fn comments_take_a_new_name_once_a_minute_however_often_it_changes() {
    for seconds in [10, 31] {
        let world = World::new();
        world.written(3).await;
        let mut shown = BTreeSet::new();
        // The changes continue for three minutes.
        for change in 0..180 / seconds {
            rename(&world, &format!("Ada {change}")).await;
            for _ in 1..seconds {
                world.pass(Duration::from_secs(1));
                world.wait_until_idle().await;
            }
            shown.extend(names_on_comments(&world).await);
        }
        assert!(shown.len() <= 3, "{shown:?}");
        world.finish_jobs().await;
        assert_eq!(names_on_comments(&world).await, [format!("Ada {}", 180 / seconds - 1)]);
    }
}

#[tokio::test]
async fn comments_take_a_new_name_although_the_clock_was_ahead_at_earlier_changes() {
    let (world, ahead) = (World::new(), Duration::from_hours(48));
    world.written(3).await;
    world.pass(ahead);
    rename(&world, "Ada Byron").await;
    rename(&world, "Ada King").await;
    assert_eq!(names_on_comments(&world).await, ["Ada Byron"]);
    world.turn_back(ahead);
    world.wait_until_idle().await;
    assert_eq!(names_on_comments(&world).await, ["Ada King"]);
    rename(&world, "Ada Lovelace").await;
    assert_eq!(names_on_comments(&world).await, ["Ada Lovelace"]);
}

#[tokio::test]
async fn the_more_it_costs_to_rename_a_member_the_longer_the_next_name_waits() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let body = largest::body();
    for _ in 0..25 {
        ada.comment("posts/1", &body).await;
    }
    rename(&world, "Ada Byron").await;
    assert_eq!(names_on_comments(&world).await, ["Ada Byron"]);
    // 25 comments of 123 units each, at twenty units per second, take 154 seconds.
    world.pass(Duration::from_secs(61));
    rename(&world, "Ada King").await;
    world.pass(Duration::from_secs(80));
    rename(&world, "Ada Lovelace").await;
    assert_eq!(names_on_comments(&world).await, ["Ada Byron"]);
    world.pass(Duration::from_secs(20));
    world.wait_until_idle().await;
    assert_eq!(names_on_comments(&world).await, ["Ada Lovelace"]);
    // After this wait, the next name is written immediately.
    world.pass(Duration::from_mins(4));
    rename(&world, "Ada").await;
    assert_eq!(names_on_comments(&world).await, ["Ada"]);
}
