//! The Lambda function `public`.

use shared::config::Needs;

/// It verifies no tokens.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::app::lambda::run_with(Needs::Salt, public::handle).await
}
