//! The report of an import: the result for every comment that was read.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::domain::visible::plain_line;

/// Maximum names on a line of the printed report, which only counts the rest.
const SHOWN: usize = 5;
/// Maximum characters of a name in the printed report.
const WIDTH: usize = 100;

const HELP_WITH_LISTS: &str =
    "the source has only part of these; export it again in full, and run the same command on the new file";
const HELP_WITH_TEXTS: &str = "these contain incomplete or invalid characters, which were replaced; if the source \
                               isn't in UTF-8, save it as UTF-8 and import it into an empty table, because comments \
                               that are already there keep the replaced text";
const HELP_WITH_CHANGES: &str = "to get the versions in the file, import it into an empty table";

/// `read` is the sum of the four counts after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub read: u64,
    /// New comments, including placeholders.
    pub new: u64,
    pub already_there: u64,
    /// Counts by reason.
    pub skipped: BTreeMap<String, u64>,
    pub refused: Vec<Entry>,
    /// The number of comments in each thread, by `type/id`.
    pub threads: BTreeMap<String, u64>,
    /// Keys of pages for which no thread was found.
    pub unmapped: Vec<String>,
    /// New comments whose parent differs from the one in the source.
    pub moved: Vec<Entry>,
    /// New comments that readers see only in part.
    pub cut: Vec<String>,
    /// Existing comments whose state or time of the last edit differs from an export's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    pub missing: Vec<Missing>,
}

/// A list that the source has only in part, or a text with invalid bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Missing {
    /// The owner of the list, such as a discussion, or the comment, writer, page or site of the text.
    pub id: String,
    /// The number of elements of the list, or of characters of the text, that were read.
    pub read: u64,
    /// The total number; `None` if the source doesn't state it.
    pub total: Option<u64>,
    #[serde(skip)]
    pub is_text: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = first(&[&self.id]);
        match self.total {
            Some(total) => write!(f, "{id} ({} of {total})", self.read),
            None => write!(f, "{id} ({}, and there are more)", self.read),
        }
    }
}

impl Report {
    /// Whether everything in the source was imported, or skipped as it should be.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty() && self.missing.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The id in the source, or `#` and the comment's number if it has none there.
    pub id: String,
    /// The reason as a single word.
    pub reason: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (reason, ids) in by_reason(&self.refused) {
            writeln!(f, "refused {} as {reason}: {}", ids.len(), first(&ids))?;
            let unmapped: Vec<&str> = self.unmapped.iter().map(String::as_str).collect();
            let help = match reason {
                "thread" => {
                    format!("their pages have no address; map each with --map: {}", first(&unmapped))
                }
                "site" => {
                    "other comments were imported with these ids; if this is another site, name it with --site".into()
                }
                _ => continue,
            };
            writeln!(f, "  {help}")?;
        }
        for (reason, ids) in by_reason(&self.moved) {
            writeln!(f, "moved {} ({reason}): {}", ids.len(), first(&ids))?;
        }
        if !self.cut.is_empty() {
            let ids: Vec<&str> = self.cut.iter().map(String::as_str).collect();
            writeln!(f, "cut {}, too long to be shown whole: {}", ids.len(), first(&ids))?;
        }
        if !self.changed.is_empty() {
            let ids: Vec<&str> = self.changed.iter().map(String::as_str).collect();
            writeln!(f, "kept {} whose text or state differs in the file: {}", ids.len(), first(&ids))?;
            writeln!(f, "  {HELP_WITH_CHANGES}")?;
        }
        for (thread, count) in &self.threads {
            writeln!(f, "{thread}: {count}")?;
        }
        let skipped: u64 = self.skipped.values().sum();
        let (read, new, there, refused) = (self.read, self.new, self.already_there, self.refused.len());
        write!(f, "{read} read: {new} new, {there} already there, {skipped} skipped")?;
        if !self.skipped.is_empty() {
            let reasons: Vec<String> = self.skipped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            write!(f, " ({})", reasons.join(", "))?;
        }
        writeln!(f, ", {refused} refused")?;
        for (is_text, help) in [(false, HELP_WITH_LISTS), (true, HELP_WITH_TEXTS)] {
            let all = self.missing.iter().filter(|missing| missing.is_text == is_text);
            let shown: Vec<String> = all.clone().take(SHOWN).map(Missing::to_string).collect();
            if shown.is_empty() {
                continue;
            }
            write!(f, "incomplete: {}", shown.join(", "))?;
            match all.skip(SHOWN).count() {
                0 => writeln!(f),
                more => writeln!(f, " and {more} more"),
            }?;
            writeln!(f, "  {help}")?;
        }
        Ok(())
    }
}

