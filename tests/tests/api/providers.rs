//! Sign-in with an account at a provider, and each threat that it must resist. The providers are fakes: GitHub's three
//! endpoints, and an OpenID Connect issuer with a separate key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, Response};
use ring::digest;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use server::http_server;
use shared::domain::ids::UserId;
use shared::domain::person::Who;
use shared::domain::secret::Secret;
use tests::{Actor, Faults, MAIL, PROVIDERS, SALT, Setup, TestResponse, World};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::person::{erase_user, exported};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const PAGE: &str = "https://www.example.org/posts/1?a=b";
const DISCOVERY: &str = "/.well-known/openid-configuration";
const TOKEN: &str = "/token";

/// A fake GitHub and a fake OpenID Connect issuer at one address. Stops when dropped.
pub(crate) struct Fake {
    url: &'static str,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    url: String,
    /// Issued codes, each with the parameters of its authorization request.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    /// Changes to the discovery document and to the claims. A null removes a value.
    discovery: BTreeMap<String, Value>,
    claims: BTreeMap<String, Value>,
    userinfo: Value,
    github: Value,
    /// Faulty responses by path: status and body.
    faults: BTreeMap<String, (u16, String)>,
    asked: Vec<String>,
    got_by_post: bool,
    /// Paths whose responses wait: one channel reports a request, another releases it.
    held: BTreeMap<String, Arc<[Notify; 2]>>,
    /// The seed of the signing key, and the key id in the token.
    signs_with: (u8, String),
    known_keys: Vec<(u8, &'static str)>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn parameters(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Shared {
            url: url.clone(),
            signs_with: (1, "a".to_owned()),
            known_keys: vec![(1, "a")],
            github: json!({ "id": 7, "login": "octo-ada", "avatar_url": "https://github.example/7.png" }),
            ..Shared::default()
        };
        let shared = Arc::new(Mutex::new(shared));
        let answering = Arc::clone(&shared);
        let task = tokio::spawn(http_server::serve(listener, move |request| {
            let (status, body) = lock(&answering).answer(&request);
            let held = lock(&answering).held.get(request.uri().path()).cloned();
            let mut answer = Response::new(Bytes::from(body));
            *answer.status_mut() = status.try_into().unwrap();
            answer.headers_mut().insert("location", "http://127.0.0.1:9/".parse().unwrap());
            async move {
                if let Some(held) = held {
                    held[0].notify_one();
                    held[1].notified().await;
                }
                answer
            }
        }));
        // Leaks the URL, because a world's settings borrow it.
        Self { url: url.leak(), shared, task }
    }

    pub(crate) fn settings(&self) -> Vec<(&'static str, &'static str)> {
        [&PROVIDERS[..], &[("SVC_GITHUB_URL", self.url), ("SVC_OIDC_ISSUER", self.url)]].concat()
    }

    pub(crate) fn claim(&self, name: &str, value: &Value) {
        lock(&self.shared).claims.insert(name.to_owned(), value.clone());
    }

    fn discover(&self, name: &str, value: Value) {
        lock(&self.shared).discovery.insert(name.to_owned(), value);
    }

    fn fail(&self, path: &str, status: u16, body: &str) {
        lock(&self.shared).faults.insert(path.to_owned(), (status, body.to_owned()));
    }

    /// Holds the next response at this path until the clock has advanced by `time` and other tasks have run.
    async fn take(&self, path: &str, time: Duration) {
        let held: Arc<[Notify; 2]> = Arc::default();
        lock(&self.shared).held.insert(path.to_owned(), Arc::clone(&held));
        held[0].notified().await;
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        held[1].notify_one();
    }

    fn asked(&self, path: &str) -> usize {
        lock(&self.shared).asked.iter().filter(|asked| *asked == path).count()
    }

    /// Returns the callback's parameters after the reader authorizes at the provider.
    pub(crate) fn authorize(&self, url: &Value) -> String {
        let (address, query) = url.as_str().unwrap().split_once('?').unwrap();
        assert!(address.starts_with(self.url), "{address}");
        let mut asked = parameters(query);
        let state = asked["state"].clone();
        asked.insert("address".to_owned(), address.to_owned());
        let mut shared = lock(&self.shared);
        let code = format!("code-{}", shared.codes.len());
        shared.codes.insert(code.clone(), asked);
        format!("code={code}&state={state}")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn answer(&mut self, request: &Request<Bytes>) -> (u16, String) {
        let path = request.uri().path().to_owned();
        self.asked.push(path.clone());
        // GitHub refuses requests without a user agent.
        assert!(path == "/keys" || request.headers().contains_key("user-agent"), "{path}");
        if let Some(fault) = self.faults.get(&path) {
            return fault.clone();
        }
        let is_known = request.headers().get("authorization").is_some_and(|value| value == "Bearer the access token");
        let answer = match path.as_str() {
            DISCOVERY => self.discovery(),
            "/keys" => self.keys(),
            TOKEN | "/login/oauth/access_token" => return self.token(request, &path),
            "/userinfo" if is_known => self.userinfo.clone(),
            "/api/v3/user" if is_known => self.github.clone(),
            "/api/v3/user/emails" if is_known => json!([
                { "email": "old@github.example", "verified": true, "primary": false },
                { "email": "ada@github.example", "verified": true, "primary": true },
            ]),
            _ => return (404, "{}".to_owned()),
        };
        (200, answer.to_string())
    }

    fn discovery(&self) -> Value {
        let url = &self.url;
        let said = json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}{TOKEN}"),
            "userinfo_endpoint": format!("{url}/userinfo"),
            "jwks_uri": format!("{url}/keys"),
        });
        with(said, &self.discovery)
    }

    fn keys(&self) -> Value {
        let key = |(seed, id): &(u8, &str)| {
            let x = URL_SAFE_NO_PAD.encode(pair(*seed).public_key());
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x })
        };
        json!({ "keys": self.known_keys.iter().map(key).collect::<Vec<_>>() })
    }

    /// Exchanges a code for tokens. The caller must be the client and have the verifier.
    fn token(&mut self, request: &Request<Bytes>, path: &str) -> (u16, String) {
        let form = parameters(std::str::from_utf8(request.body()).unwrap());
        let refuse = |why: &str| (400, json!({ "error": why }).to_string());
        let Some(asked) = self.codes.remove(&form["code"]) else { return refuse("the code") };
        let challenge = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, form["code_verifier"].as_bytes()));
        if asked["code_challenge"] != challenge || asked["code_challenge_method"] != "S256" {
            return refuse("the verifier");
        }
        if form["grant_type"] != "authorization_code" || form["redirect_uri"] != asked["redirect_uri"] {
            return refuse("the request");
        }
        let (id, secret) = match request.headers().get("authorization") {
            Some(basic) => {
                let basic = STANDARD.decode(basic.to_str().unwrap().strip_prefix("Basic ").unwrap()).unwrap();
                let basic = String::from_utf8(basic).unwrap();
                let (id, secret) = basic.split_once(':').unwrap();
                (id.replace('+', " "), secret.replace("%3A", ":"))
            }
            None => (form["client_id"].clone(), form["client_secret"].clone()),
        };
        self.got_by_post = form.contains_key("client_secret");
        let provider = if path == TOKEN { "oidc" } else { "github" };
        if (id, secret) != (format!("client of {provider}"), format!("hush:{provider}")) {
            return refuse("the client");
        }
        let mut tokens = json!({ "access_token": "the access token", "token_type": "bearer" });
        if path == TOKEN {
            tokens["id_token"] = json!(self.id_token(&asked["nonce"]));
        }
        (200, tokens.to_string())
    }

    fn id_token(&self, nonce: &str) -> String {
        let claims = json!({
            "iss": self.url, "aud": "client of oidc", "nonce": nonce, "sub": "ada", "name": "Ada Lovelace",
            "picture": "https://id.example/ada.png", "email": "ada@id.example", "email_verified": true,
            "exp": tests::START / 1_000 + 1_000_000,
        });
        let claims = with(claims, &self.claims);
        let (seed, id) = &self.signs_with;
        let header = json!({ "alg": "EdDSA", "kid": id });
        let text = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = URL_SAFE_NO_PAD.encode(pair(*seed).sign(text.as_bytes()));
        format!("{text}.{signature}")
    }
}

