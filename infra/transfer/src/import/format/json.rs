//! Reads JSON value by value: JSON Lines line by line, and a dump of one value as a whole.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Deserializer, Value};

use super::super::record::{MAX_VALUE, Record};
use super::super::report::Missing;
use super::super::source::{MARK, ReadError, Reader};
use super::super::time;
use super::{Sink, texts};

/// Names of attributes from the top of a value down to a part of it. The empty path is the value itself.
pub(super) type Path = &'static [&'static str];

type Each<'a> = dyn FnMut(Path, Value) -> Result<(), ReadError> + 'a;

/// Reads all values of a text, one after another. Passes each value at one of `paths` to `each`, and an array there
/// element by element. Skips everything else.
///
/// Fails if there is nothing at any of `paths`, because the text is then in another format.
pub(super) fn read(mut input: Reader, paths: &'static [Path], each: &mut Each<'_>) -> Result<(), ReadError> {
    let mut found = false;
    while input.peek().map_err(|error| ReadError::at_line(input.line(), error))?.is_some() {
        let before = input.line();
        let value = Value::deserialize(&mut Deserializer::from_reader(&mut input)).map_err(|error| {
            ReadError::at_line(before + (error.line() as u64).saturating_sub(1), without_place(&error))
        })?;
        found |= give(value, paths, each)?;
    }
    if found {
        Ok(())
    } else {
        let names: Vec<String> = paths.iter().filter(|path| !path.is_empty()).map(|path| path.join(".")).collect();
        Err(ReadError::whole(match names.as_slice() {
            [] => "has no records".to_owned(),
            names => format!("has no {}; is it in this format?", names.join(" or ")),
        }))
    }
}

