//! `cargo local export`, and `cargo local import native` with the exported files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::json;
use tempfile::TempDir;

use crate::{done, fails, on_data, printed, serve, stderr};

struct Sandbox {
    directory: TempDir,
}

impl Sandbox {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn export(&self, data: &str, file: &str) -> Command {
        on_data(&["export", "--out", self.path(file).to_str().unwrap()], &self.path(data))
    }

    fn import(&self, file: &str, data: &str) -> Command {
        on_data(&["import", "native", self.path(file).to_str().unwrap()], &self.path(data))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    /// Fills a data directory with a thread that Ada started.
    async fn served(&self, data: &str) {
        let service = serve(&self.path(data));
        let ada = service.member();
        let parent = ada.comment("posts/1", "first").await;
        ada.reply("posts/1", parent, "second").await;
        ada.like(parent).await.ok(200);
        assert!(service.stop().success());
    }
}

#[tokio::test]
async fn an_export_imported_elsewhere_and_exported_again_is_the_same_file() {
    let sandbox = Sandbox::new();
    sandbox.served("data").await;
    assert_eq!(printed(sandbox.export("data", "a.jsonl")), "2 comments exported\n");
    let whole = sandbox.read("a.jsonl");
    assert!(whole.starts_with(r#"{"head":{"format":"comments","version":1,"source":"native","salt":""#), "{whole}");
    assert_eq!(whole.lines().count(), 6, "{whole}");
    assert_eq!(printed(on_data(&["export"], &sandbox.path("data"))), whole);

    let imported = done(sandbox.import("a.jsonl", "other"));
    assert!(imported.stdout.ends_with(b"2 read: 2 new, 0 already there, 0 skipped, 0 refused\n"));
    assert!(stderr(&imported).starts_with("note: ") && stderr(&imported).contains("SVC_VISITOR_SALT"));
    done(sandbox.export("other", "b.jsonl"));
    assert_eq!(sandbox.read("b.jsonl"), whole);
    let again = printed(sandbox.import("a.jsonl", "other"));
    assert!(again.ends_with("2 read: 0 new, 2 already there, 0 skipped, 0 refused\n"));
    assert_eq!(printed(on_data(&["check"], &sandbox.path("other"))), "0 found\n");

    let service = serve(&sandbox.path("other"));
    let list = service.guest().list("posts/1", "").await;
    let comment = &list.json["data"][0];
    assert_eq!((&comment["body"], &comment["likes_count"]), (&json!("first"), &json!(1)));
    assert_eq!(comment["replies"][0]["body"], "second");
}

#[tokio::test]
async fn a_native_file_is_refused_by_a_table_with_other_comments() {
    let sandbox = Sandbox::new();
    sandbox.served("data").await;
    done(sandbox.export("data", "a.jsonl"));
    assert!(printed(sandbox.import("a.jsonl", "data")).contains("0 new, 2 already there"));
    sandbox.served("other").await;
    done(sandbox.export("other", "before.jsonl"));
    for words in [&[] as &[&str], &["--dry-run"]] {
        fails(sandbox.import("a.jsonl", "other").args(words), 3, &["an empty table"]);
    }
    done(sandbox.export("other", "after.jsonl"));
    assert_eq!(sandbox.read("after.jsonl"), sandbox.read("before.jsonl"));
}

#[tokio::test]
async fn an_export_to_a_file_that_ends_in_gz_is_compressed() {
    let sandbox = Sandbox::new();
    sandbox.served("data").await;
    done(sandbox.export("data", "plain.jsonl"));
    done(sandbox.export("data", "small.jsonl.gz"));
    let mut text = String::new();
    GzDecoder::new(fs::File::open(sandbox.path("small.jsonl.gz")).unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, sandbox.read("plain.jsonl"));
    assert!(printed(sandbox.import("small.jsonl.gz", "other")).contains("2 new"));
}

#[tokio::test]
async fn hashed_ids_of_users_are_imported_under_their_salt_alone() {
    let sandbox = Sandbox::new();
    let service = serve(&sandbox.path("data"));
    let token = printed(on_data(&["token", "--id", "eve@idp", "--name", "Eve"], &sandbox.path("data")));
    service.guest().with_token(token.trim()).comment("posts/1", "mine").await;
    assert!(service.stop().success());
    done(sandbox.export("data", "a.jsonl"));
    fails(sandbox.import("a.jsonl", "other"), 3, &["hashed with another salt"]);
    fails(sandbox.import("a.jsonl", "nowhere").arg("--dry-run"), 3, &["hashed with another salt"]);
    fs::create_dir(sandbox.path("same")).unwrap();
    fs::copy(sandbox.path("data/visitor-salt"), sandbox.path("same/visitor-salt")).unwrap();
    let imported = done(sandbox.import("a.jsonl", "same"));
    assert!(String::from_utf8_lossy(&imported.stdout).contains("1 new"));
    assert_eq!(stderr(&imported), "");
    done(sandbox.export("same", "b.jsonl"));
    assert_eq!(sandbox.read("b.jsonl"), sandbox.read("a.jsonl"));
    assert!(sandbox.read("a.jsonl").contains("\"Eve\""));
}

fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[tokio::test]
async fn an_unusable_output_exits_with_3_and_leaves_no_file() {
    let sandbox = Sandbox::new();
    sandbox.served("data").await;
    let missing = format!("error: {}: its directory does not exist\n", sandbox.path("missing/a.jsonl").display());
    fails(sandbox.export("data", "missing/a.jsonl"), 3, &[&missing]);
    fails(sandbox.export("data", "."), 3, &["is a directory"]);
    assert_eq!(names(sandbox.directory.path()), ["data"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_output_device_is_named_in_the_error() {
    let sandbox = Sandbox::new();
    sandbox.served("data").await;
    for words in [&["export"] as &[&str], &["person", "export", "--user", "1"]] {
        let mut command = on_data(words, &sandbox.path("data"));
        fails(command.args(["--out", "/dev/full"]), 3, &["error: /dev/full: No space left on device"]);
    }
}

#[tokio::test]
async fn an_older_export_restores_deleted_comments_written_here_but_not_imported_ones() {
    let sandbox = Sandbox::new();
    let delete_all = async |data: &str| {
        let service = serve(&sandbox.path(data));
        let ada = service.guest().with_token(service.said("member"));
        for parent in ada.list("posts/1", "").await.ids() {
            for id in ada.replies(parent, "").await.ids().into_iter().chain([parent]) {
                ada.remove(id).await.ok(204);
            }
        }
        assert!(service.stop().success());
    };
    sandbox.served("data").await;
    done(sandbox.export("data", "a.jsonl"));
    delete_all("data").await;
    assert!(printed(sandbox.import("a.jsonl", "data")).contains(": 2 new"));
    delete_all("data").await;
    assert!(printed(sandbox.import("a.jsonl", "data")).contains(": 0 new, 0 already there, 2 skipped (deleted 2)"));
}

#[tokio::test]
async fn importing_a_file_cut_off_between_two_lines_exits_with_3_and_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.served("data").await;
    done(sandbox.export("data", "a.jsonl"));
    let whole = sandbox.read("a.jsonl");
    let cut = whole.trim_end().rfind('\n').unwrap() + 1;
    fs::write(sandbox.path("cut.jsonl"), &whole[..cut]).unwrap();
    fails(sandbox.import("cut.jsonl", "other"), 3, &["ends after 4 of 5 records"]);
    assert!(printed(sandbox.import("a.jsonl", "other")).contains("2 new"));
}
