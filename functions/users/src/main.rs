//! The Lambda function `users`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::app::lambda::run(users::handle).await
}
