//! Decides the fate and the parent of each comment.
//!
//! The order matters: duplicates are joined once their threads are known, a refused comment can't be a parent, and
//! skipped comments become placeholders only once every comment has its final parent.

use std::collections::{HashMap, HashSet};
use std::iter;

use shared::domain::comment::MAX_DEPTH;
use shared::domain::ids::UserId;
use shared::domain::thread::{imported_address, imported_title};

use super::fate::Move;
use super::{Fate, Reason, Staged, Staging};
use crate::import::record::RecordState;
use crate::import::thread_key::{self, ThreadKeys};

/// The fate and place of a comment, as far as the source alone determines them.
#[derive(Debug, Default)]
pub(in crate::import) struct Decision {
    /// The number of the comment's thread. `None` if the page has no thread; the comment is then refused.
    pub(in crate::import) thread: Option<usize>,
    pub(in crate::import) fate: Fate,
    /// Why the comment is imported only as a placeholder.
    pub(in crate::import) placeholder: Option<Reason>,
    pub(in crate::import) parent: Option<usize>,
    /// In no particular order.
    pub(in crate::import) replies: Vec<usize>,
    pub(in crate::import) level: usize,
    pub(super) moved: Option<Move>,
    /// The id in the source, made unique.
    pub(in crate::import) tag: String,
}

/// The threads in which an id of the source was seen.
struct Spread {
    first: Option<usize>,
    is_several: bool,
}

impl Spread {
    fn note<'a>(all: &mut HashMap<&'a str, Self>, id: &'a str, thread: Option<usize>) {
        let spread = all.entry(id).or_insert(Self { first: thread, is_several: false });
        spread.is_several |= spread.first != thread;
    }

    fn has_other(&self, thread: Option<usize>) -> bool {
        self.is_several || self.first != thread
    }
}

impl Staging {
    /// Decides the fate of each comment. `keep_spam` makes spam, trash and pingbacks rejected comments instead of
    /// skipping them.
    pub fn resolve(&mut self, keys: &ThreadKeys, keep_spam: bool) {
        if keep_spam {
            let unwanted = [RecordState::Spam, RecordState::Trash, RecordState::Pingback];
            let comments = self.comments.iter_mut().filter(|comment| unwanted.contains(&comment.record.state));
            comments.for_each(|comment| comment.record.state = RecordState::Rejected);
        }
        self.find_pages();
        let pages = self.name_threads(keys);
        let mut resolver = Resolver {
            decisions: self.comments.iter().map(|comment| self.decision(comment, pages[comment.page])).collect(),
            comments: &self.comments,
        };
        resolver.join_doubles();
        resolver.refuse_other_sites();
        resolver.find_parents();
        resolver.break_circles();
        let order = resolver.measure_depth();
        resolver.keep_placeholders(&order);
        let names: Vec<String> = self.threads.all.iter().map(|target| target.name.clone()).collect();
        resolver.tag(&names);
        (self.decisions, self.order) = (resolver.decisions, order);
        self.forget_places();
    }

    /// Moves replies without a page to the pages of their parents.
    fn find_pages(&mut self) {
        let Some(nowhere) = self.page_numbers.get("").copied() else { return };
        let placed = self.comments.iter().filter(|comment| comment.page != nowhere);
        let pages: HashMap<String, usize> = placed.map(|comment| (comment.id().to_owned(), comment.page)).collect();
        for comment in self.comments.iter_mut().filter(|comment| comment.page == nowhere) {
            let page = comment.record.parent.as_ref().and_then(|parent| pages.get(parent));
            comment.page = page.copied().unwrap_or(nowhere);
        }
    }

