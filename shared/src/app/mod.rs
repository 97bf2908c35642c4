//! Builds a function's dependencies at startup and processes its requests: reads each request, calls the handler, turns a
//! refusal or fault into a response, and logs.

pub mod access_log;
pub mod admission;
pub mod akismet;
pub mod codes;
pub mod lambda;
pub mod mails;
pub mod names;
pub mod spam_check;
pub mod thread_list;
pub mod webhooks;

use std::sync::Arc;
use std::time::Instant;

use aws_sdk_dynamodb::Client;
use futures_util::future::BoxFuture;
use http::StatusCode;
use lambda_http::{Body, Request, RequestExt, Response};
use ring::digest;
use tokio::time::Duration;

use crate::app::access_log::LogLine;
use crate::app::akismet::Akismet;
use crate::auth::token::{BadToken, KeySettings, Keys};
use crate::aws::call::Caller;
use crate::aws::queue::{self, Queue};
use crate::aws::{self, https, secrets};
use crate::config::{Config, Needs};
use crate::domain::ids::{IdSource, Random, hex, keyed_hash};
use crate::domain::job::Job;
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::time::Clock;
use crate::domain::user::Identity;
use crate::domain::viewer::{Moderator, Viewer};
use crate::error::{Error, Fault, Refusal, Result};
use crate::http::cors;
use crate::http::request::{Call, Credential, RefusedBecause, bearer, path_id};
use crate::http::resource::CommentPresenter;
use crate::http::response::Answer;
use crate::policy;
use crate::store::addresses::Addresses;
use crate::store::comments::CommentWithAncestors;
use crate::store::idempotency::IdempotencyRequest;
use crate::store::log::By;
use crate::store::{self, Reading, Store, meter};

const JWKS_TIMEOUT: Duration = Duration::from_secs(3);

/// Handles the routes of a function. Implemented by plain functions, and by types that contain a function's dependencies beyond
/// the app.
pub trait Handler: Send + Sync + 'static {
    fn handle<'a>(&'a self, app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>>;
}

impl<F> Handler for F
where
    F: for<'a> Fn(&'a App, &'a Call) -> BoxFuture<'a, Result<Answer>> + Send + Sync + 'static,
{
    fn handle<'a>(&'a self, app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
        self(app, call)
    }
}

pub struct App {
    pub config: Config,
    pub store: Store,
    pub keys: Keys,
    pub ids: IdSource,
    pub clock: Clock,
    pub random: Random,
    pub akismet: Option<Akismet>,
    pub queues: Queues,
    pub names: names::KnownNames,
}

/// The queues that a function sends to; `None` for a queue that it doesn't need.
#[derive(Clone, Default)]
pub struct Queues {
    pub jobs: Option<Queue>,
    /// `domain::deliveries` defines this queue's messages.
    pub deliveries: Option<Queue>,
}

impl App {
    #[must_use]
    pub fn new(config: Config, table: Client, queues: Queues, clock: Clock, random: Random) -> Self {
        let auth = &config.auth;
        let store =
            Store::new(table, config.table_name.clone(), random.clone()).embedding(config.lists.replies_per_parent);
        let store = store.keeping(Addresses::new(Some(&config.visitor_salt), config.guests.show_gravatar));
        let store = store.asking_for_trust(policy::shows_by_trust(&config));
        let keys = KeySettings {
            secret: auth.secret.clone(),
            jwks_url: auth.jwks_url.clone(),
            issuer: auth.issuer.clone(),
            audience: auth.audience.clone(),
        };
        let keys = Keys::new(keys, https::Client::new(JWKS_TIMEOUT));
        let keys = if config.sign_in.is_some() { keys.accepting_own(Arc::new(store.clone())) } else { keys };
        let akismet = config.spam.akismet_key.as_ref();
        Self {
            store,
            keys,
            ids: IdSource::new(clock.clone(), random.clone()),
            akismet: akismet.map(|key| Akismet::new(key.expose().to_owned(), &config.spam.akismet_url)),
            queues,
            names: names::KnownNames::default(),
            clock,
            random,
            config,
        }
    }

    /// Builds the app from the environment. Fetches secrets, and opens the connections to the table.
    pub async fn from_env(needs: Needs) -> Result<Self, secrets::StartError> {
        let sdk = aws::config::sdk_config().await;
        let config = secrets::resolve_all(Config::from_env(needs)?, &sdk).await?;
        for unknown in config.unknown_settings() {
            tracing::warn!("{unknown}");
        }
        let table = store::client::build(aws_sdk_dynamodb::config::Builder::from(&sdk));
        let region = sdk.region().map(ToString::to_string).unwrap_or_default();
        let queue = |url: &Option<String>| {
            let caller = || Caller::new(aws::config::of_service(&sdk, "SQS"), https::Client::for_aws(queue::TIMEOUT));
            url.clone().map(|url| Queue::new(url, region.clone(), caller()))
        };
        let queues = Queues { jobs: queue(&config.jobs_queue_url), deliveries: queue(&config.deliveries_queue_url) };
        let app = Self::new(config, table, queues, Clock::system(), Random::system());
        tokio::join!(app.store.warm(), app.keys.warm(app.clock.now()));
        Ok(app)
    }

    /// Sends a job to the function `jobs`, which starts it after `delay`, limited to [`queue::MAX_DELAY`].
    pub async fn start_job(&self, job: &Job, delay: Duration) -> Result<(), Fault> {
        let queue =
            self.queues.jobs.as_ref().ok_or_else(|| Fault::new("starting a job", "JOBS_QUEUE_URL is not set"))?;
        queue.send(job, delay).await
    }

