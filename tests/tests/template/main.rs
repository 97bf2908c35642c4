//! The deployed template: rules that linters don't have, and the values of its parameters.

mod deployed;
mod parameters;
