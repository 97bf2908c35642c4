//! Prepares the files that the function serves: converts `openapi.yaml` to JSON, and compresses the scripts in `dist/`
//! and the moderators' page, so that no request has to.

use std::error::Error;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use zopfli::{Format, Options};

const OPENAPI: &str = "../../openapi.yaml";
const FILES: [&str; 4] = ["dist/embed.js", "dist/writer.js", "dist/moderation.js", "embed/moderate.html"];

fn main() -> Result<(), Box<dyn Error>> {
    for path in FILES.iter().chain([&OPENAPI]) {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(out.join("openapi.json"), to_json(&fs::read_to_string(OPENAPI)?)?)?;
    for path in FILES.map(Path::new) {
        let name = path.file_name().ok_or("a file has no name")?;
        fs::write(out.join(name).with_added_extension("gz"), gzip(&fs::read(path)?)?)?;
    }
    Ok(())
}

/// Compresses with three iterations, because more would save only ten bytes.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    let options = Options { iteration_count: NonZeroU64::MIN.saturating_add(2), ..Options::default() };
    zopfli::compress(options, Format::Gzip, bytes, &mut compressed)?;
    Ok(compressed)
}

/// Converts the document to JSON, keeping the order of keys.
fn to_json(source: &str) -> Result<String, Box<dyn Error>> {
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
