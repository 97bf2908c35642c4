//! A person whose data is exported or erased.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::email;
use crate::fold::fold_forms;
use crate::ids::{HASHED_SOURCE, SourceId, UserId, Visitor, keyed_hash, salt_fingerprint, sha256_hex};
use crate::letters::{Scripts, is_mark, is_of_word};
use crate::mail_keys::{MailKeys, Recipient};
use crate::mention::handle;
use crate::secret::Secret;
use crate::sign_in::account_of;
use crate::sign_in::keys::FlowKeys;

/// Minimum characters in a name that is searched for in other people's texts. Shorter names are too often ordinary words.
const MIN_NAME: usize = 2;

/// The user id or address that identifies a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    User(UserId),
    /// A guest or an account that signs in with a code, found by hashes of one address. Imported comments may have the MD5 hash
    /// that Gravatar used earlier.
    Address {
        sha256: String,
        md5: String,
        /// Keyed hashes of `sha256` and `md5`.
        keyed: [String; 2],
        /// The recipient of emails to a guest.
        recipient: Recipient,
        /// The address, sealed as it is stored.
        sealed: String,
        /// The account that the address has or would have.
        account: UserId,
        /// The inbox for sign-in codes.
        inbox: String,
    },
}

impl Who {
    /// `md5` is the MD5 hash of `address`.
    #[must_use]
    pub fn address(address: &str, md5: String, salt: &Secret) -> Self {
        let (address, keys) = (email::exact(address), MailKeys::new(salt));
        let (sha256, hashes) = (sha256_hex(&address), PersonHashes::new(salt));
        Self::Address {
            keyed: [hashes.address(&sha256), hashes.address(&md5)],
            sha256,
            md5,
            recipient: keys.guest(&address),
            sealed: keys.seal(&address),
            account: account_of(salt, &address).0,
            inbox: FlowKeys::new(salt).inbox(&address),
        }
    }
}

/// Everything that identifies a person in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub who: Who,
    pub known: KnownBy,
}

/// The identifiers collected from the person's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownBy {
    /// Every name found in the table. The profile has only the current one.
    #[serde(rename = "nm", default)]
    pub names: BTreeSet<String>,
    /// Gravatar's hashes of addresses.
    #[serde(rename = "ad", default)]
    pub addresses: BTreeSet<String>,
    /// Keyed hashes of the guest's addresses, used to find the guest's comments: [`PersonHashes::address`].
    #[serde(skip)]
    pub keyed: BTreeSet<String>,
    #[serde(rename = "vs", default)]
    pub visitors: BTreeSet<Visitor>,
    /// Hashes of token subjects, [`crate::user::Identity::subject`].
    #[serde(rename = "sj", default)]
    pub subjects: BTreeSet<String>,
    #[serde(rename = "re", default)]
    pub recipients: BTreeSet<Recipient>,
    /// Addresses, sealed as they are stored.
    #[serde(rename = "se", default)]
    pub sealed: BTreeSet<String>,
    #[serde(rename = "ib", default)]
    pub inboxes: BTreeSet<String>,
    /// Whether the profile has a picture that does not come from an address.
    #[serde(rename = "pi", default, skip_serializing_if = "std::ops::Not::not")]
    pub has_picture: bool,
    /// Whether the profile has changed, so other people may have used a name that is no longer stored.
    #[serde(rename = "rn", default, skip_serializing_if = "std::ops::Not::not")]
    pub profile_changed: bool,
}

impl KnownBy {
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
        self.addresses.extend(other.addresses);
        self.keyed.extend(other.keyed);
        self.visitors.extend(other.visitors);
        self.subjects.extend(other.subjects);
        self.recipients.extend(other.recipients);
        self.sealed.extend(other.sealed);
        self.inboxes.extend(other.inboxes);
        self.has_picture |= other.has_picture;
        self.profile_changed |= other.profile_changed;
    }
}

impl Person {
    #[must_use]
    pub fn new(who: Who) -> Self {
        let mut known = KnownBy::default();
        if let Who::Address { sha256, md5, keyed, recipient, sealed, inbox, .. } = &who {
            known.addresses.extend([sha256.clone(), md5.clone()]);
            known.keyed.extend(keyed.clone());
            known.recipients.insert(recipient.clone());
            known.sealed.insert(sealed.clone());
            known.inboxes.insert(inbox.clone());
        }
        let mut person = Self { who, known };
        let user = person.user();
        person.known.visitors.insert(user.into());
        person.known.recipients.insert(user.into());
        person
    }

    /// The user may never have signed in.
    #[must_use]
    pub fn user(&self) -> UserId {
        match self.who {
            Who::User(id) | Who::Address { account: id, .. } => id,
        }
    }

    /// The handles that others may have mentioned the person by. Guests have none.
    #[must_use]
    pub fn handles(&self) -> BTreeSet<String> {
        let is_guest_alone = matches!(self.who, Who::Address { .. }) && self.known.subjects.is_empty();
        let names = self.known.names.iter().filter(|_| !is_guest_alone);
        names.filter_map(|name| handle(name)).collect()
    }

