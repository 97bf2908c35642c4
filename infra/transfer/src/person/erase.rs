//! Erases a person from a table and its bucket.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use media::bucket::{Bucket, Name};
use serde::Serialize;
use serde_json::Value;
use shared::domain::comment::Comment;
use shared::domain::email::canonical;
use shared::domain::mail_keys::MailKeys;
use shared::domain::person::{Person, PersonHashes, Who};
use shared::domain::secret::Secret;
use shared::domain::time::Clock;
use shared::error::Fault;
use shared::store::{Reading, Store};

use super::PersonError;
use crate::check::Check;
use crate::lease::Lease;
use crate::store::person::erase::{Erasure, Gone};
pub use crate::store::person::find::Retained;
use crate::store::person::find::{self, Links, Match, Remains, identify};
use crate::store::person::forgotten::{begin_erasure, end_erasure, unfinished_erasure};
use crate::store::person::leftovers::Leftovers;

/// Maximum rounds of erasure. While the service runs, the person may write something new in between.
const ROUNDS: usize = 3;

#[derive(Debug, Serialize)]
pub struct Receipt {
    pub at: String,
    /// A keyed hash of the person.
    pub who: String,
    /// The numbers of erased items, by kind.
    pub gone: BTreeMap<&'static str, u64>,
    pub stays: Vec<Retained>,
    /// The number of items that still name the person but should have been erased.
    pub left: u64,
}

/// An email stored on this machine.
pub struct Mail<'a> {
    pub to: &'a str,
    /// The subject and both bodies.
    pub texts: [&'a str; 3],
}

/// Data of a single-machine server outside the table and the bucket. Each removal returns the number of items changed
/// or removed.
pub trait Machine {
    /// # Errors
    ///
    /// Fails if an email can't be read or removed.
    fn remove_mails(&self, picks: &dyn Fn(&Mail<'_>) -> bool) -> io::Result<u64>;

    /// Removes messages from queues, selected by their bodies.
    ///
    /// # Errors
    ///
    /// Fails if a message can't be read or removed.
    fn remove_messages(&self, picks: &dyn Fn(&str) -> bool) -> io::Result<u64>;

    /// Amends the images of unprocessed changes. A change is removed if one of its images becomes `None`.
    ///
    /// # Errors
    ///
    /// Fails if the stream can't be read or written.
    fn amend_changes(&self, amend: &mut dyn FnMut(Value) -> Option<Value>) -> io::Result<u64>;

    /// Whether the service left work unfinished. The whole table must then be repaired afterwards.
    fn is_unfinished(&self) -> bool;
}

pub struct Eraser<'a> {
    pub store: &'a Store,
    pub bucket: Bucket<'a>,
    /// The visitor salt.
    pub salt: &'a Secret,
    pub clock: Clock,
    pub lease: Lease<'a>,
    /// The delay after which most requests that were already being handled have finished. Zero if the service isn't
    /// running.
    pub patience: Duration,
    /// `None` for a deployed table.
    pub machine: Option<&'a dyn Machine>,
}

impl Eraser<'_> {
    pub async fn erase(&self, who: Who) -> Result<Receipt, PersonError> {
        self.lease.hold(self.erase_leased(who)).await
    }

    async fn erase_leased(&self, who: Who) -> Result<Receipt, PersonError> {
        let hashes = PersonHashes::new(self.salt);
        let name = hashes.who(&who);
        let earlier = unfinished_erasure(self.store, &name).await?;
        let person = identify(self.store, who, earlier).await?.ok_or(PersonError::Importing)?;
        begin_erasure(self.store, &person, &hashes, self.clock.now()).await?;
        let mut gone = Gone::new();
        let is_behind = self.erase_leftovers(&person, &hashes, &mut gone).await?;
        let mut remains = Remains::default();
        for _ in 0..ROUNDS {
            if self.erase_all(&person, &hashes, &mut gone).await? {
                // A request that is already being handled may store the user again.
                tokio::time::sleep(self.patience).await;
            }
            remains = find::remains(self.store, &person, &name, self.clock.now()).await?;
            if remains.left == 0 {
                end_erasure(self.store, &name).await?;
                break;
            }
        }
        if is_behind {
            Check { repair: true, patience: Duration::ZERO }.run(self.store, &self.clock, &mut io::sink()).await?;
        }
        Ok(Receipt { at: self.clock.now().to_string(), who: name, gone, stays: remains.stays, left: remains.left })
    }

    /// Removes emails to the person and emails that quote the person, and the person's data in messages and changes.
    /// Returns whether the whole table must be repaired afterwards.
    async fn erase_leftovers(
        &self,
        person: &Person,
        hashes: &PersonHashes,
        gone: &mut Gone,
    ) -> Result<bool, PersonError> {
        let Some(machine) = self.machine else { return Ok(false) };
        let keys = MailKeys::new(self.salt);
        let addresses = person.known.sealed.iter().filter_map(|sealed| keys.open(sealed));
        let addresses: BTreeSet<String> = addresses.map(|address| canonical(&address)).collect();
        let mails = machine.remove_mails(&|mail| {
            addresses.contains(&canonical(mail.to)) || mail.texts.iter().any(|text| person.is_named_in(text))
        })?;
        let mut leftovers = Leftovers::new(self.store, person, hashes, &keys, self.clock.now()).await?;
        let messages = machine.remove_messages(&|body| leftovers.is_in_message(body))?;
        machine.amend_changes(&mut |image| {
            leftovers.learn(&image);
            Some(image)
        })?;
        let changes = machine.amend_changes(&mut |image| leftovers.amend(image))?;
        let counts = [("mails", mails), ("messages", messages), ("changes", changes)];
        gone.extend(counts.into_iter().filter(|(_, count)| *count > 0));
        Ok(machine.is_unfinished() || messages + changes > 0)
    }

    /// Erases all items that name the person. Returns whether there were any.
    async fn erase_all(&self, person: &Person, hashes: &PersonHashes, gone: &mut Gone) -> Result<bool, PersonError> {
        let mut links = Links::default();
        let see = |comment: &Comment, is_own| {
            for image in Name::all_in(&comment.body) {
                links.add(image.as_str().to_owned(), comment.id, is_own);
            }
        };
        let matches = find::matches(self.store, person, &hashes.who(&person.who), self.clock.now(), see).await?;
        let is_any = !matches.is_empty();
        let erasure = Erasure { store: self.store, person, hashes, clock: &self.clock };
        for found in matches {
            // Erases images first, because only the comment's text names them.
            self.erase_images(&found, &links, gone).await?;
            erasure.erase(found, gone).await?;
        }
        Ok(is_any)
    }

    /// Removes the person's images: those in a matched comment, unless another writer's comment linked to them first,
    /// or the one that a matched request uploaded.
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
