//! `cargo local import`: exit codes, reports, and the API's responses afterwards.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::{assert_in_order, done, fails, limited, local, on_data, printed, serve, stderr};

const DISQUS: &str = r#"<?xml version="1.0"?>
<disqus xmlns:dsq="http://disqus.com/disqus-internals">
  <thread dsq:id="1"><link>https://blog.example/hello/</link><title>Hello</title></thread>
  <thread dsq:id="2"><id/></thread>
  <post dsq:id="10"><message><![CDATA[<p>One <b>bold</b></p>]]></message><createdAt>2014-01-02T03:04:05Z</createdAt>
    <isDeleted>false</isDeleted><isSpam>false</isSpam><author><name>Ada</name><email>ada@blog.example</email></author>
    <thread dsq:id="1"/></post>
  <post dsq:id="11"><message>two</message><createdAt>2014-01-02T03:04:06Z</createdAt>
    <isDeleted>false</isDeleted><isSpam>false</isSpam><author><name>Bob</name></author>
    <thread dsq:id="1"/><parent dsq:id="10"/></post>
  <post dsq:id="12"><message>pills</message><createdAt>2014-01-02T03:04:07Z</createdAt>
    <isDeleted>false</isDeleted><isSpam>true</isSpam><author><name>Eve</name></author><thread dsq:id="1"/></post>
</disqus>"#;
/// A comment on a page without a URL.
const NOWHERE: &str = r#"<post dsq:id="13"><message>three</message><createdAt>2014-01-02T03:04:08Z</createdAt>
    <isDeleted>false</isDeleted><isSpam>false</isSpam><author><name>Bob</name></author><thread dsq:id="2"/></post>
</disqus>"#;

fn import(words: &[&str], file: &Path, data_dir: &Path) -> Output {
    let mut command = on_data(&["import"], data_dir);
    command.args(words).arg(file).output().unwrap()
}

fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn an_imported_thread_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("dump.xml"), directory.path().join("data"));
    fs::write(&file, DISQUS).unwrap();
    let output = import(&["disqus"], &file, &data);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "nothing but the report when piped");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, "posts/hello: 2\n3 read: 2 new, 0 already there, 1 skipped (spam 1), 0 refused\n");

    let service = serve(&data);
    let list = service.guest().list("posts/hello", "").await;
    let comment = &list.json["data"][0];
    assert_eq!(comment["body"], "One **bold**");
    assert_eq!(comment["created_at"], "2014-01-02T03:04:05+00:00");
    assert_eq!((&comment["user"]["id"], &comment["user"]["name"]), (&Value::Null, &json!("Ada")));
    assert_eq!((&comment["replies"][0]["body"], &comment["replies_count"]), (&json!("two"), &json!(1)));
    assert!(!list.json.to_string().contains("ada@blog.example"));
    assert!(service.stop().success());
    assert_in_order(&data);

    let again = import(&["disqus"], &file, &data);
    assert!(String::from_utf8(again.stdout).unwrap().contains("3 read: 0 new, 2 already there, 1 skipped"));
}

#[test]
fn a_dry_run_writes_nothing_and_reports_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("dump.xml"), directory.path().join("data"));
    let (dry, real) = (directory.path().join("dry.json"), directory.path().join("real.json"));
    fs::write(&file, DISQUS.replace("</disqus>", NOWHERE)).unwrap();
    let dry_run = import(&["disqus", "--dry-run", "--report", dry.to_str().unwrap()], &file, &data);
    assert_eq!(dry_run.status.code(), Some(1));
    assert!(!data.exists());
    let real_run = import(&["disqus", "--report", real.to_str().unwrap()], &file, &data);
    assert_eq!(real_run.status.code(), Some(1));
    assert_eq!(dry_run.stdout, real_run.stdout);
    assert_eq!(report(&dry), report(&real));
    let expected = json!({
        "read": 4, "new": 2, "already_there": 0, "skipped": { "spam": 1 }, "refused": [{ "id": "13", "reason": "thread" }],
        "threads": { "posts/hello": 2 }, "unmapped": ["2"], "moved": [], "cut": [], "missing": [],
    });
    assert_eq!(report(&real), expected);
    let later = import(&["disqus", "--dry-run", "--report", dry.to_str().unwrap()], &file, &data);
    assert_eq!(later.status.code(), Some(1));
    assert_eq!((&report(&dry)["new"], &report(&dry)["already_there"]), (&json!(0), &json!(2)));
}

