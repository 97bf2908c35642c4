//! Tests each parser on files with the pitfalls of its format.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tempfile::NamedTempFile;

use super::super::parts::Parts;
use super::super::record::{BodyFormat, Comment, Record, RecordState, Thread, User};
use super::super::report::Missing;
use super::super::source::Source;
use super::super::source::tests::{gzip, zip};
use super::super::thread_key::NO_TYPE;
use super::*;

#[derive(Debug, Default)]
struct Parsed {
    threads: Vec<Thread>,
    users: Vec<User>,
    comments: Vec<Comment>,
    missing: Vec<Missing>,
}

impl Parsed {
    fn comment(&self, id: &str) -> &Comment {
        self.comments.iter().find(|comment| comment.source_id == id).unwrap_or_else(|| panic!("no comment {id}"))
    }

    fn thread(&self, key: &str) -> &Thread {
        self.threads.iter().find(|thread| thread.key == key).unwrap_or_else(|| panic!("no thread {key}"))
    }

    fn ids(&self) -> Vec<&str> {
        self.comments.iter().map(|comment| comment.source_id.as_str()).collect()
    }

    fn states(&self) -> Vec<(&str, RecordState)> {
        self.comments.iter().map(|comment| (comment.source_id.as_str(), comment.state)).collect()
    }
}

fn parse_in(format: Format, content: &[u8], zone: &str) -> Result<Parsed, String> {
    let directory = tempfile::tempdir().unwrap();
    let mut file = NamedTempFile::new_in(directory.path()).unwrap();
    file.write_all(content).unwrap();
    let (mut parsed, mut parts) = (Parsed::default(), Parts::default());
    let mut sink = |record| {
        match record {
            Record::Head(_) => {}
            Record::Thread(thread) => parsed.threads.push(thread),
            Record::User(user) => parsed.users.push(user),
            Record::Comment(comment) => parsed.comments.push(*comment),
            Record::Part(part) => parts.add(part),
            Record::Missing(missing) => parsed.missing.push(missing),
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    let zone = TimeZone::get(zone).unwrap();
    for source in Source::open(file.path(), directory.path()).map_err(|error| error.to_string())? {
        format.read(source, &zone, directory.path(), &mut sink).map_err(|error| error.to_string())?;
    }
    parsed.missing.extend(parts.missing());
    Ok(parsed)
}

fn parse(format: Format, content: &str) -> Parsed {
    parse_in(format, content.as_bytes(), "UTC").unwrap()
}

fn at(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

pub(in crate::import) fn samples() -> Vec<(Format, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        (Format::Native, text(include_str!("../samples/native.jsonl"))),
        (Format::Disqus, text(include_str!("../samples/disqus.xml"))),
        (Format::Wordpress, text(include_str!("../samples/wordpress.xml"))),
        (Format::Remark42, text(include_str!("../samples/remark42.json"))),
        (Format::Commento, text(include_str!("../samples/commento.json"))),
        (Format::Comentario, text(include_str!("../samples/comentario.json"))),
        (Format::Artalk, text(include_str!("../samples/artalk.json"))),
        (Format::Waline, text(include_str!("../samples/waline.json"))),
        (Format::Giscus, text(include_str!("../samples/giscus.json"))),
        (Format::Isso, isso::database(isso::TABLES)),
    ]
}

#[test]
fn every_format_has_a_sample() {
    let named = |formats: &mut dyn Iterator<Item = Format>| formats.map(Format::name).collect::<BTreeSet<_>>();
    assert_eq!(named(&mut samples().into_iter().map(|(format, _)| format)), named(&mut Format::all()));
}

/// A source in each text format except the native one. `%` marks the author's name and the title; in JSON, it replaces
/// the quotation marks too.
const FIELDS: [(Format, &str); 8] = [
    (
        Format::Disqus,
        "<disqus><thread id='1'><title>%</title></thread><post id='1'><author><name>%</name></author></post></disqus>",
    ),
    (
        Format::Wordpress,
        "<rss><channel><item><title>%</title><comment><comment_id>1</comment_id><comment_author>%</comment_author>\
         </comment></item></channel></rss>",
    ),
    (Format::Remark42, r#"{"id":"1","title":%,"locator":{"url":"/a"},"user":{"name":%}}"#),
    (Format::Commento, r#"{"comments":[{"commentHex":"1","url":"/a"}],"commenters":[{"commenterHex":"1","name":%}]}"#),
    (Format::Comentario, r#"{"pages":[{"id":"p","title":%}],"comments":[{"id":"1","pageId":"p","authorName":%}]}"#),
    (Format::Artalk, r#"[{"id":"1","page_key":"/a","page_title":%,"nick":%}]"#),
    (Format::Waline, r#"[{"objectId":"1","url":"/a","nick":%}]"#),
    (
        Format::Giscus,
        r#"{"data":{"repository":{"discussion":{"title":%,"comments":{"nodes":[{"id":"1","author":{"login":%}}]}}}}}"#,
    ),
];

#[test]
fn names_and_titles_are_decoded_once_if_they_are_html_in_the_source() {
    const SALT: &str = "Salt &amp; Pepper";
    let (html, text) = (Some("Salt & Pepper"), Some(SALT));
    let fields = FIELDS.map(|(format, source)| {
        let quoted = if source.starts_with('<') { format!("<![CDATA[{SALT}]]>") } else { format!("\"{SALT}\"") };
        (format, source.replace('%', &quoted).into_bytes())
    });
    let isso = isso::TABLES.replace("'Hello'", &format!("'{SALT}'")).replace("'Ada'", &format!("'{SALT}'"));
    for (format, source) in fields.into_iter().chain([(Format::Isso, isso::database(&isso))]) {
        let (name, title) = match format {
            Format::Wordpress | Format::Remark42 => (html, html),
            Format::Disqus => (text, html),
            Format::Isso => (html, text),
            Format::Commento | Format::Waline => (text, None),
            _ => (text, text),
        };
        let parsed = parse_in(format, &source, "UTC").unwrap();
        let titles: BTreeSet<&str> = parsed.threads.iter().filter_map(|thread| thread.title.as_deref()).collect();
        assert_eq!(titles, title.into_iter().collect(), "{format:?}");
        let users = parsed.users.iter().map(|user| user.name.as_str());
        let found = users.chain([parsed.comment("1").author.name.as_str()]).find(|name| !name.is_empty());
        assert_eq!(found, name, "{format:?}");
    }
}

#[test]
fn incomplete_characters_in_json_are_replaced_and_reported() {
    let words = [
        (Format::Remark42, "Ada\""),
        (Format::Commento, "Ada\""),
        (Format::Comentario, "Ada\""),
        (Format::Artalk, "a reply\""),
        (Format::Artalk, "Hello **Artalk**\\\""),
        (Format::Waline, "**plain**\""),
        (Format::Giscus, "a reply\""),
        (Format::Native, "Ada\""),
    ];
    for (format, word) in words {
        let content = samples().into_iter().find(|(found, _)| *found == format).unwrap().1;
        let content = String::from_utf8(content).unwrap();
        let (text, quote) = word.split_at(word.find(['\\', '"']).unwrap());
        let (before, after) = content.split_once(word).unwrap();
        let half: &[u8] = if quote.len() > 1 { br"\\ud83d" } else { br"\ud83d" };
        for damage in [half, b"\xf0\x9f"] {
            let damaged = [before.as_bytes(), text.as_bytes(), damage, quote.as_bytes(), after.as_bytes()].concat();
            if format == Format::Native {
                assert!(parse_in(format, &damaged, "UTC").is_err());
                continue;
            }
            let parsed = parse_in(format, &damaged, "UTC").unwrap();
            let [missing] = parsed.missing.as_slice() else { panic!("{format:?} {word}: {:?}", parsed.missing) };
            assert_eq!(missing.total, Some(missing.read + 1), "{format:?} {word}");
            let names = parsed.users.iter().map(|user| user.name.as_str());
            let texts = parsed.comments.iter().flat_map(|comment| [comment.body.as_str(), &comment.author.name]);
            let shown = format!("{text}\u{fffd}");
            assert!(names.chain(texts).any(|found| found == shown), "{format:?} {word}");
        }
    }
}

/// A format, a source, and values in it, each with the id that is reported when the value is damaged.
type Damageable = (Format, &'static str, &'static [(&'static str, &'static str)]);

const DAMAGEABLE: [Damageable; 7] = [
    (
        Format::Artalk,
        r#"[{"id":"1","rid":"0","page_key":"/a","page_title":"Page","nick":"Ada","email":"ada@a.example","vote_up":"4"}]"#,
        &[("/a", "/a\u{fffd}"), ("Page", "/a"), ("ada@a.example", "1"), ("4", "1")],
    ),
    (
        Format::Waline,
        r#"{"data":{"Comment":[{"objectId":"1","url":"/a","pid":"9","mail":"ada@a.example","status":"approved"}],
            "Users":[{"objectId":"7","avatar":"https://i.example/7","email":"bob@a.example","type":"administrator"}]}}"#,
        &[
            ("/a", "/a\u{fffd}"),
            ("9", "1"),
            ("ada@a.example", "1"),
            ("approved", "1"),
            ("https://i.example/7", "7"),
            ("bob@a.example", "7"),
            ("administrator", "7"),
        ],
    ),
    (
        Format::Remark42,
        r#"{"id":"1","pid":"9","title":"Page","locator":{"url":"/a","site":"s"},"user":{"picture":"https://i.example/7"},
            "edit":{"time":"2022-02-03T04:05:06Z"}}"#,
        &[
            ("/a", "/a\u{fffd}"),
            ("Page", "/a"),
            ("9", "1"),
            ("https://i.example/7", "1"),
            ("s", "s\u{fffd}"),
            ("2022-02-03T04:05:06Z", "1"),
        ],
    ),
    (
        Format::Commento,
        r#"{"comments":[{"commentHex":"1","url":"/a","parentHex":"9","state":"approved"}]}"#,
        &[("/a", "/a\u{fffd}"), ("9", "1"), ("approved", "1")],
    ),
    (
        Format::Comentario,
        r#"{"pages":[{"id":"p","path":"/a","title":"Page"}],"comments":[{"id":"1","pageId":"p","url":"/b"}]}"#,
        &[("/a", "p"), ("Page", "p"), ("/b", "p")],
    ),
    (
        Format::Giscus,
        r#"{"data":{"repository":{"discussion":{"title":"Page","body":"https://a.example/a","comments":{"nodes":[{"id":"1"}]}}}}}"#,
        &[("Page", "Page\u{fffd}"), ("https://a.example/a", "Page")],
    ),
    (
        Format::Giscus,
        r#"{"data":{"repository":{"discussion":{"id":"D","title":"a","body":"About","comments":{"nodes":[
            {"id":"1","replies":{"nodes":[{"id":"2","lastEditedAt":"2022-02-03T04:05:06Z"}]}}]}}}}}"#,
        &[("2022-02-03T04:05:06Z", "2"), ("About", "D")],
    ),
];

