//! Email addresses: validation, and normalization of the different spellings of one mailbox.

use icu_normalizer::ComposingNormalizerBorrowed;
use url::Host;

use crate::letters::{is_mark, is_of_word};

const NFC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfc();

/// Maximum characters in an address (RFC 5321).
pub const MAX_EMAIL: usize = 254;

/// Maximum characters in a domain and in one label (RFC 1035).
const MAX_DOMAIN: usize = 253;
const MAX_LABEL: usize = 63;

/// Whether mail servers accept the address without quoting: one `@`, a local part, and a domain of at least two labels.
/// Letters may be of any script, with their marks.
#[must_use]
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |c: char| is_of_word(c) || is_joiner(c) || "!#$%&'*+/=?^_`{|}~-".contains(c);
    let begins = |part: &str| !part.starts_with(|c| is_mark(c) || is_joiner(c));
    let local_ok = local.split('.').all(|part| !part.is_empty() && begins(part) && part.chars().all(plain));
    // Punycode never makes a label shorter, so no valid label is rejected.
    let label = |part: &str| {
        (1..=MAX_LABEL).contains(&part.chars().count())
            && part.chars().all(|c| is_of_word(c) || is_joiner(c) || is_contextual(c) || c == '-')
            && begins(part)
            && !part.starts_with(['-', '\u{b7}', '\u{5f3}', '\u{5f4}'])
            && !part.ends_with(['-', '\u{b7}', '\u{375}'])
    };
    let domain_ok = domain.chars().count() <= MAX_DOMAIN && domain.contains('.') && domain.split('.').all(label);
    local_ok && local.len() <= 64 && domain_ok
}

/// Zero-width joiners and non-joiners, which Persian and Indic scripts use within words.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// The punctuation that IDNA allows in labels of some scripts (RFC 5892, A.3 to A.7): the Catalan middle dot, the Greek keraia,
/// the Hebrew geresh and gershayim, and the Katakana middle dot.
fn is_contextual(c: char) -> bool {
    matches!(c, '\u{b7}' | '\u{375}' | '\u{5f3}' | '\u{5f4}' | '\u{30fb}')
}

/// Whether we can send email to the address. It must be ASCII, because many mail servers accept nothing else, and the
/// last label of its domain must not be a number.
#[must_use]
pub fn is_mailable(text: &str) -> bool {
    let ends_in_number = text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    text.is_ascii() && text.len() <= MAX_EMAIL && is_email(text) && !ends_in_number
}

/// The trimmed address with its domain in Punycode; `None` if we can't send email to it.
#[must_use]
pub fn mailable(text: &str) -> Option<String> {
    Some(with_ascii_domain(text.trim())).filter(|text| is_mailable(text))
}

/// Converts the domain to Punycode if it isn't ASCII. Browsers may already have done so.
fn with_ascii_domain(address: &str) -> String {
    let ascii = |domain: &str| match Host::parse(domain) {
        Ok(Host::Domain(ascii)) if !domain.is_ascii() => Some(ascii),
        _ => None,
    };
    let parts = address.rsplit_once('@').and_then(|(local, domain)| Some((local, ascii(domain)?)));
    parts.map_or_else(|| address.to_owned(), |(local, domain)| format!("{local}@{domain}"))
}

/// Maps all spellings of one mailbox to the same text: lower case, without the tag after a `+`. In Gmail addresses, dots are
/// removed too, and `googlemail.com` becomes `gmail.com`.
#[must_use]
pub fn canonical(address: &str) -> String {
    let address = exact(address);
    let Some((local, domain)) = address.rsplit_once('@') else { return address };
    let local = local.split('+').next().unwrap_or_default();
    match domain {
        "gmail.com" | "googlemail.com" => format!("{}@gmail.com", local.replace('.', "")),
        _ => format!("{local}@{domain}"),
    }
}

/// The form of an address that identifies an account: NFC and lower case, with the domain in Punycode. Tags are kept, because on
/// some mail servers `+` doesn't begin a tag and the address without it is someone else's mailbox.
#[must_use]
pub fn exact(address: &str) -> String {
    NFC.normalize(&with_ascii_domain(address.trim())).to_lowercase()
}

