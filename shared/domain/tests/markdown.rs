//! Tests that comments render as `CommonMark`, and that no comment can run code.

use std::collections::{HashMap, HashSet};

use ammonia::{Builder, UrlRelative};
use domain::letters::{is_digit, is_letter, is_mark};
use domain::markdown::{self, MAX_HTML, MAX_MENTIONS, MAX_NESTING, may_be_plain, render, shown};
use domain::prose::as_typed;
use domain::source::Source;
use proptest::prelude::*;
use pulldown_cmark::{Event, Tag};
use serde::Deserialize;
use serde_json::Value;

const NOBODY: &[&str] = &[];
const REL: &str = r#" rel="nofollow ugc noopener""#;

fn html(body: &str) -> String {
    render(body, "users", NOBODY)
}

fn html_knowing(known: &[&str], body: &str) -> String {
    render(body, "users", known)
}

/// Allows exactly what rendered comments may contain.
fn allow_list() -> Builder<'static> {
    let tags = "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img li ol p pre strong table tbody td th thead tr ul";
    let attributes = [
        ("a", HashSet::from(["href", "title", "rel"])),
        ("code", HashSet::from(["class"])),
        ("img", HashSet::from(["src", "alt", "title"])),
        ("ol", HashSet::from(["start"])),
        ("td", HashSet::from(["align"])),
        ("th", HashSet::from(["align"])),
    ];
    let mut builder = Builder::empty();
    builder
        .tags(tags.split(' ').collect())
        .tag_attributes(HashMap::from(attributes))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(None);
    builder
}

/// The HTML as ammonia serializes it. It differs from the output of `CommonMark` only in spelling.
fn serialised(html: &str) -> String {
    html.replace(" />", ">").replace("&#39;", "'").replace("&#x27;", "'").replace('\u{a0}', "&nbsp;")
}

fn assert_allowed(body: &str) {
    let html = html_knowing(&["ada"], body);
    assert!(html.len() <= MAX_HTML, "{} bytes", html.len());
    assert_eq!(allow_list().clean(&html).to_string(), serialised(&html), "body: {body:?}");
}

#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "*", "**", "_", "`", "``", "```", "~~~", "[", "]", "(", ")", "](", "![", "<", ">", "> ", "- ", "1. ", "7) ", "# ",
    "###### ", "---", "===", "\n", "\n\n", "    ", "\t", "  \n", "\\", "&", "&lt;", "&#106;", "&colon;", "&Tab;",
    "&NewLine;", "&nbsp;", "\"", "'", "javascript:", "JaVaScRiPt:", "data:text/html,", "vbscript:",
    "https://a.example/", "//a.example", "mailto:", "a@b.example", "<https://a.example>", "<a@b.example>",
    "<javascript:alert(1)>", "<script>", "</script>", "<img src=x onerror=alert(1)>", "<!--", "-->", "<?", "?>",
    "<![CDATA[", "]]>", "<a href=\"", "</a>", "<svg/onload=", "[a]: ", "[a]", "[a][]", "[a](b)", "![a](b)", "(b \"t\")",
    "|", "|a|\n|-|\n", "| :-: |\n", "~", "~~", "- [ ] ", "[x] ", "@ada", "@bob", "@", "onclick=", "\0", "\u{b}", "\u{c}", "\u{200b}", "\u{fffd}", "é", "😀", "word ", " ",
];

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(TOKENS).prop_map(str::to_owned),
        "[a-z]{1,3}",
        any::<char>().prop_filter("a lone CR is another line feed", |c| *c != '\r').prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn no_text_leaves_the_allow_list(body in "[^\r]{0,200}") {
        assert_allowed(&body);
    }

    #[test]
    fn no_markup_leaves_the_allow_list(tokens in prop::collection::vec(token(), 0..60)) {
        assert_allowed(&tokens.concat());
    }

    #[test]
    fn mentions_are_distinct_lower_case_handles(tokens in prop::collection::vec(token(), 0..60)) {
        let handles = mentions(&tokens.concat());
        prop_assert!(handles.len() <= MAX_MENTIONS);
        prop_assert_eq!(handles.iter().collect::<HashSet<_>>().len(), handles.len());
        for handle in handles {
            prop_assert!((1..=50).contains(&handle.chars().count()));
            prop_assert!(handle.chars().all(|c| c == '_' || is_letter(c) || is_mark(c) || is_digit(c)), "{handle}");
            prop_assert_eq!(&handle.to_lowercase(), &handle);
        }
    }
}