/// Passes the values at `paths` to `each`. Returns whether there were any.
fn give(mut value: Value, paths: &'static [Path], each: &mut Each<'_>) -> Result<bool, ReadError> {
    let mut found = false;
    // An array of responses is read like a sequence of responses.
    if !paths.contains(&[].as_slice())
        && let Value::Array(responses) = value
    {
        for response in responses {
            found |= give(response, paths, each)?;
        }
        return Ok(found);
    }
    for path in paths {
        let Some(part) = path.iter().try_fold(&mut value, |part, name| part.get_mut(name)) else { continue };
        match part.take() {
            Value::Array(elements) => {
                found = true;
                elements.into_iter().try_for_each(|element| each(path, element))?;
            }
            // Go writes an empty list as null.
            Value::Null => found |= !path.is_empty(),
            part if part.is_object() || part.is_string() || (part.is_u64() && !path.is_empty()) => {
                found = true;
                each(path, part)?;
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Passes the records of a value's site and page to `sink`, and then the record of the value. Reports replaced
/// characters with the first record that contains them, because other comments repeat the texts of the site and the
/// page.
pub(super) fn send(
    shared: impl IntoIterator<Item = Record>,
    mut record: Record,
    value: &Value,
    sink: &mut Sink<'_>,
) -> Result<(), ReadError> {
    let [total, mut replaced] = value.characters();
    for mut record in shared {
        let id = id(&mut record);
        let texts: BTreeSet<&str> = texts(&mut record).into_iter().map(|text| text.as_str()).collect();
        // A text that is part of another one, such as the path of a URL, isn't a separate text in the value.
        let is_whole = |text: &&&str| !texts.iter().any(|other| other != *text && other.contains(**text));
        let [total, of_record] = sum(texts.iter().filter(is_whole).map(|text| characters(text)));
        replaced = replaced.saturating_sub(of_record);
        missing(id, total, of_record).map_or(Ok(()), &mut *sink)?;
        sink(record)?;
    }
    missing(id(&mut record), total, replaced).map_or(Ok(()), &mut *sink)?;
    sink(record)
}

fn id(record: &mut Record) -> String {
    texts(record).into_iter().next().cloned().unwrap_or_default()
}

fn missing(id: String, total: u64, replaced: u64) -> Option<Record> {
    let read = total.saturating_sub(replaced);
    (replaced > 0).then_some(Record::Missing(Missing { id, read, total: Some(total), is_text: true }))
}

/// The number of characters, and the number of characters that replace invalid ones.
fn characters(text: &str) -> [u64; 2] {
    [text.chars().count() as u64, text.matches(MARK).count() as u64]
}

fn sum(counts: impl Iterator<Item = [u64; 2]>) -> [u64; 2] {
    counts.fold([0, 0], |[total, replaced], [more, more_replaced]| [total + more, replaced + more_replaced])
}

/// Removes the position from a message of `serde_json`, because the position is relative to the value.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(message, _)| message.to_owned())
}

/// Reads an element's attributes regardless of their types, because systems write ids as numbers or strings, and times
/// as strings or objects.
pub(super) trait Attributes {
    fn attribute(&self, name: &str) -> &Value;

    /// Whether any text in this value is longer than [`MAX_VALUE`].
    fn is_oversized(&self) -> bool;

    /// The number of characters in the texts of this value, and the number of characters that replace invalid ones.
    fn characters(&self) -> [u64; 2];

    /// The attribute's text, trimmed; empty if it's missing.
    fn text(&self, name: &str) -> String {
        text_of(self.attribute(name)).trim().to_owned()
    }

    /// The attribute's text, untrimmed, for bodies.
    fn body(&self, name: &str) -> String {
        text_of(self.attribute(name))
    }

    fn optional(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    fn flag(&self, name: &str) -> bool {
        match self.attribute(name) {
            Value::Bool(flag) => *flag,
            Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
            Value::String(text) => matches!(text.trim(), "true" | "1"),
            _ => false,
        }
    }

    /// The attribute as a count. A negative number becomes 0.
    fn count(&self, name: &str) -> u64 {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| likes(text.parse().unwrap_or_default()))
    }

    /// A time in a string or a number, or in an object such as `{"__type": "Date", "iso": "…"}` or
    /// `{"$date": "…"}`.
    fn time(&self, name: &str, zone: &TimeZone) -> Option<Timestamp> {
        let value = match self.attribute(name) {
            Value::Object(object) => object.get("iso").or_else(|| object.get("$date"))?,
            value => value,
        };
        match value {
            Value::Number(number) => time::from_number(number.as_f64()?),
            value => time::parse(value.as_str()?, zone),
        }
    }
}

/// Converts a count of likes. A negative number becomes 0, and one that is too large saturates.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub(super) fn likes(number: f64) -> u64 {
    number as u64
}

impl Attributes for Value {
    fn attribute(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }

    fn is_oversized(&self) -> bool {
        match self {
            Self::String(text) => text.len() > MAX_VALUE,
            Self::Array(values) => values.iter().any(Self::is_oversized),
            Self::Object(object) => object.iter().any(|(name, value)| name.len() > MAX_VALUE || value.is_oversized()),
            _ => false,
        }
    }

    fn characters(&self) -> [u64; 2] {
        match self {
            Self::String(text) => characters(text),
            Self::Array(values) => sum(values.iter().map(Self::characters)),
            Self::Object(object) => sum(object.iter().flat_map(|(name, value)| {
                let [_, replaced] = characters(name);
                [[replaced, replaced], value.characters()]
            })),
            _ => [0, 0],
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // An id in an export from `MongoDB`.
        Value::Object(object) => object.get("$oid").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn elements(text: &str, paths: &'static [Path]) -> Result<Vec<(String, Value)>, String> {
        let mut found = Vec::new();
        let mut each = |path: Path, value| {
            found.push((path.join("."), value));
            Ok(())
        };
        read(Reader::of(text), paths, &mut each).map_err(|error| error.to_string())?;
        Ok(found)
    }

    #[test]
    fn elements_of_arrays_at_the_paths_are_given_one_by_one() {
        let text = r#"{"x": [1, {"a": 2}], "a": {"b": [{"c": 1}, 2], "z": null}, "d": [3]}"#;
        let found = elements(text, &[&["a", "b"], &["d"]]).unwrap();
        assert_eq!(
            found,
            [("a.b".to_owned(), json!({ "c": 1 })), ("a.b".to_owned(), json!(2)), ("d".to_owned(), json!(3))]
        );
    }

    #[test]
    fn a_text_of_another_format_is_an_error_and_an_empty_list_is_not() {
        assert_eq!(elements("{}", &[&["a", "b"]]).unwrap_err(), "has no a.b; is it in this format?");
        assert_eq!(elements("", &[&[]]).unwrap_err(), "has no records");
        assert!(elements(r#"{"a": []}"#, &[&["a"]]).unwrap().is_empty());
        assert!(elements(r#"{"a": null}"#, &[&["a"]]).unwrap().is_empty());
    }

    #[test]
    fn the_length_of_a_value_is_that_of_its_text_without_json_escapes() {
        let read = |letter: &str, times: usize| {
            elements(&format!(r#"{{"a": [{{"b": "{}"}}]}}"#, letter.repeat(times)), &[&[]]).unwrap()[0].1.is_oversized()
        };
        for letter in ["x", "\\n", "\\u0041"] {
            assert_eq!([MAX_VALUE, MAX_VALUE + 1].map(|times| read(letter, times)), [false, true], "{letter}");
        }
    }

    #[test]
    fn attributes_are_read_whatever_their_types() {
        let value = json!({ "id": 7, "name": " Ada ", "on": "true", "off": "false", "score": "-3", "likes": 2, "many": (1_u64 << 53) + 1, "all": 1e30 });
        assert_eq!(
            (value.text("id"), value.text("name"), value.text("none")),
            ("7".into(), "Ada".into(), String::new())
        );
        assert!(value.flag("on") && !value.flag("off") && !value.flag("none"));
        assert_eq!((value.count("score"), value.count("likes")), (0, 2));
        assert_eq!((value.count("many"), value.count("all")), ((1 << 53) + 1, u64::MAX));
    }
}
