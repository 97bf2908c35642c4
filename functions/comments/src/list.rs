//! Pages of comments: `comments.index` and `comments.replies`.

use serde_json::Value;
use shared::app::App;
use shared::app::admission::{AuthRequirement, exists};
use shared::domain::list::{PagePosition, Paging, Sort};
use shared::domain::texts::Labels;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::cursor::CursorSigner;
use shared::http::pagination::{self, Envelope};
use shared::http::request::{Call, path_id};
use shared::http::resource::CommentResource;
use shared::http::response::{Answer, Sharing};
use shared::http::size::{self, MAX_ANSWER};
use shared::http::ui;
use shared::policy;
use shared::store::Reading;
use shared::store::comments::{CommentWithAncestors, read_units};
use shared::store::lists::{Budget, List, PageCursors};

/// GET `{type}/{id}/comments`
pub(crate) async fn thread(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let config = &app.config;
    let thread = policy::thread(config, kind, record);
    let sort = pagination::sort(call, &config.lists, config.features.sorting);
    let name = sort.as_ref().map_or("", |sort| sort.name());
    let signer = CursorSigner::new(&config.visitor_salt, format!("{kind}#{record} {name}"));
    let by_time = sort.as_ref().is_ok_and(|sort: &Sort| !sort.is_ranked());
    let paging = pagination::paging(call, &config.lists, by_time.then_some(&signer));
    let with_ui = includes_ui(call);
    let owners = app.owners(call);
    let exists = exists(&thread);
    let read = async {
        let (thread, sort, paging, counted) = (thread?, sort?, paging?, with_ui?);
        // The answer has each text twice, as it was typed and as html.
        let budget = Budget::new(MAX_ANSWER / 2);
        let list = List { thread: &thread, owners: &owners, pins: config.features.pins, counted, budget: &budget };
        let mut page = app.store.thread_page(list, sort, &paging).await?;
        Ok((page.user.take(), (paging, page)))
    };
    let class = pagination::class(call, &config.lists, |per_page| app.store.page_units(per_page));
    let (viewer, (paging, page)) = app.admit_with_user(call, class, exists, AuthRequirement::None, read).await?;

    let presenter = app.presenter(call, &viewer, &page.thread, &page.visitor_state);
    let data =
        page.parents.iter().map(|parent| presenter.present_with_replies(&parent.comment, &parent.replies)).collect();
    let list = Page {
        data,
        total: page.thread.parents + page.visitor_state.hidden_parents,
        paging,
        cursors: page.cursors,
        sharing: sharing(&viewer, page.visitor_state.is_plain()),
        ui: page.count.map(|_| ui::configuration(config, &viewer, Labels::of_widget(call.language()))),
        count: page.count,
    };
    list.answer(call, &signer)
}

/// Whether the list should include what `ui` answers.
fn includes_ui(call: &Call) -> Result<bool, Refusal> {
    match call.parameter("include") {
        None => Ok(false),
        Some("ui") => Ok(true),
        Some(_) => Err(FieldErrors::one("include", "The include must be ui.")),
    }
}

/// GET `comments/{id}/replies`
pub(crate) async fn replies(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let config = &app.config;
    let find = async { Ok(app.store.find(path_id(id)?, Reading::Eventual).await?) };
    let class = pagination::class(call, &config.lists, |per_page| read_units(per_page, Reading::Eventual));
    let (viewer, found) = app.admit_with(call, class, Ok(()), AuthRequirement::None, find).await?;
    let listed =
        |found: &CommentWithAncestors| policy::read_in_place(&viewer, &found.comment, &found.ancestors).is_ok();
    let found = app.store.confirm(found, listed).await?;
    let CommentWithAncestors { comment: parent, ancestors } = found.ok_or(Refusal::NotFound)?;
    let signer = CursorSigner::new(&config.visitor_salt, format!("replies {}", parent.id));
    let paging = pagination::paging(call, &config.lists, Some(&signer))?;
    let page = app.store.reply_page(&parent, &viewer.owners, &paging).await?;

    let presenter = app.presenter(call, &viewer, &page.thread, &page.visitor_state);
    let is_plain = page.visitor_state.is_plain() && policy::is_public(&parent, &ancestors);
    let list = Page {
        data: page.replies.iter().map(|reply| presenter.present(reply)).collect(),
        total: page.total,
        paging,
        cursors: page.cursors,
        sharing: sharing(&viewer, is_plain),
        ui: None,
        count: None,
    };
    list.answer(call, &signer)
}

/// `is_plain`: the viewer gets what everyone gets.
pub(crate) fn sharing(viewer: &Viewer, is_plain: bool) -> Sharing {
    if viewer.user.is_none() && is_plain { Sharing::Anonymous } else { Sharing::Private }
}

struct Page {
    data: Vec<CommentResource>,
    total: u64,
    paging: Paging,
    cursors: PageCursors,
    sharing: Sharing,
    /// What `ui` answers, where the list includes it.
    ui: Option<Value>,
    /// How many comments of the thread everyone may see, where the list includes `ui`.
    count: Option<u64>,
}

impl Page {
    fn answer(self, call: &Call, signer: &CursorSigner<'_>) -> Result<Answer> {
        let per_page = self.paging.per_page;
        let mut envelope = match self.paging.position {
            PagePosition::Page(page) => {
                let total = usize::try_from(self.total).unwrap_or(usize::MAX);
                Envelope::page(call, self.data, page, per_page, total)
            }
            PagePosition::Cursor(_) => {
                let sign = |cursor| signer.sign(cursor);
                Envelope::cursor(
                    call,
                    self.data,
                    per_page,
                    self.cursors.next.map(sign),
                    self.cursors.previous.map(sign),
                )
                .of_total(self.total)
            }
        };
        envelope.ui = self.ui;
        envelope.meta.count = self.count;
        let mut answer = Answer::ok(&envelope);
        // Escaped once more as a string, the body at most doubles.
        if answer.size() * 2 > MAX_ANSWER {
            fit(&mut envelope.data)?;
            answer = Answer::ok(&envelope);
        }
        Ok(answer.shared(self.sharing).in_the_language_asked_for())
    }
}

/// Makes a page fit into Lambda's answer. Drops embedded replies first; if that is not enough, the caller must ask for fewer
/// comments.
fn fit(data: &mut [CommentResource]) -> Result<(), Refusal> {
    let most = data.iter().map(|resource| resource.replies.len()).max().unwrap_or(0);
    for embedded in (0..=most).rev() {
        for resource in data.iter_mut() {
            resource.replies.truncate(embedded);
        }
        if size::fits(data) {
            return Ok(());
        }
    }
    size::check(data)
}
