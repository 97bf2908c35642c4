//! The Lambda function `jobs`.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use shared::app::App;
use shared::config::Needs;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::app::lambda::log_to_stdout();
    let app = &App::from_env(Needs::Nothing).await?;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<serde_json::Value>| {
        Ok::<_, Error>(jobs::handle(app, &event.payload).await)
    }))
    .await
}
