//! Pagination: what a list request may ask for, cursors, and the envelope a list comes in (decisions, section 4). How a page
//! is read from the table is the store's.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Serialize;

use crate::config::Lists;
use crate::error::{FieldErrors, Refusal};
use crate::http::Call;
use crate::ids::CommentId;
use crate::secrets::Secret;

pub const MAX_PER_PAGE: usize = 50;
/// Pages end this many comments down a list; cursors do not.
pub const MAX_DEPTH: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Newest,
    Oldest,
    MostLiked,
    MostReplied,
}

impl Sort {
    pub const NAMES: [&str; 4] = ["newest", "oldest", "most_liked", "most_replied"];
    const ALL: [Self; 4] = [Self::Newest, Self::Oldest, Self::MostLiked, Self::MostReplied];

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::MostLiked => "most_liked",
            Self::MostReplied => "most_replied",
        }
    }

    /// By a count instead of by time.
    #[must_use]
    pub fn is_ranked(self) -> bool {
        matches!(self, Self::MostLiked | Self::MostReplied)
    }
}

/// Where in a list to look, and how far.
#[derive(Debug)]
pub struct Paging {
    pub per_page: usize,
    pub place: Place,
}

#[derive(Debug)]
pub enum Place {
    /// 1 is the first.
    Page(usize),
    /// `None` for the first page of a walk.
    Cursor(Option<Cursor>),
}

/// Where a walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub toward: Toward,
    /// The comment beyond which the page lies.
    pub edge: CommentId,
    /// What was pinned when the walk began.
    pub pin: Option<CommentId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    Next,
    Previous,
}

/// Seals cursors for one list: what was made for another thread or sort, or by somebody else, does not open.
pub struct Seal<'a> {
    salt: &'a Secret,
    list: String,
}

impl<'a> Seal<'a> {
    #[must_use]
    pub fn new(salt: &'a Secret, list: String) -> Self {
        Self { salt, list }
    }

    #[must_use]
    pub fn close(&self, cursor: Cursor) -> String {
        let mut bytes = vec![match cursor.toward {
            Toward::Next => 0,
            Toward::Previous => 1,
        }];
        bytes.extend(cursor.edge.0.to_be_bytes());
        bytes.extend(cursor.pin.map_or(0, |pin| pin.0).to_be_bytes());
        let tag = hmac::sign(&self.key(), &self.sealed(&bytes));
        bytes.extend(tag.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    #[must_use]
    pub fn open(&self, text: &str) -> Option<Cursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, mac) = bytes.split_at_checked(17)?;
        hmac::verify(&self.key(), &self.sealed(content), mac).ok()?;
        let toward = match content[0] {
            0 => Toward::Next,
            1 => Toward::Previous,
            _ => return None,
        };
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        let pin = number(&content[9..])?;
        Some(Cursor { toward, edge: CommentId(number(&content[1..9])?), pin: (pin != 0).then_some(CommentId(pin)) })
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.salt.expose().as_bytes())
    }

    /// What the signature is of.
    fn sealed(&self, content: &[u8]) -> Vec<u8> {
        [b"cursor\0", self.list.as_bytes(), b"\0", content].concat()
    }
}

/// The sort a list request asks for. With sorting off nobody is asked.
pub fn sort(call: &Call, lists: &Lists, sorting: bool) -> Result<Sort, Refusal> {
    match call.parameter("sort") {
        Some(name) if sorting => Sort::parse(name)
            .ok_or_else(|| FieldErrors::one("sort", format!("The sort must be one of {}.", Sort::NAMES.join(", ")))),
        _ => Ok(lists.default_sort),
    }
}

/// `seal` is `None` for lists without cursors.
pub fn paging(call: &Call, lists: &Lists, seal: Option<&Seal<'_>>) -> Result<Paging, Refusal> {
    let mut errors = FieldErrors::default();
    let per_page = whole(call, "per_page", lists.per_page).filter(|number| *number <= MAX_PER_PAGE);
    if per_page.is_none() {
        errors.add("per_page", format!("The per_page must be a whole number from 1 to {MAX_PER_PAGE}."));
    }
    let per_page = per_page.unwrap_or(lists.per_page);
    let place = if let (Some(text), Some(seal)) = (call.parameter("cursor"), seal) {
        let cursor = if text.is_empty() { None } else { seal.open(text) };
        if cursor.is_none() && !text.is_empty() {
            errors.add("cursor", "The cursor does not belong to this list.");
        }
        Place::Cursor(cursor)
    } else {
        let page = whole(call, "page", 1);
        match page {
            None => errors.add("page", "The page must be a whole number from 1."),
            Some(page) if (page - 1).saturating_mul(per_page) >= MAX_DEPTH => {
                errors.add("page", format!("Pages end after {MAX_DEPTH} comments: use cursor to go further."));
            }
            Some(_) => {}
        }
        Place::Page(page.unwrap_or(1))
    };
    errors.check()?;
    Ok(Paging { per_page, place })
}

