//! The operations to pair, and the scenes in which they run.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use shared::domain::ids::UserId;
use shared::domain::person::Who;
use tests::{Actor, FREE, Instance, MAIL, SECRET, SIGN_IN, Stage, Task, code, dot, form, mail_token, sign};
use transfer::check::Check;

type Text = &'static str;

/// A request, or the work that follows one.
pub(crate) struct Operation {
    pub(crate) name: Text,
    /// The rules that the operation relies on or changes. `cargo test` runs the pairs that share a rule.
    pub(crate) rules: Text,
    pub(crate) who: Text,
    /// The method and path. For a handler: `events`, `jobs` or `delivery`, and the name of another operation, whose
    /// records or messages the handler receives. For a command: `tool` and the command.
    pub(crate) request: Text,
    pub(crate) body: Text,
}

pub(crate) struct Scene {
    pub(crate) name: Text,
    settings: &'static [&'static [(Text, Text)]],
    /// The requests that set up the scene: the label and number of created items, the caller, the request and the body.
    set_up: &'static [(Text, Text, Text, Text)],
    pub(crate) operations: &'static [Operation],
}

fn fault<T, E: ToString>(done: Result<T, E>) -> Value {
    json!(done.err().map(|fault| fault.to_string()))
}

/// A scene after its setup, with the values that replace labels in braces.
pub(crate) struct Set {
    pub(crate) stage: Stage,
    labels: BTreeMap<String, String>,
}

const fn op(name: Text, rules: Text, who: Text, request: Text, body: Text) -> Operation {
    Operation { name, rules, who, request, body }
}

/// An import file for the thread that the operations write to.
const IMPORTED: &str = r#"
{"head":{"format":"comments","version":1,"source":"our old system"}}
{"thread":{"key":"one","type":"posts","id":"1"}}
{"comment":{"source_id":"558","thread":"one","created_at":"2020-01-02T03:04:05Z","author":{"name":"Olga"},"body":"Hi","format":"markdown","state":"approved"}}
{"comment":{"source_id":"559","parent":"558","thread":"one","created_at":"2020-01-02T03:04:06Z","author":{"name":"Pavel"},"body":"Hello","format":"markdown","state":"approved"}}
"#;

