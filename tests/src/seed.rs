//! Writes large threads directly to the table, with the same items that the API would write.

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ThreadId, fingerprint};
use shared::domain::thread::Thread;
use shared::store::{Reading, Store};
use transfer::store::fixtures::{Fixture, put_fixtures};

/// Bytes of prose in a comment.
const BODY: usize = 330;

/// Comments written through the API. All seeded comments are copies of them.
pub struct Models {
    parent: Comment,
    reply: Comment,
}

impl Models {
    pub async fn read(store: &Store, parent: u64, reply: u64) -> Self {
        Self { parent: comment(store, parent).await, reply: comment(store, reply).await }
    }

    /// Returns a copy of the parent with these inline replies and different prose.
    fn parent(&self, thread: &ThreadId, id: u64, replies: &[u64]) -> Comment {
        Comment {
            id: CommentId(id),
            thread: thread.clone(),
            body: prose(id),
            replies: replies.len() as u64,
            inline: replies.iter().copied().collect(),
            fingerprint: fingerprint(replies.iter().map(|id| CommentId(*id))),
            ..self.parent.clone()
        }
    }

    fn reply(&self, thread: &ThreadId, parent: u64, id: u64) -> Comment {
        Comment {
            id: CommentId(id),
            thread: thread.clone(),
            ancestors: vec![CommentId(parent)],
            body: prose(id),
            ..self.reply.clone()
        }
    }
}

pub async fn comment(store: &Store, id: u64) -> Comment {
    let found = store.comment_with_ancestors(CommentId(id), Reading::Consistent).await.expect("the table answers");
    found.expect("the comment exists").comment
}

/// Writes the thread `posts/{record}`. `comments` are ids, oldest first, each with its number of replies. The replies'
/// ids follow their parent's id.
pub async fn write_thread(store: &Store, models: &Models, record: &str, comments: &[(u64, usize)]) {
    let thread = ThreadId::new("posts", record).expect("the id of a record");
    let mut fixtures = Vec::new();
    for (id, replies) in comments {
        let replies: Vec<u64> = (1..=*replies as u64).map(|n| id + n).collect();
        fixtures.push(Fixture::Comment { comment: models.parent(&thread, *id, &replies), is_inline: false });
        fixtures.extend(replies.iter().map(|reply| {
            let comment = models.reply(&thread, *id, *reply);
            Fixture::Comment { comment, is_inline: true }
        }));
    }
    let count = Thread { parents: comments.len() as u64, ..Thread::default() };
    fixtures.push(Fixture::Thread(thread, count));
    put_fixtures(store, fixtures).await.expect("the table answers");
}

/// Returns 330 bytes of prose, different for each seed.
#[must_use]
pub fn prose(seed: u64) -> String {
    const WORDS: &str = "the comment thread I think that nobody reads this far but a reply would help with something \
                         quite different and never says more than";
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut state = seed;
    let mut text = String::new();
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 59).unwrap_or_default()
    };
    next();
    while text.len() < BODY {
        text.push_str(words[next() % words.len()]);
        text.push(' ');
    }
    text.truncate(BODY);
    text
}
