//! Invokes a function synchronously, as Lambda does.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use http::{Extensions, Response};
use lambda_http::request::LambdaRequest;
use lambda_http::{Body, Context, Error, LambdaEvent, Service};
use shared::app::lambda;

/// Lambda's limits for the payload of an invocation and for its response, which may be 100 bytes larger.
pub(super) const EVENT_LIMIT: usize = 6_291_456;
pub(super) const ANSWER_LIMIT: usize = 6_291_556;

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A function of the HTTP API.
pub type Function = Arc<dyn Fn(lambda_http::Request) -> BoxFuture<Result<Response<Body>, Error>> + Send + Sync>;

pub fn function<F, T>(handler: F) -> Function
where
    F: Fn(lambda_http::Request) -> T + Send + Sync + 'static,
    T: Future<Output = Result<Response<Body>, Error>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handler(request)))
}

/// Returns the response's JSON, as Lambda would, or the failure. Also returns the response's extensions, which JSON
/// can't represent, for meters and logs in this process.
pub(super) async fn invoke(function: Function, event: &str, request_id: &str) -> Result<(String, Extensions), String> {
    let payload: LambdaRequest = serde_json::from_str(event).map_err(|error| error.to_string())?;
    let mut context = Context::default();
    request_id.clone_into(&mut context.request_id);
    // In a separate task, a panic ends only this invocation, and a client that disconnects doesn't end it, as in
    // Lambda.
    let run = tokio::spawn(async move {
        let (sender, extensions) = sync_channel(1);
        let mut adapter = lambda::adapter(lambda_http::service_fn(move |request| {
            let (answer, sender) = (function(request), sender.clone());
            async move {
                let mut response = answer.await?;
                // The channel has room, because there is only one response.
                drop(sender.try_send(std::mem::take(response.extensions_mut())));
                Ok::<_, Error>(response)
            }
        }));
        let answer = adapter.call(LambdaEvent::new(payload, context)).await?;
        Ok::<_, Error>((answer, extensions.try_recv().unwrap_or_default()))
    });
    let run = run.await.map_err(|panic| panic.to_string())?;
    let (answer, extensions) = run.map_err(|error| error.to_string())?;
    let answer = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
    if answer.len() > ANSWER_LIMIT {
        return Err(format!("response of {} bytes is larger than {ANSWER_LIMIT}", answer.len()));
    }
    Ok((answer, extensions))
}
