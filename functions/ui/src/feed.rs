//! GET `{type}/{id}/feed.atom`: the newest comments of a thread as Atom (RFC 4287).
//!
//! The document is written by hand, because it has only a dozen elements, and Atom libraries let through control
//! characters that XML forbids.

use std::fmt::{self, Display, Write};

use http::StatusCode;
use shared::app::App;
use shared::app::admission::exists;
use shared::domain::comment::Comment;
use shared::domain::ids::ThreadId;
use shared::domain::markdown;
use shared::domain::prose::as_typed;
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::visible;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::{Answer, Sharing};
use shared::policy;
use shared::store::Reading;
use shared::store::comments::read_units;
use shared::store::meter;
use shared::store::newest::{NEWEST, NewestComments};

const ATOM: &str = "application/atom+xml; charset=utf-8";

pub(crate) async fn feed(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let thread = policy::feature(app.config.features.feeds).and_then(|()| policy::thread(&app.config, kind, record));
    let exists = exists(&thread);
    let read = async {
        let thread = thread?;
        let (candidates, cost) = meter::measure(app.store.newest_candidates(&thread)).await;
        let candidates = candidates?;
        let above = read_units(candidates.above().len(), Reading::Eventual);
        app.reserve(call, cost.read_units + f64::from(above)).await?;
        let newest = app.store.newest_comments(candidates).await?;
        Ok((thread, newest))
    };
    let class = RateClass::LargeRead { units: read_units(NEWEST, Reading::Eventual) };
    let (thread, newest) = app.admit_everyone(call, class, exists, read).await?;
    let url = app.config.page_of(&thread, newest.thread.known_url());
    let feed = Feed {
        base_url: &call.base_url,
        url: url.as_deref(),
        users_route_prefix: &app.config.users_route_prefix,
        thread: &thread,
        newest: &newest,
    };
    let answer = Answer::new(StatusCode::OK, ATOM, feed.document().into_bytes());
    Ok(answer.shared(Sharing::Everyone { seconds: 300 }))
}

struct Feed<'a> {
    base_url: &'a str,
    /// The address of the record's page.
    url: Option<&'a str>,
    users_route_prefix: &'a str,
    thread: &'a ThreadId,
    newest: &'a NewestComments,
}

impl Feed<'_> {
    /// Renders the feed. It stays below Lambda's response limit: 20 comments have at most 64 KB of HTML each, and
    /// escaping at most triples markup.
    fn document(&self) -> String {
        let ThreadId { kind, record } = self.thread;
        let name = self.newest.thread.known_title().map_or_else(|| format!("{kind}/{record}"), str::to_owned);
        let address = format!("{}/{kind}/{record}/feed.atom", self.base_url);
        let updated = self.newest.comments.iter().map(Comment::updated_at).max().unwrap_or(Timestamp(0));
        let mut document = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
             <id>{0}</id>\n<title>Comments on {1}</title>\n<updated>{2}</updated>\n\
             <link rel=\"self\" type=\"application/atom+xml\" href=\"{0}\"/>\n",
            Xml(&address),
            Xml(&name),
            Zulu(updated),
        );
        if let Some(url) = self.url {
            // Writing to a string cannot fail.
            let _written = writeln!(document, "<link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>", Xml(url));
        }
        for comment in &self.newest.comments {
            document.push_str(&self.entry(comment));
        }
        document.push_str("</feed>\n");
        document
    }

    fn entry(&self, comment: &Comment) -> String {
        let address = format!("{}/comments/{}", self.base_url, comment.id);
        let link = self.url.map_or_else(|| address.clone(), |url| at_comment(url, comment));
        let writer = if visible::shows_nothing(&comment.name) { "Anonymous" } else { &comment.name };
        let html = as_typed(&markdown::render(&comment.body, self.users_route_prefix, &comment.mentions));
        format!(
            "<entry>\n<id>{}</id>\n<title>{writer}</title>\n<author><name>{writer}</name></author>\n\
             <published>{}</published>\n<updated>{}</updated>\n<link rel=\"alternate\" href=\"{link}\"/>\n\
             <content type=\"html\" xml:base=\"{link}\">{}</content>\n</entry>\n",
            Xml(&address),
            Zulu(comment.id.created_at()),
            Zulu(comment.updated_at()),
            Xml(&html),
            writer = Xml(writer),
            link = Xml(&link),
        )
    }
}

fn at_comment(url: &str, comment: &Comment) -> String {
    let page = url.split('#').next().unwrap_or_default();
    format!("{page}#comment-{}", comment.id)
}

/// A time in Atom's format: `2026-01-02T03:04:05Z`.
struct Zulu(Timestamp);

impl Display for Zulu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.0.to_string().trim_end_matches("+00:00"))
    }
}

/// Text of an element or an attribute, without the characters that XML 1.0 forbids.
struct Xml<'a>(&'a str);

impl Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // An XML parser would read a bare carriage return as a line feed.
                '\r' => f.write_str("&#13;")?,
                '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => f.write_char(c)?,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_holds_no_character_that_xml_forbids() {
        assert_eq!(Xml("<a href=\"x\">&amp;</a>").to_string(), "&lt;a href=&quot;x&quot;&gt;&amp;amp;&lt;/a&gt;");
        assert_eq!(Xml("a\u{0}b\u{8}c\u{b}\u{1f}d\u{fffe}e\u{ffff}f").to_string(), "abcdef");
        assert_eq!(Xml("\t\n\r \u{7f}\u{85}\u{fffd}😀]]>").to_string(), "\t\n&#13; \u{7f}\u{85}\u{fffd}😀]]&gt;");
    }
}
