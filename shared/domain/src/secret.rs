//! Strings that must not be logged.

use std::fmt;

#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Whether `value` is the ARN of a secret in AWS instead of a secret.
#[must_use]
pub fn is_name(value: &str) -> bool {
    value.starts_with("arn:")
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        assert_eq!(format!("{:?}", Secret::from("hush".to_owned())), "…");
    }
}
