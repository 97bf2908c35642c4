//! The Lambda function `reactions`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::app::lambda::run(reactions::handle).await
}
