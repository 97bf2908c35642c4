//! GET `openapi.json` and GET `docs`: the contract, for programs and for people.

use http::StatusCode;
use serde_json::json;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::rate_limit::RateClass;
use shared::error::Result;
use shared::http::content_policy::hash;
use shared::http::request::Call;
use shared::http::response::{Answer, Sharing};

const OPENAPI: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));
/// The API's address in the document. Responses replace it with the actual address.
const SERVER: &str = r#""/svc/api/v1""#;

const STYLE: &str = include_str!("docs/style.css");
const SCRIPT: &str = include_str!("docs/script.js");

pub(crate) async fn openapi(app: &App, call: &Call) -> Result<Answer> {
    app.admit(call, RateClass::Read, Ok(()), AuthRequirement::None).await?;
    let answer = Answer::new(StatusCode::OK, "application/json", document(call).into_bytes());
    Ok(answer.shared(Sharing::Anonymous))
}

/// Returns a page that loads nothing. It contains its style, script and document, and its content security policy
/// allows no others.
pub(crate) async fn docs(app: &App, call: &Call) -> Result<Answer> {
    app.admit(call, RateClass::Read, Ok(()), AuthRequirement::None).await?;
    // A script element ends at the first closing tag, even inside a JSON string.
    let document = document(call).replace("</", r"<\/");
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Comment threads</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<style>{STYLE}</style></head>\n\
         <body><noscript>This page needs JavaScript; <a href=\"openapi.json\">openapi.json</a> does not.</noscript>\n\
         <script type=\"application/json\" id=\"document\">{document}</script>\n<script>{SCRIPT}</script></body></html>\n"
    );
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    Ok(Answer::page(StatusCode::OK, page, &policy).shared(Sharing::Anonymous))
}

fn document(call: &Call) -> String {
    OPENAPI.replacen(SERVER, &json!(call.base_url).to_string(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_address_of_the_api_once() {
        assert_eq!(OPENAPI.matches(SERVER).count(), 1);
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        assert_eq!(document["servers"][0]["url"], "/svc/api/v1");
    }

    #[test]
    fn neither_the_style_nor_the_script_closes_its_element() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
    }
}
