//! Users from verified tokens, their handles for mentions, and the search by name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, PutRequest, WriteRequest};
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::keys::{self, Key};
use super::schema::user;
use super::transaction::Write;
use super::{ATTEMPTS, Index, Query, Reading, Store, fault, number, read, text, write};
use crate::domain::avatar::Avatar;
use crate::domain::fold::fold_forms;
use crate::domain::ids::UserId;
use crate::domain::letters::is_of_word;
use crate::domain::list::Order;
use crate::domain::markdown::Mentions;
use crate::domain::time::Timestamp;
use crate::domain::user::{Ban, Identity, MAX_NAME, User};
use crate::error::Fault;

/// Maximum characters of a name query (`users.index`).
pub const MAX_QUERY: usize = 50;
/// Maximum characters of a folded name that are searched. Folding turns a few characters into several.
const MAX_FOLDED: usize = 2 * MAX_NAME;
/// The pause before a token without `iat` may change a name again, because it is unknown which of two such tokens is newer.
const UNDATED_PAUSE: Duration = Duration::from_mins(10);
/// For this many seconds after `iat`, the most recently used of several tokens with the same `iat` sets the name, so that a
/// name can change just after the first sign-in. Later, such tokens no longer replace each other's names.
const SAME_SECOND: i64 = 60;
/// Maximum writes in one `BatchWriteItem`, as set by `DynamoDB`.
pub const WRITE_BATCH: usize = 25;

#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Maximum users to return.
    most: usize,
    /// Whether to include banned users.
    banned: bool,
}

impl Search {
    /// The search that completes mentions.
    pub const MENTIONS: Self = Self { most: 5, banned: false };
    /// The moderators' search.
    pub const EVERYBODY: Self = Self { most: 20, banned: true };
}

/// The place in a name where a match begins. The search returns users in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Rank {
    Name,
    Word,
    Inside,
}

const RANKS: [Rank; 3] = [Rank::Name, Rank::Word, Rank::Inside];

/// An item that the search reads, for a place in a name where a match may begin.
#[derive(Serialize, Deserialize)]
pub(super) struct Fragment {
    #[serde(rename = "u")]
    id: UserId,
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "av", default)]
    avatar: Avatar,
    #[serde(rename = "bn", default, skip_serializing_if = "Option::is_none")]
    ban: Option<Ban>,
}

/// The keys of a user's fragments: every suffix of the folded name, cut to [`MAX_QUERY`] characters, except prefixes of
/// another suffix with the same or a better rank.
fn fragment_keys(user: &User) -> BTreeSet<(String, String)> {
    let folded: Vec<char> = fold_forms(&user.name).chars().take(MAX_FOLDED).collect();
    let mut kept: Vec<(Rank, String)> = Vec::new();
    let mut suffixes: Vec<(Rank, String)> = (0..folded.len())
        .map(|start| {
            let rank = match start {
                0 => Rank::Name,
                _ if !is_of_word(folded[start - 1]) && is_of_word(folded[start]) => Rank::Word,
                _ => Rank::Inside,
            };
            (rank, folded[start..].iter().take(MAX_QUERY).collect())
        })
        .collect();
    suffixes.sort_by(|a, b| (a.0, b.1.len()).cmp(&(b.0, a.1.len())));
    for (rank, suffix) in suffixes {
        if !kept.iter().any(|(_, better)| better.starts_with(&suffix)) {
            kept.push((rank, suffix));
        }
    }
    let key = |(rank, suffix): (Rank, String)| keys::name_fragment(rank as u8, &suffix, user.id);
    kept.into_iter().map(key).map(|key| (key.pk, key.sk)).collect()
}

/// The items that make a user searchable: handle and name fragments.
pub fn directory(user: &User) -> Result<BTreeMap<(String, String), keys::Item>, Fault> {
    let fragment =
        || Fragment { id: user.id, name: user.name.clone(), avatar: user.avatar.clone(), ban: user.ban.clone() };
    let mut rows = BTreeMap::new();
    for (pk, sk) in fragment_keys(user) {
        let key = Key { pk: pk.clone(), sk: sk.clone() };
        rows.insert((pk, sk), write(&key, &fragment())?);
    }
    if let Some(handle) = user.handle() {
        let key = keys::handle(&handle, user.id);
        rows.insert((key.pk.clone(), key.sk.clone()), key.item());
    }
    Ok(rows)
}

impl Store {
    pub async fn user(&self, id: UserId, reading: Reading) -> Result<Option<User>, Fault> {
        self.get(&keys::user(id), reading).await
    }

