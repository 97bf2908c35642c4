//! The command line, the two output streams, the ports and the signals.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, ORIGIN};
use http::{HeaderName, Method};
use serde_json::json;
use tempfile::TempDir;
use tests::{MAIL, SECRET, START, Service, TestResponse, sign, wants};

use crate::{assert_in_order, done, fails, local, on_data, printed, serve, stderr};

/// Maximum wait on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn the_startup_output_lists_the_addresses_the_embed_code_and_working_tokens() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    let labels = service.printed.iter().filter_map(|line| line.split_whitespace().next());
    assert_eq!(
        labels.collect::<Vec<_>>(),
        ["listening", "demo", "guests", "embed", "<comment-thread", "API", "moderate", "member", "moderator"]
    );
    let site = service.said("listening");
    assert_eq!(service.said("API"), format!("{site}/svc/api/v1"));
    for role in ["member", "moderator"] {
        let ui = service.guest().with_token(service.said(role)).get("ui").await.ok(200);
        assert_eq!(ui.data()["auth"]["authenticated"], true);
    }
    service.guest().send_at(Method::GET, "/nowhere", "").await.refused(404, "not_found");
    let line = |label| service.printed.iter().find(|line| line.starts_with(label)).unwrap();
    assert_eq!(service.said("demo"), format!("{site}/"));
    service.at(site).send_at(Method::GET, "/", "").await.ok(200);
    let (page, token) = service.said("moderate ").split_once("#token=").unwrap();
    assert_eq!(page, format!("{site}/svc/api/v1/moderate"));
    service.guest().with_token(token).get("moderation/comments").await.ok(200);
    assert_eq!(line("guests"), "guests     off; SVC_ALLOW_GUESTS=true cargo local turns them on");
    assert_eq!(
        line("embed"),
        &format!("embed      <script type=\"module\" src=\"{site}/svc/api/v1/embed.js\"></script>")
    );
    assert_eq!(line("<comment-thread"), "<comment-thread type=\"posts\" record=\"42\"></comment-thread>");

    let service = Service::start(local(&["--ephemeral", "--port", "0"]).env("SVC_ALLOW_GUESTS", "true"), "moderator");
    assert!(service.printed.contains(&"guests     on".to_owned()), "{:?}", service.printed);
}

#[tokio::test]
async fn emails_become_files_in_the_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let mut command = on_data(&["--port", "0"], &data_dir);
    command.envs(MAIL).env("SVC_MAIL_WAIT", "0").env("SVC_JWT_SECRET", SECRET);
    let service = Service::start(&mut command, "moderator");
    assert_eq!(service.said("mails"), format!("{}/_mail", service.said("listening")));
    let claims =
        json!({ "sub": "7", "email": "ada@example.org", "email_verified": false, "exp": START / 1000, "name": "Ada" });
    let ada = service.guest().with_token(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET));
    let choice = ada.put("me/notifications", wants(&["replies"])).await.ok(200);
    assert_eq!(choice.data()["state"], "asked");
    let until = Instant::now() + PATIENCE;
    let mail = loop {
        let files = fs::read_dir(data_dir.join("mail")).unwrap().map(|file| file.unwrap().path());
        if let Some(file) = files.into_iter().find(|file| file.extension().is_some_and(|kind| kind == "eml")) {
            break fs::read_to_string(file).unwrap();
        }
        assert!(Instant::now() < until, "no mail came");
        service.guest().get("ui").await.ok(200);
    };
    assert!(mail.contains("To: ada@example.org\r\n"), "{mail}");
    assert_private(&data_dir);
    let demo = service.at(service.said("listening")).send_at(Method::GET, "/", "").await.ok(200);
    assert!(demo.json.as_str().unwrap().contains("<a href=\"/_mail\">"), "{}", demo.json);
}

