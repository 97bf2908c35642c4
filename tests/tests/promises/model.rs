//! Random sequences of all possible user actions, compared with a simple model of the contract. After every few steps,
//! each person's lists, counts and flags must match the model. They must also match it after an export and an import.
//! `MODEL_CASES` sets the number of sequences.
#![allow(
    clippy::needless_for_each,
    clippy::needless_range_loop,
    clippy::trivially_copy_pass_by_ref,
    reason = "a plain model"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue::S;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config as Settings, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::{Value, json};
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId};
use shared::domain::time::Timestamp;
use shared::store::Reading;
use tests::{Actor, TestResponse, World, ids};
use transfer::store::fixtures::import_fixture;

use crate::moved;

const THREADS: [&str; 2] = ["posts/1", "posts/2"];
const PEOPLE: usize = 6;
const MODERATOR: usize = 2;
/// Creation times of imported comments, in Unix milliseconds: 1970, 2001, the last second of ids that count seconds,
/// the first millisecond of ids that count milliseconds, and 2049.
const TIMES: [i64; 5] = [0, 1_000_000_000_000, 1_770_049_338_000, 1_770_049_338_368, 2_493_169_445_000];
/// The maximum age of comments that a ban rejects. Comments that wait for a decision are rejected at any age.
const WEEK: Duration = Duration::from_hours(7 * 24);
/// The number of steps between comparisons.
const STRIDE: usize = 6;

/// `Import` adds a comment from another time, or a placeholder with a reply, as imports do. `About` is about a known
/// comment.
#[derive(Clone, Debug)]
enum ModelStep {
    Create { who: usize, thread: usize, doubtful: bool },
    Import { what: Imported, to: Option<Index> },
    About(Index, Act),
    Unban { who: usize },
    WaitUntilIdle,
}

/// What is done about a comment. `Erase` deletes it, regardless of its writer. `Ban` bans its writer or the guest's
/// network, and rejects the writer's recent comments if `rejects` is set.
#[derive(Clone, Copy, Debug)]
enum Act {
    Reply { who: usize, doubtful: bool },
    Edit { who: usize, doubtful: bool },
    Delete { who: usize },
    Like { who: usize },
    Report { who: usize },
    Pin { who: usize },
    Unpin { who: usize },
    Approve,
    Reject,
    Dismiss,
    Erase,
    Ban { rejects: bool },
}

#[derive(Clone, Copy, Debug)]
struct Imported {
    /// The index of a person with an account, or `None` for an unknown person.
    writer: Option<usize>,
    /// The thread of a top-level comment.
    thread: usize,
    /// An index into [`TIMES`].
    time: usize,
    likes: u64,
    is_placeholder: bool,
}

fn imported() -> impl Strategy<Value = Imported> {
    let writer = prop::option::of(0..2_usize);
    let rest = (0..THREADS.len(), 0..TIMES.len(), 0..4_u64, prop::bool::weighted(0.3));
    (writer, rest).prop_map(|(writer, (thread, time, likes, is_placeholder))| {
        let writer = writer.filter(|_| !is_placeholder);
        Imported { writer, thread, time, likes, is_placeholder }
    })
}

#[derive(Clone, Debug)]
struct Run {
    require_approval: bool,
    per_page: usize,
    embedded: usize,
    steps: Vec<ModelStep>,
}

