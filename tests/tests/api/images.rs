//! Uploaded images, and their removal: DELETE `media/{name}` (decisions, section 4).

use http::Method;
use http::header::{CONTENT_TYPE, HeaderName};
use tests::{Actor, TestResponse, World};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The settings' base of images.
const BASE: &str = "https://media.example.org";

/// A name that an image may have, and none has.
pub(crate) const IMAGE: &str = "aaaaaaaaaaaaaaaaaaaaaaaa.png";

/// One pixel, of this colour.
pub(crate) fn dot(red: u8) -> Vec<u8> {
    let start: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0";
    [start, &[red, 0, 0, 255, 255, 255], b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"].concat()
}

/// In a body whose parts are told by `boundary`.
pub(crate) async fn upload(actor: &Actor, boundary: &str, file: &[u8]) -> TestResponse {
    let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.gif\"\r\n\r\n");
    let body = [head.as_bytes(), file, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    let actor = actor.clone().with(CONTENT_TYPE, &format!("multipart/form-data; boundary={boundary}"));
    actor.send(Method::POST, "media", body).await
}

/// What an address of an upload's answer gives.
async fn fetch(world: &World, url: &str) -> TestResponse {
    let path = url.strip_prefix(BASE).expect("an address of an image");
    world.guest().send_at(Method::GET, &format!("/media{path}"), "").await
}

/// The addresses of an image and its thumbnail, both there.
async fn stored(world: &World, uploaded: &TestResponse) -> [String; 2] {
    world.wait_until_idle().await;
    let urls = ["url", "thumbnail_url"].map(|field| uploaded.json[field].as_str().unwrap().to_owned());
    for url in &urls {
        fetch(world, url).await.ok(200);
    }
    urls
}

/// By which moderators remove it.
fn removal(url: &str) -> String {
    format!("media/{}", url.rsplit('/').next().unwrap())
}

#[tokio::test]
async fn a_moderator_removes_an_image_and_its_thumbnail() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let urls = stored(&world, &upload(&ada, "b", &dot(1)).await.ok(201)).await;
    let others = stored(&world, &upload(&ada, "b", &dot(2)).await.ok(201)).await;
    // Whether uploads are on or off, and whether it is there or gone.
    for world in [&world, &world.again(&[("SVC_MEDIA", "false")])] {
        let reply = world.moderator().delete(&removal(&urls[0])).await.ok(204);
        assert!(reply.body.is_empty());
    }
    for url in &urls {
        assert_eq!(fetch(&world, url).await.status, 404);
    }
    for url in &others {
        fetch(&world, url).await.ok(200);
    }
}

#[tokio::test]
async fn nobody_but_a_moderator_removes_an_image() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let ada = world.user(7, "Ada");
    let urls = stored(&world, &upload(&ada, "b", &dot(1)).await.ok(201)).await;
    let path = removal(&urls[0]);
    world.guest().delete(&path).await.refused(401, "unauthenticated");
    ada.delete(&path).await.refused(403, "forbidden");
    world.banned().await.delete(&path).await.refused(403, "comment_banned");
    world.again(&[("SVC_READ_ONLY", "true")]).moderator().delete(&path).await.refused(423, "read_only");
    for url in &urls {
        fetch(&world, url).await.ok(200);
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
async fn a_removed_image_sent_again_with_its_key_is_a_new_upload() {
    let world = World::new();
    let keyed = world.user(7, "Ada").with(KEY, "4711");
    let first = upload(&keyed, "b", &dot(1)).await.ok(201);
    let urls = stored(&world, &first).await;
    world.moderator().delete(&removal(&urls[0])).await.ok(204);
    let again = upload(&keyed, "b", &dot(1)).await.ok(201);
    stored(&world, &again).await;
}
