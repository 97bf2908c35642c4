//! The table recounted: whatever is stored twice (counts, ranks, index keys, queues, the directory of names) must follow from
//! what is stored once. What does not is told, and can be mended. Not for requests: this reads everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;

use super::comments::{id_set, index_keys, queues, same_state, scope, state_text, unhide};
use super::keys::{self, Item, ItemKind, Key, Scope};
use super::transaction::{Outcome, Write};
use super::users::directory;
use super::{Store, fault, number, read, text};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, UserId, Visitor, fingerprint};
use crate::domain::report::Report;
use crate::domain::report::ReportStatus;
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::user::User;
use crate::error::Fault;

/// One count of likes or replies in a rank.
const RANK_STEP: u128 = 10_000_000_000_000_000;

/// What a recount reads or decides of a comment: the attribute, and the names of its values as seen and as wanted.
const DERIVED: [(&str, &str, &str); 16] = [
    ("s", ":s", ":s_"),
    ("rv", ":rv", ":rv_"),
    ("ok", ":ok", ":ok_"),
    ("tk", ":tk", ":tk_"),
    ("ts", ":ts", ":ts_"),
    ("a", ":a", ":a_"),
    ("i", ":i", ":i_"),
    ("lc", ":lc", ":lc_"),
    ("l", ":l", ":l_"),
    ("rc", ":rc", ":rc_"),
    ("d", ":d", ":d_"),
    ("fp", ":fp", ":fp_"),
    ("ld", ":ld", ":ld_"),
    ("tr", ":tr", ":tr_"),
    ("rp", ":rp", ":rp_"),
    ("ro", ":ro", ":ro_"),
];

/// Something the table says that does not follow from the rest of it.
#[derive(Clone, Debug)]
pub struct Finding {
    text: String,
    /// One transaction, which holds only while what was read still stands.
    mend: Vec<Write>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Store {
    /// Scans the whole table and recounts it. While others write, a finding means something only when a second check has it
    /// too.
    pub async fn check(&self) -> Result<Vec<Finding>, Fault> {
        let mut rows = Rows::default();
        let mut start = None;
        loop {
            #[expect(clippy::disallowed_methods, reason = "everything is what a recount reads")]
            let scan = self.client.scan().table_name(&self.table).consistent_read(true);
            let page = scan.set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| fault("scanning the table", error))?;
            for item in page.items.unwrap_or_default() {
                rows.add(item);
            }
            start = page.last_evaluated_key.filter(|key| !key.is_empty());
            if start.is_none() {
                return Ok(rows.recount());
            }
        }
    }

    /// False when the table has changed since, or nobody knows a remedy.
    pub async fn mend(&self, finding: &Finding) -> Result<bool, Fault> {
        if finding.mend.is_empty() {
            return Ok(false);
        }
        Ok(self.transact(finding.mend.clone()).await? == Outcome::Done)
    }
}

struct Stored {
    comment: Comment,
    item: Item,
}

struct VisitRow {
    key: Key,
    visitor: Visitor,
    thread: ThreadId,
    visitor_state: VisitorThreadState,
    item: Item,
}

/// The table by kinds of rows.
#[derive(Default)]
struct Rows {
    comments: BTreeMap<CommentId, Stored>,
    reports: BTreeMap<CommentId, BTreeMap<Visitor, Report>>,
    hidden: BTreeSet<(CommentId, CommentId)>,
    /// Rows below a comment, which go when it goes.
    hanging: Vec<(CommentId, Key)>,
    threads: BTreeMap<String, (ThreadId, Thread, Item)>,
    visitor_states: Vec<VisitRow>,
    users: BTreeMap<UserId, User>,
    directory: BTreeMap<(String, String), Item>,
    queue: Vec<(String, CommentId, Key)>,
    findings: Vec<Finding>,
}

impl Rows {
    fn add(&mut self, item: Item) {
        let Some(key) = Key::of(&item) else { return };
        let told = format!("{} {}", key.pk, key.sk);
        if self.sort_in(key, item).is_err() {
            self.find(told, "cannot be read".to_owned(), Vec::new());
        }
    }

