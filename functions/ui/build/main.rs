//! Makes what the function serves: `openapi.yaml` as JSON, and the modules of `embed/` joined, squeezed and compressed.

mod compress;
mod join;
mod openapi;
mod shorten;
mod squeeze;

use std::error::Error;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use join::{Bundle, Sources};

const OPENAPI: &str = "../../openapi.yaml";
const EMBED: &str = "embed";

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["build", OPENAPI, EMBED] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(out.join("openapi.json"), openapi::to_json(&fs::read_to_string(OPENAPI)?)?)?;
    match scripts(&read(Path::new(EMBED))?) {
        Ok(scripts) => write(&out, scripts),
        Err(mistake) => {
            println!("cargo::error={EMBED}: {mistake}");
            Ok(())
        }
    }
}

/// The files of the widget and of the moderators' page.
struct Scripts {
    reader: String,
    writer: String,
    /// The name of the writer, which changes with its text.
    writer_name: String,
    moderation: String,
}

fn scripts(sources: &Sources) -> Result<Scripts, String> {
    let reader = Bundle::new(sources, "reader/element.js", None)?;
    let writer = Bundle::new(sources, "writer/index.js", Some(&reader))?;
    let moderation = Bundle::new(sources, "moderation/element.js", None)?;
    join::all_are_reached(sources, &[&reader, &writer, &moderation])?;
    let text = small(&writer.part());
    let writer_name = format!("writer.{:016x}.js", hash(&text));
    Ok(Scripts {
        reader: small(&reader.loading(&writer, &format!("./embed/{writer_name}"))?),
        writer: text,
        writer_name,
        moderation: small(&moderation.text()),
    })
}

/// A script without what only its authors need.
fn small(script: &str) -> String {
    squeeze::merge(&shorten::shorten(&squeeze::tight(script)))
}

/// The modules below a folder.
fn read(folder: &Path) -> io::Result<Sources> {
    let mut sources = Sources::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        for file in fs::read_dir(&path)? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "js") {
                let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().replace('\\', "/");
                sources.insert(name, fs::read_to_string(&file)?);
            }
        }
    }
    Ok(sources)
}

/// Only distinguishes versions of one file, so a fast hash is enough.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

fn write(out: &Path, scripts: Scripts) -> Result<(), Box<dyn Error>> {
    fs::write(out.join("writer.name"), scripts.writer_name)?;
    let page = fs::read_to_string(Path::new(EMBED).join("moderate.html"))?;
    let files = [
        ("embed.js", scripts.reader),
        ("writer.js", scripts.writer),
        ("moderation.js", scripts.moderation),
        ("moderate.html", page),
    ];
    for (name, text) in files {
        fs::write(out.join(format!("{name}.gz")), compress::gzip(text.as_bytes())?)?;
        fs::write(out.join(name), text)?;
    }
    Ok(())
}
