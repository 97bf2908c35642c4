//! Says whether what came of two operations is right.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared::domain::ids::CommentId;
use shared::store::Reading;
use tests::{FREE, Stage};
use transfer::store::recount;

use crate::operations::{Labels, actor};

/// Refusals that are right though neither serial order has them. They must have no effect.
const ALLOWED: &[(u64, &str, &str)] =
    &[(409, "comment_changed", "the moderator saw another text, whatever became of it since")];

/// Fields that say when, or are made by chance.
const GENERATED: [&str; 10] = [
    "created_at",
    "updated_at",
    "relative_created_at",
    "relative_updated_at",
    "pinned_at",
    "next",
    "access_token",
    "refresh_token",
    "flow",
    "secret",
];

/// What came of two operations, with names in the place of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) answers: [String; 2],
    pub(crate) drained: Drained,
    /// What people see, if anybody has looked.
    seen: Option<String>,
    /// The comments that the answers show, and whether they are approved.
    shown: [Option<(u64, bool)>; 2],
}

/// What is left when all has been handled that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drained {
    table: String,
    /// What `check` finds, and faults.
    pub(crate) findings: Vec<String>,
}

/// Texts of the ids in an outcome.
struct Names(BTreeMap<u64, String>);

impl Names {
    /// Those of the scene have labels. Those that are new are numbered in their order.
    fn of(labels: &Labels, texts: &[&str]) -> Self {
        let labels = labels.iter().filter(|(label, _)| !label.contains('.'));
        let mut names: BTreeMap<_, _> =
            labels.filter_map(|(label, id)| Some((id.parse().ok()?, label.clone()))).collect();
        let ids = texts.iter().flat_map(|text| numbers(text)).filter_map(|(_, digits)| Some(id_in(digits)?.1));
        let new: BTreeSet<u64> = ids.filter(|id| !names.contains_key(id)).collect();
        names.extend(new.into_iter().zip(0..).map(|(id, number)| (id, format!("#{number}"))));
        Self(names)
    }

    fn name(&self, text: &str) -> String {
        let (mut named, mut end) = (String::new(), 0);
        for (start, digits) in numbers(text) {
            let Some((count, name)) = id_in(digits).and_then(|(count, id)| Some((count, self.0.get(&id)?))) else {
                continue;
            };
            named.push_str(&text[end..start]);
            if count > 0 {
                named.extend([&count.to_string(), "x"]);
            }
            named.push_str(name);
            end = start + digits.len();
        }
        named + &text[end..]
    }
}

/// The digits in a text, and where they begin.
fn numbers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(|c: char| c.is_ascii_digit())?;
        let digits =
            text[start..].find(|c: char| !c.is_ascii_digit()).map_or(&text[start..], |end| &text[start..start + end]);
        rest = start + digits.len();
        Some((start, digits))
    })
}

/// The id that digits are, after the count of a rank.
fn id_in(digits: &str) -> Option<(u64, u64)> {
    const RANK: u64 = 10_000_000_000_000_000;
    let number: u64 = digits.parse().ok()?;
    (number % RANK > 1 << 51 && number % RANK < 1 << 53).then_some((number / RANK, number % RANK))
}

impl Outcome {
    /// `known` has what is left by what there was to handle. The callers look if there are any.
    pub(crate) async fn of(
        stage: &Stage,
        labels: &Labels,
        answers: [Value; 2],
        known: &mut BTreeMap<String, Drained>,
        callers: Option<[&str; 2]>,
    ) -> Self {
        let shown = answers.each_ref().map(|answer| {
            let comment = &answer["body"]["data"];
            Some((comment["id"].as_u64()?, comment["is_approved"].as_bool()?))
        });
        let answers = answers.map(|answer| without_generated(essence(answer)).to_string());
        let changes = stage.take_changes().await;
        let begun = format!("{:?}\n{changes:?}\n{}", stage.items(), stage.messages());
        let names = Names::of(labels, &[&begun, &answers[0], &answers[1]]);
        let answers = answers.map(|answer| names.name(&answer));
        let begun = names.name(&begun);
        if let (Some(drained), None) = (known.get(&begun), callers) {
            return Self { answers, drained: drained.clone(), seen: None, shown };
        }
        let fault = stage.drain(changes).await.err();
        let app = stage.app(FREE);
        let findings = recount::check(&app.store, app.clock.now()).await.expect("the table answers");
        let findings = findings.iter().map(|finding| names.name(&finding.to_string())).chain(fault).collect();
        let table = table(stage);
        let names = Names::of(labels, &[&table, &begun]);
        let mut table: Vec<String> = table.lines().map(|item| names.name(item)).collect();
        table.sort();
        let drained = Drained { table: table.join("\n"), findings };
        known.insert(begun, drained.clone());
        let seen = match callers {
            Some(callers) => Some(names.name(&format!("{:#}", without_generated(see(stage, labels, callers).await)))),
            None => None,
        };
        Self { answers, drained, seen, shown }
    }

    /// Whether this participant was refused as it may be.
    pub(crate) fn is_refused(&self, who: usize) -> bool {
        let answer: Value = serde_json::from_str(&self.answers[who]).unwrap_or_default();
        ALLOWED.iter().any(|(status, code, _)| answer["status"] == *status && answer["body"]["code"] == *code)
    }