#[test]
fn a_map_assigns_comments_to_threads_and_a_dash_reads_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let (map, file) = (directory.path().join("map"), directory.path().join("dump.xml"));
    fs::write(&map, "2 posts/two\nhttps://blog.example/* posts/blog:*\n").unwrap();
    fs::write(&file, DISQUS.replace("</disqus>", NOWHERE)).unwrap();
    let words = ["import", "disqus", "-", "--map", map.to_str().unwrap()];
    let mut command = on_data(&words, &directory.path().join("data"));
    command.stdin(Stdio::from(fs::File::open(&file).unwrap()));
    let stdout = printed(command);
    assert!(stdout.starts_with("posts/blog:hello: 2\nposts/two: 1\n"), "{stdout}");
}

#[test]
fn wrong_usage_exits_with_2_and_names_the_mistake() {
    let directory = tempfile::tempdir().unwrap();
    let map = directory.path().join("map");
    fs::write(&map, "one posts/1\ntwo\n").unwrap();
    let map = map.to_str().unwrap();
    for (words, named) in
        [(["--map", map], "line 2"), (["--users", "/nowhere"], "--users"), (["--site", " "], "--site")]
    {
        fails(local(&["import", "disqus", "x"]).args(words), 2, &[named]);
    }
    fails(local(&["import", "disqus", "-", "-"]), 2, &["standard input can be read only once"]);
}

#[test]
fn an_unusable_source_exits_with_3_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("dump.xml"), directory.path().join("data"));
    let cut = DISQUS.find("</post>").unwrap();
    fs::write(&file, &DISQUS[..cut]).unwrap();
    let output = import(&["disqus"], &file, &data);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stderr(&output), format!("error: {}: byte {cut}: the file ends inside <post>\n", file.display()));
    assert!(output.stdout.is_empty() && !data.exists());
    fs::write(&file, DISQUS).unwrap();
    let whole = import(&["disqus"], &file, &data);
    assert!(String::from_utf8(whole.stdout).unwrap().contains(" 2 new"));
}

#[test]
fn a_missing_file_or_an_unwritable_report_fails_before_a_data_directory_is_created() {
    let directory = tempfile::tempdir().unwrap();
    let [data, dump, missing, report] =
        ["data", "dump.xml", "none.xml", "no/report.json"].map(|name| directory.path().join(name));
    fs::write(&dump, DISQUS).unwrap();
    let with_report = ["disqus", "--report", report.to_str().unwrap()];
    for (words, file, named, why) in [
        (&with_report[..1], missing.as_path(), missing.as_path(), "No such file"),
        (&with_report[..1], directory.path(), directory.path(), "is a directory"),
        (&with_report, &dump, &report, "its directory does not exist"),
    ] {
        let output = import(words, file, &data);
        assert_eq!(output.status.code(), Some(3));
        let message = stderr(&output);
        assert!(message.starts_with(&format!("error: {}: {why}", named.display())), "{message}");
        assert!(message.lines().count() == 1 && !data.exists(), "{message}");
    }
}

#[test]
fn a_source_in_another_encoding_is_imported_with_advice_and_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let [file, data] = ["waline.json", "data"].map(|name| directory.path().join(name));
    let comment =
        json!({ "objectId": "1", "nick": "René", "comment": "Hi", "url": "/a", "insertedAt": "2022-02-03T04:05:06Z" });
    let text: Vec<u8> = json!([comment]).to_string().chars().map(|c| u8::try_from(c).unwrap()).collect();
    fs::write(&file, text).unwrap();
    let output = import(&["waline"], &file, &data);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("\nincomplete: 1 (")
            && stdout.contains("save it as UTF-8")
            && !stdout.contains("export it again"),
        "{stdout}"
    );
}

