//! Imports into a table. A recount then checks that the table is consistent.

mod exported;
mod samples;
mod sites;
mod unfinished;

use std::time::Duration;

use aws_sdk_dynamodb::config::Builder;
use jiff::Timestamp;
use proptest::prelude::*;
use server::engine::Engine;
use server::template::Template;
use shared::domain::comment::Comment as Stored;
use shared::domain::ids::{CommentId, IdSource, Random, ThreadId, UserId};
use shared::domain::job::{CleanUp, Job};
use shared::domain::time::Clock;
use shared::store::comments::NewComment;
use shared::store::counts::RecountTrigger;
use shared::store::queue::QueueState;
use shared::store::{Reading, Store, client};
use tokio::time::Instant;

use super::record::{Author, Comment, Record, RecordState, Thread};
use super::staging::{Placed, Staging};
use super::write::{Importer, WriteLimits};
use super::*;
use crate::lease::{Lease, LeaseError};
use crate::store::fixtures::import_fixture;
use crate::store::import::{WriteMode, begin_import, describe_thread, forget_imports};
use crate::store::recount;

const TABLE: &str = "comments";
pub(super) const EMBEDDED: usize = 3;

fn engine() -> Engine {
    let engine = Engine::memory().unwrap();
    engine.create_table(TABLE, &Template::deployed(&[]).unwrap().table().unwrap()).unwrap();
    engine
}

fn store_of(client: Builder) -> Store {
    Store::new(client::build(client), TABLE.to_owned(), Random::system()).embedding(EMBEDDED)
}

pub(super) fn store() -> Store {
    store_of(engine().client_builder())
}

/// Deletes a comment, and does the follow-up work.
async fn delete(store: &Store, comment: &Stored) {
    let found = store.comment_with_ancestors(comment.id, Reading::Consistent).await.unwrap().unwrap();
    let path: Vec<CommentId> = found.ancestors.iter().map(|above| above.id).chain([comment.id]).collect();
    assert!(store.delete(found).await.unwrap());
    for id in path {
        if store.comment(id, Reading::Consistent).await.unwrap().is_none() {
            let now = Clock::system().now();
            let job = Job::CleanUp(CleanUp { comment: id, replies: 0, deleted_at: now });
            assert!(store.run_job(job, now, Instant::now() + Duration::from_mins(1)).await.unwrap().is_none());
        }
    }
    store.recount_comment(&comment.thread, comment.id, RecountTrigger::Event).await.unwrap();
}

/// A top-level comment on `/a`.
pub(super) fn comment(id: &str) -> Comment {
    Comment {
        source_id: id.to_owned(),
        thread: "/a".to_owned(),
        created_at: Timestamp::from_second(1_600_000_000).ok(),
        author: Author { name: "Ada".to_owned(), ..Author::default() },
        body: format!("body of {id}"),
        ..Comment::default()
    }
}

pub(super) fn reply(id: &str, parent: &str) -> Comment {
    Comment { parent: Some(parent.to_owned()), ..comment(id) }
}

async fn staging(store: &Store, comments: &[Comment]) -> Staging {
    staging_of(store, "test", &[comments]).await
}

async fn staging_of(store: &Store, prefix: &str, files: &[&[Comment]]) -> Staging {
    let mut staging = Staging::default();
    for key in ["/a", "/b"] {
        // Imports drop the credentials in this URL.
        let url = Some(format!("https://ada:secret@blog.example{key}"));
        let title = Some(format!("Page\n{key}\u{202e}"));
        staging.add(Record::Thread(Thread { key: key.to_owned(), url, title, ..Thread::default() }));
    }
    for comments in files {
        staging.file += 1;
        for comment in *comments {
            staging.add(Record::Comment(Box::new(comment.clone())));
        }
    }
    staging.resolve(&ThreadKeys { kind: "posts".to_owned(), ..ThreadKeys::default() }, false);
    staging.locate(Some(store), prefix).await.unwrap();
    staging
}

pub(super) fn importer<'a>(store: &'a Store, staging: &'a mut Staging, users: &'a Users) -> Importer<'a> {
    Importer {
        staging,
        store,
        users,
        prefix: "test",
        clock: Clock::system(),
        table: WriteLimits::default(),
        other_salt: None,
    }
}

fn lease<'a>(store: &'a Store, holder: &str) -> Lease<'a> {
    Lease { store, clock: Clock::system(), holder: holder.to_owned(), patience: std::time::Duration::ZERO }
}

async fn import(store: &Store, comments: &[Comment]) -> Report {
    import_of(store, "test", &[comments]).await
}

