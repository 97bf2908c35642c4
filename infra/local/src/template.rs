//! What the deployment template says of routes, functions and the table. Intrinsics that concern parameters are
//! resolved; the others stay as they are, because nothing read here needs them.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

use crate::engine::TableDefinition;
use crate::gateway::Cors;
use crate::route::Route;

/// What is deployed.
pub const DEPLOYED: &str = include_str!("../../../template.yaml");

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the template is no YAML: {0}")]
    Yaml(#[from] saphyr::ScanError),
    #[error("the template is empty")]
    Empty,
    #[error("the template has a {0} that JSON cannot hold")]
    NotJson(&'static str),
    #[error("the template has no parameter {0}")]
    UnknownParameter(String),
    #[error("{resource}: {problem}")]
    Resource { resource: String, problem: String },
}

#[derive(Debug)]
pub struct Template {
    resources: Map<String, Value>,
}

impl Template {
    /// `parameters` come before the defaults of the template.
    pub fn parse(yaml: &str, parameters: &[(&str, &str)]) -> Result<Self, TemplateError> {
        let documents = Yaml::load_from_str(yaml)?;
        let template = to_json(documents.first().ok_or(TemplateError::Empty)?)?;
        let declared = template["Parameters"].as_object();
        let defaults = declared.into_iter().flatten().filter_map(|(name, parameter)| {
            let default = match parameter.get("Default")? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((name.clone(), default))
        });
        let mut values: BTreeMap<String, String> = defaults.collect();
        for (name, value) in parameters {
            if declared.is_none_or(|declared| !declared.contains_key(*name)) {
                return Err(TemplateError::UnknownParameter((*name).to_owned()));
            }
            values.insert((*name).to_owned(), (*value).to_owned());
        }
        match resolve(&template["Resources"], &values) {
            Value::Object(resources) => Ok(Self { resources }),
            _ => Err(TemplateError::Empty),
        }
    }

    /// Of every function with an event of the HTTP API. An event without a path is the default route.
    pub fn routes(&self) -> Result<Vec<Route>, TemplateError> {
        let mut routes = Vec::new();
        for (resource, function, event) in self.events("HttpApi") {
            let function = binary(resource, function)?;
            let route = match (event["Method"].as_str(), event["Path"].as_str()) {
                (None, None) => Some(Route::fallback(function)),
                (Some(method), Some(path)) => Route::new(method, path, function),
                _ => None,
            };
            routes.push(route.ok_or_else(|| problem(resource, format!("no route can be made of {event}")))?);
        }
        Ok(routes)
    }

    /// What the HTTP API tells pages from elsewhere, if it tells them anything.
    pub fn cors(&self) -> Result<Option<Cors>, TemplateError> {
        let apis = self.of_type("AWS::Serverless::HttpApi");
        let mut configured = apis.filter_map(|(name, api)| Some((name, api["Properties"].get("CorsConfiguration")?)));
        let Some((name, configuration)) = configured.next() else { return Ok(None) };
        let cors = Cors::read(configuration);
        cors.map(Some).ok_or_else(|| problem(name, "its CorsConfiguration makes no headers".to_owned()))
    }

    /// Names of the functions that the table's stream starts.
    pub fn stream_functions(&self) -> Result<Vec<&str>, TemplateError> {
        self.events("DynamoDB").map(|(resource, function, _)| binary(resource, function)).collect()
    }

    /// Names of the functions that the bucket starts, each with the prefix of the keys it is told of.
    pub fn bucket_functions(&self) -> Result<Vec<(&str, &str)>, TemplateError> {
        let functions = self.events("S3").map(|(resource, function, event)| {
            let rules = event["Filter"]["S3Key"]["Rules"].as_array();
            let prefix = rules.and_then(|rules| rules.iter().find(|rule| rule["Name"] == "prefix"));
            let prefix = prefix.and_then(|rule| rule["Value"].as_str());
            Ok((binary(resource, function)?, prefix.unwrap_or_default()))
        });
        functions.collect()
    }

    /// The only table.
    pub fn table(&self) -> Result<TableDefinition, TemplateError> {
        let mut tables = self.of_type("AWS::DynamoDB::Table");
        match (tables.next(), tables.next()) {
            (Some((resource, table)), None) => serde_json::from_value(table["Properties"].clone())
                .map_err(|error| problem(resource, format!("no table can be made of it: {error}"))),
            _ => Err(problem("AWS::DynamoDB::Table", "there must be exactly one".to_owned())),
        }
    }

    /// What the policies of the function with this binary say, those it shares and those of a role of its own included.
    #[must_use]
    pub fn statements(&self, function: &str) -> Vec<&Value> {
        let named =
            |(resource, properties): &(&str, &Value)| binary(resource, properties).is_ok_and(|name| name == function);
        let found = self.of_type("AWS::Serverless::Function").find(named);
        let policies = found.and_then(|(_, function)| function["Properties"]["Policies"].as_array());
        let documents = policies.into_iter().flatten().map(|policy| match policy["Ref"].as_str() {
            Some(shared) => &self.resources[shared]["Properties"]["PolicyDocument"],
            None => policy,
        });
        let role = found.and_then(|(_, function)| function["Properties"]["Role"]["Fn::GetAtt"].as_str());
        let role = role.and_then(|role| role.strip_suffix(".Arn"));
        let of_role = self.of_type("AWS::IAM::RolePolicy").filter_map(move |(_, policy)| {
            let properties = &policy["Properties"];
            let of_it = role.is_some() && properties["RoleName"]["Ref"].as_str() == role;
            of_it.then_some(&properties["PolicyDocument"])
        });
        let documents = documents.chain(of_role);
        documents.filter_map(|document| document["Statement"].as_array()).flatten().collect()
    }

    fn of_type(&self, kind: &str) -> impl Iterator<Item = (&str, &Value)> {
        let wanted = self.resources.iter().filter(move |(_, resource)| resource["Type"] == kind);
        wanted.map(|(name, resource)| (name.as_str(), resource))
    }

    /// Logical id and resource of each function with such an event, and the event's properties.
    fn events(&self, kind: &str) -> impl Iterator<Item = (&str, &Value, &Value)> {
        self.of_type("AWS::Serverless::Function").flat_map(move |(name, function)| {
            let events = function["Properties"]["Events"].as_object().into_iter().flat_map(Map::values);
            events.filter(move |event| event["Type"] == kind).map(move |event| (name, function, &event["Properties"]))
        })
    }
}

/// Its name in this workspace.
fn binary<'a>(resource: &str, function: &'a Value) -> Result<&'a str, TemplateError> {
    let built = function["Metadata"]["BuildProperties"]["Binary"].as_str();
    let directory = function["Properties"]["CodeUri"].as_str();
    let directory = directory.and_then(|uri| uri.trim_end_matches('/').rsplit('/').next());
    built.or(directory).ok_or_else(|| problem(resource, "it has neither Binary nor CodeUri".to_owned()))
}

