//! The cost of requests, as `DynamoDB` counts it. `cargo test --workspace --test api capacity -- --nocapture` prints
//! the costs.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use http::header::{ACCEPT_ENCODING, ORIGIN};
use serde_json::json;
use shared::domain::ids::{CommentId, ThreadId, UserId};
use shared::domain::job::{CleanUp, CountBelow, CountReplies, Job, Rename};
use shared::domain::time::Timestamp;
use shared::error::Fault;
use shared::store::counts::RecountTrigger;
use shared::store::{Reading, Store, meter};
use tests::seed::{self, Models, prose};
use tests::{
    Actor, Receiver, SIGN_IN, START, Setup, TABLE, TestResponse, WEBHOOKS, World, by_guest, code, webhook_message,
};
use tokio::time::Instant;

use crate::{largest, providers, sign_in};

/// Replies per parent, for parents that have any.
const REPLIES: usize = 3;

/// Returns the lowest possible id this many seconds before [`START`].
pub(crate) fn id_before_start(seconds: i64) -> u64 {
    CommentId::slots(Timestamp(START - seconds * 1000), 0).unwrap().next().unwrap().0
}

/// Fills the thread `posts/big` with `count` parents. Parents on pages that tests read have three replies each. Returns
/// the parents' ids, oldest first.
pub(crate) async fn seed(world: &World, count: usize) -> Vec<u64> {
    let author = world.user(7, "Ada Lovelace");
    let parent = author.comment("posts/model", &prose(0)).await;
    let reply = author.reply("posts/model", parent, &prose(1)).await;
    let store = world.store();
    let models = Models::read(&store, parent, reply).await;
    let comments = (0..count).map(|place| {
        let from_top = count - place;
        let id = id_before_start(i64::try_from(from_top).unwrap());
        let is_read = place < 60 || from_top < 60 || (980..1_010).contains(&from_top);
        (id, if is_read { REPLIES } else { 0 })
    });
    let comments: Vec<_> = comments.collect();
    seed::write_thread(&store, &models, "big", &comments).await;
    comments.into_iter().map(|(id, _)| id).collect()
}

/// Creates a world whose round trips can be counted.
pub(crate) fn metered(settings: &[(&str, &str)]) -> World {
    Setup::new(settings).in_rounds().start()
}

/// Maximum read units, write units and round trips.
pub(crate) type Bound = (f64, f64, u32);

#[derive(Default)]
pub(crate) struct Table(Vec<(String, TestResponse, Bound)>);

impl Table {
    #[track_caller]
    pub(crate) fn row(&mut self, operation: impl Into<String>, reply: TestResponse, bound: Bound) {
        assert!(reply.status < 300, "{:#}", reply.json);
        self.0.push((operation.into(), reply, bound));
    }

    /// Adds a row once nothing else is running, because follow-up work from earlier writes causes retries.
    async fn measure(
        &mut self,
        world: &World,
        operation: &str,
        request: impl Future<Output = TestResponse>,
        bound: Bound,
    ) {
        world.wait_until_idle().await;
        self.row(operation, request.await, bound);
    }

    /// Prints the rows. Fails if a request costs more than its bound.
    pub(crate) fn check(self) {
        println!("| operation | read units | write units | trips | bounds |\n|---|---|---|---|---|");
        let mut over = Vec::new();
        for (operation, reply, (read, write, trips)) in self.0 {
            let cost = reply.cost;
            println!(
                "| {operation} | {} | {} | {} | {read} / {write} / {trips} |",
                cost.read_units, cost.write_units, cost.trips
            );
            if cost.read_units > read || cost.write_units > write || cost.trips > trips {
                over.push(operation);
            }
        }
        assert!(over.is_empty(), "cost more than they may: {over:#?}");
    }
}

/// Returns a user who is in the table and has liked a comment in the thread.
async fn reader(world: &World, id: u64, liked: u64) -> Actor {
    let reader = world.user(id, "Reader");
    reader.like(liked).await.ok(200);
    reader
}

