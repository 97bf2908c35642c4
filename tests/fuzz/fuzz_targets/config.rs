//! Fuzzes settings, one per input line. Parsing succeeds, or fails with an error that names the variable and contains
//! no secret.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use shared::config::Config;

fuzz_target!(|text: &str| {
    let set: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let given = |name: &str| match set.get(name) {
        Some(value) => Some((*value).to_owned()),
        None if matches!(name, "TABLE_NAME" | "SVC_JWT_SECRET" | "SVC_VISITOR_SALT") => Some("given, and of thirty-two bytes at least".to_owned()),
        None => None,
    };
    if let Err(error) = Config::from_vars(given) {
        let error = error.to_string();
        assert!(error.contains("SVC_") || error.contains("TABLE_NAME") || error.contains("MEDIA_"), "{error}");
        // The error must be the same for a different secret of the same length.
        let masked = |value: String| value.chars().map(|c| if c.is_whitespace() { c.into() } else { "x".repeat(c.len_utf8()) }).collect();
        for secret in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "SVC_AKISMET_KEY"].into_iter().filter(|secret| error.starts_with(secret)) {
            let other = |name: &str| if name == secret { given(name).map(masked) } else { given(name) };
            assert_eq!(Config::from_vars(other).map_or_else(|error| error.to_string(), |_| String::new()), error);
        }
    }
});
