//! The reasons for holding a text, for moderators: the findings of each check, and the trust in its writer. The writer never
//! sees them.

use serde::{Deserialize, Serialize};

/// Maximum verdicts stored with a comment.
const MAX_VERDICTS: usize = 10;
/// Maximum stored characters of the words that a phrase matched.
const MAX_MATCH: usize = 100;

/// The finding of a check that holds a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    #[serde(rename = "r")]
    pub rule: Rule,
    /// The words that matched, as written in the text, or in the address or title of a link. Only phrases have them.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

/// A check that may hold a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The text contains a phrase from the settings.
    Phrase,
    /// The text has too many links.
    Links,
    /// The same visitor wrote the same text within a minute.
    Repeat,
    /// Akismet found spam, or returned no verdict.
    Akismet,
    /// No comment of the writer counts as approved yet.
    FirstComment,
    /// Some recent comments of the writer were rejected.
    Rejections,
}

/// Details of a verdict. Each rule uses its own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The number of links in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// A text with this many links is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The reason why Akismet returned no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The number of the writer's recent comments that were rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// There was no response.
    Timeout,
    /// The response wasn't a verdict.
    Answer,
}

impl Rule {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Phrase => "phrase",
            Self::Links => "links",
            Self::Repeat => "repeat",
            Self::Akismet => "akismet",
            Self::FirstComment => "first_comment",
            Self::Rejections => "rejections",
        }
    }
}

/// The result of all checks of a text.
#[derive(Clone, Debug, Default)]
pub struct Judgment {
    /// Whether the text is held for a moderator.
    pub waits: bool,
    pub verdicts: Vec<Verdict>,
}

impl Judgment {
    /// `found` are the verdicts of the spam check. `approval` has the reasons why the writer's comments need approval; `None` if
    /// they don't.
    #[must_use]
    pub fn new(found: Vec<Verdict>, approval: Option<Vec<Verdict>>) -> Self {
        let waits = !found.is_empty() || approval.is_some();
        let verdicts = found.into_iter().chain(approval.into_iter().flatten()).take(MAX_VERDICTS).collect();
        Self { waits, verdicts }
    }

    /// Whether the spam check flagged the text.
    #[must_use]
    pub fn is_suspicious(&self) -> bool {
        self.verdicts.iter().any(|verdict| !matches!(verdict.rule, Rule::FirstComment | Rule::Rejections))
    }
}

impl Verdict {
    #[must_use]
    pub fn phrase(words: &str) -> Self {
        Self { matched: Some(words.chars().take(MAX_MATCH).collect()), ..Self::of(Rule::Phrase) }
    }

    #[must_use]
    pub fn links(count: usize, limit: usize) -> Self {
        Self::of(Rule::Links).with(Detail { count: Some(count as u64), limit: Some(limit as u64), ..Detail::default() })
    }

    #[must_use]
    pub fn repeat() -> Self {
        Self::of(Rule::Repeat)
    }

    #[must_use]
    pub fn akismet() -> Self {
        Self::of(Rule::Akismet)
    }

    #[must_use]
    pub fn akismet_failed(failure: Failure) -> Self {
        Self::of(Rule::Akismet).with(Detail { failure: Some(failure), ..Detail::default() })
    }

    #[must_use]
    pub fn first_comment() -> Self {
        Self::of(Rule::FirstComment)
    }

    #[must_use]
    pub fn rejections(rejected: usize) -> Self {
        Self::of(Rule::Rejections).with(Detail { rejected: Some(rejected as u64), ..Detail::default() })
    }

    fn of(rule: Rule) -> Self {
        Self { rule, matched: None, detail: None }
    }

    fn with(self, detail: Detail) -> Self {
        Self { detail: Some(detail), ..self }
    }
}
