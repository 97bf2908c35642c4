//! Runs a function in Lambda: sets up logging, builds the app from the environment, serves requests.

use std::borrow::Cow;
use std::sync::Arc;

use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceExt;
use lambda_http::tower::util::MapRequest;
use lambda_http::{Adapter, Body, Error, LambdaEvent, Request, Response, Service, lambda_runtime, service_fn};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::app::{App, Handler};
use crate::config::Needs;

/// Serves the routes of `handler`.
pub async fn run(handler: impl Handler) -> Result<(), Error> {
    run_with(Needs::Callers, handler).await
}

/// The same for a function that may need less.
pub async fn run_with(needs: Needs, handler: impl Handler) -> Result<(), Error> {
    log_to_stdout();
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
type EventService<S> = MapRequest<Adapter<'static, Response<Body>, S>, fn(Event) -> Event>;

/// Answers events of API Gateway by a service of requests. `lambda_http` alone panics where `http::Uri` refuses the query.
pub fn adapter<S>(service: S) -> EventService<S>
where
    S: Service<Request, Response = Response<Body>, Error = Error>,
    S::Future: Send + 'static,
{
    Adapter::from(service).map_request(with_valid_query)
}

/// API Gateway passes on what the client sent.
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

/// The crates that may log below INFO. Others log whole requests there, tokens included.
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

/// One line per event. Lambda sets `AWS_LAMBDA_LOG_FORMAT` and `AWS_LAMBDA_LOG_LEVEL` from the function's configuration.
#[expect(clippy::disallowed_methods, reason = "set by Lambda, so no settings of ours")]
pub fn log_to_stdout() {
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
    use std::sync::{Arc, Mutex};

    use tracing::{debug, info, trace};

    use super::*;

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
}
