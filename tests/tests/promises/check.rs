//! The checker finds nothing after a busy day, finds each kind of damage, and mends it.

use aws_sdk_dynamodb::types::AttributeValue::{self, Bool, N, Ns, S};
use http::Method;
use local::check::Check;
use serde_json::json;
use std::time::Duration;

use crate::world::{Person, TABLE, World};

/// What there is after everything was done once.
struct Busy {
    world: World,
    ada: Person,
    /// Of a parent with more replies than lead, one of them liked, one hidden.
    parent: u64,
    replies: Vec<u64>,
    hidden_reply: u64,
    pending: u64,
    pinned: u64,
}

async fn busy() -> Busy {
    let world = World::new(&[]);
    let (ada, bob) = (world.user(1, "Ada Lovelace"), world.user(2, "Bob"));
    let (mod_, guest) = (world.moderator(9, "Grace"), world.guest("Gus"));
    let parent = ada.write("posts/1", None, "first").await.ok(201).id();
    let mut replies = Vec::new();
    for n in 0..6 {
        let writer = if n % 2 == 0 { &bob } else { &guest };
        replies.push(writer.write("posts/1", Some(parent), &format!("reply {n}")).await.ok(201).id());
    }
    let deep = bob.write("posts/1", Some(replies[0]), "deeper").await.ok(201).id();
    let hidden_reply = ada.write("posts/1", Some(parent), "doubtful reply").await.ok(201).id();
    let pending = ada.write("posts/1", None, "doubtful").await.ok(201).id();
    let gone = bob.write("posts/1", None, "to be deleted").await.ok(201).id();
    bob.write("posts/1", Some(gone), "below it").await.ok(201);
    ada.write("posts/1", Some(gone), "doubtful below it").await.ok(201);
    let pinned = mod_.write("posts/1", None, "pinned").await.ok(201).id();
    mod_.post(&format!("comments/{pinned}/pin"), None).await.ok(200);
    for (who, id) in [(&ada, parent), (&bob, parent), (&guest, parent), (&ada, replies[4]), (&bob, gone), (&ada, deep)]
    {
        who.post(&format!("comments/{id}/like"), None).await.ok(200);
    }
    bob.post(&format!("comments/{parent}/like"), None).await.ok(200);
    for (who, id) in [(&ada, replies[1]), (&guest, replies[1]), (&bob, parent), (&ada, gone)] {
        who.post(&format!("comments/{id}/report"), Some(json!({ "reason": "spam" }))).await.ok(201);
    }
    mod_.post(&format!("comments/{parent}/reports/dismiss"), None).await.ok(200);
    mod_.post(&format!("comments/{}/reject", replies[2]), None).await.ok(200);
    mod_.post(&format!("comments/{}/reject", replies[1]), None).await.ok(200);
    mod_.post(&format!("comments/{}/approve", replies[1]), None).await.ok(200);
    bob.call(Method::DELETE, &format!("comments/{gone}"), None).await.ok(204);
    ada.call(Method::PATCH, &format!("comments/{parent}"), Some(json!({ "body": "doubtful edit" }))).await.ok(200);
    world.user(2, "Robert").get("users?q=ada").await.ok(200);
    world.stack.wait_until_idle().await;
    Busy { world, ada, parent, replies, hidden_reply, pending, pinned }
}

async fn set(world: &World, pk: String, sk: &str, name: &str, value: Option<AttributeValue>) {
    let update = world.engine.client().update_item().table_name(TABLE);
    let update = update.key("pk", S(pk)).key("sk", S(sk.to_owned())).expression_attribute_names("#name", name);
    let update = match value {
        Some(value) => update.update_expression("SET #name = :value").expression_attribute_values(":value", value),
        None => update.update_expression("REMOVE #name"),
    };
    update.send().await.unwrap();
}

async fn remove(world: &World, pk: &str, sk: &str) {
    let delete = world.engine.client().delete_item().table_name(TABLE);
    delete.key("pk", S(pk.to_owned())).key("sk", S(sk.to_owned())).send().await.unwrap();
}

