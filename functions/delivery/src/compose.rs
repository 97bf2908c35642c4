//! Composes emails as text and HTML. User text is escaped in HTML, and has no line breaks in headers.

use std::fmt::Write;
use std::ops::Range;

use email_encoding::headers::rfc2047;
use email_encoding::headers::writer::EmailWriter;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark_escape::escape_href;
use shared::aws::ses::RawMail;
use shared::domain::address;
use shared::domain::mail_keys::Recipient;
use shared::domain::markdown::Shown;
use shared::domain::prose::{as_typed, linked};
use shared::domain::texts::{Mails, ModeratorMails};
use shared::domain::visible::one_line;
use shared::error::Fault;

/// Maximum characters of a comment in an email.
const EXCERPT: usize = 300;
/// Maximum characters on a line of an email (RFC 5322).
const MAX_LINE: usize = 998;

const STYLE: &str = "body{margin:0 auto;max-width:640px;padding:24px;overflow-wrap:anywhere;font:16px/1.5 system-ui,sans-serif;color:#1b1f24;background:#fff}\
h2{font-size:17px;margin:24px 0 8px}a{color:#0a58ca}p{margin:8px 0}\
blockquote{margin:8px 0;padding:0 0 0 12px;border-left:3px solid #d0d7de}\
.small{font-size:13px;color:#57606a}\
.code{font-size:28px;letter-spacing:.15em}.button{display:inline-block;padding:10px 18px;border-radius:6px;background:#0a58ca;color:#fff;text-decoration:none}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}a{color:#79b8ff}blockquote{border-color:#30363d}\
.small{color:#9198a1}.button{background:#1f6feb;color:#fff}}";

/// The parts that every kind of email has.
pub(crate) struct Letter<'a> {
    pub(crate) site: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: String,
    pub(crate) recipient: &'a Recipient,
    pub(crate) texts: Mails,
    /// Unsubscribe link. Emails to moderators and emails with codes have none.
    pub(crate) stop_url: Option<String>,
    /// Hashes of the threads that a notification email lists, for the header `References`. Empty in other emails.
    pub(crate) threads: Vec<String>,
    /// Identifies this email. A resent email has the same id.
    pub(crate) id: String,
}

/// The part of an email about one thread.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) mute_url: Option<String>,
    pub(crate) notifications: Vec<Notification>,
}

/// The part of an email about one comment.
pub(crate) struct Notification {
    /// One line, in the language of the email.
    pub(crate) headline: String,
    /// Empty if the text is left out.
    pub(crate) body: Quote,
    /// Text after the body, such as the reason for a rejection.
    pub(crate) details: Vec<String>,
    pub(crate) is_rejection: bool,
    pub(crate) url: String,
}

/// Composes an email that asks the owner of an address to confirm it. The email contains no text by other people.
pub(crate) fn confirmation(letter: &Letter<'_>, confirm_url: &str) -> Result<RawMail, Fault> {
    let texts = letter.texts;
    let asked = texts.confirm(letter.site);
    let stop = letter.stop_url.as_deref().unwrap_or_default();
    let link = texts.colon(texts.confirm_link());
    let text = format!("{asked}\n\n{link}\n{confirm_url}\n\n{}\n{stop}\n", texts.confirm_ignore());
    let html = html! {
        p { (asked) }
        (button(confirm_url, texts.confirm_link()))
        p.small { (texts.confirm_ignore()) " " a href=(Href(stop)) { (texts.stop()) } }
    };
    letter.compose(texts.confirm_subject(), &text, &html)
}

/// Composes an email with a sign-in code for the site, requested on a page of `host`. The email contains no link and no
/// text by other people.
pub(crate) fn code(letter: &Letter<'_>, code: &str, host: &str) -> Result<RawMail, Fault> {
    let texts = letter.texts;
    let (asked, warning) = (texts.code(host, letter.site), texts.code_warning(host));
    let text = format!("{asked}\n\n{code}\n\n{warning}\n\n{}\n", texts.code_ignore());
    let html = html! {
        p { (asked) }
        p.code { (code) }
        p { (warning) }
        p.small { (texts.code_ignore()) }
    };
    letter.compose(&texts.code_subject(letter.site), &text, &html)
}

