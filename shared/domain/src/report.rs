//! Reports of comments, and moderators' decisions about them.

use serde::{Deserialize, Serialize};

use crate::avatar::Avatar;
use crate::ids::{UserId, Visitor};
use crate::time::{Timestamp, stored};

/// Maximum report excerpts stored with a comment.
const MAX_EXCERPTS: usize = 3;
/// Maximum characters of a reason in an excerpt. Excerpts are short because lists read them with the comment.
const MAX_EXCERPT: usize = 100;
/// The prefix that marks an erased reporter. The id of the report follows it.
const NOBODY: char = '-';

/// A report as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Ids are in chronological order. The store sets id and time.
    #[serde(rename = "id")]
    pub id: u64,
    /// The reason, followed by a colon and the details if there are any.
    #[serde(rename = "r")]
    pub reason: String,
    #[serde(rename = "c", serialize_with = "stored::time")]
    pub created_at: Timestamp,
    #[serde(rename = "v")]
    pub visitor: Visitor,
    /// `None` for guests.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    #[serde(rename = "n", default)]
    pub name: String,
    #[serde(rename = "av", default)]
    pub avatar: Avatar,
}

impl Report {
    /// The report without its reporter, who was erased. The reason remains, but not its details.
    #[must_use]
    pub fn without_reporter(self) -> Self {
        Self {
            reason: bare_reason(&self.reason).to_owned(),
            visitor: nobody(self.id),
            user: None,
            name: String::new(),
            avatar: Avatar::Neutral,
            ..self
        }
    }

    #[must_use]
    pub fn has_reporter(&self) -> bool {
        !self.visitor.0.starts_with(NOBODY)
    }

    /// The moderators' decision about the report, derived from the decisions about the comment's reports.
    #[must_use]
    pub fn status(&self, resolutions: &[Resolution]) -> ReportStatus {
        let resolved = resolutions.iter().find(|resolution| self.created_at <= resolution.until);
        resolved.map_or(ReportStatus::Pending, |resolution| resolution.status)
    }
}

/// The visitor of a report whose reporter was erased.
#[must_use]
pub fn nobody(report: u64) -> Visitor {
    Visitor(format!("{NOBODY}{report}"))
}

#[must_use]
pub fn bare_reason(reason: &str) -> &str {
    reason.split(':').next().unwrap_or_default()
}

/// An excerpt of a report, stored with the comment so that the moderators' queue shows it without a further read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportExcerpt {
    #[serde(rename = "i")]
    pub id: u64,
    /// Truncated to `MAX_EXCERPT` characters.
    #[serde(rename = "r")]
    pub reason: String,
    #[serde(rename = "c", serialize_with = "stored::time")]
    pub created_at: Timestamp,
}

impl From<&Report> for ReportExcerpt {
    fn from(report: &Report) -> Self {
        let mut reason: String = report.reason.chars().take(MAX_EXCERPT).collect();
        if reason.len() < report.reason.len() {
            reason.pop();
            reason.push('…');
        }
        Self { id: report.id, reason, created_at: report.created_at }
    }
}

/// The newest of these reports, newest first, up to the number that a comment stores.
pub fn newest(reports: impl IntoIterator<Item = ReportExcerpt>) -> Vec<ReportExcerpt> {
    let mut reports: Vec<ReportExcerpt> = reports.into_iter().collect();
    reports.sort_unstable_by_key(|report| std::cmp::Reverse(report.id));
    reports.truncate(MAX_EXCERPTS);
    reports
}

/// A decision about all reports up to `until`, except those covered by earlier decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    #[serde(rename = "u", serialize_with = "stored::time")]
    pub until: Timestamp,
    #[serde(rename = "s")]
    pub status: ReportStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    Pending,
    Reviewed,
    Dismissed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(id: u64, reason: &str) -> Report {
        let visitor = Visitor(id.to_string());
        let (name, avatar) = (String::new(), Avatar::Neutral);
        Report { id, reason: reason.to_owned(), created_at: Timestamp(0), visitor, user: None, name, avatar }
    }

    #[test]
    fn the_newest_three_reports_are_kept_in_whatever_order_they_arrive() {
        for order in [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [3, 5, 1, 2, 4]] {
            let kept = order.into_iter().fold(Vec::new(), |kept: Vec<ReportExcerpt>, id| {
                newest(kept.into_iter().chain([(&report(id, "spam")).into()]))
            });
            assert_eq!(kept.iter().map(|report| report.id).collect::<Vec<_>>(), [5, 4, 3], "{order:?}");
        }
    }

    #[test]
    fn a_report_without_its_reporter_keeps_only_the_reason() {
        let left = report(1, "spam: I am Ada: believe me").without_reporter();
        assert_eq!((left.reason.as_str(), left.has_reporter()), ("spam", false));
        assert!(report(1, "spam").has_reporter());
        assert_ne!(left.visitor, report(2, "spam").without_reporter().visitor);
    }

    #[test]
    fn a_long_reason_is_truncated_with_an_ellipsis() {
        let cut = |reason: &str| ReportExcerpt::from(&report(1, reason)).reason;
        assert_eq!(cut(&"ß".repeat(100)), "ß".repeat(100));
        assert_eq!(cut(&"ß".repeat(101)), format!("{}…", "ß".repeat(99)));
    }
}
