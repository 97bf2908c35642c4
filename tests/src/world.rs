//! The whole service in this process, on its own table.

use std::collections::HashMap;
use std::future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use http::Method;
use serde_json::{Value, json};
use server::access::Access;
use server::bucket::Bucket;
use server::engine::{Engine, EventFilter, Follower};
use server::gateway::{Exchange, Front};
use server::outbox::{Outbox, SentMail};
use server::queue::Queues;
use server::service::{self, Services};
use server::settings::{DELIVERIES, MEDIA};
use server::stack::Stack;
use shared::app::App;
use shared::aws::outbound::{Lookup, system_lookup};
use shared::config::Config;
use shared::domain::ids::{CommentId, Random, UserId};
use shared::domain::job::Job;
use shared::domain::mail_keys::{Link, MailKeys, Purpose};
use shared::domain::secret::Secret;
use shared::domain::time::{Clock, Timestamp};
use shared::policy;
use shared::store::{Reading, Store};
use tokio::net::TcpListener;
use transfer::store::recount;

use crate::faults::{Faults, Faulty};
use crate::rounds::Rounds;
use crate::settings::{MEDIA_BASE, SALT, SECRET, START, TABLE};
use crate::twin::Engines;
use crate::{Actor, TestResponse, privacy, sign};

/// The longest time that a job waits for a lagging index. Failed jobs wait longer before their next attempt.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A running service. Its clock is stopped until the test moves it, unless the setup has a running clock.
pub struct World {
    stack: Stack,
    engine: Engine,
    bucket: Bucket,
    surroundings: Surroundings,
    config: Config,
    strangers: AtomicU64,
}

#[derive(Clone)]
enum Connection {
    Direct(Engines),
    /// Concurrent calls end together.
    InRounds(Rounds),
    Faulty(Faulty),
}

impl Connection {
    /// Returns `None` with faults, which only the embedded engine supports.
    fn engines(&self) -> Option<&Engines> {
        match self {
            Self::Direct(engines) | Self::InRounds(Rounds { engines, .. }) => Some(engines),
            Self::Faulty(_) => None,
        }
    }
}

/// The state shared by all instances on one table.
#[derive(Clone)]
struct Surroundings {
    queues: Queues,
    outbox: Outbox,
    connection: Connection,
    time: Time,
    lookup: Lookup,
}

impl Surroundings {
    fn app(&self, config: &Config) -> App {
        let client = match &self.connection {
            Connection::Direct(engines) => engines.client(),
            Connection::InRounds(rounds) => rounds.client(),
            Connection::Faulty(faulty) => faulty.client(),
        };
        let (time, queues) = (self.time.clone(), service::app_queues(&self.queues));
        App::new(config.clone(), client, queues, Clock::new(move || time.now()), Random::system())
    }
}

/// A clock that all instances of a service share. Tests move it.
#[derive(Clone)]
struct Time {
    start: Option<i64>,
    passed: Arc<AtomicI64>,
}

impl Time {
    fn now(&self) -> Timestamp {
        let start = self.start.unwrap_or_else(|| Clock::system().now().0);
        Timestamp(start + self.passed.load(Ordering::Relaxed))
    }
}

/// Builder for a [`World`]. [`World::new`] and [`World::with`] are shortcuts for common setups.
pub struct Setup<'a> {
    settings: &'a [(&'a str, &'a str)],
    faults: Option<&'a Faults>,
    in_rounds: bool,
    start: Option<i64>,
    lookup: Lookup,
}

impl<'a> Setup<'a> {
    #[must_use]
    pub fn new(settings: &'a [(&'a str, &'a str)]) -> Self {
        Self { settings, faults: None, in_rounds: false, start: Some(START), lookup: system_lookup() }
    }

    /// Puts these faults between the service and its table.
    #[must_use]
    pub fn faults(self, faults: &'a Faults) -> Self {
        Self { faults: Some(faults), ..self }
    }

    /// Makes concurrent calls to the table end together, so that round trips can be counted.
    #[must_use]
    pub fn in_rounds(self) -> Self {
        Self { in_rounds: true, ..self }
    }

    /// Resolves webhook hosts with this lookup.
    #[must_use]
    pub fn lookup(self, lookup: Lookup) -> Self {
        Self { lookup, ..self }
    }

    /// Lets the clock run in real time.
    #[must_use]
    pub fn running_clock(self) -> Self {
        Self { start: None, ..self }
    }

