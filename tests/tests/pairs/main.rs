//! Every pair of operations, in every order of their calls to the table. `operations` lists them, `orders` chooses the
//! orders, and `oracle` judges what comes of each.

mod operations;
mod oracle;
mod orders;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::{Call, Mark, Task};

use self::operations::{Operation, SCENES, Scene, Set};
use self::oracle::Oracle;
use self::orders::{Orders, Trace, meet};

/// Milliseconds, by the clock that stands still, of a participant that neither ends nor makes a call.
const PATIENCE: usize = 100_000;

/// The next call of each participant.
type Next = [Option<Call>; 2];

struct Pair<'a> {
    name: String,
    operations: [&'static Operation; 2],
    set: &'a Set,
    /// The state in which they begin, and what handlers among them are given.
    mark: Mark,
    given: [Vec<Task>; 2],
}

impl Pair<'_> {
    /// Carries out these participants' operations, each call of them when `choose` says so, and returns the answers. `None` when
    /// it does not choose.
    async fn run(&self, who: &[usize], mut choose: impl FnMut(Next) -> Option<usize>) -> Option<[Value; 2]> {
        self.set.stage.undo(self.mark).await;
        let mut participants = [0, 1].map(|number| {
            let (operation, given) = (self.operations[number], &self.given[number]);
            who.contains(&number).then(|| Box::pin(self.set.perform(number, operation, given)))
        });
        let (mut answers, mut is_cut) = ([Value::Null, Value::Null], false);
        loop {
            let mut settles = 0;
            let next = loop {
                poll_fn(|context| {
                    for (participant, answer) in participants.iter_mut().zip(&mut answers) {
                        if let Some(Poll::Ready(last)) = participant.as_mut().map(|task| task.as_mut().poll(context)) {
                            (*participant, *answer) = (None, last);
                        }
                    }
                    Poll::Ready(())
                })
                .await;
                let next = self.set.stage.next();
                let waits = |next: &Next| (0..2).all(|who| participants[who].is_none() || next[who].is_some());
                if let Some(next) = next.filter(waits) {
                    break next;
                }
                settles += 1;
                assert!(settles < PATIENCE, "{} hangs", self.name);
                tokio::time::sleep(Duration::from_millis(1)).await;
            };
            let Some(first) = next.iter().position(Option::is_some) else { return (!is_cut).then_some(answers) };
            let chosen = if is_cut { None } else { choose(next) };
            is_cut |= chosen.is_none();
            self.set.stage.release(chosen.unwrap_or(first));
        }
    }

    /// Carries out these participants' operations in the order of these letters, and then one after the other.
    async fn follow(&self, who: &[usize], order: &str) -> [Value; 2] {
        let mut left = order.bytes().map(|letter| usize::from(letter == b'B'));
        let choose = |next: Next| {
            let wanted = left.next().unwrap_or(who[0]);
            Some(if next[wanted].is_some() { wanted } else { 1 - wanted })
        };
        self.run(who, choose).await.expect("it ends")
    }

    /// The calls of a participant without the other.
    async fn alone(&self, who: usize, known: &mut BTreeMap<String, Trace>) -> Trace {
        let handled = self.operations.map(Operation::handles);
        let key = format!("{} {handled:?}", self.operations[who].name);
        if !known.contains_key(&key) {
            let answer = self.follow(&[who], "").await[who].take();
            // A request that is refused anyway would try nothing. What a handler handles may be a reason.
            let is_refused = answer["status"].as_u64().is_some_and(|status| status >= 300);
            assert!(!is_refused || key.starts_with("wrong") || handled != [None, None], "{key}: {answer:#}");
            known.insert(key.clone(), self.set.stage.made());
        }
        known[&key].clone()
    }

    /// Tries all orders until one fails, or only this one, and says what its calls are. How many there were, and the order that
    /// failed and why.
    async fn try_orders(&self, only: Option<&str>) -> (usize, Option<(String, String)>) {
        let mut oracle = Oracle::new(self);
        if let Err(error) = oracle.expect().await {
            return (2, Some((String::new(), error)));
        }
        let mut orders = Orders::default();
        loop {
            let answers = match only {
                Some(order) => Some(self.follow(&[0, 1], order).await),
                None => self.run(&[0, 1], |next| orders.choose(next)).await,
            };
            let trace = self.set.stage.made();
            if only.is_some() {
                for (who, call) in &trace {
                    println!("{} {call:?}", ["A", "B"][*who]);
                }
                println!("{:#}", answers.clone().into_iter().flatten().collect::<Value>());
            }
            if let Some(answers) = answers
                && let Err(error) = oracle.judge(answers).await
            {
                return (orders.tried, Some((trace.iter().map(|(who, _)| ['A', 'B'][*who]).collect(), error)));
            }
            if only.is_some() || !orders.learn(&trace) {
                return (orders.tried, None);
            }
        }
    }
}