const OPEN: [(&str, &str); 3] =
    [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true"), ("SVC_SPAM_REVIEW", "doubtful")];

#[rustfmt::skip]
pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "replies", settings: &[&OPEN], set_up: &[
        ("", "", "tool import", ""),
        ("", "mia", "GET ui", ""),
        // A comment with one more reply than fits inline.
        ("P", "ada", "POST posts/1/comments", r#"{"body":"parent"}"#),
        ("P1", "bob", "POST posts/1/comments", r#"{"body":"first","parent_id":{P}}"#),
        ("P2", "carol", "POST posts/1/comments", r#"{"body":"second","parent_id":{P}}"#),
        ("P3", "dave", "POST posts/1/comments", r#"{"body":"third","parent_id":{P}}"#),
        ("P4", "carol", "POST posts/1/comments", r#"{"body":"fourth","parent_id":{P}}"#),
        // Two placeholders above the last live reply, which has no replies.
        ("H", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("I", "dave", "POST posts/1/comments", r#"{"body":"to go","parent_id":{H}}"#),
        ("R", "bob", "POST posts/1/comments", r#"{"body":"last","parent_id":{I}}"#),
        ("", "dave", "DELETE comments/{H}", ""),
        ("", "dave", "DELETE comments/{I}", ""),
        // A placeholder above the last live reply, which has a rejected reply.
        ("J", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("S", "mallory", "POST posts/1/comments", r#"{"body":"last","parent_id":{J}}"#),
        ("X", "carol", "POST posts/1/comments", r#"{"body":"rude","parent_id":{S}}"#),
        // The same placeholder has another reply, which is rejected.
        ("Y", "carol", "POST posts/1/comments", r#"{"body":"rude","parent_id":{J}}"#),
        ("", "dave", "DELETE comments/{J}", ""),
        ("", "mod", "POST comments/{X}/reject", ""),
        ("", "mod", "POST comments/{Y}/reject", ""),
        // A placeholder above one pending reply.
        ("K", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("W", "mallory", "POST posts/1/comments", r#"{"body":"doubtful","parent_id":{K}}"#),
        ("", "dave", "DELETE comments/{K}", ""),
        // A placeholder above two replies, and a comment with one reply.
        ("U", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("U1", "bob", "POST posts/1/comments", r#"{"body":"one","parent_id":{U}}"#),
        ("U2", "carol", "POST posts/1/comments", r#"{"body":"other","parent_id":{U}}"#),
        ("", "dave", "DELETE comments/{U}", ""),
        ("V", "dave", "POST posts/1/comments", r#"{"body":"to go"}"#),
        ("V1", "bob", "POST posts/1/comments", r#"{"body":"only","parent_id":{V}}"#),
    ], operations: &[
        op("reply to R", "R", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{R}}"#),
        op("doubtful reply to R", "R", "carol", "POST posts/1/comments", r#"{"body":"doubtful","parent_id":{R}}"#),
        op("delete R", "R", "bob", "DELETE comments/{R}", ""),
        op("reject R", "", "mod", "POST comments/{R}/reject", ""),
        op("reply to S", "S", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{S}}"#),
        op("delete S", "S", "mallory", "DELETE comments/{S}", ""),
        op("approve X", "S", "mod", "POST comments/{X}/approve", ""),
        op("delete X", "S", "carol", "DELETE comments/{X}", ""),
        op("approve Y", "S", "mod", "POST comments/{Y}/approve", ""),
        op("delete U1", "U", "bob", "DELETE comments/{U1}", ""),
        op("delete U2", "U", "carol", "DELETE comments/{U2}", ""),
        op("delete V", "V", "dave", "DELETE comments/{V}", ""),
        op("delete V1", "V", "bob", "DELETE comments/{V1}", ""),
        op("reply to W", "W", "mallory", "POST posts/1/comments", r#"{"body":"new","parent_id":{W}}"#),
        op("delete W", "W", "mallory", "DELETE comments/{W}", ""),
        op("approve W", "W", "mod", "POST comments/{W}/approve", ""),
        op("reject W", "W", "mia", "POST comments/{W}/reject", ""),
        op("reply to P", "P", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{P}}"#),
        // The deletion, which leaves a placeholder, races with each of the other operations.
        op("delete P", "P edit like report pin approve dismiss reject", "ada", "DELETE comments/{P}", ""),
        op("edit P", "edit", "ada", "PATCH comments/{P}", r#"{"body":"better"}"#),
        op("like P", "like", "carol", "POST comments/{P}/like", ""),
        op("report P", "report", "carol", "POST comments/{P}/report", r#"{"reason":"spam"}"#),
        op("pin P", "pin", "mod", "POST comments/{P}/pin", ""),
        op("approve P", "approve", "mod", "POST comments/{P}/approve", ""),
        op("dismiss P", "dismiss", "mia", "POST comments/{P}/reports/dismiss", ""),
        op("delete P1", "P", "bob", "DELETE comments/{P1}", ""),
        op("reject P", "reject", "mod", "POST comments/{P}/reject", ""),
        op("reject P2", "P", "mod", "POST comments/{P2}/reject", ""),
        op("events of delete P1", "P", "", "events delete P1", ""),
        op("events of delete R", "", "", "events delete R", ""),
        op("jobs of delete S", "S", "", "jobs delete S", ""),
        op("jobs of reject P", "", "", "jobs reject P", ""),
        op("erase Bob", "", "", "tool erase 8", ""),
        op("erase Mallory", "", "", "tool erase 13", ""),
        op("repair", "", "", "tool repair", ""),
        op("export", "", "", "tool export", ""),
        op("import again", "", "", "tool import", ""),
    ] },
    Scene { name: "depths", settings: &[&OPEN], set_up: &[
        ("D", "ada", "POST posts/1/comments", r#"{"body":"the first"}"#),
        ("E", "ada", "POST posts/1/comments", r#"{"body":"the second","parent_id":{D}}"#),
        ("E*8", "bob", "POST posts/1/comments", r#"{"body":"deeper","parent_id":{E}}"#),
    ], operations: &[
        op("deepest reply", "D", "ada", "POST posts/1/comments", r#"{"body":"new","parent_id":{E}}"#),
        op("delete E", "D", "bob", "DELETE comments/{E}", ""),
        op("delete D", "D", "ada", "DELETE comments/{D}", ""),
        op("reject D", "D", "mod", "POST comments/{D}/reject", ""),
        op("jobs of reject D", "", "", "jobs reject D", ""),
    ] },
    Scene { name: "imports", settings: &[&OPEN], set_up: &[], operations: &[
        op("import", "table", "", "tool import", ""),
        op("comment", "table", "ada", "POST posts/1/comments", r#"{"body":"new"}"#),
        op("close", "table", "mod", "POST posts/1/close", ""),
    ] },
    Scene { name: "decisions", settings: &[&OPEN], set_up: &[
        ("", "mia", "GET ui", ""),
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
        op("edit Q again", "Q", "bob", "PATCH comments/{Q}", r#"{"body":"doubtful again"}"#),
        op("delete Q", "Q", "bob", "DELETE comments/{Q}", ""),
        op("approve J", "", "mod", "POST comments/{J}/approve", ""),
        op("delete J", "", "carol", "DELETE comments/{J}", ""),
        op("approve E", "E", "mod", "POST comments/{E}/approve", r#"{"updated_at":"{E.updated_at}"}"#),
        op("edit E", "E", "ada", "PATCH comments/{E}", r#"{"body":"doubtful again"}"#),
        op("reject E", "E", "mia", "POST comments/{E}/reject", r#"{"updated_at":"{E.updated_at}","reason":"spam"}"#),
        op("report G", "G", "carol", "POST comments/{G}/report", r#"{"reason":"spam"}"#),
        op("dismiss G", "G", "mod", "POST comments/{G}/reports/dismiss", ""),
        op("approve G", "G", "mod", "POST comments/{G}/approve", ""),
        op("delete G", "G", "dave", "DELETE comments/{G}", ""),
        op("pin G", "T", "mia", "POST comments/{G}/pin", ""),
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
        op("approve M", "M erase", "mia", "POST comments/{M}/approve", ""),
        op("jobs of ban Mallory", "M", "", "jobs ban Mallory", ""),
        op("ban a network", "", "mod", "PUT comments/{N}/ban", r#"{"reject_recent":true}"#),
        op("comment of a guest", "", "guest", "POST posts/1/comments", r#"{"body":"new","guest_name":"Grace","guest_email":"grace@example.org"}"#),
        op("close", "", "mod", "POST posts/1/close", ""),
        op("reopen", "", "mia", "POST posts/2/open", ""),
        op("erase Mallory", "erase", "", "tool erase 13", ""),
        op("repair", "", "", "tool repair", ""),
        op("close again", "", "mod", "POST posts/2/close", ""),
    ] },
    Scene { name: "people", settings: &[&MAIL, &SIGN_IN, &[("SVC_WEBHOOKS", "true"), ("SVC_SPAM_REVIEW", "doubtful")]], set_up: &[
        ("C", "ada", "POST posts/1/comments", r#"{"body":"subscribed","subscribe_to_replies":true}"#),
        ("D", "bob", "POST posts/1/comments", r#"{"body":"by Bob"}"#),
        ("H", "mod", "POST moderation/webhooks", r#"{"url":"https://hooks.example.org/1","events":["comment.rejected"]}"#),
        ("G", "guest", "POST posts/1/comments", r#"{"body":"subscribed","guest_name":"Grace","guest_email":"grace@example.org","subscribe_to_replies":true}"#),
        ("O", "guest", "POST sign_in", r#"{"email":"olga@example.org"}"#),
        ("S", "guest", "POST sign_in/finish", r#"{"flow":"{O.flow}","code":"{O.code}"}"#),
        ("", "S", "PUT me/name", r#"{"name":"Olga"}"#),
        ("F", "guest", "POST sign_in", r#"{"email":"olga@example.org"}"#),
    ], operations: &[
        op("keyed comment", "key", "ada keyed", "POST posts/1/comments", r#"{"body":"once"}"#),
        op("other comment with the key", "key", "ada keyed", "POST posts/1/comments", r#"{"body":"twice"}"#),
        op("keyed report", "key", "ada keyed", "POST comments/{D}/report", r#"{"reason":"spam"}"#),
        op("keyed upload", "upload", "ada keyed", "POST media", "1"),
        op("other upload with the key", "upload", "ada keyed", "POST media", "2"),
        op("confirm", "mail", "guest", "POST mail/{G.link}", "action=confirm"),
        op("stop", "mail", "guest", "POST mail/{G.link}", "action=stop"),
        op("reply to C", "mail", "bob", "POST posts/1/comments", r#"{"body":"new","parent_id":{C}}"#),
        op("delete C", "mail", "ada", "DELETE comments/{C}", ""),
        op("events of reply to C", "mail", "", "events reply to C", ""),
        op("delivery of reply to C", "mail", "", "delivery reply to C", ""),
        op("enrol", "mail", "ada", "PUT me/notifications", r#"{"replies":false,"mentions":true,"own_records":false}"#),
        op("forget the address", "mail", "ada", "DELETE me/notifications", ""),
        op("unsubscribe", "mail", "guest", "POST mail/{stop}", "List-Unsubscribe=One-Click"),
        op("rename", "name erase", "ada renamed", "GET ui", ""),
        op("comment under the new name", "name", "ada renamed", "POST posts/1/comments", r#"{"body":"new"}"#),
        op("comment of Ada", "name erase", "ada", "POST posts/1/comments", r#"{"body":"hello"}"#),
        op("ban Ada", "name", "mod", "PUT users/7/ban", "{}"),
        op("first visit of Mallory", "first", "mallory", "GET ui", ""),
        op("ban Mallory", "first", "mod", "PUT users/13/ban", "{}"),
        op("events of rename", "name", "", "events rename", ""),
        op("jobs of rename", "", "", "jobs rename", ""),
        op("erase Ada", "erase", "", "tool erase 7", ""),
        op("repair", "", "", "tool repair", ""),
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
    /// Returns the handler, and the name of the operation whose change it handles.
    pub(crate) fn handles(&self) -> Option<(&str, &str)> {
        self.request.split_once(' ').filter(|(handler, _)| ["events", "jobs", "delivery"].contains(handler))
    }

    pub(crate) fn shares_a_rule(&self, other: &Self) -> bool {
        self.rules.split_whitespace().any(|rule| other.rules.split_whitespace().any(|other| rule == other))
    }
}

impl Scene {
    pub(crate) async fn set_up(&self) -> Set {
        let labels = BTreeMap::from([("stop".to_owned(), mail_token())]);
        let mut set = Set { stage: Stage::new(&self.settings.concat()), labels };
        // Publishes the key for sessions.
        set.stage.instance(FREE).visitor(90).post("sign_in/refresh", json!({ "refresh_token": "none" })).await;
        for (label, who, request, body) in self.set_up {
            let (label, times) = label.split_once('*').unwrap_or((label, "1"));
            for _ in 0..times.parse().expect("a number") {
                set.stage.pass(Duration::from_mins(3));
                let answer = set.perform(FREE, &op(label, "", who, request, body), &[]).await;
                assert!(answer["status"].as_u64() < Some(300), "{request}: {answer:#}");
                set.stage.drain(Vec::new(), "").await.unwrap();
                let data = answer["body"]["data"].as_object().filter(|_| !label.is_empty());
                for (field, value) in data.into_iter().flatten() {
                    let name = if field == "id" { label.to_owned() } else { format!("{label}.{field}") };
                    set.labels.insert(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                }
            }
            if let Some(mail) = set.stage.services.outbox.mails().unwrap().pop() {
                let link = mail.text.split("/mail/").nth(1).and_then(|rest| rest.split_whitespace().next());
                let (name, text) = link.map_or_else(|| ("code", code(&mail)), |link| ("link", link.to_owned()));
                set.labels.insert(format!("{label}.{name}"), text);
            }
        }
        set.stage.pass(Duration::from_mins(3));
        set
    }
}

impl Set {
    pub(crate) fn actor(&self, instance: &Instance, who: &str) -> Actor {
        let (name, how) = who.split_once(' ').unwrap_or((who, ""));
        let people = ["", "mod", "mia", "ada", "bob", "carol", "dave", "mallory"];
        let number = [90, 1, 2, 7, 8, 9, 10, 13][people.iter().position(|known| *known == name).unwrap_or_default()];
        let (visitor, is_renamed) = (instance.visitor(number), how == "renamed");
        if let Some(token) = self.labels.get(&format!("{name}.access_token")) {
            return visitor.with_token(token);
        }
        if name == "guest" {
            return visitor;
        }
        let claims = json!({
            "sub": number.to_string(), "name": if is_renamed { "ada lovelace" } else { name },
            "email": format!("{name}@example.org"), "roles": if number < 7 { json!(["moderator"]) } else { json!([]) },
            "iat": instance.app.clock.now().seconds() + i64::from(is_renamed), "exp": 4_000_000_000_u64,
        });
        let member = visitor.with_token(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET));
        if how == "keyed" { member.keyed("4711") } else { member }
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        let fill = |text: String, (label, id): (&String, &String)| text.replace(&format!("{{{label}}}"), id);
        self.labels.iter().fold(text.to_owned(), fill)
    }

    /// Carries out an operation on a new instance. A handler receives the tasks in `given`.
    pub(crate) async fn perform(&self, number: usize, operation: &Operation, given: &[Task]) -> Value {
        let instance = self.stage.instance(number);
        // Commands wait for earlier requests for as long as `patience`.
        let (store, clock, patience) = (&instance.app.store, instance.app.clock.clone(), Duration::from_secs(5));
        match operation.request.split(' ').collect::<Vec<_>>()[..] {
            ["events" | "jobs" | "delivery", ..] => {
                for task in given {
                    // A failed task is redelivered.
                    let _fault = self.stage.handle(&instance.app, task).await;
                }
                Value::Null
            }
            ["tool", "erase", user] => {
                let who = Who::User(UserId(user.parse().expect("a user")));
                fault(tests::erase(store, &self.stage.services.bucket, clock, who, patience).await)
            }
            ["tool", "repair"] => fault(Check { repair: true, patience }.run(store, &clock, &mut Vec::new()).await),
            ["tool", "import"] => fault(tests::import(store, IMPORTED.as_bytes(), 3, clock).await),
            ["tool", ..] => fault(tests::export(store).await),
            _ => {
                let [request, body] = [operation.request, operation.body].map(|text| self.fill(text));
                let (method, path) = request.split_once(' ').expect("a method and a path");
                let (kind, body) = if path == "media" {
                    let dot = dot(body.parse().expect("a colour"));
                    ("multipart/form-data; boundary=XyZ", form("XyZ", &[("file", "a.gif", &dot)]))
                } else if body.is_empty() || body.starts_with('{') {
                    ("application/json", body.into_bytes())
                } else {
                    ("application/x-www-form-urlencoded", body.into_bytes())
                };
                let actor = self.actor(&instance, operation.who).with(CONTENT_TYPE, kind);
                let answer = actor.send(method.parse().expect("a method"), path, body).await;
                json!({ "status": answer.status, "body": answer.json })
            }
        }
    }

    /// Carries out the requests that lead to the handlers among these operations, and returns the handlers' tasks.
    pub(crate) async fn prepare(&self, scene: &Scene, operations: [&Operation; 2]) -> [Vec<Task>; 2] {
        let mut given = [Vec::new(), Vec::new()];
        for place in 0..2 {
            if place == 1 && operations[0].request == operations[1].request {
                given = [given[0].clone(), given[0].clone()];
            } else if let Some((handler, before)) = operations[place].handles() {
                let before = scene.operations.iter().find(|known| known.name == before).expect("an operation");
                self.perform(FREE, before, &[]).await;
                given[place] = self.stage.drain(Vec::new(), handler).await.unwrap();
            }
        }
        self.stage.pass(Duration::from_secs(1));
        given
    }
}