async fn import_of(store: &Store, prefix: &str, files: &[&[Comment]]) -> Report {
    let mut staging = staging_of(store, prefix, files).await;
    let users = Users::default();
    Importer { prefix, ..importer(store, &mut staging, &users) }.run(&mut |_| ()).await.unwrap();
    staging.report()
}

pub(super) async fn findings(store: &Store) -> Vec<String> {
    recount::check(store, Clock::system().now()).await.unwrap().iter().map(ToString::to_string).collect()
}

/// The stored comment of the thread `/a` with this id in the source.
async fn find(store: &Store, comments: &[Comment], id: &str) -> Option<Stored> {
    let staging = staging(store, comments).await;
    let placed = placed(&staging, "posts/a");
    let id = placed.iter().find(|placed| placed.tag == id)?.id;
    Some(store.comment_with_ancestors(id, Reading::Consistent).await.unwrap()?.comment)
}

fn placed(staging: &Staging, target: &str) -> Vec<Placed> {
    let Some(target) = staging.threads.all.iter().find(|known| known.name == target) else { return Vec::new() };
    let all = staging.batches(target).into_iter().flatten();
    all.filter_map(|index| staging.placed(index, &Users::default())).collect()
}

fn thread(record: &str) -> ThreadId {
    ThreadId::new("posts", record).unwrap()
}

/// A comment that a visitor writes after the import.
async fn write_live(store: &Store, parent: Option<CommentId>) -> CommentId {
    let ids = IdSource::new(Clock::system(), Random::system());
    let parent = match parent {
        Some(parent) => {
            store.comment_with_ancestors(parent, Reading::Consistent).await.unwrap().map(|found| found.comment)
        }
        None => None,
    };
    let ancestors = parent.iter().flat_map(|parent| parent.ancestors.iter().copied().chain([parent.id]));
    let user = Some(shared::domain::ids::UserId(7));
    let draft = Stored {
        ancestors: ancestors.collect(),
        user,
        name: "Ada".into(),
        body: "live".into(),
        ..Stored::blank(thread("a"))
    };
    let (_, visitor_state) = store.thread_and_visitor_state(&draft.thread, &draft.visitor().into()).await.unwrap();
    let new = NewComment { draft, parent, visitor_state: &visitor_state, idempotency: None };
    let created = store.create(&ids, new).await.unwrap();
    let shared::store::comments::Created::Done(comment) = created else { panic!("{created:?}") };
    // Counts the comment, as the stream's events would.
    store.recount_comment(&comment.thread, comment.id, shared::store::counts::RecountTrigger::Event).await.unwrap();
    comment.id
}

fn dump() -> Vec<Comment> {
    let mut comments = vec![
        Comment { likes: 5, pinned: true, ..comment("1") },
        reply("2", "1"),
        reply("3", "2"),
        Comment { state: RecordState::Pending, ..comment("4") },
        Comment { state: RecordState::Rejected, ..reply("5", "1") },
        Comment { state: RecordState::Deleted, ..comment("6") },
        Comment { state: RecordState::Pending, ..reply("7", "6") },
        reply("8", "6"),
        Comment { thread: "/b".to_owned(), ..comment("9") },
        reply("10", "4"),
    ];
    comments.extend((11..20).map(|id| reply(&id.to_string(), "1")));
    comments
}

