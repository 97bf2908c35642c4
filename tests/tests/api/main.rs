//! The API's rules, a test each, named as a sentence.

mod create;
