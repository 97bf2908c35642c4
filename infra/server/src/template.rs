//! The deployment template: its routes, functions, policies, queues and table. Resolves each `Ref` to a parameter, and
//! each `Fn::Sub` of a plain text. Leaves everything else unresolved, because nothing here needs those values.

mod policies;
mod yaml;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::{Map, Value};

use crate::engine::TableDefinition;
use crate::event_filter::EventFilter;
use crate::gateway::Cors;
use crate::gateway::route::Route;
use crate::queue::{QueueSettings, Redrive};

/// Lambda's default batch size for queues.
const DEFAULT_BATCH: usize = 10;
/// SQS's default visibility timeout, in seconds.
const DEFAULT_VISIBILITY: u64 = 30;

pub const DEPLOYED: &str = include_str!("../../../template.yaml");

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the template is not YAML: {0}")]
    Yaml(#[from] saphyr::ScanError),
    #[error("the template is empty")]
    Empty,
    #[error("the template has a {0} that JSON can't represent")]
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

/// The name of a function, the events it's invoked for, and the queue for events whose delivery fails.
pub type EventTarget<'a, T> = (&'a str, T, Option<&'a str>);

/// Parses a template without resolving anything.
pub fn document(yaml: &str) -> Result<Value, TemplateError> {
    let documents = Yaml::load_from_str(yaml)?;
    yaml::to_json(documents.first().ok_or(TemplateError::Empty)?)
}

impl Template {
    /// `parameters` override the template's defaults.
    pub fn parse(yaml: &str, parameters: &[(&str, &str)]) -> Result<Self, TemplateError> {
        Self::resolve(&document(yaml)?, parameters)
    }

    /// Resolves the template of this repository with these parameters. Parses the template's text only once.
    pub fn deployed(parameters: &[(&str, &str)]) -> Result<Self, TemplateError> {
        static DOCUMENT: OnceLock<Value> = OnceLock::new();
        if let Some(document) = DOCUMENT.get() {
            return Self::resolve(document, parameters);
        }
        let parsed = document(DEPLOYED)?;
        Self::resolve(DOCUMENT.get_or_init(|| parsed), parameters)
    }

    fn resolve(template: &Value, parameters: &[(&str, &str)]) -> Result<Self, TemplateError> {
        let values = parameter_values(&template["Parameters"], parameters)?;
        match yaml::resolve(&template["Resources"], &values) {
            Value::Object(resources) => Ok(Self { resources }),
            _ => Err(TemplateError::Empty),
        }
    }

    /// The routes of the HTTP API. An event without a method and a path is the default route.
    pub fn routes(&self) -> Result<Vec<Route>, TemplateError> {
        let mut routes = Vec::new();
        for (resource, function, event) in self.events("HttpApi") {
            let function = binary(resource, function)?;
            let route = match (event["Method"].as_str(), event["Path"].as_str()) {
                (None, None) => Some(Route::fallback(function)),
                (Some(method), Some(path)) => Route::new(method, path, function),
                _ => None,
            };
            routes.push(route.ok_or_else(|| problem(resource, format!("{event} is not a route")))?);
        }
        Ok(routes)
    }

    pub fn cors(&self) -> Result<Option<Cors>, TemplateError> {
        let apis = self.of_type("AWS::Serverless::HttpApi");
        let mut configured = apis.filter_map(|(name, api)| Some((name, api["Properties"].get("CorsConfiguration")?)));
        let Some((name, configuration)) = configured.next() else { return Ok(None) };
        let cors = Cors::read(configuration);
        cors.map(Some).ok_or_else(|| problem(name, "its CorsConfiguration is not valid in headers".to_owned()))
    }

    /// The functions that the table's stream invokes, each with its filter of records.
    pub fn stream_functions(&self) -> Result<Vec<EventTarget<'_, EventFilter>>, TemplateError> {
        let functions = self.events("DynamoDB").map(|(resource, function, event)| {
            let filters = event["FilterCriteria"]["Filters"].as_array().map(Vec::as_slice).unwrap_or_default();
            let patterns = filters.iter().map(|filter| {
                let pattern = filter["Pattern"].as_str().unwrap_or_default();
                serde_json::from_str(pattern).map_err(|error| problem(resource, format!("{error} in {pattern}")))
            });
            let filter = EventFilter::new(patterns.collect::<Result<_, _>>()?);
            Ok((binary(resource, function)?, filter, on_failure(event)))
        });
        functions.collect()
    }

    /// The functions that the bucket invokes, each with its prefix of keys.
    pub fn bucket_functions(&self) -> Result<Vec<EventTarget<'_, &str>>, TemplateError> {
        let functions = self.events("S3").map(|(resource, function, event)| {
            let rules = event["Filter"]["S3Key"]["Rules"].as_array();
            let prefix = rules.and_then(|rules| rules.iter().find(|rule| rule["Name"] == "prefix"));
            let prefix = prefix.and_then(|rule| rule["Value"].as_str());
            let dead_letters = on_failure(&function["Properties"]["EventInvokeConfig"]);
            Ok((binary(resource, function)?, prefix.unwrap_or_default(), dead_letters))
        });
        functions.collect()
    }

    pub fn queues(&self) -> Result<Vec<QueueSettings>, TemplateError> {
        self.of_type("AWS::SQS::Queue").map(|(name, queue)| queue_settings(name, &queue["Properties"])).collect()
    }

    /// The queues that invoke functions: name of the function, logical id of the queue, batch size.
    pub fn queue_functions(&self) -> Result<Vec<(&str, &str, usize)>, TemplateError> {
        let functions = self.events("SQS").map(|(resource, function, event)| {
            let queue =
                logical_id(&event["Queue"]).ok_or_else(|| problem(resource, "its queue is unknown".to_owned()))?;
            let batch = event["BatchSize"].as_u64().and_then(|size| usize::try_from(size).ok());
            Ok((binary(resource, function)?, queue, batch.unwrap_or(DEFAULT_BATCH)))
        });
        functions.collect()
    }

    /// The template's table. Fails unless there is exactly one.
    pub fn table(&self) -> Result<TableDefinition, TemplateError> {
        let mut tables = self.of_type("AWS::DynamoDB::Table");
        match (tables.next(), tables.next()) {
            (Some((resource, table)), None) => serde_json::from_value(table["Properties"].clone())
                .map_err(|error| problem(resource, format!("its table definition is invalid: {error}"))),
            _ => Err(problem("AWS::DynamoDB::Table", "there must be exactly one".to_owned())),
        }
    }

    fn of_type(&self, kind: &str) -> impl Iterator<Item = (&str, &Value)> {
        let wanted = self.resources.iter().filter(move |(_, resource)| resource["Type"] == kind);
        wanted.map(|(name, resource)| (name.as_str(), resource))
    }

    /// The functions with events of this type: logical id, resource, and the event's properties.
    fn events(&self, kind: &str) -> impl Iterator<Item = (&str, &Value, &Value)> {
        self.of_type("AWS::Serverless::Function").flat_map(move |(name, function)| {
            let events = function["Properties"]["Events"].as_object().into_iter().flat_map(Map::values);
            events.filter(move |event| event["Type"] == kind).map(move |event| (name, function, &event["Properties"]))
        })
    }
}