/// Asserts that other users of this machine can't read anything personal or secret.
fn assert_private(data_dir: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut checked = Vec::new();
    for folder in ["", "mail", "queue/DeliveriesQueue"].map(|name| data_dir.join(name)) {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            if file.file_name().is_some_and(|name| name != "lock") {
                assert_eq!(mode(&file), 0o600, "{}", file.display());
                checked.push(file);
            }
        }
    }
    for name in ["table.db", "table.db-wal", "table.db-shm", "visitor-salt"] {
        assert!(checked.contains(&data_dir.join(name)), "{name}");
    }
}

/// The headers of a response, sorted by name, without those that differ between responses.
fn headers(answer: &TestResponse) -> Vec<String> {
    let passing = ["apigw-requestid", "content-length", "date", "etag", "x-ratelimit-remaining"];
    let headers = answer.headers.iter().filter(|(name, _)| !passing.contains(&name.as_str()));
    let mut headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    headers.sort_unstable();
    headers
}

#[tokio::test]
async fn a_page_on_another_origin_gets_each_cors_header_once() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    let page = service.guest().with(ORIGIN, "http://blog.example");

    let asks = page.clone().with(ACCESS_CONTROL_REQUEST_METHOD, "POST");
    let asks = asks.with(ACCESS_CONTROL_REQUEST_HEADERS, "content-type");
    let preflight = asks.send(Method::OPTIONS, "posts/1/comments", "").await.ok(204);
    assert_eq!(
        headers(&preflight),
        [
            "access-control-allow-headers: accept-language,authorization,comment-key,content-type,idempotency-key,\
             if-none-match",
            "access-control-allow-methods: GET,POST,PUT,PATCH,DELETE",
            "access-control-allow-origin: *",
            "access-control-max-age: 7200",
            "cache-control: no-store",
            "strict-transport-security: max-age=15768000",
            "x-content-type-options: nosniff",
        ]
    );
    assert_eq!(
        headers(&page.list("posts/1", "").await),
        [
            "access-control-allow-origin: *",
            "access-control-expose-headers: etag,retry-after,x-ratelimit-limit,x-ratelimit-remaining",
            "cache-control: public, max-age=0, s-maxage=5",
            "content-type: application/json",
            "strict-transport-security: max-age=15768000",
            "vary: Authorization, Accept-Encoding, Accept-Language",
            "x-content-type-options: nosniff",
            "x-ratelimit-limit: 300",
        ]
    );
}

#[test]
fn a_token_needs_a_directory_that_a_service_has_used() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("typo");
    let token = || on_data(&["token", "--id", "7", "--name", "Ada"], &missing);
    let place = format!("error: no service has used {}; ", missing.display());
    fails(token(), 3, &[&place, "cargo local --data-dir"]);
    assert!(!missing.exists());
    done(token().env("SVC_JWT_SECRET", SECRET));
    assert!(!missing.exists());
}

#[tokio::test]
async fn every_command_warns_of_variables_that_are_not_settings() {
    let mut command = local(&["--ephemeral", "--port", "0"]);
    let service = Service::start(command.env("SVC_THEEM", "dark"), "moderator");
    let expected = "warning: SVC_THEEM isn't a setting, so it has no effect; the nearest name is SVC_THEME\n";
    assert!(service.log().starts_with(expected), "{}", service.log());

    let data_dir = tempfile::tempdir().unwrap();
    drop(serve(data_dir.path()));
    let files = tempfile::tempdir().unwrap();
    let [export, backup] = ["export.jsonl", "backup.tar"].map(|name| files.path().join(name));
    let (export, backup) = (export.to_str().unwrap(), backup.to_str().unwrap());
    let [other, restored] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for (words, directory) in [
        (&["check"][..], &data_dir),
        (&["check", "--repair"], &data_dir),
        (&["backup", "--out", backup], &data_dir),
        (&["restore", backup], &restored),
        (&["export", "--out", export], &data_dir),
        (&["import", "native", export], &data_dir),
        (&["import", "native", export, "--dry-run"], &other),
        (&["person", "export", "--user", "7"], &data_dir),
        (&["person", "erase", "--user", "7"], &data_dir),
        (&["token", "--id", "7", "--name", "Ada"], &data_dir),
        (&["moderate"], &data_dir),
    ] {
        let output = on_data(words, directory.path()).env("SVC_THEEM", "dark").output().unwrap();
        let said = stderr(&output);
        assert_eq!(said.matches("SVC_THEEM").count(), 1, "{words:?}: {said}");
        assert!(said.contains(expected) && output.status.success(), "{words:?}: {said}");
    }
}

