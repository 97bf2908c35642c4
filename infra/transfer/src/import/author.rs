//! The writer of a comment: a guest with a name and an avatar, or a user from `--users` or the source.

use std::collections::HashMap;

use shared::domain::avatar::Avatar;
use shared::domain::email;
use shared::domain::ids::{UserId, is_keyed_hash};
use shared::domain::name::without_piled_marks;
use shared::domain::user::{MAX_NAME, User, gravatar};
use shared::domain::visible;

use super::record;
use crate::store::person::forgotten::Forgotten;

/// Replaces a name that is empty or invisible.
const NAMELESS: &str = "Anonymous";
const MAX_PICTURE: usize = 1024;
const GRAVATAR: &str = "gravatar.com/avatar/";

/// The writer of a comment, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedAuthor {
    /// `None` for guests.
    pub user: Option<UserId>,
    pub name: String,
    pub avatar: Avatar,
    /// A keyed hash of a guest's email address, from an export.
    pub address: Option<String>,
    pub moderator: bool,
}

impl ImportedAuthor {
    /// The writer of an exported comment, with invalid values replaced.
    pub(super) fn kept(author: &record::Author) -> Self {
        Self {
            user: author.user_id.map(UserId),
            name: kept_name(&author.name),
            avatar: kept_avatar(&author.avatar),
            address: Some(author.address.clone()).filter(|hash| is_keyed_hash(hash)),
            moderator: author.moderator,
        }
    }
}

/// Cleans a stored name. Keeps an empty one, such as that of a user who was banned before the first sign-in.
pub(super) fn kept_name(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let cleaned = name(text);
    if cleaned == text.trim() { text.to_owned() } else { cleaned }
}

/// The avatar in an export, or the neutral avatar if the service wouldn't have stored it.
pub(super) fn kept_avatar(text: &str) -> Avatar {
    match Avatar::from(text.to_owned()) {
        Avatar::Gravatar(hash) if !is_hash(&hash) => Avatar::Neutral,
        Avatar::Picture(url) if !is_safe(&url) => Avatar::Neutral,
        avatar => avatar,
    }
}

/// The lines of `--users`: an author's id in the source or an email address, white space, a user id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(HashMap<String, UserId>);

impl ImportedAuthor {
    #[must_use]
    pub fn is_forgotten(&self, forgotten: &Forgotten) -> bool {
        let has_address = |avatar: &Avatar| matches!(avatar, Avatar::Gravatar(hash) if forgotten.has_address(hash));
        let is_keyed = self.address.as_ref().is_some_and(|hash| forgotten.has_keyed(hash));
        self.user.is_some_and(|user| forgotten.has_user(user)) || has_address(&self.avatar) || is_keyed
    }
}

impl ImportedAuthor {
    /// Replaces the name and the avatar with those of the user's profile, unless the profile has no name.
    pub(super) fn take_profile(&mut self, profile: &User) {
        if !profile.name.is_empty() {
            self.name.clone_from(&profile.name);
            self.avatar.clone_from(&profile.avatar);
        }
    }
}

impl Users {
    /// Parses the lines. Skips empty lines and lines that begin with `#`. Fails with the number of the first invalid
    /// line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let users = lines.map(|(index, line)| {
            let (name, id) = line.rsplit_once(char::is_whitespace).unwrap_or_default();
            let id: Option<UserId> = id.parse().ok().filter(|_| !name.trim().is_empty());
            let id = id.ok_or_else(|| {
                format!("line {}: expected an id or an address, white space and a user id", index + 1)
            })?;
            Ok((email::exact(name), id))
        });
        users.collect::<Result<_, _>>().map(Self)
    }

    fn find(&self, name: &str) -> Option<UserId> {
        self.0.get(&email::exact(name)).copied().filter(|_| !name.trim().is_empty())
    }

    /// The writer of a comment. `known` is the record of the author's account in the source. Its name, address and
    /// picture override the comment's older ones, unless they're empty.
    #[must_use]
    pub fn writer(&self, author: &record::Author, known: Option<&record::User>) -> ImportedAuthor {
        let own = |text: &str, of_account: fn(&record::User) -> &str| match known.map_or("", of_account) {
            "" => text.to_owned(),
            of_account => of_account.to_owned(),
        };
        let email = own(&author.email, |known| &known.email);
        let user = self.find(&author.key).or_else(|| self.find(&email));
        ImportedAuthor {
            user: user.or_else(|| author.user_id.map(UserId)),
            name: name(&own(&author.name, |known| &known.name)),
            avatar: avatar(&email, &own(&author.avatar, |known| &known.picture)),
            address: None,
            moderator: author.moderator || known.is_some_and(|known| known.moderator),
        }
    }
}

fn name(text: &str) -> String {
    let text = without_piled_marks(&visible::without_bidi_overrides(text));
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let name: String = spaced.trim().chars().take(MAX_NAME).collect();
    if visible::shows_nothing(&name) { NAMELESS.to_owned() } else { name }
}

