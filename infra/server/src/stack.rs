//! Assembles the table, bucket, functions, gateway and background tasks into a stack, for the server and for tests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use shared::domain::time::Clock;

use crate::access::Access;
use crate::bucket::Bucket;
use crate::engine::{Engine, EngineError};
use crate::gateway::{Function, Gateway, MissingFunction, Mount};
use crate::queue::Queues;
use crate::template::{Template, TemplateError};
use crate::trigger::{EventFunction, QueueFunction, QueueTrigger, Target, Task, Trigger};

/// The interval at which expired items are removed. AWS may take days.
const TTL_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum deviation of the clock from the elapsed time, and the time for which the clock must be steady after a start
/// or a jump.
const TOLERANCE: Duration = Duration::from_hours(1);
/// The wait after failing to read the table's stream.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error("template.yaml: {0}")]
    Template(#[from] TemplateError),
    #[error("table: {0}")]
    Engine(#[from] EngineError),
    #[error("template.yaml: {0}")]
    MissingFunction(#[from] MissingFunction),
    #[error("template.yaml: the table's stream, the bucket or a queue invokes {0}, which does not exist")]
    MissingEventFunction(String),
    #[error("can't create a temporary folder: {0}")]
    Folder(String),
    #[error("emails: {0}")]
    Mailer(String),
}

#[derive(Default)]
pub struct Functions {
    pub http: HashMap<String, Function>,
    pub events: HashMap<String, EventFunction>,
    pub messages: HashMap<String, QueueFunction>,
}

pub struct Stack {
    pub gateway: Gateway,
    /// The permissions of each function.
    pub roles: Vec<Arc<Access>>,
    engine: Engine,
    bucket: Bucket,
    streams: Vec<Trigger>,
    puts: Vec<Trigger>,
    queues: Queues,
    messages: Vec<QueueTrigger>,
    ttl: Task,
}

impl Stack {
    /// Creates or updates the table, and connects the functions as in the template. Needs a tokio runtime.
    pub fn start(
        template: &Template,
        engine: Engine,
        bucket: Bucket,
        queues: Queues,
        table_name: &str,
        functions: Functions,
        mounts: Vec<Mount>,
    ) -> Result<Self, StackError> {
        let table = template.table()?;
        engine.create_table(table_name, &table)?;
        let gateway = Gateway::new(template.routes()?, functions.http, mounts, template.cors()?)?;
        let target = |name: &str, dead_letters: Option<&str>| {
            let function = functions.events.get(name).cloned();
            let function = function.ok_or_else(|| StackError::MissingEventFunction(name.to_owned()))?;
            let dead_letters = dead_letters.map(|queue| (queues.clone(), queue.to_owned()));
            Ok::<_, StackError>(Target { name: name.to_owned(), function, dead_letters })
        };
        let mut streams = Vec::new();
        if table.stream_specification.is_some() {
            for (name, filter, dead_letters) in template.stream_functions()? {
                let target = target(name, dead_letters)?;
                streams.push(Trigger::start(engine.follow(table_name, filter)?, target));
            }
        }
        let mut puts = Vec::new();
        for (name, prefix, dead_letters) in template.bucket_functions()? {
            let target = target(name, dead_letters)?;
            let function = on_prefix(prefix.to_owned(), target.function);
            puts.push(Trigger::start(bucket.subscribe(), Target { function, ..target }));
        }
        let mut messages = Vec::new();
        for (name, queue, batch) in template.queue_functions()? {
            let function = functions.messages.get(name).cloned();
            let function = function.ok_or_else(|| StackError::MissingEventFunction(name.to_owned()))?;
            messages.push(QueueTrigger::start(queues.clone(), queue.to_owned(), batch, function));
        }
        let ttl = Task::spawn(remove_expired(engine.clone(), table_name.to_owned()));
        Ok(Self { gateway, roles: Vec::new(), engine, bucket, streams, puts, queues, messages, ttl })
    }

    /// Waits until all events of the table and the bucket and all visible messages have been handled, including those
    /// that result from handling them.
    pub async fn wait_until_idle(&self) {
        loop {
            let Some(change) = self.last_change() else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let put = self.bucket.reported();
            for stream in &self.streams {
                stream.handled(change).await;
            }
            for trigger in &self.puts {
                trigger.handled(put).await;
            }
            for messages in &self.messages {
                messages.idle(&self.queues).await;
            }
            if self.last_change() == Some(change) && self.bucket.reported() == put {
                return;
            }
        }
    }

    /// The number of the last change in the table's stream. `None` if it can't be read.
    fn last_change(&self) -> Option<i64> {
        let last = self.engine.last_change();
        last.inspect_err(|error| tracing::error!("reading the table's stream failed: {error}")).ok()
    }

    /// Whether the delivery of any event of the table or the bucket failed on every attempt. The next start retries
    /// such events.
    #[must_use]
    pub fn has_given_up(&self) -> bool {
        self.streams.iter().chain(&self.puts).any(Trigger::has_given_up)
    }

    /// Stops the background tasks, and waits until they have ended.
    pub async fn stop(self) {
        for trigger in self.streams.into_iter().chain(self.puts) {
            trigger.stop().await;
        }
        for messages in self.messages {
            messages.stop().await;
        }
        self.ttl.stop().await;
    }
}

/// The machine's clocks: wall time since 1970, which can be set, and monotonic time.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    wall: Duration,
    passed: Duration,
}

impl Clocks {
    fn now() -> Self {
        let milliseconds = u64::try_from(Clock::system().now().0).unwrap_or_default();
        Self { wall: Duration::from_millis(milliseconds), passed: monotonic() }
    }
}

/// Detects a clock that may be ahead. Removing expired items could then remove everything with a TTL, even if the clock
/// is corrected a minute later. A clock that is ahead at a start is usually corrected within an hour.
#[derive(Debug)]
struct Watch {
    /// The time since which the two clocks have agreed.
    steady_since: Clocks,
    is_trusted: bool,
}

impl Watch {
    fn new(now: Clocks) -> Self {
        Self { steady_since: now, is_trusted: false }
    }

    fn trusts(&mut self, now: Clocks) -> bool {
        let passed = now.passed.saturating_sub(self.steady_since.passed);
        let expected = self.steady_since.wall + passed;
        if now.wall.abs_diff(expected) > TOLERANCE {
            tracing::warn!("the clock has jumped; nothing expires until it has been steady for an hour");
            *self = Self::new(now);
        } else if passed > TOLERANCE {
            self.is_trusted = true;
        }
        self.is_trusted
    }
}

/// Monotonic time, including time when the machine was suspended.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn monotonic() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// Monotonic time. On some systems it excludes time when the machine was suspended.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn monotonic() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// Wraps a function in the filter of its S3 event, so that it receives only puts of keys with this prefix.
fn on_prefix(prefix: String, function: EventFunction) -> EventFunction {
    Arc::new(move |mut event| {
        let records = event["Records"].as_array_mut();
        let left = records.is_some_and(|records| {
            records.retain(|put| put["s3"]["object"]["key"].as_str().is_some_and(|key| key.starts_with(&prefix)));
            !records.is_empty()
        });
        if left { function(event) } else { Box::pin(async { Ok(()) }) }
    })
}

async fn remove_expired(engine: Engine, table: String) {
    let mut interval = tokio::time::interval(TTL_INTERVAL);
    let mut watch = Watch::new(Clocks::now());
    loop {
        interval.tick().await;
        let clocks = Clocks::now();
        if !watch.trusts(clocks) {
            continue;
        }
        let seconds = i64::try_from(clocks.wall.as_secs()).unwrap_or(i64::MAX);
        if let Err(error) = engine.remove_expired(&table, seconds).await {
            tracing::error!("removing expired items failed: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::domain::ids::Random;

    use super::*;

    const TEMPLATE: &str = r"
Resources:
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

    fn start(functions: Functions) -> Result<Stack, StackError> {
        let template = Template::parse(TEMPLATE, &[]).unwrap();
        let bucket = Bucket::temporary("things").unwrap();
        let queues = Queues::temporary(Vec::new(), Clock::system(), Random::system()).unwrap();
        Stack::start(&template, Engine::memory().unwrap(), bucket, queues, "things", functions, Vec::new())
    }

    #[tokio::test]
    async fn nothing_follows_the_stream_once_the_stack_has_stopped() {
        let function: EventFunction = Arc::new(|_| Box::pin(async { Ok(()) }));
        let held = Arc::downgrade(&function);
        let events = HashMap::from([("events".to_owned(), function)]);
        let stack = start(Functions { events, ..Functions::default() }).unwrap();
        stack.stop().await;
        assert!(held.upgrade().is_none(), "a task still has the function");
    }

    #[test]
    fn a_clock_is_trusted_once_it_has_been_steady_for_an_hour_after_a_start_or_a_jump() {
        let minutes = |wall, passed| Clocks { wall: Duration::from_mins(wall), passed: Duration::from_mins(passed) };
        let day = 24 * 60;
        let mut watch = Watch::new(minutes(day, 0));
        for (wall, passed, is_trusted) in [
            (day, 0, false),
            (day + 60, 60, false),
            (day + 61, 61, true),
            // A correction by less than an hour.
            (day + 100, 62, true),
            // A year ahead for a minute.
            (366 * day, 63, false),
            (day + 102, 64, false),
            (day + 161, 123, false),
            (day + 163, 125, true),
            // An hour and a half back, permanently.
            (day + 74, 126, false),
            (day + 136, 188, true),
        ] {
            assert_eq!(watch.trusts(minutes(wall, passed)), is_trusted, "{passed}");
        }
    }

    #[tokio::test]
    async fn a_stream_without_its_function_is_refused_at_the_start() {
        let error = start(Functions::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "template.yaml: the table's stream, the bucket or a queue invokes events, which does not exist"
        );
    }
}