/// Every command, run in a directory set up by [`files`].
const COMMANDS: [&[&str]; 18] = [
    &["--port", "0", "--ephemeral"],
    &["--port", "0", "--data-dir", "data"],
    &["--port", "0", "--data-dir", "data", "--sign-in"],
    &["--port", "0", "--data-dir", "data", "--services-only"],
    &["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"],
    &["backup", "--out", "x.json", "--data-dir", "data"],
    &["restore", "backup.tar", "--data-dir", "data"],
    &["token", "--id", "7", "--name", "Ada", "--data-dir", "data"],
    &["moderate", "--data-dir", "data"],
    &["moderate", "--stack", "comments"],
    &["check", "--data-dir", "data"],
    &["check", "--table", "comments"],
    &["import", "native", "dump.jsonl", "--data-dir", "data"],
    &["import", "native", "dump.jsonl", "--dry-run", "--report", "x.json", "--data-dir", "data"],
    &["export", "--out", "x.json", "--data-dir", "data"],
    &["export", "--table", "comments"],
    &["person", "export", "--user", "7", "--out", "x.json", "--data-dir", "data"],
    &["person", "erase", "--user", "7", "--data-dir", "data"],
];

fn files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["backup.tar", "dump.jsonl"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    folder
}

/// Asserts that a command fails with a one-line error and creates nothing in its directory.
fn refused(words: &[&str], settings: &[(&str, &str)], folder: &Path, code: i32, says: &str) {
    let files = || fs::read_dir(folder).unwrap().count();
    let before = files();
    let mut command = local(words);
    command.env("SVC_PUBLIC_URL", "https://a.example").envs(settings.iter().copied());
    let output = command.current_dir(folder).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
    assert!(error.starts_with(says) && error.lines().count() == 1, "{words:?}: {error}");
    assert_eq!(files(), before, "{words:?}");
}

#[test]
fn every_command_exits_with_2_on_a_wrong_setting_and_touches_nothing() {
    let folder = files();
    for words in COMMANDS {
        let says = "error: SVC_PER_PAGE=\"0\": expected a whole number from 1 to 50";
        refused(words, &[("SVC_PER_PAGE", "0")], folder.path(), 2, says);
    }
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:jwt-AbCdEf";
    for words in COMMANDS.into_iter().filter(|words| !words.contains(&"--table") && !words.contains(&"--stack")) {
        for variable in ["SVC_JWT_SECRET", "SVC_SIGN_IN_SEED"] {
            let says = format!("error: {variable}: expected the secret itself");
            refused(words, &[(variable, arn)], folder.path(), 2, &says);
        }
    }
}

#[test]
fn without_a_table_or_beside_another_process_a_command_exits_with_3_and_touches_nothing() {
    let folder = files();
    let of_data = COMMANDS.into_iter().filter(|words| words.contains(&"data"));
    for words in of_data.clone().filter(|words| ["check", "export", "person"].contains(&words[0])) {
        let says = "error: there is no table in data; pass the service's --data-dir\n";
        refused(words, &[], folder.path(), 3, says);
    }
    let _service = serve(&folder.path().join("data"));
    // Excludes commands that run alongside a service or need an empty directory, and `--report`, whose file is created
    // before the directory is locked.
    let others = ["backup", "restore", "token", "moderate"];
    for words in of_data.filter(|words| !others.contains(&words[0]) && !words.contains(&"--report")) {
        refused(words, &[], folder.path(), 3, "error: another process uses data; ");
    }
}

