//! Fuzzes cursors. The service accepts only a cursor that it signed, and signing the cursor again returns the same
//! text.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use shared::config::Config;
use shared::http::cursor::CursorSigner;

static CONFIG: LazyLock<Config> = LazyLock::new(fuzz::config);

fuzz_target!(|text: &str| {
    let signer = CursorSigner::new(&CONFIG.visitor_salt, "posts#7 newest".to_owned());
    if let Some(cursor) = signer.verify(text) {
        assert_eq!(signer.sign(cursor), text);
    }
});
