//! Names that people choose, and which of them look like another one.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use serde::{Deserialize, Serialize};
use unicode_security::confusable_detection::skeleton;

use crate::domain::fold::fold;
use crate::domain::ids::UserId;
use crate::domain::visible;

const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();
const NFD: DecomposingNormalizerBorrowed<'_> = DecomposingNormalizerBorrowed::new_nfd();

/// How a name looks: its skeleton (UTS 39) without marks, white space and punctuation. There are three, because folding case
/// first hides that `I` looks like `l`, folding nothing tells `ADA` from `Ada`, and a name may have both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    written: String,
    folded: String,
    /// The skeleton of what is written, then folded.
    both: String,
}

impl Look {
    #[must_use]
    pub fn of(name: &str) -> Self {
        let name = NFKC.normalize(name);
        let look = |name: &str| bare(&skeleton(&bare(name)).collect::<String>());
        let written = look(&name);
        Self { folded: look(&fold(&name)), both: fold(&written), written }
    }

    /// Whether readers may take one for the other.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let is_same = |one: &str, other: &str| !one.is_empty() && one == other;
        is_same(&self.written, &other.written)
            || is_same(&self.folded, &other.folded)
            || is_same(&self.both, &other.both)
    }
}

/// Moderators whose names are kept, newest last.
const MAX_MODERATORS: usize = 100;

/// The names of the moderators. Nobody else may have a name that looks like one of them. They are kept as they are, so that the
/// functions that keep one need none of the tables by which names are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeratorNames {
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(rename = "ls", default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<ModeratorName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ModeratorName {
    #[serde(rename = "u")]
    id: UserId,
    #[serde(rename = "n")]
    name: String,
}

impl ModeratorNames {
    /// Whether it has the present name of this moderator.
    #[must_use]
    pub fn has(&self, id: UserId, name: &str) -> bool {
        self.names.iter().any(|known| known.id == id && known.name == name)
    }

    /// Keeps the name of a moderator in place of an earlier one.
    pub fn keep(&mut self, id: UserId, name: &str) {
        self.names.retain(|known| known.id != id);
        self.names.push(ModeratorName { id, name: name.to_owned() });
        if self.names.len() > MAX_MODERATORS {
            self.names.remove(0);
        }
    }

    #[must_use]
    pub fn has_one_of(&self, id: UserId) -> bool {
        self.names.iter().any(|known| known.id == id)
    }

    /// Frees the name of a moderator. False when there is none.
    pub fn forget(&mut self, id: UserId) -> bool {
        let is_there = self.has_one_of(id);
        self.names.retain(|known| known.id != id);
        is_there
    }

    /// Whether a name looks like that of a moderator who is not `own`.
    #[must_use]
    pub fn has_like(&self, look: &Look, own: Option<UserId>) -> bool {
        self.names.iter().any(|known| Some(known.id) != own && Look::of(&known.name).is_like(look))
    }
}

/// `name` without marks, white space, punctuation and what readers do not see.
fn bare(name: &str) -> String {
    let categories = CodePointMapData::<GeneralCategory>::new();
    let is_bare = |c: &char| {
        let category = categories.get(*c);
        let is_left_out = GeneralCategoryGroup::Mark.contains(category)
            || GeneralCategoryGroup::Punctuation.contains(category)
            || c.is_whitespace()
            || visible::is_unseen(*c);
        !is_left_out
    };
    NFD.normalize(name).chars().filter(is_bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        let (one, other) = (Look::of(one), Look::of(other));
        assert_eq!(one.is_like(&other), other.is_like(&one));
        one.is_like(&other)
    }

    #[test]
    fn names_are_alike_that_readers_take_for_each_other() {
        for (one, other) in [
            ("Ada", "Ada"),
            ("Ada", "ada"),
            ("Ada", "АԀА"),
            ("Ada", "Аdа"),
            ("Ada", "Ａｄａ"),
            ("Ada Lovelace", "AdaLovelace"),
            ("Ada Lovelace", "Ada-Lovelace."),
            ("Ada", "A\u{200b}da"),
            ("Ada", "Adá"),
            ("Ilse", "llse"),
            ("Ilse Boss", "llse BOSS"),
            ("Tom", "Torn"),
            ("O'Neill", "0Neill"),
            ("paypal", "раураl"),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn the_name_of_another_moderator_is_taken_and_an_earlier_one_is_free() {
        let (ada, bob) = (UserId(1), UserId(2));
        let mut names = ModeratorNames::default();
        names.keep(ada, "Ada");
        let is_taken = |names: &ModeratorNames, name: &str, own| names.has_like(&Look::of(name), own);
        assert!(names.has(ada, "Ada") && !names.has(ada, "Eda") && !names.has(bob, "Ada"));
        assert!(
            is_taken(&names, "аda", None) && is_taken(&names, "ADA", Some(bob)) && !is_taken(&names, "Ada", Some(ada))
        );
        names.keep(ada, "Eda");
        assert!(!is_taken(&names, "Ada", None) && is_taken(&names, "Eda", None));
    }

    #[test]
    fn names_that_differ_are_not_alike() {
        for (one, other) in [("Ada", "Eda"), ("Ada", "Ada L."), ("Bob", "Rob"), ("李雷", "李蕾"), ("…", "!"), ("", "")]
        {
            assert!(!are_alike(one, other), "{one} {other}");
        }
    }
}