#[tokio::test]
async fn lists_cost_the_same_whatever_the_size_of_the_thread() {
    let mut table = Table::default();
    for count in [10, 1_000, 10_000] {
        let world = metered(&[]);
        let ids = seed(&world, count).await;
        let newest = *ids.last().unwrap();
        let ada = reader(&world, 1000, newest).await;
        for sort in ["newest", "oldest"] {
            let reply = ada.list("posts/big", &format!("sort={sort}")).await;
            assert_eq!(reply.rows().len(), 10);
            assert!(reply.rows().iter().all(|row| row["replies"].as_array().unwrap().len() == REPLIES));
            // The two calls read the page, and a batch with everything else: the thread, the caller and the caller's
            // state in the thread.
            assert_eq!(reply.cost.calls, 2);
            table.row(format!("list, {sort}, of {count}"), reply, (4.5, 0.0, 1));
        }
        let reply = ada.list("posts/big", "include=ui").await;
        table.row(format!("list, with ui, of {count}"), reply, (5.0, 0.0, 1));
        for (name, query, read) in [("public", "", 3.5), ("public, with ui", "?include=ui", 4.0)] {
            let reply = ada.get(&format!("public/posts/big/comments{query}")).await;
            assert_eq!(reply.cost.calls, 2);
            table.row(format!("list, {name}, of {count}"), reply, (read, 0.0, 1));
        }
        let page = ada.get("posts/big/comments.html").await;
        assert_eq!(page.json.as_str().unwrap().matches("<article").count(), 10 * (1 + REPLIES));
        table.row(format!("page, of {count}"), page, (3.5, 0.0, 1));
        let reply = ada.list("posts/big", "cursor=").await;
        let next = reply.next().map(str::to_owned);
        table.row(format!("list, first of a walk, of {count}"), reply, (4.5, 0.0, 1));
        if let Some(next) = next {
            let reply = ada.get(&next).await;
            let prev = reply.prev().unwrap().to_owned();
            table.row(format!("list, next of a walk, of {count}"), reply, (4.5, 0.0, 1));
            table.row(format!("list, back in a walk, of {count}"), ada.get(&prev).await, (4.5, 0.0, 1));
        }
        let reply = world.guest().with_key("guest").list("posts/big", "").await;
        table.row(format!("list, with a key, of {count}"), reply, (4.5, 0.0, 1));
        let ada = reader(&world, 1001, newest).await;
        if count >= 1_000 {
            let reply = ada.list("posts/big", "page=100").await;
            assert_eq!(reply.rows().len(), 10);
            table.row(format!("list, page=100, of {count}"), reply, (20.0, 0.0, 2));
        }
        for sort in ["most_liked", "most_replied"] {
            let reply = ada.list("posts/big", &format!("sort={sort}")).await;
            assert_eq!(reply.rows().len(), 10);
            table.row(format!("list, {sort}, of {count}"), reply, (12.0, 0.0, 3));
        }
        world.seed_pin("posts/big", ids[0]).await;
        let reply = ada.list("posts/big", "").await;
        assert_eq!(reply.ids()[0], ids[0]);
        table.row(format!("list, newest, with a pin, of {count}"), reply, (5.0, 0.0, 2));
    }
    table.check();
}

