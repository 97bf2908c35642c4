//! Judges whether the visible outcome of two operations is right.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};
use shared::domain::ids::CommentId;
use shared::store::Reading;
use tests::{Changes, FREE, differ, is_made_of, rounded, rounded_value};
use transfer::store::recount;

use crate::Pair;

/// Right outcomes that no serial order produces: parts of the two requests, the places that may differ, and the reason.
/// If no places are given, each place must match one of the right outcomes.
const ALLOWED: &[([&str; 2], &[&str], &str)] = &[
    (["/report", "moderation/comments"], &["/reports 1 ", "state=reported"], "a later report waits for a decision"),
    (["moderation/comments", "moderation/comments"], &[], "each comment of a selection is decided for itself"),
    (["ban", "tool erase"], &[], "each recent comment of somebody banned is rejected for itself"),
    (["DELETE users/13/ban", "jobs ban"], &[], "what was rejected before a ban is lifted stays rejected"),
];
/// The requests that read the final state. Each listed comment is read too.
const OF_GUESTS: &str = "posts/1/comments?per_page=50 posts/2/comments?per_page=50 \
    counts?threads=posts/1,posts/2 posts/1/changes";
const OF_MODERATORS: &str = "moderation/comments?state=pending&per_page=50 moderation/comments?state=reported&per_page=50 \
    moderation/comments?state=rejected&per_page=50 moderation/log?per_page=50 moderation/users?banned=true \
    moderation/webhooks";

#[derive(Clone)]
struct Outcome {
    answers: [Value; 2],
    /// The id of the comment in each response.
    shown: [Value; 2],
    /// The content of the table once all follow-up work is done. Random numbers and clocks are the same in every order.
    left: Rc<Changes>,
    table: String,
}

