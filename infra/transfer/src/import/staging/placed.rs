//! The comments of a thread, ready to be written.

use shared::domain::ids::{CommentId, Provenance, ThreadId, sha256_hex};

use super::{Fate, Place, Staging, Target, json};
use crate::import::author::{ImportedAuthor, Users};
use crate::import::record::{self, RecordState};

const BATCH: usize = 100;

/// A comment with its id and place in the table.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The comment's number in the import.
    pub index: usize,
    pub record: record::Comment,
    /// The id in the source, made unique.
    pub tag: String,
    pub thread: ThreadId,
    pub id: CommentId,
    /// Ancestors from the top-level comment down.
    pub ancestors: Vec<CommentId>,
    pub is_placeholder: bool,
    pub state: RecordState,
    pub writer: ImportedAuthor,
    /// The number of likes with a known voter, which only exports have.
    pub voters: u64,
    /// Distinguishes the comment from a comment of another site with the same source.
    pub provenance: Provenance,
    /// Whether everyone may see the comment and all its ancestors.
    pub is_shown: bool,
    pub parent_is_approved: bool,
    /// Position among the approved replies of its parent, from 1.
    pub rank: Option<usize>,
    pub is_there: bool,
}

impl Staging {
    /// The numbers of the threads with located comments, sorted by name.
    pub(in crate::import) fn targets(&self) -> Vec<usize> {
        let targets = &self.threads.all;
        let mut all: Vec<usize> = (0..targets.len()).filter(|number| !targets[*number].comments.is_empty()).collect();
        all.sort_unstable_by_key(|number| &targets[*number].name);
        all
    }

    /// Whether any comment of the thread is new.
    pub(in crate::import) fn gains(&self, target: &Target) -> bool {
        target.comments.iter().any(|index| self.places[*index].fate == Fate::New)
    }

    pub(in crate::import) fn count_new(&self) -> u64 {
        self.places.iter().filter(|place| place.fate == Fate::New).count() as u64
    }

    /// The comments of a thread that will be in the table, in batches of at most `BATCH` comments of the same depth,
    /// parents first.
    pub(in crate::import) fn batches(&self, target: &Target) -> Vec<Vec<usize>> {
        let level = |index: &usize| self.decisions[*index].level;
        let mut all = target.comments.clone();
        all.retain(|index| self.places[*index].fate.stays());
        all.sort_unstable_by_key(|index| (level(index), self.places[*index].id));
        let levels = all.chunk_by(|one, other| level(one) == level(other));
        levels.flat_map(|level| level.chunks(BATCH)).map(<[usize]>::to_vec).collect()
    }

    /// A comment with its place; `None` if the comment isn't in the table after the import.
    pub(in crate::import) fn placed(&self, index: usize, users: &Users) -> Option<Placed> {
        let (comment, decision, place) = (&self.comments[index], &self.decisions[index], &self.places[index]);
        let Place { id: Some(id), thread: Some(thread), .. } = *place else { return None };
        let is_placeholder = decision.placeholder.is_some();
        place.fate.stays().then(|| Placed {
            index,
            record: comment.record.clone(),
            tag: decision.tag.clone(),
            thread: self.threads.all[thread].thread.clone(),
            id,
            ancestors: place.ancestors.clone(),
            is_placeholder,
            state: self.state(index),
            writer: self.writer(index, users),
            voters: self.likes(id).count() as u64,
            provenance: self.provenance(index),
            is_shown: place.is_shown,
            parent_is_approved: decision.parent.is_some_and(|parent| self.state(parent) == RecordState::Approved),
            rank: place.rank,
            is_there: place.fate == Fate::AlreadyThere,
        })
    }

    /// A hash of everything that determines the places of a thread's comments and the thread's counts.
    pub(in crate::import) fn hash_of_places(&self, target: &Target, users: &Users, salt: String) -> String {
        let placed = self.batches(target).into_iter().flatten();
        placed.filter_map(|index| self.placed(index, users)).fold(salt, |hash, placed| {
            let Placed { tag, id, ancestors, is_shown, rank, state, is_placeholder, record, .. } = &placed;
            let visitor = (*state != RecordState::Approved).then_some(placed.writer.user);
            let pinned = record.pinned && !is_placeholder;
            let place =
                format!("{id} {tag} {ancestors:?} {is_shown} {rank:?} {state:?} {is_placeholder} {pinned} {visitor:?}");
            let of_export = placed.is_kept().then(|| {
                let (likes, reports) = (self.likes(*id).collect::<Vec<_>>(), self.reporters(*id).collect::<Vec<_>>());
                format!("{} {likes:?} {reports:?}", json(record))
            });
            sha256_hex(&format!("{hash}{place} {}", of_export.unwrap_or_default()))
        })
    }

    /// The writer of a comment: as stored for an exported comment, or else as derived from the source and `--users`.
    pub(super) fn writer(&self, index: usize, users: &Users) -> ImportedAuthor {
        let record::Comment { id, author, .. } = &self.comments[index].record;
        let account = self.users.get(&author.key).filter(|_| !author.key.is_empty());
        if id.is_some() { ImportedAuthor::kept(author) } else { users.writer(author, account) }
    }

    pub(in crate::import) fn provenance(&self, index: usize) -> Provenance {
        let comment = &self.comments[index];
        if comment.record.id.is_some() {
            return comment.record.provenance.clone();
        }
        let page = self.pages[comment.page].key.as_str();
        // Drops the scheme, because a page is the same with and without TLS.
        let page = page.split_once("//").map_or(page, |(_, rest)| rest).trim_end_matches('/');
        let writer = comment.writer.clone().filter(|_| self.decisions[index].placeholder.is_none());
        Provenance { thread: Some(sha256_hex(page)[..16].to_owned()), writer }
    }

    /// The approved replies, oldest first.
    pub(in crate::import) fn replies(&self, index: usize) -> Vec<CommentId> {
        let replies = self.replies_that_stay(index).filter(|place| place.rank.is_some());
        let mut replies: Vec<CommentId> = replies.filter_map(|place| place.id).collect();
        replies.sort_unstable();
        replies
    }

    /// Whether any reply is not approved.
    pub(in crate::import) fn has_hidden_replies(&self, index: usize) -> bool {
        self.replies_that_stay(index).any(|place| place.rank.is_none())
    }

    fn replies_that_stay(&self, index: usize) -> impl Iterator<Item = &Place> {
        let places = self.decisions[index].replies.iter().map(|reply| &self.places[*reply]);
        places.filter(|place| place.fate.stays())
    }
}
