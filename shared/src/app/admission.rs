//! The checks that a request must pass before its handler acts. The first failed check determines the response:
//!
//! 1. 429 `rate_limited`; 503 `unavailable` for a write that cannot be counted
//! 2. 423 `read_only`: writes in read-only mode, except those that delete data about the caller
//! 3. 404 `not_found`, 405 `method_not_allowed`: the route, type or feature doesn't exist; 403 `forbidden`: a request
//!    to `sign_in` or `me/name` from another site's page
//! 4. 401 `unauthenticated`; 503 `unavailable`: a token that cannot be verified at the moment; 403 `forbidden`: a guest's write
//!    from another site's page
//! 5. 403 `comment_banned`: the writes of check 2 by banned users and by guests on banned networks; moderation requests by
//!    banned moderators
//! 6. 404 `not_found`: the comment does not exist, or the viewer may not see it
//! 7. 403 `forbidden`: the viewer is not the owner, or not a moderator; 403 `edit_closed`: the guest's time to edit is over;
//!    422 instead of these if a malformed `Comment-Key` doesn't identify the guest; 403 `thread_closed`
//! 8. 413 and 422: invalid fields and references, the idempotency key, spam
//! 9. 409 `already_reported`, 409 `comment_changed`, 429 `rate_limited`: limits that the write itself checks
//!
//! [`App::admit`] performs checks 1 to 5, and handlers perform the rest in this order. [`policy`] defines the rules.

use crate::app::App;
use crate::auth::token::BadToken;
use crate::domain::comment::Comment;
use crate::domain::ids::{Visitor, keyed_hash};
use crate::domain::rate_limit::{Limiter, RateLimitStatus};
use crate::domain::user::User;
use crate::domain::viewer::{Moderator, Owners, Viewer};
use crate::error::{Error, Fault, Refusal, Result};
use crate::http::request::{Call, Credential, RefusedBecause};
use crate::http::response::Answer;
use crate::policy;
use crate::routes;
use crate::store::Reading;
use crate::store::limits::Counter;
use crate::store::meter::Cost;
use http::header;

pub use crate::domain::rate_limit::RateClass;

/// The callers that a route admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequirement {
    /// Everyone. A token that can't be verified is ignored.
    None,
    /// Users, and guests if the condition is true: for example, a setting is on, or the guest sent a key.
    GuestsIf(bool),
    User,
    /// Users. [`App::admit_moderator`] then refuses users who aren't moderators.
    Moderator(RoleIsChecked),
}

/// Only this module, which checks the role and returns a [`Moderator`], can create an [`AuthRequirement::Moderator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleIsChecked(());

const MODERATOR: AuthRequirement = AuthRequirement::Moderator(RoleIsChecked(()));

/// Converts the result of parsing a path into the argument `exists` of [`App::admit`].
pub fn exists<T>(named: &Result<T, Refusal>) -> Result<(), Refusal> {
    named.as_ref().map(drop).map_err(Clone::clone)
}

impl App {
    /// Performs checks 1 to 5 and returns the caller. `exists` is an error if the route, type or feature doesn't exist.
    pub async fn admit(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
    ) -> Result<Viewer> {
        let (viewer, ()) = self.admit_with(call, class, exists, auth, std::future::ready(Ok(()))).await?;
        Ok(viewer)
    }

