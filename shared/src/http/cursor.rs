//! Cursors as callers get them: opaque, signed, and valid for one list only.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use crate::domain::ids::CommentId;
use crate::domain::list::{Cursor, Direction};
use crate::domain::secret::Secret;

/// Signs and verifies the cursors of one list. A cursor of another thread or sort, or of another signer, is not valid.
pub struct CursorSigner<'a> {
    salt: &'a Secret,
    list: String,
}

impl<'a> CursorSigner<'a> {
    #[must_use]
    pub fn new(salt: &'a Secret, list: String) -> Self {
        Self { salt, list }
    }

    /// A byte for the direction, eight for the edge, eight for the pin (0 for none) and the signature, in base64url.
    #[must_use]
    pub fn sign(&self, cursor: Cursor) -> String {
        let mut bytes = vec![match cursor.direction {
            Direction::Next => 0,
            Direction::Previous => 1,
        }];
        bytes.extend(cursor.edge.0.to_be_bytes());
        bytes.extend(cursor.pin.map_or(0, |pin| pin.0).to_be_bytes());
        let tag = hmac::sign(&self.key(), &self.signed_content(&bytes));
        bytes.extend(tag.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    #[must_use]
    pub fn verify(&self, text: &str) -> Option<Cursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, mac) = bytes.split_at_checked(17)?;
        hmac::verify(&self.key(), &self.signed_content(content), mac).ok()?;
        let direction = match content[0] {
            0 => Direction::Next,
            1 => Direction::Previous,
            _ => return None,
        };
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        let pin = number(&content[9..])?;
        Some(Cursor { direction, edge: CommentId(number(&content[1..9])?), pin: (pin != 0).then_some(CommentId(pin)) })
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.salt.expose().as_bytes())
    }

    /// The bytes that are signed: the content and the list it belongs to.
    fn signed_content(&self, content: &[u8]) -> Vec<u8> {
        [b"cursor\0", self.list.as_bytes(), b"\0", content].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(salt: &Secret, list: &str) -> String {
        let cursor = Cursor { direction: Direction::Next, edge: CommentId(7), pin: None };
        CursorSigner::new(salt, list.to_owned()).sign(cursor)
    }

    #[test]
    fn a_cursor_is_valid_for_its_own_list_alone() {
        let salt = Secret::from("salt".to_owned());
        let text = signed(&salt, "posts#1 newest");
        assert_eq!(
            CursorSigner::new(&salt, "posts#1 newest".to_owned()).verify(&text).map(|c| c.edge),
            Some(CommentId(7))
        );
        assert_eq!(CursorSigner::new(&salt, "posts#2 newest".to_owned()).verify(&text), None);
        assert_eq!(CursorSigner::new(&salt, "posts#1 oldest".to_owned()).verify(&text), None);
        let other = Secret::from("other".to_owned());
        assert_eq!(CursorSigner::new(&other, "posts#1 newest".to_owned()).verify(&text), None);
    }

    #[test]
    fn a_cursor_with_any_letter_changed_is_not_valid() {
        let salt = Secret::from("salt".to_owned());
        let text = signed(&salt, "list");
        let signer = CursorSigner::new(&salt, "list".to_owned());
        for (place, letter) in text.char_indices() {
            let changed = if letter == 'A' { "B" } else { "A" };
            let mut text = text.clone();
            text.replace_range(place..=place, changed);
            assert_eq!(signer.verify(&text), None, "{text}");
        }
        for bad in ["", "A", "AAAA", "not base64!", &text[1..], &format!("{text}AAAA")] {
            assert_eq!(signer.verify(bad), None, "{bad}");
        }
    }
}
