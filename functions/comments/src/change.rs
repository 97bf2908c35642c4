//! PATCH and DELETE `comments/{id}` (spec, sections 4.4 and 4.5).

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::app::spam_check::Draft;
use shared::domain::markdown;
use shared::domain::rate_limit::RateClass;
use shared::domain::spam::Verdict;
use shared::domain::viewer::Viewer;
use shared::error::{Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::resource::{CommentPresenter, Data};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;
use shared::store::comments::{CommentWithAncestors, Edit};

pub(crate) async fn edit(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, found) = own(app, call, id, policy::may_edit).await?;
    let mut input = Input::new(call.json()?);
    let body = input.body();
    input.finish()?;
    let draft = Draft { body: &body, author: &found.comment.name, email: None, edit: true };
    let verdict = app.screen(call, &viewer, draft).await?;
    if verdict == Verdict::Deny {
        return Err(Refusal::SpamRejected.into());
    }
    let now = app.clock.now();
    let handles = app.store.known_handles(markdown::mentions(&body));
    let known = app.store.thread_and_visitor_state(&found.comment.thread, &viewer.visitor);
    let (mentions, (thread, mut visitor_state)) = tokio::try_join!(handles, known)?;
    let edit = Edit { body, mentions, at: now.0, review: verdict == Verdict::Review };
    let comment = app.store.edit(&found.comment, edit).await?.ok_or(Refusal::NotFound)?;
    let group = comment.parent().unwrap_or(comment.id);
    app.store.complete_visitor_state(&mut visitor_state, &viewer.visitor, &comment.thread, [group]).await?;
    let presenter = CommentPresenter {
        config: &app.config,
        viewer: &viewer,
        thread: &thread,
        visitor_state: &visitor_state,
        now,
        language: call.language(),
    };
    Ok(Answer::ok(&Data { data: presenter.present(&comment) }))
}

pub(crate) async fn delete(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (_, found) = own(app, call, id, policy::may_delete).await?;
    if app.store.delete(found.comment).await? { Ok(Answer::no_content()) } else { Err(Refusal::NotFound.into()) }
}

/// The comment, when the viewer may do this to it.
async fn own(
    app: &App,
    call: &Call,
    id: &str,
    may: fn(&Viewer, &shared::domain::comment::Comment) -> bool,
) -> Result<(Viewer, CommentWithAncestors)> {
    let find =
        async { Ok(app.store.find(super::comment_id(id)?, Reading::Consistent).await?.ok_or(Refusal::NotFound)?) };
    let (viewer, found) = app.admit_with(call, RateClass::Write, Ok(()), AuthRequirement::User, find).await?;
    if !policy::may_see(&viewer, &found.comment, &found.ancestors) {
        return Err(Refusal::NotFound.into());
    }
    if may(&viewer, &found.comment) { Ok((viewer, found)) } else { Err(Refusal::Forbidden.into()) }
}
