//! The log line of a request, which also carries its metrics (CloudWatch's embedded metric format). It never contains a body, a
//! token, an email address or an IP address.

use std::time::Duration;

use serde_json::{Value, json};
use tracing::Level;

use crate::domain::time::Timestamp;
use crate::store::meter::Cost;

pub(crate) struct LogLine {
    pub(crate) route: &'static str,
    /// Lambda's invocation id.
    pub(crate) request_id: String,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) cost: Cost,
    /// Size of the body before compression.
    pub(crate) bytes: usize,
}

impl LogLine {
    /// Logs the line, with metrics if `namespace` is set.
    pub(crate) fn log(&self, namespace: Option<&str>, now: Timestamp) {
        match namespace {
            // Printed, because the logger's JSON cannot nest objects.
            Some(namespace) if tracing::enabled!(Level::INFO) => println!("{}", self.embedded(namespace, now)),
            Some(_) => {}
            None => tracing::info!(
                route = self.route,
                request_id = self.request_id,
                status = self.status,
                ms = self.milliseconds(),
                read_units = self.cost.read_units,
                write_units = self.cost.write_units,
                trips = self.cost.trips,
                bytes = self.bytes,
                "request"
            ),
        }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)
    }

    /// The line in the embedded metric format. Omits the units of metrics, and the number of requests, which is the sample
    /// count of `Errors`.
    fn embedded(&self, namespace: &str, now: Timestamp) -> Value {
        json!({
            "_aws": {
                "Timestamp": now.0,
                "CloudWatchMetrics": [{
                    "Namespace": namespace,
                    "Dimensions": [["Route"]],
                    "Metrics": [
                        { "Name": "Errors" },
                        { "Name": "ReadUnits" },
                        { "Name": "WriteUnits" },
                    ],
                }],
            },
            "Route": self.route,
            "Errors": u8::from(self.status >= 500),
            "ReadUnits": self.cost.read_units,
            "WriteUnits": self.cost.write_units,
            "ms": self.milliseconds(),
            "request_id": self.request_id,
            "status": self.status,
            "trips": self.cost.trips,
            "bytes": self.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_metric_is_a_number_in_the_line() {
        let mut cost = Cost::default();
        cost.read_units = 0.5;
        let line = LogLine {
            route: "svc-pro.ui",
            request_id: "r-1".to_owned(),
            status: 503,
            took: Duration::from_millis(7),
            cost,
            bytes: 2,
        };
        let line = line.embedded("comments", Timestamp(1_000));
        let about = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(about["Namespace"], "comments");
        for metric in about["Metrics"].as_array().unwrap() {
            assert!(line[metric["Name"].as_str().unwrap()].is_number(), "{metric}");
        }
        for dimension in about["Dimensions"][0].as_array().unwrap() {
            assert!(line[dimension.as_str().unwrap()].is_string(), "{dimension}");
        }
        assert_eq!((&line["Errors"], &line["ReadUnits"], &line["ms"]), (&json!(1), &json!(0.5), &json!(7)));
    }
}
