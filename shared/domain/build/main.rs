//! Generates Rust code from the texts in `locales/`, so that Lambda functions don't parse them at startup and contain only the
//! texts that they use.

mod locales;
mod plurals;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "../locales";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed={FOLDER}");
    let locales = locales::read(Path::new(FOLDER))?;
    let mistakes = locales::mistakes(&locales, plurals::rules);
    for mistake in &mistakes {
        println!("cargo::error={FOLDER}: {mistake}");
    }
    if !mistakes.is_empty() {
        return Ok(());
    }
    let directory = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let directory = Path::new(&directory);
    fs::write(directory.join("languages.rs"), locales::languages(&locales))?;
    Ok(fs::write(directory.join("texts.rs"), locales::texts(&locales, plurals::rules))?)
}
