//! The Lambda function `public`.

use std::process::ExitCode;

use shared::config::Needs;

/// Needs only the salt, because it verifies no tokens.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::run_with(Needs::Salt, public::handle).await
}