    /// The current names of these users. Omits users without a name.
    pub async fn names_of(&self, ids: impl IntoIterator<Item = UserId>) -> Result<BTreeMap<UserId, String>, Fault> {
        let ids: BTreeSet<UserId> = ids.into_iter().collect();
        let found = self.batch_get(ids.into_iter().map(keys::user).collect(), Reading::Eventual).await?;
        let users: Vec<User> = found.into_values().map(read).collect::<Result<_, _>>()?;
        let named = users.into_iter().filter(|user| !user.name.is_empty());
        Ok(named.map(|user| (user.id, user.name)).collect())
    }

    /// The user of a verified token. If the token has a new name or picture, first stores it in the table and in the search
    /// entries. `None` if the id belongs to another subject, or if the token's session has ended. `known` is the user's item,
    /// as read eventually consistently.
    pub async fn sync_user(
        &self,
        identity: &Identity,
        mut known: Option<User>,
        now: Timestamp,
    ) -> Result<Option<User>, Fault> {
        let mut reading = Reading::Eventual;
        // Doesn't use `attempts`, because the second attempt needs no delay: it only reads consistently.
        for _ in 0..ATTEMPTS {
            match self.compare(identity, known.as_ref(), now) {
                UserSync::Known(user) => return Ok(Some(user)),
                UserSync::Other => return Ok(None),
                // A lagging replica may not have the current session yet.
                UserSync::SignedOut if reading == Reading::Consistent => return Ok(None),
                // Storing a name may cost a hundred writes, so it must be new to the table, and not only to a lagging
                // replica.
                UserSync::New(user) if reading == Reading::Consistent => {
                    if self.save_profile(known.as_ref(), &user).await? {
                        return Ok(Some(user));
                    }
                }
                UserSync::SignedOut | UserSync::New(_) => {}
            }
            reading = Reading::Consistent;
            known = self.user(identity.id, reading).await?;
        }
        Err(Fault::transient("saving a user's name"))
    }

    fn compare(&self, identity: &Identity, known: Option<&User>, now: Timestamp) -> UserSync {
        if let Some(account) = &identity.claims.account {
            let present = known.filter(|known| known.is_signed_in(account));
            return present.map_or(UserSync::SignedOut, |known| UserSync::Known(known.clone()));
        }
        let user = self.kept_user(User::from_token(identity, known, now));
        let Some(known) = known else { return UserSync::New(user) };
        if known.subject.is_some() && known.subject != user.subject {
            return UserSync::Other;
        }
        // A user without a name is in the table only because of a ban or moderators' decisions about comments.
        let renames = known.name.is_empty() || !user.looks_like(known) && is_newer(identity.issued_at(now), known, now);
        if renames {
            UserSync::New(user)
        } else if (&known.subject, &known.issuer) == (&user.subject, &user.issuer) {
            UserSync::Known(known.clone())
        } else {
            UserSync::New(User { subject: user.subject, issuer: user.issuer, ..known.clone() })
        }
    }

    /// Stores a user's profile. Writes new search entries first and deletes stale ones last, and events repeat interrupted
    /// work. Returns false if the item no longer matches `known`.
    async fn save_profile(&self, known: Option<&User>, user: &User) -> Result<bool, Fault> {
        let stale = match known {
            Some(known) if known.looks_like(user) => Vec::new(),
            _ => self.replace_directory(known, user).await?,
        };
        let mut update = Write::update(keys::user(user.id))
            .set(user::ID, number(user.id.0))
            .set(user::NAME, text(user.name.clone()))
            .set(user::AVATAR, text(user.avatar.clone()));
        for ((attribute, after), (_, before)) in versions(Some(user)).into_iter().zip(versions(known)) {
            update = update.still(attribute, before);
            if let Some(after) = after {
                update = update.set(attribute, after);
            }
        }
        if let Some(saved) = self.update("saving a user's name", update).await? {
            self.write_all(stale).await?;
            let saved: User = read(saved)?;
            // A concurrent ban has written no entries if it created the user's item.
            if saved.ban != user.ban {
                self.settle_directory(saved).await?;
            }
            return Ok(true);
        }
        if let Some(now) = self.user(user.id, Reading::Consistent).await? {
            self.forget_directory(user, &now).await?;
        }
        Ok(false)
    }

    /// Writes the search entries of `user`. Returns the writes that delete the other entries of `known`.
    async fn replace_directory(&self, known: Option<&User>, user: &User) -> Result<Vec<WriteRequest>, Fault> {
        let fresh = directory(user)?.into_values().map(|row| {
            let put = PutRequest::builder().set_item(Some(row)).build();
            put.map(|put| WriteRequest::builder().put_request(put).build())
        });
        let fresh = fresh.collect::<Result<_, _>>().map_err(|error| Fault::new("writing search entries", error))?;
        self.write_all(fresh).await?;
        known.map_or_else(|| Ok(Vec::new()), |known| stale(known, Some(user)))
    }

