//! Bans. A user's ban is part of the user's item, which most of the user's requests read. A network's ban is a separate
//! item, which guests' writes read. Each ban also has an entry in the list of bans, which is written in the same
//! transaction.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keys::{self, Item, Key};
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window};
use super::log::{By, Subject};
use super::schema::{SK, network_ban, user};
use super::transaction::{Outcome, Write, absent};
use super::{Index, Query, Reading, Store, number, read, write};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, UserId};
use crate::domain::list::{Cursor, Order};
use crate::domain::log::Action;
use crate::domain::time::{Timestamp, stored};
use crate::domain::user::{Ban, NetworkBan, User};
use crate::error::Fault;

/// Maximum entries read for a page. Entries of ended bans are left out, and `DynamoDB` removes them within days.
const MAX_READ: usize = 200;

/// An entry in the list of bans, for a user or a network.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    #[serde(rename = "nw", default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    /// Expiry of the entry, in whole seconds; `None` means never.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
    expires: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct NetworkItem {
    #[serde(rename = "bi")]
    id: u64,
    #[serde(rename = "bn")]
    ban: Ban,
    #[serde(rename = "c")]
    comment: CommentId,
    #[serde(rename = "t")]
    thread: ThreadId,
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
    expires: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub enum Banned {
    User(Box<User>),
    /// The ban of a network, and the name of the guest whose comment caused it; `None` if the comment is gone.
    Network(NetworkBan, Option<String>),
}

/// The expiry of a ban's item: rounded up to a whole second, so that the item exists as long as the ban is in force.
fn expires(ban: &Ban) -> Option<Timestamp> {
    ban.until.map(|until| (until + Duration::from_millis(999)).start_of_second())
}

/// The list entry of a user's ban.
pub fn row(id: u64, user: UserId, ban: &Ban) -> Result<Item, Fault> {
    write(&keys::banned(id), &Row { user: Some(user), network: None, expires: expires(ban) })
}

/// The list entry of a network's ban.
pub fn network_row(of: &NetworkBan) -> Result<Item, Fault> {
    let row = Row { user: None, network: Some(of.network.clone()), expires: expires(&of.ban) };
    write(&keys::banned(of.id), &row)
}

pub fn network(name: &str, item: Item) -> Result<NetworkBan, Fault> {
    let NetworkItem { id, ban, comment, thread, .. } = read(item)?;
    Ok(NetworkBan { network: name.to_owned(), id, ban, comment, thread })
}

impl Store {
    /// Bans a user, replacing any earlier ban, or lifts the ban. The user need not have signed in before. Logged only if the
    /// ban changes or recent comments should be rejected.
    pub async fn set_ban(&self, id: UserId, ban: Option<Ban>, rejects: bool, by: By<'_>) -> Result<(), Fault> {
        let mut attempts = self.attempts("banning a user");
        loop {
            attempts.next().await?;
            let known = self.user(id, Reading::Consistent).await?;
            let present = known.as_ref().and_then(|user| user.present_ban(by.clock.now()));
            let is_done = present.map(Ban::terms) == ban.as_ref().map(Ban::terms) && !rejects;
            if !is_done {
                let replaced = known.as_ref().and_then(|user| user.ban_id).zip(present);
                let next = ban.as_ref().map(|ban| (by.ids.next().0, ban.after(replaced)));
                let writes = change(id, next.as_ref(), known.as_ref())?;
                let subject = Subject::User { id, rejects };
                let outcome = match next {
                    Some((next, _)) => self.transact_ban(writes, next, by, subject).await?,
                    None => self.transact_logged(writes, by, Action::Unban, subject).await?,
                };
                if outcome != Outcome::Done {
                    continue;
                }
            }
            // Runs even if nothing changed, because an earlier request may have been interrupted here.
            let user = self.user(id, Reading::Consistent).await?;
            return match user.filter(|user| !user.name.is_empty()) {
                Some(user) => self.settle_directory(user).await,
                None => Ok(()),
            };
        }
    }

    /// The ban of a network, unless it has ended.
    pub async fn network_ban(&self, name: &str, reading: Reading, now: Timestamp) -> Result<Option<NetworkBan>, Fault> {
        let item = self.one_item(&keys::network_ban(name), reading).await?;
        let ban = item.map(|item| network(name, item)).transpose()?;
        Ok(ban.filter(|found| found.ban.holds(now)))
    }

    /// Bans the network of a guest's comment, replacing any earlier ban. Logged under the same conditions as [`Self::set_ban`].
    pub async fn ban_network(
        &self,
        name: &str,
        comment: &Comment,
        ban: Ban,
        rejects: bool,
        by: By<'_>,
    ) -> Result<(), Fault> {
        let mut attempts = self.attempts("banning a network");
        loop {
            attempts.next().await?;
            let stored = self.one_item(&keys::network_ban(name), Reading::Consistent).await?;
            let known = stored.map(|item| network(name, item)).transpose()?;
            let present = known.as_ref().filter(|known| known.ban.holds(by.clock.now()));
            if !rejects && present.is_some_and(|present| present.ban.terms() == ban.terms()) {
                return Ok(());
            }
            let (network, thread) = (name.to_owned(), comment.thread.clone());
            let ban = ban.after(present.map(|present| (present.id, &present.ban)));
            let next = NetworkBan { network, id: by.ids.next().0, ban, comment: comment.id, thread };
            let writes = change_network(known.as_ref(), &next)?;
            let subject = Subject::Network { ban: &next, rejects };
            if self.transact_ban(writes, next.id, by, subject).await? == Outcome::Done {
                return Ok(());
            }
        }
    }

    /// Performs all `writes` and logs the ban, or does nothing. The log entry has the id of the ban.
    async fn transact_ban(
        &self,
        mut writes: Vec<Write>,
        id: u64,
        by: By<'_>,
        subject: Subject<'_>,
    ) -> Result<Outcome, Fault> {
        writes.push(by.entry(id, Action::Ban, subject)?);
        self.transact(writes).await
    }

    /// Lifts the ban of a network. Not logged if there is no ban.
    pub async fn unban_network(&self, name: &str, by: By<'_>) -> Result<(), Fault> {
        let mut attempts = self.attempts("lifting the ban of a network");
        loop {
            attempts.next().await?;
            let now = by.clock.now();
            let Some(known) = self.network_ban(name, Reading::Consistent, now).await? else { return Ok(()) };
            let lift = Write::delete(keys::network_ban(name)).still(network_ban::ID, Some(number(known.id)));
            let writes = vec![lift, Write::delete(keys::banned(known.id))];
            let subject = Subject::Network { ban: &known, rejects: false };
            if self.transact_logged(writes, by, Action::Unban, subject).await? == Outcome::Done {
                return Ok(());
            }
        }
    }

    /// A page of the bans in force, newest first.
    pub async fn banned(
        &self,
        cursor: Option<Cursor>,
        per_page: usize,
        now: Timestamp,
    ) -> Result<(Vec<Banned>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let Window { span, order, limit } = walk.window(MAX_READ);
        let partition = keys::banned_partition();
        let query =
            Query { index: Index::Table(Reading::Eventual), partition, bounds: Some(span.texts()), order, limit };
        let items = self.query_all(query).await?;
        let mut rows = items.into_iter().filter_map(ban_and_row).collect::<Result<Vec<_>, Fault>>()?;
        // The last entry read, if more may follow. The next page continues there if this page has room for all bans in
        // force.
        let end = (rows.len() == limit).then(|| rows.last().map(|(id, _)| *id)).flatten();
        rows.retain(|(_, row)| row.expires.is_none_or(|expires| now < expires));
        let more = walk.cut(&mut rows, per_page);
        let (mut first, mut last) = (rows.first().map(|(id, _)| *id), rows.last().map(|(id, _)| *id));
        if !more && end.is_some() {
            *(if walk.goes_back() { &mut first } else { &mut last }) = end;
        }
        let cursors = walk.cursors(first, last, more || end.is_some());
        Ok((self.banned_by(rows, now).await?, cursors))
    }

    /// Users and networks whose ban is still in force.
    async fn banned_by(&self, rows: Vec<(CommentId, Row)>, now: Timestamp) -> Result<Vec<Banned>, Fault> {
        let users = rows.iter().filter_map(|(_, row)| row.user).map(keys::user);
        let networks = rows.iter().filter_map(|(_, row)| row.network.as_deref()).map(keys::network_ban);
        // An entry that is being replaced may be listed beside its replacement.
        let keys: BTreeSet<Key> = users.chain(networks).collect();
        let mut items = self.batch_get(keys.into_iter().collect(), Reading::Eventual).await?;
        let mut found = Vec::new();
        for (id, row) in rows {
            if let Some(item) = row.user.and_then(|user| items.remove(&keys::user(user))) {
                let user: User = read(item)?;
                let holds = user.ban_id == Some(id.0) && user.present_ban(now).is_some();
                found.extend(holds.then(|| Banned::User(Box::new(user))));
            } else if let Some(name) = row.network
                && let Some(item) = items.remove(&keys::network_ban(&name))
            {
                let ban = network(&name, item)?;
                let holds = ban.id == id.0 && ban.ban.holds(now);
                found.extend(holds.then_some(Banned::Network(ban, None)));
            }
        }
        self.name_guests(&mut found).await?;
        Ok(found)
    }

    async fn name_guests(&self, found: &mut [Banned]) -> Result<(), Fault> {
        let comments = found.iter().filter_map(|banned| match banned {
            Banned::Network(ban, _) => Some(keys::comment(ban.comment)),
            Banned::User(_) => None,
        });
        let comments: BTreeSet<Key> = comments.collect();
        let mut comments = self.batch_get(comments.into_iter().collect(), Reading::Eventual).await?;
        for banned in found {
            if let Banned::Network(ban, name) = banned {
                let comment: Option<Comment> = comments.remove(&keys::comment(ban.comment)).map(read).transpose()?;
                *name = comment.map(|comment| comment.name);
            }
        }
        Ok(())
    }
}

/// The writes that replace the ban of a network.
fn change_network(known: Option<&NetworkBan>, next: &NetworkBan) -> Result<Vec<Write>, Fault> {
    let NetworkBan { network, id, ban, comment, thread } = next.clone();
    let item = NetworkItem { id, expires: expires(&ban), ban, comment, thread };
    let put = Write::put(write(&keys::network_ban(&network), &item)?);
    let mut writes = vec![put.still(network_ban::ID, known.map(|known| number(known.id)))];
    writes.extend(known.map(|known| Write::delete(keys::banned(known.id))));
    writes.push(Write::put(network_row(next)?).when(absent()));
    Ok(writes)
}

/// The writes that replace a user's ban with `next` and its id, or remove the ban.
fn change(id: UserId, next: Option<&(u64, Ban)>, known: Option<&User>) -> Result<Vec<Write>, Fault> {
    let before = known.and_then(|user| user.ban_id);
    let stored = next.map(|(_, ban)| ban).map(serde_dynamo::to_attribute_value).transpose();
    let stored = stored.map_err(|error| Fault::new("serializing a ban", error))?;
    let user = Write::update(keys::user(id))
        .set(user::ID, number(id.0))
        .assign(user::BAN, stored)
        .assign(user::BAN_ID, next.map(|(id, _)| number(*id)))
        .still(user::BAN_ID, before.map(number));
    let mut writes = vec![user];
    writes.extend(before.map(|id| Write::delete(keys::banned(id))));
    if let Some((ban_id, ban)) = next {
        writes.push(Write::put(row(*ban_id, id, ban)?).when(absent()));
    }
    Ok(writes)
}

fn ban_and_row(item: Item) -> Option<Result<(CommentId, Row), Fault>> {
    let id = keys::ban_of(item.get(SK)?.as_s().ok()?)?;
    Some(read(item).map(|row| (CommentId(id), row)))
}
