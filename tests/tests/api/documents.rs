//! Every link in the documents to a place in the repository leads to an existing file, and to an existing anchor.

use std::fs;
use std::path::{Path, PathBuf};

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["target", "node_modules", ".git", ".local"].contains(&name) {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Returns the text without code, which contains no links.
fn prose(text: &str) -> String {
    let outside = text.split("```").step_by(2).collect::<String>();
    let lines = outside.lines().filter(|line| !line.starts_with("    "));
    lines.flat_map(|line| line.split('`').step_by(2).chain(["\n"])).collect()
}

/// Returns GitHub's anchor for a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn has_anchor(text: &str, anchor: &str) -> bool {
    let mut headings = text.lines().filter(|line| line.starts_with('#')).map(|line| slug(line.trim_start_matches('#')));
    headings.any(|heading| heading == anchor) || text.contains(&format!("<a id=\"{anchor}\">"))
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut documents = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut documents);
    assert!(documents.len() > 25, "{documents:?}");
    let mut broken = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).unwrap();
        let prose = prose(&text);
        let links = ["](", "src=\"", "srcset=\""].into_iter().flat_map(|opening| prose.split(opening).skip(1));
        for link in links.filter_map(|rest| rest.split([')', '"']).next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.clone() } else { document.with_file_name("").join(path) };
            let is_found = target.exists()
                && (anchor.is_empty() || has_anchor(&fs::read_to_string(&target).unwrap_or_default(), anchor));
            if !is_found {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}
