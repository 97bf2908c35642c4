//! Detects sources whose hashes were made with another salt than the table's.

use std::collections::BTreeSet;

use shared::domain::ids::{UserId, Visitor};

use super::Staging;
use crate::import::record::Record;

#[derive(Clone, Debug, Default)]
pub(super) struct Salts {
    /// The fingerprints of the salts that the heads of exports name.
    named: BTreeSet<String>,
    has_hashed_users: bool,
}

/// The error for a source whose users have different ids under this service's salt.
#[derive(Debug, thiserror::Error)]
#[error(
    "the file's user ids were hashed with another salt; import it with the SVC_VISITOR_SALT of the table it was \
     exported from"
)]
pub struct OtherSalt;

impl Salts {
    pub(super) fn note(&mut self, record: &Record) {
        let user = |id: Option<u64>| id.is_some_and(|id| UserId(id).is_hashed());
        let visitor = |text: &str| Visitor(text.to_owned()).user().is_some_and(UserId::is_hashed);
        self.has_hashed_users |= match record {
            Record::Head(head) => {
                self.named.extend(head.salt.clone());
                false
            }
            Record::Thread(thread) => user(thread.author_id),
            Record::User(record) => user(record.user_id),
            Record::Comment(comment) => user(comment.author.user_id),
            Record::Like(like) => visitor(&like.visitor),
            Record::Report(report) => user(report.user_id) || visitor(&report.visitor),
            Record::GuestBound(_) | Record::Tombstone(_) | Record::Part(_) | Record::Missing(_) => false,
        };
    }
}

impl Staging {
    /// Whether an export was read.
    #[must_use]
    pub fn is_export(&self) -> bool {
        !self.salts.named.is_empty()
    }

    /// The fingerprint of a salt in the source, if it differs from `own`, the fingerprint of the service's salt. `own`
    /// is `None` if the service has no salt yet. Fails if it differs and the source has hashed user ids.
    pub fn other_salt(&self, own: Option<&str>) -> Result<Option<&str>, OtherSalt> {
        let other = self.salts.named.iter().map(String::as_str).find(|named| Some(*named) != own);
        if other.is_some() && self.salts.has_hashed_users { Err(OtherSalt) } else { Ok(other) }
    }
}
