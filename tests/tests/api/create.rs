//! `comments.store`: POST `{type}/{id}/comments`.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use http::header::{ACCEPT_LANGUAGE, USER_AGENT};
use serde_json::{Value, json};
use tests::{Actor, World, by_guest, ids};

use crate::list::comment;

const GUESTS: (&str, &str) = ("SVC_ALLOW_GUESTS", "true");

#[tokio::test]
async fn a_created_comment_is_returned_whole() {
    let reply = World::new().user(7, "Ada").post("posts/1/comments", json!({ "body": "Hello, world" })).await.ok(201);
    let user = json!({ "id": 7, "name": "Ada", "avatar": "" });
    assert_eq!(reply.json, json!({ "data": comment(reply.id(), "Hello, world", &user, true, None, &[]) }));
    assert!(reply.id() < 1 << 53);
}

#[tokio::test]
async fn a_guests_comment_shows_the_guests_name_and_gravatar_and_no_email() {
    let world = World::with(&[GUESTS]);
    let reply = world.guest().post("posts/1/comments", by_guest("Hi")).await.ok(201);
    let hash = shared::domain::ids::sha256_hex("grace@example.org");
    let avatar = format!("https://www.gravatar.com/avatar/{hash}?d=mp");
    assert_eq!(reply.data()["user"], json!({ "id": null, "name": "Grace", "avatar": avatar }));
    assert_eq!(reply.data()["is_guest"], true);
    assert_eq!(reply.data()["can"], json!({ "update": false, "delete": false, "pin": false }));
    assert!(!reply.json.to_string().contains("example.org"));
}

#[tokio::test]
async fn no_address_becomes_a_gravatar_when_gravatar_is_not_shown() {
    let world = World::with(&[GUESTS, ("SVC_GUEST_SHOW_GRAVATAR", "false")]);
    let bob = world.claiming(&json!({ "sub": "8", "name": "Bob", "email": "bob@a.test" }));
    let comment = world.guest().post("posts/1/comments", by_guest("Hi")).await.ok(201);
    let of_bob = bob.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    let report = format!("comments/{}/report", comment.data()["id"]);
    bob.post(&report, json!({ "reason": "spam" })).await.ok(201);
    let ui = bob.get("ui").await.ok(200);
    let moderator = world.moderator();
    let found = moderator.get("users?q=bob").await.ok(200);
    let moderated = moderator.get("moderation/users?q=bob").await.ok(200);
    let reports = moderator.get(&format!("comments/{}/reports", comment.data()["id"])).await.ok(200);
    for avatar in [
        &comment.data()["user"]["avatar"],
        &of_bob.data()["user"]["avatar"],
        &ui.data()["auth"]["user"]["avatar"],
        &found.rows()[0]["avatar"],
        &moderated.rows()[0]["avatar"],
        &reports.rows()[0]["user"]["avatar"],
    ] {
        assert_eq!(avatar, "");
    }
    let ada = json!({ "sub": "7", "name": "Ada", "picture": "https://a.test/ada.png", "email": "ada@a.test" });
    let reply = world.claiming(&ada).post("posts/1/comments", json!({ "body": "y" })).await.ok(201);
    assert_eq!(reply.data()["user"]["avatar"], "https://a.test/ada.png");
}

#[tokio::test]
async fn a_users_avatar_is_the_picture_in_the_token_or_else_a_gravatar() {
    let world = World::new();
    let picture = json!({ "sub": "7", "name": "Ada", "picture": "https://a.test/ada.png", "email": "ada@a.test" });
    let reply = world.claiming(&picture).post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    assert_eq!(reply.data()["user"]["avatar"], "https://a.test/ada.png");
    let email = json!({ "sub": "8", "name": "Bob", "email": " Bob@A.test" });
    let reply = world.claiming(&email).post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    let hash = shared::domain::ids::sha256_hex("bob@a.test");
    assert_eq!(reply.data()["user"]["avatar"], format!("https://www.gravatar.com/avatar/{hash}?d=mp"));
    assert!(!reply.json.to_string().contains("A.test"));
}

