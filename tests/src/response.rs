//! A response, and the assertions that tests make about it. Each failure shows the response.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response};
use serde_json::{Value, json};
use shared::http::request::RefusedBecause;
use shared::store::meter::Cost;

#[derive(Clone, Debug)]
pub struct TestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    /// `null` if the body is empty.
    pub json: Value,
    /// The body as received, compressed or not.
    pub body: Bytes,
    pub cost: Cost,
    /// The reason for a refusal, which the service only logs.
    pub refused_because: Option<String>,
}

impl TestResponse {
    pub(crate) fn read(response: Response<Bytes>) -> Self {
        let cost = response.extensions().get().copied().unwrap_or_default();
        let refused_because = response.extensions().get::<RefusedBecause>().map(ToString::to_string);
        let (head, body) = response.into_parts();
        let mut text = Vec::new();
        // A response to HEAD has the encoding header, but no body.
        let is_gzip = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
        if is_gzip && !body.is_empty() {
            GzDecoder::new(body.as_ref()).read_to_end(&mut text).expect("the body is gzip");
        } else {
            text.extend_from_slice(&body);
        }
        let json = match text.as_slice() {
            [] => Value::Null,
            text => serde_json::from_slice(text).unwrap_or_else(|_| json!(String::from_utf8_lossy(text))),
        };
        Self { status: head.status.as_u16(), headers: head.headers, json, body, cost, refused_because }
    }

    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "asserting is use enough")]
    pub fn ok(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:#}", self.json);
        self
    }

    /// Requires a refusal in the error envelope.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "asserting is use enough")]
    pub fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.json["code"].as_str()), (status, Some(code)), "{:#}", self.json);
        let fields = self.json.as_object().expect("an object");
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["code", "errors", "message"]);
        assert!(self.json["message"].as_str().is_some_and(|message| !message.is_empty()), "{:#}", self.json);
        let errors = self.json["errors"].as_object().expect("errors are an object");
        assert_eq!(errors.is_empty(), code != "validation_failed", "{:#}", self.json);
        assert_eq!(self.headers[CONTENT_TYPE], "application/json");
        self
    }

    /// Requires a 422 for this field alone, with the field's error as the message.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "asserting is use enough")]
    pub fn invalid(self, field: &str) -> Self {
        let reply = self.refused(422, "validation_failed");
        let errors = reply.json["errors"].as_object().expect("errors are an object");
        assert_eq!(errors.keys().collect::<Vec<_>>(), [field], "{:#}", reply.json);
        assert_eq!(reply.json["message"], errors[field][0]);
        reply
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        value.to_str().expect("a header is text")
    }

    pub fn data(&self) -> &Value {
        &self.json["data"]
    }

    /// Returns the id of the response's only comment.
    #[track_caller]
    pub fn id(&self) -> u64 {
        self.data()["id"].as_u64().unwrap_or_else(|| panic!("no id in {:#}", self.json))
    }

    #[track_caller]
    pub fn rows(&self) -> &[Value] {
        self.data().as_array().unwrap_or_else(|| panic!("no list: {:#}", self.json))
    }

    #[track_caller]
    pub fn ids(&self) -> Vec<u64> {
        ids(self.data())
    }

    #[track_caller]
    pub fn bodies(&self) -> Vec<&str> {
        self.rows().iter().map(|row| row["body"].as_str().expect("a body")).collect()
    }

    /// Finds a comment among the list's rows and their embedded replies.
    pub fn find(&self, id: u64) -> Option<Value> {
        let embedded = self.rows().iter().flat_map(|row| row["replies"].as_array().into_iter().flatten());
        self.rows().iter().chain(embedded).find(|row| row["id"] == id).cloned()
    }

    pub fn total(&self) -> u64 {
        self.json["meta"]["total"].as_u64().expect("a page has a total")
    }

    pub fn next(&self) -> Option<&str> {
        self.json["links"]["next"].as_str()
    }

    pub fn prev(&self) -> Option<&str> {
        self.json["links"]["prev"].as_str()
    }
}

#[track_caller]
#[must_use]
pub fn ids(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list:#}"));
    list.iter().map(|row| row["id"].as_u64().expect("an id")).collect()
}

/// Returns the ids of these pages, in order.
#[must_use]
pub fn seen(pages: &[TestResponse]) -> Vec<u64> {
    pages.iter().flat_map(TestResponse::ids).collect()
}

#[must_use]
pub fn reversed(ids: &[u64]) -> Vec<u64> {
    ids.iter().rev().copied().collect()
}