#[test]
fn known_attacks_come_out_harmless() {
    let attacks = include_str!("attacks.txt");
    let attacks: Vec<&str> = attacks.split("\n%%\n").collect();
    assert!(attacks.len() > 60, "{}", attacks.len());
    for attack in attacks {
        assert_allowed(attack);
        assert_allowed(&format!("- text {attack} text"));
        assert_allowed(&attack.replace(' ', "\n"));
    }
}

#[derive(Deserialize)]
struct Specification {
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    #[serde(rename = "example")]
    number: u32,
    markdown: String,
    html: String,
}

/// The examples that intentionally render differently, with the reason.
const DIFFERENT: &[(u32, &str)] = &[
    (500, "a colon before any slash ends a scheme, whatever the scheme is made of"),
    (596, "the scheme irc"),
    (598, "the scheme a+b+c"),
    (599, "the scheme made-up-scheme"),
    (601, "the scheme localhost"),
];

#[test]
fn the_examples_of_commonmark_render_as_specified() {
    let specification: Specification =
        serde_json::from_str(include_str!("commonmark.json")).expect("the examples are JSON");
    for example in specification.examples {
        // Quotation marks need no escape in text.
        let expected = example.html.replace("&quot;", "\"");
        let rendered = serialised(&html(&example.markdown)).replace(REL, "").replace("&quot;", "\"");
        let differs = DIFFERENT.iter().any(|(number, _)| *number == example.number);
        let Example { number, markdown, .. } = example;
        assert_eq!(
            rendered == serialised(&expected),
            !differs,
            "{number}: {markdown:?} is {rendered:?}, not {expected:?}"
        );
    }
}

/// The text of HTML, without white space.
fn text_of(html: &str) -> String {
    Builder::empty().clean(html).to_string().split_whitespace().collect()
}

#[test]
fn the_text_shown_to_the_spam_check_is_the_text_of_the_html() {
    let specification: Specification =
        serde_json::from_str(include_str!("commonmark.json")).expect("the examples are JSON");
    for Example { number, markdown, .. } in specification.examples {
        let html = html(&markdown);
        // The alternative text of an image is an attribute.
        if !html.contains("<img") {
            let shown = shown(&markdown);
            assert_eq!(text_of(&ammonia::clean_text(&shown.text)), text_of(&html), "{number}: {markdown:?}");
            assert_eq!(shown.links.len(), html.matches("<a ").count(), "{number}: {markdown:?}");
        }
    }
}

#[test]
fn bodies_without_a_visible_mark_show_nothing() {
    for body in ["", " ", "&nbsp;", "&#8203;", "\u{200b}", "[](x)", "[a]: x", "#", ">", "-", "```\n```", "[&#173;](x)"]
    {
        assert!(shown(body).is_nothing(), "{body:?}");
    }
    for body in ["x", "<!-- -->", "**", "---", "![](x)", "[x](y)", "`x`", "&lt;", "\\", "\0", "![](javascript:x)!"] {
        assert!(!shown(body).is_nothing(), "{body:?}");
    }
}

#[test]
fn the_text_of_a_link_is_found_within_the_text_of_the_body() {
    let shown = shown("a [b *c* ![d](e)](f \"g\") @h");
    let links: Vec<_> = shown.links.iter().map(|l| (&*l.address, &*l.title, &shown.text[l.text.clone()])).collect();
    assert_eq!(links, [("f", "g", "b c d"), ("e", "", "d")]);
}

#[test]
fn a_body_may_be_plain_when_its_html_with_all_mentions_is_too_long() {
    let body = |links: &usize| format!("{} @a @b", "[](x)".repeat(*links));
    let counts: Vec<usize> = (1..2_000).collect();
    let most = counts.partition_point(|links| render(&body(links), "users", NOBODY).contains("<a "));
    assert!(may_be_plain(&body(&most), "users"));
    assert!(!may_be_plain(&body(&(most - 4)), "users"));
    assert!(may_be_plain(&"[](x)".repeat(2_000), "users"));
    assert!(!may_be_plain(&"&".repeat(10_000), "users"));
}

#[test]
fn a_body_of_white_space_renders_to_nothing() {
    for body in ["", " ", "\n\t \r\n", "\u{a0}\u{2003}"] {
        assert_eq!(html(body), "", "{body:?}");
    }
}

#[test]
fn raw_html_shows_as_it_was_typed() {
    assert_eq!(html("a <b>c</b>"), "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n");
    assert_eq!(
        html("<div onclick=\"x()\">\n*a*\n</div>\n\n*b*"),
        "<p>&lt;div onclick=\"x()\"&gt;\n*a*\n&lt;/div&gt;\n</p>\n<p><em>b</em></p>\n"
    );
    assert_eq!(html("<!-- a -->"), "<p>&lt;!-- a --&gt;</p>\n");
}

