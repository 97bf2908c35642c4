//! `comments.index` and `comments.replies`, page by page.

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{World, ids, reversed};

/// Returns a member's new comment as the API shows it. `own` is whether the caller wrote it.
pub(crate) fn comment(id: u64, body: &str, user: &Value, own: bool, parent: Option<u64>, replies: &[Value]) -> Value {
    json!({
        "id": id,
        "body": body,
        "html": format!("<p>{body}</p>\n"),
        "parent_id": parent,
        "is_approved": true,
        "user": user,
        "likes_count": 0,
        "liked": false,
        "reported": false,
        "replies_count": replies.len(),
        "replies": replies,
        "can": { "update": own, "delete": own, "pin": false },
        "is_author": false,
        "is_moderator": false,
        "is_guest": false,
        "pinned": false,
        "pinned_at": null,
        "created_at": "2050-01-02T03:04:05+00:00",
        "relative_created_at": "just now",
        "updated_at": "2050-01-02T03:04:05+00:00",
    })
}

#[tokio::test]
async fn a_page_is_returned_whole() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let first = ada.comment("posts/1", "first").await;
    let second = ada.comment("posts/1", "second").await;
    let reply = bob.reply("posts/1", first, "reply").await;
    let (a, b) = (json!({ "id": 7, "name": "Ada", "avatar": "" }), json!({ "id": 8, "name": "Bob", "avatar": "" }));
    let of_bob = comment(reply, "reply", &b, true, Some(first), &[]);
    let path = "http://api.test/svc/api/v1/posts/1/comments";
    assert_eq!(
        bob.get("posts/1/comments").await.ok(200).json,
        json!({
            "data": [
                comment(second, "second", &a, false, None, &[]),
                comment(first, "first", &a, false, None, &[of_bob]),
            ],
            "links": {
                "first": format!("{path}?page=1"),
                "last": format!("{path}?page=1"),
                "prev": null,
                "next": null,
            },
            "meta": {
                "closed": false, "current_page": 1, "from": 1, "last_page": 1, "path": path, "per_page": 10, "to": 2, "total": 2
            },
        })
    );
}

