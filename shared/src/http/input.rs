//! Reads the fields of a JSON request and collects their errors. Lengths are in Unicode characters.
//!
//! Readers see the errors of fields that they fill in, so these errors are in the reader's language and name the field as the
//! form does. All other errors are for developers.

use serde_json::{Map, Value};

use crate::domain::language::Language;
use crate::domain::markdown;
use crate::domain::name;
use crate::domain::texts::{Errors, Labels};
use crate::domain::time::Timestamp;
use crate::domain::user::MAX_NAME;
use crate::domain::visible;
use crate::error::{FieldErrors, Refusal};

/// Maximum characters of a comment's body.
pub const MAX_BODY: usize = 10_000;
/// Maximum characters of a report's details.
pub const MAX_REPORT_DETAILS: usize = 500;

/// The key of a field's label in the widget's texts; `None` for a field that readers don't fill in.
fn label(field: &str) -> Option<&'static str> {
    Some(match field {
        "body" => "comment",
        "guest_name" => "guest_name",
        "guest_email" => "guest_email",
        "email" => "sign_in_address",
        "code" => "sign_in_code",
        "name" => "sign_in_name",
        "reason" => "report_reason",
        "additional_details" => "report_details",
        _ => return None,
    })
}

/// The texts of a field's errors, and the field's name for use in them. Both are in the reader's language if readers fill in
/// the field, otherwise in English.
#[must_use]
pub fn wording(reader: Option<Language>, field: &str) -> (Errors, String) {
    match (reader, label(field)) {
        (Some(language), Some(label)) => (Errors::of(language), Labels::of_widget(language).text(label).to_owned()),
        _ => (Errors::of(Language::ENGLISH), format!("The {field}")),
    }
}

pub struct Input {
    fields: Map<String, Value>,
    errors: FieldErrors,
    /// The language of the reader who fills in the form; `None` for a request that developers write.
    reader: Option<Language>,
}

impl Input {
    #[must_use]
    pub fn new(fields: Map<String, Value>) -> Self {
        Self { fields, errors: FieldErrors::default(), reader: None }
    }

    /// The fields of a form that a reader filled in, with errors in `language`.
    #[must_use]
    pub fn of_reader(fields: Map<String, Value>, language: Language) -> Self {
        Self { reader: Some(language), ..Self::new(fields) }
    }

    /// Adds an error whose text names the field.
    pub fn fail_as(&mut self, field: &'static str, text: impl FnOnce(Errors, &str) -> String) {
        let (errors, name) = wording(self.reader, field);
        self.fail(field, text(errors, &name));
    }

    pub fn fail(&mut self, field: &'static str, message: impl Into<String>) {
        self.errors.add(field, message);
    }

    pub fn finish(self) -> Result<(), Refusal> {
        self.errors.check()
    }

    /// Returns `read` if all fields were valid.
    pub fn finish_with<T>(self, read: Option<T>) -> Result<T, Refusal> {
        self.errors.check()?;
        read.ok_or_else(|| Refusal::Invalid(FieldErrors::default()))
    }

    /// A field that is present and not null.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A string of at most `max` characters; absent and null are `None`.
    pub fn optional_text(&mut self, field: &'static str, max: usize) -> Option<String> {
        let text = match self.value(field)? {
            Value::String(text) => text.clone(),
            _ => {
                self.fail_as(field, Errors::not_text);
                return None;
            }
        };
        if text.chars().count() > max {
            self.fail_as(field, |errors, name| errors.too_long(name, &max.to_string()));
            return None;
        }
        Some(text)
    }

    /// Like [`Self::optional_text`], for a text on one line.
    pub fn optional_line(&mut self, field: &'static str, max: usize) -> Option<String> {
        let text = self.optional_text(field, max)?;
        if !visible::is_plain_line(&text) {
            let message = "must be one line, without control characters or bidirectional overrides";
            self.fail(field, format!("The {field} {message}."));
        }
        Some(text)
    }

    /// A string of 1 to `max` characters, at least one of which is visible. Returns an empty string if the field is refused.
    pub fn required_text(&mut self, field: &'static str, max: usize) -> String {
        let given = self.value(field).is_some();
        match self.optional_text(field, max) {
            Some(text) if !visible::shows_nothing(&text) => text,
            None if given => String::new(),
            _ => {
                self.fail_missing(field);
                String::new()
            }
        }
    }

    /// A name that other readers see.
    pub fn name(&mut self, field: &'static str) -> String {
        let name = self.required_text(field, MAX_NAME);
        if name.chars().any(visible::breaks_names) {
            self.fail_as(field, Errors::controls);
        }
        self.refuse_bidi_overrides(field, &name);
        if name::has_piled_marks(&name) {
            self.fail_as(field, Errors::marks);
        }
        name.trim().to_owned()
    }

    fn fail_missing(&mut self, field: &'static str) {
        self.fail_as(field, Errors::required);
    }

    /// A comment's body. Some of it must be visible when rendered.
    pub fn body(&mut self) -> String {
        let body = self.required_text("body", MAX_BODY);
        // An empty body has already been refused.
        if !body.is_empty() && markdown::shown(&body).is_nothing() {
            self.fail_missing("body");
        }
        self.check_body(body)
    }

    /// A body to preview, which may be missing.
    pub fn draft(&mut self) -> String {
        let body = self.optional_text("body", MAX_BODY).unwrap_or_default();
        self.check_body(body)
    }

    fn check_body(&mut self, body: String) -> String {
        // Also checks the rendered body, because entities can represent any character.
        let rendered = markdown::render(&body, "", &[""; 0]);
        self.refuse_bidi_overrides("body", &format!("{body}{rendered}"));
        body
    }

    /// Refuses characters that display text in a different order than it is written.
    pub fn refuse_bidi_overrides(&mut self, field: &'static str, text: &str) {
        if visible::has_bidi_override(text) {
            self.fail_as(field, Errors::direction);
        }
    }

    /// Refuses bidirectional overrides, and control characters other than line breaks and tabs.
    pub fn refuse_unprintable(&mut self, field: &'static str, text: &str) {
        if text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c)) {
            self.fail_as(field, Errors::controls);
        }
        self.refuse_bidi_overrides(field, text);
    }

    /// A boolean; absent and null are false.
    pub fn flag(&mut self, field: &'static str) -> bool {
        match self.value(field) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.fail(field, format!("The {field} must be true or false."));
                false
            }
        }
    }

    /// An RFC 3339 time; absent and null are `None`.
    pub fn optional_time(&mut self, field: &'static str) -> Option<Timestamp> {
        let time = self.value(field)?.as_str().and_then(Timestamp::parse);
        if time.is_none() {
            self.fail(field, format!("The {field} must be a time, such as 2030-01-02T03:04:05+00:00."));
        }
        time
    }

    /// An id, which is a positive whole number; absent and null are `None`.
    pub fn optional_id(&mut self, field: &'static str) -> Option<u64> {
        let value = self.value(field)?;
        let id = value.as_u64().filter(|id| (1..crate::domain::ids::ID_BOUND).contains(id));
        if id.is_none() {
            self.fail(field, format!("The {field} must be an id."));
        }
        id
    }
}
