//! Worlds and the actors in them. A world is the whole service on a table of its own, at a moment that stands still until
//! the test moves it; an actor is a caller with a token or without. What the service should answer is said in the tests.

mod actor;
mod privacy;
mod remote;
mod response;
mod twin;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use local::access::Access;
use local::bucket::Bucket;
use local::engine::Engine;
use local::gateway::Exchange;
use local::service;
use local::settings::MEDIA;
use local::stack::Stack;
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::{Random, UserId};
use shared::domain::time::{Clock, Timestamp};
use shared::domain::user::Ban;
use shared::store::{Reading, Store};
use tokio::net::TcpListener;

pub use self::actor::{Actor, sign};
pub use self::privacy::lines_logged;
pub use self::remote::Remote;
pub use self::response::{TestResponse, ids, seen};
use self::twin::Twin;
pub use self::twin::two_engines;

/// 2050-01-02T03:04:05Z. Far ahead, because the engine sweeps what expires by the real clock.
pub const START: i64 = 2_524_705_445_000;
pub const TABLE: &str = "comments";
pub const SECRET: &str = "the secret that signs all the tokens";
const SALT: &str = "the salt of visitors";

pub struct World {
    stack: Stack,
    engine: Engine,
    twin: Option<Twin>,
    prefix: String,
    now: Arc<AtomicI64>,
    strangers: AtomicU64,
}

impl World {
    #[must_use]
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With these settings, the others at their defaults.
    #[must_use]
    pub fn with(settings: &[(&str, &str)]) -> Self {
        let engine = Engine::memory().expect("an engine in memory");
        let twin = Twin::of(&engine);
        Self::on(engine, twin, Arc::new(AtomicI64::new(START)), settings)
    }

    /// The same table after a restart with these settings.
    #[must_use]
    pub fn again(&self, settings: &[(&str, &str)]) -> Self {
        self.pass(Duration::from_millis(10));
        Self::on(self.engine.clone(), self.twin.clone(), Arc::clone(&self.now), settings)
    }

    fn on(engine: Engine, twin: Option<Twin>, now: Arc<AtomicI64>, settings: &[(&str, &str)]) -> Self {
        privacy::watch_the_log();
        let mut vars = HashMap::from([
            ("TABLE_NAME", TABLE),
            ("SVC_JWT_SECRET", SECRET),
            ("SVC_VISITOR_SALT", SALT),
            ("MEDIA_BUCKET", MEDIA),
            ("MEDIA_BASE_URL", "https://media.example.org"),
            ("SVC_WRITE_LIMIT", "1000000"),
            ("SVC_READ_LIMIT", "1000000"),
        ]);
        vars.extend(settings.iter().copied());
        let config = Config::from_vars(|name| vars.get(name).map(|value| (*value).to_owned())).expect("settings");
        let prefix = config.api_prefix.clone();
        let time = Arc::clone(&now);
        let clock = Clock::new(move || Timestamp(time.load(Ordering::Relaxed)));
        let client = twin.as_ref().map_or_else(|| service::client(&engine), Twin::client);
        let app = App::new(config, client, clock, Random::system());
        let bucket = Bucket::temporary(MEDIA).expect("a bucket");
        let stack = service::start(app, engine.clone(), bucket, Vec::new()).expect("the service starts");
        Self { stack, engine, twin, prefix, now, strangers: AtomicU64::new(1) }
    }

    /// Serves HTTP until the runtime ends. `log` is told of every answer.
    pub fn serve(&self, listener: TcpListener, log: impl Fn(&Exchange) + Clone + Send + Sync + 'static) {
        tokio::spawn(self.stack.gateway.clone().serve(listener, std::future::pending(), log));
    }

    /// What the functions may do, and did.
    pub fn roles(&self) -> &[Arc<Access>] {
        &self.stack.roles
    }

    /// Somebody without a token, at an address of their own.
    pub fn guest(&self) -> Actor {
        let number = self.strangers.fetch_add(1, Ordering::Relaxed);
        Actor::new(&self.stack.gateway, &self.prefix, number)
    }

    /// With a token that is good for an hour.
    pub fn user(&self, id: u64, name: &str) -> Actor {
        self.claiming(&serde_json::json!({ "sub": id.to_string(), "name": name }))
    }

    /// User 1.
    pub fn moderator(&self) -> Actor {
        self.claiming(&serde_json::json!({ "sub": "1", "name": "Mod", "roles": ["moderator"] }))
    }

    /// User 13, banned for good.
    pub async fn banned(&self) -> Actor {
        let user = self.user(13, "Mallory");
        user.get("ui").await.ok(200);
        let ban = Ban { until: None, reason: Some("spam".to_owned()) };
        self.store().set_ban(UserId(13), Some(ban)).await.expect("the ban is stored");
        user
    }

    /// With a token of these claims, and `exp` and `iat` where they are missing.
    pub fn claiming(&self, claims: &serde_json::Value) -> Actor {
        let seconds = self.now().seconds();
        privacy::hide_email(claims["email"].as_str().unwrap_or_default());
        let mut claims = claims.clone();
        let fields = claims.as_object_mut().expect("claims are an object");
        fields.entry("exp").or_insert_with(|| (seconds + 3600).into());
        fields.entry("iat").or_insert_with(|| seconds.into());
        self.guest().with_token(&sign(&serde_json::json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET))
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Relaxed))
    }

    pub fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("a test takes less than an age");
        self.now.fetch_add(millis, Ordering::Relaxed);
    }

    /// The clocks of all instances go back.
    pub fn turn_back(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("a test takes less than an age");
        self.now.fetch_sub(millis, Ordering::Relaxed);
    }

    /// Waits until everything behind the table's stream is done.
    pub async fn wait_until_idle(&self) {
        self.stack.wait_until_idle().await;
    }

    /// The table as the functions see it.
    pub fn client(&self) -> Client {
        self.twin.as_ref().map_or_else(|| service::client(&self.engine), Twin::client)
    }

    pub fn store(&self) -> Store {
        Store::new(self.client(), TABLE.to_owned(), Random::system())
    }

    /// What the table keeps of a user's `sub`.
    pub async fn subject(&self, id: u64) -> Option<String> {
        let user = self.store().user(UserId(id), Reading::Consistent).await.expect("the table answers");
        user.and_then(|user| user.subject)
    }

    /// Makes the table keep another, behind the service's back.
    pub async fn seed_subject(&self, id: u64, hash: Option<&str>) {
        use aws_sdk_dynamodb::types::AttributeValue::S;
        let update = self.client().update_item().table_name(TABLE);
        let update = update.key("pk", S(format!("U#{id}"))).key("sk", S("U".to_owned()));
        let update = match hash {
            Some(hash) => {
                update.update_expression("SET sh = :hash").expression_attribute_values(":hash", S(hash.to_owned()))
            }
            None => update.update_expression("REMOVE sh"),
        };
        update.send().await.expect("the subject is stored");
    }

    /// Pins a comment behind the service's back.
    pub async fn seed_pin(&self, thread: &str, comment: u64) {
        use aws_sdk_dynamodb::types::AttributeValue::{M, N, S};
        let pin =
            HashMap::from([("c".to_owned(), N(comment.to_string())), ("at".to_owned(), N(self.now().0.to_string()))]);
        let update = self.client().update_item().table_name(TABLE);
        let update = update.key("pk", S(format!("T#{}", thread.replace('/', "#")))).key("sk", S("T".to_owned()));
        let update = update.update_expression("SET pin = :pin").expression_attribute_values(":pin", M(pin));
        update.send().await.expect("the pin is stored");
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