#[tokio::test]
async fn single_requests_keep_to_their_bounds() {
    let world = metered(&[("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true")]);
    let mut table = Table::default();
    let ada = world.user(7, "Ada Lovelace");
    let parent = ada.comment("posts/1", &prose(1)).await;
    let mut deepest = parent;
    for n in 0..12 {
        let id = ada.reply("posts/1", parent, &prose(n)).await;
        deepest = if n == 0 { id } else { deepest };
    }
    let below = ada.reply("posts/1", deepest, &prose(3)).await;
    let bob = reader(&world, 1000, parent).await;
    let guest = world.guest();
    table.measure(&world, "replies, 10 of 12", guest.replies(parent, ""), (3.0, 0.0, 2)).await;
    let page = guest.get(&format!("posts/1/comments.html?parent={parent}")).await;
    table.row("page of replies, 10 of 12", page, (3.0, 0.0, 2));
    table.measure(&world, "replies, 10 of 12, signed in", bob.replies(parent, ""), (3.0, 0.0, 2)).await;
    let page = guest.replies(parent, "cursor=").await;
    let next = page.next().unwrap().to_owned();
    table.row("replies, first of a walk", page, (3.0, 0.0, 2));
    table.measure(&world, "replies, next of a walk", guest.get(&next), (3.0, 0.0, 2)).await;
    let deep = async |query: &str| guest.get(&format!("comments/{parent}/replies?deep=1{query}")).await;
    table.measure(&world, "everything below, 10 of 12", deep(""), (3.5, 0.0, 4)).await;
    let next = deep("").await.next().unwrap().to_owned();
    table.measure(&world, "everything below, next of a walk", guest.get(&next), (2.5, 0.0, 4)).await;
    let show = async |actor: &Actor, id| actor.get(&format!("comments/{id}")).await;
    table.measure(&world, "show a comment", show(&guest, parent), (1.5, 0.0, 2)).await;
    table.measure(&world, "show a comment, signed in", show(&bob, parent), (2.0, 0.0, 2)).await;
    table.measure(&world, "show a reply", show(&guest, deepest), (2.0, 0.0, 2)).await;
    table.measure(&world, "show a reply two deep", show(&guest, below), (2.5, 0.0, 2)).await;
    // The likes and comments of a guest with a key are in two items, which cost half a unit each. When a guest writes,
    // reading the network's ban costs another half unit.
    let keyed = world.guest().with_key("guest");
    table.measure(&world, "replies, 10 of 12, with a key", keyed.replies(parent, ""), (3.0, 0.0, 2)).await;
    table.measure(&world, "show a comment, with a key", show(&keyed, parent), (2.0, 0.0, 2)).await;
    let create = keyed.post("posts/1/comments", by_guest(&prose(6)));
    table.measure(&world, "create a parent, with a key", create, (2.0, 11.0, 2)).await;
    let own = keyed.comment("posts/2", &prose(6)).await;
    table.measure(&world, "edit a comment, with a key", keyed.edit(own, &prose(7)), (3.0, 5.0, 3)).await;
    let body = json!({ "body": prose(4) });
    table.measure(&world, "create a parent", bob.post("posts/1/comments", body), (2.0, 10.0, 2)).await;
    // Reading the parent's ancestors costs half a unit for each, and one trip for all of them.
    for (name, parent, read, trips) in
        [("create a reply", parent, 2.0, 2), ("create a reply two deep", deepest, 2.5, 3)]
    {
        let body = json!({ "body": prose(5), "parent_id": parent });
        table.measure(&world, name, bob.post("posts/1/comments", body), (read, 11.0, trips)).await;
    }
    let cy = world.user(1001, "Cy");
    cy.get("ui").await.ok(200);
    table.measure(&world, "like a parent", cy.like(parent), (2.0, 8.0, 3)).await;
    table.measure(&world, "take the like back", cy.like(parent), (2.0, 8.0, 3)).await;
    table.measure(&world, "like a reply", cy.like(deepest), (2.5, 8.0, 3)).await;
    table.measure(&world, "like a reply two deep", cy.like(below), (3.0, 8.0, 3)).await;
    table.measure(&world, "a guest likes a parent", world.guest().like(parent), (2.5, 10.0, 3)).await;
    table.measure(&world, "ui, signed in", bob.get("ui"), (0.5, 0.0, 1)).await;
    for (id, name) in (2000..).zip(["Dan", "Dana", "Daniel", "Jordan", "Big Dan", "Sedan"]) {
        world.user(id, name).get("ui").await.ok(200);
    }
    table.measure(&world, "users search", bob.get("users?q=dan"), (3.0, 0.0, 2)).await;
    table.check();
}

#[tokio::test]
async fn signing_in_keeps_to_its_bounds() {
    let world = metered(&[&SIGN_IN[..], &[("SVC_MODERATORS", "email:ada@sign-in.example")]].concat());
    let (guest, mut table) = (world.guest(), Table::default());
    let started = guest.post("sign_in", json!({ "email": sign_in::ADA })).await.ok(201);
    let right = code(&sign_in::mails(&world, sign_in::ADA).await[0]);
    let finished = sign_in::finish(&guest, started.data()["flow"].as_str().unwrap(), &right).await.ok(200);
    let ada = sign_in::session(&guest, &finished);
    table.row("sign in: start", started, (4.0, 8.0, 6));
    // The first sign-in also publishes the signing key.
    table.row("sign in: finish, for the first time, as a moderator", finished, (3.0, 8.0, 9));
    let again = json!({ "email": sign_in::ADA });
    let started = guest.post("sign_in", again).await.ok(201);
    let right = code(sign_in::mails(&world, sign_in::ADA).await.last().unwrap());
    let finished = sign_in::finish(&guest, started.data()["flow"].as_str().unwrap(), &right).await;
    table.row("sign in: start again", started, (4.0, 8.0, 6));
    table.row("sign in: finish again", finished, (3.0, 8.0, 6));
    // A mailbox with many flows, and a long address with a few.
    let long = format!("{}@{}.example", "a".repeat(60), ["b"; 3].map(|label| label.repeat(60)).join("."));
    for (email, networks) in
        [(sign_in::ADA, vec![guest.clone(), guest.clone(), guest.clone()]), (long.as_str(), Vec::new())]
    {
        let strangers = (0..3).map(|_| world.guest());
        let (mut flow, mut right) = (String::new(), String::new());
        for asker in networks.into_iter().chain(strangers) {
            let asker = asker.with(ORIGIN, "https://www.example.org");
            let started = asker.post("sign_in", json!({ "email": email })).await.ok(201);
            flow = started.data()["flow"].as_str().unwrap().to_owned();
            table.row(format!("sign in: start, {} characters", email.len()), started, (4.0, 8.0, 6));
            right = code(sign_in::mails(&world, email).await.last().unwrap());
        }
        let finished = sign_in::finish(&world.guest(), &flow, &right).await.ok(200);
        table.row(format!("sign in: finish, {} characters", email.len()), finished, (3.0, 8.0, 7));
    }
    let name = |name: &str| ada.actor.put("me/name", json!({ "name": name }));
    // The first request per minute and instance also reads the names of the moderators in the settings, for half a unit
    // each.
    table.measure(&world, "sign in: first name", name("Ada Lovelace"), (3.5, 6.0, 6)).await;
    table.measure(&world, "sign in: another name", name("Ada Byron"), (3.5, 6.0, 6)).await;
    world.wait_until_idle().await;
    let refreshed = sign_in::refresh(&world, &ada.refresh).await;
    let end = json!({ "refresh_token": sign_in::session(&guest, &refreshed).refresh, "everywhere": true });
    table.row("sign in: refresh", refreshed, (3.0, 1.0, 3));
    table.measure(&world, "sign in: end everywhere", guest.post("sign_in/end", end), (3.0, 1.0, 3)).await;
    table.check();
}

