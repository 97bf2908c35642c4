//! `ui` and `markdown.preview`.

use http::header::ACCEPT_LANGUAGE;
use serde_json::{Value, json};
use shared::domain::webhook::EventKind;
use tests::World;

#[tokio::test]
async fn the_configuration_is_returned_whole() {
    let world = World::new();
    let mut reply = world.user(7, "Ada").get("ui").await.ok(200);
    let labels = reply.json["data"]["labels"].take();
    assert!(labels.as_object().is_some_and(|labels| labels.values().all(Value::is_string)));
    assert_eq!((&labels["comment"], &labels["reply"]), (&json!("Comment"), &json!("Reply")));
    assert_eq!(
        reply.json,
        json!({ "data": {
            "labels": null,
            "features": {
                "sorting": true,
                "reporting": true,
                "nesting": true,
                "read_only": false,
                "emoji_picker": true,
                "markdown_toolbar": true,
                "markdown_preview": true,
                "guests": false,
                "media": true,
                "subscriptions": false,
                "realtime": false,
                "badges": true,
                "pins": true,
            },
            "report_reasons": ["spam", "inappropriate", "offensive", "other"],
            "theme": "auto",
            "default_sort": "newest",
            "per_page": 10,
            "users_route_prefix": "users",
            "guest": { "require_email": true, "show_gravatar": true, "likes": false },
            "feeds": true,
            "sign_in": false,
            "sign_in_methods": [],
            "limits": { "body": 10_000, "report_details": 500, "media_bytes": 4_194_304 },
            "auth": {
                "authenticated": true,
                "moderator": false,
                "banned": false,
                "can_comment": true,
                "user": { "id": 7, "name": "Ada", "avatar": "", "name_from": null },
            },
        }})
    );
}

#[tokio::test]
async fn every_flag_mirrors_its_setting() {
    let flags = [
        ("sorting", "SVC_SORTING"),
        ("reporting", "SVC_REPORTING"),
        ("nesting", "SVC_NESTING"),
        ("read_only", "SVC_READ_ONLY"),
        ("emoji_picker", "SVC_EMOJI_PICKER"),
        ("markdown_toolbar", "SVC_MARKDOWN_TOOLBAR"),
        ("markdown_preview", "SVC_MARKDOWN_PREVIEW"),
        ("guests", "SVC_ALLOW_GUESTS"),
        ("media", "SVC_MEDIA"),
        ("subscriptions", "SVC_SUBSCRIPTIONS"),
        ("realtime", "SVC_REALTIME"),
        ("badges", "SVC_BADGES"),
        ("pins", "SVC_PINS"),
    ];
    let world = World::new();
    let features = world.guest().get("ui").await.ok(200).data()["features"].clone();
    assert_eq!(features.as_object().unwrap().len(), flags.len());
    for (flag, setting) in flags {
        let other = !features[flag].as_bool().unwrap();
        let mut expected = features.clone();
        expected[flag] = json!(other);
        let changed = world.again(&[(setting, &other.to_string())]).guest().get("ui").await.ok(200);
        assert_eq!(changed.data()["features"], expected, "{setting}");
    }
}

#[tokio::test]
async fn fields_other_than_flags_mirror_their_settings() {
    let world = World::with(&[
        ("SVC_REPORT_REASONS", "rude, wrong"),
        ("SVC_THEME", "dark"),
        ("SVC_DEFAULT_SORT", "most_liked"),
        ("SVC_PER_PAGE", "25"),
        ("SVC_USERS_ROUTE_PREFIX", "/people/"),
        ("SVC_GUEST_REQUIRE_EMAIL", "false"),
        ("SVC_GUEST_SHOW_GRAVATAR", "false"),
        ("SVC_GUEST_LIKES", "true"),
        ("SVC_MEDIA_MAX_BYTES", "1000"),
        ("SVC_FEEDS", "false"),
    ]);
    let reply = world.guest().get("ui").await.ok(200);
    let data = reply.data();
    assert_eq!(data["report_reasons"], json!(["rude", "wrong"]));
    assert_eq!((&data["theme"], &data["default_sort"]), (&json!("dark"), &json!("most_liked")));
    assert_eq!((&data["per_page"], &data["users_route_prefix"]), (&json!(25), &json!("people")));
    assert_eq!(data["guest"], json!({ "require_email": false, "show_gravatar": false, "likes": true }));
    assert_eq!((&data["limits"]["media_bytes"], &data["feeds"]), (&json!(1000), &json!(false)));
}

