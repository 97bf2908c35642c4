//! A person's data that a single-machine server stores outside the table: unprocessed changes and queue messages.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use shared::domain::comment::Comment;
use shared::domain::deliveries::Message;
use shared::domain::job::Job;
use shared::domain::mail_keys::MailKeys;
use shared::domain::person::{Person, PersonHashes};
use shared::domain::report::bare_reason;
use shared::domain::time::Timestamp;
use shared::error::Fault;
use shared::store::keys::{Item, ItemKind, Key};
use shared::store::schema::comment;
use shared::store::{Store, read};

use super::find::{MatchKind, Search, match_of};
use crate::store::person::find;

/// Finds a person in changes and messages. A change has images, which are items in `DynamoDB`'s JSON.
pub struct Leftovers<'a> {
    person: &'a Person,
    handles: BTreeSet<String>,
    who: String,
    now: Timestamp,
    /// The ids of the person's reports, which comments may quote.
    reports: BTreeSet<u64>,
    /// The person's email addresses, in lower case.
    addresses: Vec<String>,
}

impl<'a> Leftovers<'a> {
    /// Reads the person's reports from the table.
    pub async fn new(
        store: &Store,
        person: &'a Person,
        hashes: &PersonHashes,
        keys: &MailKeys,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let who = hashes.who(&person.who);
        let matches = find::matches(store, person, &who, now, |_, _| {}).await?;
        let reports = matches.into_iter().filter_map(|found| report_of(&found.0)).collect();
        let addresses = person.known.sealed.iter().filter_map(|sealed| keys.open(sealed));
        let addresses = addresses.map(|address| address.to_lowercase()).collect();
        Ok(Self { person, handles: person.handles(), who, now, reports, addresses })
    }

    /// Collects the person's reports. Call this with every image before [`Self::amend`].
    pub fn learn(&mut self, image: &Value) {
        let found = item_of(image).and_then(|item| self.match_of(item));
        self.reports.extend(found.as_ref().and_then(report_of));
    }

    /// Removes the person from an image. Returns `None` if the image belongs to the person, or still names the person
    /// after the removal.
    #[must_use]
    pub fn amend(&self, image: Value) -> Option<Value> {
        let Some(mut item) = item_of(&image) else { return Some(image) };
        let is_changed = self.redact(&mut item).unwrap_or_default();
        let key = Key::of(&item)?;
        let is_named = Search::new(self.person, self.now).is_named_anywhere(&key, &item);
        if is_named || self.match_of(item.clone()).is_some() {
            return None;
        }
        if is_changed { serde_json::to_value(serde_dynamo::Item::from(item)).ok() } else { Some(image) }
    }

    /// Removes the person from a comment's rejection, and the details of the person's reports. Returns whether it
    /// removed anything.
    fn redact(&self, item: &mut Item) -> Option<bool> {
        let key = Key::of(item)?;
        if !matches!(ItemKind::of(&key), ItemKind::Comment(_)) {
            return Some(false);
        }
        let stored: Comment = read(item.clone()).ok()?;
        let rejection = stored.rejection.filter(|rejection| rejection.moderator == Some(self.person.user()));
        let mut excerpts = stored.newest_reports;
        let own = excerpts.iter_mut().filter(|excerpt| self.reports.contains(&excerpt.id));
        let words = own.map(|excerpt| excerpt.reason = bare_reason(&excerpt.reason).to_owned()).count();
        if let Some(rejection) = &rejection {
            replace(item, comment::REJECTION, &rejection.clone().without_moderator())?;
        }
        if words > 0 {
            replace(item, comment::NEWEST_REPORTS, &excerpts)?;
        }
        Some(rejection.is_some() || words > 0)
    }

    fn match_of(&self, item: Item) -> Option<MatchKind> {
        match_of(self.person, &self.handles, &self.who, self.now, item, &mut |_, _| {}).ok().flatten()
    }

    /// Whether a message is about the person. Messages about comments contain only ids.
    #[must_use]
    pub fn is_in_message(&self, body: &str) -> bool {
        let (known, user) = (&self.person.known, self.person.user());
        match serde_json::from_str(body) {
            Ok(Job::Rename(job)) => return job.user == user,
            Ok(Job::RejectRecent(job)) => return job.moderator == user || job.author == user.into(),
            Ok(Job::CleanUp(_) | Job::ForgetReactions(_) | Job::CountBelow(_)) => return false,
            Err(_) => {}
        }
        match serde_json::from_str(body) {
            Ok(Message::Mail { recipient }) => known.recipients.contains(&recipient),
            Ok(Message::Code { flow }) => known.inboxes.contains(&flow.inbox),
            Ok(Message::Webhook(_)) => false,
            Ok(Message::Feedback { .. }) | Err(_) => {
                let body = body.to_lowercase();
                self.addresses.iter().any(|address| body.contains(address))
            }
        }
    }
}

fn report_of(found: &MatchKind) -> Option<u64> {
    match found {
        MatchKind::Report(_, id) => Some(*id),
        _ => None,
    }
}

fn item_of(image: &Value) -> Option<Item> {
    serde_json::from_value::<serde_dynamo::Item>(image.clone()).ok().map(Into::into)
}

fn replace(item: &mut Item, name: &str, value: &impl Serialize) -> Option<()> {
    item.insert(name.to_owned(), serde_dynamo::to_attribute_value(value).ok()?);
    Some(())
}
