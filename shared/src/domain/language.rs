//! The languages of texts: those that have a file in `locales/`. The build script lists them.

include!(concat!(env!("OUT_DIR"), "/languages.rs"));

/// The place of a language in the tables of texts. English comes first, because it is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Language(u8);

impl Language {
    pub const ENGLISH: Self = Self(0);

    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(TAGS.len()).map(Self)
    }

    /// A longer tag falls back to its first part: `de-AT` is `de`. English for unknown tags.
    #[must_use]
    pub fn of_tag(tag: &str) -> Self {
        let primary = tag.split('-').next().unwrap_or_default();
        Self::all().find(|language| language.tag().eq_ignore_ascii_case(primary)).unwrap_or_default()
    }

    /// The tag in the header `Content-Language`.
    #[must_use]
    pub fn tag(self) -> &'static str {
        TAGS[self.index()]
    }

    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}