#[tokio::test]
async fn can_comment_reflects_read_only_bans_and_guests() {
    let world = World::new();
    let auth = |authenticated: bool, banned: bool, can: bool| json!([authenticated, banned, can]);
    let auth_of = async |actor: &tests::Actor| {
        let reply = actor.get("ui").await.ok(200);
        let auth = &reply.data()["auth"];
        json!([auth["authenticated"], auth["banned"], auth["can_comment"]])
    };
    assert_eq!(auth_of(&world.guest()).await, auth(false, false, false));
    assert_eq!(auth_of(&world.user(7, "Ada")).await, auth(true, false, true));
    assert_eq!(auth_of(&world.banned().await).await, auth(true, true, false));
    let guests = world.again(&[("SVC_ALLOW_GUESTS", "true")]);
    assert_eq!(auth_of(&guests.guest()).await, auth(false, false, true));
    let closed = world.again(&[("SVC_ALLOW_GUESTS", "true"), ("SVC_READ_ONLY", "true")]);
    assert_eq!(auth_of(&closed.guest()).await, auth(false, false, false));
    assert_eq!(auth_of(&closed.user(7, "Ada")).await, auth(true, false, false));
    assert_eq!(world.guest().get("ui").await.ok(200).data()["auth"]["user"], json!(null));
}

#[tokio::test]
async fn ui_marks_moderators_by_claim_and_by_setting() {
    let world = World::new();
    let is_moderator = async |actor: &tests::Actor| actor.get("ui").await.ok(200).data()["auth"]["moderator"].clone();
    assert_eq!(is_moderator(&world.moderator()).await, true);
    assert_eq!(is_moderator(&world.again(&[("SVC_MODERATORS", "7")]).user(7, "Ada")).await, true);
    for actor in [world.user(7, "Ada"), world.guest()] {
        assert_eq!(is_moderator(&actor).await, false);
    }
}

#[tokio::test]
async fn labels_follow_the_requested_language_with_the_same_keys() {
    let world = World::new();
    let asked = async |language: &str| {
        let reply = world.guest().with(ACCEPT_LANGUAGE, language).get("ui").await.ok(200);
        assert!(reply.header("vary").to_lowercase().contains("accept-language"));
        (reply.header("content-language").to_owned(), reply.data()["labels"].clone())
    };
    let (_, english) = asked("en").await;
    let keys: Vec<String> = english.as_object().unwrap().keys().cloned().collect();
    for (header, language, reply) in [
        ("es", "es", "Responder"),
        ("de-AT,de;q=0.9,en;q=0.8", "de", "Antworten"),
        ("FR-ca", "fr", "Répondre"),
        ("tlh, fr;q=0.5, de;q=0.7", "de", "Antworten"),
        ("pt-BR", "pt", "Responder"),
        ("ar", "ar", "رد"),
        ("zh-Hant-TW", "zh", "回复"),
        ("en-GB", "en", "Reply"),
        ("xx", "en", "Reply"),
        ("*", "en", "Reply"),
        (";;;q=,", "en", "Reply"),
    ] {
        let (content, labels) = asked(header).await;
        assert_eq!((content.as_str(), labels["reply"].as_str()), (language, Some(reply)), "{header}");
        assert_eq!(labels.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), keys, "{header}");
    }
}

