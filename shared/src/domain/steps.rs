//! Counts the steps of loops over what people wrote, for the tests that bound them. Without the feature `testing` nothing is
//! counted.

#[cfg(feature = "testing")]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts steps that are taken.
#[cfg(feature = "testing")]
pub(crate) fn take(steps: usize) {
    TAKEN.with(|taken| taken.set(taken.get() + steps as u64));
}

#[cfg(not(feature = "testing"))]
pub(crate) fn take(_steps: usize) {}

/// The steps that `act` takes on this thread.
#[cfg(feature = "testing")]
pub fn of(act: impl FnOnce()) -> u64 {
    let before = TAKEN.with(std::cell::Cell::get);
    act();
    TAKEN.with(std::cell::Cell::get) - before
}
