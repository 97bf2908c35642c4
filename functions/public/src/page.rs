//! GET `{type}/{id}/comments.html`: a thread as a page, or as a section for a host page.

use http::{HeaderValue, StatusCode, header};
use shared::app::App;
use shared::app::admission::exists;
use shared::app::thread_list::{Neighbours, ThreadRequest};
use shared::domain::list::{PagePosition, Paging};
use shared::domain::viewer::Viewer;
use shared::error::{Refusal, Result};
use shared::http::content_policy;
use shared::http::cursor::CursorSigner;
use shared::http::pagination::{self, ListAddress};
use shared::http::request::{Call, path_id};
use shared::http::response::{Answer, Sharing};
use shared::http::size;
use shared::policy;
use shared::store::Reading;
use shared::store::comments::{CommentWithAncestors, read_units};
use shared::store::lists::CommentWithReplies;

use crate::html::{STYLE, Section, document};

/// The parameters that links to other pages keep.
const LINK_PARAMETERS: [&str; 4] = ["lang", "sort", "per_page", "parent"];

/// Caches may show the old state of a deleted, edited, rejected or erased comment for five more minutes, and for a day
/// while the service fails.
const SHARING: Sharing = Sharing::Public { fresh: 60, stale: 240, failing: 86_400 };

pub(crate) async fn page(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let mut section = match call.parameter("parent") {
        Some(parent) => replies(app, call, kind, record, parent).await?,
        None => thread(app, call, kind, record).await?,
    };
    let mut articles = section.articles();
    if !size::fits(&articles) {
        section.leave_out_replies();
        articles = section.articles();
        size::check(&articles)?;
    }
    let body = section.markup(&articles);
    let html = if call.parameter("fragment") == Some("1") { body } else { document(&section, &body) };
    let policy = format!(
        "default-src 'none'; img-src http: https:; style-src '{}'; base-uri 'none'; form-action 'none'",
        content_policy::hash(STYLE)
    );
    let mut answer = Answer::page(StatusCode::OK, html.into_string(), &policy);
    answer.set(header::CONTENT_LANGUAGE, HeaderValue::from_static(section.language.tag()));
    Ok(answer.shared(SHARING).by_origin(app.config.varies_by_origin()))
}

async fn thread<'a>(app: &'a App, call: &Call, kind: &str, record: &str) -> Result<Section<'a>> {
    let request = ThreadRequest::new(app, call, kind, record).walking();
    let viewer = Viewer::nobody();
    let read = app.admit_everyone(call, request.class(), request.exists(), request.read(&viewer.owners)).await?;
    let address = ListAddress::of(call).keeping(&LINK_PARAMETERS);
    let neighbours = request.neighbours(&address, &read);
    let is_first = neighbours.prev.is_none();
    let url = app.config.page_of(&policy::thread(&app.config, kind, record)?, read.page.thread.known_url());
    Ok(Section {
        config: &app.config,
        language: call.named_language(),
        address,
        canonical: url.clone().filter(|_| is_first),
        url,
        thread: read.page.thread,
        comments: read.page.parents,
        neighbours,
        parent: None,
    })
}

/// Reads a comment with a page of its replies.
async fn replies<'a>(app: &'a App, call: &Call, kind: &str, record: &str, parent: &str) -> Result<Section<'a>> {
    let config = &app.config;
    let viewer = Viewer::nobody();
    let thread = policy::thread(config, kind, record);
    let listed = |found: &CommentWithAncestors| policy::is_public(&found.comment, &found.ancestors);
    let class = pagination::class(call, &config.lists, |per_page| read_units(per_page, Reading::Eventual));
    let is_known = exists(&thread);
    let read = async {
        let thread = thread?;
        let found = app.store.comment_with_ancestors(path_id(parent)?, Reading::Eventual).await?;
        let found = app.store.reread_unless(found, listed).await?;
        let comment = found.map(|found| found.comment).filter(|comment| comment.thread == thread);
        let comment = comment.ok_or(Refusal::NotFound)?;
        let signer = CursorSigner::new(&config.visitor_salt, format!("replies {}", comment.id));
        let paging = walk(pagination::paging(call, &config.lists, Some(&signer))?);
        let page = app.store.reply_page(&comment, &viewer.owners, &paging).await?;
        Ok((comment, signer, page))
    };
    let (comment, signer, page) = app.admit_everyone(call, class, is_known, read).await?;
    let address = ListAddress::of(call).keeping(&LINK_PARAMETERS);
    let neighbours = Neighbours::in_walk(&address, &signer, page.cursors);
    Ok(Section {
        config,
        language: call.named_language(),
        address,
        canonical: None,
        url: config.page_of(&comment.thread, page.thread.known_url()),
        thread: page.thread,
        parent: Some(comment.id),
        comments: vec![CommentWithReplies { comment, replies: page.replies }],
        neighbours,
    })
}

/// Starts at the first reply if there is no cursor, whatever the page number, because pages of replies link only by cursor.
fn walk(paging: Paging) -> Paging {
    match paging.position {
        PagePosition::Page(_) => Paging { position: PagePosition::Cursor(None), ..paging },
        PagePosition::Cursor(_) => paging,
    }
}
