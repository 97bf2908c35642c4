//! The Lambda function `media`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let objects = media::bucket::client(&shared::aws::config::sdk_config().await);
    shared::app::lambda::run(media::Media::new(objects)).await
}