/// Composes an email about comments. `more` is the number of comments that it doesn't list.
pub(crate) fn notifications(letter: &Letter<'_>, sections: &[Section], more: u64) -> Result<RawMail, Fault> {
    let texts = letter.texts;
    let named: Vec<&Notification> = sections.iter().flat_map(|section| &section.notifications).collect();
    let count = named.len() as u64 + more;
    let subject = match (named.as_slice(), sections) {
        ([only], [section]) if count == 1 => format!("{} {}", texts.colon(&only.headline), one_line(&section.title)),
        _ if named.iter().any(|notification| notification.is_rejection) => texts.notices(count),
        _ => texts.several(count),
    };
    let why = texts.why(letter.site);
    let mut text = listed(texts, sections, more);
    let _ = writeln!(text, "-- \n{why}");
    if let Some(stop) = &letter.stop_url {
        let _ = writeln!(text, "{} {stop}", texts.colon(texts.stop()));
    }
    let html = html! {
        (listed_as_html(texts, sections, more))
        p.small {
            (why)
            @if let Some(stop) = &letter.stop_url { " " a href=(Href(stop)) { (texts.stop()) } }
        }
    };
    letter.compose(&subject, &text, &html)
}

/// Composes an email to the moderators about pending and reported comments, and about all public ones if `has_all`.
pub(crate) fn digest(
    letter: &Letter<'_>,
    sections: &[Section],
    more: u64,
    page: &str,
    has_all: bool,
) -> Result<RawMail, Fault> {
    let texts = ModeratorMails::of(letter.texts.language());
    let named: usize = sections.iter().map(|section| section.notifications.len()).sum();
    let count = named as u64 + more;
    let (subject, intro) = if has_all {
        (texts.digest_of_all_subject(count), texts.digest_of_all(letter.site))
    } else {
        (texts.digest_subject(count), texts.digest(letter.site))
    };
    let text = format!("{intro}\n\n{} {page}\n\n{}", to_page(texts), listed(letter.texts, sections, more));
    let html = html! {
        p { (intro) }
        (button(page, texts.moderate()))
        (listed_as_html(letter.texts, sections, more))
    };
    letter.compose(&subject, &text, &html)
}

pub(crate) fn webhook_disabled(letter: &Letter<'_>, url: &str, page: &str) -> Result<RawMail, Fault> {
    let texts = ModeratorMails::of(letter.texts.language());
    let intro = texts.webhook_disabled(url);
    let text = format!("{intro}\n\n{} {page}\n", to_page(texts));
    let html = html! {
        p { (intro) }
        (button(page, texts.moderate()))
    };
    letter.compose(texts.webhook_subject(), &text, &html)
}

/// Returns the label before the moderation page's address, with the language's colon.
fn to_page(texts: ModeratorMails) -> String {
    Mails::of(texts.language()).colon(texts.moderate())
}

/// Pairs each section with the number of unlisted comments to mention below it: `more` for the last section, else 0.
fn numbered(sections: &[Section], more: u64) -> impl Iterator<Item = (&Section, u64)> {
    let more_of = move |place| if place + 1 == sections.len() { more } else { 0 };
    sections.iter().enumerate().map(move |(place, section)| (section, more_of(place)))
}

fn listed(texts: Mails, sections: &[Section], more: u64) -> String {
    let mut text = String::new();
    for (section, more) in numbered(sections, more) {
        let _ = write!(text, "{}\n{}\n\n", one_line(&section.title), section.url);
        for notification in &section.notifications {
            let _ = writeln!(text, "{}", texts.colon(&notification.headline));
            if !notification.body.text.is_empty() {
                let _ = writeln!(text, "> {}", notification.body.text.replace('\n', "\n> "));
            }
            for detail in &notification.details {
                let _ = writeln!(text, "{detail}");
            }
            let _ = write!(text, "{}\n\n", notification.url);
        }
        if more > 0 {
            let _ = write!(text, "{}\n\n", texts.more(more));
        }
        if let Some(mute) = &section.mute_url {
            let _ = write!(text, "{} {mute}\n\n", texts.colon(texts.mute()));
        }
    }
    text
}

