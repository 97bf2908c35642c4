//! GET `moderation/comments` with `q`, `from`, `thread` and `since`, which narrow every queue.

use std::time::Duration;

use serde_json::json;
use tests::{Actor, TestResponse, World, by_guest, reversed, seen};

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");
const GUESTS: (&str, &str) = ("SVC_ALLOW_GUESTS", "true");
const LIMITS: (&str, &str) = ("SVC_READ_LIMIT", "1000000");

/// Returns the comments that match the filter, from all pages of the queue.
async fn found(world: &World, query: &str) -> Vec<u64> {
    seen(&world.moderator().walk(&format!("moderation/comments?cursor=&{query}")).await)
}

async fn page(actor: &Actor, query: &str) -> TestResponse {
    actor.get(&format!("moderation/comments?{query}")).await
}

#[tokio::test]
async fn each_word_is_in_the_text_or_in_the_writers_name_whatever_its_case_and_width() {
    let world = World::with(&[HELD]);
    let (ada, zoe) = (world.user(7, "Ada Lovelace"), world.user(8, "Zoë ＳＭＩＴＨ"));
    let tea = ada.comment("posts/1", "Strong TEA, **please**").await;
    let coffee = zoe.comment("posts/1", "Caffè for Ada").await;
    for (q, expected) in [
        ("tea", vec![tea]),
        ("ea,%20**pl", vec![tea]),
        ("please%20STRONG", vec![tea]),
        ("lovelace%20tea", vec![tea]),
        ("ada", vec![coffee, tea]),
        ("ada%20caff%C3%A8", vec![coffee]),
        ("CAFFE%CC%80", vec![coffee]),
        ("%EF%BD%94%EF%BD%85%EF%BD%81", vec![tea]),
        ("smith%E3%80%80zo%C3%8B", vec![coffee]),
        ("tea%20coffee", vec![]),
    ] {
        assert_eq!(found(&world, &format!("q={q}")).await, expected, "{q}");
    }
}

#[tokio::test]
async fn from_is_the_writers_name_or_id_alone() {
    let world = World::with(&[HELD, GUESTS]);
    let by_ada = world.user(7, "Ada Lovelace").comment("posts/1", "I am Bob").await;
    let by_guest = world.guest().post("posts/1/comments", by_guest("about Ada")).await.ok(201).id();
    for (from, expected) in [
        ("ada", vec![by_ada]),
        ("LOVE%20ada", vec![by_ada]),
        ("gr", vec![by_guest]),
        ("bob", vec![]),
        ("id:7", vec![by_ada]),
        ("id:07", vec![by_ada]),
        ("id:70", vec![]),
        ("id:99999999999999999999999", vec![]),
    ] {
        assert_eq!(found(&world, &format!("from={from}")).await, expected, "{from}");
    }
}

#[tokio::test]
async fn filters_by_thread_and_time_apply_to_every_state_and_combine() {
    let world = World::with(&[]);
    let ada = world.user(7, "Ada");
    let old = ada.comment("posts/1", "tea").await;
    world.pass(Duration::from_secs(61));
    let ada = world.user(7, "Ada");
    let new = ada.comment("posts/1", "tea").await;
    let elsewhere = ada.comment("posts/2", "tea").await;
    world.wait_until_idle().await;
    for id in [old, elsewhere] {
        world.moderator().judge(id, "reject").await.ok(200);
    }
    let since = world.moderator().see("posts/1", new).await["created_at"].as_str().unwrap().replace('+', "%2B");
    for (query, expected) in [
        ("state=all&thread=posts/1", vec![new, old]),
        ("state=all&thread=posts/3", vec![]),
        ("state=rejected&thread=posts/1", vec![old]),
        ("state=all&thread=posts/1&q=tea&from=id:7", vec![new, old]),
        ("state=all&thread=posts/1&q=coffee", vec![]),
    ] {
        assert_eq!(found(&world, query).await, expected, "{query}");
    }
    assert_eq!(found(&world, &format!("state=all&since={since}")).await, [elsewhere, new]);
    assert_eq!(found(&world, &format!("state=all&since={}", since.replace("%2B", "+"))).await, [elsewhere, new]);
    assert_eq!(found(&world, &format!("state=rejected&since={since}")).await, [elsewhere]);
    assert_eq!(found(&world, "state=all&since=1960-01-01T00:00:00Z").await, [elsewhere, new, old]);
    assert!(found(&world, "state=all&since=9999-12-31T23:59:59Z").await.is_empty());
}