#[tokio::test]
async fn a_busy_table_is_in_order() {
    let Busy { world, .. } = busy().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn every_kind_of_damage_is_found_and_mended() {
    let Busy { world, ada, parent, replies, hidden_reply, pending, pinned } = busy().await;
    let shard = |id: u64| id % 4;
    let n = |number: u64| Some(N(number.to_string()));
    let s = |text: &str| Some(S(text.to_owned()));
    let thread = "T#posts#1".to_owned();
    let visitor_state = "V#u1#posts#1".to_owned();
    let comment = |id: u64| format!("C#{id}");
    let inline = Ns(vec![replies[4].to_string()]);
    let damage: Vec<(&str, String, &str, &str, Option<AttributeValue>)> = vec![
        ("rc is", comment(parent), "C", "rc", n(17)),
        ("lc is", comment(parent), "C", "lc", None),
        ("l is", comment(parent), "C", "l", n(parent)),
        ("d is", comment(parent), "C", "d", n(parent)),
        ("fp is", comment(parent), "C", "fp", n(17)),
        ("rp is", comment(replies[1]), "C", "rp", n(9)),
        ("rv is", comment(replies[2]), "C", "rv", Some(Bool(true))),
        ("ro is", comment(replies[4]), "C", "ro", Some(Bool(true))),
        ("ld is", comment(parent), "C", "ld", Some(inline)),
        ("tr is", comment(parent), "C", "tr", None),
        ("tk is", comment(replies[0]), "C", "tk", s("T#posts#2")),
        ("ts is", comment(parent), "C", "ts", s("7")),
        ("ok is", comment(pinned), "C", "ok", s("T#posts#2")),
        ("tk is unset", comment(hidden_reply), "C", "tk", None),
        ("a is", comment(parent), "C", "a", None),
        ("i is", comment(parent), "C", "i", n(5)),
        ("n is", thread.clone(), "T", "n", n(0)),
        (
            "is pinned",
            thread,
            "T",
            "pin",
            Some(AttributeValue::M(
                [("c".to_owned(), N(pending.to_string())), ("at".to_owned(), N("1".to_owned()))].into(),
            )),
        ),
        ("up is", visitor_state.clone(), "V", "up", n(4)),
        ("ur is", visitor_state.clone(), "V", "ur", None),
        (
            "in two places",
            visitor_state.clone(),
            Box::leak(format!("V#{parent}").into_boxed_str()),
            "lk",
            Some(Ns(vec![parent.to_string()])),
        ),
        ("lc is", visitor_state.clone(), "V", "lk", None),
        ("is missing in the visitor's state", visitor_state, "V", "rd", None),
        (
            "no report of",
            "V#u2#posts#1".to_owned(),
            "V",
            "rd",
            Some(Ns(vec![replies[0].to_string(), parent.to_string()])),
        ),
        ("is no hidden reply", comment(parent), Box::leak(format!("H#{:016}", replies[0]).into_boxed_str()), "x", n(1)),
        (
            "does not belong in the queue",
            format!("Q#pending#{}", shard(pinned)),
            Box::leak(format!("{pinned:016}").into_boxed_str()),
            "x",
            n(1),
        ),
        ("is gone, but not its", "C#77".to_owned(), "R#0000000000000001", "x", n(1)),
        ("matches no user", "H#ghost".to_owned(), "U#1", "x", n(1)),
        ("is not as user 1 is", "N#0#a".to_owned(), "ada lovelace#1", "n", s("Eve")),
    ];
    for (told, pk, sk, name, value) in damage {
        if told == "is gone, but not its" {
            set(&world, pk.clone(), sk, "id", n(1)).await;
            set(&world, pk.clone(), sk, "r", s("spam")).await;
            set(&world, pk.clone(), sk, "c", n(1)).await;
            set(&world, pk.clone(), sk, "v", s("u1")).await;
        }
        set(&world, pk, sk, name, value).await;
        mended(&world, told).await;
    }
    for (told, pk, sk) in [
        ("is missing among the hidden replies", comment(parent), format!("H#{hidden_reply:016}")),
        ("is missing in the queue pending", format!("Q#pending#{}", shard(pending)), format!("{pending:016}")),
        ("is not as user 1 is", "H#ada_lovelace".to_owned(), "U#1".to_owned()),
        ("is gone", comment(parent), "C".to_owned()),
    ] {
        remove(&world, &pk, &sk).await;
        mended(&world, told).await;
    }
    // The parent was removed behind the service's back, and all below it went with it.
    ada.get(&format!("comments/{parent}/replies")).await.ok(404);
    let left = ada.get("posts/1/comments").await.ok(200).json;
    assert_eq!(left["meta"]["total"], 2, "{left:#}");
}

async fn mended(world: &World, told: &str) {
    let findings = world.findings().await;
    assert!(findings.iter().any(|finding| finding.contains(told)), "{told}: {findings:#?}");
    let mut out = Vec::new();
    let check = Check { repair: true, patience: Duration::ZERO };
    let left = check.run(&world.store(), &mut out).await.unwrap();
    assert_eq!(left, 0, "{told}: {}", String::from_utf8_lossy(&out));
    world.stack.wait_until_idle().await;
    assert_eq!(world.findings().await, [""; 0], "{told}");
}

#[tokio::test]
async fn a_table_that_changed_since_is_not_mended() {
    let Busy { world, ada, parent, .. } = busy().await;
    set(&world, format!("C#{parent}"), "C", "rc", Some(N("17".to_owned()))).await;
    let findings = world.store().check().await.unwrap();
    ada.write("posts/1", Some(parent), "one more").await.ok(201);
    assert!(!world.store().repair(&findings[0]).await.unwrap(), "{}", findings[0]);
}
