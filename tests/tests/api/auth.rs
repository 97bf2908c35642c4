//! Tokens and the users that they name, and the order of the checks before every handler.

use http::header::AUTHORIZATION;
use http::{HeaderName, Method};
use serde_json::{Value, json};
use tests::{Actor, SECRET, World, by_guest, sign};

const OPEN: [(&str, &str); 2] = [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true")];

/// No secret, and a provider's key URL that can't be reached.
const NO_KEYS: [(&str, &str); 3] =
    [("SVC_JWT_SECRET", ""), ("SVC_JWKS_URL", "http://127.0.0.1:9/keys"), ("SVC_JWT_AUDIENCE", "comments")];

/// Returns guests, each with a different kind of invalid token.
fn impostors(world: &World) -> Vec<(&'static str, Actor)> {
    let (now, hs256) = (world.now().seconds(), json!({ "alg": "HS256", "typ": "JWT" }));
    let good = |exp: i64| json!({ "sub": "7", "name": "Ada", "exp": exp, "roles": ["moderator"] });
    let token = sign(&hs256, &good(now + 60), SECRET);
    let tokens = [
        ("none", sign(&json!({ "alg": "none" }), &good(now + 60), SECRET)),
        ("another secret", sign(&hs256, &good(now + 60), "another secret")),
        ("expired", sign(&hs256, &good(now), SECRET)),
        ("no token", String::new()),
    ];
    let mut actors: Vec<_> = tokens.into_iter().map(|(name, token)| (name, world.guest().with_token(&token))).collect();
    actors.push(("another scheme", world.guest().with(AUTHORIZATION, "Basic YWRhOnBhc3M=")));
    actors.push(("a good one of another scheme", world.guest().with(AUTHORIZATION, &format!("Token {token}"))));
    actors
}

#[tokio::test]
async fn a_bad_token_is_401_on_routes_that_need_a_visitor() {
    let world = World::with(&OPEN);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let requests = [
        (Method::POST, "posts/1/comments".to_owned(), by_guest("x")),
        (Method::PATCH, format!("comments/{id}"), json!({ "body": "y" })),
        (Method::DELETE, format!("comments/{id}"), Value::Null),
        (Method::POST, format!("comments/{id}/like"), Value::Null),
        (Method::POST, format!("comments/{id}/report"), json!({ "reason": "spam" })),
        (Method::GET, "users?q=a".to_owned(), Value::Null),
        (Method::GET, "moderation/comments".to_owned(), Value::Null),
        (Method::PUT, "users/8/ban".to_owned(), json!({})),
    ];
    for (name, impostor) in impostors(&world) {
        for (method, path, body) in &requests {
            let reply = impostor.send_json(method.clone(), path, body.clone()).await;
            assert_eq!((reply.status, reply.json["code"].as_str()), (401, Some("unauthenticated")), "{name}: {path}");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
        }
    }
    assert_eq!(world.guest().list("posts/1", "").await.ids(), [id]);
}

#[tokio::test]
async fn a_bad_token_is_ignored_on_routes_open_to_everyone() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    for (name, impostor) in impostors(&world) {
        let auth = impostor.get("ui").await.ok(200).data()["auth"].clone();
        assert_eq!((&auth["authenticated"], &auth["user"]), (&json!(false), &json!(null)), "{name}");
        let list = impostor.list("posts/1", "").await;
        assert_eq!(list.rows()[0]["can"], json!({ "update": false, "delete": false, "pin": false }), "{name}");
        impostor.replies(id, "").await;
        impostor.post("markdown/preview", json!({ "body": "x" })).await.ok(200);
    }
}

