//! The Lambda function `media`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let objects = media::bucket::client(&shared::aws::sdk_config().await);
    shared::lambda::run(media::Media::new(objects)).await
}
