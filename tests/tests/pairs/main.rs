//! Runs every pair of operations in every order of their calls to the table. `operations` lists the operations,
//! `orders` chooses the orders, and `oracle` judges each outcome.

mod operations;
mod oracle;
mod orders;

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{Call, Mark, Task, in_common, setting};
use tokio::time::timeout;

use self::operations::{Operation, SCENES, Scene, Set};
use self::oracle::Oracle;
use self::orders::{Orders, Trace, meet};

/// A participant that neither ends nor makes a call for this long on the stopped clock is paused, so that the other
/// participant's calls can end. Transactions are retried sooner.
const PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(100);

/// The next call of each participant.
type Next = [Option<Call>; 2];

struct Pair<'a> {
    name: String,
    operations: [&'static Operation; 2],
    set: &'a Set,
    /// The state before the operations, and the tasks for the handlers among the operations.
    mark: Mark,
    given: [Vec<Task>; 2],
}

impl Pair<'_> {
    /// Carries out these participants' operations, with their calls in the order given by `choose`. Returns the
    /// responses, or `None` if `choose` returns `None`.
    async fn run(&self, who: &[usize], mut choose: impl FnMut(Next) -> Option<usize>) -> Option<[Value; 2]> {
        self.set.stage.undo(self.mark).await;
        let mut participants = [0, 1].map(|number| {
            let (operation, given) = (self.operations[number], &self.given[number]);
            who.contains(&number).then(|| Box::pin(self.set.perform(number, operation, given)))
        });
        let (mut answers, mut is_cut) = ([Value::Null, Value::Null], false);
        let (mut pausing, mut patience) = ([false; 2], PAUSE);
        loop {
            let mut polls = 0;
            let settled = poll_fn(|context| {
                for (participant, answer) in participants.iter_mut().zip(&mut answers) {
                    if let Some(Poll::Ready(last)) = participant.as_mut().map(|task| task.as_mut().poll(context)) {
                        (*participant, *answer) = (None, last);
                    }
                }
                let waits =
                    |next: &Next| (0..2).all(|who| participants[who].is_none() || pausing[who] || next[who].is_some());
                let next = self.set.stage.next(context.waker()).filter(waits);
                // A participant with concurrent calls makes all of them before one is chosen.
                polls += usize::from(next.is_some());
                match next {
                    Some(next) if polls > 2 => return Poll::Ready(next),
                    Some(_) => context.waker().wake_by_ref(),
                    None => {}
                }
                Poll::Pending
            });
            let Ok(mut next) = timeout(patience, settled).await else {
                let trace = self.set.stage.made();
                assert!(patience == PAUSE, "{} hangs after {trace:?}", self.name);
                let next = self.set.stage.next(Waker::noop()).expect("the table answers");
                pausing = [0, 1].map(|who| participants[who].is_some() && next[who].is_none());
                continue;
            };
            // Calls that began before a pause end during it.
            let made = self.set.stage.made();
            let is_under_way = |who: usize| {
                participants[who].is_some() && made.iter().any(|(by, call)| *by == who && call.meets(&Call::pause()))
            };
            for who in (0..2).filter(|who| pausing[*who]) {
                next[who] = (!is_under_way(1 - who)).then(Call::pause);
            }
            let Some(first) = next.iter().position(Option::is_some) else { return (!is_cut).then_some(answers) };
            let chosen = if is_cut { None } else { choose(next) };
            is_cut |= chosen.is_none();
            let turn = chosen.unwrap_or(first);
            self.set.stage.release(turn, pausing[turn]);
            patience = if pausing[turn] { PATIENCE } else { PAUSE };
            pausing[turn] = false;
        }
    }

    /// Makes these participants' calls in the order of the letters `A` and `B`, then the remaining calls of the first
    /// participant, and then those of the other.
    async fn follow(&self, who: &[usize], order: &str) -> [Value; 2] {
        let mut left = order.bytes().map(|letter| usize::from(letter == b'B'));
        let choose = |next: Next| {
            let wanted = left.next().unwrap_or(who[0]);
            Some(if next[wanted].is_some() { wanted } else { 1 - wanted })
        };
        self.run(who, choose).await.expect("it ends")
    }

    /// Returns a participant's calls when it runs without the other participant.
    async fn alone(&self, who: usize, known: &mut BTreeMap<String, Trace>) -> Trace {
        let handled = self.operations.map(Operation::handles);
        let key = format!("{} {handled:?}", self.operations[who].name);
        if !known.contains_key(&key) {
            let answer = self.follow(&[who], "").await[who].take();
            // A request that is always refused would test nothing, unless a handler's change is the reason.
            let is_refused = answer["status"].as_u64().is_some_and(|status| status >= 300);
            assert!(!is_refused || key.starts_with("wrong") || handled != [None, None], "{key}: {answer:#}");
            known.insert(key.clone(), self.set.stage.made());
        }
        known[&key].clone()
    }

    /// Returns a key. Pairs with the same key need only one test. If the operations share only a thread's counts or a
    /// user's data, the key omits the kinds of the operations.
    fn likeness(&self, calls: &[Trace; 2]) -> String {
        let common = in_common([&calls[0], &calls[1]]);
        let is_counted = !common.split("(\"").skip(1).any(|key| !key.starts_with(['T', 'U']));
        let kinds = self.operations.map(|Operation { request, .. }| {
            request.split([' ', '/']).filter(|word| !word.starts_with('{')).collect::<Vec<_>>().join(" ")
        });
        if is_counted { common } else { format!("{kinds:?} {common}") }
    }

    /// Tries all orders until one fails, or only the order `only`, whose calls it prints. Returns the number of orders,
    /// and the failed order with the reason.
    async fn try_orders(&self, only: Option<&str>) -> (usize, Option<(String, String)>) {
        let (mut oracle, mut orders) = (Oracle::new(self), Orders::default());
        // In the first order, one operation follows the other.
        let mut answers = self.run(&[0, 1], |next| orders.choose(next)).await;
        let mut trace = self.set.stage.made();
        if let Err(error) = oracle.expect(answers.clone().expect("it ends")).await {
            return (2, Some((String::new(), error)));
        }
        if let Some(order) = only {
            let answers = self.follow(&[0, 1], order).await;
            for (who, call) in self.set.stage.made() {
                println!("{} {call:?}", ["A", "B"][who]);
            }
            println!("{:#}", json!(answers));
            return (1, oracle.judge(answers).await.err().map(|error| (order.to_owned(), error)));
        }
        while orders.learn(&trace) {
            answers = self.run(&[0, 1], |next| orders.choose(next)).await;
            trace = self.set.stage.made();
            if let Some(answers) = answers.take()
                && let Err(error) = oracle.judge(answers).await
            {
                return (orders.tried, Some((trace.iter().map(|(who, _)| ['A', 'B'][*who]).collect(), error)));
            }
        }
        (orders.tried, None)
    }
}

