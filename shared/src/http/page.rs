//! Pages that readers open from a link in an email or reach from a sign-in provider. A page has one sentence, and possibly
//! buttons.

use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{Markup, PreEscaped, html};

use crate::domain::language::Language;
use crate::http::content_policy::hash;
use crate::http::response::Answer;

const STYLE: &str = "body{margin:0 auto;max-width:36rem;padding:3rem 1rem;font:1rem/1.5 system-ui,sans-serif}\
h1{font-size:1.5rem;line-height:1.25}form{display:flex;flex-wrap:wrap;gap:.75rem}\
button{padding:.6rem 1.1rem;border:1px solid;border-radius:6px;background:none;color:inherit;font:inherit;cursor:pointer}\
button:first-child{border-color:#0b57d0;background:#0b57d0;color:#fff}";

/// A page with a title, a sentence and a form, but no links or scripts.
#[must_use]
pub fn of_one_sentence(status: StatusCode, language: Language, title: &str, says: &str, form: &Markup) -> Answer {
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang=(language.tag()) {
            head {
                meta charset="utf-8";
                title { (title) }
                "\n"
                meta name="viewport" content="width=device-width, initial-scale=1";
                "\n"
                meta name="color-scheme" content="light dark";
                "\n"
                style { (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                main {
                    h1 { (title) }
                    p { (says) }
                    (form)
                }
            }
        }
        "\n"
    };
    let policy = format!(
        "default-src 'none'; style-src '{}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        hash(STYLE)
    );
    let mut answer = Answer::page(status, page.into_string(), &policy);
    answer.set(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"));
    answer.set(header::CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
    answer
}
