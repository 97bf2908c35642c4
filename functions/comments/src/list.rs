//! Lists of comments: GET `{type}/{id}/comments` and GET `comments/{id}/replies`.

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::app::thread_list::ThreadRequest;
use shared::domain::viewer::Viewer;
use shared::error::{Refusal, Result};
use shared::http::cursor::CursorSigner;
use shared::http::list::{self, CommentList};
use shared::http::pagination::{self, Envelope, ListAddress};
use shared::http::request::{Call, path_id};
use shared::http::response::{Answer, Sharing};
use shared::policy;
use shared::store::Reading;
use shared::store::comments::{CommentWithAncestors, read_units};

/// GET `{type}/{id}/comments`
pub(crate) async fn thread(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let request = ThreadRequest::new(app, call, kind, record).including_ui(call);
    let owners = app.owners(call);
    let read = async {
        let mut read = request.read(&owners).await?;
        Ok((read.page.user.take(), read))
    };
    let (viewer, read) =
        app.admit_with_user(call, request.class(), request.exists(), AuthRequirement::None, read).await?;
    let presenter = app.presenter(call, &viewer, &read.page.thread, &read.page.visitor_state);
    let answer = request.answer(&ListAddress::of(call), &presenter, &read)?;
    Ok(answer.shared(sharing(&viewer, read.page.visitor_state.is_plain())).in_the_language_asked_for())
}

/// GET `comments/{id}/replies`
pub(crate) async fn replies(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let config = &app.config;
    let find = async { Ok(app.store.comment_with_ancestors(path_id(id)?, Reading::Eventual).await?) };
    let class = pagination::class(call, &config.lists, |per_page| read_units(per_page, Reading::Eventual));
    let (viewer, found) = app.admit_with(call, class, Ok(()), AuthRequirement::None, find).await?;
    let listed =
        |found: &CommentWithAncestors| policy::read_in_place(&viewer, &found.comment, &found.ancestors).is_ok();
    let found = app.store.reread_unless(found, listed).await?;
    let CommentWithAncestors { comment: parent, ancestors } = found.ok_or(Refusal::NotFound)?;
    let signer = CursorSigner::new(&config.visitor_salt, format!("branch {}", parent.id));
    if let Some((cursor, per_page)) = pagination::deep_paging(call, &config.lists, &signer)? {
        let page = app.store.branch_page(&parent, &viewer.owners, cursor.as_ref(), per_page).await?;
        let presenter = app.presenter(call, &viewer, &page.thread, &page.visitor_state);
        let data = page.replies.iter().map(|reply| presenter.present_below(&parent, reply)).collect();
        let [next, previous] = [page.next, page.previous].map(|cursor| cursor.map(|cursor| signer.sign_path(&cursor)));
        let answer = list::fitting(Envelope::cursor(&ListAddress::of(call), data, per_page, next, previous))?;
        let is_plain = page.visitor_state.is_plain() && policy::is_public(&parent, &ancestors);
        return Ok(answer.shared(sharing(&viewer, is_plain)).in_the_language_asked_for());
    }
    let signer = CursorSigner::new(&config.visitor_salt, format!("replies {}", parent.id));
    let paging = pagination::paging(call, &config.lists, Some(&signer))?;
    let page = app.store.reply_page(&parent, &viewer.owners, &paging).await?;

    let presenter = app.presenter(call, &viewer, &page.thread, &page.visitor_state);
    let is_plain = page.visitor_state.is_plain() && policy::is_public(&parent, &ancestors);
    let list = CommentList {
        data: page.replies.iter().map(|reply| presenter.present(reply)).collect(),
        total: page.total,
        paging,
        cursors: page.cursors,
        ui: None,
        count: None,
        closed: None,
    };
    let answer = list.answer(&ListAddress::of(call), &signer)?;
    Ok(answer.shared(sharing(&viewer, is_plain)).in_the_language_asked_for())
}

/// Returns who may cache the response. `is_plain`: whether the viewer gets the same data as everyone.
pub(crate) fn sharing(viewer: &Viewer, is_plain: bool) -> Sharing {
    if viewer.user.is_none() && is_plain { Sharing::Anonymous } else { Sharing::Private }
}