    fn sort_in(&mut self, key: Key, mut item: Item) -> Result<(), Fault> {
        match ItemKind::of(&key) {
            ItemKind::Comment(id) => {
                // Bodies are most of a table, and count for nothing here.
                item.insert("b".to_owned(), text(""));
                let comment = Comment { id, ..read(item.clone())? };
                self.comments.insert(id, Stored { comment, item });
            }
            ItemKind::Report(id) => {
                let report: Report = read(item)?;
                self.reports.entry(id).or_default().insert(report.visitor.clone(), report);
                self.hanging.push((id, key));
            }
            ItemKind::HiddenReply { parent, id } => {
                self.hidden.insert((parent, id));
                self.hanging.push((parent, key));
            }
            ItemKind::GuestBound(id) => self.hanging.push((id, key)),
            ItemKind::Thread(thread) => {
                self.threads.insert(thread.to_string(), (thread, read(item.clone())?, item));
            }
            ItemKind::VisitorThreadState(visitor, thread) => {
                let visitor_state = read(item.clone())?;
                self.visitor_states.push(VisitRow { key, visitor, thread, visitor_state, item });
            }
            ItemKind::User(id) => {
                self.users.insert(id, read(item)?);
            }
            ItemKind::Directory(_) => {
                self.directory.insert((key.pk, key.sk), item);
            }
            ItemKind::Queue { state, id } => self.queue.push((state, id, key)),
            ItemKind::Other => {}
        }
        Ok(())
    }

    fn find(&mut self, what: impl fmt::Display, problem: impl fmt::Display, mend: Vec<Write>) {
        self.findings.push(Finding { text: format!("{what}: {problem}"), mend });
    }

    fn recount(mut self) -> Vec<Finding> {
        let orphans = self.orphans();
        self.check_comments(&orphans);
        self.check_threads(&orphans);
        self.check_entries();
        self.check_hidden_counts();
        self.check_hanging();
        self.check_queues(&orphans);
        self.check_directory();
        self.findings
    }

    /// Comments below one that is gone. Nobody sees them.
    fn orphans(&mut self) -> BTreeSet<CommentId> {
        let missing =
            |stored: &Stored| stored.comment.ancestors.iter().find(|id| !self.comments.contains_key(id)).copied();
        let orphans: Vec<(CommentId, CommentId)> =
            self.comments.iter().filter_map(|(id, stored)| Some((*id, missing(stored)?))).collect();
        for (id, missing) in &orphans {
            let comment = &self.comments[id].comment;
            let mut delete = Write::delete(keys::comment(*id)).when(same_state(comment.state));
            if let Some(state) = state_text(comment.state) {
                delete = delete.with(":state", text(state));
            }
            let mut mend = vec![delete, Write::check(keys::comment(*missing), "attribute_not_exists(pk)")];
            if !comment.is_approved() {
                mend.push(unhide(comment));
                mend.extend(comment.parent().map(|parent| Write::delete(keys::hidden_reply(parent, *id))));
            }
            mend.extend(queues(comment).map(|state| Write::delete(keys::queue(state, *id))));
            self.find(format_args!("comment {id}"), format_args!("{missing} above it is gone"), mend);
        }
        orphans.into_iter().map(|(id, _)| id).collect()
    }