#[tokio::test]
async fn a_label_with_a_number_has_the_plural_forms_of_its_language() {
    let world = World::new();
    for (language, forms) in [
        ("en", "{n} more reply | {n} more replies"),
        ("es", "{n} respuesta más | {n} de respuestas más | {n} respuestas más"),
        ("pl", "jeszcze {n} odpowiedź | jeszcze {n} odpowiedzi | jeszcze {n} odpowiedzi | jeszcze {n} odpowiedzi"),
        ("ja", "他 {n} 件の返信"),
    ] {
        let reply = world.guest().with(ACCEPT_LANGUAGE, language).get("ui").await.ok(200);
        assert_eq!(reply.data()["labels"]["more_replies"], forms);
    }
}

#[tokio::test]
async fn the_moderators_page_gets_its_texts_in_the_requested_language() {
    let world = World::new();
    let (german, widget) = (world.guest().with(ACCEPT_LANGUAGE, "de-AT"), world.guest());
    let labels = german.get("ui?for=moderation").await.ok(200).data()["labels"].clone();
    for (key, text) in [
        ("reply", "Antworten"),
        ("moderation.title", "Moderation"),
        ("moderation.language", "de"),
        ("moderation.reports", "{n} Meldung | {n} Meldungen"),
    ] {
        assert_eq!(labels[key], text);
    }
    let count =
        |labels: &Value| labels.as_object().unwrap().keys().filter(|key| key.starts_with("moderation.")).count();
    assert!(count(&labels) > 150);
    assert_eq!(count(&widget.get("ui").await.ok(200).data()["labels"]), 0);
    widget.get("ui?for=widget").await.invalid("for");
}

#[tokio::test]
async fn the_moderators_page_gets_the_events_that_a_webhook_can_have() {
    let guest = World::new().guest();
    let events = guest.get("ui?for=moderation").await.ok(200).data()["webhook_events"].clone();
    assert_eq!(events, json!(EventKind::OF_COMMENTS.map(EventKind::name)));
    assert_eq!(guest.get("ui").await.ok(200).data()["webhook_events"], Value::Null);
}

#[tokio::test]
async fn the_preview_renders_as_published_comments_are() {
    let world = World::new();
    world.user(8, "Bob").get("ui").await.ok(200);
    let body = "# Hi @bob\n\n<script>alert(1)</script> [x](javascript:alert(1)) https://a.test\n\n```\n@bob\n```";
    let preview = world.guest().post("markdown/preview", json!({ "body": body })).await.ok(200);
    let comment = world.user(7, "Ada").post("posts/1/comments", json!({ "body": body })).await.ok(201);
    let html = comment.data()["html"].as_str().unwrap();
    assert_eq!(preview.json, json!({ "data": { "html": html } }));
    assert!(
        html.contains("href=\"/users/bob\"") && !html.contains("<script") && !html.contains("href=\"javascript"),
        "{html}"
    );
}

#[tokio::test]
async fn the_preview_of_nothing_is_empty() {
    let guest = World::new().guest();
    for body in [json!({ "body": "" }), json!({ "body": null }), json!({}), json!({ "body": "  \n" }), Value::Null] {
        let reply = guest.post("markdown/preview", body).await.ok(200);
        assert_eq!(reply.json, json!({ "data": { "html": "" } }));
    }
}

#[tokio::test]
async fn the_preview_takes_a_string_of_at_most_10000_characters() {
    let guest = World::new().guest();
    guest.post("markdown/preview", json!({ "body": "ß".repeat(10_000) })).await.ok(200);
    guest.post("markdown/preview", json!({ "body": "ß".repeat(10_001) })).await.invalid("body");
    guest.post("markdown/preview", json!({ "body": 7 })).await.invalid("body");
    guest.post("markdown/preview", json!(["x"])).await.refused(422, "validation_failed");
    guest.send(http::Method::POST, "markdown/preview", "{").await.refused(422, "validation_failed");
}

#[tokio::test]
async fn the_preview_is_open_to_banned_users_and_in_read_only_mode() {
    let world = World::new();
    let banned = world.banned().await;
    banned.post("markdown/preview", json!({ "body": "x" })).await.ok(200);
    let closed = world.again(&[("SVC_READ_ONLY", "true"), ("SVC_WRITE_LIMIT", "1")]).guest();
    for _ in 0..3 {
        closed.post("markdown/preview", json!({ "body": "x" })).await.ok(200);
    }
}
