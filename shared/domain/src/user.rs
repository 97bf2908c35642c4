//! Users, and the claims of their tokens.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::avatar::Avatar;
use crate::email;
use crate::ids::{CommentId, ThreadId, UserId, sha256_hex};
use crate::mention;
use crate::name::without_piled_marks;
use crate::secret::Secret;
use crate::sign_in::Account;
use crate::time::{Timestamp, stored};
use crate::trust::Trust;
use crate::visible;

/// Minimum time between two renames of a user's comments, so that a name that changes back and forth is written once.
pub const RENAME_PAUSE: Duration = Duration::from_mins(1);

/// The longest time over which the cost of renaming a member's comments is spread.
const MAX_RENAME: Duration = Duration::from_hours(7 * 24);

/// Minimum time between two name changes of an account.
const NAME_PAUSE: Duration = Duration::from_hours(24);

/// Maximum characters in a name. Longer names from tokens, providers and imports are truncated; a longer name in a
/// request is refused.
pub const MAX_NAME: usize = 100;
const MAX_PICTURE: usize = 1024;
/// Maximum seconds that the clock of the token's signer may be ahead of ours.
const MAX_AHEAD: i64 = 60;

/// The claims of a verified token. An optional claim of an unexpected type is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// 1 to 255 characters.
    pub sub: String,
    pub issuer: Option<String>,
    pub name: Option<String>,
    pub picture: Option<String>,
    pub email: Option<String>,
    /// Whether the issuer marks the address as unverified.
    pub email_unverified: bool,
    pub moderator: bool,
    /// Unix seconds as given by the issuer, which may be any number. Of two tokens, the one with the larger value is newer.
    pub issued_at: Option<i64>,
    /// The account, if this service signed the token.
    pub account: Option<Box<Account>>,
}

/// The user of a verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub id: UserId,
    /// A keyed hash of the `sub`, which differs between subjects with the same id. `None` when the `sub` is the id.
    pub subject: Option<String>,
    pub claims: Claims,
}

impl Identity {
    /// The user of one of our own accounts.
    #[must_use]
    pub fn of_account(account: Account) -> Self {
        let claims = Claims { account: Some(Box::new(account.clone())), ..Claims::default() };
        Self { id: account.id, subject: Some(account.subject), claims }
    }

    #[must_use]
    pub fn new(claims: Claims, salt: &Secret) -> Self {
        let (id, subject) = match (&claims.account, UserId::of_sub(&claims.sub)) {
            (Some(account), _) => (account.id, Some(account.subject.clone())),
            (None, Some(id)) => (id, None),
            (None, None) => {
                let issuer = claims.issuer.as_deref().unwrap_or_default();
                let (id, hash) = UserId::hashed(salt, issuer, &claims.sub);
                (id, Some(hash))
            }
        };
        Self { id, subject, claims }
    }

    /// The `iat` of the token; `None` if it is missing or too far ahead.
    pub fn issued_at(&self, now: Timestamp) -> Option<i64> {
        unless_ahead(self.claims.issued_at, now)
    }
}