    fn check_comments(&mut self, orphans: &BTreeSet<CommentId>) {
        let mut likes: BTreeMap<u64, u64> = BTreeMap::new();
        for id in self.visitor_states.iter().flat_map(|row| &row.visitor_state.liked) {
            *likes.entry(*id).or_default() += 1;
        }
        let mut replies: BTreeMap<CommentId, BTreeSet<u64>> = BTreeMap::new();
        for Stored { comment, .. } in self.comments.values().filter(|stored| stored.comment.is_approved()) {
            if let Some(parent) = comment.parent() {
                replies.entry(parent).or_default().insert(comment.id.0);
            }
        }
        let inline: BTreeMap<CommentId, BTreeSet<u64>> = self
            .comments
            .values()
            .map(|stored| (stored.comment.id, inline(&stored.comment, replies.get(&stored.comment.id))))
            .collect();
        let mut found = Vec::new();
        for (id, Stored { comment, item }) in self.comments.iter().filter(|(id, _)| !orphans.contains(id)) {
            let below = replies.get(id).map_or(0, BTreeSet::len) as u64;
            let reports = self.reports.get(id);
            let reported = reports
                .is_some_and(|reports| reports.values().any(|report| report.status(comment) == ReportStatus::Pending));
            let liked = likes.get(&id.0).copied().unwrap_or_default();
            let inline_ids = &inline[id];
            let marks = fingerprint(replies.get(id).into_iter().flatten().map(|id| CommentId(*id)));
            let rank =
                |count: u64| comment.is_top_level().then(|| number(u128::from(count) * RANK_STEP + u128::from(id.0)));
            let [(_, tk), (_, ts), (_, ok)] = self.placed(comment, item, &inline);
            let wanted = [
                ("i", Some(number(id))),
                ("ok", Some(ok)),
                ("tk", Some(tk)),
                ("ts", Some(ts)),
                ("a", comment.user.map(|user| text(keys::author(user)))),
                ("lc", Some(number(liked))),
                ("l", rank(liked)),
                ("rc", Some(number(below))),
                ("d", rank(below)),
                ("fp", comment.is_top_level().then(|| number(marks))),
                ("ld", ids(inline_ids)),
                // Never unset, so it may stand for a reply that is gone.
                ("tr", Some(AttributeValue::Bool(comment.has_separate || below > inline_ids.len() as u64))),
                // Only of what everyone sees is an edit looked at.
                ("rv", Some(AttributeValue::Bool(comment.in_review && comment.is_approved()))),
                ("rp", Some(number(reports.map_or(0, BTreeMap::len)))),
                // A report of the very moment of a settlement is counted as settled.
                ("ro", Some(AttributeValue::Bool(reported || (comment.reported && reports.is_some())))),
            ];
            let wrong: Vec<_> =
                wanted.into_iter().filter(|(name, wanted)| !agree(item.get(*name), wanted.as_ref())).collect();
            if !wrong.is_empty() {
                found.push((*id, told(item, &wrong), vec![corrected(*id, item, &wrong)]));
            }
        }
        for (id, problem, mend) in found {
            self.find(format_args!("comment {id}"), problem, mend);
        }
    }