#[tokio::test]
async fn signing_in_with_a_provider_account_keeps_to_its_bounds() {
    let fake = providers::Fake::start().await;
    let more = [("SVC_SUBSCRIPTIONS", "true"), ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}")];
    let more = [&fake.settings()[..], &more, &[("SVC_MODERATORS", "oidc:ada")]].concat();
    let world = metered(&more);
    let long = "\u{1f600}".repeat(254);
    fake.claim("name", &json!("\u{1f600}".repeat(100)));
    fake.claim("picture", &json!(format!("https://id.example/{}", "x".repeat(490))));
    fake.claim(
        "email",
        &json!(format!("{}@{}.example", "a".repeat(60), ["b"; 3].map(|label| label.repeat(60)).join("."))),
    );
    let (guest, mut table) = (world.guest(), Table::default());
    let page = format!("https://www.example.org/{}", "x".repeat(1_976));
    // The first request also publishes the signing key and, once per minute and instance, reads the names of the
    // moderators in the settings: half a unit each.
    for (subject, is, most) in
        [("ada", "a moderator", 3.5), (long.as_str(), "a long one", 2.0), (long.as_str(), "the same", 2.0)]
    {
        fake.claim("sub", &json!(subject));
        let started = providers::start(&guest, "oidc", &page).await.ok(201);
        let query = fake.authorize(&started.data()["url"]);
        let flow = started.data()["flow"].clone();
        table.row(format!("sign in with a provider: start, {is}"), started, (4.0, 6.0, 2));
        let back = guest.get(&format!("sign_in/callback/oidc?{query}")).await.ok(303);
        let code = providers::code(&back);
        table.0.push((format!("sign in with a provider: callback, {is}"), back, (3.0, 8.0, 5)));
        let finished = providers::finish(&guest, &flow, &code).await.ok(200);
        table.row(format!("sign in with a provider: finish, {is}"), finished, (most, 12.0, 10));
    }
    table.check();
}

#[tokio::test]
async fn deletions_keep_to_their_bounds() {
    let world = metered(&[]);
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let mut table = Table::default();
    let (ada, bob) = (world.user(7, "Ada Lovelace"), world.user(8, "Bob"));
    let parent = async || ada.comment("posts/1", &prose(1)).await;
    let [plain, answered, hidden] = [parent().await, parent().await, parent().await];
    let [middle, last] =
        [ada.reply("posts/1", answered, &prose(2)).await, bob.reply("posts/1", answered, &prose(3)).await];
    let below = ada.reply("posts/1", last, &prose(4)).await;
    let pending = held.user(8, "Bob").reply("posts/1", hidden, &prose(5)).await;
    held.wait_until_idle().await;
    drop(held);
    table.measure(&world, "delete a parent", ada.remove(plain), (2.5, 10.0, 4)).await;
    table.measure(&world, "delete a reply", ada.remove(middle), (2.5, 11.0, 3)).await;
    table.measure(&world, "delete a parent with replies", ada.remove(answered), (2.5, 7.0, 4)).await;
    table.measure(&world, "delete a reply with replies", bob.remove(last), (2.5, 5.0, 3)).await;
    table.measure(&world, "delete the last reply below two placeholders", ada.remove(below), (3.5, 18.0, 3)).await;
    table.measure(&world, "delete a parent whose only reply waits", ada.remove(hidden), (4.5, 10.0, 6)).await;
    table.measure(&world, "delete a reply that waits", bob.remove(pending), (4.5, 16.0, 5)).await;
    table.check();
}

