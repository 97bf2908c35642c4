//! SQS on one machine: its JSON protocol over messages that are files, with delays, visibility, receive counts and dead
//! letters. A queue survives the process.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::aws::call::Transport;
use shared::aws::https;
use shared::domain::ids::{Random, hex};
use shared::domain::time::{Clock, Timestamp};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};

use crate::access;
use crate::account::ACCOUNT_ID;
use crate::files;
use crate::server;

/// The bounds of SQS.
const MAX_BODY: usize = 1_048_576;
const MAX_BATCH: usize = 10;
const MAX_DELAY: u64 = 900;
const MAX_VISIBILITY: u64 = 12 * 60 * 60;
const MAX_WAIT: u64 = 20;

/// What the template says of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// The logical id in the template.
    pub name: String,
    /// How long a received message is hidden from others.
    pub visibility: Duration,
    pub redrive: Option<Redrive>,
}

/// Where a message goes that was received too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    pub max_receives: u32,
    pub dead_letters: String,
}

/// All queues of a stack.
#[derive(Clone)]
pub struct Queues(Arc<Shared>);

struct Shared {
    queues: HashMap<String, Queue>,
    clock: Clock,
    random: Random,
    /// Removed with the last handle.
    _directory: Option<TempDir>,
}

struct Queue {
    settings: QueueSettings,
    folder: PathBuf,
    messages: Mutex<BTreeMap<String, Message>>,
    /// When a message may have become visible.
    changed: Notify,
    /// Triggers that handle messages at the moment, or look for some.
    handlers: watch::Sender<usize>,
}

/// What was given up, and lay in a queue of dead letters.
#[derive(Debug, PartialEq, Eq)]
pub struct DeadLetters {
    pub queue: String,
    pub folder: PathBuf,
    pub count: usize,
}

/// A trigger handles messages while this exists.
#[derive(Debug)]
pub struct Handling(watch::Sender<usize>);

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.send_modify(|handlers| *handlers -= 1);
    }
}

/// A message, as its file holds it. Times are Unix milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    pub body: String,
    pub sent_at: i64,
    visible_at: i64,
    pub receives: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_received_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    received_at: Option<i64>,
    /// Of the latest receipt; earlier ones are no longer valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
}

impl Message {
    #[must_use]
    pub fn md5(&self) -> String {
        hex(&Md5::digest(&self.body))
    }

    #[must_use]
    pub fn receipt(&self) -> &str {
        self.receipt.as_deref().unwrap_or_default()
    }
}

/// An error as SQS answers it.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("The specified queue does not exist.")]
    NoQueue,
    #[error("The input receipt handle is invalid.")]
    Receipt,
    #[error("{0}")]
    Parameter(String),
    #[error("The operation {0} is not supported.")]
    Operation(String),
    #[error("{0}")]
    File(#[from] io::Error),
}

