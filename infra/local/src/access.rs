//! What the template's policies let each function do to the table, and the refusal of all else: what would be denied in AWS is
//! denied here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::template::Template;

tokio::task_local! {
    static ACCESS: Arc<Access>;
}

/// An action, and the index it is for; empty for the table itself.
pub type Grant = (String, String);

/// One function's.
#[derive(Debug)]
pub struct Access {
    pub function: String,
    granted: BTreeSet<Grant>,
    used: Mutex<BTreeSet<Grant>>,
}

impl Access {
    /// By the policies of the function with this binary.
    #[must_use]
    pub fn of(template: &Template, function: &str) -> Arc<Self> {
        let statements = template.statements(function);
        let granted = statements.iter().flat_map(|statement| {
            let actions = list(&statement["Action"]).into_iter().filter_map(Value::as_str);
            let resources: Vec<String> = list(&statement["Resource"]).into_iter().filter_map(of_table).collect();
            actions
                .filter_map(|action| action.strip_prefix("dynamodb:"))
                .flat_map(move |action| resources.clone().into_iter().map(|index| (action.to_owned(), index)))
                .collect::<Vec<_>>()
        });
        Arc::new(Self { function: function.to_owned(), granted: granted.collect(), used: Mutex::default() })
    }

    /// Runs what the function does as the function.
    pub async fn scope<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        ACCESS.scope(self, work).await
    }

    /// Granted, and never used so far.
    pub fn unused(&self) -> Vec<Grant> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.granted.difference(&used).cloned().collect()
    }

    fn check(&self, needed: Grant) -> Result<(), String> {
        if !self.granted.contains(&needed) {
            let (action, index) = needed;
            let index = if index.is_empty() { String::new() } else { format!(" on index {index}") };
            return Err(format!("{} may not perform dynamodb:{action}{index}", self.function));
        }
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(needed);
        Ok(())
    }
}

/// Whether the function that asks may; who is no function may everything.
pub(crate) fn check(operation: &str, body: &[u8]) -> Result<(), String> {
    let Ok(access) = ACCESS.try_with(Arc::clone) else { return Ok(()) };
    needed(operation, body).into_iter().try_for_each(|needed| access.check(needed))
}

fn needed(operation: &str, body: &[u8]) -> BTreeSet<Grant> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let on_table = |action: &str| (action.to_owned(), String::new());
    match operation {
        "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().into_iter().flatten();
            let kinds = items.filter_map(Value::as_object).flat_map(serde_json::Map::keys);
            kinds
                .map(|kind| {
                    if kind == "ConditionCheck" {
                        on_table("ConditionCheckItem")
                    } else {
                        on_table(&format!("{kind}Item"))
                    }
                })
                .collect()
        }
        "TransactGetItems" => BTreeSet::from([on_table("GetItem")]),
        _ => BTreeSet::from([(operation.to_owned(), body["IndexName"].as_str().unwrap_or_default().to_owned())]),
    }
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

/// The index a resource names, empty for the table; `None` when it is something else.
fn of_table(resource: &Value) -> Option<String> {
    if resource["Fn::GetAtt"] == "Table.Arn" {
        return Some(String::new());
    }
    resource.as_str()?.strip_prefix("${Table.Arn}/index/").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = r#"
Resources:
  Things:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/things/
      Policies:
        - !Ref All
        - Statement:
            - { Effect: Allow, Action: "dynamodb:Query", Resource: !Sub "${Table.Arn}/index/time" }
  All:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      PolicyDocument:
        Statement:
          - { Effect: Allow, Action: ["dynamodb:GetItem", "dynamodb:PutItem"], Resource: !GetAtt Table.Arn }
          - { Effect: Allow, Action: "s3:PutObject", Resource: "*" }
"#;

    #[tokio::test]
    async fn what_no_policy_grants_is_denied() {
        let access = Access::of(&Template::parse(TEMPLATE, &[]).unwrap(), "things");
        let ask = |operation: &'static str, body: Value| {
            Arc::clone(&access).scope(async move { check(operation, body.to_string().as_bytes()) })
        };
        assert_eq!(ask("GetItem", json!({})).await, Ok(()));
        assert_eq!(ask("Query", json!({"IndexName": "time"})).await, Ok(()));
        assert_eq!(ask("Query", json!({})).await.unwrap_err(), "things may not perform dynamodb:Query");
        assert_eq!(
            ask("Query", json!({"IndexName": "likes"})).await.unwrap_err(),
            "things may not perform dynamodb:Query on index likes"
        );
        assert!(ask("TransactWriteItems", json!({"TransactItems": [{"Put": {}}, {"Delete": {}}]})).await.is_err());
        assert_eq!(access.unused(), [("PutItem".to_owned(), String::new())]);
        assert_eq!(check("Scan", b"{}"), Ok(()));
    }
}
