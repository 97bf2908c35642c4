//! The deployed template: what linters don't know of it, and what its parameters accept.

mod deployed;
mod parameters;
