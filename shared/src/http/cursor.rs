//! Cursors in requests and responses: opaque, signed, and valid for only one list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use crate::domain::ids::CommentId;
use crate::domain::list::{Cursor, Direction, PathCursor};
use crate::domain::secret::Secret;

/// Length of a signature in bytes.
const SIGNATURE: usize = 32;

/// Signs and verifies the cursors of one list. A cursor from another thread or sort, or signed with another salt, is invalid.
pub struct CursorSigner<'a> {
    salt: &'a Secret,
    list: String,
}

impl<'a> CursorSigner<'a> {
    #[must_use]
    pub fn new(salt: &'a Secret, list: String) -> Self {
        Self { salt, list }
    }

    /// Signs one byte for the direction, eight for the edge, and eight for the pin (0 for none).
    #[must_use]
    pub fn sign(&self, cursor: Cursor) -> String {
        let pin = cursor.pin.unwrap_or(CommentId(0));
        self.sign_ids(cursor.direction, &[cursor.edge, pin])
    }

    #[must_use]
    pub fn verify(&self, text: &str) -> Option<Cursor> {
        let (direction, ids) = self.verified_ids(text)?;
        let [edge, pin] = ids.try_into().ok()?;
        Some(Cursor { direction, edge, pin: (pin.0 != 0).then_some(pin) })
    }

    /// Signs one byte for the direction, and eight for each id of the path.
    #[must_use]
    pub fn sign_path(&self, cursor: &PathCursor) -> String {
        self.sign_ids(cursor.direction, &cursor.path)
    }

    #[must_use]
    pub fn verify_path(&self, text: &str) -> Option<PathCursor> {
        let (direction, path) = self.verified_ids(text)?;
        Some(PathCursor { direction, path })
    }

    /// Returns the direction, the ids and their signature in base64url.
    fn sign_ids(&self, direction: Direction, ids: &[CommentId]) -> String {
        let mut bytes = vec![match direction {
            Direction::Next => 0,
            Direction::Previous => 1,
        }];
        bytes.extend(ids.iter().flat_map(|id| id.0.to_be_bytes()));
        let tag = hmac::sign(&self.key(), &self.signed_content(&bytes));
        bytes.extend(tag.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn verified_ids(&self, text: &str) -> Option<(Direction, Vec<CommentId>)> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, mac) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE)?)?;
        hmac::verify(&self.key(), &self.signed_content(content), mac).ok()?;
        let (direction, ids) = content.split_first()?;
        let direction = match direction {
            0 => Direction::Next,
            1 => Direction::Previous,
            _ => return None,
        };
        let (ids, rest) = ids.as_chunks();
        let ids = ids.iter().map(|id| CommentId(u64::from_be_bytes(*id))).collect();
        rest.is_empty().then_some((direction, ids))
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.salt.expose().as_bytes())
    }

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
