//! The notification state of each recipient. Changes are decided in memory (`domain::notifications`) and written on
//! condition that the stored state is unchanged.

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use super::keys;
use super::schema::{comment, limiter};
use super::transaction::Write;
use super::{Index, Query, Reading, Store, number, text};
use crate::domain::comment::{Comment, Subscription};
use crate::domain::ids::UserId;
use crate::domain::list::Order;
use crate::domain::mail_keys::Recipient;
use crate::domain::notifications::NotificationState;
use crate::domain::time::{Hour, Timestamp};
use crate::error::Fault;

/// Maximum users with the same handle that are read for a mention.
const MAX_NAMESAKES: usize = 100;

impl Store {
    /// The state of a recipient, empty if it is missing.
    pub async fn notification_state(&self, recipient: &Recipient) -> Result<NotificationState, Fault> {
        Ok(self.get(&keys::notification_state(recipient), Reading::Consistent).await?.unwrap_or_default())
    }

    /// Changes the state of a recipient, and returns it with the result of `change`. If another change was first, `change` is
    /// called again with the new state. Nothing is written if nothing changes.
    pub async fn change_notification_state<T>(
        &self,
        recipient: &Recipient,
        change: impl Fn(&mut NotificationState) -> T,
    ) -> Result<(NotificationState, T), Fault> {
        self.change_versioned("changing a notification state", &keys::notification_state(recipient), change).await
    }

    /// Removes the address from a comment, once it was moved to its writer's notification state or refused. Does
    /// nothing if the comment has another address by now, or is a placeholder.
    pub async fn forget_address(&self, comment: &Comment) -> Result<(), Fault> {
        let doing = "removing an address from a comment";
        let attribute = |subscription: Option<&Subscription>| {
            let attribute = subscription.map(serde_dynamo::to_attribute_value).transpose();
            attribute.map_err(|error| Fault::new(doing, error))
        };
        let guest = comment.subscription.as_ref().and_then(|subscription| subscription.guest.clone());
        let kept = guest.map(|guest| Subscription { guest: Some(guest), ..Subscription::default() });
        let update = Write::update(keys::comment(comment.id)).assign(comment::SUBSCRIPTION, attribute(kept.as_ref())?);
        let update = update.still(comment::SUBSCRIPTION, attribute(comment.subscription.as_deref())?);
        self.update(doing, update).await.map(drop)
    }

    pub async fn users_of_handles(&self, handles: &[String]) -> Result<Vec<UserId>, Fault> {
        let users = handles.iter().map(|handle| async move {
            let query = Query {
                index: Index::Table(Reading::Eventual),
                partition: keys::handle_partition(handle),
                bounds: None,
                order: Order::OldestFirst,
                limit: MAX_NAMESAKES,
            };
            let (found, _) = self.query(&query, None).await?;
            Ok::<_, Fault>(found.iter().filter_map(keys::user_of_handle).collect::<Vec<_>>())
        });
        Ok(try_join_all(users).await?.into_iter().flatten().collect())
    }

    /// Counts an address toward this hour's limit of confirmation emails. Returns false if `most` other addresses are
    /// already counted. Counting an address again changes nothing. `whose` identifies the requester's network or the
    /// addresses' domain, or is `all`; `address` is [`crate::domain::mail_keys::MailKeys::plain_address`].
    pub async fn count_asking(&self, whose: &str, address: &str, most: usize, now: Timestamp) -> Result<bool, Fault> {
        let hour = Hour::of(now);
        let count = Write::update(keys::limiter("asked", whose, hour.0))
            .add(limiter::ADDRESSES, AttributeValue::Ss(vec![address.to_owned()]))
            .set(limiter::EXPIRES, number(hour.expiry()))
            .when(format!(
                "attribute_not_exists({0}) OR size({0}) < :most OR contains({0}, :address)",
                limiter::ADDRESSES
            ))
            .with(":most", number(most))
            .with(":address", text(address));
        Ok(self.update("counting a confirmation request", count).await?.is_some())
    }
}
