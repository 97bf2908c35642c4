//! Which items may name somebody, and in which attributes. Tests compare this with `store/keys.rs`.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::store::keys::{Item, Key};

/// How an attribute may name somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// The id of a user.
    User,
    /// A visitor.
    Visitor,
    /// The key of an index, which may end in a visitor or a user.
    Index,
    /// A picture, which may be the hash of an address.
    Picture,
    /// A keyed hash, or a sealed address.
    Hash,
    /// The name of whoever another attribute names.
    Name,
    /// What somebody wrote. It may contain the name of anybody.
    Words,
}

/// A kind of item.
pub(super) struct Kind {
    /// Up to the first `#`.
    pk: &'static str,
    /// Up to the first `#`; `None` for ids, texts and hashes.
    sk: Option<&'static str>,
    /// As in the tables of `keys`.
    #[cfg(test)]
    name: &'static str,
    /// Whether the key names a visitor or a user.
    pub(super) key_names: bool,
    pub(super) names: &'static [(&'static str, Names)],
    /// The other attributes.
    #[cfg(test)]
    others: &'static [&'static str],
}

macro_rules! kinds {
    ($($name:literal $pk:literal $sk:expr, key $key:literal, [$($attribute:literal $names:ident),*], others [$($other:literal),*];)*) => {
        const KINDS: &[Kind] = &[$(Kind {
            pk: $pk,
            sk: $sk,
            #[cfg(test)]
            name: $name,
            key_names: $key,
            names: &[$(($attribute, Names::$names)),*],
            #[cfg(test)]
            others: &[$($other),*],
        }),*];
    };
}

kinds! {
    "comment" "C" Some("C"), key false,
        ["u" User, "g" Visitor, "n" Name, "av" Picture, "b" Words, "m" Words, "so" Words, "rl" Words, "su" Hash,
         "tk" Index, "ok" Index, "a" Index],
        others ["i", "t", "p", "mo", "e", "s", "rv", "sp", "ph", "lc", "il", "rc", "fp", "ld", "tr", "rp", "ro", "rs", "sb", "ws",
                "ts", "l", "d"];
    "report" "C" Some("R"), key false, ["u" User, "v" Visitor, "n" Name, "av" Picture, "r" Words], others ["id", "c"];
    "hidden reply" "C" Some("H"), key false, [], others [];
    "guest bound" "C" Some("G"), key false, [], others ["n"];
    "thread" "T" Some("T"), key false, ["au" User, "ti" Words, "url" Words], others ["n", "pin"];
    "counted comment" "T" Some("K"), key false, [], others ["f"];
    "count" "T" Some("K"), key false, [], others ["n"];
    "visitor's thread state" "V" Some("V"), key true, [], others ["lk", "rd", "fl", "up", "ur", "ut"];
    "overflow" "V" Some("V"), key true, [], others ["lk", "rd"];
    "user" "U" Some("U"), key true, ["u" User, "n" Name, "av" Picture, "sh" Hash, "bn" Words], others ["bi", "ib", "ia", "la", "ra", "ca"];
    "handle" "H" Some("U"), key true, [], others [];
    "name fragment" "N" None, key true, ["u" User, "n" Name, "av" Picture], others ["bn"];
    "queue entry" "Q" None, key false, [], others [];
    "source" "S" Some("S"), key false, [], others ["i", "dl", "th", "wr"];
    "log" "A" None, key false, ["mo" User, "u" User, "n" Name], others ["id", "ac", "c", "t"];
    "banned" "B" None, key false, ["u" User], others ["x"];
    "forgotten person" "F" None, key false, [], others ["c", "sf"];
    "erasure" "F" Some("J"), key false, [], others ["nm", "ad", "vs", "sj", "re", "se", "pi"];
    "erased comment" "F" None, key false, [], others [];
    "import journal" "J" Some("J"), key false, [], others ["n", "f", "c"];
    "import lease" "J" Some("J"), key false, [], others ["h", "x"];
    "imported salt" "J" Some("J"), key false, [], others ["h"];
    "limiter" "L" Some("L"), key true, [], others ["n", "es", "x"];
    "repeat" "P" Some("P"), key true, [], others ["rq", "x"];
    "idempotency" "I" Some("I"), key true, [], others ["rq", "an", "x"];
    "mailbox" "E" Some("E"), key true, ["ad" Hash, "ak" Hash],
        others ["vn", "st", "re", "me", "ow", "mu", "wt", "wm", "fl", "fm", "td", "ty", "ro", "du", "cl", "se", "rf", "rs", "cf",
                "cn", "as", "so", "ch", "pv"];
    "endpoint" "W" None, key false, [], others ["id", "url", "vn", "ev", "en", "se", "fs", "un"];
    "number of endpoints" "W" Some("W"), key false, [], others ["n"];
    "delivery" "W" None, key false, [], others ["mg", "ev", "vn", "ha", "c", "p", "t", "st", "tr", "rn", "du", "cl", "x"];
}

