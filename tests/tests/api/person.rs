//! Erasing a person: data that is removed, data that remains, and a consistent table afterwards.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::avatar::Avatar;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId};
use shared::domain::mail_keys::MailKeys;
use shared::domain::person::Who;
use shared::domain::secret::Secret;
use shared::domain::time::{Clock, Timestamp};
use shared::domain::user::gravatar;
use shared::store::addresses::Addresses;
use shared::store::{Reading, Store};
use tests::{Actor, Faults, MAIL, SALT, SIGN_IN, TABLE, World, by_guest, ids};
use transfer::person::PersonError;
use transfer::person::erase::Receipt;
use transfer::person::export::export;
use transfer::store::recount;

use crate::sign_in;

const EMAIL: &str = "lovelace@example.org";
const GUESTS: [(&str, &str); 2] = [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true")];
/// The entry in the receipts of members whose name or picture has changed.
const FORMER_NAME: &str = "others' mentions, words and emails with a former name";

async fn erase(world: &World, who: Who) -> Receipt {
    erase_by(world, &world.store(), who).await.unwrap()
}

pub(crate) async fn erase_user(world: &World, id: u64) -> Receipt {
    erase(world, Who::User(UserId(id))).await
}

async fn erase_by(world: &World, store: &Store, who: Who) -> Result<Receipt, PersonError> {
    let now = world.now();
    tests::erase(store, world.bucket(), Clock::new(move || now), who, Duration::ZERO).await
}

fn guest() -> Who {
    by_address(EMAIL)
}

fn by_address(email: &str) -> Who {
    Who::address(email, "no comment has it".to_owned(), &Secret::from(SALT.to_owned()))
}

fn hash() -> String {
    let Avatar::Gravatar(hash) = gravatar(EMAIL) else { panic!() };
    hash
}

/// Returns every item that contains one of the texts in a key or an attribute, ignoring case.
async fn items_with(world: &World, texts: &[String]) -> Vec<String> {
    let items = world.items().await;
    let items = items.iter().map(|item| format!("{item:?}"));
    items.filter(|item| texts.iter().any(|text| item.to_lowercase().contains(&text.to_lowercase()))).collect()
}

/// Returns the keys of items that contain the user's id in an attribute or as part of a key.
async fn items_of_user(world: &World, id: u64) -> Vec<String> {
    let is_part = |text: &str| text.split('#').any(|part| part == id.to_string() || part == format!("u{id}"));
    let names = |value: &AttributeValue| match value {
        AttributeValue::N(number) => *number == id.to_string(),
        AttributeValue::S(text) => is_part(text),
        _ => false,
    };
    let items = world.items().await;
    let items = items.iter().filter(|item| item.values().any(names));
    items.map(|item| item["pk"].as_s().unwrap().clone()).collect()
}

fn image() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/events/upload.png")).unwrap()
}

async fn upload(actor: &Actor) -> String {
    let uploaded = actor.upload(&[("file", "a.png", &image())]).await.ok(201);
    uploaded.json["url"].as_str().unwrap().to_owned()
}

/// A member with every kind of data that a member may leave.
struct Scene {
    world: World,
    id: u64,
    subject: String,
    bob: Actor,
    answered: u64,
    leaf: u64,
    mention: u64,
    linked: String,
    keyed: String,
    of_bob: String,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new();
        let (bob, moderator) = (world.user(8, "Bob"), world.moderator());
        let born = world.claiming(&json!({ "sub": "auth0|ada", "name": "Ada Byron", "email": EMAIL }));
        let answered = born.comment("posts/1", "first").await;
        world.pass(Duration::from_mins(2));
        let ada = world.claiming(&json!({ "sub": "auth0|ada", "name": "Ada Lovelace", "email": EMAIL }));
        let id = ada.get("ui").await.ok(200).data()["auth"]["user"]["id"].as_u64().unwrap();
        world.finish_jobs().await;
        let (linked, of_bob) = (upload(&ada).await, upload(&bob).await);
        let keyed = upload(&ada.clone().keyed("once")).await;
        let top = bob.comment("posts/1", &format!("![mine]({of_bob})")).await;
        bob.reply("posts/1", answered, "a reply").await;
        let mention = bob.comment("posts/1", "as @ada_lovelace said").await;
        let leaf = ada.reply("posts/1", top, &format!("![me]({linked}) and ![his]({of_bob})")).await;
        ada.keyed("again").comment("posts/2", "alone").await;
        let ada = world.claiming(&json!({ "sub": "auth0|ada", "name": "Ada Lovelace", "email": EMAIL }));
        ada.like(top).await.ok(200);
        ada.like(answered).await.ok(200);
        bob.like(answered).await.ok(200);
        let report = json!({ "reason": "spam", "additional_details": "I, Ada Lovelace, say so" });
        ada.post(&format!("comments/{top}/report"), report).await.ok(201);
        bob.report(leaf, "spam").await.ok(201);
        let strict = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
        let strict_ada = strict.claiming(&json!({ "sub": "auth0|ada", "name": "Ada Lovelace", "email": EMAIL }));
        let pending = strict_ada.comment("posts/1", "waits").await;
        strict_ada.reply("posts/1", pending, "waits below").await;
        let rejected = ada.reply("posts/1", top, "rejected").await;
        moderator.judge(rejected, "reject").await.ok(200);
        let hidden = ada.comment("posts/4", "hidden").await;
        bob.reply("posts/4", hidden, "below").await;
        moderator.judge(hidden, "reject").await.ok(200);
        moderator.pin(answered).await.ok(200);
        moderator.put("posts/1", json!({ "author_id": id, "title": "A page" })).await.ok(200);
        let judge = json!({ "sub": "auth0|ada", "name": "Ada Lovelace", "email": EMAIL, "roles": ["moderator"] });
        world.claiming(&judge).judge(top, "approve").await.ok(200);
        world.import(&imported(UserId(id))).await;
        moderator.put(&format!("users/{id}/ban"), json!({ "reason": "Ada Lovelace again" })).await.ok(200);
        world.finish_jobs().await;
        let subject = world.subject(id).await.unwrap();
        Self { world, id, subject, bob, answered, leaf, mention, linked, keyed, of_bob }
    }

    /// Returns everything that identifies the member in the table, except the id.
    fn needles(&self) -> Vec<String> {
        let texts = ["ada lovelace", "byron", "lovelace-1", EMAIL, &hash(), &self.subject, &format!("u{}", self.id)];
        texts.map(str::to_owned).into()
    }
}

