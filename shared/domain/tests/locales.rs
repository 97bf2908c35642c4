//! Tests the build's errors about mistakes in `locales/`, and that every text with a function is used.

#[path = "../build/locales.rs"]
mod locales;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use locales::{Locales, Rules, mistakes};
use serde_json::json;

/// Sections whose texts become functions, and the folders that contain the callers.
const CALLERS: [(&str, &[&str]); 5] = [
    (
        "errors",
        &[
            "shared/domain/src",
            "shared/src/app",
            "shared/src/http",
            "functions/comments/src",
            "functions/media/src",
            "functions/reactions/src",
            "functions/sign_in/src",
            "functions/users/src",
        ],
    ),
    ("mails", &["functions/delivery/src", "functions/users/src"]),
    ("moderator_mails", &["functions/delivery/src"]),
    ("pages", &["functions/sign_in/src", "functions/users/src"]),
    ("times", &["shared/domain/src"]),
];

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn parsed(json: serde_json::Value) -> Locales {
    serde_json::from_value(json).unwrap()
}

fn source(path: &str) -> String {
    let files = fs::read_dir(folder(path)).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The plural categories of English and Polish.
fn rules(tag: &str) -> Option<Rules> {
    let categories = match tag {
        "en" => vec!["one", "other"],
        "pl" => vec!["one", "few", "many", "other"],
        _ => return None,
    };
    Some(Rules { categories, forms: vec![0; 201] })
}

#[test]
fn each_mistake_is_named() {
    let english = json!({
        "labels": { "a": "{name}", "days": { "one": "{n} day", "other": "{n} days" } },
        "errors": {}, "times": {},
        "mails": { "stop": "Stop" },
    });
    let with = |other: serde_json::Value| mistakes(&parsed(json!({ "en": english, "pl": other })), rules).join("; ");
    let days = json!({ "one": "{n} dzień", "few": "{n} dni", "many": "{n} dni", "other": "{n} dnia" });
    let labels =
        |a: &str, days: &serde_json::Value| json!({ "labels": { "a": a, "days": days }, "errors": {}, "times": {} });
    assert_eq!(with(labels("{name}!", &days)), "");
    let forms = r#"pl: labels.days must have the forms {"few", "many", "one", "other"}"#;
    for (other, expected) in [
        (json!({ "labels": { "days": days }, "errors": {}, "times": {} }), "pl: labels.a is missing"),
        (json!({ "errors": {}, "times": {} }), "pl: labels is missing"),
        (json!({ "labels": { "a": "{name}", "days": days }, "times": {} }), "pl: errors is missing"),
        (
            json!({ "labels": { "a": "{name}", "b": "", "days": days }, "errors": {}, "times": {} }),
            "pl: labels.b is not in en",
        ),
        (
            json!({ "labels": { "a": "{name}", "days": days }, "errors": {}, "times": {}, "mail": {} }),
            "pl: mail is not in en",
        ),
        (labels("{site}", &days), "pl: labels.a uses different placeholders from en: {site}"),
        (labels(" ", &days), "pl: labels.a is empty"),
        (labels("{name} | x", &days), r#"pl: labels.a holds " | ""#),
        (labels("{name}", &json!("{n} dni")), forms),
        (labels("{name}", &json!({ "one": "{n} dzień", "other": "{n} dni" })), forms),
        (
            labels("{name}", &json!({ "one": "dzień", "few": "{n}", "many": "{n}", "other": "{n}" })),
            "pl: labels.days uses different placeholders from en: dzień",
        ),
    ] {
        assert_eq!(with(other), expected);
    }
    // A form that applies to one number may spell the number out, like the Arabic form for two.
    let one_number =
        |tag: &str| rules(tag).map(|known| Rules { forms: (0..201).map(|n| usize::from(n != 1)).collect(), ..known });
    let in_words = labels("{name}", &json!({ "one": "dzień", "few": "{n}", "many": "{n}", "other": "{n}" }));
    assert_eq!(mistakes(&parsed(json!({ "en": english, "pl": in_words })), one_number), [""; 0]);
    let unknown = parsed(json!({ "en": english, "xx": english }));
    assert_eq!(mistakes(&unknown, rules), ["no plural rules are known for the language xx"]);
    assert_eq!(mistakes(&BTreeMap::new(), rules), ["en is missing"]);
}

#[test]
fn a_language_may_lack_texts_that_english_has() {
    let english = json!({ "labels": { "days": { "one": "{n} day", "other": "{n} days" } }, "errors": {}, "times": {}, "mails": { "stop": "Stop" } });
    let days = json!({ "other": "{n} dnia", "many": "{n} dni", "few": "{n} dnie", "one": "{n} dzień" });
    let locales = parsed(json!({ "en": english, "pl": { "labels": { "days": days }, "errors": {}, "times": {} } }));
    assert!(locales::languages(&locales).ends_with("[\"en\", \"pl\"];\n"));
    let rust = locales::texts(&locales, rules);
    assert!(
        rust.contains(r#"[["days", "{n} day | {n} days", "{n} dzień | {n} dnie | {n} dni | {n} dnia"]]"#),
        "{rust}"
    );
    assert!(rust.contains(r#"const TEXTS: [&str; 2] = ["Stop", "Stop"]"#), "{rust}");
    assert!(rust.contains("const HAS: [bool; 2] = [true, false]"), "{rust}");
}

#[test]
fn every_text_is_used() {
    let english = &locales::read(&folder("shared/locales")).unwrap()["en"];
    for (section, callers) in CALLERS {
        let source: String = callers.iter().map(|path| source(path)).collect();
        let is_used = |key: &String| [format!(".{key}("), format!("::{key})")].iter().any(|call| source.contains(call));
        let unused = english[section].keys().filter(|key| !is_used(key));
        assert_eq!(unused.collect::<Vec<_>>(), Vec::<&String>::new(), "{section}");
    }
    // Scripts use the texts of the other sections.
    let others = english.keys().filter(|section| !CALLERS.iter().any(|(known, _)| known == section));
    assert_eq!(others.collect::<Vec<_>>(), ["labels", "moderation"]);
}
