//! Emulates IAM: the permissions of each function for the table, the bucket, the queues and emails. Outside production,
//! every call of a function in this process is checked, and denied if AWS would deny it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::{Map, Value};

tokio::task_local! {
    /// The function that the current task runs.
    static CALLER: Arc<Access>;
}

/// An action, and the part of a resource for which it's granted: the name of an index, a prefix of partition keys
/// followed by `*`, a prefix of object keys, the logical id of a queue, or the sender of emails. The part is empty for
/// the table or the bucket itself.
pub type Grant = (String, String);

/// The permissions of one function.
#[derive(Debug)]
pub struct Access {
    pub function: String,
    granted: BTreeSet<Grant>,
    /// Actions that are denied on items with these partition keys, even if they are granted.
    denied: BTreeSet<Grant>,
    used: Mutex<BTreeSet<Grant>>,
}

impl Access {
    #[must_use]
    pub fn new(function: &str, granted: BTreeSet<Grant>, denied: BTreeSet<Grant>) -> Arc<Self> {
        Arc::new(Self { function: function.to_owned(), granted, denied, used: Mutex::default() })
    }

    /// Runs `work` with the permissions of this function.
    pub async fn scope<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        CALLER.scope(self, work).await
    }

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

/// Wraps `work`, so that another task can run it with the permissions of the current task's function.
pub fn as_caller<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = CALLER.try_with(Arc::clone).ok();
    async {
        match caller {
            Some(caller) => caller.scope(work).await,
            None => work.await,
        }
    }
}

/// Checks whether the current function may send this request to the table. Outside [`Access::scope`], everything is
/// allowed. The error is a message for the response.
pub(crate) fn check_table(operation: &str, body: &[u8]) -> Result<(), String> {
    let Ok(caller) = CALLER.try_with(Arc::clone) else { return Ok(()) };
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some((action, key)) = written(operation, &body).iter().find(|write| caller.denied.contains(write)) {
        return Err(format!("{} may not perform {action} on {key}", caller.function));
    }
    let mut needed = needed(operation, &body).into_iter();
    needed.try_for_each(|(action, on)| {
        let covers = |part: &str| match part.strip_suffix('*') {
            Some(beginning) => on.starts_with(beginning),
            None => part == on,
        };
        caller.check(&format!("dynamodb:{action}"), &on, covers)
    })
}

/// Checks a request for an object of the bucket, as [`check_table`] does.
pub(crate) fn check_object(method: &Method, key: &str) -> Result<(), String> {
    let Ok(caller) = CALLER.try_with(Arc::clone) else { return Ok(()) };
    let action = match *method {
        Method::GET | Method::HEAD => "s3:GetObject",
        Method::DELETE => "s3:DeleteObject",
        _ => "s3:PutObject",
    };
    caller.check(action, key, |prefix| !prefix.is_empty() && key.starts_with(prefix))
}

/// Checks a request to a queue, as [`check_table`] does. The queue is named by its logical id.
pub(crate) fn check_queue(operation: &str, queue: &str) -> Result<(), String> {
    let Ok(caller) = CALLER.try_with(Arc::clone) else { return Ok(()) };
    caller.check(&format!("sqs:{operation}"), queue, |part| part == queue)
}

/// Checks an email from this sender, as [`check_table`] does. SES requires this permission for emails that the caller
/// has composed.
pub(crate) fn check_mail(from: &str) -> Result<(), String> {
    let Ok(caller) = CALLER.try_with(Arc::clone) else { return Ok(()) };
    caller.check("ses:SendRawEmail", from, |part| part == from)
}

/// The grants that a request needs. The actions lack their prefix `dynamodb:`.
fn needed(operation: &str, body: &Value) -> BTreeSet<Grant> {
    let on_table = |action: &str| (action.to_owned(), String::new());
    match operation {
        "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().into_iter().flatten();
            let kinds = items.filter_map(Value::as_object).flat_map(Map::keys);
            kinds.map(|kind| on_table(&format!("{kind}Item"))).collect()
        }
        // This action is granted only for some partition keys.
        "BatchWriteItem" => keys_of_batch(body).map(|key| (operation.to_owned(), key.to_owned())).collect(),
        _ => BTreeSet::from([(operation.to_owned(), body["IndexName"].as_str().unwrap_or_default().to_owned())]),
    }
}

/// The writes of a request: actions, and the partition keys of their items.
fn written(operation: &str, body: &Value) -> Vec<Grant> {
    let write = |action: &str, write: &Value| {
        let key = write["Item"]["pk"]["S"].as_str().or_else(|| write["Key"]["pk"]["S"].as_str())?;
        Some((format!("dynamodb:{action}"), key.to_owned()))
    };
    match operation {
        "PutItem" | "UpdateItem" | "DeleteItem" => write(operation, body).into_iter().collect(),
        "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten();
            items.filter_map(|(kind, item)| write(&format!("{kind}Item"), item)).collect()
        }
        "BatchWriteItem" => keys_of_batch(body).map(|key| (format!("dynamodb:{operation}"), key.to_owned())).collect(),
        _ => Vec::new(),
    }
}