    /// Deletes the search entries of `before` that `user` does not have.
    pub async fn forget_directory(&self, before: &User, user: &User) -> Result<(), Fault> {
        self.write_all(stale(before, Some(user))?).await
    }

    /// Writes the search entries of `user`. Safe to run twice.
    pub async fn refresh_directory(&self, user: &User) -> Result<(), Fault> {
        self.replace_directory(None, user).await.map(drop)
    }

    /// Writes the search entries of `user` until they match the user's item, which may change meanwhile.
    pub(super) async fn settle_directory(&self, mut user: User) -> Result<(), Fault> {
        let mut attempts = self.attempts("writing search entries");
        loop {
            attempts.next().await?;
            self.refresh_directory(&user).await?;
            let now = self.user(user.id, Reading::Consistent).await?;
            if now.as_ref().is_some_and(|now| now.looks_like(&user) && now.ban == user.ban) {
                return Ok(());
            }
            self.write_all(stale(&user, now.as_ref())?).await?;
            match now {
                Some(now) if !now.name.is_empty() => user = now,
                _ => return Ok(()),
            }
        }
    }

    pub async fn write_all(&self, writes: Vec<WriteRequest>) -> Result<(), Fault> {
        try_join_all(writes.chunks(WRITE_BATCH).map(|batch| self.write_batch(batch.to_vec()))).await?;
        Ok(())
    }