impl QueueError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoQueue => "QueueDoesNotExist",
            Self::Receipt => "ReceiptHandleIsInvalid",
            Self::Parameter(_) => "InvalidParameterValue",
            Self::Operation(_) => "UnsupportedOperation",
            Self::File(_) => "InternalError",
        }
    }

    fn answer(&self) -> (StatusCode, Value) {
        let status = match self {
            Self::File(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        (status, json!({ "__type": format!("com.amazonaws.sqs#{}", self.code()), "message": self.to_string() }))
    }
}

type Result<T> = std::result::Result<T, QueueError>;

impl Queues {
    /// The queues in a directory, with the messages that an earlier process left there.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read or written.
    pub fn open(root: &Path, settings: Vec<QueueSettings>, clock: Clock, random: Random) -> io::Result<Self> {
        Self::new(root, None, settings, clock, random)
    }

    /// Queues that go with the last handle.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub fn temporary(settings: Vec<QueueSettings>, clock: Clock, random: Random) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let root = directory.path().to_owned();
        Self::new(&root, Some(directory), settings, clock, random)
    }

    fn new(
        root: &Path,
        directory: Option<TempDir>,
        settings: Vec<QueueSettings>,
        clock: Clock,
        random: Random,
    ) -> io::Result<Self> {
        let queues = settings.into_iter().map(|settings| Ok((settings.name.clone(), Queue::open(root, settings)?)));
        let queues = queues.collect::<io::Result<_>>()?;
        Ok(Self(Arc::new(Shared { queues, clock, random, _directory: directory })))
    }

    /// The address that names a queue in requests.
    #[must_use]
    pub fn url(name: &str) -> String {
        format!("http://sqs.local/{ACCOUNT_ID}/{name}")
    }

    fn queue(&self, name: &str) -> Result<&Queue> {
        self.0.queues.get(name).ok_or(QueueError::NoQueue)
    }

    /// The queue of a request, and its other fields.
    fn queue_of(&self, request: &Value) -> Result<&Queue> {
        self.queue(queue_name(request))
    }

    fn now(&self) -> i64 {
        self.0.clock.now().0
    }

    /// Answers one request of SQS's JSON protocol. `operation` is the last part of `X-Amz-Target`.
    pub async fn answer(&self, operation: &str, body: &[u8]) -> (StatusCode, Value) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let answer = match operation {
            "SendMessage" => self.send_message(&request),
            "SendMessageBatch" => self.send_batch(&request),
            "ReceiveMessage" => self.receive_message(&request).await,
            "DeleteMessage" => self.delete_message(&request),
            "ChangeMessageVisibility" => self.change_visibility(&request),
            "GetQueueAttributes" => self.attributes(&request),
            "PurgeQueue" => self.purge(&request),
            other => Err(QueueError::Operation(other.to_owned())),
        };
        answer.map_or_else(|error| error.answer(), |answer| (StatusCode::OK, answer))
    }

    fn send_message(&self, request: &Value) -> Result<Value> {
        let message = self.send(self.queue_of(request)?, request)?;
        Ok(json!({ "MessageId": message.id, "MD5OfMessageBody": message.md5() }))
    }

    fn send_batch(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let entries = request["Entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !(1..=MAX_BATCH).contains(&entries.len()) {
            return Err(QueueError::Parameter(format!("A batch has 1 to {MAX_BATCH} entries.")));
        }
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for entry in entries {
            match self.send(queue, entry) {
                Ok(message) => {
                    done.push(json!({ "Id": entry["Id"], "MessageId": message.id, "MD5OfMessageBody": message.md5() }));
                }
                Err(error) => failed.push(json!({
                    "Id": entry["Id"], "SenderFault": true, "Code": error.code(), "Message": error.to_string(),
                })),
            }
        }
        Ok(json!({ "Successful": done, "Failed": failed }))
    }

    fn send(&self, queue: &Queue, entry: &Value) -> Result<Message> {
        let body = entry["MessageBody"].as_str().unwrap_or_default();
        if body.is_empty() || body.len() > MAX_BODY {
            return Err(QueueError::Parameter(format!("A message has 1 to {MAX_BODY} bytes.")));
        }
        let delay = seconds(entry, "DelaySeconds", MAX_DELAY)?.unwrap_or_default();
        let now = self.now();
        let message = Message {
            id: self.message_id(now),
            body: body.to_owned(),
            sent_at: now,
            visible_at: now + delay,
            receives: 0,
            first_received_at: None,
            received_at: None,
            receipt: None,
        };
        queue.put(message.clone())?;
        Ok(message)
    }

    /// In the order of time, so that older messages come first.
    fn message_id(&self, now: i64) -> String {
        format!("{:013}-{}", now.max(0), hex(&self.0.random.bytes::<12>()))
    }

    async fn receive_message(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let most = match &request["MaxNumberOfMessages"] {
            Value::Null => 1,
            number => number.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default(),
        };
        if !(1..=MAX_BATCH).contains(&most) {
            return Err(QueueError::Parameter(format!("MaxNumberOfMessages is 1 to {MAX_BATCH}.")));
        }
        let visibility = seconds(request, "VisibilityTimeout", MAX_VISIBILITY)?;
        let wait = seconds(request, "WaitTimeSeconds", MAX_WAIT)?.unwrap_or_default();
        let until = self.now() + wait;
        loop {
            let messages = self.receive_from(queue, most, visibility)?;
            if !messages.is_empty() || self.now() >= until {
                let messages: Vec<Value> = messages.iter().map(received).collect();
                return Ok(if messages.is_empty() { json!({}) } else { json!({ "Messages": messages }) });
            }
            queue.wait(Timestamp(self.now()), Duration::from_millis((until - self.now()).unsigned_abs())).await;
        }
    }

    /// The bodies of all messages, hidden ones too.
    ///
    /// # Errors
    ///
    /// When there is no such queue.
    pub fn bodies(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.queue(name)?.messages().values().map(|message| message.body.clone()).collect())
    }

    /// Up to `most` visible messages, hidden from now on. A message that was received too often goes to the dead letters.
    ///
    /// # Errors
    ///
    /// When there is no such queue, or a file cannot be written.
    pub fn receive(&self, name: &str, most: usize) -> Result<Vec<Message>> {
        self.receive_from(self.queue(name)?, most, None)
    }

    fn receive_from(&self, queue: &Queue, most: usize, visibility: Option<i64>) -> Result<Vec<Message>> {
        let now = self.now();
        let visibility = visibility.unwrap_or_else(|| milliseconds(queue.settings.visibility));
        let mut messages = queue.messages();
        let visible: Vec<String> =
            messages.values().filter(|message| message.visible_at <= now).map(|message| message.id.clone()).collect();
        let mut received = Vec::new();
        for id in visible {
            if received.len() == most {
                break;
            }
            let Some(message) = messages.get_mut(&id) else { continue };
            match &queue.settings.redrive {
                Some(redrive) if message.receives >= redrive.max_receives => {
                    let (receives, dead_letters) = (message.receives, &redrive.dead_letters);
                    let name = &queue.settings.name;
                    tracing::error!(queue = name, "a message failed {receives} times and goes to {dead_letters}");
                    let dead = Message { visible_at: now, receipt: None, ..message.clone() };
                    self.queue(&redrive.dead_letters)?.put(dead)?;
                    queue.remove(&id)?;
                    messages.remove(&id);
                }
                _ => {
                    message.receives += 1;
                    message.first_received_at.get_or_insert(now);
                    message.received_at = Some(now);
                    message.visible_at = now + visibility;
                    message.receipt = Some(STANDARD.encode(format!("{id} {}", hex(&self.0.random.bytes::<12>()))));
                    queue.write(message)?;
                    received.push(message.clone());
                }
            }
        }
        Ok(received)
    }

    /// The message of a receipt handle.
    fn with_receipt<T>(
        &self,
        request: &Value,
        work: impl FnOnce(&Queue, &mut BTreeMap<String, Message>, &str) -> Result<T>,
    ) -> Result<Option<T>> {
        let queue = self.queue_of(request)?;
        let receipt = request["ReceiptHandle"].as_str().unwrap_or_default();
        let decoded = STANDARD.decode(receipt).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let id = decoded.as_deref().and_then(|text| text.split(' ').next()).ok_or(QueueError::Receipt)?;
        let mut messages = queue.messages();
        let valid = messages.get(id).is_some_and(|message| message.receipt.as_deref() == Some(receipt));
        valid.then(|| work(queue, &mut messages, id)).transpose()
    }

    /// A message that was deleted already, or received again since, is no error.
    fn delete_message(&self, request: &Value) -> Result<Value> {
        self.with_receipt(request, |queue, messages, id| {
            queue.remove(id)?;
            messages.remove(id);
            Ok(())
        })?;
        Ok(json!({}))
    }

    /// Deletes what was received, as the event source mapping does after success.
    ///
    /// # Errors
    ///
    /// When there is no such queue, or the file cannot be removed.
    pub fn delete(&self, name: &str, message: &Message) -> Result<()> {
        self.delete_message(&json!({ "QueueUrl": Self::url(name), "ReceiptHandle": message.receipt() })).map(drop)
    }

    fn change_visibility(&self, request: &Value) -> Result<Value> {
        let timeout = seconds(request, "VisibilityTimeout", MAX_VISIBILITY)?
            .ok_or_else(|| QueueError::Parameter("VisibilityTimeout is required.".to_owned()))?;
        let now = self.now();
        let changed = self.with_receipt(request, |queue, messages, id| {
            let message = messages.get_mut(id).ok_or(QueueError::Receipt)?;
            let most = message.received_at.unwrap_or(now) + milliseconds(Duration::from_secs(MAX_VISIBILITY));
            if now + timeout > most {
                return Err(QueueError::Parameter(format!(
                    "A message is invisible for at most {MAX_VISIBILITY} seconds from its receipt."
                )));
            }
            message.visible_at = now + timeout;
            queue.write(message)?;
            queue.changed.notify_waiters();
            Ok(())
        })?;
        changed.map(|()| json!({})).ok_or(QueueError::Receipt)
    }

    fn attributes(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let now = self.now();
        let messages = queue.messages();
        let count = |of: fn(&Message, i64) -> bool| messages.values().filter(|message| of(message, now)).count();
        Ok(json!({ "Attributes": {
            "ApproximateNumberOfMessages": count(|message, now| message.visible_at <= now).to_string(),
            "ApproximateNumberOfMessagesNotVisible":
                count(|message, now| message.visible_at > now && message.receives > 0).to_string(),
            "ApproximateNumberOfMessagesDelayed":
                count(|message, now| message.visible_at > now && message.receives == 0).to_string(),
            "VisibilityTimeout": queue.settings.visibility.as_secs().to_string(),
        } }))
    }

    fn purge(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let mut messages = queue.messages();
        for id in messages.keys() {
            queue.remove(id)?;
        }
        messages.clear();
        Ok(json!({}))
    }

    /// Waits until a message of the queue may be visible, for `most` at most.
    pub async fn wait(&self, name: &str, most: Duration) {
        if let Ok(queue) = self.queue(name) {
            queue.wait(Timestamp(self.now()), most).await;
        }
    }

    /// Returns dead letters to the queues that they come from. Those of the stream and of the bucket are removed:
    /// the start reads the table's records, and the puts of an unfinished process, again.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or removed.
    pub fn redrive(&self) -> Result<Vec<DeadLetters>> {
        let mut found = Vec::new();
        let queues = || self.0.queues.values();
        for dead in queues().filter(|queue| queue.settings.redrive.is_none()) {
            let name = &dead.settings.name;
            let is_source = |queue: &&Queue| queue.settings.redrive.as_ref().is_some_and(|to| to.dead_letters == *name);
            let source = queues().find(is_source);
            let messages = std::mem::take(&mut *dead.messages());
            for message in messages.values() {
                if let Some(source) = source {
                    source.put(Message { visible_at: self.now(), receives: 0, ..message.clone() })?;
                }
                dead.remove(&message.id)?;
            }
            if !messages.is_empty() {
                found.push(DeadLetters { queue: name.clone(), folder: dead.folder.clone(), count: messages.len() });
            }
        }
        found.sort_by(|a, b| a.queue.cmp(&b.queue));
        Ok(found)
    }

    /// Puts a message into a queue.
    ///
    /// # Errors
    ///
    /// When there is no such queue, or the file cannot be written.
    pub fn put(&self, name: &str, body: &Value) -> Result<()> {
        self.send(self.queue(name)?, &json!({ "MessageBody": body.to_string() })).map(drop)
    }

    /// To be called before messages are received.
    ///
    /// # Errors
    ///
    /// When there is no such queue.
    pub fn begin_handling(&self, name: &str) -> Result<Handling> {
        let handlers = &self.queue(name)?.handlers;
        handlers.send_modify(|handlers| *handlers += 1);
        Ok(Handling(handlers.clone()))
    }

    /// Waits until no message of the queue can be received and none is being handled. Delayed messages do not count.
    pub async fn idle(&self, name: &str) {
        let Ok(queue) = self.queue(name) else { return };
        let mut handlers = queue.handlers.subscribe();
        loop {
            // In this order: a trigger counts before it makes a message invisible.
            let has_visible = queue.next_visible().is_some_and(|time| time <= self.now());
            let is_handled = *handlers.borrow_and_update() > 0;
            if !has_visible && !is_handled {
                return;
            }
            if handlers.changed().await.is_err() {
                return;
            }
        }
    }

    /// When the next message becomes visible, in Unix milliseconds, in any queue but those of dead letters.
    #[must_use]
    pub fn next_visible(&self) -> Option<i64> {
        let queues = self.0.queues.values();
        queues.filter(|queue| queue.settings.redrive.is_some()).filter_map(Queue::next_visible).min()
    }
}