#[tokio::test]
async fn trust_keeps_to_its_bounds() {
    let world = metered(&[("SVC_ALLOW_GUESTS", "true")]);
    let shown = world.user(7, "Ada Lovelace").comment("posts/1", &prose(1)).await;
    let new = world.again(&[("SVC_ALLOW_GUESTS", "true"), ("SVC_REQUIRE_APPROVAL", "new")]);
    let mut table = Table::default();
    let moderator = new.moderator();
    let (ada, bob, guest) = (new.user(7, "Ada Lovelace"), new.user(8, "Bob"), new.guest().with_key("guest"));
    for known in [&bob, &moderator] {
        known.get("ui").await.ok(200);
    }
    new.repair().await;
    // Drops the other instance, because it also follows the stream.
    world.wait_until_idle().await;
    drop(world);
    let write = |actor: &Actor| {
        let actor = actor.clone();
        async move { actor.write("posts/1", None, &prose(6)).await }
    };
    // A pending comment is in a queue, which costs two write units.
    table.measure(&new, "comment of a trusted member", write(&ada), (1.5, 10.0, 2)).await;
    table.measure(&new, "comment of a new member", write(&bob), (1.5, 12.0, 2)).await;
    table.measure(&new, "comment of a guest with a key", write(&guest), (2.5, 12.0, 3)).await;
    table.measure(&new, "edit by a trusted member", ada.edit(shown, &prose(7)), (2.5, 5.0, 3)).await;
    table.measure(&new, "the queue, 10", moderator.get("moderation/comments"), (13.5, 0.0, 4)).await;
    table.check();
}

/// The log entry costs two of the write units, and the writer's item two more. Beyond twenty units, the limiter's item
/// costs one more.
#[tokio::test]
async fn decisions_of_moderators_keep_to_their_bounds() {
    let world = metered(&[]);
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let mut table = Table::default();
    let (ada, bob, moderator) = (world.user(7, "Ada Lovelace"), world.user(8, "Bob"), world.moderator());
    moderator.get("ui").await.ok(200);
    let parent = ada.comment("posts/1", &prose(1)).await;
    let top = held.user(7, "Ada Lovelace").comment("posts/1", &prose(2)).await;
    let reply = held.user(7, "Ada Lovelace").reply("posts/1", parent, &prose(3)).await;
    bob.report(parent, "spam").await.ok(201);
    // Drops the other instance, because it also follows the stream.
    held.wait_until_idle().await;
    drop(held);
    table.measure(&world, "approve a parent", moderator.judge(top, "approve"), (4.5, 22.0, 6)).await;
    table.measure(&world, "approve a reply", moderator.judge(reply, "approve"), (6.5, 23.0, 8)).await;
    table.measure(&world, "reject a parent", moderator.judge(top, "reject"), (5.5, 22.0, 7)).await;
    table.measure(&world, "reject a reply", moderator.judge(reply, "reject"), (7.5, 23.0, 9)).await;
    table.measure(&world, "dismiss reports", moderator.judge(parent, "reports/dismiss"), (3.0, 8.0, 4)).await;
    table.measure(&world, "pin", moderator.pin(parent), (2.5, 7.0, 3)).await;
    table.measure(&world, "unpin", moderator.unpin(parent), (2.5, 5.0, 3)).await;
    table
        .measure(&world, "ban before the first sign-in", moderator.put("users/99/ban", json!({})), (2.5, 7.0, 4))
        .await;
    table.measure(&world, "ban again", moderator.put("users/99/ban", json!({ "reason": "x" })), (2.5, 9.0, 4)).await;
    table.measure(&world, "unban", moderator.delete("users/99/ban"), (2.5, 7.0, 4)).await;
    let guests = world.again(&[("SVC_ALLOW_GUESTS", "true")]);
    let comment = guests.guest().comment("posts/1", &prose(4)).await;
    guests.wait_until_idle().await;
    drop(guests);
    let path = format!("comments/{comment}/ban");
    table.measure(&world, "ban a network", moderator.put(&path, json!({})), (3.5, 9.0, 4)).await;
    let body = json!({ "reject_recent": true });
    table.measure(&world, "ban a network again, rejecting", moderator.put(&path, body), (3.5, 11.0, 4)).await;
    table.measure(&world, "close a thread", moderator.post("posts/1/close", json!({})), (0.5, 5.0, 2)).await;
    table.check();
}

