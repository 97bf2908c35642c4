//! Chooses the orders: all orders that differ in calls to common items, each once. This is dynamic partial order
//! reduction with sleep sets (Flanagan and Godefroid, 2005) for two participants.

use tests::Call;

/// Limits for long pairs, as (calls, switches, orders). If a participant makes more than `calls` calls, the first
/// `orders` orders may switch between the participants up to `switches` times. In later orders, one participant runs to
/// its end between two calls of the other.
const LONG: [(usize, usize, usize); 2] = [(30, 2, 200), (12, 4, 500)];

/// The calls that were made, each with its participant.
pub(crate) type Trace = Vec<(usize, Call)>;

/// Whether the order of any two calls, one from each trace, matters.
pub(crate) fn meet(one: &Trace, other: &Trace) -> bool {
    one.iter().any(|(_, call)| other.iter().any(|(_, other)| call.meets(other)))
}

/// Returns the positions where another order could have the other participant's call instead, each with that
/// participant.
fn races(trace: &[(usize, Call)]) -> Vec<(usize, usize)> {
    let mut races = Vec::new();
    // For each participant, the other's latest call on which it already depends.
    let mut known = [None; 2];
    for (place, (who, call)) in trace.iter().enumerate() {
        let meets = |(other, earlier): &(usize, Call)| other != who && earlier.meets(call);
        // Calls that have begun end before a pause does, so the pause can only begin later.
        let is_pause = *call == Call::pause();
        let earlier =
            if is_pause { trace[..place].iter().position(meets) } else { trace[..place].iter().rposition(meets) };
        if earlier > known[*who] {
            races.extend(earlier.map(|earlier| (earlier, *who)));
            known[*who] = if is_pause { Some(place) } else { earlier };
        }
    }
    races
}

struct Choice {
    next: [Option<Call>; 2],
    taken: usize,
    /// Participants whose next call need not be tried here, because it was tried before an independent call.
    asleep: [bool; 2],
    tried: [bool; 2],
    wanted: [bool; 2],
}

#[derive(Default)]
pub(crate) struct Orders {
    path: Vec<Choice>,
    depth: usize,
    pub(crate) tried: usize,
    most_calls: usize,
}

impl Orders {
    /// Returns the participant whose call is next. `None` if the order is equivalent to an earlier one.
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

    /// Records an order. Returns false if no other order is left to try.
    pub(crate) fn learn(&mut self, trace: &Trace) -> bool {
        (self.tried, self.depth) = (self.tried + 1, 0);
        let trace = &trace[..self.path.len()];
        for (place, who) in races(trace) {
            self.path[place].wanted[who] = true;
        }
        let calls = [0, 1].map(|who| trace.iter().filter(|(by, _)| *by == who).count());
        self.most_calls = calls.into_iter().fold(self.most_calls, usize::max);
        let bound = LONG.into_iter().find(|(most, ..)| self.most_calls > *most);
        while let Some(choice) = self.path.last_mut() {
            choice.tried[choice.taken] = true;
            let other = 1 - choice.taken;
            if choice.wanted[other] && !choice.tried[other] && !choice.asleep[other] && choice.next[other].is_some() {
                choice.taken = other;
                let switches = self.path.windows(2).filter(|two| two[0].taken != two[1].taken).count();
                let most = bound.map(|(_, most, orders)| if self.tried < orders { most } else { 1 });
                if most.is_none_or(|most| switches <= most) {
                    return true;
                }
                self.path.last_mut().expect("a choice").tried[other] = true;
            }
            self.path.pop();
        }
        false
    }
}
