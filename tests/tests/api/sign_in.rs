//! Sign-in with an emailed code, and each threat that it must resist.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, ORIGIN};
use serde_json::{Value, json};
use server::outbox::SentMail;
use server::settings::DELIVERIES;
use shared::domain::mail_keys::{Link, MailKeys, Purpose};
use shared::domain::secret::Secret;
use tests::{Actor, Faults, MAIL, SALT, SIGN_IN, Setup, TestResponse, World, by_guest, code, wants};
use tracing_subscriber::util::SubscriberInitExt;

use crate::mails::{hear_of, press};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
pub(crate) const ADA: &str = "ada@sign-in.example";

fn world() -> World {
    World::with(&SIGN_IN)
}

/// Requests a code. Returns the flow.
pub(crate) async fn start(actor: &Actor, email: &str) -> String {
    let answer = actor.post("sign_in", json!({ "email": email })).await.ok(201);
    assert_eq!(answer.data()["expires_in"], 600);
    answer.data()["flow"].as_str().unwrap().to_owned()
}

pub(crate) async fn mails(world: &World, email: &str) -> Vec<SentMail> {
    world.wait_until_idle().await;
    world.mails().into_iter().filter(|mail| mail.to == email).collect()
}

pub(crate) async fn finish(actor: &Actor, flow: &str, code: &str) -> TestResponse {
    actor.post("sign_in/finish", json!({ "flow": flow, "code": code })).await
}

pub(crate) struct Session {
    pub(crate) actor: Actor,
    pub(crate) refresh: String,
    pub(crate) user: Value,
}

pub(crate) fn session(actor: &Actor, answer: &TestResponse) -> Session {
    let data = answer.data();
    let text = |field: &str| data[field].as_str().unwrap().to_owned();
    Session {
        actor: actor.clone().with_token(&text("access_token")),
        refresh: text("refresh_token"),
        user: data["user"].clone(),
    }
}

/// Signs in from the actor's network.
pub(crate) async fn sign_in(world: &World, actor: &Actor, email: &str) -> Session {
    let flow = start(actor, email).await;
    let mail = mails(world, email).await.pop().expect("a mail");
    session(actor, &finish(actor, &flow, &code(&mail)).await.ok(200))
}

pub(crate) async fn member(world: &World, email: &str, name: &str) -> Session {
    let session = sign_in(world, &world.guest(), email).await;
    session.actor.put("me/name", json!({ "name": name })).await.ok(200);
    session
}

/// Uses a refresh token, from another network.
pub(crate) async fn refresh(world: &World, token: &str) -> TestResponse {
    world.guest().post("sign_in/refresh", json!({ "refresh_token": token })).await
}

fn wrong(code: &str) -> String {
    format!("{:08}", (code.parse::<u32>().unwrap() + 1) % 100_000_000)
}

#[tokio::test]
async fn a_stranger_signs_in_by_an_emailed_code_and_writes_under_a_name() {
    let world = World::with(&[&SIGN_IN[..], &[("SVC_GUEST_SHOW_GRAVATAR", "false")]].concat());
    let ada = sign_in(&world, &world.guest(), ADA).await;
    assert_eq!((&ada.user["name"], &ada.user["avatar"]), (&Value::Null, &json!("")));
    let ui = ada.actor.get("ui").await.ok(200);
    assert_eq!(ui.data()["sign_in"], true);
    assert_eq!(
        ui.data()["auth"]["user"],
        json!({ "id": ada.user["id"], "name": null, "avatar": "", "name_from": null })
    );
    let comment = world.user(7, "Bob").comment("posts/1", "x").await;
    ada.actor.like(comment).await.ok(200);
    ada.actor.report(comment, "spam").await.ok(201);
    ada.actor.write("posts/1", None, "Hello").await.invalid("name");
    let named = ada.actor.put("me/name", json!({ "name": " Ada " })).await.ok(200);
    assert_eq!(*named.data(), json!({ "id": ada.user["id"], "name": "Ada", "avatar": "" }));
    let written = ada.actor.write("posts/1", None, "Hello").await.ok(201);
    assert_eq!(written.data()["user"], *named.data());
    world.wait_until_idle().await;
    assert_eq!(ada.actor.get("users?q=ada").await.ok(200).json["data"], json!([named.data()]));
}

#[tokio::test]
async fn a_domain_in_another_script_and_its_punycode_are_one_account() {
    let world = world();
    let ascii = "ida@xn--bcher-kva.example";
    let flow = start(&world.guest(), "ida@b\u{fc}cher.example").await;
    let mail = mails(&world, ascii).await.pop().unwrap();
    let first = session(&world.guest(), &finish(&world.guest(), &flow, &code(&mail)).await.ok(200));
    assert_eq!(sign_in(&world, &world.guest(), ascii).await.user["id"], first.user["id"]);
}

