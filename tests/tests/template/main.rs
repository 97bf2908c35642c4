//! The deployed template: rules that linters don't have, and its parameters' values.

mod deployed;
mod parameters;