fn with(mut said: Value, changes: &BTreeMap<String, Value>) -> Value {
    for (name, value) in changes {
        if value.is_null() {
            said.as_object_mut().unwrap().remove(name);
        } else {
            said[name] = value.clone();
        }
    }
    said
}

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, VERIFIER.as_bytes()))
}

pub(crate) async fn start(actor: &Actor, provider: &str, page: &str) -> TestResponse {
    let body = json!({ "provider": provider, "challenge": challenge(), "return_to": page });
    actor.post("sign_in", body).await
}

/// Returns the part of the fragment after the flow, which is a code or an error.
pub(crate) fn code(back: &TestResponse) -> String {
    let location = back.header("location");
    let (_, fragment) = location.split_once("#comment-sign-in=").unwrap();
    fragment.split_once('.').unwrap().1.to_owned()
}

pub(crate) async fn finish(actor: &Actor, flow: &Value, code: &str) -> TestResponse {
    actor.post("sign_in/finish", json!({ "flow": flow, "code": code, "verifier": VERIFIER })).await
}

/// Signs in at the provider, up to the callback. Returns the flow and the callback's response.
async fn go(fake: &Fake, actor: &Actor, provider: &str) -> (Value, TestResponse) {
    let started = start(actor, provider, PAGE).await.ok(201);
    let query = fake.authorize(&started.data()["url"]);
    let back = actor.get(&format!("sign_in/callback/{provider}?{query}")).await.ok(303);
    (started.data()["flow"].clone(), back)
}

