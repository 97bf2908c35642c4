use std::collections::HashMap;
use std::time::Duration;

use aws_lambda_events::event::dynamodb::Event;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue::{self, N, S};
use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};
use serde_json::{Value, json};

use super::*;

const TABLE: &str = "things";

fn definition(indexes: &[&str]) -> TableDefinition {
    let indexes: Vec<Value> = indexes
        .iter()
        .map(|name| {
            json!({
                "IndexName": name,
                "KeySchema": [
                    {"AttributeName": "owner", "KeyType": "HASH"},
                    {"AttributeName": "n", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            })
        })
        .collect();
    let mut attributes = vec![
        json!({"AttributeName": "pk", "AttributeType": "S"}),
        json!({"AttributeName": "sk", "AttributeType": "S"}),
    ];
    if !indexes.is_empty() {
        attributes.push(json!({"AttributeName": "owner", "AttributeType": "S"}));
        attributes.push(json!({"AttributeName": "n", "AttributeType": "N"}));
    }
    serde_json::from_value(json!({
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": attributes,
        "GlobalSecondaryIndexes": indexes,
        "TimeToLiveSpecification": {"AttributeName": "x", "Enabled": true},
    }))
    .unwrap()
}

fn engine() -> Engine {
    let engine = Engine::memory().unwrap();
    engine.create_table(TABLE, &definition(&["by_owner"])).unwrap();
    engine
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_reason_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.db");
    let error = || Engine::open(&path).unwrap_err().to_string();
    let refusal = |why: &str| {
        let advice = "restore it from a backup, or choose another --data-dir and import an export into it";
        format!("{}: {why}; {advice}", path.display())
    };
    Engine::open(&path).unwrap().create_table(TABLE, &definition(&["by_owner"])).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let noise = vec![7; 20_000];
    let torn = [&whole[..100], &noise].concat();
    for damaged in [&noise, &whole[..whole.len() / 2], &torn] {
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(error(), refusal("is damaged or isn't a database"));
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let advice = "check its permissions and the free space, and try again";
    assert_eq!(error(), format!("{}: Is a directory (os error 21); {advice}", path.display()));
}

#[tokio::test]
async fn a_file_has_items_once_something_was_put() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.db");
    let has_items = || Engine::has_items(&path, TABLE).unwrap();
    assert!(!has_items() && !path.exists());
    let engine = Engine::open(&path).unwrap();
    assert!(!has_items());
    engine.create_table(TABLE, &definition(&[])).unwrap();
    assert!(!has_items());
    engine.client().put_item().table_name(TABLE).item("pk", text("a")).item("sk", text("b")).send().await.unwrap();
    assert!(has_items());
}

fn text(value: &str) -> AttributeValue {
    S(value.to_owned())
}

fn number(value: u64) -> AttributeValue {
    N(value.to_string())
}

fn thing(pk: &str, n: u64) -> HashMap<String, AttributeValue> {
    let item = [("pk", text(pk)), ("sk", text("thing")), ("owner", text("ada")), ("n", number(n))];
    item.map(|(name, value)| (name.to_owned(), value)).into()
}

fn key(pk: &str) -> HashMap<String, AttributeValue> {
    [("pk", text(pk)), ("sk", text("thing"))].map(|(name, value)| (name.to_owned(), value)).into()
}

fn increment(client: &Client) -> UpdateItemFluentBuilder {
    let update = client.update_item().table_name(TABLE).set_key(Some(key("a")));
    update.update_expression("ADD n :one").expression_attribute_values(":one", number(1))
}

async fn put(client: &Client, pk: &str, n: u64) {
    client.put_item().table_name(TABLE).set_item(Some(thing(pk, n))).send().await.unwrap();
}

async fn get(client: &Client, pk: &str) -> Option<HashMap<String, AttributeValue>> {
    client.get_item().table_name(TABLE).set_key(Some(key(pk))).send().await.unwrap().item
}

async fn owned(client: &Client, index: &str) -> Vec<HashMap<String, AttributeValue>> {
    let query = client
        .query()
        .table_name(TABLE)
        .index_name(index)
        .key_condition_expression("#o = :o")
        .expression_attribute_names("#o", "owner")
        .expression_attribute_values(":o", text("ada"));
    query.send().await.unwrap().items().to_vec()
}

fn follow(engine: &Engine) -> Follower {
    engine.follow(TABLE, EventFilter::default()).unwrap()
}

/// The existing records, in the form of Lambda's event.
async fn records(follower: &mut Follower) -> Value {
    let batch = follower.next(100).await;
    follower.handled(batch.end, Vec::new()).await;
    json!({ "Records": batch.records.into_iter().map(|record| record.content).collect::<Vec<_>>() })
}

async fn names_and_keys(follower: &mut Follower) -> Vec<(String, String)> {
    let event: Event = serde_json::from_value(records(follower).await).unwrap();
    let named = event.records.into_iter().map(|record| {
        let keys = serde_json::to_value(record.change.keys.into_inner()).unwrap();
        (record.event_name, keys["pk"]["S"].as_str().unwrap().to_owned())
    });
    named.collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned())).collect()
}