    /// Like [`Self::admit`], and also runs the handler's `reads`. If the request is a write, and within the limit as
    /// far as this instance knows, `reads` run concurrently with the limiter, to save a round trip to the table.
    /// Otherwise, they run after it. A request that is refused without reading the table skips them. Refusals by
    /// `reads` apply only if every check passes.
    pub fn admit_with<'a, T: 'a>(
        &'a self,
        call: &'a Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
        reads: impl Future<Output = Result<T>> + 'a,
    ) -> impl Future<Output = Result<(Viewer, T)>> + 'a {
        // Boxed, because the future that reads a page is too large for the stack.
        let reads = Box::pin(reads);
        let work = Box::pin(async move { tokio::join!(self.user(call), self.network_is_banned(call, class), reads) });
        self.admit_viewer(call, class, exists, auth, work)
    }

    /// Like [`Self::admit_with`], but `reads` also return the caller's item, which they read in the same batch.
    pub fn admit_with_user<'a, T: 'a>(
        &'a self,
        call: &'a Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
        reads: impl Future<Output = Result<(Option<User>, T)>> + 'a,
    ) -> impl Future<Output = Result<(Viewer, T)>> + 'a {
        let reads = Box::pin(reads);
        let work = Box::pin(async move {
            match tokio::join!(reads, self.network_is_banned(call, class)) {
                (Ok((known, read)), is_banned) => (self.sync_user(call, known).await, is_banned, Ok(read)),
                (Err(error), is_banned) => (self.user(call).await, is_banned, Err(error)),
            }
        });
        self.admit_viewer(call, class, exists, auth, work)
    }

    /// Returns the admitted viewer and the result of the handler's reads. `work` performs these reads, and looks up the user
    /// and the network's ban.
    async fn admit_viewer<T>(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
        work: impl Future<Output = (Result<Option<User>>, Result<bool>, Result<T>)> + Unpin,
    ) -> Result<(Viewer, T)> {
        let (user, network_is_banned, read) = self.admit_work(call, class, exists, auth, work).await?;
        let is_own = matches!(&call.credential, Credential::User(identity) if identity.claims.account.is_some());
        if is_own && let (AuthRequirement::None, Err(Error::Refused(Refusal::Unauthenticated))) = (auth, &user) {
            call.session_ended.get_or_init(|| ());
        }
        let viewer = self.viewer(call, user?, network_is_banned?);
        // A user without the moderator role is refused later.
        if class.is_restricted() || (auth == MODERATOR && viewer.has_role) {
            policy::not_banned(&viewer)?;
        }
        if let (true, Some(user)) = (viewer.has_role, &viewer.user) {
            self.note_moderator(user);
            // Some functions without moderation routes have no permission to write the name.
            if auth == MODERATOR {
                self.keep_moderator_name(user).await?;
            }
        }
        Ok((viewer, read?))
    }

    pub async fn admit_moderator(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
    ) -> Result<Moderator> {
        let viewer = self.admit(call, class, exists, MODERATOR).await?;
        Ok(policy::moderate(viewer)?)
    }

    /// Admits a moderator, and returns the comment whose id is in the path. Returns 404 if the viewer can't see the comment.
    pub async fn admit_moderator_of(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        id: &str,
    ) -> Result<(Moderator, Comment)> {
        let find = self.comment_from_path(id);
        let (viewer, found) = self.admit_with(call, class, exists, MODERATOR, find).await?;
        policy::see(&viewer, &found.comment, &found.ancestors)?;
        Ok((policy::moderate(viewer)?, found.comment))
    }

    /// Like [`Self::admit_with`], for a response that doesn't depend on the viewer. The request is counted, but the
    /// caller isn't looked up.
    pub async fn admit_everyone<T>(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        reads: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.admit_work(call, class, exists, AuthRequirement::None, Box::pin(reads)).await?
    }

    /// Performs the checks that don't read the table, counts the request, and runs `work`.
    async fn admit_work<T>(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
        work: impl Future<Output = T> + Unpin,
    ) -> Result<T> {
        let caller = self.caller(call);
        if let Err(refusal) = self.check(call, class, exists, auth) {
            self.count(call, class, &caller, true).await?;
            return Err(refusal.into());
        }
        // Only writes gain from concurrency: a read within the limit is usually counted without accessing the table.
        let has_room = |limiter| self.store.has_room(self.counter(class, limiter, &caller));
        if !class.is_read() && has_room(class.limiter()) && class.second_limiter().is_none_or(has_room) {
            let (counted, done) = tokio::join!(self.count(call, class, &caller, false), work);
            counted?;
            Ok(done)
        } else {
            self.count(call, class, &caller, false).await?;
            Ok(work.await)
        }
    }

    /// Checks 2 to 4, which don't read the table. Guests are identified by network and browser, so without check 4,
    /// another site's page could post as a visitor with requests that need no preflight.
    fn check(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
    ) -> Result<(), Refusal> {
        if class.is_restricted() {
            policy::writable(&self.config)?;
        }
        exists?;
        match (auth, &call.credential) {
            (AuthRequirement::GuestsIf(true), Credential::None)
                if call.is_from_elsewhere(&self.config.cors_origins) =>
            {
                Err(Refusal::Forbidden)
            }
            (AuthRequirement::None, _)
            | (_, Credential::User(_))
            | (AuthRequirement::GuestsIf(true), Credential::None) => Ok(()),
            (_, Credential::Unverified) => Err(Refusal::Unavailable),
            (AuthRequirement::GuestsIf(_) | AuthRequirement::User | AuthRequirement::Moderator(_), _) => {
                Err(Refusal::Unauthenticated)
            }
        }
    }

    /// Refuses a path or method that no route matches.
    pub async fn unrouted(&self, call: &Call) -> Result<Answer> {
        let methods = routes::methods(&call.path());
        // If the route exists after all, API Gateway misrouted an unusual spelling of its path.
        let misspelled = methods.contains(&call.method);
        let nothing = methods.is_empty() || misspelled;
        let refusal = if nothing { Refusal::NotFound } else { Refusal::MethodNotAllowed(methods) };
        let class = if call.method.is_safe() { RateClass::Read } else { RateClass::Write };
        self.admit(call, class, Err(refusal), AuthRequirement::None).await?;
        Err(Refusal::NotFound.into())
    }

    /// Counts a request, and refuses it if the caller is over the limit. `refused` is whether another check refuses the
    /// request.
    async fn count(&self, call: &Call, class: RateClass, caller: &str, refused: bool) -> Result<()> {
        let known = |limiter| self.store.known_refusal(self.counter(class, limiter, caller));
        if let Some(status) = known(class.limiter()).or_else(|| class.second_limiter().and_then(known)) {
            return enforce(call, status);
        }
        let counter = self.counter(class, class.limiter(), caller);
        if class.is_read() {
            // A refused request reads nothing.
            let reads = if refused { 1 } else { class.reserves() };
            return match self.store.count_read(counter, reads).await {
                Ok(status) => enforce(call, status),
                Err(fault) => {
                    tracing::warn!(error = fault.chain(), "read not counted, but allowed");
                    Ok(())
                }
            };
        }
        let second = async {
            match class.second_limiter() {
                Some(limiter) => self.store.count_write(self.counter(class, limiter, caller), refused).await.map(Some),
                None => Ok(None),
            }
        };
        let counted = tokio::try_join!(self.store.count_write(counter, refused), second);
        let (first, second) = counted.map_err(|fault| uncounted(&fault))?;
        // The response names the limit that is reached first.
        let is_reached_first =
            |second: &RateLimitStatus| first.allowed && (!second.allowed || second.remaining <= first.remaining);
        enforce(call, second.filter(is_reached_first).unwrap_or(first))
    }

    /// Reserves the maximum cost of an admitted read, in read units, as soon as the maximum is known. If it exceeds the limit,
    /// the read is refused and counted at its cost so far.
    pub async fn reserve(&self, call: &Call, units: f64) -> Result<()> {
        let Some(status) = call.rate_limit.get().filter(|status| status.allowed) else { return Ok(()) };
        let class = status.class;
        let more = class.worth(units).saturating_sub(status.counted);
        if more == 0 {
            return Ok(());
        }
        let caller = self.caller(call);
        let counter = Counter { now: status.at, ..self.counter(class, class.limiter(), &caller) };
        match self.store.count_read(counter, more).await {
            Ok(status) => checked(*call.reserved.get_or_init(|| status)),
            Err(fault) => {
                tracing::warn!(error = fault.chain(), "read not counted, but allowed");
                Ok(())
            }
        }
    }

    /// Corrects the count of an admitted request to its actual cost.
    pub(crate) async fn settle(&self, call: &mut Call, cost: &Cost) {
        let Some(status) = call.rate_limit.get().copied().filter(|status| status.allowed) else { return };
        let class = status.class;
        let is_read = class.is_read();
        let worth = class.worth(if is_read { cost.read_units } else { cost.write_units });
        let more = call.reserved.get();
        let counted = status.counted + more.filter(|more| more.allowed).map_or(0, |more| more.counted);
        if worth == counted {
            return;
        }
        let caller = self.caller(call);
        let counter = Counter { now: status.at, ..self.counter(class, class.limiter(), &caller) };
        let settled = if is_read {
            Some(Box::pin(self.store.settle_read(counter, counted, worth)).await)
        } else {
            Box::pin(self.store.count_surplus(counter, worth - 1)).await
        };
        // If a read reserved nothing, the rate-limit headers show its surplus only in the next response.
        let shows = !is_read || counted > 1;
        let last = if call.reserved.get().is_some() { call.reserved.get_mut() } else { call.rate_limit.get_mut() };
        if let (Some(settled), Some(status)) = (settled.filter(|_| shows), last.filter(|status| status.allowed))
            && status.limiter == settled.limiter
        {
            status.remaining = settled.remaining;
        }
    }

    fn counter<'a>(&self, class: RateClass, limiter: Limiter, caller: &'a str) -> Counter<'a> {
        let limits = &self.config.limits;
        let limit = match limiter {
            Limiter::Read | Limiter::Changes => limits.read,
            Limiter::Write => limits.write,
            Limiter::Upload => limits.upload,
        };
        Counter { class, limiter, caller, limit, now: self.clock.now() }
    }

    /// Key of the limiter: the user id, or a keyed hash of the network.
    fn caller(&self, call: &Call) -> String {
        match &call.credential {
            Credential::User(identity) => format!("u{}", identity.id),
            _ => format!("i{}", keyed_hash(&self.config.visitor_salt, &["caller", &call.network.to_string()])),
        }
    }

    /// The calling user; `None` for a guest.
    async fn user(&self, call: &Call) -> Result<Option<User>> {
        let known = match &call.credential {
            Credential::User(identity) => self.store.user(identity.id, Reading::Eventual).await?,
            Credential::None | Credential::Bad | Credential::Unverified => None,
        };
        self.sync_user(call, known).await
    }

    /// The calling user, updated from the token; `None` for a guest. `known` is the user as stored in the table.
    async fn sync_user(&self, call: &Call, known: Option<User>) -> Result<Option<User>> {
        match &call.credential {
            Credential::User(identity) => {
                let user = self.store.sync_user(identity, known, self.clock.now()).await?;
                if user.is_none() {
                    call.refused_because.get_or_init(|| RefusedBecause::Token(BadToken::Revoked));
                }
                user.map(Some).ok_or_else(|| Refusal::Unauthenticated.into())
            }
            Credential::None | Credential::Bad | Credential::Unverified => Ok(None),
        }
    }

    /// The ids under which the caller owns comments and reactions. A malformed `Comment-Key` is ignored.
    #[must_use]
    pub fn owners(&self, call: &Call) -> Owners {
        if let Credential::User(identity) = &call.credential {
            return identity.id.into();
        }
        let hash = |parts: &[&str]| keyed_hash(&self.config.visitor_salt, parts);
        let agent = call.header(header::USER_AGENT).unwrap_or_default();
        let reactions = Visitor(format!("g{}", hash(&["guest", &call.network.to_string(), agent])));
        match call.comment_key() {
            Ok(Some(key)) => Owners { comments: Visitor(format!("k{}", hash(&["comment key", key]))), reactions },
            Ok(None) | Err(_) => reactions.into(),
        }
    }

    /// A keyed hash of the caller's network, which can't be reversed to an IP address.
    #[must_use]
    pub fn network(&self, call: &Call) -> String {
        keyed_hash(&self.config.visitor_salt, &["network", &call.network.to_string()])
    }

    /// Whether this is a guest's restricted write from a banned network. Always false for reads, because caches share
    /// their responses.
    async fn network_is_banned(&self, call: &Call, class: RateClass) -> Result<bool> {
        if !class.is_restricted() || !matches!(call.credential, Credential::None) {
            return Ok(false);
        }
        let ban = self.store.network_ban(&self.network(call), Reading::Eventual, self.clock.now()).await?;
        Ok(ban.is_some())
    }

    fn viewer(&self, call: &Call, user: Option<User>, network_is_banned: bool) -> Viewer {
        let has_role = match &call.credential {
            Credential::User(identity) => identity.claims.moderator || self.config.names_moderator(identity),
            _ => false,
        };
        Viewer {
            owners: self.owners(call),
            has_role,
            banned: network_is_banned || user.as_ref().is_some_and(|user| user.present_ban(self.clock.now()).is_some()),
            user,
        }
    }
}

/// Stores the status for the response headers, unless one is stored already, and refuses a request that is over the limit.
fn enforce(call: &Call, status: RateLimitStatus) -> Result<()> {
    call.rate_limit.get_or_init(|| status);
    checked(status)
}

fn checked(status: RateLimitStatus) -> Result<()> {
    if status.allowed { Ok(()) } else { Err(Refusal::RateLimited { after: status.resets_in, limit: None }.into()) }
}

/// A write that can't be counted is refused, because a table that can't store the counter can't store the write either.
fn uncounted(fault: &Fault) -> Error {
    tracing::error!(error = fault.chain(), "write not counted, and refused");
    Refusal::Unavailable.into()
}