    /// Finds the threads of the pages, and merges the pages' data about each thread in the order of their keys.
    fn name_threads(&mut self, keys: &ThreadKeys) -> Vec<Result<usize, Reason>> {
        let mut all = vec![Err(Reason::Thread); self.pages.len()];
        let mut pages: Vec<_> = self.pages.iter().enumerate().collect();
        pages.sort_unstable_by_key(|(_, page)| &page.key);
        for (number, page) in pages {
            all[number] = match keys.target(page) {
                thread_key::Target::Thread(id) => Ok(self.threads.number(&id)),
                thread_key::Target::Unmapped => Err(Reason::Thread),
                thread_key::Target::ForeignHost => Err(Reason::Host),
            };
            if let Ok(thread) = all[number]
                && !page.deleted
            {
                let about = &mut self.threads.all[thread].about;
                about.title = about.title.take().or(page.title.as_deref().and_then(imported_title));
                about.url = about.url.take().or(page.url.as_deref().and_then(imported_address));
                about.author = about.author.or(page.author_id.map(UserId));
                about.closed = about.closed.or(page.closed);
            }
        }
        let unmapped = self.comments.iter().filter(|comment| all[comment.page] == Err(Reason::Thread));
        self.unmapped = unmapped.map(|comment| self.pages[comment.page].key.clone()).collect();
        all
    }

    /// Decides the fate of a comment. If its page has a thread, a reason to skip takes precedence over a reason to
    /// refuse: nothing is lost if a deleted comment has an invalid time.
    fn decision(&self, comment: &Staged, page: Result<usize, Reason>) -> Decision {
        let is_placeholder = comment.is_placeholder();
        let skipped = match comment.record.state {
            _ if page.is_ok() && self.pages[comment.page].deleted => Some(Reason::Deleted),
            _ if is_placeholder => None,
            RecordState::Approved | RecordState::Pending | RecordState::Rejected => None,
            RecordState::Deleted => Some(Reason::Deleted),
            RecordState::Spam => Some(Reason::Spam),
            RecordState::Trash => Some(Reason::Trash),
            RecordState::Pingback => Some(Reason::Pingback),
            RecordState::Other => Some(Reason::Type),
        };
        let fate = match (page, skipped, comment.refusal) {
            (Ok(_), Some(reason), _) => Fate::Skipped(reason),
            (_, _, Some(reason)) | (Err(reason), ..) => Fate::Refused(reason),
            _ if comment.created.is_none() => Fate::Refused(Reason::Time),
            _ if comment.record.body.is_empty() && !is_placeholder => Fate::Refused(Reason::Empty),
            _ => Fate::New,
        };
        let placeholder = is_placeholder.then_some(Reason::Deleted);
        Decision { thread: page.ok(), fate, placeholder, ..Decision::default() }
    }
}

struct Resolver<'a> {
    comments: &'a [Staged],
    decisions: Vec<Decision>,
}

impl<'a> Resolver<'a> {
    fn all(&self) -> impl Iterator<Item = (usize, &'a Staged, &Decision)> {
        iter::zip(self.comments, &self.decisions)
            .enumerate()
            .map(|(index, (comment, decision))| (index, comment, decision))
    }

    fn set(&mut self, chosen: Vec<usize>, fate: Fate) {
        for index in chosen {
            self.decisions[index].fate = fate;
        }
    }

    /// Joins duplicates: among comments that aren't skipped or refused, keeps the first of those with the same id and
    /// thread, unless their writers are known and differ. Exported comments with the same id but different texts aren't
    /// duplicates; [`Staging::locate`] refuses all of them but the first.
    fn join_doubles(&mut self) {
        let mut writers: HashMap<_, HashSet<Option<&str>>> = HashMap::new();
        let mut doubles = Vec::new();
        for (index, comment, decision) in self.all().filter(|(.., decision)| decision.fate == Fate::New) {
            let writer = comment.writer.as_deref();
            let kept_text = comment.record.id.map(|_| comment.record.body.as_str());
            let earlier = writers.entry((decision.thread, comment.id(), kept_text)).or_default();
            let is_double = match writer {
                Some(_) => earlier.contains(&writer) || earlier.contains(&None),
                None => !earlier.is_empty(),
            };
            if is_double {
                doubles.push(index);
            }
            earlier.insert(writer);
        }
        self.set(doubles, Fate::AlreadyThere);
    }