async fn sign_in(fake: &Fake, actor: &Actor, provider: &str) -> Value {
    let (flow, back) = go(fake, actor, provider).await;
    finish(actor, &flow, &code(&back)).await.ok(200).data().clone()
}

#[track_caller]
fn failed(answer: &TestResponse) {
    answer.clone().refused(422, "sign_in_failed");
}

/// Returns the providers, a service with these further settings that knows them, and a guest.
async fn begin(more: &[(&'static str, &'static str)]) -> (Fake, World, Actor) {
    let fake = Fake::start().await;
    let world = World::with(&[&fake.settings(), more].concat());
    let guest = world.guest();
    (fake, world, guest)
}

#[tokio::test]
async fn a_stranger_signs_in_with_github_and_comes_back_as_the_same_person() {
    let (fake, world, guest) = begin(&[]).await;
    let started = start(&guest, "github", &format!("{PAGE}#comment-3")).await.ok(201);
    assert_eq!(started.data()["expires_in"], 900);
    assert!(!started.data()["flow"].as_str().unwrap().contains('.'));
    let query = fake.authorize(&started.data()["url"]);
    let asked = lock(&fake.shared).codes["code-0"].clone();
    assert_eq!(asked["address"], format!("{}/login/oauth/authorize", fake.url));
    assert_eq!((asked["client_id"].as_str(), asked["response_type"].as_str()), ("client of github", "code"));
    assert_eq!(asked["redirect_uri"], "https://api.test/svc/api/v1/sign_in/callback/github");
    assert!(!asked.contains_key("scope") && !asked.contains_key("nonce"));
    let back = guest.get(&format!("sign_in/callback/github?{query}")).await.ok(303);
    assert!(back.header("location").starts_with(&format!("{PAGE}#comment-sign-in=")), "{}", back.header("location"));
    assert!(back.header("cache-control").contains("no-store") && back.header("referrer-policy") == "no-referrer");
    let data = finish(&guest, &started.data()["flow"], &code(&back)).await.ok(200).data().clone();
    assert_eq!((&data["account"], &data["suggested_name"]), (&json!("github:7"), &json!("octo-ada")));
    let issuer = format!("svc-pro:sign-in:{}", fake.url);
    let (id, _) = UserId::hashed(&Secret::from(SALT.to_owned()), &issuer, "7");
    assert_eq!(data["user"], json!({ "id": id.0, "name": null, "avatar": "https://github.example/7.png" }));
    let ada = guest.clone().with_token(data["access_token"].as_str().unwrap());
    ada.put("me/name", json!({ "name": "Ada" })).await.ok(200);
    ada.write("posts/1", None, "Hello").await.ok(201);
    let refresh = json!({ "refresh_token": data["refresh_token"] });
    let refreshed = guest.post("sign_in/refresh", refresh).await.ok(200);
    assert!(refreshed.data().get("account").is_none());
    let again = sign_in(&fake, &world.guest(), "github").await;
    assert_eq!(again["user"]["name"], "Ada");
}

#[tokio::test]
async fn a_stranger_signs_in_with_openid_connect() {
    let (fake, world, guest) = begin(&[("SVC_GUEST_SHOW_GRAVATAR", "false")]).await;
    let data = sign_in(&fake, &guest, "oidc").await;
    assert_eq!((&data["account"], &data["suggested_name"]), (&json!("oidc:ada"), &json!("Ada Lovelace")));
    assert_eq!((&data["user"]["name"], &data["user"]["avatar"]), (&Value::Null, &json!("")));
    let started = start(&world.guest(), "oidc", PAGE).await.ok(201);
    fake.authorize(&started.data()["url"]);
    let asked = lock(&fake.shared).codes.values().next().unwrap().clone();
    assert_eq!((asked["scope"].as_str(), asked["nonce"].len()), ("openid profile", 22));
    assert_eq!((fake.asked(DISCOVERY), fake.asked("/userinfo")), (1, 0));
    world.pass(Duration::from_hours(1));
    start(&world.guest(), "oidc", PAGE).await.ok(201);
    assert_eq!(fake.asked(DISCOVERY), 2, "once an hour");
    world.turn_back(Duration::from_hours(1));
    start(&world.guest(), "oidc", PAGE).await.ok(201);
    assert_eq!(fake.asked(DISCOVERY), 3, "the clock was ahead");
}

