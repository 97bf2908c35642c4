//! Every pair of operations, in every order of their calls to the table. `operations` lists them, `orders` chooses the
//! orders, and `oracle` judges what comes of each.

mod operations;
mod oracle;
mod orders;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::{Call, Stage, State};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use self::operations::{Given, Labels, Operation, SCENES, Scene, perform, prepare};
use self::oracle::{Drained, Expected, Outcome};
use self::orders::{Orders, Trace};

/// Settles of a participant that neither ends nor makes a call.
const PATIENCE: usize = 100_000;

struct Pair {
    scene: &'static Scene,
    operations: [&'static Operation; 2],
}

impl Pair {
    fn name(&self) -> String {
        format!("{}: {} + {}", self.scene.name, self.operations[0].name, self.operations[1].name)
    }
}

/// A pair on its stage.
struct Play<'a> {
    pair: &'a Pair,
    stage: &'a Arc<Stage>,
    labels: &'a Arc<Labels>,
    /// The events that handlers are given.
    given: [Given; 2],
    /// What was left, by what there was to handle.
    drained: BTreeMap<String, Drained>,
    /// Whether people look at what comes of an order.
    looks: bool,
}

impl Play<'_> {
    /// Carries out these participants' operations, each call of them when `choose` says so, and returns the answers. `None` when
    /// it breaks off.
    async fn run(
        &mut self,
        who: &[usize],
        mut choose: impl FnMut([Option<Call>; 2]) -> Option<usize>,
    ) -> (Trace, Option<[Value; 2]>) {
        self.stage.restore().await;
        self.stage.hold(true);
        let mut trace = Trace::default();
        let mut tasks = [0, 1].map(|instance| {
            who.contains(&instance).then(|| {
                let (stage, labels) = (Arc::clone(self.stage), Arc::clone(self.labels));
                let (operation, given) = (self.pair.operations[instance], self.given[instance].clone());
                spawn_local(async move { perform(&stage, instance, operation, &labels, given).await })
            })
        });
        loop {
            for (instance, task) in tasks.iter().enumerate() {
                for settles in 0.. {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let is_done = task.as_ref().is_none_or(JoinHandle::is_finished);
                    if is_done || self.stage.waiting(instance).is_some() {
                        break;
                    }
                    assert!(settles < PATIENCE, "{} hangs", self.pair.name());
                }
            }
            let next = [0, 1].map(|instance| self.stage.waiting(instance));
            if next.iter().all(Option::is_none) {
                break;
            }
            let Some(chosen) = choose(next.clone()) else {
                self.stage.hold(false);
                for task in tasks.into_iter().flatten() {
                    drop(task.await);
                }
                return (trace, None);
            };
            trace.0.extend(next[chosen].clone().map(|call| (chosen, call)));
            self.stage.release(chosen);
        }
        self.stage.hold(false);
        let mut answers = [Value::Null, Value::Null];
        for (answer, task) in answers.iter_mut().zip(&mut tasks) {
            if let Some(task) = task {
                *answer = task.await.expect("a participant ends");
            }
        }
        (trace, Some(answers))
    }

    async fn outcome(&mut self, answers: [Value; 2]) -> Outcome {
        let callers = self.looks.then(|| self.pair.operations.map(|operation| operation.who));
        Outcome::of(self.stage, self.labels, answers, &mut self.drained, callers).await
    }

    /// One whole participant after the other.
    async fn serially(&mut self, who: &[usize]) -> (Trace, [Value; 2]) {
        let first = who[0];
        let choose = |next: [Option<Call>; 2]| Some(if next[first].is_some() { first } else { 1 - first });
        let (trace, answers) = self.run(who, choose).await;
        (trace, answers.expect("it ends"))
    }

    /// What may come of it. A handler comes before a request: what it handles was done before. The error is a serial order that
    /// goes wrong.
    async fn expected(&mut self) -> Result<Expected, String> {
        let handles = self.pair.operations.map(Operation::is_handler);
        let mut serial = Vec::new();
        for (name, order) in [("A then B", [0, 1]), ("B then A", [1, 0])] {
            // It has to be drained, for what answers say to be so in the end.
            self.drained.clear();
            let (_, answers) = self.serially(&order).await;
            let outcome = self.outcome(answers).await;
            if outcome.breaks_its_word(self.stage, order[1]).await {
                return Err(format!(
                    "{name}: what the last answer says is not so in the end\n{}",
                    outcome.answers[order[1]]
                ));
            }
            if !outcome.drained.findings.is_empty() {
                return Err(format!("{name}: {:?}", outcome.drained.findings));
            }
            if handles[order[0]] || !handles[order[1]] {
                serial.push((name, outcome));
            }
        }
        Ok(Expected { serial, alone: [None, None], right: Vec::new() })
    }

    /// Judges an order by what people see. The error says what is wrong.
    async fn judge(&mut self, order: &str, expected: &mut Expected) -> Result<(), String> {
        self.looks = true;
        if !expected.is_seen() {
            *expected = self.expected().await?;
        }
        let (_, outcome) = self.ordered(order).await;
        for who in 0..2 {
            if outcome.is_refused(1 - who) && expected.alone[who].is_none() {
                let (_, answers) = self.serially(&[who]).await;
                expected.alone[who] = Some(self.outcome(answers).await);
            }
        }
        self.looks = false;
        expected.judge(&outcome)?;
        expected.right.push(outcome);
        Ok(())
    }

    /// Tries all orders until one fails, and says which. How many there were.
    async fn all(&mut self) -> (usize, Option<String>) {
        let ((one, answers), (other, others)) = (self.serially(&[0]).await, self.serially(&[1]).await);
        // A request that is refused anyway would try nothing. What a handler handles may be a reason.
        let may_be_refused = |operation: &Operation| operation.is_handler() || operation.name == "wrong code";
        for answer in [&answers[0], &others[1]] {
            let is_refused = answer["status"].as_u64().is_some_and(|status| status >= 300);
            let is_expected = !is_refused || self.pair.operations.into_iter().any(may_be_refused);
            assert!(is_expected, "{}: {answer:#}", self.pair.name());
        }
        if !one.meets(&other) {
            return (0, None);
        }
        let mut expected = match self.expected().await {
            Ok(expected) => expected,
            Err(failure) => return (2, Some(format!("{}\n{failure}", self.pair.name()))),
        };
        let mut orders = Orders::default();
        loop {
            orders.begin();
            let (trace, answers) = self.run(&[0, 1], |next| orders.choose(next)).await;
            if let Some(answers) = answers
                && !expected.has(&self.outcome(answers).await)
            {
                let order = trace.order();
                if let Err(difference) = self.judge(&order, &mut expected).await {
                    return (orders.tried, Some(self.failure(&order, &difference)));
                }
            }
            if !orders.learn(&trace) {
                return (orders.tried, None);
            }
        }
    }

    /// The order of these letters.
    async fn ordered(&mut self, order: &str) -> (Trace, Outcome) {
        let mut left = order.bytes().map(|letter| usize::from(letter == b'B'));
        let choose = |next: [Option<Call>; 2]| {
            let wanted = left.next().unwrap_or(0);
            Some(if next[wanted].is_some() { wanted } else { 1 - wanted })
        };
        let (trace, answers) = self.run(&[0, 1], choose).await;
        (trace, self.outcome(answers.expect("it ends")).await)
    }

    async fn replay(&mut self, order: &str) -> String {
        let (trace, outcome) = self.ordered(order).await;
        let calls: Vec<String> = trace.0.iter().map(|(who, call)| format!("{} {call}\n", ["A", "B"][*who])).collect();
        let calls = calls.concat();
        let verdict = match self.expected().await {
            Ok(mut expected) => self.judge(order, &mut expected).await,
            Err(failure) => Err(failure),
        };
        let verdict = verdict.err().unwrap_or_else(|| "right".to_owned());
        format!("{calls}{}\n{}\n{verdict}", outcome.answers[0], outcome.answers[1])
    }

    fn failure(&self, order: &str, difference: &str) -> String {
        let name = self.pair.name();
        format!("{name}\nPAIR_ORDER='{name}: {order}' cargo test --workspace --test pairs -- --nocapture\n{difference}")
    }
}

