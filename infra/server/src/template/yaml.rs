//! Converts the template's YAML to JSON.

use std::collections::BTreeMap;

use saphyr::{Scalar, Yaml};
use serde_json::{Value, json};

use super::TemplateError;

/// Converts short forms of intrinsic functions to long forms: `!Ref x` to `{"Ref": x}`, `!Sub x` to `{"Fn::Sub": x}`.
pub(super) fn to_json(yaml: &Yaml<'_>) -> Result<Value, TemplateError> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(flag)) => json!(flag),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Sequence(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|(name, value)| {
                let name = match to_json(name)? {
                    Value::String(name) => name,
                    other => other.to_string(),
                };
                Ok((name, to_json(value)?))
            });
            Value::Object(entries.collect::<Result<_, TemplateError>>()?)
        }
        Yaml::Tagged(tag, value) => match tag.suffix.as_str() {
            name @ ("Ref" | "Condition") => json!({ name: to_json(value)? }),
            name => json!({ format!("Fn::{name}"): to_json(value)? }),
        },
        Yaml::Alias(_) => return Err(TemplateError::NotJson("alias")),
        Yaml::Representation(..) | Yaml::BadValue => return Err(TemplateError::NotJson("scalar")),
    })
}

/// Replaces each `Ref` to a parameter with its value, and each `Fn::Sub` of a plain text with the text. Names in the
/// text that aren't parameters stay unchanged.
pub(super) fn resolve(value: &Value, parameters: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| resolve(item, parameters)).collect(),
        Value::Object(entries) => {
            let intrinsic = match entries.iter().next() {
                Some((name, Value::String(name_or_text))) if entries.len() == 1 => match name.as_str() {
                    "Ref" => parameters.get(name_or_text).cloned(),
                    "Fn::Sub" => Some(substitute(name_or_text, parameters)),
                    _ => None,
                },
                _ => None,
            };
            intrinsic.map_or_else(
                || entries.iter().map(|(name, value)| (name.clone(), resolve(value, parameters))).collect(),
                Value::String,
            )
        }
        other => other.clone(),
    }
}

/// Replaces `${Parameter}` with its value. Leaves other names unchanged.
fn substitute(text: &str, parameters: &BTreeMap<String, String>) -> String {
    parameters.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}
