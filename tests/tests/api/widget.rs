//! Tests of the widget and the moderators' page without a browser: sizes, texts, and things that the widget never does.
//! All other tests of the widget are in `tests/browser`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};
use serde_json::Value;
use shared::domain::language::Language;
use tests::World;

const PAGE: &str = include_str!("../../../docs/page.md");

/// Maximum bytes of each script on the wire.
const READER: usize = 13_500;
const WRITER: usize = 14_000;
const MODERATION: usize = 32_000;

/// Returns the modules and style sheets in folders of `functions/ui/embed`, concatenated.
fn modules(folders: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/ui/embed");
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files.into_iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

fn widget() -> String {
    modules(&["kit", "reader", "writer"])
}

/// Returns the compressed size of one of the service's files, and its text.
async fn wire(path: &str) -> (usize, String) {
    let reply = World::new().guest().with(ACCEPT_ENCODING, "gzip").get(path).await.ok(200);
    (reply.body.len(), reply.json.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn readers_load_at_most_13_500_bytes_and_writers_14_000_more() {
    let (reader, text) = wire("embed.js").await;
    assert!(reader <= READER, "{reader}");
    let writer = text.split_once("import('./").and_then(|(_, rest)| rest.split_once('\'')).unwrap().0;
    let (writer, _) = wire(writer).await;
    assert!(writer <= WRITER, "{writer}");
}

#[tokio::test]
async fn the_moderators_script_has_at_most_32_000_bytes() {
    let (size, _) = wire("moderation.js").await;
    assert!(size <= MODERATION, "{size}");
}

#[tokio::test]
async fn no_script_imports_anything_when_it_loads() {
    for path in ["embed.js", "moderation.js"] {
        let (_, text) = wire(path).await;
        let is_no_statement = |rest: &str| ["(", ".meta", "ant"].iter().any(|other| rest.starts_with(other));
        assert!(text.split("import").skip(1).all(is_no_statement) && !text.contains("export"), "{path}");
        assert_eq!(text.matches("import(").count(), usize::from(path == "embed.js"), "{path}");
    }
}

#[test]
fn no_module_has_more_than_300_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/ui/embed");
    for folder in ["kit", "reader", "writer", "moderation"] {
        for file in fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 300, "{}: {lines}", path.display());
        }
    }
}

#[test]
fn the_widget_has_no_way_to_run_markup_and_keeps_no_token_of_the_page() {
    let forbidden = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "setHTMLUnsafe",
        "createContextualFragment",
        "document.write",
        "eval(",
        "new Function",
        ".style",
        "cssText",
        "indexedDB",
        "document.cookie",
        "postMessage",
    ];
    let widget = widget();
    for word in forbidden {
        assert!(!widget.contains(word), "{word}");
    }
    // All stored values go through one object: drafts, their request keys and whether they were put aside, a guest's
    // name and key, whether a guest has written, the newest comment seen, a guest's pending comments, and the session
    // that began here.
    let stored: BTreeSet<&str> =
        widget.split("device.set(").skip(1).filter_map(|call| call.split(',').next()).collect();
    let known = [
        "'name'",
        "KEY",
        "`${API} ${data.id} waiting`",
        "`${API} key`",
        "`${API} mine`",
        "folded",
        "kept",
        "left",
        "name",
        "this.#key",
        "waiting",
    ];
    assert_eq!(stored, BTreeSet::from(known));
    assert_eq!(widget.matches("localStorage").count(), 2);
    // Session storage holds only the state of sign-ins through a provider, under names from `nameOf`.
    assert_eq!((widget.matches("sessionStorage").count(), widget.matches("sessionStorage[nameOf(").count()), (4, 3));
}

async fn labels(language: &str) -> serde_json::Map<String, Value> {
    let reply = World::new().guest().with(ACCEPT_LANGUAGE, language).get("ui").await.ok(200);
    reply.data()["labels"].as_object().cloned().unwrap()
}

