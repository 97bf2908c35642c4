//! Images from the upload to what a browser is given, over the whole stack.

#[path = "../../../functions/media/imaging/tests/samples/mod.rs"]
mod samples;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use gif::Repeat;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Response};
use image::DynamicImage;
use imaging::{Format, THUMBNAIL_SIDE, clean};
use jiff::Timestamp;
use local::bucket::Bucket;
use local::engine::Engine;
use local::stack::Stack;
use local::token::Token;
use local::{service, settings};
use samples::*;
use serde_json::{Value, json};
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::{Random as RandomSource, UserId};
use shared::domain::time::Clock;
use shared::domain::user::Ban;
use shared::store::Store;

const ORIGIN: &str = "http://127.0.0.1:3000";
const UPLOAD: &str = "/svc/api/v1/media";
const GUEST: &str = "";
const MAX: usize = 4 << 20;

struct Service {
    stack: Stack,
    bucket: Bucket,
    store: Store,
    config: Config,
}

impl Service {
    fn start(settings: &[(&str, &str)]) -> Self {
        let address: SocketAddr = ORIGIN.trim_start_matches("http://").parse().unwrap();
        let made_here = |name: &str| {
            Some(match name {
                "TABLE_NAME" => "comments".to_owned(),
                "MEDIA_BUCKET" => settings::MEDIA.to_owned(),
                "MEDIA_BASE_URL" => format!("http://{address}/{}", settings::MEDIA),
                "SVC_JWT_SECRET" | "SVC_VISITOR_SALT" => "a secret of these tests, and of no others".to_owned(),
                "SVC_UPLOAD_LIMIT" => "1000".to_owned(),
                "SVC_WRITE_LIMIT" => "2000".to_owned(),
                _ => return None,
            })
        };
        let set = |name: &str| settings.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        let config = Config::from_vars(|name| set(name).or_else(|| made_here(name))).unwrap();
        let (engine, bucket) = (Engine::memory().unwrap(), Bucket::temporary(settings::MEDIA).unwrap());
        let store = Store::new(service::client(&engine), config.table_name.clone(), RandomSource::system());
        let app = App::new(config.clone(), service::client(&engine), Clock::system(), RandomSource::system());
        let stack = service::start(app, engine, bucket.clone(), Vec::new()).unwrap();
        Self { stack, bucket, store, config }
    }

    fn member(&self) -> String {
        Token::new("7", "Ada").sign(&self.config, Timestamp::now().as_second()).unwrap()
    }

    async fn send(&self, method: Method, path: &str, token: &str, kind: &str, body: Vec<u8>) -> Response<Bytes> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, "127.0.0.1:3000");
        if token != GUEST {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        self.stack.gateway.call(request.body(body.into()).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST)).await
    }

    async fn upload_as(&self, token: &str, parts: &[(&str, &str, &[u8])]) -> (u16, Value) {
        let mut body = Vec::new();
        for (field, file_name, content) in parts {
            let head = format!(
                "--XyZ\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{file_name}\"\r\n\
                 Content-Type: image/png\r\n\r\n"
            );
            body.extend([head.as_bytes(), content, b"\r\n"].concat());
        }
        body.extend(b"--XyZ--\r\n");
        let kind = "multipart/form-data; boundary=XyZ";
        let response = self.send(Method::POST, UPLOAD, token, kind, body).await;
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    async fn upload(&self, file: &[u8]) -> (u16, Value) {
        self.upload_as(&self.member(), &[("file", "a.png", file)]).await
    }

    async fn get(&self, url: &str) -> Response<Bytes> {
        self.send(Method::GET, url.strip_prefix(ORIGIN).unwrap_or(url), GUEST, "", Vec::new()).await
    }

    /// What the addresses of an accepted upload give: the image, then its thumbnail.
    async fn accepted(&self, file: &[u8]) -> [Bytes; 2] {
        let (status, answer) = self.upload(file).await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(answer.as_object().unwrap().len(), 2);
        self.stack.wait_until_idle().await;
        let mut contents = [Bytes::new(), Bytes::new()];
        for (content, name) in contents.iter_mut().zip(["url", "thumbnail_url"]) {
            let response = self.get(answer[name].as_str().unwrap()).await;
            assert_eq!(response.status(), 200, "{name}");
            *content = response.into_body();
            let (width, height) = size(content);
            if name == "thumbnail_url" {
                assert!(width.max(height) <= THUMBNAIL_SIDE, "{width} x {height}");
            }
        }
        contents
    }

    async fn refused(&self, file: &[u8]) -> String {
        let (status, answer) = self.upload(file).await;
        assert_eq!((status, &answer["code"]), (422, &json!("validation_failed")), "{answer}");
        assert_eq!(answer["errors"]["file"][0], answer["message"]);
        answer["message"].as_str().unwrap().to_owned()
    }
}

