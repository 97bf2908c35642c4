//! A table that is exported and imported into an empty one looks the same to everyone.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId};
use shared::domain::time::{Clock, Timestamp};
use tests::{Actor, Setup, World};
use transfer::import::Report;

use crate::OPEN;

/// Returns the output of `cargo local export`.
pub(crate) async fn export(world: &World) -> Vec<u8> {
    tests::export(&world.store()).await.unwrap()
}

/// Imports a file like `cargo local import native`, with up to `embedded` inline replies per parent.
pub(crate) async fn import(world: &World, file: &[u8], embedded: usize) -> Report {
    let report = tests::import(&world.store(), file, embedded, Clock::system()).await.unwrap();
    world.wait_until_idle().await;
    report
}

pub(crate) fn text(file: &[u8]) -> &str {
    str::from_utf8(file).unwrap()
}

fn world() -> World {
    Setup::new(&OPEN).start()
}

/// The people. They are created in the same order in every world, because the order determines the IP address, which
/// identifies a guest.
struct People {
    ada: Actor,
    bob: Actor,
    /// A user whose id is a hash.
    eve: Actor,
    moderator: Actor,
    guest: Actor,
    /// A guest with a key.
    gwen: Actor,
}

impl People {
    fn of(world: &World) -> Self {
        Self {
            ada: world.user(7, "Ada Lovelace"),
            bob: world.user(8, "Bob"),
            eve: world.claiming(&json!({ "sub": "eve", "name": "Eve", "email": "eve@example.org" })),
            moderator: world.moderator(),
            guest: world.guest(),
            gwen: world.guest().with_key("gwen"),
        }
    }
}

async fn fill(world: &World, people: &People) {
    let People { ada, bob, eve, moderator, guest, gwen } = people;
    let about = json!({ "title": "One", "url": "https://blog.example/1", "author_id": 7 });
    moderator.put("posts/1", about).await.ok(200);
    moderator.put("posts/silent", json!({ "title": "Nobody said anything" })).await.ok(200);
    moderator.post("posts/silent/close", json!({})).await.ok(200);
    eve.get("ui").await.ok(200);
    world.user(9, "Carl").get("ui").await.ok(200);
    world.pass(Duration::from_secs(1));
    world.user(9, "Carla").get("ui").await.ok(200);
    let parent = ada.comment("posts/1", "first, *of* many\r\nlines ").await;
    for n in 0..5 {
        let writer = if n % 2 == 0 { bob } else { guest };
        writer.reply("posts/1", parent, &format!("reply {n} to @ada_lovelace and @eve")).await;
    }
    let subscribed = json!({ "body": "tell me", "subscribe_to_replies": true });
    let followed = eve.post("posts/1/comments", subscribed).await.ok(201).id();
    let before = bob.comment("posts/1", "before").await;
    world.pass(Duration::from_millis(2_345));
    bob.edit(before, "after").await.ok(200);
    ada.edit(ada.comment("posts/1", "fine").await, "doubtful now").await.ok(200);
    for writer in [ada, guest, gwen] {
        writer.comment("posts/2", "doubtful").await;
        writer.reply("posts/1", parent, "a doubtful reply").await;
    }
    moderator.judge(guest.comment("posts/1", "rejected").await, "reject").await.ok(200);
    moderator.pin(parent).await.ok(200);
    moderator.reply("posts/1", parent, "pinned").await;
    for reader in [ada, bob, eve, guest, gwen] {
        reader.like(parent).await.ok(200);
    }
    guest.like(followed).await.ok(200);
    for (reader, reason) in [(bob, "spam"), (eve, "offensive"), (guest, "spam")] {
        reader.report(parent, reason).await.ok(201);
    }
    bob.report(followed, "spam").await.ok(201);
    moderator.judge(followed, "reports/dismiss").await.ok(200);
    guest.report(followed, "spam").await.ok(201);
    moderate(world, people).await;
    world.finish_jobs().await;
}