/// Whether a pair is to be tried.
fn is_wanted(name: &str, [one, other]: [&Operation; 2]) -> bool {
    // Commands hold a lease, so that no two of them run at once.
    let are_commands = [one, other].iter().all(|operation| operation.request.starts_with("tool "));
    !are_commands
        && match (setting("PAIR_ORDER"), setting("PAIRS").as_deref()) {
            (Some(order), _) => order.starts_with(&format!("{name}: ")),
            (None, None) => one.shares_a_rule(other),
            (None, Some(parts)) => {
                parts == "all" || parts.split(';').any(|part| part.split('*').all(|part| name.contains(part)))
            }
        }
}

#[expect(clippy::disallowed_methods, reason = "settings of the test")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn try_scene(scene: &'static Scene) {
    let (began, set, only) = (Instant::now(), scene.set_up().await, setting("PAIR_ORDER"));
    let start = set.stage.mark().await;
    let (mut known, mut pairs, mut orders, mut failures) = (BTreeMap::new(), 0, 0, Vec::new());
    for (place, one) in scene.operations.iter().enumerate() {
        for other in &scene.operations[place..] {
            let (name, operations) = (format!("{}: {} + {}", scene.name, one.name, other.name), [one, other]);
            if !is_wanted(&name, operations) {
                continue;
            }
            set.stage.undo(start).await;
            let given = set.prepare(scene, operations).await;
            let pair = Pair { name, operations, set: &set, mark: set.stage.mark().await, given };
            pairs += 1;
            if !meet(&pair.alone(0, &mut known).await, &pair.alone(1, &mut known).await) {
                continue;
            }
            let began = Instant::now();
            let (tried, failure) = pair.try_orders(only.as_ref().and_then(|order| order.rsplit(' ').next())).await;
            let (name, took) = (pair.name, began.elapsed().as_millis());
            orders += tried;
            eprintln!("{took:6} ms {tried:4} orders {name}");
            if let Some((order, error)) = failure {
                let [a, b] = operations.map(|Operation { who, request, body, .. }| format!("{who} {request} {body}"));
                let again = format!("PAIR_ORDER='{name}: {order}' cargo test --workspace --test pairs -- --nocapture");
                eprintln!("FAILED {name}\nA: {a}\nB: {b}\n{again}\n{error}");
                failures.push(name);
            }
        }
    }
    eprintln!("{}: {pairs} pairs, {orders} orders in {:?}", scene.name, began.elapsed());
    assert!(failures.is_empty(), "{} pairs failed:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! scenes {
    ($($test:ident: $scene:literal)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            try_scene(&SCENES[$scene]).await;
        }
    )* };
}

scenes! {
    replies_do_what_one_after_the_other_would: 0
    deep_replies_do_what_one_after_the_other_would: 1
    a_first_import_does_what_it_would_before_or_after_others: 2
    decisions_do_what_one_after_the_other_would: 3
    people_do_what_one_after_the_other_would: 4
}
