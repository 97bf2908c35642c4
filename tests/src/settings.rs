//! The settings of every world, and the settings that turn on email and sign-in.

/// 2050-01-02T03:04:05Z, in the future because the engine removes expired items by the real clock.
pub const START: i64 = 2_524_705_445_000;
pub const TABLE: &str = "comments";
pub const SECRET: &str = "the secret that signs all the tokens";
pub const SALT: &str = "the salt of visitors";
pub(crate) const SEED: &str = "the seed that signs our own tokens";
/// Settings that turn on email notifications.
pub const MAIL: [(&str, &str); 5] = [
    ("SVC_SUBSCRIPTIONS", "true"),
    ("SVC_MAIL_FROM", "comments@example.org"),
    ("SVC_PUBLIC_URL", "https://api.test"),
    ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}"),
    ("SVC_ALLOW_GUESTS", "true"),
];
/// Settings that turn on sign-in by emailed code.
pub const SIGN_IN: [(&str, &str); 5] = [
    ("SVC_SIGN_IN", "true"),
    ("SVC_SIGN_IN_SEED", SEED),
    ("SVC_MAIL_FROM", "comments@example.org"),
    ("SVC_PUBLIC_URL", "https://api.test"),
    ("SVC_CORS_ORIGINS", "https://www.example.org"),
];
/// Settings that also turn on sign-in through providers. Tests set the providers' addresses.
pub const PROVIDERS: [(&str, &str); 13] = [
    ("SVC_SIGN_IN", "email,github,google,oidc"),
    ("SVC_SIGN_IN_SEED", SEED),
    ("SVC_MAIL_FROM", "comments@example.org"),
    ("SVC_PUBLIC_URL", "https://api.test"),
    ("SVC_CORS_ORIGINS", "https://www.example.org"),
    ("SVC_GITHUB_CLIENT_ID", "client of github"),
    ("SVC_GITHUB_CLIENT_SECRET", "hush:github"),
    ("SVC_GOOGLE_CLIENT_ID", "client of google"),
    ("SVC_GOOGLE_CLIENT_SECRET", "hush:google"),
    ("SVC_OIDC_ISSUER", "https://id.example"),
    ("SVC_OIDC_CLIENT_ID", "client of oidc"),
    ("SVC_OIDC_CLIENT_SECRET", "hush:oidc"),
    ("SVC_OIDC_NAME", "Company"),
];
pub const MEDIA_BASE: &str = "https://media.example.org";

/// Returns a setting of the tests themselves, from the environment.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "settings of the tests")]
pub fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
