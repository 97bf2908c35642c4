//! Reads the permissions of functions from their policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Template, binary};
use crate::access::Grant;

impl Template {
    /// The actions that the function with this binary may perform on the table, the bucket, the queues and emails.
    #[must_use]
    pub fn grants(&self, function: &str) -> BTreeSet<Grant> {
        let mut grants = BTreeSet::new();
        for statement in self.statements(function).into_iter().filter(|statement| statement["Effect"] == "Allow") {
            for action in list(&statement["Action"]).into_iter().filter_map(Value::as_str) {
                let condition = &statement["Condition"];
                let sender = condition["StringEquals"]["ses:FromAddress"].as_str();
                let sender = sender.filter(|_| action.starts_with("ses:"));
                let parts = list(&statement["Resource"]).into_iter().filter_map(part).chain(sender.map(str::to_owned));
                let parts: Vec<String> = match &condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] {
                    Value::Array(keys) => keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                    _ => parts.collect(),
                };
                grants.extend(parts.into_iter().map(|part| (action.to_owned(), part)));
            }
        }
        grants
    }

    /// The actions that the function may not perform, even if they are granted, each with a partition key to which the
    /// denial applies.
    #[must_use]
    pub fn denials(&self, function: &str) -> BTreeSet<Grant> {
        let denied = self.statements(function).into_iter().filter(|statement| statement["Effect"] == "Deny");
        let denials = denied.flat_map(|statement| {
            let keys = list(&statement["Condition"]["ForAnyValue:StringEquals"]["dynamodb:LeadingKeys"]);
            let actions = list(&statement["Action"]).into_iter().filter_map(Value::as_str);
            actions.flat_map(move |action| {
                let keys = keys.clone().into_iter().filter_map(Value::as_str);
                keys.map(move |key| (action.to_owned(), key.to_owned()))
            })
        });
        denials.collect()
    }

    /// The policy statements of a function, its managed policies and its role.
    fn statements(&self, function: &str) -> Vec<&Value> {
        let named =
            |(resource, properties): &(&str, &Value)| binary(resource, properties).is_ok_and(|name| name == function);
        let found = self.of_type("AWS::Serverless::Function").find(named);
        let policies = found.and_then(|(_, function)| function["Properties"]["Policies"].as_array());
        let of_function = policies.into_iter().flatten().map(|policy| match policy["Ref"].as_str() {
            Some(managed) => &self.resources[managed]["Properties"]["PolicyDocument"],
            None => policy,
        });
        let role = found.and_then(|(_, function)| function["Properties"]["Role"]["Fn::GetAtt"].as_str());
        let role = role.and_then(|role| role.strip_suffix(".Arn"));
        let of_role = self.of_type("AWS::IAM::RolePolicy").filter_map(move |(_, policy)| {
            let properties = &policy["Properties"];
            let matches = role.is_some() && properties["RoleName"]["Ref"].as_str() == role;
            matches.then_some(&properties["PolicyDocument"])
        });
        let documents = of_function.chain(of_role);
        let statements = documents.filter_map(|document| document["Statement"].as_array()).flatten();
        // All conditional resources exist here, so a condition selects its first branch.
        statements.map(|statement| statement["Fn::If"].get(1).unwrap_or(statement)).collect()
    }
}

/// The items of a list, or the value itself.
fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

/// The part of the table or the bucket, or the queue, that a resource refers to; `None` if it's something else.
fn part(resource: &Value) -> Option<String> {
    if resource["Fn::GetAtt"] == "Table.Arn" || resource["Fn::GetAtt"] == "MediaBucket.Arn" {
        return Some(String::new());
    }
    if let Some(queue) = resource["Fn::GetAtt"].as_str().and_then(|name| name.strip_suffix("Queue.Arn")) {
        return Some(format!("{queue}Queue"));
    }
    let named = resource.as_str()?;
    let objects = || named.strip_prefix("${MediaBucket.Arn}/")?.strip_suffix('*');
    named.strip_prefix("${Table.Arn}/index/").or_else(objects).map(str::to_owned)
}

#[cfg(test)]
mod tests {
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
          - Effect: Deny
            Action: ["dynamodb:PutItem", "dynamodb:UpdateItem"]
            Resource: !GetAtt Table.Arn
            Condition: { ForAnyValue:StringEquals: { "dynamodb:LeadingKeys": ["K"] } }
          - Effect: Allow
            Action: dynamodb:BatchWriteItem
            Resource: !GetAtt Table.Arn
            Condition: { ForAllValues:StringLike: { "dynamodb:LeadingKeys": ["N#*"] } }
          - Effect: Allow
            Action: ses:SendRawEmail
            Resource: "*"
            Condition: { StringEquals: { "ses:FromAddress": things@example.org } }
          - !If [Some, { Effect: Allow, Action: "sqs:SendMessage", Resource: !GetAtt ThingsQueue.Arn }, !Ref "AWS::NoValue"]
  OfThings:
    Type: AWS::IAM::RolePolicy
    Properties:
      RoleName: !Ref ThingsRole
      PolicyDocument:
        Statement:
          - { Effect: Allow, Action: "s3:GetObject", Resource: !Sub "${MediaBucket.Arn}/out/*" }
"#;

    #[test]
    fn grants_come_from_the_functions_policies_and_from_its_role() {
        let template = Template::parse(TEMPLATE, &[]).unwrap();
        let grants = [
            ("dynamodb:BatchWriteItem", "N#*"),
            ("dynamodb:GetItem", ""),
            ("dynamodb:PutItem", ""),
            ("dynamodb:Query", "time"),
            ("s3:GetObject", "out/"),
            ("s3:PutObject", "in/"),
            ("ses:SendRawEmail", "things@example.org"),
            ("sqs:SendMessage", "ThingsQueue"),
        ];
        let grants = grants.map(|(action, part)| (action.to_owned(), part.to_owned()));
        assert_eq!(template.grants("things"), BTreeSet::from(grants));
        let denials = ["PutItem", "UpdateItem"].map(|action| (format!("dynamodb:{action}"), "K".to_owned()));
        assert_eq!(template.denials("things"), BTreeSet::from(denials));
        assert!(template.grants("others").is_empty() && template.denials("others").is_empty());
    }
}
