//! Compares the schema with the keys, with the values that `domain` and the store write, with the code that uses the
//! constants, and with the documents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::{Serialize, forward_to_deserialize_any};

use super::*;
use crate::domain::comment::Comment;
use crate::domain::log::LogEntry;
use crate::domain::name::ModeratorNames;
use crate::domain::notifications::{Enrolment, NotificationState, Schedule};
use crate::domain::person::KnownBy;
use crate::domain::report::Report;
use crate::domain::sign_in::inbox::Inbox;
use crate::domain::sign_in::keys::PublicKeys;
use crate::domain::sign_in::redirect::RedirectFlow;
use crate::domain::sign_in::session::Sessions;
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::user::User;
use crate::domain::webhook::{self, Delivery, Endpoint};
use crate::store::keys::{Item, tests::keys_and_kinds};
use crate::store::{bans, idempotency as idempotency_row, read, users};

/// Strings that can't be arbitrary: names of enum variants, and ids with their own format.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("comment", "s", "pending"),
    ("comment.resolution", "s", "reviewed"),
    ("comment.verdict", "r", "phrase"),
    ("comment.verdict.detail", "failure", "timeout"),
    ("comment.rejection", "r", "spam"),
    ("log", "ac", "approve"),
    ("log", "rr", "u1"),
    ("notification state", "st", "on"),
    ("endpoint", "ev", "comment.created"),
    ("delivery", "mg", "msg_1_00000000000000000000000000000000"),
    ("delivery", "ev", "comment.created"),
    ("delivery", "st", "pending"),
];

/// A value of the type other than its default. Strings not in [`SAMPLES`] have the format of a thread id, `type#record`.
fn sample(of: &str, name: &str, ty: Type) -> AttributeValue {
    let text = || {
        let special = SAMPLES.iter().find(|sample| (sample.0, sample.1) == (of, name));
        special.map_or("post#1", |sample| sample.2).to_owned()
    };
    match ty {
        Type::S => AttributeValue::S(text()),
        Type::N | Type::Any => AttributeValue::N("1".to_owned()),
        Type::B => AttributeValue::Bool(true),
        Type::NS => AttributeValue::Ns(vec!["1".to_owned()]),
        Type::SS => AttributeValue::Ss(vec![text()]),
        Type::L(element) => AttributeValue::L(vec![sample(of, name, *element)]),
        Type::M(map, attributes) => AttributeValue::M(samples(&format!("{of}.{map}"), attributes)),
        Type::MLN => AttributeValue::M(HashMap::from([(text(), sample(of, name, Type::L(&Type::N)))])),
    }
}

fn samples(of: &str, attributes: &[Attribute]) -> HashMap<String, AttributeValue> {
    attributes.iter().map(|attribute| (attribute.name.to_owned(), sample(of, attribute.name, attribute.ty))).collect()
}

/// The serde names of a struct's fields. Empty for a struct that flattens another one.
fn fields<T: DeserializeOwned>() -> BTreeSet<&'static str> {
    struct Fields<'a>(&'a mut BTreeSet<&'static str>);
    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = serde::de::value::Error;
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.extend(fields);
            self.deserialize_any(visitor)
        }
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("only the names are wanted"))
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut names = BTreeSet::new();
    drop(T::deserialize(Fields(&mut names)));
    names
}

/// The attributes of a kind that serde writes. Checks that each has the type in the schema.
fn written_by<T: Serialize + DeserializeOwned>(kind: &Kind) -> BTreeSet<&'static str> {
    let item = samples(kind.name, kind.attributes);
    let value: T = read(item.clone()).unwrap_or_else(|error| panic!("{}: {}", kind.name, error.chain()));
    let written: Item = serde_dynamo::to_item(value).unwrap();
    for (name, value) in &written {
        assert_eq!(Some(value), item.get(name), "{} `{name}`", kind.name);
    }
    let listed = kind.attributes.iter().map(|attribute| attribute.name);
    let written: BTreeSet<&str> = listed.filter(|name| written.contains_key(*name)).collect();
    assert!(written.is_superset(&fields::<T>()), "{}", kind.name);
    written
}

