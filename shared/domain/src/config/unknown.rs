//! Environment variables that are named like settings but that nothing reads, such as misspelled settings.

const PREFIX: &str = "SVC_";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} isn't a setting, so it has no effect; the nearest name is {nearest}")]
pub struct UnknownSetting {
    name: String,
    nearest: &'static str,
}

pub(super) fn unknown(names: impl Iterator<Item = String>, known: &[&'static str]) -> Vec<UnknownSetting> {
    let mut unknown: Vec<_> = names
        .filter(|name| name.starts_with(PREFIX) && !known.contains(&name.as_str()))
        .filter_map(|name| {
            let settings = known.iter().filter(|setting| setting.starts_with(PREFIX));
            let nearest = settings.min_by_key(|setting| distance(setting.as_bytes(), name.as_bytes()))?;
            Some(UnknownSetting { name, nearest })
        })
        .collect();
    unknown.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    unknown
}

/// The Levenshtein distance, in bytes.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_setting_is_named_with_the_nearest_one() {
        let known = ["TABLE_NAME", "SVC_PINS", "SVC_THEME", "SVC_TYPES"];
        let found = |names: &[&str]| {
            let found = unknown(names.iter().map(|name| (*name).to_owned()), &known);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(&["SVC_PINS", "PATH", "TABEL_NAME", "SVC_THEME"]), Vec::<String>::new());
        let says = |name: &str, nearest: &str| {
            format!("{name} isn't a setting, so it has no effect; the nearest name is {nearest}")
        };
        assert_eq!(
            found(&["SVC_TYPE", "SVC_THEEM", "SVC_PIN"]),
            [says("SVC_PIN", "SVC_PINS"), says("SVC_THEEM", "SVC_THEME"), says("SVC_TYPE", "SVC_TYPES")]
        );
    }

    #[test]
    fn a_distance_is_the_number_of_letters_that_change() {
        for (a, b, expected) in [("", "abc", 3), ("kitten", "sitting", 3), ("abc", "abc", 0), ("ab", "ba", 2)] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }
}
