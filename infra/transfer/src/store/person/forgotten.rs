//! Erased people, and erasures under way. The item `erasure` has the person's identifiers until the erasure ends, so
//! that the next run of a command that was killed finds the rest. An item for each hash of a person keeps later imports
//! from bringing the person's comments back. The hashes are keyed with the visitor salt and reveal nothing without it.

use std::collections::BTreeSet;

use shared::domain::ids::{SourceId, UserId};
use shared::domain::list::Order;
use shared::domain::person::{KnownBy, Person, PersonHashes};
use shared::domain::time::Timestamp;
use shared::error::Fault;
use shared::store::schema::{SK, forgotten};
use shared::store::transaction::Write;
use shared::store::{Index, Query, Reading, Store, keys, number, text, write};

/// All erased people.
#[derive(Clone, Debug)]
pub struct Forgotten {
    people: BTreeSet<String>,
    hashes: PersonHashes,
}

impl Forgotten {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.people.is_empty()
    }

    #[must_use]
    pub fn has_user(&self, id: UserId) -> bool {
        self.people.contains(&self.hashes.user(id))
    }

    /// Whether the person with this address was erased. `hash` is the Gravatar hash of the address.
    #[must_use]
    pub fn has_address(&self, hash: &str) -> bool {
        self.people.contains(&self.hashes.address(hash))
    }

    /// Whether the person with this hash was erased. `hash` is the result of [`PersonHashes::address`].
    #[must_use]
    pub fn has_keyed(&self, hash: &str) -> bool {
        self.people.contains(hash)
    }

    /// The hash that replaces this source after erasure.
    #[must_use]
    pub fn source(&self, source: &SourceId) -> SourceId {
        self.hashes.source(source)
    }
}

impl PartialEq for Forgotten {
    fn eq(&self, other: &Self) -> bool {
        self.people == other.people
    }
}

/// Reads all erased people. `None` if any of them was erased under another salt.
pub async fn forgotten(store: &Store, hashes: PersonHashes) -> Result<Option<Forgotten>, Fault> {
    let query = Query {
        index: Index::Table(Reading::Consistent),
        partition: keys::forgotten_partition(),
        bounds: None,
        order: Order::OldestFirst,
        limit: usize::MAX,
    };
    let rows = store.query_all(query).await?;
    let fingerprint = text(hashes.fingerprint());
    if rows.iter().any(|row| row.get(forgotten::SALT) != Some(&fingerprint)) {
        return Ok(None);
    }
    let people = rows.iter().filter_map(|row| row.get(SK)?.as_s().ok().cloned());
    Ok(Some(Forgotten { people: people.collect(), hashes }))
}

/// The data that an unfinished erasure of this person had collected.
pub async fn unfinished_erasure(store: &Store, who: &str) -> Result<Option<KnownBy>, Fault> {
    store.get(&keys::erasure(who), Reading::Consistent).await
}

/// Records the person for later imports, and for the next erasure in case this one is interrupted.
pub async fn begin_erasure(store: &Store, person: &Person, hashes: &PersonHashes, now: Timestamp) -> Result<(), Fault> {
    let who = keys::erasure(&hashes.who(&person.who));
    store.put("beginning an erasure", Write::put(write(&who, &person.known)?)).await?;
    for hash in hashes.all(person) {
        let forget = Write::update(keys::forgotten(&hash)).set(forgotten::FORGOTTEN_AT, number(now.0));
        let forget = forget.set(forgotten::SALT, text(hashes.fingerprint())).still(forgotten::FORGOTTEN_AT, None);
        store.update("remembering an erasure", forget).await?;
    }
    Ok(())
}

pub async fn end_erasure(store: &Store, who: &str) -> Result<(), Fault> {
    store.transact(vec![Write::delete(keys::erasure(who))]).await.map(drop)
}