/// The queue that receives events after a failure.
fn on_failure(configuration: &Value) -> Option<&str> {
    logical_id(&configuration["DestinationConfig"]["OnFailure"]["Destination"])
}

fn logical_id(arn: &Value) -> Option<&str> {
    arn["Fn::GetAtt"].as_str()?.strip_suffix(".Arn")
}

fn queue_settings(name: &str, properties: &Value) -> Result<QueueSettings, TemplateError> {
    let redrive = match &properties["RedrivePolicy"] {
        Value::Null => None,
        policy => {
            let dead_letters = logical_id(&policy["deadLetterTargetArn"]).map(str::to_owned);
            let max_receives = policy["maxReceiveCount"].as_u64().and_then(|count| u32::try_from(count).ok());
            let redrive = dead_letters.zip(max_receives);
            let redrive = redrive.map(|(dead_letters, max_receives)| Redrive { max_receives, dead_letters });
            Some(redrive.ok_or_else(|| problem(name, "its RedrivePolicy is invalid".to_owned()))?)
        }
    };
    let visibility = properties["VisibilityTimeout"].as_u64().unwrap_or(DEFAULT_VISIBILITY);
    Ok(QueueSettings { name: name.to_owned(), visibility: Duration::from_secs(visibility), redrive })
}

/// The name of the function in this workspace.
fn binary<'a>(resource: &str, function: &'a Value) -> Result<&'a str, TemplateError> {
    let built = function["Metadata"]["BuildProperties"]["Binary"].as_str();
    let directory = function["Properties"]["CodeUri"].as_str();
    let directory = directory.and_then(|uri| uri.trim_end_matches('/').rsplit('/').next());
    built.or(directory).ok_or_else(|| problem(resource, "it has neither Binary nor CodeUri".to_owned()))
}

