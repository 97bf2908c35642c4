//! POST `moderation/comments`: applies one decision to many comments. Each comment has a separate transaction, so that
//! one may fail while the others succeed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use serde_json::Value;
use shared::app::App;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ID_BOUND, Visitor};
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::error::{Error, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::resource::Data;
use shared::http::response::Answer;
use shared::store::log::By;
use shared::store::moderation::Verdict;

const MAX_IDS: usize = 50;
/// Maximum writers whose comments are decided concurrently. Decisions about two comments by one writer change the same
/// items, so they are made one after the other. Decisions about two comments in one thread may conflict, and are
/// retried.
const AT_ONCE: usize = 5;

struct BulkInput {
    /// Each id once, in the order given.
    ids: Vec<CommentId>,
    verdict: Verdict,
    /// The `updated_at` of comments as the moderator saw them, if the request has it.
    seen: HashMap<CommentId, Timestamp>,
}

#[derive(Default, Serialize)]
struct Results {
    done: Vec<CommentId>,
    failed: Vec<Failure>,
}

#[derive(Serialize)]
struct Failure {
    id: CommentId,
    code: &'static str,
}

pub(crate) async fn decide(app: &App, call: &Call) -> Result<Answer> {
    let moderator = app.admit_moderator(call, RateClass::Bulk, Ok(())).await?;
    let by = app.by(&moderator)?;
    let input = BulkInput::read(call)?;
    let mut of_writers: BTreeMap<Visitor, Vec<Comment>> = BTreeMap::new();
    for found in app.store.comments_with_ancestors(input.ids.clone()).await? {
        of_writers.entry(found.comment.visitor()).or_default().push(found.comment);
    }
    let decided = stream::iter(of_writers.into_values()).map(|comments| decide_all(app, comments, &input, by));
    let mut decided: HashMap<CommentId, Result<()>> =
        decided.buffer_unordered(AT_ONCE).flat_map(stream::iter).collect().await;
    let mut results = Results::default();
    for id in input.ids {
        match decided.remove(&id).unwrap_or(Err(Refusal::NotFound.into())) {
            Ok(()) => results.done.push(id),
            Err(error) => results.failed.push(Failure { id, code: code(error) }),
        }
    }
    Ok(Answer::ok(&Data { data: results }))
}

async fn decide_all(app: &App, comments: Vec<Comment>, input: &BulkInput, by: By<'_>) -> Vec<(CommentId, Result<()>)> {
    let mut decided = Vec::new();
    for comment in comments {
        let (id, seen) = (comment.id, input.seen.get(&comment.id).copied());
        decided.push((id, crate::comment::decide(app, comment, &input.verdict, seen, by).await));
    }
    decided
}

fn code(error: Error) -> &'static str {
    let refusal = match shared::app::refusal(error) {
        // Other comments may have been decided, so the response as a whole isn't an error.
        Refusal::ServerError => Refusal::Unavailable,
        refusal => refusal,
    };
    refusal.row().1
}

impl BulkInput {
    fn read(call: &Call) -> Result<Self, Refusal> {
        let mut input = Input::new(call.json()?);
        let ids = input.value("ids").and_then(ids);
        if ids.is_none() {
            input.fail("ids", format!("The ids must be a list of 1 to {MAX_IDS} ids."));
        }
        let grounds = crate::comment::grounds(&mut input);
        let verdict = input.value("action").and_then(Value::as_str);
        let verdict = verdict.and_then(|name| Verdict::parse(name, grounds));
        if verdict.is_none() {
            input.fail("action", "The action must be one of approve, reject, dismiss.");
        }
        let seen = input.value("seen").map_or_else(|| Some(HashMap::new()), times);
        if seen.is_none() {
            input.fail("seen", "The seen must map ids to times, such as 2030-01-02T03:04:05+00:00.");
        }
        let read = ids.zip(verdict).zip(seen).map(|((ids, verdict), seen)| Self { ids, verdict, seen });
        input.finish_with(read)
    }
}

/// Returns each id once. `None` if there are too few or too many ids, or a value isn't an id.
fn ids(value: &Value) -> Option<Vec<CommentId>> {
    let values = value.as_array().filter(|values| (1..=MAX_IDS).contains(&values.len()))?;
    let id = |value: &Value| value.as_u64().filter(|id| (1..ID_BOUND).contains(id)).map(CommentId);
    let ids: Vec<CommentId> = values.iter().map(id).collect::<Option<_>>()?;
    let mut met = BTreeSet::new();
    Some(ids.into_iter().filter(|id| met.insert(*id)).collect())
}

fn times(value: &Value) -> Option<HashMap<CommentId, Timestamp>> {
    let time = |(id, time): (&String, &Value)| Some((id.parse().ok()?, Timestamp::parse(time.as_str()?)?));
    value.as_object()?.iter().map(time).collect()
}
