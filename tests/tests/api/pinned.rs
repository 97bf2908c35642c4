//! The pinned comment in `comments.index`.

use serde_json::json;
use tests::{World, seen};

/// The last two use cursors.
const SORTS: [&str; 6] = ["newest", "oldest", "most_liked", "most_replied", "newest&cursor=", "oldest&cursor="];

/// Returns the expected order of comments without likes and replies, with the pinned comment first.
fn order(sort: &str, created: &[u64], pin: u64) -> Vec<u64> {
    let mut order = created.to_vec();
    if !sort.starts_with("oldest") {
        order.reverse();
    }
    order.retain(|id| *id != pin);
    order.insert(0, pin);
    order
}

#[tokio::test]
async fn the_pinned_comment_is_first_and_only_once_in_every_sort_both_ways() {
    let world = World::new();
    let (created, guest) = (world.written(5).await, world.guest());
    for pin in [created[0], created[2], created[4]] {
        world.seed_pin("posts/1", pin).await;
        for sort in SORTS {
            for per_page in 1..=6 {
                let pages = guest.walk(&format!("posts/1/comments?per_page={per_page}&sort={sort}")).await;
                assert_eq!(seen(&pages), order(sort, &created, pin), "{sort} {per_page}");
                assert!(pages.iter().all(|page| page.total() == 5 && page.rows().len() <= per_page));
                let back = guest.walk_back(pages.last().unwrap()).await;
                assert_eq!(seen(&back), seen(&pages), "back, {sort} {per_page}");
            }
        }
    }
}

#[tokio::test]
async fn with_pins_off_a_stored_pin_is_not_shown() {
    let world = World::new();
    let created = world.written(2).await;
    world.seed_pin("posts/1", created[0]).await;
    let off = world.again(&[("SVC_PINS", "false")]).guest();
    for query in ["", "cursor=", "sort=most_liked"] {
        let list = off.list("posts/1", query).await;
        assert_eq!(list.ids(), [created[1], created[0]], "{query}");
        assert_eq!((&list.rows()[1]["pinned"], &list.rows()[1]["pinned_at"]), (&json!(false), &json!(null)));
    }
    assert_eq!(world.guest().list("posts/1", "").await.ids(), created);
}

#[tokio::test]
async fn pinning_during_a_walk_neither_drops_nor_repeats_a_comment() {
    let world = World::new();
    let created = world.written(6).await;
    for (before, after) in [(None, 0), (None, 5), (Some(0), 5), (Some(5), 0), (Some(2), 3)] {
        if let Some(before) = before {
            world.seed_pin("posts/1", created[before]).await;
        }
        let first = world.guest().list("posts/1", "per_page=2&cursor=").await;
        let start = first.ids();
        world.seed_pin("posts/1", created[after]).await;
        let mut all = start.clone();
        all.extend(seen(&world.guest().walk(first.next().unwrap()).await));
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!((unique, all.len()), (created.clone(), 6), "{before:?} {after}");
    }
}

#[tokio::test]
async fn deleting_another_comment_leaves_the_pin() {
    let world = World::new();
    let created = world.written(3).await;
    world.seed_pin("posts/1", created[0]).await;
    world.user(7, "Ada").remove(created[1]).await.ok(204);
    let list = world.guest().list("posts/1", "").await;
    assert_eq!((list.ids(), list.total()), (vec![created[0], created[2]], 2));
}

#[tokio::test]
async fn the_pinned_comment_shows_its_replies_on_every_page() {
    let world = World::new();
    let created = world.written(4).await;
    let ada = world.user(7, "Ada");
    let reply = ada.reply("posts/1", created[0], "r").await;
    world.seed_pin("posts/1", created[0]).await;
    for query in ["per_page=1", "sort=oldest&per_page=1", "per_page=1&cursor=", "sort=most_liked&per_page=1"] {
        let list = world.guest().list("posts/1", query).await;
        assert_eq!(tests::ids(&list.rows()[0]["replies"]), [reply], "{query}");
    }
}

#[tokio::test]
async fn own_unapproved_comments_keep_their_place_beside_the_pinned_one() {
    let world = World::new();
    let mut created = world.written(3).await;
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    created.push(held.user(7, "Ada").comment("posts/1", "held").await);
    let ada = world.user(7, "Ada");
    world.seed_pin("posts/1", created[1]).await;
    for sort in SORTS {
        for per_page in 1..=3 {
            let pages = ada.walk(&format!("posts/1/comments?per_page={per_page}&sort={sort}")).await;
            assert_eq!(seen(&pages), order(sort, &created, created[1]), "{sort} {per_page}");
        }
    }
}