/// Adds bans, erasures and imports.
async fn moderate(world: &World, people: &People) {
    let People { ada, bob, moderator, .. } = people;
    moderator.put("users/8/ban", json!({ "reason": "spam", "until": "2050-01-02T05:00:00.5Z" })).await.ok(200);
    for (user, is_lifted) in [(77, false), (78, true)] {
        moderator.put(&format!("users/{user}/ban"), Value::Null).await.ok(200);
        if is_lifted {
            moderator.delete(&format!("users/{user}/ban")).await.ok(204);
        }
    }
    let erased = ada.comment("posts/3", "to be erased").await;
    ada.like(erased).await.ok(200);
    ada.reply("posts/3", erased, "below it").await;
    world.delete(erased).await;
    let only_rejected = ada.comment("posts/3", "to be erased, with a rejected reply").await;
    let rejected = ada.reply("posts/3", only_rejected, "to be rejected").await;
    world.delete(only_rejected).await;
    moderator.judge(rejected, "reject").await.ok(200);
    let old = |tie| Comment {
        id: CommentId::slots(Timestamp(1_000_000_000_000), tie).unwrap().next().unwrap(),
        name: "Old".to_owned(),
        body: "imported".to_owned(),
        source: Some(SourceId(format!("disqus:{tie}"))),
        likes: 5,
        imported_likes: 5,
        ..Comment::blank(ThreadId::new("posts", "1").unwrap())
    };
    ada.like(world.import(&old(1)).await).await.ok(200);
    let gone = world.import(&Comment { user: Some(UserId(7)), ..old(2) }).await;
    ada.like(gone).await.ok(200);
    ada.remove(gone).await.ok(204);
    bob.get("ui").await.ok(200);
}

/// Returns the names of the records' attributes, as `kind.attribute`.
fn attributes(file: &[u8]) -> BTreeSet<String> {
    let records = text(file).lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let named = records.flat_map(|record| {
        let (kind, record) = record.as_object().unwrap().iter().next().map(|(k, v)| (k.clone(), v.clone())).unwrap();
        names(&kind, &record)
    });
    named.collect()
}

fn names(prefix: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| names(&format!("{prefix}.{name}"), value)).collect()
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            values.iter().flat_map(|value| names(prefix, value)).collect()
        }
        _ => vec![prefix.to_owned()],
    }
}

const ATTRIBUTES: &str = "comment.author.address comment.author.avatar comment.author.moderator comment.author.name comment.author.user_id
    comment.author.visitor comment.body comment.created_at comment.edited_at comment.format comment.held_for comment.id
    comment.likes comment.mentions comment.parent comment.pinned comment.pinned_at comment.reported
    comment.provenance.thread comment.provenance.writer comment.resolutions.status comment.resolutions.until comment.source
    comment.state comment.subscribed comment.thread
    guest_bound.comment guest_bound.count guest_bound.network head.format head.records head.salt head.source head.version
    like.comment like.visitor report.avatar report.comment report.created_at report.id report.name report.reason
    report.user_id report.visitor thread.author_id thread.closed thread.id thread.key thread.title thread.type thread.url
    tombstone.id tombstone.provenance.thread tombstone.provenance.writer tombstone.source user.ban.id user.ban.reason user.ban.until user.learned_at user.name user.picture
    user.renamed_at user.subject user.told_at user.user_id";

/// Returns the responses that each person gets, by path.
async fn read(people: &People) -> Vec<(String, Value)> {
    let People { ada, bob, eve, moderator, guest, gwen } = people;
    let mut seen = Vec::new();
    let readers =
        [("ada", ada), ("bob", bob), ("eve", eve), ("moderator", moderator), ("guest", guest), ("gwen", gwen)];
    for (who, actor) in readers {
        for thread in ["posts/1", "posts/2", "posts/3", "posts/silent"] {
            for sort in ["newest", "oldest", "most_liked", "most_replied"] {
                let path = format!("{thread}/comments?sort={sort}&per_page=50");
                let answer = actor.get(&path).await.ok(200).json;
                seen.push((format!("{path} by {who}"), without_judgements(answer)));
            }
        }
    }
    let mut paths = vec!["counts?threads=posts/1,posts/2,posts/3".to_owned(), "users?q=a".to_owned()];
    paths.extend(
        ["pending", "reported", "rejected"].map(|state| format!("moderation/comments?state={state}&per_page=50")),
    );
    paths.extend(["moderation/users?q=e", "moderation/users?banned=true", "users/7/comments"].map(str::to_owned));
    for path in paths {
        let answer = moderator.get(&path).await.ok(200).json;
        seen.push((path, without_judgements(answer)));
    }
    seen
}

