//! Imports that are interrupted at each call to the table, and operations after them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use shared::domain::ids::UserId;
use shared::domain::rejection::Grounds;
use shared::domain::time::Timestamp as Millis;
use shared::store::log::By;
use shared::store::moderation::Verdict;

use super::*;
use crate::store::import::lease_import;

/// Simulates the end of a process at one of its calls to the table: that call and all later ones fail.
#[derive(Clone, Debug)]
pub(super) struct Kill {
    /// Remaining calls.
    left: Arc<AtomicUsize>,
    /// Whether the last call takes effect, although its response is lost.
    is_carried_out: bool,
}

impl Kill {
    fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn count(&self) -> Result<(), BoxError> {
        let less = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        less.map(drop).map_err(|_| "killed".into())
    }
}

impl Intercept for Kill {
    fn name(&self) -> &'static str {
        "Kill"
    }

    fn modify_before_transmit(
        &self,
        _: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.is_carried_out && !self.is_over() { Ok(()) } else { self.count() }
    }

    fn modify_before_deserialization(
        &self,
        _: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.is_carried_out { self.count() } else { Ok(()) }
    }
}

/// Approved, pending, rejected and deleted comments at three depths, on two pages.
fn small_dump() -> Vec<Comment> {
    dump().into_iter().take(10).collect()
}

/// A dump with so many comments at one level that writing them takes several requests.
fn larger_dump() -> Vec<Comment> {
    let mut comments = small_dump();
    comments.extend((40..70).map(|id| reply(&id.to_string(), "2")));
    comments
}

/// Imports into a table until killed. False if the import completed first.
async fn is_killed(engine: &Engine, kill: &Kill, comments: &[Comment]) -> bool {
    let healthy = store_of(engine.client_builder());
    let mut staging = staging(&healthy, comments).await;
    let store = store_of(engine.client_builder().interceptor(kill.clone()));
    importer(&store, &mut staging, &Users::default()).run(&mut |_| ()).await.is_err()
}

/// Kills an import of `comments` at each of its calls, into a table that `prepare` has filled, and runs a check after
/// each.
async fn killed_at_each_call<P: Future, C: Future>(
    kill: impl Fn(usize) -> Kill,
    comments: &[Comment],
    prepare: impl Fn(Store) -> P,
    check: impl Fn(Store, usize) -> C,
) {
    for calls in 0.. {
        let engine = engine();
        let store = || store_of(engine.client_builder());
        prepare(store()).await;
        if !is_killed(&engine, &kill(calls), comments).await {
            assert!(calls > 20, "{calls}");
            return;
        }
        check(store(), calls).await;
    }
}

fn unanswered(calls: usize) -> Kill {
    Kill { left: Arc::new(AtomicUsize::new(calls)), is_carried_out: true }
}

pub(super) fn unsent(calls: usize) -> Kill {
    Kill { is_carried_out: false, ..unanswered(calls) }
}

/// The comments of the small dump that visitors could reach, replies before their parents.
async fn reachable(store: &Store) -> Vec<Stored> {
    let staging = staging(store, &small_dump()).await;
    let mut found = Vec::new();
    for placed in ["posts/a", "posts/b"].iter().flat_map(|target| placed(&staging, target)) {
        found.extend(
            store.comment_with_ancestors(placed.id, Reading::Consistent).await.unwrap().map(|found| found.comment),
        );
    }
    found.sort_by_key(|comment| std::cmp::Reverse(comment.ancestors.len()));
    found
}

async fn reject(store: &Store, comment: Stored) {
    let clock = Clock::system();
    let ids = IdSource::new(clock.clone(), Random::system());
    let by = By { id: UserId(1), name: "Mod", ids: &ids, clock: &clock };
    store.decide(comment, &Verdict::Reject(Grounds::default()), None, by).await.unwrap();
}

async fn parents(store: &Store) -> u64 {
    store.thread(&thread("a"), Reading::Consistent).await.unwrap().parents
}

async fn is_in_order(store: &Store, calls: usize) {
    assert_eq!(findings(store).await, [""; 0], "killed after {calls} calls");
}

async fn finishes(store: Store, comments: Vec<Comment>, calls: usize) {
    let report = import(&store, &comments).await;
    assert_eq!(report.new + report.already_there, comments.len() as u64, "killed after {calls} calls");
    is_in_order(&store, calls).await;
    assert_eq!(import(&store, &comments).await.new, 0);
}

#[tokio::test]
async fn an_import_killed_at_any_call_is_finished_by_running_it_again() {
    let check = |store, calls| finishes(store, larger_dump(), calls);
    killed_at_each_call(unsent, &larger_dump(), |_| async {}, check).await;
}

#[tokio::test]
async fn an_import_whose_last_response_was_lost_is_finished_by_running_it_again() {
    let check = |store, calls| finishes(store, small_dump(), calls);
    killed_at_each_call(unanswered, &small_dump(), |_| async {}, check).await;
}

#[tokio::test]
async fn an_import_killed_next_to_a_live_thread_is_finished_by_running_it_again() {
    let prepare = |store: Store| async move { write_live(&store, None).await };
    let check = |store, calls| finishes(store, small_dump(), calls);
    killed_at_each_call(unanswered, &small_dump(), prepare, check).await;
}

#[tokio::test]
async fn a_repair_before_a_killed_import_continues_keeps_out_no_comments() {
    let prepare = |store: Store| async move { write_live(&store, None).await };
    let check = async |store: Store, calls: usize| {
        for finding in recount::check(&store, Clock::system().now()).await.unwrap() {
            recount::repair(&store, &finding).await.unwrap();
        }
        finishes(store, small_dump(), calls).await;
    };
    killed_at_each_call(unsent, &small_dump(), prepare, check).await;
}

