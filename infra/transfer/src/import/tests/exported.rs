//! Imports of exports. A recount then checks that the table is consistent.

use serde_json::{Value, json};
use shared::domain::ids::{CommentId, ThreadId, UserId};
use shared::domain::person::Who;
use shared::domain::time::{Clock, Timestamp};
use shared::domain::user::Ban;
use shared::store::{Reading, Store};

use crate::export::ExportError;
use crate::import::author::Users;
use crate::import::record::Record;
use crate::import::report::Report;
use crate::import::staging::{Staging, TableError, Target};
use crate::import::tests::unfinished::unsent;
use crate::import::tests::{engine, findings, importer, store, store_of};
use crate::import::thread_key::ThreadKeys;
use crate::import::write::{WriteError, add};
use crate::store::import::{ThreadTotals, begin_import, import_batch};
use crate::store::person::find::identify;
use crate::store::restore::{native_import, restore_entries};

fn id(number: u64) -> u64 {
    (1_600_000_000 << 16) + number
}

fn comment(number: u64) -> Value {
    let author = json!({ "user_id": 7, "name": "Ada" });
    json!({ "id": id(number), "thread": "posts/1", "author": author, "body": format!("body of {number}") })
}

fn reply(number: u64, parent: u64) -> Value {
    with(comment(number), &json!({ "parent": id(parent).to_string() }))
}

