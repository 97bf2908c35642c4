//! The Lambda function `comments`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::app::lambda::run(comments::handle).await
}
