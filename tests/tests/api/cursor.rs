//! Lists, page by page with cursors.

use serde_json::json;
use tests::{TestResponse, World, reversed, seen};

#[tokio::test]
async fn an_empty_cursor_starts_a_walk() {
    let world = World::new();
    let created = world.written(3).await;
    let page = world.guest().list("posts/1", "per_page=2&cursor=").await;
    assert_eq!(page.ids(), [created[2], created[1]]);
    let path = "http://api.test/svc/api/v1/posts/1/comments";
    let cursor = page.json["meta"]["next_cursor"].as_str().unwrap();
    let next = format!("{path}?per_page=2&cursor={cursor}");
    assert_eq!(page.json["links"], json!({ "first": null, "last": null, "prev": null, "next": next }));
    let meta = json!({
        "closed": false, "path": path, "per_page": 2, "next_cursor": cursor, "prev_cursor": null, "total": 3
    });
    assert_eq!(page.json["meta"], meta);
    assert_eq!(world.guest().list("posts/1", "per_page=2&cursor").await.ids(), page.ids());
}

#[tokio::test]
async fn a_walk_through_nothing_is_one_empty_page() {
    let page = World::new().guest().list("posts/1", "cursor=").await;
    assert_eq!((page.ids(), page.next(), page.prev()), (vec![], None, None));
}

#[tokio::test]
async fn a_walk_meets_every_comment_once_both_ways_in_both_sorts() {
    let world = World::new();
    let created = world.written(7).await;
    for (sort, order) in [("newest", reversed(&created)), ("oldest", created.clone())] {
        for per_page in 1..=8 {
            let guest = world.guest();
            let pages = guest.walk(&format!("posts/1/comments?sort={sort}&per_page={per_page}&cursor=")).await;
            assert_eq!(seen(&pages), order, "{sort} {per_page}");
            assert_eq!(pages.len(), 7_usize.div_ceil(per_page), "{sort} {per_page}");
            assert!(pages.iter().all(|page| page.rows().len() <= per_page));
            let last = pages.last().unwrap();
            let back = guest.walk_back(last).await;
            assert_eq!(seen(&back), order, "back, {sort} {per_page}");
            // Walks forward again, from the first page reached on the way back.
            let first = &back[0];
            let mut again = vec![first.clone()];
            if let Some(next) = first.next() {
                again.extend(guest.walk(next).await);
            }
            assert_eq!(seen(&again), order, "forward again, {sort} {per_page}");
        }
    }
}

#[tokio::test]
async fn comments_added_during_a_walk_neither_drop_nor_repeat_one() {
    let world = World::new();
    let created = world.written(6).await;
    let guest = world.guest();
    for (sort, order) in [("newest", reversed(&created)), ("oldest", created.clone())] {
        let first = guest.list("posts/1", &format!("sort={sort}&per_page=2&cursor=")).await;
        let added = world.written(3).await;
        let rest = guest.walk(first.next().unwrap()).await;
        let mut walked = first.ids();
        walked.extend(seen(&rest));
        walked.retain(|id| !added.contains(id));
        let old: Vec<u64> = walked.into_iter().filter(|id| created.contains(id)).collect();
        assert_eq!(old, order, "{sort}");
        for id in added {
            world.user(7, "Ada").remove(id).await.ok(204);
        }
    }
}

#[tokio::test]
async fn comments_added_at_the_front_are_met_when_going_back() {
    let world = World::new();
    let created = world.written(4).await;
    let guest = world.guest();
    let first = guest.list("posts/1", "per_page=2&cursor=").await;
    let second = guest.get(first.next().unwrap()).await.ok(200);
    let added = world.written(3).await;
    let back = guest.walk_back(&second).await;
    assert_eq!(seen(&back), [&[added[2], added[1], added[0]], reversed(&created).as_slice()].concat());
}

