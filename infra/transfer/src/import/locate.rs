//! Finds the id that each comment has in the table, or will have.
//!
//! A comment that was imported before is found by the item of its source, even if its time has changed or it has been
//! deleted. A comment with another writer than that item's, or with another page and thread, is refused as another
//! site's. The id of a new comment is derived from its time and its id in the source. If another comment has that id,
//! the next free one of the same time is used. A comment in an export keeps its id.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use shared::domain::ids::{CommentId, Provenance, SourceId, ThreadId, sha256_hex};
use shared::domain::time;
use shared::error::Fault;
use shared::store::Store;

use super::record::{RecordState, own_source};
use super::staging::{Fate, Place, Reason, Staging};
use super::time::timestamp;
use crate::store::import::{Occupant, occupants};
use crate::store::sources::{SourceRow, rows_of};

/// The number of comments that are located at once.
const BATCH: usize = 100;

/// A comment whose id is being searched for.
struct Seeker {
    index: usize,
    sources: Sources,
    provenance: Provenance,
    /// The number of the comment's thread.
    thread: Option<usize>,
    slots: Box<dyn Iterator<Item = CommentId>>,
    candidate: Option<CommentId>,
}

/// A source, and the hash that replaces it after erasure.
struct Sources {
    own: SourceId,
    erased: Option<SourceId>,
}

impl Sources {
    fn iter(&self) -> impl Iterator<Item = &SourceId> {
        std::iter::once(&self.own).chain(&self.erased)
    }

    fn contain(&self, source: &SourceId) -> bool {
        self.iter().any(|own| own == source)
    }
}

enum Placement {
    Free(CommentId),
    /// The comment exists in the occupant's thread, which may be another thread if `--map` has changed.
    AlreadyThere(CommentId, Occupant),
    Deleted(CommentId),
    /// `Site`: another comment has the same source. `Taken`: another comment has the exported comment's id or source.
    /// `Time`: the comment's time is outside the range of ids, or all ids of that time are taken.
    Refused(Reason),
}

impl Staging {
    /// Discards earlier results and locates all comments that [`Staging::resolve`] accepted. `store` is `None` if
    /// there is no table yet. `prefix` is [`Staging::prefix`].
    pub async fn locate(&mut self, store: Option<&Store>, prefix: &str) -> Result<(), Fault> {
        self.forget_places();
        self.locate_kept(store).await?;
        // Sorted, so that the order is the same in every run.
        let is_sought = |index: &usize| self.places[*index].fate == Fate::New && self.places[*index].id.is_none();
        let mut sought: Vec<usize> = (0..self.places.len()).filter(is_sought).collect();
        sought.sort_by_key(|index| {
            let decision = &self.decisions[*index];
            (decision.level, self.comments[*index].created, &decision.tag)
        });
        for some in sought.chunks(BATCH) {
            let seekers = some.iter().map(|index| self.seeker(*index, prefix)).collect();
            self.locate_batch(store, seekers).await?;
        }
        self.follow_parents(&self.order.clone());
        self.drop_empty_placeholders();
        self.rank_replies();
        self.threads.all.iter_mut().for_each(|target| target.comments.clear());
        for (index, place) in self.places.iter().enumerate() {
            if let Some(thread) = place.thread.filter(|_| place.id.is_some()) {
                self.threads.all[thread].comments.push(index);
            }
        }
        Ok(())
    }

    /// Locates exported comments, which keep their ids. Of several comments with the same id or source, the first wins.
    async fn locate_kept(&mut self, store: Option<&Store>) -> Result<(), Fault> {
        let kept = |(index, place): (usize, &Place)| {
            let kept = self.comments[index].record.id.filter(|_| place.fate == Fate::New)?;
            Some((index, CommentId(kept)))
        };
        let kept: Vec<(usize, CommentId)> = self.places.iter().enumerate().filter_map(kept).collect();
        let mut first: HashMap<SourceId, CommentId> = HashMap::new();
        for some in kept.chunks(BATCH) {
            let some: Vec<_> = some.iter().map(|(index, id)| (*index, *id, self.kept_sources(*index, *id))).collect();
            let (rows, occupants) = match store {
                Some(store) => {
                    // Sets, because the table rejects a lookup with duplicates.
                    let sources: HashSet<&SourceId> = some.iter().flat_map(|(.., sources)| sources.iter()).collect();
                    let ids: HashSet<CommentId> = some.iter().map(|(_, id, _)| *id).collect();
                    let sources: Vec<SourceId> = sources.into_iter().cloned().collect();
                    (rows_of(store, &sources).await?, occupants(store, &ids.into_iter().collect::<Vec<_>>()).await?)
                }
                None => (HashMap::default(), HashMap::default()),
            };
            for (index, id, sources) in some {
                let is_deleted = sources.iter().filter_map(|source| rows.get(source)).any(|row| row.is_deleted);
                let is_double = self.located.contains_key(&id) || *first.entry(sources.own.clone()).or_insert(id) != id;
                let thread = self.places[index].thread.map(|thread| &self.threads.all[thread].thread);
                let placement = match occupants.get(&id) {
                    _ if is_deleted => Placement::Deleted(id),
                    _ if is_double => Placement::Refused(Reason::Taken),
                    None => Placement::Free(id),
                    Some(occupant) => {
                        let source = occupant.source.clone().unwrap_or_else(|| own_source(id));
                        let is_same = thread == Some(&occupant.thread) && sources.contain(&source);
                        let taken = Placement::Refused(Reason::Taken);
                        if is_same { Placement::AlreadyThere(id, occupant.clone()) } else { taken }
                    }
                };
                self.place(index, placement);
            }
        }
        Ok(())
    }