#[test]
fn the_first_start_or_import_stores_the_configured_salt_permanently() {
    const SALT: &str = "a salt of eighteen bytes";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap();
    let run = |words: &[&str], data: &Path, salt: &str| {
        let mut command = on_data(words, data);
        command.env("SVC_VISITOR_SALT", salt);
        command
    };
    let (started, imported) = (folder.path().join("started"), folder.path().join("imported"));
    drop(Service::start(&mut run(&["--port", "0"], &started, SALT), "moderator"));
    for (words, data) in [(["export", "--out", file], &started), (["import", "native", file], &imported)] {
        done(run(&words, data, SALT));
    }
    for data in [started, imported] {
        assert_eq!(fs::read_to_string(data.join("visitor-salt")).unwrap(), SALT);
        drop(serve(&data));
    }
}

#[tokio::test]
async fn links_are_correct_when_the_public_url_is_the_printed_api_address() {
    let mut command = local(&["--ephemeral", "--port", "0"]);
    let service = Service::start(command.env("SVC_PUBLIC_URL", "https://api.example.org/svc/api/v1/"), "moderator");
    let list = service.guest().get("posts/1/comments").await.ok(200);
    assert_eq!(list.json["meta"]["path"], "https://api.example.org/svc/api/v1/posts/1/comments");
}

#[tokio::test]
async fn a_start_that_failed_leaves_no_unfinished_work() {
    let data_dir = tempfile::tempdir().unwrap();
    let failed = on_data(&["--port", "0"], data_dir.path()).env("SVC_PER_PAGE", "ten").output().unwrap();
    assert_eq!(failed.status.code(), Some(2));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _taken = TcpListener::bind(("127.0.0.1", taken)).unwrap();
    let failed = on_data(&["--port", &taken.to_string()], data_dir.path()).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(
        stderr(&failed),
        format!("error: port {taken} is taken; choose another --port, or 0 for any free one\n")
    );
    let service = serve(data_dir.path());
    assert_eq!(service.log(), "");
    drop(service);
    assert!(serve(data_dir.path()).log().starts_with("the last process did not finish its work"));
}

#[tokio::test]
async fn the_log_says_why_a_text_or_a_token_was_refused() {
    let mut command = local(&["--ephemeral", "--port", "0"]);
    command.env("SVC_SPAM_DENY", "casino").env("SVC_JWT_SECRET", SECRET);
    let service = Service::start(&mut command, "moderator");
    let comment = json!({ "body": "A casino for everyone" });
    service.member().post("posts/1/comments", comment.clone()).await.refused(422, "spam_rejected");
    let claims = json!({ "sub": 22, "exp": START / 1000, "name": "Ada" });
    let token = sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET);
    let ada = service.guest().with_token(&token);
    ada.post("posts/1/comments", comment).await.refused(401, "unauthenticated");
    ada.list("posts/1", "").await;
    let log = service.log();
    let reasons: Vec<_> = log.lines().filter(|line| line.starts_with(' ')).map(str::trim).collect();
    assert_eq!(
        reasons,
        [
            "text refused by the spam rule phrase",
            "token not accepted: sub is missing, or isn't a string of 1 to 255 characters"
        ]
    );
    assert!(!log.contains("everyone") && !log.contains("casino") && !log.contains(&token), "{log}");
}

#[tokio::test]
async fn a_table_with_comments_is_refused_without_its_salt() {
    let data_dir = tempfile::tempdir().unwrap();
    let file = data_dir.path().join("visitor-salt");
    let service = serve(data_dir.path());
    assert!(service.stop().success());
    fs::remove_file(&file).unwrap();
    let service = serve(data_dir.path());
    service.member().comment("posts/1", "x").await;
    assert!(service.stop().success());

    let salt = fs::read_to_string(&file).unwrap();
    let expected = format!("error: {} is missing, ", file.display());
    fs::remove_file(&file).unwrap();
    let started = Service::try_start(&mut on_data(&["--port", "0"], data_dir.path()), "moderator");
    let error = started.err().expect("there is no salt");
    assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
    for words in [&["check"] as &[&str], &["export"], &["backup", "--out", "-"]] {
        fails(on_data(words, data_dir.path()), 3, &[&expected]);
    }
    done(on_data(&["check"], data_dir.path()).env("SVC_VISITOR_SALT", salt));
    assert!(!file.exists());

    // The service refuses a table without the other files, and creates no secrets.
    for name in ["jwt-secret", "sign-in-seed", "salt-fingerprint", "version"] {
        fs::remove_file(data_dir.path().join(name)).unwrap();
    }
    let output = on_data(&["--port", "0"], data_dir.path()).output().unwrap();
    assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
    assert!(!data_dir.path().join("jwt-secret").exists() && !data_dir.path().join("version").exists());
}

