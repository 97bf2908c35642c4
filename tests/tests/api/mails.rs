//! Emails: their recipients, contents and times, and unsubscribing. Emails are sent when they are due, and
//! `finish_jobs` moves the clock to that time.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, ORIGIN, USER_AGENT};
use serde_json::{Value, json};
use server::outbox::SentMail;
use shared::store::meter::{self, Cost};
use tests::{Actor, MAIL, TestResponse, World, by_guest, wants};

use crate::capacity::metered;

const FORM: &str = "application/x-www-form-urlencoded";

pub(crate) fn world() -> World {
    World::with(&MAIL)
}

/// Returns a member whose token has an email address.
pub(crate) fn member(world: &World, id: u64, name: &str) -> Actor {
    let email = format!("{}@example.org", name.to_lowercase());
    world.claiming(&json!({ "sub": id.to_string(), "name": name, "email": email }))
}

/// Returns a service and the members Ada and Bob.
fn two() -> (World, Actor, Actor) {
    let world = world();
    let (ada, bob) = (member(&world, 7, "Ada"), member(&world, 8, "Bob"));
    (world, ada, bob)
}

pub(crate) async fn subscribe(actor: &Actor, thread: &str) -> u64 {
    let comment = json!({ "body": "Hello", "subscribe_to_replies": true });
    actor.post(&format!("{thread}/comments"), comment).await.ok(201).id()
}

pub(crate) async fn subscribe_as_guest(actor: &Actor, email: &str) -> u64 {
    let mut comment = by_guest("Hello from Grace");
    comment["guest_email"] = json!(email);
    comment["subscribe_to_replies"] = json!(true);
    actor.post("posts/1/comments", comment).await.ok(201).id()
}

pub(crate) async fn choose(actor: &Actor, wants: Value) {
    let state = actor.put("me/notifications", wants).await.ok(200);
    assert_eq!(state.data()["state"], "on");
}

pub(crate) async fn sent(world: &World) -> Vec<SentMail> {
    world.finish_jobs().await;
    world.mails()
}

async fn sent_within(world: &World, time: Duration) -> Vec<SentMail> {
    let end = world.now() + time;
    loop {
        world.wait_until_idle().await;
        let next = world.queues().next_visible().filter(|next| *next < end).unwrap_or(end);
        world.pass(next.since(world.now()));
        if next == end {
            return world.mails();
        }
    }
}

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

fn with_browser(actor: &Actor, browser: &str) -> Actor {
    actor.clone().with(USER_AGENT, browser)
}

pub(crate) fn subjects(mails: &[SentMail]) -> Vec<String> {
    mails.iter().map(|mail| format!("{}: {}", mail.to, mail.subject)).collect()
}

/// Returns the email's links for confirming and unsubscribing, in order.
pub(crate) fn links(mail: &SentMail) -> Vec<String> {
    let words = mail.text.split_whitespace();
    words.filter(|word| word.starts_with("https://api.test/svc/api/v1/mail/")).map(str::to_owned).collect()
}

pub(crate) async fn press(actor: &Actor, link: &str, body: &str) -> TestResponse {
    actor.clone().with(CONTENT_TYPE, FORM).send(Method::POST, link, body.to_owned()).await
}

#[track_caller]
fn header<'a>(mail: &'a SentMail, name: &str) -> &'a str {
    let head = mail.raw.split("\r\n\r\n").next().unwrap();
    let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in {head}"))
}

#[tokio::test]
async fn a_member_is_notified_of_replies_to_a_comment_that_subscribed() {
    let (world, ada, bob) = two();
    let asked = subscribe(&ada, "posts/1").await;
    let silent = ada.comment("posts/1", "no mails of this").await;
    let reply = bob.reply("posts/1", asked, "A *fine* thought\n\nand more").await;
    bob.reply("posts/1", silent, "x").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: Bob replied to your comment: posts/1"]);
    for body in [&mails[0].text, &mails[0].html] {
        assert!(body.contains("A fine thought") && body.contains("and more"), "{body}");
        assert!(body.contains(&format!("https://www.example.org/posts/1#comment-{reply}")), "{body}");
    }
    // Lines in emails end in CRLF.
    assert!(mails[0].html.contains("A fine thought<br />\r\n<br />\r\nand more"), "{}", mails[0].html);
}

#[tokio::test]
async fn a_guest_subscribes_only_with_an_address_that_can_receive_email() {
    let world = world();
    for address in ["zoë@example.org", "संपर्क@डाटामेल.भारत"] {
        let mut comment = by_guest("Hello");
        comment["guest_email"] = json!(address);
        world.guest().post("posts/1/comments", comment.clone()).await.ok(201);
        comment["subscribe_to_replies"] = json!(true);
        let refused = world.guest().post("posts/1/comments", comment).await.invalid("guest_email");
        assert!(refused.json["message"].as_str().unwrap().contains("ASCII"), "{}", refused.json);
    }
}

#[tokio::test]
async fn only_subscribers_are_notified_and_never_of_their_own_comments() {
    let (world, ada, bob) = two();
    let asked = subscribe(&ada, "posts/1").await;
    ada.reply("posts/1", asked, "my own").await;
    let silent = bob.comment("posts/1", "@ada").await;
    ada.reply("posts/1", silent, "@bob").await;
    assert_eq!(subjects(&sent(&world).await), [""; 0]);
    bob.comment("posts/2", "without an address").await;
    world.wait_until_idle().await;
    let is_bobs = |item: &tests::Item| item["pk"].as_s().is_ok_and(|pk| pk == "E#u8") || item.contains_key("su");
    assert!(!world.items().await.iter().any(is_bobs), "an address is kept only after asking");
}

#[tokio::test]
async fn an_email_names_its_sender_and_a_way_to_unsubscribe() {
    let (world, ada, bob) = two();
    let asked = subscribe(&ada, "posts/1").await;
    bob.reply("posts/1", asked, "x").await;
    let mails = sent(&world).await;
    let mail = &mails[0];
    assert_eq!(header(mail, "From"), "www.example.org <comments@example.org>");
    assert_eq!(header(mail, "Auto-Submitted"), "auto-generated");
    assert_eq!(header(mail, "List-Id"), "<comments.example.org>");
    assert_eq!(header(mail, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    assert!(header(mail, "References").ends_with(".thread@example.org>"), "{}", mail.raw);
    let stop = header(mail, "List-Unsubscribe").trim_matches(['<', '>']).to_owned();
    assert_eq!(links(mail).last(), Some(&stop));
    press(&world.guest().with(ORIGIN, "https://mail.example.com"), &stop, "List-Unsubscribe=One-Click").await.ok(200);
    bob.reply("posts/1", asked, "y").await;
    assert_eq!(sent(&world).await.len(), 1);
}

#[tokio::test]
async fn one_click_unsubscribes_in_either_encoding_of_forms() {
    let (world, ada, bob) = two();
    choose(&ada, wants(&["replies"])).await;
    let asked = ada.comment("posts/1", "x").await;
    bob.reply("posts/1", asked, "y").await;
    let stop = header(&sent(&world).await[0], "List-Unsubscribe").trim_matches(['<', '>']).to_owned();
    let program = world.guest().with(CONTENT_TYPE, "multipart/form-data; boundary=XyZ");
    let part = |value: &str| {
        format!("--XyZ\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\n{value}\r\n--XyZ--\r\n")
    };
    for wrong in [part("Two-Clicks"), part("One-Click").replace("--XyZ", "--other"), String::new()] {
        program.send(Method::POST, &stop, wrong).await.invalid("action");
        assert_eq!(ada.get("me/notifications").await.ok(200).data()["state"], "on");
    }
    program.send(Method::POST, &stop, part("One-Click")).await.ok(200);
    assert_eq!(ada.get("me/notifications").await.ok(200).data()["state"], "off");
}

#[tokio::test]
async fn one_email_covers_all_waiting_notifications() {
    let (world, ada, bob) = two();
    let (one, two) = (subscribe(&ada, "posts/1").await, subscribe(&ada, "posts/2").await);
    for (thread, parent) in [("posts/1", one), ("posts/2", two), ("posts/1", one)] {
        bob.reply(thread, parent, "x").await;
    }
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: 3 new comments"]);
    assert_eq!(links(&mails[0]).len(), 3, "two threads to mute, and all mails to stop");
}

#[tokio::test]
async fn an_email_about_many_threads_has_no_line_that_servers_refuse() {
    let (world, ada, bob) = two();
    for post in 0..40 {
        let thread = format!("posts/{post}");
        let asked = subscribe(&ada, &thread).await;
        bob.reply(&thread, asked, "x").await;
    }
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: 40 new comments"]);
    assert!(header(&mails[0], "References").len() > 500, "{}", mails[0].raw);
}

#[tokio::test]
async fn a_guest_confirms_the_address_before_any_other_email() {
    let world = world();
    let guest = world.guest();
    let asked = subscribe_as_guest(&guest, "grace@example.org").await;
    let reply = member(&world, 8, "Bob").reply("posts/1", asked, "an answer").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["grace@example.org: Confirm your address"]);
    for word in ["Grace", "Hello", "Bob", "answer", "posts"] {
        assert!(!mails[0].raw.contains(word) && !mails[0].html.contains(word), "{word} in {}", mails[0].text);
    }
    let confirm = links(&mails[0])[0].clone();
    assert!(press(&guest, &confirm, "action=confirm").await.ok(200).json.as_str().unwrap().contains("is confirmed"));
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails)[1..], ["grace@example.org: Bob replied to your comment: posts/1"]);
    assert!(mails[1].text.contains(&format!("#comment-{reply}")), "{}", mails[1].text);
}

