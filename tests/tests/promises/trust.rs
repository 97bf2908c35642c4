//! A writer's item stores the latest decision about each of the writer's comments, even under concurrency and faults.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use shared::domain::comment::State;
use shared::domain::ids::{CommentId, UserId, Visitor};
use shared::domain::person::Who;
use shared::domain::time::Clock;
use shared::domain::trust::Trust;
use shared::store::Reading;
use tests::{Actor, Faults, World};

const MODERATORS: u64 = 16;
const COMMENTS: usize = 12;
const TURNS: usize = 12;

struct JudgedWriter {
    actor: Actor,
    written: Vec<u64>,
}

impl JudgedWriter {
    async fn new(actor: Actor) -> Self {
        let mut written = Vec::new();
        for n in 0..COMMENTS {
            written.push(actor.comment("posts/1", &format!("{n} doubtful")).await);
        }
        Self { actor, written }
    }

    /// Deletes every fourth comment while others decide about it.
    async fn delete_some(&self) {
        for id in self.written.iter().step_by(4) {
            while self.actor.remove(*id).await.status == 503 {}
        }
    }
}

/// Erases a member while others decide about the member's comments.
pub(crate) async fn erase(world: &World, id: UserId) {
    let now = world.now();
    let left = loop {
        let clock = Clock::new(move || now);
        if let Ok(receipt) = tests::erase(&world.store(), world.bucket(), clock, Who::User(id), Duration::ZERO).await {
            break receipt.left;
        }
    };
    assert_eq!(left, 0);
}

/// Decides about comments in turn and reverses each decision.
async fn moderate(world: &World, number: u64, comments: &[u64]) {
    let claims = serde_json::json!({ "sub": (100 + number).to_string(), "name": "Mod", "roles": ["moderator"] });
    let moderator = world.claiming(&claims);
    for turn in 0..TURNS {
        let place = turn * 7 + usize::try_from(number).unwrap() * 5;
        let id = comments[place % comments.len()];
        let decisions = if (turn + place).is_multiple_of(2) { ["approve", "reject"] } else { ["reject", "approve"] };
        for decision in decisions {
            let answer = moderator.judge(id, decision).await;
            assert!([200, 404, 503].contains(&answer.status), "{:#}", answer.json);
        }
    }
}

/// Checks a writer's sets of decided comments against the remaining comments. A deleted comment may be in either set.
async fn is_right(world: &World, trust: &Trust, writer: &JudgedWriter) {
    let left: Vec<CommentId> = writer.written.iter().copied().map(CommentId).collect();
    let (mut approved, mut rejected, mut gone) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for id in left {
        let comment = world.store().comment(id, Reading::Consistent).await.unwrap();
        match comment.map(|comment| comment.state) {
            Some(State::Approved) => drop(approved.insert(id.0)),
            Some(State::Rejected) => drop(rejected.insert(id.0)),
            // No moderator has decided about a pending comment.
            Some(State::Pending) => {}
            None => drop(gone.insert(id.0)),
        }
    }
    let without = |set: &BTreeSet<u64>| -> BTreeSet<u64> { set.difference(&gone).copied().collect() };
    assert_eq!((without(trust.approved()), without(trust.rejected())), (approved, rejected));
    assert!(trust.approved().is_disjoint(trust.rejected()), "{trust:?}");
    assert!(gone.len() == COMMENTS.div_ceil(4), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sets_of_a_writer_match_the_latest_decisions_under_faults_and_concurrency() {
    let faults = Faults::new(11);
    let world = crate::faulty(&faults, &[]);
    let writers = [
        JudgedWriter::new(world.user(7, "Ada")).await,
        JudgedWriter::new(world.user(8, "Bob")).await,
        JudgedWriter::new(world.guest().with_key("grace")).await,
    ];
    let erased = JudgedWriter::new(world.user(9, "Eve")).await;
    world.wait_until_idle().await;
    let all: Vec<u64> = writers.iter().chain([&erased]).flat_map(|writer| writer.written.clone()).collect();
    faults.start();
    let moderating = (0..MODERATORS).map(|number| moderate(&world, number, &all));
    let deleting = join_all(writers.iter().map(JudgedWriter::delete_some));
    tokio::join!(join_all(moderating), deleting, erase(&world, UserId(9)));
    faults.stop();
    assert!(faults.made() > 50, "{}", faults.made());
    world.finish_jobs().await;
    let guest = world.store().comment(CommentId(writers[2].written[1]), Reading::Consistent).await.unwrap().unwrap();
    let visitors = [Visitor::from(UserId(7)), Visitor::from(UserId(8)), guest.visitor()];
    let trust = world.store().trust_in_all(visitors.iter().cloned().collect()).await.unwrap();
    for (visitor, writer) in visitors.iter().zip(&writers) {
        is_right(&world, &trust[visitor], writer).await;
    }
    let forgotten = Visitor::from(UserId(9));
    let trust = world.store().trust_in_all([forgotten.clone()].into()).await.unwrap();
    assert_eq!(trust[&forgotten], Trust::default());
    for id in erased.written {
        let comment = world.store().comment(CommentId(id), Reading::Consistent).await.unwrap();
        assert!(comment.is_none(), "{comment:?}");
    }
    assert_eq!(world.findings().await, [""; 0]);
}