/// With exit code 0, a partial import would look complete.
#[test]
fn an_incomplete_source_is_imported_and_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let [first, last, data] = ["first.json", "last.json", "data"].map(|name| directory.path().join(name));
    let page = |id: &str, more: bool| {
        let comment =
            format!(r#"{{"id":"c{id}","body":"Hi","createdAt":"2022-02-03T04:05:06Z","author":{{"login":"ada"}}}}"#);
        json!({ "data": { "repository": { "discussions": {
            "totalCount": 2,
            "pageInfo": { "hasNextPage": more },
            "nodes": [{ "id": id, "title": format!("posts/{id}"), "comments": { "nodes": [
                serde_json::from_str::<Value>(&comment).unwrap(),
            ] } }],
        } } } })
        .to_string()
    };
    fs::write(&first, page("1", true)).unwrap();
    fs::write(&last, page("2", false)).unwrap();

    let path = directory.path().join("report.json");
    let output = import(&["giscus", "--report", path.to_str().unwrap()], &first, &data);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("1 read: 1 new"), "{stdout}");
    assert!(stdout.contains("\nincomplete: discussions (1 of 2)\n"), "{stdout}");
    assert_eq!(report(&path)["missing"], json!([{ "id": "discussions", "read": 1, "total": 2 }]));

    let whole = import(&["giscus", last.to_str().unwrap()], &first, &data);
    assert_eq!(whole.status.code(), Some(0), "all pages in one command: {}", stderr(&whole));
}

#[test]
fn possible_mistakes_are_noted_beside_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let (data, map) = (directory.path().join("data"), directory.path().join("map"));
    let (file, empty) = (directory.path().join("dump.xml"), directory.path().join("empty.xml"));
    fs::write(&file, DISQUS).unwrap();
    fs::write(&empty, "<disqus></disqus>").unwrap();
    fs::write(&map, "https://blog.example/* videos/*\n").unwrap();
    let hidden = |kind: &str| format!("note: SVC_TYPES has no {kind}; add it to show those comments\n");
    let nothing = import(&["disqus"], &empty, &data);
    assert_eq!(stderr(&nothing), format!("note: {} has no comments\n", empty.display()));
    for (words, kind) in [(["--map", map.to_str().unwrap()], "videos"), (["--type", "pages"], "pages")] {
        let output = import(&["disqus", "--dry-run", words[0], words[1]], &file, &data);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), hidden(kind).as_str()));
    }
    fs::write(&map, "nowhere videos/1\n").unwrap();
    let unused = import(&["disqus", "--dry-run", "--map", map.to_str().unwrap()], &file, &data);
    assert_eq!((unused.status.code(), stderr(&unused)), (Some(0), hidden("videos").as_str()));
    fs::write(&map, "nowhere users/1\n").unwrap();
    let reserved = import(&["disqus", "--map", map.to_str().unwrap()], &file, &data);
    let by_type = import(&["disqus", "--type", "users"], &file, &data);
    let why = "records cannot have this type; see SVC_TYPES";
    assert!(stderr(&reserved).contains(why) && stderr(&by_type).contains(why), "{}", stderr(&reserved));
    let mut known = on_data(&["import", "disqus", "--type", "pages"], &data);
    let known = known.arg(&file).env("SVC_TYPES", "posts,pages").output().unwrap();
    assert_eq!((known.status.code(), stderr(&known)), (Some(0), ""));
}

