//! Sources of a content security policy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;

/// The source that allows this inline style or script, without the single quotes that the policy needs around it.
#[must_use]
pub fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes())))
}