/// Width and height of a JPEG, PNG or GIF.
fn size(file: &[u8]) -> (u32, u32) {
    let picture = clean(file).unwrap();
    (picture.width, picture.height)
}

fn text(file: &[u8]) -> String {
    String::from_utf8_lossy(file).to_lowercase()
}

#[tokio::test]
async fn the_four_formats_are_stored_with_their_thumbnails() {
    let service = Service::start(&[]);
    let pixels = photo(640, 400, 1);
    let picture = DynamicImage::from(pixels.clone());
    let files = [
        (jpeg(&pixels, 80), Format::Jpeg),
        (png(&picture), Format::Png),
        (gif(64, 40, 1, Repeat::Infinite), Format::Gif),
        (lossy_webp(&picture, 80.0), Format::Jpeg),
        (lossless_webp(&picture), Format::Png),
    ];
    for (file, expected) in files {
        let [image, thumbnail] = service.accepted(&file).await;
        assert_eq!(Format::of(&image), Some(expected));
        let (width, height) = size(&image);
        let small = size(&thumbnail);
        assert!((width * small.1).abs_diff(height * small.0) <= width, "{width} x {height} became {small:?}");
    }
}

#[tokio::test]
async fn images_are_served_as_nothing_but_images_for_a_day() {
    let service = Service::start(&[]);
    let (_, answer) = service.upload(&jpeg(&photo(400, 300, 1), 80)).await;
    service.stack.wait_until_idle().await;
    for name in ["url", "thumbnail_url"] {
        let url = answer[name].as_str().unwrap();
        let response = service.get(url).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap();
        assert_eq!(header("content-type"), "image/jpeg");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(header("cache-control"), "public, max-age=86400");
        assert_eq!(header("content-disposition"), "inline; filename=\"image.jpg\"");
        let path = url.strip_prefix(ORIGIN).unwrap();
        let head = service.send(Method::HEAD, path, GUEST, "", Vec::new()).await;
        assert!(head.body().is_empty());
        assert_eq!(head.headers()["content-length"], response.body().len().to_string());
        for method in [Method::PUT, Method::POST, Method::DELETE] {
            assert_eq!(service.send(method, path, GUEST, "", b"x".to_vec()).await.status(), 405);
        }
    }
}

