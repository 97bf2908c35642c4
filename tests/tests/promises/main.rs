//! The table stays consistent under faults, behind lagging indexes, in random histories, after damage, and after a
//! move.

mod acknowledged;
mod check;
mod faults;
mod lag;
mod model;
mod moved;
mod trust;

use tests::{Faults, Setup, World};

/// Lets guests write and like, and holds a comment whose body contains `doubtful`.
const OPEN: [(&str, &str); 3] =
    [("SVC_ALLOW_GUESTS", "true"), ("SVC_GUEST_LIKES", "true"), ("SVC_SPAM_REVIEW", "doubtful")];

fn world(settings: &[(&str, &str)]) -> World {
    Setup::new(&[&OPEN[..], settings].concat()).running_clock().start()
}

fn faulty(faults: &Faults, settings: &[(&str, &str)]) -> World {
    Setup::new(&[&OPEN[..], settings].concat()).running_clock().faults(faults).start()
}