#[tokio::test]
async fn a_table_with_comments_is_refused_with_another_salt() {
    let data_dir = tempfile::tempdir().unwrap();
    let file = data_dir.path().join("visitor-salt");
    let service = serve(data_dir.path());
    assert!(service.stop().success());
    // While the table is empty, the service accepts another machine's salt.
    let moved = "the salt of a machine that the service moves from";
    fs::write(&file, moved).unwrap();
    let service = serve(data_dir.path());
    service.member().comment("posts/1", "x").await;
    assert!(service.stop().success());

    let run = |words: &[&str], salt: Option<&str>| {
        let mut command = on_data(words, data_dir.path());
        command.envs(salt.map(|salt| ("SVC_VISITOR_SALT", salt)));
        command
    };
    let expected = format!("error: {} isn't the salt that this table was written with, ", file.display());
    let commands: [&[&str]; 4] = [&["--port", "0"], &["check"], &["export"], &["backup", "--out", "-"]];
    for salt in [&moved[..20], "another salt of sufficient length"] {
        fs::write(&file, salt).unwrap();
        for words in commands {
            fails(run(words, None), 3, &[&expected]);
        }
        fs::remove_file(&file).unwrap();
        for words in commands {
            fails(run(words, Some(salt)), 2, &["SVC_VISITOR_SALT"]);
        }
        assert!(!file.exists());
    }
    done(run(&["check"], Some(moved)));
}

#[test]
fn an_import_into_an_empty_table_accepts_the_salt_of_another_machine() {
    let directory = tempfile::tempdir().unwrap();
    let (data, export) = (directory.path().join("data"), directory.path().join("export.jsonl"));
    assert!(serve(&data).stop().success());
    fs::write(data.join("visitor-salt"), "the salt of a machine that the service moves from").unwrap();
    fs::write(&export, format!("{}\n", json!({ "thread": { "key": "/a", "url": "/a" } }))).unwrap();
    done(on_data(&["import", "native", export.to_str().unwrap()], &data));
    assert_in_order(&data);
    assert!(serve(&data).stop().success());
}

#[tokio::test]
async fn a_used_directory_without_its_table_is_refused_and_gets_no_new_table() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let service = serve(data);
    service.member().comment("posts/1", "x").await;
    assert!(service.stop().success());
    let (table, backup) = (data.join("table.db"), data.join("backup"));
    fs::rename(&table, &backup).unwrap();
    let dump = data.join("dump.jsonl");
    fs::write(&dump, "").unwrap();
    let import = ["import", "native", dump.to_str().unwrap(), "--dry-run"];
    let commands: [&[&str]; 5] = [&["--port", "0"], &import[..3], &import, &["check"], &["backup", "--out", "-"]];
    for words in commands {
        let expected = format!("error: {} is missing, although a service has used the directory; ", table.display());
        fails(on_data(words, data), 3, &[&expected]);
        assert!(!table.exists(), "{words:?}");
    }
    fs::rename(&backup, &table).unwrap();
    assert_eq!(serve(data).guest().list("posts/1", "").await.rows().len(), 1);
}