    /// The index keys of a comment. An unapproved reply may lead or trail; where it stands decides.
    fn placed(
        &self,
        comment: &Comment,
        item: &Item,
        inline: &BTreeMap<CommentId, BTreeSet<u64>>,
    ) -> [(&'static str, AttributeValue); 3] {
        let visitor = comment.visitor();
        let scope = scope(comment, &visitor);
        let is_inline = match comment.parent() {
            None => false,
            Some(parent) if scope == Scope::Everyone => inline[&parent].contains(&comment.id.0),
            Some(parent) => {
                let above = self.comments.get(&parent).is_some_and(|parent| parent.comment.is_top_level());
                above && item.get("tk") == Some(&text(keys::parents(&comment.thread, scope)))
            }
        };
        index_keys(comment, scope, is_inline)
    }

    fn check_threads(&mut self, orphans: &BTreeSet<CommentId>) {
        let mut parents: BTreeMap<String, u64> = self.threads.keys().map(|thread| (thread.clone(), 0)).collect();
        for Stored { comment, .. } in self.comments.values() {
            if comment.is_top_level() && comment.is_approved() {
                *parents.entry(comment.thread.to_string()).or_default() += 1;
            }
        }
        let mut found = Vec::new();
        for (name, counted) in parents {
            let Ok(thread) = ThreadId::try_from(name.clone()) else { continue };
            let nothing = (thread.clone(), Thread::default(), Item::new());
            let (_, stored, item) = self.threads.get(&name).unwrap_or(&nothing);
            if stored.parents != counted {
                let problem = format!("n is {}, recounted {counted}", stored.parents);
                let mend = recounted(keys::thread(&thread), "n", counted, item);
                found.push((name.clone(), problem, vec![mend]));
            }
            let Some(pin) = stored.pin else { continue };
            let pinned = self.comments.get(&pin.comment).filter(|_| !orphans.contains(&pin.comment));
            let fine = pinned.is_some_and(|Stored { comment, .. }| {
                comment.is_approved() && comment.is_top_level() && comment.thread == thread
            });
            if !fine {
                let unpin = Write::update(keys::thread(&thread), "REMOVE pin").when("pin.c = :id");
                let problem = format!("comment {} is pinned, which cannot be", pin.comment);
                found.push((name, problem, vec![unpin.with(":id", number(pin.comment))]));
            }
        }
        for (thread, problem, mend) in found {
            self.find(format_args!("thread {thread}"), problem, mend);
        }
    }

    /// Visitors' likes and reports, each in one place; what was reported against the reports. Ids of comments that are gone
    /// may stay.
    fn check_entries(&mut self) {
        let mut liked = BTreeSet::new();
        let mut reported = BTreeSet::new();
        let mut found = Vec::new();
        for row in &self.visitor_states {
            let there = |id: &u64| self.comments.contains_key(&CommentId(*id));
            let forget = |set: &str, id: u64| {
                let entry = Write::update(row.key.clone(), format!("DELETE {set} :entry"));
                let id = CommentId(id);
                vec![entry.when(format!("contains({set}, :id)")).with(":entry", id_set(id)).with(":id", number(id))]
            };
            for id in row.visitor_state.liked.iter().filter(|id| there(id)) {
                if !liked.insert((row.visitor.clone(), *id)) {
                    found.push((*id, format!("visitor {} likes it in two places", row.visitor), forget("lk", *id)));
                }
            }
            for id in row.visitor_state.reported.iter().filter(|id| there(id)) {
                let stored = self.reports.get(&CommentId(*id)).is_some_and(|all| all.contains_key(&row.visitor));
                if !reported.insert((row.visitor.clone(), *id)) {
                    found.push((*id, format!("visitor {} reported it in two places", row.visitor), forget("rd", *id)));
                } else if !stored {
                    found.push((*id, format!("no report of visitor {} is there", row.visitor), forget("rd", *id)));
                }
            }
        }
        let reports = self.reports.iter().flat_map(|(id, all)| all.keys().map(move |visitor| (*id, visitor)));
        for (id, visitor) in reports {
            let Some(Stored { comment, .. }) = self.comments.get(&id) else { continue };
            if !reported.contains(&(visitor.clone(), id.0)) {
                let full = self
                    .visitor_states
                    .iter()
                    .any(|row| row.visitor_state.full && row.visitor == *visitor && row.thread == comment.thread);
                let key = if full {
                    keys::visitor_overflow(visitor, &comment.thread, comment.parent().unwrap_or(id))
                } else {
                    keys::visitor_state(visitor, &comment.thread)
                };
                let entry = Write::update(key, "ADD rd :entry").with(":entry", id_set(id));
                found.push((id.0, format!("visitor {visitor} does not know of having reported it"), vec![entry]));
            }
        }
        for (id, problem, mend) in found {
            self.find(format_args!("comment {id}"), problem, mend);
        }
    }

    /// Visitors' counts of their own unapproved comments, those below a comment that is gone included.
    fn check_hidden_counts(&mut self) {
        let mut counted: BTreeMap<(Visitor, String), [u64; 2]> = BTreeMap::new();
        let mut separate = BTreeSet::new();
        for Stored { comment, item } in self.comments.values().filter(|stored| !stored.comment.is_approved()) {
            let visitor = comment.visitor();
            let place = (visitor.clone(), comment.thread.to_string());
            if let Some(parent) = comment.parent()
                && item.get("tk") == Some(&text(keys::replies(parent, Scope::Own(&visitor))))
            {
                separate.insert(place.clone());
            }
            counted.entry(place).or_default()[usize::from(!comment.is_top_level())] += 1;
        }
        let mut visitor_states: BTreeMap<(Visitor, String), (VisitorThreadState, Item)> = BTreeMap::new();
        for row in &self.visitor_states {
            if row.key == keys::visitor_state(&row.visitor, &row.thread) {
                let place = (row.visitor.clone(), row.thread.to_string());
                counted.entry(place.clone()).or_default();
                visitor_states.insert(place, (row.visitor_state.clone(), row.item.clone()));
            }
        }
        for (place, [parents, replies]) in counted {
            let (visitor_state, item) = visitor_states.remove(&place).unwrap_or_default();
            let Ok(thread) = ThreadId::try_from(place.1.clone()) else { continue };
            let key = keys::visitor_state(&place.0, &thread);
            let what = format!("visitor {} in {thread}", place.0);
            for (name, stored, counted) in
                [("up", visitor_state.hidden_parents, parents), ("ur", visitor_state.hidden_replies, replies)]
            {
                if stored != counted {
                    let mend = vec![recounted(key.clone(), name, counted, &item)];
                    self.find(&what, format_args!("{name} is {stored}, recounted {counted}"), mend);
                }
            }
            if separate.contains(&place) && !visitor_state.hidden_separate {
                let set = Write::update(key, "SET ut = :true").with(":true", AttributeValue::Bool(true));
                self.find(&what, "ut is unset, though an unapproved reply trails", vec![set]);
            }
        }
    }

    /// Rows that hang on a comment, and the rows that hidden replies must have.
    fn check_hanging(&mut self) {
        let mut found = Vec::new();
        for (id, key) in &self.hanging {
            if !self.comments.contains_key(id) {
                let gone = Write::check(keys::comment(*id), "attribute_not_exists(pk)");
                found.push((*id, format!("is gone, but not its {}", key.sk), vec![Write::delete(key.clone()), gone]));
            }
        }
        for (parent, id) in &self.hidden {
            let hides = self
                .comments
                .get(id)
                .is_some_and(|Stored { comment, .. }| !comment.is_approved() && comment.parent() == Some(*parent));
            if !hides && self.comments.contains_key(parent) {
                let mut mend = vec![Write::delete(keys::hidden_reply(*parent, *id))];
                mend.push(match self.comments.get(id) {
                    Some(Stored { item, .. }) => as_seen(*id, item),
                    None => Write::check(keys::comment(*id), "attribute_not_exists(pk)"),
                });
                found.push((*parent, format!("{id} is no hidden reply of it"), mend));
            }
        }
        for (id, Stored { comment, item }) in &self.comments {
            let Some(parent) = comment.parent().filter(|parent| self.comments.contains_key(parent)) else { continue };
            if !comment.is_approved() && !self.hidden.contains(&(parent, *id)) {
                let mend = vec![Write::put(keys::hidden_reply(parent, *id).item()), as_seen(*id, item)];
                found.push((*id, format!("{parent} does not know of this hidden reply"), mend));
            }
        }
        for (id, problem, mend) in found {
            self.find(format_args!("comment {id}"), problem, mend);
        }
    }

    fn check_queues(&mut self, orphans: &BTreeSet<CommentId>) {
        let mut found = Vec::new();
        let mut queued = BTreeSet::new();
        for (state, id, key) in &self.queue {
            let stored = self.comments.get(id).filter(|_| !orphans.contains(id));
            let belongs = stored.is_some_and(|stored| queues(&stored.comment).any(|queue| queue == state));
            if belongs && *key == keys::queue(state, *id) {
                queued.insert((state.clone(), *id));
            } else if !orphans.contains(id) {
                let mut mend = vec![Write::delete(key.clone())];
                mend.push(match stored {
                    Some(Stored { item, .. }) => as_seen(*id, item),
                    None => Write::check(keys::comment(*id), "attribute_not_exists(pk)"),
                });
                found.push((*id, format!("does not belong into the queue {}", key.pk), mend));
            }
        }
        for (id, Stored { comment, item }) in self.comments.iter().filter(|(id, _)| !orphans.contains(id)) {
            for state in queues(comment).filter(|state| !queued.contains(&((*state).to_owned(), *id))) {
                let mend = vec![Write::put(keys::queue(state, *id).item()), as_seen(*id, item)];
                found.push((*id, format!("is missing in the queue {state}"), mend));
            }
        }
        for (id, problem, mend) in found {
            self.find(format_args!("comment {id}"), problem, mend);
        }
    }

    /// Handles and name fragments, both ways.
    fn check_directory(&mut self) {
        let mut stale = std::mem::take(&mut self.directory);
        let mut found = Vec::new();
        for user in self.users.values().filter(|user| !user.name.is_empty()) {
            let still = || {
                let same = Write::check(keys::user(user.id), "n = :name AND av = :avatar");
                same.with(":name", text(user.name.clone())).with(":avatar", text(user.avatar.clone()))
            };
            for ((pk, sk), row) in directory(user).unwrap_or_default() {
                let what = format!("{pk} {sk}");
                if stale.remove(&(pk, sk)).as_ref() != Some(&row) {
                    found.push((what, format!("is not as user {} is", user.id), vec![Write::put(row), still()]));
                }
            }
        }
        for ((pk, sk), _) in stale {
            let key = Key { pk: pk.clone(), sk: sk.clone() };
            let mut mend = vec![Write::delete(key.clone())];
            if let ItemKind::Directory(id) = ItemKind::of(&key) {
                mend.push(match self.users.get(&id) {
                    Some(user) => Write::check(keys::user(id), "n = :name").with(":name", text(user.name.clone())),
                    None => Write::check(keys::user(id), "attribute_not_exists(pk)"),
                });
            }
            found.push((format!("{pk} {sk}"), "finds nobody of that name".to_owned(), mend));
        }
        for (what, problem, mend) in found {
            self.find(what, problem, mend);
        }
    }
}

/// The replies that should lead: as many as do, but the oldest ones.
fn inline(parent: &Comment, replies: Option<&BTreeSet<u64>>) -> BTreeSet<u64> {
    let Some(replies) = replies.filter(|_| parent.is_top_level() && parent.is_approved()) else {
        return BTreeSet::new();
    };
    let count = parent.inline.intersection(replies).count();
    replies.iter().take(count).copied().collect()
}

fn ids(set: &BTreeSet<u64>) -> Option<AttributeValue> {
    (!set.is_empty()).then(|| AttributeValue::Ns(set.iter().map(u64::to_string).collect()))
}

/// An attribute that says nothing may be missing.
fn agree(stored: Option<&AttributeValue>, wanted: Option<&AttributeValue>) -> bool {
    let meaning = |value: Option<&AttributeValue>| match value {
        None | Some(AttributeValue::Bool(false)) => None,
        Some(AttributeValue::N(digits)) => match digits.parse::<u128>() {
            Ok(0) => None,
            Ok(number) => Some(AttributeValue::N(number.to_string())),
            Err(_) => Some(AttributeValue::N(digits.clone())),
        },
        Some(AttributeValue::Ns(numbers)) => {
            let mut numbers = numbers.clone();
            numbers.sort_unstable();
            Some(AttributeValue::Ns(numbers))
        }
        Some(other) => Some(other.clone()),
    };
    meaning(stored) == meaning(wanted)
}

fn told(item: &Item, wrong: &[(&str, Option<AttributeValue>)]) -> String {
    let show = |value: Option<&AttributeValue>| match value {
        None => "unset".to_owned(),
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.clone(),
        Some(AttributeValue::Ns(numbers)) => format!("{{{}}}", numbers.join(", ")),
        Some(AttributeValue::Bool(value)) => value.to_string(),
        Some(other) => format!("{other:?}"),
    };
    let each = wrong
        .iter()
        .map(|(name, wanted)| format!("{name} is {}, should be {}", show(item.get(*name)), show(wanted.as_ref())));
    each.collect::<Vec<_>>().join("; ")
}

/// The comment as it was read, in all that is derived or derived from.
fn seen(item: &Item) -> (String, Vec<(&'static str, AttributeValue)>) {
    let mut values = Vec::new();
    let mut conditions = vec!["attribute_exists(pk)".to_owned()];
    for (name, seen, _) in DERIVED {
        match item.get(name) {
            Some(value) => {
                conditions.push(format!("{name} = {seen}"));
                values.push((seen, value.clone()));
            }
            None => conditions.push(format!("attribute_not_exists({name})")),
        }
    }
    (conditions.join(" AND "), values)
}

fn as_seen(id: CommentId, item: &Item) -> Write {
    let (condition, values) = seen(item);
    values.into_iter().fold(Write::check(keys::comment(id), condition), |write, (name, value)| write.with(name, value))
}

fn corrected(id: CommentId, item: &Item, wrong: &[(&str, Option<AttributeValue>)]) -> Write {
    let (condition, mut values) = seen(item);
    let (mut sets, mut removes) = (Vec::new(), Vec::new());
    for (name, wanted) in wrong {
        let variable = DERIVED.iter().find(|(derived, _, _)| derived == name).map_or("", |(_, _, variable)| variable);
        match wanted {
            Some(AttributeValue::Bool(false)) | None => removes.push(*name),
            Some(value) => {
                sets.push(format!("{name} = {variable}"));
                values.push((variable, value.clone()));
            }
        }
    }
    let write = Write::update(keys::comment(id), super::changes(&sets, &removes)).when(condition);
    values.into_iter().fold(write, |write, (name, value)| write.with(name, value))
}

/// Sets a count, if it still is what was read.
fn recounted(key: Key, name: &str, counted: u64, item: &Item) -> Write {
    let write = Write::update(key, format!("SET {name} = :counted")).with(":counted", number(counted));
    match item.get(name) {
        Some(seen) => write.when(format!("{name} = :seen")).with(":seen", seen.clone()),
        None => write.when(format!("attribute_not_exists({name})")),
    }
}
