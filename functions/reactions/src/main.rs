//! The Lambda function `reactions`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::lambda::run(reactions::handle).await
}
