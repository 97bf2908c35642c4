//! Encrypts stored values that must be readable again: AES-256-GCM under a key derived from the visitor salt (HKDF-SHA256). A
//! new salt makes all stored values unreadable.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{aead, hkdf, hmac};

use crate::secret::Secret;

const NONCE: usize = aead::NONCE_LEN;

/// Derives keys from a secret, one for each label.
pub(super) struct DerivedKeys(hkdf::Prk);

impl DerivedKeys {
    pub(super) fn new(salt: &Secret) -> Self {
        Self(hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(salt.expose().as_bytes()))
    }

    pub(super) fn bytes(&self, label: &'static str) -> [u8; 32] {
        let mut key = [0; 32];
        let filled = self.0.expand(&[label.as_bytes()], hkdf::HKDF_SHA256).map(|okm| okm.fill(&mut key));
        assert!(matches!(filled, Ok(Ok(()))), "HKDF-SHA256 expands to 32 bytes");
        key
    }

    pub(super) fn mac(&self, label: &'static str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.bytes(label))
    }

    /// The seal for all stored addresses.
    pub(super) fn addresses(&self) -> Seal {
        self.seal("mail", "mail nonce")
    }

    /// The seal for one kind of value. `nonce_label` is the label of the key that derives nonces.
    pub(super) fn seal(&self, label: &'static str, nonce_label: &'static str) -> Seal {
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, &self.bytes(label)).expect("AES-256 takes 32 bytes");
        Seal { key: aead::LessSafeKey::new(key), nonces: self.mac(nonce_label) }
    }
}

pub struct Seal {
    key: aead::LessSafeKey,
    nonces: hmac::Key,
}

impl Seal {
    /// The seal for the secrets of webhooks.
    #[must_use]
    pub fn of_webhooks(salt: &Secret) -> Self {
        DerivedKeys::new(salt).seal("webhook", "webhook nonce")
    }

    /// Encrypts a text. The nonce is a keyed hash of the text, so equal texts have the same sealed form and can be compared.
    #[must_use]
    pub fn close(&self, text: &str) -> String {
        let tag = hmac::sign(&self.nonces, text.as_bytes());
        let nonce: [u8; NONCE] = tag.as_ref().first_chunk().copied().unwrap_or([0; NONCE]);
        let mut sealed = text.as_bytes().to_vec();
        let nonce_once = aead::Nonce::assume_unique_for_key(nonce);
        // Cannot fail: the text is far below the size limit of AES-GCM.
        let done = self.key.seal_in_place_append_tag(nonce_once, aead::Aad::empty(), &mut sealed);
        debug_assert!(done.is_ok(), "the text is short");
        URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts a sealed text; `None` if it was sealed under another salt or has been changed.
    #[must_use]
    pub fn open(&self, sealed: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let nonce = aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let text = self.key.open_in_place(nonce, aead::Aad::empty(), &mut sealed).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

/// The first characters of a keyed hash of the parts.
pub(super) fn tag(key: &hmac::Key, parts: &[&str], characters: usize) -> String {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    let mut text = URL_SAFE_NO_PAD.encode(context.sign());
    text.truncate(characters);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_opens_under_the_same_salt_and_for_the_same_purpose_only() {
        let salt = |text: &str| Secret::from(text.to_owned());
        let sealed = Seal::of_webhooks(&salt("a")).close("whsec_x");
        assert_eq!(Seal::of_webhooks(&salt("a")).open(&sealed).as_deref(), Some("whsec_x"));
        assert_eq!(Seal::of_webhooks(&salt("b")).open(&sealed), None);
        assert_eq!(DerivedKeys::new(&salt("a")).seal("mail", "mail nonce").open(&sealed), None);
        assert!(!sealed.contains("whsec"));
    }
}
