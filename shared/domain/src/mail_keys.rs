//! Keys for emails: addresses are stored sealed, guests are identified by a keyed hash, and links in emails are signed. All
//! keys are derived from the visitor salt (HKDF-SHA256), so a new salt invalidates all of them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::email::canonical;
use crate::ids::{ThreadId, UserId};
use crate::seal::{DerivedKeys, Seal, tag};
use crate::secret::Secret;
use crate::time::{Hour, Timestamp};

/// Characters in the signature of a link, and in the hash of a guest, a member or an email: 132 bits.
const SIGNATURE: usize = 22;
/// Characters in the hash of a thread: 66 bits.
const THREAD: usize = 11;
/// Characters in the hash of an address, a domain or a network: 66 bits.
const ADDRESS: usize = 11;
/// Lifetime of a confirmation link, in hours.
const CONFIRM_HOURS: i64 = 7 * 24;

/// The recipient of an email: `u` and a user's id, `m` and a keyed hash of a guest's address, `c` and the inbox that a sign-in
/// code goes to, or `mods` for the moderators.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recipient(pub String);

impl Recipient {
    #[must_use]
    pub fn moderators() -> Self {
        Self("mods".to_owned())
    }

    /// The recipient of sign-in codes in an inbox. It has no notification state.
    #[must_use]
    pub fn of_codes(inbox: &str) -> Self {
        Self(format!("c{inbox}"))
    }

    #[must_use]
    pub fn gets_codes(&self) -> bool {
        self.0.starts_with('c')
    }

    #[must_use]
    pub fn is_guest(&self) -> bool {
        !self.is_moderators() && self.0.starts_with('m')
    }

    #[must_use]
    pub fn is_moderators(&self) -> bool {
        self.0 == "mods"
    }
}

impl From<UserId> for Recipient {
    fn from(id: UserId) -> Self {
        Self(format!("u{id}"))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub recipient: Recipient,
    pub purpose: Purpose,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Confirms this asker ([`crate::notifications::Asker`]) until the end of the hour `until`. A member's asker is the hash of
    /// the address, [`MailKeys::address`].
    Confirm { until: Hour, asker: String },
    /// Stops all emails, or only those about this thread ([`MailKeys::thread`]). Never expires.
    Stop { thread: Option<String> },
}

impl Purpose {
    /// A confirmation that is valid for seven days from `now`, and then until the end of the hour.
    #[must_use]
    pub fn confirm(asker: String, now: Timestamp) -> Self {
        Self::Confirm { until: Hour::of(now).after(CONFIRM_HOURS), asker }
    }

    fn text(&self) -> String {
        match self {
            Self::Confirm { until, asker } => format!("c{}-{asker}", until.0),
            Self::Stop { thread } => format!("s{}", thread.as_deref().unwrap_or_default()),
        }
    }
}

impl FromStr for Purpose {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_at_checked(1).ok_or(())? {
            ("c", text) => {
                let (until, asker) = text.split_once('-').ok_or(())?;
                Ok(Self::Confirm { until: Hour(until.parse().map_err(drop)?), asker: asker.to_owned() })
            }
            ("s", "") => Ok(Self::Stop { thread: None }),
            ("s", thread) => Ok(Self::Stop { thread: Some(thread.to_owned()) }),
            _ => Err(()),
        }
    }
}

pub struct MailKeys {
    seal: Seal,
    names: hmac::Key,
    links: hmac::Key,
}

impl MailKeys {
    #[must_use]
    pub fn new(salt: &Secret) -> Self {
        let keys = DerivedKeys::new(salt);
        Self { seal: keys.addresses(), names: keys.mac("mail name"), links: keys.mac("mail link") }
    }

    /// The guest with this address, as a recipient. All spellings of one mailbox are the same recipient.
    #[must_use]
    pub fn guest(&self, address: &str) -> Recipient {
        Recipient(format!("m{}", tag(&self.names, &["guest", &canonical(address)], SIGNATURE)))
    }

    /// A keyed hash of a sealed address. All spellings of one mailbox have the same hash. `None` if the address can't
    /// be opened.
    #[must_use]
    pub fn address(&self, sealed: &str) -> Option<String> {
        Some(self.plain_address(&self.open(sealed)?))
    }

    /// Like [`Self::address`], for an address that isn't sealed.
    #[must_use]
    pub fn plain_address(&self, address: &str) -> String {
        tag(&self.names, &["address", &canonical(address)], ADDRESS)
    }

    /// A keyed hash of a thread, for links and muted threads.
    #[must_use]
    pub fn thread(&self, thread: &ThreadId) -> String {
        tag(&self.names, &["thread", &thread.to_string()], THREAD)
    }

    /// A keyed hash of a caller's network, for the limits on confirmations.
    #[must_use]
    pub fn network(&self, network: IpAddr) -> String {
        tag(&self.names, &["network", &network.to_string()], ADDRESS)
    }

    /// A keyed hash of a sealed address's domain, for the limits per domain. `None` if the address can't be opened.
    #[must_use]
    pub fn domain(&self, sealed: &str) -> Option<String> {
        let address = canonical(&self.open(sealed)?);
        Some(tag(&self.names, &["domain", address.rsplit_once('@')?.1], ADDRESS))
    }

    /// A keyed hash of a member who claims an address. The notification state of the address's owner stores it instead of the
    /// member's id.
    #[must_use]
    pub fn member(&self, member: &Recipient) -> String {
        tag(&self.names, &["member", &member.0], SIGNATURE)
    }

