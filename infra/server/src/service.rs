//! Runs the functions of this repository on the stack. They share one app here, but each has its own permissions, which
//! production doesn't check.

use std::future::ready;
use std::io;
use std::process;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::Client;
use aws_types::SdkConfig;
use bytes::Bytes;
use delivery::{Mailer, Senders, Tally};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use lambda_http::Body;
use media::Media;
use serde_json::json;
use shared::app::{self, App, Handler};
use shared::aws::call::{Caller, Transport};
use shared::aws::outbound::{Lookup, Outbound, system_lookup};
use shared::aws::queue::Queue;
use shared::aws::ses::Ses;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use shared::error::{Fault, Refusal};
use shared::store;
use sign_in::SignIn;
use thumbnails::Thumbnails;

use crate::access::Access;
use crate::account::{ACCESS_KEY, REGION};
use crate::bucket::Bucket;
use crate::bucket::website::Website;
use crate::engine::Engine;
use crate::gateway::{BoxFuture, Function, Gateway, Mount, function};
use crate::outbox::Outbox;
use crate::queue::{QueueSettings, Queues};
use crate::settings::{DELIVERIES, HEALTH, JOBS, MAILBOX, MEDIA};
use crate::stack::{Functions, Stack, StackError};
use crate::template::{Template, TemplateError};
use crate::trigger::{EventFunction, QueueFunction};

/// The client that a deployed function uses, connected to the embedded table.
#[must_use]
pub fn client(engine: &Engine) -> Client {
    store::client::build(engine.client_builder())
}

pub fn queue_settings() -> Result<Vec<QueueSettings>, TemplateError> {
    Template::deployed(&[])?.queues()
}

/// The queues that functions send to through this transport.
#[must_use]
pub fn app_queues(queues: &(impl Transport + Clone)) -> app::Queues {
    let queue = |name| Queue::new(Queues::url(name), REGION.to_owned(), caller(queues.clone()));
    app::Queues { jobs: Some(queue(JOBS)), deliveries: Some(queue(DELIVERIES)) }
}

fn caller(transport: impl Transport) -> Caller {
    let credentials = Credentials::new(ACCESS_KEY, ACCESS_KEY, None, None, "local");
    let config = SdkConfig::builder().credentials_provider(SharedCredentialsProvider::new(credentials)).build();
    Caller::new(config, transport)
}

/// Parts that [`start`] connects in addition to the app, for development and tests.
pub struct Services {
    pub engine: Engine,
    pub bucket: Bucket,
    pub queues: Queues,
    /// Receives emails if there is no SMTP server.
    pub outbox: Outbox,
    /// Resolves the hosts of webhooks.
    pub lookup: Lookup,
}

impl Services {
    /// Services on this table. All other data is temporary.
    ///
    /// # Errors
    ///
    /// Fails if a folder can't be created.
    pub fn temporary(engine: Engine, bucket: &str) -> Result<Self, StackError> {
        let failed = |error: io::Error| StackError::Folder(error.to_string());
        let bucket = Bucket::temporary(bucket).map_err(|error| StackError::Folder(error.to_string()))?;
        let clock = Clock::system();
        let queues = Queues::temporary(queue_settings()?, clock.clone(), Random::system()).map_err(failed)?;
        let outbox = Outbox::temporary(queues.clone(), DELIVERIES, clock).map_err(failed)?;
        Ok(Self { engine, bucket, queues, outbox, lookup: system_lookup() })
    }
}

/// Starts the service for development and tests. It shows sent emails, and denies calls that AWS would deny. Needs a
/// tokio runtime.
pub fn start(app: App, services: Services, mut mounts: Vec<Mount>) -> Result<Stack, StackError> {
    let Services { engine, bucket, queues, outbox, lookup } = services;
    let senders = senders(&app, &outbox, lookup).map_err(|fault| StackError::Mailer(fault.chain()))?;
    mounts.push(mail_mount(outbox));
    connect(app, engine, bucket, queues, senders, mounts, true)
}

