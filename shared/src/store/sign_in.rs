//! Sign-in: inboxes of codes, flows to providers, accounts and their sessions, and the public keys of access tokens.

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::BoxFuture;

use super::bounds::Bound;
use super::keys;
use super::schema::{limiter, user};
use super::transaction::{Label, Outcome, Write};
use super::users::versions;
use super::versioned::next_version;
use super::{Reading, Store, number, read, stored_number, text};
use crate::auth::own::KeySource;
use crate::domain::avatar::Avatar;
use crate::domain::ids::UserId;
use crate::domain::name::ModeratorNames;
use crate::domain::sign_in::Account;
use crate::domain::sign_in::bounds::STOPPED;
use crate::domain::sign_in::inbox::{Asker, Flow, Inbox};
use crate::domain::sign_in::keys::{FlowId, PublicKeys, RefreshToken};
use crate::domain::sign_in::redirect::RedirectFlow;
use crate::domain::sign_in::session::Sessions;
use crate::domain::time::{CLOCK_TOLERANCE, Timestamp};
use crate::domain::user::{OwnAccount, User};
use crate::error::Fault;

/// Counts, per hour, addresses whose code was refused, bounced or caused a complaint.
pub const FAILED_CODES: Bound<'_> = Bound::counter("failed codes", Bound::ALL);

/// A flow to start, with the data that was read for it.
pub struct FlowStart<'a> {
    pub inbox: (&'a str, Inbox),
    pub flow: &'a Flow,
    pub asker: &'a Asker,
    /// The bounds per domain and overall.
    pub bounds: [Bound<'a>; 2],
    pub now: Timestamp,
}

/// A correct code, which is spent when its session begins.
pub struct RightCode<'a> {
    pub id: &'a FlowId,
    pub flow: &'a Flow,
    /// The inbox after the try was counted.
    pub inbox: Inbox,
}

/// A person who has proven that they own an account.
pub struct Proven<'a> {
    /// `None` for a provider account, because its flow has already ended.
    pub code: Option<RightCode<'a>>,
    /// A proven address, sealed.
    pub address: Option<String>,
    /// The account. The epoch is used only if the account is new.
    pub account: Account,
    /// The picture that the account gets if it is new.
    pub avatar: Avatar,
    /// Keyed hash of the network that the proof came from.
    pub network: &'a str,
    /// Distinguishes the session from the account's other sessions.
    pub session: u64,
    pub now: Timestamp,
}

/// The result of renaming an account.
pub enum Renamed {
    Done(Box<User>),
    /// The last change is too recent. The name may be changed from this time on.
    NotBefore(Timestamp),
    /// The token is no longer valid.
    SignedOut,
}

impl Store {
    pub async fn inbox(&self, inbox: &str) -> Result<Inbox, Fault> {
        Ok(self.get(&keys::inbox(inbox), Reading::Consistent).await?.unwrap_or_default())
    }

    /// The sessions of an account; `None` if the account doesn't exist.
    pub async fn sessions(&self, account: UserId) -> Result<Option<Sessions>, Fault> {
        self.get(&keys::sessions(account), Reading::Consistent).await
    }

    /// Whether codes to this address are stopped. `address` is [`FlowKeys::address`].
    ///
    /// [`FlowKeys::address`]: crate::domain::sign_in::keys::FlowKeys::address
    pub async fn are_codes_stopped(&self, address: &str, now: Timestamp) -> Result<bool, Fault> {
        let item = self.one_item(&stopped_codes(address), Reading::Eventual).await?;
        let until = item.map(|item| Timestamp::from_seconds(stored_number(&item, limiter::EXPIRES)));
        Ok(until.is_some_and(|until| now < until.or_now(STOPPED, now)))
    }

    /// Stops codes to an address. Returns false if they are stopped already.
    pub async fn stop_codes(&self, address: &str, now: Timestamp) -> Result<bool, Fault> {
        let stop = Write::update(stopped_codes(address))
            .set(limiter::EXPIRES, number((now + STOPPED).seconds()))
            .when(format!("attribute_not_exists({0}) OR {0} <= :now OR {0} > :latest", limiter::EXPIRES))
            .with(":now", number(now.seconds()))
            .with(":latest", number((now + STOPPED + CLOCK_TOLERANCE).seconds()));
        Ok(self.update("stopping codes", stop).await?.is_some())
    }

