//! What became of every record that was read.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// `read` is the sum of the four counts after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub read: u64,
    /// With placeholders.
    pub new: u64,
    pub already_there: u64,
    /// By reason.
    pub skipped: BTreeMap<String, u64>,
    pub refused: Vec<Entry>,
    /// Comments by thread, as `type/id`.
    pub threads: BTreeMap<String, u64>,
    /// Keys of pages for which no thread was found.
    pub unmapped: Vec<String>,
    /// Comments that stand below another parent than in the source.
    pub moved: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// In the source.
    pub id: String,
    /// A single word.
    pub reason: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { id, reason } in &self.refused {
            writeln!(f, "refused {id}: {reason}")?;
        }
        for Entry { id, reason } in &self.moved {
            writeln!(f, "moved {id}: {reason}")?;
        }
        for key in &self.unmapped {
            writeln!(f, "unmapped {key}")?;
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
        writeln!(f, ", {refused} refused")
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
        }
    }

    #[test]
    fn every_refusal_and_move_is_told_and_the_counts_come_last() {
        let expected = "refused 558: time\nmoved 559: parent\nunmapped 1337\nposts/1: 3\n\
                        7 read: 2 new, 1 already there, 3 skipped (deleted 1, spam 2), 1 refused\n";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn as_json_it_has_the_documented_names() {
        let json = serde_json::to_value(report()).unwrap();
        let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["read", "new", "already_there", "skipped", "refused", "threads", "unmapped", "moved"];
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert_eq!(json["refused"], serde_json::json!([{ "id": "558", "reason": "time" }]));
    }
}
