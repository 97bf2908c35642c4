//! Implements the four accepted signature algorithms for `jsonwebtoken` with ring, which TLS needs anyway. Only HS256 and
//! `EdDSA` also sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, Ed25519KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use signature::{Error, Signer, Verifier};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| signer(*algorithm, key),
    verifier_factory: |algorithm, key| verifier(*algorithm, key),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs the algorithms for the whole process. Repeated calls have no effect.
pub(super) fn install() {
    let _ = RING.install_default();
}

struct Hs256(hmac::Key);

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

struct EdDsa(Ed25519KeyPair);

impl Signer<Vec<u8>> for EdDsa {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl JwtSigner for EdDsa {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

/// An `EdDSA` key is a 32-byte seed.
fn signer(algorithm: Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            Ok(Box::new(Hs256(hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()))))
        }
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => match Ed25519KeyPair::from_seed_unchecked(key.as_bytes()) {
            Ok(pair) => Ok(Box::new(EdDsa(pair))),
            Err(_) => Err(ErrorKind::InvalidKeyFormat.into()),
        },
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKeyKind,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        use DecodingKeyKind::{RsaModulusExponent, SecretOrDer};
        match (self.algorithm, &self.key) {
            (Algorithm::HS256, SecretOrDer(secret)) => {
                hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, secret), message, signature)
            }
            (Algorithm::RS256, RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::ES256, SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        }
        .map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn verifier(algorithm: Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier { algorithm, key: key.kind().clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_family_is_refused() {
        let keys = [
            (Algorithm::HS256, DecodingKey::from_secret(&[1; 32])),
            (Algorithm::RS256, DecodingKey::from_rsa_raw_components(&[1; 256], &[1, 0, 1])),
            (Algorithm::ES256, DecodingKey::from_ec_der(&[4; 65])),
            (Algorithm::EdDSA, DecodingKey::from_ed_der(&[1; 32])),
        ];
        for (own, key) in &keys {
            for (algorithm, _) in &keys {
                assert_eq!(verifier(*algorithm, key).is_ok(), algorithm == own);
            }
        }
    }
}
