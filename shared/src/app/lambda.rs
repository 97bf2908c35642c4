//! Runs a function in Lambda: sets up logging, builds the app from the environment, and serves requests. Failed starts and
//! panics are logged as errors, so that every log level shows them.

use std::borrow::Cow;
use std::future::ready;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;
use std::sync::Arc;

use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceExt;
use lambda_http::tower::util::{MapRequest, MapResponse};
use lambda_http::{
    Adapter, Body, BoxFuture, Error, IntoResponse, LambdaEvent, Request, Response, Service, lambda_runtime, service_fn,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::app::{App, Handler};
use crate::config::Needs;
use crate::error::chain;

pub async fn run(handler: impl Handler) -> ExitCode {
    run_with(Needs::Callers, handler).await
}

/// Like [`run`], for a function that may need fewer secrets.
pub async fn run_with(needs: Needs, handler: impl Handler) -> ExitCode {
    start(serve(needs, handler)).await
}

/// Sets up logging, runs `function`, and logs the error if it fails.
pub async fn start(function: impl Future<Output = Result<(), Error>>) -> ExitCode {
    log_to_stdout();
    panic::set_hook(Box::new(log_panic));
    match function.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = chain(&*error), "the function stopped");
            ExitCode::FAILURE
        }
    }
}

/// Logs a panic. Its message is included only if it is a literal, because a formatted message may contain a user's text.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let literal = panic.payload().downcast_ref::<&'static str>();
    tracing::error!(error = literal.map_or_else(|| place.clone(), |literal| format!("{place}: {literal}")), "panic");
}

async fn serve(needs: Needs, handler: impl Handler) -> Result<(), Error> {
    let function = Arc::new((App::from_env(needs).await?, handler));
    lambda_runtime::run(adapter(service_fn(move |request: Request| {
        let function = Arc::clone(&function);
        async move {
            let (app, handler) = &*function;
            Ok::<_, Error>(app.answer(handler, request).await)
        }
    })))
    .await
}

type Event = LambdaEvent<LambdaRequest>;
type EventService<S> =
    MapRequest<Adapter<'static, Encoded, MapResponse<S, fn(Response<Body>) -> Encoded>>, fn(Event) -> Event>;

/// A response whose body is already text or binary. Given a plain [`Response`], `lambda_http` would decide by content type,
/// copy the body and decode its charset, and the charset tables would be a thirtieth of the binary.
#[derive(Debug)]
pub struct Encoded(Response<Body>);

impl IntoResponse for Encoded {
    fn into_response(self) -> BoxFuture<'static, Response<Body>> {
        Box::pin(ready(self.0))
    }
}

/// Adapts a request service to API Gateway events. Encodes the query first, because `lambda_http` panics if `http::Uri` refuses
/// it.
pub fn adapter<S>(service: S) -> EventService<S>
where
    S: Service<Request, Response = Response<Body>, Error = Error>,
    S::Future: Send + 'static,
{
    Adapter::from(service.map_response(Encoded as fn(_) -> _)).map_request(with_valid_query)
}

/// Percent-encodes the characters of the query that `http::Uri` refuses. API Gateway passes on the client's query unchanged.
fn with_valid_query(mut event: Event) -> Event {
    const REFUSED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
    if let LambdaRequest::ApiGatewayV2(request) = &mut event.payload
        && let Some(query) = &mut request.raw_query_string
        && let Cow::Owned(encoded) = utf8_percent_encode(query, REFUSED).into()
    {
        *query = encoded;
    }
    event
}

/// The crates that may log below INFO. Other crates log whole requests at those levels, including tokens.
const OUR_CRATES: [&str; 13] = [
    "shared",
    "comments",
    "delivery",
    "events",
    "jobs",
    "media",
    "moderation",
    "public",
    "reactions",
    "sign_in",
    "thumbnails",
    "ui",
    "users",
];

/// Sets up logging, one line per event. Lambda sets `AWS_LAMBDA_LOG_FORMAT` and `AWS_LAMBDA_LOG_LEVEL` from the function's
/// configuration.
#[expect(clippy::disallowed_methods, reason = "set by Lambda, so no settings of ours")]
fn log_to_stdout() {
    let asked = |name| std::env::var(name).unwrap_or_default();
    let level = asked("AWS_LAMBDA_LOG_LEVEL").parse().unwrap_or(Level::INFO);
    let json = asked("AWS_LAMBDA_LOG_FORMAT").eq_ignore_ascii_case("json");
    subscriber(level, json, std::io::stdout).init();
}

