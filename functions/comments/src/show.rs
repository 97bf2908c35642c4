//! GET `comments/{id}`: a comment with its ancestors.

use serde::Serialize;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::rate_limit::RateClass;
use shared::error::{Refusal, Result};
use shared::http::request::{Call, path_id};
use shared::http::resource::{CommentResource, ThreadResource};
use shared::http::response::Answer;
use shared::policy;
use shared::store::comments::{CommentInThread, CommentWithAncestors};

use crate::list::sharing;

#[derive(Serialize)]
struct Shown {
    data: CommentResource,
    /// Ancestors from the top-level comment down to the direct parent.
    ancestors: Vec<CommentResource>,
    thread: ThreadResource,
}

pub(crate) async fn show(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let owners = app.owners(call);
    let find = async { Ok(app.store.comment_in_thread(path_id(id)?, &owners).await?) };
    let (viewer, found) = app.admit_with(call, RateClass::Read, Ok(()), AuthRequirement::None, find).await?;
    let CommentInThread { found, thread, visitor_state } = found.ok_or(Refusal::NotFound)?;
    let read = |found: &CommentWithAncestors| policy::read_in_place(&viewer, &found.comment, &found.ancestors).is_ok();
    let found = app.store.reread_unless(Some(found), read).await?;
    let CommentWithAncestors { comment, ancestors } = found.ok_or(Refusal::NotFound)?;

    let presenter = app.presenter(call, &viewer, &thread, &visitor_state);
    let shown = Shown {
        data: presenter.present(&comment),
        ancestors: ancestors.iter().map(|comment| presenter.present(comment)).collect(),
        thread: ThreadResource::new(&app.config, &comment.thread, &thread),
    };
    let is_plain = visitor_state.is_plain() && policy::is_public(&comment, &ancestors);
    Ok(Answer::ok(&shown).shared(sharing(&viewer, is_plain)).in_the_language_asked_for())
}
