//! The language of errors, and the field names in them.

use http::Method;
use http::header::{ACCEPT_LANGUAGE, CONTENT_TYPE};
use serde_json::{Value, json};
use shared::domain::language::Language;
use tests::{Actor, SIGN_IN, TestResponse, World, form};

use crate::sign_in::sign_in;

fn world() -> World {
    World::with(
        &[
            &SIGN_IN[..],
            &[
                ("SVC_ALLOW_GUESTS", "true"),
                ("SVC_REPORT_REASONS", "spam,rude"),
                ("SVC_WRITE_LIMIT", "10000"),
                ("SVC_UPLOAD_LIMIT", "10000"),
            ],
        ]
        .concat(),
    )
}

/// Returns a guest for each language, with the language's tag and labels.
async fn readers(world: &World) -> Vec<(&'static str, Actor, Value)> {
    let mut readers = Vec::new();
    for tag in Language::all().map(Language::tag) {
        let reader = world.guest().with(ACCEPT_LANGUAGE, tag);
        let labels = reader.get("ui").await.ok(200).data()["labels"].clone();
        readers.push((tag, reader, labels));
    }
    assert_eq!(readers.len(), 12);
    readers
}

#[track_caller]
fn says(answer: TestResponse, field: &str, label: &Value) -> String {
    let answer = answer.invalid(field);
    let text = answer.json["message"].as_str().unwrap();
    assert!(text.contains(label.as_str().unwrap()), "{label}: {text}");
    assert!(!text.contains(field) || label.as_str().unwrap().contains(field), "{field}: {text}");
    text.to_owned()
}

#[tokio::test]
async fn errors_in_forms_are_in_the_readers_language_and_name_the_field_as_the_form_does() {
    let world = world();
    let comment = world.moderator().comment("posts/1", "x").await;
    let (mut texts, guest) =
        (Vec::new(), |name: &str, email: &str| json!({ "body": "x", "guest_name": name, "guest_email": email }));
    for (tag, reader, labels) in readers(&world).await {
        let mut of_language = Vec::new();
        let mut note = |text: String| of_language.push(text);
        let create = async |body: Value| reader.post("posts/1/comments", body).await;
        let with_body = |body: &str| json!({ "body": body, "guest_name": "Zoe", "guest_email": "z@example.org" });
        for body in ["", "&nbsp;", &"a".repeat(10_001), "a\u{202e}"] {
            note(says(create(with_body(body)).await, "body", &labels["comment"]));
        }
        for name in ["", &"a".repeat(101), "a\u{7}", "\u{202e}a", "a\u{300}\u{300}\u{300}", "Mod"] {
            note(says(create(guest(name, "z@example.org")).await, "guest_name", &labels["guest_name"]));
        }
        for email in ["", "nowhere", &format!("{}@example.org", "a".repeat(300))] {
            note(says(create(guest("Zoe", email)).await, "guest_email", &labels["guest_email"]));
        }
        note(says(
            create(json!({ "body": 7, "guest_name": "Zoe", "guest_email": "z@example.org" })).await,
            "body",
            &labels["comment"],
        ));
        note(says(
            reader.post("markdown/preview", json!({ "body": "a".repeat(10_001) })).await,
            "body",
            &labels["comment"],
        ));
        for email in ["", "nowhere", "zoë@example.org"] {
            note(says(reader.post("sign_in", json!({ "email": email })).await, "email", &labels["sign_in_address"]));
        }
        note(says(
            reader.post("sign_in/finish", json!({ "flow": "x", "code": 12 })).await,
            "code",
            &labels["sign_in_code"],
        ));
        let report = format!("comments/{comment}/report");
        for reason in [json!(null), json!("dull"), json!(7)] {
            let text =
                says(reader.post(&report, json!({ "reason": reason })).await, "reason", &labels["report_reason"]);
            assert!(text.contains("spam, rude"), "{text}");
            note(text);
        }
        let details = json!({ "reason": "spam", "additional_details": "a".repeat(501) });
        note(says(reader.post(&report, details).await, "additional_details", &labels["report_details"]));
        texts.push((tag, of_language));
    }
    let (english, others) = texts.split_first().unwrap();
    for (tag, other) in others {
        for (english, other) in english.1.iter().zip(other) {
            assert_ne!(english, other, "{tag}");
        }
    }
}

#[tokio::test]
async fn errors_of_names_and_of_the_address_of_an_account_are_in_the_readers_language() {
    let world = world();
    world.moderator().comment("posts/1", "x").await;
    let ada = sign_in(&world, &world.guest(), "ada@example.org").await.actor;
    for (tag, _, labels) in readers(&world).await {
        let ada = ada.clone().with(ACCEPT_LANGUAGE, tag);
        for name in ["", "a\u{7}", "Mod"] {
            says(ada.put("me/name", json!({ "name": name })).await, "name", &labels["sign_in_name"]);
        }
        let unnamed = ada.write("posts/1", None, "x").await.invalid("name");
        assert_eq!(unnamed.json["message"] == "Choose a name first.", tag == "en", "{}", unnamed.json);
    }
}

#[tokio::test]
async fn errors_of_images_are_in_the_readers_language() {
    let world = world();
    let mut texts = Vec::new();
    for (_, reader, _) in readers(&world).await {
        let reader = reader.with(CONTENT_TYPE, "multipart/form-data; boundary=b");
        for file in [&b"no image"[..], b"", b"\x89PNG\r\n\x1A\n"] {
            let body = form("b", &[("file", "a.png", file)]);
            texts.push(reader.send(Method::POST, "media", body).await.invalid("file").json["message"].clone());
        }
        texts.push(reader.send(Method::POST, "media", "").await.invalid("file").json["message"].clone());
    }
    let all = texts.len();
    texts.sort_by_key(Value::to_string);
    texts.dedup();
    assert_eq!((texts.len(), all), (48, 48), "{texts:#?}");
}

#[tokio::test]
async fn errors_for_moderators_and_api_clients_are_in_english() {
    let world = world();
    let comment = world.user(8, "Bob").comment("posts/1", "x").await;
    let moderator = world.moderator().with(ACCEPT_LANGUAGE, "de");
    for (answer, field) in [
        (moderator.get("posts/1/comments?page=0").await, "page"),
        (moderator.post("posts/1/comments", json!({ "body": "x", "parent_id": "y" })).await, "parent_id"),
        (moderator.put("posts/1", json!({ "title": "a".repeat(1_000) })).await, "title"),
        (moderator.put("users/8/ban", json!({ "reason": "a".repeat(1_000) })).await, "reason"),
        (moderator.post(&format!("comments/{comment}/reject"), json!({ "reason": "dull" })).await, "reason"),
        (moderator.post("sign_in/finish", json!({ "flow": 7 })).await, "flow"),
    ] {
        let message = answer.invalid(field).json["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("The {field} ")), "{message}");
    }
    let missing = moderator.get("comments/1").await.refused(404, "not_found");
    assert_eq!(missing.json["message"], "Not found.");
}