fn problem(resource: &str, problem: String) -> TemplateError {
    TemplateError::Resource { resource: resource.to_owned(), problem }
}

/// Short forms of intrinsics become their long ones: `!Ref x` is `{"Ref": x}`, `!Sub x` is `{"Fn::Sub": x}`.
fn to_json(yaml: &Yaml<'_>) -> Result<Value, TemplateError> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(flag)) => json!(flag),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Sequence(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|(name, value)| {
                let name = match to_json(name)? {
                    Value::String(name) => name,
                    other => other.to_string(),
                };
                Ok((name, to_json(value)?))
            });
            Value::Object(entries.collect::<Result<_, TemplateError>>()?)
        }
        Yaml::Tagged(tag, value) => match tag.suffix.as_str() {
            name @ ("Ref" | "Condition") => json!({ name: to_json(value)? }),
            name => json!({ format!("Fn::{name}"): to_json(value)? }),
        },
        Yaml::Alias(_) => return Err(TemplateError::NotJson("alias")),
        Yaml::Representation(..) | Yaml::BadValue => return Err(TemplateError::NotJson("scalar")),
    })
}

fn resolve(value: &Value, parameters: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| resolve(item, parameters)).collect(),
        Value::Object(entries) => {
            let intrinsic = match entries.iter().next() {
                Some((name, Value::String(name_or_text))) if entries.len() == 1 => match name.as_str() {
                    "Ref" => parameters.get(name_or_text).cloned(),
                    "Fn::Sub" => Some(substitute(name_or_text, parameters)),
                    _ => None,
                },
                _ => None,
            };
            intrinsic.map_or_else(
                || entries.iter().map(|(name, value)| (name.clone(), resolve(value, parameters))).collect(),
                Value::String,
            )
        }
        other => other.clone(),
    }
}