#[tokio::test]
async fn lists_of_moderators_keep_to_their_bounds() {
    let world = metered(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let mut table = Table::default();
    let (ada, moderator) = (world.user(7, "Ada Lovelace"), world.moderator());
    moderator.get("ui").await.ok(200);
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push(ada.comment("posts/1", &prose(n)).await);
    }
    table.row("what a user wrote, 10", moderator.get("users/7/comments").await, (12.5, 0.0, 4));
    let judge = |ids: &[u64], action| moderator.post("moderation/comments", json!({ "ids": ids, "action": action }));
    table.measure(&world, "approve 10 at once", judge(&ids[50..], "approve"), (20.5, 201.0, 40)).await;
    table.measure(&world, "reject 50 at once", judge(&ids[..50], "reject"), (100.5, 551.0, 155)).await;
    for id in 100..130 {
        moderator.put(&format!("users/{id}/ban"), json!({})).await.ok(200);
    }
    // The names of ten users cost five of the units.
    table.row("the log, 10", moderator.get("moderation/log").await, (6.0, 0.0, 3));
    // The first words of twenty comments cost ten of the units.
    table.row("the log, 50", moderator.get("moderation/log?per_page=50").await, (27.0, 0.0, 3));
    table.row("those banned, 10", moderator.get("moderation/users?banned=true").await, (6.0, 0.0, 3));
    for id in 200..230 {
        world.user(id, &format!("Dan {id}")).get("ui").await.ok(200);
    }
    table.row("moderators search users", moderator.get("moderation/users?q=dan").await, (2.0, 0.0, 2));
    // Each comment is read consistently, and the counts take eight queries.
    table.row("the queue, 10", moderator.get("moderation/comments?state=all").await, (18.5, 0.0, 4));
    // The next request counts as six reads, so it runs in a separate minute.
    world.pass(Duration::from_mins(1));
    let queue = moderator.get("moderation/comments?state=rejected&per_page=50").await;
    assert_eq!(queue.rows().len(), 50);
    table.row("the queue, 50", queue, (58.0, 0.0, 4));
    table.check();
}

#[tokio::test]
async fn the_work_after_a_comment_keeps_to_its_bounds() {
    let world = metered(&[]);
    let ada = world.user(7, "Ada Lovelace");
    let top = ada.comment("posts/1", &prose(1)).await;
    let reply = ada.reply("posts/1", top, &prose(2)).await;
    uncount(&world, &[top, reply], 0).await;
    let store = without_followers(world).await;
    let thread = ThreadId::new("posts", "1").unwrap();
    let count = |id| store.recount_comment(&thread, CommentId(id), RecountTrigger::Event);
    follow("a comment comes", count(top), (1.0, 4.0)).await;
    follow("a reply comes", count(reply), (2.0, 6.0)).await;
    assert_eq!(store.counts(std::slice::from_ref(&thread)).await.unwrap(), [2]);
    let found = store.comment_with_ancestors(CommentId(reply), Reading::Consistent).await.unwrap().unwrap();
    assert!(store.delete(found).await.unwrap());
    follow("a reply goes", count(reply), (1.0, 4.0)).await;
    assert_eq!(store.counts(&[thread]).await.unwrap(), [1]);
}