/// The attributes that serde writes, by kind.
fn written() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    BTreeMap::from([
        ("comment", written_by::<Comment>(&comment::KIND)),
        ("report", written_by::<Report>(&report::KIND)),
        ("thread", written_by::<Thread>(&thread::KIND)),
        ("visitor's thread state", written_by::<VisitorThreadState>(&visitor_state::KIND)),
        ("user", written_by::<User>(&user::KIND)),
        ("name fragment", written_by::<users::Fragment>(&name_fragment::KIND)),
        ("log", written_by::<LogEntry>(&log::KIND)),
        ("banned", written_by::<bans::Row>(&banned::KIND)),
        ("network's ban", written_by::<bans::NetworkItem>(&network_ban::KIND)),
        ("erasure", written_by::<KnownBy>(&erasure::KIND)),
        ("idempotency", written_by::<idempotency_row::Row<u64>>(&idempotency::KIND)),
        ("notification state", written_by::<NotificationState>(&notification_state::KIND)),
        ("inbox", written_by::<Inbox>(&inbox::KIND)),
        ("redirect flow", written_by::<RedirectFlow>(&redirect_flow::KIND)),
        ("sessions", written_by::<Sessions>(&sessions::KIND)),
        ("public keys", written_by::<PublicKeys>(&public_keys::KIND)),
        ("moderators' names", written_by::<ModeratorNames>(&moderator_names::KIND)),
        ("endpoint", written_by::<Endpoint>(&endpoint::KIND)),
        ("delivery", written_by::<Delivery>(&delivery::KIND)),
    ])
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The code of the store and of the tools that write to the table, without tests and without the schema.
fn store_code() -> BTreeMap<PathBuf, String> {
    let is_schema = |path: &Path| path == folder().join("schema.rs") || path.starts_with(folder().join("schema"));
    let tools = rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/transfer/src/store"));
    let code = rust_files(&folder()).into_iter().chain(tools).filter(|path| !is_schema(path)).map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
        (path, code)
    });
    code.collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store")
}

#[test]
fn every_key_is_of_an_item_of_the_schema() {
    let keys = keys_and_kinds();
    let names: Vec<&str> = keys.iter().map(|(_, kind)| kind.schema().unwrap().name).collect();
    let listed: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    assert_eq!(names, listed);
    let agree = |key: &str, described: &str| {
        let parts = |text: &str| text.split('#').map(str::to_owned).collect::<Vec<_>>();
        let (built, described) = (parts(key), parts(described));
        let is_literal = |part: &str| part.chars().all(|c| c.is_ascii_uppercase()) || ["lease", "salt"].contains(&part);
        built.len() >= described.len()
            && described.iter().zip(&built).all(|(part, built)| !is_literal(part) || part == built)
    };
    for (key, kind) in keys {
        let schema = kind.schema().unwrap();
        assert!(agree(&key.pk, schema.pk) && agree(&key.sk, schema.sk), "{}: {key:?}", schema.name);
    }
}

#[test]
fn every_attribute_is_written_by_serde_or_named_in_the_code() {
    let (written, code) = (written(), store_code());
    for kind in KINDS {
        let module = code_name(kind);
        let unused = kind.attributes.iter().chain(kind.index_keys).filter(|attribute| {
            let is_written = written.get(kind.name).is_some_and(|names| names.contains(attribute.name));
            let constant = format!("{module}::{}", attribute.constant);
            !is_written && !code.values().any(|code| code.contains(&constant))
        });
        let unused: Vec<&str> = unused.map(|attribute| attribute.constant).collect();
        assert!(unused.is_empty(), "{}: nothing writes {unused:?}", kind.name);
        let names = |name: &str| kind.attributes.iter().any(|attribute| attribute.name == name);
        assert!(written.get(kind.name).is_none_or(|written| written.iter().all(|name| names(name))), "{}", kind.name);
    }
}

