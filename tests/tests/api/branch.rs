//! `comments.replies` with `deep=1`: everything below a comment, in reading order.

use serde_json::{Value, json};
use tests::{Actor, TestResponse, World};

const THREAD: &str = "posts/1";

async fn branch(actor: &Actor, comment: u64, query: &str) -> TestResponse {
    actor.get(&format!("comments/{comment}/replies?deep=1&{query}")).await
}

/// Walks the pages both ways.
async fn walk(actor: &Actor, comment: u64, per_page: usize) -> Vec<u64> {
    actor.walk_both_ways(&format!("comments/{comment}/replies?deep=1&per_page={per_page}")).await
}

fn depths(answer: &TestResponse) -> Vec<(u64, u64)> {
    answer.rows().iter().map(|row| (row["id"].as_u64().unwrap(), row["depth"].as_u64().unwrap())).collect()
}

/// Posts six replies to a comment. Two of them have three replies each, and the last begins a chain of ten. Returns the
/// comment, and all replies in reading order with their depths.
async fn tree(actor: &Actor) -> (u64, Vec<(u64, u64)>) {
    let root = actor.comment(THREAD, "root").await;
    let direct = actor.write_many(THREAD, root, 6).await;
    let mut below = Vec::new();
    let mut second = Vec::new();
    for parent in [direct[0], direct[4]] {
        second.push(actor.write_many(THREAD, parent, 3).await);
    }
    let mut chain = vec![direct[5]];
    for _ in 1..10 {
        chain.push(actor.reply(THREAD, *chain.last().unwrap(), "deeper").await);
    }
    for (place, id) in direct.iter().enumerate() {
        below.push((*id, 1));
        let replies = [0, 4].iter().position(|each| *each == place).map(|which| second[which].clone());
        below.extend(replies.unwrap_or_default().into_iter().map(|id| (id, 2)));
    }
    below.extend(chain[1..].iter().zip(2..).map(|(id, depth)| (*id, depth)));
    (root, below)
}

#[tokio::test]
async fn each_comment_is_followed_by_its_own_replies() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (root, below) = tree(&ada).await;
    let answer = branch(&world.guest(), root, "per_page=50").await.ok(200);
    assert_eq!(depths(&answer), below);
    assert!(answer.rows().iter().all(|row| row["replies"] == json!([])));
    assert_eq!(answer.rows()[0]["replies_count"], 3);
    let meta = answer.json["meta"].as_object().unwrap();
    assert_eq!(meta.keys().collect::<Vec<_>>(), ["next_cursor", "path", "per_page", "prev_cursor"]);
    assert_eq!(answer.json["links"], json!({ "first": null, "last": null, "prev": null, "next": null }));
    // Depths count from the comment at the top of the branch.
    let (parent, _) = below[0];
    assert_eq!(
        depths(&branch(&ada, parent, "").await.ok(200)),
        below[1..4].iter().map(|(id, _)| (*id, 1)).collect::<Vec<_>>()
    );
    let leaf = below.last().unwrap().0;
    assert_eq!(branch(&ada, leaf, "").await.ok(200).ids(), [0_u64; 0]);
    let plain = ada.get(&format!("comments/{root}/replies")).await.ok(200);
    assert!(plain.rows().iter().all(|row| row.get("depth").is_none()));
}

#[tokio::test]
async fn a_walk_there_and_back_meets_every_comment_once() {
    let world = World::with(&[("SVC_READ_LIMIT", "100000")]);
    let ada = world.user(7, "Ada");
    let (root, below) = tree(&ada).await;
    let ids: Vec<u64> = below.iter().map(|(id, _)| *id).collect();
    for per_page in [1, 2, 3, 5, 7, 20, 21, 22, 50] {
        assert_eq!(walk(&ada, root, per_page).await, ids, "{per_page}");
    }
}

#[tokio::test]
async fn comments_that_come_and_go_during_a_walk_drop_and_repeat_no_other() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (root, below) = tree(&ada).await;
    let ids: Vec<u64> = below.iter().map(|(id, _)| *id).collect();
    let first = branch(&ada, root, "per_page=4").await.ok(200);
    let (edge, sibling) = (ids[3], ids[4]);
    let later = ada.reply(THREAD, edge, "below the edge").await;
    ada.reply(THREAD, ids[1], "above the edge").await;
    ada.remove(sibling).await.ok(204);
    let second = ada.get(first.next().unwrap()).await.ok(200);
    assert_eq!(second.ids(), [&[later][..], &ids[5..8]].concat());
    // The comment at the edge of the page is deleted with its replies.
    ada.remove(later).await.ok(204);
    ada.remove(edge).await.ok(204);
    let second = ada.get(first.next().unwrap()).await.ok(200);
    assert_eq!(second.ids(), ids[5..9]);
    // A comment above the edge is hidden along with everything below it.
    world.moderator().judge(ids[0], "reject").await.ok(200);
    let guest = world.guest();
    assert_eq!(guest.get(first.next().unwrap()).await.ok(200).ids(), ids[5..9]);
    let back = guest.get(second.prev().unwrap()).await.ok(200);
    assert_eq!(back.ids(), [0_u64; 0]);
    assert_eq!(guest.get(back.next().unwrap()).await.ok(200).ids(), ids[5..9]);
}

