//! The recount finds nothing in a consistent table, finds each kind of damage, and repairs it.

use std::io;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue::{self, Bool, M, N, Ns, S};
use serde_json::json;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId};
use shared::domain::time::{Clock, Timestamp};
use tests::{Actor, World};
use transfer::check::Check;
use transfer::store::recount;

/// A world with one of each kind of data.
struct Busy {
    world: World,
    ada: Actor,
    /// A comment with more replies than are inline. One of them is liked, another is hidden.
    parent: u64,
    replies: Vec<u64>,
    hidden_reply: u64,
    pending: u64,
    pinned: u64,
    /// A comment with imported likes, which have no voters.
    imported: u64,
    /// A placeholder with a reply.
    erased: u64,
}

fn imported(tie: u64) -> Comment {
    Comment {
        id: CommentId::slots(Timestamp(1_000_000_000_000), tie).unwrap().next().unwrap(),
        user: Some(UserId(2)),
        name: "Bob".to_owned(),
        body: "imported".to_owned(),
        source: Some(SourceId(format!("disqus:{tie}"))),
        likes: 5,
        imported_likes: 5,
        ..Comment::blank(ThreadId::new("posts", "1").unwrap())
    }
}

async fn busy() -> Busy {
    let world = crate::world(&[]);
    let (ada, bob) = (world.user(1, "Ada Lovelace"), world.user(2, "Bob"));
    let guest = world.guest();
    let moderator = world.claiming(&json!({ "sub": "9", "name": "Grace", "roles": ["moderator"] }));
    let parent = ada.comment("posts/1", "first").await;
    let mut replies = Vec::new();
    for n in 0..6 {
        let writer = if n % 2 == 0 { &bob } else { &guest };
        replies.push(writer.reply("posts/1", parent, &format!("reply {n}")).await);
    }
    let deep = bob.reply("posts/1", replies[0], "deeper").await;
    let hidden_reply = ada.reply("posts/1", parent, "doubtful reply").await;
    let pending = ada.comment("posts/1", "doubtful").await;
    let gone = bob.comment("posts/1", "to be deleted").await;
    bob.reply("posts/1", gone, "below it").await;
    ada.reply("posts/1", gone, "doubtful below it").await;
    let pinned = moderator.comment("posts/1", "pinned").await;
    moderator.pin(pinned).await.ok(200);
    for (who, id) in [(&ada, parent), (&bob, parent), (&guest, parent), (&ada, replies[4]), (&bob, gone), (&ada, deep)]
    {
        who.like(id).await.ok(200);
    }
    bob.like(parent).await.ok(200);
    for (who, id) in [(&ada, replies[1]), (&guest, replies[1]), (&bob, parent), (&ada, gone)] {
        who.report(id, "spam").await.ok(201);
    }
    for (id, verdict) in
        [(parent, "reports/dismiss"), (replies[2], "reject"), (replies[1], "reject"), (replies[1], "approve")]
    {
        moderator.judge(id, verdict).await.ok(200);
    }
    let a_day_later = Timestamp(world.now().0 + 86_400_000).to_string();
    for (user, until) in [(1, None), (99, Some(&a_day_later)), (1, Some(&a_day_later)), (3, None)] {
        moderator.put(&format!("users/{user}/ban"), json!({ "until": until })).await.ok(200);
    }
    moderator.delete("users/3/ban").await.ok(204);
    bob.remove(gone).await.ok(204);
    // Banned users can't edit.
    moderator.delete("users/1/ban").await.ok(204);
    ada.edit(parent, "doubtful edit").await.ok(200);
    let imported = world.import(&self::imported(1)).await;
    ada.like(imported).await.ok(200);
    guest.write_many("posts/1", imported, 2).await;
    let erased = world.import(&self::imported(2)).await;
    bob.reply("posts/1", erased, "below the erased one").await;
    guest.like(erased).await.ok(200);
    world.delete(erased).await;
    let deleted = world.import(&self::imported(3)).await;
    bob.remove(deleted).await.ok(204);
    world.user(2, "Robert").get("users?q=ada").await.ok(200);
    world.finish_jobs().await;
    Busy { world, ada, parent, replies, hidden_reply, pending, pinned, imported, erased }
}