/// `DynamoDB` refuses an item whose index key has a different type than the index expects.
#[test]
fn an_attribute_that_is_named_as_a_key_of_an_index_has_its_type() {
    let keys: BTreeMap<&str, Type> =
        KINDS.iter().flat_map(|kind| kind.index_keys).map(|key| (key.name, key.ty)).collect();
    for kind in KINDS {
        for attribute in kind.attributes {
            let key = keys.get(attribute.name);
            assert!(
                key.is_none_or(|ty| discriminant(ty) == discriminant(&attribute.ty)),
                "{}: {}",
                kind.name,
                attribute.name
            );
        }
    }
}

#[test]
fn parts_of_an_item_write_what_the_schema_has() {
    let has = |kind: &Kind, part: BTreeSet<&str>| {
        let listed: BTreeSet<&str> = kind.attributes.iter().map(|attribute| attribute.name).collect();
        assert!(!part.is_empty() && part.is_subset(&listed), "{}: {part:?}", kind.name);
    };
    has(&notification_state::KIND, fields::<Enrolment>());
    has(&notification_state::KIND, fields::<Schedule>());
    has(&delivery::KIND, fields::<webhook::Subject>());
}

#[test]
fn no_attribute_is_named_by_a_literal() {
    const WORDS: [&str; 5] = ["attribute_exists", "attribute_not_exists", "contains", "if_not_exists", "size"];
    let all = KINDS.iter().flat_map(|kind| kind.attributes.iter().chain(kind.index_keys));
    let names: BTreeSet<&str> = all.map(|attribute| attribute.name).chain([PK, SK]).collect();
    let is_expression =
        |text: &str| ["exists(", "contains(", " = :", " < :", " <= :", " <> :"].iter().any(|part| text.contains(part));
    for (path, code) in store_code() {
        let lines = code.lines().filter(|line| !line.contains("rename") && !line.trim_start().starts_with("//"));
        for literal in lines.flat_map(|line| line.split('"').skip(1).step_by(2)) {
            assert!(!names.contains(literal), "{}: {literal:?}", path.display());
            // `{0}` and `{name}` are names, and `:name` is a value.
            let words = literal.split_inclusive(|c: char| !c.is_ascii_lowercase() && c != '_');
            let mut before = ' ';
            for word in words.filter(|_| is_expression(literal)) {
                let name = word.trim_end_matches(|c: char| !c.is_ascii_lowercase() && c != '_');
                let is_known = name.is_empty() || WORDS.contains(&name) || [':', '{'].contains(&before);
                assert!(is_known, "{}: {name} in {literal:?}", path.display());
                before = word.chars().next_back().unwrap_or(' ');
            }
        }
    }
}

#[test]
fn lists_read_every_attribute_of_a_comment() {
    let read: BTreeSet<&str> = crate::store::comments::ATTRIBUTES.split(',').collect();
    assert_eq!(fields::<Comment>(), read);
}

/// The name of a kind's module. For overflow items, the code uses the constants of `visitor_state`.
fn code_name(kind: &Kind) -> &'static str {
    let text = include_str!("../schema.rs");
    let line = text.lines().find(|line| line.ends_with(&format!(" \"{}\" {{", kind.name))).expect("its line");
    let name = line.split_whitespace().next().unwrap();
    if name == "visitor_overflow" { "visitor_state" } else { name }
}

#[test]
fn names_are_unique_in_an_item() {
    let all = KINDS.iter().map(|kind| (kind.name, kind.attributes.iter().chain(kind.index_keys).collect::<Vec<_>>()));
    for (of, attributes) in all.chain(maps::ALL.iter().map(|(name, map)| (*name, map.iter().collect()))) {
        let names: BTreeSet<&str> = attributes.iter().map(|attribute| attribute.name).collect();
        assert_eq!(names.len(), attributes.len(), "{of}");
    }
}

