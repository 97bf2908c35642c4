//! The Lambda function `events`.

use std::process::ExitCode;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use shared::app::App;
use shared::config::Needs;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::start(run()).await
}

async fn run() -> Result<(), Error> {
    let app = &App::from_env(Needs::Salt).await?;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<serde_json::Value>| {
        events::handle(app, &event.payload).await.map_err(Error::from)
    }))
    .await
}