fn listed_as_html(texts: Mails, sections: &[Section], more: u64) -> Markup {
    html! {
        @for (section, more) in numbered(sections, more) {
            h2 dir="auto" { a href=(Href(&section.url)) { (one_line(&section.title)) } }
            @for notification in &section.notifications {
                p { b { (notification.headline) } }
                @if !notification.body.text.is_empty() {
                    blockquote dir="auto" { (PreEscaped(&notification.body.html)) }
                }
                @for detail in &notification.details { p { (lines(detail)) } }
                p { a href=(Href(&notification.url)) { (texts.view()) } }
            }
            @if more > 0 { p { (texts.more(more)) } }
            @if let Some(mute) = &section.mute_url {
                p.small { a href=(Href(mute)) { (texts.mute()) } }
            }
        }
    }
}

/// Escapes text and converts line breaks to elements, because some mail programs drop the style sheet.
fn lines(text: &str) -> Markup {
    PreEscaped(as_typed(&html! { (text) }.into_string()))
}

fn button(url: &str, label: &str) -> Markup {
    html! { p { a.button href=(Href(url)) { (label) } } }
}

impl Letter<'_> {
    fn compose(&self, subject: &str, text: &str, html: &Markup) -> Result<RawMail, Fault> {
        let doing = "composing an email";
        let address = |address: &str| address.parse().map_err(|_| Fault::new(doing, "an address is not valid"));
        let domain = self.from.rsplit_once('@').map_or("", |(_, domain)| domain);
        let mut mail = Message::builder()
            .from(Mailbox::new(Some(one_line(self.site)), address(self.from)?))
            .to(Mailbox::new(None, address(&self.to)?))
            .message_id(Some(format!("<{}@{domain}>", self.id)));
        let references = self.references(domain);
        let mut headers = vec![("Auto-Submitted", "auto-generated".to_owned())];
        headers.push(("List-Id", format!("<comments.{domain}>")));
        if !references.is_empty() {
            headers.push(("References", references));
        }
        if let Some(stop) = &self.stop_url {
            headers.push(("List-Unsubscribe", format!("<{stop}>")));
            headers.push(("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
        }
        headers.push(("Subject", encoded("Subject", &one_line(subject))?));
        for (name, value) in headers {
            mail = mail.raw_header(header(name, value));
        }
        let page = html! {
            (PreEscaped("<!doctype html>"))
            html lang=(self.texts.language().tag()) {
                head {
                    meta charset="utf-8";
                    meta name="color-scheme" content="light dark";
                    style { (PreEscaped(STYLE)) }
                }
                body { (html) }
            }
            "\n"
        };
        let body = MultiPart::alternative_plain_html(text.to_owned(), page.into_string());
        let mail = mail.multipart(body).map_err(|error| Fault::new(doing, error))?;
        Ok(RawMail {
            from: self.from.to_owned(),
            to: self.to.clone(),
            raw: mail.formatted(),
            recipient: self.recipient.to_string(),
        })
    }

    /// Returns references to the first threads, as many as fit in one line.
    fn references(&self, domain: &str) -> String {
        let mut references = String::new();
        for thread in &self.threads {
            let reference = format!(" <{thread}.thread@{domain}>");
            if "References:".len() + references.len() + reference.len() > MAX_LINE {
                break;
            }
            references.push_str(&reference);
        }
        references.trim_start().to_owned()
    }
}

/// Builds a header from an ASCII value without the library's folding, because some relays refold headers, which breaks
/// DKIM.
fn header(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.clone(), value)
}

/// Encodes text as a header value. Text that looks like an encoded word is encoded too, so that readers see it as
/// written.
fn encoded(name: &str, text: &str) -> Result<String, Fault> {
    let mut value = String::new();
    let mut writer = EmailWriter::new(&mut value, name.len() + ": ".len(), 0, false);
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !text.contains("=?");
    let written = if is_plain { writer.folding().write_str(text) } else { rfc2047::encode(text, &mut writer) };
    written.map_err(|error| Fault::new("writing a header", error))?;
    drop(writer);
    Ok(value)
}

/// A comment's text without markup. Its web addresses are links, as on the page.
#[derive(Default)]
pub(crate) struct Quote {
    text: String,
    html: String,
}