/// Starts the service for production. Needs a tokio runtime.
pub fn start_production(
    app: App,
    engine: Engine,
    bucket: Bucket,
    queues: Queues,
    tally: &Arc<Tally>,
) -> Result<Stack, StackError> {
    let smtp = app.config.mail.as_ref().and_then(|mail| mail.smtp_url.as_ref());
    let smtp = smtp.map(|url| Mailer::smtp(url, None)).transpose();
    let smtp = smtp.map_err(|fault| StackError::Mailer(fault.chain()))?;
    let mailer = smtp.map(|smtp| Mailer::Counted(Box::new(smtp), Arc::clone(tally)));
    let senders = Senders { mailer, outbound: Outbound::new(system_lookup(), app.config.webhooks.private) };
    connect(app, engine, bucket, queues, senders, vec![health_mount()], false)
}

fn connect(
    app: App,
    engine: Engine,
    bucket: Bucket,
    queues: Queues,
    senders: Senders,
    mut mounts: Vec<Mount>,
    has_roles: bool,
) -> Result<Stack, StackError> {
    let app = Arc::new(app);
    let origins = app.config.cors_origins.to_string();
    let sender = app.config.mail.as_ref().map_or("", |mail| &mail.from);
    let webhooks = if app.config.webhooks.on { "true" } else { "" };
    let ids = |sign_in: &shared::config::SignIn| {
        sign_in.methods.iter().map(|method| method.id()).collect::<Vec<_>>().join(",")
    };
    let sign_in = app.config.sign_in.as_ref().map(ids).unwrap_or_default();
    let parameters = [
        ("ApiPrefix", app.config.api_prefix.as_str()),
        ("CorsOrigins", &origins),
        ("MailFrom", sender),
        ("SignIn", &sign_in),
        ("Webhooks", webhooks),
    ];
    let template = Template::deployed(&parameters)?;
    let mut roles = Vec::new();
    let mut role = |name| {
        let access = Access::new(name, template.grants(name), template.denials(name));
        roles.push(Arc::clone(&access));
        has_roles.then_some(access)
    };
    let http =
        handlers(&bucket).map(|(name, handler)| (name.to_owned(), http_function(&app, &engine, role(name), handler)));
    let on_events = [
        ("events".to_owned(), stream_function(&app, role("events"))),
        ("thumbnails".to_owned(), thumbnails_function(&bucket, role("thumbnails"))),
    ];
    let on_messages = [
        ("delivery".to_owned(), delivery_function(&app, role("delivery"), senders)),
        ("jobs".to_owned(), jobs_function(&app, role("jobs"))),
    ];
    let functions = Functions { http: http.into(), events: on_events.into(), messages: on_messages.into() };
    mounts.push(media_mount(&bucket));
    let mut stack = Stack::start(&template, engine, bucket, queues, &app.config.table_name, functions, mounts)?;
    stack.roles = roles;
    Ok(stack)
}

/// A gateway to functions that share this app, without permission checks. Nothing processes the table's stream.
pub fn gateway(app: &Arc<App>, services: &Services, template: &Template) -> Result<Gateway, StackError> {
    let Services { engine, bucket, .. } = services;
    let functions =
        handlers(bucket).map(|(name, handler)| (name.to_owned(), http_function(app, engine, None, handler)));
    Ok(Gateway::new(template.routes()?, functions.into(), Vec::new(), template.cors()?)?)
}

