//! `media.store`: POST `media`, thumbnails, and the images as served to browsers.

#[path = "../../../functions/media/imaging/tests/samples/mod.rs"]
mod samples;

use std::fmt;
use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use gif::Repeat;
use http::Method;
use http::header::CONTENT_TYPE;
use image::DynamicImage;
use imaging::{Format, THUMBNAIL_SIDE, clean};
use media::bucket::{self, Name};
use samples::*;
use serde_json::{Value, json};
use server::bucket::Bucket;
use server::settings::MEDIA;
use tests::{Actor, MEDIA_BASE, TestResponse, World};
use thumbnails::Thumbnails;

const MAX: usize = 4 << 20;

fn ada(world: &World) -> Actor {
    world.user(7, "Ada")
}

async fn upload(world: &World, file: &[u8]) -> TestResponse {
    ada(world).upload(&[("file", "a.png", file)]).await
}

fn url<'a>(uploaded: &'a TestResponse, field: &str) -> &'a str {
    uploaded.json[field].as_str().unwrap_or_else(|| panic!("no {field} in {:#}", uploaded.json))
}

async fn accepted(world: &World, file: &[u8]) -> [Bytes; 2] {
    let uploaded = upload(world, file).await.ok(201);
    assert_eq!(uploaded.json.as_object().unwrap().len(), 4);
    world.wait_until_idle().await;
    let image = world.fetch(url(&uploaded, "url")).await.ok(200).body;
    let (width, height) = size(&image);
    assert_eq!((&uploaded.json["width"], &uploaded.json["height"]), (&json!(width), &json!(height)));
    let (name, _) = url(&uploaded, "url").rsplit_once('.').unwrap();
    assert!(name.ends_with(&format!("-{width}x{height}")), "{name}");
    let thumbnail = world.fetch(url(&uploaded, "thumbnail_url")).await.ok(200).body;
    let (width, height) = size(&thumbnail);
    assert!(width.max(height) <= THUMBNAIL_SIDE, "{width} x {height}");
    [image, thumbnail]
}

fn size(file: &[u8]) -> (u32, u32) {
    let picture = clean(file).unwrap();
    (picture.width, picture.height)
}

#[tokio::test]
async fn the_four_formats_are_stored_with_their_thumbnails() {
    let world = World::new();
    let pixels = photo(640, 400, 1);
    let picture = DynamicImage::from(pixels.clone());
    let files = [
        (with_jpeg_exif(&jpeg(&pixels, 80), 6), Format::Jpeg),
        (png(&picture), Format::Png),
        (gif(64, 40, 1, Repeat::Infinite), Format::Gif),
        (lossy_webp(&picture, 80.0), Format::Jpeg),
        (lossless_webp(&picture), Format::Png),
    ];
    for (file, expected) in files {
        let [image, thumbnail] = accepted(&world, &file).await;
        assert_eq!(Format::of(&image), Some(expected));
        assert!(!String::from_utf8_lossy(&image).contains("GPS-SECRET"));
        let (width, height) = size(&image);
        let small = size(&thumbnail);
        assert!((width * small.1).abs_diff(height * small.0) <= width, "{width} x {height} became {small:?}");
    }
}

