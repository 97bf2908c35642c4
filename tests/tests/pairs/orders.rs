//! Chooses the orders: all of them that differ in calls to common items, each once. That is dynamic partial order reduction
//! with sleep sets (Flanagan and Godefroid, 2005), for two participants.

use tests::Call;

/// How often the order of a participant with more than so many calls may change between the two. Two times mean that the other
/// one runs whole between two calls, and four that it is cut in two.
const LONG: [(usize, usize); 2] = [(30, 2), (12, 4)];
const MOST_ORDERS_OF_LONG: usize = 100;

/// The participants whose calls were made, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(pub(crate) Vec<(usize, Call)>);

impl Trace {
    pub(crate) fn order(&self) -> String {
        self.0.iter().map(|(who, _)| if *who == 0 { 'A' } else { 'B' }).collect()
    }

    /// Whether any order of these calls and those of the other matters.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|(_, call)| other.0.iter().any(|(_, other)| call.meets(other)))
    }

    fn most_switches(&self) -> Option<usize> {
        let calls = [0, 1].map(|who| self.0.iter().filter(|(by, _)| *by == who).count());
        LONG.into_iter().find(|(most, _)| calls.iter().max() > Some(most)).map(|(_, switches)| switches)
    }

    /// The calls that another order would have after a call of the other participant: where, and whose.
    fn races(&self) -> Vec<(usize, usize)> {
        let mut races = Vec::new();
        // Up to where each has to do with the other already.
        let mut known = [None; 2];
        for (place, (who, call)) in self.0.iter().enumerate() {
            let earlier = self.0[..place].iter().rposition(|(other, earlier)| other != who && earlier.meets(call));
            if earlier > known[*who] {
                races.extend(earlier.map(|earlier| (earlier, *who)));
                known[*who] = earlier;
            }
        }
        races
    }
}

/// A choice of whose call is next.
struct Choice {
    next: [Option<Call>; 2],
    taken: usize,
    /// Whose call need not be tried here: it was, before a call that it has nothing to do with.
    asleep: [bool; 2],
    tried: [bool; 2],
    wanted: [bool; 2],
}

#[derive(Default)]
pub(crate) struct Orders {
    path: Vec<Choice>,
    depth: usize,
    /// Of long participants.
    most_switches: Option<usize>,
    pub(crate) tried: usize,
}

impl Orders {
    pub(crate) fn begin(&mut self) {
        self.depth = 0;
    }

    /// Whose call is next. `None` when the order is no other than an earlier one.
    pub(crate) fn choose(&mut self, next: [Option<Call>; 2]) -> Option<usize> {
        let depth = self.depth;
        self.depth += 1;
        if let Some(choice) = self.path.get(depth) {
            assert!(choice.next == next, "the same order makes other calls: {:?}, {next:?}", choice.next);
            return Some(choice.taken);
        }
        let last = depth.checked_sub(1).map(|last| &self.path[last]);
        let asleep = [0, 1].map(|who| {
            last.is_some_and(|last| {
                let stays = last.taken != who && (last.asleep[who] || last.tried[who]);
                let is_apart = |taken: &Call| next[who].as_ref().is_some_and(|own| !own.meets(taken));
                stays && last.next[last.taken].as_ref().is_some_and(is_apart)
            })
        });
        let first = last.map_or(0, |last| last.taken);
        let taken = [first, 1 - first].into_iter().find(|who| next[*who].is_some() && !asleep[*who])?;
        self.path.push(Choice { next, taken, asleep, tried: [false; 2], wanted: [false; 2] });
        Some(taken)
    }

    /// Learns from an order. False when there is no other to try.
    pub(crate) fn learn(&mut self, trace: &Trace) -> bool {
        self.tried += 1;
        self.most_switches = [self.most_switches, trace.most_switches()].into_iter().flatten().min();
        for (place, who) in trace.races() {
            self.path[place].wanted[who] = true;
        }
        self.path.truncate(trace.0.len());
        while let Some(choice) = self.path.last_mut() {
            choice.tried[choice.taken] = true;
            let other = 1 - choice.taken;
            let is_open =
                choice.wanted[other] && !choice.tried[other] && !choice.asleep[other] && choice.next[other].is_some();
            if is_open {
                choice.taken = other;
                let is_few = |most| self.switches() <= most && self.tried < MOST_ORDERS_OF_LONG;
                if self.most_switches.is_none_or(is_few) {
                    return true;
                }
                self.path.last_mut().expect("a choice").tried[other] = true;
            }
            self.path.pop();
        }
        false
    }

    fn switches(&self) -> usize {
        self.path.windows(2).filter(|two| two[0].taken != two[1].taken).count()
    }
}