#[tokio::test]
async fn every_option_has_its_effect() {
    let directory = tempfile::tempdir().unwrap();
    let (file, users, data) =
        (directory.path().join("dump.xml"), directory.path().join("users"), directory.path().join("data"));
    let post = |id: usize, thread: usize, more: &str| {
        format!(
            r#"<post dsq:id="{id}"><message>of {id}</message><createdAt>2014-07-02T03:04:05</createdAt>
            <author><name>Ada</name><email>ada@blog.example</email></author><thread dsq:id="{thread}"/>{more}</post>"#
        )
    };
    let links = ["https://blog.example/?p=4&amp;utm=1", "https://other.example/", "http://www.blog.example/gone/"];
    let thread = |(link, id): (&&str, u32)| format!(r#"<thread dsq:id="{id}"><link>{link}</link></thread>"#);
    let threads: Vec<String> = links.iter().zip(1..).map(thread).collect();
    let posts = [
        post(10, 1, ""),
        post(11, 1, "<isSpam>true</isSpam>"),
        post(12, 2, ""),
        post(13, 3, "<isApproved>false</isApproved>"),
    ];
    fs::write(&file, format!("<disqus>{}{}</disqus>", threads.concat(), posts.concat())).unwrap();
    fs::write(&users, "ada@blog.example 7\n").unwrap();
    let words = "disqus --host blog.example --host WWW.blog.example --keep-query id,p --spam keep --zone Europe/Berlin";
    let words: Vec<&str> = words.split(' ').chain(["--users", users.to_str().unwrap()]).collect();
    let output = import(&words, &file, &data);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), ""));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        stdout,
        "refused 1 as host: 12\nposts/gone: 1\nposts/~3Fp~3D4: 2\n4 read: 3 new, 0 already there, 0 skipped, 1 refused\n"
    );
    let service = serve(&data);
    let list = service.guest().list("posts/~3Fp~3D4", "").await;
    let comment = &list.json["data"][0];
    assert_eq!((&comment["body"], &list.json["meta"]["total"]), (&json!("of 10"), &json!(1)));
    assert_eq!((&comment["user"]["id"], &comment["created_at"]), (&json!(7), &json!("2014-07-02T01:04:05+00:00")));
    let moderator = service.guest().with_token(service.said("moderator"));
    for (state, body, held_for) in [("pending", "of 13", json!("approval")), ("rejected", "of 11", Value::Null)] {
        let queue = moderator.get(&format!("moderation/comments?state={state}")).await.ok(200);
        let found = queue.rows();
        assert_eq!((found.len(), &found[0]["body"], &found[0]["held_for"]), (1, &json!(body), &held_for), "{state}");
    }
}

/// Waline's exports don't name their site.
#[test]
fn a_second_site_without_a_name_is_refused_and_can_be_imported_under_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let comment = |id: usize, page: &str, name: &str| json!({ "objectId": id, "url": page, "nick": name, "comment": format!("{id} of {name}"), "insertedAt": "2020-01-02 03:04:05" });
    let site = |file: &str, page: &str, name: &str, count: usize| {
        let path = directory.path().join(file);
        let comments: Vec<Value> = (1..=count).map(|id| comment(id, page, name)).collect();
        fs::write(&path, json!({ "type": "waline", "version": 1, "data": { "Comment": comments } }).to_string())
            .unwrap();
        path
    };
    let (ada, bob) = (site("a", "/hello/", "Ada", 6), site("b", "/other/", "Bob", 9));
    let stdout = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout(&import(&["waline"], &ada, &data)).contains(": 6 new"));
    let refused = import(&["waline", "--dry-run"], &bob, &data);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stdout(&refused).starts_with("refused 6 as site: 1, 2, 3, 4, 5 and 1 more\n"), "{}", stdout(&refused));
    assert!(stdout(&refused).contains("--site"), "{}", stdout(&refused));
    let named = import(&["waline", "--site", "bob.example"], &bob, &data);
    assert_eq!(
        (named.status.code(), stdout(&named).contains(": 9 new, 0 already there")),
        (Some(0), true),
        "{}",
        stdout(&named)
    );
    for (words, file, count) in
        [(&["waline"][..], &ada, 6), (&["waline", "--site", "https://bob.example/"][..], &bob, 9)]
    {
        let again = import(words, file, &data);
        assert!(stdout(&again).contains(&format!(": 0 new, {count} already there")), "{}", stdout(&again));
    }
    assert_in_order(&data);
}

