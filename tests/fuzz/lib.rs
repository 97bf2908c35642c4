//! Settings and a runtime for the fuzz targets.

use shared::config::Config;
use tokio::runtime::{Builder, Runtime};

/// Returns settings that allow guests to comment and like, with rate limits that the fuzzer doesn't reach.
pub fn config() -> Config {
    let set = |name: &str| {
        let value = match name {
            "TABLE_NAME" => "comments",
            "MEDIA_BUCKET" => "media",
            "MEDIA_BASE_URL" => "https://media.example.org",
            "SVC_JWT_SECRET" => "the secret that signs all the tokens",
            "SVC_VISITOR_SALT" => "the salt of visitors",
            "SVC_READ_LIMIT" | "SVC_WRITE_LIMIT" | "SVC_UPLOAD_LIMIT" => "1000000",
            "SVC_ALLOW_GUESTS" | "SVC_GUEST_LIKES" => "true",
            "SVC_MODERATORS" => "1",
            _ => return None,
        };
        Some(value.to_owned())
    };
    Config::from_vars(set).expect("settings that hold")
}

pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