#[tokio::test]
async fn the_configuration_lists_the_methods_in_their_order() {
    let (_fake, _world, guest) = begin(&[("SVC_SIGN_IN", "oidc,github,email")]).await;
    let ui = guest.get("ui").await.ok(200);
    let named = json!([
        { "id": "oidc", "name": "Company" }, { "id": "github", "name": "GitHub" }, { "id": "email", "name": "email" },
    ]);
    assert_eq!((&ui.data()["sign_in"], &ui.data()["sign_in_methods"]), (&json!(true), &named));
    let off = World::new();
    assert_eq!(off.guest().get("ui").await.ok(200).data()["sign_in_methods"], json!([]));
    start(&off.guest(), "github", PAGE).await.refused(404, "not_found");
    off.guest().get("sign_in/callback/github").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_method_that_is_off_is_refused() {
    let (_fake, _world, guest) = begin(&[("SVC_SIGN_IN", "github"), ("SVC_MAIL_FROM", "")]).await;
    for provider in ["oidc", "email", "facebook", "GitHub", ""] {
        start(&guest, provider, PAGE).await.invalid("provider");
    }
    let both = json!({
        "provider": "github", "challenge": challenge(), "return_to": PAGE, "email": "ada@example.org",
    });
    guest.post("sign_in", both).await.invalid("provider");
    guest.post("sign_in", json!({ "email": "ada@example.org" })).await.invalid("provider");
    guest.post("sign_in", json!({})).await.invalid("provider");
    for provider in ["oidc", "email", "facebook"] {
        guest.get(&format!("sign_in/callback/{provider}?state=x")).await.refused(404, "not_found");
    }
    let head = guest.send(Method::HEAD, "sign_in/callback/github", "").await;
    assert_eq!(head.status, 405);
}

#[tokio::test]
async fn a_flow_does_not_return_to_a_page_of_another_origin() {
    let (_fake, _world, guest) = begin(&[]).await;
    for page in ["https://evil.example/", "https://ada@www.example.org/", ""] {
        start(&guest, "github", page).await.invalid("return_to");
    }
    start(&guest, "github", "https://api.test/svc/api/v1/moderate").await.ok(201);
    let body = |challenge: Value| json!({ "provider": "github", "challenge": challenge, "return_to": PAGE });
    for odd in [json!(null), json!(7), json!(""), json!(VERIFIER[1..]), json!(format!("{}=", challenge()))] {
        guest.post("sign_in", body(odd)).await.invalid("challenge");
    }
    let evil = guest.with(http::header::ORIGIN, "https://evil.example");
    start(&evil, "github", PAGE).await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_flow_that_another_visitor_started_signs_no_one_in() {
    let (fake, _world, guest) = begin(&[]).await;
    let other = format!("{}x", &VERIFIER[1..]);
    let short = VERIFIER[..42].to_owned();
    for verifier in [json!(other), json!(short), json!(""), json!(7), Value::Null] {
        let (flow, back) = go(&fake, &guest, "github").await;
        let body = json!({ "flow": flow, "code": code(&back), "verifier": verifier });
        failed(&guest.post("sign_in/finish", body).await);
        failed(&finish(&guest, &flow, &code(&back)).await);
    }
}

#[tokio::test]
async fn a_code_that_leaked_is_of_no_use_in_another_network() {
    let (fake, world, _) = begin(&[]).await;
    let at = |ip: &str| world.guest().from(ip);
    for (reader, same, elsewhere) in
        [("192.0.2.1", "192.0.2.200", "192.0.3.1"), ("2001:db8:1:2::1", "2001:db8:1:ffff::1", "2001:db8:2::1")]
    {
        let (flow, back) = go(&fake, &at(reader), "github").await;
        finish(&at(same), &flow, &code(&back)).await.ok(200);
        let (flow, back) = go(&fake, &at(reader), "github").await;
        failed(&finish(&at(elsewhere), &flow, &code(&back)).await);
        failed(&finish(&at(reader), &flow, &code(&back)).await);
    }
}

#[tokio::test]
async fn a_code_is_valid_once_for_a_minute() {
    let (fake, world, guest) = begin(&[]).await;
    let (flow, back) = go(&fake, &guest, "github").await;
    world.pass(Duration::from_secs(59));
    let right = code(&back);
    let at_once = join_all((0..4).map(|_| finish(&guest, &flow, &right))).await;
    assert_eq!(at_once.iter().filter(|answer| answer.status == 200).count(), 1, "one code, one session");
    let (flow, back) = go(&fake, &guest, "github").await;
    world.pass(Duration::from_mins(1));
    failed(&finish(&guest, &flow, &code(&back)).await);
    let (flow, back) = go(&fake, &guest, "github").await;
    for _ in 0..5 {
        failed(&finish(&guest, &flow, "failed").await);
    }
    failed(&finish(&guest, &flow, &code(&back)).await);
    failed(&finish(&guest, &json!("nothing"), "nothing").await);
}

#[tokio::test]
async fn wrong_codes_count_among_those_of_the_network() {
    let (fake, _world, guest) = begin(&[]).await;
    let (flow, back) = go(&fake, &guest, "github").await;
    for _ in 0..30 {
        failed(&finish(&guest, &json!("nothing"), "nothing").await);
    }
    finish(&guest, &flow, &code(&back)).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn a_state_that_is_not_right_leads_nowhere() {
    let (fake, world, guest) = begin(&[]).await;
    let nowhere = async |path: String| {
        let answer = guest.get(&path).await.ok(400);
        let page = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(!page.contains("href") && !page.contains("http") && page.contains("start again"), "{page}");
        assert!(!answer.headers.contains_key("location") && answer.header("referrer-policy") == "no-referrer");
        assert!(answer.header("cache-control").contains("no-store"));
    };
    nowhere("sign_in/callback/github".to_owned()).await;
    nowhere("sign_in/callback/github?state=&code=x".to_owned()).await;
    nowhere("sign_in/callback/github?state=AAAAAAAAAAAAAAAAAAAAAA&code=x".to_owned()).await;
    let started = start(&guest, "github", PAGE).await.ok(201);
    let query = fake.authorize(&started.data()["url"]);
    nowhere(format!("sign_in/callback/oidc?{query}")).await;
    nowhere(format!("sign_in/callback/github?{query}&state=x")).await;
    world.pass(Duration::from_secs(899));
    guest.get(&format!("sign_in/callback/github?{query}")).await.ok(303);
    nowhere(format!("sign_in/callback/github?{query}")).await;
    let started = start(&guest, "github", PAGE).await.ok(201);
    let query = fake.authorize(&started.data()["url"]);
    world.pass(Duration::from_mins(15));
    nowhere(format!("sign_in/callback/github?{query}")).await;
}

async fn comes_back_failed(fake: &Fake, actor: &Actor, provider: &str, what: &str) {
    let (flow, back) = go(fake, actor, provider).await;
    assert_eq!(code(&back), "failed", "{what}");
    assert!(back.header("location").starts_with(PAGE), "{what}");
    failed(&finish(actor, &flow, "failed").await);
}

#[tokio::test]
async fn every_github_error_returns_the_reader_to_the_page() {
    let token = "/login/oauth/access_token";
    for (path, status, body) in [
        (token, 500, "{}"),
        (token, 200, "nonsense"),
        (token, 200, "[]"),
        (token, 200, r#"{"error":"bad_verification_code"}"#),
        (token, 302, "{}"),
        ("/api/v3/user", 401, "{}"),
        ("/api/v3/user", 200, "{}"),
        ("/api/v3/user", 200, r#"{"id":0,"login":"ada"}"#),
        ("/api/v3/user", 200, r#"{"id":"7","login":"ada"}"#),
        ("/api/v3/user", 200, r#"{"id":-7,"login":"ada"}"#),
        ("/api/v3/user", 200, r#"{"id":7.5,"login":"ada"}"#),
        ("/api/v3/user", 200, r#"{"id":18446744073709551616,"login":"ada"}"#),
    ] {
        let (fake, _world, guest) = begin(&[]).await;
        fake.fail(path, status, body);
        comes_back_failed(&fake, &guest, "github", &format!("{path} {status} {body}")).await;
    }
    let (fake, _world, guest) = begin(&[]).await;
    let large = format!(r#"{{"id":7,"login":"ada","bio":"{}"}}"#, "x".repeat(64 * 1024));
    fake.fail("/api/v3/user", 200, &large);
    comes_back_failed(&fake, &guest, "github", "more than 64 KB").await;
    for (query, what) in [("error=access_denied", "denied"), ("code=none", "unknown"), ("code=a&code=b", "doubled")] {
        let started = start(&guest, "github", PAGE).await.ok(201);
        let asked = fake.authorize(&started.data()["url"]);
        let (_, state) = asked.split_once('&').unwrap();
        let back = guest.get(&format!("sign_in/callback/github?{query}&{state}")).await.ok(303);
        assert_eq!(code(&back), "failed", "{what}");
    }
}

#[tokio::test]
async fn an_id_token_that_is_not_of_this_flow_is_refused() {
    let now = tests::START / 1_000;
    for (claim, value) in [
        ("nonce", json!("another")),
        ("iss", json!("https://evil.example")),
        ("aud", json!("another client")),
        ("exp", json!(now - 61)),
    ] {
        let (fake, _world, guest) = begin(&[]).await;
        fake.claim(claim, &value);
        comes_back_failed(&fake, &guest, "oidc", &format!("{claim}: {value}")).await;
    }
}

#[tokio::test]
async fn an_id_token_needs_the_issuers_signature_and_keys_are_fetched_once_a_minute() {
    let (fake, world, guest) = begin(&[]).await;
    sign_in(&fake, &guest, "oidc").await;
    lock(&fake.shared).signs_with = (2, "a".to_owned());
    comes_back_failed(&fake, &guest, "oidc", "another key").await;
    lock(&fake.shared).signs_with = (2, "b".to_owned());
    lock(&fake.shared).known_keys.push((2, "b"));
    comes_back_failed(&fake, &guest, "oidc", "fetched a moment ago").await;
    assert_eq!(fake.asked("/keys"), 1);
    world.pass(Duration::from_mins(1));
    sign_in(&fake, &guest, "oidc").await;
    assert_eq!(fake.asked("/keys"), 2);
    fake.fail(TOKEN, 200, r#"{"access_token":"x"}"#);
    comes_back_failed(&fake, &guest, "oidc", "no ID token").await;
}

#[tokio::test]
async fn the_callback_of_another_issuer_is_refused() {
    let (fake, world, guest) = begin(&[]).await;
    let back = async |provider: &str, more: String| {
        let started = start(&guest, provider, PAGE).await.ok(201);
        let query = fake.authorize(&started.data()["url"]);
        code(&guest.get(&format!("sign_in/callback/{provider}?{query}{more}")).await.ok(303))
    };
    let own = form_urlencoded::byte_serialize(fake.url.as_bytes()).collect::<String>();
    for provider in ["github", "oidc"] {
        assert_ne!(back(provider, format!("&iss={own}")).await, "failed");
        assert_eq!(back(provider, "&iss=https%3A%2F%2Fevil.example".to_owned()).await, "failed");
        assert_eq!(back(provider, format!("&iss={own}&iss={own}")).await, "failed");
    }
    fake.discover("authorization_response_iss_parameter_supported", json!(true));
    world.pass(Duration::from_hours(1));
    assert_eq!(back("oidc", String::new()).await, "failed", "it was promised");
    assert_ne!(back("oidc", format!("&iss={own}")).await, "failed");
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_unavailable() {
    for (name, value) in [
        ("issuer", json!("https://evil.example")),
        ("issuer", Value::Null),
        ("token_endpoint", json!("http://id.example/token")),
        ("authorization_endpoint", json!("ftp://id.example/")),
        ("jwks_uri", Value::Null),
    ] {
        let (fake, _world, guest) = begin(&[]).await;
        fake.discover(name, value);
        start(&guest, "oidc", PAGE).await.refused(503, "unavailable");
    }
    for (status, body) in [(404, "{}"), (200, "nonsense"), (302, "{}")] {
        let (fake, _world, guest) = begin(&[]).await;
        fake.fail(DISCOVERY, status, body);
        start(&guest, "oidc", PAGE).await.refused(503, "unavailable");
    }
    let (fake, _world, guest) = begin(&[]).await;
    drop(fake);
    tokio::task::yield_now().await;
    start(&guest, "oidc", PAGE).await.refused(503, "unavailable");
}

#[tokio::test]
async fn all_calls_of_a_callback_take_at_most_seven_seconds_together() {
    let token = "/login/oauth/access_token";
    for (second, is_back) in [(2, true), (3, false)] {
        let (fake, _world, guest) = begin(&[]).await;
        let started = start(&guest, "github", PAGE).await.ok(201);
        let path = format!("sign_in/callback/github?{}", fake.authorize(&started.data()["url"]));
        let slowly = async {
            fake.take(token, Duration::from_secs(4)).await;
            fake.take("/api/v3/user", Duration::from_secs(second)).await;
        };
        let (back, ()) = tokio::join!(guest.get(&path), slowly);
        assert_eq!(code(&back.ok(303)) != "failed", is_back, "4 and {second} seconds");
    }
}

#[tokio::test]
async fn only_one_of_several_concurrent_callbacks_signs_in() {
    let (fake, _world, guest) = begin(&[]).await;
    let started = start(&guest, "github", PAGE).await.ok(201);
    let path = format!("sign_in/callback/github?{}", fake.authorize(&started.data()["url"]));
    let answers = join_all((0..8).map(|_| guest.get(&path))).await;
    let (back, others): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 303);
    assert!(back.len() == 1 && others.iter().all(|answer| answer.status == 400), "{answers:?}");
    assert_eq!(fake.asked("/login/oauth/access_token"), 1);
    finish(&guest, &started.data()["flow"], &code(back[0])).await.ok(200);
}

#[tokio::test]
async fn a_host_token_cannot_act_for_a_provider_account() {
    let (fake, world, guest) = begin(&[("SVC_MODERATORS", "github:7")]).await;
    let elsewhere = format!("svc-pro:sign-in:{}", fake.url);
    let id = sign_in(&fake, &guest, "github").await["user"]["id"].as_u64().unwrap();
    for issuer in [elsewhere.as_str(), "svc-pro:sign-in", "svc-pro:sign-in:"] {
        let host = world.claiming(&json!({ "iss": issuer, "sub": "7", "name": "Ada" }));
        host.write("posts/1", None, "x").await.refused(401, "unauthenticated");
        assert_eq!(host.get("ui").await.ok(200).data()["auth"]["authenticated"], false, "{issuer}");
    }
    for subject in ["github:7".to_owned(), id.to_string()] {
        let host = world.claiming(&json!({ "iss": "https://host.example", "sub": subject, "name": "Ada" }));
        let auth = host.get("ui").await.ok(200).data()["auth"].clone();
        assert!(auth["moderator"] == false && auth["user"]["id"] != id, "{auth}");
    }
}

#[tokio::test]
async fn a_reader_who_was_signing_in_when_the_service_was_killed_starts_again_as_the_same_person() {
    let fake = Fake::start().await;
    let settings = [&fake.settings()[..], &[("SVC_MODERATORS", "github:7")]].concat();
    for at_callback in [true, false] {
        for steps in 0.. {
            let faults = Faults::new(1);
            let world = Setup::new(&settings).faults(&faults).start();
            let guest = world.guest();
            let started = start(&guest, "github", PAGE).await.ok(201);
            let (flow, url) = (&started.data()["flow"], &started.data()["url"]);
            let path = format!("sign_in/callback/github?{}", fake.authorize(url));
            let first = if at_callback {
                faults.kill_after(steps);
                guest.get(&path).await
            } else {
                let back = guest.get(&path).await.ok(303);
                faults.kill_after(steps);
                finish(&guest, flow, &code(&back)).await
            };
            faults.kill_after(u64::MAX);
            let is_done = first.status < 400;
            assert!(is_done || first.status == 500, "{steps}: {first:?}");
            if at_callback && !is_done {
                assert!([303, 400].contains(&guest.get(&path).await.status), "{steps}");
            }
            let again = sign_in(&fake, &guest, "github").await;
            let owner = guest.clone().with_token(again["access_token"].as_str().unwrap());
            owner.put("me/name", json!({ "name": "Ada" })).await.ok(200);
            if let (true, false) = (is_done, at_callback) {
                assert_eq!(first.data()["user"]["id"], again["user"]["id"]);
            }
            assert_eq!(owner.get("ui").await.ok(200).data()["auth"]["moderator"], true, "{steps}");
            assert_eq!(world.findings().await, [""; 0], "{steps}");
            if is_done {
                assert!(steps >= 4, "{steps} steps are too few");
                break;
            }
        }
    }
}

#[tokio::test]
async fn the_client_secret_is_in_the_body_only_if_the_provider_accepts_nothing_else() {
    for (listed, by_post) in [
        (json!(["client_secret_post"]), true),
        (json!(["client_secret_post", "client_secret_basic"]), false),
        (Value::Null, false),
    ] {
        let (fake, _world, guest) = begin(&[]).await;
        fake.discover("token_endpoint_auth_methods_supported", listed.clone());
        sign_in(&fake, &guest, "oidc").await;
        assert_eq!(lock(&fake.shared).got_by_post, by_post, "{listed}");
    }
}

#[tokio::test]
async fn only_a_name_that_may_be_chosen_is_suggested() {
    let (fake, _world, guest) = begin(&[("SVC_SITE_NAME", "Example"), ("SVC_MODERATORS", "oidc:mod")]).await;
    let suggested = async || sign_in(&fake, &guest, "oidc").await["suggested_name"].clone();
    fake.claim("name", &json!(" Ada\u{202e}\n"));
    assert_eq!(suggested().await, "Ada");
    for refused in ["Examp1e", "\u{200b}"] {
        fake.claim("name", &json!(refused));
        assert_eq!(suggested().await, Value::Null, "{refused:?}");
    }
    fake.claim("name", &Value::Null);
    lock(&fake.shared).userinfo = json!({ "sub": "ada", "name": "Ada of userinfo" });
    assert_eq!(suggested().await, "Ada of userinfo");
    lock(&fake.shared).userinfo = json!({ "sub": "eve", "name": "Eve" });
    assert_eq!(suggested().await, Value::Null, "of another subject");
    fake.fail("/userinfo", 500, "");
    assert_eq!(suggested().await, Value::Null);
}

#[tokio::test]
async fn accounts_from_different_sign_in_methods_are_never_linked() {
    let (fake, world, guest) = begin(&MAIL).await;
    let by_code = crate::sign_in::sign_in(&world, &world.guest(), "ada@id.example").await.user["id"].clone();
    let id = async |provider: &str| sign_in(&fake, &guest, provider).await["user"]["id"].clone();
    let (github, oidc) = (id("github").await, id("oidc").await);
    let twin = Fake::start().await;
    let elsewhere = world.again(&[&twin.settings()[..], &MAIL].concat());
    let other = sign_in(&twin, &elsewhere.guest(), "github").await["user"]["id"].clone();
    assert!(github != oidc && github != by_code && oidc != by_code && github != other);
}

#[tokio::test]
async fn an_address_that_the_provider_has_verified_gets_notifications() {
    let (fake, world, _) = begin(&MAIL).await;
    for (provider, verified, known) in [
        ("oidc", json!(true), json!("a•••@id.example")),
        ("github", Value::Null, json!("a•••@github.example")),
        ("oidc", json!(false), Value::Null),
        ("oidc", json!("true"), Value::Null),
    ] {
        fake.claim("email_verified", &verified);
        fake.claim("sub", &json!(format!("{provider} {verified}")));
        let data = sign_in(&fake, &world.guest(), provider).await;
        let member = world.guest().with_token(data["access_token"].as_str().unwrap());
        let answer = member.put("me/notifications", tests::wants(&["replies"])).await;
        if known.is_null() {
            answer.invalid("email");
        } else {
            answer.ok(200);
            let shown = member.get("me/notifications").await.ok(200).data()["email"].clone();
            assert_eq!(shown, known, "{provider}");
        }
    }
}

#[tokio::test]
async fn a_provider_account_can_moderate_and_be_banned_exported_and_erased() {
    let (fake, world, guest) = begin(&[("SVC_MODERATORS", "github:7")]).await;
    let data = sign_in(&fake, &guest, "github").await;
    let owner = guest.clone().with_token(data["access_token"].as_str().unwrap());
    assert_eq!(owner.get("ui").await.ok(200).data()["auth"]["moderator"], true);
    let log = owner.get("moderation/log").await.ok(200);
    assert_eq!(log.rows()[0]["action"], "sign_in");
    let ada = sign_in(&fake, &guest, "oidc").await;
    let member = guest.clone().with_token(ada["access_token"].as_str().unwrap());
    assert_eq!(member.get("ui").await.ok(200).data()["auth"]["moderator"], false);
    member.put("me/name", json!({ "name": "Ada" })).await.ok(200);
    member.write("posts/1", None, "By an account elsewhere.").await.ok(201);
    owner.put(&format!("users/{}/ban", ada["user"]["id"]), json!({})).await.ok(200);
    let again = sign_in(&fake, &guest, "oidc").await;
    let banned = guest.clone().with_token(again["access_token"].as_str().unwrap());
    banned.write("posts/1", None, "x").await.refused(403, "comment_banned");
    // A flow that returned from the provider but isn't finished is erased too.
    let (flow, back) = go(&fake, &guest, "oidc").await;
    world.wait_until_idle().await;
    let id = ada["user"]["id"].as_u64().unwrap();
    let lines = exported(&world, Who::User(UserId(id))).await;
    assert!(lines.iter().any(|(_, line)| line["body"] == "By an account elsewhere."), "{lines:?}");
    assert_eq!(erase_user(&world, id).await.left, 0);
    failed(&finish(&guest, &flow, &code(&back)).await);
    let refresh = json!({ "refresh_token": again["refresh_token"] });
    guest.post("sign_in/refresh", refresh).await.refused(422, "sign_in_failed");
    let back = sign_in(&fake, &guest, "oidc").await;
    assert_eq!((&back["user"]["id"], &back["user"]["name"]), (&ada["user"]["id"], &Value::Null));
}

#[tokio::test]
async fn a_network_starts_120_flows_and_reaches_the_callback_240_times_an_hour() {
    let (_fake, world, _) = begin(&[]).await;
    let at = |host: u32| world.guest().from(&format!("2001:db8:7:{host:x}::1"));
    for n in 0..120 {
        start(&at(n), "github", PAGE).await.ok(201);
    }
    let refused = start(&at(999), "github", PAGE).await.refused(429, "rate_limited");
    assert_eq!((refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")), ("120", "0"));
    assert!(refused.header("retry-after").parse::<u64>().unwrap() <= 3_600);
    for n in 0..240 {
        at(n).get("sign_in/callback/github?state=x").await.ok(400);
    }
    let refused = at(999).get("sign_in/callback/github?state=x").await.ok(429);
    assert_eq!((refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")), ("240", "0"));
    assert!(refused.header("content-type").starts_with("text/html"));
    assert!(refused.header("retry-after").parse::<u64>().unwrap() <= 3_600);
    world.pass(Duration::from_hours(1));
    start(&at(0), "github", PAGE).await.ok(201);
}

#[tokio::test]
async fn the_table_has_no_state_code_verifier_or_person_in_plain_text() {
    let (fake, world, guest) = begin(&MAIL).await;
    let started = start(&guest, "oidc", PAGE).await.ok(201);
    let query = fake.authorize(&started.data()["url"]);
    let asked = lock(&fake.shared).codes.values().next().unwrap().clone();
    let flow = started.data()["flow"].as_str().unwrap().to_owned();
    let hidden = async |texts: &[&str]| {
        let items = format!("{:?}", world.items().await);
        for text in texts {
            assert!(!items.contains(text), "{text}");
        }
    };
    hidden(&[&asked["state"], &asked["nonce"], &flow, VERIFIER]).await;
    let back = guest.get(&format!("sign_in/callback/oidc?{query}")).await.ok(303);
    let secret = code(&back);
    hidden(&[&asked["state"], &flow, &secret, "Ada Lovelace", "ada@id.example", "the access token"]).await;
    finish(&guest, &json!(flow), &secret).await.ok(200);
    hidden(&[&flow, &secret, VERIFIER, "Ada Lovelace", "ada@id.example", "the access token"]).await;
}
