//! Rate limits. The clock of a world begins five seconds into a minute.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tests::{TestResponse, World};

fn headers(reply: &TestResponse) -> (&str, &str) {
    (reply.header("x-ratelimit-limit"), reply.header("x-ratelimit-remaining"))
}

#[tokio::test]
async fn the_write_limit_is_exact_and_in_the_headers() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "3")]);
    let ada = world.user(7, "Ada");
    for remaining in ["2", "1", "0"] {
        let reply = ada.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
        assert_eq!(headers(&reply), ("3", remaining));
    }
    let reply = ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
    assert_eq!((headers(&reply), reply.header("retry-after")), (("3", "0"), "55"));
    assert_eq!(world.guest().list("posts/1", "").await.total(), 3);
    world.user(8, "Bob").comment("posts/1", "x").await;
    world.pass(Duration::from_secs(54));
    ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
    world.pass(Duration::from_secs(1));
    ada.comment("posts/1", "x").await;
}

#[tokio::test]
async fn refused_writes_count_too() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "2")]);
    let ada = world.user(7, "Ada");
    let reply = ada.post("posts/1/comments", json!({})).await.invalid("body");
    assert_eq!(headers(&reply), ("2", "1"));
    ada.delete("nowhere").await.refused(404, "not_found");
    ada.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_writes_through_two_instances_pass_exactly_the_limit() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "20")]);
    let other = world.again(&[("SVC_WRITE_LIMIT", "20")]);
    let actors: Vec<_> =
        (0..48).map(|n| if n % 2 == 0 { world.user(7, "Ada") } else { other.user(7, "Ada") }).collect();
    let replies = join_all(actors.iter().map(|ada| ada.post("posts/1/comments", json!({ "body": "x" })))).await;
    let passed = replies.iter().filter(|reply| reply.status == 201).count();
    let refused = replies.iter().filter(|reply| reply.status == 429).count();
    assert_eq!((passed, refused), (20, 28));
    assert_eq!(world.guest().list("posts/1", "").await.total(), 20);
}

#[tokio::test]
async fn users_are_counted_by_id_and_guests_by_address() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "1"), ("SVC_ALLOW_GUESTS", "true")]);
    let ada = world.user(7, "Ada");
    ada.comment("posts/1", "x").await;
    let elsewhere = ada.clone().from("198.51.100.9");
    elsewhere.post("posts/1/comments", json!({ "body": "x" })).await.refused(429, "rate_limited");
    let write = async |ip: &str| world.guest().from(ip).write("posts/1", None, "x").await;
    write("2001:db8:1:2::1").await.ok(201);
    write("2001:db8:1:2:3:4:5:6").await.refused(429, "rate_limited");
    write("2001:db8:1:3::1").await.ok(201);
    write("192.0.2.1").await.ok(201);
    write("::ffff:192.0.2.1").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn the_read_limit_is_exact_for_one_instance() {
    for limit in [1, 5, 25, 300_usize] {
        let world = World::with(&[("SVC_READ_LIMIT", &limit.to_string())]);
        let ada = world.user(7, "Ada");
        for read in 1..=limit {
            let reply = ada.get("ui").await.ok(200);
            assert_eq!(headers(&reply), (limit.to_string().as_str(), (limit - read).to_string().as_str()), "{read}");
        }
        for _ in 0..3 {
            let reply = ada.get("ui").await.refused(429, "rate_limited");
            assert_eq!((headers(&reply).1, reply.header("retry-after")), ("0", "55"));
        }
        world.user(8, "Bob").get("ui").await.ok(200);
        world.pass(Duration::from_secs(55));
        ada.get("ui").await.ok(200);
    }
}

#[tokio::test]
async fn the_read_limit_counts_get_routes_and_the_preview_and_no_write() {
    let world = World::with(&[("SVC_READ_LIMIT", "5"), ("SVC_WRITE_LIMIT", "5")]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    ada.list("posts/1", "").await;
    ada.replies(id, "").await;
    ada.post("markdown/preview", json!({ "body": "x" })).await.ok(200);
    ada.get("users?q=a").await.ok(200);
    ada.get("nowhere").await.refused(404, "not_found");
    for path in ["ui", "posts/1/comments", "users?q=a", "nowhere", "pages/1/comments"] {
        ada.get(path).await.refused(429, "rate_limited");
    }
    ada.post("markdown/preview", json!({ "body": "x" })).await.refused(429, "rate_limited");
    ada.comment("posts/1", "x").await;
}

#[tokio::test]
async fn reads_at_the_same_time_are_let_through_up_to_the_limit() {
    let world = World::with(&[("SVC_READ_LIMIT", "120")]);
    let ada = world.user(7, "Ada");
    let passed = async || {
        let replies = join_all((0..48).map(|_| ada.get("ui"))).await;
        replies.iter().filter(|reply| reply.status == 200).count()
    };
    assert_eq!([passed().await, passed().await, passed().await, passed().await], [48, 48, 24, 0]);
}

#[tokio::test]
async fn several_instances_exceed_the_read_limit_by_ten_reads_each_at_most() {
    let world = World::with(&[("SVC_READ_LIMIT", "60")]);
    let mut instances = vec![world.user(7, "Ada")];
    let others = [world.again(&[("SVC_READ_LIMIT", "60")]), world.again(&[("SVC_READ_LIMIT", "60")])];
    instances.extend(others.iter().map(|other| other.user(7, "Ada")));
    let mut passed = 0;
    for turn in 0..150 {
        passed += u32::from(instances[turn % 3].get("ui").await.status == 200);
    }
    assert!((60..=90).contains(&passed), "{passed}");
}

#[tokio::test]
async fn reads_cost_at_most_a_tenth_of_a_write_unit() {
    let world = World::with(&[("SVC_READ_LIMIT", "300")]);
    let guest = world.guest();
    let mut written = 0.0;
    for _ in 0..100 {
        written += guest.get("ui").await.ok(200).cost.write_units;
    }
    assert!(written <= 10.0, "{written}");
    for _ in 0..400 {
        let reply = guest.get("posts/1/comments").await;
        written += if reply.status == 429 { 0.0 } else { reply.cost.write_units };
    }
    assert!(written <= 31.0, "{written}");
}

#[tokio::test]
async fn every_answer_of_a_limited_route_has_the_limit_in_its_headers() {
    let world = World::with(&[("SVC_READ_LIMIT", "300"), ("SVC_WRITE_LIMIT", "60")]);
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "x").await;
    for reply in [
        ada.get("ui").await,
        ada.get("comments/1/replies").await,
        ada.get("nowhere").await,
        ada.get("posts/1/comments?page=0").await,
    ] {
        assert_eq!(reply.header("x-ratelimit-limit"), "300");
        assert!(reply.header("x-ratelimit-remaining").parse::<u32>().is_ok());
    }
    for reply in [ada.post("posts/1/comments", json!({})).await, ada.like(id).await, ada.remove(id).await.ok(204)] {
        assert_eq!(reply.header("x-ratelimit-limit"), "60");
    }
}
