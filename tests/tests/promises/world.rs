//! The service on a table in memory, and people who call it.

use std::net::{IpAddr, Ipv4Addr};

use aws_sdk_dynamodb::Client;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request};
use jiff::Timestamp;
use local::bucket::Bucket;
use local::engine::Engine;
use local::service;
use local::stack::Stack;
use local::token::Token;
use serde_json::Value;
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use shared::store::Store;
use shared::store::meter::Cost;

pub(crate) const TABLE: &str = "comments";

pub(crate) struct World {
    pub(crate) stack: Stack,
    pub(crate) engine: Engine,
    config: Config,
}

#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) name: String,
    /// `None` for a guest.
    pub(crate) id: Option<u64>,
    pub(crate) moderator: bool,
    gateway: local::gateway::Gateway,
    authorization: Option<String>,
    address: IpAddr,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// To the table, one after the other.
    pub(crate) trips: u32,
    pub(crate) json: Value,
}

impl World {
    pub(crate) fn new(settings: &[(&str, &str)]) -> Self {
        let engine = Engine::memory().unwrap();
        let client = service::client(&engine);
        Self::on(engine, client, settings)
    }

    /// `client` is the service's way to the engine.
    pub(crate) fn on(engine: Engine, client: Client, settings: &[(&str, &str)]) -> Self {
        let config = Config::from_vars(|name| {
            let given = settings.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
            let value = given.or(match name {
                "TABLE_NAME" => Some(TABLE),
                "SVC_JWT_SECRET" => Some("the secret that signs all the tokens"),
                "SVC_VISITOR_SALT" => Some("the salt of visitors"),
                "SVC_READ_LIMIT" | "SVC_WRITE_LIMIT" => Some("1000000"),
                "SVC_ALLOW_GUESTS" | "SVC_GUEST_LIKES" => Some("true"),
                "SVC_SPAM_REVIEW" => Some("doubtful"),
                _ => None,
            });
            value.map(str::to_owned)
        });
        let config = config.unwrap();
        let app = App::new(config.clone(), client, Clock::system(), Random::system());
        let stack = service::start(app, engine.clone(), Bucket::temporary("media").unwrap(), Vec::new()).unwrap();
        Self { stack, engine, config }
    }

    pub(crate) fn user(&self, id: u64, name: &str) -> Person {
        self.person(Some(id), name, false)
    }

    pub(crate) fn moderator(&self, id: u64, name: &str) -> Person {
        self.person(Some(id), name, true)
    }

    pub(crate) fn guest(&self, name: &str) -> Person {
        self.person(None, name, false)
    }

    fn person(&self, id: Option<u64>, name: &str, moderator: bool) -> Person {
        let authorization = id.map(|id| {
            let token = Token { moderator, ..Token::new(&id.to_string(), name) };
            format!("Bearer {}", token.sign(&self.config, Timestamp::now().as_second()).unwrap())
        });
        let number = name.bytes().fold(7, |number: u8, byte| number.wrapping_mul(31).wrapping_add(byte));
        let gateway = self.stack.gateway.clone();
        let address = Ipv4Addr::new(10, 0, 0, number).into();
        Person { name: name.to_owned(), id, moderator, gateway, authorization, address }
    }

    /// The table without anything in between.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.engine.client(), TABLE.to_owned(), Random::system())
    }

    pub(crate) async fn findings(&self) -> Vec<String> {
        self.store().check().await.unwrap().iter().map(ToString::to_string).collect()
    }
}

impl Person {
    /// `path` is below the API's prefix, or begins with a scheme.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let uri = path.strip_prefix("https://api.test").map_or_else(|| format!("/svc/api/v1/{path}"), str::to_owned);
        let mut request = Request::builder().method(method).uri(uri).header(HOST, "api.test");
        request = request.header(USER_AGENT, &self.name).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let response = self.gateway.call(request.body(body).unwrap(), self.address).await;
        let status = response.status().as_u16();
        let trips = response.extensions().get::<Cost>().map_or(0, |cost| cost.trips);
        let json = match response.body().as_ref() {
            [] => Value::Null,
            body => serde_json::from_slice(body).unwrap(),
        };
        Answer { status, trips, json }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Option<Value>) -> Answer {
        self.call(Method::POST, path, body).await
    }

    /// In a thread such as `posts/1`.
    pub(crate) async fn write(&self, thread: &str, parent: Option<u64>, body: &str) -> Answer {
        let mut comment = serde_json::json!({ "body": body, "parent_id": parent });
        if self.id.is_none() {
            comment["guest_name"] = self.name.clone().into();
            comment["guest_email"] = "guest@example.org".into();
        }
        self.post(&format!("{thread}/comments"), Some(comment)).await
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn ok(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:#}", self.json);
        self
    }

    #[track_caller]
    pub(crate) fn id(&self) -> u64 {
        self.json["data"]["id"].as_u64().unwrap_or_else(|| panic!("no id in {:#}", self.json))
    }
}
