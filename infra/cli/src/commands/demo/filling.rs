//! Fills the demo's thread once. The comments are imported, so that no one is notified and no limiter counts them.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use shared::config::Config;
use shared::domain::ids::{CommentId, ThreadId, UserId, Visitor, salt_fingerprint};
use shared::domain::person::PersonHashes;
use shared::domain::thread::Thread;
use shared::domain::time::{self, Clock};
use shared::store::Store;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use transfer::export::records;
use transfer::import::record::{Author, Comment, Like, Record, User};
use transfer::import::write::{Importer, WriteLimits};
use transfer::import::{Format, Import, Users};
use transfer::store::import::has_begun;
use transfer::store::person::forgotten::forgotten;

use super::conversation::{CONVERSATION, Said};
use crate::commands::people::{EVERYONE, MARTA, Person};
use crate::commands::{Failure, lease};

pub(in crate::commands) struct Filling {
    store: Store,
    config: Config,
    url: String,
    /// Whether the thread is known to have had comments. Locked while a request fills the thread.
    has_begun: Mutex<bool>,
}

impl Filling {
    /// `store` must embed as many replies as the service does. `url` is the demo page's URL.
    pub(in crate::commands) fn new(store: Store, config: Config, url: String) -> Self {
        Self { store, config, url, has_begun: Mutex::new(false) }
    }

    /// Fills the thread if it has never had an approved top-level comment. Continues even if the request is cancelled.
    pub(super) async fn ensure(self: Arc<Self>) {
        let filled = spawn_blocking(move || {
            let mut has_begun = self.has_begun.lock().unwrap_or_else(PoisonError::into_inner);
            if !*has_begun {
                Handle::current().block_on(self.fill())?;
                *has_begun = true;
            }
            Ok::<_, Failure>(())
        });
        if let Err(error) = filled.await.map_err(Failure::from).flatten() {
            tracing::error!("filling the demo's thread failed: {error}");
        }
    }

    async fn fill(&self) -> Result<(), Failure> {
        let Self { store, config, .. } = self;
        let thread = super::thread(config)?;
        if has_begun(store, &thread).await.map_err(|fault| fault.chain())? {
            return Ok(());
        }
        let (clock, format, users) = (Clock::system(), Format::Native, Users::default());
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("conversation.jsonl");
        let records = self.records(&thread, clock.now()).ok_or("this machine's clock is wrong")?;
        let lines = records.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        fs::write(&file, lines.join("\n"))?;
        let forgotten =
            forgotten(store, PersonHashes::new(&config.visitor_salt)).await.map_err(|fault| fault.chain())?;
        let forgotten = Some(forgotten.ok_or("people were erased from this table under another SVC_VISITOR_SALT")?);
        let mut staging = Import { forgotten, ..Import::new(format, vec![file]) }.read(folder.path(), |_| ())?;
        staging.accept_other_comments();
        let prefix = staging.prefix(format);
        let mut importer = Importer {
            staging: &mut staging,
            store,
            users: &users,
            prefix: &prefix,
            clock,
            table: WriteLimits::default(),
            other_salt: None,
        };
        lease(store, false).hold(async { Ok::<_, Failure>(importer.run(&mut |_| ()).await.map(drop)?) }).await
    }

    /// The conversation as records of an export of this table. `None` if the times are out of range for ids.
    fn records(&self, thread: &ThreadId, now: time::Timestamp) -> Option<Vec<Record>> {
        let (title, url) = (Some(super::TITLE.to_owned()), Some(self.url.clone()));
        let page = Thread { title, url, author: Some(UserId(MARTA.id)), ..Thread::default() };
        let user = |person: &Person| User { user_id: Some(person.id), name: person.name.to_owned(), ..User::default() };
        let mut all = vec![records::thread(thread, &page)];
        all.extend(EVERYONE.map(|person| Record::User(user(person))));
        add(&mut all, &CONVERSATION, &records::thread_key(thread), None, now)?;
        all.insert(0, records::head(salt_fingerprint(&self.config.visitor_salt), all.len() as u64));
        Some(all)
    }
}

/// Adds the records of these comments and their likes, and those of all comments below them.
fn add(
    records: &mut Vec<Record>,
    comments: &[Said],
    thread: &str,
    parent: Option<CommentId>,
    now: time::Timestamp,
) -> Option<()> {
    for said in comments {
        let at = now.0 - i64::try_from(said.ago.as_millis()).ok()?;
        let id = CommentId::slots(time::Timestamp(at), 0)?.next()?;
        let Person { id: user, name, moderator } = *said.by;
        let at = Timestamp::from_millisecond(at).ok();
        records.push(Record::Comment(Box::new(Comment {
            id: Some(id.0),
            thread: thread.to_owned(),
            parent: parent.map(|parent| parent.to_string()),
            created_at: at,
            author: Author { user_id: Some(user), name: name.to_owned(), moderator, ..Author::default() },
            body: said.body.to_owned(),
            mentions: said.mentions.iter().map(|&handle| handle.to_owned()).collect(),
            pinned: said.pinned,
            pinned_at: at.filter(|_| said.pinned),
            ..Comment::default()
        })));
        let like = |person: &&Person| Like { comment: id.0, visitor: Visitor::from(UserId(person.id)).0 };
        records.extend(said.liked_by.iter().map(like).map(Record::Like));
        add(records, said.replies, thread, Some(id), now)?;
    }
    Some(())
}
