//! `cargo local person`: receipts, exit codes, killed services, and imports afterwards.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tests::{Actor, SECRET, Service, sign};
use tokio::task::JoinSet;

use crate::killed::serve_all;
use crate::{assert_in_order, done, fails, limited, local, on_data, printed, serve, stderr};

/// A page with two comments by Ada: the first has a reply by Bob, and the second has none.
fn dump(first: &str) -> String {
    let thread = json!({ "thread": { "key": "/a", "url": "/a", "author_id": 7 } });
    let comment = |id: &str, parent: Option<&str>, author: Value| {
        json!({ "comment": {
            "source_id": id, "thread": "/a", "parent": parent, "author": author, "body": format!("comment {id}"),
            "created_at": "2020-01-02T03:04:05Z",
        } })
    };
    let ada = || json!({ "name": "Ada Lovelace", "email": "Ada@Example.org", "key": "ada-key" });
    let second = format!("{first}-2");
    let lines = [
        thread,
        comment(first, None, ada()),
        comment("answer", Some(first), json!({ "name": "Bob" })),
        comment(&second, None, ada()),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

fn import(dump: &str, words: &[&str], data: &Path) -> String {
    let file = data.with_extension("jsonl");
    fs::write(&file, dump).unwrap();
    printed(on_data(&["import", "native", file.to_str().unwrap()], data).args(words))
}

fn erase(who: &[&str], data: &Path) -> Output {
    on_data(&["person", "erase"], data).args(who).output().unwrap()
}

fn receipt(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn contains(directory: &Path, text: &str) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return contains(&path, text);
        }
        // A killed service leaves its backup socket behind.
        path.is_file()
            && fs::read(path).unwrap().windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
    })
}

#[tokio::test]
async fn an_erased_guest_leaves_the_files_and_does_not_come_back_with_an_import() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    import(&dump("ada-1"), &[], &data);
    assert!(contains(&data, "Ada Lovelace"));
    let erased = receipt(&erase(&["--email", " ada@example.ORG"], &data));
    assert_eq!((&erased["gone"], &erased["left"]), (&json!({ "comments": 1, "placeholders": 1 }), &json!(0)));
    assert!(
        erased["who"].as_str().unwrap().len() == 22 && erased["at"].as_str().unwrap().ends_with("+00:00"),
        "{erased}"
    );
    assert_eq!((&erased["stays"][0]["what"], &erased["stays"][1]), (&json!("backups"), &Value::Null));
    assert_in_order(&data);
    for text in ["Ada Lovelace", "ada-1", "ada@example.org", "comment ada"] {
        assert!(!contains(&data, text), "{text}");
    }
    let again = receipt(&erase(&["--email", "ada@example.org"], &data));
    assert_eq!((&again["gone"], &again["left"], &again["who"]), (&json!({}), &json!(0), &erased["who"]));
    assert!(!data.join("objects").exists(), "a folder that the service's user may not write to");

    let same = import(&dump("ada-1"), &[], &data);
    assert!(same.contains("3 read: 0 new, 2 already there, 1 skipped (deleted 1)"), "{same}");
    // The reply stays below the first placeholder, so no other placeholder is needed.
    let other = import(&dump("another"), &[], &data);
    assert!(other.contains("3 read: 0 new, 1 already there, 2 skipped (deleted 2)"), "{other}");
    assert_in_order(&data);
    for text in ["Ada Lovelace", "ada-1", "ada@example.org", "comment another"] {
        assert!(!contains(&data, text), "{text}");
    }
    let service = serve(&data);
    let list = service.guest().list("posts/a", "").await;
    assert!(list.rows().iter().all(|row| row["is_deleted"] == json!(true)), "{:#}", list.json);
    assert_eq!(list.rows().iter().filter(|row| row["replies"][0]["body"] == "comment answer").count(), 1);
    assert!(service.stop().success());
}

