//! Erases a person from a table and its bucket.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use media::bucket::{Bucket, Name};
use serde::Serialize;
use shared::domain::comment::Comment;
use shared::domain::email::canonical;
use shared::domain::mail_keys::MailKeys;
use shared::domain::person::{Person, PersonHashes, Who};
use shared::domain::secret::Secret;
use shared::domain::time::Clock;
use shared::error::Fault;
use shared::store::person::erase::{Erasure, Gone};
use shared::store::person::find::{Links, Match, Remains, Retained};
use shared::store::{Reading, Store};

use super::PersonError;
use crate::lease::Lease;

/// While the service runs, the person may leave something behind what was erased already.
const ROUNDS: usize = 3;

/// What became of an erasure.
#[derive(Debug, Serialize)]
pub struct Receipt {
    pub at: String,
    /// A keyed hash of the person.
    pub who: String,
    /// Counts by kind.
    pub gone: BTreeMap<&'static str, u64>,
    pub stays: Vec<Retained>,
    /// Items that still name the person.
    pub left: u64,
}

/// A mail that was written on this machine.
pub struct Mail<'a> {
    pub to: &'a str,
    /// The subject and the bodies.
    pub texts: [&'a str; 3],
}

/// Removes the mails that a condition picks, and returns their number.
pub type RemoveMails<'a> = dyn Fn(&dyn Fn(&Mail<'_>) -> bool) -> io::Result<u64> + 'a;

pub struct Eraser<'a> {
    pub store: &'a Store,
    pub bucket: Bucket<'a>,
    /// The visitor salt.
    pub salt: &'a Secret,
    pub clock: Clock,
    pub lease: Lease<'a>,
    /// `None` where mails are not kept.
    pub remove_mails: Option<&'a RemoveMails<'a>>,
}

impl Eraser<'_> {
    pub async fn erase(&self, who: Who) -> Result<Receipt, PersonError> {
        self.lease.hold(self.erase_leased(who)).await
    }

    async fn erase_leased(&self, who: Who) -> Result<Receipt, PersonError> {
        let hashes = PersonHashes::new(self.salt);
        let name = hashes.who(&who);
        let earlier = self.store.unfinished_erasure(&name).await?;
        let person = self.store.identify(who, earlier).await?.ok_or(PersonError::Importing)?;
        self.store.begin_erasure(&person, &hashes, self.clock.now()).await?;
        let mut gone = Gone::new();
        self.erase_mails(&person, &mut gone)?;
        let mut remains = Remains::default();
        for _ in 0..ROUNDS {
            self.erase_all(&person, &hashes, &mut gone).await?;
            remains = self.store.remains(&person, &name, self.clock.now()).await?;
            if remains.left == 0 {
                self.store.end_erasure(&name).await?;
                break;
            }
        }
        Ok(Receipt { at: self.clock.now().to_string(), who: name, gone, stays: remains.stays, left: remains.left })
    }

    /// Removes mails to the person, and those that tell others what the person wrote.
    fn erase_mails(&self, person: &Person, gone: &mut Gone) -> Result<(), PersonError> {
        let Some(remove) = self.remove_mails else { return Ok(()) };
        let keys = MailKeys::new(self.salt);
        let addresses = person.known.sealed.iter().filter_map(|sealed| keys.open(sealed));
        let addresses: BTreeSet<String> = addresses.map(|address| canonical(&address)).collect();
        let removed = remove(&|mail| {
            addresses.contains(&canonical(mail.to)) || mail.texts.iter().any(|text| person.is_named_in(text))
        })?;
        if removed > 0 {
            gone.insert("mails", removed);
        }
        Ok(())
    }

    async fn erase_all(&self, person: &Person, hashes: &PersonHashes, gone: &mut Gone) -> Result<(), PersonError> {
        let mut links = Links::default();
        let see = |comment: &Comment, is_own| {
            for image in Name::all_in(&comment.body) {
                links.add(image.as_str().to_owned(), comment.id, is_own);
            }
        };
        let matches = self.store.matches(person, &hashes.who(&person.who), self.clock.now(), see).await?;
        let erasure = Erasure { store: self.store, person, hashes, clock: &self.clock };
        for found in matches {
            // First, because the text is the only one that names them.
            self.erase_images(&found, &links, gone).await?;
            erasure.erase(found, gone).await?;
        }
        Ok(())
    }

    /// Removes the images that the comment links and its writer uploaded, or the one that a request has uploaded.
    async fn erase_images(&self, found: &Match, links: &Links, gone: &mut Gone) -> Result<(), Fault> {
        let mut images = Vec::new();
        if let Some(id) = found.comment()
            && let Some(comment) = self.store.comment(id, Reading::Consistent).await?
        {
            images = Name::all_in(&comment.body);
            images.retain(|image| links.is_own(image.as_str()));
        }
        images.extend(found.upload().and_then(Name::parse));
        for key in images.iter().flat_map(Name::keys) {
            if self.bucket.has(&key).await? {
                self.bucket.delete(&key).await?;
                *gone.entry("images").or_default() += u64::from(Name::of_upload(&key).is_some());
            }
        }
        gone.retain(|_, count| *count > 0);
        Ok(())
    }
}
