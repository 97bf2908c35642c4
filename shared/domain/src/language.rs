//! The languages of texts: those that have a file in `locales/`. The build script lists them.

include!(concat!(env!("OUT_DIR"), "/languages.rs"));

/// A language, as its index in the tables of texts. English comes first, because it is the default.
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

    /// The direction of its script, as in the attribute `dir`.
    #[must_use]
    pub fn direction(self) -> &'static str {
        if ["ar", "fa", "he", "ur"].contains(&self.tag()) { "rtl" } else { "ltr" }
    }

    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_tag_falls_back_to_its_first_part() {
        for (tag, language) in
            [("de", "de"), ("DE-at", "de"), ("", "en"), ("tlh", "en"), ("de,fr", "en"), ("-de", "en")]
        {
            assert_eq!(Language::of_tag(tag).tag(), language, "{tag}");
        }
    }
}
