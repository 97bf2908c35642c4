//! Pagination: the parameters of list requests and the envelope of lists. The store reads the pages.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::config::Lists;
use crate::domain::ids::UserId;
use crate::domain::list::{MAX_NUMBERED, MAX_PER_PAGE, PagePosition, Paging, PathCursor, Sort};
use crate::domain::rate_limit::RateClass;
use crate::error::{FieldErrors, Refusal};
use crate::http::cursor::CursorSigner;
use crate::http::request::Call;
use crate::store::queue::QueueCounts;

/// The sort that a list request names. The default sort if it names none, or if sorting is off.
pub fn sort(call: &Call, lists: &Lists, sorting: bool) -> Result<Sort, Refusal> {
    match call.parameter("sort") {
        Some(name) if sorting => Sort::parse(name)
            .ok_or_else(|| FieldErrors::one("sort", format!("The sort must be one of {}.", Sort::NAMES.join(", ")))),
        _ => Ok(lists.default_sort),
    }
}

/// The page that a list request selects. `signer` is `None` for lists without cursors.
pub fn paging(call: &Call, lists: &Lists, signer: Option<&CursorSigner<'_>>) -> Result<Paging, Refusal> {
    let mut errors = FieldErrors::default();
    let per_page = per_page(call, lists, &mut errors);
    let position = if let (Some(text), Some(signer)) = (call.parameter("cursor"), signer) {
        PagePosition::Cursor(cursor(text, |text| signer.verify(text), &mut errors))
    } else {
        let page = whole(call, "page", 1);
        match page {
            None => errors.add("page", "The page must be a whole number of at least 1."),
            Some(page) if (page - 1).saturating_mul(per_page) >= MAX_NUMBERED => {
                errors.add("page", format!("Pages end after {MAX_NUMBERED} comments; use cursor to go further."));
            }
            Some(_) => {}
        }
        PagePosition::Page(page.unwrap_or(1))
    };
    errors.check()?;
    Ok(Paging { per_page, position })
}

/// The cursor and the page size of a request with `deep=1`, which lists replies at every depth; `None` for other requests.
pub fn deep_paging(
    call: &Call,
    lists: &Lists,
    signer: &CursorSigner<'_>,
) -> Result<Option<(Option<PathCursor>, usize)>, Refusal> {
    match call.parameter("deep") {
        None => return Ok(None),
        Some("1") => {}
        Some(_) => return Err(FieldErrors::one("deep", "The deep parameter must be 1.")),
    }
    let mut errors = FieldErrors::default();
    let per_page = per_page(call, lists, &mut errors);
    let cursor = cursor(call.parameter("cursor").unwrap_or_default(), |text| signer.verify_path(text), &mut errors);
    errors.check()?;
    Ok(Some((cursor, per_page)))
}

fn per_page(call: &Call, lists: &Lists, errors: &mut FieldErrors) -> usize {
    let per_page = whole(call, "per_page", lists.per_page).filter(|number| *number <= MAX_PER_PAGE);
    if per_page.is_none() {
        errors.add("per_page", format!("The per_page must be a whole number from 1 to {MAX_PER_PAGE}."));
    }
    per_page.unwrap_or(lists.per_page)
}

fn cursor<T>(text: &str, verify: impl FnOnce(&str) -> Option<T>, errors: &mut FieldErrors) -> Option<T> {
    let cursor = if text.is_empty() { None } else { verify(text) };
    if cursor.is_none() && !text.is_empty() {
        errors.add("cursor", "The cursor does not belong to this list.");
    }
    cursor
}

/// The rate class of a request for a page of comments. `units` returns the maximum cost, in read units, of a page of the given
/// size.
pub fn class(call: &Call, lists: &Lists, units: impl FnOnce(usize) -> u32) -> RateClass {
    match whole(call, "per_page", lists.per_page) {
        Some(per_page) if (lists.per_page + 1..=MAX_PER_PAGE).contains(&per_page) => {
            RateClass::LargeRead { units: units(per_page) }
        }
        _ => RateClass::Read,
    }
}