#[tokio::test]
async fn one_network_causes_two_confirmations_of_an_address_in_a_week_whatever_its_browsers() {
    let world = world();
    let stranger = world.guest();
    for (day, known) in [1, 2, 2, 2, 2, 2, 2, 3].into_iter().enumerate() {
        for spelling in ["victim", "v.ictim", "v.i.c.t.i.m+x"] {
            let browser = with_browser(&stranger, &format!("{day} {spelling}"));
            subscribe_as_guest(&browser, &format!("{spelling}@gmail.com")).await;
        }
        assert_eq!(sent_within(&world, DAY).await.len(), known, "after day {day}");
        if day == 2 {
            world.pass(Duration::from_secs(1));
        }
    }
}

#[tokio::test]
async fn strangers_delay_the_confirmation_of_an_owner_and_do_not_prevent_it() {
    let world = world();
    let stranger = world.guest();
    for browser in 0..4 {
        subscribe_as_guest(&with_browser(&stranger, &browser.to_string()), "ada@example.org").await;
    }
    let ada = world.guest();
    let parent = subscribe_as_guest(&ada, "ada@example.org").await;
    member(&world, 8, "Bob").reply("posts/1", parent, "for Ada").await;
    assert_eq!(sent_within(&world, HOUR).await.len(), 1);
    let mails = sent_within(&world, DAY).await;
    press(&ada, &links(&mails[1])[0], "action=confirm").await.ok(200);
    assert_eq!(
        subjects(&sent_within(&world, HOUR).await)[2..],
        ["ada@example.org: Bob replied to your comment: posts/1"]
    );
}

#[tokio::test]
async fn a_confirmed_address_gets_nothing_that_a_stranger_subscribed_it_to() {
    let world = world();
    let (ada, stranger) = (world.guest(), world.guest());
    let bob = member(&world, 8, "Bob");
    subscribe_as_guest(&ada, "ada@example.org").await;
    press(&ada, &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    for email in ["ada@example.org", "Ada+x@example.org"] {
        let parent = subscribe_as_guest(&stranger, email).await;
        bob.reply("posts/1", parent, "what the stranger wants Ada to read").await;
    }
    let mails = sent_within(&world, Duration::from_hours(23)).await;
    assert_eq!(subjects(&mails), ["ada@example.org: Confirm your address"]);
    let mails = sent_within(&world, DAY).await;
    assert_eq!(
        subjects(&mails)[1..],
        ["ada@example.org: Confirm your address"],
        "the stranger waits for a confirmation"
    );
    assert!(!mails[1].raw.contains("stranger") && links(&mails[0])[0] != links(&mails[1])[0]);
    // A confirmation link only confirms its own request.
    press(&ada, &links(&mails[0])[0], "action=confirm").await.ok(200);
    assert_eq!(sent_within(&world, DAY).await.len(), 2);
}

#[tokio::test]
async fn a_strangers_delayed_request_does_not_delay_a_confirmed_visitors_notifications() {
    let world = world();
    let (ada, stranger) = (world.guest(), world.guest());
    let asked = subscribe_as_guest(&ada, "ada@example.org").await;
    press(&ada, &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    subscribe_as_guest(&stranger, "ada@example.org").await;
    assert_eq!(sent_within(&world, HOUR).await.len(), 1, "the stranger waits for a day");
    member(&world, 8, "Bob").reply("posts/1", asked, "for Ada").await;
    let mails = sent_within(&world, HOUR).await;
    assert_eq!(subjects(&mails)[1..], ["ada@example.org: Bob replied to your comment: posts/1"]);
}

#[tokio::test]
async fn a_link_that_is_pressed_again_writes_nothing_and_sends_no_message() {
    let world = world();
    let ada = world.guest();
    let asked = subscribe_as_guest(&ada, "ada@example.org").await;
    let link = links(&sent(&world).await[0])[0].clone();
    member(&world, 8, "Bob").reply("posts/1", asked, "for Ada").await;
    world.wait_until_idle().await;
    for button in ["action=confirm", "action=stop"] {
        assert!(press(&ada, &link, button).await.ok(200).cost.write_units > 0.0, "{button}");
        let messages = world.queues().bodies(server::settings::DELIVERIES).unwrap().len();
        for _ in 0..2 {
            let again = press(&ada, &link, button).await.ok(200);
            assert!(again.cost.write_units == 0.0, "{button}: {:?}", again.cost);
            assert_eq!(world.queues().bodies(server::settings::DELIVERIES).unwrap().len(), messages, "{button}");
        }
    }
}

#[tokio::test]
async fn a_visitor_who_was_confirmed_subscribes_elsewhere_without_another_confirmation() {
    let world = world();
    let ada = world.guest();
    subscribe_as_guest(&ada, "ada@example.org").await;
    press(&ada, &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    world.pass(DAY);
    let mut comment = by_guest("Elsewhere");
    comment["guest_email"] = json!("ada@example.org");
    comment["subscribe_to_replies"] = json!(true);
    let parent = ada.post("posts/2/comments", comment).await.ok(201).id();
    member(&world, 8, "Bob").reply("posts/2", parent, "x").await;
    assert_eq!(subjects(&sent(&world).await)[1..], ["ada@example.org: Bob replied to your comment: posts/2"]);
}

#[tokio::test]
async fn each_device_of_a_guest_is_confirmed_by_its_own_email() {
    let world = world();
    let (laptop, phone, bob) = (world.guest(), world.guest(), member(&world, 8, "Bob"));
    let of_laptop = subscribe_as_guest(&laptop, "ada@example.org").await;
    press(&laptop, &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    let of_phone = subscribe_as_guest(&phone, "ada@example.org").await;
    bob.reply("posts/1", of_phone, "to the phone").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails)[1..], ["ada@example.org: Confirm your address"]);
    press(&phone, &links(&mails[1])[0], "action=confirm").await.ok(200);
    member(&world, 8, "Bob").reply("posts/1", of_laptop, "to the laptop").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails)[2..], ["ada@example.org: 2 new comments"]);
    assert!(mails[2].text.contains("to the phone") && mails[2].text.contains("to the laptop"), "{}", mails[2].text);
}

#[tokio::test]
async fn a_network_causes_confirmations_to_five_addresses_an_hour_whatever_its_browsers() {
    let world = world();
    let guest = world.guest();
    for n in 0..8 {
        subscribe_as_guest(&with_browser(&guest, &n.to_string()), &format!("victim{n}@example.org")).await;
    }
    for n in 0..8 {
        let of_one_network = world.guest().from(&format!("2001:db8::{n}"));
        subscribe_as_guest(&of_one_network, &format!("other{n}@example.org")).await;
    }
    assert_eq!(sent(&world).await.len(), 10);
    let refused = claimant(&world, 7, "more@example.org").from("2001:db8::99");
    let refused = refused.put("me/notifications", wants(&["replies"])).await.refused(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), (3_600 - world.now().seconds() % 3_600).to_string());
    world.pass(HOUR);
    let member = claimant(&world, 7, "more@example.org").from("2001:db8::99");
    member.put("me/notifications", wants(&["replies"])).await.ok(200);
    assert_eq!(sent(&world).await.len(), 11);
}

/// Subscribes guests with these addresses, five per network. Returns their comments.
async fn ask_all(world: &World, addresses: impl Iterator<Item = String>) -> Vec<u64> {
    let mut comments = Vec::new();
    let mut guest = world.guest();
    for (n, address) in addresses.enumerate() {
        if n % 5 == 0 {
            guest = world.guest();
        }
        comments.push(subscribe_as_guest(&guest, &address).await);
    }
    comments
}

#[tokio::test]
async fn two_hundred_addresses_get_confirmations_in_an_hour_and_the_others_in_the_next_one() {
    let world = world();
    let comments = ask_all(&world, (0..210).map(|n| format!("victim{n}@{}.example.org", n % 10))).await;
    assert_eq!(sent_within(&world, Duration::from_mins(30)).await.len(), 200);
    let asked: BTreeSet<String> = world.mails().into_iter().map(|mail| mail.to).collect();
    let waiting: Vec<usize> =
        (0..210).filter(|n| !asked.contains(&format!("victim{n}@{}.example.org", n % 10))).collect();
    // A comment that is rejected before its confirmation email is due causes none.
    world.moderator().judge(comments[waiting[0]], "reject").await.ok(200);
    assert_eq!(sent_within(&world, HOUR).await.len(), 209);
}