pub(crate) struct Oracle<'a> {
    pair: &'a Pair<'a>,
    /// Right outcomes: first the ones of serial orders, then others that look the same to callers.
    right: Vec<Outcome>,
    /// The table's final content, by the changes and tasks before the follow-up work.
    drained: BTreeMap<String, Rc<Changes>>,
    /// The callers' views, by the table's content.
    seen: BTreeMap<String, Rc<Value>>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(pair: &'a Pair<'a>) -> Self {
        Self { pair, right: Vec::new(), drained: BTreeMap::new(), seen: BTreeMap::new() }
    }

    /// Does all follow-up work and returns the outcome. The error is a fault or a finding of `check`.
    async fn outcome(&mut self, answers: [Value; 2]) -> Result<Outcome, String> {
        let (stage, mark) = (&self.pair.set.stage, self.pair.mark);
        let tasks = stage.take().await;
        let begun = format!("{:?}\n{tasks:?}", stage.changes_since(mark).await);
        if !self.drained.contains_key(&begun) {
            stage.drain(tasks, "").await?;
            let app = stage.instance(FREE).app;
            let findings = recount::check(&app.store, app.clock.now()).await.expect("the table answers");
            if !findings.is_empty() {
                return Err(findings.iter().map(|finding| format!("check: {finding}\n")).collect::<Vec<_>>().concat());
            }
            self.drained.insert(begun.clone(), Rc::new(stage.changes_since(mark).await));
        }
        let left = Rc::clone(&self.drained[&begun]);
        let shown = answers.each_ref().map(|answer| answer["body"]["data"]["id"].clone());
        let answers = answers.map(|answer| rounded_value(&answer));
        Ok(Outcome { answers, shown, table: rounded(&format!("{left:?}")), left })
    }

    async fn restore(&self, outcome: &Outcome) {
        self.pair.set.stage.undo(self.pair.mark).await;
        self.pair.set.stage.set(&outcome.left, true);
    }

    /// Records the outcomes of the serial orders. The handlers `events` and `delivery` follow an earlier change, so
    /// only the order in which such a handler comes first is right. A job may run at any time. The error describes a
    /// serial order that fails.
    pub(crate) async fn expect(&mut self, first: [Value; 2]) -> Result<(), String> {
        let comes_first = self.pair.operations.map(|one| matches!(one.handles(), Some(("events" | "delivery", _))));
        for order in [[0, 1], [1, 0]] {
            let answers = if order[0] == 0 { first.clone() } else { self.pair.follow(&order, "").await };
            // The second request may override the first one, so only its own response must match the final state. A
            // handler must not override the request before it, so both responses must match.
            let kept = &order[usize::from(self.pair.operations[order[1]].handles().is_none())..];
            let kept: Vec<Value> = kept.iter().map(|who| answers[*who].clone()).collect();
            let outcome = self.outcome(answers).await?;
            for answer in kept {
                let comment = &answer["body"]["data"];
                let Some((id, is_approved)) = comment["id"].as_u64().zip(comment["is_approved"].as_bool()) else {
                    continue;
                };
                self.restore(&outcome).await;
                let store = &self.pair.set.stage.instance(FREE).app.store;
                let now = store.comment(CommentId(id), Reading::Consistent).await.expect("the table answers");
                if now.is_none_or(|now| now.is_approved() != is_approved) {
                    return Err(format!("the end contradicts a response\n{answer:#}"));
                }
            }
            if comes_first[order[0]] || !comes_first[order[1]] {
                self.right.push(outcome);
            }
        }
        Ok(())
    }

    /// Judges the outcome of an order. The error describes the problem.
    pub(crate) async fn judge(&mut self, answers: [Value; 2]) -> Result<(), String> {
        let outcome = self.outcome(answers).await?;
        if self.right.iter().any(|right| right.answers == outcome.answers && right.table == outcome.table) {
            return Ok(());
        }
        let (right, mut differences) = (self.right.clone(), String::new());
        let (found, mut shown) = (self.seen(&outcome).await, Vec::new());
        for right in &right {
            shown.push(self.seen(right).await);
        }
        // Every path in the moderators' views that all right outcomes contain must be in this outcome.
        let finds = |seen: &Value, path: &String| seen["mod"].get(path).is_some();
        let is_lost = |path: &String| !finds(&found, path) && shown.iter().all(|seen| finds(seen, path));
        let is_whole = !shown[0]["mod"].as_object().is_some_and(|views| views.keys().any(is_lost));
        let sources: Vec<&Value> = shown.iter().map(|seen| &**seen).collect();
        let is_mixed = self.may_show(None) && is_whole && is_made_of(&found, &sources);
        for (right, shown) in right.iter().zip(&shown) {
            let mut places = Vec::new();
            differ("seen", [shown, &found], &mut places);
            places.retain(|(place, _)| !is_mixed && !self.may_show(Some(place)));
            for who in 0..2 {
                if !self.is_answer(&outcome, right, who).await {
                    differ("answer", [&right.answers[who], &outcome.answers[who]], &mut places);
                }
            }
            if places.is_empty() {
                self.right.push(outcome);
                return Ok(());
            }
            differences += "unlike a right outcome (-):\n";
            differences.extend(places.into_iter().map(|(place, text)| format!(" {place}\n{text}")));
        }
        Err(differences)
    }

    /// Whether this place may differ from the serial outcomes. Without a place: whether each place may match either
    /// outcome.
    fn may_show(&self, place: Option<&str>) -> bool {
        let requests = self.pair.operations.map(|operation| operation.request);
        let are_between = |[one, two]: [&str; 2]| requests[0].contains(one) && requests[1].contains(two);
        let holds = |[one, two]: [&str; 2]| are_between([one, two]) || are_between([two, one]);
        let is_in = |parts: &[&str], place: &str| parts.iter().any(|part| place.contains(part));
        let is_there = |parts: &[&str]| place.map_or(parts.is_empty(), |place| is_in(parts, place));
        ALLOWED.iter().any(|(parts, places, _)| holds(*parts) && is_there(places))
    }

    /// Whether a response matches the response in a right outcome. A comment in the response may be as in any right
    /// outcome, as before both operations, or as after both. Likes are not compared.
    async fn is_answer(&mut self, outcome: &Outcome, right: &Outcome, who: usize) -> bool {
        let (answer, likely) = (&outcome.answers[who], &right.answers[who]);
        if ["/status", "/body/code", "/body/data/id"].iter().any(|part| answer.pointer(part) != likely.pointer(part)) {
            return false;
        }
        let mut moments: Vec<Value> = self.right.iter().map(|right| right.answers[who].clone()).collect();
        if !moments.contains(answer) {
            let request = self.pair.set.fill(self.pair.operations[who].request);
            let of_reports = request.strip_prefix("POST ").and_then(|path| path.strip_suffix("/dismiss"));
            let of_comment = format!("comments/{}", outcome.shown[who]);
            let before = Outcome { left: Rc::default(), table: String::new(), ..outcome.clone() };
            for moment in [&before, outcome] {
                self.restore(moment).await;
                let moderator = self.pair.set.actor(&self.pair.set.stage.instance(FREE), "mod");
                let shown = moderator.get(of_reports.unwrap_or(&of_comment)).await.json;
                moments.push(rounded_value(&json!({ "body": { "data": shown["data"] } })));
            }
        }
        is_made_of(answer, &Vec::from_iter(&moments))
    }

    /// Returns the views of a guest, both callers, and a moderator.
    async fn seen(&mut self, outcome: &Outcome) -> Rc<Value> {
        if let Some(seen) = self.seen.get(&outcome.table) {
            return Rc::clone(seen);
        }
        self.restore(outcome).await;
        let (instance, mut seen) = (self.pair.set.stage.instance(FREE), json!({}));
        let callers = self.pair.operations.map(|operation| operation.who);
        let roles: BTreeSet<_> = callers.into_iter().chain(["guest", "mod"]).filter(|who| !who.is_empty()).collect();
        for role in roles {
            let (reader, mut views) = (self.pair.set.actor(&instance, role), json!({}));
            let of_members = if role == "guest" { "" } else { "me/notifications ui users?q=ada users?q=mal" };
            let of_moderators = if role == "mod" { OF_MODERATORS } else { "" };
            let paths = [OF_GUESTS, of_members, of_moderators].join(" ");
            let mut paths: Vec<String> = paths.split_whitespace().map(str::to_owned).collect();
            while let Some(path) = paths.pop() {
                let mut answer = reader.get(&path).await;
                assert_ne!(answer.status, 422, "{path}");
                if let Some(rows) = answer.json["data"].as_array_mut().filter(|_| path.contains("log")) {
                    // Simultaneous decisions may be logged in any order, which determines their ids.
                    for row in rows.iter_mut() {
                        row["id"] = Value::Null;
                    }
                    rows.sort_by_cached_key(|row| rounded(&row.to_string()));
                }
                let is_list = path.ends_with("per_page=50") && !path.contains("log");
                for row in answer.json["data"].as_array().into_iter().flatten().filter(|_| is_list) {
                    let path = format!("comments/{}", row["id"]);
                    paths.extend((row["reports_count"].as_u64() > Some(0)).then(|| format!("{path}/reports")));
                    paths.extend((row["replies_count"] != 0).then(|| format!("{path}/replies?per_page=50")));
                    paths.extend(["guest", "mod"].contains(&role).then_some(path));
                }
                views[path] = json!([answer.status, answer.json["data"]]);
            }
            seen[role] = views;
        }
        let seen = Rc::new(rounded_value(&seen));
        self.seen.insert(outcome.table.clone(), Rc::clone(&seen));
        seen
    }
}
