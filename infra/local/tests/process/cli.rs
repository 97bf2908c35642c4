//! `cargo local` as its users meet it: a process with a command line, two streams and signals.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

struct Service {
    process: Child,
    lines: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Service {
    fn start(data_dir: &Path) -> Self {
        let mut process = local(&["--port", "0", "--data-dir"])
            .arg(data_dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        lines.read_line(&mut ready).unwrap();
        let address = ready.trim().strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { process, lines, address }
    }

    fn get(&self, path: &str, token: Option<&str>) -> String {
        let authorization = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n");
        send(self.address, &request)
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// The exit code.
    #[cfg(unix)]
    fn terminate(mut self) -> Option<i32> {
        let killed = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(killed.success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What functions elsewhere need.
struct Services {
    process: Child,
    environment: HashMap<String, String>,
}

impl Services {
    fn start(words: &[&str]) -> Self {
        let mut process =
            local(words).arg("--services-only").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut environment = HashMap::new();
        for line in lines.map(Result::unwrap) {
            if let Some((name, value)) = line.strip_prefix("export ").and_then(|line| line.split_once('=')) {
                environment.insert(name.to_owned(), value.trim_matches('\'').to_owned());
            } else if line.starts_with("# listening") {
                break;
            }
        }
        Self { process, environment }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The whole answer to a whole request that closes its connection.
fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn local(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
    command.args(words);
    for setting in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "SVC_API_PREFIX", "SVC_PUBLIC_URL"] {
        command.env_remove(setting);
    }
    command
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn it_says_where_it_listens_and_gives_tokens_that_work() {
    let data_dir = tempfile::tempdir().unwrap();
    let mut service = Service::start(data_dir.path());
    let api = service.next_line();
    assert!(api.ends_with(&format!("http://{}/svc/api/v1", service.address)), "{api}");
    for role in ["member", "moderator"] {
        let line = service.next_line();
        assert!(line.starts_with(role), "{line}");
        let answer = service.get("/svc/api/v1/ui", line.split_whitespace().last());
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(r#""authenticated":true"#), "{answer}");
    }
    assert!(service.get("/nowhere", None).starts_with("HTTP/1.1 404"));
}

/// The headers of an answer in order of their names, without those that differ from one answer to the next.
fn headers(answer: &str) -> Vec<&str> {
    let (head, _) = answer.split_once("\r\n\r\n").unwrap();
    let passing = ["apigw-requestid: ", "date: ", "etag: ", "x-ratelimit-remaining: "];
    let mut headers: Vec<&str> = head.lines().skip(1).collect();
    headers.retain(|header| !passing.iter().any(|name| header.starts_with(name)));
    headers.sort_unstable();
    headers
}

#[test]
fn a_page_on_another_origin_is_told_once_what_it_may_do() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = Service::start(data_dir.path());
    let ask = |line: &str, headers: &str| {
        let head =
            format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: http://blog.example\r\n");
        send(service.address, &format!("{head}{headers}\r\n"))
    };

    let asked = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
    let preflight = ask("OPTIONS /svc/api/v1/posts/1/comments", asked);
    assert!(preflight.starts_with("HTTP/1.1 204 No Content\r\n"), "{preflight}");
    assert_eq!(
        headers(&preflight),
        [
            "access-control-allow-headers: accept-language,authorization,content-type,idempotency-key,if-none-match",
            "access-control-allow-methods: GET,POST,PUT,PATCH,DELETE",
            "access-control-allow-origin: *",
            "access-control-max-age: 7200",
            "connection: close",
        ]
    );

    let answer = ask("GET /svc/api/v1/posts/1/comments", "");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(
        headers(&answer).iter().filter(|header| !header.starts_with("content-length: ")).collect::<Vec<_>>(),
        [
            &"access-control-allow-origin: *",
            &"access-control-expose-headers: etag,retry-after,x-ratelimit-limit,x-ratelimit-remaining",
            &"cache-control: public, max-age=0, s-maxage=5",
            &"connection: close",
            &"content-type: application/json",
            &"vary: Authorization, Accept-Encoding, Accept-Language",
            &"x-content-type-options: nosniff",
            &"x-ratelimit-limit: 300",
        ]
    );
}

#[test]
fn a_token_can_be_made_for_a_running_service() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = Service::start(data_dir.path());
    let made = local(&["token", "--id", "7", "--name", "Ada", "--data-dir"]).arg(data_dir.path()).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let token = str::from_utf8(&made.stdout).unwrap().trim();
    assert!(service.get("/svc/api/v1/ui", Some(token)).contains("Ada"));
}

#[test]
fn a_second_process_on_the_same_data_is_told_so() {
    let data_dir = tempfile::tempdir().unwrap();
    let _service = Service::start(data_dir.path());
    let second = local(&["--port", "0", "--data-dir"]).arg(data_dir.path()).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).starts_with("error: another process uses"), "{}", stderr(&second));
    assert_eq!(stderr(&second).lines().count(), 1);
}

#[test]
fn a_taken_port_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = local(&["--ephemeral", "--port", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), format!("error: port {port} is taken; choose another with --port, or --port 0\n"));
}

#[test]
fn the_table_and_the_bucket_alone_are_where_the_printed_environment_says() {
    let mut services = Services::start(&["--ephemeral", "--port", "0"]);
    let variable = |name: &str| services.environment.get(name).unwrap_or_else(|| panic!("{name} is not set")).clone();
    let table = variable("AWS_ENDPOINT_URL_DYNAMODB");
    let bucket = variable("AWS_ENDPOINT_URL_S3");
    assert_eq!(variable("MEDIA_BASE_URL"), format!("{bucket}/{}", variable("MEDIA_BUCKET")));
    for secret in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        assert!(!variable(secret).is_empty());
    }
    let question = format!(r#"{{"TableName":"{}"}}"#, variable("TABLE_NAME"));
    let answer = send(
        table.trim_start_matches("http://").parse().unwrap(),
        &format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Amz-Target: DynamoDB_20120810.DescribeTable\r\n\
             Content-Length: {}\r\n\r\n{question}",
            question.len()
        ),
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\"ACTIVE\""), "{answer}");
    let answer = send(
        bucket.trim_start_matches("http://").parse().unwrap(),
        "GET /media/uploads/none.png HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("nosniff"), "{answer}");
    assert!(services.process.try_wait().unwrap().is_none());
}

#[test]
fn the_fixed_ports_of_table_and_bucket_may_be_taken() {
    // By this test, or by another process: that is all the same.
    let _table = TcpListener::bind("127.0.0.1:8000");
    let output = local(&["--ephemeral", "--services-only"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "error: port 8000 is taken; --port 0 takes free ones\n");
}

#[test]
fn wrong_words_are_not_a_start() {
    let output = local(&["--prot", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--prot"));
    let help = local(&["--help"]).output().unwrap();
    assert!(help.status.success() && help.stdout.starts_with(b"The comment service"));
}

#[cfg(unix)]
#[test]
fn sigterm_ends_it_well_and_the_next_start_has_the_same_secret() {
    let data_dir = tempfile::tempdir().unwrap();
    let mut first = Service::start(data_dir.path());
    first.next_line();
    let token = first.next_line();
    assert_eq!(first.terminate(), Some(0));

    let second = Service::start(data_dir.path());
    let answer = second.get("/svc/api/v1/ui", token.split_whitespace().last());
    assert!(answer.contains(r#""authenticated":true"#), "{answer}");
}
