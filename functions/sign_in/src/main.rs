//! The Lambda function `sign_in`.

use std::process::ExitCode;

use sign_in::SignIn;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::run(SignIn::default()).await
}