#[tokio::test]
async fn the_email_names_site_and_host_and_has_no_link() {
    let world = World::with(&[&SIGN_IN[..], &[("SVC_SITE_NAME", "Blog & Co")]].concat());
    let page = world.guest().with(ORIGIN, "https://www.example.org");
    for (language, word) in [("en", "only on"), ("de", "nur auf"), ("es", "solo en"), ("fr", "uniquement sur")] {
        let email = format!("{language}@sign-in.example");
        start(&page.clone().with(ACCEPT_LANGUAGE, language), &email).await;
        let mail = mails(&world, &email).await.pop().unwrap();
        assert!(mail.subject.contains("Blog & Co") && !mail.subject.contains(&code(&mail)));
        for part in [&mail.text, &mail.html] {
            assert!(part.contains("www.example.org") && part.contains(&code(&mail)), "{part}");
            assert!(part.contains(word) && !part.contains("http") && !part.contains("href"), "{part}");
        }
        assert!(mail.raw.contains("Auto-Submitted") && !mail.raw.contains("List-Unsubscribe"));
    }
    start(&world.guest(), "none@sign-in.example").await;
    assert!(mails(&world, "none@sign-in.example").await[0].text.contains("on api.test."));
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused_and_no_response_is_cached() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    for origin in ["https://evil.example", "null"] {
        let evil = world.guest().with(ORIGIN, origin);
        for path in ["sign_in", "sign_in/finish", "sign_in/refresh", "sign_in/end"] {
            evil.post(path, json!({ "email": ADA })).await.refused(403, "forbidden");
        }
        ada.actor.clone().with(ORIGIN, origin).put("me/name", json!({ "name": "Ada" })).await.refused(403, "forbidden");
    }
    ada.actor.clone().with(ORIGIN, "https://www.example.org").put("me/name", json!({ "name": "Ada" })).await.ok(200);
    for origin in ["https://www.example.org", "https://api.test"] {
        let answer = world.guest().with(ORIGIN, origin).post("sign_in", json!({ "email": ADA })).await.ok(201);
        assert!(answer.header(CACHE_CONTROL.as_str()).contains("no-store"));
    }
}

#[tokio::test]
async fn without_the_setting_there_is_no_sign_in() {
    let world = World::new();
    for path in ["sign_in", "sign_in/finish", "sign_in/refresh", "sign_in/end"] {
        world.guest().post(path, json!({})).await.refused(404, "not_found");
    }
    world.user(7, "Ada").put("me/name", json!({ "name": "Eve" })).await.refused(404, "not_found");
    assert_eq!(world.guest().get("ui").await.ok(200).data()["sign_in"], false);
}

#[tokio::test]
async fn a_wrong_late_spent_or_unknown_code_fails_alike() {
    let world = world();
    let ada = world.guest();
    let flow = start(&ada, ADA).await;
    let right = code(&mails(&world, ADA).await[0]);
    let mut answers = vec![finish(&ada, &flow, &wrong(&right)).await];
    answers.push(finish(&ada, "nothing", &right).await);
    answers.push(finish(&ada, &flow, "").await);
    finish(&ada, &flow, &format!("{} {}", &right[..4], &right[4..])).await.ok(200);
    answers.push(finish(&ada, &flow, &right).await);
    let late = start(&ada, ADA).await;
    let code = code(mails(&world, ADA).await.last().unwrap());
    world.pass(Duration::from_mins(10));
    answers.push(finish(&ada, &late, &code).await);
    for answer in &answers {
        answer.clone().refused(422, "sign_in_failed");
        assert_eq!(answer.json, answers[0].json);
    }
}

#[tokio::test]
async fn a_code_has_five_tries_including_parallel_ones() {
    let world = world();
    let ada = world.guest();
    let flow = start(&ada, ADA).await;
    let right = code(&mails(&world, ADA).await[0]);
    let mallories: Vec<Actor> = (0..24).map(|_| world.guest()).collect();
    let wrong = wrong(&right);
    for answer in join_all(mallories.iter().map(|mallory| finish(mallory, &flow, &wrong))).await {
        answer.refused(422, "sign_in_failed");
    }
    finish(&ada, &flow, &right).await.refused(422, "sign_in_failed");

    let flow = start(&ada, ADA).await;
    let right = code(mails(&world, ADA).await.last().unwrap());
    let answers = join_all(mallories.iter().take(5).map(|mallory| finish(mallory, &flow, &right))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "one code, one session");
}

#[tokio::test]
async fn every_address_gets_the_same_response_and_bounds_are_silent() {
    let world = World::with(&[&SIGN_IN[..], &MAIL].concat());
    let (banned, stopped) = ("banned@sign-in.example", "stopped@sign-in.example");
    let path = format!("users/{}/ban", sign_in(&world, &world.guest(), banned).await.user["id"]);
    world.moderator().put(&path, json!({})).await.ok(200);
    sign_in(&world, &world.guest(), ADA).await;
    let keys = MailKeys::new(&Secret::from(SALT.to_owned()));
    let stop = Link { recipient: keys.guest(stopped), purpose: Purpose::Stop { thread: None } };
    press(&world.guest(), &format!("mail/{}", keys.token(&stop)), "action=stop").await.ok(200);
    let shape = |answer: TestResponse| {
        let flow = answer.data()["flow"].as_str().unwrap().len();
        (answer.status, flow, answer.data()["expires_in"].clone(), answer.headers.len())
    };
    let mut shapes = Vec::new();
    for email in [ADA, "unknown@sign-in.example", banned, stopped] {
        for _ in 0..5 {
            shapes.push(shape(world.guest().post("sign_in", json!({ "email": email })).await));
        }
        let sent = mails(&world, email).await.len();
        assert_eq!(sent, if [ADA, banned].contains(&email) { 4 } else { 3 }, "three unused codes an hour");
    }
    assert!(shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:?}");
    world.guest().post("sign_in", json!({ "email": "ø@sign-in.example" })).await.invalid("email");
    world.guest().post("sign_in", json!({ "email": 7 })).await.invalid("email");
    world.guest().post("sign_in", json!({})).await.invalid("email");
}