/// Exports a member's and a moderator's comments, likes and reports, and returns the content of the file.
async fn exported(data: &Path) -> String {
    let service = serve(data);
    let (ada, grace) = (service.member(), service.guest().with_token(service.said("moderator")));
    let answered = ada.comment("posts/1", "of a member").await;
    grace.reply("posts/1", answered, "answer").await;
    ada.comment("posts/1", "of a member alone").await;
    let other = grace.comment("posts/1", "of a moderator").await;
    ada.like(other).await.ok(200);
    let report = json!({ "reason": "spam", "additional_details": "told by a member" });
    ada.post(&format!("comments/{other}/report"), report).await.ok(201);
    grace.put("posts/1", json!({ "author_id": 1, "title": "A page" })).await.ok(200);
    assert!(service.stop().success());
    let file = data.with_extension("export");
    done(on_data(&["export", "--out", file.to_str().unwrap()], data));
    fs::read_to_string(file).unwrap()
}

#[tokio::test]
async fn an_export_from_before_an_erasure_restores_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let export = exported(&data).await;
    assert!(export.contains(r#""name":"Ada""#) && export.contains("told by a member"), "{export}");
    let erased = receipt(&erase(&["--user", "1"], &data));
    let gone = &erased["gone"];
    assert_eq!(
        (&gone["comments"], &gone["placeholders"], &gone["likes"], &gone["reports"]),
        (&json!(1), &json!(1), &json!(1), &json!(1))
    );
    assert_in_order(&data);
    let again = import(&export, &[], &data);
    assert!(again.contains("4 read: 0 new, 3 already there, 1 skipped (deleted 1), 0 refused"), "{again}");
    assert_in_order(&data);
    for text in ["of a member", "told by a member"] {
        assert!(!contains(&data, text), "{text}");
    }
    assert_eq!(receipt(&erase(&["--user", "1"], &data))["gone"], json!({}));

    // Another table accepts everyone else's data, but not the person's.
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(data.join("visitor-salt"), elsewhere.join("visitor-salt")).unwrap();
    import(&format!("{}\n", json!({ "thread": { "key": "/a", "url": "/a" } })), &[], &elsewhere);
    receipt(&erase(&["--user", "1"], &elsewhere));
    let new = import(&export, &[], &elsewhere);
    assert!(new.contains("4 read: 3 new, 0 already there, 1 skipped (deleted 1), 0 refused"), "{new}");
    assert_in_order(&elsewhere);
    for text in ["of a member", "told by a member", r#""Ada""#] {
        assert!(!contains(&elsewhere, text), "{text}");
    }
    assert_eq!(receipt(&erase(&["--user", "1"], &elsewhere))["gone"], json!({}));
}

/// The name, picture and email address in a member's token.
const MEMBER: [&str; 3] = ["Septima Severus", "https://pictures.example/septima.png", "severus@private.example"];

fn septima(service: &Service) -> Actor {
    let [name, picture, email] = MEMBER;
    let claims = json!({
        "sub": "7", "name": name, "picture": picture, "email": email, "exp": Timestamp::now().as_second() + 3600,
    });
    service.guest().with_token(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET))
}