impl Kind {
    /// `None` for an item that is in no table of `keys`.
    pub(super) fn of(key: &Key) -> Option<&'static Self> {
        let first = |key: &str| key.split('#').next().unwrap_or_default().to_owned();
        let (pk, sk) = (first(&key.pk), first(&key.sk));
        let alike = || KINDS.iter().filter(|kind| kind.pk == pk);
        alike().find(|kind| kind.sk == Some(sk.as_str())).or_else(|| alike().find(|kind| kind.sk.is_none()))
    }
}

/// All texts in an item.
pub(super) fn texts(item: &Item) -> Vec<&str> {
    let mut texts = Vec::new();
    for value in item.values() {
        collect(value, &mut texts);
    }
    texts
}

/// All texts in an attribute.
pub(super) fn texts_of(value: &AttributeValue) -> Vec<&str> {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    texts
}

fn collect<'a>(value: &'a AttributeValue, texts: &mut Vec<&'a str>) {
    match value {
        AttributeValue::S(text) => texts.push(text),
        AttributeValue::Ss(set) => texts.extend(set.iter().map(String::as_str)),
        AttributeValue::L(list) => list.iter().for_each(|value| collect(value, texts)),
        AttributeValue::M(map) => map.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::keys::tests::keys_and_kinds;

    const DOCUMENTED: &str = include_str!("../keys.rs");

    /// The cells of the rows of a table in the documentation of `keys`.
    fn rows(from: &str, to: &str) -> Vec<Vec<&'static str>> {
        let lines = DOCUMENTED.lines().skip_while(|line| *line != from).take_while(|line| *line != to);
        let rows =
            lines.filter_map(|line| line.strip_prefix("//! |")).map(|line| line.split('|').map(str::trim).collect());
        rows.skip(2).collect()
    }

    #[test]
    fn every_key_is_of_a_kind() {
        for (key, _) in keys_and_kinds() {
            assert!(Kind::of(&key).is_some(), "{key:?} is in no line of this file");
        }
        let unknown = Key { pk: "Z#1".to_owned(), sk: "Z".to_owned() };
        assert!(Kind::of(&unknown).is_none());
    }

    #[test]
    fn the_kinds_are_those_of_the_table_of_items() {
        let documented: Vec<&str> = rows("//! # Items", "//! # Indexes").iter().map(|row| row[0]).collect();
        let listed: Vec<&str> =
            KINDS.iter().map(|kind| if kind.name == "overflow" { "its overflow" } else { kind.name }).collect();
        assert_eq!(listed, documented);
    }

    #[test]
    fn the_attributes_are_those_of_the_table_of_attributes() {
        let mut documented = BTreeSet::new();
        for row in rows("//! # Attributes", "") {
            let attributes = row[0].split(',').map(|attribute| attribute.trim().trim_matches('`'));
            let items: Vec<&str> = row[1].split(", ").collect();
            documented.extend(attributes.flat_map(|attribute| items.iter().map(move |item| (*item, attribute))));
        }
        let of_kind = |kind: &Kind| {
            let names = kind.names.iter().map(|(attribute, _)| *attribute);
            names.chain(kind.others.iter().copied()).map(|attribute| (kind.name, attribute)).collect::<Vec<_>>()
        };
        let listed: BTreeSet<(&str, &str)> = KINDS.iter().flat_map(of_kind).collect();
        assert_eq!(listed, documented);
    }
}