#[tokio::test]
async fn a_code_that_a_limit_of_its_address_withholds_is_logged_without_the_address() {
    let world = world();
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    let _guard = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).set_default();
    let mallory = world.guest();
    for _ in 0..3 {
        start(&mallory, ADA).await;
    }
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(log.matches("no code sent: a limit of the address is reached").count(), 1, "{log}");
    assert!(!log.contains(ADA), "{log}");
}

#[tokio::test]
async fn strangers_cannot_lock_the_owner_out_because_known_networks_have_their_own_codes() {
    let world = world();
    let home = world.guest();
    let mallory = world.guest();
    for _ in 0..4 {
        start(&mallory, "Ada+x@sign-in.example").await;
    }
    assert_eq!(mails(&world, "Ada+x@sign-in.example").await.len(), 2, "two of one network");
    sign_in(&world, &home, ADA).await;
    for network in 0..4 {
        start(&world.guest(), &format!("ada+{network}@sign-in.example")).await;
    }
    sign_in(&world, &home, ADA).await;
}

#[tokio::test]
async fn a_network_has_ten_codes_and_thirty_wrong_tries_an_hour() {
    let world = world();
    let address = |host: u32| world.guest().from(&format!("2001:db8:7:{host:x}::1"));
    for n in 0..10 {
        start(&address(n), &format!("n{n}@sign-in.example")).await;
    }
    let refused = address(99).post("sign_in", json!({ "email": ADA })).await.refused(429, "rate_limited");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() <= 3_600);
    assert_eq!((refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")), ("10", "0"));
    start(&world.guest().from("2001:db8:8::1"), ADA).await;
    for n in 0..30 {
        finish(&address(n), "nothing", "12345678").await.refused(422, "sign_in_failed");
    }
    let refused = finish(&address(99), "nothing", "12345678").await.refused(429, "rate_limited");
    assert_eq!((refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")), ("30", "0"));
    let crowd = world.guest().from("2001:db8:9::1");
    let answers = join_all((0..64).map(|_| finish(&crowd, "nothing", "12345678"))).await;
    let wrong = answers.iter().filter(|answer| answer.status == 422).count();
    assert!(wrong == 30 && answers.iter().all(|answer| [422, 429].contains(&answer.status)), "{wrong} at once");
    world.pass(HOUR);
    start(&address(0), "later@sign-in.example").await;
    finish(&address(0), "nothing", "12345678").await.refused(422, "sign_in_failed");
}

/// Requests codes for `count` addresses of a domain, each from a separate network. Returns the number of emails sent to
/// the domain so far.
async fn flood(world: &World, domain: &str, count: usize) -> usize {
    for n in 0..count {
        start(&world.guest(), &format!("n{n}@{domain}")).await;
    }
    sent_to(world, domain).await
}

async fn sent_to(world: &World, domain: &str) -> usize {
    world.wait_until_idle().await;
    world.mails().iter().filter(|mail| mail.to.ends_with(domain)).count()
}

#[tokio::test]
async fn a_quarter_of_the_codes_of_a_domain_and_of_all_is_kept_for_accounts() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    world.pass(HOUR);
    // Codes refused by the domain's limit don't count toward any other limit.
    assert_eq!(flood(&world, "sign-in.example", 140).await, 1 + 112);
    assert_eq!(flood(&world, "two.example", 140).await, 112);
    assert_eq!(flood(&world, "three.example", 3).await, 1, "225 in all");
    start(&ada.actor, ADA).await;
    start(&world.guest(), ADA).await;
    assert_eq!(mails(&world, ADA).await.len(), 3, "an address with an account gets one still, from a new network too");
    world.pass(HOUR);
    assert_eq!(flood(&world, "three.example", 1).await, 2);
}

#[tokio::test]
async fn a_known_network_gets_codes_where_the_domain_has_had_all_of_them() {
    let world = world();
    let mut accounts = Vec::new();
    for n in 0..14 {
        let email = format!("account{n}@mail.example");
        accounts.push((sign_in(&world, &world.guest(), &email).await.actor, email));
    }
    world.pass(HOUR);
    assert_eq!(flood(&world, "mail.example", 120).await, 14 + 112);
    for (_, email) in &accounts {
        for _ in 0..3 {
            start(&world.guest(), email).await;
        }
    }
    assert_eq!(sent_to(&world, "mail.example").await, 14 + 150);
    let (home, email) = &accounts[0];
    start(home, email).await;
    assert_eq!(sent_to(&world, "mail.example").await, 14 + 150 + 1);
}

#[tokio::test]
async fn a_network_has_ten_codes_a_day_for_addresses_without_an_account() {
    let world = world();
    sign_in(&world, &world.guest(), ADA).await;
    let mallory = world.guest();
    for hour in 0..3 {
        for n in 0..9 {
            start(&mallory, &format!("n{n}@hour{hour}.example")).await;
        }
        world.pass(HOUR);
    }
    let sent = [sent_to(&world, "hour0.example").await, sent_to(&world, "hour1.example").await];
    assert_eq!((sent, sent_to(&world, "hour2.example").await), ([9, 1], 0));
    start(&mallory, ADA).await;
    assert_eq!(mails(&world, ADA).await.len(), 2);
    start(&world.guest(), "n0@elsewhere.example").await;
    assert_eq!(sent_to(&world, "elsewhere.example").await, 1);
    world.pass(DAY);
    start(&mallory, "n0@later.example").await;
    assert_eq!(sent_to(&world, "later.example").await, 1);
}

#[tokio::test]
async fn codes_that_are_requested_at_once_keep_to_every_bound() {
    let world = world();
    let network = world.guest();
    let of_network = (0..24).map(|n| status_of_start(network.clone(), format!("n{n}@network.example")));
    let answers = join_all(of_network).await;
    assert_eq!(answers.iter().filter(|status| **status == 201).count(), 10, "{answers:?}");
    assert_eq!(sent_to(&world, "network.example").await, 10);
    join_all((0..24).map(|_| status_of_start(world.guest(), ADA.to_owned()))).await;
    assert_eq!(mails(&world, ADA).await.len(), 3);
    assert_eq!(flood(&world, "domain.example", 100).await, 100);
    join_all((0..24).map(|n| status_of_start(world.guest(), format!("p{n}@domain.example")))).await;
    assert_eq!(sent_to(&world, "domain.example").await, 112);
}

async fn status_of_start(actor: Actor, email: String) -> u16 {
    actor.post("sign_in", json!({ "email": email })).await.status
}

#[tokio::test]
async fn an_address_that_bounced_complained_or_was_refused_gets_no_code_for_thirty_days() {
    let world = world();
    for (name, arrives) in [("bounce", 1), ("complaint", 1), ("refused", 0)] {
        let email = format!("{name}@{name}.example");
        world.reject_mails_to("refused@refused.example");
        start(&world.guest(), &email).await;
        assert_eq!(mails(&world, &email).await.len(), arrives, "{name}");
        world.reject_mails_to("nobody@sign-in.example");
        start(&world.guest(), &email.to_uppercase()).await;
        world.pass((30 * DAY).saturating_sub(Duration::from_secs(1)));
        start(&world.guest(), &email).await;
        let sent = async || sent_to(&world, &format!("{name}.example")).await;
        assert_eq!(sent().await, arrives, "{name}");
        // If `+` doesn't start a tag at this provider, this is another mailbox.
        start(&world.guest(), &format!("{name}+x@{name}.example")).await;
        assert_eq!(sent().await, arrives + 1, "{name}");
        world.pass(Duration::from_secs(1));
        start(&world.guest(), &email).await;
        assert_eq!(sent().await, arrives + 2, "{name}");
    }
}

#[tokio::test]
async fn a_refusal_while_the_clock_was_ahead_stops_no_codes_until_it_is_repeated() {
    let (world, ahead, email) = (world(), 400 * DAY, "ada@ahead.example");
    let refuse = async || {
        world.reject_mails_to(email);
        start(&world.guest(), email).await;
        world.wait_until_idle().await;
        world.reject_mails_to("nobody@sign-in.example");
    };
    let sent = async || {
        start(&world.guest(), email).await;
        sent_to(&world, "ahead.example").await
    };
    world.pass(ahead);
    refuse().await;
    world.turn_back(ahead);
    assert_eq!(sent().await, 1);
    world.pass(DAY);
    refuse().await;
    assert_eq!(sent().await, 1);
}

#[tokio::test]
async fn after_five_failures_in_an_hour_only_addresses_with_an_account_get_codes() {
    let world = world();
    sign_in(&world, &world.guest(), ADA).await;
    for n in 0..4 {
        start(&world.guest(), &format!("bounce@n{n}.example")).await;
        // A second failure of the same address doesn't count.
        start(&world.guest(), &format!("bounce@n{n}.example")).await;
        world.wait_until_idle().await;
    }
    assert_eq!(flood(&world, "fifth.example", 1).await, 1);
    start(&world.guest(), "complaint@n4.example").await;
    world.wait_until_idle().await;
    assert_eq!(flood(&world, "later.example", 1).await, 0);
    start(&world.guest(), ADA).await;
    assert_eq!(mails(&world, ADA).await.len(), 2);
    world.pass(HOUR);
    assert_eq!(flood(&world, "later.example", 1).await, 1);
}

#[tokio::test]
async fn a_bounce_of_another_email_stops_codes_to_the_address_without_counting_as_a_failed_code() {
    let world = World::with(&[&SIGN_IN[..], &MAIL].concat());
    for n in 0..6 {
        hear_of(&world, &format!("u{n}"), &format!("old{n}@sign-in.example"), "Bounce").await;
    }
    start(&world.guest(), "old0@sign-in.example").await;
    assert_eq!(mails(&world, "old0@sign-in.example").await.len(), 0);
    start(&world.guest(), "new@sign-in.example").await;
    assert_eq!(mails(&world, "new@sign-in.example").await.len(), 1);
}

#[tokio::test]
async fn a_code_that_waits_is_not_sent_once_its_address_failed() {
    let world = world();
    world.reject_mails_to("refused@sign-in.example");
    world.refuse_mails(1);
    start(&world.guest(), "refused@sign-in.example").await;
    world.wait_until_idle().await;
    start(&world.guest(), "refused@sign-in.example").await;
    world.wait_until_idle().await;
    world.reject_mails_to("nobody@sign-in.example");
    world.finish_jobs().await;
    assert_eq!((given_up(&world), mails(&world, "refused@sign-in.example").await.len()), (0, 0));
}

#[tokio::test]
async fn every_request_for_a_code_causes_the_same_calls() {
    let world = world();
    let home = world.guest();
    sign_in(&world, &home, ADA).await;
    start(&world.guest(), "bounce@sign-in.example").await;
    world.wait_until_idle().await;
    let mut calls = Vec::new();
    let mut ask = async |whose: &str, actor: &Actor, email: &str| {
        let answer = actor.post("sign_in", json!({ "email": email })).await.ok(201);
        calls.push((whose.to_owned(), answer.cost.calls, answer.cost.write_units));
        world.wait_until_idle().await;
    };
    ask("a known network", &home, ADA).await;
    ask("an account", &world.guest(), ADA).await;
    ask("a stranger", &world.guest(), "one@sign-in.example").await;
    ask("an address that bounced", &world.guest(), "bounce@sign-in.example").await;
    let mallory = world.guest();
    for _ in 0..3 {
        ask("an address with two unused codes", &mallory, "two@sign-in.example").await;
    }
    for n in 0..6 {
        ask("a network", &mallory, &format!("n{n}@sign-in.example")).await;
    }
    world.pass(HOUR);
    for n in 0..6 {
        ask("a network with ten codes", &mallory, &format!("m{n}@sign-in.example")).await;
    }
    ask("a network with ten codes, of an account", &mallory, ADA).await;
    assert_eq!(flood(&world, "full.example", 113).await, 112);
    ask("a domain with all its codes", &world.guest(), "one@full.example").await;
    assert!(flood(&world, "more.example", 112).await < 112, "all codes are sent");
    ask("all codes are sent", &world.guest(), "last@one.example").await;
    ask("all codes are sent", &world.guest(), "one@one.example").await;
    ask("all codes are sent, to an account", &world.guest(), ADA).await;
    world.pass(HOUR);
    for n in 0..5 {
        ask("a failure", &world.guest(), &format!("bounce@n{n}.example")).await;
    }
    ask("after failures", &world.guest(), "two@one.example").await;
    let (first, units) = (calls[0].1, calls[0].2);
    assert!(calls.iter().all(|(_, calls, write)| *calls == first && *write <= units), "{calls:?}");
}

#[tokio::test]
async fn no_function_but_the_one_that_signs_may_write_the_public_keys() {
    let world = world();
    sign_in(&world, &world.guest(), ADA).await;
    for role in world.roles() {
        let (store, now) = (world.store(), world.now());
        let published = Arc::clone(role).scope(store.publish_key(&role.function, now)).await;
        assert_eq!(published.is_ok(), role.function == "sign_in", "{}", role.function);
    }
}

#[tokio::test]
async fn the_last_refresh_token_gives_the_same_successor_for_thirty_seconds() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    let next = |answer: TestResponse| answer.ok(200).data()["refresh_token"].as_str().unwrap().to_owned();
    let tabs = join_all([refresh(&world, &ada.refresh), refresh(&world, &ada.refresh)]).await;
    let successors: Vec<String> = tabs.into_iter().map(next).collect();
    assert_eq!(successors[0], successors[1]);
    world.pass(Duration::from_secs(30));
    assert_eq!(next(refresh(&world, &ada.refresh).await), successors[0]);
    world.pass(Duration::from_secs(1));
    refresh(&world, &ada.refresh).await.refused(422, "sign_in_failed");
    refresh(&world, &successors[0]).await.refused(422, "sign_in_failed");
    for odd in ["", "nothing", &ada.refresh.replacen('.', "1.", 1)] {
        refresh(&world, odd).await.refused(422, "sign_in_failed");
    }
}

#[tokio::test]
async fn a_session_lasts_thirty_days_without_use_and_180_in_all() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    world.pass(30 * DAY);
    let mut token = ada.refresh;
    for _ in 0..8 {
        token = session(&world.guest(), &refresh(&world, &token).await.ok(200)).refresh;
        world.pass(18 * DAY);
    }
    world.pass(6 * DAY + Duration::from_secs(1));
    refresh(&world, &token).await.refused(422, "sign_in_failed");
    let unused = sign_in(&world, &world.guest(), ADA).await;
    world.pass(30 * DAY + Duration::from_secs(1));
    refresh(&world, &unused.refresh).await.refused(422, "sign_in_failed");
}