    fn kept_sources(&self, index: usize, id: CommentId) -> Sources {
        self.sources(self.comments[index].record.source.clone().map_or_else(|| own_source(id), SourceId))
    }

    fn sources(&self, own: SourceId) -> Sources {
        let erased = self.forgotten.as_ref().map(|forgotten| forgotten.source(&own));
        Sources { own, erased }
    }

    fn seeker(&self, index: usize, prefix: &str) -> Seeker {
        let tag = &self.decisions[index].tag;
        Seeker {
            index,
            sources: self.sources(SourceId(format!("{prefix}:{tag}"))),
            provenance: self.provenance(index),
            thread: self.places[index].thread,
            slots: slots(self.comments[index].created.unwrap_or_default(), tag),
            candidate: None,
        }
    }

    async fn locate_batch(&mut self, store: Option<&Store>, mut seekers: Vec<Seeker>) -> Result<(), Fault> {
        if let Some(store) = store {
            let sources: Vec<SourceId> = seekers.iter().flat_map(|seeker| seeker.sources.iter()).cloned().collect();
            let known = Known::of(store, &sources).await?;
            let mut unknown = Vec::new();
            for seeker in seekers {
                let thread = seeker.thread.map(|thread| &self.threads.all[thread].thread);
                match known.place(&seeker, thread) {
                    Some(placement) => self.place(seeker.index, placement),
                    None => unknown.push(seeker),
                }
            }
            seekers = unknown;
        }
        while !seekers.is_empty() {
            self.choose(&mut seekers);
            let candidates: Vec<CommentId> = seekers.iter().filter_map(|seeker| seeker.candidate).collect();
            let occupants = match store {
                Some(store) => occupants(store, &candidates).await?,
                None => HashMap::default(),
            };
            let mut left = Vec::new();
            for seeker in seekers {
                let placement = match seeker.candidate.map(|candidate| (candidate, occupants.get(&candidate))) {
                    None => Placement::Refused(Reason::Time),
                    Some((candidate, None)) => Placement::Free(candidate),
                    Some((candidate, Some(occupant)))
                        if occupant.source.as_ref().is_some_and(|source| seeker.sources.contain(source)) =>
                    {
                        Placement::AlreadyThere(candidate, occupant.clone())
                    }
                    Some(_) => {
                        left.push(seeker);
                        continue;
                    }
                };
                self.place(seeker.index, placement);
            }
            seekers = left;
        }
        Ok(())
    }

    /// Assigns each seeker its next id that no other comment of the import has.
    fn choose(&self, seekers: &mut [Seeker]) {
        let mut chosen = HashSet::new();
        for seeker in seekers {
            seeker.candidate = seeker.slots.find(|slot| !self.located.contains_key(slot) && chosen.insert(*slot));
        }
    }

    fn place(&mut self, index: usize, placement: Placement) {
        let record = &self.comments[index].record;
        let version = (self.state(index).stored(), record.edited_at.map(timestamp));
        let place = &mut self.places[index];
        let (id, fate) = match placement {
            Placement::Free(id) => (Some(id), Fate::New),
            Placement::AlreadyThere(id, occupant) => {
                // The comment stays in its thread even if `--map` now names another one. New replies to it go there
                // too.
                place.thread = Some(self.threads.number(&occupant.thread));
                place.is_changed = self.comments[index].record.id.is_some() && version != occupant.version;
                (place.is_there, place.ancestors) = (true, occupant.ancestors);
                (Some(id), Fate::AlreadyThere)
            }
            Placement::Deleted(id) => (Some(id), Fate::Skipped(Reason::Deleted)),
            Placement::Refused(reason) => (None, Fate::Refused(reason)),
        };
        // If two sources have tombstones for the same id, the first wins.
        place.id = id.filter(|id| *self.located.entry(*id).or_insert(index) == index);
        place.fate = fate;
    }

    /// Finds another id for a comment whose id was taken. `None` if no id is free, or the comment is no longer new.
    pub(super) async fn relocate(
        &mut self,
        store: &Store,
        prefix: &str,
        index: usize,
    ) -> Result<Option<CommentId>, Fault> {
        self.locate_batch(Some(store), vec![self.seeker(index, prefix)]).await?;
        self.follow_parents(&self.below(index));
        let place = &self.places[index];
        Ok(place.id.filter(|_| place.fate == Fate::New))
    }

    /// Skips a comment whose parent was deleted during the import.
    pub(super) fn skip_deleted(&mut self, index: usize) {
        self.places[index].fate = Fate::Skipped(Reason::Deleted);
    }

