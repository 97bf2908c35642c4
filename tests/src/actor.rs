//! A caller: its address, user agent, token and headers, and the requests it makes.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use ring::hmac;
use serde_json::{Value, json};
use server::gateway::Gateway;
use shared::aws::https;

use crate::response::{TestResponse, seen};
use crate::{form, privacy};

const COMMENT_KEY: HeaderName = HeaderName::from_static("comment-key");

#[derive(Clone)]
enum Transport {
    Gateway(Gateway),
    Http(https::Client, Scheme),
}

#[derive(Clone)]
pub struct Actor {
    transport: Transport,
    host: Authority,
    prefix: String,
    ip: IpAddr,
    headers: HeaderMap,
}

impl Actor {
    /// Creates an actor in a world. `number` determines the IP address and the user agent.
    pub(crate) fn new(gateway: &Gateway, prefix: &str, number: u64) -> Self {
        let bits = u32::from(Ipv4Addr::new(10, 0, 0, 0)) + u32::try_from(number).expect("few actors");
        let actor = Self {
            transport: Transport::Gateway(gateway.clone()),
            host: Authority::from_static("api.test"),
            prefix: prefix.to_owned(),
            ip: Ipv4Addr::from_bits(bits).into(),
            headers: HeaderMap::new(),
        };
        actor.with(HOST, "api.test").with(USER_AGENT, &format!("browser/{number}"))
    }

