//! Bans. A ban is on the user's item, which is read with every request of the user. A row of its own, which is written in the
//! same transaction, lists who is banned.

use serde::{Deserialize, Serialize};

use super::keys::{self, Item};
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window};
use super::log::{Moderator, Subject};
use super::schema::{SK, user};
use super::transaction::{Outcome, Write, absent};
use super::{Index, Query, Reading, Store, number, read, write};
use crate::domain::ids::{CommentId, UserId};
use crate::domain::list::{Cursor, Order};
use crate::domain::log::Action;
use crate::domain::time::Timestamp;
use crate::domain::user::{Ban, User};
use crate::error::Fault;

/// Rows that are read for a page. Those of bans that have ended are left out, and `DynamoDB` removes them within days.
const MAX_READ: usize = 200;

/// The row of a ban.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(rename = "u")]
    user: UserId,
    /// When the ban ends, in Unix seconds; `None` means never.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
}

/// The row of a user's ban.
pub(super) fn row(id: u64, user: UserId, ban: &Ban) -> Result<Item, Fault> {
    // The next whole second: the row is there as long as the ban.
    let expires = ban.until.map(|until| Timestamp(until + 999).seconds());
    write(&keys::banned(id), &Row { user, expires })
}

impl Store {
    /// Bans a user, in place of any earlier ban, or lifts the ban. The user need not have signed in before. When that changes
    /// nothing, it is not logged.
    pub async fn set_ban(&self, id: UserId, ban: Option<Ban>, by: Moderator<'_>) -> Result<(), Fault> {
        let mut attempts = self.attempts("banning a user");
        loop {
            attempts.next().await?;
            let known = self.user(id, Reading::Consistent).await?;
            let present = known.as_ref().and_then(|user| user.present_ban(by.clock.now()));
            let is_done = present == ban.as_ref();
            let action = if ban.is_some() { Action::Ban } else { Action::Unban };
            if !is_done {
                let writes = change(id, ban.as_ref(), known.as_ref(), by)?;
                if self.transact_logged(writes, by, action, Subject::User(id)).await? != Outcome::Done {
                    continue;
                }
            }
            // Also when nothing changed: an earlier request may have been interrupted here.
            let user = self.user(id, Reading::Consistent).await?;
            return match user.filter(|user| !user.name.is_empty()) {
                Some(user) => self.settle_directory(user).await,
                None => Ok(()),
            };
        }
    }

    /// A page of those banned now, the newest ban first.
    pub async fn banned_users(
        &self,
        cursor: Option<Cursor>,
        per_page: usize,
        now: Timestamp,
    ) -> Result<(Vec<User>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let Window { span, order, limit } = walk.window(MAX_READ);
        let partition = keys::banned_partition();
        let query =
            Query { index: Index::Table(Reading::Eventual), partition, bounds: Some(span.texts()), order, limit };
        let items = self.query_all(query).await?;
        let mut rows = items.into_iter().filter_map(ban_and_row).collect::<Result<Vec<_>, Fault>>()?;
        // Where the next page begins when all that was read has ended.
        let end = (rows.len() == limit).then(|| rows.last().map(|(id, _)| *id)).flatten();
        rows.retain(|(_, row)| row.expires.is_none_or(|expires| now.seconds() < expires));
        let more = walk.cut(&mut rows, per_page);
        let (mut first, mut last) = (rows.first().map(|(id, _)| *id), rows.last().map(|(id, _)| *id));
        if !more && end.is_some() {
            *(if walk.goes_back() { &mut first } else { &mut last }) = end;
        }
        let cursors = walk.cursors(first, last, more || end.is_some());
        Ok((self.users_with(rows, now).await?, cursors))
    }

    /// The users of these rows, as far as the ban of the row is theirs and holds.
    async fn users_with(&self, rows: Vec<(CommentId, Row)>, now: Timestamp) -> Result<Vec<User>, Fault> {
        let wanted = rows.iter().map(|(_, row)| keys::user(row.user)).collect();
        let mut users = self.batch_get(wanted, Reading::Eventual).await?;
        let found = rows.iter().filter_map(|(id, row)| Some((id, users.remove(&keys::user(row.user))?)));
        let found: Vec<(CommentId, User)> =
            found.map(|(id, item)| Ok((*id, read(item)?))).collect::<Result<_, Fault>>()?;
        let holds = |(id, user): &(CommentId, User)| user.ban_id == Some(id.0) && user.present_ban(now).is_some();
        Ok(found.into_iter().filter(holds).map(|(_, user)| user).collect())
    }
}

/// The writes that replace the ban of a user by another one, or by none.
fn change(id: UserId, ban: Option<&Ban>, known: Option<&User>, by: Moderator<'_>) -> Result<Vec<Write>, Fault> {
    let before = known.and_then(|user| user.ban_id);
    let next = ban.map(|ban| (by.ids.next().0, ban));
    let stored = ban.map(serde_dynamo::to_attribute_value).transpose();
    let stored = stored.map_err(|error| Fault::new("serializing a ban", error))?;
    let user = Write::update(keys::user(id))
        .set(user::ID, number(id))
        .assign(user::BAN, stored)
        .assign(user::BAN_ID, next.map(|(id, _)| number(id)))
        .still(user::BAN_ID, before.map(number));
    let mut writes = vec![user];
    writes.extend(before.map(|id| Write::delete(keys::banned(id))));
    if let Some((ban_id, ban)) = next {
        writes.push(Write::put(row(ban_id, id, ban)?).when(absent()));
    }
    Ok(writes)
}

/// The id of a ban, and its row.
fn ban_and_row(item: Item) -> Option<Result<(CommentId, Row), Fault>> {
    let id = keys::ban_of(item.get(SK)?.as_s().ok()?)?;
    Some(read(item).map(|row| (CommentId(id), row)))
}