/// The request handlers, by the names of their binaries.
fn handlers(bucket: &Bucket) -> [(&'static str, Arc<dyn Handler>); 8] {
    [
        ("comments", Arc::new(comments::handle)),
        ("media", Arc::new(Media::new(bucket.client()))),
        ("moderation", Arc::new(moderation::handle)),
        ("public", Arc::new(public::handle)),
        ("reactions", Arc::new(reactions::handle)),
        ("sign_in", Arc::new(SignIn::default())),
        ("ui", Arc::new(ui::handle)),
        ("users", Arc::new(users::handle)),
    ]
}

fn media_mount(bucket: &Bucket) -> Mount {
    let prefix = format!("/{MEDIA}");
    let website = Website::new(prefix.clone(), bucket);
    let handler = move |request| {
        let website = website.clone();
        Box::pin(async move { website.respond(&request).await }) as _
    };
    Mount { prefix, handler: Arc::new(handler) }
}

/// Only for this machine, because anyone with the links in emails can act for their recipients.
fn mail_mount(outbox: Outbox) -> Mount {
    Mount::for_this_machine(&format!("/{MAILBOX}"), move |_| ready(outbox.page()))
}

fn health_mount() -> Mount {
    let handler = |request: Request<Bytes>| -> BoxFuture<Response<Bytes>> {
        let mut response = Response::new(Bytes::from_static(b"ok"));
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            response = Response::default();
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Box::pin(ready(response))
    };
    Mount { prefix: format!("/{HEALTH}"), handler: Arc::new(handler) }
}

/// The senders of emails and webhooks. Emails go to the outbox if there is no SMTP server.
///
/// # Errors
///
/// Fails if the address of the server is invalid.
pub fn senders(app: &App, outbox: &Outbox, lookup: Lookup) -> Result<Senders, Fault> {
    let mailer = match app.config.mail.as_ref().and_then(|mail| mail.smtp_url.as_ref()) {
        Some(url) => Mailer::smtp(url, None)?,
        None => Mailer::Ses(Box::new(Ses::new(REGION.to_owned(), None, caller(outbox.clone())))),
    };
    Ok(Senders { mailer: Some(mailer), outbound: Outbound::new(lookup, app.config.webhooks.private) })
}

fn unavailable() -> Result<Response<Body>, http::Error> {
    let (status, code, message) = Refusal::Unavailable.row();
    let body = json!({ "message": message, "code": code, "errors": {} }).to_string();
    let response = Response::builder().status(status).header(RETRY_AFTER, 1).header(CONTENT_TYPE, "application/json");
    response.body(Body::from(body))
}

/// The permissions of a function; `None` if they aren't checked.
type Role = Option<Arc<Access>>;

async fn with_role<T>(role: Role, work: impl Future<Output = T>) -> T {
    match role {
        Some(role) => role.scope(work).await,
        None => work.await,
    }
}

/// Wraps a handler as a function that acknowledges a write once it's on disk.
fn http_function(app: &Arc<App>, engine: &Engine, role: Role, handler: Arc<dyn Handler>) -> Function {
    let (app, engine) = (Arc::clone(app), engine.clone());
    function(move |request| {
        let (app, engine, handler, role) = (Arc::clone(&app), engine.clone(), Arc::clone(&handler), role.clone());
        with_role(role, async move {
            let is_write = !request.method().is_safe();
            let answer = app.answer(&*handler, request).await;
            if is_write && let Err(error) = engine.synced().await {
                tracing::error!("syncing the table failed: {error}");
                if error.kind() != io::ErrorKind::StorageFull {
                    // The state on disk is now unknown. The next start reads it again.
                    process::exit(1);
                }
                return Ok(unavailable()?);
            }
            Ok(answer)
        })
    })
}

fn thumbnails_function(bucket: &Bucket, role: Role) -> EventFunction {
    let thumbnails = Arc::new(Thumbnails::new(bucket.client()));
    Arc::new(move |event| {
        let (thumbnails, role) = (Arc::clone(&thumbnails), role.clone());
        Box::pin(with_role(role, async move {
            let handled = thumbnails.handle(serde_json::from_value(event)?).await;
            handled.map_err(|fault| fault.chain().into())
        }))
    })
}

fn stream_function(app: &Arc<App>, role: Role) -> EventFunction {
    let app = Arc::clone(app);
    Arc::new(move |event| {
        let (app, role) = (Arc::clone(&app), role.clone());
        Box::pin(with_role(role, async move { events::handle(&app, &event).await.map_err(Into::into) }))
    })
}

fn delivery_function(app: &Arc<App>, role: Role, senders: Senders) -> QueueFunction {
    let (app, senders) = (Arc::clone(app), Arc::new(senders));
    Arc::new(move |event| {
        let (app, senders, role) = (Arc::clone(&app), Arc::clone(&senders), role.clone());
        Box::pin(with_role(role, async move { Ok(delivery::handle(&app, &senders, &event).await) }))
    })
}

fn jobs_function(app: &Arc<App>, role: Role) -> QueueFunction {
    let app = Arc::clone(app);
    Arc::new(move |event| {
        let (app, role) = (Arc::clone(&app), role.clone());
        Box::pin(with_role(role, async move { Ok(jobs::handle(&app, &event).await) }))
    })
}
