//! The parts put together: table, functions, gateway and what runs beside them. What `cargo local` serves and what
//! tests ask is the same stack.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::engine::{Engine, EngineError};
use crate::gateway::{Function, Gateway, MissingFunction, Mount};
use crate::template::{self, Template, TemplateError};
use crate::trigger::{EventFunction, Trigger};

/// AWS takes up to a few days. Nobody waits for that on a laptop.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error("template.yaml: {0}")]
    Template(#[from] TemplateError),
    #[error("table: {0}")]
    Engine(#[from] EngineError),
    #[error("template.yaml: {0}")]
    MissingFunction(#[from] MissingFunction),
    #[error("template.yaml: the table's stream leads to {0}, which is not there")]
    MissingEventFunction(String),
}

/// What the template's functions run here, by name.
#[derive(Default)]
pub struct Functions {
    pub http: HashMap<String, Function>,
    pub stream: HashMap<String, EventFunction>,
}

pub struct Stack {
    pub gateway: Gateway,
    engine: Engine,
    streams: Vec<Trigger>,
    sweeper: JoinHandle<()>,
}

impl Stack {
    /// Makes the table when it is missing, and wires functions as the template says. Needs a tokio runtime.
    pub fn start(
        template: &Template,
        engine: Engine,
        table_name: &str,
        mut functions: Functions,
        mounts: Vec<Mount>,
    ) -> Result<Self, StackError> {
        let table = template.table()?;
        engine.create_table(table_name, &table)?;
        let gateway = Gateway::new(template.routes()?, functions.http, mounts)?;
        let mut streams = Vec::new();
        if table.stream_specification.is_some() {
            for name in template.functions_on(template::Trigger::TableStream)? {
                let function = functions.stream.remove(name);
                let function = function.ok_or_else(|| StackError::MissingEventFunction(name.to_owned()))?;
                streams.push(Trigger::start(name.to_owned(), engine.subscribe(), function));
            }
        }
        let sweeper = tokio::spawn(sweep(engine.clone()));
        Ok(Self { gateway, engine, streams, sweeper })
    }

    /// Waits until the table's stream has been handled to its end, what handling it wrote included.
    pub async fn settled(&self) {
        if self.streams.is_empty() {
            return;
        }
        loop {
            let reported = self.engine.reported();
            for stream in &self.streams {
                stream.handled(reported).await;
            }
            if self.engine.reported() == reported {
                return;
            }
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.sweeper.abort();
    }
}

async fn sweep(engine: Engine) {
    let mut interval = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        interval.tick().await;
        let engine = engine.clone();
        match tokio::task::spawn_blocking(move || engine.sweep_expired()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::error!("expired items not removed: {error}"),
            Err(panic) => tracing::error!("expired items not removed: {panic}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use aws_sdk_dynamodb::types::AttributeValue::{N, S};
    use bytes::Bytes;
    use http::{Request, Response};
    use lambda_http::Body;

    use super::*;
    use crate::gateway::function;

    const TABLE: &str = "things";
    const TEMPLATE: &str = r"
Resources:
  Api:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/api/
      Events: { Any: { Type: HttpApi } }
  Events:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/events/
      Events: { Changed: { Type: DynamoDB } }
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: pk, KeyType: HASH }]
      AttributeDefinitions: [{ AttributeName: pk, AttributeType: S }]
      StreamSpecification: { StreamViewType: NEW_AND_OLD_IMAGES }
";

    /// The API writes `first`; each record of it makes the next of a chain of three.
    fn functions(engine: &Engine) -> Functions {
        let client = engine.client();
        let api = function(move |_| {
            let put = client.put_item().table_name(TABLE).item("pk", S("first".to_owned()));
            async move {
                put.send().await?;
                Ok(Response::new(Body::Empty))
            }
        });
        let client = engine.client();
        let events: EventFunction = Arc::new(move |event| {
            let count = event["Records"].as_array().map_or(0, Vec::len);
            let seen = client
                .update_item()
                .table_name(TABLE)
                .key("pk", S("seen".to_owned()))
                .update_expression("ADD n :n")
                .condition_expression("attribute_not_exists(n) OR n < :enough")
                .expression_attribute_values(":n", N(count.to_string()))
                .expression_attribute_values(":enough", N("3".to_owned()));
            Box::pin(async move {
                match seen.send().await.map_err(aws_sdk_dynamodb::error::SdkError::into_service_error) {
                    Err(error) if !error.is_conditional_check_failed_exception() => Err(error.into()),
                    _ => Ok(()),
                }
            })
        });
        Functions {
            http: HashMap::from([("api".to_owned(), api)]),
            stream: HashMap::from([("events".to_owned(), events)]),
        }
    }

    #[tokio::test]
    async fn a_write_reaches_the_function_on_the_stream_and_settles() {
        let engine = Engine::memory().unwrap();
        let template = Template::parse(TEMPLATE, &[]).unwrap();
        let stack = Stack::start(&template, engine.clone(), TABLE, functions(&engine), Vec::new()).unwrap();
        let response = stack.gateway.call(Request::new(Bytes::new()), Ipv4Addr::LOCALHOST.into()).await;
        assert_eq!(response.status(), 200);

        stack.settled().await;
        let seen = engine.client().get_item().table_name(TABLE).key("pk", S("seen".to_owned())).send().await.unwrap();
        assert_eq!(seen.item.unwrap()["n"], N("3".to_owned()));
    }

    #[tokio::test]
    async fn a_stream_without_its_function_is_refused_at_the_start() {
        let engine = Engine::memory().unwrap();
        let template = Template::parse(TEMPLATE, &[]).unwrap();
        let functions = Functions { stream: HashMap::new(), ..functions(&engine) };
        let error = Stack::start(&template, engine, TABLE, functions, Vec::new()).err().unwrap();
        assert_eq!(error.to_string(), "template.yaml: the table's stream leads to events, which is not there");
    }
}
