use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use shared::aws::call::Transport;
use shared::domain::time::Timestamp;

use super::protocol::MAX_BODY;
use super::*;

/// One queue, its dead-letter queue, and a clock that the test moves.
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

    fn ask(&self, operation: &str, request: Value) -> Value {
        let mut request = request;
        if request["QueueUrl"].is_null() {
            request["QueueUrl"] = Queues::url("Jobs").into();
        }
        self.queues.answer(operation, request.to_string().as_bytes()).1
    }

    fn bodies(&self) -> Vec<String> {
        self.queues.receive("Jobs", 10).unwrap().into_iter().map(|message| message.body).collect()
    }
}

#[test]
fn a_message_is_received_once_until_its_visibility_ends_and_not_after_it_was_deleted() {
    let fixture = Fixture::new(None);
    let sent = fixture.ask("SendMessage", json!({ "MessageBody": "one" }));
    assert_eq!(sent["MD5OfMessageBody"], "f97c5d29941bfb1b2fdab0874906ab82");
    let first = fixture.ask("ReceiveMessage", json!({}));
    assert_eq!(first["Messages"][0]["Body"], "one");
    assert_eq!(fixture.ask("ReceiveMessage", json!({})), json!({}));
    fixture.pass(30);
    let again = fixture.queues.receive("Jobs", 1).unwrap().remove(0);
    assert_eq!(again.attributes()["ApproximateReceiveCount"], "2");
    fixture.queues.delete("Jobs", &again).unwrap();
    fixture.pass(30);
    assert!(fixture.bodies().is_empty());
}

#[test]
fn an_old_receipt_deletes_and_changes_nothing() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "one" }));
    let first = fixture.queues.receive("Jobs", 1).unwrap().remove(0);
    fixture.pass(30);
    assert_eq!(fixture.bodies(), ["one"]);
    fixture.queues.delete("Jobs", &first).unwrap();
    assert_eq!(fixture.queues.bodies("Jobs").unwrap(), ["one"]);
    for receipt in [first.receipt(), ""] {
        let change = json!({ "ReceiptHandle": receipt, "VisibilityTimeout": 60 });
        let answer = fixture.ask("ChangeMessageVisibility", change);
        assert_eq!(answer["__type"], "com.amazonaws.sqs#ReceiptHandleIsInvalid");
    }
}

#[test]
fn a_delayed_message_waits() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "later", "DelaySeconds": 900 }));
    fixture.pass(899);
    assert!(fixture.bodies().is_empty());
    fixture.pass(1);
    assert_eq!(fixture.bodies(), ["later"]);
}

#[test]
fn a_message_sent_while_the_clock_was_ahead_is_visible_once_the_clock_is_corrected() {
    let fixture = Fixture::new(None);
    for ahead in [0, 10, 3_600] {
        fixture.pass(ahead);
        fixture.ask("SendMessage", json!({ "MessageBody": "sent", "DelaySeconds": 900 }));
        fixture.pass(-ahead);
        let (now, is_visible) = (Timestamp(fixture.now.load(Ordering::Relaxed)), ahead == 3_600);
        let expected: &[&str] = if is_visible { &["sent"] } else { &[] };
        assert_eq!(fixture.queues.next_visible() == Some(now), is_visible, "{ahead}");
        assert_eq!(fixture.bodies(), expected, "{ahead}");
        fixture.queues.clear("Jobs").unwrap();

        fixture.ask("SendMessage", json!({ "MessageBody": "sent" }));
        fixture.pass(ahead);
        assert_eq!(fixture.bodies(), ["sent"], "{ahead}");
        fixture.pass(-ahead);
        assert_eq!(fixture.bodies(), expected, "received {ahead} seconds ahead");
        fixture.queues.clear("Jobs").unwrap();
    }
}

#[test]
fn a_message_that_is_received_too_often_becomes_a_dead_letter() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "poison" }));
    for _ in 0..2 {
        assert_eq!(fixture.bodies(), ["poison"]);
        fixture.pass(30);
    }
    assert!(fixture.bodies().is_empty());
    assert_eq!(fixture.queues.bodies("Dead").unwrap(), ["poison"]);
}

#[test]
fn visibility_can_be_changed_up_to_twelve_hours_after_the_receipt() {
    let fixture = Fixture::new(None);
    fixture.ask("SendMessage", json!({ "MessageBody": "one" }));
    let receipt = fixture.ask("ReceiveMessage", json!({}))["Messages"][0]["ReceiptHandle"].clone();
    let change = |timeout: u64| json!({ "ReceiptHandle": receipt, "VisibilityTimeout": timeout });
    fixture.pass(3_600);
    let answer = fixture.ask("ChangeMessageVisibility", change(12 * 3_600));
    assert_eq!(answer["__type"], "com.amazonaws.sqs#InvalidParameterValue");
    assert_eq!(fixture.ask("ChangeMessageVisibility", change(11 * 3_600)), json!({}));
    fixture.pass(11 * 3_600 - 1);
    assert!(fixture.bodies().is_empty());
    fixture.pass(1);
    assert_eq!(fixture.bodies(), ["one"]);
}

#[test]
fn messages_are_there_after_the_process_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(Some(directory.path()));
    fixture.ask("SendMessage", json!({ "MessageBody": "one" }));
    assert_eq!(fixture.bodies(), ["one"]);
    fs::write(directory.path().join("Jobs/torn.partial"), "{").unwrap();

    let next = Fixture::new(Some(directory.path()));
    assert_eq!(next.bodies(), ["one"]);
    next.queues.clear("Jobs").unwrap();
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
        assert!(error.ends_with("; restore this queue message, or move it away to start without it"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), content.as_bytes());
    }
}

#[test]
fn bad_requests_are_refused_as_sqs_does() {
    let fixture = Fixture::new(None);
    for (operation, request, error) in [
        ("SendMessage", json!({ "QueueUrl": "http://x/1/none", "MessageBody": "x" }), "QueueDoesNotExist"),
        ("SendMessage", json!({ "MessageBody": "x", "DelaySeconds": 901 }), "InvalidParameterValue"),
        ("SendMessage", json!({ "MessageBody": "x".repeat(MAX_BODY + 1) }), "InvalidParameterValue"),
        ("ReceiveMessage", json!({ "MaxNumberOfMessages": 11 }), "InvalidParameterValue"),
        ("SendMessage", json!({ "MessageBody": "" }), "InvalidParameterValue"),
        ("ListQueues", json!({}), "UnsupportedOperation"),
    ] {
        let answer = fixture.ask(operation, request);
        assert_eq!(answer["__type"], format!("com.amazonaws.sqs#{error}"), "{operation}");
    }
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