    #[must_use]
    pub fn start(self) -> World {
        let engine = Engine::memory().expect("an engine in memory");
        let connection = match self.faults {
            Some(faults) => Connection::Faulty(faults.before(&engine)),
            None if self.in_rounds => Connection::InRounds(Rounds::of(&engine)),
            None => Connection::Direct(Engines::of(&engine)),
        };
        let time = Time { start: self.start, passed: Arc::default() };
        let clock = Clock::new({
            let time = time.clone();
            move || time.now()
        });
        let queues = service::queue_settings().expect("the template has queues");
        let queues = Queues::temporary(queues, clock.clone(), Random::system()).expect("queues");
        let outbox = Outbox::temporary(queues.clone(), DELIVERIES, clock).expect("a folder for mails");
        let surroundings = Surroundings { queues, outbox, connection, time, lookup: self.lookup };
        World::on(engine, surroundings, self.settings)
    }
}

impl World {
    #[must_use]
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// Creates a world with these settings, and defaults for all others.
    #[must_use]
    pub fn with(settings: &[(&str, &str)]) -> Self {
        Setup::new(settings).start()
    }

    /// Creates another instance of the service on the same table, with these settings.
    #[must_use]
    pub fn again(&self, settings: &[(&str, &str)]) -> Self {
        self.pass(Duration::from_millis(10));
        Self::on(self.engine.clone(), self.surroundings.clone(), settings)
    }

    fn on(engine: Engine, surroundings: Surroundings, settings: &[(&str, &str)]) -> Self {
        privacy::watch_the_log();
        let config = config(settings);
        let bucket = Bucket::temporary(MEDIA).expect("a bucket");
        let services = Services {
            engine: engine.clone(),
            bucket: bucket.clone(),
            queues: surroundings.queues.clone(),
            outbox: surroundings.outbox.clone(),
            lookup: Arc::clone(&surroundings.lookup),
        };
        let stack = service::start(surroundings.app(&config), services, Vec::new()).expect("the service starts");
        Self { stack, engine, bucket, surroundings, config, strangers: AtomicU64::new(1) }
    }

    /// Serves HTTP until the runtime ends. Calls `log` after every response.
    pub fn serve(&self, listener: TcpListener, log: impl Fn(&Exchange) + Clone + Send + Sync + 'static) {
        tokio::spawn(self.stack.gateway.clone().serve(listener, Front::default(), std::future::pending(), log));
    }

    /// Returns the functions' roles, each with its granted and used permissions.
    pub fn roles(&self) -> &[Arc<Access>] {
        &self.stack.roles
    }

    /// Returns a caller without a token, at a separate address.
    pub fn guest(&self) -> Actor {
        let number = self.strangers.fetch_add(1, Ordering::Relaxed);
        Actor::new(&self.stack.gateway, &self.config.api_prefix, number)
    }

    /// Returns a member with a token that is valid for an hour.
    pub fn user(&self, id: u64, name: &str) -> Actor {
        self.claiming(&json!({ "sub": id.to_string(), "name": name }))
    }

    /// Returns user 1, a moderator.
    pub fn moderator(&self) -> Actor {
        self.claiming(&json!({ "sub": "1", "name": "Mod", "roles": ["moderator"] }))
    }

    /// Returns user 13, who is banned permanently.
    pub async fn banned(&self) -> Actor {
        let user = self.user(13, "Mallory");
        user.get("ui").await.ok(200);
        // Bans through an instance with default settings, because this instance may be read-only.
        self.again(&[]).moderator().put("users/13/ban", json!({ "reason": "spam" })).await.ok(200);
        user
    }

