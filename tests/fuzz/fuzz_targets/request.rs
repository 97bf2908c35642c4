//! Fuzzes HTTP requests, from the gateway's event to the table and back. The input is a line with the method and
//! address, lines with headers, then the body. No response is a 5xx, and every refusal is in the error envelope.
#![no_main]

use std::cell::RefCell;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http::{Method, Request, Uri};
use libfuzzer_sys::fuzz_target;
use server::engine::Engine;
use server::service::{self, Services};
use server::stack::Stack;
use server::token::Token;
use serde_json::Value;
use shared::app::App;
use shared::domain::ids::Random;
use shared::domain::time::{Clock, Timestamp};
use tokio::runtime::Runtime;

/// 2026-01-02T03:04:05Z
const NOW: Timestamp = Timestamp(1_767_323_045_000);
/// Requests per table, so that the table doesn't grow without bound.
const REQUESTS: u32 = 5_000;

struct Service {
    stack: Stack,
    token: String,
    left: u32,
    runtime: Runtime,
}

impl Service {
    fn start() -> Self {
        let runtime = fuzz::runtime();
        let config = fuzz::config();
        let token = Token { moderator: true, ..Token::new("1", "Ada") };
        let token = token.sign(&config.auth, NOW).expect("a token");
        let engine = Engine::memory().expect("an engine");
        let client = service::client(&engine);
        let services = Services::temporary(engine, "media").expect("services");
        let queues = service::app_queues(&services.queues);
        let app = App::new(config, client, queues, Clock::new(|| NOW), Random::system());
        let guard = runtime.enter();
        let stack = service::start(app, services, Vec::new()).expect("the service");
        drop(guard);
        Self { stack, token, left: REQUESTS, runtime }
    }
}

thread_local! {
    static SERVICE: RefCell<Option<Service>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let head = data.windows(2).position(|end| end == b"\n\n").unwrap_or(data.len());
    let Ok(text) = std::str::from_utf8(&data[..head]) else { return };
    let mut lines = text.lines();
    let Some((method, address)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), format!("/svc/api/v1/{address}").parse::<Uri>()) else {
        return;
    };
    let mut request = Request::builder().method(method).uri(uri).header("host", "api.test");
    SERVICE.with_borrow_mut(|slot| {
        let service = slot.get_or_insert_with(Service::start);
        for line in lines {
            let Some((name, value)) = line.split_once(": ") else { continue };
            let value = value.replace("MODERATOR", &service.token);
            request = std::mem::take(&mut request).header(name, value);
        }
        let body = Bytes::copy_from_slice(data.get(head + 2..).unwrap_or_default());
        let Ok(request) = request.body(body) else { return };
        let answer = service.runtime.block_on(service.stack.gateway.call(request, Ipv4Addr::new(10, 0, 0, 7).into()));
        let (status, body) = (answer.status().as_u16(), answer.body());
        assert!(status < 500, "{status}: {body:?}");
        // Skips compressed responses. API Gateway's own errors have one field instead of the envelope.
        if (400..500).contains(&status) && !answer.headers().contains_key("content-encoding") {
            let json: Value = serde_json::from_slice(body).expect("JSON");
            let envelope = json["message"].is_string() && json["code"].is_string() && json["errors"].is_object();
            assert!(envelope || json.as_object().is_some_and(|fields| fields.len() == 1), "{json:#}");
        }
        service.left -= 1;
        if service.left == 0 {
            *slot = None;
        }
    });
});