    /// A unique id for an email to this recipient. `mail` is [`crate::notifications::NotificationState::mail`], or the
    /// nonce of a sign-in flow.
    #[must_use]
    pub fn mail(&self, recipient: &Recipient, mail: &str) -> String {
        tag(&self.names, &["mail", &recipient.0, mail], SIGNATURE)
    }

    /// Encrypts an address. Equal addresses have the same sealed form, so that they can be compared.
    #[must_use]
    pub fn seal(&self, address: &str) -> String {
        self.seal.close(address)
    }

    /// Decrypts a sealed address; `None` if it was sealed under another salt or has been changed.
    #[must_use]
    pub fn open(&self, sealed: &str) -> Option<String> {
        self.seal.open(sealed)
    }

    /// The signed token of a link. A token that stops emails has at most sixty characters, because some relays refold longer
    /// links in headers, which breaks DKIM.
    #[must_use]
    pub fn token(&self, link: &Link) -> String {
        let (purpose, recipient) = (link.purpose.text(), &link.recipient.0);
        format!("{purpose}.{recipient}.{}", tag(&self.links, &[&purpose, recipient], SIGNATURE))
    }

    /// Verifies a token and returns its link; `None` if the token is forged or has expired.
    #[must_use]
    pub fn link(&self, token: &str, now: Timestamp) -> Option<Link> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (purpose, recipient) = signed.split_once('.')?;
        let expected = tag(&self.links, &[purpose, recipient], SIGNATURE);
        // Compares hashes, so that timing reveals nothing about the signature.
        let hash = |text: &str| hmac::sign(&self.links, text.as_bytes());
        if hash(&expected).as_ref() != hash(signature).as_ref() {
            return None;
        }
        let purpose: Purpose = purpose.parse().ok()?;
        let expired = matches!(purpose, Purpose::Confirm { until, .. } if until < Hour::of(now));
        (!expired).then(|| Link { recipient: Recipient(recipient.to_owned()), purpose })
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn keys(salt: &str) -> MailKeys {
        MailKeys::new(&Secret::from(salt.to_owned()))
    }

    fn link(purpose: Purpose) -> Link {
        Link { recipient: keys("a").guest("ada@example.org"), purpose }
    }

    #[test]
    fn a_sealed_address_opens_under_the_same_salt_only() {
        let sealed = keys("a").seal("ada@example.org");
        assert_eq!(keys("a").open(&sealed).as_deref(), Some("ada@example.org"));
        assert_eq!(keys("b").open(&sealed), None);
        assert_eq!(keys("a").open(&sealed[1..]), None);
        assert_eq!(keys("a").open(""), None);
    }

    #[test]
    fn equal_addresses_have_equal_seals_that_do_not_reveal_the_address() {
        let sealed = keys("a").seal("ada@example.org");
        assert_eq!(sealed, keys("a").seal("ada@example.org"));
        let others = [keys("a").seal("Ada@example.org"), keys("b").seal("ada@example.org")];
        assert!(others.iter().all(|other| other[..16] != sealed[..16]));
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("example"));
    }

    #[test]
    fn all_spellings_of_a_mailbox_are_one_recipient() {
        let recipient = |address| keys("a").guest(address);
        assert_eq!(recipient("ada@example.org"), recipient("Ada+x@example.org"));
        assert_ne!(recipient("ada@example.org"), recipient("eve@example.org"));
        assert_ne!(recipient("ada@example.org"), keys("b").guest("ada@example.org"));
    }

    fn confirm(email: &str) -> Purpose {
        Purpose::confirm(keys("a").address(&keys("a").seal(email)).unwrap(), NOW)
    }

    #[test]
    fn a_link_confirms_one_address_however_it_is_spelled() {
        assert_eq!(confirm("ada@example.org"), confirm("Ada+x@example.org"));
        assert_ne!(confirm("ada@example.org"), confirm("eve@example.org"));
        assert_eq!(keys("b").address(&keys("a").seal("ada@example.org")), None);
    }

    #[test]
    fn a_token_survives_an_email_and_fits_in_a_header() {
        let thread = keys("a").thread(&ThreadId::new("posts", "1").unwrap());
        let stop = |thread| Purpose::Stop { thread };
        for (purpose, length) in [(confirm("ada@example.org"), 66), (stop(None), 60), (stop(Some(thread)), 60)] {
            let token = keys("a").token(&link(purpose.clone()));
            assert!(token.len() <= length, "{token}");
            assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)), "{token}");
            assert_eq!(keys("a").link(&token, NOW), Some(link(purpose)));
            assert_eq!(keys("b").link(&token, NOW), None);
        }
    }

    #[test]
    fn a_changed_token_is_not_a_link() {
        let token = keys("a").token(&link(Purpose::Stop { thread: None }));
        for place in 0..token.len() {
            let changed = if token.as_bytes()[place] == b'A' { "B" } else { "A" };
            let changed = format!("{}{changed}{}", &token[..place], &token[place + 1..]);
            assert_eq!(keys("a").link(&changed, NOW), None, "{changed}");
        }
        for odd in ["", ".", "..", "s", "s.u7.", "é.é.é"] {
            assert_eq!(keys("a").link(odd, NOW), None, "{odd}");
        }
    }

    #[test]
    fn a_confirmation_link_expires_after_seven_days_and_an_unsubscribe_link_never() {
        let day: i64 = 24 * 3_600 * 1_000;
        let (confirm, stop) =
            (keys("a").token(&link(confirm("ada@example.org"))), link(Purpose::Stop { thread: None }));
        let after = |token: &str, days| keys("a").link(token, Timestamp(NOW.0 + days * day)).is_some();
        assert!(after(&confirm, 6) && after(&confirm, 7) && !after(&confirm, 8));
        assert!(after(&keys("a").token(&stop), 10_000));
    }
}
