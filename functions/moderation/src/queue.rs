//! GET `moderation/comments`: comments that are pending, reported or rejected, all recent ones, or one by its id. GET
//! `users/{id}/comments`: a user's comments.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use serde::Serialize;
use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::exists;
use shared::domain::author::Author;
use shared::domain::comment::{Comment, HeldFor};
use shared::domain::ids::UserId;
use shared::domain::name::{Look, ModeratorNames};
use shared::domain::rate_limit::RateClass;
use shared::domain::rejection::{Grounds, Rejection, RejectionReason};
use shared::domain::report::ReportExcerpt;
use shared::domain::thread::Thread;
use shared::domain::time::Timestamp;
use shared::domain::trust::Trust;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::pagination;
use shared::http::request::{Call, path_id};
use shared::http::resource::{CommentResource, ThreadResource, VerdictResource};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;
use shared::store::comments::{CommentWithAncestors, read_units};
use shared::store::lists::PageCursors;
use shared::store::queue::QueueState;

use crate::filter::{self, Filter};
use crate::walk::Walk;

/// A comment with everything that a moderator needs to decide about it.
#[derive(Serialize)]
struct Item {
    #[serde(flatten)]
    comment: CommentResource,
    thread: ModeratedThread,
    /// The hash of the guest's network, if banning the writer bans that network.
    network: Option<String>,
    parent: Option<CommentResource>,
    held_for: Option<HeldFor>,
    verdicts: Vec<VerdictResource>,
    /// `None` for guests without a key, who may be several people.
    writer: Option<WriterResource>,
    /// The moderator or record's author whose name the guest's name resembles.
    looks_like: Option<Namesake>,
    reports_count: u64,
    /// The newest reports.
    reports: Vec<ReportResource>,
    rejection: Option<RejectionResource>,
}

#[derive(Serialize)]
struct RejectionResource {
    reason: Option<RejectionReason>,
    note: Option<String>,
    moderator: Value,
    created_at: Timestamp,
}

impl From<&Rejection> for RejectionResource {
    fn from(rejection: &Rejection) -> Self {
        let Grounds { reason, note } = rejection.grounds.clone();
        let moderator = json!({ "id": rejection.moderator, "name": rejection.name });
        Self { reason, note, moderator, created_at: rejection.at }
    }
}

#[derive(Serialize)]
struct ModeratedThread {
    #[serde(flatten)]
    thread: ThreadResource,
    closed: bool,
}

impl ModeratedThread {
    fn new(app: &App, comment: &Comment, thread: &Thread) -> Self {
        let closed = policy::is_closed(&app.config, thread, app.clock.now());
        let page = comment.page.as_deref();
        Self { thread: ThreadResource::with_page(&app.config, &comment.thread, thread, page), closed }
    }
}

/// Moderators' earlier decisions about the writer's comments.
#[derive(Serialize)]
struct WriterResource {
    approved: usize,
    /// Rejected comments of the last 30 days.
    rejected: usize,
}

impl WriterResource {
    fn new(trust: &Trust, now: Timestamp) -> Self {
        Self { approved: trust.approved().len(), rejected: trust.recently_rejected(now) }
    }
}

#[derive(Serialize)]
struct Namesake {
    id: UserId,
    name: String,
}

/// Users whose comments have a badge, with their names.
struct Badges {
    moderators: ModeratorNames,
    authors: BTreeMap<UserId, String>,
}

impl Badges {
    fn like(&self, comment: &Comment, thread: &Thread) -> Option<Namesake> {
        if comment.user.is_some() {
            return None;
        }
        let look = Look::of(&comment.name);
        let author = || {
            let (id, name) = thread.author.and_then(|author| self.authors.get_key_value(&author))?;
            Look::of(name).is_like(&look).then_some((*id, name.as_str()))
        };
        let found = self.moderators.like(&look).next().or_else(author);
        found.map(|(id, name)| Namesake { id, name: name.to_owned() })
    }
}

#[derive(Serialize)]
struct ReportResource {
    reason: String,
    created_at: Timestamp,
}

impl From<&ReportExcerpt> for ReportResource {
    fn from(report: &ReportExcerpt) -> Self {
        Self { reason: report.reason.clone(), created_at: report.created_at }
    }
}

pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let moderator = app.admit_moderator(call, class(app, call), Ok(())).await?;
    if let Some(id) = call.parameter("id") {
        return one(app, call, &moderator, id).await;
    }
    let state = state(call)?;
    let filter = Filter::read(app, call)?;
    let walk = Walk::new(app, call, format!("queue {}{}", state.name(), filters(call)))?;
    let now = app.clock.now();
    let page = async {
        match &filter {
            None => app.store.queue(state, walk.cursor, walk.per_page, now).await,
            Some(filter) => {
                let passes = |comment: &Comment| filter.passes(comment);
                app.store.filtered_queue(state, walk.cursor, walk.per_page, now, filter.since, passes).await
            }
        }
    };
    let ((found, cursors), counts) = try_join(page, app.store.queue_counts()).await?;
    let mut envelope = walk.envelope(call, present(app, call, &moderator, &found).await?, cursors)?;
    envelope.meta.counts = Some(counts);
    Ok(Answer::ok(&envelope).in_the_language_asked_for())
}