fn is_wanted(name: &str, [one, other]: [&Operation; 2]) -> bool {
    // Commands hold a lease, so no two of them run at once.
    let are_commands = [one, other].iter().all(|operation| operation.request.starts_with("tool "));
    !are_commands
        && match (setting("PAIR_ORDER"), setting("PAIRS").as_deref()) {
            (Some(order), _) => order.starts_with(&format!("{name}: ")),
            (None, None) => one.shares_a_rule(other),
            (None, Some(parts)) => parts == "all" || parts.split('*').all(|part| name.contains(part)),
        }
}

/// Tests the scene's pairs of operations whose calls meet. `part` selects one of `parts` parts of these pairs.
async fn try_scene(scene: &'static Scene, part: usize, parts: usize) {
    let (began, set, only) = (Instant::now(), scene.set_up().await, setting("PAIR_ORDER"));
    let (start, is_all) = (set.stage.mark().await, setting("PAIRS").as_deref() == Some("all"));
    let (mut known, mut alike, mut failures) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let (mut pairs, mut tried, mut orders) = (0, 0, 0);
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
            let calls = [pair.alone(0, &mut known).await, pair.alone(1, &mut known).await];
            let likeness = meet(&calls[0], &calls[1]).then(|| pair.likeness(&calls));
            let is_alike = |likeness| !alike.insert(likeness) && is_all && !one.shares_a_rule(other);
            if likeness.is_none_or(is_alike) || pairs % parts != part {
                continue;
            }
            tried += 1;
            let began = Instant::now();
            let (count, failure) = pair.try_orders(only.as_ref().and_then(|order| order.rsplit(' ').next())).await;
            let (name, took) = (pair.name, began.elapsed().as_millis());
            orders += count;
            eprintln!("{took:6} ms {count:4} orders {name}");
            if let Some((order, error)) = failure {
                let [a, b] = operations.map(|Operation { who, request, body, .. }| format!("{who} {request} {body}"));
                let again = format!("PAIR_ORDER='{name}: {order}' cargo test --workspace --test pairs -- --nocapture");
                eprintln!("FAILED {name}\nA: {a}\nB: {b}\n{again}\n{error}");
                failures.push(name);
            }
        }
    }
    eprintln!("{}: {pairs} pairs, {tried} of them tried in {orders} orders in {:?}", scene.name, began.elapsed());
    assert!(failures.is_empty(), "{} pairs failed:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! scenes {
    ($($test:ident: $scene:literal, $part:literal of $parts:literal)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            try_scene(&SCENES[$scene], $part, $parts).await;
        }
    )* };
}

scenes! {
    concurrent_pairs_on_replies_match_a_sequential_order: 0, 0 of 2
    more_concurrent_pairs_on_replies_match_a_sequential_order: 0, 1 of 2
    concurrent_pairs_on_deep_replies_match_a_sequential_order: 1, 0 of 1
    concurrent_pairs_with_a_first_import_match_a_sequential_order: 2, 0 of 1
    concurrent_pairs_of_decisions_match_a_sequential_order: 3, 0 of 1
    concurrent_pairs_on_people_match_a_sequential_order: 4, 0 of 1
}