impl Quote {
    pub(crate) fn whole(shown: &Shown) -> Self {
        let (text, links) = cleaned(shown);
        Self::new(&text, links, "")
    }

    /// Returns the beginning of the text. Drops an address that doesn't fit, because a truncated address would lead
    /// elsewhere.
    pub(crate) fn excerpt(shown: &Shown) -> Self {
        let (text, mut links) = cleaned(shown);
        let Some((cut, _)) = text.char_indices().nth(EXCERPT) else { return Self::new(&text, links, "") };
        let labels = links.iter().filter(|(range, address)| text[range.clone()] == *address);
        let mut addresses = address::find_loosely(&text);
        addresses.extend(labels.map(|(range, _)| range.clone()));
        let cut = addresses.iter().filter(|range| range.contains(&cut)).map(|range| range.start).min().unwrap_or(cut);
        // The cut may leave half of an emoji, ending in the joiner between its parts.
        let text = text[..cut].trim_end_matches('\u{200d}').trim_end();
        links.retain(|(range, _)| range.start < text.len());
        if let Some((range, _)) = links.last_mut() {
            range.end = range.end.min(text.len());
        }
        // Without the space, mail programs would treat the ellipsis as part of the address.
        let ends_in_address = addresses.iter().any(|range| range.end == text.len());
        Self::new(text, links, if ends_in_address { " …" } else { "…" })
    }

    fn new(text: &str, links: Vec<(Range<usize>, String)>, ellipsis: &str) -> Self {
        Self { text: text.to_owned() + ellipsis, html: linked(text, links).replace('\n', "<br />\n") + ellipsis }
    }
}

/// Returns the text [`without_empty_paragraphs`], and the range and address of each link in it. Mail programs detect
/// addresses in both parts of an email, so a space is inserted where an address would run into text that is separate on
/// the page.
fn cleaned(shown: &Shown) -> (String, Vec<(Range<usize>, String)>) {
    /// Noncharacters that mark the start and the end of a link's text.
    const MARKS: [char; 2] = ['\u{fdd0}', '\u{fdd1}'];
    let links = shown.web_links();
    let ends = links.values().map(|(range, _)| (range.end, MARKS[1]));
    let spaces = shown.run_ons(&links).into_iter().map(|at| (at, ' '));
    let starts = links.values().map(|(range, _)| (range.start, MARKS[0]));
    let mut marks: Vec<(usize, char)> = ends.chain(spaces).chain(starts).collect();
    marks.sort_by_key(|(at, _)| *at);
    let part = |range: Range<usize>| shown.text[range].replace(MARKS, " ");
    let (mut marked, mut written) = (String::new(), 0);
    for (at, mark) in marks {
        marked += &part(written..at);
        marked.push(mark);
        written = at;
    }
    marked += &part(written..shown.text.len());
    let (mut text, mut ranges) = (String::new(), Vec::new());
    for c in without_empty_paragraphs(&marked).chars() {
        match c {
            _ if c == MARKS[0] => ranges.push(text.len()..text.len()),
            _ if c == MARKS[1] => ranges.last_mut().unwrap().end = text.len(),
            _ => text.push(c),
        }
    }
    (text, ranges.into_iter().zip(links.into_values().map(|(_, address)| address)).collect())
}

/// Removes empty paragraphs. Replaces control characters other than line feeds, and Unicode's line and paragraph
/// separators, with spaces, so that words don't join and every line stays in the quotation.
pub(crate) fn without_empty_paragraphs(body: &str) -> String {
    let is_replaced = |c: char| c != '\n' && c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let body: String = body.replace("\r\n", "\n").chars().map(|c| if is_replaced(c) { ' ' } else { c }).collect();
    let paragraphs = body.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// An address in an attribute. Characters that don't belong in addresses are percent-encoded.
struct Href<'a>(&'a str);

impl Render for Href<'_> {
    fn render_to(&self, html: &mut String) {
        let _ = escape_href(html, self.0);
    }
}

#[cfg(test)]
mod tests {
    use shared::domain::language::Language;
    use shared::domain::markdown;

    use super::*;