#[tokio::test]
async fn an_empty_table_beside_secrets_is_reported_as_damaged_and_left_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let (data, backup) = (directory.path().join("data"), directory.path().join("backup"));
    let service = serve(&data);
    service.member().comment("posts/1", "x").await;
    assert!(service.stop().success());
    let table = data.join("table.db");
    fs::copy(&table, &backup).unwrap();
    let blank = directory.path().join("blank");
    rusqlite::Connection::open(&blank).unwrap().execute_batch("PRAGMA user_version = 1").unwrap();
    let dump = directory.path().join("dump.jsonl");
    fs::write(&dump, "").unwrap();
    for content in [Vec::new(), fs::read(blank).unwrap()] {
        fs::write(&table, &content).unwrap();
        let import = ["import", "native", dump.to_str().unwrap()];
        let commands: [&[&str]; 6] = [
            &["--port", "0"],
            &["check"],
            &["check", "--repair"],
            &["export"],
            &import,
            &["person", "erase", "--user", "7"],
        ];
        for words in commands {
            let expected = format!("error: {}: is empty, although a service has used the directory; ", table.display());
            fails(on_data(words, &data), 3, &[&expected]);
            assert_eq!(fs::read(&table).unwrap(), content, "{words:?}");
        }
    }
    fs::copy(&backup, &table).unwrap();
    let service = serve(&data);
    assert_eq!(service.guest().list("posts/1", "").await.rows().len(), 1);
}

#[tokio::test]
async fn a_table_may_be_a_symbolic_link() {
    let directory = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (directory.path().join("data"), directory.path().join("elsewhere.db"));
    let service = serve(&data);
    service.member().comment("posts/1", "x").await;
    assert!(service.stop().success());
    fs::rename(data.join("table.db"), &elsewhere).unwrap();
    std::os::unix::fs::symlink("../elsewhere.db", data.join("table.db")).unwrap();
    assert_in_order(&data);
    let mut service = serve(&data);
    service.member().comment("posts/1", "y").await;
    service.kill();
    assert_eq!(serve(&data).guest().list("posts/1", "").await.rows().len(), 2);
}

#[test]
fn a_start_names_the_file_that_should_be_a_folder() {
    let directory = tempfile::tempdir().unwrap();
    let objects = directory.path().join("objects");
    fs::write(&objects, "").unwrap();
    let output = on_data(&["--port", "0"], directory.path()).output().unwrap();
    assert!(stderr(&output).starts_with(&format!("error: bucket: {}", objects.display())), "{}", stderr(&output));
}

#[tokio::test]
async fn a_table_that_is_damaged_in_the_middle_is_refused_by_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let service = serve(&data);
    service.member().comment("posts/1", "x").await;
    assert!(service.stop().success());
    let table = data.join("table.db");
    let mut damaged = fs::read(&table).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0xff);
    fs::write(&table, &damaged).unwrap();
    let out = directory.path().join("out");
    let commands: [&[&str]; 6] = [
        &["check"],
        &["check", "--repair"],
        &["export"],
        &["backup", "--out", out.to_str().unwrap()],
        &["person", "export", "--user", "7"],
        &["--port", "0"],
    ];
    for words in commands {
        let output = on_data(words, &data).output().unwrap();
        let expected = format!("error: {}: is damaged", table.display());
        assert!(stderr(&output).starts_with(&expected), "{words:?}: {}", stderr(&output));
        assert_eq!(fs::read(&table).unwrap(), damaged, "{words:?}");
    }
}

#[tokio::test]
async fn a_table_whose_log_is_damaged_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut service = serve(&data);
    service.member().comment("posts/1", "x").await;
    service.kill();
    // SQLite treats a log with a damaged header as empty, although this log contains all the data.
    let (table, log) = (data.join("table.db"), data.join("table.db-wal"));
    let mut damaged = fs::read(&log).unwrap();
    damaged[..16].fill(0);
    fs::write(&log, &damaged).unwrap();
    let content = fs::read(&table).unwrap();
    for words in [&["check"] as &[&str], &["export"], &["check", "--repair"], &["--port", "0"]] {
        let expected = format!("error: {}: is empty, although a service has used the directory; ", table.display());
        fails(on_data(words, &data), 3, &[&expected]);
        assert_eq!(
            (fs::read(&table).unwrap(), fs::read(&log).unwrap()),
            (content.clone(), damaged.clone()),
            "{words:?}"
        );
    }
}

