//! Converts `openapi.yaml` to JSON in the same order.

use std::error::Error;

use saphyr::{LoadableYamlNode, Scalar, Yaml};

pub(crate) fn to_json(source: &str) -> Result<String, Box<dyn Error>> {
    let documents = Yaml::load_from_str(source)?;
    let mut json = String::new();
    write(&mut json, documents.first().ok_or("openapi.yaml is empty")?)?;
    Ok(json)
}

fn write(json: &mut String, yaml: &Yaml<'_>) -> Result<(), Box<dyn Error>> {
    match yaml {
        Yaml::Value(Scalar::Null) => json.push_str("null"),
        Yaml::Value(Scalar::Boolean(flag)) => json.push_str(&flag.to_string()),
        Yaml::Value(Scalar::Integer(number)) => json.push_str(&number.to_string()),
        Yaml::Value(Scalar::FloatingPoint(number)) => json.push_str(&number.to_string()),
        Yaml::Value(Scalar::String(text)) => json.push_str(&serde_json::to_string(text)?),
        Yaml::Sequence(items) => {
            json.push('[');
            for (place, item) in items.iter().enumerate() {
                json.push_str(if place == 0 { "" } else { "," });
                write(json, item)?;
            }
            json.push(']');
        }
        Yaml::Mapping(entries) => {
            json.push('{');
            for (place, (name, value)) in entries.iter().enumerate() {
                json.push_str(if place == 0 { "" } else { "," });
                json.push_str(&serde_json::to_string(name.as_str().ok_or("a key is not a string")?)?);
                json.push(':');
                write(json, value)?;
            }
            json.push('}');
        }
        other => return Err(format!("not representable in JSON: {other:?}").into()),
    }
    Ok(())
}