#[tokio::test]
async fn signing_out_ends_one_session_and_everywhere_ends_all_at_once() {
    let world = world();
    let guest = world.guest();
    let [one, two, three] =
        [sign_in(&world, &guest, ADA).await, sign_in(&world, &guest, ADA).await, sign_in(&world, &guest, ADA).await];
    assert_eq!(one.user["id"], two.user["id"]);
    let end = async |token: &str, everywhere: bool| {
        guest.post("sign_in/end", json!({ "refresh_token": token, "everywhere": everywhere })).await.ok(204);
    };
    end(&one.refresh, false).await;
    refresh(&world, &one.refresh).await.refused(422, "sign_in_failed");
    let two = session(&guest, &refresh(&world, &two.refresh).await.ok(200));
    end(&one.refresh, true).await;
    two.actor.get("users?q=a").await.ok(200);
    end(&two.refresh, true).await;
    for session in [&two, &three] {
        let refused = session.actor.get("users?q=a").await.refused(401, "unauthenticated");
        let reason = "token not accepted: its session has ended, or another sub has the same id";
        assert_eq!(refused.refused_because.as_deref(), Some(reason));
        let ui = session.actor.get("ui").await.ok(200);
        assert_eq!(ui.refused_because, None);
        assert_eq!(ui.data()["auth"]["authenticated"], false, "reads ignore bad tokens");
        session.actor.get("posts/1/comments?include=ui").await.ok(200);
        refresh(&world, &session.refresh).await.refused(422, "sign_in_failed");
    }
    end("nothing", true).await;
    let again = sign_in(&world, &guest, ADA).await;
    assert_eq!(again.user["id"], two.user["id"]);
    again.actor.get("users?q=a").await.ok(200);
}