/// The parameters' values: the given ones, or else the defaults.
fn parameter_values(declared: &Value, given: &[(&str, &str)]) -> Result<BTreeMap<String, String>, TemplateError> {
    let declared = declared.as_object();
    let defaults = declared.into_iter().flatten().filter_map(|(name, parameter)| {
        let default = match parameter.get("Default")? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some((name.clone(), default))
    });
    let mut values: BTreeMap<String, String> = defaults.collect();
    for (name, value) in given {
        if declared.is_none_or(|declared| !declared.contains_key(*name)) {
            return Err(TemplateError::UnknownParameter((*name).to_owned()));
        }
        values.insert((*name).to_owned(), (*value).to_owned());
    }
    Ok(values)
}

fn problem(resource: &str, problem: String) -> TemplateError {
    TemplateError::Resource { resource: resource.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::gateway::route;

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
        assert_eq!(template.stream_functions().unwrap(), [("things", EventFilter::default(), None)]);
        assert_eq!(template.bucket_functions().unwrap(), [("thumbnails", "in/", None)]);
    }

    #[test]
    fn an_invalid_template_is_an_error_that_names_the_place() {
        let error = |yaml: &str, parameters: &[(&str, &str)]| match Template::parse(yaml, parameters) {
            Ok(template) => template.table().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(error(SMALL, &[("Prefx", "x")]), "the template has no parameter Prefx");
        assert_eq!(error(SMALL, &[]), "AWS::DynamoDB::Table: there must be exactly one");
        assert!(error("a: [", &[]).starts_with("the template is not YAML"));
        let unkeyed = "Resources: { T: { Type: AWS::DynamoDB::Table, Properties: { KeySchema: 1 } } }";
        assert!(error(unkeyed, &[]).starts_with("T: its table definition is invalid"), "{}", error(unkeyed, &[]));
    }

    #[test]
    fn the_deployed_template_has_the_table_and_the_routes() {
        let template = Template::deployed(&[]).unwrap();
        let table = template.table().unwrap();
        assert_eq!(table.key_schema.len(), 2);
        assert_eq!(table.time_to_live_specification.unwrap().attribute_name, "x");
        assert_eq!(table.stream_specification.unwrap().stream_view_type, "NEW_AND_OLD_IMAGES");
        assert_eq!(template.stream_functions().unwrap()[0].2, Some("EventsDeadLetters"));
        assert_eq!(template.bucket_functions().unwrap()[0].2, Some("ThumbnailsFailed"));
        let indexes: Vec<_> = table.global_secondary_indexes.iter().map(|index| index.index_name.as_str()).collect();
        assert_eq!(indexes, ["thread", "time", "likes", "replied", "author"]);

        assert_eq!(
            function_at(&template, &Method::GET, "/svc/api/v1/posts/7/comments"),
            "ANY /svc/api/v1/{type}/{id}/comments"
        );
        assert_eq!(function_at(&template, &Method::PUT, "/svc/api/v1/users"), "$default");
    }
}