/// `${Parameter}` becomes its value; what is no parameter stays.
fn substitute(text: &str, parameters: &BTreeMap<String, String>) -> String {
    parameters.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

#[cfg(test)]
mod deployed;

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::route;

    const SMALL: &str = r#"
Parameters:
  Prefix: { Type: String, Default: api/v1 }
Conditions:
  Always: !Equals [a, a]
Resources:
  Things:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/things/
      MemorySize: !If [Always, 128, !Ref AWS::NoValue]
      Environment: { Variables: { BUCKET: !GetAtt Bucket.Arn } }
      Events:
        One: { Type: HttpApi, Properties: { Method: get, Path: !Sub "/${Prefix}/things/{id}" } }
        Any: { Type: HttpApi }
        Changed: { Type: DynamoDB, Properties: { Stream: !GetAtt Table.StreamArn } }
  Images:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: thumbnails } }
    Properties:
      CodeUri: .
      Events:
        Put:
          Type: S3
          Properties: { Bucket: !Ref Bucket, Filter: { S3Key: { Rules: [{ Name: prefix, Value: in/ }] } } }
  Bucket:
    Type: AWS::S3::Bucket
"#;

    fn function_at(template: &Template, method: &Method, path: &str) -> String {
        let routes = template.routes().unwrap();
        route::find(&routes, method, path).unwrap().route.key.clone()
    }

    #[test]
    fn routes_carry_the_prefix_of_the_parameter() {
        let template = Template::parse(SMALL, &[]).unwrap();
        assert_eq!(function_at(&template, &Method::GET, "/api/v1/things/7"), "GET /api/v1/things/{id}");
        let template = Template::parse(SMALL, &[("Prefix", "x")]).unwrap();
        assert_eq!(function_at(&template, &Method::GET, "/x/things/7"), "GET /x/things/{id}");
        assert_eq!(function_at(&template, &Method::GET, "/api/v1/things/7"), "$default");
    }

    #[test]
    fn functions_are_named_by_their_binary_or_their_directory() {
        let template = Template::parse(SMALL, &[]).unwrap();
        assert!(template.routes().unwrap().iter().all(|route| route.function == "things"));
        assert_eq!(template.stream_functions().unwrap(), ["things"]);
        assert_eq!(template.bucket_functions().unwrap(), [("thumbnails", "in/")]);
    }

    #[test]
    fn what_is_wrong_with_a_template_is_named() {
        let error = |yaml: &str, parameters: &[(&str, &str)]| match Template::parse(yaml, parameters) {
            Ok(template) => template.table().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(error(SMALL, &[("Prefx", "x")]), "the template has no parameter Prefx");
        assert_eq!(error(SMALL, &[]), "AWS::DynamoDB::Table: there must be exactly one");
        assert!(error("a: [", &[]).starts_with("the template is no YAML"));
        let unkeyed = "Resources: { T: { Type: AWS::DynamoDB::Table, Properties: { KeySchema: 1 } } }";
        assert!(error(unkeyed, &[]).starts_with("T: no table can be made of it"), "{}", error(unkeyed, &[]));
    }

    #[test]
    fn the_deployed_template_has_the_table_and_the_routes() {
        let template = Template::parse(DEPLOYED, &[]).unwrap();
        let table = template.table().unwrap();
        assert_eq!(table.key_schema.len(), 2);
        assert_eq!(table.time_to_live_specification.unwrap().attribute_name, "x");
        assert_eq!(table.stream_specification.unwrap().stream_view_type, "NEW_AND_OLD_IMAGES");
        let indexes: Vec<_> = table.global_secondary_indexes.iter().map(|index| index.index_name.as_str()).collect();
        assert_eq!(indexes, ["thread", "time", "likes", "replied", "author"]);

        assert_eq!(
            function_at(&template, &Method::GET, "/svc/api/v1/posts/7/comments"),
            "GET /svc/api/v1/{type}/{id}/comments"
        );
        assert_eq!(function_at(&template, &Method::PUT, "/svc/api/v1/ui"), "$default");
    }
}
