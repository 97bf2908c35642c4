//! The AWS account that the emulated services appear to be in.

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT_ID: &str = "000000000000";
/// Access key id and secret access key. The emulated services check no signature.
pub(crate) const ACCESS_KEY: &str = "local";
