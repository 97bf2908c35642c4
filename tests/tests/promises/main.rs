//! What the service promises, whatever happens to it: the table stays in order.

mod check;
mod faults;
mod lag;
mod model;
mod replica;
mod world;