    /// Refuses comments that seem to be from another site. The files of a command belong to a single site, where an id
    /// identifies one comment, although some systems use an id on two pages of the same file ([`tag`](Self::tag)). Also
    /// refuses replies to a refused comment, unless an accepted one in the same file and thread has the same id.
    fn refuse_other_sites(&mut self) {
        let mut earlier: HashMap<&str, Vec<(&Staged, Option<usize>)>> = HashMap::new();
        let mut others = Vec::new();
        for (index, comment, decision) in self.all().filter(|(.., decision)| decision.fate.stays()) {
            let earlier = earlier.entry(comment.id()).or_default();
            let is_other = |(earlier, thread): &(&Staged, Option<usize>)| {
                if *thread == decision.thread {
                    earlier.writer.as_ref().zip(comment.writer.as_ref()).is_some_and(|(one, other)| one != other)
                } else {
                    earlier.file != comment.file
                }
            };
            if decision.fate == Fate::New && comment.record.id.is_none() && earlier.iter().any(is_other) {
                others.push(index);
            }
            earlier.push((comment, decision.thread));
        }
        while !others.is_empty() {
            self.set(others, Fate::Refused(Reason::Site));
            others = self.replies_to_other_sites();
        }
    }

    fn replies_to_other_sites(&self) -> Vec<usize> {
        let named = |fate| {
            let chosen = self.all().filter(move |(.., decision)| decision.fate == fate);
            chosen.map(|(_, comment, decision)| (comment.file, decision.thread, comment.id())).collect::<HashSet<_>>()
        };
        let (refused, new) = (named(Fate::Refused(Reason::Site)), named(Fate::New));
        let is_below = |(_, comment, decision): &(usize, &Staged, &Decision)| {
            let parent = comment.record.parent.as_deref().map(|id| (comment.file, decision.thread, id));
            decision.fate == Fate::New
                && parent.is_some_and(|parent| refused.contains(&parent) && !new.contains(&parent))
        };
        self.all().filter(is_below).map(|(index, ..)| index).collect()
    }

    /// Finds the parent of each comment in its thread, regardless of the page. A skipped comment can be a parent if it
    /// can become a placeholder, which needs a time.
    fn find_parents(&mut self) {
        let mut parents: HashMap<_, usize> = HashMap::new();
        let mut spreads = HashMap::new();
        for (index, comment, decision) in self.all() {
            Spread::note(&mut spreads, comment.id(), decision.thread);
            let name = (decision.thread, comment.id());
            match decision.fate {
                Fate::New => {
                    let known = parents.entry(name).or_insert(index);
                    if self.decisions[*known].fate != Fate::New {
                        *known = index;
                    }
                }
                Fate::Skipped(_) if comment.created.is_some() => _ = parents.entry(name).or_insert(index),
                _ => {}
            }
        }
        for (comment, decision) in iter::zip(self.comments, &mut self.decisions) {
            let Some(id) = comment.record.parent.as_deref() else { continue };
            if matches!(decision.fate, Fate::New | Fate::Skipped(_)) {
                decision.parent = parents.get(&(decision.thread, id)).copied();
                let is_elsewhere = || spreads.get(id).is_some_and(|spread| spread.has_other(decision.thread));
                if decision.parent.is_none() {
                    decision.moved = Some(if is_elsewhere() { Move::Thread } else { Move::Parent });
                }
            }
        }
    }

    /// Breaks cycles of parents: the oldest comment of each cycle becomes a top-level comment.
    fn break_circles(&mut self) {
        // For each comment, the start of the walk that first reached it.
        let mut walks: Vec<Option<usize>> = vec![None; self.comments.len()];
        for start in 0..walks.len() {
            let mut next = Some(start);
            while let Some(at) = next.filter(|at| walks[*at].is_none()) {
                walks[at] = Some(start);
                next = self.decisions[at].parent;
            }
            let Some(first) = next.filter(|met| walks[*met] == Some(start)) else { continue };
            let above = |at: &usize| self.decisions[*at].parent.filter(|parent| *parent != first);
            let circle = iter::successors(Some(first), above);
            if let Some(oldest) = circle.min_by_key(|at| (self.comments[*at].created, *at)) {
                let oldest = &mut self.decisions[oldest];
                (oldest.parent, oldest.moved) = (None, Some(Move::Parent));
            }
        }
    }