#[test]
fn bytes_that_are_not_utf_8_are_reported_in_every_field_and_in_values_of_every_kind() {
    for (format, source, values) in DAMAGEABLE {
        assert_eq!(parse(format, source).missing, [], "{format:?}");
        for (value, id) in values {
            let (before, after) = source.split_once(&format!("{value}\"")).unwrap();
            let damaged = [before.as_bytes(), value.as_bytes(), b"\xe9\"", after.as_bytes()].concat();
            let parsed = parse_in(format, &damaged, "UTC").unwrap();
            let [missing] = parsed.missing.as_slice() else { panic!("{format:?} {value}: {:?}", parsed.missing) };
            assert_eq!((missing.id.as_str(), missing.total), (*id, Some(missing.read + 1)), "{format:?} {value}");
        }
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_reported_with_the_page_and_with_the_comment() {
    let source = br#"{"comments":[{"commentHex":"1","domain":"a.example","url":"/a@","markdown":"caf@"}]}"#;
    let damaged: Vec<u8> = source.iter().map(|byte| if *byte == b'@' { 0xe9 } else { *byte }).collect();
    let missing = parse_in(Format::Commento, &damaged, "UTC").unwrap().missing;
    let ids: Vec<&str> = missing.iter().map(|missing| missing.id.as_str()).collect();
    assert_eq!(ids, ["//a.example/a\u{fffd}", "1"]);
}

#[test]
fn a_replacement_character_in_the_source_is_text() {
    let comment = |id: u32, text: &str| format!(r#"{{"id":{id},"page_key":"/a","content":"{text}"}}"#);
    let source = format!("[{},{},{}]", comment(1, "caf%"), comment(2, "\u{fffd}"), comment(3, "\\ufffd"));
    let (before, after) = source.split_once('%').unwrap();
    let parsed = parse_in(Format::Artalk, &[before.as_bytes(), b"\xe9", after.as_bytes()].concat(), "UTC").unwrap();
    assert_eq!(parsed.missing, [Missing { id: "1".to_owned(), read: 5, total: Some(6), is_text: true }]);
    assert_eq!(["1", "2", "3"].map(|id| parsed.comment(id).body.as_str()), ["caf\u{fffd}", "\u{fffd}", "\u{fffd}"]);
}

#[test]
fn a_page_with_replaced_bytes_is_reported_once() {
    let comment = |id: u32| format!(r#"{{"id":{id},"page_key":"/a","page_title":"Caf%"}}"#);
    let source = format!("[{},{}]", comment(1), comment(2)).replace('%', "\\ud83d");
    let missing = parse(Format::Artalk, &source).missing;
    assert_eq!(missing, [Missing { id: "/a".to_owned(), read: 5, total: Some(6), is_text: true }]);
}

#[test]
fn replaced_bytes_in_xml_are_reported_with_the_id_of_their_owner() {
    let comment = "<comment><comment_id>5</comment_id></comment>";
    for (format, source, id) in [
        (Format::Wordpress, format!("<item><title>%</title><post_id>3</post_id>{comment}{comment}</item>"), Some("3")),
        (Format::Wordpress, format!("<item><title>%</title><link>/a</link>{comment}</item>"), Some("/a")),
        (Format::Wordpress, format!("<item><link>%</link>{comment}</item>"), Some("\u{fffd}")),
        (Format::Wordpress, format!("<item><encoded>%</encoded><post_id>3</post_id>{comment}</item>"), None),
        (Format::Wordpress, "<item><title>%</title><post_id>3</post_id></item>".to_owned(), None),
        (Format::Wordpress, "<base_blog_url>%</base_blog_url>".to_owned(), Some("\u{fffd}")),
        (Format::Disqus, "<thread id='%'></thread>".to_owned(), Some("\u{fffd}")),
        (Format::Disqus, "<post id='7'><thread id='%'/></post>".to_owned(), Some("7")),
    ] {
        let source = match format {
            Format::Wordpress => format!("<rss><channel>{source}</channel></rss>"),
            _ => format!("<disqus>{source}</disqus>"),
        };
        let (before, after) = source.split_once('%').unwrap();
        let damaged = [before.as_bytes(), b"\xe9", after.as_bytes()].concat();
        let missing = parse_in(format, &damaged, "UTC").unwrap().missing;
        let ids: Vec<&str> = missing.iter().map(|missing| missing.id.as_str()).collect();
        assert_eq!(ids, id.into_iter().collect::<Vec<_>>(), "{source}");
    }
}

#[test]
fn bytes_that_are_not_text_are_replaced_and_reported() {
    let posts = b"<disqus><post dsq:id='7'><message>caf\xe9 noir</message></post><post dsq:id='8'><message>fine</message></post></disqus>";
    let parsed = parse_in(Format::Disqus, posts, "UTC").unwrap();
    assert_eq!(parsed.comment("7").body, "caf\u{fffd} noir");
    assert_eq!(parsed.missing, [Missing { id: "7".to_owned(), read: 8, total: Some(9), is_text: true }]);
    let item = b"<rss><channel><item><wp:post_id>3</wp:post_id><wp:comment><wp:comment_id>5</wp:comment_id><wp:comment_author>\xe9\xe8</wp:comment_author></wp:comment></item></channel></rss>";
    let parsed = parse_in(Format::Wordpress, item, "UTC").unwrap();
    assert_eq!(parsed.missing, [Missing { id: "5".to_owned(), read: 1, total: Some(3), is_text: true }]);
    let damage = "UPDATE comments SET text = CAST(x'636166e9' AS TEXT) WHERE id = 1";
    let parsed = parse_in(Format::Isso, &isso::database(&format!("{} {damage}", isso::TABLES)), "UTC").unwrap();
    assert_eq!(parsed.comment("1").body, "caf\u{fffd}");
    assert_eq!(parsed.missing.iter().map(|missing| missing.id.as_str()).collect::<Vec<_>>(), ["1"]);
    for (format, content) in samples() {
        if format != Format::Native {
            assert_eq!(parse_in(format, &content, "UTC").unwrap().missing, [], "{format:?}");
        }
    }
}

#[test]
fn a_truncated_file_in_a_text_format_is_an_error_with_its_position() {
    for (format, content) in samples().into_iter().filter(|(format, _)| *format != Format::Isso) {
        let cut = content.trim_ascii_end().len() - 8;
        let error = parse_in(format, &content[..cut], "UTC").unwrap_err();
        assert!(error.starts_with("line ") || error.starts_with("byte "), "{format:?}: {error}");
    }
}

#[test]
fn an_xml_file_that_continues_after_its_root_element_is_refused() {
    for (format, content) in samples() {
        if !matches!(format, Format::Disqus | Format::Wordpress) {
            continue;
        }
        let with =
            |rest: &[u8]| parse_in(format, &[&content, rest].concat(), "UTC").map(|parsed| parsed.comments.len());
        let whole = with(b"").unwrap();
        for harmless in ["\n\n", "\0\x08 \n", "<!-- made by <a> tool -->\n", "<?end?>"] {
            assert_eq!(with(harmless.as_bytes()), Ok(whole), "{format:?}: {harmless}");
        }
        for more in [content.as_slice(), b"garbage", b"<a/>", b"\n<![CDATA[x]]>", b"</a>", b"&amp;", b"< junk"] {
            let error = with(more).unwrap_err();
            assert!(
                error.starts_with("byte ") && error.contains("continues after its root element"),
                "{format:?}: {error}"
            );
            assert!(error.contains("separate files"), "{format:?}: {error}");
        }
    }
}

#[test]
fn every_format_fails_wherever_it_is_cut_off_in_a_gzip_or_a_zip() {
    for (format, content) in samples() {
        for whole in [gzip(&content), zip(&[("dump", &content)])] {
            let ids = |bytes| parse_in(format, bytes, "UTC").map(|parsed| parsed.comments.len());
            assert!(ids(&whole).unwrap() > 0, "{format:?}");
            for cut in [0, 1, 3, 9, whole.len() / 3, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
                assert!(ids(&whole[..cut]).is_err(), "{format:?} cut at {cut} of {}", whole.len());
            }
        }
    }
}

#[test]
fn a_truncated_gzip_is_reported_with_the_place_in_its_content() {
    let whole = gzip(include_bytes!("../samples/disqus.xml"));
    let error = parse_in(Format::Disqus, &whole[..whole.len() / 2], "UTC").unwrap_err();
    assert!(error.starts_with("byte "), "{error}");
}

/// Marks the beginning of a comment's text in the sample of each text format.
const TEXTS: [(Format, &str); 9] = [
    (Format::Native, r#""body":""#),
    (Format::Disqus, "<message>con"),
    (Format::Wordpress, "<![CDATA[waits"),
    (Format::Remark42, r#""orig":"below"#),
    (Format::Commento, r#""markdown": ""#),
    (Format::Comentario, r#""markdown":""#),
    (Format::Artalk, r#""content": ""#),
    (Format::Waline, r#""comment":""#),
    (Format::Giscus, r#""body":""#),
];

#[test]
fn a_value_of_several_megabytes_affects_only_its_own_comment() {
    for (format, start) in TEXTS {
        let sample = samples().into_iter().find(|(other, _)| *other == format).unwrap().1;
        let sample = String::from_utf8(sample).unwrap();
        let Some((before, after)) = sample.rsplit_once(start) else { panic!("{format:?} has no {start}") };
        let long = "long ".repeat(1 << 18);
        let content = format!("{before}{start}{long}{after}");
        for content in [content.as_bytes().to_vec(), gzip(&content)] {
            let parsed = parse_in(format, &content, "UTC").unwrap_or_else(|error| panic!("{format:?}: {error}"));
            let all = parse_in(format, sample.as_bytes(), "UTC").unwrap();
            assert_eq!(parsed.ids(), all.ids(), "{format:?}");
            let oversized = parsed.comments.iter().filter(|comment| comment.is_oversized).count();
            assert_eq!(oversized, 1, "{format:?}");
        }
    }
}

#[test]
fn an_endless_value_is_an_error() {
    let endless = |before: &str, byte: u8| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(before.as_bytes()).unwrap();
        std::io::copy(&mut std::io::repeat(byte).take(80 << 20), &mut encoder).unwrap();
        encoder.finish().unwrap()
    };
    for (format, content, why) in [
        (Format::Disqus, endless("<disqus><post id='1'><message>", b'x'), "100 times its size"),
        (Format::Remark42, endless(r#"{"id":"1","text":""#, b'x'), "100 times its size"),
        (Format::Remark42, endless(r#"{"id":"1","text":["#, b'['), "recursion"),
    ] {
        let error = parse_in(format, &content, "UTC").unwrap_err();
        assert!(error.contains(why), "{format:?}: {error}");
    }
}

#[test]
fn a_file_of_another_format_is_an_error() {
    let mut others = samples();
    others.push((Format::Native, b"{\"hello\": 1}".to_vec()));
    others.push((Format::Native, b"[{\"hello\": 1}]".to_vec()));
    for (other, content) in others {
        for format in Format::all().filter(|format| *format != other) {
            parse_in(format, &content, "UTC").expect_err(&format!("{other:?} as {format:?}"));
        }
    }
    let one = |comment: &str| parse_in(Format::Commento, format!(r#"{{"comments":[{comment}]}}"#).as_bytes(), "UTC");
    assert_eq!(one(r#"{"id":"1","url":"/a"}"#).unwrap_err(), "has no comments of this format; is it in another one?");
    assert!(one(r#"{"commentHex":"1","url":"/a"},{"id":"1"}"#).is_ok());
    assert!(one("").is_ok());
}

#[test]
fn an_empty_file_is_an_error() {
    for format in Format::all() {
        for content in [&b""[..], b" \n", b"\xef\xbb\xbf", b"null"] {
            parse_in(format, content, "UTC").expect_err(&format!("{format:?}: {content:?}"));
        }
    }
}

mod disqus {
    use super::*;

    fn sample() -> Parsed {
        parse(Format::Disqus, include_str!("../samples/disqus.xml"))
    }

    #[test]
    fn threads_have_addresses_and_comments_refer_to_them() {
        let parsed = sample();
        let thread = parsed.thread("101");
        assert_eq!(thread.url.as_deref(), Some("https://blog.example/2020/hello/"));
        assert_eq!(
            (thread.title.as_deref(), thread.aliases.as_slice()),
            (Some("Tea & cake"), ["post-1".to_owned()].as_slice())
        );
        assert_eq!(parsed.thread("102").url.as_deref(), Some("http://blog.example/2020/hello"));
        assert_eq!(parsed.thread("103").url, None);
        assert!(parsed.thread("104").deleted);
        assert_eq!(parsed.comment("1001").thread, "101");
        assert_eq!(parsed.comment("1002").parent.as_deref(), Some("1001"));
    }

    #[test]
    fn values_are_trimmed_and_decoded_once() {
        let parsed = sample();
        let comment = parsed.comment("1001");
        assert_eq!(comment.body, "<p>Hello &amp; <b>welcome</b>.</p>");
        assert_eq!(comment.format, BodyFormat::Html);
        assert_eq!((comment.author.name.as_str(), comment.author.email.as_str()), ("Ada & co", "ada@blog.example"));
        assert_eq!(comment.author.key, "ada");
        assert_eq!(comment.created_at, at("2020-01-02T03:04:05Z"));
        assert_eq!(parsed.comment("1002").body, "control gone");
    }

    /// Every defect seen in exports of Disqus, in one file.
    #[test]
    fn malformed_xml_is_read_as_intended() {
        let text = "\u{feff}\u{1}`\n<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<disqus>\n\
            <thread dsq:id= ' 7 ' ><id>\u{b}</id><link>\n http://blog.example/a?x=1&y=2 \n</link><title>A\u{8} &amp;amp; B</title></thread>\n\
            <thread dsq:id=8><id /><link/></thread>\n\
            <post dsq:id=9>\n<id/><message>\n<![CDATA[<p>1 &lt; 2</p>]]>\n</message><createdAt>\n2020-01-02T03:04:05Z\n</createdAt>\
            <isDeleted> false </isDeleted><isSpam>\n true\n</isSpam><author><name> Ada </name><name/></author><thread dsq:id=7 /></post>\n\
            <post dsq:id=\"10&amp;\"><message>&lt;p&gt;AT&T &#x41;&eacute; &unknown; &amp;lt; &#7;&#0;\u{0}\u{8}x&lt;/p&gt;</message><createdAt>2020-01-02T03:04:05</createdAt>\
            <isDeleted/><isSpam/><author/><thread dsq:id=7/><parent dsq:id=9/></post>\n\
            </disqus>\n\u{0} <!-- made by a tool --> \n";
        let parsed = parse_in(Format::Disqus, text.as_bytes(), "Europe/Berlin").unwrap();
        assert_eq!(parsed.thread("7").url.as_deref(), Some("http://blog.example/a?x=1&y=2"));
        assert_eq!(parsed.thread("7").title.as_deref(), Some("A & B"), "a title is HTML inside of XML");
        assert_eq!((parsed.thread("7").aliases.len(), parsed.thread("8").url.as_deref()), (0, None));
        assert_eq!(parsed.states(), [("9", RecordState::Spam), ("10&", RecordState::Approved)]);
        assert_eq!(
            (parsed.comment("9").body.as_str(), parsed.comment("9").author.name.as_str()),
            ("<p>1 &lt; 2</p>", "Ada")
        );
        let reply = parsed.comment("10&");
        assert_eq!(
            (reply.body.as_str(), reply.thread.as_str(), reply.parent.as_deref()),
            ("<p>AT&T Aé &unknown; &lt; x</p>", "7", Some("9"))
        );
        assert_eq!(reply.created_at, at("2020-01-02T02:04:05Z"), "without a zone");
    }

    #[test]
    fn a_comment_with_a_missing_id_or_an_invalid_time_is_still_read() {
        let parsed = sample();
        assert_eq!(parsed.comment("998877").body, "no id of its own");
        assert_eq!(parsed.comment("1006").created_at, None);
        assert_eq!(parsed.comment("1006").thread, "101", "an attribute without quotes");
    }
}

mod wordpress {
    use super::*;

    fn sample() -> Parsed {
        parse_in(Format::Wordpress, include_bytes!("../samples/wordpress.xml"), "Europe/Berlin").unwrap()
    }

    #[test]
    fn a_post_is_named_by_its_id_or_by_the_query() {
        let parsed = sample();
        let ids: Vec<_> = parsed.threads.iter().map(|thread| (thread.key.as_str(), thread.id.as_deref())).collect();
        let plain = "https://blog.example/about/";
        assert_eq!(ids, [("18", Some("18")), ("https://blog.example/?p=4", Some("4")), (plain, None)]);
        assert_eq!(parsed.thread("18").title.as_deref(), Some("Tea «&» cake"));
        assert_eq!(parsed.thread("18").url.as_deref(), Some("https://blog.example/2014/test/"));
    }

    #[test]
    fn local_times_are_used_only_if_the_time_in_utc_is_missing() {
        let parsed = sample();
        assert_eq!(parsed.comment("2").created_at, at("2014-01-14T17:32:12Z"));
        assert_eq!(parsed.comment("3").created_at, at("2014-07-14T15:32:12Z"), "no gmt");
        assert_eq!(parsed.comment("7").created_at, None);
    }

    #[test]
    fn line_feeds_become_breaks_and_names_and_parents_are_read() {
        let parsed = sample();
        assert_eq!(parsed.comment("2").body, "One\\\ntwo & **three**\n\nfour");
        assert_eq!(parsed.comment("2").author.name, "Ada & «co»");
        assert_eq!(parsed.comment("2").author.email, "ada@blog.example");
        assert_eq!(parsed.comment("3").author.key, "1");
        assert_eq!((parsed.comment("2").parent.as_deref(), parsed.comment("3").parent.as_deref()), (None, Some("2")));
    }

    #[test]
    fn every_approval_status_and_comment_type_is_recognized() {
        let comment = |id: usize, approved: &str, kind: &str| {
            format!(
                "<wp:comment><wp:comment_id>{id}</wp:comment_id><wp:comment_approved> {approved}\n</wp:comment_approved>\
                 <wp:comment_type>{kind}</wp:comment_type></wp:comment>"
            )
        };
        let cases = [
            ("1", "", RecordState::Approved),
            ("1", "comment", RecordState::Approved),
            ("1", "review", RecordState::Approved),
            ("0", "", RecordState::Pending),
            ("hold", "", RecordState::Pending),
            ("", "", RecordState::Pending),
            ("spam", "comment", RecordState::Spam),
            ("trash", "", RecordState::Trash),
            ("post-trashed", "", RecordState::Trash),
            ("1", "pingback", RecordState::Pingback),
            ("0", "trackback", RecordState::Pingback),
            ("1", "webmention", RecordState::Other),
        ];
        let comments: String =
            cases.iter().enumerate().map(|(id, (approved, kind, _))| comment(id, approved, kind)).collect();
        let text = format!("<rss><channel><item><wp:post_id>1</wp:post_id>{comments}</item></channel></rss>");
        let parsed = parse(Format::Wordpress, &text);
        let states: Vec<RecordState> = parsed.comments.iter().map(|comment| comment.state).collect();
        assert_eq!(states, cases.map(|(_, _, state)| state));
    }

    /// Old blogs used other encodings, and some files are in UTF-8 although they declare another encoding.
    #[test]
    fn a_file_may_be_in_the_encoding_that_it_names() {
        let file = |encoding: &str, name: &[u8]| {
            let before = format!(
                "<?xml version='1.0' encoding='{encoding}'?><rss><channel><item><wp:comment><wp:comment_id>1</wp:comment_id>\
                 <wp:comment_author><![CDATA["
            );
            let after = b"]]></wp:comment_author></wp:comment></item></channel></rss>";
            parse_in(Format::Wordpress, &[before.as_bytes(), name, after].concat(), "UTC")
        };
        let name = |encoding, name| file(encoding, name).unwrap().comment("1").author.name.clone();
        assert_eq!(name("ISO-8859-1", b"Ren\xe9"), "René");
        assert_eq!(name("windows-1251", b"\xc0\xe4\xe0"), "Ада");
        assert_eq!(name("UTF-8", "René".as_bytes()), "René");
        assert_eq!(name("iso-8859-1", "René".as_bytes()), "René");
        let error = file("klingon", b"x").unwrap_err();
        assert_eq!(error, "is in klingon; convert it to UTF-8, and declare that in its first line");
    }

    /// The GBK bytes of 一 are also valid UTF-8.
    #[test]
    fn all_texts_of_a_file_are_in_one_encoding() {
        let before =
            b"<?xml version='1.0' encoding='GBK'?><rss><channel><item><wp:comment><wp:comment_id>1</wp:comment_id>\
            <wp:comment_author>\xd2\xbb</wp:comment_author><wp:comment_content>";
        let after = b"</wp:comment_content></wp:comment></item></channel></rss>";
        let parsed = |content: &[u8]| {
            let file = [before, content, after].concat();
            let [plain, packed] = [file.clone(), gzip(&file)].map(|file| {
                let parsed = parse_in(Format::Wordpress, &file, "UTC").unwrap();
                let comment = parsed.comment("1");
                (comment.author.name.clone(), comment.body.clone(), parsed.missing.len())
            });
            assert_eq!(plain, packed);
            plain
        };
        assert_eq!(parsed(b"\xd5\xc5\xc8\xfd"), ("一".to_owned(), "张三".to_owned(), 0));
        assert_eq!(parsed(b"\xd5\xc5\xff"), ("一".to_owned(), "张\u{fffd}".to_owned(), 1));
        assert_eq!(parsed("张三".as_bytes()).1, "张三", "the whole file is in UTF-8");

        // Every byte is valid Latin-1, so a damaged UTF-8 file must not be read as Latin-1. In a Latin-1 file, a text
        // that is also valid UTF-8 is still read as Latin-1.
        let latin: &[u8] =
            b"<?xml version='1.0' encoding='ISO-8859-1'?><rss><channel><item><wp:comment><wp:comment_id>1</wp:comment_id>\
            <wp:comment_author>Zo\xc3\xab</wp:comment_author><wp:comment_content>";
        for (content, name, body) in
            [(b"\xc3\xa9\xc3\xa9 caf\xe9" as &[u8], "Zoë", "éé caf\u{fffd}"), (b"\xe9\xe9 caf\xe9", "ZoÃ«", "éé café")]
        {
            let parsed = parse_in(Format::Wordpress, &[latin, content, after].concat(), "UTC").unwrap();
            let comment = parsed.comment("1");
            assert_eq!((&*comment.author.name, &*comment.body), (name, body));
        }
    }

    #[test]
    fn the_same_id_in_two_items_means_two_comments() {
        let parsed = sample();
        let twins = parsed.comments.iter().filter(|comment| comment.source_id == "11");
        assert_eq!(
            twins.map(|comment| comment.thread.as_str()).collect::<Vec<_>>(),
            ["18", "https://blog.example/?p=4"]
        );
    }
}

pub(in crate::import) mod isso {
    use rusqlite::Connection;

    use super::*;

    /// The schema of Isso 0.13, with some rows.
    pub(in crate::import) const TABLES: &str = "
        CREATE TABLE threads (id INTEGER PRIMARY KEY, uri VARCHAR(256) UNIQUE, title VARCHAR(256));
        CREATE TABLE comments (tid REFERENCES threads(id), id INTEGER PRIMARY KEY, parent INTEGER, created FLOAT NOT NULL,
            modified FLOAT, mode INTEGER, remote_addr VARCHAR, text VARCHAR, author VARCHAR, email VARCHAR, website VARCHAR,
            likes INTEGER DEFAULT 0, dislikes INTEGER DEFAULT 0, voters BLOB NOT NULL, notification INTEGER DEFAULT 0);
        INSERT INTO threads VALUES (1, '/2014/test/', 'Hello'), (2, '/?p=4', NULL);
        INSERT INTO comments VALUES
            (1, 1, NULL, 1700000000.25, 1700000600.4999999, 1, '198.51.100.0', '*hi*', 'Ada', 'ada@blog.example', NULL, 3, 1, x'00', 0),
            (1, 2, 1, 1700000100, NULL, 2, '198.51.100.0', 'waits', NULL, NULL, NULL, 0, 0, x'00', 0),
            (2, 3, NULL, 1700000200.0, NULL, 4, '198.51.100.0', '', 'Bob', NULL, NULL, 0, 0, x'00', 0),
            (2, 4, 3, 'soon', NULL, 1, '198.51.100.0', '<p>html</p>', 'Bob', NULL, NULL, 0, 0, x'00', 0);";

    pub(in crate::import) fn database(statements: &str) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("isso.db");
        Connection::open(&path).unwrap().execute_batch(statements).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn rows_become_comments() {
        let parsed = parse_in(Format::Isso, &database(TABLES), "Asia/Tokyo").unwrap();
        let page = parsed.thread("/2014/test/");
        assert_eq!((page.url.as_deref(), page.aliases.as_slice()), (Some("/2014/test/"), &["1".to_owned()][..]));
        assert_eq!(parsed.thread("/?p=4").title, None);
        let first = parsed.comment("1");
        assert_eq!(first.created_at, at("2023-11-14T22:13:20Z"), "seconds since 1970 have no zone");
        assert_eq!(first.edited_at, at("2023-11-14T22:23:20Z"));
        assert_eq!((first.likes, first.author.name.as_str(), first.thread.as_str()), (3, "Ada", "/2014/test/"));
        assert_eq!((first.body.as_str(), first.format), ("*hi*", BodyFormat::Markdown));
        assert_eq!(parsed.comment("2").parent.as_deref(), Some("1"));
        let states = [RecordState::Approved, RecordState::Pending, RecordState::Deleted, RecordState::Approved];
        assert_eq!(parsed.comments.iter().map(|comment| comment.state).collect::<Vec<_>>(), states);
        assert_eq!((parsed.comment("4").created_at, &*parsed.comment("4").body), (None, "html"));
    }

    #[test]
    fn a_body_is_markdown_in_which_tags_of_html_are_markup_and_others_are_text() {
        for (typed, shown) in [
            ("<p>Hi", "Hi"),
            ("<ada@blog.example> **Hi**", "<ada@blog.example> **Hi**"),
            ("<3 Hi", "<3 Hi"),
            ("<T> is a type of List<T>", "\\<T> is a type of List\\<T>"),
            ("<Ada>\nHello **there**\n<Foo>\nlast", "\\<Ada>\\\nHello **there**\\\n\\<Foo>\\\nlast"),
            ("<Ctrl>+<C> stops it", "\\<Ctrl>+\\<C> stops it"),
            ("<strong>Hi</strong> there\n\n*two*", "**Hi** there\n\n*two*"),
            ("see <a href=\"https://a.example/x_y\">link</a>", "see [link](https://a.example/x_y)"),
            ("<blockquote>q</blockquote>\n\nanswer *here*", "> q\n\nanswer *here*"),
            ("<script>alert(1)</script> is bad", "\\<script>alert(1)\\</script> is bad"),
        ] {
            let tables = TABLES.replace("'*hi*'", &format!("'{typed}'"));
            let parsed = parse_in(Format::Isso, &database(&tables), "UTC").unwrap();
            assert_eq!(parsed.comment("1").body, shown, "{typed}");
        }
    }

    #[test]
    fn a_compressed_database_in_wal_mode_is_read() {
        let whole = database(&format!("PRAGMA journal_mode = WAL; {TABLES}"));
        for content in [gzip(&whole), zip(&[("dump", &whole)])] {
            assert_eq!(parse_in(Format::Isso, &content, "UTC").unwrap().ids(), ["1", "2", "3", "4"]);
        }
    }

    /// A database of many pages, most of which contain text.
    fn larger() -> Vec<u8> {
        database(&format!(
            "{TABLES} WITH RECURSIVE n(x) AS (SELECT 5 UNION ALL SELECT x + 1 FROM n WHERE x < 400)
             INSERT INTO comments SELECT 1, x, NULL, 1700000000 + x, NULL, 1, '', 'a quiet morning, number ' || x || printf('%.200c', '.'),
                 'Ada', NULL, NULL, 0, 0, x'00', 0 FROM n"
        ))
    }

    #[test]
    fn a_database_that_is_cut_off_anywhere_is_an_error() {
        let whole = larger();
        assert_eq!(parse_in(Format::Isso, &whole, "UTC").unwrap().comments.len(), 400);
        for tenth in 1..10 {
            let cut = &whole[..whole.len() * tenth / 10];
            for content in [cut.to_vec(), gzip(cut), zip(&[("dump", cut)])] {
                let error = parse_in(Format::Isso, &content, "UTC").unwrap_err();
                assert!(error.contains("is cut off"), "{tenth}: {error}");
            }
        }
    }

    #[test]
    fn a_database_that_is_damaged_inside_is_an_error() {
        let mut whole = larger();
        let middle = whole.len() / 2 / 4096 * 4096;
        whole[middle..middle + 4096].fill(0xAA);
        let error = parse_in(Format::Isso, &whole, "UTC").unwrap_err();
        assert!(error.contains("damaged") || error.contains("malformed"), "{error}");
    }

    #[test]
    fn views_and_computed_columns_in_a_database_are_not_executed() {
        let threads = "CREATE TABLE threads (id INTEGER PRIMARY KEY, uri, title);";
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
            SELECT 1 AS tid, x AS id, NULL AS parent, 1.7e9 AS created, NULL AS modified, 1 AS mode, 'x' AS text,
                'a' AS author, NULL AS email, 0 AS likes FROM n";
        let columns = "tid, id INTEGER PRIMARY KEY, parent, created, modified, mode, author, email, likes";
        for (comments, expected) in [
            (format!("CREATE VIEW comments AS {endless}"), "comments isn't a table"),
            (format!("CREATE VIEW Comments AS {endless}"), "comments isn't a table"),
            (format!("CREATE TABLE comments ({columns}, text AS (hex(zeroblob(200000000))))"), "computed"),
            ("CREATE TABLE other (text)".to_owned(), "has no table comments"),
        ] {
            let error = parse_in(Format::Isso, &database(&format!("{threads} {comments}")), "UTC").unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_long_value_affects_only_its_own_comment() {
        let long = "INSERT INTO comments SELECT 1, 9, NULL, 1700000000, NULL, 1, '', printf('%.*c', 3000000, 'x'), 'Ada', NULL,
            NULL, 1e300, 0, x'00', 0";
        let parsed = parse_in(Format::Isso, &gzip(database(&format!("{TABLES} {long}"))), "UTC").unwrap();
        let oversized: Vec<&str> = parsed
            .comments
            .iter()
            .filter(|comment| comment.is_oversized)
            .map(|comment| comment.source_id.as_str())
            .collect();
        assert_eq!(oversized, ["9"]);
        assert_eq!((parsed.comment("9").likes, parsed.comment("1").likes), (u64::MAX, 3));
    }
}

#[test]
fn a_time_in_wordpress_before_1970_is_not_replaced_with_the_local_time() {
    let comment = |id: u32, utc: &str| {
        format!(
            "<comment><comment_id>{id}</comment_id><comment_date>1970-01-01 02:00:00</comment_date>
             <comment_date_gmt>{utc}</comment_date_gmt><comment_content>old</comment_content></comment>"
        )
    };
    let comments = [comment(1, "1969-12-31 21:00:00"), comment(2, "0000-00-00 00:00:00"), comment(3, "")].concat();
    let parsed =
        parse_in(Format::Wordpress, format!("<rss><channel><item>{comments}</item></channel></rss>").as_bytes(), "UTC")
            .unwrap();
    assert_eq!(parsed.comment("1").created_at, None);
    for id in ["2", "3"] {
        assert_eq!(parsed.comment(id).created_at, at("1970-01-01T02:00:00Z"), "{id}");
    }
}

mod remark42 {
    use super::*;

    #[test]
    fn the_object_about_users_is_skipped_and_comments_are_read() {
        let parsed = parse(Format::Remark42, include_str!("../samples/remark42.json"));
        assert_eq!(parsed.ids(), ["a1", "a2", "a3", "a4"]);
        let first = parsed.comment("a1");
        assert_eq!((first.body.as_str(), first.format), ("first *one*", BodyFormat::Markdown));
        assert_eq!(first.created_at, at("2019-09-14T12:16:18Z"));
        assert_eq!(first.edited_at, at("2019-09-14T12:20:00Z"));
        assert_eq!((first.parent.as_deref(), first.likes, first.pinned), (None, 2, true));
        assert_eq!((first.author.key.as_str(), first.author.moderator), ("github_1", true));
        assert_eq!(first.thread, "https://blog.example/demo/");
        assert_eq!(parsed.thread("https://blog.example/demo/").title.as_deref(), Some("Demo"));
        let reply = parsed.comment("a2");
        assert_eq!((reply.body.as_str(), reply.format), ("<p>only html</p>", BodyFormat::Html));
        assert_eq!((reply.parent.as_deref(), reply.likes), (Some("a1"), 3));
        assert_eq!(parsed.comment("a3").state, RecordState::Deleted);
        assert_eq!((parsed.comment("a4").likes, parsed.comment("a4").created_at), (0, None));
    }

    #[test]
    fn values_may_share_a_line_and_backups_may_follow_each_other() {
        let comment =
            |id: &str| format!(r#"{{"id":"{id}","orig":"x","locator":{{"url":"/a"}},"time":"2019-09-14T07:16:18Z"}}"#);
        let meta = r#"{"version":1,"users":null,"posts":null}"#;
        for text in [
            format!("{meta}{}{}", comment("1"), comment("2")),
            format!("{}\n{meta}\n{}", comment("1"), comment("2")),
            format!("{}\n\n\n{}", comment("1"), comment("2")),
        ] {
            assert_eq!(parse(Format::Remark42, &text).ids(), ["1", "2"], "{text}");
        }
        let bad = format!("{meta}\n{}\n{{\"id\":\"2\"}}\n{}", comment("1"), comment("3"));
        let parsed = parse(Format::Remark42, &bad);
        assert_eq!((parsed.ids(), parsed.comment("2").thread.as_str()), (vec!["1", "2", "3"], ""));
    }
}

mod commento {
    use super::*;

    #[test]
    fn a_path_and_a_whole_address_are_the_same_page() {
        let url = |domain: &str, url: &str| {
            let text =
                format!(r#"{{"comments":[{{"commentHex":"1","domain":"{domain}","url":"{url}"}}],"commenters":[]}}"#);
            parse(Format::Commento, &text).threads[0].url.clone().unwrap()
        };
        assert_eq!(url("blog.example", "/a"), "//blog.example/a");
        assert_eq!(url("blog.example", "a"), "//blog.example/a");
        assert_eq!(url("blog.example", "https://blog.example/a"), "https://blog.example/a");
        assert_eq!(url("blog.example", "//www.blog.example/a"), "//www.blog.example/a");
        assert_eq!(url("blog.example", "Blog.example/a"), "//Blog.example/a");
        assert_eq!(url("blog.example", "blog.example.html"), "//blog.example/blog.example.html");
        assert_eq!(url("", "/a"), "/a");
        let (shown, sent) = ("bäcker.example", "xn--bcker-gra.example");
        assert_eq!(url(shown, &format!("{sent}/a")), format!("//{sent}/a"));
        assert_eq!(url(sent, &format!("{shown}/a")), format!("//{shown}/a"));
        assert_eq!(url("blog.example", "blog.example:8080/a"), "//blog.example:8080/a");
    }

    #[test]
    fn root_is_not_a_parent_and_anonymous_is_not_a_user() {
        let parsed = parse(Format::Commento, include_str!("../samples/commento.json"));
        assert_eq!(parsed.ids(), ["c2", "c1", "c3", "c4"], "replies may come before their parents");
        let (reply, parent) = (parsed.comment("c2"), parsed.comment("c1"));
        assert_eq!((reply.parent.as_deref(), parent.parent.as_deref()), (Some("c1"), None));
        assert_eq!((reply.author.key.as_str(), parent.author.key.as_str()), ("", "u1"));
        assert_eq!(parent.thread, "//blog.example:1313/post/first/");
        assert_eq!(parsed.thread("//blog.example:1313/post/first/").aliases, ["/post/first/"]);
        assert_eq!(parent.created_at, at("2020-01-27T14:07:49Z"));
        assert_eq!((parent.likes, reply.likes), (2, 0));
        assert_eq!(parsed.comment("c3").state, RecordState::Deleted);
        assert_eq!(parsed.comment("c4").state, RecordState::Pending);
        let ada = &parsed.users[0];
        assert_eq!((ada.id.as_str(), ada.name.as_str(), ada.picture.as_str(), ada.moderator), ("u1", "Ada", "", true));
    }

    #[test]
    fn a_deleted_comment_is_recognized_by_its_text_because_exports_lack_the_flag() {
        let state = |author: &str, text: &str| {
            let text = format!(
                r#"{{"comments":[{{"commentHex":"1","url":"/a","commenterHex":"{author}","markdown":"{text}","deleted":false}}]}}"#
            );
            parse(Format::Commento, &text).comment("1").state
        };
        assert_eq!(state("anonymous", "[deleted]"), RecordState::Deleted);
        assert_eq!(state("u1", "[deleted]"), RecordState::Approved);
        assert_eq!(state("anonymous", "[deleted] it"), RecordState::Approved);
    }

    #[test]
    fn a_table_stays_text_and_tags_are_dropped() {
        let text = r#"{"comments":[{"commentHex":"1","url":"/a","markdown":"|a|\n|-|\n\n<b>x</b>"}]}"#;
        assert_eq!(parse(Format::Commento, text).comment("1").body, "\\|a| |-|\n\nx");
    }

    #[test]
    fn the_zero_time_counts_as_missing_and_every_unapproved_state_as_pending() {
        let comment = |id: usize, state: &str, time: &str| {
            format!(r#"{{"commentHex":"{id}","url":"/a","markdown":"x","state":"{state}","creationDate":"{time}"}}"#)
        };
        let now = "2020-01-27T14:07:49.244432Z";
        let comments = [
            comment(0, "approved", "0001-01-01T00:00:00Z"),
            comment(1, "", now),
            comment(2, "unapproved", now),
            comment(3, "flagged", now),
        ];
        let text = format!(r#"{{"version":1,"comments":[{}],"commenters":null}}"#, comments.join(","));
        let parsed = parse(Format::Commento, &text);
        assert_eq!(
            (parsed.comment("0").created_at, parsed.comment("1").created_at),
            (None, at("2020-01-27T14:07:49Z"))
        );
        let states = [RecordState::Approved, RecordState::Approved, RecordState::Pending, RecordState::Pending];
        assert_eq!(parsed.comments.iter().map(|comment| comment.state).collect::<Vec<_>>(), states);
    }
}

mod comentario {
    use super::*;

    #[test]
    fn times_in_year_one_count_as_missing_and_flags_become_states() {
        let parsed = parse(Format::Comentario, include_str!("../samples/comentario.json"));
        let states = [
            ("k1", RecordState::Approved),
            ("k2", RecordState::Deleted),
            ("k3", RecordState::Pending),
            ("k4", RecordState::Rejected),
            ("k5", RecordState::Approved),
        ];
        assert_eq!(parsed.states(), states);
        let first = parsed.comment("k1");
        assert_eq!((first.edited_at, first.created_at), (None, at("2023-11-14T20:15:12Z")));
        assert_eq!((first.likes, first.pinned, first.author.key.as_str()), (23, true, "u1"));
        assert_eq!(parsed.comment("k3").parent.as_deref(), Some("k1"));
        assert_eq!(parsed.comment("k5").author.name, "Guest");
        assert_eq!((parsed.comment("k5").author.key.as_str(), parsed.comment("k5").created_at), ("", None));
        assert_eq!(parsed.thread("p1").url.as_deref(), Some("/post/"));
        assert_eq!((parsed.users[0].name.as_str(), parsed.users[0].email.as_str()), ("Ada", "ada@blog.example"));
    }
}

mod artalk {
    use super::*;

    #[test]
    fn elements_are_objects_or_strings_that_contain_objects() {
        let parsed = parse(Format::Artalk, include_str!("../samples/artalk.json"));
        assert_eq!(parsed.ids(), ["1000", "1001"]);
        let (first, reply) = (parsed.comment("1000"), parsed.comment("1001"));
        assert_eq!((first.created_at, reply.created_at), (at("2022-04-29T06:44:04Z"), at("2022-04-29T21:44:13Z")));
        assert_eq!((first.parent.as_deref(), reply.parent.as_deref()), (None, Some("1000")));
        assert_eq!((first.likes, first.pinned, first.state), (4, true, RecordState::Approved));
        assert_eq!((reply.state, reply.edited_at), (RecordState::Pending, None));
        assert_eq!((first.author.name.as_str(), first.author.email.as_str()), ("Ada", "ada@blog.example"));
        assert_eq!(parsed.thread("/test/1000.html").title.as_deref(), Some("A page"));
    }

    #[test]
    fn a_string_that_contains_no_complete_comment_is_an_error() {
        let whole = r#"{\"id\":\"1\",\"page_key\":\"/a\"}"#;
        for damaged in [r#"{\"id\":\"17\","#, "not json", "", "17"] {
            let error = parse_in(Format::Artalk, format!(r#"["{whole}","{damaged}"]"#).as_bytes(), "UTC").unwrap_err();
            assert!(error.starts_with("record 2 is not valid: ") && !error.contains(" line "), "{damaged}: {error}");
        }
    }
}

mod waline {
    use super::*;

    #[test]
    fn times_are_strings_or_objects_and_accounts_become_users() {
        let parsed = parse_in(Format::Waline, include_bytes!("../samples/waline.json"), "Asia/Shanghai").unwrap();
        let states = [
            ("w1", RecordState::Approved),
            ("w2", RecordState::Pending),
            ("w3", RecordState::Spam),
            ("w4", RecordState::Approved),
            ("5", RecordState::Approved),
        ];
        assert_eq!(parsed.states(), states);
        assert_eq!(parsed.comment("w1").created_at, at("2021-02-03T04:05:06Z"));
        assert_eq!(parsed.comment("w2").created_at, at("2021-02-02T20:05:06Z"), "in the zone");
        assert_eq!(parsed.comment("5").author.key, parsed.users[0].id);
        assert_eq!(parsed.comment("w2").parent.as_deref(), Some("w1"));
        assert_eq!(parsed.comment("w4").parent.as_deref(), Some("w2"));
        assert_eq!((parsed.users[0].id.as_str(), parsed.users[0].moderator), ("7", true));
        assert_eq!((parsed.comment("w1").likes, parsed.comment("w1").pinned), (5, true));
    }

    #[test]
    fn bodies_are_markdown_with_html_line_breaks_and_bare_addresses() {
        let parsed = parse(Format::Waline, include_str!("../samples/waline.json"));
        assert_eq!(parsed.comment("w1").body, "an [address](https://blog.example)");
        assert_eq!(parsed.comment("w2").body, "**plain**");
        assert_eq!(parsed.comment("w4").body, "<https://blog.example/>", "an autolink isn't a tag");
        let emoji = "![yes](https://e.example/yes.png) **yes**\\\n<https://blog.example/b_c>.";
        assert_eq!(parsed.comment("5").body, emoji);
        assert_eq!(parsed.comment("5").format, BodyFormat::Markdown);
    }

    #[test]
    fn an_api_response_is_read_like_the_export_inside() {
        let file = include_str!("../samples/waline.json");
        let parsed = parse(Format::Waline, &format!("{{\"errno\":0,\"errmsg\":\"\",\"data\":{file}}}"));
        assert_eq!((parsed.comments.len(), parsed.users.len()), (5, 1));
    }

    #[test]
    fn a_link_to_the_parent_at_the_start_of_a_reply_becomes_a_name() {
        let body = |comment: &str| {
            let text = format!(r#"[{{"objectId":"1","url":"/a","comment":"{comment}"}}]"#);
            parse(Format::Waline, &text).comment("1").body.clone()
        };
        assert_eq!(body("[@ada](#65f1c2): **yes** :tada:"), "@ada: **yes** 🎉");
        assert_eq!(body("<p><a class='at' href='#65f1c2'>@ada</a> , yes</p>"), "@ada , yes");
        assert_eq!(body("See [@ada](#65f1c2)"), "See [@ada](#65f1c2)");
        for link in ["[@ada](https://a.example)", "[@ada](https://a.example) [@bob](#65f1c2): yes"] {
            assert_eq!(body(link), link);
        }
    }

    #[test]
    fn ids_of_mongodb_are_objects() {
        let of = |id: &str| format!(r#"{{"$oid":"{id}"}}"#);
        let text = format!(
            r#"[{{"_id":{},"url":"/a","comment":"one","insertedAt":{{"$date":"2021-02-03T04:05:06.000Z"}}}},{{"_id":{},"pid":"m1","url":"/a"}}]"#,
            of("m1"),
            of("m2")
        );
        let parsed = parse(Format::Waline, &text);
        assert_eq!((parsed.ids(), parsed.comment("m2").parent.as_deref()), (vec!["m1", "m2"], Some("m1")));
        assert_eq!(parsed.comment("m1").created_at, at("2021-02-03T04:05:06Z"));
    }

    #[test]
    fn lines_of_leancloud_follow_a_line_about_their_type() {
        let lines = "#filetype:JSON-streaming {\"type\":\"Class\",\"class\":\"Comment\"}\n\
            {\"objectId\":\"l1\",\"url\":\"/a/\",\"comment\":\"one\",\"insertedAt\":{\"__type\":\"Date\",\"iso\":\"2021-02-03T04:05:06.000Z\"}}\n\
            {\"objectId\":\"l2\",\"url\":\"/a/\",\"comment\":\"two\",\"rid\":\"l1\"}\n";
        let parsed = parse(Format::Waline, lines);
        assert_eq!(parsed.ids(), ["l1", "l2"]);
        assert_eq!(
            (parsed.comment("l1").created_at, parsed.comment("l2").created_at),
            (at("2021-02-03T04:05:06Z"), None)
        );
        let cut = lines.trim_end().len() - 1;
        assert_eq!(
            parse_in(Format::Waline, &lines.as_bytes()[..cut], "UTC").unwrap_err(),
            "line 3: EOF while parsing an object"
        );
        let array = format!("[{}]", r#"{"objectId":"l1","url":"/a/"}"#);
        assert_eq!(parse(Format::Waline, &array).ids(), ["l1"]);
    }
}

mod giscus {
    use super::*;

    const NO_ID: &str = "a comment has no id; query the field id of all comments and replies";

    #[test]
    fn a_discussion_is_a_page_with_one_level_of_replies() {
        let parsed = parse(Format::Giscus, include_str!("../samples/giscus.json"));
        assert_eq!(parsed.ids(), ["D1", "D2", "D3", "D4"]);
        assert_eq!(parsed.thread("posts/hello").url.as_deref(), Some("https://blog.example/posts/hello/"));
        assert_eq!(parsed.thread("about").url.as_deref(), Some("about"), "without an address, the title");
        assert_eq!(parsed.comment("D2").parent.as_deref(), Some("D1"));
        let first = parsed.comment("D1");
        assert_eq!((first.likes, first.author.name.as_str(), first.author.moderator), (4, "ada", true));
        assert_eq!((first.edited_at, first.format), (at("2022-02-03T04:05:06Z"), BodyFormat::Markdown));
        assert_eq!(
            (parsed.comment("D2").author.name.as_str(), parsed.comment("D2").state),
            ("ghost", RecordState::Approved)
        );
        assert_eq!((parsed.comment("D3").state, parsed.comment("D4").state), (RecordState::Deleted, RecordState::Spam));
    }

    #[test]
    fn a_response_with_an_error_is_an_error() {
        let one = include_str!("../samples/giscus.json");
        let limited =
            r#"{"data":{"repository":null},"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}"#;
        let error = parse_in(Format::Giscus, format!("{one}{limited}").as_bytes(), "UTC").unwrap_err();
        assert_eq!(error, "a response has an error, so it is incomplete: API rate limit exceeded");
    }

    #[test]
    fn comments_without_ids_are_an_error_because_their_replies_would_be_lost() {
        let discussion = |nodes: &str| {
            format!(
                r#"{{"data":{{"repository":{{"discussion":{{"title":"a","comments":{{"totalCount":2,"nodes":[{nodes}]}}}}}}}}}}"#
            )
        };
        for nodes in [
            r#"{"body":"one","replies":{"nodes":[{"body":"two"}]}},{"body":"three"}"#,
            r#"{"id":"c1","body":"one","replies":{"nodes":[{"body":"two"}]}}"#,
        ] {
            let error = parse_in(Format::Giscus, discussion(nodes).as_bytes(), "UTC").unwrap_err();
            assert_eq!(error, NO_ID);
        }
        assert_eq!(parse(Format::Giscus, &discussion(r#"{"id":"c1"},null"#)).missing.len(), 1, "null is no comment");
    }

    #[test]
    fn a_list_that_github_calls_incomplete_is_reported() {
        let page = |info: &str, nodes: &str| {
            format!(r#"{{"data":{{"repository":{{"discussions":{{{info}"nodes":[{nodes}]}}}}}}}}"#)
        };
        let discussion = |id: &str, comments: &str| format!(r#"{{"id":"{id}","title":"{id}","comments":{comments}}}"#);
        let missing = |text: String| {
            let missing = parse(Format::Giscus, &text).missing;
            missing.into_iter().map(|missing| (missing.id, missing.read, missing.total)).collect::<Vec<_>>()
        };
        let none = discussion("A", r#"{"nodes":[]}"#);
        assert_eq!(missing(page("", &none)), []);
        assert_eq!(missing(page(r#""totalCount":2,"#, &none)), [("discussions".to_owned(), 1, Some(2))]);
        let (next, last) = (r#""pageInfo":{"hasNextPage":true},"#, r#""pageInfo":{"hasNextPage":false},"#);
        assert_eq!(missing(page(next, &none)), [("discussions".to_owned(), 1, None)]);
        let other = discussion("B", r#"{"nodes":[]}"#);
        assert_eq!(
            missing(format!("{}{}", page(next, &none), page(last, &other))),
            [],
            "the rest is in another answer"
        );
        let comments = discussion(
            "A",
            r#"{"totalCount":3,"nodes":[{"id":"c1","replies":{"pageInfo":{"hasPreviousPage":true},"nodes":[{"id":"r1"}]}}]}"#,
        );
        assert_eq!(missing(page(last, &comments)), [("A".to_owned(), 1, Some(3)), ("c1".to_owned(), 1, None)]);
        let search = format!(r#"{{"data":{{"search":{{"discussionCount":9,"nodes":[{none}]}}}}}}"#);
        assert_eq!(missing(search), [("discussions".to_owned(), 1, Some(9))]);
    }

    fn missing(parsed: &Parsed) -> Vec<(&str, u64, Option<u64>)> {
        parsed.missing.iter().map(|missing| (missing.id.as_str(), missing.read, missing.total)).collect()
    }

    #[test]
    fn further_pages_of_comments_and_replies_may_come_from_their_nodes() {
        let list = r#"{"data":{"repository":{"discussion":{"id":"D","title":"a","comments":{"totalCount":2,"nodes":[
            {"id":"c1","replies":{"totalCount":2,"pageInfo":{"hasNextPage":true},"nodes":[{"id":"r1"}]}}]}}}}}"#;
        let comments = r#"{"data":{"node":{"id":"D","comments":{"totalCount":2,"nodes":[{"id":"c2"}]}}}}"#;
        let replies = r#"{"data":{"node":{"id":"c1","replies":{"totalCount":2,"pageInfo":{"hasNextPage":false},
            "nodes":[{"id":"r2","createdAt":"2022-02-03T04:05:06Z"}]}}}}"#;
        assert_eq!(missing(&parse(Format::Giscus, list)), [("D", 1, Some(2)), ("c1", 1, Some(2))]);
        for pages in [[list, comments, replies], [replies, comments, list]] {
            let parsed = parse(Format::Giscus, &pages.concat());
            assert_eq!(missing(&parsed), []);
            assert_eq!(parsed.comment("c2").thread, parsed.comment("c1").thread);
            assert_eq!(parsed.comment("r2").parent.as_deref(), Some("c1"));
        }
        assert_eq!(parse(Format::Giscus, replies).comment("r2").thread, "", "only its parent has a page");
        for (node, expected) in [
            (r#"{"replies":{"nodes":[]}}"#, NO_ID),
            (r#"{"comments":{"nodes":[]}}"#, NO_ID),
            (r#"{"id":"x"}"#, "a node has neither comments nor replies"),
        ] {
            let text = format!(r#"{list}{{"data":{{"node":{node}}}}}"#);
            assert_eq!(parse_in(Format::Giscus, text.as_bytes(), "UTC").unwrap_err(), expected, "{node}");
        }
    }

    #[test]
    fn a_discussion_that_is_null_counts_as_missing() {
        let page = r#"{"data":{"repository":{"discussions":{"totalCount":2,"nodes":[null,{"id":"D","title":"a"}]}}}}"#;
        let parsed = parse(Format::Giscus, page);
        assert_eq!((missing(&parsed), parsed.threads.len()), (vec![("discussions", 1, Some(2))], 1));
    }

    #[test]
    fn lists_may_have_edges_instead_of_nodes() {
        let text = include_str!("../samples/giscus.json").replace("\"nodes\":[]", "\"edges\":[]");
        let edges =
            |node: &str| format!(r#"{{"totalCount":1,"edges":[{{"cursor":"x","node":{node}}},{{"node":null}}]}}"#);
        let reply = edges(r#"{"id":"r1"}"#);
        let comment = edges(&format!(r#"{{"id":"c1","replies":{reply}}}"#));
        let discussion = edges(&format!(r#"{{"id":"D","title":"a","comments":{comment}}}"#));
        for place in [r#"{"repository":{"discussions":%}}"#, r#"{"search":%}"#] {
            let parsed = parse(Format::Giscus, &format!(r#"{{"data":{}}}"#, place.replace('%', &discussion)));
            assert_eq!((parsed.ids(), missing(&parsed)), (vec!["c1", "r1"], vec![]), "{place}");
        }
        assert_eq!(parse(Format::Giscus, &text).comments.len(), 4);
    }

    #[test]
    fn several_responses_may_follow_each_other() {
        let one = include_str!("../samples/giscus.json");
        assert_eq!(parse(Format::Giscus, &format!("{one}{one}")).comments.len(), 8);
        assert_eq!(parse(Format::Giscus, &format!("[{one},{one}]")).comments.len(), 8);
        let cut = format!("{one}\n\n{}", one.trim_end().trim_end_matches('}'));
        let error = parse_in(Format::Giscus, cut.as_bytes(), "UTC").unwrap_err();
        assert_eq!(error, format!("line {}: EOF while parsing an object", cut.split('\n').count()));
    }
}

mod native {
    use super::*;

    #[test]
    fn native_records_survive_a_round_trip() {
        let text = include_str!("../samples/native.jsonl");
        let parsed = parse(Format::Native, text);
        assert_eq!(parsed.ids(), ["1", "2", "3"]);
        assert_eq!(parsed.thread("posts/1").kind.as_deref(), Some("posts"));
        assert_eq!((parsed.comment("2").likes, parsed.comment("2").parent.as_deref()), (3, Some("1")));
        assert_eq!(parsed.comment("3").created_at, None, "a bad time costs its record alone");
        let written = serde_json::to_string(&Record::Comment(Box::new(parsed.comment("2").clone()))).unwrap();
        assert_eq!(
            serde_json::from_str::<Record>(&written).unwrap(),
            Record::Comment(Box::new(parsed.comment("2").clone()))
        );
    }

    #[test]
    fn another_version_and_unknown_records_are_errors() {
        for (text, expected) in [
            ("{\"head\":{\"format\":\"comments\",\"version\":2}}", "is in format comments 2, not comments 1"),
            ("{\"hello\": 1}", "record 1 is not valid: unknown variant `hello`"),
        ] {
            let error = parse_in(Format::Native, text.as_bytes(), "UTC").unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

#[test]
fn a_native_record_with_a_type_or_a_user_that_cannot_exist_is_not_valid() {
    let thread = |kind: &str| format!(r#"{{"thread":{{"key":"/a","type":{kind:?}}}}}"#);
    let comment = |user: u64| format!(r#"{{"comment":{{"thread":"/a","author":{{"user_id":{user}}}}}}}"#);
    let user = |user: u64| format!(r#"{{"user":{{"user_id":{user}}}}}"#);
    let report = |user: u64| {
        format!(
            r#"{{"report":{{"comment":1,"id":1,"reason":"spam","created_at":"2020-01-02T03:04:05Z","visitor":"g","user_id":{user}}}}}"#
        )
    };
    let read = |record: &str| parse_in(Format::Native, record.as_bytes(), "UTC").map(drop);
    assert_eq!(read(&thread("posts")), Ok(()));
    for kind in ["users", "a b", "..", ""] {
        let error = read(&thread(kind)).unwrap_err();
        assert!(error.contains("record 1 is not valid: ") && error.contains(NO_TYPE), "{kind}: {error}");
    }
    for id in [1, (1 << 53) - 1] {
        assert_eq!((read(&comment(id)), read(&user(id))), (Ok(()), Ok(())));
    }
    for record in [comment, user, report] as [fn(u64) -> String; 3] {
        for id in [0, 1 << 53, u64::MAX] {
            let error = read(&record(id)).unwrap_err();
            assert!(error.contains("record 1 is not valid: ") && error.contains("user id"), "{id}: {error}");
        }
    }
}
