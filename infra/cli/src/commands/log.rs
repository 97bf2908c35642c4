//! The human-readable log: a line for each request, without addresses, query strings, tokens and bodies. A second line
//! states why a token wasn't accepted, or which spam rule refused a text.

use server::gateway::Exchange;
use shared::http::request::RefusedBecause;
use shared::store::meter::Cost;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Formats the line for a request, with colors that the printer strips if the terminal doesn't support them.
pub(super) fn line(exchange: &Exchange) -> String {
    let Exchange { method, path, status, elapsed, extensions, route: _ } = exchange;
    let colour = match status.as_u16() {
        ..400 => GREEN,
        400..500 => YELLOW,
        500.. => RED,
    };
    let milliseconds = elapsed.as_secs_f64() * 1_000.0;
    // The path comes from the client and must not control the terminal.
    let path = path.escape_debug();
    let cost = extensions.get().map_or_else(String::new, |Cost { read_units, write_units, .. }| {
        format!(", {read_units:.1} read, {write_units:.1} write units")
    });
    let reason = extensions.get::<RefusedBecause>().map_or_else(String::new, |reason| format!("\n       {reason}"));
    let (method, status) = (method.as_str(), status.as_u16());
    format!("{method:<6} {path} {colour}{status}{RESET} {DIM}{milliseconds:.1} ms{cost}{RESET}{reason}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Extensions, Method, StatusCode};
    use shared::domain::verdict::Rule;

    use super::*;

    #[test]
    fn a_line_has_method_path_status_time_and_cost() {
        let mut exchange = Exchange {
            method: Method::GET,
            path: "/svc/api/v1/ui".to_owned(),
            route: "/svc/api/v1/ui".to_owned(),
            status: StatusCode::OK,
            elapsed: Duration::from_micros(2_340),
            extensions: Extensions::new(),
        };
        let plain = |exchange: &Exchange| anstream::adapter::strip_str(&line(exchange)).to_string();
        assert_eq!(plain(&exchange), "GET    /svc/api/v1/ui 200 2.3 ms");
        let mut cost = Cost::default();
        cost.read_units = 0.5;
        exchange.extensions.insert(cost);
        assert_eq!(plain(&exchange), "GET    /svc/api/v1/ui 200 2.3 ms, 0.5 read, 0.0 write units");
        exchange.extensions.clear();
        exchange.extensions.insert(RefusedBecause::Spam(Rule::Phrase));
        assert_eq!(plain(&exchange), "GET    /svc/api/v1/ui 200 2.3 ms\n       text refused by the spam rule phrase");
    }
}