/// Treats an `iat` that is too far ahead (a wrong clock, or milliseconds) as absent, so that it doesn't prevent every later
/// name change.
fn unless_ahead(issued_at: Option<i64>, now: Timestamp) -> Option<i64> {
    issued_at.filter(|at| at.saturating_sub(now.seconds()) <= MAX_AHEAD)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    #[serde(rename = "u")]
    pub id: UserId,
    #[serde(rename = "n", default)]
    pub name: String,
    #[serde(rename = "av", default)]
    pub avatar: Avatar,
    /// The newest `iat` of the tokens with this name and picture, in Unix seconds.
    #[serde(rename = "ia", default, skip_serializing_if = "Option::is_none")]
    pub token_issued_at: Option<i64>,
    /// When the name and picture were read from a token, in whole seconds.
    #[serde(rename = "la", default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
    pub learned_at: Option<Timestamp>,
    /// When the name or the picture last changed, in whole seconds; `None` if neither has since the first sign-in. No two
    /// changes share a second.
    #[serde(rename = "ra", default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
    pub renamed_at: Option<Timestamp>,
    /// When the user's comments were last updated to the current name and picture, or the earliest time for the next
    /// update, in whole seconds.
    #[serde(rename = "ca", default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
    pub comments_at: Option<Timestamp>,
    /// [`Identity::subject`], which distinguishes users with the same id.
    #[serde(rename = "sh", default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The `iss` of the tokens, if the id is a hash of the `iss` and the `sub`.
    #[serde(rename = "ir", default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(rename = "bn", default, skip_serializing_if = "Option::is_none")]
    pub ban: Option<Ban>,
    /// The id of the ban, which is its key in the list of bans. Ids are in chronological order.
    #[serde(rename = "bi", default, skip_serializing_if = "Option::is_none")]
    pub ban_id: Option<u64>,
    #[serde(rename = "ac", default, skip_serializing_if = "Option::is_none")]
    pub account: Option<OwnAccount>,
    #[serde(flatten)]
    pub trust: Trust,
}

/// The account of a user who signs in here, with a code or a provider account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAccount {
    /// [`Account::epoch`]
    #[serde(rename = "ep")]
    pub epoch: u64,
    /// The address, sealed. A provider account has one if the provider returned a verified address.
    #[serde(rename = "ad", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Keyed hash of the mailbox that codes go to.
    #[serde(rename = "ib", default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ban {
    /// `None` means forever.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub until: Option<Timestamp>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of the first ban, if this ban replaced others without a gap. A job that rejects comments for one of those bans
    /// continues.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
}

/// The ban of a network's guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkBan {
    /// Keyed hash of the network.
    pub network: String,
    /// The id of the ban. Ids order the bans of users and networks by time.
    pub id: u64,
    pub ban: Ban,
    /// The guest's comment that led to the ban.
    pub comment: CommentId,
    pub thread: ThreadId,
}

impl Ban {
    /// This ban as a replacement for the current ban. `present` is the current ban with its id.
    #[must_use]
    pub fn after(&self, present: Option<(u64, &Self)>) -> Self {
        Self { first: present.map(|(id, ban)| ban.first.unwrap_or(id)), ..self.clone() }
    }

    /// The expiry and reason that a moderator chose.
    #[must_use]
    pub fn terms(&self) -> (Option<Timestamp>, Option<&str>) {
        (self.until, self.reason.as_deref())
    }

    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl User {
    /// The user that a token describes. If the token has no name or no `iat`, the stored one is kept.
    pub fn from_token(identity: &Identity, known: Option<&Self>, now: Timestamp) -> Self {
        let id = identity.id;
        let renamed = known.filter(|known| !known.name.is_empty());
        let kept = || renamed.map(|known| known.name.clone());
        let now = now.start_of_second();
        Self {
            id,
            name: name(&identity.claims).or_else(kept).unwrap_or_else(|| placeholder(id)),
            avatar: picture(&identity.claims),
            token_issued_at: identity.issued_at(now).or(known.and_then(|known| known.issued_at(now))),
            learned_at: Some(now),
            renamed_at: renamed.map(|known| change_after(known.renamed_at, now)),
            comments_at: renamed.map(|known| known.comments_from(now)),
            subject: identity.subject.clone(),
            issuer: identity.subject.as_ref().and(identity.claims.issuer.clone()),
            ban: known.and_then(|known| known.ban.clone()),
            ban_id: known.and_then(|known| known.ban_id),
            account: known.and_then(|known| known.account.clone()),
            trust: known.map(|known| known.trust.clone()).unwrap_or_default(),
        }
    }

    pub fn unnamed(id: UserId) -> Self {
        Self {
            id,
            name: String::new(),
            avatar: Avatar::Neutral,
            token_issued_at: None,
            learned_at: None,
            renamed_at: None,
            comments_at: None,
            subject: None,
            issuer: None,
            ban: None,
            ban_id: None,
            account: None,
            trust: Trust::default(),
        }
    }

    /// User 7, with this name and nothing else.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::unnamed(UserId(7)) }
    }