    /// Creates an actor that calls a service over HTTP. `url` is the absolute base URL of all routes.
    pub(crate) fn at(url: &Uri, client: &https::Client) -> Self {
        let actor = Self {
            transport: Transport::Http(client.clone(), url.scheme().expect("an absolute address").clone()),
            host: url.authority().expect("an absolute address").clone(),
            prefix: url.path().trim_matches('/').to_owned(),
            ip: Ipv4Addr::LOCALHOST.into(),
            headers: HeaderMap::new(),
        };
        actor.with(USER_AGENT, "walker/1")
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.insert(name, HeaderValue::from_str(value).expect("a header's value"));
        self
    }

    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        self.with(AUTHORIZATION, &format!("Bearer {token}"))
    }

    /// Adds an `Idempotency-Key` to the actor's requests.
    #[must_use]
    pub fn keyed(self, key: &str) -> Self {
        self.with(HeaderName::from_static("idempotency-key"), key)
    }

    /// Adds a `Comment-Key` header, with a different key for each name.
    #[must_use]
    pub fn with_key(self, name: &str) -> Self {
        self.with(COMMENT_KEY, &format!("{:_<43}", format!("{}{name}", privacy::KEY)))
    }

    #[must_use]
    pub fn from(mut self, ip: &str) -> Self {
        self.ip = ip.parse().expect("an address");
        self
    }

    pub fn token(&self) -> &str {
        let value = self.headers[AUTHORIZATION].to_str().expect("a token is text");
        value.trim_start_matches("Bearer ")
    }

    pub async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, "").await
    }

    /// Posts `body`, or an empty body if it is `null`.
    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.send_json(Method::POST, path, body).await
    }

    pub async fn put(&self, path: &str, body: Value) -> TestResponse {
        self.send_json(Method::PUT, path, body).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> TestResponse {
        self.send_json(Method::PATCH, path, body).await
    }

    pub async fn delete(&self, path: &str) -> TestResponse {
        self.send(Method::DELETE, path, "").await
    }

    pub async fn send_json(&self, method: Method, path: &str, body: Value) -> TestResponse {
        for field in ["email", "guest_email"] {
            privacy::hide_email(body[field].as_str().unwrap_or_default());
        }
        for field in ["code", "refresh_token"] {
            privacy::hide_word(body[field].as_str().unwrap_or_default());
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, body).await
    }

    /// Sends a request. `path` is relative to the API prefix, or an absolute URL from a link.
    pub async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> TestResponse {
        let link: Option<Uri> = path.parse().ok().filter(|uri: &Uri| uri.authority() == Some(&self.host));
        let below = link.as_ref().and_then(Uri::path_and_query);
        let uri = below.map_or_else(|| format!("/{}/{path}", self.prefix), ToString::to_string);
        self.send_at(method, &uri, body).await
    }

    /// Sends a request to `uri`, which begins with a slash and may be outside the API prefix.
    pub async fn send_at(&self, method: Method, uri: &str, body: impl Into<Bytes>) -> TestResponse {
        self.try_at(method, uri, body).await.unwrap_or_else(|error| panic!("{uri}: {error:?}"))
    }

    /// Like [`Self::send`], but returns `None` if the service ends before its response is complete.
    pub async fn try_send(&self, method: Method, path: &str, body: &Value) -> Option<TestResponse> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.try_at(method, &format!("/{}/{path}", self.prefix), body).await.ok()
    }

    async fn try_at(&self, method: Method, uri: &str, body: impl Into<Bytes>) -> Result<TestResponse, https::Error> {
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().expect("an address");
        request.headers_mut().clone_from(&self.headers);
        if !request.body().is_empty() {
            request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        let reply = match &self.transport {
            Transport::Gateway(gateway) => TestResponse::read(gateway.call(request, self.ip).await),
            Transport::Http(client, scheme) => {
                let address = Uri::builder().scheme(scheme.clone()).authority(self.host.clone()).path_and_query(uri);
                *request.uri_mut() = address.build().expect("an address");
                TestResponse::read(client.send(request).await?.map(Bytes::from))
            }
        };
        self.look_through(&reply);
        Ok(reply)
    }

    /// Fails if the response contains a secret of the service or of this caller, or an email address from a request.
    #[track_caller]
    fn look_through(&self, reply: &TestResponse) {
        let header = |name| self.headers.get(name).and_then(|value| value.to_str().ok());
        // Over HTTP, the caller may have the same IP address as the service, whose URLs contain it.
        let ip = matches!(self.transport, Transport::Gateway(_)).then(|| self.ip.to_string());
        let token = header(AUTHORIZATION).map(|value| value.trim_start_matches("Bearer "));
        let own = [ip.as_deref(), token, header(USER_AGENT), header(COMMENT_KEY)]
            .into_iter()
            .flatten()
            .filter(|own| own.len() > 5);
        let own: Vec<&str> = own.collect();
        privacy::look_through_answer(&format!("{:?} {}", reply.headers, reply.json), &own);
    }

    /// Posts a comment in a thread such as `posts/1`. A guest's comment has a name and an email address, as in
    /// [`by_guest`].
    pub async fn write(&self, thread: &str, parent: Option<u64>, body: &str) -> TestResponse {
        let is_guest = !self.headers.contains_key(AUTHORIZATION);
        let mut comment = if is_guest { by_guest(body) } else { json!({ "body": body }) };
        if let Some(parent) = parent {
            comment["parent_id"] = parent.into();
        }
        self.post(&format!("{thread}/comments"), comment).await
    }

    pub async fn comment(&self, thread: &str, body: &str) -> u64 {
        self.write(thread, None, body).await.ok(201).id()
    }

    pub async fn reply(&self, thread: &str, parent: u64, body: &str) -> u64 {
        self.write(thread, Some(parent), body).await.ok(201).id()
    }

    /// Posts the comments `0`, `1`, … below `parent`, or at the top level if it is `None`. Returns their ids.
    pub async fn write_many(&self, thread: &str, parent: impl Into<Option<u64>>, count: usize) -> Vec<u64> {
        let (parent, mut ids) = (parent.into(), Vec::new());
        for n in 0..count {
            ids.push(self.write(thread, parent, &n.to_string()).await.ok(201).id());
        }
        ids
    }

    pub async fn edit(&self, comment: impl Display, body: &str) -> TestResponse {
        self.patch(&format!("comments/{comment}"), json!({ "body": body })).await
    }

    pub async fn remove(&self, comment: impl Display) -> TestResponse {
        self.delete(&format!("comments/{comment}")).await
    }

    pub async fn like(&self, comment: impl Display) -> TestResponse {
        self.post(&format!("comments/{comment}/like"), Value::Null).await
    }

    pub async fn report(&self, comment: impl Display, reason: &str) -> TestResponse {
        self.post(&format!("comments/{comment}/report"), json!({ "reason": reason })).await
    }

    pub async fn pin(&self, comment: impl Display) -> TestResponse {
        self.post(&format!("comments/{comment}/pin"), Value::Null).await
    }

    pub async fn unpin(&self, comment: impl Display) -> TestResponse {
        self.delete(&format!("comments/{comment}/pin")).await
    }

    /// Sends a moderator's decision about a comment: `approve`, `reject` or `reports/dismiss`.
    pub async fn judge(&self, comment: impl Display, verdict: &str) -> TestResponse {
        self.post(&format!("comments/{comment}/{verdict}"), Value::Null).await
    }

    pub async fn reject(&self, comment: impl Display, reason: &str, note: &str) -> TestResponse {
        self.post(&format!("comments/{comment}/reject"), json!({ "reason": reason, "note": note })).await
    }

    /// Returns the ids of the first 50 comments in a moderation queue: `pending`, `reported`, `rejected` or `all`.
    pub async fn queue(&self, state: &str) -> Vec<u64> {
        self.get(&format!("moderation/comments?state={state}&per_page=50")).await.ok(200).ids()
    }

    /// Uploads a file with these parts of `multipart/form-data`: field, file name and content.
    pub async fn upload(&self, parts: &[(&str, &str, &[u8])]) -> TestResponse {
        self.upload_by("XyZ", parts).await
    }

    pub async fn upload_by(&self, boundary: &str, parts: &[(&str, &str, &[u8])]) -> TestResponse {
        let actor = self.clone().with(CONTENT_TYPE, &format!("multipart/form-data; boundary={boundary}"));
        actor.send(Method::POST, "media", form(boundary, parts)).await
    }

    pub async fn list(&self, thread: &str, query: &str) -> TestResponse {
        self.get(&format!("{thread}/comments?{query}")).await.ok(200)
    }

    pub async fn replies(&self, parent: u64, query: &str) -> TestResponse {
        self.get(&format!("comments/{parent}/replies?{query}")).await.ok(200)
    }

    /// Fetches the page at `path` and, through its links, all later pages.
    pub async fn walk(&self, path: &str) -> Vec<TestResponse> {
        let mut pages = vec![self.get(path).await.ok(200)];
        while let Some(next) = pages.last().and_then(TestResponse::next) {
            pages.push(self.get(next).await.ok(200));
            assert!(pages.len() < 1_000, "an endless walk");
        }
        pages
    }

    /// Fetches all earlier pages through their links. Returns all pages including `page`, in list order.
    pub async fn walk_back(&self, page: &TestResponse) -> Vec<TestResponse> {
        let mut pages = vec![page.clone()];
        while let Some(prev) = pages.last().and_then(TestResponse::prev) {
            pages.push(self.get(prev).await.ok(200));
            assert!(pages.len() < 1_000, "an endless walk");
        }
        pages.reverse();
        pages
    }

    /// Fetches all pages from `path` on, and then back. Fails if the two walks differ. Returns the ids in list order.
    pub async fn walk_both_ways(&self, path: &str) -> Vec<u64> {
        let pages = self.walk(path).await;
        let back = self.walk_back(pages.last().expect("a page")).await;
        assert_eq!(seen(&back), seen(&pages), "back, {path}");
        seen(&pages)
    }

    /// Finds a comment in a list of the newest 50, at the top level or embedded.
    pub async fn see(&self, thread: &str, id: u64) -> Value {
        let list = self.list(thread, "per_page=50").await;
        list.find(id).unwrap_or_else(|| panic!("{id} is not in {:#}", list.json))
    }
}

/// Returns a request body that turns on these email notifications and turns off all others.
#[must_use]
pub fn wants(on: &[&str]) -> Value {
    let is_on = |name: &str| on.contains(&name);
    json!({ "replies": is_on("replies"), "mentions": is_on("mentions"), "own_records": is_on("own_records") })
}

/// Returns the request body of a guest's comment, with a name and an email address.
#[must_use]
pub fn by_guest(body: &str) -> Value {
    json!({ "body": body, "guest_name": "Grace", "guest_email": "grace@example.org" })
}

/// Returns a token with this header and these claims. It is signed with HMAC-SHA256, whatever the header's `alg` is.
#[must_use]
pub fn sign(header: &Value, claims: &Value, secret: &str) -> String {
    let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", text(header), text(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{tag}")
}
