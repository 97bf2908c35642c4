//! The events in `tests/events`, which `cargo lambda invoke` also sends. They parse like events from AWS, and the
//! functions handle them. No function follows the table's stream here.

use aws_lambda_events::event::{dynamodb, s3};
use aws_sdk_dynamodb::types::AttributeValue::{self, L, N, S};
use image::DynamicImage;
use lambda_http::request::LambdaRequest;
use serde_json::{Value, json};
use server::bucket::Bucket;
use server::engine::Engine;
use server::service;
use server::settings::JOBS;
use server::template::Template;
use shared::app::{App, Queues};
use shared::config::Config;
use shared::domain::ids::{CommentId, Random};
use shared::domain::time::{Clock, Timestamp};
use shared::store::Reading;
use shared::store::users::Search;
use thumbnails::Thumbnails;

const TABLE: &str = "comments";
const EVENTS: &str = include_str!("../../events/events.json");
const THUMBNAILS: &str = include_str!("../../events/thumbnails.json");
const UI: &str = include_str!("../../events/ui.json");

fn app(engine: &Engine) -> App {
    engine.create_table(TABLE, &Template::deployed(&[]).unwrap().table().unwrap()).unwrap();
    let config = Config::from_vars(|name| match name {
        "TABLE_NAME" => Some(TABLE.to_owned()),
        "SVC_JWT_SECRET" | "SVC_VISITOR_SALT" => Some("a secret of these tests, and of no others".to_owned()),
        _ => None,
    });
    App::new(config.unwrap(), service::client(engine), Queues::default(), Clock::system(), Random::system())
}

#[tokio::test]
async fn a_record_of_the_stream_triggers_the_removal_of_replies_and_old_names() {
    let engine = Engine::memory().unwrap();
    let queues =
        server::queue::Queues::temporary(service::queue_settings().unwrap(), Clock::system(), Random::system())
            .unwrap();
    let app = App { queues: service::app_queues(&queues), ..app(&engine) };
    let put = |item: Vec<(&str, AttributeValue)>| {
        let item = item.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        engine.client().put_item().table_name(TABLE).set_item(Some(item)).send()
    };
    let text = |text: &str| S(text.to_owned());
    let (parent, reply) = (243_999_226_675_986_u64, 243_999_226_802_298_u64);
    let comment = [
        ("pk", text(&format!("C#{reply}"))),
        ("sk", text("C")),
        ("i", N(reply.to_string())),
        ("t", text("posts#42")),
        ("ok", text(&format!("C#{parent}"))),
        ("p", L(vec![N(parent.to_string())])),
        ("u", N("7".to_owned())),
        ("a", text("U#7")),
        ("n", text("Ada Byron")),
        ("b", text("Thanks.")),
    ];
    put(comment.to_vec()).await.unwrap();
    let user = [("pk", text("U#7")), ("sk", text("U")), ("u", N("7".to_owned())), ("n", text("Ada Lovelace"))];
    put(user.to_vec()).await.unwrap();
    let fragment = [("pk", text("N#1#b")), ("sk", text("byron#7")), ("u", N("7".to_owned())), ("n", text("Ada Byron"))];
    put(fragment.to_vec()).await.unwrap();
    let now = Timestamp(0);
    assert_eq!(app.store.find_users("byron", Search::MENTIONS, now).await.unwrap().len(), 1);

    let parsed: dynamodb::Event = serde_json::from_str(EVENTS).unwrap();
    assert_eq!(parsed.records.iter().map(|record| &*record.event_name).collect::<Vec<_>>(), ["REMOVE", "MODIFY"]);
    let event: Value = serde_json::from_str(EVENTS).unwrap();
    events::handle(&app, &event).await.unwrap();
    let messages = queues.receive(JOBS, 10).unwrap();
    let jobs = json!({ "Records": messages.iter().map(|job| json!({ "body": job.body })).collect::<Vec<_>>() });
    assert_eq!(jobs::handle(&app, &jobs).await, json!({ "batchItemFailures": [] }));
    assert!(app.store.comment_with_ancestors(CommentId(reply), Reading::Consistent).await.unwrap().is_none());
    assert!(app.store.find_users("byron", Search::MENTIONS, now).await.unwrap().is_empty());
    assert_eq!(app.store.find_users("lovelace", Search::MENTIONS, now).await.unwrap()[0].name, "Ada Lovelace");
}

#[tokio::test]
async fn an_upload_gets_a_thumbnail_and_any_other_object_gets_none() {
    let event: s3::S3Event = serde_json::from_str(THUMBNAILS).unwrap();
    let name = event.records[0].s3.bucket.name.clone().unwrap();
    let bucket = Bucket::temporary(&name).unwrap();
    let mut file = std::io::Cursor::new(Vec::new());
    let mut encoder = png::Encoder::new(&mut file, 640, 400);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(DynamicImage::new_rgb8(640, 400).as_bytes()).unwrap();
    let file = file.into_inner();
    let key = event.records[0].s3.object.key.clone().unwrap();
    for key in [&*key, "uploads/put by hand (café).png"] {
        bucket.client().put_object().bucket(&name).key(key).body(file.clone().into()).send().await.unwrap();
    }
    Thumbnails::new(bucket.client()).handle(event).await.unwrap();
    assert_eq!(bucket.reported(), 3, "two uploads and one thumbnail");
    let thumbnail = bucket.client().get_object().bucket(&name).key("thumbnails/dGhlLW5hbWVfb2YtYS1maWxl");
    assert_eq!(thumbnail.send().await.unwrap().content_type.as_deref(), Some("image/png"));
}

#[tokio::test]
async fn a_request_of_the_gateway_is_handled() {
    let app = app(&Engine::memory().unwrap());
    let request: LambdaRequest = serde_json::from_str(UI).unwrap();
    let answer = app.answer(&ui::handle, request.into()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-language"], "de");
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(body["data"]["auth"]["authenticated"], false);
}
