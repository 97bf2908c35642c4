//! Emulates SQS on one machine: its JSON protocol, delays, visibility timeouts, receive counts and dead-letter queues.
//! Each message is a file, so queues survive the process.

mod connector;
mod messages;
mod protocol;
mod server;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shared::domain::ids::{Random, hex};
use shared::domain::time::{Clock, Timestamp};
use tempfile::TempDir;
use tokio::sync::watch;

pub use self::messages::Message;
use self::messages::Queue;
use crate::account::ACCOUNT_ID;

/// A queue's settings in the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// The logical id in the template.
    pub name: String,
    /// The time for which a received message is hidden from other receivers.
    pub visibility: Duration,
    pub redrive: Option<Redrive>,
}

/// The destination of messages that have been received too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    pub max_receives: u32,
    pub dead_letters: String,
}

/// Removes the messages whose bodies `picks` selects from the queues in a directory, and returns their number. The
/// directory may be missing.
///
/// # Errors
///
/// Fails if a message can't be read or removed.
pub fn remove(root: &Path, picks: impl Fn(&str) -> bool) -> io::Result<u64> {
    let mut removed = 0;
    for queue in if root.exists() { fs::read_dir(root)?.collect::<io::Result<Vec<_>>>()? } else { Vec::new() } {
        for file in messages::files(&queue.path())? {
            if picks(&Message::read(&file)?.body) {
                fs::remove_file(file)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

#[derive(Clone)]
pub struct Queues(Arc<Shared>);
struct Shared {
    queues: HashMap<String, Queue>,
    clock: Clock,
    random: Random,
    /// Removed when the last handle is dropped.
    _directory: Option<TempDir>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct DeadLetters {
    pub queue: String,
    pub folder: PathBuf,
    pub count: usize,
}

/// Marks that a batch of messages is being received or handled, until this is dropped.
#[derive(Debug)]
pub struct Handling(watch::Sender<usize>);

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.send_modify(|handlers| *handlers -= 1);
    }
}

/// An error as SQS returns it.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("The specified queue does not exist.")]
    NoQueue,
    #[error("{0:?} is not the content type of SQS's protocol.")]
    Protocol(String),
    #[error("The input receipt handle is invalid.")]
    Receipt,
    #[error("{0}")]
    Parameter(String),
    #[error("The operation {0} is not supported.")]
    Operation(String),
    #[error("{0}")]
    File(#[from] io::Error),
}

type Result<T> = std::result::Result<T, QueueError>;

impl Queues {
    /// Opens the queues in a directory, with messages that an earlier process left there.
    ///
    /// # Errors
    ///
    /// Fails if the directory can't be read or written.
    pub fn open(root: &Path, settings: Vec<QueueSettings>, clock: Clock, random: Random) -> io::Result<Self> {
        Self::new(root, None, settings, clock, random)
    }

    /// Queues that are removed when the last handle is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the directory can't be created.
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

    /// The URL that identifies a queue in requests.
    #[must_use]
    pub fn url(name: &str) -> String {
        format!("http://sqs.local/{ACCOUNT_ID}/{name}")
    }

    fn queue(&self, name: &str) -> Result<&Queue> {
        self.0.queues.get(name).ok_or(QueueError::NoQueue)
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// A new id. Ids sort by time, so older messages come first.
    fn message_id(&self, now: Timestamp) -> String {
        format!("{:013}-{}", now.0.max(0), hex(&self.0.random.bytes::<12>()))
    }

    /// The bodies of all messages, including hidden ones.
    ///
    /// # Errors
    ///
    /// Fails if the queue doesn't exist.
    pub fn bodies(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.queue(name)?.messages().values().map(|message| message.body.clone()).collect())
    }

    /// Receives up to `most` visible messages, and hides them until the visibility timeout or the next start of the
    /// process. Moves messages that have been received too often to the dead-letter queue.
    ///
    /// # Errors
    ///
    /// Fails if the queue doesn't exist, or a file can't be written.
    pub fn receive(&self, name: &str, most: usize) -> Result<Vec<Message>> {
        let (queue, now) = (self.queue(name)?, self.now());
        let mut messages = queue.messages();
        let visible: Vec<String> =
            messages.values().filter(|message| message.is_visible(now)).map(|message| message.id.clone()).collect();
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
                    tracing::error!(queue = name, "a message failed {receives} times; moving it to {dead_letters}");
                    let dead = Message { visible_at: now, receipt: None, ..message.clone() };
                    self.queue(&redrive.dead_letters)?.put(dead)?;
                    queue.remove(&id)?;
                    messages.remove(&id);
                }
                _ => {
                    message.receives += 1;
                    message.first_received_at.get_or_insert(now);
                    message.received_at = Some(now);
                    message.visible_at = now + queue.settings.visibility;
                    message.receipt = Some(hex(&self.0.random.bytes::<12>()));
                    received.push(message.clone());
                }
            }
        }
        Ok(received)
    }

    /// Deletes a received message, as the event source mapping does after success. Keeps the message if it has been
    /// received again since.
    ///
    /// # Errors
    ///
    /// Fails if the queue doesn't exist, or the file can't be removed.
    pub fn delete(&self, name: &str, message: &Message) -> Result<()> {
        let queue = self.queue(name)?;
        let mut messages = queue.messages();
        if messages.get(&message.id).is_some_and(|stored| stored.receipt == message.receipt) {
            queue.remove(&message.id)?;
            messages.remove(&message.id);
        }
        Ok(())
    }

    /// Deletes all messages, including hidden ones.
    ///
    /// # Errors
    ///
    /// Fails if the queue doesn't exist, or a file can't be removed.
    pub fn clear(&self, name: &str) -> Result<()> {
        let queue = self.queue(name)?;
        let messages = std::mem::take(&mut *queue.messages());
        messages.keys().try_for_each(|id| queue.remove(id))
    }

    /// Waits until a message in the queue may be visible, for at most `most`.
    pub async fn wait(&self, name: &str, most: Duration) {
        if let Ok(queue) = self.queue(name) {
            queue.wait(self.now(), most).await;
        }
    }

    /// Moves dead letters back to their original queues. Those from the stream and the bucket are removed instead,
    /// because each start redelivers events that weren't handled.
    ///
    /// # Errors
    ///
    /// Fails if a file can't be written or removed.
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
    /// Fails if the queue doesn't exist, or the file can't be written.
    pub fn put(&self, name: &str, body: &Value) -> Result<()> {
        self.send(self.queue(name)?, &json!({ "MessageBody": body.to_string() })).map(drop)
    }

    /// Marks that a queue's messages are being handled. Call this before receiving messages.
    ///
    /// # Errors
    ///
    /// Fails if the queue doesn't exist.
    pub fn begin_handling(&self, name: &str) -> Result<Handling> {
        let handlers = &self.queue(name)?.handlers;
        handlers.send_modify(|handlers| *handlers += 1);
        Ok(Handling(handlers.clone()))
    }

    /// Waits until no message in the queue can be received and none is being handled. Ignores delayed messages.
    pub async fn idle(&self, name: &str) {
        let Ok(queue) = self.queue(name) else { return };
        let mut handlers = queue.handlers.subscribe();
        loop {
            // The order matters: a batch is counted before its messages are hidden.
            let now = self.now();
            let has_visible = queue.next_visible(now).is_some_and(|time| time <= now);
            let is_handled = *handlers.borrow_and_update() > 0;
            if !has_visible && !is_handled {
                return;
            }
            if !is_handled {
                // A waiting trigger doesn't notice that a test has moved the clock.
                queue.changed.notify_waiters();
            }
            if handlers.changed().await.is_err() {
                return;
            }
        }
    }

    /// The numbers of waiting messages and of dead letters.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let count = |has_redrive: bool| {
            let queues = self.0.queues.values().filter(|queue| queue.settings.redrive.is_some() == has_redrive);
            queues.map(|queue| queue.messages().len()).sum()
        };
        (count(true), count(false))
    }

    /// The time when the next message becomes visible, in any queue except dead-letter queues.
    #[must_use]
    pub fn next_visible(&self) -> Option<Timestamp> {
        let (queues, now) = (self.0.queues.values(), self.now());
        queues.filter(|queue| queue.settings.redrive.is_some()).filter_map(|queue| queue.next_visible(now)).min()
    }
}