#[tokio::test]
async fn a_name_from_a_token_is_cut_at_100_characters() {
    let world = World::new();
    let ada = world.user(7, &"ä".repeat(150));
    let reply = ada.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    assert_eq!(reply.data()["user"]["name"], "ä".repeat(100));
}

#[tokio::test]
async fn a_moderators_comment_says_so_and_may_be_pinned() {
    let world = World::with(&[("SVC_MODERATORS", "5,6")]);
    for moderator in [world.moderator(), world.user(5, "Eve")] {
        let reply = moderator.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
        assert_eq!(reply.data()["is_moderator"], true);
        assert_eq!(reply.data()["can"], json!({ "update": true, "delete": true, "pin": true }));
    }
}

#[tokio::test]
async fn the_body_is_required() {
    let ada = World::new().user(7, "Ada");
    for body in [json!({}), json!({ "body": null }), json!({ "body": "" }), json!({ "body": " \t\r\n\u{a0}\u{3000}" })]
    {
        let reply = ada.post("posts/1/comments", body).await.invalid("body");
        assert_eq!(reply.json["message"], "Comment is required.");
    }
    ada.send(Method::POST, "posts/1/comments", "").await.invalid("body");
}

#[tokio::test]
async fn a_body_without_visible_content_is_refused_as_missing() {
    let ada = World::new().user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for body in [
        "&nbsp;",
        "&#8203;&#xAD;",
        "\u{200b}\u{2060}",
        "[](x)",
        "[x]: http://x.example 'unused'",
        "#",
        "> \n>",
        "![]()",
        "![](<> 'x') ![](#x)",
        "- \n- ",
    ] {
        let body = json!({ "body": body });
        let reply = ada.post("posts/1/comments", body.clone()).await.invalid("body");
        assert_eq!(reply.json["message"], "Comment is required.", "{body}");
        ada.patch(&format!("comments/{id}"), body.clone()).await.invalid("body");
        ada.post("markdown/preview", body).await.ok(200);
    }
    for body in ["<!-- -->", "**", "---", "![](x)", "![x]()", "&lt;", "[](x)x", "`x`"] {
        ada.post("posts/1/comments", json!({ "body": body })).await.ok(201);
    }
}

#[tokio::test]
async fn the_body_is_a_string() {
    let ada = World::new().user(7, "Ada");
    for body in [json!(7), json!(true), json!(["x"]), json!({ "x": 1 })] {
        ada.post("posts/1/comments", json!({ "body": body })).await.invalid("body");
    }
}

#[tokio::test]
async fn the_body_has_at_most_10000_characters_whatever_their_bytes() {
    let ada = World::new().user(7, "Ada");
    for letter in ["a", "ß", "語", "😀"] {
        let reply = ada.post("posts/1/comments", json!({ "body": letter.repeat(10_000) })).await.ok(201);
        assert_eq!(reply.data()["body"], letter.repeat(10_000));
        ada.post("posts/1/comments", json!({ "body": letter.repeat(10_001) })).await.invalid("body");
    }
}

#[tokio::test]
async fn the_body_is_kept_as_it_was_written() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let body = "  two spaces before\r\n\tand \u{0}\u{2067}\u{2069} after  ";
    let id = ada.comment("posts/1", body).await;
    assert_eq!(world.guest().see("posts/1", id).await["body"], body);
}

/// Bodies that would be displayed in a different order from their text.
const REORDERED: [&str; 4] = ["gpj\u{202e}exe.", "\u{202a}x", "&#x202E;x", "[x](https://example.org '&#8238;y')"];

#[tokio::test]
async fn a_body_with_a_bidirectional_override_is_refused_on_its_field() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for body in REORDERED {
        ada.post("posts/1/comments", json!({ "body": body })).await.invalid("body");
        ada.edit(id, body).await.invalid("body");
        ada.post("markdown/preview", json!({ "body": body })).await.invalid("body");
    }
    for body in ["\u{2067}שלום\u{2069} x", "\u{200f}سلام\u{200e}"] {
        ada.comment("posts/1", body).await;
    }
}