#[tokio::test]
async fn jobs_keep_to_their_bounds() {
    let world = metered(&[]);
    let ada = world.user(7, "Ada Lovelace");
    let parent = ada.comment("posts/1", &prose(1)).await;
    let replies = ada.write_many("posts/1", parent, 10).await;
    uncount(&world, &replies, 1).await;
    for id in &replies {
        world.set(&format!("C#{id}"), "C", "n", Some(AttributeValue::S("Ada".to_owned()))).await;
    }
    let now = world.now();
    let client = world.client();
    let store = without_followers(world).await;
    let run = |job| {
        let store = &store;
        async move {
            let rest = store.run_job(job, now, Instant::now() + Duration::from_mins(1)).await?;
            assert_eq!(rest, None);
            Ok(())
        }
    };

    let thread = ThreadId::new("posts", "1").unwrap();
    let walks = vec![CountReplies::of(CommentId(parent))];
    let job = CountBelow { thread: thread.clone(), walks, incomplete: Vec::new(), is_first: false, changed_at: now };
    follow("count 10 replies", run(Job::CountBelow(job)), (22.0, 80.0)).await;
    assert_eq!(store.counts(&[thread]).await.unwrap(), [11]);

    let user = store.user(UserId(7), Reading::Consistent).await.unwrap().unwrap();
    follow("rename the writer of 11 comments", run(Job::Rename(Rename::to(&user))), (2.0, 33.0)).await;
    for id in &replies {
        assert_eq!(store.comment(CommentId(*id), Reading::Consistent).await.unwrap().unwrap().name, user.name);
    }

    let delete = client.delete_item().table_name(TABLE).key("pk", AttributeValue::S(format!("C#{parent}")));
    delete.key("sk", AttributeValue::S("C".to_owned())).send().await.unwrap();
    let job = CleanUp { comment: CommentId(parent), replies: 10, deleted_at: now };
    follow("remove 10 replies", run(Job::CleanUp(job)), (13.0, 50.0)).await;
    assert!(store.comments_with_ancestors(replies.into_iter().map(CommentId).collect()).await.unwrap().is_empty());
}

/// Removes these comments from the count of `posts/1`, which leaves `left`.
async fn uncount(world: &World, comments: &[u64], left: u64) {
    world.wait_until_idle().await;
    for id in comments {
        world.remove("T#posts#1", &format!("K#{id:016}")).await;
    }
    world.set("T#posts#1", "K", "n", Some(AttributeValue::N(left.to_string()))).await;
}

async fn without_followers(world: World) -> Store {
    world.wait_until_idle().await;
    world.store()
}

/// Does a request's follow-up work. Fails if the work costs more than `bound` in read and write units.
async fn follow<T>(name: &str, work: impl Future<Output = Result<T, Fault>>, bound: (f64, f64)) {
    let (done, cost) = meter::measure(work).await;
    done.unwrap();
    println!("| {name} | {} | {} | {} |", cost.read_units, cost.write_units, cost.trips);
    assert!(cost.read_units <= bound.0 && cost.write_units <= bound.1, "{name}: {cost:?}");
}

/// One unit per write is for the limiter, which counts an expensive write as several.
#[tokio::test]
async fn requests_about_the_largest_comments_keep_to_their_bounds() {
    // DynamoDB Local counts whole items toward the 1 MB limit of a page from a keys-only index.
    let embedded = || {
        let world = metered(&[]);
        world.leave_the_second_engine();
        world
    };
    let mut table = Table::default();
    let world = embedded();
    let (ada, bob) =
        (world.user(7, "Ada Lovelace"), reader(&world, 1000, largest::fill(&world, 1, 0, 0).await[0]).await);
    ada.get("ui").await.ok(200);
    let create = ada.post("posts/2/comments", json!({ "body": largest::body() }));
    let created = create.await.ok(201);
    let id = created.id();
    table.row("create a parent of 40 KB", created, (1.5, 128.0, 3));
    let reply = json!({ "body": largest::body(), "parent_id": id });
    table.measure(&world, "reply to it with as much", ada.post("posts/2/comments", reply), (6.5, 246.0, 4)).await;
    table.measure(&world, "like it", bob.like(id), (11.0, 126.0, 4)).await;
    table.measure(&world, "report it", bob.report(id, "spam"), (11.0, 128.0, 4)).await;
    table.measure(&world, "edit it", ada.edit(id, &largest::body().replace("😀", "😁")), (11.5, 82.0, 5)).await;
    for _ in 0..20 {
        ada.comment("posts/3", &largest::body()).await;
    }
    world.wait_until_idle().await;
    table.row("feed of 20", world.guest().get("posts/3/feed.atom").await, (101.0, 0.0, 2));
    for replies in [0, 3] {
        let world = embedded();
        let parents = largest::fill(&world, 50, replies, usize::try_from(replies).unwrap()).await;
        let list = world.guest().list("posts/1", "").await;
        table.row(
            format!("list of 10, {replies} replies each"),
            list,
            (if replies == 0 { 128.5 } else { 256.0 }, 0.0, 2),
        );
        let list = world.guest().list("posts/1", "per_page=50").await;
        assert_eq!(list.ids().len(), parents.len());
        // Once the response is full, missing parents are read one by one.
        table.row(
            format!("list of 50, {replies} replies each"),
            list,
            (if replies == 0 { 246.5 } else { 539.0 }, 0.0, 6),
        );
    }
    let world = embedded();
    let parent = largest::fill(&world, 1, 50, 0).await[0];
    table.row("replies, 50", world.guest().replies(parent, "per_page=50").await, (252.0, 0.0, 4));
    table.check();
}