#[tokio::test]
async fn comments_deleted_during_a_walk_drop_no_other() {
    let world = World::new();
    let created = world.written(8).await;
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    let first = guest.list("posts/1", "per_page=3&cursor=").await;
    assert_eq!(first.ids(), [created[7], created[6], created[5]]);
    // Removes the comment at the cursor, one after it, and one before it.
    for gone in [5, 4, 7] {
        ada.remove(created[gone]).await.ok(204);
    }
    let rest = guest.walk(first.next().unwrap()).await;
    assert_eq!(seen(&rest), [created[3], created[2], created[1], created[0]]);
    let back = guest.walk_back(rest.last().unwrap()).await;
    assert_eq!(seen(&back), [created[6], created[3], created[2], created[1], created[0]]);
}

#[tokio::test]
async fn a_walk_whose_rest_is_deleted_ends_in_an_empty_page_that_leads_back() {
    let world = World::new();
    let created = world.written(4).await;
    let (ada, guest) = (world.user(7, "Ada"), world.guest());
    let first = guest.list("posts/1", "per_page=2&cursor=").await;
    for id in &created[..2] {
        ada.remove(id).await.ok(204);
    }
    let end = guest.get(first.next().unwrap()).await.ok(200);
    assert_eq!((end.ids(), end.next()), (vec![], None));
    assert_eq!(seen(&guest.walk_back(&end).await), first.ids());
}

#[tokio::test]
async fn a_cursor_of_another_thread_sort_or_list_is_refused() {
    let world = World::new();
    let created = world.written(3).await;
    let ada = world.user(7, "Ada");
    for thread in ["posts/2", "posts/2"] {
        ada.comment(thread, "x").await;
    }
    for _ in 0..2 {
        ada.reply("posts/1", created[0], "r").await;
    }
    let cursor = |page: TestResponse| page.json["meta"]["next_cursor"].as_str().unwrap().to_owned();
    let newest = cursor(ada.list("posts/1", "per_page=1&cursor=").await);
    let elsewhere = cursor(ada.list("posts/2", "per_page=1&cursor=").await);
    let replies = cursor(ada.replies(created[0], "per_page=1&cursor=").await);
    ada.list("posts/1", &format!("cursor={newest}")).await;
    ada.get(&format!("posts/1/comments?sort=oldest&cursor={newest}")).await.invalid("cursor");
    ada.get(&format!("posts/1/comments?cursor={elsewhere}")).await.invalid("cursor");
    ada.get(&format!("posts/1/comments?sort=oldest&cursor={replies}")).await.invalid("cursor");
    ada.get(&format!("comments/{}/replies?cursor={newest}", created[0])).await.invalid("cursor");
    ada.get(&format!("comments/{}/replies?cursor={replies}", created[1])).await.invalid("cursor");
}

#[tokio::test]
async fn per_page_may_change_during_a_walk() {
    let world = World::new();
    let created = world.written(6).await;
    let guest = world.guest();
    let page = guest.list("posts/1", "per_page=1&cursor=").await;
    let cursor = page.json["meta"]["next_cursor"].as_str().unwrap();
    let next = guest.list("posts/1", &format!("per_page=3&cursor={cursor}")).await;
    assert_eq!(next.ids(), [created[4], created[3], created[2]]);
}

#[tokio::test]
async fn ranked_sorts_ignore_the_cursor() {
    let world = World::new();
    let created = world.written(3).await;
    for sort in ["most_liked", "most_replied"] {
        for cursor in ["", "nonsense"] {
            let page = world.guest().list("posts/1", &format!("sort={sort}&cursor={cursor}&page=2&per_page=2")).await;
            assert_eq!((page.ids(), page.total()), (vec![created[0]], 3), "{sort} {cursor}");
        }
    }
}

#[tokio::test]
async fn a_walk_shows_replies_below_their_parents_and_not_as_rows() {
    let world = World::new();
    let created = world.written(4).await;
    let ada = world.user(7, "Ada");
    for parent in &created {
        for n in 0..4 {
            ada.reply("posts/1", *parent, &n.to_string()).await;
        }
    }
    for sort in ["newest", "oldest"] {
        for per_page in 1..=4 {
            let pages = ada.walk(&format!("posts/1/comments?sort={sort}&per_page={per_page}&cursor=")).await;
            assert_eq!(seen(&pages).len(), 4);
            for row in pages.iter().flat_map(TestResponse::rows) {
                assert_eq!(tests::ids(&row["replies"]).len(), 3, "{sort} {per_page}");
            }
        }
    }
}