#[tokio::test]
async fn hidden_comments_are_left_out_with_everything_below_them() {
    let world = World::with(&[("SVC_REQUIRE_APPROVAL", "false")]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let root = ada.comment(THREAD, "root").await;
    let hidden = ada.reply(THREAD, root, "hidden").await;
    let below = world.user(8, "Bob").reply(THREAD, hidden, "below").await;
    let kept = ada.reply(THREAD, root, "kept").await;
    let deeper = ada.reply(THREAD, kept, "deeper").await;
    let own = ada.reply(THREAD, deeper, "own").await;
    for id in [hidden, own] {
        moderator.judge(id, "reject").await.ok(200);
    }
    world.wait_until_idle().await;
    assert_eq!(branch(&world.guest(), root, "").await.ok(200).ids(), [kept, deeper]);
    // The writer sees rejected comments in place.
    assert_eq!(branch(&ada, root, "").await.ok(200).ids(), [hidden, below, kept, deeper, own]);
    for per_page in 1..6 {
        assert_eq!(walk(&ada, root, per_page).await, [hidden, below, kept, deeper, own], "{per_page}");
    }
    branch(&world.guest(), hidden, "").await.refused(404, "not_found");
    branch(&world.guest(), below, "").await.refused(404, "not_found");
    let guest = branch(&world.guest(), root, "").await;
    assert_eq!(guest.header("cache-control"), "public, max-age=0, s-maxage=5");
    assert_eq!(branch(&ada, root, "").await.header("cache-control"), "private, no-cache");
}

#[tokio::test]
async fn a_placeholder_is_above_its_replies() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let root = ada.comment(THREAD, "root").await;
    let gone = ada.reply(THREAD, root, "gone").await;
    let below = ada.reply(THREAD, gone, "below").await;
    ada.remove(gone).await.ok(204);
    let answer = branch(&ada, root, "").await.ok(200);
    assert_eq!(depths(&answer), [(gone, 1), (below, 2)]);
    assert_eq!(answer.rows()[0]["is_deleted"], true);
}

#[tokio::test]
async fn a_page_reads_at_most_two_hundred_comments_and_then_continues() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "100000"), ("SVC_READ_LIMIT", "100000")]);
    let ada = world.user(7, "Ada");
    let root = ada.comment(THREAD, "root").await;
    let mut below = Vec::new();
    let direct = ada.write_many(THREAD, root, 60).await;
    for parent in &direct[..40] {
        below.push(*parent);
        below.extend(ada.write_many(THREAD, *parent, 2).await);
    }
    below.extend(&direct[40..]);
    world.wait_until_idle().await;
    let first = branch(&world.guest(), root, "per_page=50").await.ok(200);
    assert!(first.prev().is_none());
    assert_eq!(first.ids(), below[..50]);
    assert!(first.cost.read_units <= 1.5 * 200.0 + 8.0, "{:?}", first.cost);
    assert_eq!(walk(&ada, root, 50).await, below);
    assert_eq!(walk(&ada, root, 13).await, below);
}

#[tokio::test]
async fn other_values_and_foreign_cursors_are_refused() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (root, below) = tree(&ada).await;
    for deep in ["", "0", "2", "true", "01"] {
        ada.get(&format!("comments/{root}/replies?deep={deep}")).await.invalid("deep");
    }
    branch(&ada, root, "per_page=51").await.invalid("per_page");
    let cursor = |answer: &TestResponse| answer.json["meta"]["next_cursor"].as_str().unwrap().to_owned();
    let deep = cursor(&branch(&ada, root, "per_page=2").await.ok(200));
    let plain = cursor(&ada.get(&format!("comments/{root}/replies?cursor=&per_page=2")).await.ok(200));
    branch(&ada, root, &format!("cursor={plain}")).await.invalid("cursor");
    ada.get(&format!("comments/{root}/replies?cursor={deep}")).await.invalid("cursor");
    branch(&ada, below[0].0, &format!("cursor={deep}")).await.invalid("cursor");
    branch(&ada, root, &format!("cursor={}x", &deep[..deep.len() - 1])).await.invalid("cursor");
    let next = branch(&ada, root, "per_page=2").await;
    assert!(next.next().unwrap().contains("deep=1"));
    assert_eq!(next.json["meta"].get("total"), None::<&Value>);
}
