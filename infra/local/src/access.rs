//! What the template's policies let each function do to the table and the bucket, and the refusal of all else: what would be
//! denied in AWS is denied here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::Value;

use crate::template::Template;

tokio::task_local! {
    static ACCESS: Arc<Access>;
}

/// An action, and what it is for: an index of the table, or objects whose keys begin so; empty for the table or the bucket
/// itself.
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
            let resources: Vec<String> = list(&statement["Resource"]).into_iter().filter_map(part).collect();
            actions
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

    fn check(&self, action: &str, on: &str, covers: impl Fn(&str) -> bool) -> Result<(), String> {
        let grant = self.granted.iter().find(|(granted, part)| granted == action && covers(part));
        let Some(grant) = grant else {
            let on = if on.is_empty() { String::new() } else { format!(" on {on}") };
            return Err(format!("{} may not perform {action}{on}", self.function));
        };
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(grant.clone());
        Ok(())
    }
}

/// Whether the function that asks may do so to the table; who is no function may everything.
pub(crate) fn check(operation: &str, body: &[u8]) -> Result<(), String> {
    let Ok(access) = ACCESS.try_with(Arc::clone) else { return Ok(()) };
    let mut needed = needed(operation, body).into_iter();
    needed.try_for_each(|(action, index)| access.check(&format!("dynamodb:{action}"), &index, |part| part == index))
}

/// Whether the function that asks may do so to an object of the bucket.
pub(crate) fn check_object(method: &Method, key: &str) -> Result<(), String> {
    let Ok(access) = ACCESS.try_with(Arc::clone) else { return Ok(()) };
    let action = match *method {
        Method::GET => "s3:GetObject",
        Method::DELETE => "s3:DeleteObject",
        _ => "s3:PutObject",
    };
    access.check(action, key, |begin| !begin.is_empty() && key.starts_with(begin))
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

/// What of the table or the bucket a resource names; `None` when it is something else.
fn part(resource: &Value) -> Option<String> {
    if resource["Fn::GetAtt"] == "Table.Arn" || resource["Fn::GetAtt"] == "MediaBucket.Arn" {
        return Some(String::new());
    }
    let named = resource.as_str()?;
    let objects = || named.strip_prefix("${MediaBucket.Arn}/")?.strip_suffix('*');
    named.strip_prefix("${Table.Arn}/index/").or_else(objects).map(str::to_owned)
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
      Role: !GetAtt ThingsRole.Arn
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
          - { Effect: Allow, Action: "s3:PutObject", Resource: !Sub "${MediaBucket.Arn}/in/*" }
          - { Effect: Allow, Action: "ssm:GetParameter", Resource: "*" }
  OfThings:
    Type: AWS::IAM::RolePolicy
    Properties:
      RoleName: !Ref ThingsRole
      PolicyDocument:
        Statement:
          - { Effect: Allow, Action: "s3:GetObject", Resource: !Sub "${MediaBucket.Arn}/out/*" }
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
            "things may not perform dynamodb:Query on likes"
        );
        assert!(ask("TransactWriteItems", json!({"TransactItems": [{"Put": {}}, {"Delete": {}}]})).await.is_err());
        let object =
            |method: Method, key: &'static str| Arc::clone(&access).scope(async move { check_object(&method, key) });
        assert_eq!(object(Method::PUT, "in/a").await, Ok(()));
        assert_eq!(object(Method::PUT, "out/a").await.unwrap_err(), "things may not perform s3:PutObject on out/a");
        assert!(object(Method::GET, "in/a").await.is_err());
        assert!(object(Method::DELETE, "in/a").await.is_err());
        let unused = [("dynamodb:PutItem", ""), ("s3:GetObject", "out/")];
        assert_eq!(access.unused(), unused.map(|(action, part)| (action.to_owned(), part.to_owned())));
        assert_eq!((check("Scan", b"{}"), check_object(&Method::GET, "a")), (Ok(()), Ok(())));
    }
}