#[tokio::test]
async fn a_token_is_ours_and_valid_for_ten_minutes() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    let claims = json!({ "sub": "9.ada", "iss": "svc-pro:sign-in", "name": "Ada", "roles": ["moderator"] });
    world.claiming(&claims).get("users?q=a").await.refused(401, "unauthenticated");
    world.pass(Duration::from_secs(599));
    ada.actor.get("users?q=a").await.ok(200);
    world.pass(Duration::from_secs(1));
    ada.actor.get("users?q=a").await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn two_instances_have_one_key_and_a_changed_secret_of_the_host_ends_no_session() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    let other = world.again(&[&SIGN_IN[..], &[("SVC_JWT_SECRET", "another secret of at least 32 bytes")]].concat());
    let at_other = other.guest().with_token(ada.actor.token());
    at_other.get("users?q=a").await.ok(200);
    let refreshed = session(&other.guest(), &refresh(&other, &ada.refresh).await.ok(200));
    world.guest().with_token(refreshed.actor.token()).get("users?q=a").await.ok(200);
}

#[tokio::test]
async fn a_name_can_be_changed_again_a_day_after_the_last_change() {
    let world = world();
    let ada = member(&world, ADA, "Ada").await;
    let name = async |name: &str| {
        let fresh = sign_in(&world, &world.guest(), ADA).await;
        fresh.actor.put("me/name", json!({ "name": name })).await
    };
    let name_from = async || {
        let fresh = sign_in(&world, &world.guest(), ADA).await;
        let [alone, listed] = ["ui", "posts/1/comments?include=ui"].map(|path| fresh.actor.get(path));
        let (alone, listed) = (alone.await.ok(200), listed.await.ok(200));
        assert_eq!(alone.data()["auth"], listed.json["ui"]["auth"]);
        alone.data()["auth"]["user"]["name_from"].clone()
    };
    let comment = ada.actor.comment("posts/1", "x").await;
    assert_eq!(name_from().await, json!(null));
    ada.actor.put("me/name", json!({ "name": "Ada L." })).await.ok(200);
    let next = name_from().await;
    assert_eq!(next, json!((world.now() + Duration::from_hours(24)).to_string()));
    name("Ada").await.refused(429, "rate_limited");
    world.pass(Duration::from_secs(24 * 3_600 - 1));
    name("Ada").await.refused(429, "rate_limited");
    assert_eq!(name_from().await, next);
    world.pass(Duration::from_secs(1));
    assert_eq!(name_from().await, json!(null));
    name("Ada M.").await.ok(200);
    world.finish_jobs().await;
    assert_eq!(world.guest().see("posts/1", comment).await["user"]["name"], "Ada M.");
}