#[tokio::test]
async fn the_widget_uses_only_labels_that_every_language_has() {
    let widget = widget();
    // Calls such as `say(isOn ? 'pinned' : 'posted')` have several keys.
    let calls = widget.split("say(").skip(1).filter_map(|call| call.split(')').next());
    let said: BTreeSet<&str> = calls.flat_map(|call| call.split('\'').skip(1).step_by(2)).collect();
    assert!(said.len() > 30, "{said:?}");
    let mut tags: Vec<&str> = Language::all().map(Language::tag).collect();
    for tag in &tags {
        let labels = labels(tag).await;
        for key in &said {
            assert!(labels.contains_key(*key), "{tag}: {key}");
        }
    }
    tags.sort_unstable();
    assert!(PAGE.contains(&format!("There are labels in {};", tags.join(", "))), "docs/page.md lists {tags:?}");
}

#[tokio::test]
async fn every_label_is_used_by_the_widget_or_meant_for_other_front_ends() {
    // The names of report reasons are label keys too. Moderators also use the other reasons for rejections.
    let reasons = ["inappropriate"];
    // The label keys of refusals are their error codes.
    let refusals = ["rate_limited", "spam_rejected"];
    // The label keys of switches and of the email state are composed.
    let mails = ["mail_asked", "mail_bounced", "mail_off", "mail_on"];
    let switches = ["notify_forget", "notify_mentions", "notify_own_records", "notify_replies"];
    // The page without scripts uses these labels.
    let pages = ["next_page", "previous_page"];
    // The moderators' page uses this label, in every language.
    let moderation = ["looks_like"];
    // The label of a sign-in method.
    let methods = ["sign_in_email"];
    let for_others = ["anonymous", "comment", "unlike", "view_replies"];
    let widget = widget();
    let unsaid: Vec<String> = labels("en")
        .await
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| !widget.contains(&format!("'{key}'")) && !widget.contains(&format!("\n  {key}: ")))
        .filter(|key| !widget.contains(&format!("\n      {key}: ")) && !widget.contains(&format!("\n      {key},")))
        .collect();
    let mut known: Vec<&str> =
        [&reasons[..], &refusals, &mails, &switches, &pages, &moderation, &methods, &for_others].concat();
    known.sort_unstable();
    assert_eq!(unsaid, known);
}

#[tokio::test]
async fn texts_before_the_first_response_are_the_same_as_the_labels() {
    let widget = widget();
    let words = widget.split("const FIRST_WORDS = {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let labels = labels("en").await;
    for word in words.split(", ") {
        let (key, text) = word.trim().split_once(": ").unwrap();
        assert_eq!(labels[key], text.trim_matches('\''));
    }
}

#[tokio::test]
async fn the_moderators_page_uses_every_text_that_it_has_and_no_other() {
    let script = modules(&["moderation"]);
    let reply = World::new().guest().get("ui?for=moderation").await.ok(200);
    let labels = reply.data()["labels"].as_object().unwrap();
    let texts: BTreeSet<&str> = labels.keys().filter_map(|key| key.strip_prefix("moderation.")).collect();
    let is_key = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let calls = [" t('", "(t('", "[t('", ".t('"].into_iter().flat_map(|call| script.split(call).skip(1));
    let said: BTreeSet<&str> = calls.filter_map(|rest| rest.split('\'').next()).collect();
    assert!(said.len() > 80, "{said:?}");
    assert_eq!(said.difference(&texts).collect::<Vec<_>>(), Vec::<&&str>::new());

    // The beginnings of keys that the script composes in template strings.
    let begin: BTreeSet<&str> = script
        .split('`')
        .skip(1)
        .filter_map(|rest| rest.split_once("${"))
        .map(|(key, _)| key)
        .filter(|key| is_key(key))
        .collect();
    let is_whole = |key: &str| {
        script.contains(&format!("'{key}'"))
            || key.strip_suffix("_more").is_some_and(|key| script.contains(&format!("'{key}'")))
    };
    // Labels for the moderator of a decision, the state of a report, and the language itself.
    let others = ["by_other_", "by_you_", "dismissed", "language", "reviewed"];
    let unsaid =
        texts.iter().filter(|key| !is_whole(key) && !begin.iter().chain(&others).any(|begin| key.starts_with(begin)));
    assert_eq!(unsaid.collect::<Vec<_>>(), Vec::<&&str>::new());
}
