//! The Lambda function `thumbnails`.

use std::process::ExitCode;

use aws_lambda_events::event::s3::S3Event;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use shared::error::Fault;
use thumbnails::Thumbnails;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::start(run()).await
}

async fn run() -> Result<(), Error> {
    let thumbnails = &Thumbnails::new(media::bucket::client(&shared::aws::config::sdk_config().await));
    lambda_runtime::run(service_fn(async |event: LambdaEvent<S3Event>| {
        thumbnails.handle(event.payload).await.map_err(|fault: Fault| {
            tracing::error!(error = fault.chain(), "thumbnail not made");
            Error::from(fault.chain())
        })
    }))
    .await
}