    #[test]
    fn the_count_of_unlisted_comments_follows_the_last_list_with_the_languages_colon() {
        let section = |title: &str| Section {
            title: title.to_owned(),
            url: format!("https://blog.example/{title}"),
            mute_url: Some("https://blog.example/mute".to_owned()),
            notifications: vec![Notification {
                headline: "Bob a répondu à votre commentaire".to_owned(),
                body: quote("Oui"),
                details: Vec::new(),
                is_rejection: false,
                url: "https://blog.example/#comment-1".to_owned(),
            }],
        };
        let texts = Mails::of(Language::of_tag("fr"));
        let sections = [section("a"), section("b")];
        let text = listed(texts, &sections, 3);
        assert!(text.contains("Bob a répondu à votre commentaire\u{a0}:\n> Oui\n"), "{text}");
        assert!(text.contains("cette page\u{a0}: https://blog.example/mute\n"), "{text}");
        for mail in [text, listed_as_html(texts, &sections, 3).into_string()] {
            let places = ["/mute", "/b", "#comment-1", "Et 3 de plus.", "/mute"]
                .iter()
                .try_fold(0, |from, part| mail[from..].find(part).map(|place| from + place + part.len()));
            assert!(places.is_some() && mail.matches("Et 3 de plus.").count() == 1, "{mail}");
        }
    }

    fn quote(body: &str) -> Quote {
        Quote::excerpt(&markdown::shown(body))
    }

    #[test]
    fn an_excerpt_has_no_empty_paragraphs_and_is_cut_between_characters() {
        assert_eq!(quote("one\n\n\ntwo\n\n&#32;\n\nthree\nfour\u{7}\n").text, "one\n\ntwo\n\nthree\nfour");
        assert_eq!(quote(&"é".repeat(EXCERPT + 1)).text, format!("{}…", "é".repeat(EXCERPT)));
        assert_eq!(quote(&"é".repeat(EXCERPT)).text, "é".repeat(EXCERPT));
        let pair = format!("{}👩\u{200d}👦", "a".repeat(EXCERPT - 2));
        assert!(quote(&pair).text.ends_with("a👩…"), "the joiner is left out");
    }

