//! JSON Web Tokens: the checks that don't depend on the signer.

use jsonwebtoken::{Algorithm, Header, Validation};

use super::jwks::NoKey;

pub(super) const LENGTH_LIMIT: usize = 8 * 1024;

/// The reason for refusing a token. Responses distinguish only [`Self::NoKeys`], because a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("longer than {LENGTH_LIMIT} bytes")]
    TooLong,
    #[error("not a JSON Web Token with the required claims")]
    Malformed,
    #[error("an algorithm or extension that is not accepted")]
    Unsupported,
    #[error("no key to check it with")]
    UnknownKey,
    #[error("the provider's keys could not be fetched")]
    NoKeys,
    #[error("the signature is wrong")]
    Signature,
    #[error("expired")]
    Expired,
    #[error("not valid yet")]
    NotYetValid,
    #[error("sub is missing, or isn't a string of 1 to 255 characters")]
    Subject,
    #[error("exp is missing, or isn't a number")]
    NoExpiry,
    #[error("wrong issuer")]
    Issuer,
    #[error("wrong audience")]
    Audience,
    #[error("wrong nonce")]
    Nonce,
    #[error("its session has ended, or another sub has the same id")]
    Revoked,
}

impl From<NoKey> for BadToken {
    fn from(missing: NoKey) -> Self {
        match missing {
            NoKey::Unavailable => Self::NoKeys,
            NoKey::Unknown => Self::UnknownKey,
        }
    }
}

/// The unverified header, used only to choose the key. Each key has one algorithm, which the header cannot change.
pub(super) fn peek(token: &str) -> Result<Header, BadToken> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| BadToken::Malformed)?;
    if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
        return Err(BadToken::Unsupported);
    }
    Ok(header)
}

/// Our code checks the claims, because the library would use the system clock.
pub(super) fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}
