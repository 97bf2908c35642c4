//! The filters of GET `moderation/comments`, which can be combined with every state.

use shared::app::App;
use shared::domain::comment::Comment;
use shared::domain::fold::fold_forms;
use shared::domain::ids::{ThreadId, UserId};
use shared::domain::time::Timestamp;
use shared::domain::visible;
use shared::error::{FieldErrors, Refusal};
use shared::http::request::Call;
use shared::policy;

pub(crate) const PARAMETERS: [&str; 4] = ["q", "from", "thread", "since"];
/// Maximum characters of a filter by words.
const MAX_WORDS: usize = 200;

pub(crate) struct Filter {
    words: Vec<String>,
    writer: Option<Writer>,
    thread: Option<ThreadId>,
    pub(crate) since: Option<Timestamp>,
}

enum Writer {
    /// `None` if the digits aren't an id.
    Id(Option<UserId>),
    Named(Vec<String>),
}

impl Filter {
    /// Returns `None` for a request without filters.
    pub(crate) fn read(app: &App, call: &Call) -> Result<Option<Self>, Refusal> {
        let [q, from, thread, since] = PARAMETERS.map(|name| call.parameter(name));
        if [q, from, thread, since].iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut errors = FieldErrors::default();
        let words = q.map(|text| words_of("q", text, &mut errors)).unwrap_or_default();
        let writer = from.map(|text| match text.strip_prefix("id:") {
            Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Writer::Id(digits.parse().ok().map(UserId))
            }
            Some(_) => {
                errors.add("from", "The from parameter must be words, or id: followed by a user's id.");
                Writer::Id(None)
            }
            None => Writer::Named(words_of("from", text, &mut errors)),
        });
        let thread_id = thread.and_then(|text| {
            let (kind, record) = text.split_once('/')?;
            policy::thread(&app.config, kind, record).ok()
        });
        if thread.is_some() && thread_id.is_none() {
            errors.add("thread", "The thread must be a type and an id, such as posts/42.");
        }
        // An unencoded plus in a query is decoded as a space.
        let time = since.and_then(|text| Timestamp::parse(&text.replace(' ', "+")));
        if since.is_some() && time.is_none() {
            errors.add("since", "The since must be a time, such as 2030-01-02T03:04:05+00:00.");
        }
        errors.check()?;
        Ok(Some(Self { words, writer, thread: thread_id, since: time }))
    }

    pub(crate) fn passes(&self, comment: &Comment) -> bool {
        if self.thread.as_ref().is_some_and(|thread| *thread != comment.thread) {
            return false;
        }
        let name = fold_forms(&comment.name);
        let is_writer = match &self.writer {
            None => true,
            Some(Writer::Id(id)) => id.is_some() && comment.user == *id,
            Some(Writer::Named(words)) => words.iter().all(|word| name.contains(word)),
        };
        if !is_writer || self.words.is_empty() {
            return is_writer;
        }
        let text = fold_forms(&comment.body);
        self.words.iter().all(|word| text.contains(word) || name.contains(word))
    }
}

fn words_of(field: &'static str, text: &str, errors: &mut FieldErrors) -> Vec<String> {
    let words: Vec<_> = fold_forms(text).split_whitespace().map(str::to_owned).collect();
    if words.is_empty() || visible::shows_nothing(text) || text.chars().count() > MAX_WORDS {
        errors.add(field, format!("The {field} must contain a word and have at most {MAX_WORDS} characters."));
    }
    words
}