#[tokio::test]
async fn an_import_leaves_the_table_in_order_and_a_second_one_adds_nothing() {
    let store = store();
    let first = import(&store, &dump()).await;
    assert_eq!((first.read, first.new, first.already_there), (19, 19, 0));
    assert_eq!(findings(&store).await, [""; 0]);
    let second = import(&store, &dump()).await;
    assert_eq!((second.read, second.new, second.already_there), (19, 0, 19));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn comments_keep_their_times_likes_writers_and_places() {
    let store = store();
    import(&store, &dump()).await;
    let parent = find(&store, &dump(), "1").await.unwrap();
    assert_eq!(parent.id.created_at().0, 1_600_000_000_000);
    assert_eq!((parent.likes, parent.imported_likes, parent.replies), (5, 5, 10));
    assert_eq!((parent.inline.len(), parent.has_separate), (EMBEDDED, true));
    assert_eq!((parent.user, parent.name.as_str()), (None, "Ada"));
    assert_eq!(parent.source.unwrap().0, "test:1");
    let reply = find(&store, &dump(), "3").await.unwrap();
    assert_eq!(reply.ancestors, [parent.id, find(&store, &dump(), "2").await.unwrap().id]);
    let placeholder = find(&store, &dump(), "6").await.unwrap();
    assert!(placeholder.is_placeholder && placeholder.body.is_empty());
    let stored = store.thread(&thread("a"), Reading::Consistent).await.unwrap();
    assert_eq!((stored.parents, stored.pin.unwrap().comment), (2, parent.id));
    assert_eq!((stored.title.as_deref(), stored.url.as_deref()), (Some("Page /a"), Some("https://blog.example/a")));
}

#[tokio::test]
async fn times_before_and_after_the_id_format_changed_are_kept_to_the_second() {
    let store = store();
    let at = |id: &str, time: &str| Comment { created_at: time.parse().ok(), ..comment(id) };
    let times = ["1999-12-31T23:59:59Z", "2026-02-02T16:22:18Z", "2026-02-02T16:22:19Z", "2026-02-03T00:00:00Z"];
    let comments: Vec<_> = times.iter().enumerate().map(|(id, time)| at(&id.to_string(), time)).collect();
    import(&store, &comments).await;
    for (id, time) in times.iter().enumerate() {
        let stored = find(&store, &comments, &id.to_string()).await.unwrap();
        assert_eq!(stored.id.created_at().seconds(), time.parse::<Timestamp>().unwrap().as_second(), "{time}");
    }
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_comment_that_was_deleted_after_its_import_does_not_come_back() {
    let store = store();
    import(&store, &dump()).await;
    let gone = find(&store, &dump(), "9").await;
    assert!(gone.is_none(), "it is on the other page");
    let deleted = find(&store, &dump(), "3").await.unwrap();
    delete(&store, &deleted).await;
    let again = import(&store, &[dump(), vec![reply("30", "3")]].concat()).await;
    assert_eq!((again.new, again.already_there), (0, 18));
    assert_eq!(again.skipped, [("deleted".to_owned(), 2)].into(), "what is below it does not come back either");
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_longer_dump_is_imported_into_threads_with_visitors_comments() {
    let store = store();
    import(&store, &dump()).await;
    let parent = find(&store, &dump(), "1").await.unwrap();
    write_live(&store, Some(parent.id)).await;
    write_live(&store, None).await;
    let more = [
        reply("31", "1"),
        reply("32", "31"),
        Comment { state: RecordState::Rejected, ..comment("33") },
        Comment { state: RecordState::Deleted, ..reply("34", "1") },
        reply("35", "34"),
        Comment { state: RecordState::Pending, ..reply("36", "34") },
    ];
    let report = import(&store, &[dump(), more.to_vec()].concat()).await;
    assert_eq!((report.new, report.already_there), (6, 19));
    assert_eq!(findings(&store).await, [""; 0]);
    let after = find(&store, &dump(), "1").await.unwrap();
    assert_eq!(after.replies, parent.replies + 3);
    assert_eq!(store.thread(&thread("a"), Reading::Consistent).await.unwrap().parents, 3);
}

#[tokio::test]
async fn a_comment_of_a_kilobyte_costs_four_to_seven_write_units() {
    let body = "a quiet morning ".repeat(20);
    let parents = (0..100).map(|id| Comment { body: body.clone(), ..comment(&id.to_string()) });
    let replies =
        (100..300).map(|id| Comment { body: body.clone(), ..reply(&id.to_string(), &(id % 100).to_string()) });
    for (comments, expected) in [(parents.clone().collect::<Vec<_>>(), 7.0), (parents.chain(replies).collect(), 5.7)] {
        let store = store();
        let mut staging = staging(&store, &comments).await;
        let users = Users::default();
        let units = importer(&store, &mut staging, &users).run(&mut |_| ()).await.unwrap();
        let each = units / f64::from(u32::try_from(comments.len()).unwrap());
        assert!(each > 4.0 && each <= expected, "{each}");
    }
}

#[tokio::test]
async fn a_thread_described_only_by_the_host_counts_as_empty_and_keeps_its_title() {
    let store = store();
    let described = shared::domain::thread::Thread { title: Some("Told".to_owned()), ..Default::default() };
    describe_thread(&store, &thread("a"), &described).await.unwrap();
    assert_eq!(begin_import(&store, &thread("a"), "").await.unwrap(), WriteMode::InBatches);
    forget_imports(&store, &[thread("a")]).await.unwrap();
    import(&store, &dump()).await;
    let stored = store.thread(&thread("a"), Reading::Consistent).await.unwrap();
    assert_eq!((stored.title.as_deref(), stored.parents), (Some("Told"), 2));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn comments_of_one_second_all_have_different_ids() {
    let store = store();
    // Numeric ids with the same low bits, and ids that aren't numbers.
    let ids = ["1", "65537", "131073", "a", "b", "c"];
    let comments: Vec<_> = ids.iter().map(|id| comment(id)).collect();
    assert_eq!(import(&store, &comments).await.new, 6);
    assert_eq!(import(&store, &comments).await.already_there, 6);
    assert_eq!(findings(&store).await, [""; 0]);
}

/// A visitor's comment appears between the search for a free id and the write.
#[tokio::test]
async fn a_comment_whose_id_is_taken_during_the_import_gets_another_and_keeps_its_replies() {
    let store = store();
    write_live(&store, None).await;
    let comments = [comment("1"), reply("2", "1"), reply("3", "2")];
    let mut staging = staging(&store, &comments).await;
    let users = Users::default();
    let taken = placed(&staging, "posts/a")[0].id;
    let stranger = Stored { id: taken, body: "a stranger's".into(), ..Stored::blank(thread("a")) };
    assert!(import_fixture(&store, &stranger).await.unwrap());
    importer(&store, &mut staging, &users).write(&mut |_| ()).await.unwrap();
    let ids: Vec<CommentId> = placed(&staging, "posts/a").iter().map(|placed| placed.id).collect();
    let stored = store.comment_with_ancestors(ids[0], Reading::Consistent).await.unwrap().unwrap().comment;
    assert_eq!((stored.source.unwrap().0.as_str(), stored.replies), ("test:1", 1));
    let deepest = store.comment_with_ancestors(ids[2], Reading::Consistent).await.unwrap().unwrap().comment;
    assert_eq!((deepest.source.unwrap().0.as_str(), deepest.ancestors.as_slice()), ("test:3", &ids[..2]));
    let stranger = store.comment_with_ancestors(taken, Reading::Consistent).await.unwrap().unwrap().comment;
    assert_eq!((stranger.body.as_str(), stranger.replies), ("a stranger's", 0));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn replies_follow_a_comment_that_was_imported_into_another_thread() {
    let store = store();
    import(&store, &[comment("1")]).await;
    let mut staging = Staging::default();
    for comment in [comment("1"), reply("2", "1")] {
        staging.add(Record::Comment(Box::new(comment)));
    }
    let map = Map::parse("/a posts/b").unwrap();
    staging.resolve(&ThreadKeys { map, ..ThreadKeys::default() }, false);
    importer(&store, &mut staging, &Users::default()).run(&mut |_| ()).await.unwrap();
    let report = staging.report();
    assert_eq!((report.new, report.already_there), (1, 1));
    assert_eq!(report.threads, [("posts/a".to_owned(), 2)].into());
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn authors_with_an_account_at_the_host_become_users() {
    let store = store();
    let author = |email: &str| Author { name: "A".to_owned(), email: email.to_owned(), ..Author::default() };
    let comments = [
        Comment { author: author("ada@blog.example"), ..comment("1") },
        Comment { author: author("eve@blog.example"), state: RecordState::Pending, ..comment("2") },
        Comment { author: author("ada@blog.example"), state: RecordState::Pending, ..reply("3", "1") },
    ];
    let mut staging = staging(&store, &comments).await;
    let users = Users::parse("ada@blog.example 7").unwrap();
    importer(&store, &mut staging, &users).run(&mut |_| ()).await.unwrap();
    for (id, expected) in [("1", Some(7)), ("2", None), ("3", Some(7))] {
        let stored = find(&store, &comments, id).await.unwrap();
        assert_eq!(stored.user.map(|user| user.0), expected, "{id}");
    }
    assert_eq!(findings(&store).await, [""; 0]);
}

/// Comments on two pages, in most states. A parent may be missing, newer, on the other page, or the comment itself.
fn dumps() -> impl Strategy<Value = Vec<Comment>> {
    let states = prop::sample::select(vec![
        RecordState::Approved,
        RecordState::Approved,
        RecordState::Approved,
        RecordState::Pending,
        RecordState::Rejected,
        RecordState::Deleted,
        RecordState::Spam,
    ]);
    let parts = (prop::option::weighted(0.8, 0..25_usize), states, 0..3_i64, any::<bool>(), 0..4_u64);
    prop::collection::vec(parts, 1..25).prop_map(|parts| {
        let comments = parts.into_iter().enumerate().map(|(id, (parent, state, second, elsewhere, likes))| Comment {
            parent: parent.map(|parent| parent.to_string()),
            state,
            created_at: Timestamp::from_second(1_600_000_000 + second).ok(),
            thread: if elsewhere && id % 5 == 0 { "/b" } else { "/a" }.to_owned(),
            likes,
            pinned: likes == 3,
            ..comment(&id.to_string())
        });
        comments.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Imports a part first, and then everything.
    #[test]
    fn any_dump_leaves_the_table_in_order(comments in dumps(), first in 0..25_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store();
            import(&store, &comments[..first.min(comments.len())]).await;
            prop_assert_eq!(findings(&store).await, [""; 0]);
            import(&store, &comments).await;
            prop_assert_eq!(findings(&store).await, [""; 0]);
            let again = import(&store, &comments).await;
            prop_assert_eq!(again.new, 0);
            Ok(())
        })?;
    }
}

fn at(id: &str, seconds: i64) -> Comment {
    Comment { created_at: Timestamp::from_second(seconds).ok(), ..comment(id) }
}

#[tokio::test]
async fn a_thread_opens_at_the_time_of_its_oldest_imported_approved_comment() {
    let store = store();
    let opened_at =
        async || store.thread(&thread("a"), Reading::Consistent).await.unwrap().opened_at.unwrap().seconds();
    write_live(&store, None).await;
    let begun = opened_at().await;
    let pending = Comment { state: RecordState::Pending, ..at("1", 1_000_000_000) };
    import(&store, std::slice::from_ref(&pending)).await;
    assert_eq!(opened_at().await, begun);
    let dump = [pending, at("2", 1_500_000_000), at("3", 1_400_000_000), at("4", 1_600_000_000)];
    import(&store, &dump).await;
    assert_eq!(opened_at().await, 1_400_000_000);
    import(&store, &[&dump[..], &[at("5", 1_450_000_000)]].concat()).await;
    assert_eq!(opened_at().await, 1_400_000_000);
    // This comment's thread has no other comments.
    let first = Comment { thread: "/b".to_owned(), ..at("6", 1_600_000_000) };
    import(&store, std::slice::from_ref(&first)).await;
    let stored = store.thread(&thread("b"), Reading::Consistent).await.unwrap();
    assert_eq!(stored.opened_at.unwrap().seconds(), 1_600_000_000);
}

#[tokio::test]
async fn imported_comments_of_the_last_thirty_days_are_in_the_queue_of_new_comments() {
    let store = store();
    let now = Clock::system().now();
    let days = |days: i64| now.seconds() - days * 24 * 3_600;
    let dump = [
        at("1", days(31)),
        at("2", days(20)),
        Comment { state: RecordState::Pending, ..at("3", days(10)) },
        Comment { state: RecordState::Rejected, ..at("4", days(5)) },
        Comment { state: RecordState::Deleted, ..at("5", days(4)) },
        Comment { parent: Some("5".to_owned()), ..at("6", days(3)) },
        at("7", days(2)),
    ];
    let listed = async || {
        let (page, _) = store.queue(QueueState::All, None, 50, now).await.unwrap();
        page.into_iter().map(|found| found.comment.body).collect::<Vec<_>>()
    };
    let bodies = |ids: &[&str]| ids.iter().map(|id| format!("body of {id}")).collect::<Vec<_>>();
    // The first import writes in batches, and the second writes comments one by one.
    import(&store, &dump[..6]).await;
    assert_eq!(listed().await, bodies(&["6", "4", "3", "2"]));
    import(&store, &dump).await;
    assert_eq!(listed().await, bodies(&["7", "6", "4", "3", "2"]));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn the_first_public_comments_imported_for_a_known_user_count_as_approved() {
    let store = store();
    let users = Users::parse("ada@blog.example 7").unwrap();
    let ada = Author { name: "Ada".to_owned(), email: "ada@blog.example".to_owned(), ..Author::default() };
    let by_ada = |id: u32| Comment { author: ada.clone(), ..at(&id.to_string(), 1_600_000_000 + i64::from(id)) };
    let waiting = |id| Comment { state: RecordState::Pending, ..by_ada(id) };
    let approved_after = async |comments: &[Comment]| {
        let mut staging = staging(&store, comments).await;
        importer(&store, &mut staging, &users).run(&mut |_| ()).await.unwrap();
        let user = store.user(UserId(7), Reading::Consistent).await.unwrap();
        user.map(|user| user.trust.approved().len()).unwrap_or_default()
    };
    let mut dump = vec![waiting(50), waiting(51)];
    // The first import writes in batches, and later ones write comments one by one.
    assert_eq!(approved_after(&dump).await, 0);
    dump.push(by_ada(1));
    assert_eq!(approved_after(&dump).await, 1);
    dump.extend((2..30).map(by_ada));
    assert_eq!(approved_after(&dump).await, 20);
}
