//! `cargo local moderate`: the URL of the moderation page, for a service on this machine and for a deployed stack.

use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use server::http_server;
use tests::{SECRET, Service};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::{local, on_data, serve, stderr};

/// A fake AWS for this command. It sends the given responses, each a status and a body, in order. Stops when dropped.
struct Aws {
    url: String,
    /// The head and body of each request.
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Aws {
    async fn start(answers: Vec<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (heard, answers) = (Arc::clone(&requests), Arc::new(Mutex::new(answers.into_iter())));
        let task = tokio::spawn(http_server::serve(listener, move |request: Request<Bytes>| {
            let (head, body) = request.into_parts();
            heard.lock().unwrap().push(format!("{head:?} {}", str::from_utf8(&body).unwrap()));
            let (status, body) = answers.lock().unwrap().next().expect("one more answer");
            async move { Response::builder().status(status).body(body.into()).unwrap() }
        }));
        Self { url, requests, task }
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a command that calls servers in this process.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

async fn printed(command: Command) -> (String, String) {
    let made = output(command).await;
    assert!(made.status.success(), "{}", stderr(&made));
    let (page, token) = str::from_utf8(&made.stdout).unwrap().trim().split_once("#token=").unwrap();
    (page.to_owned(), token.to_owned())
}

#[tokio::test]
async fn a_moderator_gets_the_page_of_a_running_service() {
    let data_dir = tempfile::tempdir().unwrap();
    let service = serve(data_dir.path());
    let (page, token) = printed(on_data(&["moderate", "--port", "8080"], data_dir.path())).await;
    assert_eq!(page, "http://127.0.0.1:8080/svc/api/v1/moderate");
    let ui = service.guest().with_token(&token).get("ui").await.ok(200);
    assert_eq!(
        (&ui.data()["auth"]["moderator"], &ui.data()["auth"]["user"]["name"]),
        (&true.into(), &"Moderator".into())
    );
    let (_, token) = printed(on_data(&["moderate", "--id", "7", "--name", "Grace"], data_dir.path())).await;
    let ui = service.guest().with_token(&token).get("ui").await.ok(200);
    assert_eq!((&ui.data()["auth"]["user"]["id"], &ui.data()["auth"]["user"]["name"]), (&7.into(), &"Grace".into()));
}

fn stack(entries: &[(&str, &str, &str)]) -> String {
    let members = |kind: &str| {
        let of_kind = entries.iter().filter(|(of, ..)| *of == kind);
        let member = |(_, key, value): &(&str, &str, &str)| {
            format!("<member><{kind}Key>{key}</{kind}Key><{kind}Value>{value}</{kind}Value></member>")
        };
        of_kind.map(member).collect::<String>()
    };
    format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>comments</StackName><Parameters>{}</Parameters>\
         <Outputs>{}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>",
        members("Parameter"),
        members("Output")
    )
}

fn on_stack(aws: &Aws) -> Command {
    let mut command = local(&["moderate", "--stack", "comments"]);
    command
        .env("AWS_ENDPOINT_URL", &aws.url)
        .env("AWS_REGION", "eu-west-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "hush");
    command
}

const ARN: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:jwt-AbCdEf";
const API: &str = "https://api.example.org/svc/api/v1";

#[tokio::test]
async fn a_moderator_gets_the_page_of_a_deployed_stack_with_a_token_of_its_secret() {
    let data_dir = tempfile::tempdir().unwrap();
    let described = stack(&[
        ("Parameter", "JwtIssuer", "https://id.example.org"),
        ("Parameter", "JwtAudience", "comments"),
        ("Parameter", "JwtSecretArn", ""),
        ("Output", "ApiUrl", API),
        ("Output", "JwtSecretName", ARN),
    ]);
    let secret = format!(r#"{{"SecretString":"{SECRET}"}}"#);
    let aws = Aws::start(vec![(200, described), (200, secret)]).await;
    let (page, token) = printed(on_stack(&aws)).await;
    assert_eq!(page, format!("{API}/moderate"));
    let requests = aws.requests.lock().unwrap().clone();
    for (request, part) in [
        (0, "Action=DescribeStacks"),
        (0, "StackName=comments"),
        (0, "/eu-west-1/cloudformation/aws4_request"),
        (1, "secretsmanager.GetSecretValue"),
        (1, ARN),
    ] {
        assert!(requests[request].contains(part), "{part} is not in {}", requests[request]);
    }
    let mut service = on_data(&["--port", "0"], data_dir.path());
    service
        .env("SVC_JWT_SECRET", SECRET)
        .env("SVC_JWT_ISSUER", "https://id.example.org")
        .env("SVC_JWT_AUDIENCE", "comments");
    let service = Service::start(&mut service, "moderator");
    service.guest().with_token(&token).get("moderation/comments").await.ok(200);
}

#[tokio::test]
async fn every_failure_suggests_the_next_step() {
    let error =
        |code: &str| format!("<ErrorResponse><Error><Code>{code}</Code><Message>No.</Message></Error></ErrorResponse>");
    let jwks = stack(&[("Output", "ApiUrl", API), ("Parameter", "JwksUrl", "https://id.example.org/keys")]);
    let closed = stack(&[("Output", "ApiUrl", API), ("Output", "JwtSecretName", ARN)]);
    for (answers, expected) in [
        (vec![(400, error("ValidationError"))], "there is no stack comments in eu-west-1; check the name"),
        (vec![(403, error("AccessDenied"))], "the command needs cloudformation:DescribeStacks"),
        (vec![(403, error("ExpiredToken"))], "set AWS_ACCESS_KEY_ID"),
        (vec![(200, stack(&[]))], "pass the stack that template.yaml was deployed as"),
        (vec![(200, jwks)], "paste the token at https://api.example.org/svc/api/v1/moderate"),
        (
            vec![(200, closed), (400, r#"{"__type":"AccessDeniedException"}"#.to_owned())],
            "the command needs cloudformation:DescribeStacks",
        ),
        (vec![(200, "nothing".to_owned())], "pass the stack that template.yaml was deployed as"),
    ] {
        let aws = Aws::start(answers).await;
        let refused = output(on_stack(&aws)).await;
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(1) && said.starts_with("error: ") && said.contains(expected), "{said}");
    }
    let aws = Aws::start(Vec::new()).await;
    for (missing, expected) in
        [("AWS_REGION", "set it to the region"), ("AWS_ACCESS_KEY_ID", "aws configure export-credentials")]
    {
        let mut command = on_stack(&aws);
        command.env_remove(missing);
        let refused = output(command).await;
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
}
