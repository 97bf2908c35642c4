//! Webhooks: endpoints and their deliveries. Changes are decided in memory (`domain::webhook`) and written on condition
//! that the stored item is unchanged.

use serde::de::DeserializeOwned;

use super::keys::{self, Key, Span};
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window};
use super::log::{By, Subject};
use super::schema::endpoint_count;
use super::transaction::{Label, Outcome, Write, absent};
use super::versioned::{Versioned, next_version};
use super::{Index, Query, Reading, Store, number, read, write};
use crate::domain::ids::CommentId;
use crate::domain::list::{Cursor, Order};
use crate::domain::log::Action;
use crate::domain::webhook::{Delivery, Endpoint, EndpointId, MAX_ENDPOINTS, MessageId};
use crate::error::Fault;

impl Store {
    /// All endpoints, oldest first.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, Fault> {
        let query = Query {
            index: Index::Table(Reading::Consistent),
            partition: keys::endpoint_partition(),
            bounds: Some(Span::ALL.texts()),
            order: Order::OldestFirst,
            limit: MAX_ENDPOINTS,
        };
        self.query_all(query).await?.into_iter().map(read).collect()
    }

    pub async fn endpoint(&self, id: EndpointId) -> Result<Option<Endpoint>, Fault> {
        self.get(&keys::endpoint(id), Reading::Consistent).await
    }

    /// Adds an endpoint under a new id. `None` if the maximum number is reached.
    pub async fn add_endpoint(&self, endpoint: Endpoint, by: By<'_>) -> Result<Option<Endpoint>, Fault> {
        let mut attempts = self.attempts("adding a webhook");
        loop {
            attempts.next().await?;
            let endpoint = Endpoint { id: EndpointId(by.ids.next().0), version: 1, ..endpoint.clone() };
            let put = Write::put(write(&keys::endpoint(endpoint.id), &endpoint)?).when(absent());
            let count = Write::update(keys::endpoint_count())
                .add(endpoint_count::COUNT, number(1))
                .when(format!("attribute_not_exists({0}) OR {0} < :most", endpoint_count::COUNT))
                .with(":most", number(MAX_ENDPOINTS))
                .label(Label::EndpointCount);
            match self.transact_logged(vec![put, count], by, Action::AddWebhook, Subject::Webhook).await? {
                Outcome::Done => return Ok(Some(endpoint)),
                Outcome::Failed(failed) if failed.includes(Label::EndpointCount) => return Ok(None),
                // Another instance has used the id.
                Outcome::Failed(_) => {}
            }
        }
    }

    /// Changes an endpoint for a moderator. `None` if the endpoint doesn't exist. Not logged if nothing changes.
    pub async fn edit_endpoint(
        &self,
        id: EndpointId,
        by: By<'_>,
        change: impl Fn(&mut Endpoint),
    ) -> Result<Option<Endpoint>, Fault> {
        let key = keys::endpoint(id);
        let mut attempts = self.attempts("changing a webhook");
        loop {
            attempts.next().await?;
            let Some(before) = self.endpoint(id).await? else { return Ok(None) };
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(Some(after));
            }
            let put = next_version(&key, before, &mut after)?;
            if self.transact_logged(vec![put], by, Action::ChangeWebhook, Subject::Webhook).await? == Outcome::Done {
                return Ok(Some(after));
            }
        }
    }

    /// Removes an endpoint. Returns false if it doesn't exist.
    pub async fn remove_endpoint(&self, id: EndpointId, by: By<'_>) -> Result<bool, Fault> {
        let delete = Write::delete(keys::endpoint(id)).exists();
        let count = Write::update(keys::endpoint_count()).add(endpoint_count::COUNT, number(-1));
        let writes = vec![delete, count];
        Ok(self.transact_logged(writes, by, Action::RemoveWebhook, Subject::Webhook).await? == Outcome::Done)
    }

    /// Changes an endpoint, and returns it with the result of `change`; `None` if it is missing. If another change was first,
    /// `change` is called again.
    pub async fn change_endpoint<T>(
        &self,
        id: EndpointId,
        change: impl Fn(&mut Endpoint) -> T,
    ) -> Result<Option<(Endpoint, T)>, Fault> {
        self.change_item("changing a webhook", &keys::endpoint(id), None, change).await
    }

    /// Like [`Self::change_endpoint`]. A delivery that doesn't exist yet starts as `new`.
    pub async fn change_delivery<T>(
        &self,
        endpoint: EndpointId,
        message: &MessageId,
        new: Option<&Delivery>,
        change: impl Fn(&mut Delivery) -> T,
    ) -> Result<Option<(Delivery, T)>, Fault> {
        self.change_item("changing a delivery", &keys::delivery(endpoint, message), new, change).await
    }

    async fn change_item<I: Versioned + DeserializeOwned, T>(
        &self,
        doing: &'static str,
        key: &Key,
        new: Option<&I>,
        change: impl Fn(&mut I) -> T,
    ) -> Result<Option<(I, T)>, Fault> {
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let known: Option<I> = self.get(key, Reading::Consistent).await?;
            let is_new = known.is_none();
            let Some(before) = known.or_else(|| new.cloned()) else { return Ok(None) };
            if let Some(changed) = self.try_change(doing, key, (before, is_new), &change).await? {
                return Ok(Some(changed));
            }
        }
    }

    /// A page of an endpoint's deliveries, newest first.
    pub async fn deliveries(
        &self,
        endpoint: EndpointId,
        cursor: Option<Cursor>,
        per_page: usize,
    ) -> Result<(Vec<Delivery>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let Window { span, order, limit } = walk.window(per_page + 1);
        let partition = keys::delivery_partition(endpoint);
        let query =
            Query { index: Index::Table(Reading::Consistent), partition, bounds: Some(span.families()), order, limit };
        let items = self.query_all(query).await?;
        let mut deliveries: Vec<Delivery> = items.into_iter().map(read).collect::<Result<_, _>>()?;
        let more = walk.cut(&mut deliveries, per_page);
        let number = |delivery: &Delivery| CommentId(delivery.message.number);
        let cursors = walk.cursors(deliveries.first().map(number), deliveries.last().map(number), more);
        Ok((deliveries, cursors))
    }
}
