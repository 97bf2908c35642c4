//! A page of a thread: the request's parameters, the reads, and the list in the response. `comments.index` returns the caller's
//! view of the page, and public routes return the anonymous view.

use crate::app::App;
use crate::app::admission::{self, RateClass};
use crate::domain::ids::ThreadId;
use crate::domain::list::{Cursor, MAX_NUMBERED, PagePosition, Paging, Sort};
use crate::domain::texts::Labels;
use crate::domain::viewer::Owners;
use crate::error::{FieldErrors, Refusal, Result};
use crate::http::cursor::CursorSigner;
use crate::http::list::CommentList;
use crate::http::pagination::{self, ListAddress};
use crate::http::request::Call;
use crate::http::resource::CommentPresenter;
use crate::http::response::Answer;
use crate::http::size::MAX_ANSWER;
use crate::http::ui;
use crate::policy;
use crate::store::lists::{Budget, List, PageCursors, ThreadPage};

pub struct ThreadRequest<'a> {
    app: &'a App,
    class: RateClass,
    exists: Result<(), Refusal>,
    wanted: Result<Wanted, Refusal>,
    signer: CursorSigner<'a>,
}

struct Wanted {
    thread: ThreadId,
    sort: Sort,
    paging: Paging,
    /// Whether the list includes the response of `ui`.
    with_ui: bool,
}

pub struct PageRead {
    pub page: ThreadPage,
    pub sort: Sort,
    pub paging: Paging,
}

impl<'a> ThreadRequest<'a> {
    #[must_use]
    pub fn new(app: &'a App, call: &Call, kind: &str, record: &str) -> Self {
        let config = &app.config;
        let thread = policy::thread(config, kind, record);
        let sort = pagination::sort(call, &config.lists, config.features.sorting);
        let name = sort.as_ref().map_or("", |sort| sort.name());
        let signer = CursorSigner::new(&config.visitor_salt, format!("{kind}#{record} {name}"));
        let by_time = sort.as_ref().is_ok_and(|sort: &Sort| !sort.is_ranked());
        let paging = pagination::paging(call, &config.lists, by_time.then_some(&signer));
        let class = pagination::class(call, &config.lists, |per_page| app.store.max_page_units(per_page));
        let exists = admission::exists(&thread);
        let wanted = || Ok(Wanted { thread: thread?, sort: sort?, paging: paging?, with_ui: false });
        Self { app, class, exists, wanted: wanted(), signer }
    }

    /// Adds the response of `ui` to the list if the request has `include=ui`.
    #[must_use]
    pub fn including_ui(mut self, call: &Call) -> Self {
        self.wanted = self.wanted.and_then(|wanted| Ok(Wanted { with_ui: includes_ui(call)?, ..wanted }));
        self
    }

    /// Makes a request for page 1 start paging by cursor, if the sort supports cursors.
    #[must_use]
    pub fn walking(mut self) -> Self {
        if let Ok(Wanted { sort, paging, .. }) = &mut self.wanted
            && !sort.is_ranked()
            && matches!(paging.position, PagePosition::Page(1))
        {
            paging.position = PagePosition::Cursor(None);
        }
        self
    }

    pub fn class(&self) -> RateClass {
        self.class
    }

    pub fn exists(&self) -> Result<(), Refusal> {
        self.exists.clone()
    }

    pub async fn read(&self, owners: &Owners) -> Result<PageRead> {
        let Wanted { thread, sort, paging, with_ui } = self.wanted.as_ref().map_err(Clone::clone)?;
        // The response contains each text twice, as typed and as HTML.
        let budget = Budget::new(MAX_ANSWER / 2);
        let pins = self.app.config.features.pins;
        let list = List { thread, owners, pins, counted: *with_ui, budget: &budget };
        let page = self.app.store.thread_page(list, *sort, paging).await?;
        Ok(PageRead { page, sort: *sort, paging: *paging })
    }

    /// Links to the previous and next pages, by cursor if the sort supports cursors.
    #[must_use]
    pub fn neighbours(&self, address: &ListAddress, read: &PageRead) -> Neighbours {
        let PageRead { page, sort, paging } = read;
        let number = match paging.position {
            PagePosition::Page(number) if sort.is_ranked() => number,
            _ => return Neighbours::in_walk(address, &self.signer, page.cursors),
        };
        let total = usize::try_from(page.thread.parents).unwrap_or(usize::MAX).min(MAX_NUMBERED);
        let last = total.div_ceil(paging.per_page).max(1);
        let link = |number: usize| address.with("page", &number.to_string());
        Neighbours {
            prev: (number > 1).then(|| link((number - 1).min(last))),
            next: (number < last).then(|| link(number + 1)),
        }
    }

    /// `address` is the base of the response's links.
    pub fn answer(&self, address: &ListAddress, presenter: &CommentPresenter<'_>, read: &PageRead) -> Result<Answer> {
        let page = &read.page;
        let parents = page.parents.iter();
        let configuration = |_| {
            let labels = Labels::of_widget(presenter.language);
            ui::configuration(presenter.config, presenter.viewer, labels, presenter.now)
        };
        let list = CommentList {
            data: parents.map(|parent| presenter.present_with_replies(&parent.comment, &parent.replies)).collect(),
            total: page.thread.parents + page.visitor_state.hidden_parents,
            paging: read.paging,
            cursors: page.cursors,
            ui: page.count.map(configuration),
            count: page.count,
            closed: Some(policy::is_closed(presenter.config, &page.thread, presenter.now)),
        };
        Ok(list.answer(address, &self.signer)?)
    }
}

#[derive(Debug, Default)]
pub struct Neighbours {
    pub prev: Option<String>,
    pub next: Option<String>,
}

impl Neighbours {
    /// Links to the neighbors of a page, by cursor.
    #[must_use]
    pub fn in_walk(address: &ListAddress, signer: &CursorSigner<'_>, cursors: PageCursors) -> Self {
        let link = |cursor: Option<Cursor>| cursor.map(|cursor| address.with("cursor", &signer.sign(cursor)));
        Self { prev: link(cursors.previous), next: link(cursors.next) }
    }
}

fn includes_ui(call: &Call) -> Result<bool, Refusal> {
    match call.parameter("include") {
        None => Ok(false),
        Some("ui") => Ok(true),
        Some(_) => Err(FieldErrors::one("include", "The include parameter must be \"ui\".")),
    }
}
