//! A page of comments as a response.

use serde_json::Value;

use crate::domain::list::{PagePosition, Paging};
use crate::error::Refusal;
use crate::http::cursor::CursorSigner;
use crate::http::pagination::{Envelope, ListAddress};
use crate::http::resource::CommentResource;
use crate::http::response::Answer;
use crate::http::size::{self, MAX_ANSWER};
use crate::store::lists::PageCursors;

#[derive(Debug)]
pub struct CommentList {
    pub data: Vec<CommentResource>,
    pub total: u64,
    pub paging: Paging,
    pub cursors: PageCursors,
    /// The response of `ui`, if the list includes it.
    pub ui: Option<Value>,
    /// The number of the thread's public comments, if the list includes `ui`.
    pub count: Option<u64>,
    /// Whether the thread is closed; only in the thread's own list.
    pub closed: Option<bool>,
}

impl CommentList {
    pub fn answer(self, address: &ListAddress, signer: &CursorSigner<'_>) -> Result<Answer, Refusal> {
        let per_page = self.paging.per_page;
        let mut envelope = match self.paging.position {
            PagePosition::Page(page) => {
                let total = usize::try_from(self.total).unwrap_or(usize::MAX);
                Envelope::page(address, self.data, page, per_page, total)
            }
            PagePosition::Cursor(_) => {
                let [next, previous] =
                    [self.cursors.next, self.cursors.previous].map(|cursor| cursor.map(|cursor| signer.sign(cursor)));
                Envelope::cursor(address, self.data, per_page, next, previous).of_total(self.total)
            }
        };
        envelope.ui = self.ui;
        envelope.meta.count = self.count;
        envelope.meta.closed = self.closed;
        fitting(envelope)
    }
}

/// The response, with fewer embedded replies if it is too large.
pub fn fitting(mut envelope: Envelope<CommentResource>) -> Result<Answer, Refusal> {
    let mut answer = Answer::ok(&envelope);
    // Lambda's response contains the body as an escaped string, which is at most twice as long.
    if answer.size() * 2 > MAX_ANSWER {
        fit(&mut envelope.data)?;
        answer = Answer::ok(&envelope);
    }
    Ok(answer)
}

/// Makes a page fit into Lambda's response. Drops embedded replies first. If that is not enough, refuses the request and names
/// the number of comments that fit.
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
