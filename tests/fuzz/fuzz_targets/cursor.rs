//! What is said to be a cursor: opened only when it is one of ours, and then to the letter.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use shared::config::Config;
use shared::http::cursor::Seal;

static CONFIG: LazyLock<Config> = LazyLock::new(fuzz::config);

fuzz_target!(|text: &str| {
    let seal = Seal::new(&CONFIG.visitor_salt, "posts#7 newest".to_owned());
    if let Some(cursor) = seal.open(text) {
        assert_eq!(seal.close(cursor), text);
    }
});
