//! A service running anywhere, and the actors that call it over HTTP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use serde_json::json;
use shared::aws::https;
use shared::domain::time::Clock;

use crate::settings::START;
use crate::{Actor, TestResponse, sign};

/// Maximum wait for a response. `cargo lambda watch` may have to build a function first.
const PATIENCE: Duration = Duration::from_mins(5);

pub struct Remote {
    url: Uri,
    secret: String,
    client: https::Client,
    /// The start time of this run in milliseconds, which makes users and records unique to it.
    run: u64,
    /// Tokens signed so far.
    signed: AtomicU64,
}

impl Remote {
    /// `url` is the base of all routes. `secret` signs tokens.
    #[must_use]
    pub fn new(url: &str, secret: &str) -> Self {
        Self {
            url: url.parse().expect("an absolute address"),
            secret: secret.to_owned(),
            client: https::Client::new(PATIENCE),
            run: u64::try_from(Clock::system().now().0).expect("a time after 1970"),
            signed: AtomicU64::new(0),
        }
    }

    /// Returns a thread that only this run writes to.
    #[must_use]
    pub fn thread(&self) -> String {
        format!("posts/walk-{}", self.run)
    }

    #[must_use]
    pub fn guest(&self) -> Actor {
        Actor::at(&self.url, &self.client)
    }

    /// Returns the `number`th user of this run (0 to 9), with a unique name.
    #[must_use]
    pub fn user(&self, number: u64, name: &str) -> Actor {
        self.signed_in(number, name, &[])
    }

    #[must_use]
    pub fn moderator(&self, number: u64, name: &str) -> Actor {
        self.signed_in(number, name, &["moderator"])
    }

    #[must_use]
    pub fn user_id(&self, number: u64) -> u64 {
        self.run * 10 + number
    }

    #[must_use]
    pub fn user_name(&self, name: &str) -> String {
        format!("{name} {}", self.run)
    }

    /// Fetches an absolute URL without a token.
    pub async fn fetch(&self, url: &str) -> TestResponse {
        let request = Request::get(url).body("").expect("an absolute address");
        let answer = self.client.send(request).await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        TestResponse::read(answer.map(Bytes::from))
    }

    fn signed_in(&self, number: u64, name: &str, roles: &[&str]) -> Actor {
        let claims = json!({
            "sub": self.user_id(number).to_string(),
            "name": self.user_name(name),
            "roles": roles,
            // Each token is newer than the previous one, so that the service stores its name.
            "iat": self.run / 1_000 + self.signed.fetch_add(1, Ordering::Relaxed),
            // The token must also be valid by a `World`'s clock.
            "exp": START / 1_000 + 3_600,
        });
        self.guest().with_token(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, &self.secret))
    }
}