#[test]
fn links_tell_search_engines_not_to_follow_them() {
    assert_eq!(
        html("[a](https://b.example/?c&d \"e\")"),
        "<p><a href=\"https://b.example/?c&amp;d\" title=\"e\" rel=\"nofollow ugc noopener\">a</a></p>\n"
    );
}

#[test]
fn links_to_the_web_to_mail_and_to_the_site_itself_survive() {
    for address in [
        "http://a.example",
        "HTTPS://a.example",
        "mailto:a@b.example",
        "//a.example",
        "/a:b",
        "a/b",
        "#a",
        "?a=b:c",
        "",
    ] {
        let link = format!("<p><a href=\"{address}\"{REL}>x</a></p>\n");
        assert_eq!(html(&format!("[x]({address})")), link);
    }
    assert_eq!(html("<ada@b.example>"), format!("<p><a href=\"mailto:ada@b.example\"{REL}>ada@b.example</a></p>\n"));
}

#[test]
fn a_link_with_a_forbidden_scheme_becomes_its_text() {
    let addresses = "javascript:alert(1) JAVASCRIPT:alert(1) &#106;avascript:alert(1) javascript&colon;alert(1) \
                     java&Tab;script:alert(1) &#1;javascript:alert(1) <java\tscript:alert(1)> <//a\tb> \
                     data:text/html,a ftp://a.example a:b";
    for address in addresses.split(' ') {
        assert_eq!(html(&format!("[a *b*]({address} \"t\")")), "<p>a <em>b</em></p>\n", "{address}");
        assert_eq!(html(&format!("![a *b*]({address} \"t\")")), "<p>a b</p>\n", "{address}");
    }
}

#[test]
fn links_do_not_nest() {
    assert_eq!(html("[a <https://b.example>](/c)"), format!("<p><a href=\"/c\"{REL}>a https://b.example</a></p>\n"));
    assert_eq!(
        html("[a <https://b.example>](x:y)"),
        format!("<p>a <a href=\"https://b.example\"{REL}>https://b.example</a></p>\n")
    );
}

#[test]
fn an_uploaded_image_shows() {
    assert_eq!(
        html("![a *b*\n`c`  \nd](/media/1.png \"t\")"),
        "<p><img src=\"/media/1.png\" alt=\"a b c d\" title=\"t\" /></p>\n"
    );
    assert_eq!(html("![](https://cdn.example/1.png)"), "<p><img src=\"https://cdn.example/1.png\" alt=\"\" /></p>\n");
}

fn cells(html: &str) -> String {
    html.replace('\n', "")
}

#[test]
fn a_table_is_rendered_as_on_github() {
    let table = "| a | *b* | c | d |\n|:--|:-:|--:|---|\n| 1 | 2 \\| `x\\|y` | | [4](/x) |\n| 5 |\nnot a \\| row | 6 | 7 | 8 | 9\n\nafter";
    assert_eq!(
        cells(&html(table)),
        format!(
            "<table><thead><tr><th align=\"left\">a</th><th align=\"center\"><em>b</em></th><th align=\"right\">c</th><th>d</th></tr></thead>\
             <tbody><tr><td align=\"left\">1</td><td align=\"center\">2 | <code>x|y</code></td><td align=\"right\"></td><td><a href=\"/x\"{REL}>4</a></td></tr>\
             <tr><td align=\"left\">5</td><td align=\"center\"></td><td align=\"right\"></td><td></td></tr>\
             <tr><td align=\"left\">not a | row</td><td align=\"center\">6</td><td align=\"right\">7</td><td>8</td></tr></tbody></table>\
             <p>after</p>"
        )
    );
    let head = "<table><thead><tr><th>a</th><th>b</th></tr></thead>";
    assert_eq!(cells(&html("a | b\n- | -")), format!("{head}</table>"));
    assert_eq!(
        cells(&html("> a | b\n> - | -\n> @ada | https://a.example/x_y_\n> # c")),
        format!(
            "<blockquote>{head}<tbody><tr><td>@ada</td><td>https://a.example/x_y_</td></tr></tbody></table><h1>c</h1></blockquote>"
        )
    );
    assert_eq!(
        cells(&html_knowing(&["ada"], "|@ada|\n|-|")),
        format!("<table><thead><tr><th><a href=\"/users/ada\"{REL}>@ada</a></th></tr></thead></table>")
    );
    for text in ["a | b\n\n- | -", "a | b\n- | - | -", "`|a|`\nb", "\\| a |\n\\|---|", "    |a|\n    |-|"] {
        assert!(!html(text).contains("<table"), "{text}");
    }
}