#[tokio::test]
async fn nothing_but_objects_is_served() {
    let service = Service::start(&[]);
    let (_, answer) = service.upload(&png(&quarters(9, 9).into())).await;
    let name = answer["url"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned();
    for path in [
        "/media",
        "/media/",
        "/media/uploads",
        "/media/uploads/",
        "/media/uploads/missing.png",
        "/media/thumbnails/missing",
        "/media/uploads/..%2Fuploads%2Fa.png",
        &format!("/media/uploads/./{name}"),
        &format!("/media/uploads/../uploads/{name}"),
        &format!("/media/../media/uploads/{name}"),
        &format!("/media//uploads/{name}"),
        "/media/../table.db",
        "/media/.bucket",
    ] {
        let response = service.get(path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert!(response.body().is_empty());
        assert_eq!(response.headers()["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn a_key_says_nothing_of_the_file_and_no_two_are_alike() {
    let service = Service::start(&[]);
    let file = png(&quarters(9, 9).into());
    let mut urls = Vec::new();
    for _ in 0..2 {
        let parts = [("file", "../../secret.html", &file[..])];
        let (_, answer) = service.upload_as(&service.member(), &parts).await;
        let url = answer["url"].as_str().unwrap().to_owned();
        let name = url.strip_prefix("http://127.0.0.1:3000/media/uploads/").unwrap().strip_suffix(".png").unwrap();
        assert!(name.len() >= 22 && !name.contains('/'), "{name}");
        assert_eq!(answer["thumbnail_url"], format!("http://127.0.0.1:3000/media/thumbnails/{name}"));
        urls.push(url);
    }
    assert_ne!(urls[0], urls[1]);
}

#[tokio::test]
async fn a_rotated_phone_photo_stands_upright_and_tells_no_place() {
    let service = Service::start(&[]);
    let file = with_jpeg_exif(&jpeg(&photo(640, 400, 1), 80), 6);
    assert!(text(&file).contains("gps-secret"));
    let [image, thumbnail] = service.accepted(&file).await;
    assert_eq!(size(&image), (400, 640));
    assert_eq!(size(&thumbnail), (200, 320));
    for stored in [image, thumbnail] {
        assert!(!text(&stored).contains("exif") && !text(&stored).contains("gps-secret"));
    }
}

#[tokio::test]
async fn an_animated_gif_stays_animated_and_its_thumbnail_stands_still() {
    let service = Service::start(&[]);
    let [image, thumbnail] = service.accepted(&gif(400, 300, 5, Repeat::Infinite)).await;
    let mut decoder = gif::Decoder::new(&*image).unwrap();
    let mut frames = 0;
    while decoder.read_next_frame().unwrap().is_some() {
        frames += 1;
    }
    assert_eq!((frames, decoder.repeat()), (5, Repeat::Infinite));
    assert_ne!(Format::of(&thumbnail), Some(Format::Gif));
    assert_eq!(size(&thumbnail), (320, 240));
}

#[tokio::test]
async fn a_bomb_is_refused() {
    let service = Service::start(&[]);
    for (name, file) in bombs(30_000, 30_000) {
        assert!(service.refused(&file).await.contains("25 megapixels"), "{name}");
    }
}

#[tokio::test]
async fn a_truncated_file_and_one_that_is_no_image_are_refused() {
    let service = Service::start(&[]);
    let whole = jpeg(&photo(200, 100, 1), 80);
    assert_eq!(service.refused(&whole[..whole.len() / 2]).await, "The image is damaged or incomplete.");
    let others =
        ["<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "<html><script>alert(1)</script>", "%PDF-1.7", "hello"];
    for other in others {
        let message = service.refused(other.as_bytes()).await;
        assert_eq!(message, "The file must be a JPEG, PNG, GIF or WebP image.", "{other}");
    }
}

#[tokio::test]
async fn a_mislabelled_file_is_what_its_bytes_say() {
    let service = Service::start(&[]);
    // Every part is sent as a.png, image/png.
    let (_, answer) = service.upload(&jpeg(&photo(64, 64, 1), 80)).await;
    let url = answer["url"].as_str().unwrap();
    assert!(std::path::Path::new(url).extension().is_some_and(|extension| extension == "jpg"), "{url}");
    assert_eq!(service.get(url).await.headers()["content-type"], "image/jpeg");
}

#[tokio::test]
async fn of_a_polyglot_only_the_pixels_are_left() {
    let service = Service::start(&[]);
    let script = b"*/=1;</style><script>alert(document.domain)</script>PK\x03\x04evil.jar";
    let pixels = quarters(40, 40);
    let files = [
        [&jpeg(&pixels, 90)[..], script].concat(),
        with_jpeg_segment(&jpeg(&pixels, 90), 0xFE, script),
        with_png_chunk(&png(&pixels.into()), b"tEXt", script),
        [&gif(20, 20, 2, Repeat::Infinite)[..], script].concat(),
    ];
    for file in files {
        for stored in service.accepted(&file).await {
            let stored = text(&stored);
            assert!(!stored.contains("script") && !stored.contains("evil") && !stored.contains("pk\x03\x04"));
        }
    }
}

#[tokio::test]
async fn four_megabytes_are_taken_and_more_is_413_from_us_and_then_from_the_gateway() {
    let service = Service::start(&[]);
    let mut random = Random(7);
    let noise = image::RgbImage::from_fn(1_700, 1_000, |_, _| {
        let [r, g, b, ..] = random.next().to_le_bytes();
        image::Rgb([r, g, b])
    });
    let mut file = jpeg(&noise, 92);
    assert!((3 << 20..=MAX).contains(&file.len()), "{}", file.len());
    // What follows an image is ignored.
    file.resize(MAX, 0);
    let [image, _] = service.accepted(&file).await;
    assert_eq!(size(&image), (1_700, 1_000));

    file.push(0);
    let (status, answer) = service.upload(&file).await;
    assert_eq!((status, &answer["code"]), (413, &json!("payload_too_large")));
    file.resize(5 << 20, 0);
    assert_eq!(service.upload(&file).await, (413, json!({ "message": "Request Entity Too Large" })));

    let service = Service::start(&[("SVC_MEDIA_MAX_BYTES", "100")]);
    assert_eq!(service.upload(&[0; 101]).await.0, 413);
}

#[tokio::test]
async fn exactly_one_file_in_the_field_file_is_taken() {
    let service = Service::start(&[]);
    let (token, image) = (service.member(), png(&quarters(9, 9).into()));
    let bad: [&[(&str, &str, &[u8])]; 5] = [
        &[],
        &[("file", "a.png", b"")],
        &[("image", "a.png", &image)],
        &[("file", "a.png", &image), ("file", "b.png", &image)],
        &[("file", "a.png", &image), ("other", "b.png", b"x")],
    ];
    for parts in bad {
        let (status, answer) = service.upload_as(&token, parts).await;
        assert_eq!(status, 422, "{answer}");
        assert!(answer["errors"]["file"][0].is_string(), "{answer}");
    }
    let others = [("", &b""[..]), ("application/json", b"{}"), ("multipart/form-data", b"x"), ("image/png", &image)];
    for (kind, body) in others {
        let response = service.send(Method::POST, UPLOAD, &token, kind, body.to_vec()).await;
        assert_eq!(response.status(), 422, "{kind}");
    }
}

#[tokio::test]
async fn who_may_upload_is_checked_before_the_file() {
    let nothing: &[(&str, &str, &[u8])] = &[];
    let service = Service::start(&[]);
    let (status, answer) = service.upload_as(GUEST, nothing).await;
    assert_eq!((status, &answer["code"]), (401, &json!("unauthenticated")));
    assert_eq!(service.upload_as("not.a.token", nothing).await.0, 401);
    let ban = Ban { until: None, reason: None };
    service.store.set_ban(UserId(7), Some(ban)).await.unwrap();
    let (status, answer) = service.upload_as(&service.member(), nothing).await;
    assert_eq!((status, &answer["code"]), (403, &json!("comment_banned")));

    let guests = Service::start(&[("SVC_ALLOW_GUESTS", "true")]);
    let image = png(&quarters(9, 9).into());
    assert_eq!(guests.upload_as(GUEST, &[("file", "a.png", &image)]).await.0, 201);
    assert_eq!(guests.upload_as("not.a.token", nothing).await.0, 401);

    let off = Service::start(&[("SVC_MEDIA", "false")]);
    let (status, answer) = off.upload_as(GUEST, nothing).await;
    assert_eq!((status, &answer["code"]), (404, &json!("not_found")));
    let read_only = Service::start(&[("SVC_READ_ONLY", "true"), ("SVC_MEDIA", "false")]);
    let (status, answer) = read_only.upload_as(GUEST, nothing).await;
    assert_eq!((status, &answer["code"]), (423, &json!("read_only")));
}

#[tokio::test]
async fn uploads_have_a_limit_of_their_own() {
    let service = Service::start(&[("SVC_UPLOAD_LIMIT", "2")]);
    for _ in 0..2 {
        assert_eq!(service.upload(b"no image").await.0, 422);
    }
    let (status, answer) = service.upload(b"no image").await;
    assert_eq!((status, &answer["code"]), (429, &json!("rate_limited")));
    let kind = "application/json";
    let comment = br#"{"body": "still here"}"#.to_vec();
    let posted = service.send(Method::POST, "/svc/api/v1/posts/1/comments", &service.member(), kind, comment).await;
    assert_eq!(posted.status(), 201);
}

#[tokio::test]
async fn another_method_is_405() {
    let service = Service::start(&[]);
    let response = service.send(Method::GET, UPLOAD, GUEST, "", Vec::new()).await;
    assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"POST".parse().unwrap()));
}

#[tokio::test]
async fn an_uploaded_image_shows_in_a_comment() {
    let service = Service::start(&[]);
    let (_, answer) = service.upload(&png(&quarters(9, 9).into())).await;
    let (url, thumbnail) = (answer["url"].as_str().unwrap(), answer["thumbnail_url"].as_str().unwrap());
    let body = json!({ "body": format!("Look: [![a cat]({thumbnail})]({url})") }).to_string();
    let path = "/svc/api/v1/posts/1/comments";
    let posted = service.send(Method::POST, path, &service.member(), "application/json", body.into()).await;
    let posted: Value = serde_json::from_slice(posted.body()).unwrap();
    let html = posted["data"]["html"].as_str().unwrap_or_else(|| panic!("{posted}"));
    assert!(html.contains(&format!("<a href=\"{url}\"")), "{html}");
    assert!(html.contains(&format!("<img src=\"{thumbnail}\"")), "{html}");
}

/// As the bucket tells of a put.
fn put(key: &str) -> Value {
    json!({ "Records": [{
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-east-1", "eventTime": "2026-01-02T03:04:05.006Z",
        "eventName": "ObjectCreated:Put", "userIdentity": {}, "requestParameters": {}, "responseElements": {},
        "s3": { "bucket": { "name": settings::MEDIA }, "object": { "key": key, "size": 1 } },
    }]})
}

#[tokio::test]
async fn a_thumbnail_made_again_is_the_same() {
    let service = Service::start(&[]);
    let (_, answer) = service.upload(&jpeg(&photo(640, 400, 1), 80)).await;
    service.stack.wait_until_idle().await;
    let thumbnail = answer["thumbnail_url"].as_str().unwrap();
    let first = service.get(thumbnail).await.into_body();

    let puts = service.bucket.reported();
    let key = answer["url"].as_str().unwrap().strip_prefix("http://127.0.0.1:3000/media/").unwrap();
    let thumbnails = thumbnails::Thumbnails::new(service.bucket.client());
    thumbnails.handle(serde_json::from_value(put(key)).unwrap()).await.unwrap();
    service.stack.wait_until_idle().await;
    assert_eq!(service.bucket.reported(), puts + 1, "only the thumbnail was put, and it made no other");
    assert_eq!(service.get(thumbnail).await.into_body(), first);
}

#[tokio::test]
async fn an_object_that_is_no_upload_or_gone_is_left_alone() {
    let service = Service::start(&[]);
    let thumbnails = thumbnails::Thumbnails::new(service.bucket.client());
    for key in ["thumbnails/abc", "abc.png", "uploads/a+b.png", "uploads/..%2Fa.png", "uploads/gone.png"] {
        thumbnails.handle(serde_json::from_value(put(key)).unwrap()).await.unwrap();
    }
    assert_eq!(service.bucket.reported(), 0);
}

#[tokio::test]
async fn a_thumbnail_that_cannot_be_made_is_an_error_and_holds_up_no_other() {
    let service = Service::start(&[]);
    let objects = service.bucket.client();
    let good = clean(&png(&quarters(9, 9).into())).unwrap().bytes;
    for (key, content) in [("uploads/bad.png", b"no image".to_vec()), ("uploads/good.png", good)] {
        objects.put_object().bucket(settings::MEDIA).key(key).body(content.into()).send().await.unwrap();
    }
    let mut event = put("uploads/bad.png");
    let good = put("uploads/good.png")["Records"][0].take();
    event["Records"].as_array_mut().unwrap().push(good);
    let thumbnails = thumbnails::Thumbnails::new(service.bucket.client());
    let fault = thumbnails.handle(serde_json::from_value(event).unwrap()).await.unwrap_err();
    assert!(fault.chain().contains("uploads/bad.png"), "{}", fault.chain());
    assert_eq!(service.get("/media/thumbnails/good").await.status(), 200);
    assert_eq!(service.get("/media/thumbnails/bad").await.status(), 404);
}
