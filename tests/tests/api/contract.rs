//! The contract is written in several places, which must agree. Routes: routes.rs, openapi.yaml and docs/api.md.
//! Settings: config.rs, the template and docs/settings.md. Errors: error.rs, openapi.yaml and errors.out.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;
use server::template::DEPLOYED;
use shared::config::profile::PROFILES;
use shared::config::{Config, Needs};
use shared::error::Refusal;
use shared::routes::ROUTES;
use tests::{World, assert_written};

const API: &str = include_str!("../../../docs/api.md");
const SETTINGS: &str = include_str!("../../../docs/settings.md");

fn named() -> BTreeSet<[String; 3]> {
    ROUTES.iter().map(|route| [route.name, route.method, route.path].map(str::to_owned)).collect()
}

#[tokio::test]
async fn openapi_has_the_routes_by_their_names() {
    let document = World::new().guest().get("openapi.json").await.ok(200).json;
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters");
        operations.map(move |(method, operation)| {
            let name = operation["operationId"].as_str().unwrap();
            [name.to_owned(), method.to_uppercase(), path.trim_start_matches('/').to_owned()]
        })
    });
    assert_eq!(operations.collect::<BTreeSet<_>>(), named());
}

#[tokio::test]
async fn the_service_the_template_the_contract_and_the_package_have_the_same_version() {
    let number = env!("CARGO_PKG_VERSION");
    let contract = World::new().guest().get("openapi.json").await.ok(200).json;
    assert_eq!(contract["info"]["version"], number);
    let package: Value = serde_json::from_str(include_str!("../../../packages/npm/package.json")).unwrap();
    assert_eq!(package["version"], number);
    let described = format!("Description: Comment threads over HTTP, version {number}. ");
    assert!(include_str!("../../../template.yaml").contains(&described));
}

/// Calls `look` with every value of the document and the path to it.
fn each(value: &Value, path: &str, look: &mut impl FnMut(&Value, &str)) {
    look(value, path);
    match value {
        Value::Object(entries) => entries.iter().for_each(|(name, value)| each(value, &format!("{path}/{name}"), look)),
        Value::Array(items) => items.iter().for_each(|item| each(item, path, look)),
        _ => {}
    }
}