#[test]
fn only_pairs_of_tildes_strike_text_through() {
    for (body, expected) in [
        ("~~a *b*~~ c", "<del>a <em>b</em></del> c"),
        ("a~~b~~c", "a<del>b</del>c"),
        ("**~~a~~**", "<strong><del>a</del></strong>"),
        ("~~a **b~~ c**", "<del>a **b</del> c**"),
        ("~~a ~b~ c~~", "<del>a ~b~ c</del>"),
        ("~~5~ or so~~", "<del>5~ or so</del>"),
        ("~a ~~b~ c~~", "~a <del>b~ c</del>"),
        ("~~see https://a.example/~b~~", "<del>see https://a.example/~b</del>"),
        ("~x~", "~x~"),
        ("*~x~*y ~*z*~", "*~x~*y ~<em>z</em>~"),
        ("~*a~*b", "~*a~*b"),
        ("a ~~~x~~~", "a ~~~x~~~"),
        ("a ~~~~b~~~~", "a ~~~~b~~~~"),
        ("~~a~", "~~a~"),
        ("~a~~", "~a~~"),
        ("~~ a ~~", "~~ a ~~"),
        ("\\~~a~~", "~~a~~"),
        ("\\~~a \\~~", "~~a ~~"),
        ("\\\\~a~", "\\~a~"),
        ("`~a~` ~b~", "<code>~a~</code> ~b~"),
        ("~~`~~`~~", "<del><code>~~</code></del>"),
        ("\u{10a58}~a~ ~~b~~", "\u{10a58}~a~ <del>b</del>"),
        ("[~a~](/~b~ \"~c~\")", "<a href=\"/~b~\" title=\"~c~\" rel=\"nofollow ugc noopener\">~a~</a>"),
    ] {
        assert_eq!(html(body), format!("<p>{expected}</p>\n"), "{body}");
    }
    assert_eq!(html("~~~ ~a\n~b~\n~~~"), "<pre><code class=\"language-~a\">~b~\n</code></pre>\n");
    assert_eq!(shown("~~a~~ ~b~").text.trim(), "a ~b~");
    let deep = format!("{}~~a~~", "> ".repeat(MAX_NESTING));
    assert!(html(&deep).contains("<p>~~a~~</p>"), "{}", html(&deep));
}

#[test]
fn a_task_shows_its_box_as_text() {
    assert_eq!(
        html("- [ ] a\n- [x] *b*\n- [X] c\n- [y] d\n- e [ ] f\n1. [ ] g"),
        "<ul>\n<li>☐ a</li>\n<li>☑ <em>b</em></li>\n<li>☑ c</li>\n<li>[y] d</li>\n<li>e [ ] f</li>\n</ul>\n<ol>\n<li>☐ g</li>\n</ol>\n"
    );
    assert_eq!(html("* [ ] a\n\n* \\[ ] b"), "<ul>\n<li>\n<p>☐ a</p>\n</li>\n<li>\n<p>[ ] b</p>\n</li>\n</ul>\n");
    assert_eq!(html("[ ] a"), "<p>[ ] a</p>\n");
    assert_eq!(shown("- [x] a").text.trim(), "☑ a");
}

#[test]
fn a_table_of_too_many_cells_stays_text() {
    let head = |columns: usize| format!("{}\n{}\n", "a|".repeat(columns), "-|".repeat(columns));
    assert!(html(&format!("{}{}", head(20), "b\n".repeat(200))).contains("<td>b</td>"));
    for row in ["b\n", "b\r\n", "b\r"] {
        let html = html(&format!("{}{}\n\n~~c~~", head(1_000), row.repeat(500)));
        assert!(!html.contains("<table") && html.contains("<del>c</del>"), "{row:?}");
    }
    let small = format!("{}{}\n", head(3), "b|c\n".repeat(20));
    assert_eq!(html(&small.repeat(15)).matches("<table>").count(), 15);
}

/// The HTML of an address that is shown as typed.
fn literal(address: &str) -> String {
    format!("<p>{}</p>\n", address.replace('&', "&amp;"))
}

#[test]
fn nothing_in_an_address_is_markup() {
    let paths = "pkg/__init__.py */x a*b*c _a_ ~~a~~ `a`b [a](b) ![a](b) [1][2] a&amp;b ?a=1&copy=2&lt; &#65;b \
                 a\\_b\\\\c **/*.rs _*`[ 字*字* __a__/__b__";
    for path in paths.split(' ') {
        let address = format!("https://a.example/{path}");
        assert_eq!(html(&address), literal(&address), "{path}");
        assert_eq!(shown(&address).text.trim(), address);
        let (first, second) = (literal(&format!("See {address} and")), format!("See {address} and\n\n- {address}"));
        assert!(html(&second).starts_with(&first) && html(&second).ends_with("</li>\n</ul>\n"), "{path}");
        assert!(shown(&second).links.is_empty(), "{path}");
    }
}