fn step() -> impl Strategy<Value = ModelStep> {
    use ModelStep::About;

    let who = || 0..PEOPLE;
    let what = any::<Index>;
    let doubtful = || prop::bool::weighted(0.25);
    prop_oneof![
        4 => (who(), 0..THREADS.len(), doubtful()).prop_map(|(who, thread, doubtful)| ModelStep::Create { who, thread, doubtful }),
        8 => (who(), what(), doubtful()).prop_map(|(who, what, doubtful)| About(what, Act::Reply { who, doubtful })),
        2 => (who(), what(), doubtful()).prop_map(|(who, what, doubtful)| About(what, Act::Edit { who, doubtful })),
        3 => (who(), what()).prop_map(|(who, what)| About(what, Act::Delete { who })),
        4 => (who(), what()).prop_map(|(who, what)| About(what, Act::Like { who })),
        2 => (who(), what()).prop_map(|(who, what)| About(what, Act::Report { who })),
        2 => (prop_oneof![who(), Just(MODERATOR)], what()).prop_map(|(who, what)| About(what, Act::Pin { who })),
        1 => (prop_oneof![who(), Just(MODERATOR)], what()).prop_map(|(who, what)| About(what, Act::Unpin { who })),
        4 => what().prop_map(|what| About(what, Act::Approve)),
        4 => what().prop_map(|what| About(what, Act::Reject)),
        1 => what().prop_map(|what| About(what, Act::Dismiss)),
        4 => (imported(), prop::option::weighted(0.6, what())).prop_map(|(what, to)| ModelStep::Import { what, to }),
        2 => what().prop_map(|what| About(what, Act::Erase)),
        2 => (what(), any::<bool>()).prop_map(|(what, rejects)| About(what, Act::Ban { rejects })),
        2 => who().prop_map(|who| ModelStep::Unban { who }),
        1 => Just(ModelStep::WaitUntilIdle),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    let steps = prop::collection::vec(step(), 1..48);
    (prop::bool::weighted(0.2), 1..5_usize, 0..4_usize, steps)
        .prop_map(|(require_approval, per_page, embedded, steps)| Run { require_approval, per_page, embedded, steps })
}

struct Person {
    actor: Actor,
    name: &'static str,
    is_guest: bool,
    has_key: bool,
    moderator: bool,
}

impl Person {
    /// Whether the person may edit and delete their own comments. A sequence is shorter than the fifteen minutes that a
    /// guest has for this.
    fn owns_comments(&self) -> bool {
        !self.is_guest || self.has_key
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelState {
    Approved,
    Pending,
    Rejected,
}

#[derive(Clone, Debug)]
struct Comment {
    id: u64,
    thread: usize,
    parent: Option<u64>,
    /// `None` for placeholders and unknown people.
    writer: Option<usize>,
    body: String,
    is_placeholder: bool,
    is_imported: bool,
    imported_likes: u64,
    state: ModelState,
    in_review: bool,
    /// Whether the spam check found the text doubtful while the comment was pending.
    suspicious: bool,
    liked: BTreeSet<usize>,
    reported: BTreeSet<usize>,
    /// Whether a report waits for a decision.
    waiting: bool,
}

/// The comments, pins, log and bans that the contract expects.
#[derive(Default)]
struct Model {
    comments: BTreeMap<u64, Comment>,
    pins: BTreeMap<usize, u64>,
    /// All ids, including those of deleted comments.
    known: Vec<u64>,
    /// Imported comments that were deleted.
    tombstones: BTreeSet<u64>,
    bodies: usize,
    /// The moderator's actions, each with its comment.
    log: Vec<(&'static str, Option<u64>)>,
    /// Banned people. A guest's entry contains the banned network and the comment through which the guest was banned.
    banned: BTreeMap<usize, Option<(String, u64)>>,
}

impl Model {
    fn ancestors(&self, comment: &Comment) -> Vec<&Comment> {
        std::iter::successors(comment.parent, |id| self.comments[id].parent).map(|id| &self.comments[&id]).collect()
    }

    /// Returns the path to a comment, from the top-level comment down.
    fn path(&self, comment: &Comment) -> Vec<u64> {
        let mut path: Vec<u64> = self.ancestors(comment).iter().map(|above| above.id).collect();
        path.reverse();
        path.push(comment.id);
        path
    }

    /// Whether this person can read the comment by its id.
    fn sees(&self, people: &[Person], who: usize, id: u64) -> bool {
        self.comments.get(&id).is_some_and(|comment| {
            let is_public = || {
                comment.state == ModelState::Approved && self.ancestors(comment).iter().all(|above| shown(above, who))
            };
            !comment.is_placeholder && (people[who].moderator || comment.writer == Some(who) || is_public())
        })
    }

    /// Whether this person sees the replies to the comment in lists.
    fn lists(&self, people: &[Person], who: usize, id: u64) -> bool {
        self.comments.get(&id).is_some_and(|comment| {
            let in_lists = || shown(comment, who) && self.ancestors(comment).iter().all(|above| shown(above, who));
            people[who].moderator || in_lists()
        })
    }

    /// Turns the comment into a placeholder if it has live replies. Otherwise, removes the comment along with the
    /// placeholders above it that have no other live reply.
    fn delete(&mut self, id: u64) {
        self.unpin(id);
        if self.has_live_reply(id) {
            if let Some(comment) = self.comments.get_mut(&id) {
                let Comment { thread, parent, is_imported, .. } = *comment;
                let place = Comment::new(id, thread, parent, String::new());
                *comment = Comment { is_placeholder: true, is_imported, ..place };
            }
            return;
        }
        let parent = self.comments.get(&id).and_then(|comment| comment.parent);
        self.remove(id);
        if let Some(parent) = parent.filter(|id| self.comments[id].is_placeholder && !self.has_live_reply(*id)) {
            self.delete(parent);
        }
    }

    fn has_live_reply(&self, id: u64) -> bool {
        self.replies(id).any(|reply| reply.state != ModelState::Rejected)
    }

    fn remove(&mut self, id: u64) {
        let below: Vec<u64> = self.replies(id).map(|reply| reply.id).collect();
        below.into_iter().for_each(|reply| self.remove(reply));
        if self.comments.remove(&id).is_some_and(|comment| comment.is_imported) {
            self.tombstones.insert(id);
        }
    }

    fn unpin(&mut self, id: u64) {
        self.pins.retain(|_, pin| *pin != id);
    }

    /// Returns the replies to a comment, oldest first.
    fn replies(&self, id: u64) -> impl Iterator<Item = &Comment> {
        self.comments.values().filter(move |comment| comment.parent == Some(id))
    }

    fn replies_count(&self, id: u64) -> usize {
        self.replies(id).filter(|reply| reply.state == ModelState::Approved).count()
    }

    fn parents(&self, thread: usize, who: usize, sort: &str) -> Vec<u64> {
        let all = self.comments.values().filter(|comment| comment.thread == thread && comment.parent.is_none());
        let mut all: Vec<&Comment> = all.filter(|comment| shown(comment, who)).collect();
        match sort {
            "oldest" => {}
            "newest" => all.reverse(),
            "most_liked" => all.sort_by_key(|comment| std::cmp::Reverse((comment.likes(), comment.id))),
            _ => all.sort_by_key(|comment| std::cmp::Reverse((self.replies_count(comment.id), comment.id))),
        }
        let pin = self.pins.get(&thread);
        all.sort_by_key(|comment| Some(&comment.id) != pin);
        all.into_iter().map(|comment| comment.id).collect()
    }

    /// Returns the fields of a queue item that other responses don't have.
    fn item(&self, id: u64) -> Value {
        let comment = &self.comments[&id];
        json!({
            "parent": comment.parent,
            "held_for": match comment.state {
                ModelState::Pending => Some(if comment.suspicious { "spam" } else { "approval" }),
                _ => comment.in_review.then_some("edit"),
            },
            "reports_count": comment.reported.len(),
            "reports": vec!["spam"; comment.reported.len().min(3)],
        })
    }

    /// Returns the fields of a comment in a response to this person.
    fn resource(&self, people: &[Person], who: usize, id: u64) -> Value {
        let comment = &self.comments[&id];
        // Responses to reads don't reflect the ban of a network.
        let is_banned = !people[who].is_guest && self.banned.contains_key(&who);
        let owner = people[who].owns_comments() && comment.writer == Some(who) && !is_banned;
        let writer = comment.writer.map(|writer| &people[writer]);
        json!({
            "id": id,
            "is_deleted": comment.is_placeholder.then_some(true),
            "body": comment.body,
            "parent_id": comment.parent,
            "is_approved": comment.state == ModelState::Approved,
            "likes_count": comment.likes(),
            "liked": comment.liked.contains(&who),
            "reported": comment.reported.contains(&who),
            "replies_count": self.replies_count(id),
            "can": { "update": owner, "delete": owner, "pin": people[who].moderator && comment.may_be_pinned() },
            "is_guest": writer.is_none_or(|writer| writer.is_guest),
            "is_moderator": writer.is_some_and(|writer| writer.moderator),
            "pinned": self.pins.get(&comment.thread) == Some(&id),
        })
    }
}

impl Comment {
    /// Creates an approved comment by an unknown person.
    fn new(id: u64, thread: usize, parent: Option<u64>, body: String) -> Self {
        Self {
            id,
            thread,
            parent,
            writer: None,
            body,
            is_placeholder: false,
            is_imported: false,
            imported_likes: 0,
            state: ModelState::Approved,
            in_review: false,
            suspicious: false,
            liked: BTreeSet::new(),
            reported: BTreeSet::new(),
            waiting: false,
        }
    }

    fn likes(&self) -> u64 {
        self.imported_likes + self.liked.len() as u64
    }

    fn may_be_pinned(&self) -> bool {
        self.parent.is_none() && !self.is_placeholder
    }
}

/// Returns the log's entries, with consecutive rejections sorted by id, because a job rejects several comments at once.
fn settled(mut log: Vec<(String, Option<u64>)>) -> Vec<(String, Option<u64>)> {
    log.chunk_by_mut(|one, next| one.0 == "reject" && next.0 == "reject").for_each(<[_]>::sort);
    log
}

/// Whether the comment is in the lists of this person.
fn shown(comment: &Comment, who: usize) -> bool {
    comment.state == ModelState::Approved || comment.writer == Some(who)
}

struct Test {
    world: World,
    people: Vec<Person>,
    model: Model,
    per_page: usize,
    embedded: usize,
    require_approval: bool,
}

type Verdict = Result<(), TestCaseError>;

fn expect(answer: TestResponse, status: u16, doing: &str) -> Result<TestResponse, TestCaseError> {
    prop_assert_eq!(answer.status, status, "{}: {:#}", doing, answer.json);
    Ok(answer)
}

impl Test {
    fn new(run: &Run) -> Self {
        let world = crate::world(&[
            ("SVC_REQUIRE_APPROVAL", if run.require_approval { "true" } else { "false" }),
            ("SVC_REPLIES_PER_PARENT", ["0", "1", "2", "3"][run.embedded]),
        ]);
        let person = |actor: Actor, name| Person { actor, name, is_guest: false, has_key: false, moderator: false };
        let people = vec![
            person(world.user(1, "Ada"), "Ada"),
            person(world.user(2, "Bob"), "Bob"),
            Person {
                moderator: true,
                ..person(world.claiming(&json!({ "sub": "9", "name": "Grace", "roles": ["moderator"] })), "Grace")
            },
            Person { is_guest: true, ..person(world.guest(), "Gus") },
            Person { is_guest: true, ..person(world.guest(), "Gina") },
            Person { is_guest: true, has_key: true, ..person(world.guest().with_key("gwen"), "Gwen") },
        ];
        let (per_page, embedded, require_approval) = (run.per_page, run.embedded, run.require_approval);
        Self { world, people, model: Model::default(), per_page, embedded, require_approval }
    }

    /// Runs all steps, and then some of them again in another table with the exported data.
    async fn run(mut self, run: &Run) -> Verdict {
        self.steps(&run.steps).await?;
        self.moved(run).await?.steps(&run.steps[..run.steps.len().min(STRIDE)]).await
    }

    async fn steps(&mut self, steps: &[ModelStep]) -> Verdict {
        for (count, step) in steps.iter().enumerate() {
            self.step(step).await?;
            if (count + 1) % STRIDE == 0 {
                self.compare().await?;
            }
        }
        self.compare().await?;
        self.world.finish_jobs().await;
        self.compare().await?;
        let findings = self.world.findings().await;
        prop_assert!(findings.is_empty(), "{findings:#?}");
        let tombstones = self
            .world
            .items()
            .await
            .into_iter()
            .filter(|item| item["sk"] == S("S".to_owned()) && item.contains_key("dl"));
        let tombstones: BTreeSet<u64> = tombstones.map(|item| item["i"].as_n().unwrap().parse().unwrap()).collect();
        prop_assert_eq!(&tombstones, &self.model.tombstones);
        Ok(())
    }

    /// Moves the people and their comments to another table. The log isn't moved, and moved comments count as imported.
    async fn moved(self, run: &Run) -> Result<Self, TestCaseError> {
        let file = moved::export(&self.world).await;
        let mut other = Self::new(run);
        moved::import(&other.world, &file, self.embedded).await;
        let again = moved::export(&other.world).await;
        prop_assert_eq!(moved::text(&again), moved::text(&file));
        let findings = other.world.findings().await;
        prop_assert!(findings.is_empty(), "{findings:#?}");
        other.model = self.model;
        other.model.log.clear();
        other.model.banned.retain(|_, network| network.is_none());
        other.model.comments.values_mut().for_each(|comment| comment.is_imported = true);
        other.compare().await?;
        Ok(other)
    }

    fn any(&self, index: &Index) -> Option<u64> {
        (!self.model.known.is_empty()).then(|| *index.get(&self.model.known))
    }

    async fn step(&mut self, step: &ModelStep) -> Verdict {
        match step {
            ModelStep::Create { who, thread, doubtful } => self.create(*who, *thread, None, *doubtful).await,
            ModelStep::Import { what, to } => {
                let parent = to.as_ref().and_then(|to| self.any(to)).filter(|id| self.model.comments.contains_key(id));
                self.import(*what, parent).await
            }
            ModelStep::About(what, act) => match self.any(what) {
                None => Ok(()),
                Some(id) => self.act(*act, id).await,
            },
            ModelStep::Unban { who } => self.unban(*who).await,
            ModelStep::WaitUntilIdle => {
                self.world.finish_jobs().await;
                Ok(())
            }
        }
    }

    async fn act(&mut self, act: Act, id: u64) -> Verdict {
        match act {
            Act::Reply { who, doubtful } => {
                let thread = self.model.comments.get(&id).map_or(0, |parent| parent.thread);
                self.create(who, thread, Some(id), doubtful).await
            }
            Act::Edit { who, doubtful } => self.edit(who, id, doubtful).await,
            Act::Delete { who } => self.delete(who, id).await,
            Act::Like { who } => self.like(who, id).await,
            Act::Report { who } => self.report(who, id).await,
            Act::Pin { who } => self.pin(who, id, true).await,
            Act::Unpin { who } => self.pin(who, id, false).await,
            Act::Approve | Act::Reject | Act::Dismiss => self.moderate(act, id).await,
            Act::Erase => self.erase(id).await,
            Act::Ban { rejects } => self.ban(id, rejects).await,
        }
    }

    fn body(&mut self, doubtful: bool) -> String {
        self.model.bodies += 1;
        format!("{}{}", if doubtful { "doubtful " } else { "" }, self.model.bodies)
    }

    async fn create(&mut self, who: usize, thread: usize, parent: Option<u64>, doubtful: bool) -> Verdict {
        let body = self.body(doubtful);
        let answer = self.people[who].actor.write(THREADS[thread], parent, &body).await;
        if self.model.banned.contains_key(&who) {
            return expect(answer, 403, "creating").map(drop);
        }
        if let Some(parent) = parent {
            let above = self.model.comments.get(&parent).map(|parent| {
                let ancestors = self.model.ancestors(parent);
                let is_shown = shown(parent, who) && ancestors.iter().all(|above| shown(above, who));
                (ancestors.len(), is_shown && !parent.is_placeholder)
            });
            if !matches!(above, Some((0..10, true))) {
                return expect(answer, 422, "replying").map(drop);
            }
        }
        let id = expect(answer, 201, "creating")?.id();
        let state = if doubtful || self.require_approval { ModelState::Pending } else { ModelState::Approved };
        self.model.known.push(id);
        let comment =
            Comment { writer: Some(who), state, suspicious: doubtful, ..Comment::new(id, thread, parent, body) };
        self.model.comments.insert(id, comment);
        Ok(())
    }

    async fn import(&mut self, what: Imported, parent: Option<u64>) -> Verdict {
        let depth = parent.map_or(0, |id| self.model.path(&self.model.comments[&id]).len());
        if depth + usize::from(what.is_placeholder) > 10 {
            return Ok(());
        }
        let id = self.import_one(what, parent).await?;
        if what.is_placeholder {
            self.import_one(Imported { is_placeholder: false, ..what }, Some(id)).await?;
        }
        Ok(())
    }

    async fn import_one(&mut self, what: Imported, parent: Option<u64>) -> Result<u64, TestCaseError> {
        let parent = parent.map(|id| self.model.comments[&id].clone());
        let above: Vec<CommentId> = parent.iter().flat_map(|parent| self.model.path(parent)).map(CommentId).collect();
        let likes = if what.is_placeholder { 0 } else { what.likes };
        let body = if what.is_placeholder { String::new() } else { self.body(false) };
        let tie = self.model.known.len() as u64 + 1;
        let id = CommentId::slots(Timestamp(TIMES[what.time]), tie).unwrap().next().unwrap();
        let thread = parent.as_ref().map_or(what.thread, |parent| parent.thread);
        let stored = shared::domain::comment::Comment {
            id,
            ancestors: above,
            user: what.writer.map(|writer| UserId(writer as u64 + 1)),
            name: if what.is_placeholder { String::new() } else { "Imported".to_owned() },
            body: body.clone(),
            is_placeholder: what.is_placeholder,
            source: Some(SourceId(format!("test:{tie}"))),
            likes,
            imported_likes: likes,
            ..shared::domain::comment::Comment::blank(
                ThreadId::new("posts", &THREADS[thread]["posts/".len()..]).unwrap(),
            )
        };
        let store = self.world.store().embedding(self.embedded);
        prop_assert!(import_fixture(&store, &stored).await.unwrap());
        self.model.known.push(id.0);
        let comment = Comment {
            writer: what.writer,
            is_placeholder: what.is_placeholder,
            is_imported: true,
            imported_likes: likes,
            ..Comment::new(id.0, thread, parent.map(|parent| parent.id), body)
        };
        self.model.comments.insert(id.0, comment);
        Ok(id.0)
    }

    async fn erase(&mut self, id: u64) -> Verdict {
        let store = self.world.store().embedding(self.embedded);
        let found = store.comment_with_ancestors(CommentId(id), Reading::Consistent).await.unwrap();
        let comment = self.model.comments.get(&id);
        prop_assert_eq!(found.is_some(), comment.is_some());
        let (Some(found), Some(comment)) = (found, comment) else { return Ok(()) };
        let is_there = !comment.is_placeholder;
        prop_assert_eq!(store.delete(found).await.unwrap(), is_there);
        if is_there {
            self.model.delete(id);
        }
        Ok(())
    }

    /// Returns the expected status of a request that only the comment's writer may make: `done` if it is carried out.
    fn own_status(&self, who: usize, id: u64, done: u16) -> u16 {
        if !self.people[who].owns_comments() {
            401
        } else if self.model.banned.contains_key(&who) {
            403
        } else if !self.model.sees(&self.people, who, id) {
            404
        } else if self.model.comments[&id].writer != Some(who) {
            403
        } else {
            done
        }
    }

    async fn edit(&mut self, who: usize, id: u64, doubtful: bool) -> Verdict {
        let body = self.body(doubtful);
        let answer = self.people[who].actor.edit(id, &body).await;
        let status = self.own_status(who, id, 200);
        expect(answer, status, "editing")?;
        if let (200, Some(comment)) = (status, self.model.comments.get_mut(&id)) {
            comment.body = body;
            let waits = doubtful || (self.require_approval && !self.people[who].moderator);
            comment.in_review |= waits && comment.state == ModelState::Approved;
            comment.suspicious |= doubtful && comment.state == ModelState::Pending;
        }
        Ok(())
    }

    async fn delete(&mut self, who: usize, id: u64) -> Verdict {
        let answer = self.people[who].actor.remove(id).await;
        let status = self.own_status(who, id, 204);
        expect(answer, status, "deleting")?;
        if status == 204 {
            self.model.delete(id);
        }
        Ok(())
    }

    async fn like(&mut self, who: usize, id: u64) -> Verdict {
        let answer = self.people[who].actor.like(id).await;
        if self.model.banned.contains_key(&who) {
            return expect(answer, 403, "liking").map(drop);
        }
        if !self.model.sees(&self.people, who, id) {
            return expect(answer, 404, "liking").map(drop);
        }
        let answer = expect(answer, 200, "liking")?;
        let Some(comment) = self.model.comments.get_mut(&id) else { return Ok(()) };
        let liked = comment.liked.insert(who);
        if !liked {
            comment.liked.remove(&who);
        }
        prop_assert_eq!(answer.json, json!({ "liked": liked, "likes_count": comment.likes() }));
        Ok(())
    }

    async fn report(&mut self, who: usize, id: u64) -> Verdict {
        let answer = self.people[who].actor.report(id, "spam").await;
        if self.model.banned.contains_key(&who) {
            return expect(answer, 403, "reporting").map(drop);
        }
        if !self.model.sees(&self.people, who, id) {
            return expect(answer, 404, "reporting").map(drop);
        }
        let Some(comment) = self.model.comments.get_mut(&id) else { return Ok(()) };
        let first = comment.reported.insert(who);
        comment.waiting |= first;
        expect(answer, if first { 201 } else { 409 }, "reporting").map(drop)
    }

    async fn pin(&mut self, who: usize, id: u64, pin: bool) -> Verdict {
        let actor = &self.people[who].actor;
        let answer = if pin { actor.pin(id).await } else { actor.unpin(id).await };
        let comment = self.model.comments.get(&id);
        let status = match comment {
            _ if self.people[who].is_guest => 401,
            _ if self.model.banned.contains_key(&who) => 403,
            _ if !self.model.sees(&self.people, who, id) => 404,
            _ if !self.people[who].moderator => 403,
            Some(comment) if comment.parent.is_some() || (pin && comment.state != ModelState::Approved) => 422,
            _ => 200,
        };
        expect(answer, status, "pinning")?;
        if let (200, Some(comment)) = (status, comment) {
            let thread = comment.thread;
            if pin != (self.model.pins.get(&thread) == Some(&id)) {
                self.model.log.push((if pin { "pin" } else { "unpin" }, Some(id)));
            }
            self.model.unpin(id);
            if pin {
                self.model.pins.insert(thread, id);
            }
        }
        Ok(())
    }

    async fn ban(&mut self, id: u64, rejects: bool) -> Verdict {
        let body = json!({ "reject_recent": rejects });
        let answer = self.people[MODERATOR].actor.put(&format!("comments/{id}/ban"), body).await;
        let comment = self.model.comments.get(&id).filter(|comment| !comment.is_placeholder);
        let Some(comment) = comment else { return expect(answer, 404, "banning").map(drop) };
        let who = match comment.writer.filter(|_| !comment.is_imported) {
            None => return expect(answer, 422, "banning").map(drop),
            Some(MODERATOR) => return expect(answer, 403, "banning").map(drop),
            Some(who) => who,
        };
        let answer = expect(answer, 200, "banning")?;
        let network = answer.data()["network"].as_str().map(|network| (network.to_owned(), id));
        // Repeating a ban changes nothing, except the end of a network's ban.
        if rejects || network.is_some() || !self.model.banned.contains_key(&who) {
            self.model.log.push(("ban", network.as_ref().map(|_| id)));
        }
        self.model.banned.insert(who, network);
        if rejects {
            self.world.wait_until_idle().await;
            self.reject_recent(who);
        }
        Ok(())
    }

    fn reject_recent(&mut self, who: usize) {
        let (now, is_guest) = (self.world.now(), self.people[who].is_guest);
        let is_recent = |comment: &&Comment| {
            let written = CommentId(comment.id).created_at();
            let waits = comment.state == ModelState::Pending || comment.in_review;
            written <= now && (waits || now.since(written) <= WEEK)
        };
        // Imported guests' comments have no network, so a ban of a network doesn't reject them.
        let of_writer = |comment: &&Comment| comment.writer == Some(who) && !(is_guest && comment.is_imported);
        let comments = self.model.comments.values().filter(of_writer).filter(is_recent);
        let comments = comments.filter(|comment| comment.state != ModelState::Rejected);
        for id in comments.map(|comment| comment.id).collect::<Vec<_>>() {
            self.model.log.push(("reject", Some(id)));
            self.model.unpin(id);
            if let Some(comment) = self.model.comments.get_mut(&id) {
                (comment.state, comment.in_review, comment.waiting) = (ModelState::Rejected, false, false);
            }
        }
    }

    async fn unban(&mut self, who: usize) -> Verdict {
        let Some(network) = self.model.banned.remove(&who) else { return Ok(()) };
        let path = match &network {
            Some((network, _)) => format!("moderation/networks/{network}/ban"),
            None => format!("users/{}/ban", who + 1),
        };
        self.model.log.push(("unban", network.map(|(_, comment)| comment)));
        expect(self.people[MODERATOR].actor.delete(&path).await, 204, "lifting a ban").map(drop)
    }

    async fn moderate(&mut self, act: Act, id: u64) -> Verdict {
        let (path, action, state) = match act {
            Act::Approve => ("approve", "approve", Some(ModelState::Approved)),
            Act::Reject => ("reject", "reject", Some(ModelState::Rejected)),
            _ => ("reports/dismiss", "dismiss", None),
        };
        let answer = self.people[MODERATOR].actor.judge(id, path).await;
        let comment = self.model.comments.get_mut(&id).filter(|comment| !comment.is_placeholder);
        let Some(comment) = comment else { return expect(answer, 404, path).map(drop) };
        let answer = expect(answer, 200, path)?;
        if comment.waiting || state.is_some_and(|state| state != comment.state || comment.in_review) {
            self.model.log.push((action, Some(id)));
        }
        comment.waiting = false;
        if let Some(state) = state {
            prop_assert_eq!(&answer.json["data"]["is_approved"], state == ModelState::Approved);
            comment.state = state;
            comment.in_review = false;
            if state == ModelState::Rejected {
                self.model.unpin(id);
            }
        }
        Ok(())
    }

    async fn compare(&self) -> Verdict {
        for who in 0..PEOPLE {
            for thread in 0..THREADS.len() {
                for sort in ["newest", "oldest", "most_liked", "most_replied"] {
                    let expected = self.model.parents(thread, who, sort);
                    let path = format!("{}/comments?sort={sort}&per_page={}", THREADS[thread], self.per_page);
                    self.pages(who, &path, &expected, true).await?;
                    if matches!(sort, "newest" | "oldest") {
                        self.walk(who, &path, &expected).await?;
                    }
                }
            }
            for id in &self.model.known {
                let path = format!("comments/{id}/replies?per_page={}", self.per_page);
                if self.model.lists(&self.people, who, *id) {
                    let expected = self.model.replies(*id).filter(|reply| shown(reply, who));
                    let expected: Vec<u64> = expected.map(|reply| reply.id).collect();
                    self.pages(who, &path, &expected, false).await?;
                    if who == 0 || !expected.is_empty() {
                        self.walk(who, &path, &expected).await?;
                    }
                } else {
                    expect(self.people[who].actor.get(&path).await, 404, &path)?;
                }
            }
        }
        for state in ["pending", "reported", "rejected"] {
            let queued = |comment: &&Comment| match state {
                "pending" => comment.state == ModelState::Pending || comment.in_review,
                "reported" => comment.waiting,
                _ => comment.state == ModelState::Rejected,
            };
            let expected = self.model.comments.values().rev().filter(queued).map(|comment| comment.id);
            let path = format!("moderation/comments?state={state}&per_page=50");
            let answer = expect(self.people[MODERATOR].actor.get(&path).await, 200, &path)?;
            prop_assert_eq!(answer.ids(), expected.collect::<Vec<_>>(), "{}", path);
            self.items(&answer)?;
        }
        for (who, id) in [(0, 1), (1, 2), (MODERATOR, 9)] {
            let path = format!("users/{id}/comments?per_page=50");
            let answer = expect(self.people[MODERATOR].actor.get(&path).await, 200, &path)?;
            let expected = self.model.comments.values().rev().filter(|comment| comment.writer == Some(who));
            prop_assert_eq!(answer.ids(), expected.map(|comment| comment.id).collect::<Vec<_>>(), "{}", path);
            self.items(&answer)?;
        }
        self.log().await
    }

    /// Compares the additional fields of queue items.
    fn items(&self, answer: &TestResponse) -> Verdict {
        for row in answer.rows() {
            let id = row["id"].as_u64().unwrap_or_default();
            let reasons: Vec<&Value> =
                row["reports"].as_array().into_iter().flatten().map(|report| &report["reason"]).collect();
            let found = json!({
                "parent": row["parent"]["id"],
                "held_for": row["held_for"],
                "reports_count": row["reports_count"],
                "reports": reasons,
            });
            prop_assert_eq!(found, self.model.item(id), "{}", id);
        }
        Ok(())
    }

    async fn log(&self) -> Verdict {
        let pages = self.people[MODERATOR].actor.walk("moderation/log?per_page=50&cursor=").await;
        let rows = pages.iter().flat_map(TestResponse::rows);
        let entry = |row: &Value| (row["action"].as_str().unwrap_or_default().to_owned(), row["comment_id"].as_u64());
        let expected = self.model.log.iter().rev().map(|(action, id)| ((*action).to_owned(), *id));
        prop_assert_eq!(settled(rows.map(entry).collect()), settled(expected.collect()));
        Ok(())
    }

    /// Compares the list page by page, by page number.
    async fn pages(&self, who: usize, path: &str, expected: &[u64], embeds: bool) -> Verdict {
        let pages = expected.len().div_ceil(self.per_page).max(1);
        for page in 1..=pages + 1 {
            let path = format!("{path}&page={page}");
            let answer = expect(self.people[who].actor.get(&path).await, 200, &path)?;
            let here: Vec<u64> =
                expected.iter().copied().skip((page - 1) * self.per_page).take(self.per_page).collect();
            prop_assert_eq!(answer.ids(), here, "{} for {}", &path, &self.people[who].name);
            prop_assert_eq!(&answer.json["meta"]["total"], expected.len(), "{} for {}", &path, &self.people[who].name);
            prop_assert_eq!(&answer.json["meta"]["last_page"], pages, "{}", &path);
            for row in answer.json["data"].as_array().into_iter().flatten() {
                self.resource(who, row, embeds)?;
            }
        }
        Ok(())
    }

    fn resource(&self, who: usize, row: &Value, embeds: bool) -> Verdict {
        let id = row["id"].as_u64().unwrap_or_default();
        let Value::Object(expected) = self.model.resource(&self.people, who, id) else { return Ok(()) };
        for (field, expected) in expected {
            prop_assert_eq!(&row[&field], &expected, "{} of {} for {}", field, id, &self.people[who].name);
        }
        let embedded = self.model.replies(id).filter(|reply| shown(reply, who)).take(self.embedded);
        let embedded = if embeds { embedded.map(|reply| reply.id).collect() } else { Vec::new() };
        let replies = &row["replies"];
        prop_assert_eq!(ids(replies), embedded, "replies of {} for {}", id, &self.people[who].name);
        replies.as_array().into_iter().flatten().try_for_each(|reply| self.resource(who, reply, false))
    }

    /// Walks by cursor to the end and back.
    async fn walk(&self, who: usize, path: &str, expected: &[u64]) -> Verdict {
        let name = &self.people[who].name;
        let mut next = Some(format!("{path}&cursor="));
        let mut walked = Vec::new();
        let mut back = None;
        while let Some(path) = next {
            let answer = expect(self.people[who].actor.get(&path).await, 200, &path)?;
            let here = answer.ids();
            prop_assert!(here.len() <= self.per_page, "{} for {}", path, name);
            prop_assert!(walked.is_empty() || !here.is_empty(), "an empty page at the end of {} for {}", path, name);
            walked.extend(here.iter().copied());
            prop_assert!(walked.len() <= expected.len(), "{} for {}: {:?}", path, name, walked);
            next = answer.next().map(str::to_owned);
            back = Some((answer.prev().map(str::to_owned), here));
        }
        prop_assert_eq!(&walked, expected, "{} for {}", path, name);
        let Some((mut previous, mut whole)) = back else { return Ok(()) };
        while let Some(path) = previous {
            let answer = expect(self.people[who].actor.get(&path).await, 200, &path)?;
            let here = answer.ids();
            prop_assert!(!here.is_empty(), "an empty page at the start of {} for {}", path, name);
            whole.splice(0..0, here);
            prop_assert!(whole.len() <= expected.len(), "{} for {}, back: {:?}", path, name, whole);
            previous = answer.prev().map(str::to_owned);
        }
        prop_assert_eq!(&whole, expected, "{} for {}, back", path, name);
        Ok(())
    }
}

fn holds(run: &Run) -> Verdict {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { Test::new(run).run(run).await })
}

#[test]
fn lists_counts_and_flags_are_what_the_contract_says() {
    let cases = tests::setting("MODEL_CASES").and_then(|cases| cases.parse().ok()).unwrap_or(3);
    let settings = Settings { cases, max_shrink_iters: 400, failure_persistence: None, ..Settings::default() };
    TestRunner::new_with_rng(settings, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&run(), |run| holds(&run))
        .unwrap_or_else(|failure| panic!("{failure}"));
}
