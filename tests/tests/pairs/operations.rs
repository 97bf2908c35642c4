//! The operations, in the states where they are interesting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::CONTENT_TYPE;
use media::bucket::Bucket;
use serde_json::{Value, json};
use server::settings::{DELIVERIES, JOBS, MEDIA};
use shared::domain::ids::{UserId, salt_fingerprint};
use shared::domain::person::Who;
use shared::domain::secret::Secret;
use tests::{Actor, FREE, Message, SALT, Stage, State, code, mail_token};
use transfer::check::Check;
use transfer::export::export;
use transfer::import::write::{Importer, WriteLimits};
use transfer::import::{Format, Import, Users};
use transfer::lease::Lease;
use transfer::person::erase::Eraser;

/// Ids by labels.
pub(crate) type Labels = BTreeMap<String, String>;

/// A request, or what follows one. Labels in braces are replaced by ids.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// What it relies on or changes. `cargo test` runs the pairs that have a rule in common.
    pub(crate) rules: &'static str,
    pub(crate) who: &'static str,
    /// Method and path. Or `events`, `jobs` or `delivery` and the name of another operation, whose records or messages the
    /// handler is given. Or `tool` and its name.
    pub(crate) request: &'static str,
    pub(crate) body: &'static str,
}

pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) settings: &'static [(&'static str, &'static str)],
    /// The requests that set it up: the label of what is created, who, the request and its body.
    set_up: &'static [(&'static str, &'static str, &'static str, &'static str)],
    pub(crate) operations: &'static [Operation],
}

const fn op(
    name: &'static str,
    rules: &'static str,
    who: &'static str,
    request: &'static str,
    body: &'static str,
) -> Operation {
    Operation { name, rules, who, request, body }
}

/// A file of an import into the thread that is written to.
const IMPORTED: &str = r#"
{"head":{"format":"comments","version":1,"source":"our old system"}}
{"thread":{"key":"one","type":"posts","id":"1"}}
{"comment":{"source_id":"558","thread":"one","created_at":"2020-01-02T03:04:05Z","author":{"name":"Olga"},"body":"Hi","format":"markdown","state":"approved"}}
{"comment":{"source_id":"559","parent":"558","thread":"one","created_at":"2020-01-02T03:04:06Z","author":{"name":"Pavel"},"body":"Hello","format":"markdown","state":"approved"}}
"#;

const OPEN: [(&str, &str); 3] =
    [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true"), ("SVC_SPAM_REVIEW", "doubtful")];

const PEOPLE: [(&str, &str); 10] = [
    ("SVC_ALLOW_GUESTS", "true"),
    ("SVC_SUBSCRIPTIONS", "true"),
    ("SVC_MAIL_FROM", "comments@example.org"),
    ("SVC_PUBLIC_URL", "https://api.test"),
    ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}"),
    ("SVC_SIGN_IN", "true"),
    ("SVC_SIGN_IN_SEED", "the seed that signs our own tokens"),
    ("SVC_CORS_ORIGINS", "https://www.example.org"),
    ("SVC_WEBHOOKS", "true"),
    ("SVC_SPAM_REVIEW", "doubtful"),
];