#[tokio::test]
async fn all_wrong_fields_are_reported_at_once() {
    let world = World::with(&[GUESTS]);
    let wrong = json!({ "body": "", "parent_id": "x", "subscribe_to_replies": 1, "guest_name": 7, "guest_email": "x" });
    let reply = world.guest().post("posts/1/comments", wrong).await.refused(422, "validation_failed");
    let errors = reply.json["errors"].as_object().unwrap();
    let mut fields: Vec<&String> = errors.keys().collect();
    fields.sort_unstable();
    assert_eq!(fields, ["body", "guest_email", "guest_name", "parent_id", "subscribe_to_replies"]);
    assert!(errors.values().all(|texts| texts.as_array().is_some_and(|texts| texts.iter().all(Value::is_string))));
    assert_eq!(reply.json["message"], errors["body"][0]);
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_fails_validation() {
    let ada = World::new().user(7, "Ada");
    for body in ["{", "[]", "\"body\"", "null", "7", "{\"body\":\"x\"} trailing", "{body:1}", "\u{feff}{}"] {
        ada.send(Method::POST, "posts/1/comments", body).await.refused(422, "validation_failed");
    }
    ada.send(Method::POST, "posts/1/comments", vec![0xff, 0xfe, 0x00]).await.refused(422, "validation_failed");
}

#[tokio::test]
async fn deep_json_is_refused_and_huge_json_too() {
    let ada = World::new().user(7, "Ada");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    ada.send(Method::POST, "posts/1/comments", deep).await.refused(422, "validation_failed");
    let nested = format!("{{\"body\":{}1{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    ada.send(Method::POST, "posts/1/comments", nested).await.refused(422, "validation_failed");
    ada.post("posts/1/comments", json!({ "body": "a".repeat(2_000_000) })).await.invalid("body");
}

#[tokio::test]
async fn subscribe_to_replies_is_a_boolean() {
    let ada = World::new().user(7, "Ada");
    for flag in [json!(true), json!(false), json!(null)] {
        ada.post("posts/1/comments", json!({ "body": "x", "subscribe_to_replies": flag })).await.ok(201);
    }
    for flag in [json!("true"), json!(1), json!([]), json!({})] {
        let body = json!({ "body": "x", "subscribe_to_replies": flag });
        ada.post("posts/1/comments", body).await.invalid("subscribe_to_replies");
    }
}

#[tokio::test]
async fn a_guests_name_is_1_to_100_visible_characters_in_the_order_they_were_written() {
    let guest = World::with(&[GUESTS]).guest();
    let with = async |name: Value| {
        let body = json!({ "body": "x", "guest_name": name, "guest_email": "g@example.org" });
        guest.post("posts/1/comments", body).await
    };
    for good in ["G", &"ß".repeat(100), "Grace O'Hopper-Müller 🦀", "ख़ाँ", "Nguyễn", "e\u{302}\u{301}"] {
        with(json!(good)).await.ok(201);
    }
    for name in ["\u{2067}עדה\u{2069}", "علی\u{200c}رضا"] {
        assert_eq!(with(json!(name)).await.ok(201).data()["user"]["name"], name);
    }
    let invisible = ["\u{200b}", "\u{3164}\u{ffa0}", " \u{2800} ", "\u{fe0f}\u{e0100}"];
    let odd = ["", "  ", "a\nb", "a\u{7}b", "e\u{302}\u{301}\u{303}", "A\u{202e}da", "\u{202b}Ada\u{202c}"];
    let wrong = invisible.into_iter().chain(odd).map(Value::from);
    for bad in wrong.chain([json!(null), json!(7), json!("ß".repeat(101))]) {
        with(bad).await.invalid("guest_name");
    }
}

#[tokio::test]
async fn a_guests_email_is_required_and_valid() {
    let guest = World::with(&[GUESTS]).guest();
    for bad in [
        json!(null),
        json!(""),
        json!("grace"),
        json!("grace@"),
        json!("@example.org"),
        json!("a b@example.org"),
        json!(7),
    ] {
        let body = json!({ "body": "x", "guest_name": "Grace", "guest_email": bad });
        guest.post("posts/1/comments", body).await.invalid("guest_email");
    }
}

#[tokio::test]
async fn where_emails_are_optional_a_guest_may_omit_the_email_but_not_give_an_invalid_one() {
    let guest = World::with(&[GUESTS, ("SVC_GUEST_REQUIRE_EMAIL", "false")]).guest();
    let reply = guest.post("posts/1/comments", json!({ "body": "x", "guest_name": "Grace" })).await.ok(201);
    assert_eq!(reply.data()["user"]["avatar"], "");
    guest.post("posts/1/comments", json!({ "body": "x", "guest_name": "Grace", "guest_email": null })).await.ok(201);
    let wrong = json!({ "body": "x", "guest_name": "Grace", "guest_email": "grace" });
    guest.post("posts/1/comments", wrong).await.invalid("guest_email");
}

#[tokio::test]
async fn the_fields_of_guests_are_ignored_for_users() {
    let ada = World::with(&[GUESTS]).user(7, "Ada");
    let body = json!({ "body": "x", "guest_name": 7, "guest_email": "nonsense" });
    let reply = ada.post("posts/1/comments", body).await.ok(201);
    assert_eq!((&reply.data()["user"]["name"], &reply.data()["is_guest"]), (&json!("Ada"), &json!(false)));
}

#[tokio::test]
async fn an_unknown_type_is_404_with_its_message() {
    let world = World::with(&[("SVC_TYPES", "posts,videos")]);
    let ada = world.user(7, "Ada");
    ada.comment("videos/1", "x").await;
    for kind in ["pages", "Posts", "comments", "POSTS", "post"] {
        let reply = ada.post(&format!("{kind}/1/comments"), json!({ "body": "x" })).await.refused(404, "not_found");
        assert_eq!(reply.json["message"], "Unknown commentable type.");
    }
}

#[tokio::test]
async fn record_ids_are_1_to_128_safe_characters() {
    let ada = World::new().user(7, "Ada");
    for good in ["a", "A-Z_0.9~:x", &"r".repeat(128)] {
        ada.comment(&format!("posts/{good}"), "x").await;
    }
    for bad in ["%20", "a%20b", "a%2Fb", "a%23b", "%C3%A9", &"r".repeat(129), "a+b", "%00"] {
        ada.post(&format!("posts/{bad}/comments"), json!({ "body": "x" })).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_reply_names_the_parent_given_at_any_depth() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let mut parent = ada.comment("posts/1", "0").await;
    for depth in 1..=10 {
        let body = json!({ "body": depth.to_string(), "parent_id": parent });
        let reply = ada.post("posts/1/comments", body).await.ok(201);
        assert_eq!(reply.data()["parent_id"], parent);
        parent = reply.id();
    }
    ada.post("posts/1/comments", json!({ "body": "11", "parent_id": parent })).await.invalid("parent_id");
}

#[tokio::test]
async fn a_parent_of_another_thread_is_a_mismatch() {
    let world = World::with(&[("SVC_TYPES", "posts,videos")]);
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "x").await;
    for thread in ["posts/2", "videos/1"] {
        let body = json!({ "body": "y", "parent_id": parent });
        ada.post(&format!("{thread}/comments"), body).await.refused(422, "parent_mismatch");
    }
    assert_eq!(world.guest().list("posts/2", "").await.total(), 0);
}

#[tokio::test]
async fn with_nesting_off_replies_are_refused_and_old_ones_shown() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "x").await;
    let old = ada.reply("posts/1", parent, "y").await;
    let flat = world.again(&[("SVC_NESTING", "false")]);
    let body = json!({ "body": "z", "parent_id": parent });
    flat.user(7, "Ada").post("posts/1/comments", body).await.refused(422, "nesting_disabled");
    flat.user(7, "Ada").comment("posts/1", "still").await;
    assert_eq!(ids(&flat.guest().see("posts/1", parent).await["replies"]), [old]);
    assert_eq!(flat.guest().replies(parent, "").await.ids(), [old]);
}