fn subscriber<W>(level: Level, json: bool, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let ours = OUR_CRATES.map(|target| (target, level));
    let filter = Targets::new().with_default(level.min(Level::INFO)).with_targets(ours);
    let lines = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_target(false);
    let lines = lines.with_writer(writer);
    if json {
        Box::new(lines.json().flatten_event(true).finish().with(filter))
    } else {
        // CloudWatch adds the time to each line.
        Box::new(lines.without_time().finish().with(filter))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use tracing::{debug, info, trace};

    use super::*;
    use crate::error::Fault;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: Level, json: bool) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = subscriber(level, json, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            trace!(target: "lambda_runtime::layers", "their trace");
            debug!(target: "aws_smithy_runtime::client", "their debug");
            info!(target: "hyper::client", "their info");
            trace!(target: "shared::app", "our trace");
            debug!(target: "comments::create", "our debug");
            info!(target: "shared::app::access_log", "our info");
        });
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn other_crates_never_log_below_info() {
        for json in [false, true] {
            let written = |level, text| logged(level, json).contains(text);
            for level in [Level::TRACE, Level::DEBUG, Level::INFO, Level::ERROR] {
                assert!(!written(level, "their trace") && !written(level, "their debug"), "{level}");
            }
            assert!(written(Level::TRACE, "their info") && written(Level::INFO, "their info"));
            assert!(written(Level::TRACE, "our trace") && written(Level::TRACE, "our debug"));
            assert!(written(Level::DEBUG, "our debug") && !written(Level::DEBUG, "our trace"));
            assert!(!written(Level::WARN, "info"));
        }
    }

    #[test]
    fn every_function_may_log_below_info() {
        let functions = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../functions")).unwrap();
        let folders = functions.map(Result::unwrap).filter(|entry| entry.path().is_dir());
        for function in folders {
            let name = function.file_name();
            assert!(OUR_CRATES.iter().any(|ours| name == **ours), "{name:?}");
        }
    }

    #[test]
    fn every_function_logs_from_its_first_line() {
        for function in OUR_CRATES.iter().filter(|ours| **ours != "shared") {
            let main = format!("{}/../functions/{function}/src/main.rs", env!("CARGO_MANIFEST_DIR"));
            let main = std::fs::read_to_string(main).unwrap();
            assert!(main.contains("async fn main() -> ExitCode {\n    shared::app::lambda::"), "{function}");
        }
    }

    /// The log lines of a separate process that runs only this test, because all threads share the logger and the panic hook.
    fn logged_alone(test: &str, level: &str) -> Vec<serde_json::Value> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("app::lambda::tests::{test}"), "--nocapture"]);
        command.env("AWS_LAMBDA_LOG_FORMAT", "JSON").env("AWS_LAMBDA_LOG_LEVEL", level);
        let output = command.output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains("somebody"), "nothing is plain text");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "set by the test itself")]
    fn is_alone() -> bool {
        std::env::var("AWS_LAMBDA_LOG_FORMAT").is_ok()
    }

    #[tokio::test]
    async fn a_failed_start_is_an_error_in_the_log() {
        if is_alone() {
            let fault = Fault::new("reading the settings", "there is no table");
            start(async { Err(fault.into()) }).await;
            return;
        }
        let lines = logged_alone("a_failed_start_is_an_error_in_the_log", "ERROR");
        let line = lines.iter().find(|line| line["level"] == "ERROR").unwrap();
        assert_eq!(line["error"], "reading the settings: there is no table");
        assert_eq!(line["message"], "the function stopped");
        // Lambda treats a line without a time as INFO.
        assert!(line["timestamp"].is_string(), "{line}");
    }

    #[tokio::test]
    async fn a_panic_is_an_error_in_the_log_without_what_people_wrote() {
        if is_alone() {
            let body = String::from("somebody's text");
            start(async {
                let catching = |panic: fn(&str)| drop(std::panic::catch_unwind(|| panic(&body)));
                catching(|body| panic!("not in {body}"));
                catching(|_| panic!("a literal"));
                Ok(())
            })
            .await;
            return;
        }
        let lines = logged_alone("a_panic_is_an_error_in_the_log_without_what_people_wrote", "ERROR");
        let panics = lines.iter().filter(|line| line["message"] == "panic" && line["level"] == "ERROR");
        let errors: Vec<_> = panics.map(|line| line["error"].as_str().unwrap()).collect();
        assert!(errors.len() == 2 && errors[1].ends_with(": a literal"), "{errors:?}");
        for error in errors {
            assert!(error.starts_with("shared/src/app/lambda.rs:"), "{error}");
        }
    }
}