#[tokio::test]
async fn a_busy_table_is_in_order() {
    let Busy { world, .. } = busy().await;
    assert_eq!(world.findings().await, [""; 0]);
}

/// Damage to one attribute, and the text of the recount's finding.
struct Damage {
    reported: &'static str,
    pk: String,
    sk: String,
    name: &'static str,
    value: Option<AttributeValue>,
}

fn damage(reported: &'static str, (pk, sk): (&str, &str), name: &'static str, value: Option<AttributeValue>) -> Damage {
    Damage { reported, pk: pk.to_owned(), sk: sk.to_owned(), name, value }
}

fn number(number: u64) -> AttributeValue {
    N(number.to_string())
}

fn numbers(numbers: &[u64]) -> AttributeValue {
    Ns(numbers.iter().map(u64::to_string).collect())
}

fn text(text: &str) -> AttributeValue {
    S(text.to_owned())
}

fn damage_to_comments(busy: &Busy) -> Vec<Damage> {
    let Busy { parent, replies, hidden_reply, pinned, imported, erased, .. } = busy;
    let of = |reported, id: u64, name, value| damage(reported, (&format!("C#{id}"), "C"), name, value);
    vec![
        of("rc is", *parent, "rc", Some(number(17))),
        of("lc is", *parent, "lc", None),
        of("l is", *parent, "l", Some(number(*parent))),
        of("d is", *parent, "d", Some(number(*parent))),
        of("fp is", *parent, "fp", Some(number(17))),
        of("rp is", replies[1], "rp", Some(number(9))),
        of("rl is", replies[1], "rl", None),
        of("rv is", replies[2], "rv", Some(Bool(true))),
        of("ro is", replies[4], "ro", Some(Bool(true))),
        of("ld is", *parent, "ld", Some(numbers(&[replies[4]]))),
        of("tr is", *parent, "tr", None),
        of("tk is", replies[0], "tk", Some(text("T#posts#2"))),
        of("ts is", *parent, "ts", Some(text("7"))),
        of("ok is", *pinned, "ok", Some(text("T#posts#2"))),
        of("tk is unset", *hidden_reply, "tk", None),
        of("a is", *parent, "a", None),
        of("i is", *parent, "i", Some(number(5))),
        of("lc is", *imported, "lc", Some(number(1))),
        of("lc is", *imported, "il", Some(number(7))),
        of("l is", *imported, "l", Some(number(*imported))),
        of("u is", *erased, "u", Some(number(2))),
        of("b is", *erased, "b", Some(text("text"))),
        of("n is", *erased, "n", Some(text("Bob"))),
        of("a is", *erased, "a", Some(text("U#2"))),
        of("s is", *erased, "s", Some(text("pending"))),
        of("rv is", *erased, "rv", Some(Bool(true))),
        of("lc is", *erased, "lc", Some(number(1))),
        of("il is", *erased, "il", Some(number(1))),
        of("rp is", *erased, "rp", Some(number(1))),
        of("ro is", *erased, "ro", Some(Bool(true))),
        of("dg is", *parent, "dg", None),
        of("is a placeholder without replies", replies[5], "ph", Some(Bool(true))),
        of("is pinned, but can't be", *pinned, "ph", Some(Bool(true))),
    ]
}