#[tokio::test]
async fn the_name_of_an_account_follows_the_rules_for_guest_names() {
    let world = world();
    let ada = sign_in(&world, &world.guest(), ADA).await;
    let long = "x".repeat(101);
    for odd in ["", " ", "\u{200b}", "a\nb", "\u{202e}a", "a\u{300}\u{301}\u{302}", &long] {
        ada.actor.put("me/name", json!({ "name": odd })).await.invalid("name");
    }
    world.guest().put("me/name", json!({ "name": "Eve" })).await.refused(401, "unauthenticated");
    world.user(7, "Bob").put("me/name", json!({ "name": "Eve" })).await.refused(403, "forbidden");
}

#[tokio::test]
async fn no_name_resembles_the_site_or_a_moderator() {
    let settings =
        [("SVC_SITE_NAME", "The Blog"), ("SVC_ALLOW_GUESTS", "true"), ("SVC_MODERATORS", "email:ada@sign-in.example")];
    let world = World::with(&[&SIGN_IN[..], &settings].concat());
    let ada = member(&world, ADA, "Ilse Ada").await;
    let eve = sign_in(&world, &world.guest(), "eve@sign-in.example").await;
    for name in
        ["The Blog", "the-blog", "ilse ada", "llse Ada", "Іlse Аda", "IlseAda!", "llse ADA", "Ilse Ada ✓", "ɪlse🅰da"]
    {
        eve.actor.put("me/name", json!({ "name": name })).await.invalid("name");
        let mut comment = by_guest("Hello");
        comment["guest_name"] = json!(name);
        world.guest().post("posts/1/comments", comment).await.invalid("guest_name");
    }
    ada.actor.put("me/name", json!({ "name": "ILSE ADA" })).await.ok(200);
    eve.actor.put("me/name", json!({ "name": "Eve" })).await.ok(200);
    world.guest().write("posts/1", None, "Hello").await.ok(201);
}

