//! Items with a version number. A change is decided in memory, and written on condition that no other change came first.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keys::Key;
use super::schema::endpoint::VERSION;
use super::transaction::Write;
use super::{Reading, Store, number, write};
use crate::domain::name::ModeratorNames;
use crate::domain::notifications::NotificationState;
use crate::domain::sign_in::inbox::Inbox;
use crate::domain::sign_in::keys::PublicKeys;
use crate::domain::sign_in::redirect::RedirectFlow;
use crate::domain::sign_in::session::Sessions;
use crate::domain::webhook::{Delivery, Endpoint};
use crate::error::Fault;

pub(super) trait Versioned: Clone + PartialEq + Serialize {
    /// The item's version; zero before the item is stored.
    fn version(&mut self) -> &mut u64;
}

macro_rules! versioned {
    ($($item:ident)*) => {
        $(impl Versioned for $item {
            fn version(&mut self) -> &mut u64 {
                &mut self.version
            }
        })*
    };
}

versioned! { NotificationState Endpoint Delivery Inbox RedirectFlow Sessions PublicKeys ModeratorNames }

impl Store {
    /// Changes an item (an empty one if it is missing), and returns it with the result of `change`. If another change came
    /// first, `change` is called again with the new item. Nothing is written if nothing changes.
    pub(super) async fn change_versioned<I: Versioned + Default + DeserializeOwned, T>(
        &self,
        doing: &'static str,
        key: &Key,
        change: impl Fn(&mut I) -> T,
    ) -> Result<(I, T), Fault> {
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let before: I = self.get(key, Reading::Consistent).await?.unwrap_or_default();
            if let Some(changed) = self.try_change(doing, key, (before, false), &change).await? {
                return Ok(changed);
            }
        }
    }

    /// Changes an item, and returns it with the result of `change`. Returns `None` if another change came first. An
    /// unchanged item is written only if it `is_new`.
    pub(super) async fn try_change<I: Versioned, T>(
        &self,
        doing: &'static str,
        key: &Key,
        (before, is_new): (I, bool),
        change: impl Fn(&mut I) -> T,
    ) -> Result<Option<(I, T)>, Fault> {
        let mut after = before.clone();
        let result = change(&mut after);
        let is_same = !is_new && after == before;
        let is_stored = is_same || self.put(doing, next_version(key, before, &mut after)?).await?;
        Ok(is_stored.then_some((after, result)))
    }
}

/// The write that replaces `before` with `after`, on condition that the stored item is unchanged.
pub(super) fn next_version<I: Versioned>(key: &Key, mut before: I, after: &mut I) -> Result<Write, Fault> {
    let version = *before.version();
    *after.version() = version + 1;
    Ok(Write::put(write(key, after)?).still(VERSION, (version > 0).then(|| number(version))))
}