/// Writes replies to `parent`, reports it and has comments rejected, until the service is down. Counts the replies in
/// `written`.
async fn write_until_gone(member: Actor, moderator: Actor, parent: u64, written: Arc<AtomicUsize>) -> Option<()> {
    loop {
        let comment =
            json!({ "body": "a text of sevenfold interest", "parent_id": parent, "subscribe_to_replies": true });
        let id = member.try_send(Method::POST, "posts/1/comments", &comment).await?.ok(201).id();
        moderator.try_send(Method::POST, &format!("comments/{id}/reject"), &Value::Null).await?;
        member.try_send(Method::POST, &format!("comments/{parent}/like"), &Value::Null).await?;
        let report = json!({ "reason": "spam", "additional_details": "words of sevenfold anger" });
        member.try_send(Method::POST, &format!("comments/{parent}/report"), &report).await?;
        written.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_a_member_in_a_killed_service_is_erased_and_never_restored() {
    const WRITERS: usize = 6;
    const COMMENTS: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut service = serve_all(&data);
    let (bob, moderator) = (service.member(), service.guest().with_token(service.said("moderator")));
    let written = Arc::<AtomicUsize>::default();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let parent = bob.comment("posts/1", "by another member").await;
        let write = write_until_gone(septima(&service), moderator.clone(), parent, Arc::clone(&written));
        writers.push(tokio::spawn(write));
    }
    let start = Instant::now();
    while written.load(Ordering::Relaxed) < COMMENTS && start.elapsed() < Duration::from_mins(1) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    service.kill();
    for writer in writers {
        writer.await.unwrap();
    }

    let texts = [MEMBER.as_slice(), &["severus", "sevenfold"]].concat();
    assert!(contains(&data, "sevenfold"));
    let erased = receipt(&erase(&["--user", "7"], &data));
    assert_eq!(erased["left"], 0, "{erased}");
    assert!(erased["gone"]["changes"].as_u64() > Some(0), "the service had followed up on everything: {erased}");
    let is_gone = || {
        for text in &texts {
            assert!(!contains(&data, text), "{text}");
        }
    };
    is_gone();
    assert_in_order(&data);

    let service = serve_all(&data);
    let list = service.guest().list("posts/1", "").await;
    assert_eq!(list.rows().len(), WRITERS);
    assert!(list.rows().iter().all(|row| row["body"] == "by another member"), "{:#}", list.json);
    assert!(service.stop().success());
    is_gone();
    assert_eq!(receipt(&erase(&["--user", "7"], &data))["gone"], json!({}));
    assert_in_order(&data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mentions_that_others_deleted_before_the_service_was_killed_are_erased() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut service = serve_all(&data);
    septima(&service).comment("posts/1", "by the member").await;
    let mut mentions = Vec::new();
    for _ in 0..24 {
        mentions.push(service.member().comment("posts/1", "Hello @septima_severus, call me").await);
    }
    let mut changes = JoinSet::new();
    for (n, mention) in mentions.into_iter().enumerate() {
        let bob = service.member();
        changes.spawn(async move {
            let changed = if n % 2 == 0 { bob.remove(mention).await } else { bob.edit(mention, "no names").await };
            assert!((200..300).contains(&changed.status), "{:#}", changed.json);
        });
    }
    changes.join_all().await;
    service.kill();

    assert!(contains(&data, "septima_severus"));
    let erased = receipt(&erase(&["--user", "7"], &data));
    assert_eq!(erased["left"], 0, "{erased}");
    assert!(erased["gone"]["changes"].as_u64() > Some(0), "the service had followed up on everything: {erased}");
    assert!(!contains(&data, "septima_severus"));
    assert_in_order(&data);

    let service = serve_all(&data);
    let list = service.guest().list("posts/1", "").await;
    assert!(list.rows().iter().all(|row| row["body"] == "no names"), "{:#}", list.json);
    assert!(service.stop().success());
    assert!(!contains(&data, "septima_severus"));
    assert_eq!(receipt(&erase(&["--user", "7"], &data))["gone"], json!({}));
}

#[test]
fn an_erasure_that_stopped_halfway_is_repaired_by_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let seed = directory.path().join("seed");
    let ada = json!({ "name": "Ada Lovelace", "email": "Ada@Example.org", "key": "ada-key" });
    let mut lines = json!({ "thread": { "key": "/a", "url": "/a", "author_id": 7 } }).to_string() + "\n";
    for n in 0..200 {
        let (first, answer, last) = (format!("first-{n}"), format!("answer-{n}"), format!("last-{n}"));
        let bob = json!({ "name": "Bob" });
        for (id, parent, author) in [(&first, None, &ada), (&answer, Some(&first), &bob), (&last, Some(&answer), &ada)]
        {
            let comment = json!({ "comment": {
                "source_id": id, "thread": "/a", "parent": parent, "author": author, "body": "x",
                "created_at": "2020-01-02T03:04:05Z",
            } });
            lines += &(comment.to_string() + "\n");
        }
    }
    import(&lines, &[], &seed);
    for kilobytes in [1600, 1800, 2000] {
        let data = directory.path().join(kilobytes.to_string());
        let copied = Command::new("cp").arg("-r").args([&seed, &data]).status().unwrap();
        assert!(copied.success());
        let erase = on_data(&["person", "erase", "--email", "ada@example.org"], &data);
        let full = limited(kilobytes, &erase).output().unwrap();
        assert_eq!(full.status.code(), Some(3), "{}", stderr(&full));
        assert!(fs::metadata(data.join("lock")).unwrap().len() > 0, "the next start wouldn't know");
        assert!(serve(&data).stop().success());
        assert_in_order(&data);
    }
}

#[test]
fn the_data_of_a_person_goes_to_standard_output_or_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (directory.path().join("data"), directory.path().join("ada.jsonl"));
    import(&dump("ada-1"), &[], &data);
    let who = ["--email", "ada@example.org"];
    let lines = printed(on_data(&["person", "export"], &data).args(who));
    assert_eq!((lines.lines().count(), lines.matches("comment ada-1").count()), (3, 2), "{lines}");
    assert!(!lines.contains("comment answer"), "{lines}");
    let mut to_file = on_data(&["person", "export", "--out", file.to_str().unwrap()], &data);
    assert_eq!(printed(to_file.args(who)), "2 records exported\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), lines);
    done(on_data(&["person", "export", "--user", "7"], &data));
}

#[test]
fn erasing_a_user_without_data_still_keeps_that_user_out_of_imports() {
    let directory = tempfile::tempdir().unwrap();
    let (data, users) = (directory.path().join("data"), directory.path().join("users"));
    fs::write(&users, "ada-key 7\n").unwrap();
    let words = ["--users", users.to_str().unwrap()];
    import(&dump("ada-1").lines().next().map(|thread| format!("{thread}\n")).unwrap(), &[], &data);
    let unknown = receipt(&erase(&["--user", "7"], &data));
    assert_eq!((&unknown["gone"], &unknown["left"]), (&json!({}), &json!(0)));
    let stdout = import(&dump("ada-1"), &words, &data);
    assert!(stdout.contains("3 read: 2 new, 0 already there, 1 skipped (deleted 1)"), "{stdout}");
    assert!(!contains(&data, "Ada Lovelace"));
    // If the import had stored the page's `author_id`, a second erasure would find it.
    assert_eq!(receipt(&erase(&["--user", "7"], &data))["gone"], json!({}));
    assert_in_order(&data);
}

#[test]
fn where_gravatars_are_off_no_file_has_the_hash_of_an_address_and_guests_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let hash = shared::domain::ids::sha256_hex("ada@example.org");
    let run =
        |words: &[&str], data: &Path| on_data(words, data).env("SVC_GUEST_SHOW_GRAVATAR", "false").output().unwrap();
    import(&dump("ada-1"), &[], &data);
    assert!(contains(&data, &hash));
    let exported = run(&["export"], &data);
    assert!(exported.status.success() && !String::from_utf8_lossy(&exported.stdout).contains(&hash));
    let check = run(&["check"], &data);
    assert_eq!(check.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&check.stdout).ends_with("2 found\n"), "{check:?}");
    assert_eq!(stderr(&check), "error: the table is not consistent; pass --repair to repair what can be repaired\n");
    fs::write(data.join("lock"), "in use\n").unwrap();
    let unfinished = run(&["check"], &data);
    assert_eq!(
        stderr(&unfinished),
        "error: the last process did not finish its work; start and stop the service, then check again\n"
    );
    fs::write(data.join("lock"), "").unwrap();
    let repair = run(&["check", "--repair"], &data);
    assert!(String::from_utf8_lossy(&repair.stdout).ends_with("2 repaired, 0 left\n"), "{repair:?}");
    assert!(run(&["check"], &data).status.success() && on_data(&["check"], &data).output().unwrap().status.success());
    assert_eq!(run(&["export"], &data).stdout, exported.stdout);

    let (before, file) = (data.with_extension("jsonl"), directory.path().join("exported.jsonl"));
    fs::write(&file, exported.stdout).unwrap();
    let gone = json!({ "comments": 1, "placeholders": 1 });
    for (name, source) in [("of a dump", &before), ("of an export", &file)] {
        let other = directory.path().join(name);
        fs::create_dir(&other).unwrap();
        fs::copy(data.join("visitor-salt"), other.join("visitor-salt")).unwrap();
        let imported = run(&["import", "native", source.to_str().unwrap()], &other);
        assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
        assert!(!contains(&other, &hash));
        assert_eq!(receipt(&erase(&["--email", "ada@example.org"], &other))["gone"], gone, "{name}");
    }
    assert_eq!(receipt(&erase(&["--email", "ada@example.org"], &data))["gone"], gone);
    let again = run(&["import", "native", file.to_str().unwrap()], &data);
    assert!(String::from_utf8_lossy(&again.stdout).contains("0 new"), "{again:?}");
}