    /// Whether a text contains one of the person's names as a word, or mentions the person.
    #[must_use]
    pub fn is_named_in(&self, text: &str) -> bool {
        let text = fold_forms(text);
        let names = self.known.names.iter().filter(|name| name.chars().count() >= MIN_NAME).cloned();
        let mut words = names.chain(self.handles().into_iter().map(|handle| format!("@{handle}")));
        words.any(|word| contains_word(&text, &fold_forms(&word)))
    }
}

/// Whether `word` is in the text as a whole word. Letters of scripts in which words touch may be next to it.
fn contains_word(text: &str, word: &str) -> bool {
    let joins = |c: &char| *c == '_' || (is_of_word(*c) && !Scripts::of(*c).touch());
    text.match_indices(word).any(|(start, found)| {
        let (before, after) = (text[..start].chars().next_back(), text[start + found.len()..].chars().next());
        !before.is_some_and(|c| joins(&c)) && !after.is_some_and(|c| joins(&c) || is_mark(c))
    })
}

/// Keyed hashes that represent erased people, and the sources of their comments.
#[derive(Clone, Debug)]
pub struct PersonHashes(Secret);

impl PersonHashes {
    #[must_use]
    pub fn new(salt: &Secret) -> Self {
        Self(salt.clone())
    }

    #[must_use]
    pub fn user(&self, id: UserId) -> String {
        keyed_hash(&self.0, &["person", "user", &id.to_string()])
    }

    /// The hash of an email address. `hash` is Gravatar's hash of the address.
    #[must_use]
    pub fn address(&self, hash: &str) -> String {
        keyed_hash(&self.0, &["person", "address", &hash.to_ascii_lowercase()])
    }

    #[must_use]
    pub fn who(&self, who: &Who) -> String {
        match who {
            Who::User(id) => self.user(*id),
            Who::Address { sha256, .. } => self.address(sha256),
        }
    }

    #[must_use]
    pub fn all(&self, person: &Person) -> BTreeSet<String> {
        let addresses = person.known.addresses.iter().map(|hash| self.address(hash));
        addresses.chain([self.user(person.user())]).collect()
    }

    /// A hash of an erased comment's source, because ids and site names of other systems may be names of people.
    #[must_use]
    pub fn source(&self, source: &SourceId) -> SourceId {
        let format = source.format();
        SourceId(format!("{format}:{HASHED_SOURCE}{}", keyed_hash(&self.0, &["person", "source", &source.0])))
    }

    #[must_use]
    pub fn fingerprint(&self) -> String {
        salt_fingerprint(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ada() -> Person {
        let mut ada = Person::new(Who::User(UserId(7)));
        ada.known.names.extend(["Ada Lovelace".to_owned(), "A".to_owned()]);
        ada
    }

    #[test]
    fn a_name_is_found_as_a_word_and_a_handle_as_a_mention() {
        for text in ["ADA LOVELACE wrote", "thanks, @ada_lovelace!", "(Ada Lovelace)"] {
            assert!(ada().is_named_in(text), "{text}");
        }
        for text in ["a day", "Ada", "Ada Lovelacewood", "@ada_lovelace_2", "ada_lovelace"] {
            assert!(!ada().is_named_in(text), "{text}");
        }
    }

    #[test]
    fn a_name_is_found_in_any_script_and_normal_form() {
        for (name, text) in [
            ("李雷", "谢谢李雷的回答"),
            ("김철수", "김철수가 썼다"),
            ("Zoé", "merci, ZOE\u{301}!"),
            ("Zoé", "@zoé"),
            ("प्रिया", "धन्यवाद प्रिया।"),
            ("Straße", "@straße"),
        ] {
            let mut person = Person::new(Who::User(UserId(7)));
            person.known.names.insert(name.to_owned());
            assert!(person.is_named_in(text), "{name}: {text}");
        }
        let mut ram = Person::new(Who::User(UserId(7)));
        ram.known.names.insert("राम".to_owned());
        assert!(!ram.is_named_in("रामू") && !ram.is_named_in("राम्या"));
    }

    #[test]
    fn hashes_differ_between_people_and_salts_and_do_not_hold_the_source() {
        let hashes = |salt: &str| PersonHashes::new(&Secret::from(salt.to_owned()));
        let (one, other) = (hashes("one"), hashes("other"));
        assert_ne!(one.user(UserId(7)), one.user(UserId(8)));
        assert_ne!(one.user(UserId(7)), one.address("7"));
        assert_ne!(one.user(UserId(7)), other.user(UserId(7)));
        assert_ne!(one.fingerprint(), other.fingerprint());
        let source = one.source(&SourceId("disqus:ada-1".to_owned()));
        assert!(source.is_hashed() && source.0.starts_with("disqus:") && !source.0.contains("ada"), "{source}");
    }
}