    /// The user's handle for mentions; `None` if the name has no letter or digit.
    #[must_use]
    pub fn handle(&self) -> Option<String> {
        mention::handle(&self.name)
    }

    /// [`Self::token_issued_at`], unless it is too far ahead, which earlier versions allowed.
    pub fn issued_at(&self, now: Timestamp) -> Option<i64> {
        unless_ahead(self.token_issued_at, now)
    }

    /// Whether a token that we signed belongs to this user and hasn't been invalidated by signing out everywhere.
    #[must_use]
    pub fn is_signed_in(&self, account: &Account) -> bool {
        self.subject.as_ref() == Some(&account.subject)
            && self.account.as_ref().is_some_and(|own| own.epoch == account.epoch)
    }

    /// The user with a newly chosen name. Choosing a name for the first time isn't a rename.
    #[must_use]
    pub fn renamed(&self, name: &str, now: Timestamp) -> Self {
        let is_first = self.name.is_empty();
        let now = now.start_of_second();
        Self {
            name: name.to_owned(),
            renamed_at: (!is_first).then(|| change_after(self.renamed_at, now)),
            comments_at: (!is_first).then(|| self.comments_from(now)),
            ..self.clone()
        }
    }

    /// The earliest time when the user may choose another name; `None` if it has passed.
    #[must_use]
    pub fn renames_from(&self, now: Timestamp) -> Option<Timestamp> {
        self.renamed_at.filter(|then| then.is_within(NAME_PAUSE, now)).map(|then| then + NAME_PAUSE)
    }

    /// [`Self::comments_at`], unless it was set while the clock was ahead.
    #[must_use]
    pub fn comments_due(&self, now: Timestamp) -> Option<Timestamp> {
        let is_wrong = self.renamed_at.is_some_and(|then| then.is_too_far_ahead(Duration::ZERO, now));
        self.comments_at.filter(|at| !is_wrong && !at.is_too_far_ahead(MAX_RENAME, now))
    }

    /// When the user's comments are updated if the name changes now. Updates are at least [`RENAME_PAUSE`] apart.
    fn comments_from(&self, now: Timestamp) -> Timestamp {
        match self.comments_due(now) {
            Some(at) if at <= now => now.max(at + RENAME_PAUSE),
            // An update of the comments is already scheduled.
            Some(at) => at,
            None => now,
        }
    }

    /// Whether the user has neither a name nor a ban. There may still be moderators' decisions about comments.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.name.is_empty() && self.ban.is_none()
    }

    /// The ban, unless it has ended.
    #[must_use]
    pub fn present_ban(&self, now: Timestamp) -> Option<&Ban> {
        self.ban.as_ref().filter(|ban| ban.holds(now))
    }

    /// The name to show. A user without a name is shown with one made from the id.
    #[must_use]
    pub fn shown_name(&self) -> String {
        if self.name.is_empty() { placeholder(self.id) } else { self.name.clone() }
    }

    pub fn looks_like(&self, other: &Self) -> bool {
        self.name == other.name && self.avatar == other.avatar
    }
}

/// The second of a change, later than the second of any earlier change unless the clock was ahead then.
fn change_after(earlier: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let earlier = earlier.filter(|then| !then.is_too_far_ahead(Duration::ZERO, now));
    earlier.map_or(now, |then| now.max(then + Duration::from_secs(1)))
}

/// The name shown for a user who has none.
fn placeholder(id: UserId) -> String {
    format!("User {id}")
}

fn name(claims: &Claims) -> Option<String> {
    clean_name(claims.name.as_deref()?)
}

/// A name from elsewhere, cleaned for display; `None` if no character of it is visible.
#[must_use]
pub fn clean_name(name: &str) -> Option<String> {
    let name = without_piled_marks(&visible::without_bidi_overrides(name));
    let name: String = name.trim().chars().filter(|c| !visible::breaks_names(*c)).take(MAX_NAME).collect();
    (!visible::shows_nothing(&name)).then_some(name)
}