#[tokio::test]
async fn a_repair_leaves_no_hash_of_an_address_in_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let with_pictures = |shown: &str, words: &[&str]| {
        let mut command = on_data(words, data);
        command.env("SVC_PROFILE", "blog").env("SVC_GUEST_SHOW_GRAVATAR", shown).env("SVC_WRITE_LIMIT", "1000");
        command
    };
    let service = Service::start(&mut with_pictures("true", &["--port", "0"]), "moderator");
    let address = |n: usize| format!("guest{n}@example.org");
    for n in 0..80 {
        let comment = json!({ "body": format!("{n}"), "guest_name": "Grace", "guest_email": address(n) });
        service.guest().post("posts/1/comments", comment).await.ok(201);
    }
    assert!(service.stop().success());
    let left = || (0..80).filter(|n| contains(data, &shared::domain::ids::sha256_hex(&address(*n)))).count();
    assert_eq!(left(), 80);
    done(with_pictures("false", &["check", "--repair"]));
    assert_eq!(left(), 0);
}

#[test]
fn another_salt_than_that_of_the_data_directory_is_refused_by_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (directory.path().join("data"), directory.path().join("dump.jsonl"));
    import(&dump("ada-1"), &[], &data);
    fs::write(&file, dump("ada-1")).unwrap();
    let other = [("SVC_VISITOR_SALT", "of another site, by mistake")];
    for words in [
        &["check"][..],
        &["export"],
        &["import", "native", file.to_str().unwrap()],
        &["person", "export", "--email", "ada@example.org"],
        &["person", "erase", "--email", "ada@example.org"],
        &["--port", "0"],
    ] {
        let kept = data.join("visitor-salt");
        fails(on_data(words, &data).envs(other), 2, &["SVC_VISITOR_SALT", kept.to_str().unwrap()]);
    }
    let (backup, new) = (directory.path().join("backup.tar"), directory.path().join("new"));
    done(on_data(&["backup", "--out", backup.to_str().unwrap()], &data));
    let mut restore = on_data(&["restore", backup.to_str().unwrap()], &new);
    fails(restore.envs(other), 2, &["the value of the first start, which is in the backup;"]);
    assert!(!new.exists());
    assert_eq!(receipt(&erase(&["--email", "ada@example.org"], &data))["gone"]["comments"], 1);
}