/// Returns the item of one comment, whatever its state.
async fn one(app: &App, call: &Call, viewer: &Viewer, id: &str) -> Result<Answer> {
    let mut others = ["state"].into_iter().chain(filter::PARAMETERS);
    if let Some(name) = others.find(|name| call.parameter(name).is_some()) {
        return Err(FieldErrors::one(name, format!("The {name} can't be combined with an id.")).into());
    }
    let walk = Walk::new(app, call, format!("comment {id}"))?;
    let (mut found, counts) =
        try_join(app.store.comments_with_ancestors(vec![path_id(id)?]), app.store.queue_counts()).await?;
    found.retain(|found| !found.comment.is_placeholder);
    if found.is_empty() {
        return Err(Refusal::NotFound.into());
    }
    let mut envelope = walk.envelope(call, present(app, call, viewer, &found).await?, PageCursors::default())?;
    envelope.meta.counts = Some(counts);
    Ok(Answer::ok(&envelope).in_the_language_asked_for())
}

pub(crate) async fn of_user(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let id = path_id::<UserId>(id);
    let moderator = app.admit_moderator(call, class(app, call), exists(&id)).await?;
    let id = id?;
    let walk = Walk::new(app, call, format!("user {id}"))?;
    let (found, cursors) = app.store.written_by(&id.into(), walk.cursor, walk.per_page).await?;
    let items = present(app, call, &moderator, &found).await?;
    Ok(walk.answer(call, items, cursors)?.in_the_language_asked_for())
}

fn class(app: &App, call: &Call) -> RateClass {
    pagination::class(call, &app.config.lists, |per_page| read_units(per_page, Reading::Consistent))
}

async fn present(app: &App, call: &Call, viewer: &Viewer, found: &[CommentWithAncestors]) -> Result<Vec<Item>> {
    let shown: Vec<Comment> =
        found.iter().flat_map(|found| found.ancestors.last().into_iter().chain([&found.comment])).cloned().collect();
    let known = app.store.threads_and_visitor_states(&shown, &viewer.owners);
    let writers = found.iter().map(|found| found.comment.visitor()).collect();
    // Only guests' names are checked for resemblance to a moderator's or the author's.
    let by_guests = || found.iter().map(|found| &found.comment).filter(|comment| comment.user.is_none());
    let moderators = async {
        let has_guests = by_guests().next().is_some();
        if has_guests { app.present_moderator_names().await } else { Ok(ModeratorNames::default()) }
    };
    let (known, trust, moderators) = tokio::try_join!(known, app.store.trust_in_all(writers), moderators)?;
    let authors = by_guests().filter_map(|comment| known.get(&comment.thread)?.0.author);
    let badges = Badges { moderators, authors: app.store.names_of(authors).await? };
    let now = app.clock.now();
    let items = found.iter().filter_map(|CommentWithAncestors { comment, ancestors }| {
        let (thread, visitor_state) = known.get(&comment.thread)?;
        let presenter = app.presenter(call, viewer, thread, visitor_state);
        Some(Item {
            comment: presenter.present(comment),
            thread: ModeratedThread::new(app, comment, thread),
            network: network(comment),
            parent: ancestors.last().map(|parent| presenter.present(parent)),
            held_for: comment.held_for(),
            verdicts: comment.verdicts.iter().map(VerdictResource::from).collect(),
            writer: trust.get(&comment.visitor()).map(|trust| WriterResource::new(trust, now)),
            looks_like: badges.like(comment, thread),
            reports_count: comment.reports,
            reports: comment.newest_reports.iter().map(ReportResource::from).collect(),
            rejection: comment.rejection.as_deref().map(RejectionResource::from),
        })
    });
    Ok(items.collect())
}

fn network(comment: &Comment) -> Option<String> {
    match policy::banned_for(comment) {
        Ok(Author::Network(network)) => Some(network),
        _ => None,
    }
}

/// Returns the request's filters as text. A cursor is valid only for a list with the same filters.
fn filters(call: &Call) -> String {
    let given = filter::PARAMETERS.into_iter().filter_map(|name| Some((name, call.parameter(name)?)));
    given.fold(String::new(), |list, (name, text)| format!("{list} {name}={text}"))
}

fn state(call: &Call) -> Result<QueueState, Refusal> {
    let name = call.parameter("state").unwrap_or("pending");
    QueueState::parse(name)
        .ok_or_else(|| FieldErrors::one("state", "The state must be one of pending, reported, rejected, all."))
}
