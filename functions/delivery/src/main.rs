//! The Lambda function `delivery`.

use std::process::ExitCode;

use delivery::{Mailer, Senders};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use shared::app::App;
use shared::aws::call::Caller;
use shared::aws::outbound::{Outbound, system_lookup};
use shared::aws::{config, https, ses};
use shared::config::Needs;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::lambda::start(run()).await
}

async fn run() -> Result<(), Error> {
    let app = &App::from_env(Needs::Salt).await?;
    let outbound = Outbound::new(system_lookup(), app.config.webhooks.private);
    let senders = &Senders { mailer: Some(mailer(app).await?), outbound };
    lambda_runtime::run(service_fn(async |event: LambdaEvent<serde_json::Value>| {
        Ok::<_, Error>(delivery::handle(app, senders, &event.payload).await)
    }))
    .await
}

async fn mailer(app: &App) -> Result<Mailer, Error> {
    let mail = app.config.mail.as_ref();
    if let Some(url) = mail.and_then(|mail| mail.smtp_url.as_ref()) {
        return Ok(Mailer::smtp(url, None)?);
    }
    let sdk = config::sdk_config().await;
    let region = sdk.region().map(ToString::to_string).unwrap_or_default();
    let caller = Caller::new(config::of_service(&sdk, "SESv2"), https::Client::for_aws(ses::TIMEOUT));
    let set = mail.and_then(|mail| mail.configuration_set.clone());
    Ok(Mailer::Ses(Box::new(ses::Ses::new(region, set, caller))))
}
