//! Rate limits. A world's clock starts five seconds into a minute.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tests::{Actor, Faults, Setup, TestResponse, World};

use crate::largest;

pub(crate) fn remaining(reply: &TestResponse) -> u32 {
    reply.header("x-ratelimit-remaining").parse().unwrap()
}

/// Returns the number of writes that the limiter counts for a request of this cost. One of the units is for the
/// limiter's own item.
pub(crate) fn writes(reply: &TestResponse) -> u32 {
    (1..=60).find(|writes| reply.cost.write_units - 1.0 <= f64::from(*writes) * 20.0).unwrap()
}

/// Likes and unlikes the comment until the limit is reached. Returns the number of accepted requests and their write
/// units.
async fn like_to_the_limit(actors: &[Actor], id: u64) -> (u32, f64) {
    let (mut likes, mut units) = (0, 0.0);
    for actor in actors.iter().cycle() {
        let reply = actor.like(id).await;
        if reply.status == 429 {
            break;
        }
        likes += 1;
        units += reply.ok(200).cost.write_units;
    }
    (likes, units)
}

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
    for limit in [1, 300_usize] {
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
    let limit = [("SVC_READ_LIMIT", "60")];
    let world = World::with(&limit);
    let instances = [&world, &world.again(&limit), &world.again(&limit)].map(|instance| instance.user(7, "Ada"));
    // Changes have a separate limiter.
    for path in ["ui", "posts/1/changes"] {
        let mut passed = 0;
        for turn in 0..150 {
            passed += u32::from(instances[turn % 3].get(path).await.status == 200);
        }
        assert!((60..=90).contains(&passed), "{path}: {passed}");
    }
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
async fn every_response_of_a_limited_route_has_the_limit_in_its_headers() {
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

#[tokio::test]
async fn a_write_counts_once_for_every_twenty_units_started() {
    let limit = [("SVC_WRITE_LIMIT", "60")];
    let world = World::with(&limit);
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let created = ada.post("posts/1/comments", json!({ "body": largest::body() })).await.ok(201);
    assert!(writes(&created) >= 6, "{:?}", created.cost);
    assert_eq!(remaining(&created), 60 - writes(&created));
    let small = ada.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    assert_eq!(remaining(&small), 59 - writes(&created));
    let (liked, reported) = (bob.like(created.id()).await.ok(200), bob.report(created.id(), "spam").await.ok(201));
    assert_eq!(remaining(&liked), 60 - writes(&liked));
    assert_eq!(remaining(&reported), 60 - writes(&liked) - writes(&reported));
    // The limiter has counted the additional writes in the table.
    let elsewhere = world.again(&limit).user(8, "Bob").delete("nowhere").await;
    assert_eq!(remaining(&elsewhere), remaining(&reported) - 1);
}

#[tokio::test]
async fn likes_of_the_largest_comment_stop_where_sixty_ordinary_writes_would() {
    let limit = [("SVC_WRITE_LIMIT", "60")];
    let world = World::with(&limit);
    let id = world.again(&[]).user(7, "Ada").comment("posts/1", &largest::body()).await;
    let (here, there) = (world.user(8, "Bob"), world.again(&limit).user(8, "Bob"));
    let (likes, units) = like_to_the_limit(&[here.clone(), there.clone()], id).await;
    assert_eq!(likes, 9, "seven writes each");
    assert!(units <= 60.0 * 20.0 + 130.0, "{units}");
    for bob in [here, there] {
        bob.like(id).await.refused(429, "rate_limited");
        let cost = bob.like(id).await.refused(429, "rate_limited").cost;
        assert_eq!((cost.read_units, cost.write_units), (0.0, 0.0));
    }
    world.pass(Duration::from_secs(55));
    world.user(8, "Bob").like(id).await.ok(200);
}

#[tokio::test]
async fn a_surplus_that_could_not_be_counted_counts_with_the_next_write() {
    let faults = Faults::new(1);
    let world = Setup::new(&[("SVC_WRITE_LIMIT", "60")]).faults(&faults).start();
    let bob = world.user(8, "Bob");
    let id = world.again(&[]).user(7, "Ada").comment("posts/1", &largest::body()).await;
    faults.fail_after(1, "L#w");
    bob.like(id).await.ok(200);
    faults.stop();
    let small = bob.post("posts/1/comments", json!({ "body": "x" })).await.ok(201);
    assert_eq!(remaining(&small), 60 - 7 - 1);
}

/// Writes twenty comments of the maximum size in `posts/1`. Their feed counts as eleven reads.
async fn largest_feed(world: &World) {
    let ada = world.user(7, "Ada");
    for _ in 0..20 {
        ada.comment("posts/1", &largest::body()).await;
    }
    world.wait_until_idle().await;
}

#[tokio::test]
async fn concurrent_feeds_pass_as_often_as_sequential_feeds() {
    let world = World::with(&[("SVC_READ_LIMIT", "300")]);
    largest_feed(&world).await;
    let guest = world.guest();
    let feeds = join_all((0..44).map(|_| guest.get("posts/1/feed.atom"))).await;
    let passed: Vec<_> = feeds.iter().filter(|feed| feed.status == 200).collect();
    assert!(passed.iter().all(|feed| feed.cost.read_units > 100.0));
    assert_eq!(passed.len(), 28, "eleven reads each");
    guest.get("ui").await.refused(429, "rate_limited");
    let (other, mut one_by_one) = (world.guest(), 0);
    while other.get("posts/1/feed.atom").await.status == 200 {
        one_by_one += 1;
    }
    assert_eq!(one_by_one, 28);
}

#[tokio::test]
async fn concurrent_feeds_reserve_the_cost_of_ancestors_before_reading_them() {
    const LIMIT: f64 = 60.0;
    let world = World::with(&[("SVC_READ_LIMIT", "60")]);
    let ada = world.user(7, "Ada");
    let mut chains = Vec::new();
    for _ in 0..4 {
        chains.push(ada.comment("posts/1", &largest::body()).await);
    }
    for _ in 0..10 {
        for last in &mut chains {
            *last = ada.reply("posts/1", *last, &largest::body()).await;
        }
    }
    world.wait_until_idle().await;
    let (guest, other) = (world.guest(), world.guest());
    let alone = other.get("posts/1/feed.atom").await.ok(200).cost.read_units;
    assert!(alone > 200.0, "twenty comments, and twenty-four above them: {alone}");
    let feeds = join_all((0..44).map(|_| guest.get("posts/1/feed.atom"))).await;
    let cost: f64 = feeds.iter().map(|feed| feed.cost.read_units).sum();
    assert!(cost <= 10.0 * LIMIT + alone, "{cost}");
    for feed in feeds.into_iter().filter(|feed| feed.status != 200) {
        let feed = feed.refused(429, "rate_limited");
        assert_eq!(feed.header("x-ratelimit-remaining"), "0");
    }
    // Sequential requests count as 24 reads each.
    other.get("posts/1/feed.atom").await.ok(200);
    other.get("posts/1/feed.atom").await.ok(200);
    other.get("posts/1/feed.atom").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn each_further_instance_lets_one_feed_exceed_the_limit() {
    let limit = [("SVC_READ_LIMIT", "50")];
    let world = World::with(&limit);
    largest_feed(&world).await;
    let mut passed = 0;
    for instance in [&world, &world.again(&limit), &world.again(&limit), &world.again(&limit)] {
        let guest = instance.guest().from("192.0.2.1");
        let feeds = join_all((0..20).map(|_| guest.get("posts/1/feed.atom"))).await;
        passed += feeds.iter().filter(|feed| feed.status == 200).count();
    }
    assert_eq!(passed, 5 + 3);
}

/// Fills `posts/1` so that a page of fifty counts as one or two reads.
async fn small_comments(world: &World, count: usize) {
    let ada = world.user(7, "Ada");
    for _ in 0..count {
        ada.comment("posts/1", "a small comment").await;
    }
}

#[tokio::test]
async fn an_instance_lets_one_large_page_through_before_it_reads_the_table() {
    let limit = [("SVC_READ_LIMIT", "30")];
    let world = World::with(&limit);
    small_comments(&world, 3).await;
    let here = world.guest().from("192.0.2.1");
    for _ in 0..30 {
        here.get("ui").await.ok(200);
    }
    let there = world.again(&limit).guest().from("192.0.2.1");
    let first = there.list("posts/1", "per_page=50").await;
    assert_eq!((first.status, first.cost.write_units), (200, 0.0));
    let refused = there.get("posts/1/comments?per_page=50").await.refused(429, "rate_limited");
    assert_eq!((refused.cost.read_units, refused.cost.write_units), (0.0, 2.0));
    let refused = there.get("posts/1/comments?per_page=50").await.refused(429, "rate_limited");
    assert_eq!((refused.cost.read_units, refused.cost.write_units), (0.0, 0.0));
}

#[tokio::test]
async fn concurrent_large_pages_release_unused_reservations_for_other_requests() {
    let limit = [("SVC_READ_LIMIT", "300")];
    let world = World::with(&limit);
    small_comments(&world, 3).await;
    let others: Vec<World> = (0..20).map(|_| world.again(&limit)).collect();
    let instances: Vec<Actor> = others.iter().map(|instance| instance.guest().from("192.0.2.1")).collect();
    let pages = async || join_all(instances.iter().map(|guest| guest.get("posts/1/comments?per_page=50"))).await;
    assert!(pages().await.iter().all(|page| page.status == 200));
    let refused = pages().await.iter().filter(|page| page.status == 429).count();
    assert!(refused > 0, "they are at the same time");
    let guest = world.guest().from("192.0.2.1");
    for _ in 0..50 {
        guest.get("ui").await.ok(200);
    }
}

#[tokio::test]
async fn large_pages_release_unused_reservations() {
    let limit = [("SVC_READ_LIMIT", "300")];
    let world = World::with(&limit);
    small_comments(&world, 55).await;
    let others: Vec<World> = (0..9).map(|_| world.again(&limit)).collect();
    let instances: Vec<Actor> =
        [&world].into_iter().chain(&others).map(|instance| instance.guest().from("192.0.2.1")).collect();
    for page in 0..200 {
        let reply = instances[page % 10].list("posts/1", "per_page=50").await;
        assert!(reply.cost.read_units <= 10.0, "{:?}", reply.cost);
    }
}

#[tokio::test]
async fn one_instance_counts_large_pages_exactly() {
    for limit in [1, 300_u32] {
        let world = World::with(&[("SVC_READ_LIMIT", &limit.to_string())]);
        small_comments(&world, 11).await;
        let guest = world.guest();
        for read in 1..=limit {
            let path = if read % 3 == 0 { "ui" } else { "posts/1/comments?per_page=50" };
            assert_eq!(remaining(&guest.get(path).await.ok(200)), limit - read, "{read} of {limit}");
        }
        for path in ["ui", "posts/1/comments?per_page=50"] {
            let refused = guest.get(path).await.refused(429, "rate_limited");
            assert_eq!((remaining(&refused), refused.cost.read_units), (0, 0.0));
        }
    }
}