#[tokio::test]
async fn an_operation_that_the_engine_lacks_is_an_error() {
    let error = engine().client().list_backups().send().await.unwrap_err().into_service_error();
    assert_eq!(error.code(), Some("UnknownOperationException"));
}

#[tokio::test]
async fn a_write_to_a_missing_table_is_a_resource_not_found_error() {
    let engine = Engine::memory().unwrap();
    assert!(matches!(engine.follow(TABLE, EventFilter::default()), Err(EngineError::NoTable(_))));
    let put = engine.client().put_item().table_name(TABLE).set_item(Some(thing("a", 1)));
    assert!(put.send().await.unwrap_err().into_service_error().is_resource_not_found_exception());
}

#[tokio::test]
async fn a_put_an_update_and_a_delete_each_leave_a_stream_record() {
    let engine = engine();
    let client = engine.client();
    let mut stream = follow(&engine);

    put(&client, "a", 1).await;
    assert_eq!(names_and_keys(&mut stream).await, pairs(&[("INSERT", "a")]));

    increment(&client).send().await.unwrap();
    let event: Event = serde_json::from_value(records(&mut stream).await).unwrap();
    let change = &event.records[0].change;
    assert_eq!(event.records[0].event_name, "MODIFY");
    assert_eq!(json!(change.old_image)["n"]["N"], "1");
    assert_eq!(json!(change.new_image)["n"]["N"], "2");
    assert_eq!(json!(change.keys), json!({"pk": {"S": "a"}, "sk": {"S": "thing"}}));

    client.delete_item().table_name(TABLE).set_key(Some(key("a"))).send().await.unwrap();
    assert_eq!(names_and_keys(&mut stream).await, pairs(&[("REMOVE", "a")]));
}

#[tokio::test]
async fn a_batch_leaves_a_stream_record_for_each_write() {
    let engine = engine();
    let client = engine.client();
    put(&client, "old", 1).await;
    let mut stream = follow(&engine);
    let new = PutRequest::builder().set_item(Some(thing("new", 1))).build().unwrap();
    let old = DeleteRequest::builder().set_key(Some(key("old"))).build().unwrap();
    client
        .batch_write_item()
        .request_items(
            TABLE,
            vec![WriteRequest::builder().put_request(new).build(), WriteRequest::builder().delete_request(old).build()],
        )
        .send()
        .await
        .unwrap();
    let batch = names_and_keys(&mut stream).await;
    assert_eq!(batch, pairs(&[("INSERT", "new"), ("REMOVE", "old")]));
}