fn with(mut record: Value, more: &Value) -> Value {
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

fn like(number: u64, visitor: &str) -> Value {
    json!({ "like": { "comment": id(number), "visitor": visitor } })
}

fn head(salt: &str) -> Value {
    json!({ "head": { "format": "comments", "version": 1, "source": "native", "salt": salt } })
}

/// The records of a thread with these comments, and other records.
fn export(comments: &[Value], others: &[Value]) -> Vec<Value> {
    let thread = json!({ "thread": { "key": "posts/1", "type": "posts", "id": "1", "title": "One" } });
    let comments = comments.iter().map(|comment| json!({ "comment": comment }));
    [head("salt"), thread].into_iter().chain(comments).chain(others.iter().cloned()).collect()
}

fn dump() -> Vec<Value> {
    let comments = [
        comment(1),
        reply(2, 1),
        reply(3, 2),
        with(
            comment(4),
            &json!({ "state": "pending", "held_for": "spam", "author": { "visitor": "gABC", "name": "G" } }),
        ),
        with(comment(5), &json!({ "state": "deleted", "likes": 3 })),
        reply(6, 1),
        with(reply(7, 1), &json!({ "state": "rejected" })),
        with(reply(10, 5), &json!({ "state": "rejected" })),
    ];
    let report = json!({ "report": {
        "comment": id(1), "id": 5, "reason": "spam", "created_at": "2026-01-02T03:04:05.678Z", "visitor": "gABC", "name": "G",
    } });
    export(&comments, &[like(1, "u7"), like(1, "gABC"), like(3, "u7"), like(5, "u8"), report])
}

/// Reads records as a native file if `file` is set. Its hash depends on `file`.
fn read(file: Option<&str>, records: &[Value]) -> Staging {
    let mut staging = Staging::default();
    staging.native = file.map(str::to_owned);
    for record in records {
        staging.add(serde_json::from_value(record.clone()).unwrap());
    }
    staging.resolve(&ThreadKeys::default(), false);
    staging
}

async fn placed(store: &Store, file: Option<&str>, records: &[Value]) -> Staging {
    let mut staging = read(file, records);
    staging.locate(Some(store), "native").await.unwrap();
    staging
}

async fn import(store: &Store, records: &[Value]) -> Report {
    let mut staging = placed(store, None, records).await;
    importer(store, &mut staging, &Users::default()).run(&mut |_| ()).await.unwrap();
    staging.report()
}

fn refused(report: &Report) -> Vec<(String, &str)> {
    report.refused.iter().map(|entry| (entry.id.clone(), entry.reason.as_str())).collect()
}

async fn find(store: &Store, number: u64) -> shared::domain::comment::Comment {
    store.comment_with_ancestors(CommentId(id(number)), Reading::Consistent).await.unwrap().unwrap().comment
}

fn thread() -> ThreadId {
    ThreadId::new("posts", "1").unwrap()
}

fn target(staging: &Staging) -> &Target {
    staging.threads.all.iter().find(|target| target.thread == thread()).unwrap()
}

#[tokio::test]
async fn comments_keep_their_ids_and_a_second_import_adds_nothing() {
    let store = store();
    let first = import(&store, &dump()).await;
    assert_eq!((first.read, first.new), (8, 8));
    assert_eq!(findings(&store).await, [""; 0]);
    let parent = find(&store, 1).await;
    assert_eq!((parent.likes, parent.imported_likes, parent.reports, parent.reported), (2, 0, 1, true));
    let placeholder = find(&store, 5).await;
    assert!(placeholder.is_placeholder && placeholder.replies == 0);
    assert_eq!((placeholder.likes, placeholder.imported_likes), (0, 0));
    assert_eq!(find(&store, 4).await.guest.unwrap().0, "gABC");
    let second = import(&store, &dump()).await;
    assert_eq!((second.new, second.already_there), (0, 8));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_native_file_can_be_imported_again_but_another_one_needs_an_empty_table() {
    let store = store();
    let run = async |file: &str, records: &[Value]| {
        let mut staging = read(Some(file), records);
        importer(&store, &mut staging, &Users::default()).run(&mut |_| ()).await
    };
    run("first", &dump()).await.unwrap();
    let refused = run("second", &export(&[comment(9)], &[])).await;
    assert!(refused.unwrap_err().to_string().contains("an empty table"));
    import(&store, &export(&[comment(9)], &[])).await;
    run("first", &dump()).await.unwrap();
    assert!(run("third", &dump()).await.is_err(), "another comment is there");
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn the_first_of_several_comments_with_the_same_source_wins() {
    let store = store();
    let of_source = |number: u64| with(comment(number), &json!({ "source": "disqus:1" }));
    let more_than_one_batch = (3..120).map(comment);
    let records: Vec<Value> = [of_source(1), of_source(2)]
        .into_iter()
        .chain(more_than_one_batch)
        .chain([of_source(120), reply(121, 120), with(comment(122), &json!({ "source": format!("native:{}", id(3)) }))])
        .collect();
    let report = import(&store, &export(&records, &[])).await;
    let taken = [2, 120, 121, 122].map(|number| (id(number).to_string(), "taken"));
    assert_eq!(refused(&report), taken);
    assert_eq!(report.new, 118);
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn an_excessive_number_of_likes_refuses_only_its_own_comment() {
    let likes = |number: u64, likes: Value| with(comment(number), &json!({ "likes": likes }));
    let comments = [
        likes(1, json!(1e20)),
        likes(2, json!(u64::MAX)),
        likes(3, json!((1_u64 << 53) + 1)),
        likes(4, json!(1_u64 << 53)),
    ];
    let report = import(&store(), &export(&comments, &[])).await;
    assert_eq!(refused(&report), [1, 2, 3].map(|number| (id(number).to_string(), "likes")));
    assert_eq!(report.new, 1);
    for wrong in [json!(-1), json!(1.5), json!(-1e20), json!("5")] {
        assert!(serde_json::from_value::<Record>(json!({ "comment": likes(1, wrong) })).is_err());
    }
}

#[tokio::test]
async fn a_comment_id_outside_the_valid_range_is_refused() {
    let comments = [with(comment(1), &json!({ "id": 0 })), with(comment(2), &json!({ "id": 1_u64 << 53 }))];
    let report = import(&store(), &export(&comments, &[])).await;
    assert_eq!(refused(&report), [("0".to_owned(), "time"), ((1_u64 << 53).to_string(), "time")]);
}

#[tokio::test]
async fn a_visitor_with_more_likes_than_fit_in_one_item_gets_overflow_items() {
    let store = store();
    let mut comments: Vec<Value> = (1..=3).map(comment).collect();
    comments.extend((4..=150).map(|number| reply(number, number % 3 + 1)));
    let likes: Vec<Value> = (1..=150).map(|number| like(number, "u7")).collect();
    import(&store, &export(&comments, &likes)).await;
    assert_eq!(findings(&store).await, [""; 0]);
    let (_, mut state) = store.thread_and_visitor_state(&thread(), &UserId(7).into()).await.unwrap();
    assert!(state.full && state.liked.len() == 100);
    let parents = (1..=3).map(|number| CommentId(id(number)));
    store.complete_visitor_state(&mut state, &UserId(7).into(), &thread(), parents).await.unwrap();
    assert_eq!(state.liked.len(), 150);
}

/// Runs an import that is interrupted after this many batches. Likes are written before the comments.
async fn interrupted_import(store: &Store, records: &[Value], batches: usize) {
    let mut staging = placed(store, None, records).await;
    let users = Users::default();
    let importer = importer(store, &mut staging, &users);
    let staging = &importer.staging;
    let target = target(staging);
    begin_import(store, &thread(), &importer.plan(target)).await.unwrap();
    restore_entries(store, &thread(), &staging.entries(target)).await.unwrap();
    let mut totals = ThreadTotals::default();
    for batch in staging.batches(target).into_iter().rev().take(batches) {
        let placed = batch.into_iter().filter_map(|index| staging.placed(index, &users));
        let batch = placed.map(|placed| add(&mut totals, importer.imported(&placed), &placed));
        import_batch(store, &batch.collect::<Vec<_>>(), Clock::system().now()).await.unwrap();
    }
}

async fn exported(store: &Store) -> String {
    let mut file = Vec::new();
    crate::export::export(store, "salt".to_owned(), &mut file).await.unwrap();
    String::from_utf8(file).unwrap()
}

#[tokio::test]
async fn an_import_of_an_export_killed_at_any_call_is_finished_without_loss_by_running_it_again() {
    let users = json!({ "user": { "user_id": 7, "name": "Ada" } });
    let records = [dump(), vec![users]].concat();
    let whole = store();
    import(&whole, &records).await;
    let whole = exported(&whole).await;
    assert!(["user", "like", "report"].iter().all(|kind| whole.contains(&format!("{{\"{kind}\":"))), "{whole}");
    for calls in 0.. {
        let engine = engine();
        let store = store_of(engine.client_builder());
        let mut staging = placed(&store, None, &records).await;
        let killed = store_of(engine.client_builder().interceptor(unsent(calls)));
        let is_killed = importer(&killed, &mut staging, &Users::default()).run(&mut |_| ()).await.is_err();
        let report = import(&store, &records).await;
        assert_eq!(report.new + report.already_there, 8, "{calls}");
        assert_eq!(findings(&store).await, [""; 0], "{calls}");
        assert_eq!(exported(&store).await, whole, "{calls}");
        if !is_killed {
            assert!(calls > 20, "{calls}");
            return;
        }
    }
}

#[tokio::test]
async fn a_table_cannot_be_exported_checked_or_searched_until_its_native_import_ends() {
    let other = json!({ "thread": { "key": "posts/2", "type": "posts", "id": "2" } });
    let elsewhere = json!({ "comment": with(comment(11), &json!({ "thread": "posts/2" })) });
    let records = [dump(), vec![other, elsewhere]].concat();
    let mut unfinished = 0;
    for calls in 0.. {
        let engine = engine();
        let store = store_of(engine.client_builder());
        let mut staging = placed(&store, Some(""), &records).await;
        let killed = store_of(engine.client_builder().interceptor(unsent(calls)));
        let is_killed = importer(&killed, &mut staging, &Users::default()).run(&mut |_| ()).await.is_err();
        let is_unfinished = native_import(&store).await.unwrap().is_some() && is_killed;
        let export = crate::export::export(&store, "salt".to_owned(), &mut Vec::new()).await;
        assert_eq!(matches!(export, Err(ExportError::Importing(_))), is_unfinished, "{calls}: {export:?}");
        let found = findings(&store).await;
        assert_eq!(!found.is_empty(), is_unfinished, "{calls}: {found:?}");
        assert!(found.iter().all(|finding| finding.contains("an import is unfinished")), "{calls}: {found:?}");
        let person = identify(&store, Who::User(UserId(7)), None).await.unwrap();
        assert_eq!(person.is_none(), is_unfinished, "{calls}");
        unfinished += usize::from(is_unfinished);
        let mut again = placed(&store, Some(""), &records).await;
        importer(&store, &mut again, &Users::default()).run(&mut |_| ()).await.unwrap();
        assert!(exported(&store).await.contains("body of 11"), "{calls}");
        if !is_killed {
            assert!(unfinished > 20, "{unfinished} of {calls}");
            return;
        }
    }
}

#[tokio::test]
async fn a_table_with_an_unfinished_import_takes_only_the_same_file() {
    let other = export(&[comment(9)], &[]);
    let mut refused = 0;
    for calls in 0.. {
        let engine = engine();
        let store = store_of(engine.client_builder());
        let mut staging = placed(&store, Some(""), &dump()).await;
        let killed = store_of(engine.client_builder().interceptor(unsent(calls)));
        if importer(&killed, &mut staging, &Users::default()).run(&mut |_| ()).await.is_ok() {
            assert!(refused > 20, "{refused} of {calls}");
            return;
        }
        let mut second = placed(&store, Some("of another file"), &other).await;
        if findings(&store).await.is_empty() {
            continue;
        }
        let result = importer(&store, &mut second, &Users::default()).run(&mut |_| ()).await;
        assert!(matches!(result, Err(WriteError::Occupied(TableError::Unfinished))), "{calls}: {result:?}");
        let mut again = placed(&store, Some(""), &dump()).await;
        importer(&store, &mut again, &Users::default()).run(&mut |_| ()).await.unwrap();
        assert_eq!(findings(&store).await, [""; 0], "{calls}");
        refused += 1;
    }
}

#[tokio::test]
async fn the_second_of_two_comments_with_the_same_id_but_different_texts_is_refused() {
    let store = store();
    let other = with(comment(1), &json!({ "body": "another text" }));
    let records = export(&[comment(1), comment(1), other, reply(2, 1)], &[]);
    for new in [2, 0] {
        let report = import(&store, &records).await;
        assert_eq!((report.new, report.already_there), (new, 3 - new));
        assert_eq!(refused(&report), [(id(1).to_string(), "taken")]);
        assert_eq!(find(&store, 1).await.body, "body of 1");
        assert_eq!(findings(&store).await, [""; 0]);
    }
}

#[tokio::test]
async fn existing_comments_that_differ_in_another_export_stay_and_are_reported() {
    let store = store();
    import(&store, &export(&[comment(1), comment(2), comment(3)], &[])).await;
    let later = [
        with(comment(1), &json!({ "body": "edited", "edited_at": "2026-01-02T03:04:05.678Z" })),
        with(comment(2), &json!({ "state": "rejected" })),
        comment(3),
    ];
    let report = import(&store, &export(&later, &[])).await;
    assert_eq!((report.already_there, report.changed), (3, vec![id(1).to_string(), id(2).to_string()]));
    assert_eq!(find(&store, 1).await.body, "body of 1");
    assert!(import(&store, &export(&[comment(1)], &[])).await.changed.is_empty());
}

#[tokio::test]
async fn likes_from_an_interrupted_import_are_not_added_to_another_export() {
    let without_likes: Vec<Value> = dump().into_iter().filter(|record| record.get("like").is_none()).collect();
    for batches in 0..4 {
        let store = store();
        interrupted_import(&store, &dump(), batches).await;
        let report = import(&store, &without_likes).await;
        assert_eq!(report.refused, [], "{batches}");
        assert_eq!(findings(&store).await, [""; 0], "{batches}");
        let (_, state) = store.thread_and_visitor_state(&thread(), &UserId(7).into()).await.unwrap();
        assert_eq!(state.liked.contains(&id(1)), find(&store, 1).await.likes > 0, "{batches}");
    }
}

#[tokio::test]
async fn likes_from_an_interrupted_import_are_counted_when_the_same_file_is_imported_again() {
    let store = store();
    import(&store, &export(&[comment(9)], &[])).await;
    let staging = placed(&store, None, &dump()).await;
    restore_entries(&store, &thread(), &staging.entries(target(&staging))).await.unwrap();
    import(&store, &dump()).await;
    assert_eq!(findings(&store).await, [""; 0]);
    assert_eq!((find(&store, 1).await.likes, find(&store, 3).await.likes), (2, 1));
}

#[tokio::test]
async fn a_ban_is_imported_once_and_a_name_that_is_known_stays() {
    let store = store();
    let user = |ban: u64| {
        let ban = json!({ "id": ban, "until": "2090-01-02T03:04:05Z" });
        export(&[], &[json!({ "user": { "user_id": 8, "name": "Bob", "ban": ban } })])
    };
    import(&store, &user(5)).await;
    let bob = store.user(UserId(8), Reading::Consistent).await.unwrap().unwrap();
    assert_eq!((bob.name.as_str(), bob.ban_id), ("Bob", Some(5)));
    let at = Timestamp::parse("2090-01-02T03:04:05Z").unwrap();
    assert_eq!(bob.ban, Some(Ban { until: Some(at), reason: None, first: None }));
    assert_eq!(findings(&store).await, [""; 0]);
    import(&store, &user(6)).await;
    assert_eq!(store.user(UserId(8), Reading::Consistent).await.unwrap().unwrap(), bob);
    let renamed = export(&[], &[json!({ "user": { "user_id": 8, "name": "Robert" } })]);
    import(&store, &renamed).await;
    assert_eq!(store.user(UserId(8), Reading::Consistent).await.unwrap().unwrap(), bob);
    assert_eq!(findings(&store).await, [""; 0]);
}

/// A visitor's first like in a thread costs one more unit. Up to a hundred further ones are free.
#[tokio::test]
async fn a_comment_costs_four_to_seven_write_units_and_a_like_at_most_one() {
    let body = "a quiet morning ".repeat(20);
    let parents = (0..100).map(|number| with(comment(number + 1), &json!({ "body": body })));
    let replies = (100..300).map(|number| with(reply(number + 1, number % 100 + 1), &json!({ "body": body })));
    let comments: Vec<Value> = parents.chain(replies).collect();
    let strangers: Vec<Value> = (0..300).map(|number| like(number + 1, &format!("g{number}"))).collect();
    let friend: Vec<Value> = (0..90).map(|number| like(number + 1, "u7")).collect();
    let units = async |likes: &[Value]| {
        let store = store();
        let mut staging = placed(&store, None, &export(&comments, likes)).await;
        let users = Users::default();
        importer(&store, &mut staging, &users).run(&mut |_| ()).await.unwrap()
    };
    let plain = units(&[]).await;
    assert!(plain / 300.0 > 4.0 && plain / 300.0 <= 7.0, "{}", plain / 300.0);
    let by_strangers = units(&strangers).await - plain;
    assert!((by_strangers - 300.0).abs() < 1.0, "{by_strangers}");
    let by_friend = units(&friend).await - plain;
    assert!(by_friend <= 3.0, "{by_friend}");
}

#[test]
fn another_salt_is_reported_and_refused_with_hashed_user_ids() {
    let plain = read(None, &dump());
    assert_eq!(plain.other_salt(Some("salt")).unwrap(), None);
    assert_eq!(plain.other_salt(Some("other")).unwrap(), Some("salt"));
    assert_eq!(plain.other_salt(None).unwrap(), Some("salt"));
    let hashed = 1_u64 << 52;
    let report = json!({ "comment": id(1), "id": 5, "reason": "spam", "created_at": "2026-01-02T03:04:05Z" });
    for record in [
        json!({ "user": { "user_id": hashed, "name": "Eve" } }),
        json!({ "comment": with(comment(9), &json!({ "author": { "user_id": hashed, "name": "Eve" } })) }),
        json!({ "thread": { "key": "posts/9", "type": "posts", "id": "9", "author_id": hashed } }),
        like(1, &format!("u{hashed}")),
        json!({ "report": with(report.clone(), &json!({ "visitor": format!("u{hashed}") })) }),
        json!({ "report": with(report, &json!({ "visitor": "", "user_id": hashed })) }),
    ] {
        let staging = read(None, &[dump(), vec![record.clone()]].concat());
        assert!(staging.other_salt(Some("other")).is_err() && staging.other_salt(None).is_err(), "{record}");
        assert_eq!(staging.other_salt(Some("salt")).unwrap(), None);
    }
}

#[tokio::test]
async fn tombstones_keep_out_later_imports_but_never_affect_existing_comments() {
    let store = store();
    let tombstone = |number: u64, source: &str| json!({ "tombstone": { "source": source, "id": id(number) } });
    let there = with(comment(1), &json!({ "source": "disqus:1" }));
    import(&store, &export(&[there], &[])).await;
    import(&store, &export(&[], &[tombstone(1, "disqus:1"), tombstone(2, "disqus:2")])).await;
    assert_eq!(findings(&store).await, [""; 0]);
    let back = [with(comment(2), &json!({ "source": "disqus:2" })), reply(3, 2)];
    let report = import(&store, &export(&back, &[])).await;
    assert_eq!((report.new, report.skipped), (0, [("deleted".to_owned(), 2)].into()));
}