    /// Moves replies that are too deep up to the maximum depth. Returns the comments, parents before their replies.
    fn measure_depth(&mut self) -> Vec<usize> {
        let mut replies = vec![Vec::new(); self.comments.len()];
        let mut order = Vec::with_capacity(self.comments.len());
        for (index, _, decision) in self.all() {
            decision.parent.map_or(&mut order, |parent| &mut replies[parent]).push(index);
        }
        let mut done = 0;
        while let Some(above) = order.get(done).copied() {
            order.extend(&replies[above]);
            done += 1;
        }
        for index in order.iter().copied() {
            let Some(parent) = self.decisions[index].parent else { continue };
            let Decision { level, parent: above, .. } = self.decisions[parent];
            let decision = &mut self.decisions[index];
            decision.level = level + 1;
            if level == MAX_DEPTH {
                (decision.level, decision.parent, decision.moved) = (MAX_DEPTH, above, Some(Move::Depth));
            }
            if let Some(parent) = self.decisions[index].parent {
                self.decisions[parent].replies.push(index);
            }
        }
        order
    }

    /// Turns skipped comments with a live comment below them into placeholders. Skips the rejected replies to all other
    /// skipped comments.
    fn keep_placeholders(&mut self, order: &[usize]) {
        let (mut has_live_reply, mut has_live_below) = (vec![false; order.len()], vec![false; order.len()]);
        for index in order.iter().rev().copied() {
            if let Fate::Skipped(reason) = self.decisions[index].fate
                && has_live_below[index]
            {
                self.keep_branch(index, reason, &has_live_reply, &has_live_below);
            }
            let decision = &self.decisions[index];
            if let Some(parent) = decision.parent
                && decision.fate == Fate::New
            {
                has_live_reply[parent] |= self.is_live(index);
                has_live_below[parent] |= self.is_live(index) || has_live_below[index];
            }
        }
        for index in order.iter().copied() {
            let is_gone = |parent: usize| matches!(self.decisions[parent].fate, Fate::Skipped(_));
            if self.decisions[index].fate == Fate::New && self.decisions[index].parent.is_some_and(is_gone) {
                self.decisions[index].fate = Fate::Skipped(Reason::Deleted);
            }
        }
    }

    /// Turns a comment into a placeholder. A placeholder needs a live reply, so rejected replies above the live
    /// comments become placeholders too if it has none.
    fn keep_branch(&mut self, top: usize, reason: Reason, has_live_reply: &[bool], has_live_below: &[bool]) {
        let mut branch = vec![top];
        while let Some(index) = branch.pop() {
            let decision = &mut self.decisions[index];
            (decision.fate, decision.placeholder) = (Fate::New, Some(reason));
            if !has_live_reply[index] {
                let replies = self.decisions[index].replies.iter().copied();
                branch
                    .extend(replies.filter(|reply| self.decisions[*reply].fate == Fate::New && has_live_below[*reply]));
            }
        }
    }

    fn is_live(&self, index: usize) -> bool {
        self.decisions[index].placeholder.is_some() || self.comments[index].record.state != RecordState::Rejected
    }

    /// Makes ids unique: if several threads share an id, the name of the thread is appended in all but the first.
    fn tag(&mut self, threads: &[String]) {
        let mut spreads = HashMap::new();
        for (comment, decision) in iter::zip(self.comments, &mut self.decisions) {
            let Some(thread) = decision.thread else { continue };
            Spread::note(&mut spreads, comment.id(), Some(thread));
            let is_shared = spreads.get(comment.id()).is_some_and(|spread| spread.has_other(Some(thread)));
            if decision.fate == Fate::New {
                let id = comment.id();
                decision.tag = if is_shared { format!("{id}@{}", threads[thread]) } else { id.to_owned() };
            }
        }
    }
}