#[tokio::test]
async fn a_thread_without_comments_is_an_empty_page() {
    let reply = World::new().guest().get("posts/none/comments").await.ok(200);
    assert_eq!(reply.json["data"], json!([]));
    let meta = &reply.json["meta"];
    assert_eq!((&meta["from"], &meta["to"]), (&json!(null), &json!(null)));
    assert_eq!((&meta["last_page"], &meta["total"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn a_comment_is_in_the_list_of_its_own_thread_alone() {
    let world = World::with(&[("SVC_TYPES", "posts,videos")]);
    let ada = world.user(7, "Ada");
    let mut seen = Vec::new();
    for thread in ["posts/1", "posts/11", "posts/2", "videos/1"] {
        seen.push((thread, ada.comment(thread, thread).await));
    }
    for (thread, id) in seen {
        assert_eq!(world.guest().list(thread, "").await.ids(), [id]);
    }
}

#[tokio::test]
async fn newest_first_is_the_default_order_and_oldest_first_is_the_reverse() {
    let world = World::new();
    let created = world.written(3).await;
    let guest = world.guest();
    assert_eq!(guest.list("posts/1", "").await.ids(), reversed(&created));
    assert_eq!(guest.list("posts/1", "sort=newest").await.ids(), reversed(&created));
    assert_eq!(guest.list("posts/1", "sort=oldest").await.ids(), created);
    let other = world.again(&[("SVC_DEFAULT_SORT", "oldest")]).guest();
    assert_eq!(other.list("posts/1", "").await.ids(), created);
}

#[tokio::test]
async fn most_replied_ties_fall_newest_first() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let created = world.written(4).await;
    ada.reply("posts/1", created[1], "a").await;
    ada.reply("posts/1", created[1], "b").await;
    ada.reply("posts/1", created[0], "c").await;
    let order = [created[1], created[0], created[3], created[2]];
    let guest = world.guest();
    assert_eq!(guest.list("posts/1", "sort=most_replied").await.ids(), order);
    assert_eq!(guest.list("posts/1", "sort=most_replied&per_page=2&page=2").await.ids(), order[2..]);
    assert_eq!(ids(&guest.see("posts/1", created[1]).await["replies"]).len(), 2);
}

#[tokio::test]
async fn most_replied_counts_direct_replies_that_are_not_deleted() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let created = world.written(2).await;
    let reply = ada.reply("posts/1", created[0], "a").await;
    ada.reply("posts/1", reply, "deeper").await;
    let other = ada.reply("posts/1", created[1], "b").await;
    ada.reply("posts/1", created[1], "c").await;
    let guest = world.guest();
    assert_eq!(guest.list("posts/1", "sort=most_replied").await.ids(), [created[1], created[0]]);
    ada.remove(other).await.ok(204);
    assert_eq!(guest.list("posts/1", "sort=most_replied").await.ids(), [created[1], created[0]]);
    ada.reply("posts/1", created[0], "d").await;
    assert_eq!(guest.list("posts/1", "sort=most_replied").await.ids(), [created[0], created[1]]);
}

#[tokio::test]
async fn with_sorting_off_sort_is_ignored() {
    let world = World::with(&[("SVC_SORTING", "false")]);
    let created = world.written(3).await;
    for sort in ["oldest", "nonsense", "most_replied", ""] {
        assert_eq!(world.guest().list("posts/1", &format!("sort={sort}")).await.ids(), reversed(&created), "{sort}");
    }
}

#[tokio::test]
async fn a_wrong_sort_page_or_per_page_is_refused_on_its_field() {
    let guest = World::new().guest();
    for sort in ["", "best", "Newest", "newest,oldest"] {
        guest.get(&format!("posts/1/comments?sort={sort}")).await.invalid("sort");
    }
    let numbers = ["0", "-1", "", "a", "1.5", "1e3", "%2B1", "99999999999999999999999", "%20"];
    for number in numbers {
        guest.get(&format!("posts/1/comments?page={number}")).await.invalid("page");
        guest.get(&format!("posts/1/comments?per_page={number}")).await.invalid("per_page");
    }
    guest.get("posts/1/comments?per_page=51").await.invalid("per_page");
    guest.list("posts/1", "per_page=50").await;
    guest.list("posts/1", "per_page=1").await;
}

#[tokio::test]
async fn a_page_beyond_10000_comments_is_refused_with_the_advice_to_use_a_cursor() {
    let guest = World::new().guest();
    guest.list("posts/1", "page=1000").await;
    guest.list("posts/1", "per_page=50&page=200").await;
    for query in ["page=1001", "per_page=50&page=201", "per_page=1&page=10001", "page=18446744073709551615"] {
        let reply = guest.get(&format!("posts/1/comments?{query}")).await.invalid("page");
        assert!(reply.json["message"].as_str().unwrap().contains("cursor"), "{query}");
    }
}

#[tokio::test]
async fn pages_by_number_link_to_no_page_beyond_those_that_are_served() {
    let world = World::new();
    world.written(1).await;
    world.set("T#posts#1", "T", "n", Some(AttributeValue::N("25000".to_owned()))).await;
    let guest = world.guest();
    for (per_page, last) in [(10, 1_000), (50, 200), (7, 1_429), (1, 10_000)] {
        let list = guest.list("posts/1", &format!("per_page={per_page}&page={}", last - 1)).await;
        let meta = &list.json["meta"];
        assert_eq!((&meta["last_page"], &meta["total"]), (&json!(last), &json!(25_000)));
        let at_the_end = guest.get(list.next().unwrap()).await.ok(200);
        assert_eq!(list.json["links"]["last"].as_str(), list.next());
        assert_eq!((&at_the_end.json["meta"]["current_page"], at_the_end.next()), (&json!(last), None));
    }
}

#[tokio::test]
async fn pages_link_to_each_other_and_keep_the_other_parameters() {
    let world = World::new();
    let created = world.written(5).await;
    let guest = world.guest();
    let middle = guest.list("posts/1", "sort=oldest&per_page=2&x=a%20%26b&page=2").await;
    assert_eq!(middle.ids(), created[2..4]);
    let link =
        |page: u32| format!("http://api.test/svc/api/v1/posts/1/comments?sort=oldest&per_page=2&x=a+%26b&page={page}");
    assert_eq!(middle.json["links"], json!({ "first": link(1), "last": link(3), "prev": link(1), "next": link(3) }));
    let path = "http://api.test/svc/api/v1/posts/1/comments";
    assert_eq!(
        middle.json["meta"],
        json!({
            "closed": false, "current_page": 2, "from": 3, "last_page": 3, "path": path, "per_page": 2, "to": 4, "total": 5
        })
    );
    let last = guest.get(middle.next().unwrap()).await.ok(200);
    assert_eq!(last.ids(), created[4..]);
    assert_eq!((last.next(), &last.json["meta"]["to"]), (None, &json!(5)));
    let first = guest.get(middle.prev().unwrap()).await.ok(200);
    assert_eq!((first.ids(), first.prev()), (created[..2].to_vec(), None));
}

#[tokio::test]
async fn a_page_beyond_the_last_is_empty() {
    let world = World::new();
    world.written(3).await;
    let beyond = world.guest().list("posts/1", "per_page=2&page=5").await;
    assert_eq!(beyond.ids(), [0; 0]);
    let meta = &beyond.json["meta"];
    assert_eq!((&meta["from"], &meta["to"]), (&json!(null), &json!(null)));
    assert_eq!((&meta["current_page"], &meta["last_page"], &meta["total"]), (&json!(5), &json!(2), &json!(3)));
    assert_eq!(beyond.next(), None);
}

#[tokio::test]
async fn per_page_has_its_default_from_the_settings() {
    let world = World::with(&[("SVC_PER_PAGE", "2")]);
    world.written(3).await;
    let list = world.guest().list("posts/1", "").await;
    assert_eq!((list.rows().len(), &list.json["meta"]["per_page"]), (2, &json!(2)));
    assert_eq!(world.guest().list("posts/1", "per_page=3").await.rows().len(), 3);
}

#[tokio::test]
async fn links_are_below_the_public_url_and_the_prefix() {
    let world = World::with(&[("SVC_PUBLIC_URL", "https://talk.test/sub/"), ("SVC_API_PREFIX", "/talk/v1/")]);
    let list = world.guest().list("posts/1", "").await;
    assert_eq!(list.json["meta"]["path"], "https://talk.test/sub/talk/v1/posts/1/comments");
    assert_eq!(list.json["links"]["first"], "https://talk.test/sub/talk/v1/posts/1/comments?page=1");
}

#[tokio::test]
async fn the_last_of_a_repeated_parameter_counts() {
    let world = World::new();
    world.written(3).await;
    assert_eq!(world.guest().list("posts/1", "per_page=1&per_page=2").await.rows().len(), 2);
}

#[tokio::test]
async fn parents_carry_their_three_oldest_replies_oldest_first() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parents = world.written(2).await;
    let replies = ada.write_many("posts/1", parents[0], 5).await;
    let shown = world.guest().see("posts/1", parents[0]).await;
    assert_eq!((ids(&shown["replies"]), &shown["replies_count"]), (replies[..3].to_vec(), &json!(5)));
    let list = world.guest().list("posts/1", "").await;
    assert_eq!((list.total(), list.ids()), (2, reversed(&parents)));
}

#[tokio::test]
async fn replies_to_replies_are_counted_and_not_embedded() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "0").await;
    let reply = ada.reply("posts/1", parent, "1").await;
    let deeper = ada.reply("posts/1", reply, "2").await;
    let shown = world.guest().see("posts/1", parent).await;
    assert_eq!((ids(&shown["replies"]), &shown["replies_count"]), (vec![reply], &json!(1)));
    assert_eq!((&shown["replies"][0]["replies"], &shown["replies"][0]["replies_count"]), (&json!([]), &json!(1)));
    assert_eq!(world.guest().replies(reply, "").await.ids(), [deeper]);
}