#[test]
fn delimiters_at_the_end_of_an_address_close_what_was_opened_before_it() {
    let (init, a) = ("https://a.example/__init__.py", "https://a.example/a");
    for (body, expected) in [
        (format!("**{a}**"), format!("<strong>{a}</strong>")),
        (format!("*see {init}*"), format!("<em>see {init}</em>")),
        (format!("_{init}_."), format!("<em>{init}</em>.")),
        (format!("__{init}__"), format!("<strong>{init}</strong>")),
        (format!("***{init}***"), format!("<em><strong>{init}</strong></em>")),
        (format!("**_{init}_**"), format!("<strong><em>{init}</em></strong>")),
        (format!("(*{a}.*)"), format!("(<em>{a}.</em>)")),
        (format!("*({a})*"), format!("<em>({a})</em>")),
        (format!("*{a}/*/b*"), format!("<em>{a}/*/b</em>")),
        (format!("**{a}*b**"), format!("<strong>{a}*b</strong>")),
        (format!("*{a}*。*b*"), format!("<em>{a}</em>。<em>b</em>")),
        // Scripts without spaces continue right after the delimiter.
        (format!("参照**{a}**を見て"), format!("参照<strong>{a}</strong>を見て")),
        (format!("**参照 {init}**を見て"), format!("<strong>参照 {init}</strong>を見て")),
        (format!("*{a}*（注）"), format!("<em>{a}</em>（注）")),
        (format!("~~{a}~~２つ"), format!("<del>{a}</del>２つ")),
        (format!("**{a}**😀"), format!("<strong>{a}</strong>😀")),
        // An underscore in the address isn't paired with the delimiter at the end.
        (format!("_{a}/_x_"), format!("<em>{a}/_x</em>")),
        (format!("_{a}/_x y_"), format!("<em>{a}/_x y</em>")),
        (format!("__{a}/__b__c__"), format!("<strong>{a}/__b__c</strong>")),
        (format!("_{a}/*b* c"), format!("_{a}/*b* c")),
        // No emphasis is open before these delimiters.
        (format!("{a}*"), format!("{a}*")),
        (format!("{a}_ and *b*"), format!("{a}_ and <em>b</em>")),
        (format!("2*3 {a}/*.rs"), format!("2*3 {a}/*.rs")),
        (format!("*a {a}*b c"), format!("*a {a}*b c")),
        // Code and links take precedence.
        (format!("`{init}`"), format!("<code>{init}</code>")),
        (format!("`a {a}`_b_"), format!("<code>a {a}</code><em>b</em>")),
        (format!("[{a}](/b)_c_"), format!("<a href=\"/b\"{REL}>{a}</a><em>c</em>")),
        (format!("<{init}>"), format!("<a href=\"{init}\"{REL}>{init}</a>")),
        // A backslash at the end of a line breaks the line.
        (format!("{init}\\\nb"), format!("{init}<br />\nb")),
    ] {
        assert_eq!(html(&body), format!("<p>{expected}</p>\n"), "{body}");
    }
}

#[test]
fn text_that_is_not_an_address_stays_markup() {
    for body in ["xhttps://a.example/*b*", "ftp://a.example/*b*", "http://[*b*", "://*b*", "https&#58;//a/*b*"] {
        assert!(html(body).contains("<em>b</em>"), "{body}");
    }
}

#[derive(Deserialize)]
struct Sample {
    text: String,
    addresses: Vec<String>,
}

#[test]
fn addresses_end_where_the_samples_say_once_they_are_rendered() {
    let samples: Vec<Sample> =
        serde_json::from_str(include_str!("../../../tests/addresses.json")).expect("the samples are JSON");
    for Sample { text, addresses } in samples {
        let typed = as_typed(&html(&text));
        let links: Vec<String> = typed
            .split("rel=\"nofollow ugc noopener\">")
            .skip(1)
            .map(|rest| {
                let shown = rest.split("</a>").next().unwrap_or_default();
                shown.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
            })
            .collect();
        assert_eq!(links, addresses, "{text:?}: {typed}");
    }
}

#[test]
fn an_image_with_a_mailto_address_becomes_its_text() {
    assert_eq!(html("![a](mailto:a@b.example)"), "<p>a</p>\n");
}

#[test]
fn a_code_block_has_one_class() {
    assert_eq!(html("```rust&#9;fixed\nfn\n```"), "<pre><code class=\"language-rust\">fn\n</code></pre>\n");
}