#[tokio::test]
async fn webhooks_keep_to_their_bounds() {
    let (world, receiver) = (metered(&WEBHOOKS), Receiver::start().await);
    let mut table = Table::default();
    let moderator = world.moderator();
    moderator.get("ui").await.ok(200);
    let webhook = json!({ "url": receiver.url, "events": ["comment.created"] });
    let added = moderator.post("moderation/webhooks", webhook).await.ok(201);
    let (id, path) = (added.id(), format!("moderation/webhooks/{}", added.id()));
    table.row("add a webhook", added, (0.5, 7.0, 3));
    table.row("webhooks", moderator.get("moderation/webhooks").await, (1.5, 0.0, 2));
    for _ in 0..49 {
        moderator.post(&format!("{path}/test"), json!({})).await.ok(202);
    }
    let test = format!("{path}/test");
    table.measure(&world, "test a webhook", moderator.post(&test, json!({})), (2.5, 2.0, 4)).await;
    world.wait_until_idle().await;
    table.row("deliveries, 50", moderator.get(&format!("{path}/deliveries?per_page=50")).await, (4.5, 0.0, 4));
    let change = moderator.patch(&path, json!({ "enabled": false }));
    let comment = world.user(7, "Ada Lovelace").comment("posts/1", &prose(1)).await;
    world.wait_until_idle().await;
    let known = receiver.received().len();
    let message = webhook_message(id, comment, "msg_1_00000000000000000000000000000000");
    let deliver = async {
        assert!(world.deliver_messages(&[message], usize::MAX).await);
        Ok::<_, Fault>(())
    };
    follow("deliver a webhook", deliver, (6.5, 2.0)).await;
    assert_eq!(receiver.received().len(), known + 1);
    table.measure(&world, "change a webhook", change, (2.5, 5.0, 5)).await;
    table.measure(&world, "remove a webhook", moderator.delete(&path), (1.5, 7.0, 4)).await;
    table.check();
}

#[tokio::test]
async fn repeated_requests_of_pages_keep_to_their_bounds() {
    let world = metered(&[]);
    let mut table = Table::default();
    let ada = world.user(7, "Ada Lovelace");
    for n in 0..30 {
        ada.comment("posts/1", &prose(n)).await;
    }
    world.wait_until_idle().await;
    let names: Vec<String> = (1..=100).map(|n| format!("posts/{n}")).collect();
    for (who, actor) in
        [("", world.guest()), (", signed in", reader(&world, 1000, ada.comment("posts/2", "x").await).await)]
    {
        let counts = actor.get(&format!("counts?threads={}", names.join(","))).await;
        assert_eq!(counts.data().as_object().unwrap().len(), 100);
        table.row(format!("counts of 100 threads{who}"), counts, (50.0, 0.0, 1));
        let counts = actor.get("counts?threads=posts/1").await;
        assert_eq!(counts.data()["posts/1"], 30);
        table.row(format!("counts of a thread{who}"), counts, (0.5, 0.0, 1));
        let changes = actor.get("posts/1/changes").await;
        assert_eq!(changes.data()["newest"].as_array().unwrap().len(), 20);
        table.row(format!("changes{who}"), changes, (1.0, 0.0, 1));
        let feed = actor.get("posts/1/feed.atom").await;
        assert_eq!(feed.json.as_str().unwrap().matches("<entry>").count(), 20);
        table.row(format!("feed{who}"), feed, (12.0, 0.0, 2));
    }
    let parent = ada.comment("posts/3", &prose(0)).await;
    for n in 0..20 {
        ada.reply("posts/3", parent, &prose(n)).await;
    }
    world.wait_until_idle().await;
    // Parents of the newest twenty are read too, unless they are among the twenty.
    let feed = world.guest().get("posts/3/feed.atom").await;
    assert_eq!(feed.json.as_str().unwrap().matches("<entry>").count(), 20);
    table.row("feed of replies", feed, (12.5, 0.0, 3));
    table.check();
}

#[tokio::test]
async fn the_list_page_compresses_to_8_kilobytes() {
    let world = metered(&[]);
    let ids = seed(&world, 10).await;
    let ada = reader(&world, 1000, ids[0]).await.with(ACCEPT_ENCODING, "gzip");
    let reply = ada.list("posts/big", "").await;
    println!("the list page: {} bytes compressed, of {}", reply.body.len(), reply.json.to_string().len());
    assert!(reply.body.len() <= 8 * 1024, "{}", reply.body.len());
}