    /// Returns an actor whose token has these claims. Missing `exp` and `iat` are added.
    pub fn claiming(&self, claims: &Value) -> Actor {
        let seconds = self.now().seconds();
        privacy::hide_email(claims["email"].as_str().unwrap_or_default());
        let mut claims = claims.clone();
        let fields = claims.as_object_mut().expect("claims are an object");
        fields.entry("exp").or_insert_with(|| (seconds + 3600).into());
        fields.entry("iat").or_insert_with(|| seconds.into());
        self.guest().with_token(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET))
    }

    pub fn now(&self) -> Timestamp {
        self.surroundings.time.now()
    }

    /// Moves the clocks of all instances forward.
    pub fn pass(&self, time: Duration) {
        self.surroundings.time.passed.fetch_add(millis(time), Ordering::Relaxed);
    }

    /// Moves the clocks of all instances back.
    pub fn turn_back(&self, time: Duration) {
        self.surroundings.time.passed.fetch_sub(millis(time), Ordering::Relaxed);
    }

    pub async fn send_job(&self, job: &Job) {
        let jobs = service::app_queues(&self.surroundings.queues).jobs.expect("a queue of jobs");
        jobs.send(job, Duration::ZERO).await.expect("the queue takes a message");
    }

    /// Waits until all table events, bucket events and visible messages have been handled.
    pub async fn wait_until_idle(&self) {
        self.stack.wait_until_idle().await;
    }

    /// Waits until every job and delivery is done, including delayed and failed ones, for which it moves the clock
    /// forward. Also waits in real time if copies of the table lag.
    pub async fn finish_jobs(&self) {
        loop {
            self.wait_until_idle().await;
            let Some(next) = self.surroundings.queues.next_visible() else { return };
            let wait = next.since(self.now());
            let sleeps = matches!(&self.surroundings.connection, Connection::Faulty(faulty) if faulty.lags())
                && wait <= LONGEST_WAIT;
            if sleeps {
                tokio::time::sleep(wait).await;
            }
            if !sleeps || self.surroundings.time.start.is_some() {
                self.pass(wait);
            }
        }
    }

    /// Writes top-level comments `0`, `1`, … by Ada in `posts/1`, three milliseconds apart. Returns their ids, oldest
    /// first.
    pub async fn written(&self, count: usize) -> Vec<u64> {
        let ada = self.user(7, "Ada");
        let mut created = Vec::new();
        for n in 0..count {
            created.push(ada.comment("posts/1", &n.to_string()).await);
            self.pass(Duration::from_millis(3));
        }
        created
    }

    /// Fetches an image from the bucket by its URL.
    pub async fn fetch(&self, url: &str) -> TestResponse {
        self.fetch_by(Method::GET, url, "").await
    }

    pub async fn fetch_by(&self, method: Method, url: &str, body: &str) -> TestResponse {
        let path = url.strip_prefix(MEDIA_BASE).unwrap_or_else(|| panic!("{url} isn't the address of an image"));
        self.guest().send_at(method, &format!("/{MEDIA}{path}"), body.to_owned()).await
    }

    /// Returns the emails that were sent, oldest first.
    pub fn mails(&self) -> Vec<SentMail> {
        self.surroundings.outbox.mails().expect("the folder of mails can be read")
    }

    /// Sends a message about a recipient to the function `delivery`.
    pub fn send_delivery(&self, recipient: &str) {
        self.send_to_delivery(&delivery_message(recipient));
    }

    pub fn send_to_delivery(&self, body: &str) {
        let message = json!({ "QueueUrl": Queues::url(DELIVERIES), "MessageBody": body });
        self.surroundings.queues.answer("SendMessage", message.to_string().as_bytes());
    }

    /// Deletes all messages to the function `delivery`.
    pub fn lose_deliveries(&self) {
        self.surroundings.queues.clear(DELIVERIES).expect("the queue can be changed");
    }

    /// Passes a batch of messages about these recipients to a function that is killed after this many steps. Returns
    /// whether the function ran to the end.
    pub async fn deliver(&self, recipients: &[&str], steps: usize) -> bool {
        let messages: Vec<String> = recipients.iter().copied().map(delivery_message).collect();
        self.deliver_messages(&messages, steps).await
    }

    /// Like [`Self::deliver`], for messages with these bodies.
    pub async fn deliver_messages(&self, messages: &[String], steps: usize) -> bool {
        let mut left = steps;
        let is_killed = || {
            left = left.saturating_sub(1);
            left == 0
        };
        self.deliver_until(messages, is_killed).await
    }

    /// Passes a message about a recipient to a function that is killed once the mail server has accepted an email.
    pub async fn deliver_until_sent(&self, recipient: &str) {
        let before = self.mails().len();
        let lived = self.deliver_until(&[delivery_message(recipient)], || self.mails().len() > before).await;
        assert!(!lived, "a mail is sent, and the function goes on after it");
    }

    /// Passes a batch of messages to a function that is killed when `is_killed`, called after each step, returns true.
    /// Returns whether the function ran to the end.
    async fn deliver_until(&self, messages: &[String], mut is_killed: impl FnMut() -> bool) -> bool {
        let app = self.surroundings.app(&self.config);
        let Surroundings { outbox, lookup, .. } = &self.surroundings;
        let senders = service::senders(&app, outbox, Arc::clone(lookup)).expect("senders");
        let message = |body| json!({ "messageId": "1", "receiptHandle": "1", "body": body });
        let event = json!({ "Records": messages.iter().map(message).collect::<Vec<_>>() });
        let mut handled = pin!(delivery::handle(&app, &senders, &event));
        future::poll_fn(|context| match handled.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if is_killed() => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Passes the stream record of a comment's creation to `events` again.
    pub async fn repeat_creation(&self, id: u64) {
        let app = self.surroundings.app(&self.config);
        let found =
            self.store().comment_with_ancestors(CommentId(id), Reading::Consistent).await.expect("the table answers");
        let comment = found.expect("the comment exists").comment;
        let image: serde_dynamo::Item = serde_dynamo::to_item(&comment).expect("a comment is an item");
        let record = json!({ "eventID": "1", "dynamodb": { "Keys": { "sk": { "S": "C" } }, "NewImage": image } });
        events::handle(&app, &json!({ "Records": [record] })).await.expect("the record is handled");
    }

    /// Follows the table's changes from now on.
    pub fn changes(&self) -> Follower {
        self.engine.follow(TABLE, EventFilter::default()).expect("the table has a stream")
    }

    /// Delivers a follower's unread changes to the service again, as a late retry of the stream would.
    pub async fn repeat_changes(&self, changes: &mut Follower) {
        let app = self.surroundings.app(&self.config);
        let batch = changes.next_now(usize::MAX).await.expect("the table has a stream").expect("something has changed");
        let records: Vec<Value> = batch.records.into_iter().map(|record| record.content).collect();
        events::handle(&app, &json!({ "Records": records })).await.expect("the records are handled");
        self.finish_jobs().await;
    }

    /// Makes the mail server refuse the next `count` emails.
    pub fn refuse_mails(&self, count: u64) {
        self.surroundings.outbox.refuse(count);
    }

    /// Makes the mail server permanently refuse emails to this address.
    pub fn reject_mails_to(&self, address: &str) {
        self.surroundings.outbox.reject(address);
    }

    pub fn queues(&self) -> &Queues {
        &self.surroundings.queues
    }

    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns a client of the table, without faults.
    pub fn client(&self) -> Client {
        self.surroundings.connection.engines().map_or_else(|| service::client(&self.engine), Engines::client)
    }

    /// Returns the table's store, without faults. Three replies per parent are inline, as by default.
    pub fn store(&self) -> Store {
        let store = Store::new(self.client(), TABLE.to_owned(), Random::system()).embedding(3);
        store.asking_for_trust(policy::shows_by_trust(&self.config))
    }

    /// Returns the table's store, with these faults on the connection.
    pub fn store_behind(&self, faults: &Faults) -> Store {
        self.leave_the_second_engine();
        Store::new(faults.before(&self.engine).client(), TABLE.to_owned(), Random::system()).embedding(3)
    }

    pub fn leave_the_second_engine(&self) {
        if let Some(engines) = self.surroundings.connection.engines() {
            engines.leave_the_second();
        }
    }

    /// Returns the findings of a recount of the table, once the service is idle. Doesn't wait for delayed jobs.
    pub async fn findings(&self) -> Vec<String> {
        self.wait_until_idle().await;
        let findings = recount::check(&self.store(), self.now()).await.expect("the table answers");
        findings.iter().map(ToString::to_string).collect()
    }

    /// Repairs the findings of a recount, as `check --repair` does.
    pub async fn repair(&self) {
        self.wait_until_idle().await;
        let store = self.store();
        for finding in recount::check(&store, self.now()).await.expect("the table answers") {
            assert!(recount::repair(&store, &finding).await.expect("the table answers"), "{finding}");
        }
    }

    /// Returns the hash of a user's `sub`, as stored.
    pub async fn subject(&self, id: u64) -> Option<String> {
        let user = self.store().user(UserId(id), Reading::Consistent).await.expect("the table answers");
        user.and_then(|user| user.subject)
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the configuration with these settings. The tests' defaults for the rate limits are too high to be reached.
pub(crate) fn config(settings: &[(&str, &str)]) -> Config {
    let mut vars = HashMap::from([
        ("TABLE_NAME", TABLE),
        ("SVC_JWT_SECRET", SECRET),
        ("SVC_VISITOR_SALT", SALT),
        ("MEDIA_BUCKET", MEDIA),
        ("MEDIA_BASE_URL", MEDIA_BASE),
        ("SVC_WRITE_LIMIT", "1000000"),
        ("SVC_READ_LIMIT", "1000000"),
    ]);
    vars.extend(settings.iter().copied());
    Config::from_vars(|name| vars.get(name).map(|value| (*value).to_owned())).expect("settings")
}

fn delivery_message(recipient: &str) -> String {
    json!({ "Type": "Mail", "recipient": recipient }).to_string()
}

#[must_use]
pub fn code(mail: &SentMail) -> String {
    let is_code = |line: &&str| line.len() == 8 && line.bytes().all(|b| b.is_ascii_digit());
    mail.text.lines().find(is_code).unwrap_or_else(|| panic!("no code in {}", mail.text)).to_owned()
}

/// Returns a token that unsubscribes user 7.
#[must_use]
pub fn mail_token() -> String {
    let link = Link { recipient: UserId(7).into(), purpose: Purpose::Stop { thread: None } };
    MailKeys::new(&Secret::from(SALT.to_owned())).token(&link)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("the duration fits in i64 milliseconds")
}