impl Queues {
    /// Serves functions in other processes, over HTTP, until the future is dropped. Signatures are not checked.
    pub async fn serve(self, listener: TcpListener) {
        server::serve(listener, move |request| {
            let queues = self.clone();
            async move {
                let operation = operation(request.headers());
                let (status, answer) = queues.answer(&operation, request.body()).await;
                let response =
                    http::Response::builder().status(status).header(CONTENT_TYPE, "application/x-amz-json-1.0");
                response
                    .body(Bytes::from(answer.to_string()))
                    .unwrap_or_else(|_| server::empty(StatusCode::INTERNAL_SERVER_ERROR))
            }
        })
        .await;
    }
}

/// Calls of functions in this process. Permissions are checked as in AWS.
impl Transport for Queues {
    fn send(
        &self,
        request: http::Request<String>,
    ) -> BoxFuture<'_, std::result::Result<http::Response<Vec<u8>>, https::Error>> {
        Box::pin(async move {
            let operation = operation(request.headers());
            let body: Value = serde_json::from_str(request.body()).unwrap_or_default();
            let (status, answer) = match access::check_queue(&operation, queue_name(&body)) {
                Ok(()) => self.answer(&operation, request.body().as_bytes()).await,
                Err(denied) => {
                    tracing::error!("{denied}");
                    (StatusCode::FORBIDDEN, json!({ "__type": "AccessDeniedException", "message": denied }))
                }
            };
            let mut response = http::Response::new(answer.to_string().into_bytes());
            *response.status_mut() = status;
            Ok(response)
        })
    }
}