    /// Adds a flow to its inbox and counts its code, if all bounds have room; otherwise counts nothing. Returns whether the flow
    /// was added.
    pub async fn start_flow(&self, start: FlowStart<'_>) -> Result<bool, Fault> {
        let (inbox, read) = start.inbox;
        let (key, mut known) = (keys::inbox(inbox), Some(read));
        let mut attempts = self.attempts("starting a sign-in");
        loop {
            attempts.next().await?;
            let before = match known.take() {
                Some(inbox) => inbox,
                None => self.inbox(inbox).await?,
            };
            let mut after = before.clone();
            if !after.start(start.flow.clone(), start.asker, start.now) {
                return Ok(false);
            }
            let add = next_version(&key, before, &mut after)?.label(Label::Inbox);
            let [domain, all] = start.bounds.map(|bound| bound.write(start.now));
            match self.transact(vec![add, domain, all]).await? {
                Outcome::Done => return Ok(true),
                Outcome::Failed(failed) if failed.is_only(Label::Inbox) => {}
                Outcome::Failed(_) => return Ok(false),
            }
        }
    }

    /// Performs as many writes as [`start_flow`](Self::start_flow), so that the response times of refusals don't reveal who has
    /// an account. Counts only toward `network`, so that refused callers don't block others.
    pub async fn refuse_flow(&self, network: &str, now: Timestamp) -> Result<(), Fault> {
        let counters = ["refused codes", "refused codes 2", "refused codes 3"];
        let counters = counters.map(|scope| Bound::counter(scope, network).write(now));
        self.transact(counters.into()).await.map(drop)
    }

    /// Counts a try of a code, before the code is checked, and returns the flow with its inbox. `None` if no try is left.
    pub async fn try_code(&self, id: &FlowId, now: Timestamp) -> Result<Option<(Inbox, Flow)>, Fault> {
        let count = |inbox: &mut Inbox| inbox.try_code(&id.nonce, now);
        let (inbox, flow) = self.change_versioned("trying a code", &keys::inbox(&id.inbox), count).await?;
        Ok(flow.map(|flow| (inbox, flow)))
    }

    /// Starts a flow to a provider. `name` is a keyed hash of the flow.
    pub async fn start_redirect(&self, name: &str, flow: &RedirectFlow) -> Result<(), Fault> {
        let start = |item: &mut RedirectFlow| *item = flow.clone();
        let new = (RedirectFlow::default(), true);
        self.try_change("starting a sign-in", &keys::redirect_flow(name), new, start).await.map(drop)
    }

    /// Changes a flow to a provider, and returns the result of `change`. A missing flow counts as ended.
    pub async fn change_redirect<T>(&self, name: &str, change: impl Fn(&mut RedirectFlow) -> T) -> Result<T, Fault> {
        Ok(self.change_versioned("changing a sign-in", &keys::redirect_flow(name), change).await?.1)
    }

    /// Like [`Self::change_redirect`], for a flow that returned from its provider. The reader spent some time at the provider,
    /// so an eventually consistent read usually finds the stored flow. A refusal is based on a consistent read.
    pub async fn finish_redirect<T>(
        &self,
        name: &str,
        finish: impl Fn(&mut RedirectFlow) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let key = keys::redirect_flow(name);
        let seen: Option<RedirectFlow> = self.one_item(&key, Reading::Eventual).await?.map(read).transpose()?;
        if let Some(seen) = seen.filter(|seen| finish(&mut seen.clone()).is_some())
            && let Some((_, finished)) = self.try_change("finishing a sign-in", &key, (seen, false), &finish).await?
        {
            return Ok(finished);
        }
        self.change_redirect(name, finish).await
    }

