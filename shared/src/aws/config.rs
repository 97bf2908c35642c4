//! The configuration of every AWS client, read from environment variables. `aws_config::defaults` would also read
//! profile files and query the metadata service and STS, which no function needs, and would add a megabyte to each
//! function.

use std::env;
use std::time::Duration;

use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::identity::IdentityCache;
use aws_config::meta::region::ProvideRegion;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::default_async_sleep;
use aws_smithy_async::time::SharedTimeSource;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::aws::https;

const ENDPOINT: &str = "AWS_ENDPOINT_URL";
const ATTEMPTS: u32 = 3;
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// Leaves time to respond to a caller that waits ten seconds.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(9);

/// Region, credentials, timeouts, and endpoints (`AWS_ENDPOINT_URL`, or for one service a variable such as
/// `AWS_ENDPOINT_URL_DYNAMODB`).
pub async fn sdk_config() -> SdkConfig {
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(EnvironmentVariableRegionProvider::new().region().await)
        .credentials_provider(SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()))
        .identity_cache(IdentityCache::lazy().build())
        .service_config(Environment)
        .http_client(https::aws_client())
        .time_source(SharedTimeSource::default())
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
        .timeout_config(
            TimeoutConfig::builder()
                .read_timeout(ATTEMPT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .operation_timeout(OPERATION_TIMEOUT)
                .build(),
        );
    config.set_endpoint_url(variable(ENDPOINT)).set_sleep_impl(default_async_sleep());
    config.build()
}

/// The configured endpoint of a service, if it is not AWS's own. `service` is its id, such as `S3`.
#[must_use]
pub fn endpoint(sdk: &SdkConfig, service: &str) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id(service).env(ENDPOINT).profile("endpoint_url").build().ok()?;
    sdk.service_config()?.load_config(key)
}

/// The configuration with the endpoint of one service, for calls without an SDK crate.
#[must_use]
pub fn of_service(sdk: &SdkConfig, service: &str) -> SdkConfig {
    let mut config = sdk.clone().into_builder();
    config.set_endpoint_url(endpoint(sdk, service));
    config.build()
}

/// Reads a service's settings from the environment. As in the SDK reference guide, `NAME_SERVICE` takes precedence over `NAME`.
#[derive(Debug)]
struct Environment;

impl LoadServiceConfig for Environment {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace(' ', "_");
        variable(&format!("{}_{service}", key.env())).or_else(|| variable(key.env()))
    }
}

#[expect(clippy::disallowed_methods, reason = "AWS sets these variables; they aren't settings of the service")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::aws::loopback::Loopback;

    const TABLES: &str = "AWS_ENDPOINT_URL_DYNAMODB";

    #[tokio::test]
    async fn region_credentials_and_endpoint_come_from_the_environment() {
        // All threads share the environment, so the test runs again in a separate process that has these variables.
        if variable(TABLES).is_some() {
            let config = sdk_config().await;
            let tables = aws_sdk_dynamodb::Client::new(&config);
            let answer = tables.list_tables().send().await;
            assert_eq!(answer.unwrap().table_names(), ["expected"]);
            assert_eq!(config.endpoint_url(), variable(ENDPOINT).as_deref());
            assert_eq!(endpoint(&config, "DynamoDB"), variable(TABLES));
            assert_eq!(endpoint(&config, "S3"), variable(ENDPOINT));
            return;
        }
        let general = Loopback::start(r#"{"TableNames":["other"]}"#).await;
        let tables = Loopback::start(r#"{"TableNames":["expected"]}"#).await;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "aws::config::tests::region_credentials_and_endpoint_come_from_the_environment"])
            .env_clear()
            .env("AWS_ENDPOINT_URL", &general.url)
            .env(TABLES, &tables.url)
            .env("AWS_REGION", "xx-test-1")
            .env("AWS_ACCESS_KEY_ID", "AKIDTEST")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_SESSION_TOKEN", "session");
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let request = &tables.requests()[0];
        assert!(request.contains("Credential=AKIDTEST/"), "{request}");
        assert!(request.contains("/xx-test-1/dynamodb/aws4_request"), "{request}");
        assert!(request.contains("x-amz-security-token: session"), "{request}");
        assert_eq!(general.hits(), 0);
    }

    async fn client(server: &Loopback) -> aws_sdk_dynamodb::Client {
        let config = aws_sdk_dynamodb::config::Builder::from(&sdk_config().await)
            .region(aws_config::Region::new("xx-test-1"))
            .credentials_provider(aws_credential_types::Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url(&server.url)
            .build();
        aws_sdk_dynamodb::Client::from_conf(config)
    }

    #[tokio::test]
    async fn a_failing_service_is_tried_three_times() {
        let server = Loopback::start("").await;
        server.set(500, "{}");
        client(&server).await.list_tables().send().await.unwrap_err();
        assert_eq!(server.hits(), 3);
    }

    #[tokio::test]
    async fn a_service_that_does_not_respond_is_tried_three_times() {
        let server = Loopback::start("").await;
        server.set_delay(Duration::from_mins(1));
        let patience = TimeoutConfig::builder().read_timeout(Duration::from_millis(50)).build();
        let hurried = aws_sdk_dynamodb::config::Config::builder().timeout_config(patience);
        client(&server).await.list_tables().customize().config_override(hurried).send().await.unwrap_err();
        assert_eq!(server.hits(), 3);
    }

    #[tokio::test]
    async fn no_operation_takes_ten_seconds() {
        let config = sdk_config().await;
        let limit = config.timeout_config().unwrap().operation_timeout();
        assert!(limit.unwrap() < Duration::from_secs(10));
        assert!(config.sleep_impl().is_some(), "without it, time-outs have no effect");
    }
}