/// The operation in `X-Amz-Target`, such as `SendMessage`.
fn operation(headers: &http::HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    target.rsplit('.').next().unwrap_or_default().to_owned()
}

/// The last segment of the `QueueUrl`.
fn queue_name(request: &Value) -> &str {
    request["QueueUrl"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default()
}

impl Queue {
    /// In Unix milliseconds.
    fn next_visible(&self) -> Option<i64> {
        self.messages().values().map(|message| message.visible_at).min()
    }

    fn open(root: &Path, settings: QueueSettings) -> io::Result<Self> {
        let folder = root.join(&settings.name);
        files::make_folder(&folder)?;
        let mut messages = BTreeMap::new();
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            // A file without this ending was being written when the process died: its sender was told of a failure.
            if path.extension().is_some_and(|extension| extension == "json") {
                let mut message: Message = serde_json::from_slice(&fs::read(&path)?)?;
                // The functions that had received it ended with the process, which says nothing of the message.
                if message.received_at.is_some() {
                    message.visible_at = 0;
                }
                message.receives = 0;
                messages.insert(message.id.clone(), message);
            }
        }
        Ok(Self {
            settings,
            folder,
            messages: Mutex::new(messages),
            changed: Notify::new(),
            handlers: watch::Sender::new(0),
        })
    }

    fn messages(&self) -> MutexGuard<'_, BTreeMap<String, Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Message) -> Result<()> {
        self.write(&message)?;
        self.messages().insert(message.id.clone(), message);
        self.changed.notify_waiters();
        Ok(())
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn write(&self, message: &Message) -> Result<()> {
        Ok(files::write(&self.file(&message.id), &serde_json::to_vec(message).map_err(io::Error::from)?)?)
    }

    fn remove(&self, id: &str) -> Result<()> {
        match fs::remove_file(self.file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Until a message is sent or becomes visible; `most` at most.
    async fn wait(&self, now: Timestamp, most: Duration) {
        let changed = self.changed.notified();
        let due = self.messages().values().map(|message| message.visible_at).min();
        let due = due.map_or(most, |due| Duration::from_millis(u64::try_from(due - now.0).unwrap_or_default()));
        drop(tokio::time::timeout(due.min(most), changed).await);
    }
}

fn received(message: &Message) -> Value {
    json!({
        "MessageId": message.id,
        "ReceiptHandle": message.receipt(),
        "Body": message.body,
        "MD5OfBody": message.md5(),
        "Attributes": message.attributes(),
    })
}

impl Message {
    /// Their names are SQS's, and their values are all texts.
    #[must_use]
    pub fn attributes(&self) -> Value {
        json!({
            "ApproximateReceiveCount": self.receives.to_string(),
            "SentTimestamp": self.sent_at.to_string(),
            "ApproximateFirstReceiveTimestamp": self.first_received_at.unwrap_or_default().to_string(),
        })
    }
}

/// A whole number of seconds up to `most`, in milliseconds.
fn seconds(request: &Value, name: &str, most: u64) -> Result<Option<i64>> {
    match &request[name] {
        Value::Null => Ok(None),
        number => match number.as_u64().filter(|number| *number <= most) {
            Some(number) => Ok(Some(milliseconds(Duration::from_secs(number)))),
            None => Err(QueueError::Parameter(format!("{name} is 0 to {most}."))),
        },
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

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
        assert_eq!(
            fixture.ask("GetQueueAttributes", json!({})).await["Attributes"]["ApproximateNumberOfMessages"],
            "1"
        );
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
}