/// Removes values that exports omit: reasons for holding texts, moderators' decisions about writers, reasons for
/// rejections, and guests' networks.
fn without_judgements(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["verdicts", "writer", "rejection", "review", "network"].contains(&name.as_str()));
            fields.values_mut().for_each(|field| *field = without_judgements(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_judgements(item.take())),
        _ => {}
    }
    value
}

#[tokio::test]
async fn a_move_transfers_every_kind_of_data_in_a_table() {
    let (world, other) = (world(), world());
    let (people, same_people) = (People::of(&world), People::of(&other));
    fill(&world, &people).await;
    let file = export(&world).await;
    let missing: Vec<&str> = {
        let attributes = attributes(&file);
        let expected: BTreeSet<&str> = ATTRIBUTES.split_whitespace().collect();
        assert!(attributes.iter().all(|name| expected.contains(name.as_str())), "{attributes:?}");
        expected.into_iter().filter(|name| !attributes.contains(*name)).collect()
    };
    assert_eq!(missing, [""; 0], "the test has no such thing");
    let document = include_str!("../../../docs/native-format.md");
    for attribute in ATTRIBUTES.split_whitespace() {
        let name = attribute.rsplit('.').next().unwrap();
        assert!(document.contains(&format!("`{name}`")) || document.contains(&format!(".{name}`")), "{attribute}");
    }

    // The importer's clock is 1.1 seconds behind, so an imported time that came from it would differ.
    let later = world.now().0 - other.now().0 - 1_111;
    other.pass(Duration::from_millis(u64::try_from(later).unwrap()));
    let report = import(&other, &file, 3).await;
    assert_eq!((report.new, &report.refused, &report.skipped), (report.read, &vec![], &[].into()));
    assert_eq!(other.findings().await, [""; 0]);
    assert_eq!(text(&export(&other).await), text(&file));
    for ((path, before), (_, after)) in read(&people).await.into_iter().zip(read(&same_people).await) {
        assert_eq!(after, before, "{path}");
    }
    same_people.bob.write("posts/1", None, "still banned").await.refused(403, "comment_banned");

    let again = import(&other, &file, 3).await;
    assert_eq!((again.new, again.already_there), (0, report.read));
    assert_eq!(text(&export(&other).await), text(&export(&world).await));
}

#[tokio::test]
async fn comments_deleted_after_the_move_are_not_restored_and_decisions_stay() {
    let (world, other) = (world(), world());
    let (people, same_people) = (People::of(&world), People::of(&other));
    fill(&world, &people).await;
    let file = export(&world).await;
    import(&other, &file, 3).await;
    let listed = same_people.ada.list("posts/1", "per_page=50&sort=oldest").await;
    let mine = listed.rows().iter().find(|row| row["body"] == "doubtful now").unwrap()["id"].as_u64().unwrap();
    let liked = listed.rows().iter().find(|row| row["liked"] == true).unwrap()["id"].as_u64().unwrap();
    same_people.ada.remove(mine).await.ok(204);
    same_people.ada.like(liked).await.ok(200);
    same_people.moderator.delete("users/8/ban").await.ok(204);
    other.finish_jobs().await;
    let before = export(&other).await;
    let report = import(&other, &file, 3).await;
    assert_eq!((report.new, &report.skipped), (0, &[("deleted".to_owned(), 1)].into()));
    assert_eq!(text(&export(&other).await), text(&before));
    assert_eq!(other.findings().await, [""; 0]);
}

#[tokio::test]
async fn an_export_is_refused_by_a_table_with_other_comments() {
    let (world, other) = (world(), world());
    fill(&world, &People::of(&world)).await;
    let file = export(&world).await;
    People::of(&other).eve.comment("posts/1", "I was here first").await;
    other.finish_jobs().await;
    let before = export(&other).await;
    let refused = tests::import(&other.store(), &file, 3, Clock::system()).await.unwrap_err();
    assert!(refused.to_string().contains("an empty table"), "{refused}");
    assert_eq!(text(&export(&other).await), text(&before));
}
