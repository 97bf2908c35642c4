//! Lists that moderators page through by cursor. They are not counted, so they have no numbered pages.

use serde::Serialize;
use shared::app::App;
use shared::domain::list::{Cursor, PagePosition};
use shared::error::Refusal;
use shared::http::cursor::CursorSigner;
use shared::http::pagination::{self, Envelope, ListAddress};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::http::size;
use shared::store::lists::PageCursors;

/// The requested page of a list.
pub(crate) struct Walk<'a> {
    signer: CursorSigner<'a>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) per_page: usize,
}

impl<'a> Walk<'a> {
    /// `list` identifies the list, so that no other list accepts its cursors.
    pub(crate) fn new(app: &'a App, call: &Call, list: String) -> Result<Self, Refusal> {
        let signer = CursorSigner::new(&app.config.visitor_salt, list);
        let paging = pagination::paging(call, &app.config.lists, Some(&signer))?;
        let cursor = match paging.position {
            PagePosition::Cursor(cursor) => cursor,
            PagePosition::Page(_) => None,
        };
        Ok(Self { signer, cursor, per_page: paging.per_page })
    }

    pub(crate) fn answer<T: Serialize>(
        &self,
        call: &Call,
        data: Vec<T>,
        cursors: PageCursors,
    ) -> Result<Answer, Refusal> {
        self.envelope(call, data, cursors).map(|envelope| Answer::ok(&envelope))
    }

    /// Returns the page with its links. Refuses a page that is too large for a response.
    pub(crate) fn envelope<T: Serialize>(
        &self,
        call: &Call,
        data: Vec<T>,
        cursors: PageCursors,
    ) -> Result<Envelope<T>, Refusal> {
        size::check(&data)?;
        let sign = |cursor| self.signer.sign(cursor);
        let (next, previous) = (cursors.next.map(sign), cursors.previous.map(sign));
        Ok(Envelope::cursor(&ListAddress::of(call), data, self.per_page, next, previous))
    }
}
