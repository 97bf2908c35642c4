//! The checks before a handler may act, in the one order of decisions section 3: rate limit, read-only, what is there at
//! all, who is asking, bans. What comes after (the comment, the policy, the fields) the handlers check in that order.

use std::pin::pin;

use crate::app::App;
use crate::domain::ids::{Visitor, keyed_hash};
use crate::domain::rate_limit::RateLimitStatus;
use crate::domain::user::Identity;
use crate::domain::user::User;
use crate::domain::viewer::Viewer;
use crate::error::{Refusal, Result};
use crate::http::request::{Call, Credential};
use crate::routes;
use crate::store::limits::Counter;
use crate::store::meter::Cost;
use http::header;

pub use crate::domain::rate_limit::RateClass;

/// Read units that one read may take; it counts for as many as it takes.
const UNITS_A_READ: f64 = 10.0;

/// Whom a route lets in (spec, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequirement {
    /// `none`: a bad token is nobody's.
    None,
    /// `optional`, and for guests only when the switch is on.
    GuestsIf(bool),
    /// `required`, `owner`, `moderator`.
    User,
}

impl App {
    /// Who is asking, once everything up to the ban is checked. `exists` says whether the route, type or feature exists.
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

    /// The same with what else must be read to answer. `reads` begins beside the limiter, in one trip to the table, when
    /// the caller is known to be within the limit, and after it otherwise; what is refused without the table reads nothing.
    /// Whatever `reads` refuses comes after all that is checked here.
    pub fn admit_with<'a, T: 'a>(
        &'a self,
        call: &'a Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
        reads: impl Future<Output = Result<T>> + 'a,
    ) -> impl Future<Output = Result<(Viewer, T)>> + 'a {
        // A page's reads are too large to be moved about on the stack.
        self.admit_boxed(call, class, exists, auth, Box::pin(reads))
    }

    async fn admit_boxed<T>(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
        reads: impl Future<Output = Result<T>>,
    ) -> Result<(Viewer, T)> {
        let caller = self.caller(call);
        if let Err(refusal) = self.check(call, class, exists, auth) {
            self.count(call, class, &caller, true).await?;
            return Err(refusal.into());
        }
        let mut work = pin!(async { tokio::join!(self.user(call), reads) });
        let has_room = |class: &RateClass| self.store.has_room(self.counter(*class, &caller));
        let (user, read) = if class.limiters().iter().all(has_room) {
            let (counted, work) = tokio::join!(self.count(call, class, &caller, false), work);
            counted?;
            work
        } else {
            self.count(call, class, &caller, false).await?;
            work.as_mut().await
        };
        let viewer = self.viewer(call, user?);
        if class != RateClass::Read && viewer.banned {
            return Err(Refusal::CommentBanned.into());
        }
        Ok((viewer, read?))
    }

    /// What is known without the table: read-only mode, what is there at all, and whether the credential will do. A guest
    /// is whoever has the browser, so that other sites' pages must not write by it, whatever they can send without a preflight.
    fn check(
        &self,
        call: &Call,
        class: RateClass,
        exists: Result<(), Refusal>,
        auth: AuthRequirement,
    ) -> Result<(), Refusal> {
        if class != RateClass::Read && self.config.read_only {
            return Err(Refusal::ReadOnly);
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
            (AuthRequirement::GuestsIf(_) | AuthRequirement::User, _) => Err(Refusal::Unauthenticated),
        }
    }

    /// For an address, or a method of it, that no route has.
    pub async fn unrouted(&self, call: &Call) -> Result<crate::http::response::Answer> {
        let methods = routes::methods(&call.path());
        // The right method, and still here: the address is spelled in a way that the gateway takes for another.
        let misspelled = methods.contains(&call.method);
        let nothing = methods.is_empty() || misspelled;
        let refusal = if nothing { Refusal::NotFound } else { Refusal::MethodNotAllowed(methods) };
        let class = if call.method.is_safe() { RateClass::Read } else { RateClass::Write };
        self.admit(call, class, Err(refusal), AuthRequirement::None).await?;
        Err(Refusal::NotFound.into())
    }

    /// Refuses what is over the limit. `refused` is what will be refused anyway.
    async fn count(&self, call: &Call, class: RateClass, caller: &str, refused: bool) -> Result<()> {
        let known = |class: &RateClass| self.store.known_refusal(self.counter(*class, caller));
        if let Some(status) = class.limiters().iter().find_map(known) {
            return told(call, status);
        }
        let write = |class| self.store.count_write(self.counter(class, caller), refused);
        let status = match class {
            RateClass::Read => match self.store.count_read(self.counter(class, caller)).await {
                Ok(status) => status,
                Err(fault) => {
                    tracing::warn!(error = fault.chain(), "a read was let through uncounted");
                    return Ok(());
                }
            },
            RateClass::Write => write(class).await.map_err(|fault| uncounted(&fault))?,
            RateClass::Upload => {
                let counted = tokio::try_join!(write(RateClass::Write), write(RateClass::Upload));
                let (written, uploaded) = counted.map_err(|fault| uncounted(&fault))?;
                // What runs out first is what the caller should know.
                if written.allowed && (!uploaded.allowed || uploaded.remaining <= written.remaining) {
                    uploaded
                } else {
                    written
                }
            }
        };
        told(call, status)
    }

    /// Counts a read that was answered for what it cost.
    pub(crate) fn charge(&self, call: &Call, cost: &Cost) {
        let read = call.rate_limit.get().is_some_and(|status| status.class == RateClass::Read && status.allowed);
        if read && cost.read_units > UNITS_A_READ {
            let reads = (cost.read_units / UNITS_A_READ).ceil();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "more than one, and saturating"
            )]
            let surplus = reads as u32 - 1;
            self.store.count_surplus(self.counter(RateClass::Read, &self.caller(call)), surplus);
        }
    }

    fn counter<'a>(&self, class: RateClass, caller: &'a str) -> Counter<'a> {
        let limits = &self.config.limits;
        let limit = match class {
            RateClass::Read => limits.read,
            RateClass::Write => limits.write,
            RateClass::Upload => limits.upload,
        };
        Counter { class, caller, limit, now: self.clock.now() }
    }

    /// By user id or IP, for the limiter.
    fn caller(&self, call: &Call) -> String {
        match &call.credential {
            Credential::User(identity) => format!("u{}", identity.id),
            _ => format!("i{}", keyed_hash(&self.config.visitor_salt, &["caller", &call.network.to_string()])),
        }
    }

    async fn user(&self, call: &Call) -> Result<Option<User>> {
        match &call.credential {
            Credential::User(identity) => {
                let user = self.store.sync_user(identity, self.clock.now()).await?;
                user.map(Some).ok_or_else(|| Refusal::Unauthenticated.into())
            }
            Credential::None | Credential::Bad | Credential::Unverified => Ok(None),
        }
    }

    /// Whom the request is from: a user by the token, or a guest by address and user agent.
    #[must_use]
    pub fn visitor(&self, call: &Call) -> Visitor {
        match &call.credential {
            Credential::User(identity) => identity.id.into(),
            _ => {
                let agent = call.header(header::USER_AGENT).unwrap_or_default();
                let hash = keyed_hash(&self.config.visitor_salt, &["guest", &call.network.to_string(), agent]);
                Visitor(format!("g{hash}"))
            }
        }
    }

    fn viewer(&self, call: &Call, user: Option<User>) -> Viewer {
        let moderator = match &call.credential {
            Credential::User(Identity { id, claims, .. }) => {
                claims.moderator || self.config.auth.names_moderator(*id, &claims.sub)
            }
            _ => false,
        };
        let ban = user.as_ref().and_then(|user| user.ban.as_ref());
        Viewer {
            visitor: self.visitor(call),
            moderator,
            banned: ban.is_some_and(|ban| ban.holds(self.clock.now())),
            user,
        }
    }
}

/// Keeps for the answer's headers where the caller stands. Set once a request: it is counted once.
fn told(call: &Call, status: RateLimitStatus) -> Result<()> {
    call.rate_limit.get_or_init(|| status);
    if status.allowed { Ok(()) } else { Err(Refusal::RateLimited(status.resets_in).into()) }
}

/// A write that cannot be counted is refused: the limiter is exact or the table is not there to write to.
fn uncounted(fault: &crate::error::Fault) -> crate::error::Error {
    tracing::error!(error = fault.chain(), "a write could not be counted");
    Refusal::Unavailable.into()
}
