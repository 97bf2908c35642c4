//! Writes items directly, in the form in which the API stores them, for tests that need large threads.

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, Provenance, ThreadId, Visitor};
use shared::domain::thread::{Thread, VisitorThreadState};
use shared::error::Fault;
use shared::store::counts::RecountTrigger;
use shared::store::keys::{self, Item};
use shared::store::queue::QueueState;
use shared::store::transaction::{Outcome, Write};
use shared::store::users::WRITE_BATCH;
use shared::store::{Reading, Store, comments, write};

use crate::store::sources::source_row;

#[expect(clippy::large_enum_variant, reason = "most fixtures are comments")]
pub enum Fixture {
    /// A comment, stored with the counts in `comment` and the index keys for its position. Only replies use
    /// `is_inline`.
    Comment {
        comment: Comment,
        is_inline: bool,
    },
    Thread(ThreadId, Thread),
    VisitorThreadState {
        visitor: Visitor,
        thread: ThreadId,
        /// The parent to which the item belongs, if it is an overflow item.
        overflow: Option<CommentId>,
        state: VisitorThreadState,
    },
    QueueEntry(QueueState, CommentId),
}

impl Fixture {
    fn item(self) -> Result<Item, Fault> {
        match self {
            Self::Comment { comment, is_inline } => comments::item(&comment, is_inline),
            Self::Thread(id, thread) => write(&keys::thread(&id), &thread),
            Self::VisitorThreadState { visitor, thread, overflow, state } => {
                let key = match overflow {
                    Some(parent) => keys::visitor_overflow(&visitor, &thread, parent),
                    None => keys::visitor_state(&visitor, &thread),
                };
                write(&key, &state)
            }
            Self::QueueEntry(state, id) => Ok(keys::queue(state.name(), id).item()),
        }
    }
}

/// Adds a comment or a placeholder to a thread, with its own id and likes, as an import does. False if the id is taken
/// or the parent doesn't exist.
///
/// # Errors
///
/// Fails if the table doesn't respond.
pub async fn import_fixture(store: &Store, comment: &Comment) -> Result<bool, Fault> {
    let parent = match comment.parent() {
        None => None,
        Some(parent) => match store.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? {
            None => return Ok(false),
            parent => parent,
        },
    };
    let (_, visitor_state) = store.thread_and_visitor_state(&comment.thread, &comment.visitor().into()).await?;
    let mut writes = comments::creation(comment, parent.as_ref(), &visitor_state, store.embedded())?;
    let provenance = Provenance { thread: Some("a page".to_owned()), writer: Some("a writer".to_owned()) };
    writes.extend(source_row(comment, &provenance).map(Write::put));
    if store.transact(writes).await? != Outcome::Done {
        return Ok(false);
    }
    store.recount_comment(&comment.thread, comment.id, RecountTrigger::Walk).await?;
    Ok(true)
}

/// Writes items in batches, replacing existing ones.
///
/// # Errors
///
/// Fails if an item can't be written. Items written before it stay.
pub async fn put_fixtures(store: &Store, fixtures: impl IntoIterator<Item = Fixture>) -> Result<(), Fault> {
    let put = |fixture: Fixture| {
        let put = PutRequest::builder().set_item(Some(fixture.item()?)).build();
        let put = put.map_err(|error| Fault::new("writing a fixture", error))?;
        Ok(WriteRequest::builder().put_request(put).build())
    };
    let writes = fixtures.into_iter().map(put).collect::<Result<Vec<_>, Fault>>()?;
    for batch in writes.chunks(WRITE_BATCH) {
        store.write_all(batch.to_vec()).await?;
    }
    Ok(())
}
