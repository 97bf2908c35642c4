//! The languages we speak.

/// English comes first: it is spoken when nothing else is asked for.
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

    /// As in `Content-Language`.
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