#[test]
fn markup_nests_as_deep_as_the_bound() {
    let quoted = |levels| html(&format!("{}a", "> ".repeat(levels)));
    assert_eq!(quoted(MAX_NESTING).matches("<blockquote>").count(), MAX_NESTING);
    assert!(quoted(MAX_NESTING).contains("<p>a</p>"));
}

#[test]
fn deeper_markup_shows_as_it_was_typed() {
    let quotes = html(&format!("{}*a*\n\nb", "> ".repeat(MAX_NESTING + 2)));
    assert_eq!(quotes.matches("<blockquote>").count(), MAX_NESTING);
    assert!(quotes.contains("<p>&gt; &gt; *a*</p>"), "{quotes}");

    let lists = html(&format!("{}a", "- ".repeat(MAX_NESTING + 1)));
    assert_eq!(lists.matches("<ul>").count(), MAX_NESTING);
    assert!(lists.contains("<li>- a</li>"), "{lists}");

    let emphasis = html(&format!("{}[a](b)", "*a _b ".repeat(10) + &"_ *".repeat(10)));
    assert!(emphasis.matches("<em>").count() <= MAX_NESTING);
    let inside = html(&format!("{}[a](b) `@ada`", "> ".repeat(MAX_NESTING)));
    assert!(inside.contains("[a](b) <code>@ada</code>"), "{inside}");
}

#[test]
fn the_parser_opens_no_more_containers_than_are_shown() {
    let starts = |body: &str| {
        let source = Source::of(body);
        let is_container = |event: &Event<'_>| matches!(event, Event::Start(Tag::BlockQuote(_) | Tag::Item));
        source.events().filter(|(event, _)| is_container(event)).count()
    };
    for mark in [">", "> ", ">\t", "- ", "+ ", "* ", "1. ", "12) ", "> - ", ">1. * "] {
        let body = format!("{}a\na\n", mark.repeat(300));
        assert_eq!(starts(&body), MAX_NESTING, "{mark}");
        assert_eq!(starts(&format!("x\r\r{body}")), MAX_NESTING, "{mark}");
        assert!(shown(&body).text.contains(mark.trim()), "{mark}");
    }
    // Lines that end like a rule, but aren't one.
    for end in ["--", "**", "- -", "* \u{c}* *", "+ + +", "* - *"] {
        let lines = format!("{}{end}\na\na\n", ">".repeat(300));
        assert_eq!(starts(&lines), MAX_NESTING, "{end}");
    }
    // Each line continues the lists of the line before it.
    let line = |indent: usize| "\t".repeat(indent) + &"- ".repeat(16) + "a\n";
    let indented: String = (0..100).map(|n| line(8 * n)).collect();
    assert!(starts(&indented) < 200, "{}", starts(&indented));
    let marks = "1. ".repeat(MAX_NESTING - 1);
    for rule in ["- ".repeat(40), "* ".repeat(40), format!("> {}", "-".repeat(40)), marks + "* * *", "> - - -".into()] {
        assert!(html(&rule).contains("<hr />"), "{rule}");
    }
    let fenced = format!("```\n{}\n```", "> ".repeat(40));
    assert_eq!(html(&fenced), format!("<pre><code>{}\n</code></pre>\n", "&gt; ".repeat(40)));
}

#[test]
fn a_character_that_represents_markup_inside_the_parser_is_shown_as_typed() {
    let typed: String = ('\u{fdd0}'..='\u{fddf}').chain(['\u{10a57}', '\u{10a58}']).collect();
    for (start, end) in
        [("", ""), ("1 ~ 2 ", ""), (&*"> ".repeat(20), ""), ("", " http://a.example/__b__/*c"), ("~~x~~ ", "")]
    {
        let body = format!("{start}{typed}{end}");
        assert!(html(&body).contains(&typed), "{body}");
        assert!(shown(&body).text.contains(&typed), "{body}");
    }
    assert!(html(&format!("[a](http://b.example/{typed} \"{typed}\")")).contains(&format!("title=\"{typed}\"")));
    for (name, c) in [("fdd0", '\u{fdd0}'), ("fdde", '\u{fdde}'), ("10a57", '\u{10a57}'), ("10a58", '\u{10a58}')] {
        assert_eq!(html(&format!("&#x{name}; 1 ~ 2 {c}")), format!("<p>{c} 1 ~ 2 {c}</p>\n"));
    }
    assert_eq!(
        html("*\u{10a58}* ~~\u{fdd7}~~ ~\u{10a58}~"),
        "<p><em>\u{10a58}</em> <del>\u{fdd7}</del> ~\u{10a58}~</p>\n"
    );
}