#[tokio::test]
async fn images_are_served_only_as_images_and_cached_for_a_day() {
    let world = World::new();
    let uploaded = upload(&world, &jpeg(&photo(400, 300, 1), 80)).await.ok(201);
    world.wait_until_idle().await;
    for name in ["url", "thumbnail_url"] {
        let url = url(&uploaded, name);
        let image = world.fetch(url).await.ok(200);
        assert_eq!(image.header("content-type"), "image/jpeg");
        assert_eq!(image.header("x-content-type-options"), "nosniff");
        assert_eq!(image.header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(image.header("cache-control"), "public, max-age=86400");
        assert_eq!(image.header("content-disposition"), "inline; filename=\"image.jpg\"");
        let head = world.fetch_by(Method::HEAD, url, "").await;
        assert!(head.body.is_empty());
        assert_eq!(head.header("content-length"), image.body.len().to_string());
        for method in [Method::PUT, Method::POST, Method::DELETE] {
            assert_eq!(world.fetch_by(method, url, "x").await.status, 405);
        }
    }
}

#[tokio::test]
async fn only_stored_images_are_served_below_media() {
    let world = World::new();
    let uploaded = upload(&world, &png(&quarters(9, 9).into())).await.ok(201);
    let name = url(&uploaded, "url").rsplit_once('/').unwrap().1;
    for path in [
        "/media",
        "/media/",
        "/media/uploads",
        "/media/uploads/",
        "/media/uploads/missing.png",
        &format!("/media/uploads/{}", "a".repeat(300)),
        "/media/thumbnails/missing",
        "/media/uploads/..%2Fuploads%2Fa.png",
        &format!("/media/uploads/./{name}"),
        &format!("/media/uploads/../uploads/{name}"),
        &format!("/media/../media/uploads/{name}"),
        &format!("/media//uploads/{name}"),
        "/media/../table.db",
        "/media/.bucket",
    ] {
        let answer = world.guest().send_at(Method::GET, path, "").await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.is_empty());
        assert_eq!(answer.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn the_name_of_an_image_is_random_and_reveals_nothing_about_the_file() {
    let world = World::new();
    let file = png(&quarters(9, 9).into());
    let mut urls = Vec::new();
    for _ in 0..2 {
        let uploaded = ada(&world).upload(&[("file", "../../secret.html", &file)]).await.ok(201);
        let url = url(&uploaded, "url").to_owned();
        let name = url.strip_prefix(&format!("{MEDIA_BASE}/uploads/")).unwrap().strip_suffix(".png").unwrap();
        assert!(name.len() >= 22 && !name.contains('/'), "{name}");
        assert_eq!(uploaded.json["thumbnail_url"], format!("{MEDIA_BASE}/thumbnails/{name}"));
        urls.push(url);
    }
    assert_ne!(urls[0], urls[1]);
}

#[tokio::test]
async fn a_refused_file_gets_the_reason() {
    let world = World::new();
    let whole = jpeg(&photo(200, 100, 1), 80);
    let (_, bomb) = bombs(30_000, 30_000).swap_remove(0);
    for (file, reason) in [
        (&bomb[..], "25 megapixels"),
        (&whole[..whole.len() / 2], "The image is damaged or incomplete."),
        (b"hello", "The image must be a JPEG, PNG, GIF or WebP."),
    ] {
        let reply = upload(&world, file).await.invalid("file");
        let message = reply.json["message"].as_str().unwrap();
        assert!(message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn four_megabytes_are_taken_and_more_is_413_from_us_and_then_from_the_gateway() {
    let world = World::new();
    let mut random = Random(7);
    let noise = image::RgbImage::from_fn(1_700, 1_000, |_, _| {
        let [r, g, b, ..] = random.next().to_le_bytes();
        image::Rgb([r, g, b])
    });
    let mut file = jpeg(&noise, 92);
    assert!((3 << 20..=MAX).contains(&file.len()), "{}", file.len());
    // Bytes after the end of an image are ignored.
    file.resize(MAX, 0);
    let [image, _] = accepted(&world, &file).await;
    assert_eq!(size(&image), (1_700, 1_000));

    file.push(0);
    upload(&world, &file).await.refused(413, "payload_too_large");
    file.resize(5 << 20, 0);
    let refused = upload(&world, &file).await;
    refused.refused(413, "payload_too_large");

    let world = World::with(&[("SVC_MEDIA_MAX_BYTES", "100")]);
    upload(&world, &[0; 101]).await.refused(413, "payload_too_large");
}

#[tokio::test]
async fn an_upload_must_have_exactly_one_file_in_the_file_field() {
    let world = World::new();
    let (ada, image) = (ada(&world), png(&quarters(9, 9).into()));
    ada.upload(&[]).await.invalid("file");
    ada.upload(&[("file", "a.png", &image), ("file", "b.png", &image)]).await.invalid("file");
    ada.with(CONTENT_TYPE, "application/json").send(Method::POST, "media", "{}").await.invalid("file");
}

#[tokio::test]
async fn the_right_to_upload_is_checked_before_the_file() {
    let world = World::new();
    world.guest().upload(&[]).await.refused(401, "unauthenticated");
    world.guest().with_token("not.a.token").upload(&[]).await.refused(401, "unauthenticated");
    world.moderator().put("users/7/ban", json!({})).await.ok(200);
    ada(&world).upload(&[]).await.refused(403, "comment_banned");

    let open = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let image = png(&quarters(9, 9).into());
    open.guest().upload(&[("file", "a.png", &image)]).await.ok(201);
    open.guest().with_token("not.a.token").upload(&[]).await.refused(401, "unauthenticated");

    let off = World::with(&[("SVC_MEDIA", "false")]);
    off.guest().upload(&[]).await.refused(404, "not_found");
    let read_only = World::with(&[("SVC_READ_ONLY", "true"), ("SVC_MEDIA", "false")]);
    read_only.guest().upload(&[]).await.refused(423, "read_only");
}

#[tokio::test]
async fn uploads_have_a_separate_limit() {
    let world = World::with(&[("SVC_UPLOAD_LIMIT", "2")]);
    for _ in 0..2 {
        upload(&world, b"no image").await.invalid("file");
    }
    upload(&world, b"no image").await.refused(429, "rate_limited");
    ada(&world).comment("posts/1", "still here").await;
}

#[tokio::test]
async fn an_uploaded_image_shows_in_a_comment() {
    let world = World::new();
    let uploaded = upload(&world, &png(&quarters(9, 9).into())).await.ok(201);
    let (url, thumbnail) = (url(&uploaded, "url"), url(&uploaded, "thumbnail_url"));
    let posted = ada(&world).write("posts/1", None, &format!("Look: [![a cat]({thumbnail})]({url})")).await.ok(201);
    let html = posted.data()["html"].as_str().unwrap();
    assert!(html.contains(&format!("<a href=\"{url}\"")), "{html}");
    assert!(html.contains(&format!("<img src=\"{thumbnail}\"")), "{html}");
}

/// Returns the event for an object that was put into the bucket.
fn put(key: &str) -> Value {
    json!({ "Records": [{
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-east-1", "eventTime": "2026-01-02T03:04:05.006Z",
        "eventName": "ObjectCreated:Put", "userIdentity": {}, "requestParameters": {}, "responseElements": {},
        "s3": { "bucket": { "name": MEDIA }, "object": { "key": key, "size": 1 } },
    }]})
}

#[tokio::test]
async fn a_thumbnail_made_again_is_the_same() {
    let world = World::new();
    let uploaded = upload(&world, &jpeg(&photo(640, 400, 1), 80)).await.ok(201);
    world.wait_until_idle().await;
    let thumbnail = url(&uploaded, "thumbnail_url");
    let first = world.fetch(thumbnail).await.ok(200).body;

    let puts = world.bucket().reported();
    let key = url(&uploaded, "url").strip_prefix(&format!("{MEDIA_BASE}/")).unwrap();
    let thumbnails = Thumbnails::new(world.bucket().client());
    thumbnails.handle(serde_json::from_value(put(key)).unwrap()).await.unwrap();
    world.wait_until_idle().await;
    assert_eq!(world.bucket().reported(), puts + 1, "only the thumbnail was put, and it made no other");
    assert_eq!(world.fetch(thumbnail).await.ok(200).body, first);
}

#[tokio::test]
async fn an_object_that_is_not_an_upload_or_is_gone_is_left_alone() {
    let world = World::new();
    let thumbnails = Thumbnails::new(world.bucket().client());
    for key in ["thumbnails/abc", "abc.png", "uploads/a+b.png", "uploads/..%2Fa.png", "uploads/gone.png"] {
        thumbnails.handle(serde_json::from_value(put(key)).unwrap()).await.unwrap();
    }
    assert_eq!(world.bucket().reported(), 0);
}

#[tokio::test]
async fn a_thumbnail_that_cannot_be_made_is_an_error_and_holds_up_no_other() {
    let world = World::new();
    let objects = world.bucket().client();
    let good = clean(&png(&quarters(9, 9).into())).unwrap().bytes;
    for (key, content) in [("uploads/bad.png", b"no image".to_vec()), ("uploads/good.png", good)] {
        objects.put_object().bucket(MEDIA).key(key).body(content.into()).send().await.unwrap();
    }
    let mut event = put("uploads/bad.png");
    let good = put("uploads/good.png")["Records"][0].take();
    event["Records"].as_array_mut().unwrap().push(good);
    let thumbnails = Thumbnails::new(world.bucket().client());
    let fault = thumbnails.handle(serde_json::from_value(event).unwrap()).await.unwrap_err();
    assert!(fault.chain().contains("uploads/bad.png"), "{}", fault.chain());
    world.fetch(&format!("{MEDIA_BASE}/thumbnails/good")).await.ok(200);
    world.fetch(&format!("{MEDIA_BASE}/thumbnails/bad")).await.ok(404);
}

/// A transport that calls `meanwhile` before each `method` request for an object in `folder`.
#[derive(Clone)]
struct Interrupted {
    bucket: Bucket,
    method: &'static str,
    folder: &'static str,
    meanwhile: Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupted").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl HttpConnector for Interrupted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { bucket, method, folder, meanwhile } = self.clone();
        HttpConnectorFuture::new(async move {
            if request.method() == method && request.uri().contains(folder) {
                meanwhile().await;
            }
            bucket.call(request).await
        })
    }
}

fn interrupted(
    bucket: &Bucket,
    [method, folder]: [&'static str; 2],
    meanwhile: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Client {
    let connector = Interrupted { bucket: bucket.clone(), method, folder, meanwhile: Arc::new(meanwhile) };
    let connector = SharedHttpConnector::new(connector);
    let config = bucket.client().config().to_builder().http_client(http_client_fn(move |_, _| connector.clone()));
    Client::from_conf(config.build())
}

/// Creates a bucket with one image and no thumbnail. No function follows the bucket's events. Returns the bucket with
/// the image's key, name and format.
async fn bucket_of_one() -> (Bucket, String, Name, Format) {
    let bucket = Bucket::temporary(MEDIA).unwrap();
    let image = clean(&png(&quarters(9, 9).into())).unwrap();
    let (name, format) = (Name::parse("abc-9x9").unwrap(), image.format);
    let key = name.upload(format);
    bucket::Bucket::new(&bucket.client(), MEDIA).put(&key, image).await.unwrap();
    (bucket, key, name, format)
}

async fn make_thumbnail(objects: Client, key: &str) {
    Thumbnails::new(objects).handle(serde_json::from_value(put(key)).unwrap()).await.unwrap();
}

async fn has(bucket: &Bucket, key: &str) -> bool {
    bucket::Bucket::new(&bucket.client(), MEDIA).has(key).await.unwrap()
}

#[tokio::test]
async fn removing_an_image_while_its_thumbnail_is_made_leaves_no_thumbnail() {
    let (bucket, key, name, format) = bucket_of_one().await;
    let objects = bucket.client();
    let remover = interrupted(&bucket, ["PUT", "/thumbnails/"], move || {
        let objects = objects.clone();
        Box::pin(async move {
            let name = Name::parse("abc-9x9").unwrap();
            bucket::Bucket::new(&objects, MEDIA).remove(&name, format).await.unwrap();
        })
    });
    make_thumbnail(remover, &key).await;
    assert_eq!(bucket.reported(), 2, "the image and its thumbnail were put");
    assert!(!has(&bucket, &key).await && !has(&bucket, &name.thumbnail()).await);
}

#[tokio::test]
async fn making_a_thumbnail_while_its_image_is_removed_leaves_no_thumbnail() {
    let (bucket, key, name, format) = bucket_of_one().await;
    let (objects, made_of) = (bucket.client(), key.clone());
    let maker = interrupted(&bucket, ["DELETE", "/uploads/"], move || {
        let (objects, key) = (objects.clone(), made_of.clone());
        Box::pin(async move { make_thumbnail(objects, &key).await })
    });
    bucket::Bucket::new(&maker, MEDIA).remove(&name, format).await.unwrap();
    assert_eq!(bucket.reported(), 2, "the image and its thumbnail were put");
    assert!(!has(&bucket, &key).await && !has(&bucket, &name.thumbnail()).await);
}

#[tokio::test]
async fn a_thumbnail_of_an_image_that_is_gone_is_removed() {
    let (bucket, key, name, format) = bucket_of_one().await;
    make_thumbnail(bucket.client(), &key).await;
    assert!(has(&bucket, &name.thumbnail()).await);
    bucket::Bucket::new(&bucket.client(), MEDIA).delete(&name.upload(format)).await.unwrap();
    make_thumbnail(bucket.client(), &key).await;
    assert!(!has(&bucket, &name.thumbnail()).await);
}

#[tokio::test]
async fn an_image_that_is_sent_twice_and_removed_after_the_first_answer_stays_removed() {
    let world = World::new();
    let (keyed, file) = (ada(&world).keyed("4711"), png(&DynamicImage::new_rgb8(4000, 4000)));
    // Images are processed one at a time, so the first request completes while the second one waits.
    let send = async || {
        let sent = keyed.upload(&[("file", "a.png", &file)]).await;
        if sent.status == 201 {
            let path = format!("media/{}", url(&sent, "url").rsplit_once('/').unwrap().1);
            world.moderator().delete(&path).await.ok(204);
        }
        sent.status
    };
    let (one, other) = tokio::join!(send(), send());
    assert_eq!([one.min(other), one.max(other)], [201, 404]);
}