/// A command that is run as a user who can read the files but not write them.
fn as_reader(words: &[&str], data: &Path) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = on_data(words, data);
    // Root can write read-only files.
    if fs::File::options().append(true).open(data.join("table.db")).is_ok() {
        command.uid(65534).gid(65534);
    }
    command
}

fn allow(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_read_only_snapshot_can_be_exported_and_checked_and_stays_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut service = serve(&data);
    for _ in 0..3 {
        service.member().comment("posts/1", "in the log alone").await;
    }
    // The kill leaves part of the data in SQLite's log.
    service.kill();
    let names = ["table.db", "table.db-wal", "jwt-secret", "sign-in-seed", "visitor-salt"];
    let files = || names.map(|name| fs::read(data.join(name)).unwrap());
    assert!(!files()[1].is_empty());
    let before = files();
    allow(directory.path(), 0o755);
    for entry in fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        allow(&entry.path(), if entry.file_type().unwrap().is_dir() { 0o555 } else { 0o444 });
    }
    allow(&data, 0o555);

    let exported = printed(as_reader(&["export"], &data));
    let person = printed(as_reader(&["person", "export", "--user", "1"], &data));
    assert_eq!([&exported, &person].map(|text| text.matches("in the log alone").count()), [3, 3]);
    let check = as_reader(&["check"], &data).output().unwrap();
    assert!(check.stdout.ends_with(b" found\n") && check.status.code() < Some(3), "{}", stderr(&check));
    let says = "error: the last process did not finish its work; start and stop the service, ";
    assert!(check.status.success() || stderr(&check).starts_with(says), "{}", stderr(&check));
    for words in [&["check", "--repair"] as &[&str], &["person", "erase", "--user", "1"], &["--port", "0"]] {
        fails(as_reader(words, &data), 3, &["denied"]);
    }
    assert_eq!(files(), before);

    // The log is beside the target of a linked table.
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    allow(&data, 0o755);
    for name in &names[..2] {
        fs::rename(data.join(name), disk.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(disk.join("table.db"), data.join("table.db")).unwrap();
    allow(&disk, 0o555);
    allow(&data, 0o555);
    let linked = as_reader(&["export"], &data).output().unwrap();
    allow(&disk, 0o755);
    allow(&data, 0o755);
    assert_eq!(str::from_utf8(&linked.stdout), Ok(exported.as_str()), "{}", stderr(&linked));
}

#[test]
fn a_refused_command_leaves_no_file_beside_a_table_that_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    assert!(serve(&data).stop().success());
    allow(directory.path(), 0o755);
    for entry in fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        allow(&entry.path(), if entry.file_type().unwrap().is_dir() { 0o777 } else { 0o444 });
    }
    allow(&data.join("lock"), 0o666);
    allow(&data, 0o777);
    let names = || fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>();
    let before = names();
    for words in [&["check", "--repair"] as &[&str], &["person", "erase", "--user", "1"], &["--port", "0"]] {
        fails(as_reader(words, &data), 3, &["table.db: Permission denied"]);
        assert_eq!(names(), before, "{words:?}");
    }
}

#[test]
fn a_data_directory_that_cannot_be_read_is_not_mistaken_for_an_unused_one() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    assert!(serve(&data).stop().success());
    allow(directory.path(), 0o755);
    allow(&data, 0o000);
    let expected = format!("error: {}: Permission denied", data.join("version").display());
    let (erase, token) = (["person", "erase", "--user", "7"], ["token", "--id", "7", "--name", "Ada"]);
    let dump = directory.path().join("dump.jsonl");
    fs::write(&dump, "").unwrap();
    let import = ["import", "native", dump.to_str().unwrap(), "--dry-run"];
    for words in [&["check"] as &[&str], &["export"], &erase, &["backup", "--out", "-"], &token, &import] {
        fails(as_reader(words, &data), 3, &[&expected]);
    }
    allow(&data, 0o755);
}