#[tokio::test]
async fn a_denied_phrase_is_rejected_as_spam_and_nothing_is_stored() {
    let world = World::with(&[("SVC_SPAM_DENY", "buy now, casino")]);
    let ada = world.user(7, "Ada");
    for body in ["BUY   NOW!", "the Casino", "buy\nnow", "ca\u{200b}sino", "c**a**sino"] {
        ada.post("posts/1/comments", json!({ "body": body })).await.refused(422, "spam_rejected");
    }
    assert_eq!(ada.list("posts/1", "").await.total(), 0);
    // An unused link definition isn't rendered, so its text isn't checked.
    ada.comment("posts/1", "[casino]: x\n\nbuy later").await;
}

#[tokio::test]
async fn ten_links_are_reviewed_and_fifty_denied() {
    let ada = World::new().user(7, "Ada");
    let links = |count: usize| json!({ "body": "https://a.test HTTP://b.test ".repeat(count / 2) + &"http://c.test ".repeat(count % 2) });
    let reply = ada.post("posts/1/comments", links(9)).await.ok(201);
    assert_eq!(reply.data()["is_approved"], true);
    for count in [10, 49] {
        let reply = ada.post("posts/1/comments", links(count)).await.ok(201);
        assert_eq!(reply.data()["is_approved"], false, "{count}");
    }
    ada.post("posts/1/comments", links(50)).await.refused(422, "spam_rejected");
}