/// Whether a picture may have this address.
#[must_use]
pub fn is_picture(url: &str) -> bool {
    let web = url.starts_with("https://") || url.starts_with("http://");
    web && url.len() <= MAX_PICTURE && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn picture(claims: &Claims) -> Avatar {
    match (claims.picture.as_ref().filter(|url| is_picture(url)), &claims.email) {
        (Some(url), _) => url.clone().into(),
        (None, Some(email)) => gravatar(email),
        (None, None) => Avatar::Neutral,
    }
}

/// The Gravatar of an address. It contains only the address's hash.
#[must_use]
pub fn gravatar(email: &str) -> Avatar {
    Avatar::Gravatar(sha256_hex(&email::exact(email)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_the_subject_or_a_hash_of_issuer_and_subject() {
        let salt = Secret::from("salt".to_owned());
        let identity = |sub: &str, issuer: Option<&str>| {
            let claims = Claims { sub: sub.to_owned(), issuer: issuer.map(str::to_owned), ..Claims::default() };
            Identity::new(claims, &salt)
        };
        for issuer in [None, Some("https://a.test")] {
            let seven = identity("7", issuer);
            assert_eq!((seven.id, seven.subject), (UserId(7), None));
        }
        let (ada, issued) = (identity("ada", None), identity("ada", Some("https://a.test")));
        assert!(ada.id != issued.id && ada.subject != issued.subject);
        assert!(ada.subject.is_some() && ada == identity("ada", None));
        let numeric = identity(&ada.id.to_string(), None);
        assert!(numeric.id != ada.id && numeric.subject.is_some());
    }

    #[test]
    fn a_token_identifies_its_account_in_the_present_epoch() {
        let account = |subject: &str, epoch| Account { id: UserId(9), subject: subject.to_owned(), epoch };
        let claims = Claims { sub: "7".to_owned(), account: Some(Box::new(account("ada", 1))), ..Claims::default() };
        let identity = Identity::new(claims, &Secret::from("salt".to_owned()));
        assert_eq!((identity.id, identity.subject.as_deref()), (UserId(9), Some("ada")));
        let own = OwnAccount { epoch: 1, address: None, inbox: None };
        let ada = User { subject: Some("ada".to_owned()), account: Some(own), ..User::named("") };
        assert!(ada.is_signed_in(&account("ada", 1)));
        assert!(!ada.is_signed_in(&account("ada", 2)) && !ada.is_signed_in(&account("eve", 1)));
        assert!(!User { account: None, ..ada }.is_signed_in(&account("ada", 1)));
    }

    #[test]
    fn the_first_name_is_not_a_change_and_the_next_one_waits_a_day_after_a_change() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        let first = User::named("").renamed("Ada", at(100));
        assert_eq!((first.renamed_at, first.comments_at, first.renames_from(at(110))), (None, None, None));
        let second = first.renamed("Ada L.", at(110));
        assert_eq!((second.renamed_at, second.comments_at), (Some(at(110)), Some(at(110))));
        assert_eq!(second.renames_from(at(110)), Some(at(110 + 24 * 3_600)));
        assert_eq!(second.renames_from(at(110 + 24 * 3_600)), None);
    }

    #[test]
    fn a_name_chosen_while_the_clock_was_ahead_delays_neither_the_next_name_nor_its_comments() {
        let now = Timestamp(1_800_000_000_000);
        let ahead = now + Duration::from_hours(48);
        let early = User::named("Ada").renamed("Ada L.", ahead);
        assert_eq!((early.renames_from(now), early.comments_due(now)), (None, None));
        let renamed = early.renamed("Ada Lovelace", now);
        assert_eq!((renamed.renamed_at, renamed.comments_at), (Some(now), Some(now)));
        // The update of the comments ran while the clock was ahead, and delayed the next one.
        let ahead = User { comments_at: Some(now + Duration::from_hours(8 * 24)), ..renamed };
        assert_eq!(ahead.comments_due(now), None);
    }
}