#[test]
fn siblings_do_not_count_as_nesting() {
    let html = html(&"> *a*\n\nb\n\n".repeat(MAX_NESTING * 3));
    assert_eq!(html.matches("<em>").count(), MAX_NESTING * 3);
}

#[test]
fn a_body_whose_html_is_too_long_shows_as_plain_text() {
    let body = format!("{}\n\n\n*end*", "[a](b)[a](b)[a](<&>)\n".repeat(470));
    let html = html(&body);
    assert!(html.starts_with("<p>[a](b)[a](b)[a](&lt;&amp;&gt;)<br />\n[a](b)"));
    assert!(html.ends_with("[a](&lt;&amp;&gt;)</p>\n<p>*end*</p>\n"));
    assert_eq!(html.matches("[a](b)").count(), 940);
    assert!(html.len() <= MAX_HTML);
}

#[test]
fn plain_text_of_any_length_keeps_the_bound() {
    // A short text that renders to long HTML.
    let references = format!("[a]: /{}\n\n{}\n\n", "u".repeat(1_000), "[a] ".repeat(90));
    for pattern in ["&\n", "&\n\n", "&", "\n", "😀", "<b>", "a\n&\n"] {
        for length in [10_000, 12_000, 50_000] {
            let filler = pattern.chars().cycle();
            let body: String = references.chars().chain(filler).take(length).collect();
            let html = html(&body);
            assert!(html.starts_with("<p>[a]: /uuu"), "{pattern:?}");
            assert!(html.len() <= MAX_HTML, "{pattern:?}: {}", html.len());
        }
    }
}

#[test]
fn plain_text_is_shown_as_far_as_the_bound_allows_and_ends_in_an_ellipsis() {
    // Has too many links for [`MAX_HTML`]. As plain text, the links take at least 60,000 bytes.
    let body = |links: usize, more: &str| format!("{}{more}", "[a](b)".repeat(links));
    let whole = html(&body(10_000, ""));
    assert_eq!((whole.matches("[a](b)").count(), whole.contains('…')), (10_000, false));
    let room = MAX_HTML - "<p></p>\n".len() - 6 * 10_000;
    assert_eq!(html(&body(10_000, &"x".repeat(room))).len(), MAX_HTML);
    for (more, kept) in
        [("x".repeat(room + 1), room - "…".len()), (format!("{}&", "x".repeat(room - 1)), room - "…".len())]
    {
        let cut = html(&body(10_000, &more));
        assert!(
            cut.len() <= MAX_HTML && cut.ends_with(&format!("{}…</p>\n", &more[..kept])),
            "{}",
            &cut[cut.len() - 50..]
        );
    }
}

/// The longest handles that `body` may mention.
fn mentions(body: &str) -> Vec<String> {
    let mentions = markdown::mentions(body);
    mentions.meant(&mentions.tries())
}

#[test]
fn nul_is_replaced() {
    assert_eq!(html("a\0b `c\0d`"), "<p>a\u{fffd}b <code>c\u{fffd}d</code></p>\n");
}

#[test]
fn mentions_are_found_once_in_lower_case_and_in_order() {
    assert_eq!(mentions("@Bob, @ada! (@BOB) **@eve_1**\n- @Zoe\u{301} @_x"), ["bob", "ada", "eve_1", "zoé", "_x"]);
}

#[test]
fn a_mention_ends_at_a_word_boundary_on_both_sides() {
    for body in [
        "@ada",
        "@ada.",
        "(@ada)",
        "«@ada»",
        "😀@ada😀",
        "@ada's",
        "@ada-b",
        "cc:@ada",
        "**@ada**",
        "@ada, b",
        "@ada/x",
    ] {
        assert_eq!(mentions(body), ["ada"], "{body}");
    }
    for body in ["a@ada", "é@ada", "1@ada", "_@ada", "@@ada", "@ada@b", "@", "@ ada", "@-", "**a**@ada", "`a`@ada"] {
        assert_eq!(mentions(body), [""; 0], "{body}");
    }
}

#[test]
fn a_handle_has_at_most_fifty_characters() {
    let handle = "a".repeat(50);
    assert_eq!(mentions(&format!("@{handle} @{handle}b")), [handle]);
}

#[test]
fn a_mention_starts_where_the_widget_offers_it() {
    let samples: Value = serde_json::from_str(include_str!("../../../tests/mentions.json")).unwrap();
    for sample in samples["mentions"].as_array().unwrap() {
        let typed = sample[0].as_str().unwrap();
        let (body, query) = (typed.replacen('|', "", 1), sample[1].as_str());
        let found = mentions(&body);
        match query {
            Some(query) => assert!(found.contains(&query.to_lowercase()), "{typed}: {found:?}"),
            None => assert!(found.iter().all(|handle| !typed.contains(&format!("{handle}|"))), "{typed}: {found:?}"),
        }
    }
}