#[tokio::test]
async fn a_body_repeated_within_a_minute_is_held_for_review_if_configured() {
    let world = World::with(&[("SVC_SPAM_REVIEW_REPEATS", "true")]);
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let approved = |reply: tests::TestResponse| reply.ok(201).data()["is_approved"] == true;
    let say = json!({ "body": "first" });
    assert!(approved(ada.post("posts/1/comments", say.clone()).await));
    assert!(!approved(ada.post("posts/2/comments", say.clone()).await));
    assert!(approved(bob.post("posts/1/comments", say.clone()).await));
    assert!(approved(ada.post("posts/1/comments", json!({ "body": "second" })).await));
    world.pass(Duration::from_secs(61));
    assert!(approved(ada.post("posts/1/comments", say.clone()).await));
    world.turn_back(Duration::from_hours(24));
    assert!(approved(ada.post("posts/1/comments", say.clone()).await), "the clock was ahead");
    assert!(!approved(ada.post("posts/1/comments", say.clone()).await));
    let off = world.again(&[]).user(7, "Ada");
    assert!(approved(off.post("posts/1/comments", say).await));
}

#[tokio::test]
async fn people_of_any_script_are_mentioned_by_their_handles() {
    let world = World::new();
    let names = ["李雷", "韩梅梅", "さくら★", "प्रिया शर्मा", "Юлия", "ada"];
    for (id, name) in (20..).zip(names) {
        world.user(id, name).get("ui").await.ok(200);
    }
    let reader = world.user(7, "Reader");
    for (body, linked) in [
        ("你好@李雷", &["%E6%9D%8E%E9%9B%B7"][..]),
        ("@李雷@韩梅梅 你好", &["%E6%9D%8E%E9%9B%B7", "%E9%9F%A9%E6%A2%85%E6%A2%85"]),
        ("＠adaさん、", &["ada"]),
        ("@さくら_ @_", &["%E3%81%95%E3%81%8F%E3%82%89_"]),
        ("@ЮЛИЯ!", &["%D1%8E%D0%BB%D0%B8%D1%8F"]),
        (
            "@प्रिया_शर्मा",
            &["%E0%A4%AA%E0%A5%8D%E0%A4%B0%E0%A4%BF%E0%A4%AF%E0%A4%BE_%E0%A4%B6%E0%A4%B0%E0%A5%8D%E0%A4%AE%E0%A4%BE"],
        ),
        ("@李 @韩梅梅梅 李雷@ada.example", &[]),
    ] {
        let html = reader.post("posts/1/comments", json!({ "body": body })).await.ok(201).data()["html"].clone();
        let links = html.as_str().unwrap().split("href=\"/users/").skip(1);
        assert_eq!(links.filter_map(|link| link.split('"').next()).collect::<Vec<_>>(), linked, "{body}");
        let preview = reader.post("markdown/preview", json!({ "body": body })).await.ok(200);
        assert_eq!(preview.data()["html"], html, "{body}");
    }
}