#[tokio::test]
async fn a_write_that_changes_nothing_or_fails_leaves_no_record() {
    let engine = engine();
    let client = engine.client();
    put(&client, "a", 1).await;
    let mut stream = follow(&engine);

    put(&client, "a", 1).await;
    client.delete_item().table_name(TABLE).set_key(Some(key("none"))).send().await.unwrap();
    let refused = client.put_item().table_name(TABLE).set_item(Some(thing("a", 9)));
    let refused = refused.condition_expression("attribute_not_exists(pk)").send().await.unwrap_err();
    assert!(refused.into_service_error().is_conditional_check_failed_exception());
    let passed = stream.next_now(100).await.unwrap().map_or(Vec::new(), |batch| batch.records);
    assert_eq!(passed, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_of_one_item_are_reported_as_an_unbroken_chain() {
    let engine = engine();
    let client = engine.client();
    put(&client, "a", 0).await;
    let mut stream = follow(&engine);
    let writers: Vec<_> = (0..50)
        .map(|_| {
            let increment = increment(&client);
            tokio::spawn(async move { increment.send().await.unwrap() })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }

    let mut last_number = String::new();
    let event = records(&mut stream).await;
    for n in 0..50 {
        let change = &event["Records"][n]["dynamodb"];
        assert_eq!(change["OldImage"]["n"]["N"], n.to_string());
        assert_eq!(change["NewImage"]["n"]["N"], (n + 1).to_string());
        let number = change["SequenceNumber"].as_str().unwrap().to_owned();
        assert!(number > last_number);
        last_number = number;
    }
}

/// The expiry of items written by [`put_expiring`], in Unix seconds.
const EXPIRY: u64 = 1_700_000_000;

async fn put_expiring(client: &Client, pk: &str) {
    let mut item = thing(pk, 1);
    item.insert("x".to_owned(), number(EXPIRY));
    client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
}

async fn sweep(engine: &Engine) -> usize {
    engine.remove_expired(TABLE, i64::try_from(EXPIRY).unwrap() + 1).await.unwrap()
}

#[tokio::test]
async fn expired_items_are_removed() {
    let engine = engine();
    let client = engine.client();
    for number in 0..SWEEP_PAGE {
        put(&client, &format!("stays {number}"), 1).await;
    }
    put_expiring(&client, "a").await;
    put_expiring(&client, "b").await;

    let mut stream = follow(&engine);
    assert_eq!(engine.remove_expired(TABLE, i64::try_from(EXPIRY).unwrap()).await.unwrap(), 0);
    assert_eq!(sweep(&engine).await, 2);
    assert_eq!((get(&client, "a").await, get(&client, "b").await), (None, None));
    assert!(get(&client, "stays 0").await.is_some());
    let mut removed = names_and_keys(&mut stream).await;
    removed.sort();
    assert_eq!(removed, pairs(&[("REMOVE", "a"), ("REMOVE", "b")]));
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the sweep is to meet the lock")]
async fn a_sweep_writes_nothing_while_another_connection_may_write() {
    let engine = engine();
    put_expiring(&engine.client(), "a").await;
    let connections = engine.shared.connections();
    let sweeping = engine.clone();
    let mut swept = tokio::spawn(async move { sweep(&sweeping).await });
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut swept).await.is_err(), "it did not wait");
    drop(connections);
    assert_eq!(swept.await.unwrap(), 1);
}

#[test]
fn the_bundled_sqlite_is_the_one_whose_bugs_are_known() {
    // 3.7.0 to 3.51.2 have the WAL-reset bug: a commit on one connection that meets a checkpoint on another can corrupt
    // the file. That is why a single lock guards both connections, and why nothing else may write to the file while an
    // engine has it open. Before you change the version here and in the comment on `Shared::connections`, read its
    // release notes.
    assert_eq!(rusqlite::version(), "3.49.2");
}

#[tokio::test]
async fn amending_stream_records_removes_their_old_bytes_from_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let engine = Engine::open(&path).unwrap();
    engine.create_table(TABLE, &definition(&["by_owner"])).unwrap();
    let client = engine.client();
    let follower = follow(&engine);
    for name in ["secret-1", "other", "secret-2"] {
        put(&client, name, 1).await;
    }
    client.put_item().table_name(TABLE).item("pk", text("amended")).item("sk", text("secret")).send().await.unwrap();
    client.delete_item().table_name(TABLE).key("pk", text("amended")).key("sk", text("secret")).send().await.unwrap();
    for name in ["secret-1", "secret-2"] {
        client.delete_item().table_name(TABLE).set_key(Some(key(name))).send().await.unwrap();
    }
    drop(follower);
    let mut amend = |mut item: Value| {
        if item["sk"]["S"] == "secret" {
            item["sk"]["S"] = "x".into();
        }
        (!item["pk"]["S"].as_str().unwrap().starts_with("secret")).then_some(item)
    };
    assert_eq!(engine.amend_records(&mut amend).unwrap(), 6);
    assert_eq!(engine.amend_records(&mut amend).unwrap(), 0);
    engine.compact().unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"secret"));
    }
    drop((client, engine));
    assert_eq!(left(&path).await, ["other", "amended", "amended"]);
}

