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