fn keys_of_batch(body: &Value) -> impl Iterator<Item = &str> {
    let writes = body["RequestItems"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_array);
    let items = writes.flatten().flat_map(|write| [&write["PutRequest"]["Item"], &write["DeleteRequest"]["Key"]]);
    items.filter_map(|item| item["pk"]["S"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_action_that_is_not_granted_is_denied() {
        let granted = [
            ("dynamodb:BatchWriteItem", "N#*"),
            ("dynamodb:GetItem", ""),
            ("dynamodb:PutItem", ""),
            ("dynamodb:Query", "time"),
            ("s3:GetObject", "out/"),
            ("s3:PutObject", "in/"),
        ];
        let granted = granted.map(|(action, part)| (action.to_owned(), part.to_owned()));
        let denied = [("dynamodb:BatchWriteItem", "N#3"), ("dynamodb:PutItem", "K")];
        let denied = denied.map(|(action, key)| (action.to_owned(), key.to_owned()));
        let access = Access::new("things", granted.into(), denied.into());
        let ask = |operation: &'static str, body: Value| {
            Arc::clone(&access).scope(async move { check_table(operation, body.to_string().as_bytes()) })
        };
        assert_eq!(ask("GetItem", json!({})).await, Ok(()));
        assert_eq!(ask("Query", json!({"IndexName": "time"})).await, Ok(()));
        assert_eq!(ask("Query", json!({})).await.unwrap_err(), "things may not perform dynamodb:Query");
        assert_eq!(
            ask("Query", json!({"IndexName": "likes"})).await.unwrap_err(),
            "things may not perform dynamodb:Query on likes"
        );
        assert!(ask("TransactWriteItems", json!({"TransactItems": [{"Put": {}}, {"Delete": {}}]})).await.is_err());
        let check = json!({"TransactItems": [{"ConditionCheck": {}}]});
        assert_eq!(
            ask("TransactWriteItems", check).await.unwrap_err(),
            "things may not perform dynamodb:ConditionCheckItem"
        );
        let put = |key: &str| json!({ "PutRequest": { "Item": { "pk": { "S": key } } } });
        let delete = |key: &str| json!({ "DeleteRequest": { "Key": { "pk": { "S": key } } } });
        let batch = |writes: [Value; 2]| ask("BatchWriteItem", json!({ "RequestItems": { "things": writes } }));
        assert_eq!(batch([put("N#1"), delete("N#2")]).await, Ok(()));
        for writes in [[put("N#1"), delete("C#1")], [put("C#1"), delete("N#1")]] {
            assert_eq!(batch(writes).await.unwrap_err(), "things may not perform dynamodb:BatchWriteItem on C#1");
        }
        assert!(batch([put("N#1"), delete("N#3")]).await.is_err(), "denied though it is granted");
        let transact = |key: &str| json!({ "TransactItems": [{ "Put": { "Item": { "pk": { "S": key } } } }] });
        assert_eq!(ask("TransactWriteItems", transact("K#")).await, Ok(()));
        assert_eq!(
            ask("TransactWriteItems", transact("K")).await.unwrap_err(),
            "things may not perform dynamodb:PutItem on K"
        );
        let object =
            |method: Method, key: &'static str| Arc::clone(&access).scope(async move { check_object(&method, key) });
        assert_eq!(object(Method::PUT, "in/a").await, Ok(()));
        assert_eq!(object(Method::PUT, "out/a").await.unwrap_err(), "things may not perform s3:PutObject on out/a");
        assert!(object(Method::GET, "in/a").await.is_err() && object(Method::HEAD, "in/a").await.is_err());
        assert!(object(Method::DELETE, "in/a").await.is_err());
        assert_eq!(access.unused(), [("s3:GetObject".to_owned(), "out/".to_owned())]);
    }

    #[tokio::test]
    async fn another_task_has_the_permissions_of_its_caller() {
        let access = Access::new("things", BTreeSet::new(), BTreeSet::new());
        let scan = async || check_table("Scan", b"{}");
        let scanned = access.scope(async { tokio::spawn(as_caller(scan())).await.unwrap() }).await;
        assert_eq!(scanned.unwrap_err(), "things may not perform dynamodb:Scan");
        assert_eq!(tokio::spawn(as_caller(scan())).await.unwrap(), Ok(()));
    }

    #[test]
    fn a_caller_that_is_not_a_function_may_do_everything() {
        assert_eq!((check_table("Scan", b"{}"), check_object(&Method::GET, "a")), (Ok(()), Ok(())));
    }
}