/// The parameter as a positive number, or `default` if it is absent; `None` if it isn't a positive number.
fn whole(call: &Call, name: &str, default: usize) -> Option<usize> {
    let Some(text) = call.parameter(name) else { return Some(default) };
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A number too large to parse exceeds every bound.
    digits.then(|| text.parse().unwrap_or(usize::MAX)).filter(|number| *number > 0)
}

#[derive(Debug, Serialize)]
pub struct Envelope<T> {
    pub data: Vec<T>,
    links: Links,
    pub meta: Meta,
    /// The response of `ui`, in lists that include it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ui: Option<Value>,
    /// The current names of the users in the data; only in the moderation log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<UserId, String>>,
}

#[derive(Debug, Serialize)]
struct Links {
    first: Option<String>,
    last: Option<String>,
    prev: Option<String>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Meta {
    #[serde(flatten)]
    position: Position,
    /// The number of the thread's public comments, in lists that include `ui`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The numbers of comments awaiting moderation; only in the moderation queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<QueueCounts>,
    /// Whether the thread is closed; only in the thread's own list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Position {
    Page {
        current_page: usize,
        from: Option<usize>,
        last_page: usize,
        path: String,
        per_page: usize,
        to: Option<usize>,
        total: usize,
    },
    Cursor {
        path: String,
        per_page: usize,
        next_cursor: Option<String>,
        prev_cursor: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
}

impl<T> Envelope<T> {
    fn new(data: Vec<T>, links: Links, position: Position) -> Self {
        let meta = Meta { position, count: None, counts: None, closed: None };
        Self { data, links, meta, ui: None, names: None }
    }

    #[must_use]
    pub fn page(address: &ListAddress, data: Vec<T>, page: usize, per_page: usize, total: usize) -> Self {
        // Numbered pages cover only the first [`MAX_NUMBERED`] comments.
        let last_page = total.min(MAX_NUMBERED).div_ceil(per_page).max(1);
        let link = |page: usize| Some(address.with("page", &page.to_string()));
        let links = Links {
            first: link(1),
            last: link(last_page),
            prev: if page > 1 { link(page - 1) } else { None },
            next: if page < last_page { link(page + 1) } else { None },
        };
        let from = (!data.is_empty()).then_some((page - 1) * per_page + 1);
        let to = from.map(|from| from + data.len() - 1);
        let position =
            Position::Page { current_page: page, from, last_page, path: address.path.clone(), per_page, to, total };
        Self::new(data, links, position)
    }

    #[must_use]
    pub fn cursor(
        address: &ListAddress,
        data: Vec<T>,
        per_page: usize,
        next: Option<String>,
        prev: Option<String>,
    ) -> Self {
        let link = |cursor: &Option<String>| cursor.as_ref().map(|cursor| address.with("cursor", cursor));
        let links = Links { first: None, last: None, prev: link(&prev), next: link(&next) };
        let path = address.path.clone();
        let position = Position::Cursor { path, per_page, next_cursor: next, prev_cursor: prev, total: None };
        Self::new(data, links, position)
    }

    /// Adds the total number of items to a page of a list that is paged by cursor.
    #[must_use]
    pub fn of_total(mut self, items: u64) -> Self {
        if let Position::Cursor { total, .. } = &mut self.meta.position {
            *total = Some(items);
        }
        self
    }
}

/// The absolute address of a list. The list's links are derived from it.
#[derive(Clone, Debug)]
pub struct ListAddress {
    path: String,
    query: Vec<(String, String)>,
}

impl ListAddress {
    #[must_use]
    pub fn of(call: &Call) -> Self {
        Self { path: format!("{}/{}", call.base_url, call.segments.join("/")), query: call.query.clone() }
    }

    #[must_use]
    pub fn keeping(mut self, names: &[&str]) -> Self {
        self.query.retain(|(name, _)| names.contains(&name.as_str()));
        self
    }

    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.query.iter().filter(|(key, _)| key != name));
        query.append_pair(name, value);
        format!("{}?{}", self.path, query.finish())
    }

    #[must_use]
    pub fn without(&self, name: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.query.iter().filter(|(key, _)| key != name));
        let query = query.finish();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }
}
