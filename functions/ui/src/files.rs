//! GET `embed.js`, GET `embed/{file}`, GET `moderation.js` and GET `moderate`: the widget, the part that it loads
//! later, the moderators' element, and the page around that element. The files are compiled in, so requests reach
//! neither the table nor a limiter.

use std::path::Path;

use http::{HeaderValue, header};
use shared::error::{Refusal, Result};
use shared::http::response::{Answer, Sharing, StaticFile};

/// Embeds a file, with its compressed form from the build.
macro_rules! file {
    ($folder:literal, $name:literal, $content_type:expr) => {
        StaticFile {
            content_type: $content_type,
            content: include_str!(concat!("../", $folder, "/", $name)),
            gzip: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")),
        }
    };
}

const EMBED: StaticFile = file!("dist", "embed.js", SCRIPT);
const WRITER: StaticFile = file!("dist", "writer.js", SCRIPT);
const MODERATION: StaticFile = file!("dist", "moderation.js", SCRIPT);
const MODERATE: StaticFile = file!("embed", "moderate.html", PAGE);

/// The name of the current writer, such as `writer.0123456789abcdef.js`.
const WRITER_NAME: &str = include_str!("../dist/writer.name");

/// Scripts construct the style sheets, so the policy allows no source of styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' https:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const PAGE: &str = "text/html; charset=utf-8";

pub(crate) fn embed() -> Answer {
    open(EMBED, Sharing::File)
}

pub(crate) fn moderation() -> Answer {
    open(MODERATION, Sharing::File)
}

pub(crate) fn moderate() -> Answer {
    let mut answer = open(MODERATE, Sharing::File);
    answer.set(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    answer.set(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

/// Returns the writer script, whose name contains a hash of its content. A page that loaded another version of the
/// widget gets the current script, which checks whether it fits.
pub(crate) fn part(name: &str) -> Result<Answer> {
    if name == WRITER_NAME {
        return Ok(open(WRITER, Sharing::Forever));
    }
    let is_writer = name.starts_with("writer.") && Path::new(name).extension().is_some_and(|kind| kind == "js");
    if is_writer { Ok(open(WRITER, Sharing::Never)) } else { Err(Refusal::NotFound.into()) }
}

/// Lets pages of any origin load the file. On AWS, API Gateway replaces this header with one for the origins that may
/// call the API, and CloudFront, if it is used, allows any origin again.
fn open(file: StaticFile, sharing: Sharing) -> Answer {
    let mut answer = Answer::file(file).shared(sharing);
    answer.set(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widget_loads_the_current_version_of_the_writer() {
        assert!(EMBED.content.contains(&format!("import('./embed/{WRITER_NAME}')")));
    }
}
