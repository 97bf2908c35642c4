//! `media.destroy`: DELETE `media/{name}`.

use http::Method;
use tests::{Actor, TestResponse, World, dot};

/// A valid name of an image that does not exist.
pub(crate) const IMAGE: &str = "aaaaaaaaaaaaaaaaaaaaaaaa.png";

pub(crate) async fn upload(actor: &Actor, file: &[u8]) -> TestResponse {
    actor.upload(&[("file", "a.gif", file)]).await
}

/// Returns the URLs of an image and its thumbnail, after checking that both are stored.
async fn stored(world: &World, uploaded: &TestResponse) -> [String; 2] {
    world.wait_until_idle().await;
    let urls = ["url", "thumbnail_url"].map(|field| uploaded.json[field].as_str().unwrap().to_owned());
    for url in &urls {
        world.fetch(url).await.ok(200);
    }
    urls
}

fn removal(url: &str) -> String {
    format!("media/{}", url.rsplit('/').next().unwrap())
}

#[tokio::test]
async fn a_moderator_removes_an_image_and_its_thumbnail() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let urls = stored(&world, &upload(&ada, &dot(1)).await.ok(201)).await;
    let others = stored(&world, &upload(&ada, &dot(2)).await.ok(201)).await;
    // Removal also works if the image is already gone, and while uploads are off.
    for world in [&world, &world.again(&[("SVC_MEDIA", "false")])] {
        let reply = world.moderator().delete(&removal(&urls[0])).await.ok(204);
        assert!(reply.body.is_empty());
    }
    ada.delete(&removal(&others[0])).await.refused(403, "forbidden");
    for url in &urls {
        assert_eq!(world.fetch(url).await.status, 404);
    }
    for url in &others {
        world.fetch(url).await.ok(200);
    }
}

#[tokio::test]
async fn removing_images_counts_as_writing() {
    let world = World::with(&[("SVC_WRITE_LIMIT", "2"), ("SVC_UPLOAD_LIMIT", "1")]);
    let moderator = world.moderator();
    let path = format!("media/{IMAGE}");
    for _ in 0..2 {
        moderator.delete(&path).await.ok(204);
    }
    moderator.delete(&path).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn a_name_that_no_image_can_have_is_404() {
    let moderator = World::new().moderator();
    let name = "a".repeat(24);
    let wrong = [
        name.clone(),
        format!("{name}."),
        format!("{name}.txt"),
        format!("{name}.GIF"),
        format!("{name}.gif.gif"),
        format!(".{name}.gif"),
        format!("{name}%2F.gif"),
        format!("..%2Fuploads%2F{name}.gif"),
        format!("{name}%00.gif"),
        format!("{}.gif", "%C3%A4".repeat(12)),
        format!("{}.gif", "a".repeat(65)),
        ".gif".to_owned(),
    ];
    for name in wrong {
        moderator.delete(&format!("media/{name}")).await.refused(404, "not_found");
    }
    moderator.delete(&format!("media/uploads/{name}.gif")).await.refused(404, "not_found");
    moderator.send(Method::POST, &format!("media/{name}.gif"), "").await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn a_removed_image_sent_again_with_its_key_is_404_and_stays_removed() {
    let world = World::new();
    let keyed = world.user(7, "Ada").keyed("4711");
    let first = upload(&keyed, &dot(1)).await.ok(201);
    let urls = stored(&world, &first).await;
    world.moderator().delete(&removal(&urls[0])).await.ok(204);
    upload(&keyed, &dot(1)).await.refused(404, "not_found");
    world.wait_until_idle().await;
    for url in &urls {
        assert_eq!(world.fetch(url).await.status, 404);
    }
}