#[tokio::test]
async fn another_instance_learns_the_name_of_a_moderator_within_a_minute() {
    let settings = [&SIGN_IN[..], &[("SVC_MODERATORS", "email:ada@sign-in.example")]].concat();
    let world = World::with(&settings);
    let other = world.again(&settings);
    let eve = sign_in(&world, &world.guest(), "eve@sign-in.example").await;
    let eve = other.guest().with_token(eve.actor.token());
    eve.put("me/name", json!({ "name": "Eve" })).await.ok(200);
    member(&world, ADA, "Ilse Ada").await;
    other.pass(Duration::from_mins(1));
    eve.put("me/name", json!({ "name": "llse Ada" })).await.invalid("name");
}

#[tokio::test]
async fn the_name_of_a_moderator_in_the_settings_is_taken_once_their_token_was_seen_anywhere() {
    let settings = [("SVC_ALLOW_GUESTS", "true"), ("SVC_MODERATORS", "9,grace")];
    let world = World::with(&[&SIGN_IN[..], &settings].concat());
    let write = async |name: &str| {
        let mut comment = by_guest("Hello");
        comment["guest_name"] = json!(name);
        world.guest().post("posts/1/comments", comment).await
    };
    write("Grace Hopper").await.ok(201);
    for (sub, name) in [("9", "Grace Hopper"), ("grace", "Grace H.")] {
        world.claiming(&json!({ "sub": sub, "name": name })).list("posts/1", "").await;
        for like in [name, &name.to_uppercase(), &format!("{name} ✓"), &name.replace(' ', "+")] {
            write(like).await.invalid("guest_name");
        }
    }
    world.claiming(&json!({ "sub": "10", "name": "Eve" })).list("posts/1", "").await;
    write("Eve").await.ok(201);
}

#[tokio::test]
async fn a_name_like_a_moderators_is_refused_once_the_moderator_commented_with_a_host_token() {
    let world = World::with(&[&SIGN_IN[..], &[("SVC_ALLOW_GUESTS", "true")]].concat());
    let mut comment = by_guest("Hello");
    comment["guest_name"] = json!("grace-hopper");
    let guest = world.guest();
    let write = || guest.post("posts/1/comments", comment.clone());
    write().await.ok(201);
    let role = json!({ "sub": "9", "name": "Grace Hopper", "roles": ["moderator"] });
    let id = world.claiming(&role).comment("posts/1", "Hello").await;
    write().await.invalid("guest_name");
    world.claiming(&role).edit(id, "Hello again").await.ok(200);
}

#[tokio::test]
async fn requested_emails_go_to_the_address_of_the_account_without_a_confirmation() {
    let page = [("SVC_SUBSCRIPTIONS", "true"), ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}")];
    let world = World::with(&[&MAIL[..], &SIGN_IN[..], &page[..]].concat());
    let (ada, bob) = (member(&world, ADA, "Ada").await, world.user(8, "Bob"));
    let shown = ada.actor.get("me/notifications").await.ok(200);
    assert_eq!((&shown.data()["state"], &shown.data()["email"]), (&json!("off"), &Value::Null));
    let one = json!({ "body": "x", "subscribe_to_replies": true });
    let subscribed = ada.actor.post("posts/1/comments", one).await.ok(201).id();
    bob.reply("posts/1", subscribed, "an answer to one comment").await;
    world.finish_jobs().await;
    let fresh = sign_in(&world, &world.guest(), ADA).await;
    let chosen = fresh.actor.put("me/notifications", wants(&["replies"])).await.ok(200);
    assert_eq!((&chosen.data()["state"], &chosen.data()["email"]), (&json!("on"), &json!("a•••@sign-in.example")));
    let later = fresh.actor.comment("posts/1", "y").await;
    bob.reply("posts/1", later, "an answer to all").await;
    world.finish_jobs().await;
    let sent = mails(&world, ADA).await;
    let has = |text: &str| sent.iter().filter(|mail| mail.text.contains(text)).count();
    assert_eq!((has("an answer to one comment"), has("an answer to all")), (1, 1));
    assert_eq!(sent.len(), 4, "two codes, two answers and no confirmation");
}

#[tokio::test]
async fn an_owner_who_is_named_by_address_moderates_and_the_sign_in_is_logged() {
    let world = World::with(&[&SIGN_IN[..], &[("SVC_MODERATORS", "email:Ada@Sign-In.example")]].concat());
    let ada = member(&world, ADA, "Ada").await;
    ada.actor.get("moderation/comments?state=pending").await.ok(200);
    let log = ada.actor.get("moderation/log").await.ok(200);
    assert_eq!(log.rows().len(), 1);
    assert_eq!((&log.rows()[0]["action"], &log.rows()[0]["moderator"]["id"]), (&json!("sign_in"), &ada.user["id"]));
    let tag = member(&world, "ada+x@sign-in.example", "Tag").await;
    tag.actor.get("moderation/comments?state=pending").await.refused(403, "forbidden");
    let claiming = world.claiming(&json!({ "sub": "x", "name": "Eve", "email": ADA, "email_verified": true }));
    claiming.get("moderation/comments?state=pending").await.refused(403, "forbidden");
}

#[tokio::test]
async fn banned_users_can_sign_in_but_not_write() {
    let world = world();
    let ada = member(&world, ADA, "Ada").await;
    let path = format!("users/{}/ban", ada.user["id"]);
    world.moderator().put(&path, json!({})).await.ok(200);
    let again = sign_in(&world, &world.guest(), ADA).await;
    again.actor.write("posts/1", None, "x").await.refused(403, "comment_banned");
    again.actor.put("me/name", json!({ "name": "Eve" })).await.refused(403, "comment_banned");
    refresh(&world, &again.refresh).await.ok(200);
}