    async fn write_batch(&self, mut writes: Vec<WriteRequest>) -> Result<(), Fault> {
        let doing = "writing a batch of items";
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let request = self.client.batch_write_item().request_items(&self.table, writes);
            let answer = request.send().await.map_err(|error| fault(doing, error))?;
            let left = answer.unprocessed_items.and_then(|mut left| left.remove(&self.table));
            writes = left.unwrap_or_default();
            if writes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The handles of users that a body mentions.
    pub async fn mentioned_handles(&self, mentions: Mentions) -> Result<Vec<String>, Fault> {
        Ok(mentions.meant(&self.known_handles(mentions.tries()).await?))
    }

    /// The `handles` that belong to a user.
    pub async fn known_handles(&self, handles: Vec<String>) -> Result<Vec<String>, Fault> {
        let known = handles.into_iter().map(|handle| self.known_handle(handle));
        Ok(try_join_all(known).await?.into_iter().flatten().collect())
    }

    async fn known_handle(&self, handle: String) -> Result<Option<String>, Fault> {
        let partition = keys::handle_partition(&handle);
        let query = Query {
            index: Index::Table(Reading::Eventual),
            partition,
            bounds: None,
            order: Order::OldestFirst,
            limit: 1,
        };
        let (found, _) = self.query(&query, None).await?;
        Ok((!found.is_empty()).then_some(handle))
    }

    /// Users whose names contain `part` in any case, best matches first.
    pub async fn find_users(&self, part: &str, search: Search, now: Timestamp) -> Result<Vec<User>, Fault> {
        let part = fold_forms(part);
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let ranks = RANKS.map(|rank| self.find_ranked(rank, &part, search, now));
        let mut seen = BTreeSet::new();
        let mut found: Vec<User> = try_join_all(ranks).await?.into_iter().flatten().collect();
        found.retain(|user| seen.insert(user.id));
        found.truncate(search.most);
        Ok(found)
    }

    async fn find_ranked(&self, rank: Rank, part: &str, search: Search, now: Timestamp) -> Result<Vec<User>, Fault> {
        /// Limits of successive Queries, per user to return. A name hardly ever has more than a hundred fragments, so
        /// the sum suffices even if each of them matches.
        const LIMITS: [usize; 3] = [2, 20, 80];
        let bounds = Some((text(part), text(format!("{part}{}", char::MAX))));
        let partition = keys::name_partition(rank as u8, part);
        let mut found: BTreeMap<UserId, User> = BTreeMap::new();
        let mut order = Vec::new();
        let mut start = None;
        for limit in LIMITS {
            let query = Query {
                index: Index::Table(Reading::Eventual),
                partition: partition.clone(),
                bounds: bounds.clone(),
                order: Order::OldestFirst,
                limit: limit * search.most,
            };
            let (items, next) = self.query(&query, start).await?;
            for item in items {
                let Fragment { id, name, avatar, ban } = read(item)?;
                let banned = ban.as_ref().is_some_and(|ban| ban.holds(now));
                if (search.banned || !banned) && !found.contains_key(&id) {
                    order.push(id);
                    found.insert(id, User { name, avatar, ban, ..User::unnamed(id) });
                }
            }
            if found.len() >= search.most || next.is_none() {
                break;
            }
            start = next;
        }
        Ok(order.into_iter().filter_map(|id| found.remove(&id)).take(search.most).collect())
    }
}

/// The result of comparing a token with the table.
enum UserSync {
    /// The token has no newer name or picture.
    Known(User),
    New(User),
    /// The id belongs to another subject.
    Other,
    /// The token belongs to a session of ours that has ended.
    SignedOut,
}

/// Whether a token with this `iat` may change the name of a known user.
fn is_newer(issued_at: Option<i64>, known: &User, now: Timestamp) -> bool {
    match (issued_at, known.issued_at(now)) {
        (Some(issued_at), Some(newest)) if issued_at == newest => {
            now.seconds().saturating_sub(issued_at) <= SAME_SECOND
        }
        (Some(issued_at), Some(newest)) => issued_at > newest,
        (Some(_), None) => true,
        (None, _) => known.learned_at.is_none_or(|then| !then.is_within(UNDATED_PAUSE, now)),
    }
}

/// Every change of a profile changes at least one of these attributes. A write on condition that they are unchanged
/// detects concurrent changes.
pub fn versions(user: Option<&User>) -> [(&'static str, Option<AttributeValue>); 6] {
    let seconds = |time: Timestamp| number(time.seconds());
    [
        (user::TOKEN_ISSUED_AT, user.and_then(|user| user.token_issued_at).map(number)),
        (user::LEARNED_AT, user.and_then(|user| user.learned_at).map(seconds)),
        ("ra", user.and_then(|user| user.renamed_at).map(seconds)),
        (user::COMMENTS_AT, user.and_then(|user| user.comments_at).map(seconds)),
        (user::SUBJECT, user.and_then(|user| user.subject.clone()).map(text)),
        (user::ISSUER, user.and_then(|user| user.issuer.clone()).map(text)),
    ]
}

/// The writes that delete the search entries of `before` that `user` does not have. `user` is `None` if the user is
/// gone.
fn stale(before: &User, user: Option<&User>) -> Result<Vec<WriteRequest>, Fault> {
    let fresh = user.map(directory).transpose()?.unwrap_or_default();
    let gone = directory(before)?.into_keys().filter(|key| !fresh.contains_key(key));
    let deletes = gone.map(|(pk, sk)| {
        let delete = DeleteRequest::builder().set_key(Some(Key { pk, sk }.item())).build();
        delete.map(|delete| WriteRequest::builder().delete_request(delete).build())
    });
    deletes.collect::<Result<_, _>>().map_err(|error| Fault::new("deleting search entries", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> User {
        User { name: name.to_owned(), ..User::unnamed(UserId(7)) }
    }

    #[test]
    fn a_token_without_iat_changes_a_name_that_was_read_while_the_clock_was_ahead() {
        let now = Timestamp(1_800_000_000_000);
        let learned = |then| User { learned_at: Some(then), ..named("Ada") };
        assert!(!is_newer(None, &learned(now), now) && !is_newer(None, &learned(now + Duration::from_secs(9)), now));
        assert!(is_newer(None, &learned(now + Duration::from_hours(24)), now));
    }

    #[test]
    fn every_part_of_a_name_begins_one_of_its_fragments() {
        for name in ["Ada Lovelace", "aaaaaaaa", "Straße ΟΔΥΣΣΕΥΣ", "banana band", "%_", "Zoe\u{301} प्रिया"]
        {
            let folded: Vec<char> = fold_forms(name).chars().collect();
            let keys = fragment_keys(&named(name));
            for start in 0..folded.len() {
                for end in start + 1..=folded.len() {
                    let part: String = folded[start..end].iter().collect();
                    assert!(keys.iter().any(|(_, sk)| sk.starts_with(&part)), "{part} of {name}");
                }
            }
        }
    }

    #[test]
    fn a_word_does_not_begin_at_or_after_a_combining_mark() {
        let begins = |name: &str| {
            let words = keys::name_partition(Rank::Word as u8, "x");
            let kind = words.rsplit_once('x').map_or("", |(kind, _)| kind).to_owned();
            fragment_keys(&named(name)).into_iter().filter(|(pk, _)| pk.starts_with(&kind)).count()
        };
        assert_eq!((begins("प्रिया"), begins("प्रिया शर्मा"), begins("Ada-Lovelace")), (0, 1, 1));
    }

    #[test]
    fn repeated_letters_make_no_needless_fragments() {
        assert_eq!(fragment_keys(&named(&"a".repeat(100))).len(), 1);
    }
}
