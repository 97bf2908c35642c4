//! Options that would lose data or have a surprising effect are refused before anything changes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::{done, fails, local, on_data, stderr};

const DUMP: &str = r#"<disqus xmlns:dsq="http://disqus.com/disqus-internals">
  <thread dsq:id="1"><link>https://blog.example/hello/</link></thread>
  <post dsq:id="10"><message>one</message><createdAt>2014-01-02T03:04:05Z</createdAt><isDeleted>false</isDeleted>
    <isSpam>false</isSpam><author><name>Ada</name><email>ada@example.org</email></author><thread dsq:id="1"/></post>
</disqus>"#;

/// A directory with a dump, and a data directory with the imported dump.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(place.path("dump.xml"), DUMP).unwrap();
        done(on_data(&["import", "disqus"], &place.path("data")).arg(place.path("dump.xml")));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// `words` are a subcommand and its options. Paths are relative to the folder.
    fn run(&self, words: &str) -> Command {
        let mut command = local(&words.split(' ').collect::<Vec<_>>());
        command.current_dir(self.folder.path());
        command
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.path("data")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

#[test]
fn no_output_replaces_a_file_of_the_data_directory() {
    let place = Place::new();
    let before = place.files();
    for command in [
        "export --out",
        "backup --out",
        "person export --user 7 --out",
        "person erase --user 7 --out",
        "import disqus dump.xml --report",
        "import disqus dump.xml --dry-run --report",
    ] {
        let option = command.rsplit(' ').next().unwrap();
        for name in ["table.db", "visitor-salt", "new", "objects/x.json"] {
            for data_dir in ["data", "other"] {
                let line = format!("{command} data/{name} --data-dir {data_dir}");
                fails(&mut place.run(&line), 2, &[option, "outside the data directory"]);
            }
        }
        assert!(place.files() == before, "{command}");
    }
    for (command, name) in [
        ("export --out", "export.jsonl.gz"),
        ("backup --out", "backup.tar"),
        ("person export --user 7 --out", "person.jsonl"),
        ("person erase --user 7 --out", "receipt.json"),
        ("import disqus dump.xml --report", "report.json"),
    ] {
        done(&mut place.run(&format!("{command} data/{name} --data-dir data")));
        assert!(fs::metadata(place.path("data").join(name)).unwrap().len() > 0, "{command}");
    }
    done(&mut place.run("check --data-dir data"));
}

#[test]
fn a_data_directory_is_recognized_by_all_of_its_names() {
    let place = Place::new();
    let refused = |command: &mut Command| fails(command, 2, &["--out", "outside the data directory"]);
    let before = place.files();
    let absolute = place.path("data/table.db");
    refused(place.run("export --data-dir data --out").arg(&absolute));
    refused(place.run("export --out data/../data/table.db --data-dir").arg(place.path("data")));
    refused(place.run("export --data-dir . --out ./table.db").current_dir(place.path("data")));
    refused(place.run("export --data-dir . --out table.db").current_dir(place.path("data")));
    refused(place.run("export --out data/table.db").env("COMMENTS_DATA_DIR", "data"));
    refused(place.run("backup --out data/table.db").env("COMMENTS_DATA_DIR", "data"));
    refused(&mut place.run("export --table comments --out data/table.db"));
    symlink("data", place.path("link")).unwrap();
    symlink("data/table.db", place.path("table")).unwrap();
    refused(&mut place.run("export --data-dir data --out link/table.db"));
    refused(&mut place.run("export --data-dir link --out data/table.db"));
    refused(&mut place.run("export --data-dir data --out table"));
    symlink("data", place.path(".local")).unwrap();
    refused(&mut place.run("export --out .local/table.db"));
    assert!(place.files() == before);
}

#[test]
fn a_report_cannot_overwrite_an_input_file() {
    let place = Place::new();
    fs::write(place.path("map"), "/a posts/a\n").unwrap();
    fs::write(place.path("users"), "ada 7\n").unwrap();
    symlink("dump.xml", place.path("link.xml")).unwrap();
    let all = "import disqus dump.xml --map map --users users --data-dir data --report";
    for name in ["dump.xml", "./dump.xml", "map", "users", "link.xml"] {
        fails(place.run(all).arg(name), 2, &["--report", "another file"]);
    }
    assert_eq!(fs::read_to_string(place.path("dump.xml")).unwrap(), DUMP);
    assert_eq!(fs::read_to_string(place.path("map")).unwrap(), "/a posts/a\n");
    assert_eq!(fs::read_to_string(place.path("users")).unwrap(), "ada 7\n");
}

#[test]
fn a_failed_import_leaves_the_earlier_report() {
    let place = Place::new();
    fs::write(place.path("report.json"), "earlier").unwrap();
    fs::write(place.path("cut.xml"), &DUMP[..DUMP.len() / 2]).unwrap();
    let names = || fs::read_dir(place.folder.path()).unwrap().count();
    let before = names();
    let output = place.run("import disqus cut.xml --report report.json --data-dir data").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!((fs::read_to_string(place.path("report.json")).unwrap().as_str(), names()), ("earlier", before));
    done(&mut place.run("import disqus dump.xml --report report.json --data-dir data"));
    assert!(fs::read_to_string(place.path("report.json")).unwrap().starts_with("{\n"));
    assert_eq!(names(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_is_printed_with_the_error() {
    let place = Place::new();
    let text = |command: &mut Command| {
        let output = command.output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{error}");
        let (message, report) = error.split_once('\n').unwrap();
        let full = "No space left on device (os error 28); the work is done, so save this report:";
        assert!(message.starts_with("error: ") && message.ends_with(full), "{error}");
        report.to_owned()
    };
    let reported = |command: &mut Command| -> Value { serde_json::from_str(&text(command)).unwrap() };
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let erase = "person erase --email ada@example.org --data-dir";
    let receipt = reported(&mut place.run(&format!("{erase} data --out /dev/full")));
    assert_eq!(receipt["gone"]["comments"], 1, "{receipt}");
    let import = "import disqus dump.xml --data-dir new --report";
    assert_eq!(reported(&mut place.run(&format!("{import} /dev/full")))["new"], 1);
    let printed = text(place.run("import disqus dump.xml --data-dir printed").stdout(full()));
    assert!(printed.starts_with("posts/hello: 1\n1 read: 1 new, "), "{printed}");
    let receipt = reported(place.run(&format!("{erase} new")).stdout(full()));
    assert_eq!(receipt["gone"]["comments"], 1, "{receipt}");
    let output = place.run(&format!("{import} report.json")).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(fs::read_to_string(place.path("report.json")).unwrap().contains("\"deleted\": 1"));
}

/// Tests `/dev/fd/1`, which is like `/dev/stdout` but in a directory where no file can be replaced.
#[cfg(target_os = "linux")]
#[test]
fn an_output_device_may_be_a_pipe_but_not_point_to_a_file() {
    let place = Place::new();
    for command in ["import disqus dump.xml --report", "export --out"] {
        let mut command = place.run(&format!("{command} /dev/fd/1 --data-dir data"));
        assert!(done(&mut command).stdout.contains(&b'{'), "{command:?}");
        let output = command.stdout(File::create(place.path("printed")).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(stderr(&output).ends_with("/dev/fd/1 points to a file; pass the file itself\n"), "{}", stderr(&output));
    }
}

#[test]
fn person_commands_accept_only_one_person() {
    for line in [
        "person export --user 7 --user 8",
        "person erase --user 7 --user 8",
        "person erase --email a@b.org --email c@d.org",
    ] {
        fails(&mut local(&line.split(' ').collect::<Vec<_>>()), 2, &["one person"]);
    }
}

#[test]
fn person_commands_accept_only_one_email_address() {
    let place = Place::new();
    for address in ["a@b.org,c@d.org", "a@b.org;c@d.org", "a@b.org c@d.org", "Ada <a@b.org>", "<a@b.org>", "a@b@c.org"]
    {
        for command in ["person erase --data-dir data --email", "person export --data-dir data --email"] {
            fails(place.run(command).arg(address), 2, &["--email", "one address, such as ada@example.org"]);
        }
    }
    done(place.run("person erase --data-dir data --email").arg(" Ada@Example.org "));
}

#[test]
fn trusted_proxies_cannot_include_every_address() {
    let place = Place::new();
    for everyone in ["0.0.0.0/0", "::/0", "10.0.0.0/8,0.0.0.0/0", "1.2.3.4/0", "::ffff:0.0.0.0/96"] {
        let mut command = place.run("serve --data-dir new --listen 127.0.0.1:0 --trusted-proxies");
        command.arg(everyone).env("SVC_PUBLIC_URL", "https://comments.example.org");
        fails(&mut command, 2, &["--trusted-proxies", "list the proxies' own addresses"]);
    }
    assert!(!place.path("new").exists());
}

#[test]
fn keep_query_accepts_only_parameter_names() {
    let place = Place::new();
    for names in ["?p", "p=", "p=1", "p;q", "p q", "&p", "p#", "id,?p"] {
        let mut command = place.run("import disqus dump.xml --data-dir data --keep-query");
        fails(command.arg(names), 2, &["--keep-query", "only names, such as p,id"]);
    }
    done(place.run("import disqus dump.xml --data-dir data --keep-query").arg("p, id,"));
}

#[test]
fn restore_recognizes_an_export_and_prints_no_content_of_other_files() {
    let place = Place::new();
    done(&mut place.run("export --data-dir data --out site.jsonl"));
    done(&mut place.run("export --data-dir data --out site.jsonl.gz"));
    done(&mut place.run("person export --user 7 --data-dir data --out person.jsonl"));
    let restore = |name: &str| {
        let output = place.run(&format!("restore {name} --data-dir new")).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}");
        assert!(!place.path("new").exists());
        stderr(&output).to_owned()
    };
    for name in ["site.jsonl", "site.jsonl.gz", "person.jsonl"] {
        assert_eq!(restore(name), format!("error: {name}: this is an export, not a backup; use import native\n"));
    }
    fs::write(place.path("secrets"), "password=hunter2 ".repeat(200)).unwrap();
    let mut compressed = GzEncoder::new(File::create(place.path("secrets.gz")).unwrap(), Compression::fast());
    compressed.write_all("password=hunter2 ".repeat(200).as_bytes()).unwrap();
    compressed.finish().unwrap();
    fs::write(place.path("short"), "password=hunter2").unwrap();
    for (name, content) in [("manifest.json", "\"hunter2\""), ("hunter2", "x")] {
        let mut archive = tar::Builder::new(File::create(place.path(&format!("{name}.tar"))).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, Path::new(name), content.as_bytes()).unwrap();
        archive.into_inner().unwrap().write_all(b"hunter2 ").unwrap();
    }
    for name in ["secrets", "secrets.gz", "short"] {
        assert_eq!(restore(name), format!("error: {name}: it is not a backup; pass a file that backup wrote\n"));
    }
    for name in ["manifest.json.tar", "hunter2.tar"] {
        let error = restore(name);
        assert!(!error.replace(name, "").contains("hunter2"), "{error}");
    }
}
