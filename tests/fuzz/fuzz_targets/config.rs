//! Settings, a line each: a start, or a refusal that names the variable and never a secret's value.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use shared::config::Config;

fuzz_target!(|text: &str| {
    let set: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let given = |name: &str| match set.get(name) {
        Some(value) => Some((*value).to_owned()),
        None if matches!(name, "TABLE_NAME" | "SVC_JWT_SECRET" | "SVC_VISITOR_SALT") => Some("given".to_owned()),
        None => None,
    };
    if let Err(error) = Config::from_vars(given) {
        let error = error.to_string();
        assert!(error.contains("SVC_") || error.contains("TABLE_NAME") || error.contains("MEDIA_"), "{error}");
        for secret in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "SVC_AKISMET_KEY"] {
            let told = error.starts_with(secret)
                && set.get(secret).is_some_and(|value| value.len() > 1 && error.contains(value));
            assert!(!told, "{error}");
        }
    }
});
