//! While sign-in is on, reserves names that resemble the site's or a moderator's. Users named in the settings count as
//! moderators as soon as they are in the table, others once they act as moderators. An instance caches moderators' names for a
//! minute.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{try_join, try_join_all};

use crate::app::App;
use crate::domain::ids::UserId;
use crate::domain::name::{Look, ModeratorNames};
use crate::domain::time::Timestamp;
use crate::domain::user::User;
use crate::error::{Fault, FieldErrors, Result};
use crate::http::input::wording;
use crate::http::request::Call;
use crate::store::Reading;

/// Cache lifetime of the names.
const KNOWN: Duration = Duration::from_mins(1);

/// The moderators' names, and when they were read.
#[derive(Default)]
pub struct KnownNames(Mutex<Option<(Timestamp, ModeratorNames)>>);

impl App {
    /// Refuses a name that resembles the site's name, or the name of a moderator other than `own`.
    pub async fn refuse_lookalike(
        &self,
        call: &Call,
        field: &'static str,
        name: &str,
        own: Option<UserId>,
    ) -> Result<()> {
        if self.config.sign_in.is_none() {
            return Ok(());
        }
        let look = Look::of(name);
        let is_site = self.config.site_name.as_deref().is_some_and(|site| Look::of(site).is_like(&look));
        if is_site || self.moderator_names().await?.has_like(&look, own) {
            let (errors, label) = wording(Some(call.language()), field);
            return Err(FieldErrors::one(field, errors.lookalike(&label)).into());
        }
        Ok(())
    }

    /// Reserves the name of a moderator.
    pub async fn keep_moderator_name(&self, moderator: &User) -> Result<(), Fault> {
        let User { id, name, .. } = moderator;
        if self.config.sign_in.is_some() && !name.is_empty() && !self.moderator_names().await?.has(*id, name) {
            self.store.keep_moderator_name(*id, name).await?;
            self.names.forget();
        }
        Ok(())
    }

    /// Clears the cache if a moderator from the settings has a name other than the cached one.
    pub(super) fn note_moderator(&self, moderator: &User) {
        let mut known = self.names.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = |names: &ModeratorNames| !moderator.name.is_empty() && !names.has(moderator.id, &moderator.name);
        if known.as_ref().is_some_and(|(_, names)| is_other(names))
            && self.config.named_moderators(&[]).any(|id| id == moderator.id)
        {
            *known = None;
        }
    }

    async fn moderator_names(&self) -> Result<ModeratorNames, Fault> {
        let known = self.names.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = self.clock.now();
        // If the clock was set back, the age is unknown.
        if let Some((_, names)) = known.filter(|(at, _)| *at <= now && now.since(*at) < KNOWN) {
            return Ok(names);
        }
        let names = self.present_moderator_names().await?;
        *self.names.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, names.clone()));
        Ok(names)
    }

    /// The names of moderators named in the settings, and of those who have acted as moderators.
    pub async fn present_moderator_names(&self) -> Result<ModeratorNames, Fault> {
        // Reads each user separately, because not every function has permission to read in batches.
        let named = self.config.named_moderators(&[]).map(|id| self.store.user(id, Reading::Eventual));
        let (mut names, named) = try_join(self.store.moderator_names(), try_join_all(named)).await?;
        for user in named.into_iter().flatten().filter(|user| !user.name.is_empty()) {
            names.keep(user.id, &user.name);
        }
        Ok(names)
    }
}

impl KnownNames {
    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