fn pairs() -> Vec<Pair> {
    let of_scene = |scene: &'static Scene| {
        let operations = scene.operations;
        (0..operations.len()).flat_map(move |one| {
            (one..operations.len()).map(move |two| Pair { scene, operations: [&operations[one], &operations[two]] })
        })
    };
    // Commands hold a lease, so that no two of them run at once.
    let runs = |pair: &Pair| !pair.operations.iter().all(|operation| operation.request.starts_with("tool "));
    SCENES.iter().flat_map(of_scene).filter(runs).collect()
}

/// Does this for each pair, on as many threads as there are processors.
fn for_each(pairs: &[Pair], each: impl AsyncFn(&mut Play<'_>) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let mut stages: BTreeMap<&str, (Arc<Stage>, Arc<Labels>, State)> = BTreeMap::new();
        LocalSet::new().block_on(&runtime, async {
            while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if !stages.contains_key(pair.scene.name) {
                    stages.insert(pair.scene.name, pair.scene.set_up().await);
                }
                let (stage, labels, state) = stages.get_mut(pair.scene.name).unwrap();
                Arc::get_mut(stage).expect("no participant is left").keep(state.clone());
                stage.restore().await;
                let given = prepare(stage, pair.scene, pair.operations, labels).await;
                let prepared = stage.state();
                Arc::get_mut(stage).expect("no participant is left").keep(prepared);
                each(&mut Play { pair, stage, labels, given, drained: BTreeMap::new(), looks: false }).await;
            }
        });
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "settings of the test")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn two_requests_do_what_one_after_the_other_would() {
    let mut pairs = pairs();
    if let Some(wanted) = setting("PAIR_ORDER") {
        let (name, order) = wanted.rsplit_once(": ").expect("a pair and an order");
        pairs.retain(|pair| pair.name() == name);
        assert_eq!(pairs.len(), 1, "there is no pair {name}");
        for_each(&pairs, async |play| println!("{}", play.replay(order).await));
        return;
    }
    match setting("PAIRS").as_deref() {
        None => pairs.retain(|pair| pair.operations[0].shares_a_rule(pair.operations[1])),
        Some("all") => {}
        Some(parts) => {
            pairs.retain(|pair| parts.split(';').any(|part| part.split('*').all(|part| pair.name().contains(part))));
        }
    }
    let (failures, orders) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let began = Instant::now();
    for_each(&pairs, async |play| {
        let began = Instant::now();
        let (tried, failure) = play.all().await;
        orders.fetch_add(tried, Ordering::Relaxed);
        let verdict = if failure.is_some() { " FAILED" } else { "" };
        eprintln!(
            "{:6} ms {tried:4} orders, {:3} outcomes{verdict} {}",
            began.elapsed().as_millis(),
            play.drained.len(),
            play.pair.name()
        );
        if let Some(failure) = failure {
            eprintln!("{failure}");
            failures.lock().unwrap().push(play.pair.name());
        }
    });
    eprintln!("{} pairs, {} orders in {:?}", pairs.len(), orders.into_inner(), began.elapsed());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} pairs failed:\n\n{}", failures.len(), failures.join("\n"));
}
