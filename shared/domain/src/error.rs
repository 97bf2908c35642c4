//! The errors of the API. A [`Refusal`] is sent to the caller and has a status, a code and a message; [`Refusal::row`]
//! has the table of refusals, which is also in `tests/errors.out`. `http::response` turns a refusal into a body. A
//! [`Fault`] is a failure of the service: it is logged and never shown.

use std::error::Error as StdError;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub enum Error {
    Refused(Refusal),
    Fault(Fault),
}

#[derive(Clone, Debug)]
pub enum Refusal {
    NotFound,
    UnknownType,
    /// The methods that the path supports.
    MethodNotAllowed(Vec<Method>),
    Unauthenticated,
    Forbidden,
    CommentBanned,
    EditClosed,
    ThreadClosed,
    ReadOnly,
    RateLimited {
        /// Seconds until a retry may succeed.
        after: u64,
        /// The limit for the response's headers. `None` if they report the caller's rate limit instead.
        limit: Option<u32>,
    },
    Unavailable,
    PayloadTooLarge,
    Invalid(FieldErrors),
    SpamRejected,
    AlreadyReported,
    CommentChanged,
    NestingDisabled,
    ParentMismatch,
    CannotPinReply,
    SignInFailed,
    ServerError,
}

impl Refusal {
    /// Every refusal once, in the order of [`Self::row`].
    #[must_use]
    pub fn all() -> [Self; 21] {
        [
            Self::NotFound,
            Self::UnknownType,
            Self::MethodNotAllowed(Vec::new()),
            Self::Unauthenticated,
            Self::Forbidden,
            Self::CommentBanned,
            Self::EditClosed,
            Self::ThreadClosed,
            Self::ReadOnly,
            Self::RateLimited { after: 0, limit: None },
            Self::Unavailable,
            Self::PayloadTooLarge,
            Self::Invalid(FieldErrors::default()),
            Self::SpamRejected,
            Self::AlreadyReported,
            Self::CommentChanged,
            Self::NestingDisabled,
            Self::ParentMismatch,
            Self::CannotPinReply,
            Self::SignInFailed,
            Self::ServerError,
        ]
    }

    /// Status, code and message.
    #[must_use]
    pub fn row(&self) -> (u16, &'static str, &str) {
        match self {
            Self::NotFound => (404, "not_found", "Not found."),
            Self::UnknownType => (404, "not_found", "Unknown commentable type."),
            Self::MethodNotAllowed(_) => (405, "method_not_allowed", "Method not allowed."),
            Self::Unauthenticated => (401, "unauthenticated", "Unauthenticated."),
            Self::Forbidden => (403, "forbidden", "This action is not allowed."),
            Self::CommentBanned => (403, "comment_banned", "You are banned from commenting."),
            Self::EditClosed => (403, "edit_closed", "This comment can no longer be edited or deleted."),
            Self::ThreadClosed => (403, "thread_closed", "This thread is closed."),
            Self::ReadOnly => (423, "read_only", "Comments are read-only right now."),
            Self::RateLimited { .. } => (429, "rate_limited", "Too many requests."),
            Self::Unavailable => (503, "unavailable", "The service is temporarily unavailable. Try again in a moment."),
            Self::PayloadTooLarge => (413, "payload_too_large", "The file is too large."),
            Self::Invalid(errors) => (422, "validation_failed", errors.first()),
            Self::SpamRejected => (422, "spam_rejected", "The comment was rejected as spam."),
            Self::AlreadyReported => (409, "already_reported", "You have already reported this comment."),
            Self::CommentChanged => (409, "comment_changed", "The comment has been edited since you saw it."),
            Self::NestingDisabled => (422, "nesting_disabled", "Replies are turned off."),
            Self::ParentMismatch => (422, "parent_mismatch", "The parent comment belongs to another thread."),
            Self::CannotPinReply => (422, "cannot_pin_reply", "Only top-level comments can be pinned."),
            Self::SignInFailed => (422, "sign_in_failed", "That code or session is invalid or has expired."),
            Self::ServerError => (500, "server_error", "Something went wrong on our side."),
        }
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.row().0).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The invalid fields of a request, each with a message. A refusal that is sent has at least one.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors(Vec<(&'static str, String)>);

impl FieldErrors {
    #[must_use]
    pub fn one(field: &'static str, message: impl Into<String>) -> Refusal {
        let mut errors = Self::default();
        errors.add(field, message);
        Refusal::Invalid(errors)
    }

    pub fn add(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push((field, message.into()));
    }

    pub fn check(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::Invalid(self)) }
    }

    #[must_use]
    pub fn used_key() -> Refusal {
        Self::one("idempotency-key", "This Idempotency-Key was used for another request.")
    }

    fn first(&self) -> &str {
        self.0.first().map_or("The request is invalid.", |(_, message)| message)
    }

    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (field, message) in &self.0 {
            let messages = fields.entry(*field).or_insert_with(|| json!([]));
            if let Value::Array(messages) = messages {
                messages.push(json!(message));
            }
        }
        Value::Object(fields)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub struct Fault {
    doing: &'static str,
    /// Whether the cause may be temporary, such as throttling or a conflict that outlasted every retry. The response is
    /// then 503 instead of 500, so that the caller may try again.
    pub transient: bool,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Fault {
    pub fn new(doing: &'static str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { doing, transient: false, source: Some(source.into()) }
    }

    #[must_use]
    pub fn transient(doing: &'static str) -> Self {
        Self { doing, transient: true, source: None }
    }

    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its causes on one line.
#[must_use]
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn no_refusal_is_left_out_of_all() {
        let is_row =
            |line: &&str| line.split_once("=> (").is_some_and(|(_, row)| row.starts_with(|c: char| c.is_numeric()));
        let rows = include_str!("error.rs").lines().filter(is_row);
        assert_eq!(rows.count(), Refusal::all().len());
    }
}
