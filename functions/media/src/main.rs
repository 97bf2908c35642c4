//! The Lambda function `media`.

use std::process::ExitCode;

use media::{Media, bucket};
use shared::aws::config::sdk_config;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::run(Media::new(bucket::client(&sdk_config().await))).await
}