#[tokio::test]
async fn services_only_serves_the_table_and_the_bucket_at_the_printed_addresses() {
    let mut services = Service::start(&mut local(&["--services-only", "--ephemeral", "--port", "0"]), "# listening");
    let exports = services.printed.iter().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    let environment: HashMap<&str, &str> = exports.map(|(name, value)| (name, value.trim_matches('\''))).collect();
    let variable = |name: &str| *environment.get(name).unwrap_or_else(|| panic!("{name} is not set"));
    let bucket = variable("AWS_ENDPOINT_URL_S3");
    assert_eq!(variable("MEDIA_BASE_URL"), format!("{bucket}/{}", variable("MEDIA_BUCKET")));
    for secret in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        assert!(!variable(secret).is_empty());
    }
    let describe = HeaderName::from_static("x-amz-target");
    let table = services.at(variable("AWS_ENDPOINT_URL_DYNAMODB")).with(describe, "DynamoDB_20120810.DescribeTable");
    let json = |version| table.clone().with(CONTENT_TYPE, &format!("application/x-amz-json-{version}"));
    let name = json!({ "TableName": variable("TABLE_NAME") }).to_string();
    json("1.1").send_at(Method::POST, "/", name.clone()).await.ok(400);
    let answer = json("1.0").send_at(Method::POST, "/", name).await.ok(200);
    assert_eq!(answer.json["Table"]["TableStatus"], "ACTIVE");
    let answer = services.at(bucket).send_at(Method::GET, "/media/uploads/none.png", "").await.ok(404);
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(services.is_running());
}

#[test]
fn a_taken_port_of_the_table_is_reported_in_one_clear_line() {
    // If this fails, another process has the port, and the test still works.
    let _table = TcpListener::bind("127.0.0.1:8000");
    let started = Service::try_start(&mut local(&["--services-only", "--ephemeral"]), "# listening");
    let error = started.err().expect("port 8000 is taken until the test ends");
    assert_eq!(error, "error: port 8000 is taken; pass --port 0 for free ports\n");
}

#[test]
fn a_command_for_a_deployed_table_says_what_the_environment_lacks() {
    let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "hush"), ("AWS_REGION", "eu-west-1")];
    for (missing, advice) in [
        ("AWS_REGION", "AWS_REGION is not set; set it to the region of the stack"),
        ("AWS_ACCESS_KEY_ID", "eval \"$(aws configure export-credentials --profile NAME --format env)\""),
    ] {
        let [export, erase] = ["export", "erase"].map(|what| ["person", what, "--user", "7"]);
        for words in [&["check"][..], &["export"], &export, &erase] {
            let mut command = local(&[words, &["--table", "t"]].concat());
            let salt = ("SVC_VISITOR_SALT", "a salt of eighteen bytes");
            fails(command.envs(keys).envs([salt]).env_remove(missing), 3, &[advice]);
        }
    }
}

#[test]
fn usage_shows_the_command_as_it_was_typed() {
    let mut aliased = local(&["--help"]);
    let mut help = local(&["--help"]);
    assert!(printed(aliased.env("CARGO", "cargo")).contains("\n       cargo local serve "));
    let help = printed(help.env_remove("CARGO"));
    assert!(help.contains("\n       comments-server serve ") && !help.contains("cargo local"), "{help}");
    let version = printed(local(&["--version"]).env_remove("CARGO"));
    assert_eq!(version, concat!("comments-server ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[tokio::test]
async fn sigterm_stops_the_service_cleanly_and_the_next_start_has_the_same_secret() {
    let data_dir = tempfile::tempdir().unwrap();
    let first = serve(data_dir.path());
    let token = first.said("member").to_owned();
    assert_eq!(first.stop().code(), Some(0));

    let second = serve(data_dir.path());
    let ui = second.guest().with_token(&token).get("ui").await.ok(200);
    assert_eq!(ui.data()["auth"]["authenticated"], true);
}