    /// Comment bodies and their texts in emails. Links are in «», with `label|address` where label and address differ.
    const MAILED: &[(&str, &str)] = &[
        ("<https://bank.example>.evil.example/login", "«https://bank.example» .evil.example/login"),
        (
            "[https://bank.example/](https://bank.example/)login.evil.example",
            "«https://bank.example/» login.evil.example",
        ),
        ("<https://bank.example>&#7;.evil.example/login", "«https://bank.example» .evil.example/login"),
        (
            "[see https://a.example](https://a.example).b.example",
            "«see https://a.example|https://a.example» .b.example",
        ),
        ("*a*<https://bank.example>.evil.example", "a «https://bank.example» .evil.example"),
        ("<https://a.example\\@b.example>", "«https://a.example\\@b.example|https://a.example%5C@b.example»"),
        ("[x](https://a.example/[q])", "«x|https://a.example/%5Bq%5D»"),
        ("https://a.example/[q]", "«https://a.example/[q]»"),
        ("x [](https://a.example) y", "x  y"),
        ("**https://example.jp/b**を見て", "«https://example.jp/b» を見て"),
        ("https://example.jp/a。次", "«https://example.jp/a» 。次"),
        ("(<https://a.example>).", "(«https://a.example»)."),
        ("    https://a.example", "https://a.example"),
        ("![alt](https://a.example/x.png)https://a.example/l", "alt «https://a.example/l»"),
        ("![https://bank.example](javascript:x).evil.example", "«https://bank.example.evil.example»"),
        ("![a [b](https://a.example) c](/i)", "a b c"),
        ("[https://bank.example](https://evil.example/k)", "«https://bank.example|https://evil.example/k»"),
        ("[https://a.**example**/b](https://a.example/)", "«https://a.example/b|https://a.example/»"),
        ("[www.a.example](https://a.example).b.example", "«www.a.example|https://a.example» .b.example"),
        ("[a & b](/own) @ada <i>", "a & b @ada <i>"),
        ("ht*t*ps://evil.example/f", "ht t ps://evil.example/f"),
        ("`https://bank.example`.evil.example/login", "https://bank.example .evil.example/login"),
        ("`https://bank.example\t.evil.example`", "https://bank.example .evil.example"),
        ("evil.example/`https://bank.example`", "evil.example/ https://bank.example"),
        ("![https://bank.example](/i).evil.example", "https://bank.example .evil.example"),
        ("`https://bank.example`![.evil.example](/i)", "https://bank.example .evil.example"),
        ("<ftp://bank.example>.evil.example/login", "ftp://bank.example .evil.example/login"),
        ("<a@b.example>.evil.example", "a@b.example .evil.example"),
        ("`a@b.example`.evil.example", "a@b.example .evil.example"),
        ("x_`a@b.example`", "x_ a@b.example"),
        ("é`a@b.example`", "é a@b.example"),
        ("`WWW.bank.example`.evil.example", "WWW.bank.example .evil.example"),
        ("この**機能**は`ftp://a.example`、", "この機能は ftp://a.example 、"),
        ("https://a.example/x.。次", "«https://a.example/x» .。次"),
        ("https://a.example\u{ad}b, a@b.example\u{200b}b", "«https://a.example» \u{ad}b, a@b.example \u{200b}b"),
        ("《https://a.example》b「www.a.example」b", "《«https://a.example» 》b「www.a.example 」b"),
        ("“https://a.example”b https://a.example（b", "“«https://a.example» ”b «https://a.example» （b"),
        ("(https://a.example), a@例え.example「b", "(«https://a.example»), a@例え.example「b"),
        ("[https://a.example。b](https://a.example/c)", "«https://a.example。b|https://a.example/c»"),
        ("メールは`a@b.example`まで**お願い**します", "メールは a@b.exampleまでお願いします"),
        ("ありがとう@adaさん**とても**嬉しい", "ありがとう@adaさんとても嬉しい"),
        (
            "使用`@media`查询**非常**方便, 👍@ada**s** Awww...**so** cute",
            "使用@media查询非常方便, 👍@adas Awww...so cute",
        ),
        ("a\u{2028}b", "a b"),
        (
            "メールはa@b.exampleまたは`https://example.jp/form`へ",
            "メールはa@b.exampleまたは https://example.jp/form へ",
        ),
        ("`a`b **c**, (`ftp://a.example`). **@ada**s `@media`s", "ab c, (ftp://a.example). @adas @medias"),
    ];

    #[test]
    fn a_link_in_an_email_ends_where_it_does_on_the_page() {
        for (body, mailed) in MAILED {
            let (mut text, mut html) = (String::new(), String::new());
            for (place, part) in mailed.split(['«', '»']).enumerate() {
                let (label, address) = part.split_once('|').unwrap_or((part, part));
                text += label;
                let shown = match place % 2 {
                    1 => html! { a href=(address) rel="nofollow ugc noopener" { (label) } },
                    _ => html! { (label) },
                };
                html += &shown.into_string();
            }
            let quote = quote(body);
            assert_eq!((quote.text, quote.html), (text, html), "{body}");
        }
    }

    #[test]
    fn an_address_that_does_not_fit_into_an_excerpt_is_left_out() {
        for address in [
            "https://bank.example.evil.example/login",
            "`https://bank.example.evil.example/login`",
            "www.bank.example.evil.example/login",
            "login@bank.example.evil.example",
            "[https://bank.example.evil.example/](https://a.example)",
            "[https://bank.example.evil.example/](https://bank.example.evil.example/)",
        ] {
            let beginning = "a".repeat(EXCERPT - 22);
            let quote = quote(&format!("{beginning} {address}"));
            assert_eq!((quote.text, quote.html), (format!("{beginning}…"), format!("{beginning}…")), "{address}");
        }
        let whole = quote(&format!("{} https://a.example and more", "a".repeat(EXCERPT - 18)));
        assert!(whole.text.ends_with("a https://a.example …"), "{}", whole.text);
        let long = quote(&format!("[{}](https://a.example)", "a ".repeat(EXCERPT)));
        assert!(
            long.html.starts_with("<a href=\"https://a.example\"") && long.html.ends_with("a</a>…"),
            "{}",
            long.html
        );
    }
}
