//! Requests that no honest client sends. They are refused in the error envelope or ignored, and never cause a fault.

use http::header::{ACCEPT_ENCODING, HeaderName};
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tests::{TestResponse, World};

/// Checks that the response is a 4xx error in the error envelope.
#[track_caller]
fn refused(reply: &TestResponse, what: &str) {
    assert!((400..500).contains(&reply.status), "{what}: {} {:#}", reply.status, reply.json);
    let envelope = reply.json["message"].is_string() && reply.json["code"].is_string();
    assert!(envelope && reply.json["errors"].is_object(), "{what}: {:#}", reply.json);
}

#[tokio::test]
async fn ids_at_the_edges_of_integers_are_404_on_every_route_by_id() {
    let world = World::new();
    let moderator = world.moderator();
    let edges = "0 -1 007 +7 7.0 1e3 9007199254740991 9007199254740992 9223372036854775808 18446744073709551616 \
                 340282366920938463463374607431768211456 %D9%A3 %00 %FF x";
    for id in edges.split(' ') {
        for (method, below) in [
            (Method::GET, "/replies"),
            (Method::PATCH, ""),
            (Method::DELETE, ""),
            (Method::POST, "/like"),
            (Method::POST, "/report"),
            (Method::POST, "/pin"),
            (Method::DELETE, "/pin"),
            (Method::POST, "/approve"),
            (Method::POST, "/reject"),
            (Method::GET, "/reports"),
            (Method::POST, "/reports/dismiss"),
        ] {
            let body = json!({ "body": "x", "reason": "spam" }).to_string();
            moderator.send(method, &format!("comments/{id}{below}"), body).await.refused(404, "not_found");
        }
    }
}

#[tokio::test]
async fn a_malformed_parent_id_is_refused() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    for id in
        ["1", "0", "-1", "1.5", "1e3", "\"7\"", "[]", "{}", "true", "9007199254740992", "18446744073709551616", "1e400"]
    {
        let body = format!("{{\"body\":\"x\",\"parent_id\":{id}}}");
        let reply = ada.send(Method::POST, "posts/1/comments", body).await;
        refused(&reply, id);
        assert!(reply.status == 422 && (id == "1e400" || reply.json["errors"].get("parent_id").is_some()), "{id}");
    }
    assert_eq!(world.guest().list("posts/1", "").await.total(), 0);
}

#[tokio::test]
async fn tricks_with_paths_lead_nowhere() {
    let world = World::new();
    let guest = world.guest();
    for path in [
        "/svc/api/v1/../v1/ui",
        "/svc/api/v1/ui/..",
        "/svc/api/v1//ui",
        "/svc/api/v1/ui/",
        "/svc/api/v1/%2e%2e/v1/ui",
        "/svc/api/v1/posts/1%00/comments",
        "/svc/api/v1/posts/%C0%AE/comments",
        "/svc/api/v1/posts/..%2F..%2Fui/comments",
        "/svc/api/v1/posts/1/comments;x=1",
        "/svc/api/v1/POSTS/1/comments",
        "/svc/api/v1/ui%0D%0AX-Evil:%201",
    ] {
        let reply = guest.send_at(Method::GET, path, "").await;
        refused(&reply, path);
        assert!(!reply.headers.contains_key("x-evil"), "{path}");
    }
    // The address is decoded only once, and the result isn't a record's id.
    refused(&guest.send_at(Method::GET, "/svc/api/v1/posts/%25252e/comments", "").await, "%25252e");
}

#[tokio::test]
async fn no_header_overrides_the_method_or_the_address_of_a_request() {
    let world = World::with(&[("SVC_GUEST_LIKES", "true")]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for name in ["x-http-method-override", "x-method-override", "x-http-method"] {
        let sly = ada.clone().with(HeaderName::from_static(name), "DELETE");
        sly.post(&format!("comments/{id}"), Value::Null).await.refused(405, "method_not_allowed");
    }
    assert_eq!(ada.list("posts/1", "").await.ids(), [id]);

    let guest = world.guest();
    for (place, name) in
        ["x-forwarded-for", "x-real-ip", "forwarded", "cf-connecting-ip", "true-client-ip"].iter().enumerate()
    {
        let sly = guest.clone().with(HeaderName::from_static(name), "192.0.2.1");
        // The same guest likes and unlikes alternately.
        let liked = sly.like(id).await.ok(200).json;
        assert_eq!(liked["likes_count"], (place + 1) % 2, "{name}");
    }
}

#[tokio::test]
async fn no_text_of_a_user_becomes_a_header() {
    let world = World::new();
    let evil = "x\r\nSet-Cookie: evil=1";
    let ada = world.user(7, evil);
    let query: String = form_urlencoded::byte_serialize(evil.as_bytes()).collect();
    ada.comment("posts/1", evil).await;
    for path in [format!("posts/1/comments?sort=newest&x={query}"), format!("users?q={query}"), format!("ui?{query}")] {
        let reply = ada.get(&path).await;
        assert!(!reply.headers.contains_key("set-cookie"), "{path}");
        assert!(reply.headers.values().all(|value: &HeaderValue| !value.as_bytes().contains(&b'\n')), "{path}");
    }
}

#[tokio::test]
async fn odd_json_is_refused_and_the_last_of_repeated_fields_counts() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let write = async |body: &str| ada.send(Method::POST, "posts/1/comments", body.as_bytes().to_vec()).await;
    for body in ["{\"body\":\"\\ud800\"}", "{\"body\":\"\\udc00\\ud800\"}"] {
        refused(&write(body).await, body);
    }
    let twice = write("{\"body\":\"first\",\"body\":\"second\"}").await.ok(201);
    assert_eq!(twice.json["data"]["body"], "second");
    let nul = write("{\"body\":\"a\\u0000b\"}").await.ok(201);
    assert_eq!(nul.json["data"]["body"], "a\0b");
    assert!(!nul.json["data"]["html"].as_str().unwrap().contains('\0'));
    let forged = "{\"body\":\"x\",\"id\":1,\"is_approved\":false,\"user\":{\"id\":1},\"likes_count\":99,\"pinned\":true,\"__proto__\":{}}";
    let forged = &write(forged).await.ok(201).json["data"];
    assert_eq!((&forged["user"]["id"], &forged["likes_count"]), (&json!(7), &json!(0)));
    assert_eq!((&forged["is_approved"], &forged["pinned"]), (&json!(true), &json!(false)));
}

#[tokio::test]
async fn odd_queries_and_encodings_are_refused_or_ignored() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    for query in ["%", "%zz=1", "a=%ff", "page[]=7", "=", "&&&", "x=1;y=2"] {
        assert_eq!(ada.list("posts/1", query).await.total(), 1, "{query}");
    }
    let long = format!("cursor={}", "A".repeat(5_000));
    for query in
        ["page=99999999999999999999", "page=1e9", "page=%00", "sort=newest'--", "cursor=%00", "cursor=../../", &long]
    {
        let reply = ada.get(&format!("posts/1/comments?{query}")).await;
        refused(&reply, query);
        assert_eq!(reply.status, 422, "{query}");
    }
    for coding in ["gzip;q=0", "*", "gzip, gzip, gzip", ";;;", "q=1"] {
        ada.clone().with(ACCEPT_ENCODING, coding).list("posts/1", "").await;
    }
}