    /// Spends the code, if there is one, and begins a session of the account, which may be new. `None` if the code is already
    /// spent, or the id belongs to another user.
    pub async fn begin_session(&self, proven: Proven<'_>) -> Result<Option<(User, Account)>, Fault> {
        let doing = "signing in";
        let (user_key, sessions_key) = (keys::user(proven.account.id), keys::sessions(proven.account.id));
        let mut known = proven.code.as_ref().map(|code| code.inbox.clone());
        let (mut attempts, mut is_first) = (self.attempts(doing), true);
        loop {
            attempts.next().await?;
            let reading = if is_first { Reading::Eventual } else { Reading::Consistent };
            is_first = false;
            let (user, sessions) =
                tokio::try_join!(self.one_item(&user_key, reading), self.one_item(&sessions_key, reading))?;
            let user: Option<User> = user.map(read).transpose()?;
            let sessions: Sessions = sessions.map(read).transpose()?.unwrap_or_default();
            let other = |user: &User| user.subject.as_ref().is_some_and(|subject| *subject != proven.account.subject);
            if user.as_ref().is_some_and(other) {
                return Ok(None);
            }
            let mut spend = None;
            if let Some(code) = &proven.code {
                let inbox = match known.take() {
                    Some(inbox) => inbox,
                    None => self.inbox(&code.id.inbox).await?,
                };
                let mut spent = inbox.clone();
                if !spent.spend(code.flow) {
                    return Ok(None);
                }
                spend = Some(next_version(&keys::inbox(&code.id.inbox), inbox, &mut spent)?);
            }
            let Some((epoch, check)) = self.open_account(&proven, user.as_ref()).await? else { continue };
            let mut begun = sessions.clone();
            begun.begin(epoch, proven.session, proven.network, proven.now);
            let sessions = next_version(&sessions_key, sessions, &mut begun)?;
            if self.transact(spend.into_iter().chain([sessions]).chain(check).collect()).await? == Outcome::Done {
                let user = user.unwrap_or_else(|| new_user(&proven));
                return Ok(Some((user, Account { epoch, ..proven.account })));
            }
        }
    }

    /// The epoch of the account, and for an existing account, a write on condition that the account is unchanged. A new account
    /// is written immediately, outside of the transaction, because it is useless without a session and a transaction costs
    /// twice as much. `None` if another sign-in was first.
    async fn open_account(
        &self,
        proven: &Proven<'_>,
        user: Option<&User>,
    ) -> Result<Option<(u64, Option<Write>)>, Fault> {
        let key = keys::user(proven.account.id);
        let inbox = proven.code.as_ref().map(|code| code.id.inbox.clone());
        if let Some(account) = user.and_then(|user| user.account.as_ref()) {
            let is_new = |address: &&String| inbox.is_none() && account.address.as_ref() != Some(*address);
            let write = match proven.address.as_ref().filter(is_new) {
                // A provider may return a different address than last time.
                Some(address) => {
                    let account = OwnAccount { address: Some(address.clone()), ..account.clone() };
                    Write::update(key).set(user::ACCOUNT, attribute(&account)?)
                }
                None => Write::unchanged(key),
            };
            return Ok(Some((account.epoch, Some(write.still(user::ACCOUNT, Some(attribute(account)?))))));
        }
        let account = OwnAccount { epoch: proven.account.epoch, address: proven.address.clone(), inbox };
        let subject = user.and_then(|user| user.subject.clone());
        let update = Write::update(key)
            .set(user::ID, number(proven.account.id.0))
            .set(user::SUBJECT, text(proven.account.subject.clone()))
            .set(user::ACCOUNT, attribute(&account)?)
            .set_once(user::AVATAR, text(proven.avatar.clone()))
            .still(user::SUBJECT, subject.map(text))
            .still(user::ACCOUNT, None);
        let is_first = self.update("opening an account", update).await?.is_some();
        Ok(is_first.then_some((account.epoch, None)))
    }

    /// Returns the user and the next refresh token. `None` if the session has ended; using a copied token ends it.
    pub async fn refresh_session(
        &self,
        token: &RefreshToken,
        now: Timestamp,
    ) -> Result<Option<(User, RefreshToken)>, Fault> {
        let Some((user, epoch)) = self.account(token.account).await? else { return Ok(None) };
        let refresh = |sessions: &mut Sessions| sessions.refresh(token, epoch, now);
        let (_, next) = self.change_versioned("refreshing a session", &keys::sessions(token.account), refresh).await?;
        Ok(next.map(|next| (user, next)))
    }

    pub async fn end_session(&self, token: &RefreshToken) -> Result<(), Fault> {
        let end = |sessions: &mut Sessions| sessions.end(token);
        self.change_versioned("ending a session", &keys::sessions(token.account), end).await.map(drop)
    }