/// The keys of the unhandled records, as a new process reads them.
async fn left(path: &Path) -> Vec<String> {
    let engine = Engine::open(path).unwrap();
    let batch = follow(&engine).next_now(100).await.unwrap();
    let records = batch.map_or(Vec::new(), |batch| batch.records);
    records.iter().map(|record| record.content["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn unhandled_records_are_kept_after_the_process_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let engine = Engine::open(&path).unwrap();
    engine.create_table(TABLE, &definition(&["by_owner"])).unwrap();
    let client = engine.client();
    put(&client, "before anybody follows", 1).await;
    let mut stream = follow(&engine);
    for name in ["a", "b", "c", "d"] {
        put(&client, name, 1).await;
    }
    // The process ends while it handles these two records.
    assert_eq!(stream.next(2).await.records.len(), 2);
    drop((stream, engine, client));
    assert_eq!(left(&path).await, ["a", "b", "c", "d"]);

    let engine = Engine::open(&path).unwrap();
    let mut stream = follow(&engine);
    let batch = stream.next(3).await;
    let given_up = batch.records[1].number;
    stream.handled(batch.end, vec![given_up]).await;
    assert_eq!(stream.next(3).await.records.len(), 1);
    assert_eq!(engine.last_change().unwrap(), batch.end + 1);
    drop((stream, engine));
    assert_eq!(left(&path).await, ["b", "d"]);

    let engine = Engine::open(&path).unwrap();
    let mut stream = follow(&engine);
    let batch = stream.next(100).await;
    stream.handled(batch.end, Vec::new()).await;
    assert_eq!(stream.next_now(100).await.unwrap(), None);
    assert_eq!(engine.last_change().unwrap(), batch.end, "a change that was handled is still the last one");
    put(&engine.client(), "e", 1).await;
    assert!(stream.next(100).await.end > batch.end, "a number is used once");
}

#[tokio::test]
async fn a_record_stays_until_all_who_follow_have_handled_it() {
    let engine = engine();
    let (mut first, mut second) = (follow(&engine), follow(&engine));
    put(&engine.client(), "a", 1).await;
    let end = first.next(100).await.end;
    first.handled(end, Vec::new()).await;
    assert_eq!(names_and_keys(&mut second).await, pairs(&[("INSERT", "a")]));
    assert_eq!(engine.last_change().unwrap(), end);
    put(&engine.client(), "b", 1).await;
    let mut third = follow(&engine);
    assert_eq!(third.next_now(100).await.unwrap(), None);
    drop((second, third));
    assert_eq!(names_and_keys(&mut first).await, pairs(&[("INSERT", "b")]));
    drop(first);
    assert_eq!(follow(&engine).next_now(100).await.unwrap(), None, "nothing is left");
}

#[tokio::test]
async fn a_change_without_followers_is_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let engine = Engine::open(&path).unwrap();
    engine.create_table(TABLE, &definition(&["by_owner"])).unwrap();
    drop(follow(&engine));
    drop(engine);
    // An import, for example, writes without a follower.
    let engine = Engine::open(&path).unwrap();
    put(&engine.client(), "a", 1).await;
    assert_eq!(engine.last_change().unwrap(), 0);
}

#[tokio::test]
async fn a_stored_table_keeps_its_items_and_gets_the_indexes_of_a_newer_definition() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.db");
    let engine = Engine::open(&path).unwrap();
    engine.create_table(TABLE, &definition(&["first"])).unwrap();
    put(&engine.client(), "a", 1).await;
    drop(engine);

    let engine = Engine::open(&path).unwrap();
    engine.create_table(TABLE, &definition(&["second", "third"])).unwrap();
    engine.create_table(TABLE, &definition(&["second", "third"])).unwrap();
    let client = engine.client();
    assert_eq!(get(&client, "a").await, Some(thing("a", 1)));
    let table = client.describe_table().table_name(TABLE).send().await.unwrap().table.unwrap();
    let mut indexes: Vec<_> = table.global_secondary_indexes().iter().filter_map(|index| index.index_name()).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["second", "third"]);
    assert_eq!(owned(&client, "third").await, [thing("a", 1)]);
}

#[test]
fn a_stored_table_with_another_key_is_refused() {
    let engine = engine();
    let mut other = definition(&[]);
    other.key_schema.pop();
    assert!(matches!(engine.create_table(TABLE, &other), Err(EngineError::KeyDiffers(_))));
}
