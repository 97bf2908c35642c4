//! Checks that lists were read completely. A list may continue in another file.

use std::collections::{BTreeMap, HashSet};

use super::record::Part;
use super::report::Missing;

#[derive(Debug, Default)]
pub(super) struct Parts {
    lists: BTreeMap<String, List>,
}

#[derive(Debug, Default)]
struct List {
    elements: HashSet<String>,
    total: Option<u64>,
    /// Whether any part has other parts before it, and whether any has other parts after it.
    is_continued: [bool; 2],
    /// Whether the first part was read, and whether the last part was.
    has_end: [bool; 2],
}

impl Parts {
    pub(super) fn add(&mut self, part: Part) {
        let list = self.lists.entry(part.of).or_default();
        list.elements.extend(part.element);
        list.total = list.total.max(part.total);
        for (end, is_continued) in part.is_continued.into_iter().flatten().enumerate() {
            list.is_continued[end] |= is_continued;
            list.has_end[end] |= !is_continued;
        }
    }

    pub(super) fn missing(self) -> impl Iterator<Item = Missing> {
        self.lists.into_iter().filter_map(|(id, list)| {
            let read = list.elements.len() as u64;
            let is_short = list.total.is_some_and(|total| read < total);
            let is_open = (0..2).any(|end| list.is_continued[end] && !list.has_end[end]);
            let total = list.total.filter(|total| read < *total);
            (is_short || is_open).then_some(Missing { id, read, total, is_text: false })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(element: &str, total: Option<u64>, is_continued: [bool; 2]) -> Part {
        let (of, element) = ("7".to_owned(), Some(element.to_owned()));
        Part { of, element, total, is_continued: Some(is_continued) }
    }

    fn missing(list: &[Part]) -> Vec<(u64, Option<u64>)> {
        let mut parts = Parts::default();
        list.iter().cloned().for_each(|part| parts.add(part));
        parts.missing().map(|missing| (missing.read, missing.total)).collect()
    }

    #[test]
    fn a_list_is_whole_when_all_its_parts_were_read_in_any_order() {
        let (first, last) = (part("a", Some(2), [false, true]), part("b", Some(2), [true, false]));
        assert_eq!(missing(&[last.clone(), first.clone()]), []);
        assert_eq!(missing(&[first.clone(), first.clone()]), [(1, Some(2))]);
        assert_eq!(missing(&[last]), [(1, Some(2))]);
    }

    #[test]
    fn a_list_without_a_total_is_complete_once_its_first_and_last_parts_were_read() {
        let (first, last) = (part("a", None, [false, true]), part("b", None, [true, false]));
        assert_eq!(missing(&[first.clone(), last.clone()]), []);
        assert_eq!(missing(&[first]), [(1, None)]);
        assert_eq!(missing(&[last]), [(1, None)]);
        assert_eq!(missing(&[part("a", Some(1), [false, true])]), [(1, None)], "it goes on all the same");
        assert_eq!(missing(&[Part { is_continued: None, ..part("a", None, [false; 2]) }]), []);
    }
}