    /// The queue of due emails and webhooks. An error if this function has no such queue.
    pub fn deliveries(&self) -> Result<&Queue, Fault> {
        let queue = self.queues.deliveries.as_ref();
        queue.ok_or_else(|| Fault::new("using the queue Deliveries", "DELIVERIES_QUEUE_URL is not set"))
    }

    /// Handles one API Gateway request.
    pub async fn answer(&self, handler: &dyn Handler, request: Request) -> Response<Body> {
        let started = Instant::now();
        let request_id = request.lambda_context_ref().map(|context| context.request_id.clone());
        let (credential, bad_token) = self.credential(&request).await;
        let mut call = Call::new(&self.config, request, credential);
        let (mut result, mut cost) = meter::measure(self.dispatch(handler, &call)).await;
        if call.session_ended.get().is_some() {
            // The token's session has ended, so the handler runs again for a guest.
            call.credential = Credential::Bad;
            let (again, more) = meter::measure(self.dispatch(handler, &call)).await;
            result = again;
            cost += more;
        }
        cost += meter::measure(self.settle(&mut call, &cost)).await.1;
        let answer = result.unwrap_or_else(|error| refusal(error).into());
        let line = LogLine {
            route: call.route.map_or("unknown", |route| route.name),
            request_id: request_id.unwrap_or_default(),
            status: answer.status.as_u16(),
            took: started.elapsed(),
            cost,
            bytes: answer.size(),
        };
        line.log(self.config.metrics_namespace.as_deref(), self.clock.now());
        let mut response = answer.into_response(&call);
        response.extensions_mut().insert(cost);
        let reason = bad_token.map(RefusedBecause::Token).or(call.refused_because.get().copied());
        let is_unauthenticated = response.status() == StatusCode::UNAUTHORIZED;
        if let Some(reason) = reason.filter(|reason| is_unauthenticated || matches!(reason, RefusedBecause::Spam(_))) {
            response.extensions_mut().insert(reason);
        }
        response
    }

    async fn dispatch(&self, handler: &dyn Handler, call: &Call) -> Result<Answer> {
        match (call.route, cors::preflight(&self.config.cors_origins, call)) {
            (_, Some(answer)) => Ok(answer),
            (Some(_), None) => handler.handle(self, call).await,
            (None, None) => Box::pin(self.unrouted(call)).await,
        }
    }

    /// The comment whose id is in the path, read consistently.
    pub async fn comment_from_path(&self, id: &str) -> Result<CommentWithAncestors> {
        let found = self.store.comment_with_ancestors(path_id(id)?, Reading::Consistent).await?;
        found.ok_or_else(|| Refusal::NotFound.into())
    }

    /// The moderator's data to store with a decision.
    pub fn by<'a>(&'a self, moderator: &'a Moderator) -> Result<By<'a>, Refusal> {
        let user = moderator.user.as_ref().ok_or(Refusal::Unauthenticated)?;
        Ok(By { id: user.id, name: &user.name, ids: &self.ids, clock: &self.clock })
    }

    pub fn presenter<'a>(
        &'a self,
        call: &Call,
        viewer: &'a Viewer,
        thread: &'a Thread,
        visitor_state: &'a VisitorThreadState,
    ) -> CommentPresenter<'a> {
        let (config, now, language) = (&self.config, self.clock.now(), call.language());
        CommentPresenter { config, viewer, thread, visitor_state, now, relative_to: now, language }
    }

    /// Identifies a request by its `Idempotency-Key` and body. `None` without a key.
    pub fn idempotency(&self, call: &Call) -> Result<Option<IdempotencyRequest>, Refusal> {
        self.idempotency_of(call, &call.body)
    }

    /// Like [`Self::idempotency`], but compares `content` instead of the whole body.
    pub fn idempotency_of(&self, call: &Call, content: &[u8]) -> Result<Option<IdempotencyRequest>, Refusal> {
        let Some(key) = call.idempotency_key()? else { return Ok(None) };
        Ok(Some(IdempotencyRequest {
            visitor: self.owners(call).comments,
            key: keyed_hash(&self.config.visitor_salt, &["idempotency", &call.segments.join("/"), key]),
            request: hex(&digest::digest(&digest::SHA256, content).as_ref()[..16]),
            now: self.clock.now(),
        }))
    }

    /// The caller according to the token, and the reason for refusing a bad token.
    async fn credential(&self, request: &Request) -> (Credential, Option<BadToken>) {
        let Some(token) = bearer(request.headers()) else { return (Credential::None, None) };
        match self.keys.verify(token, self.clock.now()).await {
            Ok(claims) => (Credential::User(Identity::new(claims, &self.config.visitor_salt)), None),
            Err(reason) => {
                tracing::debug!(%reason, "token not accepted");
                let credential = if reason == BadToken::NoKeys { Credential::Unverified } else { Credential::Bad };
                (credential, Some(reason))
            }
        }
    }
}

/// The refusal to return for an error. A fault is logged, and its details are hidden from the caller.
pub fn refusal(error: Error) -> Refusal {
    match error {
        Error::Refused(refusal) => refusal,
        Error::Fault(fault) => {
            tracing::error!(error = fault.chain(), "request failed");
            if fault.transient { Refusal::Unavailable } else { Refusal::ServerError }
        }
    }
}
