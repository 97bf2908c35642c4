//! Builds the table's client: the SDK's client with cost metering, and with retries of calls that conflict with a transaction.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};

use super::meter::Meter;

#[must_use]
pub fn build(config: Builder) -> Client {
    Client::from_conf(config.interceptor(Meter).retry_classifier(Conflicts).build())
}

/// Classifies conflicts with a transaction as transient, because the SDK treats them as client errors and doesn't retry them.
/// `transaction` handles conflicts between transactions.
#[derive(Debug)]
struct Conflicts;

impl ClassifyRetry for Conflicts {
    fn name(&self) -> &'static str {
        "Conflicts"
    }

    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let Some(Err(error)) = context.output_or_error() else { return RetryAction::NoActionIndicated };
        let conflict = error.as_operation_error().is_some_and(|error| {
            error.downcast_ref().is_some_and(UpdateItemError::is_transaction_conflict_exception)
                || error.downcast_ref().is_some_and(PutItemError::is_transaction_conflict_exception)
        });
        if conflict { RetryAction::transient_error() } else { RetryAction::NoActionIndicated }
    }
}
