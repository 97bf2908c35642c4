//! Profiles: defaults for kinds of sites, which override the general defaults. A variable that is set takes precedence
//! over both.

pub type Defaults = &'static [(&'static str, &'static str)];

/// The profile for sites with their own users. It overrides no defaults.
pub(super) const DEFAULT: &str = "members";

/// The name of each profile, and the defaults that it overrides.
pub const PROFILES: [(&str, Defaults); 2] = [
    (DEFAULT, &[]),
    (
        "blog",
        &[
            ("SVC_ALLOW_GUESTS", "true"),
            ("SVC_GUEST_LIKES", "true"),
            ("SVC_GUEST_REQUIRE_EMAIL", "false"),
            ("SVC_GUEST_SHOW_GRAVATAR", "false"),
            ("SVC_MODERATION_MAIL_FOR", "all"),
            ("SVC_REQUIRE_APPROVAL", "new"),
        ],
    ),
];

pub(super) fn defaults(name: &str) -> Option<Defaults> {
    PROFILES.iter().find(|(profile, _)| *profile == name).map(|(_, defaults)| *defaults)
}