#[rustfmt::skip]
pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "replies", settings: &OPEN, set_up: &[
        // A comment with as many replies as are inline, and one more. The last is doubtful.
        ("P", "ada", "POST posts/1/comments", r#"{"body":"parent"}"#),
        ("P1", "bob", "POST posts/1/comments", r#"{"body":"first","parent_id":{P}}"#),
        ("P2", "carol", "POST posts/1/comments", r#"{"body":"second","parent_id":{P}}"#),
        ("P3", "bob", "POST posts/1/comments", r#"{"body":"third","parent_id":{P}}"#),
        ("P4", "carol", "POST posts/1/comments", r#"{"body":"fourth","parent_id":{P}}"#),
        // Two placeholders above the last live reply, which has none.
        ("H", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("I", "dave", "POST posts/1/comments", r#"{"body":"to go","parent_id":{H}}"#),
        ("R", "bob", "POST posts/1/comments", r#"{"body":"last","parent_id":{I}}"#),
        ("", "dave", "DELETE comments/{H}", ""),
        ("", "dave", "DELETE comments/{I}", ""),
        // A placeholder above the last live reply, which has a rejected one.
        ("J", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("S", "bob", "POST posts/1/comments", r#"{"body":"last","parent_id":{J}}"#),
        ("X", "carol", "POST posts/1/comments", r#"{"body":"rude","parent_id":{S}}"#),
        ("", "dave", "DELETE comments/{J}", ""),
        ("", "mod", "POST comments/{X}/reject", ""),
        // A placeholder above one reply that waits.
        ("K", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("W", "bob", "POST posts/1/comments", r#"{"body":"doubtful","parent_id":{K}}"#),
        ("", "dave", "DELETE comments/{K}", ""),
    ], operations: &[
        op("reply to R", "R", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{R}}"#),
        op("doubtful reply to R", "R", "carol", "POST posts/1/comments", r#"{"body":"doubtful","parent_id":{R}}"#),
        op("delete R", "R", "bob", "DELETE comments/{R}", ""),
        op("reject R", "", "mod", "POST comments/{R}/reject", ""),
        op("reply to S", "S", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{S}}"#),
        op("delete S", "S", "bob", "DELETE comments/{S}", ""),
        op("approve X", "S", "mod", "POST comments/{X}/approve", ""),
        op("delete X", "S", "carol", "DELETE comments/{X}", ""),
        op("delete W", "W", "bob", "DELETE comments/{W}", ""),
        op("approve W", "W", "mod", "POST comments/{W}/approve", ""),
        op("reject W", "W", "mia", "POST comments/{W}/reject", ""),
        op("reply to P", "P", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{P}}"#),
        op("delete P", "P", "ada", "DELETE comments/{P}", ""),
        op("delete P1", "P", "bob", "DELETE comments/{P1}", ""),
        op("reject P", "", "mod", "POST comments/{P}/reject", ""),
        op("reject P2", "P", "mod", "POST comments/{P2}/reject", ""),
        op("events of delete P1", "P", "", "events delete P1", ""),
        op("events of delete R", "", "", "events delete R", ""),
        op("jobs of delete S", "S", "", "jobs delete S", ""),
        op("jobs of reject P", "", "", "jobs reject P", ""),
        op("erase Bob", "", "", "tool erase", ""),
        op("repair", "", "", "tool repair", ""),
        op("export", "", "", "tool export", ""),
        op("import", "", "", "tool import", ""),
    ] },
    Scene { name: "decisions", settings: &OPEN, set_up: &[
        ("T", "ada", "POST posts/1/comments", r#"{"body":"pinned"}"#),
        ("", "mod", "POST comments/{T}/pin", ""),
        ("C", "carol", "POST posts/1/comments", r#"{"body":"liked"}"#),
        ("", "bob", "POST comments/{C}/like", ""),
        ("Q", "bob", "POST posts/1/comments", r#"{"body":"doubtful"}"#),
        ("J", "carol", "POST posts/1/comments", r#"{"body":"rude"}"#),
        ("", "mod", "POST comments/{J}/reject", ""),
        ("E", "ada", "POST posts/1/comments", r#"{"body":"first"}"#),
        ("E", "ada", "PATCH comments/{E}", r#"{"body":"doubtful"}"#),
        ("G", "dave", "POST posts/1/comments", r#"{"body":"reported"}"#),
        ("", "guest", "POST comments/{G}/report", r#"{"reason":"spam"}"#),
        ("M", "mallory", "POST posts/1/comments", r#"{"body":"bait"}"#),
        ("L", "mallory", "POST posts/1/comments", r#"{"body":"doubtful"}"#),
        ("N", "guest", "POST posts/1/comments", r#"{"body":"by a guest","guest_name":"Grace","guest_email":"grace@example.org"}"#),
        ("", "ada", "POST posts/2/comments", r#"{"body":"closed"}"#),
        ("", "mod", "POST posts/2/close", ""),
    ], operations: &[
        op("approve Q", "Q", "mod", "POST comments/{Q}/approve", r#"{"updated_at":"{Q.updated_at}"}"#),
        op("reject Q", "Q", "mia", "POST comments/{Q}/reject", r#"{"updated_at":"{Q.updated_at}"}"#),
        op("edit Q", "Q", "bob", "PATCH comments/{Q}", r#"{"body":"better"}"#),
        op("delete Q", "Q", "bob", "DELETE comments/{Q}", ""),
        op("approve J", "", "mod", "POST comments/{J}/approve", ""),
        op("delete J", "", "carol", "DELETE comments/{J}", ""),
        op("approve E", "", "mod", "POST comments/{E}/approve", r#"{"updated_at":"{E.updated_at}"}"#),
        op("edit E", "", "ada", "PATCH comments/{E}", r#"{"body":"doubtful again"}"#),
        op("reject E", "", "mia", "POST comments/{E}/reject", r#"{"updated_at":"{E.updated_at}","reason":"spam"}"#),
        op("report G", "G", "carol", "POST comments/{G}/report", r#"{"reason":"spam"}"#),
        op("dismiss G", "G", "mod", "POST comments/{G}/reports/dismiss", ""),
        op("bulk reject", "", "mia", "POST moderation/comments", r#"{"ids":[{Q},{G},{C}],"action":"reject"}"#),
        op("report C", "C", "dave", "POST comments/{C}/report", r#"{"reason":"spam"}"#),
        op("like C", "C", "ada", "POST comments/{C}/like", ""),
        op("guest likes C", "C", "guest", "POST comments/{C}/like", ""),
        op("unlike C", "C", "bob", "POST comments/{C}/like", ""),
        op("delete C", "C", "carol", "DELETE comments/{C}", ""),
        op("pin C", "C T", "mod", "POST comments/{C}/pin", ""),
        op("unpin T", "T", "mia", "DELETE comments/{T}/pin", ""),
        op("delete T", "T", "ada", "DELETE comments/{T}", ""),
        op("reject T", "T", "mia", "POST comments/{T}/reject", ""),
        op("reply to T", "T", "bob", "POST posts/1/comments", r#"{"body":"new","parent_id":{T}}"#),
        op("comment of Mallory", "M", "mallory", "POST posts/1/comments", r#"{"body":"new"}"#),
        op("ban Mallory", "M", "mod", "PUT users/13/ban", r#"{"reject_recent":true}"#),
        op("unban Mallory", "M", "mia", "DELETE users/13/ban", ""),
        op("approve L", "M", "mia", "POST comments/{L}/approve", ""),
        op("approve M", "M", "mia", "POST comments/{M}/approve", ""),
        op("jobs of ban Mallory", "", "", "jobs ban Mallory", ""),
        op("ban a network", "", "mod", "PUT comments/{N}/ban", r#"{"reject_recent":true}"#),
        op("comment of a guest", "", "guest", "POST posts/1/comments", r#"{"body":"new","guest_name":"Grace","guest_email":"grace@example.org"}"#),
        op("close", "", "mod", "POST posts/1/close", ""),
        op("reopen", "", "mia", "POST posts/2/open", ""),
        op("close again", "", "mod", "POST posts/2/close", ""),
    ] },
    Scene { name: "people", settings: &PEOPLE, set_up: &[
        ("C", "ada", "POST posts/1/comments", r#"{"body":"subscribed","subscribe_to_replies":true}"#),
        ("D", "bob", "POST posts/1/comments", r#"{"body":"by Bob"}"#),
        ("H", "mod", "POST moderation/webhooks", r#"{"url":"https://hooks.example.org/1","events":["comment.rejected"]}"#),
        ("O", "guest", "POST sign_in", r#"{"email":"olga@example.org"}"#),
        ("S", "guest", "POST sign_in/finish", r#"{"flow":"{O.flow}","code":"{O.code}"}"#),
        ("", "S", "PUT me/name", r#"{"name":"Olga"}"#),
        ("F", "guest", "POST sign_in", r#"{"email":"olga@example.org"}"#),
    ], operations: &[
        op("keyed comment", "key", "ada keyed", "POST posts/1/comments", r#"{"body":"once"}"#),
        op("other comment with the key", "key", "ada keyed", "POST posts/1/comments", r#"{"body":"twice"}"#),
        op("keyed report", "key", "ada keyed", "POST comments/{D}/report", r#"{"reason":"spam"}"#),
        op("reply to C", "mail", "bob", "POST posts/1/comments", r#"{"body":"new","parent_id":{C}}"#),
        op("delete C", "mail", "ada", "DELETE comments/{C}", ""),
        op("events of reply to C", "mail", "", "events reply to C", ""),
        op("delivery of reply to C", "mail", "", "delivery reply to C", ""),
        op("enrol", "mail", "ada", "PUT me/notifications", r#"{"replies":false,"mentions":true,"own_records":false}"#),
        op("forget the address", "mail", "ada", "DELETE me/notifications", ""),
        op("unsubscribe", "mail", "guest", "POST mail/{stop}", "List-Unsubscribe=One-Click"),
        op("rename", "name", "ada renamed", "GET ui", ""),
        op("comment under the new name", "name", "ada renamed", "POST posts/1/comments", r#"{"body":"new"}"#),
        op("comment of Ada", "name", "ada", "POST posts/1/comments", r#"{"body":"hello"}"#),
        op("ban Ada", "name", "mod", "PUT users/7/ban", "{}"),
        op("events of rename", "name", "", "events rename", ""),
        op("jobs of rename", "", "", "jobs rename", ""),
        op("add a webhook", "webhook", "mod", "POST moderation/webhooks", r#"{"url":"https://hooks.example.org/2","events":["comment.created"]}"#),
        op("edit the webhook", "webhook", "mod", "PATCH moderation/webhooks/{H}", r#"{"events":["comment.deleted"]}"#),
        op("remove the webhook", "webhook", "mia", "DELETE moderation/webhooks/{H}", ""),
        op("ask for a code", "flow", "guest", "POST sign_in", r#"{"email":"olga@example.org"}"#),
        op("sign in", "", "guest", "POST sign_in/finish", r#"{"flow":"{F.flow}","code":"{F.code}"}"#),
        op("wrong code", "", "guest", "POST sign_in/finish", r#"{"flow":"{F.flow}","code":"12345678"}"#),
        op("refresh", "session", "guest", "POST sign_in/refresh", r#"{"refresh_token":"{S.refresh_token}"}"#),
        op("sign out", "session", "guest", "POST sign_in/end", r#"{"refresh_token":"{S.refresh_token}"}"#),
        op("sign out everywhere", "session", "guest", "POST sign_in/end", r#"{"refresh_token":"{S.refresh_token}","everywhere":true}"#),
        op("choose a name", "session", "S", "PUT me/name", r#"{"name":"Olga O."}"#),
        op("comment of Olga", "session", "S", "POST posts/1/comments", r#"{"body":"by Olga"}"#),
    ] },
];

impl Operation {
    /// Whether it handles what an earlier operation has left.
    pub(crate) fn is_handler(&self) -> bool {
        ["events ", "jobs ", "delivery "].iter().any(|handler| self.request.starts_with(handler))
    }

    pub(crate) fn shares_a_rule(&self, other: &Self) -> bool {
        self.rules.split_whitespace().any(|rule| other.rules.split_whitespace().any(|other| rule == other))
    }
}

impl Scene {
    /// The scene on a stage of its own, the labels of what is there, and its state.
    pub(crate) async fn set_up(&self) -> (Arc<Stage>, Arc<Labels>, State) {
        let stage = Stage::new(self.settings);
        let mut labels = Labels::from([("stop".to_owned(), mail_token())]);
        for instance in 0..FREE {
            // Publishes the key of sessions, once in the life of an instance.
            let token = json!({ "refresh_token": "none" });
            actor(&stage, instance, "guest", &labels).post("sign_in/refresh", token).await;
        }
        for (label, who, request, body) in self.set_up {
            stage.pass(Duration::from_mins(3));
            let answer = ask(&stage, FREE, who, request, body, &labels).await;
            assert!(answer["status"].as_u64() < Some(300), "{request}: {answer:#}");
            stage.drain(None).await.unwrap();
            for (field, value) in answer["body"]["data"].as_object().into_iter().flatten().filter(|_| !label.is_empty())
            {
                let name = if field == "id" { (*label).to_owned() } else { format!("{label}.{field}") };
                labels.insert(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
            if let Some(id) = answer["body"]["data"]["user"]["id"].as_u64() {
                labels.insert(format!("who signs in as {label}"), id.to_string());
            }
            if request.ends_with("sign_in") {
                labels.insert(format!("{label}.code"), code(&stage.last_mail().expect("a mail")));
            }
        }
        stage.pass(Duration::from_mins(3));
        let state = stage.state();
        (Arc::new(stage), Arc::new(labels), state)
    }

    fn operation(&self, name: &str) -> &Operation {
        self.operations.iter().find(|operation| operation.name == name).unwrap_or_else(|| panic!("no operation {name}"))
    }
}

/// The caller at an instance.
pub(crate) fn actor(stage: &Stage, instance: usize, who: &str, labels: &Labels) -> Actor {
    let (name, how) = who.split_once(' ').unwrap_or((who, ""));
    let (number, roles): (u64, &[&str]) = match name {
        "mod" => (1, &["moderator"]),
        "mia" => (2, &["moderator"]),
        "ada" => (7, &[]),
        "bob" => (8, &[]),
        "carol" => (9, &[]),
        "dave" => (10, &[]),
        "mallory" => (13, &[]),
        _ => (90, &[]),
    };
    if name == "guest" {
        return stage.actor(instance, number, None);
    }
    if let Some(token) = labels.get(&format!("{name}.access_token")) {
        return stage.actor(instance, number, None).with_token(token);
    }
    let mut claims =
        json!({ "sub": number.to_string(), "name": name, "roles": roles, "email": format!("{name}@example.org") });
    if how == "renamed" {
        (claims["name"], claims["iat"]) = (json!("ada lovelace"), json!(1));
    }
    let actor = stage.actor(instance, number, Some(claims));
    if how == "keyed" { actor.keyed("4711") } else { actor }
}

async fn ask(stage: &Stage, instance: usize, who: &str, request: &str, body: &str, labels: &Labels) -> Value {
    let fill = |text: &str| {
        let fill = |text: String, (label, id): (&String, &String)| text.replace(&format!("{{{label}}}"), id);
        labels.iter().fold(text.to_owned(), fill)
    };
    let (method, path) = request.split_once(' ').expect("a method and a path");
    let (method, path, body): (Method, _, _) = (method.parse().expect("a method"), fill(path), fill(body));
    let actor = actor(stage, instance, who, labels);
    let is_form = !body.is_empty() && !body.starts_with('{');
    let actor = if is_form { actor.with(CONTENT_TYPE, "application/x-www-form-urlencoded") } else { actor };
    let answer = actor.send(method, &path, body).await;
    json!({ "status": answer.status, "body": answer.json })
}

/// What a handler is given.
#[derive(Clone, Default)]
pub(crate) struct Given {
    changes: Option<Value>,
    messages: Vec<Message>,
}

/// Carries out an operation. The answer of a handler says whether it failed.
pub(crate) async fn perform(
    stage: &Stage,
    instance: usize,
    operation: &Operation,
    labels: &Labels,
    given: Given,
) -> Value {
    match operation.request.split_once(' ') {
        Some(("events", _)) => {
            let handled = match &given.changes {
                Some(changes) => events::handle(&stage.app(instance), changes).await,
                None => Ok(()),
            };
            json!(handled.err().map(|fault| fault.chain()))
        }
        Some(("jobs" | "delivery", _)) => {
            for message in given.messages {
                stage.handle(instance, message).await.unwrap();
            }
            Value::Null
        }
        Some(("tool", tool)) => use_tool(stage, instance, tool).await,
        _ => ask(stage, instance, operation.who, operation.request, operation.body, labels).await,
    }
}

/// Runs a command beside the service.
async fn use_tool(stage: &Stage, instance: usize, tool: &str) -> Value {
    let app = stage.app(instance);
    let (store, salt, directory) = (&app.store, Secret::from(SALT.to_owned()), tempfile::tempdir().unwrap());
    match tool {
        "erase" => {
            let lease = Lease { store, clock: app.clock.clone(), holder: tool.to_owned(), patience: Duration::ZERO };
            let objects = stage.bucket().client();
            let bucket = Bucket::new(&objects, MEDIA);
            let eraser = Eraser { store, bucket, salt: &salt, clock: app.clock.clone(), lease, machine: None };
            eraser.erase(Who::User(UserId(8))).await.unwrap();
        }
        "repair" => {
            let check = Check { repair: true, patience: Duration::from_secs(5) };
            let _left = check.run(store, &app.clock, &mut Vec::new()).await.unwrap();
        }
        "export" => {
            let _count = export(store, salt_fingerprint(&salt), directory.path(), &mut Vec::new()).await.unwrap();
        }
        _ => {
            let path = directory.path().join("import.jsonl");
            std::fs::write(&path, IMPORTED).unwrap();
            let staging = Import::new(Format::Native, vec![path]).read(directory.path(), |_| ()).unwrap();
            let (users, clock) = (Users::default(), app.clock.clone());
            let prefix = Format::Native.name();
            let table = WriteLimits::default();
            let (staging, users) = (&staging, &users);
            let importer = Importer { staging, store, users, prefix, embedded: 3, clock, table, other_salt: None };
            importer.run(&mut |_| ()).await.unwrap();
        }
    }
    Value::Null
}

/// Does what comes before the handlers among these operations, and returns what they are given.
pub(crate) async fn prepare(
    stage: &Stage,
    scene: &Scene,
    operations: [&'static Operation; 2],
    labels: &Labels,
) -> [Given; 2] {
    let mut given: [Given; 2] = Default::default();
    for place in 0..2 {
        let (handler, before) = operations[place].request.split_once(' ').expect("two words");
        if place == 1 && operations[0].request == operations[1].request {
            given[1] = given[0].clone();
        } else if operations[place].is_handler() {
            perform(stage, FREE, scene.operation(before), labels, Given::default()).await;
            if handler == "events" {
                given[place].changes = stage.take_changes().await;
            } else {
                while let Some(changes) = stage.take_changes().await {
                    events::handle(&stage.app(FREE), &changes).await.unwrap();
                }
                given[place].messages = stage.take_messages(if handler == "jobs" { JOBS } else { DELIVERIES });
            }
            stage.drain(None).await.unwrap();
        }
    }
    stage.pass(Duration::from_secs(1));
    given
}