/// The address reduced to its first letter and domain, such as `a•••@example.org`.
#[must_use]
pub fn masked(address: &str) -> String {
    let (local, domain) = address.rsplit_once('@').unwrap_or((address, ""));
    format!("{}•••@{domain}", local.chars().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_address_has_a_local_part_and_a_domain() {
        for good in [
            "ada@example.org",
            "a.b+c@sub.example.co",
            "ø@exämple.org",
            "संपर्क@डाटामेल.भारत",
            "ผู้ใช้@ตัวอย่าง.ไทย",
            "zoe\u{301}@exa\u{308}mple.org",
            "می\u{200c}خواهم@مثال.ایران",
            "用户@例子.广告",
            "அஞ்சல்@எடுத்துக்காட்டு.இந்தியா",
            "x@l·l.cat",
            "x@ד׳.ישראל",
            "x@マーケット・ジェーピー.jp",
        ] {
            assert!(is_email(good), "{good}");
        }
        for bad in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@localhost",
            "a b@example.org",
            "a..b@example.org",
            "a@b@example.org",
            "ada@-x.org",
            "ada@·.org",
            "ada@x·.org",
            "ada@·x.org",
            "ada@example.org\nBcc: x",
            "ada@\u{301}x.org",
            "\u{301}a@x.org",
            "ada@example.org，",
            "ada\u{3000}@example.org",
            "ada\u{202e}@example.org",
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn the_two_forms_of_a_domain_are_one_address() {
        for (typed, ascii) in [
            ("ida@bücher.example", "ida@xn--bcher-kva.example"),
            ("ida@BU\u{308}CHER.Example", "ida@xn--bcher-kva.example"),
            ("ida@faß.example", "ida@xn--fa-hia.example"),
            ("ida@почта.рф", "ida@xn--80a1acny.xn--p1ai"),
            (" ida@نامه\u{200c}ای.example ", "ida@xn--mgba3gch31f060k.example"),
        ] {
            assert_eq!(mailable(typed).as_deref(), Some(ascii), "{typed}");
            assert_eq!((exact(typed), canonical(ascii)), (exact(ascii), exact(ascii)), "{typed}");
        }
        assert_eq!(mailable("Ida@Example.org").as_deref(), Some("Ida@Example.org"));
        for bad in ["ø@bücher.example", "ida@b ücher.example", "ida@１２７.0.0.1", "ida"] {
            assert_eq!(mailable(bad), None, "{bad}");
        }
    }

    #[test]
    fn mail_goes_to_addresses_in_ascii() {
        assert!(is_mailable("ada+notes@example.org"));
        for bad in [
            "ø@example.org",
            "ada@exämple.org",
            "ada",
            "ada@example.org\r\nBcc: x@example.org",
            "ada@192.0.2.1",
            "ada@example.7",
        ] {
            assert!(!is_mailable(bad), "{bad}");
        }
    }

    #[test]
    fn tags_and_capitals_are_one_mailbox() {
        for same in ["ada@example.org", " Ada@Example.ORG", "ada+news@example.org", "ada+a+b@example.org"] {
            assert_eq!(canonical(same), "ada@example.org");
        }
    }

    #[test]
    fn dots_in_addresses_are_ignored_only_at_gmail() {
        for same in ["a.da@gmail.com", "ad.a+x.y@GoogleMail.com", "ada@gmail.com"] {
            assert_eq!(canonical(same), "ada@gmail.com");
        }
        assert_ne!(canonical("a.da@example.org"), canonical("ada@example.org"));
    }

    #[test]
    fn an_account_keeps_the_dots_and_tags_of_its_address() {
        assert_eq!(exact(" A.da+x@Gmail.com"), "a.da+x@gmail.com");
        assert_eq!(exact("Zoe\u{301}@example.org"), exact("zoé@example.org"));
    }

    #[test]
    fn an_email_domain_is_at_most_as_long_as_a_host_name() {
        let (label, parts) = ("x".repeat(63), |part: &str| [part; 3].join("."));
        assert!(is_email(&format!("ada@{label}.org")) && is_email(&format!("ada@{}.org", parts(&label))));
        assert!(!is_email(&format!("ada@{label}x.org")));
        assert!(!is_email(&format!("ada@{}.{}", parts(&label), "x".repeat(62))));
        assert!(is_email(&format!("ada@{}.{}", parts(&label), "x".repeat(61))));
    }

    #[test]
    fn a_masked_address_shows_one_letter_and_the_domain() {
        assert_eq!(masked("ada@example.org"), "a•••@example.org");
    }
}
