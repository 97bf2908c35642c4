//! The Lambda function `users`.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::run(users::handle).await
}
