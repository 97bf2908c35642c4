//! Reads JSON element by element, so that a file of any size takes the memory of one element.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Value};

use super::super::record::MAX_VALUE;
use super::super::source::{ReadError, Reader, SourcePosition};
use super::super::time;

/// Names of attributes from the top of a value down to a part of it. The empty path is the value itself.
pub(super) type Path = &'static [&'static str];

/// Takes an element and the path at which it was found.
type Each<'a> = dyn FnMut(Path, Value) -> Result<(), ReadError> + 'a;

/// Reads all values of a text, one after another. `each` gets every element of an array at one of `paths`, and every
/// other value there. Everything else is skipped.
///
/// Fails when there is nothing at any of `paths`, because the text is then in another format.
pub(super) fn read(mut input: Reader, paths: &'static [Path], each: &mut Each<'_>) -> Result<(), ReadError> {
    let mut walk = Walk { paths, each, failure: None, found: false };
    while at_start_of_value(&mut input)? {
        let (before, mut path) = (input.position(), Vec::new());
        let mut deserializer = Deserializer::from_reader(&mut input);
        let result = Node { walk: &mut walk, path: &mut path }.deserialize(&mut deserializer);
        if let Some(failure) = walk.failure.take() {
            return Err(failure);
        }
        result.map_err(|error| ReadError::at(line(before, &error), without_place(&error)))?;
    }
    if walk.found {
        Ok(())
    } else {
        let names: Vec<String> = paths.iter().filter(|path| !path.is_empty()).map(|path| path.join(".")).collect();
        Err(ReadError::whole(match names.as_slice() {
            [] => "has no records".to_owned(),
            names => format!("has no {}; is it of this format?", names.join(" or ")),
        }))
    }
}

fn at_start_of_value(input: &mut Reader) -> Result<bool, ReadError> {
    match input.peek() {
        Ok(first) => Ok(first.is_some()),
        Err(error) => Err(ReadError::at(input.position(), error)),
    }
}

fn line(start: SourcePosition, error: &serde_json::Error) -> SourcePosition {
    match start {
        SourcePosition::Line(line) => SourcePosition::Line(line + (error.line() as u64).saturating_sub(1)),
        other => other,
    }
}

/// Removes the position from a message of `serde_json`, because it's relative to the value.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(message, _)| message.to_owned())
}

struct Walk<'a, 'e> {
    paths: &'static [Path],
    each: &'a mut Each<'e>,
    /// An error of `each`, not of the JSON.
    failure: Option<ReadError>,
    found: bool,
}

impl Walk<'_, '_> {
    fn give<E: serde::de::Error>(&mut self, path: Path, value: Value) -> Result<(), E> {
        self.found = true;
        (self.each)(path, value).map_err(|failure| {
            self.failure = Some(failure);
            E::custom("stopped")
        })
    }
}

/// The value at `path`.
struct Node<'n, 'a, 'e> {
    walk: &'n mut Walk<'a, 'e>,
    path: &'n mut Vec<String>,
}

impl Node<'_, '_, '_> {
    /// The wanted path that this node is at.
    fn wanted(&self) -> Option<Path> {
        self.walk.paths.iter().copied().find(|path| path.iter().eq(self.path.iter()))
    }

    fn is_above_wanted(&self) -> bool {
        let starts =
            |path: &&Path| path.len() >= self.path.len() && path.iter().zip(self.path.iter()).all(|(a, b)| a == b);
        self.walk.paths.iter().any(|path| starts(&path))
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Some(path) = self.wanted() {
            let value = Value::deserialize(MapAccessDeserializer::new(map))?;
            return self.walk.give(path, value);
        }
        while let Some(name) = map.next_key::<String>()? {
            self.path.push(name);
            if self.is_above_wanted() {
                map.next_value_seed(Node { walk: &mut *self.walk, path: &mut *self.path })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            self.path.pop();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Some(path) = self.wanted() else {
            // An array of responses is read like responses one after another.
            let top = self.path.is_empty();
            while top && elements.next_element_seed(Node { walk: &mut *self.walk, path: &mut *self.path })?.is_some() {}
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        self.walk.found = true;
        while let Some(value) = elements.next_element()? {
            self.walk.give(path, value)?;
        }
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        match self.wanted() {
            Some(path) => self.walk.give(path, Value::from(text)),
            None => Ok(()),
        }
    }

    /// An empty list, as Go writes it.
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.walk.found |= self.wanted().is_some_and(|path| !path.is_empty());
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        match self.wanted() {
            Some(path) if !path.is_empty() => self.walk.give(path, Value::from(number)),
            _ => Ok(()),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

/// Lenient access to attributes: systems write ids as numbers or strings, and times as strings or objects.
pub(super) trait Attributes {
    fn attribute(&self, name: &str) -> &Value;

    /// Whether a text in it is longer than [`MAX_VALUE`].
    fn is_oversized(&self) -> bool;

    /// Trimmed; empty when it is missing.
    fn text(&self, name: &str) -> String {
        text_of(self.attribute(name)).trim().to_owned()
    }

    /// The body, untrimmed.
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

    /// A count; a negative one is 0.
    fn count(&self, name: &str) -> u64 {
        let value = self.attribute(name);
        let number = value.as_f64().or_else(|| text_of(value).trim().parse().ok()).unwrap_or_default();
        likes(number)
    }

    /// A time in a string, or in an object such as `{"__type": "Date", "iso": "…"}` or `{"$date": "…"}`.
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

/// A count of likes. A negative one is 0, and one that is too large saturates.
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
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // Ids in exports of `MongoDB`.
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
        assert_eq!(elements("{}", &[&["a", "b"]]).unwrap_err(), "has no a.b; is it of this format?");
        assert_eq!(elements("", &[&[]]).unwrap_err(), "has no records");
        assert!(elements(r#"{"a": []}"#, &[&["a"]]).unwrap().is_empty());
        assert!(elements(r#"{"a": null}"#, &[&["a"]]).unwrap().is_empty());
    }

    #[test]
    fn a_value_is_too_long_by_its_text_and_not_as_it_is_written() {
        let read = |letter: &str, times: usize| {
            elements(&format!(r#"{{"a": [{{"b": "{}"}}]}}"#, letter.repeat(times)), &[&[]]).unwrap()[0].1.is_oversized()
        };
        for letter in ["x", "\\n", "\\u0041"] {
            assert_eq!([MAX_VALUE, MAX_VALUE + 1].map(|times| read(letter, times)), [false, true], "{letter}");
        }
    }

    #[test]
    fn attributes_are_read_whatever_their_types() {
        let value = json!({ "id": 7, "name": " Ada ", "on": "true", "off": "false", "score": "-3", "likes": 2 });
        assert_eq!(
            (value.text("id"), value.text("name"), value.text("none")),
            ("7".into(), "Ada".into(), String::new())
        );
        assert!(value.flag("on") && !value.flag("off") && !value.flag("none"));
        assert_eq!((value.count("score"), value.count("likes")), (0, 2));
    }
}