    /// Ends all sessions of an account and voids its access tokens, if the session of this token is still valid. `epoch` is the
    /// account's next epoch.
    pub async fn end_sessions(&self, token: &RefreshToken, epoch: u64, now: Timestamp) -> Result<(), Fault> {
        let doing = "ending all sessions";
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let Some((user, present)) = self.account(token.account).await? else { return Ok(()) };
            let sessions = self.sessions(token.account).await?.unwrap_or_default();
            let (Some(account), true) = (user.account, sessions.has(token, present, now)) else { return Ok(()) };
            let next = OwnAccount { epoch, ..account.clone() };
            let update = Write::update(keys::user(token.account))
                .set(user::ACCOUNT, attribute(&next)?)
                .still(user::ACCOUNT, Some(attribute(&account)?));
            if self.update(doing, update).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// A user who has an account of our own sign-in, and the account's epoch; `None` for other users.
    async fn account(&self, id: UserId) -> Result<Option<(User, u64)>, Fault> {
        let user: Option<User> = self.get(&keys::user(id), Reading::Consistent).await?;
        Ok(user.and_then(|user| user.account.as_ref().map(|account| account.epoch).map(|epoch| (user, epoch))))
    }

    /// Sets the name of an account. The event of this change updates its search entries and comments.
    pub async fn rename_account(&self, account: &Account, name: &str, now: Timestamp) -> Result<Renamed, Fault> {
        let doing = "saving a user's name";
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let known: Option<User> = self.get(&keys::user(account.id), Reading::Consistent).await?;
            let Some(known) = known.filter(|user| user.is_signed_in(account)) else { return Ok(Renamed::SignedOut) };
            if known.name == name {
                return Ok(Renamed::Done(Box::new(known)));
            }
            if let Some(from) = known.renames_from(now) {
                return Ok(Renamed::NotBefore(from));
            }
            let renamed = known.renamed(name, now);
            let had_name = (!known.name.is_empty()).then(|| text(known.name.clone()));
            let mut update =
                Write::update(keys::user(account.id)).set(user::NAME, text(name)).still(user::NAME, had_name);
            for ((attribute, after), (_, before)) in versions(Some(&renamed)).into_iter().zip(versions(Some(&known))) {
                update = update.still(attribute, before.clone());
                if let Some(after) = after.filter(|after| before.as_ref() != Some(after)) {
                    update = update.set(attribute, after);
                }
            }
            if self.update(doing, update).await?.is_some() {
                return Ok(Renamed::Done(Box::new(renamed)));
            }
        }
    }

    /// The names reserved for moderators. An eventually consistent read suffices, because instances cache the names for a
    /// minute anyway.
    pub async fn moderator_names(&self) -> Result<ModeratorNames, Fault> {
        let names = self.one_item(&keys::moderator_names(), Reading::Eventual).await?;
        Ok(names.map(read).transpose()?.unwrap_or_default())
    }

    pub async fn keep_moderator_name(&self, id: UserId, name: &str) -> Result<ModeratorNames, Fault> {
        let keep = |names: &mut ModeratorNames| names.keep(id, name);
        Ok(self.change_versioned("keeping a moderator's name", &keys::moderator_names(), keep).await?.0)
    }

    /// Releases an erased moderator's name. Returns false if no name is reserved.
    pub async fn forget_moderator_name(&self, id: UserId) -> Result<bool, Fault> {
        let forget = |names: &mut ModeratorNames| names.forget(id);
        Ok(self.change_versioned("freeing a moderator's name", &keys::moderator_names(), forget).await?.1)
    }

    pub async fn publish_key(&self, public: &str, now: Timestamp) -> Result<(), Fault> {
        let (doing, key) = ("publishing a key", keys::public_keys());
        let publish = |keys: &mut PublicKeys| keys.publish(public, now);
        let known: PublicKeys =
            self.one_item(&key, Reading::Eventual).await?.map(read).transpose()?.unwrap_or_default();
        if self.try_change(doing, &key, (known, false), &publish).await?.is_none() {
            self.change_versioned(doing, &key, publish).await?;
        }
        Ok(())
    }
}

impl KeySource for Store {
    fn public_keys(&self) -> BoxFuture<'_, Result<PublicKeys, Fault>> {
        Box::pin(async { Ok(self.get(&keys::public_keys(), Reading::Consistent).await?.unwrap_or_default()) })
    }
}

/// The key of an item that exists while codes to this address are stopped.
fn stopped_codes(address: &str) -> keys::Key {
    keys::limiter("stopped codes", address, 0)
}

fn new_user(proven: &Proven<'_>) -> User {
    User { avatar: proven.avatar.clone(), ..User::unnamed(proven.account.id) }
}

fn attribute(account: &OwnAccount) -> Result<AttributeValue, Fault> {
    serde_dynamo::to_attribute_value(account).map_err(|error| Fault::new("serializing an account", error))
}
