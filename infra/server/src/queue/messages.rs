//! The messages of one queue, with a file for each.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::domain::ids::hex;
use shared::domain::time::{Timestamp, stored};
use tokio::sync::{Notify, watch};

use super::{QueueSettings, Result};
use crate::files;

pub(super) struct Queue {
    pub(super) settings: QueueSettings,
    pub(super) folder: PathBuf,
    pub(super) messages: Mutex<BTreeMap<String, Message>>,
    /// Notifies waiters that a message may have become visible.
    pub(super) changed: Notify,
    /// The number of batches that are being received or handled.
    pub(super) handlers: watch::Sender<usize>,
}

impl Queue {
    /// The time when the next message becomes visible, or `now` if one is visible.
    pub(super) fn next_visible(&self, now: Timestamp) -> Option<Timestamp> {
        self.messages().values().map(|message| if message.is_visible(now) { now } else { message.visible_at }).min()
    }

    pub(super) fn open(root: &Path, settings: QueueSettings) -> io::Result<Self> {
        let folder = root.join(&settings.name);
        files::make_folder(&folder)?;
        let mut messages = BTreeMap::new();
        for path in files(&folder)? {
            let mut message = Message::read(&path)?;
            // The function that received the message ended with the process, so the attempt doesn't count.
            if message.received_at.is_some() {
                message.visible_at = Timestamp(0);
            }
            message.receives = 0;
            messages.insert(message.id.clone(), message);
        }
        Ok(Self {
            settings,
            folder,
            messages: Mutex::new(messages),
            changed: Notify::new(),
            handlers: watch::Sender::new(0),
        })
    }

    pub(super) fn messages(&self) -> MutexGuard<'_, BTreeMap<String, Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, message: Message) -> Result<()> {
        self.write(&message)?;
        self.messages().insert(message.id.clone(), message);
        self.changed.notify_waiters();
        Ok(())
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    pub(super) fn write(&self, message: &Message) -> Result<()> {
        Ok(files::write(&self.file(&message.id), &serde_json::to_vec(message).map_err(io::Error::from)?)?)
    }

    pub(super) fn remove(&self, id: &str) -> Result<()> {
        match fs::remove_file(self.file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Waits until a message is sent or becomes visible, for at most `most`.
    pub(super) async fn wait(&self, now: Timestamp, most: Duration) {
        let changed = self.changed.notified();
        let due = self.next_visible(now).map_or(most, |due| due.since(now));
        drop(tokio::time::timeout(due.min(most), changed).await);
    }
}

/// The message files in a queue's folder. Ignores files without the extension, which a killed process was still
/// writing: their messages were never acknowledged.
pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    Ok(files)
}

/// A message as stored in its file, with times in Unix milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    pub body: String,
    #[serde(serialize_with = "stored::time")]
    pub sent_at: Timestamp,
    #[serde(serialize_with = "stored::time")]
    pub(super) visible_at: Timestamp,
    pub receives: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub first_received_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub(super) received_at: Option<Timestamp>,
    /// The latest receipt; earlier ones are no longer valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) receipt: Option<String>,
}

impl Message {
    /// Reads a message. The error names a damaged file, and explains how to fix it.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let message = fs::read(path).and_then(|json| Ok(serde_json::from_slice(&json)?));
        message.map_err(|error| {
            let path = path.display();
            let advice = "restore this queue message, or move it away to start without it";
            io::Error::new(error.kind(), format!("{path}: {error}; {advice}"))
        })
    }

    /// Also true if the message was sent or received while the clock was ahead, because it might otherwise be hidden
    /// for years. A message that is being handled when the clock is set back may be delivered twice.
    pub(super) fn is_visible(&self, now: Timestamp) -> bool {
        self.visible_at <= now || self.received_at.unwrap_or(self.sent_at).is_too_far_ahead(Duration::ZERO, now)
    }

    #[must_use]
    pub fn md5(&self) -> String {
        hex(&Md5::digest(&self.body))
    }

    #[must_use]
    pub fn receipt(&self) -> &str {
        self.receipt.as_deref().unwrap_or_default()
    }

    /// The message's attributes as in SQS, where all values are strings.
    #[must_use]
    pub fn attributes(&self) -> Value {
        json!({
            "ApproximateReceiveCount": self.receives.to_string(),
            "SentTimestamp": self.sent_at.0.to_string(),
            "ApproximateFirstReceiveTimestamp": self.first_received_at.unwrap_or_default().0.to_string(),
        })
    }
}
