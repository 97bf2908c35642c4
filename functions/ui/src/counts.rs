//! GET `counts`: the number of comments in each thread. GET `{type}/{id}/changes`: the newest comments of a thread.
//! Responses are the same for everyone, so that caches can serve most requests.

use serde_json::{Map, json};
use shared::app::App;
use shared::app::admission::exists;
use shared::config::Config;
use shared::domain::ids::{CommentId, ThreadId};
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::request::Call;
use shared::http::response::{Answer, Sharing};
use shared::policy;

const MAX_THREADS: usize = 100;
/// Ages of the newest comment in milliseconds, each with the seconds to wait if the comment is younger.
const WAITS: [(i64, i64); 3] = [(300_000, 15), (3_600_000, 30), (86_400_000, 60)];
const LONGEST_WAIT: i64 = 120;

/// GET `counts`
pub(crate) async fn counts(app: &App, call: &Call) -> Result<Answer> {
    let read = async {
        let threads = threads(&app.config, call)?;
        let counts = app.store.counts(&threads).await?;
        Ok(threads.into_iter().zip(counts))
    };
    let counts = app.admit_everyone(call, RateClass::Read, Ok(()), read).await?;
    let data: Map<_, _> =
        counts.map(|(thread, count)| (format!("{}/{}", thread.kind, thread.record), json!(count))).collect();
    Ok(Answer::ok(&json!({ "data": data })).shared(Sharing::Everyone { seconds: 60 }))
}

/// Returns the threads that the request names, each once.
fn threads(config: &Config, call: &Call) -> Result<Vec<ThreadId>, Refusal> {
    let refuse = |message: String| FieldErrors::one("threads", message);
    let names = call.parameter("threads").filter(|names| !names.is_empty());
    let names =
        names.ok_or_else(|| refuse("The threads field is required, for example posts/1,posts/2.".to_owned()))?;
    let mut threads = Vec::new();
    for name in names.split(',') {
        let (kind, record) = name
            .split_once('/')
            .ok_or_else(|| refuse(format!("\"{name}\" must be a type and an id, for example posts/1.")))?;
        let thread = policy::thread(config, kind, record).map_err(|refusal| match refusal {
            Refusal::UnknownType => refuse(format!("\"{kind}\" is an unknown commentable type.")),
            _ => refuse(format!("\"{record}\" is not a valid record id.")),
        })?;
        if !threads.contains(&thread) {
            threads.push(thread);
        }
    }
    if threads.len() > MAX_THREADS {
        return Err(refuse(format!("At most {MAX_THREADS} threads are allowed.")));
    }
    Ok(threads)
}

/// GET `{type}/{id}/changes`
pub(crate) async fn changes(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let thread = policy::thread(&app.config, kind, record);
    let exists = exists(&thread);
    let read = async { Ok(app.store.newest(&thread?).await?) };
    let newest = app.admit_everyone(call, RateClass::Changes, exists, read).await?;
    let next = wait(app.config.at_edge, newest.ids.first().copied(), app.clock.now());
    Ok(Answer::ok(&json!({ "data": { "count": newest.count, "newest": newest.ids, "next": next } }))
        .shared(Sharing::Everyone { seconds: 10 }))
}

/// Returns the seconds until a page should poll again: fewer if the newest comment is recent. Without a cache, each
/// request reaches the table, so pages poll less often.
fn wait(at_edge: bool, newest: Option<CommentId>, now: Timestamp) -> i64 {
    let age = newest.map_or(i64::MAX, |id| now.0 - id.created_at().0);
    let wait = WAITS.iter().find(|(bound, _)| age < *bound).map_or(LONGEST_WAIT, |(_, wait)| *wait);
    if at_edge { wait } else { wait.max(60) }
}
