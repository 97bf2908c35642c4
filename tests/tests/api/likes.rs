//! `comments.like`: POST `comments/{id}/like`.

use futures_util::future::join_all;
use http::header::USER_AGENT;
use serde_json::{Value, json};
use tests::World;

const GUEST_LIKES: (&str, &str) = ("SVC_GUEST_LIKES", "true");

fn result(liked: bool, count: u64) -> Value {
    json!({ "liked": liked, "likes_count": count })
}

#[tokio::test]
async fn a_like_toggles_and_its_response_has_no_envelope() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let id = ada.comment("posts/1", "x").await;
    assert_eq!(bob.like(id).await.ok(200).json, result(true, 1));
    assert_eq!(ada.like(id).await.ok(200).json, result(true, 2));
    assert_eq!(bob.like(id).await.ok(200).json, result(false, 1));
    assert_eq!(bob.like(id).await.ok(200).json, result(true, 2));
}

#[tokio::test]
async fn a_like_shows_to_all_as_a_count_and_to_its_giver_as_liked() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let parent = ada.comment("posts/1", "x").await;
    let reply = ada.reply("posts/1", parent, "y").await;
    for id in [parent, reply] {
        bob.like(id).await.ok(200);
        for (actor, liked) in [(&bob, true), (&ada, false), (&world.guest(), false)] {
            let shown = actor.see("posts/1", id).await;
            assert_eq!((&shown["likes_count"], &shown["liked"]), (&json!(1), &json!(liked)));
        }
    }
    assert_eq!(bob.replies(parent, "").await.rows()[0]["liked"], true);
    let edited = ada.edit(parent, "z").await.ok(200);
    assert_eq!((&edited.data()["likes_count"], &edited.data()["liked"]), (&json!(1), &json!(false)));
}

#[tokio::test]
async fn most_liked_comes_first_and_ties_fall_newest_first() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let created = ada.write_many("posts/1", None, 4).await;
    for (user, id) in [(1, created[1]), (2, created[1]), (3, created[0]), (4, created[2])] {
        world.user(100 + user, "Liker").like(id).await.ok(200);
    }
    let order = [created[1], created[2], created[0], created[3]];
    assert_eq!(world.guest().list("posts/1", "sort=most_liked").await.ids(), order);
    assert_eq!(world.guest().list("posts/1", "sort=most_liked&per_page=3&page=2").await.ids(), order[3..]);
    world.user(101, "Liker").like(created[1]).await.ok(200);
    world.user(102, "Liker").like(created[1]).await.ok(200);
    let order = [created[2], created[0], created[3], created[1]];
    assert_eq!(world.guest().list("posts/1", "sort=most_liked").await.ids(), order);
}

#[tokio::test]
async fn a_comment_that_is_missing_or_hidden_is_404() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]).user(7, "Ada").comment("posts/1", "x").await;
    bob.like(held).await.refused(404, "not_found");
    assert_eq!(ada.like(held).await.ok(200).json, result(true, 1));
    let gone = ada.comment("posts/1", "x").await;
    let below = ada.reply("posts/1", gone, "y").await;
    world.moderator().judge(below, "reject").await.ok(200);
    ada.remove(gone).await.ok(204);
    ada.like(gone).await.refused(404, "not_found");
    ada.like(below).await.refused(404, "not_found");
}

#[tokio::test]
async fn guests_may_like_only_when_that_is_on() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    world.guest().like(id).await.refused(401, "unauthenticated");
    let open = world.again(&[GUEST_LIKES]);
    assert_eq!(open.guest().like(id).await.ok(200).json, result(true, 1));
}

#[tokio::test]
async fn a_guests_like_is_keyed_by_address_and_user_agent() {
    let world = World::with(&[GUEST_LIKES]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let guest = world.guest().from("2001:db8:1:2::1");
    assert_eq!(guest.like(id).await.ok(200).json, result(true, 1));
    assert_eq!(guest.clone().from("2001:db8:1:2::ffff").like(id).await.ok(200).json, result(false, 0));
    assert_eq!(guest.like(id).await.ok(200).json, result(true, 1));
    assert_eq!(guest.clone().with(USER_AGENT, "another").like(id).await.ok(200).json, result(true, 2));
    assert_eq!(guest.clone().from("192.0.2.7").like(id).await.ok(200).json, result(true, 3));
    assert_eq!(guest.see("posts/1", id).await["liked"], true);
    assert_eq!(guest.from("192.0.2.8").see("posts/1", id).await["liked"], false);
}

#[tokio::test]
async fn guests_of_one_address_like_a_comment_a_bounded_number_of_times() {
    let world = World::with(&[GUEST_LIKES, ("SVC_GUEST_LIKES_PER_IP", "3")]);
    let ada = world.user(7, "Ada");
    let (id, other) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    let at = |ip: &str, agent: u32| world.guest().from(ip).with(USER_AGENT, &agent.to_string());
    for agent in 1..=3 {
        at("192.0.2.1", agent).like(id).await.ok(200);
    }
    let refused = at("192.0.2.1", 4).like(id).await.refused(429, "rate_limited");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    // Unliking makes room. Other comments, addresses and users have separate limits.
    at("192.0.2.1", 4).like(other).await.ok(200);
    at("192.0.2.2", 4).like(id).await.ok(200);
    ada.clone().from("192.0.2.1").like(id).await.ok(200);
    assert_eq!(at("192.0.2.1", 1).like(id).await.ok(200).json, result(false, 4));
    assert_eq!(at("192.0.2.1", 4).like(id).await.ok(200).json, result(true, 5));
    at("192.0.2.1", 5).like(id).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn without_a_bound_guests_of_one_address_can_like_a_comment_any_number_of_times() {
    let world = World::with(&[GUEST_LIKES, ("SVC_GUEST_LIKES_PER_IP", "0")]);
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    for agent in 1..=60 {
        let guest = world.guest().from("192.0.2.1").with(USER_AGENT, &agent.to_string());
        assert_eq!(guest.like(id).await.ok(200).json, result(true, agent));
    }
}

#[tokio::test]
async fn a_visitor_with_very_many_likes_keeps_all_of_them() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let created = ada.write_many("posts/1", None, 110).await;
    for id in &created {
        assert_eq!(bob.like(*id).await.ok(200).json, result(true, 1));
    }
    let liked = async || {
        let mut liked = Vec::new();
        for page in bob.walk("posts/1/comments?sort=oldest&per_page=50&cursor=").await {
            liked.extend(page.rows().iter().filter(|row| row["liked"] == true).map(|row| row["id"].as_u64().unwrap()));
        }
        liked
    };
    assert_eq!(liked().await, created);
    for id in [created[0], created[109]] {
        assert_eq!(bob.like(id).await.ok(200).json, result(false, 0));
    }
    assert_eq!(liked().await, created[1..109]);
    assert_eq!(bob.like(created[0]).await.ok(200).json, result(true, 1));
    assert_eq!(bob.like(created[109]).await.ok(200).json, result(true, 1));
    assert_eq!(liked().await, created);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ninety_six_parallel_likes_count_96() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let users: Vec<_> = (0..96).map(|n| world.user(100 + n, "Liker")).collect();
    let replies = join_all(users.iter().map(|user| user.like(id))).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.json["liked"] == true));
    assert_eq!(world.guest().see("posts/1", id).await["likes_count"], 96);
}
