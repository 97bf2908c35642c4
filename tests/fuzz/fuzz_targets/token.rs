//! Fuzzes tokens. The fuzzer doesn't have the secret, so the service must refuse every token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::app::{App, Queues};
use shared::domain::ids::Random;
use shared::domain::time::{Clock, Timestamp};
use tokio::runtime::Runtime;

thread_local! {
    static SERVICE: (Runtime, App) = {
        let engine = server::engine::Engine::memory().expect("an engine");
        let app = App::new(fuzz::config(), engine.client(), Queues::default(), Clock::system(), Random::system());
        (fuzz::runtime(), app)
    };
}

fuzz_target!(|token: &str| {
    SERVICE.with(|(runtime, app)| {
        let claims = runtime.block_on(app.keys.verify(token, Timestamp(0)));
        assert!(claims.is_err(), "{claims:?}");
    });
});