fn by_reason(entries: &[Entry]) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Entry { id, reason } in entries {
        groups.entry(reason).or_default().push(id);
    }
    groups
}

/// The first few names, on one line.
fn first(names: &[&str]) -> String {
    let shown = names.iter().take(SHOWN).map(|name| {
        if name.is_empty() { "(empty)".to_owned() } else { plain_line(name).chars().take(WIDTH).collect() }
    });
    let shown = shown.collect::<Vec<String>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let entry = |id: &str, reason: &str| Entry { id: id.to_owned(), reason: reason.to_owned() };
        Report {
            read: 7,
            new: 2,
            already_there: 1,
            skipped: [("spam".to_owned(), 2), ("deleted".to_owned(), 1)].into(),
            refused: vec![entry("558", "time")],
            threads: [("posts/1".to_owned(), 3)].into(),
            unmapped: vec!["1337".to_owned()],
            moved: vec![entry("559", "parent")],
            cut: vec!["560".to_owned()],
            changed: vec!["561".to_owned()],
            missing: Vec::new(),
        }
    }

    #[test]
    fn every_refusal_and_move_is_reported_before_the_counts() {
        let expected = "refused 1 as time: 558\nmoved 1 (parent): 559\ncut 1, too long to be shown whole: 560\n\
                        kept 1 whose text or state differs in the file: 561\n  \
                        to get the versions in the file, import it into an empty table\nposts/1: 3\n\
                        7 read: 2 new, 1 already there, 3 skipped (deleted 1, spam 2), 1 refused\n";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn many_refusals_take_one_line_per_reason_with_advice() {
        let refused =
            |id: u32| Entry { id: id.to_string(), reason: if id < 30_000 { "thread" } else { "site" }.to_owned() };
        let refused = (0..30_002).map(refused).collect();
        let report = Report { refused, unmapped: vec![String::new(), "a\nb".into()], ..Report::default() };
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "refused 2 as site: 30000, 30001");
        assert!(lines[1].contains("--site"), "{text}");
        assert_eq!(lines[2], "refused 30000 as thread: 0, 1, 2, 3, 4 and 29995 more");
        assert!(lines[3].contains("--map: (empty), a b"), "{text}");
        assert_eq!(lines.len(), 5, "{text}");
    }

    #[test]
    fn incomplete_lists_come_last_with_advice() {
        let missing = |id: u32, total| Missing { id: id.to_string(), read: 100, total, is_text: false };
        let missing = (1..=6).map(|id| missing(id, (id > 1).then_some(120))).collect();
        let text = Report { missing, ..report() }.to_string();
        let lines: Vec<&str> = text.lines().collect();
        let [.., incomplete, help] = lines[..] else { panic!("{text}") };
        let expected = "incomplete: 1 (100, and there are more), 2 (100 of 120), 3 (100 of 120), 4 (100 of 120), \
                        5 (100 of 120) and 1 more";
        assert_eq!(incomplete, expected);
        assert!(help.contains("export it again"), "{help}");
    }

    #[test]
    fn texts_in_another_encoding_have_their_own_advice() {
        let list = Missing { id: "7".to_owned(), read: 1, total: Some(2), is_text: false };
        let text = Missing { id: "558".to_owned(), is_text: true, ..list.clone() };
        let printed = Report { missing: vec![text, list], ..report() }.to_string();
        let lines: Vec<&str> = printed.lines().collect();
        let [.., list, list_help, text, text_help] = lines[..] else { panic!("{printed}") };
        assert_eq!((list, text), ("incomplete: 7 (1 of 2)", "incomplete: 558 (1 of 2)"));
        assert!(list_help.contains("export it again") && text_help.contains("UTF-8"), "{printed}");
        assert!(text_help.contains("into an empty table"), "{printed}");
    }

    #[test]
    fn a_report_in_json_has_the_documented_names() {
        let json = serde_json::to_value(report()).unwrap();
        let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = "already_there changed cut missing moved new read refused skipped threads unmapped";
        assert_eq!(names.join(" "), expected);
        assert_eq!(json["refused"], serde_json::json!([{ "id": "558", "reason": "time" }]));
    }
}