#[tokio::test]
async fn a_reply_is_not_missed_while_it_moves_up() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "0").await;
    let mut replies = ada.write_many("posts/1", parent, 9).await;
    let guest = world.guest();
    for gone in [1, 0, 0, 0, 0, 0, 0, 0, 0] {
        ada.remove(replies.remove(gone)).await.ok(204);
        let reads = (0..12).map(|_| async {
            let (shown, all) = tokio::join!(guest.see("posts/1", parent), guest.replies(parent, ""));
            assert_eq!(ids(&shown["replies"]), replies[..replies.len().min(3)]);
            assert_eq!(all.ids(), replies);
        });
        join_all(reads).await;
        world.wait_until_idle().await;
        assert_eq!(guest.see("posts/1", parent).await["replies_count"], replies.len());
    }
}

#[tokio::test]
async fn a_new_number_of_embedded_replies_holds_for_old_threads_too() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "0").await;
    let mut replies = ada.write_many("posts/1", parent, 6).await;
    for count in [5, 0, 1, 20, 2] {
        world.wait_until_idle().await;
        let other = world.again(&[("SVC_REPLIES_PER_PARENT", &count.to_string())]);
        let expected = &replies[..replies.len().min(count)];
        for query in ["", "sort=oldest", "sort=most_replied", "cursor="] {
            let list = other.guest().list("posts/1", query).await;
            assert_eq!(ids(&list.rows()[0]["replies"]), expected, "{count} {query}");
        }
        replies.push(other.user(7, "Ada").reply("posts/1", parent, "more").await);
        let all = other.guest().replies(parent, "per_page=50").await;
        assert_eq!(all.ids(), replies, "{count}");
    }
    assert_eq!(ids(&world.guest().see("posts/1", parent).await["replies"]), replies[..3]);
}

