use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use shared::aws::call::Transport;
use shared::domain::time::Timestamp;

use super::protocol::MAX_BODY;
use super::*;

/// One queue, its dead letters, and a clock that the test moves.
struct Fixture {
    queues: Queues,
    now: Arc<AtomicI64>,
}

fn settings() -> Vec<QueueSettings> {
    let redrive = Some(Redrive { max_receives: 2, dead_letters: "Dead".to_owned() });
    let queue =
        |name: &str, redrive| QueueSettings { name: name.to_owned(), visibility: Duration::from_secs(30), redrive };
    vec![queue("Jobs", redrive), queue("Dead", None)]
}

impl Fixture {
    fn new(root: Option<&Path>) -> Self {
        let now = Arc::new(AtomicI64::new(1_000_000));
        let clock = Clock::new({
            let now = Arc::clone(&now);
            move || Timestamp(now.load(Ordering::Relaxed))
        });
        let queues = match root {
            Some(root) => Queues::open(root, settings(), clock, Random::system()),
            None => Queues::temporary(settings(), clock, Random::system()),
        };
        Self { queues: queues.unwrap(), now }
    }

    fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    async fn ask(&self, operation: &str, request: Value) -> Value {
        let mut request = request;
        if request["QueueUrl"].is_null() {
            request["QueueUrl"] = Queues::url("Jobs").into();
        }
        self.queues.answer(operation, request.to_string().as_bytes()).await.1
    }

    async fn bodies(&self, request: Value) -> Vec<String> {
        let answer = self.ask("ReceiveMessage", request).await;
        let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
        messages.iter().map(|message| message["Body"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_message_is_received_once_until_its_visibility_ends_and_not_after_it_was_deleted() {
    let fixture = Fixture::new(None);
    let sent = fixture.ask("SendMessage", json!({ "MessageBody": "one" })).await;
    assert_eq!(sent["MD5OfMessageBody"], "f97c5d29941bfb1b2fdab0874906ab82");
    assert_eq!(fixture.bodies(json!({})).await, ["one"]);
    assert!(fixture.bodies(json!({})).await.is_empty());
    fixture.pass(30);
    let again = fixture.ask("ReceiveMessage", json!({})).await;
    assert_eq!(again["Messages"][0]["Attributes"]["ApproximateReceiveCount"], "2");
    fixture.ask("DeleteMessage", json!({ "ReceiptHandle": again["Messages"][0]["ReceiptHandle"] })).await;
    fixture.pass(30);
    assert!(fixture.bodies(json!({})).await.is_empty());
}

#[tokio::test]
async fn an_old_receipt_deletes_nothing() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "one" })).await;
    let first = fixture.ask("ReceiveMessage", json!({ "VisibilityTimeout": 0 })).await;
    fixture.ask("ReceiveMessage", json!({ "VisibilityTimeout": 0 })).await;
    fixture.ask("DeleteMessage", json!({ "ReceiptHandle": first["Messages"][0]["ReceiptHandle"] })).await;
    assert_eq!(fixture.ask("GetQueueAttributes", json!({})).await["Attributes"]["ApproximateNumberOfMessages"], "1");
    let bad = fixture.ask("DeleteMessage", json!({ "ReceiptHandle": "x" })).await;
    assert_eq!(bad["__type"], "com.amazonaws.sqs#ReceiptHandleIsInvalid");
}

#[tokio::test]
async fn a_delayed_message_waits() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "later", "DelaySeconds": 900 })).await;
    fixture.pass(899);
    assert!(fixture.bodies(json!({})).await.is_empty());
    fixture.pass(1);
    assert_eq!(fixture.bodies(json!({})).await, ["later"]);
}

#[tokio::test]
async fn a_message_that_is_received_too_often_becomes_a_dead_letter() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "poison" })).await;
    for _ in 0..2 {
        assert_eq!(fixture.bodies(json!({})).await, ["poison"]);
        fixture.pass(30);
    }
    assert!(fixture.bodies(json!({})).await.is_empty());
    assert_eq!(fixture.bodies(json!({ "QueueUrl": Queues::url("Dead") })).await, ["poison"]);
}

