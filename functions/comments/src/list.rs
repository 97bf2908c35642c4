//! Pages of a thread and of the replies to a comment.

use serde::Serialize;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::list::{Place, Sort};
use shared::domain::rate_limit::RateClass;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::cursor::CursorSigner;
use shared::http::pagination::{self, Envelope};
use shared::http::request::Call;
use shared::http::resource::{CommentPresenter, CommentResource};
use shared::http::response::{Answer, Sharing};
use shared::policy;
use shared::store::Reading;
use shared::store::comments::CommentWithAncestors;
use shared::store::lists::{Budget, List, PageCursors};

/// Lambda's six megabytes, less what the event around the body takes.
const MAX_ANSWER: usize = 5_900_000;

/// GET `{type}/{id}/comments` (spec, section 4.1).
pub(crate) async fn thread(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let config = &app.config;
    let thread = super::thread_id(app, kind, record);
    let sort = pagination::sort(call, &config.lists, config.features.sorting);
    let signer = CursorSigner::new(
        &config.visitor_salt,
        format!("{kind}#{record} {}", sort.as_ref().map_or("", |sort| sort.name())),
    );
    let by_time = sort.as_ref().is_ok_and(|sort: &Sort| !sort.is_ranked());
    let paging = pagination::paging(call, &config.lists, Some(&signer).filter(|_| by_time));
    let visitor = app.visitor(call);
    let exists = thread.as_ref().map(drop).map_err(Clone::clone);
    let read = async {
        let (thread, sort, paging) = (thread?, sort?, paging?);
        let embedded = config.lists.replies_per_parent;
        // A text is in the answer twice, as it was typed and as html.
        let budget = Budget::new(MAX_ANSWER / 2);
        let list = List { thread: &thread, visitor: &visitor, embedded, pins: config.features.pins, budget: &budget };
        let page = app.store.thread_page(list, sort, &paging).await?;
        Ok((paging, page))
    };
    let (viewer, (paging, page)) = app.admit_with(call, RateClass::Read, exists, AuthRequirement::None, read).await?;

    let now = app.clock.now();
    let presenter = CommentPresenter {
        config,
        viewer: &viewer,
        thread: &page.thread,
        visitor_state: &page.visitor_state,
        now,
        language: call.language(),
    };
    let data: Vec<_> =
        page.families.iter().map(|family| presenter.present_with_replies(&family.parent, &family.replies)).collect();
    let total = page.thread.parents + page.visitor_state.hidden_parents;
    answer(
        call,
        data,
        &paging.place,
        paging.per_page,
        total,
        page.cursors,
        &signer,
        sharing(&viewer, page.visitor_state.is_plain()),
    )
}

/// GET `comments/{id}/replies` (spec, section 4.3).
pub(crate) async fn replies(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let config = &app.config;
    let find = async { Ok(app.store.find(super::comment_id(id)?, Reading::Eventual).await?) };
    let (viewer, found) = app.admit_with(call, RateClass::Read, Ok(()), AuthRequirement::None, find).await?;
    let listed = |found: &CommentWithAncestors| policy::may_list_replies(&viewer, &found.comment, &found.ancestors);
    let found = app.store.confirm(found, listed).await?;
    let CommentWithAncestors { comment: parent, ancestors } = found.ok_or(Refusal::NotFound)?;
    let signer = CursorSigner::new(&config.visitor_salt, format!("replies {}", parent.id));
    let paging = pagination::paging(call, &config.lists, Some(&signer))?;
    let (thread, mut visitor_state, page) =
        app.store.reply_page(&parent, &viewer.visitor, &paging, config.lists.replies_per_parent).await?;
    app.store.complete_visitor_state(&mut visitor_state, &viewer.visitor, &parent.thread, [parent.id]).await?;

    let now = app.clock.now();
    let presenter = CommentPresenter {
        config,
        viewer: &viewer,
        thread: &thread,
        visitor_state: &visitor_state,
        now,
        language: call.language(),
    };
    let data: Vec<_> = page.replies.iter().map(|reply| presenter.present(reply)).collect();
    let sharing = sharing(&viewer, visitor_state.is_plain() && policy::is_public(&parent, &ancestors));
    answer(call, data, &paging.place, paging.per_page, page.total, page.cursors, &signer, sharing)
}

fn sharing(viewer: &Viewer, plain: bool) -> Sharing {
    if viewer.user.is_none() && plain { Sharing::Anonymous } else { Sharing::Private }
}

#[expect(clippy::too_many_arguments, reason = "all that an envelope is made of")]
fn answer(
    call: &Call,
    data: Vec<CommentResource>,
    place: &Place,
    per_page: usize,
    total: u64,
    cursors: PageCursors,
    signer: &CursorSigner<'_>,
    sharing: Sharing,
) -> Result<Answer> {
    let mut envelope = match place {
        Place::Page(page) => {
            let total = usize::try_from(total).unwrap_or(usize::MAX);
            Envelope::page(call, data, *page, per_page, total)
        }
        Place::Cursor(_) => {
            let close = |cursor| signer.sign(cursor);
            Envelope::cursor(call, data, per_page, cursors.next.map(close), cursors.previous.map(close))
        }
    };
    let mut answer = Answer::ok(&envelope);
    // Escaped once more, the text is at most twice as long.
    if answer.size() * 2 > MAX_ANSWER {
        fit(&mut envelope.data)?;
        answer = Answer::ok(&envelope);
    }
    Ok(answer.shared(sharing).in_the_language_asked_for())
}

/// Makes a page fit into Lambda's answer: embedded replies give way first, then the caller must ask for less.
fn fit(data: &mut [CommentResource]) -> Result<(), Refusal> {
    let most = data.iter().map(|resource| resource.replies.len()).max().unwrap_or(0);
    for embedded in (0..=most).rev() {
        for resource in data.iter_mut() {
            resource.replies.truncate(embedded);
        }
        if data.iter().map(payload).sum::<usize>() <= MAX_ANSWER {
            return Ok(());
        }
    }
    let mut room = MAX_ANSWER;
    let fits = data.iter().take_while(|resource| {
        let size = payload(resource);
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let fits = fits.count().max(1);
    Err(FieldErrors::one(
        "per_page",
        format!("These comments are too long for one page: ask for a per_page of {fits}."),
    ))
}

/// Bytes it takes in Lambda's answer, where the body is a JSON string once more.
fn payload(resource: &impl Serialize) -> usize {
    let json = serde_json::to_vec(resource).unwrap_or_default();
    json.len() + json.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count() + 1
}