#[test]
fn the_longest_handle_that_is_known_is_linked() {
    let linked = |known: &[&str], body: &str| {
        let html = html_knowing(known, body);
        html.split("<a ").skip(1).filter_map(|link| Some(link.split(['>', '<']).nth(1)?.to_owned())).collect::<Vec<_>>()
    };
    for (known, body, expected) in [
        (&["ada", "adaさん"][..], "@adaさん", &["@adaさん"][..]),
        (&["ada"], "@adaさん", &["@ada"]),
        (&["田中"], "@田中さんへ", &["@田中"]),
        (&["李雷", "韩梅梅"], "@李雷@韩梅梅你好", &["@李雷"]),
        (&["ada"], "@ada_", &[]),
        (&["ad"], "@ada", &[]),
        (&["zoé"], "@ZOE\u{301}が", &["@ZOE\u{301}"]),
        (&["ada"], "＠Ada、", &["＠Ada"]),
        (&["_さくら_"], "_a_ @_さくら_ と @_さくら_ _b_", &["@_さくら_", "@_さくら_"]),
    ] {
        assert_eq!(linked(known, body), expected, "{body}");
    }
}

#[test]
fn the_address_of_a_handle_is_percent_encoded() {
    let html = html_knowing(&["李雷"], "@李雷");
    assert_eq!(html, format!("<p><a href=\"/users/%E6%9D%8E%E9%9B%B7\"{REL}>@李雷</a></p>\n"));
}

#[test]
fn a_mention_means_the_longest_handle_of_a_known_user() {
    let mentions = markdown::mentions("@adaさん @田中さんへ @ada @nobody");
    assert_eq!(mentions.tries(), ["adaさん", "ada", "田中さんへ", "田中", "nobody"]);
    let known = ["田中", "ada"].map(str::to_owned);
    assert_eq!(mentions.meant(&known), ["ada", "田中"]);
}

#[test]
fn a_handle_split_by_the_parser_is_one_mention() {
    for body in ["@a_b", r"@a\_b", "@a&#95;b", "&commat;a_b", r"\@a_b", "_x_ @a_b _y_"] {
        assert_eq!(mentions(body), ["a_b"], "{body}");
    }
}

#[test]
fn code_links_images_and_addresses_mention_no_one() {
    for body in [
        "`@ada`",
        "```\n@ada\n```",
        "    @ada",
        "[@ada](b)",
        "[**@ada**](b)",
        "[@ada](javascript:b)",
        "![@ada](b)",
        "![@ada](data:b)",
        "<https://a.example/@ada>",
        "https://a.example/@ada",
        "<x@ada.example>",
        "x.y@ada.example",
        "[a](/@ada)",
        "[a](b \"@ada\")",
        "[a]: /@ada",
    ] {
        assert_eq!(mentions(body), [""; 0], "{body}");
        assert!(!html_knowing(&["ada"], body).contains("/users/ada"), "{body}");
    }
}

#[test]
fn a_body_mentions_and_links_at_most_twenty() {
    let body: String = (0..30).map(|n| format!("@user{n}")).collect::<Vec<_>>().join(" ");
    let handles = mentions(&body);
    assert_eq!(handles.len(), MAX_MENTIONS);
    assert_eq!(handles.last().map(String::as_str), Some("user19"));

    let all: Vec<String> = (0..30).map(|n| format!("user{n}")).collect();
    assert_eq!(render(&body, "users", &all).matches("<a ").count(), MAX_MENTIONS);
    assert_eq!(render(&"@user1 ".repeat(30), "users", &all).matches("<a ").count(), MAX_MENTIONS);
}

#[test]
fn a_known_handle_is_linked_as_it_was_typed() {
    assert_eq!(
        html_knowing(&["ada"], "Hi @Ada & @bob: *@ada*"),
        format!(
            "<p>Hi <a href=\"/users/ada\"{REL}>@Ada</a> &amp; @bob: <em><a href=\"/users/ada\"{REL}>@ada</a></em></p>\n"
        )
    );
}

#[test]
fn the_route_of_users_is_configurable() {
    for prefix in ["people/by-name", "/people/by-name/"] {
        assert_eq!(render("@ada", prefix, &["ada"]), format!("<p><a href=\"/people/by-name/ada\"{REL}>@ada</a></p>\n"));
    }
}