#[tokio::test]
async fn visibility_can_be_changed_up_to_twelve_hours_after_the_receipt() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "one" })).await;
    let receipt = fixture.ask("ReceiveMessage", json!({})).await["Messages"][0]["ReceiptHandle"].clone();
    let change = |timeout: u64| json!({ "ReceiptHandle": receipt, "VisibilityTimeout": timeout });
    fixture.pass(3_600);
    let answer = fixture.ask("ChangeMessageVisibility", change(12 * 3_600)).await;
    assert_eq!(answer["__type"], "com.amazonaws.sqs#InvalidParameterValue");
    assert_eq!(fixture.ask("ChangeMessageVisibility", change(11 * 3_600)).await, json!({}));
    fixture.pass(11 * 3_600 - 1);
    assert!(fixture.bodies(json!({})).await.is_empty());
    fixture.pass(1);
    assert_eq!(fixture.bodies(json!({})).await, ["one"]);
}

#[tokio::test]
async fn messages_are_there_after_the_process_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(Some(directory.path()));
    let entries = json!([{ "Id": "a", "MessageBody": "one" }, { "Id": "b", "MessageBody": "" }]);
    let sent = fixture.ask("SendMessageBatch", json!({ "Entries": entries })).await;
    assert_eq!((&sent["Successful"][0]["Id"], &sent["Failed"][0]["Id"]), (&json!("a"), &json!("b")));
    assert_eq!(fixture.bodies(json!({})).await, ["one"]);
    fs::write(directory.path().join("Jobs/torn.partial"), "{").unwrap();

    let next = Fixture::new(Some(directory.path()));
    assert_eq!(next.bodies(json!({})).await, ["one"]);
    next.ask("PurgeQueue", json!({})).await;
    assert_eq!(Fixture::new(Some(directory.path())).queues.next_visible(), None);
}

#[test]
fn a_damaged_message_is_named_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    Fixture::new(Some(directory.path()));
    let file = directory.path().join("Jobs/1.json");
    for content in ["", "{\"id\":", "junk", "{}"] {
        fs::write(&file, content).unwrap();
        let opened = Queues::open(directory.path(), settings(), Clock::system(), Random::system());
        let error = opened.err().unwrap().to_string();
        assert!(error.starts_with(&format!("{}: ", file.display())), "{error}");
        assert!(error.ends_with("; restore this message of a queue, or move it away to start without it"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), content.as_bytes());
    }
}

#[tokio::test]
async fn bad_requests_are_refused_as_sqs_does() {
    let fixture = Fixture::new(None);
    for (operation, request, error) in [
        ("SendMessage", json!({ "QueueUrl": "http://x/1/none", "MessageBody": "x" }), "QueueDoesNotExist"),
        ("SendMessage", json!({ "MessageBody": "x", "DelaySeconds": 901 }), "InvalidParameterValue"),
        ("SendMessage", json!({ "MessageBody": "x".repeat(MAX_BODY + 1) }), "InvalidParameterValue"),
        ("ReceiveMessage", json!({ "MaxNumberOfMessages": 11 }), "InvalidParameterValue"),
        ("SendMessageBatch", json!({ "Entries": [] }), "InvalidParameterValue"),
        ("ListQueues", json!({}), "UnsupportedOperation"),
    ] {
        let answer = fixture.ask(operation, request).await;
        assert_eq!(answer["__type"], format!("com.amazonaws.sqs#{error}"), "{operation}");
    }
}

#[tokio::test]
async fn a_long_poll_ends_when_a_message_comes() {
    let fixture = Fixture::new(None);
    let poll = fixture.bodies(json!({ "WaitTimeSeconds": 20 }));
    let send = async {
        tokio::task::yield_now().await;
        fixture.ask("SendMessage", json!({ "MessageBody": "soon" })).await
    };
    assert_eq!(tokio::join!(poll, send).0, ["soon"]);
}

#[tokio::test]
async fn a_request_in_another_version_of_the_protocol_is_refused() {
    let fixture = Fixture::new(None);
    let send = async |content_type: &str| {
        let message = json!({ "QueueUrl": Queues::url("Jobs"), "MessageBody": "one" });
        let request = http::Request::post("http://sqs.local/")
            .header("content-type", content_type)
            .header("x-amz-target", "AmazonSQS.SendMessage")
            .body(message.to_string());
        Transport::send(&fixture.queues, request.unwrap()).await.unwrap().status().as_u16()
    };
    for other in ["application/x-amz-json-1.1", "application/json", "application/x-www-form-urlencoded", ""] {
        assert_eq!(send(other).await, 400, "{other}");
    }
    assert_eq!(fixture.queues.bodies("Jobs").unwrap().len(), 0);
    assert_eq!(send("application/x-amz-json-1.0").await, 200);
    assert_eq!(fixture.queues.bodies("Jobs").unwrap(), ["one"]);
}