fn damage_to_others(busy: &Busy) -> Vec<Damage> {
    let Busy { parent, replies, pending, pinned, erased, .. } = busy;
    let (thread, ada) = (("T#posts#1", "T"), ("V#u1#posts#1", "V"));
    let pin = M([("c".to_owned(), N(pending.to_string())), ("at".to_owned(), N("1".to_owned()))].into());
    let hidden = format!("H#{:016}", replies[0]);
    let queue = format!("Q#pending#{}", pinned % 4);
    vec![
        damage("n is", thread, "n", Some(number(0))),
        damage("is pinned", thread, "pin", Some(pin)),
        damage("counts 9 comments", ("T#posts#1", "K"), "n", Some(number(9))),
        damage("is counted, although", ("T#posts#1", &format!("K#{pending:016}")), "x", Some(number(1))),
        damage("up is", ada, "up", Some(number(4))),
        damage("ur is", ada, "ur", None),
        damage("likes it twice", (ada.0, &format!("V#{parent}")), "lk", Some(numbers(&[*parent]))),
        damage("lc is", ada, "lk", None),
        damage("is missing from the visitor's state", ada, "rd", None),
        damage("no report by", ("V#u2#posts#1", "V"), "rd", Some(numbers(&[replies[0], *parent]))),
        damage("is a placeholder, but has G#x", (&format!("C#{erased}"), "G#x"), "n", Some(number(1))),
        damage("isn't a hidden reply", (&format!("C#{parent}"), &hidden), "x", Some(number(1))),
        damage("disqus:1 has a tombstone", ("S#disqus:1", "S"), "dl", Some(Bool(true))),
        damage("disqus:1 names 1 instead", ("S#disqus:1", "S"), "i", Some(number(1))),
        damage("is gone, but disqus:77 names it", ("S#disqus:77", "S"), "i", Some(number(1))),
        damage("does not belong in the queue", (&queue, &format!("{pinned:016}")), "x", Some(number(1))),
        damage("matches no user", ("H#ghost", "U#1"), "x", Some(number(1))),
        damage("has a missing or wrong entry in the list of bans", ("U#99", "U"), "bi", None),
        damage("belongs to no user or network", ("B", "0000000000000005"), "u", Some(number(99))),
        damage("belongs to no user or network", ("B", "0000000000000005"), "x", Some(number(1))),
        damage("has a ban id but no ban", ("U#1", "U"), "bi", Some(number(5))),
        damage("differs from user 1", ("N#0#a", "ada lovelace#1"), "n", Some(text("Eve"))),
    ]
}

#[tokio::test]
async fn every_kind_of_damage_is_found_and_mended() {
    let busy = busy().await;
    let world = &busy.world;
    for Damage { reported, pk, sk, name, value } in damage_to_comments(&busy).into_iter().chain(damage_to_others(&busy))
    {
        world.set(&pk, &sk, name, value).await;
        is_mended(world, reported).await;
    }
    let orphan = ("C#77", "R#0000000000000001");
    for (name, value) in
        [("id", Some(number(1))), ("r", Some(text("spam"))), ("c", Some(number(1))), ("v", Some(text("u1")))]
    {
        world.set(orphan.0, orphan.1, name, value).await;
    }
    is_mended(world, "is gone, but still has").await;
    world.set_of_comment(busy.replies[3], "p", Some(AttributeValue::L(vec![number(77)]))).await;
    is_mended(world, "its ancestor 77 is gone").await;
    let Busy { parent, hidden_reply, pending, ada, .. } = &busy;
    let comment = format!("C#{parent}");
    for (reported, pk, sk) in [
        ("is missing from the hidden replies", &*comment, &*format!("H#{hidden_reply:016}")),
        ("is missing from the queue pending", &*format!("Q#pending#{}", pending % 4), &*format!("{pending:016}")),
        ("differs from user 1", "H#ada_lovelace", "U#1"),
        ("disqus:1 does not name it", "S#disqus:1", "S"),
        // The function `events` removes the comment's replies.
        ("recounted 3", &*comment, "C"),
    ] {
        world.remove(pk, sk).await;
        is_mended(world, reported).await;
    }
    ada.get(&format!("comments/{parent}/replies")).await.refused(404, "not_found");
    assert_eq!(ada.list("posts/1", "").await.total(), 4);
}