fn names(map: &Value) -> BTreeSet<&str> {
    map.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn no_name_in_openapi_contains_a_space() {
    // In a YAML flow mapping, a comma ends an unquoted value, and the rest becomes a name.
    let document = World::new().guest().get("openapi.json").await.ok(200).json;
    each(&document, "", &mut |value, path| {
        let prose: Vec<_> = names(value).into_iter().filter(|name| name.contains(' ')).collect();
        assert!(prose.is_empty(), "{path}: {prose:?}");
    });
}

#[tokio::test]
async fn openapi_lists_the_names_of_every_map() {
    // A refusal may name any request field, counts may name any thread, and the log may name any user. The document
    // doesn't describe itself.
    const LOOSE: [&str; 4] = [
        "/Error/properties/errors",
        "/openapi.json/get/responses/200/content/application/json/schema",
        "/counts/get/responses/200/content/application/json/schema/properties/data",
        "/moderation/log/get/responses/200/content/application/json/schema/properties/names",
    ];
    let document = World::new().guest().get("openapi.json").await.ok(200).json;
    each(&document, "", &mut |value, path| {
        if value["type"] != "object" || LOOSE.iter().any(|loose| path.ends_with(loose)) {
            return;
        }
        let listed = names(&value["properties"]);
        assert!(!listed.is_empty(), "{path} lists no names");
        let required = value["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let unlisted: Vec<_> = required.filter(|name| !listed.contains(name)).collect();
        assert!(unlisted.is_empty(), "{path} requires {unlisted:?}");
    });
}

#[tokio::test]
async fn openapi_lists_the_fields_of_ui() {
    let world = World::new();
    let document = world.guest().get("openapi.json").await.ok(200).json;
    let ui = world.user(7, "Ada").get("ui").await.ok(200);
    let schemas = &document["components"]["schemas"];
    let schema = &schemas["Ui"];
    let required: BTreeSet<_> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(required, names(ui.data()));
    let of_moderation = world.guest().get("ui?for=moderation").await.ok(200);
    assert_eq!(names(&schema["properties"]), names(of_moderation.data()));
    assert_eq!(names(&schemas["Labels"]["properties"]), names(&ui.data()["labels"]));
    for map in ["features", "guest", "limits", "auth"] {
        assert_eq!(names(&schema["properties"][map]["properties"]), names(&ui.data()[map]), "{map}");
    }
}

#[tokio::test]
async fn openapi_lists_what_comments_and_placeholders_have() {
    let world = World::new();
    let document = world.guest().get("openapi.json").await.ok(200).json;
    let ada = world.user(7, "Ada");
    let (erased, kept) = (ada.comment("posts/1", "erased").await, ada.comment("posts/1", "kept").await);
    ada.reply("posts/1", erased, "reply").await;
    ada.remove(erased).await.ok(204);
    let (erased, kept) = (ada.see("posts/1", erased).await, ada.see("posts/1", kept).await);
    let schema = &document["components"]["schemas"]["Comment"];
    let required: BTreeSet<_> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(names(&kept), required);
    assert_eq!(names(&erased).difference(&required).collect::<Vec<_>>(), [&"is_deleted"]);
    assert!(names(&schema["properties"]).contains("is_deleted"));
}

fn errors() -> String {
    let mut text = format!("{:8}{:20}{}\n", "status", "code", "message");
    for refusal in Refusal::all() {
        let (status, code, message) = refusal.row();
        let message = if code == "validation_failed" { "(the first message of `errors`)" } else { message };
        writeln!(text, "{status:<8}{code:20}{message}").unwrap();
    }
    text
}

#[test]
fn the_committed_list_of_errors_is_current() {
    assert_written("tests/errors.out", &errors());
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    value["$ref"].as_str().map_or(value, |reference| document.pointer(&reference[1..]).unwrap())
}

fn failures(document: &Value) -> impl Iterator<Item = (u16, &Value)> {
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let answers = operations.filter_map(|operation| operation["responses"].as_object()).flatten();
    answers
        .map(|(status, answer)| (status.parse().unwrap(), resolve(document, answer)))
        .filter(|(status, _)| *status >= 400)
}

#[tokio::test]
async fn openapi_has_the_errors_with_their_statuses_and_messages() {
    let document = World::new().guest().get("openapi.json").await.ok(200).json;
    let refusals = Refusal::all();
    let rows: Vec<_> = refusals.iter().map(Refusal::row).collect();
    let mut codes: BTreeSet<_> = rows.iter().map(|(status, code, _)| (*status, *code)).collect();
    let listed = document["components"]["schemas"]["Error"]["properties"]["code"]["enum"].as_array().unwrap();
    let listed: BTreeSet<_> = listed.iter().filter_map(Value::as_str).collect();
    assert_eq!(listed, codes.iter().map(|(_, code)| *code).collect());

    let mut documented = BTreeSet::new();
    for (status, answer) in failures(&document) {
        let words = answer["description"].as_str().unwrap().split('`').skip(1).step_by(2);
        documented.extend(words.filter(|word| listed.contains(word)).map(|code| (status, code)));
        let content = &answer["content"]["application/json"];
        let named = content["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
        for example in named.chain(content.get("example")) {
            let (code, message) = (example["code"].as_str().unwrap(), example["message"].as_str().unwrap());
            documented.insert((status, code));
            let found = rows.contains(&(status, code, message)) || code == "validation_failed";
            assert!(found, "{status} {example}");
        }
    }
    // Documented operations have the right method, so none returns 405.
    codes.remove(&(405, "method_not_allowed"));
    assert_eq!(documented, codes);
}

#[test]
fn the_documents_have_the_routes() {
    let rows = API.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `svc-pro.")?.split(" | ").collect();
        let name = format!("svc-pro.{}", cells.first()?.trim_end_matches('`'));
        Some([name, (*cells.get(1)?).to_owned(), cells.get(2)?.trim_matches('`').to_owned()])
    });
    assert_eq!(rows.collect::<BTreeSet<_>>(), named());
}

#[test]
fn every_setting_is_in_the_template_and_in_the_documents() {
    let read = Config::from_vars_with(Needs::Nothing, |name| (name == "TABLE_NAME").then(|| "t".to_owned())).unwrap();
    let settings: BTreeSet<&str> = read.variables.into_iter().filter(|name| name.starts_with("SVC_")).collect();
    assert!(settings.len() > 40);
    let template = DEPLOYED.lines().filter_map(|line| line.trim().split_once(": !").map(|(name, _)| name));
    assert_eq!(template.filter(|name| name.starts_with("SVC_")).collect::<BTreeSet<_>>(), settings);
    let listed = SETTINGS.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name));
    assert_eq!(listed.filter(|name| name.starts_with("SVC_")).collect::<BTreeSet<_>>(), settings);
}

#[test]
fn the_documents_have_the_defaults_of_every_profile() {
    let rows: Vec<&str> = SETTINGS.lines().filter(|line| line.starts_with("| `SVC_")).collect();
    for (profile, defaults) in PROFILES {
        let named = format!("; `{profile}`: ");
        let said: BTreeSet<(&str, &str)> = rows
            .iter()
            .filter_map(|row| {
                let (_, value) = row.split_once(&named)?;
                Some((row.split('`').nth(1)?, value.split(" |").next()?))
            })
            .collect();
        assert_eq!(said, defaults.iter().copied().collect(), "{profile}");
    }
}