fn imported(user: UserId) -> Comment {
    let at = Timestamp::parse("2010-01-01T00:00:00Z").unwrap();
    Comment {
        id: CommentId::slots(at, 1).unwrap().next().unwrap(),
        user: Some(user),
        name: "Ada Lovelace".to_owned(),
        avatar: gravatar(EMAIL),
        body: "from elsewhere".to_owned(),
        source: Some(SourceId("disqus:lovelace-1".to_owned())),
        likes: 3,
        imported_likes: 3,
        ..Comment::blank(ThreadId::new("posts", "3").unwrap())
    }
}

#[tokio::test]
async fn nothing_names_an_erased_member_except_what_the_receipt_lists() {
    let scene = Scene::new().await;
    let Scene { world, id, mention, .. } = &scene;
    assert_eq!(world.findings().await, [""; 0]);
    assert!(items_with(world, &scene.needles()).await.len() > 20);
    let receipt = erase(world, Who::User(UserId(*id))).await;
    assert_eq!(receipt.left, 0, "{receipt:?}");
    let stays: Vec<&str> = receipt.stays.iter().map(|stay| stay.what.as_str()).collect();
    let [ban, comment] = [format!("ban of user {id}"), format!("comment {mention} in posts/1")];
    assert_eq!(stays, [&ban, &comment, FORMER_NAME]);
    for what in ["comments", "placeholders", "images", "likes", "reports", "records", "log", "requests", "profile"] {
        assert!(receipt.gone.get(what).is_some_and(|count| *count > 0), "{what}: {receipt:?}");
    }
    assert_eq!(
        (receipt.gone["placeholders"], receipt.gone["images"], receipt.gone["mentions"]),
        (2, 2, 1),
        "{receipt:?}"
    );
    assert_eq!(items_with(world, &scene.needles()).await, [""; 0]);
    let with_handle = items_with(world, &["ada_lovelace".to_owned()]).await;
    assert!(with_handle.len() == 1 && with_handle[0].contains("as @ada_lovelace said"), "{with_handle:?}");
    let mut of_user = items_of_user(world, *id).await;
    of_user.sort_unstable();
    assert_eq!(of_user, ["B".to_owned(), format!("U#{id}")]);
    assert_eq!(world.findings().await, [""; 0]);
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn an_erasure_forgets_what_moderators_have_decided() {
    let world = World::with(&GUESTS);
    let (ada, keyed) = (world.user(7, "Ada"), world.guest().with_key("ada"));
    let signed = json!({ "body": "as a guest", "guest_name": "Ada Lovelace", "guest_email": EMAIL });
    let by_guest = keyed.post("posts/1/comments", signed).await.ok(201).id();
    for id in [ada.comment("posts/1", "as a member").await, by_guest] {
        world.moderator().judge(id, "reject").await.ok(200);
    }
    let decided = async || items_with(&world, &["\"np\"".to_owned()]).await.len();
    assert_eq!(decided().await, 2);
    let member = erase(&world, Who::User(UserId(7))).await;
    assert_eq!((member.left, decided().await), (0, 1), "{member:?}");
    let guest = erase(&world, guest()).await;
    assert_eq!((guest.left, guest.gone["trust"], decided().await), (0, 1, 0), "{guest:?}");
}

#[tokio::test]
async fn a_second_erasure_finds_nothing() {
    let scene = Scene::new().await;
    let first = erase(&scene.world, Who::User(UserId(scene.id))).await;
    let second = erase(&scene.world, Who::User(UserId(scene.id))).await;
    assert!(second.gone.is_empty() && second.left == 0, "{second:?}");
    assert_eq!(second.who, first.who);
    assert!(!format!("{second:?}").contains(&hash()));
    let nobody = erase(&scene.world, Who::User(UserId(77))).await;
    assert!(nobody.gone.is_empty() && nobody.stays.is_empty() && nobody.left == 0, "{nobody:?}");
}

#[tokio::test]
async fn the_receipt_of_a_member_with_a_picture_says_that_guests_with_the_address_stay() {
    let world = World::with(&GUESTS);
    let picture = "https://pictures.example/ada.png";
    let ada = world.claiming(&json!({ "sub": "7", "name": "Ada Lovelace", "email": EMAIL, "picture": picture }));
    ada.comment("posts/1", "as a member").await;
    let signed = json!({ "body": "as a guest", "guest_name": "Ada Lovelace", "guest_email": EMAIL });
    world.guest().post("posts/1/comments", signed).await.ok(201);
    world.finish_jobs().await;
    let member = erase(&world, Who::User(UserId(7))).await;
    let stays: Vec<&str> = member.stays.iter().map(|stay| stay.what.as_str()).collect();
    assert!(stays.contains(&"guests' items with the user's address"), "{member:?}");
    assert!(items_with(&world, &[picture.to_owned()]).await.is_empty());
    let guest = erase(&world, guest()).await;
    assert_eq!((guest.gone["comments"], guest.left, guest.stays.len()), (1, 0, 0), "{guest:?}");
    assert!(items_with(&world, &[hash(), "Ada Lovelace".to_owned()]).await.is_empty());
}

#[tokio::test]
async fn the_receipt_of_a_renamed_member_says_that_mentions_of_a_former_name_stay() {
    let world = World::new();
    world.user(7, "Ada Byron").comment("posts/1", "mine").await;
    let mention = world.user(8, "Bob").comment("posts/1", "as @ada_byron said").await;
    let stays = |receipt: Receipt| receipt.stays.into_iter().map(|stay| stay.what).collect::<Vec<_>>();
    world.pass(Duration::from_secs(1));
    world.user(7, "Ada Lovelace").get("ui").await.ok(200);
    world.finish_jobs().await;
    let receipt = erase_user(&world, 7).await;
    assert_eq!(receipt.left, 0, "{receipt:?}");
    assert_eq!(stays(receipt), [FORMER_NAME]);
    assert!(world.guest().see("posts/1", mention).await["body"].as_str().unwrap().contains("@ada_byron"));
    assert_eq!(stays(erase_user(&world, 8).await), [""; 0], "a member who has had only one name");
}

#[tokio::test]
async fn texts_of_others_below_and_about_an_erased_member_are_kept() {
    let Scene { world, id, bob, answered, leaf, mention, linked, keyed, of_bob, .. } = Scene::new().await;
    erase(&world, Who::User(UserId(id))).await;
    world.finish_jobs().await;
    let placeholder = bob.see("posts/1", answered).await;
    assert_eq!((&placeholder["is_deleted"], &placeholder["user"]["id"]), (&json!(true), &Value::Null));
    assert_eq!((&placeholder["likes_count"], &placeholder["pinned"]), (&json!(0), &json!(false)));
    assert_eq!(placeholder["replies"][0]["body"], "a reply");
    bob.get(&format!("comments/{leaf}")).await.ok(404);
    assert!(bob.list("posts/2", "").await.ids().is_empty());
    let mentioned = bob.see("posts/1", mention).await;
    assert!(mentioned["html"].as_str().unwrap().contains("<p>as @ada_lovelace said</p>"), "{mentioned}");
    for gone in [&linked, &keyed] {
        world.fetch(gone).await.ok(404);
    }
    world.fetch(&of_bob).await.ok(200);
    let log = world.moderator().get("moderation/log").await.ok(200);
    let moderators: Vec<&Value> = log.rows().iter().map(|entry| &entry["moderator"]).collect();
    assert!(moderators.contains(&&json!({ "id": null, "name": "" })), "{moderators:?}");
    assert!(log.rows().iter().all(|entry| entry["user_id"] != json!(id)), "{:#}", log.json);
    let banned = world.moderator().get("moderation/users?banned=true").await.ok(200);
    assert_eq!((&banned.rows()[0]["id"], &banned.rows()[0]["reason"]), (&json!(id), &Value::Null));
}

/// Returns the exported records, each with its kind.
pub(crate) async fn exported(world: &World, who: Who) -> Vec<(String, Value)> {
    let mut file = Vec::new();
    let count = export(&world.store(), who, "salt".to_owned(), &mut file).await.unwrap();
    let lines = String::from_utf8(file).unwrap();
    let records = lines.lines().map(|line| match serde_json::from_str(line).unwrap() {
        Value::Object(record) => record.into_iter().next().unwrap(),
        other => panic!("{other}"),
    });
    let records: Vec<(String, Value)> = records.collect();
    assert_eq!((records[0].0.as_str(), &records[0].1["records"]), ("head", &json!(count)));
    assert_eq!(count, records.len() as u64 - 1);
    records
}

#[tokio::test]
async fn an_export_has_all_data_of_a_member_and_no_texts_of_others() {
    let Scene { world, id, answered, leaf, .. } = Scene::new().await;
    let records = exported(&world, Who::User(UserId(id))).await;
    let of = |kind: &str| records.iter().filter(|record| record.0 == kind).map(|record| &record.1).collect::<Vec<_>>();
    assert_eq!((of("user").len(), &of("user")[0]["name"]), (1, &json!("Ada Lovelace")));
    assert_eq!((of("thread").len(), &of("thread")[0]["author_id"]), (1, &json!(id)));
    let comments = of("comment");
    assert!(comments.iter().all(|comment| comment["author"]["user_id"] == json!(id)), "{comments:#?}");
    let find = |id: u64| comments.iter().find(|comment| comment["id"] == json!(id)).unwrap();
    assert_eq!((&find(answered)["body"], &find(answered)["pinned"]), (&json!("first"), &json!(true)));
    assert!(find(leaf)["body"].as_str().unwrap().starts_with("![me]"));
    assert_eq!((comments.len(), of("like").len(), of("report").len()), (8, 2, 1));
    assert_eq!(of("report")[0]["reason"], "spam: I, Ada Lovelace, say so");
    assert_eq!(records.len(), 1 + 1 + 1 + 8 + 2 + 1);
    erase(&world, Who::User(UserId(id))).await;
    let left = exported(&world, Who::User(UserId(id))).await;
    assert_eq!(left.len(), 2, "the ban: {left:#?}");
    assert!(left[1].1["ban"].is_object() && left[1].1["name"].is_null(), "{left:#?}");
}

#[tokio::test]
async fn an_export_of_a_guest_has_everything_written_with_the_address() {
    let world = World::with(&GUESTS);
    let (ada, other) = (world.guest(), world.guest());
    let top = other.post("posts/1/comments", by_guest("of Grace")).await.ok(201).id();
    let signed = json!({ "body": "of Ada", "guest_name": "Ada", "guest_email": EMAIL });
    let own = ada.post("posts/1/comments", signed).await.ok(201).id();
    ada.like(top).await.ok(200);
    let records = exported(&world, guest()).await;
    let of = |kind: &str| records.iter().filter(|record| record.0 == kind).map(|record| &record.1).collect::<Vec<_>>();
    assert_eq!((of("comment").len(), &of("comment")[0]["id"]), (1, &json!(own)));
    assert_eq!((of("like").len(), &of("like")[0]["comment"]), (1, &json!(top)));
    assert_eq!(records.len(), 3);
}

#[tokio::test]
async fn a_guest_is_erased_by_the_address_with_likes_and_reports() {
    let world = World::with(&GUESTS);
    let (ada, other, bob) = (world.guest(), world.guest(), world.user(8, "Bob"));
    let signed = |body: &str| json!({ "body": body, "guest_name": "Ada Lovelace", "guest_email": EMAIL });
    let top = bob.comment("posts/1", "of Bob").await;
    let words = other.post("posts/1/comments", by_guest("I know Ada Lovelace")).await.ok(201).id();
    let answered = ada.post("posts/1/comments", signed("answered")).await.ok(201).id();
    bob.reply("posts/1", answered, "of Bob").await;
    ada.post("posts/1/comments", signed("alone")).await.ok(201);
    ada.like(top).await.ok(200);
    other.like(top).await.ok(200);
    ada.report(top, "spam").await.ok(201);
    let member = world.claiming(&json!({ "sub": "9", "name": "A. L.", "email": EMAIL }));
    let of_member = member.comment("posts/1", "as a member").await;
    world.finish_jobs().await;
    let visitor = world.item(&format!("C#{answered}"), "C").await.unwrap()["g"].as_s().unwrap().clone();
    let receipt = erase(&world, guest()).await;
    assert_eq!(receipt.left, 0, "{receipt:?}");
    let gone: Vec<(&str, u64)> = receipt.gone.iter().map(|(what, count)| (*what, *count)).collect();
    let expected = [("comments", 1), ("likes", 1), ("placeholders", 1), ("reports", 1)];
    assert!(expected.iter().all(|expected| gone.contains(expected)), "{gone:?}");
    let stays: Vec<&str> = receipt.stays.iter().map(|stay| stay.what.as_str()).collect();
    assert_eq!(stays, [&format!("comment {words} in posts/1"), "user 9"]);
    assert_eq!(items_with(&world, &[visitor]).await, [""; 0]);
    assert_eq!(items_with(&world, &["Ada Lovelace".to_owned()]).await.len(), 1);
    let list = bob.list("posts/1", "per_page=50").await;
    assert_eq!(list.ids().len(), 4, "{:#}", list.json);
    assert_eq!(
        (&list.find(top).unwrap()["likes_count"], &list.find(of_member).unwrap()["body"]),
        (&json!(1), &json!("as a member"))
    );
    assert_eq!(world.findings().await, [""; 0]);
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_guest_with_a_key_is_erased_by_the_address_and_the_hash_of_the_key_is_gone() {
    let world = World::with(&GUESTS);
    let held = world.again(&[&GUESTS[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let (ada, bob) = (world.guest().with_key("ada"), world.user(8, "Bob"));
    let signed = |body: &str| json!({ "body": body, "guest_name": "Ada Lovelace", "guest_email": EMAIL });
    let top = bob.comment("posts/1", "of Bob").await;
    let answered = ada.clone().keyed("1").post("posts/1/comments", signed("answered")).await.ok(201).id();
    bob.reply("posts/1", answered, "of Bob").await;
    let waits = held.guest().with_key("ada").post("posts/1/comments", signed("waits")).await.ok(201).id();
    ada.like(top).await.ok(200);
    world.finish_jobs().await;
    let key = world.item(&format!("C#{waits}"), "C").await.unwrap()["g"].as_s().unwrap().clone();
    assert!(items_with(&world, std::slice::from_ref(&key)).await.len() > 3, "comments, their counts and a request");
    let receipt = erase(&world, guest()).await;
    assert_eq!((receipt.left, receipt.gone["comments"], receipt.gone["placeholders"]), (0, 1, 1), "{receipt:?}");
    assert_eq!(items_with(&world, &[key, "Ada Lovelace".to_owned()]).await, [""; 0]);
    // The like is stored by network and browser, so nothing identifies the person.
    assert_eq!(bob.see("posts/1", top).await["likes_count"], 1);
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn notification_states_and_sealed_addresses_of_the_erased_are_gone() {
    let world = World::with(&MAIL);
    let (ada, bob) =
        (world.claiming(&json!({ "sub": "7", "name": "Ada Lovelace", "email": EMAIL })), world.user(8, "Bob"));
    let asking = |mut comment: Value| {
        comment["subscribe_to_replies"] = json!(true);
        comment
    };
    let top = ada.post("posts/1/comments", asking(json!({ "body": "tell me" }))).await.ok(201).id();
    bob.reply("posts/1", top, "told").await;
    let signed = json!({ "body": "tell me too", "guest_name": "Ada Lovelace", "guest_email": EMAIL });
    world.guest().post("posts/1/comments", asking(signed.clone())).await.ok(201);
    world.finish_jobs().await;
    let tagged = json!({ "body": "and me", "guest_name": "Ada Lovelace", "guest_email": "lovelace+tag@example.org" });
    world.guest().post("posts/1/comments", asking(tagged)).await.ok(201);
    let strict = world.again(&[&MAIL[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    strict.guest().post("posts/1/comments", asking(signed)).await.ok(201);
    world.finish_jobs().await;
    let keys = MailKeys::new(&Secret::from(SALT.to_owned()));
    let (sealed, recipient) = (keys.seal(EMAIL), keys.guest(EMAIL).0);
    assert_eq!(items_with(&world, std::slice::from_ref(&sealed)).await.len(), 3);
    assert!(items_with(&world, std::slice::from_ref(&recipient)).await.len() > 1);

    let member = erase(&world, Who::User(UserId(7))).await;
    assert_eq!((member.left, member.gone["mailboxes"]), (0, 1), "{member:?}");
    assert!(member.stays.iter().any(|stay| stay.what.ends_with(" of guests")), "{member:?}");
    let left = items_with(&world, std::slice::from_ref(&sealed)).await;
    assert!(left.len() == 2 && left.iter().all(|item| item.contains(&recipient)), "{left:?}");
    let guest = erase(&world, guest()).await;
    assert_eq!((guest.left, guest.gone["mailboxes"], guest.stays.len()), (0, 1, 0), "{guest:?}");
    assert_eq!(items_with(&world, &[sealed, recipient, "Ada Lovelace".to_owned(), hash()]).await, [""; 0]);
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn stream_records_restore_nothing_of_an_erased_person() {
    let moderators = [("SVC_MODERATION_MAIL", "mod@example.org"), ("SVC_REQUIRE_APPROVAL", "true")];
    let world = World::with(&[&MAIL[..], &moderators].concat());
    let mut changes = world.changes();
    let (bob, moderator) = (world.user(8, "Bob"), world.moderator());
    let claims = |name: &str| json!({ "sub": "7", "name": name, "email": EMAIL });
    let asking = json!({ "body": "mine, for @bob", "subscribe_to_replies": true });
    let ada = world.claiming(&claims("Ada Byron"));
    let [rejected, approved, waiting, leaf] = {
        let mut written = [0; 4];
        for id in &mut written {
            *id = ada.post("posts/1/comments", asking.clone()).await.ok(201).id();
        }
        written
    };
    moderator.judge(rejected, "reject").await.ok(200);
    moderator.judge(approved, "approve").await.ok(200);
    bob.reply("posts/1", approved, "an answer").await;
    ada.edit(approved, "mine, edited").await.ok(200);
    moderator.judge(approved, "approve").await.ok(200);
    bob.report(approved, "spam").await.ok(201);
    let top = bob.comment("posts/1", "of Bob").await;
    moderator.judge(top, "approve").await.ok(200);
    ada.like(top).await.ok(200);
    let report = json!({ "reason": "spam", "additional_details": "I, Ada Byron, say so" });
    ada.post(&format!("comments/{top}/report"), report).await.ok(201);
    let signed = json!({
        "body": "x", "guest_name": "Ada Byron", "guest_email": EMAIL, "subscribe_to_replies": true,
    });
    let of_guest = world.guest().post("posts/1/comments", signed).await.ok(201).id();
    moderator.judge(of_guest, "reject").await.ok(200);
    world.pass(Duration::from_mins(2));
    let ada = world.claiming(&claims("Ada Lovelace"));
    ada.remove(leaf).await.ok(204);
    moderator.put("users/7/ban", json!({ "reject_recent": true })).await.ok(200);
    moderator.delete("users/7/ban").await.ok(204);
    world.finish_jobs().await;
    assert!(world.store().comment(CommentId(waiting), Reading::Consistent).await.unwrap().is_some());

    for who in [Who::User(UserId(7)), guest()] {
        let receipt = erase(&world, who).await;
        assert_eq!(receipt.left, 0, "{receipt:?}");
    }
    world.finish_jobs().await;
    let keys = MailKeys::new(&Secret::from(SALT.to_owned()));
    let needles = [keys.seal(EMAIL), keys.guest(EMAIL).0, "Ada".to_owned(), hash(), "mine".to_owned(), "u7".to_owned()];
    assert_eq!(items_with(&world, &needles).await, [""; 0]);
    let (mails, items) = (world.mails().len(), world.items().await.len());
    world.repeat_changes(&mut changes).await;
    assert_eq!(items_with(&world, &needles).await, [""; 0]);
    assert_eq!(world.items().await.len(), items);
    let later = &world.mails()[mails..];
    assert!(later.iter().all(|mail| mail.to != EMAIL && !mail.text.contains("Ada")), "{later:?}");
    assert_eq!(world.findings().await, [""; 0]);
}

const NO_GRAVATARS: (&str, &str) = ("SVC_GUEST_SHOW_GRAVATAR", "false");

#[tokio::test]
async fn where_gravatars_are_off_no_hash_of_an_address_is_stored_and_a_guest_is_found_by_it() {
    let world = World::with(&[GUESTS[0], NO_GRAVATARS]);
    let signed = json!({ "body": "x", "guest_name": "Ada", "guest_email": EMAIL });
    let comment = world.guest().post("posts/1/comments", signed).await.ok(201);
    assert_eq!(comment.data()["user"]["avatar"], "");
    let ada = world.claiming(&json!({ "sub": "7", "name": "Ada Lovelace", "email": EMAIL }));
    let top = ada.comment("posts/1", "of a member").await;
    world.user(8, "Bob").reply("posts/1", top, "an answer").await;
    ada.report(comment.id(), "spam").await.ok(201);
    world.finish_jobs().await;
    assert_eq!(items_with(&world, &[hash()]).await, [""; 0]);
    assert_eq!(world.findings().await, [""; 0]);

    let elsewhere = erase(&world, by_address("another@example.org")).await;
    assert_eq!((elsewhere.left, elsewhere.gone.len()), (0, 0), "{elsewhere:?}");
    let receipt = erase(&world, guest()).await;
    assert_eq!((receipt.left, receipt.gone.get("comments")), (0, Some(&1)), "{receipt:?}");
    let Who::Address { keyed, .. } = guest() else { panic!() };
    assert_eq!(items_with(&world, &keyed).await.len(), 2, "no more than what imports ask for");
}

#[tokio::test]
async fn a_recount_replaces_stored_hashes_of_addresses_where_gravatars_are_off() {
    let world = World::with(&GUESTS);
    let signed = json!({ "body": "x", "guest_name": "Ada", "guest_email": EMAIL });
    let of_guest = world.guest().post("posts/1/comments", signed).await.ok(201).id();
    let ada = world.claiming(&json!({ "sub": "7", "name": "Ada Lovelace", "email": EMAIL }));
    ada.comment("posts/1", "of a member").await;
    ada.report(of_guest, "spam").await.ok(201);
    // Simulates a comment from before keyed hashes were stored.
    world.set(&format!("C#{of_guest}"), "C", "ah", None).await;
    world.finish_jobs().await;
    let with_hash = items_with(&world, &[hash()]).await.len();
    assert!(with_hash > 4, "two comments, a report, the user and fragments of the name: {with_hash}");

    let salt = Secret::from(SALT.to_owned());
    let store = world.store().keeping(Addresses::new(Some(&salt), false));
    let mut found = 0;
    loop {
        let findings = recount::check(&store, world.now()).await.unwrap();
        if findings.is_empty() {
            break;
        }
        found += findings.len();
        assert!(found < 100, "{findings:?}");
        for finding in &findings {
            assert!(recount::repair(&store, finding).await.unwrap(), "{finding}");
        }
    }
    // Some of the items need no repair: the service updates the fragments of the name when the user's item changes.
    assert!(found >= 4, "{found}");
    assert_eq!(items_with(&world, &[hash()]).await, [""; 0]);
    assert_eq!(world.findings().await, [""; 0]);
    let receipt = erase(&world, guest()).await;
    assert_eq!((receipt.left, receipt.gone.get("comments")), (0, Some(&1)), "{receipt:?}");
}

#[tokio::test]
async fn an_erased_person_who_refused_emails_is_enrolled_by_no_one() {
    let world = World::with(&MAIL);
    let mut asking = json!({ "body": "x", "guest_name": "Ada Lovelace", "guest_email": EMAIL });
    asking["subscribe_to_replies"] = json!(true);
    world.guest().post("posts/1/comments", asking.clone()).await.ok(201);
    world.finish_jobs().await;
    let stop = world.mails()[0].text.split_whitespace().rfind(|word| word.contains("/mail/")).unwrap().to_owned();
    let form = world.guest().with(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    form.send(http::Method::POST, &stop, "action=stop").await.ok(200);
    let receipt = erase(&world, guest()).await;
    let stays: Vec<&str> = receipt.stays.iter().map(|stay| stay.what.as_str()).collect();
    assert_eq!((receipt.left, receipt.gone["mailboxes"], stays), (0, 1, vec!["an unsubscription"]), "{receipt:?}");
    assert_eq!(erase(&world, guest()).await.gone.len(), 0, "a second erasure finds nothing");
    let keys = MailKeys::new(&Secret::from(SALT.to_owned()));
    let left = world.item(&format!("E#{}", keys.guest(EMAIL)), "E").await.unwrap();
    let attributes: std::collections::BTreeSet<&str> = left.keys().map(String::as_str).collect();
    assert_eq!(attributes, ["pk", "sk", "so", "st", "vn"].into());
    world.guest().post("posts/1/comments", asking).await.ok(201);
    world.finish_jobs().await;
    assert_eq!(world.mails().len(), 1);
}

#[tokio::test]
async fn likes_and_comments_of_a_shared_browser_with_another_address_stay() {
    let world = World::with(&GUESTS);
    let (shared, bob) = (world.guest(), world.user(8, "Bob"));
    let top = bob.comment("posts/1", "of Bob").await;
    let ada = json!({ "body": "of Ada", "guest_name": "Ada", "guest_email": EMAIL });
    shared.post("posts/1/comments", ada).await.ok(201);
    let kept = shared.post("posts/1/comments", by_guest("of Grace")).await.ok(201).id();
    shared.like(top).await.ok(200);
    let receipt = erase(&world, guest()).await;
    assert_eq!((receipt.left, receipt.gone["comments"], receipt.gone.len()), (0, 1, 1), "{receipt:?}");
    let list = bob.list("posts/1", "").await;
    assert_eq!((list.ids(), &list.find(top).unwrap()["likes_count"]), (vec![kept, top], &json!(1)));
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn no_reply_to_an_erased_comment_is_lost_while_others_write() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let parents = ada.write_many("posts/1", None, 20).await;
    let strict = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let eve = strict.user(9, "Eve");
    let answer = async {
        let (mut written, mut waiting) = (Vec::new(), Vec::new());
        for parent in &parents {
            let shown = bob.write("posts/1", Some(*parent), "shown").await;
            written.extend((shown.status == 201).then(|| shown.id()));
            let waits = eve.write("posts/1", Some(*parent), "waits").await;
            waiting.extend((waits.status == 201).then(|| waits.id()));
        }
        (written, waiting)
    };
    let (receipt, (written, waiting)) = tokio::join!(erase(&world, Who::User(UserId(7))), answer);
    assert_eq!(receipt.left, 0, "{receipt:?}");
    world.finish_jobs().await;
    assert_eq!(world.findings().await, [""; 0]);
    for id in written {
        bob.get(&format!("comments/{id}")).await.ok(200);
    }
    for id in waiting {
        eve.get(&format!("comments/{id}")).await.ok(200);
    }
    let left = bob.list("posts/1", "per_page=50").await;
    assert!(left.rows().iter().all(|row| row["is_deleted"] == json!(true)), "{:#}", left.json);
    assert!(ids(&left.json["data"]).len() <= parents.len());
}

/// Writes a comment by Ada with her own reply, a comment with a reply by Bob, and three imported comments: Bob replied
/// to one of them, and deleted the comment above another. Returns the ids of the comments that remain after an erasure.
async fn conversation(world: &World) -> [u64; 4] {
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let top = ada.comment("posts/1", "of Ada").await;
    ada.reply("posts/1", top, "of Ada").await;
    let answered = ada.comment("posts/1", "of Ada").await;
    let answer = bob.reply("posts/1", answered, "of Bob").await;
    let of_ada = imported(UserId(7));
    world.import(&of_ada).await;
    let source = Some(SourceId("disqus:lovelace-2".to_owned()));
    let other = world.import(&Comment { id: CommentId(of_ada.id.0 + 1), source, ..of_ada.clone() }).await;
    let to_other = bob.reply("posts/3", other, "of Bob").await;
    let deleted = bob.comment("posts/3", "of Bob").await;
    let source = Some(SourceId("disqus:lovelace-3".to_owned()));
    let (id, ancestors) = (CommentId(of_ada.id.0 + 2), vec![CommentId(deleted)]);
    let orphan = world.import(&Comment { id, ancestors, source, ..of_ada }).await;
    world.wait_until_idle().await;
    let stored = [(format!("C#{orphan}"), "C"), ("S#disqus:lovelace-3".to_owned(), "S")];
    let stored = [world.item(&stored[0].0, stored[0].1).await, world.item(&stored[1].0, stored[1].1).await];
    bob.remove(deleted).await.ok(204);
    world.finish_jobs().await;
    // Restores the table as it was before the job that removes the replies.
    for item in stored {
        world.client().put_item().table_name(TABLE).set_item(item).send().await.unwrap();
    }
    world.wait_until_idle().await;
    [other, answered, answer, to_other]
}

async fn stored_comments(world: &World) -> Vec<u64> {
    let items = world.items().await;
    let comments = items.iter().filter(|item| item["sk"].as_s().is_ok_and(|sk| sk == "C"));
    let mut ids: Vec<u64> = comments.map(|item| item["i"].as_n().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn an_erasure_that_ended_at_any_step_is_finished_by_the_next_one() {
    let ada = || Who::User(UserId(7));
    for steps in 0.. {
        let (world, faults) = (World::new(), Faults::new(1));
        world.leave_the_second_engine();
        let stay = conversation(&world).await;
        faults.kill_after(steps);
        let first = erase_by(&world, &world.store_behind(&faults), ada()).await;
        let second = erase(&world, ada()).await;
        assert_eq!(second.left, 0, "{steps}: {second:?}");
        world.finish_jobs().await;
        assert_eq!(world.findings().await, [""; 0], "{steps}");
        assert_eq!(stored_comments(&world).await, stay, "{steps}: {second:?}");
        assert_eq!(items_with(&world, &["lovelace".to_owned()]).await, [""; 0], "{steps}");
        if first.is_ok() {
            assert!(second.gone.is_empty() && steps > 30, "{steps}: {second:?}");
            return;
        }
    }
}

#[tokio::test]
async fn an_empty_placeholder_goes_with_the_last_reply_below_it() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "Bob"));
    let top = ada.comment("posts/1", "of Ada").await;
    let below = ada.reply("posts/1", top, "of Ada").await;
    bob.reply("posts/1", below, "of Bob").await;
    for (id, left) in [(7, 3), (8, 0)] {
        erase(&world, Who::User(UserId(id))).await;
        world.finish_jobs().await;
        assert_eq!((stored_comments(&world).await.len(), world.findings().await), (left, Vec::new()), "{id}");
    }
}

#[tokio::test]
async fn erasing_a_comment_removes_rejected_replies_and_everything_below_them() {
    let world = World::new();
    let (ada, bob, moderator) = (world.user(7, "Ada"), world.user(8, "Bob"), world.moderator());
    let top = ada.comment("posts/1", "top").await;
    let rejected = bob.reply("posts/1", top, "to be rejected").await;
    let below = moderator.reply("posts/1", rejected, "approved").await;
    let lowest = bob.reply("posts/1", below, "the lowest").await;
    bob.report(lowest, "spam").await;
    moderator.judge(rejected, "reject").await.ok(200);
    let receipt = erase(&world, Who::User(UserId(7))).await;
    assert_eq!((receipt.left, receipt.gone["comments"]), (0, 1), "{receipt:?}");
    assert_eq!((stored_comments(&world).await, world.findings().await), (Vec::new(), Vec::new()));
    for state in ["rejected", "reported", "all"] {
        let queue = moderator.get(&format!("moderation/comments?state={state}")).await.ok(200);
        assert_eq!(queue.rows().len(), 0, "{state}: {:#}", queue.json);
    }
}

/// Creates Ada's account, with an unused code.
async fn account(world: &World) -> sign_in::Session {
    let ada = sign_in::member(world, EMAIL, "Ada Lovelace").await;
    ada.actor.comment("posts/1", "with an account").await;
    sign_in::start(&world.guest(), "Lovelace@Example.org").await;
    world.finish_jobs().await;
    ada
}

#[tokio::test]
async fn an_erasure_ends_the_sessions_of_an_account_at_once_and_forgets_codes_and_address() {
    for by_id in [true, false] {
        let world = World::with(&SIGN_IN);
        let ada = account(&world).await;
        let id = ada.user["id"].as_u64().unwrap();
        let who = || if by_id { Who::User(UserId(id)) } else { guest() };
        let sealed = MailKeys::new(&Secret::from(SALT.to_owned())).seal(EMAIL);
        let of_codes = async || {
            let items = world.items().await;
            items.iter().filter(|item| ["O", "Z"].contains(&item["sk"].as_s().unwrap().as_str())).count()
        };
        assert_eq!((items_with(&world, std::slice::from_ref(&sealed)).await.len(), of_codes().await), (1, 2));
        let records = exported(&world, who()).await;
        let kinds: Vec<&str> = records.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["head", "user", "comment"]);
        let receipt = erase(&world, who()).await;
        let gone = |what| receipt.gone.get(what).copied();
        assert_eq!((receipt.left, gone("sign-ins"), gone("profile")), (0, Some(2), Some(1)), "{receipt:?}");
        assert_eq!((gone("comments"), receipt.stays.len()), (Some(1), 0), "{receipt:?}");
        assert_eq!(items_with(&world, &[sealed, "lovelace".to_owned(), hash()]).await, [""; 0]);
        assert_eq!((of_codes().await, items_of_user(&world, id).await), (0, Vec::<String>::new()));
        assert!(erase(&world, who()).await.gone.is_empty());
        ada.actor.get("users?q=a").await.refused(401, "unauthenticated");
        sign_in::refresh(&world, &ada.refresh).await.refused(422, "sign_in_failed");
        let again = sign_in::sign_in(&world, &world.guest(), EMAIL).await;
        assert_eq!((&again.user["id"], &again.user["name"]), (&json!(id), &Value::Null));
        ada.actor.get("users?q=a").await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_ban_outlives_the_erasure_of_an_account_and_other_accounts_stay() {
    let world = World::with(&[&SIGN_IN[..], &[("SVC_MODERATORS", "email:grace@example.org")]].concat());
    let (ada, tag) = (account(&world).await, sign_in::member(&world, "lovelace+tag@example.org", "Tag").await);
    sign_in::member(&world, "grace@example.org", "Grace Hopper").await;
    let id = &ada.user["id"];
    world.moderator().put(&format!("users/{id}/ban"), json!({})).await.ok(200);
    let receipt = erase(&world, guest()).await;
    let stays: Vec<&str> = receipt.stays.iter().map(|stay| stay.what.as_str()).collect();
    assert_eq!((receipt.left, stays), (0, vec![format!("ban of user {id}").as_str()]), "{receipt:?}");
    tag.actor.comment("posts/1", "still here").await;
    let again = sign_in::sign_in(&world, &world.guest(), EMAIL).await;
    assert_eq!((&again.user["id"], &again.user["name"]), (id, &Value::Null));
    again.actor.put("me/name", json!({ "name": "Ada" })).await.refused(403, "comment_banned");
    // The name of an erased moderator is available again.
    tag.actor.put("me/name", json!({ "name": "grace-hopper" })).await.invalid("name");
    erase(&world, by_address("grace@example.org")).await;
    world.pass(Duration::from_mins(1));
    let tag = sign_in::sign_in(&world, &world.guest(), "lovelace+tag@example.org").await;
    tag.actor.put("me/name", json!({ "name": "grace-hopper" })).await.ok(200);
}