#[tokio::test]
async fn issuer_and_audience_must_be_the_expected_ones() {
    let world = World::with(&[("SVC_JWT_ISSUER", "https://id.test"), ("SVC_JWT_AUDIENCE", "comments")]);
    let write = async |claims: Value| world.claiming(&claims).post("posts/1/comments", json!({ "body": "x" })).await;
    write(json!({ "sub": "7", "iss": "https://id.test", "aud": "comments" })).await.ok(201);
    write(json!({ "sub": "7", "iss": "https://id.test", "aud": ["x", "comments"] })).await.ok(201);
    for wrong in [
        json!({ "sub": "7" }),
        json!({ "sub": "7", "iss": "https://id.test" }),
        json!({ "sub": "7", "aud": "comments" }),
        json!({ "sub": "7", "iss": "https://other.test", "aud": "comments" }),
        json!({ "sub": "7", "iss": "https://id.test/", "aud": "comments" }),
        json!({ "sub": "7", "iss": "https://id.test", "aud": ["x"] }),
        json!({ "sub": "7", "iss": "https://id.test", "aud": "comment" }),
        json!({ "sub": "7", "iss": "https://id.test", "aud": [] }),
    ] {
        write(wrong).await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_token_whose_key_cannot_be_fetched_is_503_on_routes_that_need_a_visitor_and_ignored_elsewhere() {
    let settings = [NO_KEYS.as_slice(), OPEN.as_slice()].concat();
    let world = World::with(&settings);
    let claims = json!({ "sub": "7", "aud": "comments", "exp": world.now().seconds() + 60 });
    let ada = world.guest().with_token(&sign(&json!({ "alg": "RS256", "kid": "a" }), &claims, SECRET));
    let id = world.guest().comment("posts/1", "x").await;
    ada.post("posts/1/comments", by_guest("x")).await.refused(503, "unavailable");
    ada.like(id).await.refused(503, "unavailable");
    let reply = ada.get("users?q=a").await.refused(503, "unavailable");
    assert_eq!(reply.header("retry-after"), "1");
    // An unknown type is refused before the token is checked.
    ada.post("pages/1/comments", json!({})).await.refused(404, "not_found");
    assert_eq!(ada.get("ui").await.ok(200).data()["auth"]["authenticated"], false);
    assert_eq!(ada.list("posts/1", "").await.ids(), [id]);
    ada.post("markdown/preview", json!({ "body": "x" })).await.ok(200);
}

async fn id_of(world: &World, claims: Value) -> u64 {
    let reply = world.claiming(&claims).get("ui").await.ok(200);
    reply.data()["auth"]["user"]["id"].as_u64().unwrap()
}

#[tokio::test]
async fn a_decimal_subject_is_the_users_id_and_any_other_is_hashed_with_issuer_and_salt() {
    let (world, other) = (World::new(), World::with(&[("SVC_VISITOR_SALT", "another salt of visitors")]));
    let claims = |sub: &str, issuer: &str| json!({ "sub": sub, "iss": issuer });
    assert_eq!(id_of(&world, claims("7", "https://a.test")).await, 7);
    let ada = id_of(&world, claims("ada", "https://a.test")).await;
    assert_ne!(ada, id_of(&world, claims("ada", "https://a.test/")).await);
    assert_ne!(ada, id_of(&other, claims("ada", "https://a.test")).await);
}

#[tokio::test]
async fn another_subject_with_the_same_id_is_401_on_every_route() {
    let world = World::new();
    let ada = world.claiming(&json!({ "sub": "ada", "name": "Ada" }));
    let id = ada.get("ui").await.ok(200).data()["auth"]["user"]["id"].as_u64().unwrap();
    ada.comment("posts/1", "x").await;
    // Stores another subject's hash to simulate a collision, because no two subjects with the same id are known.
    world.seed_subject(id, Some("AAAAAAAAAAAAAAAAAAAAAA")).await;
    for path in ["ui", "posts/1/comments", "users?q=a"] {
        ada.get(path).await.refused(401, "unauthenticated");
    }
    ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(401, "unauthenticated");
    ada.post("pages/1/comments", json!({})).await.refused(404, "not_found");
    assert_eq!(world.guest().list("posts/1", "").await.rows()[0]["user"]["name"], "Ada");
}

#[tokio::test]
async fn a_user_row_without_a_subject_belongs_to_the_first_caller() {
    let world = World::new();
    let ada = world.claiming(&json!({ "sub": "ada", "name": "Ada" }));
    let id = ada.get("ui").await.ok(200).data()["auth"]["user"]["id"].as_u64().unwrap();
    let kept = world.subject(id).await;
    assert!(kept.as_ref().is_some_and(|hash| hash.len() >= 22), "{kept:?}");
    world.seed_subject(id, None).await;
    ada.get("ui").await.ok(200);
    assert_eq!(world.subject(id).await, kept);
    // Only one subject maps to a plain id, so no hash is stored.
    world.user(7, "Bob").get("ui").await.ok(200);
    assert_eq!(world.subject(7).await, None);
}

#[tokio::test]
async fn a_ban_holds_for_a_hashed_id_that_was_never_seen() {
    let id = id_of(&World::new(), json!({ "sub": "mallory" })).await;
    let world = World::new();
    world.moderator().put(&format!("users/{id}/ban"), Value::Null).await.ok(200);
    let mallory = world.claiming(&json!({ "sub": "mallory", "name": "Mallory" }));
    mallory.post("posts/1/comments", json!({ "body": "x" })).await.refused(403, "comment_banned");
}

#[tokio::test]
async fn moderators_are_named_by_id_or_by_subject() {
    let plain = World::new();
    let hashed = id_of(&plain, json!({ "sub": "carol" })).await.to_string();
    let list = format!("7, auth0|ada,{hashed}");
    let world = World::with(&[("SVC_MODERATORS", &list)]);
    let queue = async |sub: &str| world.claiming(&json!({ "sub": sub })).get("moderation/comments").await;
    for sub in ["7", "auth0|ada", "carol"] {
        queue(sub).await.ok(200);
    }
    for sub in ["8", "07", "auth0|bob", hashed.as_str()] {
        queue(sub).await.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn a_forwarded_address_does_not_change_who_a_guest_is() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true"), ("SVC_WRITE_LIMIT", "2")]);
    let guest = world.guest();
    let write = async |ip: &str| {
        let actor = guest.clone().with(HeaderName::from_static("x-forwarded-for"), ip);
        actor.write("posts/1", None, "x").await
    };
    write("192.0.2.1").await.ok(201);
    write("192.0.2.2").await.ok(201);
    write("192.0.2.3").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn the_rate_limit_is_checked_before_read_only_mode() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "1"), ("SVC_READ_ONLY", "true")]);
    let ada = world.user(7, "Ada");
    ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(423, "read_only");
    ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn read_only_mode_is_checked_before_types_and_features() {
    let world = World::with(&[("SVC_READ_ONLY", "true"), ("SVC_PINS", "false"), ("SVC_REPORTING", "false")]);
    for actor in [world.guest(), world.user(7, "Ada"), world.banned().await] {
        actor.post("pages/1/comments", json!({})).await.refused(423, "read_only");
        actor.post("nowhere", json!({})).await.refused(423, "read_only");
        actor.patch("comments/1", json!({})).await.refused(423, "read_only");
        actor.post("comments/1/pin", Value::Null).await.refused(423, "read_only");
        actor.post("comments/1/report", Value::Null).await.refused(423, "read_only");
        actor.get("nowhere").await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn types_and_features_are_checked_before_the_caller() {
    let world = World::with(&[("SVC_PINS", "false"), ("SVC_REPORTING", "false")]);
    for actor in [world.guest(), world.user(7, "Ada"), world.banned().await] {
        actor.post("pages/1/comments", json!({})).await.refused(404, "not_found");
        actor.post("comments/1/pin", Value::Null).await.refused(404, "not_found");
        actor.delete("comments/1/pin").await.refused(404, "not_found");
        actor.post("comments/1/report", Value::Null).await.refused(404, "not_found");
        actor.put("pages/1", json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn the_caller_is_checked_before_the_comment() {
    let world = World::new();
    let (guest, banned) = (world.guest(), world.banned().await);
    for (method, path) in [
        (Method::PATCH, "comments/1"),
        (Method::DELETE, "comments/1"),
        (Method::POST, "comments/1/like"),
        (Method::POST, "comments/1/pin"),
        (Method::POST, "comments/1/approve"),
    ] {
        guest.send(method.clone(), path, "").await.refused(401, "unauthenticated");
        banned.send(method, path, "").await.refused(403, "comment_banned");
    }
}

#[tokio::test]
async fn the_comment_is_checked_before_the_policy_and_the_policy_before_the_fields() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let id = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", id, "y").await;
    bob.patch("comments/1", json!({})).await.refused(404, "not_found");
    bob.post("comments/1/pin", Value::Null).await.refused(404, "not_found");
    bob.patch(&format!("comments/{id}"), json!({})).await.refused(403, "forbidden");
    bob.pin(reply).await.refused(403, "forbidden");
}

#[tokio::test]
async fn fields_are_checked_before_rules_that_have_their_own_codes() {
    let world = World::with(&[("SVC_NESTING", "false"), ("SVC_SPAM_DENY", "casino")]);
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "x").await;
    let both = json!({ "body": "", "parent_id": parent });
    ada.post("posts/1/comments", both).await.invalid("body");
    let both = json!({ "body": "casino", "parent_id": parent });
    ada.post("posts/1/comments", both).await.refused(422, "nesting_disabled");
    let report = format!("comments/{parent}/report");
    ada.post(&report, json!({ "reason": "spam" })).await.ok(201);
    ada.post(&report, json!({ "reason": "nonsense" })).await.invalid("reason");
    ada.post(&report, json!({ "reason": "spam" })).await.refused(409, "already_reported");
}