/// A Gravatar takes precedence over a picture, which is often hosted on the system that the site is leaving.
fn avatar(email: &str, picture: &str) -> Avatar {
    if email.contains('@') {
        return gravatar(email);
    }
    if let Avatar::Gravatar(hash) = Avatar::from(picture.to_owned()) {
        return if is_hash(&hash) { Avatar::Gravatar(hash) } else { Avatar::Neutral };
    }
    if let Some((_, rest)) = picture.split_once(GRAVATAR) {
        let hash = rest.split(['?', '.', '/']).next().unwrap_or_default().to_ascii_lowercase();
        return if is_hash(&hash) { Avatar::Gravatar(hash) } else { Avatar::Neutral };
    }
    if is_safe(picture) { picture.to_owned().into() } else { Avatar::Neutral }
}

/// Whether it's safe to send this URL to browsers.
fn is_safe(picture: &str) -> bool {
    let is_web = picture.starts_with("https://") || picture.starts_with("http://");
    is_web && picture.len() <= MAX_PICTURE && !picture.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Whether the text is an MD5 or SHA-256 hash.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 32 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Author;

    fn ada() -> Author {
        Author { key: "gh-7".into(), name: "Ada".into(), email: " Ada@Example.org ".into(), ..Author::default() }
    }

    #[test]
    fn an_author_is_a_guest_with_a_gravatar_and_without_the_address() {
        let writer = Users::default().writer(&ada(), None);
        assert_eq!((writer.user, writer.name.as_str()), (None, "Ada"));
        assert_eq!(writer.avatar, gravatar("ada@example.org"));
        assert!(!format!("{writer:?}").to_lowercase().contains("example.org"));
    }

    #[test]
    fn users_are_found_by_id_or_by_address_whatever_the_case() {
        let users = Users::parse("# team\n\ngh-7 12\nGRACE@example.org\t13\n").unwrap();
        let of = |author: &Author| users.writer(author, None).user;
        assert_eq!(of(&ada()), Some(UserId(12)));
        assert_eq!(of(&Author { email: "grace@Example.org".into(), ..Author::default() }), Some(UserId(13)));
        assert_eq!(of(&Author::default()), None);
    }

    #[test]
    fn a_user_may_have_an_id_that_is_a_hash() {
        let users = Users::parse("gh-7 7940199727477390").unwrap();
        assert_eq!(users.writer(&ada(), None).user, Some(UserId(7_940_199_727_477_390)));
    }

    #[test]
    fn a_bad_line_of_the_users_is_an_error_with_its_number() {
        for text in ["a@b.c 7\nx", "a@b.c 7\nx -1", "a@b.c 7\nx 007", "a@b.c 7\nx ada", "a@b.c 7\n7"] {
            assert!(Users::parse(text).unwrap_err().starts_with("line 2: "), "{text}");
        }
    }

    #[test]
    fn an_account_supplies_values_that_the_comment_lacks() {
        let account = record::User {
            id: "k".into(),
            name: "Ada".into(),
            email: "ada@example.org".into(),
            moderator: true,
            ..record::User::default()
        };
        let writer = Users::default().writer(&Author { key: "k".into(), ..Author::default() }, Some(&account));
        assert_eq!((writer.name.as_str(), writer.moderator, writer.avatar), ("Ada", true, gravatar("ada@example.org")));
    }

    #[test]
    fn the_current_name_comes_from_the_account_and_other_values_from_the_comment() {
        let account = record::User { id: "gh-7".into(), name: "Ada Lovelace".into(), ..record::User::default() };
        let writer = Users::default().writer(&ada(), Some(&account));
        assert_eq!((writer.name.as_str(), writer.avatar), ("Ada Lovelace", gravatar("ada@example.org")));
    }

    #[test]
    fn names_are_cut_and_cleaned_and_never_empty() {
        for (text, expected) in [("", "Anonymous"), ("\u{200b}", "Anonymous"), (" A\nda\u{202e} ", "A da")] {
            assert_eq!(name(text), expected, "{text:?}");
        }
        assert_eq!(name(&"x".repeat(101)).len(), 100);
    }

    #[test]
    fn a_picture_is_used_if_there_is_no_address() {
        let hash = "8f279626d26175134b0d5c88648172f7";
        for (picture, expected) in [
            (format!("https://secure.gravatar.com/avatar/{hash}?s=80"), Avatar::Gravatar(hash.into())),
            (format!("g:{hash}"), Avatar::Gravatar(hash.into())),
            ("g:javascript".into(), Avatar::Neutral),
            ("https://a.example/1.png".into(), Avatar::Picture("https://a.example/1.png".into())),
            ("javascript:alert(1)".into(), Avatar::Neutral),
            ("undefined".into(), Avatar::Neutral),
            (String::new(), Avatar::Neutral),
        ] {
            assert_eq!(avatar("", &picture), expected, "{picture}");
        }
    }
}
