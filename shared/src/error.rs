//! The error table: every refusal the API knows, its status, code and message, and the one place where it becomes a
//! body (spec, section 7). What fails for reasons that are not the caller's is a [`Fault`]: logged, never shown.

use std::error::Error as StdError;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub enum Error {
    /// The caller's doing.
    Refused(Refusal),
    /// Ours, or the table's.
    Fault(Fault),
}

#[derive(Clone, Debug)]
pub enum Refusal {
    NotFound,
    UnknownType,
    /// With what the address does answer to.
    MethodNotAllowed(Vec<Method>),
    Unauthenticated,
    Forbidden,
    CommentBanned,
    ReadOnly,
    /// With the seconds until the next try may succeed.
    RateLimited(u64),
    Unavailable,
    PayloadTooLarge,
    Invalid(FieldErrors),
    SpamRejected,
    AlreadyReported,
    NestingDisabled,
    ParentMismatch,
    CannotPinReply,
    ServerError,
}

impl Refusal {
    /// Status, code and message.
    pub(crate) fn row(&self) -> (u16, &'static str, &str) {
        match self {
            Self::NotFound => (404, "not_found", "Not found."),
            Self::UnknownType => (404, "not_found", "Unknown commentable type."),
            Self::MethodNotAllowed(_) => (405, "method_not_allowed", "This address does not answer to that method."),
            Self::Unauthenticated => (401, "unauthenticated", "Unauthenticated."),
            Self::Forbidden => (403, "forbidden", "This action is not allowed."),
            Self::CommentBanned => (403, "comment_banned", "You are banned from commenting."),
            Self::ReadOnly => (423, "read_only", "Comments are read-only at the moment."),
            Self::RateLimited(_) => (429, "rate_limited", "Too many requests."),
            Self::Unavailable => (503, "unavailable", "The service cannot take this at the moment. Try again soon."),
            Self::PayloadTooLarge => (413, "payload_too_large", "The file is too large."),
            Self::Invalid(errors) => (422, "validation_failed", errors.first()),
            Self::SpamRejected => (422, "spam_rejected", "The comment was rejected as spam."),
            Self::AlreadyReported => (409, "already_reported", "You have already reported this comment."),
            Self::NestingDisabled => (422, "nesting_disabled", "Replies are turned off."),
            Self::ParentMismatch => (422, "parent_mismatch", "The parent comment belongs to another thread."),
            Self::CannotPinReply => (422, "cannot_pin_reply", "Only top-level comments can be pinned."),
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

/// What was wrong with which field of the request; never empty where it is an error.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors(Vec<(&'static str, String)>);

impl FieldErrors {
    /// One field, one complaint.
    #[must_use]
    pub fn one(field: &'static str, message: impl Into<String>) -> Refusal {
        let mut errors = Self::default();
        errors.add(field, message);
        Refusal::Invalid(errors)
    }

    pub fn add(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push((field, message.into()));
    }

    /// Refuses when anything was added.
    pub fn check(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::Invalid(self)) }
    }

    /// A key that was used for another request.
    #[must_use]
    pub fn used_key() -> Refusal {
        Self::one("idempotency-key", "This Idempotency-Key was used for another request.")
    }

    fn first(&self) -> &str {
        self.0.first().map_or("The request is not valid.", |(_, message)| message)
    }

    pub(crate) fn to_json(&self) -> Value {
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

/// What went wrong and where, for the log.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub struct Fault {
    doing: &'static str,
    /// A throttle or a conflict that outlasted every retry: the caller may try again.
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

    /// The whole chain on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut next = StdError::source(self);
        while let Some(cause) = next {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            next = cause.source();
        }
        text
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
