//! The Lambda function `ui`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::app::lambda::run(ui::handle).await
}
