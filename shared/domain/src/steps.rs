//! Counts the steps of loops over text that people wrote, for the tests that limit these steps.

use std::cell::Cell;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn take(steps: usize) {
    TAKEN.with(|taken| taken.set(taken.get() + steps as u64));
}

/// Runs `act`, and returns the number of steps that it counted on this thread.
pub fn of(act: impl FnOnce()) -> u64 {
    let before = TAKEN.with(Cell::get);
    act();
    TAKEN.with(Cell::get) - before
}