#[tokio::test]
async fn signing_in_continues_in_read_only_mode() {
    let world = World::with(&[&SIGN_IN[..], &[("SVC_READ_ONLY", "true")]].concat());
    let ada = sign_in(&world, &world.guest(), ADA).await;
    ada.actor.put("me/name", json!({ "name": "Ada" })).await.refused(423, "read_only");
    let next = session(&world.guest(), &refresh(&world, &ada.refresh).await.ok(200));
    ada.actor.post("sign_in/end", json!({ "refresh_token": next.refresh })).await.ok(204);
}

#[tokio::test]
async fn neither_table_nor_queue_nor_a_response_has_an_address_or_a_code() {
    let world = world();
    let ada = world.guest();
    world.refuse_mails(1);
    let flow = start(&ada, ADA).await;
    world.wait_until_idle().await;
    let queued = world.queues().bodies(DELIVERIES).unwrap();
    assert!(queued.len() == 1 && queued[0].contains(&flow), "{queued:?}");
    world.finish_jobs().await;
    let right = code(&mails(&world, ADA).await[0]);
    let stored = async || format!("{:?}", world.items().await);
    let waiting = stored().await;
    for text in [&waiting, &queued[0]] {
        assert!(!text.contains(&right) && !text.contains("sign-in.example"), "{text}");
    }
    let answer = finish(&ada, &flow, &right).await.ok(200);
    let text = answer.json.to_string();
    let payload = text.split('.').nth(1).unwrap().to_owned();
    assert!(!text.contains("sign-in.example") && !payload.is_empty());
    let session = stored().await;
    let refresh = answer.data()["refresh_token"].as_str().unwrap();
    for secret in [&right, "sign-in.example", refresh, answer.data()["access_token"].as_str().unwrap()] {
        assert!(!session.contains(secret), "{secret}: {session}");
    }
}

#[tokio::test]
async fn a_code_is_retried_while_the_mail_server_is_down_until_the_code_expires() {
    let world = world();
    world.refuse_mails(2);
    let flow = start(&world.guest(), ADA).await;
    world.finish_jobs().await;
    let sent = mails(&world, ADA).await;
    assert_eq!(sent.len(), 1);
    finish(&world.guest(), &flow, &code(&sent[0])).await.ok(200);
    // First a server that is down for a few minutes, then a server that stays down.
    for refused in [6, 1_000] {
        let email = format!("n{refused}@sign-in.example");
        world.refuse_mails(refused);
        start(&world.guest(), &email).await;
        world.finish_jobs().await;
        assert_eq!(mails(&world, &email).await.len(), usize::from(refused == 6));
        assert_eq!(given_up(&world), 0);
    }
}

/// Returns the number of dead letters and waiting messages.
fn given_up(world: &World) -> usize {
    let count = |queue: &str| world.queues().bodies(queue).unwrap().len();
    count(DELIVERIES) + count("DeliveriesDeadLetters")
}

#[tokio::test]
async fn an_account_has_twenty_sessions_and_the_oldest_goes() {
    let world = world();
    let mut begun = Vec::new();
    for _ in 0..21 {
        begun.push(sign_in(&world, &world.guest(), ADA).await);
        world.pass(Duration::from_secs(1));
    }
    refresh(&world, &begun[0].refresh).await.refused(422, "sign_in_failed");
    for session in &begun[1..] {
        refresh(&world, &session.refresh).await.ok(200);
    }
}

/// Signs in, chooses a name, refreshes the session and signs out. Returns false if a step failed.
async fn comes_and_goes(world: &World, ada: &Actor) -> bool {
    let started = ada.post("sign_in", json!({ "email": ADA })).await;
    let Some(mail) = mails(world, ADA).await.pop().filter(|_| started.status == 201) else { return false };
    let finished = finish(ada, started.data()["flow"].as_str().unwrap(), &code(&mail)).await;
    if finished.status != 200 {
        return false;
    }
    let begun = session(ada, &finished);
    let named = begun.actor.put("me/name", json!({ "name": "Ada" })).await;
    let refreshed = refresh(world, &begun.refresh).await;
    if refreshed.status != 200 {
        return false;
    }
    let end = json!({ "refresh_token": session(ada, &refreshed).refresh, "everywhere": true });
    named.status == 200 && ada.post("sign_in/end", end).await.status == 204
}

#[tokio::test]
async fn a_reader_who_signs_in_while_the_service_dies_at_any_step_signs_in_again() {
    for steps in 0.. {
        let faults = Faults::new(21);
        let world = Setup::new(&SIGN_IN).faults(&faults).start();
        let ada = world.guest();
        faults.kill_after(steps);
        let lived = comes_and_goes(&world, &ada).await;
        faults.kill_after(u64::MAX);
        // Waits for codes and keys that the failures delayed.
        world.pass(Duration::from_mins(1));
        world.wait_until_idle().await;
        let again = sign_in(&world, &ada, ADA).await;
        again.actor.put("me/name", json!({ "name": "Ada" })).await.ok(200);
        again.actor.comment("posts/1", "x").await;
        world.finish_jobs().await;
        let users = world.items().await.into_iter().filter(|item| item["sk"].as_s().is_ok_and(|sk| sk == "U"));
        assert_eq!((users.count(), world.findings().await), (1, Vec::new()), "{steps}");
        if lived {
            assert!(steps > 20, "{steps}");
            return;
        }
    }
}