#[tokio::test]
async fn replies_have_the_same_envelope_as_comments() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let parent = ada.comment("posts/1", "0").await;
    let reply = ada.reply("posts/1", parent, "1").await;
    let page = ada.replies(parent, "per_page=1").await;
    let path = format!("http://api.test/svc/api/v1/comments/{parent}/replies");
    let link = format!("{path}?per_page=1&page=1");
    assert_eq!(page.json["links"], json!({ "first": link, "last": link, "prev": null, "next": null }));
    assert_eq!(
        page.json["meta"],
        json!({ "current_page": 1, "from": 1, "last_page": 1, "path": path, "per_page": 1, "to": 1, "total": 1 })
    );
    assert_eq!(page.find(reply), ada.see("posts/1", reply).await.into());
}

#[tokio::test]
async fn wrong_paging_of_replies_is_refused_on_its_field() {
    let world = World::new();
    let parent = world.user(7, "Ada").comment("posts/1", "0").await;
    for (query, field) in
        [("page=0", "page"), ("per_page=51", "per_page"), ("page=1001", "page"), ("cursor=x", "cursor")]
    {
        world.guest().get(&format!("comments/{parent}/replies?{query}")).await.invalid(field);
    }
}

#[tokio::test]
async fn each_comment_says_what_the_caller_may_do_with_it() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let parent = ada.comment("posts/1", "x").await;
    let reply = bob.reply("posts/1", parent, "y").await;
    let can = |update: bool, pin: bool| json!({ "update": update, "delete": update, "pin": pin });
    for (actor, of_parent, of_reply) in [
        (world.guest(), can(false, false), can(false, false)),
        (ada, can(true, false), can(false, false)),
        (bob, can(false, false), can(true, false)),
        (world.moderator(), can(false, true), can(false, false)),
    ] {
        assert_eq!(actor.see("posts/1", parent).await["can"], of_parent);
        assert_eq!(actor.see("posts/1", reply).await["can"], of_reply);
    }
    let without_pins = world.again(&[("SVC_PINS", "false")]);
    assert_eq!(without_pins.moderator().see("posts/1", parent).await["can"], can(false, false));
}

#[tokio::test]
async fn the_largest_comments_still_fit_as_fifty_a_page() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    // Each character takes four bytes in the body and in the HTML.
    let body = "😀".repeat(10_000);
    let parents = join_all((0..50).map(|_| ada.comment("posts/1", &body))).await;
    for parent in &parents[..2] {
        join_all((0..3).map(|_| ada.reply("posts/1", *parent, &body))).await;
    }
    let page = world.guest().list("posts/1", "per_page=50").await;
    assert_eq!(page.rows().len(), 50);
    assert!(page.body.len() < 6_000_000);
}

#[tokio::test]
async fn a_page_too_large_even_without_replies_says_how_many_fit() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    // Each quote is escaped twice in the body, in the JSON and in Lambda's response, and becomes an entity in the HTML.
    let body = "\"".repeat(10_000);
    join_all((0..50).map(|_| ada.comment("posts/1", &body))).await;
    let reply = world.guest().get("posts/1/comments?per_page=50").await;
    if reply.status == 200 {
        assert_eq!(reply.rows().len(), 50);
    } else {
        let reply = reply.invalid("per_page");
        let message = reply.json["message"].as_str().unwrap();
        let fits: u32 = message.rsplit(' ').next().unwrap().trim_end_matches('.').parse().unwrap();
        world.guest().list("posts/1", &format!("per_page={fits}")).await;
    }
}