#[tokio::test]
async fn the_age_of_a_comment_is_in_the_requested_language() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "x").await;
    let answer = ada.reply("posts/1", id, "y").await;
    world.pass(Duration::from_mins(2));
    let in_language = |actor: &Actor, language| actor.clone().with(ACCEPT_LANGUAGE, language);
    for (language, words) in [
        ("de-AT, en;q=0.5", "vor 2 Minuten"),
        ("es", "hace 2 minutos"),
        ("fr", "il y a 2 minutes"),
        ("en", "2 minutes ago"),
        ("tlh", "2 minutes ago"),
    ] {
        let (guest, ada) = (in_language(&world.guest(), language), in_language(&ada, language));
        let shown = guest.see("posts/1", id).await;
        assert_eq!(shown["relative_created_at"], words);
        assert_eq!(shown["replies"][0]["relative_created_at"], words);
        assert_eq!(guest.replies(id, "").await.find(answer).unwrap()["relative_created_at"], words);
        let edited = ada.edit(id, language).await.ok(200);
        assert_eq!(edited.data()["relative_created_at"], words);
        let pinned = in_language(&moderator, language).pin(id).await.ok(200);
        assert_eq!(pinned.data()["relative_created_at"], words);
    }
    let created = in_language(&ada, "de").post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    assert_eq!(created.data()["relative_created_at"], "gerade eben");
}

#[tokio::test]
async fn guests_are_told_apart_by_address_and_user_agent() {
    let world = World::with(&[GUESTS, ("SVC_REQUIRE_APPROVAL", "true")]);
    let grace = world.guest().from("2001:db8:1:2:3::4");
    let id = grace.post("posts/1/comments", by_guest("x")).await.ok(201).id();
    assert_eq!(grace.list("posts/1", "").await.ids(), [id]);
    assert_eq!(grace.clone().from("2001:db8:1:2:ffff::9").list("posts/1", "").await.ids(), [id]);
    assert!(grace.clone().from("2001:db8:1:3::4").list("posts/1", "").await.ids().is_empty());
    assert!(grace.with(USER_AGENT, "another").list("posts/1", "").await.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ninety_six_parallel_comments_or_replies_lose_nothing_and_count_exactly() {
    let world = World::new();
    let parent = world.user(7, "Ada").comment("posts/2", "x").await;
    let writers: Vec<_> = (0..96).map(|n| world.user(100 + n, &format!("Writer {n}"))).collect();
    let (comments, replies) = ("posts/1/comments?sort=oldest&".to_owned(), format!("comments/{parent}/replies?"));
    let mut created = Vec::new();
    for (thread, parent, path) in [("posts/1", None, comments), ("posts/2", Some(parent), replies)] {
        let answers = join_all(writers.iter().map(|writer| writer.write(thread, parent, "at once"))).await;
        created = answers.into_iter().map(|answer| answer.ok(201).id()).collect();
        created.sort_unstable();
        created.dedup();
        assert_eq!(created.len(), 96);
        let mut listed = Vec::new();
        for page in 1..=2 {
            let list = world.guest().get(&format!("{path}per_page=50&page={page}")).await.ok(200);
            assert_eq!(list.total(), 96);
            listed.extend(list.ids());
        }
        assert_eq!(listed, created, "{path}");
    }
    let shown = world.guest().see("posts/2", parent).await;
    assert_eq!((&shown["replies_count"], ids(&shown["replies"])), (&json!(96), created[..3].to_vec()));
}

#[tokio::test]
async fn a_reply_is_younger_than_its_parent_though_the_clock_of_its_instance_is_behind() {
    let world = World::new();
    let parent = world.user(7, "Ada").comment("posts/1", "first").await;
    let behind = world.again(&[]);
    world.turn_back(Duration::from_mins(1));
    let reply = behind.user(8, "Bob").reply("posts/1", parent, "second").await;
    assert!((parent + 1..=parent + 4_096).contains(&reply), "{parent} {reply}");
}
