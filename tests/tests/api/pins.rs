//! `comments.pin` and `comments.unpin`: POST and DELETE `comments/{id}/pin`.

use serde_json::json;
use tests::World;

async fn pinned(world: &World) -> Vec<u64> {
    let list = world.guest().list("posts/1", "per_page=50").await;
    let rows = list.rows().iter().filter(|row| row["pinned"] == true);
    rows.map(|row| row["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_moderator_pins_and_unpins_and_gets_the_comment() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let moderator = world.moderator();
    let reply = moderator.pin(id).await.ok(200);
    assert_eq!(
        (&reply.data()["pinned"], &reply.data()["pinned_at"]),
        (&json!(true), &json!("2050-01-02T03:04:05+00:00"))
    );
    assert_eq!(reply.data(), &moderator.see("posts/1", id).await);
    let reply = moderator.unpin(id).await.ok(200);
    assert_eq!((&reply.data()["pinned"], &reply.data()["pinned_at"]), (&json!(false), &json!(null)));
    assert!(pinned(&world).await.is_empty());
}

#[tokio::test]
async fn pinning_and_unpinning_may_be_repeated() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    let moderator = world.moderator();
    moderator.unpin(id).await.ok(200);
    moderator.pin(id).await.ok(200);
    world.pass(std::time::Duration::from_mins(1));
    let again = moderator.pin(id).await.ok(200);
    assert_eq!(again.data()["pinned_at"], "2050-01-02T03:04:05+00:00");
    assert_eq!(pinned(&world).await, [id]);
}

#[tokio::test]
async fn a_pin_takes_the_place_of_the_threads_other_one() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let (first, second) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    let elsewhere = ada.comment("posts/2", "z").await;
    let moderator = world.moderator();
    for id in [elsewhere, first, second] {
        moderator.pin(id).await.ok(200);
    }
    assert_eq!(pinned(&world).await, [second]);
    moderator.unpin(first).await.ok(200);
    assert_eq!(pinned(&world).await, [second]);
    assert_eq!(world.guest().see("posts/2", elsewhere).await["pinned"], true);
}

#[tokio::test]
async fn deleting_or_rejecting_the_pinned_comment_unpins_it() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let (first, second) = (ada.comment("posts/1", "x").await, ada.comment("posts/1", "y").await);
    moderator.pin(first).await.ok(200);
    ada.remove(first).await.ok(204);
    assert!(pinned(&world).await.is_empty());
    moderator.pin(second).await.ok(200);
    let rejected = moderator.judge(second, "reject").await.ok(200);
    assert_eq!(rejected.data()["pinned"], false);
    let approved = moderator.judge(second, "approve").await.ok(200);
    assert_eq!(approved.data()["pinned"], false);
    assert!(pinned(&world).await.is_empty());
}