#[tokio::test]
async fn a_domain_with_over_half_of_the_confirmations_waits_and_other_domains_do_not() {
    let world = world();
    ask_all(&world, (0..104).map(|n| format!("victim{n}@{}", ["gmail.com", "googlemail.com"][n % 2]))).await;
    ask_all(&world, (0..6).map(|n| format!("reader{n}@example.org"))).await;
    let mails = sent_within(&world, Duration::from_mins(30)).await;
    let (gmail, others): (Vec<_>, Vec<_>) = mails.iter().partition(|mail| mail.to.ends_with("mail.com"));
    assert_eq!((gmail.len(), others.len()), (100, 6));
    assert_eq!(sent_within(&world, HOUR).await.len(), 110);
}

#[tokio::test]
async fn a_guest_is_asked_for_a_confirmation_once_the_comment_is_approved() {
    let world = World::with(&[&MAIL[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let rejected = subscribe_as_guest(&world.guest(), "rejected@example.org").await;
    let approved = subscribe_as_guest(&world.guest(), "grace@example.org").await;
    world.moderator().judge(rejected, "reject").await.ok(200);
    assert_eq!(sent(&world).await.len(), 0);
    world.moderator().judge(approved, "approve").await.ok(200);
    assert_eq!(subjects(&sent(&world).await), ["grace@example.org: Confirm your address"]);
}

#[tokio::test]
async fn links_work_for_pages_of_other_origins_whatever_else_the_network_has_done() {
    let limits = [("SVC_WRITE_LIMIT", "1"), ("SVC_READ_LIMIT", "1")];
    let world = World::with(&[&MAIL[..], &limits, &[("SVC_CORS_ORIGINS", "https://www.example.org")]].concat());
    let guest = world.guest();
    subscribe_as_guest(&guest, "grace@example.org").await;
    guest.post("posts/1/comments", by_guest("once more")).await.refused(429, "rate_limited");
    let mails = sent(&world).await;
    guest.get("ui").await.ok(200);
    guest.get("ui").await.refused(429, "rate_limited");
    let elsewhere = guest.clone().with(ORIGIN, "https://mail.example.com");
    for (link, action) in links(&mails[0]).iter().zip(["action=confirm", "List-Unsubscribe=One-Click"]) {
        press(&elsewhere, link, action).await.ok(200);
    }
    for _ in 0..3 {
        let (page, cost) = meter::measure(press(&guest, "mail/s.u7.AAAAAAAAAAAAAAAAAAAAAA", "action=stop")).await;
        page.ok(404);
        assert_eq!((cost.read_units, cost.write_units), (0.0, 0.0), "a token that is not ours costs nothing");
    }
}

#[tokio::test]
async fn pages_of_links_and_confirmations_are_in_four_languages() {
    let world = world();
    for (language, subject, button, done) in [
        ("en", "Confirm your address", "Confirm address", "Your address is confirmed."),
        ("es", "Confirma tu dirección", "Confirmar la dirección", "Tu dirección está confirmada."),
        ("de", "Bestätige deine Adresse", "Adresse bestätigen", "Deine Adresse ist bestätigt."),
        ("fr", "Confirmez votre adresse", "Confirmer l’adresse", "Votre adresse est confirmée."),
    ] {
        let guest = world.guest().with(http::header::ACCEPT_LANGUAGE, language);
        subscribe_as_guest(&guest, &format!("grace-{language}@example.org")).await;
        let mails = sent(&world).await;
        let mail = mails.last().unwrap();
        assert!(mail.subject == subject && mail.text.contains(button) && mail.html.contains(button), "{}", mail.text);
        let page = guest.get(&links(mail)[0]).await.ok(200);
        assert_eq!(page.header("content-language"), language);
        assert!(page.json.as_str().unwrap().contains(button), "{}", page.json);
        let page = press(&guest, &links(mail)[0], "action=confirm").await.ok(200);
        assert!(page.json.as_str().unwrap().contains(done), "{}", page.json);
    }
}

#[tokio::test]
async fn a_member_who_unsubscribed_by_a_link_turns_emails_on_again() {
    let (world, ada, bob) = two();
    choose(&ada, wants(&["replies"])).await;
    let asked = ada.comment("posts/1", "x").await;
    bob.reply("posts/1", asked, "one").await;
    let stop = links(&sent(&world).await[0]).pop().unwrap();
    press(&world.guest(), &stop, "action=stop").await.ok(200);
    let again = subscribe(&ada, "posts/1").await;
    bob.reply("posts/1", again, "two").await;
    assert_eq!(sent(&world).await.len(), 1);
    choose(&ada, wants(&["replies"])).await;
    bob.reply("posts/1", asked, "three").await;
    assert_eq!(sent(&world).await.len(), 2);
}

/// Two comments whose writers get notifications at the same address: one is by a member, the other by a guest who
/// confirmed the address.
struct TwoRoles {
    world: World,
    ada: Actor,
    of_member: u64,
    of_guest: u64,
}

impl TwoRoles {
    async fn new() -> Self {
        let world = world();
        let of_guest = subscribe_as_guest(&world.guest(), "ada@example.org").await;
        press(&world.guest(), &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
        let ada = member(&world, 7, "Ada");
        choose(&ada, wants(&["replies"])).await;
        let of_member = ada.comment("posts/2", "x").await;
        Self { world, ada, of_member, of_guest }
    }

    async fn answered(&self) -> Vec<SentMail> {
        let bob = member(&self.world, 8, "Bob");
        bob.reply("posts/2", self.of_member, "to the member").await;
        bob.reply("posts/1", self.of_guest, "to the guest").await;
        let known = self.world.mails().len();
        sent(&self.world).await.split_off(known)
    }

    async fn stop(&self, mails: &[SentMail], posts: &str) {
        let mail = mails.iter().find(|mail| mail.subject.ends_with(posts)).unwrap();
        press(&self.world.guest(), links(mail).last().unwrap(), "action=stop").await.ok(200);
    }

    async fn state(&self) -> Value {
        self.ada.get("me/notifications").await.ok(200).data()["state"].clone()
    }
}

#[tokio::test]
async fn unsubscribing_from_everything_stops_emails_to_every_user_of_the_address() {
    for stopped in ["posts/1", "posts/2"] {
        let both = TwoRoles::new().await;
        let mails = both.answered().await;
        assert_eq!(mails.len(), 2);
        both.stop(&mails, stopped).await;
        assert_eq!(both.state().await, "off");
        let other = both.world.claiming(&json!({ "sub": "9", "name": "Other", "email": "ada@example.org" }));
        let asked = subscribe(&other, "posts/3").await;
        member(&both.world, 8, "Bob").reply("posts/3", asked, "to another account").await;
        assert_eq!(subjects(&both.answered().await), [""; 0], "stopped by the mail about {stopped}");
        choose(&both.ada, wants(&["replies"])).await;
        let mails = both.answered().await;
        assert_eq!(subjects(&mails), ["ada@example.org: Bob replied to your comment: posts/2"]);
        both.stop(&mails, "posts/2").await;
        assert_eq!((both.answered().await.len(), both.state().await), (0, json!("off")));
    }
}

#[tokio::test]
async fn a_waiting_email_is_not_sent_after_an_unsubscribe() {
    let both = TwoRoles::new().await;
    let mails = both.answered().await;
    let parent = both.of_member;
    member(&both.world, 8, "Bob").reply("posts/2", parent, "one more").await;
    both.world.wait_until_idle().await;
    both.stop(&mails, "posts/1").await;
    assert_eq!(sent(&both.world).await.len(), 3);
    let state = both.world.item("E#u7", "E").await.unwrap();
    assert!(!state.contains_key("ad"), "the address is forgotten: {state:?}");
}

#[tokio::test]
async fn an_address_that_a_stranger_claims_is_stopped_by_its_owner_alone() {
    let world = world();
    let bob = member(&world, 8, "Bob");
    let mallory = |email: &str| claimant(&world, 7, email);
    mallory("mallory@example.org").put("me/notifications", wants(&["replies"])).await.ok(200);
    press(&world.guest(), &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    let parent = mallory("mallory@example.org").comment("posts/2", "x").await;
    bob.reply("posts/2", parent, "y").await;
    let old = links(&sent(&world).await[1]).pop().unwrap();
    let parent = subscribe_as_guest(&world.guest(), "ada@example.org").await;
    press(&world.guest(), &links(&sent(&world).await[2])[0], "action=confirm").await.ok(200);
    world.pass(Duration::from_hours(25));
    mallory("ada@example.org").delete("me/notifications").await.ok(204);
    let claimed = mallory("ada@example.org").put("me/notifications", wants(&["replies"])).await;
    assert_eq!(claimed.ok(200).data()["email"], "a•••@example.org");
    press(&world.guest(), &old, "action=stop").await.ok(200);
    member(&world, 8, "Bob").reply("posts/1", parent, "told").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails)[3..], ["ada@example.org: Bob replied to your comment: posts/1"]);
}

#[tokio::test]
async fn an_owner_who_refuses_a_strangers_claim_gets_no_other_confirmation() {
    for (link, action) in [(0, "action=stop"), (1, "action=stop"), (1, "List-Unsubscribe=One-Click")] {
        let world = world();
        claimant(&world, 7, "ada@example.org").put("me/notifications", wants(&["replies"])).await.ok(200);
        let links = links(&sent(&world).await[0]);
        press(&world.guest(), &links[link], action).await.ok(200);
        let page = press(&world.guest(), &links[0], "action=confirm").await.ok(200);
        assert!(page.json.as_str().unwrap().contains("nothing left to confirm"), "{}", page.json);
        // Claiming the address reveals nothing about other emails to it.
        let state = ["off", "asked"][link];
        let again = claimant(&world, 7, "ada@example.org").get("me/notifications").await;
        assert_eq!(again.ok(200).data()["state"], state);
        for id in [7, 8, 7, 8] {
            let mallory = claimant(&world, id, "ada@example.org");
            let state = mallory.put("me/notifications", wants(&["replies"])).await.ok(200);
            assert_eq!(state.data()["state"], "asked");
            world.pass(Duration::from_hours(13));
        }
        subscribe_as_guest(&world.guest(), "ada@example.org").await;
        assert_eq!(sent(&world).await.len(), 1, "link {link}, {action}");
    }
}

#[tokio::test]
async fn a_comment_subscribes_a_forgotten_member_but_not_an_unsubscribed_member() {
    let (world, ada, bob) = two();
    choose(&ada, wants(&["replies"])).await;
    let silent = ada.comment("posts/1", "x").await;
    ada.delete("me/notifications").await.ok(204);
    let asked = subscribe(&ada, "posts/2").await;
    bob.reply("posts/1", silent, "not asked for").await;
    bob.reply("posts/2", asked, "asked for").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: Bob replied to your comment: posts/2"]);
    press(&world.guest(), links(&mails[0]).last().unwrap(), "action=stop").await.ok(200);
    for _ in 0..2 {
        let asked = subscribe(&ada, "posts/3").await;
        bob.reply("posts/3", asked, "after stopping").await;
        assert_eq!(sent(&world).await.len(), 1);
        ada.delete("me/notifications").await.ok(204);
    }
    choose(&ada, wants(&["replies"])).await;
    bob.reply("posts/1", silent, "after choosing").await;
    assert_eq!(sent(&world).await.len(), 2);
}

#[tokio::test]
async fn a_member_who_confirmed_an_address_and_unsubscribed_needs_no_second_confirmation() {
    let world = world();
    let ada = claimant(&world, 7, "ada@example.org");
    ada.put("me/notifications", wants(&["replies"])).await.ok(200);
    press(&world.guest(), &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    let parent = ada.comment("posts/1", "x").await;
    member(&world, 8, "Bob").reply("posts/1", parent, "y").await;
    let mails = sent(&world).await;
    assert_eq!(mails.len(), 2);
    for mail in &mails {
        press(&world.guest(), links(mail).last().unwrap(), "action=stop").await.ok(200);
        assert_eq!(ada.get("me/notifications").await.ok(200).data()["state"], "off");
        let eve = claimant(&world, 9, "ada@example.org");
        eve.put("me/notifications", wants(&["replies"])).await.ok(200);
        choose(&ada, wants(&["replies"])).await;
    }
    assert_eq!(sent(&world).await.len(), 2);
}

#[tokio::test]
async fn likes_edits_and_renames_notify_no_one() {
    let (world, ada, bob) = two();
    choose(&ada, wants(&["replies", "mentions", "own_records"])).await;
    world.moderator().put("posts/1", json!({ "author_id": 7 })).await.ok(200);
    let parent = ada.comment("posts/1", "x").await;
    let reply = bob.reply("posts/1", parent, "one").await;
    assert_eq!(sent(&world).await.len(), 1);
    bob.like(parent).await.ok(200);
    bob.edit(reply, "two, @ada").await.ok(200);
    world.pass(Duration::from_mins(11));
    member(&world, 8, "Robert").get("ui").await.ok(200);
    assert_eq!(sent(&world).await.len(), 1);
}

#[tokio::test]
async fn a_comment_notifies_no_one_again_when_it_is_shown_again() {
    let world = world();
    let ada = member(&world, 7, "Ada");
    let asked = subscribe(&ada, "posts/1").await;
    let mut replies = Vec::new();
    // By the last reply, the recipient's state no longer contains the first reply.
    for _ in 0..3 {
        replies.push(member(&world, 8, "Bob").reply("posts/1", asked, "x").await);
        assert_eq!(sent(&world).await.len(), replies.len());
        world.pass(Duration::from_hours(25));
    }
    for verdict in ["reject", "approve"] {
        world.moderator().judge(replies[0], verdict).await.ok(200);
        assert_eq!(sent(&world).await.len(), 3);
    }
}

#[tokio::test]
async fn scanners_that_follow_links_change_nothing() {
    let world = world();
    let asked = subscribe_as_guest(&world.guest(), "grace@example.org").await;
    let ada = member(&world, 7, "Ada");
    let parent = subscribe(&ada, "posts/1").await;
    member(&world, 8, "Bob").reply("posts/1", parent, "x").await;
    member(&world, 8, "Bob").reply("posts/1", asked, "x").await;
    let mails = sent(&world).await;
    assert_eq!(mails.len(), 2);
    let states = async || {
        let items = world.items().await.into_iter().filter(|item| item["pk"].as_s().unwrap().starts_with("E#"));
        items.collect::<Vec<_>>()
    };
    let before = states().await;
    for link in mails.iter().flat_map(links) {
        let page = world.guest().get(&link).await.ok(200);
        assert!(page.json.as_str().unwrap().contains("<form method=\"post\">"), "{}", page.json);
        for (name, value) in
            [("referrer-policy", "no-referrer"), ("x-robots-tag", "noindex"), ("cache-control", "no-store")]
        {
            assert_eq!(page.header(name), value);
        }
        let policy = page.header("content-security-policy");
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"), "{policy}");
        assert!(!policy.contains("script-src"), "{policy}");
        world.guest().send(Method::HEAD, &link, "").await;
    }
    world.finish_jobs().await;
    assert_eq!((states().await, world.mails().len()), (before, 2));
}

#[tokio::test]
async fn a_foreign_link_is_404_and_an_action_that_a_link_does_not_offer_is_422() {
    let world = world();
    for token in ["x", "s.u7.AAAAAAAAAAAAAAAAAAAAAA", "c999999.u7.AAAAAAAAAAAAAAAAAAAAAA"] {
        let page = world.guest().get(&format!("mail/{token}")).await.ok(404);
        assert!(page.header("content-type").starts_with("text/html"));
        press(&world.guest(), &format!("mail/{token}"), "action=stop").await.ok(404);
    }
    subscribe_as_guest(&world.guest(), "grace@example.org").await;
    let mails = sent(&world).await;
    let links = links(&mails[0]);
    press(&world.guest(), &links[0], "action=mute").await.invalid("action");
    press(&world.guest(), &links[1], "action=confirm").await.invalid("action");
    press(&world.guest(), &links[1], "").await.invalid("action");
    // A browser gets the page with its buttons again.
    let browser = world.guest().with(ACCEPT, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    let page = press(&browser, &links[0], "").await.ok(422);
    assert!(page.header("content-type").starts_with("text/html"));
    let shown = browser.get(&links[0]).await.ok(200);
    assert_eq!(page.body, shown.body);
}

#[tokio::test]
async fn links_work_in_read_only_mode_and_confirmations_for_seven_days() {
    let world = world();
    subscribe_as_guest(&world.guest(), "grace@example.org").await;
    let mails = sent(&world).await;
    let links = links(&mails[0]);
    world.pass(Duration::from_hours(8 * 24));
    let closed = world.again(&[&MAIL[..], &[("SVC_READ_ONLY", "true")]].concat());
    press(&closed.guest(), &links[0], "action=confirm").await.ok(404);
    press(&closed.guest(), &links[1], "action=stop").await.ok(200);
}

#[tokio::test]
async fn an_unsubscribed_guest_is_not_enrolled_again_by_others_and_the_address_is_forgotten() {
    let world = world();
    subscribe_as_guest(&world.guest(), "grace@example.org").await;
    let mails = sent(&world).await;
    press(&world.guest(), &links(&mails[0])[1], "action=stop").await.ok(200);
    let stored = format!(
        "{:?}",
        world.items().await.into_iter().filter(|item| item["pk"].as_s().unwrap().starts_with("E#")).collect::<Vec<_>>()
    );
    assert!(stored.contains("\"off\"") && !stored.contains("\"ad\""), "{stored}");
    world.pass(Duration::from_hours(48));
    subscribe_as_guest(&world.guest(), "Grace+again@example.org").await;
    assert_eq!(sent(&world).await.len(), 1);
    press(&world.guest(), &links(&mails[0])[0], "action=confirm").await.ok(200);
    assert_eq!(sent(&world).await.len(), 1);
}

#[tokio::test]
async fn members_choose_their_notifications() {
    let (world, ada, bob) = two();
    let nothing = json!({ "email": null, "state": "off", "replies": false, "mentions": false, "own_records": false });
    assert_eq!(ada.get("me/notifications").await.ok(200).data(), &nothing);
    let chosen = ada.put("me/notifications", wants(&["replies", "mentions"])).await.ok(200);
    let expected = json!({
        "email": "a•••@example.org", "state": "on", "replies": true, "mentions": true, "own_records": false,
    });
    assert_eq!((chosen.data(), ada.get("me/notifications").await.ok(200).data()), (&expected, &expected));
    world.moderator().put("posts/1", json!({ "author_id": 7, "title": "On threads" })).await.ok(200);
    let parent = ada.comment("posts/1", "x").await;
    bob.reply("posts/1", parent, "an answer").await;
    bob.comment("posts/1", "a comment that is not wanted").await;
    bob.comment("posts/2", "hello @ada").await;
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: 2 new comments"]);
    assert!(mails[0].text.contains("Bob mentioned you") && mails[0].text.contains("On threads"), "{}", mails[0].text);
    choose(&ada, wants(&["own_records"])).await;
    bob.comment("posts/1", "another").await;
    assert_eq!(subjects(&sent(&world).await)[1..], ["ada@example.org: Bob posted a comment: On threads"]);
    ada.delete("me/notifications").await.ok(204);
    assert_eq!(ada.get("me/notifications").await.ok(200).data(), &nothing);
}

#[tokio::test]
async fn choosing_needs_an_address_and_switches_that_are_booleans() {
    let world = world();
    let nameless = world.user(7, "Ada");
    nameless.put("me/notifications", wants(&["replies"])).await.invalid("email");
    let bob = member(&world, 8, "Bob");
    for field in ["replies", "mentions", "own_records"] {
        for wrong in [json!("yes"), json!(2), json!([])] {
            let mut choice = wants(&["replies", "mentions", "own_records"]);
            choice[field] = wrong;
            bob.put("me/notifications", choice).await.invalid(field);
        }
    }
    assert_eq!(bob.get("me/notifications").await.ok(200).data()["state"], "off");
    let chosen = bob.put("me/notifications", json!({ "mentions": true, "unknown": 1 })).await.ok(200);
    let switches = ["replies", "mentions", "own_records"].map(|field| chosen.data()[field].as_bool());
    assert_eq!(switches, [Some(false), Some(true), Some(false)]);
    world.guest().put("me/notifications", json!({})).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn with_subscriptions_off_addresses_can_still_be_deleted_and_unsubscribed() {
    let (world, ada, bob) = two();
    choose(&ada, wants(&["replies"])).await;
    let parent = ada.comment("posts/1", "x").await;
    bob.reply("posts/1", parent, "y").await;
    let stop = links(&sent(&world).await[0]).pop().unwrap();
    choose(&bob, wants(&["replies"])).await;
    let off = world.again(&[]);
    for who in [off.user(7, "Ada"), off.guest()] {
        who.get("me/notifications").await.refused(404, "not_found");
        who.put("me/notifications", wants(&["replies"])).await.refused(404, "not_found");
    }
    off.guest().get(&stop).await.ok(200);
    press(&off.guest(), &stop, "action=stop").await.ok(200);
    off.user(8, "Bob").delete("me/notifications").await.ok(204);
    for actor in [ada, bob] {
        assert_eq!(actor.get("me/notifications").await.ok(200).data()["email"], Value::Null);
    }
}

#[tokio::test]
async fn deleting_a_notification_address_counts_as_a_write() {
    let limits = [("SVC_WRITE_LIMIT", "2"), ("SVC_READ_LIMIT", "1")];
    let world = World::with(&[&MAIL[..], &limits].concat());
    let ada = member(&world, 7, "Ada");
    ada.get("me/notifications").await.ok(200);
    for left in ["1", "0"] {
        let forgotten = ada.delete("me/notifications").await.ok(204);
        assert_eq!((forgotten.header("x-ratelimit-limit"), forgotten.header("x-ratelimit-remaining")), ("2", left));
    }
    ada.delete("me/notifications").await.refused(429, "rate_limited");
    ada.put("me/notifications", wants(&["replies"])).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn an_address_that_the_issuer_has_not_verified_is_confirmed_first() {
    let world = world();
    // Some issuers send `email_verified` as a string.
    let claims = [
        json!(false),
        json!("true"),
        json!("false"),
        json!(0),
        json!("0"),
        json!("no"),
        json!("True"),
        json!(1),
        json!(null),
        json!([]),
    ];
    for (id, verified) in (7..).zip(claims) {
        let email = format!("ada{id}@example.org");
        let claims = json!({ "sub": id.to_string(), "name": "Ada", "email": email, "email_verified": verified });
        let ada = world.claiming(&claims);
        let state = ada.put("me/notifications", wants(&["replies"])).await.ok(200);
        assert_eq!(state.data()["state"], "asked");
        let mails = sent(&world).await;
        let mail = mails.last().unwrap();
        assert_eq!((&*mail.to, &*mail.subject), (&*email, "Confirm your address"));
        press(&world.guest(), &links(mail)[0], "action=confirm").await.ok(200);
        assert_eq!(ada.get("me/notifications").await.ok(200).data()["state"], "on");
    }
}

#[tokio::test]
async fn an_address_that_the_issuer_has_verified_needs_no_confirmation() {
    let world = world();
    let claims = json!({ "sub": "7", "name": "Ada", "email": "ada@example.org", "email_verified": true });
    choose(&world.claiming(&claims), wants(&["replies"])).await;
    assert_eq!(sent(&world).await.len(), 0);
}

#[tokio::test]
async fn choosing_an_address_without_proof_reveals_nothing_about_the_address() {
    let world = world();
    subscribe_as_guest(&world.guest(), "asked@example.org").await;
    for address in ["stopped@example.org", "confirmed@example.org"] {
        subscribe_as_guest(&world.guest(), address).await;
    }
    let mails = sent(&world).await;
    for (address, link, action) in [("stopped", 1, "action=stop"), ("confirmed", 0, "action=confirm")] {
        let mail = mails.iter().find(|mail| mail.to.starts_with(address)).unwrap();
        press(&world.guest(), &links(mail)[link], action).await.ok(200);
    }
    let mut answers = Vec::new();
    for (id, address) in (20..).zip(["asked", "stopped", "confirmed", "unknown"]) {
        let mallory = claimant(&world, id, &format!("{address}@example.org"));
        let mask = |answer: &TestResponse| answer.json.to_string().replace(&format!("{}•", &address[..1]), "•");
        let put = mallory.put("me/notifications", wants(&["replies"])).await.ok(200);
        sent_within(&world, Duration::from_mins(30)).await;
        let got = mallory.get("me/notifications").await.ok(200);
        let again = mallory.put("me/notifications", wants(&["replies"])).await.ok(200);
        answers.push([mask(&put), mask(&got), mask(&again)]);
    }
    assert!(answers[0][0].contains("asked") && answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

/// Returns a member who claims this address without proof.
fn claimant(world: &World, id: u64, email: &str) -> Actor {
    world.claiming(&json!({ "sub": id.to_string(), "name": "Mallory", "email": email, "email_verified": false }))
}

#[tokio::test]
async fn a_link_confirms_no_other_address_than_the_one_that_it_was_sent_to() {
    let world = world();
    let replies = wants(&["replies"]);
    claimant(&world, 7, "mallory@example.org").put("me/notifications", replies.clone()).await.ok(200);
    sent(&world).await;
    let mallory = claimant(&world, 7, "victim@example.org");
    let state = mallory.put("me/notifications", replies).await.ok(200);
    assert_eq!(state.data()["email"], "v•••@example.org");
    let mails = sent(&world).await;
    let expected = ["mallory@example.org: Confirm your address", "victim@example.org: Confirm your address"];
    assert_eq!(subjects(&mails), expected);
    for (mail, says, state) in [(0, "nothing left to confirm", "asked"), (1, "is confirmed", "on")] {
        let page = press(&world.guest(), &links(&mails[mail])[0], "action=confirm").await.ok(200);
        assert!(page.json.as_str().unwrap().contains(says), "{}", page.json);
        assert_eq!(mallory.get("me/notifications").await.ok(200).data()["state"], state);
    }
}

#[tokio::test]
async fn members_claiming_an_unverified_address_cause_no_more_confirmations_than_guests() {
    let world = world();
    for id in 7..12 {
        let mallory = claimant(&world, id, &format!("victim+{id}@example.org"));
        mallory.put("me/notifications", wants(&["replies"])).await.ok(200);
    }
    subscribe_as_guest(&world.guest(), "victim@example.org").await;
    for (day, known) in [1, 2, 3, 3, 3, 3, 3, 4].into_iter().enumerate() {
        assert_eq!(sent_within(&world, DAY).await.len(), known, "after day {day}");
    }
}

#[tokio::test]
async fn repeated_claims_of_an_address_cause_one_confirmation_a_day() {
    let world = world();
    for _ in 0..6 {
        let mallory = claimant(&world, 7, "victim@example.org");
        mallory.put("me/notifications", wants(&["replies"])).await.ok(200);
        assert_eq!(sent_within(&world, HOUR).await.len(), 1);
        claimant(&world, 7, "victim@example.org").delete("me/notifications").await.ok(204);
    }
}

#[tokio::test]
async fn an_unsubscribed_member_causes_confirmations_as_seldom_as_others() {
    let world = world();
    let replies = wants(&["replies"]);
    claimant(&world, 7, "mallory@example.org").put("me/notifications", replies.clone()).await.ok(200);
    let stop = links(&sent(&world).await[0]).pop().unwrap();
    press(&world.guest(), &stop, "action=stop").await.ok(200);
    subscribe_as_guest(&world.guest(), "victim@example.org").await;
    assert_eq!(subjects(&sent(&world).await)[1..], ["victim@example.org: Confirm your address"]);
    claimant(&world, 7, "victim@example.org").put("me/notifications", replies).await.ok(200);
    assert_eq!(sent_within(&world, Duration::from_hours(23)).await.len(), 2);
    assert_eq!(subjects(&sent_within(&world, DAY).await)[2..], ["victim@example.org: Confirm your address"]);
}

#[tokio::test]
async fn edits_mention_no_one_and_a_member_mentions_fifty_an_hour() {
    let world = World::with(&[&MAIL[..], &[("SVC_MAIL_WAIT", "3600")]].concat());
    let bob = member(&world, 99, "Bob");
    for id in 1..=60 {
        choose(&member(&world, id, &format!("Member{id}")), wants(&["mentions"])).await;
    }
    let quiet = bob.comment("posts/1", "x").await;
    bob.edit(quiet, "@member60").await.ok(200);
    for group in 0..12 {
        let names: Vec<String> = (1..=5).map(|n| format!("@member{}", group * 5 + n)).collect();
        bob.comment("posts/1", &names.join(" ")).await;
    }
    assert_eq!(sent(&world).await.len(), 50);
}

#[tokio::test]
async fn only_users_with_the_handle_are_notified_of_a_mention() {
    let world = world();
    for (id, name, email) in [(1, "李雷", "li"), (2, "韩梅梅", "han"), (3, "王芳", "wang"), (4, "_", "underscore")]
    {
        let email = format!("{email}@example.org");
        choose(&world.claiming(&json!({ "sub": id.to_string(), "name": name, "email": email })), wants(&["mentions"]))
            .await;
    }
    member(&world, 99, "Bob").comment("posts/1", "谢谢@李雷 @_").await;
    assert_eq!(subjects(&sent(&world).await), ["li@example.org: Bob mentioned you: posts/1"]);
}

#[tokio::test]
async fn among_users_who_share_a_handle_the_threads_writers_are_notified_first() {
    let world = world();
    let namesake = |id: u64, name: &str| {
        world.claiming(&json!({ "sub": id.to_string(), "name": name, "email": format!("ada{id}@example.org") }))
    };
    for id in 1..=8 {
        choose(&namesake(id, "Ada"), wants(&["mentions"])).await;
    }
    namesake(2, "Ada").comment("posts/2", "elsewhere").await;
    let first = namesake(7, "Ada").comment("posts/1", "x").await;
    namesake(8, "Ada").reply("posts/1", first, "y").await;
    namesake(1, "Ada").comment("posts/1", "@ada").await;
    let told: std::collections::BTreeSet<_> = sent(&world).await.into_iter().map(|mail| mail.to).collect();
    let expected = [2, 3, 4, 7, 8].map(|id| format!("ada{id}@example.org"));
    assert_eq!(told.into_iter().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_redelivered_record_counts_no_mention_again() {
    let world = World::with(&[&MAIL[..], &[("SVC_MAIL_WAIT", "3600")]].concat());
    for id in 1..=6 {
        choose(&member(&world, id, &format!("Member{id}")), wants(&["mentions"])).await;
    }
    let bob = member(&world, 99, "Bob");
    let repeated = bob.comment("posts/1", "@member1 @member2 @member3 @member4 @member5").await;
    world.wait_until_idle().await;
    for _ in 0..12 {
        world.repeat_creation(repeated).await;
    }
    bob.comment("posts/1", "@member6").await;
    assert_eq!(sent(&world).await.len(), 6);
}

#[tokio::test]
async fn a_comment_is_announced_once_it_is_approved_and_never_if_it_is_gone_by_then() {
    let world = world();
    let held = world.again(&[&MAIL[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let (ada, bob) = (member(&world, 7, "Ada"), member(&held, 8, "Bob"));
    let asked = subscribe(&ada, "posts/1").await;
    let first = bob.reply("posts/1", asked, "first").await;
    assert_eq!(sent(&world).await.len(), 0);
    world.moderator().judge(first, "approve").await.ok(200);
    assert_eq!(sent(&world).await.len(), 1);
    let open = member(&world, 8, "Bob");
    let gone = open.reply("posts/1", asked, "gone").await;
    let rejected = open.reply("posts/1", asked, "rejected").await;
    world.wait_until_idle().await;
    open.remove(gone).await.ok(204);
    world.moderator().judge(rejected, "reject").await.ok(200);
    assert_eq!(sent(&world).await.len(), 1);
}

#[tokio::test]
async fn a_held_text_is_announced_only_once_after_it_is_accepted() {
    let doubt = [("SVC_SPAM_REVIEW", "casino")];
    let world = World::with(&[&MAIL[..], &doubt].concat());
    let ada = member(&world, 7, "Ada");
    let asked = subscribe(&ada, "posts/1").await;
    let mailed = member(&world, 8, "Bob").reply("posts/1", asked, "told").await;
    assert_eq!(sent(&world).await.len(), 1);
    let bob = member(&world, 8, "Bob");
    bob.edit(mailed, "casino, told before").await.ok(200);
    let waits = bob.reply("posts/1", asked, "one").await;
    let plain = bob.reply("posts/1", asked, "another").await;
    world.wait_until_idle().await;
    bob.edit(waits, "two at the casino").await.ok(200);
    let mails = sent(&world).await;
    assert_eq!(mails.len(), 2);
    assert!(mails[1].text.contains("another") && !mails[1].text.contains("casino"), "{}", mails[1].text);
    for (comment, known) in [(mailed, 2), (waits, 3), (plain, 3)] {
        world.moderator().judge(comment, "approve").await.ok(200);
        assert_eq!(sent(&world).await.len(), known);
    }
    let mail = &world.mails()[2];
    assert!(mail.text.contains("two at the casino") && !mail.text.contains("told before"), "{}", mail.text);
}

#[tokio::test]
async fn a_reply_below_a_pending_comment_notifies_once_everyone_sees_it() {
    let world = world();
    let held = world.again(&[&MAIL[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let (ada, bob) = (member(&world, 7, "Ada"), member(&world, 8, "Bob"));
    choose(&ada, json!({ "mentions": true })).await;
    let parent = member(&held, 8, "Bob").comment("posts/1", "held").await;
    bob.reply("posts/1", parent, "hello @ada").await;
    assert_eq!(sent(&world).await.len(), 0);
    for verdict in ["approve", "reject", "approve"] {
        world.moderator().judge(parent, verdict).await.ok(200);
        assert_eq!(subjects(&sent(&world).await), ["ada@example.org: Bob mentioned you: posts/1"], "{verdict}");
    }
}

#[tokio::test]
async fn a_muted_thread_is_silent_and_others_are_not() {
    let (world, ada, bob) = two();
    choose(&ada, wants(&["replies"])).await;
    let parents = [ada.comment("posts/1", "x").await, ada.comment("posts/2", "x").await];
    bob.reply("posts/1", parents[0], "one").await;
    let mails = sent(&world).await;
    press(&world.guest(), &links(&mails[0])[0], "action=mute").await.ok(200);
    bob.reply("posts/1", parents[0], "two").await;
    bob.reply("posts/2", parents[1], "three").await;
    assert_eq!(subjects(&sent(&world).await)[1..], ["ada@example.org: Bob replied to your comment: posts/2"]);
}

#[tokio::test]
async fn names_and_titles_cannot_write_headers_or_markup() {
    let world = world();
    let ada = member(&world, 7, "Ada");
    let mallory = world.claiming(&json!({ "sub": "8", "name": "<b>Mal</b>\r\nBcc: eve@example.org" }));
    let title = "<img src=x>";
    let url = "https://example.org/?a=1&lt;b";
    world.moderator().put("posts/1", json!({ "title": title, "url": url })).await.ok(200);
    let asked = subscribe(&ada, "posts/1").await;
    mallory.reply("posts/1", asked, "<script>alert(1)</script>\n\n\u{7}![x](https://evil.test/x.png)").await;
    let mails = sent(&world).await;
    let head = mails[0].raw.split("\r\n\r\n").next().unwrap();
    for evil in ["\nBcc", "\nX-Evil"] {
        assert!(!head.contains(evil), "{head}");
    }
    assert!(mails[0].html.contains("href=\"https://example.org/?a=1&amp;lt;b\""), "{}", mails[0].html);
    for evil in ["<script", "<img", "<b>Mal"] {
        assert!(!mails[0].html.contains(evil), "{}", mails[0].html);
    }
}

#[tokio::test]
async fn names_in_emails_show_as_written_and_do_not_affect_surrounding_text() {
    let world = world();
    for (id, name, shown) in [
        (8, "=?utf-8?B?QWRtaW4=?=", "=?utf-8?B?QWRtaW4=?="),
        (9, "=?utf-8?Q?Ad?= =?utf-8?Q?min?= é", "=?utf-8?Q?Ad?= =?utf-8?Q?min?= é"),
        (10, "Mal\u{2028}lory\u{2029}x", "Malloryx"),
        (11, "\u{2067}Mallory", "\u{2067}Mallory\u{2069}"),
        (12, "Mallory\u{2069}\u{2069}", "Mallory"),
    ] {
        let asked = subscribe(&member(&world, 7, "Ada"), "posts/1").await;
        let mallory = world.claiming(&json!({ "sub": id.to_string(), "name": name }));
        mallory.reply("posts/1", asked, "x").await;
        let mails = sent(&world).await;
        let mail = mails.last().unwrap();
        assert_eq!(mail.subject, format!("{shown} replied to your comment: posts/1"));
        assert!(mail.text.contains(&format!("\n{shown} replied")), "{}", mail.text);
        assert!(
            mail.raw
                .split("\r\n\r\n")
                .next()
                .unwrap()
                .lines()
                .all(|line| line.len() <= 78 || !line.starts_with("Subject"))
        );
        world.pass(DAY);
    }
    let mut odd = by_guest("x");
    for name in ["Mal\u{2028}lory", "Mal\u{2029}lory"] {
        odd["guest_name"] = json!(name);
        world.guest().post("posts/1/comments", odd.clone()).await.invalid("guest_name");
    }
}

#[tokio::test]
async fn links_in_emails_have_the_configured_base_whatever_host_was_requested() {
    let world = world();
    let forged = world.guest().with(http::header::HOST, "evil.test");
    let asked = subscribe_as_guest(&forged, "grace@example.org").await;
    assert!(asked > 0);
    let mails = sent(&world).await;
    assert!(!mails[0].raw.contains("evil.test") && links(&mails[0]).len() == 2, "{}", mails[0].raw);
}

#[tokio::test]
async fn no_plain_address_is_in_the_table_or_in_a_queue() {
    let world = world();
    let ada = member(&world, 7, "Ada");
    subscribe_as_guest(&world.guest(), "grace@example.org").await;
    choose(&ada, wants(&["replies"])).await;
    subscribe(&ada, "posts/1").await;
    let look = async || {
        let stored = format!("{:?}", world.items().await);
        assert!(stored.contains("E#u7") && !stored.contains("@example.org"), "{stored}");
    };
    look().await;
    world.wait_until_idle().await;
    look().await;
    let messages = world.queues().bodies(server::settings::DELIVERIES).unwrap();
    assert!(!messages.is_empty() && !messages.iter().any(|message| message.contains('@')), "{messages:?}");
    world.pass(Duration::from_hours(1));
    world.finish_jobs().await;
    look().await;
}

#[tokio::test]
async fn a_worker_that_is_killed_at_any_step_announces_each_comment_once() {
    for steps in 1.. {
        let (world, ada, bob) = two();
        let asked = subscribe(&ada, "posts/1").await;
        let replies = [bob.reply("posts/1", asked, "x").await, bob.reply("posts/1", asked, "y").await];
        world.wait_until_idle().await;
        world.lose_deliveries();
        world.pass(Duration::from_mins(1));
        let lived = world.deliver(&["u7", "u7"], steps).await;
        for _ in 0..3 {
            world.pass(Duration::from_mins(3));
            world.deliver(&["u7", "u7"], usize::MAX).await;
        }
        let mails = world.mails();
        // If the worker dies after the server has accepted the email, the email is sent again with the same id.
        let names: BTreeSet<&str> = mails.iter().map(|mail| header(mail, "Message-ID")).collect();
        assert!(names.len() == 1 && mails.len() <= 2, "{steps} steps: {:?} {names:?}", subjects(&mails));
        for reply in replies {
            assert_eq!(mails[0].text.matches(&format!("#comment-{reply}")).count(), 1, "{steps} steps");
        }
        if lived {
            assert_eq!(mails.len(), 1);
            assert!(steps > 5, "{steps} steps are too few for a kill between reading, claiming, sending and marking");
            break;
        }
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_at_any_step_of_a_confirmation_loses_no_notice() {
    for steps in 1.. {
        let world = world();
        let asked = subscribe(&claimant(&world, 7, "ada@example.org"), "posts/1").await;
        member(&world, 8, "Bob").reply("posts/1", asked, "x").await;
        world.wait_until_idle().await;
        world.lose_deliveries();
        world.pass(Duration::from_mins(1));
        let lived = world.deliver(&["u7"], steps).await;
        if world.mails().is_empty() {
            world.pass(Duration::from_mins(3));
            world.deliver(&["u7"], usize::MAX).await;
            assert_eq!(world.mails().len(), 1, "{steps} steps");
        }
        for mail in world.mails() {
            press(&world.guest(), &links(&mail)[0], "action=confirm").await.ok(200);
            assert_eq!(subjects(&sent(&world).await)[1..], ["ada@example.org: Bob replied to your comment: posts/1"]);
        }
        if lived {
            assert_eq!(world.mails().len(), 2);
            break;
        }
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_between_the_servers_acceptance_and_its_note_sends_the_same_email_again() {
    let mods = [("SVC_MODERATION_MAIL", "mods@example.org"), ("SVC_SPAM_REVIEW", "casino")];
    for (recipient, is_proven) in [("u7", true), ("u7", false), ("mods", true)] {
        let world = World::with(&[&MAIL[..], &mods].concat());
        let ada = if is_proven { member(&world, 7, "Ada") } else { claimant(&world, 7, "ada@example.org") };
        let asked = subscribe(&ada, "posts/1").await;
        member(&world, 8, "Bob").reply("posts/1", asked, "casino").await;
        member(&world, 8, "Bob").reply("posts/1", asked, "x").await;
        world.wait_until_idle().await;
        world.lose_deliveries();
        world.pass(Duration::from_mins(1));
        world.deliver_until_sent(recipient).await;
        for _ in 0..3 {
            world.pass(Duration::from_mins(3));
            world.deliver(&[recipient], usize::MAX).await;
        }
        let mails = world.mails();
        assert_eq!(mails.len(), 2, "{recipient}: {:?}", subjects(&mails));
        for name in ["Message-ID", "Subject", "To"] {
            assert_eq!(header(&mails[0], name), header(&mails[1], name), "{recipient}");
        }
        assert_eq!(mails[0].text, mails[1].text, "{recipient}");
    }
}

#[tokio::test]
async fn an_email_that_the_server_refuses_is_retried_for_a_day() {
    let (world, ada, bob) = two();
    let asked = subscribe(&ada, "posts/1").await;
    bob.reply("posts/1", asked, "x").await;
    let before = world.now();
    world.refuse_mails(3);
    assert_eq!(subjects(&sent(&world).await), ["ada@example.org: Bob replied to your comment: posts/1"]);
    let took = (world.now().0 - before.0) / 1_000;
    assert!((60 + 5 + 60 + 300..60 + 5 + 60 + 300 + 10).contains(&took), "{took} seconds");
    world.refuse_mails(1_000);
    let bob = member(&world, 8, "Bob");
    bob.reply("posts/1", asked, "y").await;
    assert_eq!(sent(&world).await.len(), 1);
    world.refuse_mails(0);
    let bob = member(&world, 8, "Bob");
    bob.reply("posts/1", asked, "z").await;
    let mails = sent(&world).await;
    assert!(mails.len() == 2 && mails[1].text.contains("> z"), "{:?}", subjects(&mails));
}

#[tokio::test]
async fn an_address_that_bounces_or_complains_gets_no_more_until_its_member_chooses() {
    let world = world();
    let bob = member(&world, 8, "Bob");
    for (id, name, state) in [(20, "bounce", "bounced"), (21, "complaint", "off")] {
        let ada = member(&world, id, name);
        choose(&ada, wants(&["replies"])).await;
        let parent = ada.comment("posts/1", "x").await;
        for expected in [1, 1] {
            bob.reply("posts/1", parent, "y").await;
            let mails = sent(&world).await;
            assert_eq!(mails.iter().filter(|mail| mail.to.starts_with(name)).count(), expected);
        }
        assert_eq!(ada.get("me/notifications").await.ok(200).data()["state"], state);
        choose(&ada, wants(&["replies"])).await;
        bob.reply("posts/1", parent, "z").await;
        assert_eq!(sent(&world).await.iter().filter(|mail| mail.to.starts_with(name)).count(), 2);
    }
}

/// Sends an SES notification about an email to this address.
pub(crate) async fn hear_of(world: &World, recipient: &str, address: &str, kind: &str) {
    let event = json!({
        "eventType": kind,
        "bounce": { "bounceType": "Permanent" },
        "mail": { "destination": [address], "tags": { "recipient": [recipient] } },
    });
    let notification = json!({ "Type": "Notification", "Message": event.to_string() });
    world.send_to_delivery(&notification.to_string());
    world.wait_until_idle().await;
}

#[tokio::test]
async fn a_bounce_from_an_earlier_address_changes_nothing() {
    let world = world();
    for (id, kind, state) in [(7, "Bounce", "bounced"), (8, "Complaint", "off")] {
        let ada = |email: &str| world.claiming(&json!({ "sub": id.to_string(), "name": "Ada", "email": email }));
        choose(&ada("before@example.org"), wants(&["replies"])).await;
        let now = ada("now@example.org");
        choose(&now, wants(&["replies"])).await;
        let state_after = async |address: &str| {
            hear_of(&world, &format!("u{id}"), address, kind).await;
            now.get("me/notifications").await.ok(200).data()["state"].clone()
        };
        assert_eq!(state_after("before@example.org").await, "on");
        assert_eq!(state_after("Now+tag@example.org").await, state, "all spellings are one mailbox");
        now.delete("me/notifications").await.ok(204);
        assert_eq!(state_after("now@example.org").await, "off", "of an address that is forgotten");
    }
}

#[tokio::test]
async fn a_plain_text_notification_from_ses_is_not_a_failure() {
    let world = world();
    let words = "Successfully validated SNS topic for Amazon SES event publishing.";
    world.send_to_delivery(&json!({ "Type": "Notification", "Message": words }).to_string());
    world.finish_jobs().await;
    assert_eq!(world.queues().receive("DeliveriesDeadLetters", 1).unwrap().len(), 0);
}

#[tokio::test]
async fn a_recipient_who_is_due_when_email_is_turned_off_is_not_a_failure() {
    let world = World::new();
    world.send_delivery("u7");
    world.finish_jobs().await;
    assert_eq!(world.queues().receive("DeliveriesDeadLetters", 1).unwrap().len(), 0);
}

#[tokio::test]
async fn each_moderator_gets_a_digest_even_if_others_fail() {
    let mods = [("SVC_MODERATION_MAIL", "ada@example.org,bob@example.org"), ("SVC_REQUIRE_APPROVAL", "true")];
    let world = World::with(&[&MAIL[..], &mods].concat());
    world.user(7, "Ada").comment("posts/1", "please").await;
    let mails = sent(&world).await;
    let addresses: BTreeSet<&str> = mails.iter().map(|mail| header(mail, "To")).collect();
    let names: BTreeSet<&str> = mails.iter().map(|mail| header(mail, "Message-ID")).collect();
    assert_eq!((mails.len(), names.len()), (2, 2));
    assert_eq!(addresses, BTreeSet::from(["ada@example.org", "bob@example.org"]));
    world.refuse_mails(1);
    world.user(7, "Ada").comment("posts/1", "again").await;
    assert_eq!(sent(&world).await.len(), 3, "nobody gets it twice");
    world.refuse_mails(2);
    world.user(7, "Ada").comment("posts/1", "once more").await;
    assert_eq!(sent(&world).await.len(), 5, "it is tried again when nobody got it");
}

fn lines(mail: &SentMail) -> String {
    mail.text.replace("\r\n", "\n")
}

#[tokio::test]
async fn moderators_get_a_digest_of_what_waits_at_most_hourly() {
    let mods = [("SVC_MODERATION_MAIL", "mods@example.org"), ("SVC_REQUIRE_APPROVAL", "true")];
    let world = World::with(&[&MAIL[..], &mods].concat());
    let ada = || member(&world, 7, "Ada");
    let waits = ada().comment("posts/1", "please").await;
    let decided = ada().comment("posts/1", "decided").await;
    world.wait_until_idle().await;
    world.moderator().judge(decided, "approve").await.ok(200);
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["mods@example.org: 1 comment is waiting for review"]);
    let card = format!("Ada (waiting):\nhttps://api.test/svc/api/v1/moderate#comment-{waits}\n");
    assert!(lines(&mails[0]).contains(&card) && !mails[0].raw.contains("please"), "{}", mails[0].text);
    assert!(!mails[0].raw.contains("List-Unsubscribe"));
    // The comment's record is redelivered after the digest.
    world.repeat_creation(waits).await;
    assert_eq!(sent(&world).await.len(), 1);
    let before = world.now();
    ada().comment("posts/1", "again").await;
    assert_eq!(sent(&world).await.len(), 2);
    assert!(world.now().0 - before.0 >= 3_000_000, "the second digest waits for an hour");
    world.moderator().judge(waits, "approve").await.ok(200);
    ada().report(waits, "spam").await.ok(201);
    assert_eq!(sent(&world).await.len(), 3);
}

#[tokio::test]
async fn a_digest_of_all_comments_includes_new_comments_that_everyone_sees() {
    let mods = [("SVC_MODERATION_MAIL", "mods@example.org"), ("SVC_MODERATION_MAIL_FOR", "all")];
    let review = [("SVC_SPAM_REVIEW", "casino"), ("SVC_SUBSCRIPTIONS", "false")];
    let world = World::with(&[&MAIL[..], &mods, &review].concat());
    let ada = world.user(7, "Ada");
    let shown = ada.comment("posts/1", "Good morning").await;
    let held = ada.comment("posts/1", "casino").await;
    let deleted = ada.comment("posts/1", "Good night").await;
    ada.remove(deleted).await.ok(204);
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["mods@example.org: 2 comments are new or waiting for review"]);
    let card = |headline: &str, id: u64| format!("{headline}\nhttps://api.test/svc/api/v1/moderate#comment-{id}\n");
    for text in [card("Ada:\n> Good morning", shown), card("Ada (waiting):", held)] {
        assert!(lines(&mails[0]).contains(&text), "{text}{}", mails[0].text);
    }
    assert!(!mails[0].raw.contains("casino") && !mails[0].raw.contains("night"), "{}", mails[0].text);
    // The comment's record is redelivered after the digest.
    world.repeat_creation(shown).await;
    world.moderator().judge(held, "approve").await.ok(200);
    assert_eq!(sent(&world).await.len(), 1, "each comment is named once");
    world.user(8, "Bob").report(shown, "spam").await.ok(201);
    let mails = sent(&world).await;
    assert_eq!(mails.len(), 2);
    assert!(lines(&mails[1]).contains(&card("Ada (reported):\n> Good morning", shown)), "{}", mails[1].text);
}

#[tokio::test]
async fn emails_are_in_the_language_of_their_reader() {
    let world = world();
    let bob = member(&world, 8, "Bob");
    for (id, language, subject) in [
        (20, "es", "Bob ha respondido a tu comentario:"),
        (21, "de", "Bob hat auf deinen Kommentar geantwortet:"),
        (22, "fr", "Bob a répondu à votre commentaire\u{a0}:"),
        (23, "tlh", "Bob replied to your comment:"),
    ] {
        let reader = member(&world, id, &format!("Reader{id}")).with(http::header::ACCEPT_LANGUAGE, language);
        let asked = subscribe(&reader, "posts/1").await;
        bob.reply("posts/1", asked, "x").await;
        let mails = sent(&world).await;
        assert_eq!(mails.last().unwrap().subject, format!("{subject} posts/1"));
    }
}

#[tokio::test]
async fn titles_and_quotations_in_emails_have_the_direction_of_their_text() {
    let (world, ada, bob) = two();
    let asked = subscribe(&ada, "posts/1").await;
    bob.reply("posts/1", asked, "שלום.").await;
    let html = sent(&world).await.pop().unwrap().html;
    for element in ["<h2 dir=\"auto\">", "<blockquote dir=\"auto\">שלום."] {
        assert!(html.contains(element), "{html}");
    }
}

#[tokio::test]
async fn a_subscription_adds_no_cost_to_posting_a_comment() {
    let world = metered(&MAIL);
    let ada = member(&world, 7, "Ada");
    ada.comment("posts/1", "x").await;
    let plain = ada.write("posts/1", None, "Hello").await.ok(201).cost;
    let comment = json!({ "body": "Hello", "subscribe_to_replies": true });
    let asked = ada.post("posts/1/comments", comment).await.ok(201).cost;
    let units = |cost: Cost| (cost.read_units, cost.write_units, cost.trips);
    assert_eq!(units(asked), units(plain));
}

#[tokio::test]
async fn an_email_keeps_to_its_limits() {
    let (world, ada, bob) = two();
    let asked = subscribe(&ada, "posts/1").await;
    for body in ["x", "y"] {
        bob.reply("posts/1", asked, body).await;
    }
    world.wait_until_idle().await;
    world.lose_deliveries();
    world.pass(Duration::from_mins(1));
    let (lived, cost) = meter::measure(world.deliver(&["u7"], usize::MAX)).await;
    assert!(lived && world.mails().len() == 1);
    assert!(cost.read_units <= 8.0 && cost.write_units <= 2.0, "{cost:?}");
}
