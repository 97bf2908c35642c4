//! The languages of labels and relative times.

/// English comes first, because it is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Spanish,
    German,
    French,
}

impl Language {
    pub const ALL: [Self; 4] = [Self::English, Self::Spanish, Self::German, Self::French];

    /// English for unknown tags.
    #[must_use]
    pub fn of_tag(tag: &str) -> Self {
        Self::ALL.into_iter().find(|language| language.tag() == tag).unwrap_or_default()
    }

    /// The tag in the header `Content-Language`.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
            Self::German => "de",
            Self::French => "fr",
        }
    }
}