#[tokio::test]
async fn placeholders_that_an_older_version_left_without_replies_are_removed() {
    let world = crate::world(&[]);
    let top = world
        .import(&Comment {
            is_placeholder: true,
            user: None,
            name: String::new(),
            body: String::new(),
            likes: 0,
            imported_likes: 0,
            ..imported(1)
        })
        .await;
    let below = Comment { ancestors: vec![CommentId(top)], ..Comment::blank(ThreadId::new("posts", "1").unwrap()) };
    let below = Comment { id: CommentId(imported(2).id.0), is_placeholder: true, ..below };
    world.import(&below).await;
    is_mended(&world, "is a placeholder without replies").await;
    assert_eq!(world.user(1, "Ada").list("posts/1", "").await.total(), 0);
    assert!(world.item("S#disqus:1", "S").await.unwrap().contains_key("dl"));
}

#[tokio::test]
async fn a_comment_that_was_imported_twice_is_reported_but_not_repaired() {
    let Busy { world, .. } = busy().await;
    let source = Some(SourceId("disqus:1".to_owned()));
    world.import(&Comment { source, ..imported(9) }).await;
    let findings = recount::check(&world.store(), world.now()).await.unwrap();
    assert_eq!(findings.len(), 1);
    assert!(findings[0].to_string().contains("disqus:1 was also imported as"), "{}", findings[0]);
    assert!(!recount::repair(&world.store(), &findings[0]).await.unwrap());
}

#[tokio::test]
async fn a_check_requires_a_ban_to_be_listed_until_it_ends_by_the_clock_of_the_check() {
    let world = World::new();
    let until = Timestamp(world.now().0 + 60_000).to_string();
    world.moderator().put("users/7/ban", json!({ "until": until })).await.ok(200);
    let items = world.items().await;
    let row = items.iter().find(|item| item["pk"].as_s().unwrap() == "B").unwrap();
    world.remove("B", row["sk"].as_s().unwrap()).await;
    let found = async |now: Timestamp| {
        let check = Check { repair: false, patience: Duration::from_millis(1) };
        check.run(&world.store(), &Clock::new(move || now), &mut io::sink()).await.unwrap()
    };
    assert_eq!(found(world.now()).await, 1);
    world.pass(Duration::from_mins(2));
    assert_eq!(found(world.now()).await, 0);
}

async fn is_mended(world: &World, reported: &str) {
    let findings = world.findings().await;
    assert!(findings.iter().any(|finding| finding.contains(reported)), "{reported}: {findings:#?}");
    let mut out = Vec::new();
    let check = Check { repair: true, patience: Duration::ZERO };
    let now = world.now();
    let left = check.run(&world.store(), &Clock::new(move || now), &mut out).await.unwrap();
    assert_eq!(left, 0, "{reported}: {}", String::from_utf8_lossy(&out));
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0], "{reported}");
}

#[tokio::test]
async fn comments_of_an_older_version_are_counted() {
    let Busy { world, .. } = busy().await;
    let items = world.items().await;
    let counted: Vec<_> = items.iter().filter(|item| item["sk"].as_s().unwrap().starts_with('K')).collect();
    assert!(counted.len() > 5);
    for item in counted {
        world.remove(item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap()).await;
    }
    is_mended(&world, "is not counted").await;
}

#[tokio::test]
async fn a_table_that_changed_since_is_not_mended() {
    let Busy { world, ada, parent, .. } = busy().await;
    world.set_of_comment(parent, "rc", Some(number(17))).await;
    let findings = recount::check(&world.store(), world.now()).await.unwrap();
    ada.reply("posts/1", parent, "one more").await;
    assert!(!recount::repair(&world.store(), &findings[0]).await.unwrap(), "{}", findings[0]);
}