/// The parameter as a number from 1; `None` when it is something else.
fn whole(call: &Call, name: &str, default: usize) -> Option<usize> {
    let Some(text) = call.parameter(name) else { return Some(default) };
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A number too large to hold is large all the same.
    digits.then(|| text.parse().unwrap_or(usize::MAX)).filter(|number| *number > 0)
}

#[derive(Debug, Serialize)]
pub struct Envelope<T> {
    pub data: Vec<T>,
    links: Links,
    meta: Meta,
}

#[derive(Debug, Serialize)]
struct Links {
    first: Option<String>,
    last: Option<String>,
    prev: Option<String>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Meta {
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
    },
}

impl<T> Envelope<T> {
    #[must_use]
    pub fn page(call: &Call, data: Vec<T>, page: usize, per_page: usize, total: usize) -> Self {
        let last_page = total.div_ceil(per_page).max(1);
        let link = |page: usize| Some(link(call, "page", &page.to_string()));
        let links = Links {
            first: link(1),
            last: link(last_page),
            prev: if page > 1 { link(page - 1) } else { None },
            next: if page < last_page { link(page + 1) } else { None },
        };
        let from = (!data.is_empty()).then_some((page - 1) * per_page + 1);
        let to = from.map(|from| from + data.len() - 1);
        let meta = Meta::Page { current_page: page, from, last_page, path: path(call), per_page, to, total };
        Self { data, links, meta }
    }

    #[must_use]
    pub fn cursor(call: &Call, data: Vec<T>, per_page: usize, next: Option<String>, prev: Option<String>) -> Self {
        let link = |cursor: &Option<String>| cursor.as_ref().map(|cursor| link(call, "cursor", cursor));
        let links = Links { first: None, last: None, prev: link(&prev), next: link(&next) };
        let meta = Meta::Cursor { path: path(call), per_page, next_cursor: next, prev_cursor: prev };
        Self { data, links, meta }
    }
}

fn path(call: &Call) -> String {
    format!("{}/{}", call.base_url, call.segments.join("/"))
}

/// The same request with one parameter changed.
fn link(call: &Call, name: &str, value: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, value) in call.query.iter().filter(|(key, _)| key != name) {
        query.append_pair(key, value);
    }
    query.append_pair(name, value);
    format!("{}?{}", path(call), query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(salt: &Secret, list: &str) -> String {
        let cursor = Cursor { toward: Toward::Next, edge: CommentId(7), pin: None };
        Seal::new(salt, list.to_owned()).close(cursor)
    }

    #[test]
    fn a_cursor_opens_for_its_own_list_alone() {
        let salt = Secret::from("salt".to_owned());
        let text = seal(&salt, "posts#1 newest");
        assert_eq!(Seal::new(&salt, "posts#1 newest".to_owned()).open(&text).map(|c| c.edge), Some(CommentId(7)));
        assert_eq!(Seal::new(&salt, "posts#2 newest".to_owned()).open(&text), None);
        assert_eq!(Seal::new(&salt, "posts#1 oldest".to_owned()).open(&text), None);
        let other = Secret::from("other".to_owned());
        assert_eq!(Seal::new(&other, "posts#1 newest".to_owned()).open(&text), None);
    }

    #[test]
    fn a_cursor_with_any_letter_changed_does_not_open() {
        let salt = Secret::from("salt".to_owned());
        let text = seal(&salt, "list");
        let seal = Seal::new(&salt, "list".to_owned());
        for (place, letter) in text.char_indices() {
            let changed = if letter == 'A' { "B" } else { "A" };
            let mut text = text.clone();
            text.replace_range(place..=place, changed);
            assert_eq!(seal.open(&text), None, "{text}");
        }
        for bad in ["", "A", "AAAA", "not base64!", &text[1..], &format!("{text}AAAA")] {
            assert_eq!(seal.open(bad), None, "{bad}");
        }
    }
}
