//! Pages of a thread's top-level comments, sorted by likes or replies. Reads only keys from the index, then each comment on the
//! page with its replies.

use futures_util::future::try_join;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::{CommentWithReplies, List, ThreadPage};
use crate::domain::ids::CommentId;
use crate::domain::list::{Order, PagePosition, Paging};
use crate::error::Fault;
use crate::store::keys::{self, Item, Scope};
use crate::store::{Index, Query, Store};

/// The sort key of the index `likes` or `replied`: the count, then the id. It exceeds 64 bits from a count of 1,845.
type Rank = u128;

impl Store {
    pub(super) async fn page_by_rank(
        &self,
        list: List<'_>,
        index: Index,
        paging: &Paging,
    ) -> Result<ThreadPage, Fault> {
        let offset = match paging.position {
            PagePosition::Page(page) => (page - 1) * paging.per_page,
            PagePosition::Cursor(_) => 0,
        };
        let limit = offset + paging.per_page + 1;
        let known = self.thread_of(list);
        let everyone = self.ranks(list, index, Scope::Everyone, limit);
        let (known, mut ranks) = try_join(known, everyone).await?;
        if known.visitor_state.hidden_parents > 0 {
            ranks.extend(self.ranks(list, index, Scope::Own(&list.owners.comments), limit).await?);
            ranks.sort_unstable_by(|a, b| b.cmp(a));
        }
        let pin = list.pin(&known.thread);
        let others = ranks.into_iter().map(|(_, id)| id).filter(|id| Some(*id) != pin);
        let page = pin.into_iter().chain(others).skip(offset).take(paging.per_page);
        let parents = page.map(|id| self.comment_with_replies(list, &known.visitor_state, id));
        let parents = stream::iter(parents).buffered(self.parents_at_once());
        let parents: Vec<Option<CommentWithReplies>> = parents.try_collect().await?;
        let parents = parents.into_iter().flatten().collect();
        Ok(ThreadPage::new(known, parents))
    }

    async fn ranks(
        &self,
        list: List<'_>,
        index: Index,
        scope: Scope<'_>,
        limit: usize,
    ) -> Result<Vec<(Rank, CommentId)>, Fault> {
        let partition = keys::parents(list.thread, scope);
        let query = Query { index, partition, bounds: None, order: Order::NewestFirst, limit };
        let (_, _, name) = index.names();
        let ranked = |item: &Item| Some((item.get(name)?.as_n().ok()?.parse().ok()?, keys::comment_of(item)?));
        Ok(self.query_all(query).await?.iter().filter_map(ranked).collect())
    }
}