#[tokio::test]
async fn comments_deleted_before_a_killed_import_continues_stay_deleted_and_are_not_counted() {
    let check = async |store: Store, calls: usize| {
        let reached = reachable(&store).await;
        for comment in reached.iter().filter(|comment| !comment.is_placeholder) {
            delete(&store, comment).await;
        }
        // The placeholders were deleted with their replies.
        let deleted = (reached.len() - reachable(&store).await.len()) as u64;
        // The thread is readable, although deleted comments hadn't been counted in it.
        assert!(parents(&store).await <= 1);
        let report = import(&store, &small_dump()).await;
        assert_eq!(report.skipped.get("deleted").copied().unwrap_or_default(), deleted, "killed after {calls} calls");
        is_in_order(&store, calls).await;
    };
    killed_at_each_call(unsent, &small_dump(), |_| async {}, check).await;
}

#[tokio::test]
async fn comments_rejected_before_a_killed_import_continues_stay_rejected_with_correct_counts() {
    let check = async |store: Store, calls: usize| {
        let top = |comment: &&Stored| comment.is_top_level() && comment.imported_likes == 5;
        let reached = reachable(&store).await;
        let Some(comment) = reached.iter().find(top) else { return };
        reject(&store, comment.clone()).await;
        // Counts the replies again, as a job would.
        for comment in reached.iter().filter(|comment| comment.thread == thread("a")) {
            store.recount_comment(&comment.thread, comment.id, RecountTrigger::Walk).await.unwrap();
        }
        // The thread is readable, although the comment hasn't been counted in it.
        assert!(parents(&store).await <= 1);
        import(&store, &small_dump()).await;
        is_in_order(&store, calls).await;
        assert_eq!(parents(&store).await, 1, "the placeholder");
    };
    killed_at_each_call(unsent, &small_dump(), |_| async {}, check).await;
}

#[tokio::test]
async fn importing_another_file_after_a_killed_import_leaves_the_table_consistent() {
    // The second file lacks some parents and replies of the first file, and has others.
    let is_in_both = |comment: &Comment| !["1", "8"].contains(&comment.source_id.as_str());
    let mut other: Vec<Comment> = small_dump().into_iter().filter(is_in_both).collect();
    other.extend([comment("100"), reply("101", "2"), Comment { state: RecordState::Pending, ..reply("102", "100") }]);
    let check = async |store: Store, calls: usize| {
        for comments in [&other, &small_dump()] {
            let report = import(&store, comments).await;
            let skipped: u64 = report.skipped.values().sum();
            let all = report.new + report.already_there + skipped;
            assert_eq!(all, comments.len() as u64, "killed after {calls} calls");
            is_in_order(&store, calls).await;
        }
    };
    killed_at_each_call(unsent, &small_dump(), |_| async {}, check).await;
}

#[tokio::test]
async fn one_import_runs_at_a_time() {
    let store = store();
    let other = async || lease(&store, "other").hold(async { Ok::<_, LeaseError>(()) }).await;
    let during = lease(&store, "one").hold(async { Ok::<_, LeaseError>(other().await) }).await.unwrap();
    assert!(matches!(during, Err(LeaseError::Taken)));
    other().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_does_not_end_an_import() {
    use std::time::Duration;

    for (outage, survives) in [(20, true), (300, false)] {
        let table = unsent(usize::MAX);
        let store = store_of(engine().client_builder().interceptor(table.clone()));
        let fails = |fails| table.left.store(if fails { 0 } else { usize::MAX }, Ordering::Relaxed);
        let work = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            fails(true);
            tokio::time::sleep(Duration::from_secs(outage)).await;
            fails(false);
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok::<_, LeaseError>(())
        };
        let start = tokio::time::Instant::now();
        let held = lease(&store, "one").hold(work).await;
        assert_eq!(held.is_ok(), survives, "{outage} seconds: {held:?}");
        let ended = start.elapsed() < Duration::from_mins(1);
        assert!(survives || (ended && matches!(held, Err(LeaseError::Table(_)))), "{held:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_table_is_reported_at_once() {
    let store = store_of(engine().client_builder().interceptor(unsent(0)));
    let patient = Lease { patience: std::time::Duration::from_secs(65), ..lease(&store, "one") };
    let start = tokio::time::Instant::now();
    let held = patient.hold(async { Ok::<_, LeaseError>(()) }).await;
    assert!(matches!(held, Err(LeaseError::Table(_))), "{held:?}");
    assert!(start.elapsed() < std::time::Duration::from_mins(1), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_an_import_waits_for_the_rate_limit() {
    let store = store();
    let mut staging = staging(&store, &dump()).await;
    let users = Users::default();
    let start = tokio::time::Instant::now();
    let now = move || Millis(i64::try_from(start.elapsed().as_millis()).unwrap());
    let lease = Lease { clock: Clock::new(now), ..lease(&store, "one") };
    let table = WriteLimits { rate: Some(1), ..WriteLimits::default() };
    let mut slow = Importer { table, ..importer(&store, &mut staging, &users) };
    let other = async {
        let mut refused = 0;
        while !lease_import(&store, "other", now()).await.unwrap() {
            refused += 1;
            tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        }
        refused
    };
    let mut quiet = |_: write::Progress<'_>| ();
    let work = async { Ok::<_, LeaseError>(slow.run(&mut quiet).await.unwrap()) };
    let (units, refused) = tokio::join!(lease.hold(work), async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        other.await
    });
    let seconds = units.unwrap();
    assert!(f64::from(refused) * 10.0 > seconds - 20.0, "{refused} for {seconds} seconds");
}
