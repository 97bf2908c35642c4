//! The Lambda function `ui`.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::run(ui::handle).await
}
