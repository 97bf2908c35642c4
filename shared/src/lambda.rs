//! How a function runs in Lambda: logs as AWS asks for them, the app from the environment, then requests until the end.

use std::sync::Arc;

use lambda_http::{Error, Request, service_fn};
use tracing::Level;

use crate::app::{App, Handler};

/// Serves `handler`'s routes.
pub async fn run(handler: impl Handler) -> Result<(), Error> {
    log_to_stdout();
    let function = Arc::new((App::from_env().await?, handler));
    lambda_http::run(service_fn(move |request: Request| {
        let function = Arc::clone(&function);
        async move {
            let (app, handler) = &*function;
            Ok::<_, Error>(app.answer(handler, request).await)
        }
    }))
    .await
}

/// One line an event; `AWS_LAMBDA_LOG_FORMAT` and `AWS_LAMBDA_LOG_LEVEL` are the function's logging configuration.
#[expect(clippy::disallowed_methods, reason = "variables of AWS, which no setting of ours repeats")]
pub fn log_to_stdout() {
    let asked = |name| std::env::var(name).unwrap_or_default();
    let level = asked("AWS_LAMBDA_LOG_LEVEL").parse().unwrap_or(Level::INFO);
    let lines = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_target(false);
    if asked("AWS_LAMBDA_LOG_FORMAT").eq_ignore_ascii_case("json") {
        lines.json().flatten_event(true).init();
    } else {
        // CloudWatch has a time of its own for each line.
        lines.without_time().init();
    }
}
