//! The Lambda function `sign_in`.

use sign_in::SignIn;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::app::lambda::run(SignIn::default()).await
}