#[test]
fn a_deployed_table_is_used_with_the_settings_of_the_service() {
    let services = Service::start(&mut local(&["--services-only", "--ephemeral", "--port", "0"]), "# listening");
    let exports = services.printed.iter().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    let environment: Vec<(&str, &str)> = exports.map(|(name, value)| (name, value.trim_matches('\''))).collect();
    let table = environment.iter().find(|(name, _)| *name == "TABLE_NAME").unwrap().1;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump.jsonl");
    fs::write(&file, dump("ada-1")).unwrap();
    let run = |words: &[&str], without: &str| {
        let mut command = local(words);
        command.args(["--table", table]).envs(environment.iter().copied()).env_remove(without);
        command.output().unwrap()
    };
    let imported = run(&["import", "native", file.to_str().unwrap()], "");
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    for missing in ["SVC_VISITOR_SALT", "MEDIA_BUCKET"] {
        let refused = run(&["person", "erase", "--email", "ada@example.org"], missing);
        assert_eq!(refused.status.code(), Some(2), "{missing}");
        assert!(stderr(&refused).contains(missing), "{}", stderr(&refused));
    }
    let output = run(&["person", "erase", "--email", "ada@example.org"], "");
    let erased = receipt(&output);
    assert_eq!((&erased["gone"], &erased["left"]), (&json!({ "comments": 1, "placeholders": 1 }), &json!(0)));
    let message = stderr(&output);
    assert!(message.contains("If the stack has an edge cache (EdgeCache=true)"), "{message}");
    // The command is a single line that finds the edge from the table's name.
    let command = message.lines().find(|line| line.contains("aws cloudfront create-invalidation")).unwrap();
    assert!(command.contains(&format!("--physical-resource-id {table} ")), "{command}");
    assert!(run(&["check"], "").status.success());
    let other_salt = run(&["import", "native", file.to_str().unwrap()], "SVC_VISITOR_SALT");
    assert_eq!(other_salt.status.code(), Some(3));
    assert!(stderr(&other_salt).contains("SVC_VISITOR_SALT"), "{}", stderr(&other_salt));
}