fn long_dump() -> String {
    let mut lines = String::new();
    for page in 0..4 {
        let thread = json!({ "thread": { "key": page.to_string(), "url": format!("/{page}") } });
        lines.extend([thread.to_string().as_str(), "\n"]);
    }
    for id in 0..3_000 {
        let parent = (id >= 40).then(|| (id % 40).to_string());
        let comment = json!({
            "source_id": id.to_string(), "thread": (id % 4).to_string(), "parent": parent, "body": format!("comment {id}"),
            "created_at": "2020-01-02T03:04:05Z", "state": if id % 50 == 7 { "pending" } else { "approved" },
        });
        lines.extend([json!({ "comment": comment }).to_string().as_str(), "\n"]);
    }
    lines
}

#[test]
fn an_import_that_was_killed_is_finished_by_the_same_command() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("dump.jsonl"), directory.path().join("data"));
    fs::write(&file, long_dump()).unwrap();
    let words = ["import", "native", file.to_str().unwrap(), "--rate", "1500"];
    let mut command: Command = on_data(&words, &data);
    let mut import = command.stdout(Stdio::null()).spawn().unwrap();
    // Waits until some comments are written, which makes the log grow.
    let table = data.join("table.db-wal");
    while fs::metadata(&table).map_or(0, |metadata| metadata.len()) < 3_000_000 && import.try_wait().unwrap().is_none()
    {
        std::thread::yield_now();
    }
    assert!(import.try_wait().unwrap().is_none(), "it was too fast to be killed");
    import.kill().unwrap();
    import.wait().unwrap();
    let names = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert_eq!(left, [""; 0], "the temporary file holds addresses");
    let check = on_data(&["check", "--repair"], &data).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    let found = String::from_utf8_lossy(&check.stdout);
    assert!(found.contains("an import is unfinished"), "{found}");
    let out = directory.path().join("half.jsonl");
    fails(on_data(&["export", "--out", out.to_str().unwrap()], &data), 3, &["is unfinished"]);
    assert!(!out.exists());
    let stdout = printed(on_data(&["import", "native", file.to_str().unwrap()], &data));
    assert!(stdout.contains("3000 read: ") && !stdout.contains(": 3000 new"), "{stdout}");
    assert_in_order(&data);
}

#[test]
fn an_old_file_brings_no_erased_person_back_after_a_move() {
    let directory = tempfile::tempdir().unwrap();
    let (file, export) = (directory.path().join("dump.xml"), directory.path().join("export.jsonl"));
    let [data, moved] = ["data", "moved"].map(|name| directory.path().join(name));
    fs::write(&file, DISQUS).unwrap();
    assert!(import(&["disqus"], &file, &data).status.success());
    done(on_data(&["person", "erase", "--email", "ada@blog.example"], &data));
    done(on_data(&["export", "--out", export.to_str().unwrap()], &data));
    fs::create_dir(&moved).unwrap();
    fs::copy(data.join("visitor-salt"), moved.join("visitor-salt")).unwrap();
    assert!(import(&["native"], &export, &moved).status.success());
    for data in [&data, &moved] {
        let again = import(&["disqus"], &file, data);
        let printed = String::from_utf8_lossy(&again.stdout);
        assert!(printed.contains("0 new, 2 already there"), "{printed}{}", stderr(&again));
    }
}

/// A file size limit acts like a full disk.
#[test]
fn a_directory_whose_disk_was_full_at_the_first_import_is_usable_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.xml");
    fs::write(&dump, DISQUS).unwrap();
    for (kilobytes, has_salt) in [16, 64, 96, 192].into_iter().flat_map(|limit| [(limit, false), (limit, true)]) {
        let data_dir = folder.path().join(format!("{kilobytes} {has_salt}"));
        if has_salt {
            // The salt of a service that moves to this machine.
            fs::create_dir(&data_dir).unwrap();
            fs::write(data_dir.join("visitor-salt"), "a-salt-of-at-least-sixteen-bytes").unwrap();
        }
        let import_dump = on_data(&["import", "disqus", dump.to_str().unwrap()], &data_dir);
        let full = limited(kilobytes, &import_dump).output().unwrap();
        assert_eq!(full.status.code(), Some(3), "{kilobytes}: {}", stderr(&full));
        assert!(!stderr(&full).contains("backup"), "{}", stderr(&full));
        done(import_dump);
    }
}