    /// Whether the comment that the answer shows is no longer there, or no longer as it says.
    pub(crate) async fn breaks_its_word(&self, stage: &Stage, who: usize) -> bool {
        let Some((id, is_approved)) = self.shown[who] else { return false };
        let now = stage.app(FREE).store.comment(CommentId(id), Reading::Consistent).await.expect("the table answers");
        now.is_none_or(|now| now.is_approved() != is_approved)
    }

    fn lines(&self) -> BTreeSet<&str> {
        let texts = self.answers.iter().chain(&self.drained.findings).chain(&self.seen);
        texts.flat_map(|text| text.lines()).collect()
    }
}

/// The table without what people never see and what `check` checks: counters of requests, fingerprints, and shards of queues.
fn table(stage: &Stage) -> String {
    let items = stage.items().into_iter().filter(|(key, _)| !key.contains("\"L#")).map(|(_, mut item)| {
        item.as_object_mut().expect("an item").remove("fp");
        let pk = item["pk"]["S"].as_str().unwrap_or_default();
        if let Some(queue) = pk.strip_prefix("Q#").and_then(|queue| queue.split('#').next()) {
            item["pk"]["S"] = format!("Q#{queue}").into();
        }
        item.to_string()
    });
    items.collect::<Vec<_>>().join("\n")
}

/// The outcomes that are right.
pub(crate) struct Expected {
    /// One after the other, as the name says.
    pub(crate) serial: Vec<(&'static str, Outcome)>,
    /// One without the other, where the other may be refused.
    pub(crate) alone: [Option<Outcome>; 2],
    /// Others that people cannot tell from them.
    pub(crate) right: Vec<Outcome>,
}

impl Expected {
    /// Whether the outcome is known to be right.
    pub(crate) fn has(&self, outcome: &Outcome) -> bool {
        let is_same = |known: &Outcome| known.answers == outcome.answers && known.drained == outcome.drained;
        self.serial.iter().map(|(_, serial)| serial).chain(&self.right).any(is_same)
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.serial[0].1.seen.is_some()
    }

    /// Judges an outcome by what people see. The error says what is wrong.
    pub(crate) fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        let looks_like =
            |other: &Outcome| outcome.seen == other.seen && outcome.drained.findings == other.drained.findings;
        let is_serial = |(_, serial): &(_, Outcome)| outcome.answers == serial.answers && looks_like(serial);
        let is_alone = |who: usize| {
            let is_same = |alone: &Outcome| outcome.answers[who] == alone.answers[who] && looks_like(alone);
            outcome.is_refused(1 - who) && self.alone[who].as_ref().is_some_and(is_same)
        };
        if self.serial.iter().any(is_serial) || (0..2).any(is_alone) {
            return Ok(());
        }
        let differences = self.serial.iter().map(|(name, serial)| {
            let (here, there) = (outcome.lines(), serial.lines());
            let less = there.difference(&here).map(|line| format!("  - {line}"));
            let more = here.difference(&there).map(|line| format!("  + {line}"));
            format!("beside {name}:\n{}\n", less.chain(more).collect::<Vec<_>>().join("\n"))
        });
        Err(differences.collect())
    }
}

/// What a guest, both callers and a moderator see.
async fn see(stage: &Stage, labels: &Labels, callers: [&str; 2]) -> Value {
    let roles: BTreeSet<&str> = callers.into_iter().chain(["guest", "mod"]).filter(|who| !who.is_empty()).collect();
    let mut seen = json!({});
    for role in roles {
        let reader = actor(stage, FREE, role, labels);
        let mut views = json!({});
        let mut lists = vec!["posts/1/comments?per_page=50".to_owned(), "posts/2/comments?per_page=50".to_owned()];
        while let Some(list) = lists.pop() {
            let answer = reader.get(&list).await;
            for row in answer.json["data"].as_array().into_iter().flatten() {
                if row["replies_count"] != 0 {
                    lists.push(format!("comments/{}/replies?per_page=50", row["id"]));
                }
                if matches!(role, "guest" | "mod") {
                    let shown = reader.get(&format!("comments/{}", row["id"])).await;
                    views[format!("comments/{}", row["id"])] = json!([shown.status, shown.json["data"]["body"]]);
                }
            }
            views[&list] = json!([answer.status, answer.json["data"]]);
        }
        let mut others = vec!["counts?threads=posts/1,posts/2", "posts/1/changes"];
        if role == "mod" {
            others.extend([
                "moderation/comments?state=pending&per_page=50",
                "moderation/comments?state=reported&per_page=50",
                "moderation/comments?state=rejected&per_page=50",
                "moderation/log?per_page=50",
                "moderation/users",
            ]);
        }
        if role != "guest" {
            others.extend(["me/notifications", "ui"]);
        }
        for path in others {
            let answer = reader.get(path).await;
            views[path] = json!([answer.status, answer.json["data"]]);
        }
        seen[role] = views;
    }
    seen
}

/// What an answer says for good. It shows a comment or its reports as they are by then, so the other operation may be in it, and
/// counts may be a moment old: what people see afterwards is compared instead.
fn essence(mut answer: Value) -> Value {
    if let Some(body) = answer["body"].as_object_mut() {
        body.remove("likes_count");
        if body.get("data").is_some_and(|data| data["body"].is_string()) {
            body["data"] = json!({ "id": body["data"]["id"] });
        } else if body.get("data").is_some_and(Value::is_array) {
            body.remove("data");
        }
    }
    answer
}

fn without_generated(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !GENERATED.contains(&name.as_str()));
            fields.values_mut().for_each(|field| *field = without_generated(field.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = without_generated(value.take())),
        _ => {}
    }
    value
}