#[test]
fn the_receipt_may_go_to_a_file_and_an_unwritable_path_fails_before_anything_is_erased() {
    let directory = tempfile::tempdir().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("receipt.json"));
    import(&dump("ada-1"), &[], &data);
    let refused = erase(&["--email", "ada@example.org", "--out", "/nowhere/receipt.json"], &data);
    assert_eq!(refused.status.code(), Some(3));
    let done = erase(&["--email", "ada@example.org", "--out", out.to_str().unwrap()], &data);
    assert!(done.status.success() && done.stdout.is_empty(), "{}", stderr(&done));
    assert!(!stderr(&done).contains("cloudfront"), "no edge is in front of a data directory: {}", stderr(&done));
    let erased: Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    assert_eq!(erased["gone"]["comments"], 1);
}

#[test]
fn a_dash_is_standard_output_for_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let (data, folder) = (directory.path().join("data"), directory.path().join("folder"));
    fs::create_dir(&folder).unwrap();
    import(&dump("ada-1"), &[], &data);
    let file = data.with_extension("jsonl");
    let run = |words: &[&str]| {
        let output = done(on_data(words, &data).current_dir(&folder));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{words:?}");
        output
    };
    let who = ["--email", "ada@example.org"];
    for words in [&["export"][..], &["person", "export", who[0], who[1]]] {
        assert_eq!(run(&[words, &["--out", "-"]].concat()).stdout, run(words).stdout);
    }
    let imported = run(&["import", "native", file.to_str().unwrap(), "--report", "-"]);
    assert_eq!(serde_json::from_slice::<Value>(&imported.stdout).unwrap()["read"], 3);
    assert!(stderr(&imported).contains("3 read: 0 new"), "{}", stderr(&imported));
    let erased = receipt(&run(&["person", "erase", who[0], who[1], "--out", "-"]));
    assert_eq!(erased["gone"]["comments"], 1);
}

#[test]
fn a_receipt_is_printed_although_the_database_cannot_be_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let others = (0..1500).map(|number| {
        let body = "a quiet morning ".repeat(100);
        json!({ "comment": {
            "source_id": format!("other-{number}"), "thread": "/b", "body": body, "author": { "name": "Bob" },
            "created_at": "2020-01-02T03:04:05Z",
        } })
    });
    let lines = [json!({ "thread": { "key": "/b", "url": "/b" } })].into_iter().chain(others);
    let more: Vec<String> = lines.map(|line| format!("{line}\n")).collect();
    import(&(dump("ada-1") + &more.concat()), &[], &data);
    let mut erase = on_data(&["person", "erase", "--email", "ada@example.org"], &data);
    let full = limited(1024, &erase).output().unwrap();
    let error = stderr(&full);
    assert_eq!(full.status.code(), Some(3), "{error}");
    let erased: Value = serde_json::from_slice(&full.stdout).unwrap();
    assert_eq!((&erased["gone"]["comments"], &erased["left"]), (&json!(1), &json!(0)), "{erased}");
    assert!(error.starts_with("error: ") && error.ends_with("; run the same command again\n"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    #[cfg(target_os = "linux")]
    {
        let nowhere = fs::File::options().write(true).open("/dev/full").unwrap();
        let neither = limited(1024, &erase).stdout(nowhere).output().unwrap();
        let error = stderr(&neither);
        assert!(error.contains("save this report:\n{") && error.ends_with("; run the same command again\n"), "{error}");
    }
    assert_eq!(receipt(&erase.output().unwrap())["gone"], json!({}));
    assert!(!contains(&data, "Ada Lovelace"));
}
