//! The filter of an event source mapping: Lambda invokes a function only with records that match one of its patterns.
//! Patterns may contain objects, lists of values, and `exists`.

use serde_json::Value;

/// The filter of a trigger. Without patterns, every record passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter(Vec<Value>);

impl EventFilter {
    pub fn new(patterns: Vec<Value>) -> Self {
        Self(patterns)
    }

    pub fn passes(&self, record: &Value) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| matches(pattern, Some(record)))
    }
}

fn matches(pattern: &Value, value: Option<&Value>) -> bool {
    match pattern {
        Value::Object(fields) => {
            fields.iter().all(|(name, pattern)| matches(pattern, value.and_then(|value| value.get(name))))
        }
        Value::Array(allowed) => allowed.iter().any(|allowed| match allowed.get("exists") {
            Some(exists) => *exists == value.is_some(),
            None => value == Some(allowed),
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_passes_that_matches_one_of_the_patterns() {
        let filter = EventFilter::new(vec![
            json!({ "eventName": ["INSERT", "REMOVE"], "keys": { "sk": ["C"] } }),
            json!({ "image": { "source": { "S": [{ "exists": false }] } }, "keys": { "sk": ["U"] } }),
        ]);
        let passes = |record: Value| filter.passes(&record);
        assert!(passes(json!({ "eventName": "REMOVE", "keys": { "sk": "C" } })));
        assert!(!passes(json!({ "eventName": "MODIFY", "keys": { "sk": "C" } })));
        assert!(!passes(json!({ "eventName": "INSERT" })));
        assert!(passes(json!({ "keys": { "sk": "U" }, "image": {} })));
        assert!(!passes(json!({ "keys": { "sk": "U" }, "image": { "source": { "S": "x" } } })));
    }

    #[test]
    fn without_patterns_every_record_passes() {
        assert!(EventFilter::default().passes(&json!(1)));
    }
}