#[tokio::test]
async fn a_filter_that_is_empty_or_malformed_is_refused_on_its_field() {
    let world = World::new();
    let moderator = world.moderator();
    for (field, texts) in [
        (
            "q",
            vec![
                String::new(),
                "%20%E3%80%80".to_owned(),
                "%E2%80%8B".to_owned(),
                "%CC%87".to_owned(),
                "x".repeat(201),
            ],
        ),
        ("from", vec![String::new(), "%20".to_owned(), "id:".to_owned(), "id:x".to_owned(), "id:-1".to_owned()]),
        ("thread", ["", "posts", "posts/", "/1", "pages/1", "posts/1/2", "posts/%20"].map(str::to_owned).to_vec()),
        ("since", ["", "yesterday", "2050-01-02", "2050-13-01T00:00:00Z", "1"].map(str::to_owned).to_vec()),
    ] {
        for text in texts {
            page(&moderator, &format!("{field}={text}")).await.invalid(field);
        }
        page(&moderator, &format!("id=1&{field}=x")).await.invalid(field);
    }
    page(&world.user(7, "Ada"), "q=x").await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_filtered_queue_is_walked_both_ways_and_its_cursors_are_its_own() {
    let world = World::with(&[HELD]);
    let ada = world.user(7, "Ada");
    let (mut all, mut teas) = (Vec::new(), Vec::new());
    for n in 0..9 {
        let id = ada.comment("posts/1", if n % 2 == 0 { "tea" } else { "coffee" }).await;
        all.push(id);
        if n % 2 == 0 {
            teas.push(id);
        }
    }
    let moderator = world.moderator();
    for (q, expected) in [("tea", reversed(&teas)), ("ada", reversed(&all)), ("milk", vec![])] {
        for per_page in 1..=4 {
            let path = format!("moderation/comments?q={q}&per_page={per_page}&cursor=");
            assert_eq!(moderator.walk_both_ways(&path).await, expected, "{q} {per_page}");
        }
    }
    let first = page(&moderator, "q=tea&per_page=1&cursor=").await.ok(200);
    let cursor = first.json["meta"]["next_cursor"].as_str().unwrap();
    page(&moderator, &format!("q=coffee&cursor={cursor}")).await.invalid("cursor");
    page(&moderator, &format!("cursor={cursor}")).await.invalid("cursor");
}

#[tokio::test]
async fn a_filtered_page_reads_at_most_200_comments_and_may_be_empty_and_continue() {
    let world = World::with(&[HELD, LIMITS, ("SVC_WRITE_LIMIT", "1000000")]);
    let ada = world.user(7, "Ada");
    let tea = ada.comment("posts/1", "tea").await;
    for _ in 0..200 {
        ada.comment("posts/1", "coffee").await;
    }
    let moderator = world.moderator();
    let first = page(&moderator, "q=tea&cursor=").await.ok(200);
    assert!(first.rows().is_empty());
    assert!((200.0..=250.0).contains(&first.cost.read_units), "{:?}", first.cost);
    let second = moderator.get(first.next().unwrap()).await.ok(200);
    assert_eq!((second.ids(), second.next()), (vec![tea], None));
}

#[tokio::test]
async fn a_filtered_page_ends_before_it_has_read_300_units() {
    let world = World::with(&[HELD, LIMITS, ("SVC_WRITE_LIMIT", "1000000")]);
    let ada = world.user(7, "Ada");
    let long = "𐍈".repeat(10_000);
    for _ in 0..40 {
        ada.comment("posts/1", &long).await;
    }
    let pages = world.moderator().walk("moderation/comments?q=tea&cursor=").await;
    assert_eq!(pages.len(), 2);
    for page in pages {
        assert!(page.cost.read_units <= 310.0, "{:?}", page.cost);
    }
}

#[tokio::test]
async fn log_entries_have_the_current_writer_and_first_80_characters_of_the_comment() {
    let world = World::with(&[HELD, GUESTS]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let id = ada.comment("posts/1", "first").await;
    let guests = world.guest().post("posts/1/comments", by_guest("hello")).await.ok(201).id();
    for id in [id, guests] {
        moderator.judge(id, "approve").await.ok(200);
    }
    moderator.post("posts/1/close", json!({})).await.ok(200);
    let excerpts = async || {
        let log = moderator.get("moderation/log").await.ok(200);
        log.rows().iter().map(|row| row["excerpt"].clone()).collect::<Vec<_>>()
    };
    let of_guest = json!({ "name": "Grace", "text": "hello" });
    assert_eq!(excerpts().await, [json!(null), of_guest.clone(), json!({ "name": "Ada", "text": "first" })]);
    let text = format!("é\n{}", "𐍈".repeat(90));
    ada.edit(id, &text).await.ok(200);
    let cut: String = text.chars().take(80).collect();
    assert_eq!(excerpts().await[2], json!({ "name": "Ada", "text": cut }));
    let reply = moderator.reply("posts/1", id, "reply").await;
    ada.remove(id).await.ok(204);
    assert_eq!(excerpts().await, [json!(null), of_guest.clone(), json!(null)], "a placeholder");
    moderator.remove(reply).await.ok(204);
    assert_eq!(excerpts().await, [json!(null), of_guest, json!(null)], "gone");
}
