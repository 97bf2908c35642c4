//! The supported languages: those with a file in `locales/`, which the build script lists.

include!(concat!(env!("OUT_DIR"), "/languages.rs"));

/// A language, represented by its index in the tables of texts. English, which is the default, has index 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Language(u8);

impl Language {
    pub const ENGLISH: Self = Self(0);

    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(TAGS.len()).map(Self)
    }

    /// The language of a tag. Only the first part of the tag counts: `de-AT` is `de`. Unknown tags are English.
    #[must_use]
    pub fn of_tag(tag: &str) -> Self {
        let primary = tag.split('-').next().unwrap_or_default();
        Self::all().find(|language| language.tag().eq_ignore_ascii_case(primary)).unwrap_or_default()
    }

    #[must_use]
    pub fn tag(self) -> &'static str {
        TAGS[self.index()]
    }

    /// The direction of the language's script, as a value of the attribute `dir`.
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
