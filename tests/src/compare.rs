//! Compares responses.

use std::collections::BTreeSet;

use serde_json::Value;

/// The range of an id's random low bits.
const DRAWN: u64 = 1 << 12;

/// Whether each part of `value` is in one of `sources`. The rows of lists may be in any order. A count may be any
/// number between the counts in the sources, because several calls may change it.
#[must_use]
pub fn is_made_of(value: &Value, sources: &[&Value]) -> bool {
    let part_of = |name: &str| sources.iter().filter_map(|source| source.get(name)).collect::<Vec<_>>();
    match value {
        Value::Object(parts) => {
            let is_right = |(name, part): (&String, &Value)| match name.as_str() {
                // Accepts any count of likes, and of the writer's other rejected comments in a queue item.
                "likes_count" | "rejected" => true,
                name if part.is_u64() && is_count(name) => is_between(part, &part_of(name)),
                name => is_made_of(part, &part_of(name)),
            };
            parts.iter().all(is_right)
        }
        Value::Array(rows) => {
            let known: Vec<_> = sources.iter().filter_map(|source| source.as_array()).flatten().collect();
            rows.iter().all(|row| is_made_of(row, &known))
        }
        _ => sources.contains(&value),
    }
}

/// Whether a number with this name is a count. A thread's count has the thread's name, such as `posts/1`.
fn is_count(name: &str) -> bool {
    name.ends_with("count") || name.contains('/')
}

fn is_between(count: &Value, sources: &[&Value]) -> bool {
    let counts = || sources.iter().filter_map(|source| source.as_u64());
    let (least, most) = (counts().min(), counts().max());
    least.is_some() && (least..=most).contains(&count.as_u64())
}

/// Appends the places where these values differ to `places`, each with its difference.
pub fn differ(place: &str, [right, found]: [&Value; 2], places: &mut Vec<(String, String)>) {
    match (right, found) {
        _ if right == found => {}
        (Value::Object(one), Value::Object(two)) => {
            for name in one.keys().chain(two.keys()).collect::<BTreeSet<_>>() {
                differ(&format!("{place} {name}"), [&right[name], &found[name]], places);
            }
        }
        (Value::Array(one), Value::Array(two)) => {
            for row in 0..one.len().max(two.len()) {
                differ(&format!("{place} {row}"), [&right[row], &found[row]], places);
            }
        }
        _ => places.push((place.to_owned(), format!("  - {right}\n  + {found}\n"))),
    }
}

#[must_use]
pub fn rounded_value(value: &Value) -> Value {
    serde_json::from_str(&rounded(&value.to_string())).expect("JSON")
}

/// Clears the random low bits of new comments' ids in a text.
#[must_use]
pub fn rounded(text: &str) -> String {
    let mut rounded = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        match digits.parse::<u64>() {
            Ok(number) if digits.len() > 15 => {
                rounded += &(number - number % DRAWN).to_string();
                rounded += &part[digits.len()..];
            }
            _ => rounded += part,
        }
    }
    rounded
}
