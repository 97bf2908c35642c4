//! A connection whose concurrent calls end together, so that a request's number of round trips doesn't depend on the
//! duration of its calls. It holds back responses until the table has responded to all calls.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use server::engine::Engine;
use tokio::sync::watch;

use crate::twin::Engines;

#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    pub(crate) engines: Engines,
    state: Arc<watch::Sender<RoundState>>,
}

#[derive(Debug, Default)]
struct RoundState {
    round: u64,
    /// The number of calls without a response. The round ends when it reaches zero.
    unanswered: usize,
}

/// A call without a response. Dropped when the response has arrived or is no longer awaited.
struct Unanswered(Arc<watch::Sender<RoundState>>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.send_modify(|state| {
            state.unanswered -= 1;
            state.round += u64::from(state.unanswered == 0);
        });
    }
}

impl Rounds {
    pub(crate) fn of(engine: &Engine) -> Self {
        Self { engines: Engines::of(engine), state: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        self.engines.client_over(SharedHttpConnector::new(self.clone()))
    }
}

impl HttpConnector for Rounds {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { engines, state, .. } = self.clone();
        HttpConnectorFuture::new(async move {
            let mut rounds = state.subscribe();
            let mut round = 0;
            state.send_modify(|state| {
                state.unanswered += 1;
                round = state.round;
            });
            let unanswered = Unanswered(state);
            let answer = engines.connector().call(request).await;
            drop(unanswered);
            // The channel cannot close, because the connection has a sender.
            let _ended = rounds.wait_for(|state| state.round > round).await;
            answer
        })
    }
}