    /// Skips replies to a comment that was skipped, such as one deleted after its import, or that has no possible id.
    /// Refuses replies to a comment whose id is taken or that belongs to another site. Moves replies along with a
    /// comment that was imported into another thread. Fills in the ancestors, and whether everyone may see a comment.
    fn follow_parents(&mut self, order: &[usize]) {
        for index in order.iter().copied() {
            let is_approved = self.state(index) == RecordState::Approved;
            let Some(parent) = self.decisions[index].parent else {
                self.places[index].is_shown = is_approved;
                continue;
            };
            let above = &self.places[parent];
            let (thread, is_shown) = (above.thread, above.is_shown && is_approved);
            let gone = match above.fate {
                Fate::Refused(reason @ (Reason::Taken | Reason::Site)) => Some(Fate::Refused(reason)),
                Fate::Skipped(_) | Fate::Refused(_) => Some(Fate::Skipped(Reason::Deleted)),
                Fate::New | Fate::AlreadyThere => None,
            };
            let ancestors: Vec<CommentId> = above.ancestors.iter().copied().chain(above.id).collect();
            let place = &mut self.places[index];
            place.thread = thread;
            if place.fate.stays() {
                place.fate = gone.unwrap_or(place.fate);
                place.is_shown = is_shown;
                if !place.is_there {
                    place.ancestors = ancestors;
                }
            }
        }
    }

    /// All comments below this one, parents before their replies.
    fn below(&self, index: usize) -> Vec<usize> {
        let mut all = self.decisions[index].replies.clone();
        let mut done = 0;
        while let Some(above) = all.get(done).copied() {
            all.extend(&self.decisions[above].replies);
            done += 1;
        }
        all
    }

    /// Drops placeholders without replies, from the deepest level up, so that a placeholder with only dropped
    /// placeholders below it is dropped too.
    fn drop_empty_placeholders(&mut self) {
        for index in self.order.iter().rev().copied() {
            let (place, decision) = (&self.places[index], &self.decisions[index]);
            let is_below = |reply: &usize| {
                let reply = &self.places[*reply];
                reply.fate == Fate::New
                    || reply.fate == Fate::AlreadyThere && reply.ancestors.last() == place.id.as_ref()
            };
            if let Some(reason) = decision.placeholder
                && place.fate == Fate::New
                && !decision.replies.iter().any(is_below)
            {
                self.places[index].fate = Fate::Skipped(reason);
            }
        }
    }

    fn rank_replies(&mut self) {
        for decision in &self.decisions {
            let is_ranked =
                |reply: &usize| self.places[*reply].fate.stays() && self.state(*reply) == RecordState::Approved;
            let mut ranked: Vec<usize> = decision.replies.iter().copied().filter(is_ranked).collect();
            ranked.sort_unstable_by_key(|reply| self.places[*reply].id);
            for (rank, reply) in ranked.into_iter().enumerate() {
                self.places[reply].rank = Some(rank + 1);
            }
        }
    }
}

/// The stored items of some sources, and their comments.
struct Known {
    rows: HashMap<SourceId, SourceRow>,
    comments: HashMap<CommentId, Occupant>,
}

impl Known {
    async fn of(store: &Store, sources: &[SourceId]) -> Result<Self, Fault> {
        let rows = rows_of(store, sources).await?;
        let ids: BTreeSet<CommentId> = rows.values().filter(|row| !row.is_deleted).map(|row| row.comment).collect();
        let comments = occupants(store, &ids.into_iter().collect::<Vec<_>>()).await?;
        Ok(Self { rows, comments })
    }

    /// The place of a comment that was imported before. `None` if the source was never imported, or an import was
    /// interrupted before it wrote the comment.
    fn place(&self, seeker: &Seeker, thread: Option<&ThreadId>) -> Option<Placement> {
        seeker.sources.iter().find_map(|source| {
            let row = self.rows.get(source)?;
            let provenance = row.provenance();
            let elsewhere = provenance.is_on_another_page(&seeker.provenance);
            let placement = if row.is_deleted {
                (!elsewhere).then_some(Placement::Deleted(row.comment))
            } else {
                let occupant = self.comments.get(&row.comment)?;
                if occupant.source.as_ref() != Some(source) {
                    return None;
                }
                // The page's URL may have changed.
                let same_thread = thread == Some(&occupant.thread);
                (!elsewhere || same_thread).then(|| Placement::AlreadyThere(row.comment, occupant.clone()))
            };
            let same_writer = !provenance.is_by_another_writer(&seeker.provenance);
            Some(placement.filter(|_| same_writer).unwrap_or(Placement::Refused(Reason::Site)))
        })
    }
}

/// The ids that a comment may have, best first.
fn slots(created: i64, tag: &str) -> Box<dyn Iterator<Item = CommentId>> {
    let at = Timestamp::from_second(created).map(Timestamp::as_millisecond).unwrap_or_default();
    let tie = tag.parse().unwrap_or_else(|_| u64::from_str_radix(&sha256_hex(tag)[..16], 16).unwrap_or_default());
    Box::new(CommentId::slots(time::Timestamp(at), tie).into_iter().flatten())
}
