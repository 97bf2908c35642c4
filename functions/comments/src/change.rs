//! PATCH and DELETE `comments/{id}`.

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::app::spam_check::Draft;
use shared::domain::markdown;
use shared::domain::rate_limit::RateClass;
use shared::domain::viewer::Viewer;
use shared::error::{Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::resource::Data;
use shared::http::response::Answer;
use shared::policy;
use shared::store::comments::{CommentWithAncestors, Edit};

pub(crate) async fn edit(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, CommentWithAncestors { comment, .. }) = admit_writer_of(app, call, id).await?;
    policy::edit(&viewer, &comment, app.clock.now())?;
    let body = body(call)?;
    let (thread, mut visitor_state) = app.store.thread_and_visitor_state(&comment.thread, &viewer.owners).await?;
    let url = app.config.page_of(&comment.thread, thread.known_url_or(comment.page.as_deref()));
    let draft = Draft { body: &body, author: &comment.name, email: None, url: url.as_deref(), edit: true };
    let handles = async { Ok(app.store.mentioned_handles(markdown::mentions(&body)).await?) };
    let (judgment, mentions) = tokio::try_join!(app.judge(call, &viewer, draft), handles)?;

    let edit = Edit { body, mentions, at: app.clock.now(), judgment };
    let comment = app.store.edit(&comment, edit).await?.ok_or(Refusal::NotFound)?;
    let group = comment.parent().unwrap_or(comment.id);
    app.store.complete_visitor_state(&mut visitor_state, &viewer.owners.reactions, &comment.thread, [group]).await?;
    let presenter = app.presenter(call, &viewer, &thread, &visitor_state);
    Ok(Answer::ok(&Data { data: presenter.present(&comment) }))
}

pub(crate) async fn delete(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, found) = admit_writer_of(app, call, id).await?;
    policy::delete(&viewer, &found.comment, app.clock.now())?;
    if app.store.delete(found).await? { Ok(Answer::no_content()) } else { Err(Refusal::NotFound.into()) }
}

/// Admits the caller. Returns the viewer and the comment if the viewer may see it.
async fn admit_writer_of(app: &App, call: &Call, id: &str) -> Result<(Viewer, CommentWithAncestors)> {
    let find = app.comment_from_path(id);
    let auth = AuthRequirement::GuestsIf(call.has_comment_key());
    let (viewer, found) = app.admit_with(call, RateClass::Write, Ok(()), auth, find).await?;
    policy::see(&viewer, &found.comment, &found.ancestors)?;
    call.comment_key()?;
    Ok((viewer, found))
}

fn body(call: &Call) -> Result<String, Refusal> {
    let mut input = Input::of_reader(call.json()?, call.language());
    let body = input.body();
    input.finish()?;
    Ok(body)
}