fn printed() -> String {
    let mut text = "# The table\n\nPrinted from [schema.rs](schema.rs) by `UPDATE_FILES=1 cargo test --workspace schema`. Do not edit it by hand.\n\n\
        One table holds everything. [keys.rs](keys.rs) builds the keys, and [placement.rs](placement.rs) decides the place of a comment in the\n\
        indexes. Comments that only their writer may see (unapproved ones) are in the same indexes, in partitions that end in `#visitor`.\n\
        A visitor is `u` and a user id, `k` and the hash of a guest's key, or `g` and that of a guest's network and user agent. The `g` has the likes and reports\n\
        of every guest, and the `k` the comments of those who sent a key.\n\n\
        ## Items\n\n| item | pk | sk | exported | read by |\n|---|---|---|---|---|\n".to_owned();
    for kind in KINDS {
        let export = match kind.export {
            Export::Record => "yes",
            Export::Derived => "follows",
            Export::No => "",
        };
        writeln!(text, "| {} | `{}` | `{}` | {export} | {} |", kind.name, kind.pk, kind.sk, kind.read_by).unwrap();
    }
    text += "\n\"Follows\" means that an import derives it from what is exported ([native-format.md](../../../docs/native-format.md#what-happens-to-each-item-of-the-table)).\n\n\
        ## Indexes\n\n| index | partition | sort | holds |\n|---|---|---|---|\n";
    for index in INDEXES {
        let [partition, sort, holds] = index.described;
        writeln!(
            text,
            "| `{}` | `{}`: {partition} | `{}`: {sort} | {holds} |",
            index.name, index.partition, index.sort
        )
        .unwrap();
    }
    text += "\n## Attributes\n\n\
        Names are short, because a page reads forty comments and pays by the byte. Types are those of DynamoDB; `L(N)` is a list of numbers and\n\
        `M(ban)` a map, which [Maps](#maps) describes. A time is in Unix milliseconds unless stated otherwise. An attribute that has its default\n\
        (false, 0, nothing) may be missing. The third column says how an attribute may name a person, which an erasure looks for: by a user's id,\n\
        a visitor, an index key that holds one of these, a picture, a hash, a name, or in text that anyone wrote.\n";
    for kind in KINDS {
        let attributes: Vec<&Attribute> = kind.attributes.iter().chain(kind.index_keys).collect();
        if attributes.is_empty() {
            continue;
        }
        write!(text, "\n### {}\n\n", kind.name).unwrap();
        if let Some(names) = kind.key_names {
            write!(text, "The key names a person: {}.\n\n", format!("{names:?}").to_lowercase()).unwrap();
        }
        text += "| attribute | type | names | meaning |\n|---|---|---|---|\n";
        for Attribute { name, ty, names, meaning, .. } in attributes {
            let names = names.map(|names| format!("{names:?}").to_lowercase()).unwrap_or_default();
            writeln!(text, "| `{name}` | {} | {names} | {meaning} |", type_name(*ty)).unwrap();
        }
    }
    text += "\n## Maps\n\n| map | attribute | type | meaning |\n|---|---|---|---|\n";
    for (map, attributes) in maps::ALL {
        for (place, Attribute { name, ty, meaning, .. }) in attributes.iter().enumerate() {
            let map = if place == 0 { map } else { "" };
            writeln!(text, "| {map} | `{name}` | {} | {meaning} |", type_name(*ty)).unwrap();
        }
    }
    text
}

fn type_name(ty: Type) -> String {
    match ty {
        Type::L(Type::M(map, _)) => format!("L({map})"),
        Type::L(element) => format!("L({element:?})"),
        Type::M(map, _) => format!("M({map})"),
        Type::MLN => "M(L(N))".to_owned(),
        Type::Any => "any".to_owned(),
        plain => format!("{plain:?}"),
    }
}

#[test]
fn the_readme_is_printed_from_the_schema() {
    let path = folder().join("README.md");
    if std::env::var_os("UPDATE_FILES").is_some() {
        fs::write(&path, printed()).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == printed(),
        "{} is out of date: UPDATE_FILES=1 cargo test --workspace schema",
        path.display()
    );
}

#[test]
fn the_export_has_a_row_for_every_item() {
    let table = include_str!("../../../../docs/native-format.md").split("## What happens to each item").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    for kind in KINDS {
        let row = rows.iter().find(|row| row[1].split(", ").any(|item| item == kind.name));
        let Some((first, second)) = row.map(|row| (row[1], row[2])) else { panic!("no row for {}", kind.name) };
        let stays = second.starts_with("stay");
        assert_eq!(stays, kind.export == Export::No, "{first}");
        assert_eq!(second == "follow", kind.export == Export::Derived, "{first}");
    }
}
