//! The service itself on the stack: which functions there are, and the app they share here.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use shared::app::{App, Handler};
use shared::store::meter::Meter;

use crate::engine::Engine;
use crate::gateway::{Function, Mount, function};
use crate::stack::{Functions, Stack, StackError};
use crate::template::{DEPLOYED, Template};
use crate::trigger::EventFunction;

/// By the names of their binaries.
const HANDLERS: [(&str, Handler); 5] = [
    ("comments", comments::handle),
    ("moderation", moderation::handle),
    ("reactions", reactions::handle),
    ("ui", ui::handle),
    ("users", users::handle),
];

/// As the functions' own client is, but for the way.
#[must_use]
pub fn client(engine: &Engine) -> Client {
    Client::from_conf(engine.client_builder().interceptor(Meter).build())
}

/// Needs a tokio runtime.
pub fn start(app: App, engine: Engine, mounts: Vec<Mount>) -> Result<Stack, StackError> {
    let app = Arc::new(app);
    let template = Template::parse(DEPLOYED, &[("ApiPrefix", &app.config.api_prefix)])?;
    let http = HANDLERS.map(|(name, handler)| (name.to_owned(), http_function(&app, handler)));
    let functions =
        Functions { http: http.into(), stream: HashMap::from([("events".to_owned(), stream_function(&app))]) };
    Stack::start(&template, engine, &app.config.table_name, functions, mounts)
}

fn http_function(app: &Arc<App>, handler: Handler) -> Function {
    let app = Arc::clone(app);
    function(move |request| {
        let app = Arc::clone(&app);
        async move { Ok(app.answer(handler, request).await) }
    })
}

fn stream_function(app: &Arc<App>) -> EventFunction {
    let app = Arc::clone(app);
    Arc::new(move |event| {
        let app = Arc::clone(&app);
        Box::pin(async move { events::handle(&app, &event).await.map_err(Into::into) })
    })
}
