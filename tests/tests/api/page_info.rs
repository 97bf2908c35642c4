//! The title and address that a page with the widget reports in the field `page` of a new comment.

use http::Method;
use serde_json::{Value, json};
use tests::{Actor, World, by_guest};

const SITE: (&str, &str) = ("SVC_CORS_ORIGINS", "https://blog.example");
const GUESTS: (&str, &str) = ("SVC_ALLOW_GUESTS", "true");
/// Holds new writers' comments, but never moderators'.
const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "new");
const NOBODY: (Option<&str>, Option<&str>) = (None, None);

fn page(title: &str) -> Value {
    json!({ "title": title, "url": format!("https://blog.example/{title}") })
}

fn known(title: &str) -> (Option<String>, Option<String>) {
    (Some(title.to_owned()), Some(format!("https://blog.example/{title}")))
}

async fn write(actor: &Actor, page: &Value) -> u64 {
    let mut body = by_guest("x");
    body["page"] = page.clone();
    actor.post("posts/1/comments", body).await.ok(201).id()
}

fn told(thread: &Value) -> (Option<String>, Option<String>) {
    let text = |name: &str| thread[name].as_str().map(str::to_owned);
    (text("title"), text("url"))
}

/// Returns the thread's title and URL as shown to everyone.
async fn shown(world: &World) -> (Option<String>, Option<String>) {
    let id = world.moderator().comment("posts/1", "to ask about the thread").await;
    let answer = world.guest().get(&format!("comments/{id}")).await.ok(200);
    world.moderator().remove(id).await.ok(204);
    told(&answer.json["thread"])
}

/// Returns the title and URL that moderators see with the comment.
async fn card(world: &World, id: u64) -> (Option<String>, Option<String>) {
    let answer = world.moderator().get(&format!("moderation/comments?id={id}")).await.ok(200);
    told(&answer.rows()[0]["thread"])
}

fn is(known: &(Option<String>, Option<String>), expected: (Option<&str>, Option<&str>)) -> bool {
    (known.0.as_deref(), known.1.as_deref()) == expected
}

#[tokio::test]
async fn page_info_from_a_guest_is_shown_to_moderators_and_after_approval_to_everyone() {
    let world = World::with(&[SITE, GUESTS, HELD]);
    let (first, second) = (write(&world.guest(), &page("tea")).await, write(&world.guest(), &page("fraud")).await);
    assert_eq!((card(&world, first).await, card(&world, second).await), (known("tea"), known("fraud")));
    assert!(is(&shown(&world).await, NOBODY));
    world.moderator().judge(second, "reject").await.ok(200);
    assert!(is(&shown(&world).await, NOBODY));
    world.moderator().judge(first, "approve").await.ok(200);
    assert_eq!(shown(&world).await, known("tea"));
    assert_eq!(card(&world, second).await, known("tea"), "the thread has one now");
    world.moderator().judge(second, "approve").await.ok(200);
    assert_eq!(shown(&world).await, known("tea"), "an approval replaces nothing");
}

#[tokio::test]
async fn page_info_from_a_visible_guest_comment_is_unused_until_a_moderator_approves_it() {
    let world = World::with(&[SITE, GUESTS]);
    let id = write(&world.guest(), &page("tea")).await;
    assert!(is(&shown(&world).await, NOBODY));
    assert_eq!(card(&world, id).await, known("tea"));
    let before = world.moderator().get("moderation/log").await.ok(200).rows().len();
    for _ in 0..2 {
        world.moderator().judge(id, "approve").await.ok(200);
    }
    assert_eq!(shown(&world).await, known("tea"));
    let after = world.moderator().get("moderation/log").await.ok(200).rows().len();
    assert_eq!(after, before, "the comment was approved already");
}

#[tokio::test]
async fn page_info_from_a_member_fills_gaps_at_once_and_a_moderators_replaces_it() {
    let world = World::with(&[SITE]);
    write(&world.user(7, "Ada"), &json!({ "title": "tea" })).await;
    assert!(is(&shown(&world).await, (Some("tea"), None)));
    write(&world.user(8, "Bob"), &page("coffee")).await;
    assert!(is(&shown(&world).await, (Some("tea"), Some("https://blog.example/coffee"))), "each of the two");
    write(&world.moderator(), &json!({ "title": "milk" })).await;
    assert!(is(&shown(&world).await, (Some("milk"), Some("https://blog.example/coffee"))));
    let held = world.again(&[SITE, HELD]);
    write(&held.user(9, "Eve"), &page("fraud")).await;
    assert!(is(&shown(&world).await, (Some("milk"), Some("https://blog.example/coffee"))));
}

#[tokio::test]
async fn page_info_from_a_moderator_is_used_while_the_comment_waits() {
    let world = World::with(&[SITE, ("SVC_REQUIRE_APPROVAL", "true")]);
    let moderator = world.moderator();
    write(&moderator, &page("tea")).await;
    let later = moderator.comment("posts/1", "y").await;
    assert_eq!(card(&world, later).await, known("tea"));
}

