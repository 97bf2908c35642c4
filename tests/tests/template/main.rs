//! The deployed template: rules that linters don't check, and the values of its parameters.

mod deployed;
mod parameters;
