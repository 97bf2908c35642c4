//! The checks before a handler may act, in the one order of decisions section 3: rate limit, read-only, what is there at
//! all, who is asking, bans. What comes after (the comment, the policy, the fields) the handlers check in that order.

use crate::app::App;
use crate::error::{Refusal, Result};
use crate::http::{Call, Credential};
use crate::ids::{Visitor, keyed_hash};
use crate::route;
use crate::store::users::User;
use crate::token::Identity;
use crate::viewer::Viewer;
use http::header;

/// Which limiter counts a request. Everything but reads is a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Upload,
}

/// Whom a route lets in (spec, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `none`: a bad token is nobody's.
    Open,
    /// `optional`, and for guests only when the switch is on.
    Guests(bool),
    /// `required`, `owner`, `moderator`.
    Users,
}

impl App {
    /// Who is asking, once everything up to the ban is checked. `there` says whether the route, type or feature exists.
    pub async fn admit(&self, call: &Call, kind: Kind, there: Result<(), Refusal>, door: Door) -> Result<Viewer> {
        let (counted, user) = tokio::join!(self.count(call, kind), self.user(call));
        counted?;
        if kind != Kind::Read && self.config.read_only {
            return Err(Refusal::ReadOnly.into());
        }
        there?;
        let user = user?;
        match (door, &call.credential) {
            (Door::Open, _) | (_, Credential::User(_)) | (Door::Guests(true), Credential::None) => {}
            (_, Credential::Unverified) => return Err(Refusal::Unavailable.into()),
            (Door::Guests(_) | Door::Users, _) => return Err(Refusal::Unauthenticated.into()),
        }
        let viewer = self.viewer(call, user);
        if kind != Kind::Read && viewer.banned {
            return Err(Refusal::CommentBanned.into());
        }
        Ok(viewer)
    }

    /// For an address, or a method of it, that no route has.
    pub async fn unrouted(&self, call: &Call) -> Result<crate::http::Answer> {
        let methods = route::methods(&call.path());
        // The right method, and still here: the address is spelled in a way that the gateway takes for another.
        let misspelled = methods.contains(&call.method);
        let nothing = methods.is_empty() || misspelled;
        let refusal = if nothing { Refusal::NotFound } else { Refusal::MethodNotAllowed(methods) };
        let kind = if call.method.is_safe() { Kind::Read } else { Kind::Write };
        self.admit(call, kind, Err(refusal), Door::Open).await?;
        Err(Refusal::NotFound.into())
    }

    async fn count(&self, call: &Call, kind: Kind) -> Result<()> {
        let (limits, now) = (&self.config.limits, self.clock.now());
        let caller = self.caller(call);
        let standing = match kind {
            Kind::Read => match self.store.count_read(&caller, limits.read, now).await {
                Ok(standing) => standing,
                Err(fault) => {
                    tracing::warn!(error = fault.chain(), "a read was let through uncounted");
                    return Ok(());
                }
            },
            Kind::Write => {
                self.store.count_write("w", &caller, limits.write, now).await.map_err(|fault| uncounted(&fault))?
            }
            Kind::Upload => {
                let written = self.store.count_write("w", &caller, limits.write, now);
                let uploaded = self.store.count_write("u", &caller, limits.upload, now);
                let (written, uploaded) = tokio::try_join!(written, uploaded).map_err(|fault| uncounted(&fault))?;
                // What runs out first is what the caller should know.
                if written.allowed && (!uploaded.allowed || uploaded.remaining <= written.remaining) {
                    uploaded
                } else {
                    written
                }
            }
        };
        // Set once a request: it is counted once.
        call.standing.get_or_init(|| standing);
        if standing.allowed { Ok(()) } else { Err(Refusal::RateLimited(standing.resets_in).into()) }
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
                let user = self.store.meet(identity, self.clock.now()).await?;
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

/// A write that cannot be counted is refused: the limiter is exact or the table is not there to write to.
fn uncounted(fault: &crate::error::Fault) -> crate::error::Error {
    tracing::error!(error = fault.chain(), "a write could not be counted");
    Refusal::Unavailable.into()
}