#[tokio::test]
async fn the_hosts_description_wins_field_by_field_until_it_is_withdrawn() {
    let world = World::with(&[SITE]);
    let moderator = world.moderator();
    write(&moderator, &page("tea")).await;
    moderator.put("posts/1", json!({ "title": "Host" })).await.ok(200);
    assert!(is(&shown(&world).await, (Some("Host"), Some("https://blog.example/tea"))));
    write(&moderator, &page("coffee")).await;
    for nothing in ["", "\u{200b} "] {
        let described = moderator.put("posts/1", json!({ "title": nothing })).await.ok(200);
        assert_eq!(described.data()["title"], Value::Null, "a title that shows nothing is none");
    }
    moderator.put("posts/1", json!({ "title": null, "url": "https://host.example/" })).await.ok(200);
    assert!(is(&shown(&world).await, (Some("coffee"), Some("https://host.example/"))));
    moderator.put("posts/1", json!({})).await.ok(200);
    assert_eq!(shown(&world).await, known("coffee"));
}

#[tokio::test]
async fn a_page_that_is_malformed_is_ignored_and_never_refused() {
    let world = World::with(&[SITE]);
    for (n, page) in [
        json!(null),
        json!("x"),
        json!(["x"]),
        json!({ "title": 1, "url": ["https://blog.example/"] }),
        json!({ "title": " \u{200b}\u{202e}\n ", "url": "https://evil.example/" }),
        json!({ "url": "https://ada@blog.example/" }),
        json!({ "url": "javascript:alert(1)" }),
        json!({ "url": format!("https://blog.example/{}", "a".repeat(2_000)) }),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({ "body": format!("number {n}"), "page": page });
        world.moderator().post("posts/1/comments", body).await.ok(201);
        assert!(is(&shown(&world).await, NOBODY), "{page}");
    }
    let half = r#"{"body":"half","page":{"title":"tea \ud83c"}}"#;
    world.moderator().send(Method::POST, "posts/1/comments", half).await.ok(201);
    assert!(
        is(&shown(&world).await, (Some("tea \u{fffd}"), None)),
        "a script may cut a title in the middle of a character"
    );
    let long = json!({ "title": format!(" \u{2066}{}\u{2069}", "é".repeat(201)), "url": "https://blog.example/a#b" });
    write(&world.moderator(), &long).await;
    assert!(is(&shown(&world).await, (Some(&"é".repeat(200)), Some("https://blog.example/a"))));
}

#[tokio::test]
async fn a_page_address_is_used_if_its_origin_is_listed_or_the_apis_own() {
    let own = "https://api.test/a";
    for (origins, url, is_kept) in [
        ("https://blog.example,https://*", "https://blog.example/a", true),
        ("https://blog.example,https://*", "https://else.example/a", false),
        ("*", "https://blog.example/a", false),
        ("*", own, true),
        ("https://blog.example", own, true),
        ("https://blog.example", "http://blog.example/a", false),
    ] {
        let world = World::with(&[("SVC_CORS_ORIGINS", origins), ("SVC_PUBLIC_URL", "https://api.test")]);
        write(&world.moderator(), &json!({ "title": "tea", "url": url })).await;
        assert!(is(&shown(&world).await, (Some("tea"), is_kept.then_some(url))), "{origins} {url}");
    }
}

#[tokio::test]
async fn page_info_from_a_reply_is_ignored() {
    let world = World::with(&[SITE]);
    let parent = world.moderator().comment("posts/1", "x").await;
    let reply = json!({ "body": "y", "parent_id": parent, "page": page("tea") });
    let id = world.moderator().post("posts/1/comments", reply).await.ok(201).id();
    assert!(is(&card(&world, id).await, NOBODY) && is(&shown(&world).await, NOBODY));
}

#[tokio::test]
async fn a_page_address_comes_from_the_host_then_from_page_info_then_from_the_settings() {
    let world = World::with(&[SITE, GUESTS, HELD, ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}")]);
    let everywhere = async |url: &str| {
        let everyone = world.guest();
        let queue = told(&world.moderator().get("moderation/comments?state=all").await.ok(200).rows()[0]["thread"]).1;
        assert_eq!((queue.as_deref(), shown(&world).await.1.as_deref()), (Some(url), Some(url)));
        let feed = everyone.get("posts/1/feed.atom").await.ok(200);
        let html = everyone.get("posts/1/comments.html").await.ok(200);
        for answer in [feed, html] {
            let text = String::from_utf8_lossy(&answer.body);
            assert!(text.contains(&format!("href=\"{url}\"")), "{url} in {text}");
        }
    };
    world.moderator().comment("posts/1", "x").await;
    world.wait_until_idle().await;
    everywhere("https://www.example.org/posts/1").await;
    let waiting = write(&world.guest(), &page("tea")).await;
    assert_eq!(card(&world, waiting).await, known("tea"), "an address that the settings make does not count here");
    world.moderator().judge(waiting, "approve").await.ok(200);
    world.wait_until_idle().await;
    everywhere("https://blog.example/tea").await;
    world.moderator().put("posts/1", json!({ "url": "https://host.example/" })).await.ok(200);
    everywhere("https://host.example/").await;
}

#[tokio::test]
async fn a_digest_for_moderators_has_the_title_of_the_page_while_the_thread_has_none() {
    let mods = [("SVC_MODERATION_MAIL", "mods@example.org"), HELD, SITE];
    let world = World::with(&[&tests::MAIL[..], &mods].concat());
    write(&world.guest(), &page("tea")).await;
    world.finish_jobs().await;
    let mails = world.mails();
    let [mail] = &mails[..] else { panic!("{} mails", mails.len()) };
    assert!(mail.text.lines().any(|line| line.trim() == "tea"), "{}", mail.text);
}
