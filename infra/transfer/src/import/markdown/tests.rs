use proptest::prelude::*;
use shared::domain::markdown::{render, shown};

use super::*;

fn html(markdown: &str) -> String {
    render(markdown, "users", &[] as &[&str])
}

#[test]
fn each_kind_of_markup_becomes_markdown() {
    for (source, expected) in [
        ("plain", "plain"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("one<br>two<br/>three", "one\\\ntwo\\\nthree"),
        ("one<br><br>two", "one\n\ntwo"),
        ("<p>a <b>b</b> <i>c</i> <strong><em>d</em></strong></p>", "a **b** *c* ***d***"),
        ("<b> spaced </b>x", "**spaced** x"),
        ("<a href=\"https://a.example/?x=1&amp;y=2\">text</a>", "[text](<https://a.example/?x=1\\&y=2>)"),
        ("<a href='https://a.example/b'>https://a.example/b</a>", "<https://a.example/b>"),
        ("<a href='/relative'>r</a> <a href='mailto:a@b.c'>m</a>", "[r](/relative) [m](mailto:a@b.c)"),
        ("<a href='javascript:alert(1)'>x</a><a>y</a>", "xy"),
        ("<img src='https://a.example/i.png' alt='A [dot]'>", "![A \\[dot\\]](https://a.example/i.png)"),
        ("<img src='data:image/png;base64,x' alt='alt'>", "alt"),
        ("<a href='/x'><img src='/i.png'></a>", "[![](/i.png)](/x)"),
        ("<blockquote><p>one</p><p>two</p></blockquote>three", "> one\n>\n> two\n\nthree"),
        ("<ul><li>one</li><li>two<ul><li>in</li></ul></li></ul>", "- one\n\n- two\n\n  - in"),
        ("<ol start=3><li>one<li>two</ol>", "3. one\n4. two"),
        ("<h2>Title</h2>text", "## Title\n\ntext"),
        ("<h2>C#</h2><h2>#</h2><h2>\\#</h2>", "## C\\#\n\n## \\#\n\n## \\\\\\#"),
        ("a<hr>b", "a\n\n***\n\nb"),
        ("use <code>a `b` *c*</code>", "use ``a `b` *c*``"),
        (
            "<pre><code class=\"language-rust\">fn main() {\n    x &lt; y\n}\n</code></pre>",
            "```rust\nfn main() {\n    x < y\n}\n```",
        ),
        ("<div>a<div>b</div></div>", "a\n\nb"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\n\nc"),
        ("<s>gone</s> <del>too</del> <u>under</u> <span style='color:red'>red</span>", "~~gone~~ ~~too~~ under red"),
        (
            "<table><thead><tr><th>a</th><th>b|c</th></tr></thead><tbody><tr><td><code>d|e</code></td></tr></tbody></table>f",
            "| a | b\\|c |\n| --- | --- |\n| `d\\|e` |\n\nf",
        ),
        ("<table><tr><th>a</th><tr><td>b</td><td>c</td></tr></table>", "a\n\nb c"),
        ("<table><tr><th>a</th><tr><td>b<br>c</td></tr></table>", "a\n\nb\\\nc"),
        ("a<script>alert('<b>')</script><style>p{}</style>b", "ab"),
        ("&lt;b&gt; &amp;amp; &copy; &#8230; &nbsp;x", "\\<b> \\&amp; © … \u{a0}x"),
        ("<p>unclosed <b>bold<p>next", "unclosed **bold**\n\nnext"),
        ("<a href='/x'><p>block</p></a>", "[block](/x)"),
        ("<p><a href='/x'>a<ul><li>item</li></ul>b</a>c</p>", "[a](/x)\n\n- [item](/x)\n\n[b](/x)c"),
    ] {
        assert_eq!(from_html(source), expected, "{source}");
    }
}

#[test]
fn text_that_looks_like_markdown_stays_text() {
    for text in [
        "# no heading",
        "> no quote",
        "- no item",
        "+ no item",
        "1. no list",
        "12) no list",
        "* no item",
        "a * b * c",
        "**no** _emphasis_ __x__",
        "`no code`",
        "[no](link)",
        "![no](image)",
        "<b>",
        "&amp; &#65; &copy",
        "\\ \\*",
        "~~~",
        "===",
        "---",
        "snake_case_name",
        "2 * 3 * 4",
        "a\\",
        "!",
        "http://a.example/x_y_z",
        "``` x",
        "#hash",
        "C# and F#",
        "~~not struck~~",
        "a~~b~~c",
        "~not struck~",
        "|---|",
        "---|---",
        ":-:|---",
        "- [ ] no task",
        "[x] no task",
    ] {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let markdown = from_html(&format!("before<br>{escaped}"));
        let shown = shown(&markdown);
        assert_eq!(shown.text.trim(), format!("before\n{text}"), "{markdown}");
        assert!(shown.links.is_empty());
        let alone = from_html(&escaped);
        assert_eq!(html(&alone).matches("<p>").count(), 1, "{text}: {alone}");
        assert!(!html(&alone).contains("<del>"), "{alone}");
        assert_eq!(rendered(&alone), oracle(&escaped), "{alone}");
    }
}

#[test]
fn lines_of_text_never_become_a_table_and_list_items_never_become_tasks() {
    for (source, expected) in [
        ("a | b<br>--- | ---<br>c | d", "<p>a | b<br />\n--- | ---<br />\nc | d</p>\n"),
        ("|a|<br>|-|", "<p>|a|<br />\n|-|</p>\n"),
        ("<p>|a|<br><i>|-|</i></p>", "<p>|a|<br />\n<em>|-|</em></p>\n"),
        ("a<br>:-:", "<p>a<br />\n:-:</p>\n"),
        ("<ul><li>[ ] a</li><li>[x] b</li></ul>", "<ul>\n<li>[ ] a</li>\n<li>[x] b</li>\n</ul>\n"),
    ] {
        assert_eq!(html(&from_html(source)), expected, "{source}: {}", from_html(source));
    }
}

#[test]
fn markdown_syntax_that_the_source_does_not_support_stays_text() {
    let (table, task, struck) = ("|a|\n|-|\n|b|", "- [x] a", "~~a~~");
    for (typed, same, expected) in [
        (table, vec![Dialect::GITHUB, Dialect::ARTALK, Dialect::REMARK42], "<p>|a|<br />\n|-|<br />\n|b|</p>\n"),
        (task, vec![Dialect::GITHUB, Dialect::ARTALK], "<ul>\n<li>[x] a</li>\n</ul>\n"),
        (struck, vec![Dialect::GITHUB, Dialect::ISSO, Dialect::REMARK42, Dialect::COMENTARIO, Dialect::COMMENTO], ""),
    ] {
        for dialect in same {
            assert_eq!(from_dialect(typed, dialect), typed, "{dialect:?}");
        }
        for dialect in [Dialect::ISSO, Dialect::COMENTARIO].iter().filter(|_| !expected.is_empty()) {
            assert_eq!(html(&from_dialect(typed, *dialect)), expected, "{dialect:?}");
        }
    }
    let all = format!("{table}\n\n{task}\n- [ ] b\n\none\ntwo {struck}");
    assert_eq!(from_dialect(&all, Dialect::GITHUB), "| a |\n| --- |\n| b |\n\n- ☑ a\n- ☐ b\n\none\\\ntwo ~~a~~");
}

#[test]
fn an_exclamation_mark_before_a_link_does_not_make_it_an_image() {
    let markdown = from_html("Look!<a href='/x'>here</a>");
    assert_eq!(markdown, "Look\\![here](/x)");
}

#[test]
fn emphasis_that_markdown_cannot_express_is_dropped_and_its_text_is_kept() {
    for source in [
        "a<b>\"b\"</b>c",
        "<b>a</b><b>b</b>",
        "x<i>.</i>y",
        "<b>a<b>b</b></b>",
        "<code>a</code><b><code>b</code>.</b>c",
    ] {
        let shown = shown(&from_html(source));
        let text: String = tree::text(&tree::parse(source));
        assert_eq!(shown.text.trim(), text, "{source}");
    }
}

#[test]
fn line_feeds_become_breaks_outside_of_tags_and_code() {
    for (source, expected) in [
        ("a\r\nb\n\nc", "a\\\nb\n\nc"),
        ("<a\nhref='/x'>y\nz</a>", "[y\\\nz](/x)"),
        ("<pre>\na\nb</pre>\nc", "```\na\nb\n```\n\nc"),
        ("<pre>a <a href='/x'>b</a>\n  c\n\nd</pre>\ne", "a [b](/x)\\\nc\n\nd\n\ne"),
        ("<PRE>\n<b>a</b>\n</PRE>\nc <", "```\na\n```\n\nc \\<"),
        ("<ul>\n<li>a</li>\n<li>b</li>\n</ul>\nc", "- a\n- b\n\nc"),
    ] {
        assert_eq!(from_wordpress(source), expected, "{source}");
    }
}

#[test]
fn addresses_become_links_outside_of_links_and_code() {
    for (source, expected) in [
        ("see https://a.example/?x=1&amp;y=2.", "see [https://a.example/?x=1\\&y=2](<https://a.example/?x=1\\&y=2>)."),
        ("https://a.example/b\n<b>https://c.example/d</b>", "<https://a.example/b>\\\n**<https://c.example/d>**"),
        ("<a href='/x'>https://a.example</a>", "[https://a.example](/x)"),
        ("<A HREF='/x'><i>https://a.example</i></A>", "[*https://a.example*](/x)"),
        ("<code>https://a.example</code>", "`https://a.example`"),
    ] {
        assert_eq!(from_wordpress(source), expected, "{source}");
    }
}

#[test]
fn addresses_stay_whole_when_html_becomes_markdown() {
    let address = "https://a.example/pkg/__init__.py";
    for (source, expected) in [
        (address.to_owned(), address.to_owned()),
        (format!("({address}), *or*"), format!("({address}), \\*or\\*")),
        (format!("[{address}]&lt;b>"), format!("\\[{address}]<b>")),
        (format!("{address}<br>{address}*"), format!("{address}\\\n{address}*")),
        (format!("「{address}」<b>{address}</b>"), format!("「{address}」**{address}**")),
        (format!("<a href='{address}'>{address}</a>"), format!("<{address}>")),
        (format!("<a href='/x'>{address}</a>"), "[https://a.example/pkg/\\_\\_init\\_\\_.py](/x)".to_owned()),
        ("https://a.example/?a=1&amp;copy=2;".to_owned(), "https://a.example/?a=1&copy=2;".to_owned()),
        ("https://a.example/<i>b</i>".to_owned(), "https://a.example/b".to_owned()),
        (format!("{address}<code>c</code>"), "https\\:\\/\\/a\\.example\\/pkg\\/\\_\\_init\\_\\_\\.py`c`".to_owned()),
    ] {
        let markdown = from_html(&source);
        assert_eq!(markdown, expected, "{source}");
        assert_eq!(rendered(&markdown), oracle(&source), "{source}");
    }
    for dialect in [Dialect::GITHUB, Dialect::ISSO] {
        assert_eq!(
            from_dialect(&format!("see {address}\n**{address}**。"), dialect),
            format!("see <{address}>\\\n**<{address}>**。")
        );
    }
    assert_eq!(from_dialect("https://a.example/:tada:/b :tada:", Dialect::GITHUB), "<https://a.example/:tada:/b> 🎉");
    assert_eq!(from_wordpress(&format!("{address}\n&quot;{address}&quot;")), format!("<{address}>\\\n\"<{address}>\""));
}

#[test]
fn names_are_decoded_once() {
    assert_eq!(text("A<br>B &amp; <em>C</em> 1 < 2 &lt;d&gt;"), "A B & C 1 < 2 <d>");
    assert_eq!(decode("Ada &amp; &laquo;co&raquo; <x> &amp;amp;"), "Ada & «co» <x> &amp;");
}

#[test]
fn deep_markup_is_flattened_and_its_text_kept() {
    let deep = format!("{}text{}", "<blockquote>".repeat(3000), "</blockquote>".repeat(3000));
    assert_eq!(shown(&from_html(&deep)).text.trim(), "text");
    let bold = format!("{}text{}", "<b>".repeat(40), "</b>".repeat(40));
    assert_eq!(shown(&from_html(&bold)).text.trim(), "text");
}

#[test]
fn line_feeds_and_addresses_in_markdown_of_other_systems_become_breaks_and_links() {
    for (typed, expected) in [
        ("plain *text* with `https://a.example`", None),
        ("two\n\nparagraphs\\\nand a break", None),
        ("```\nhttps://a.example\nb\n```", None),
        ("[https://a.example](https://a.example)", None),
        ("one\ntwo", Some("one\\\ntwo")),
        ("> one\n> two", Some("> one\\\n> two")),
        ("see https://a.example/b_c, or", Some("see <https://a.example/b_c>, or")),
        ("https://a.example/x_&nbsp;**b**&gt;", Some("<https://a.example/x_>\u{a0}**b**>")),
        ("(&lt;https://a.example/x&gt;)", Some("(\\<<https://a.example/x>>)")),
        (
            "https://a.example/?b=1&amp;c_d_=2",
            Some("[https://a.example/?b=1\\&c_d\\_=2](<https://a.example/?b=1\\&c_d_=2>)"),
        ),
    ] {
        for dialect in [Dialect::ARTALK, Dialect::ISSO] {
            assert_eq!(from_dialect(typed, dialect), expected.unwrap_or(typed), "{typed}");
        }
    }
}

#[test]
fn html_in_markdown_of_other_systems_is_markup() {
    for (typed, expected) in [
        ("a <b>bold</b> *word*", "a **bold** *word*"),
        ("<p>one</p>\n\ntwo", "one\n\ntwo"),
        ("<a href=\"/x\">https://a.example</a>", "[https://a.example](/x)"),
    ] {
        for dialect in [Dialect::ARTALK, Dialect::ISSO] {
            assert_eq!(from_dialect(typed, dialect), expected, "{typed}");
        }
    }
    for (typed, artalk, isso) in [
        ("Vec<u8>\nnext", "Vec\\\nnext", "Vec\\<u8>\\\nnext"),
        ("<script>alert(1)</script>", "", "\\<script>alert(1)\\</script>"),
        ("a <!-- b --> c", "a c", "a \\<!-- b --> c"),
    ] {
        assert_eq!(from_dialect(typed, Dialect::ARTALK), artalk, "{typed}");
        assert_eq!(from_dialect(typed, Dialect::ISSO), isso, "{typed}");
    }
}

#[test]
fn markdown_of_commento_loses_tags_and_line_feeds_become_spaces() {
    for (typed, expected) in [
        ("a <b>bold</b> *word*", "a bold *word*"),
        ("<div>\none &amp; https://a.example\n</div>\n\ntwo", "one & <https://a.example>\n\ntwo"),
        ("<a href=\"/x\">https://a.example</a>", "<https://a.example>"),
        ("<!-- note -->", ""),
        ("one\ntwo ~~three~~", "one\ntwo ~~three~~"),
        ("|a|\n|-|\n|b|", "\\|a| |-| |b|"),
        ("- [x] a", "- \\[x\\] a"),
        ("`<b>` <https://a.example>", "`<b>` <https://a.example>"),
    ] {
        assert_eq!(from_dialect(typed, Dialect::COMMENTO), expected, "{typed}");
    }
}

#[test]
fn shortcodes_become_emoji_if_the_source_shows_emoji() {
    for (typed, expected) in [
        ("It flies :rocket:.", "It flies 🚀."),
        (":+1::tada: at 10:30:00", "👍🎉 at 10:30:00"),
        ("`:rocket:` :no_such_emoji: a:zz:c", "`:rocket:` :no_such_emoji: a:zz:c"),
        ("```\n:rocket:\n```", "```\n:rocket:\n```"),
        ("[:rocket: docs](https://e.org/:tada:/)", "[🚀 docs](https://e.org/:tada:/)"),
    ] {
        assert_eq!(from_dialect(typed, Dialect::GITHUB), expected, "{typed}");
        assert_eq!(from_dialect(typed, Dialect::ARTALK), typed);
    }
    for (typed, expected) in [
        ("![:rocket:](/i.png)", "![\\:rocket:](/i.png)"),
        ("<div title=\":tada:\">\n:rocket:\n</div>", "🚀"),
        ("<a href=\"/:tada:/\">:rocket:</a> <b>:tada:</b>", "[🚀](/:tada:/) **🎉**"),
        ("<code>:rocket:</code> <pre>:tada:</pre>", "`:rocket:`\n\n```\n:tada:\n```"),
    ] {
        assert_eq!(from_dialect(typed, Dialect::GITHUB), expected, "{typed}");
    }
}

#[test]
fn footnotes_stay_text() {
    for (typed, expected) in [
        ("a[^1]\n\n[^1]: note", "a\\[^1\\]\n\n\\[^1\\]: note"),
        (
            "a[^1] b[^x]\n\n[^x]: <https://e.org>\n[^1]: two words",
            "a\\[^1\\] b\\[^x\\]\n\n\\[^1\\]: two words\n\n\\[^x\\]: <https://e.org>",
        ),
        ("`[^1]` [^1]", "`[^1]` [^1]"),
    ] {
        assert_eq!(from_dialect(typed, Dialect::GITHUB), expected, "{typed}");
    }
}

#[test]
fn code_of_several_lines_keeps_its_lines() {
    for (html, expected) in [
        ("<code>let a = 1;\n    let b = 2;</code>", "```\nlet a = 1;\n    let b = 2;\n```"),
        ("<p>Try <code>a<br>b</code> now</p>", "Try\n\n```\na\nb\n```\n\nnow"),
        ("<b>Try <code>a\r\nb</code></b>", "Try\n\n```\na\nb\n```"),
        ("<ul><li><code>a\nb</code></li></ul>", "- ```\n  a\n  b\n  ```"),
        ("<a href=\"/x\"><code>a\nb</code></a>", "[`a`\\\n`b`](/x)"),
        ("<code>\none line\n</code>", "`one line`"),
        ("<code>a<br />\nb</code>", "```\na\nb\n```"),
        ("x <kbd>a\nb</kbd> <tt>c<br>d</tt> <samp>e</samp>", "x `a`\\\n`b` `c`\\\n`d` `e`"),
    ] {
        assert_eq!(from_html(html), expected, "{html}");
    }
    assert_eq!(from_wordpress("<code>a\n  b</code>"), "```\na\n  b\n```");
    for dialect in [Dialect::ARTALK, Dialect::GITHUB] {
        assert_eq!(from_dialect("t <code>a\nb</code> u", dialect), "t\n\n```\na\nb\n```\n\nu");
    }
}

#[test]
fn line_feeds_between_the_tags_of_a_table_break_no_lines() {
    let table = "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody><tr>\n<td>c</td>\n<td>d</td></tr></tbody>\n</table>";
    assert_eq!(from_wordpress(table), from_html(table));
    assert!(from_wordpress(table).starts_with("| a | b |"), "{}", from_wordpress(table));
}

#[test]
fn a_line_feed_after_a_break_is_not_a_second_break() {
    for (html, expected) in [
        ("one<br />\ntwo", "one\\\ntwo"),
        ("one<br> \r\ntwo<BR/>\nthree", "one\\\ntwo\\\nthree"),
        ("one<br />\n\ntwo", "one\n\ntwo"),
        ("one\ntwo", "one\\\ntwo"),
    ] {
        assert_eq!(from_wordpress(html), expected, "{html}");
    }
}

#[test]
fn links_through_the_click_counter_of_disqus_become_direct_links() {
    let link = |address: &str| from_html(&format!("<a href=\"{address}\">x</a>"));
    let signed = "https://disq.us/url?url=https%3A%2F%2Fa.example%2Fb%3Fc%3Dd%3AX1-y_z&amp;cuid=12";
    assert_eq!(link(signed), "[x](https://a.example/b?c=d)");
    assert_eq!(link("http://disq.us/url?url=http%3A%2F%2Fa.example%3AX1"), "[x](http://a.example)");
    for counter in ["//disq.us", "http://redirect.disqus.com"] {
        assert_eq!(
            link(&format!("{counter}/url?url=http%3A%2F%2Fa.example%2Fb%3AX1&amp;imp=1")),
            "[x](http://a.example/b)"
        );
    }
    assert_eq!(
        link("http://disq.us/url?url=javascript%3Aalert(1)%3AX1"),
        "[x](<http://disq.us/url?url=javascript%3Aalert(1)%3AX1>)"
    );
    assert_eq!(link("http://disq.us/?url=http%3A%2F%2Fa.example%3A80%2Fb&amp;key=x"), "[x](http://a.example:80/b)");
    assert_eq!(link("/url?url=https://a.example"), "[x](/url?url=https://a.example)");
    assert_eq!(link("https://disq.us/p/1"), "[x](https://disq.us/p/1)");
    assert_eq!(
        link("https://disq.us.example/url?url=https%3A%2F%2Fa.example"),
        "[x](https://disq.us.example/url?url=https%3A%2F%2Fa.example)"
    );
}

/// The visible part of HTML that ammonia has cleaned: the text without white space, and the addresses.
fn oracle(source: &str) -> (String, Vec<String>) {
    let mut cleaner = ammonia::Builder::default();
    cleaner.url_schemes(["http", "https", "mailto"].into()).link_rel(None);
    let clean = cleaner.clean(source).to_string();
    let nodes = tree::parse(&clean);
    let mut text = String::new();
    let mut addresses = Vec::new();
    collect(&nodes, &mut text, &mut addresses);
    text.retain(|c| !c.is_whitespace() && !c.is_control());
    (text, addresses)
}

fn collect(nodes: &[tree::Node], text: &mut String, addresses: &mut Vec<String>) {
    for node in nodes {
        match node {
            tree::Node::Text(part) => text.push_str(part),
            tree::Node::Element(element) => {
                let is_empty =
                    element.name == "a" && tree::text(&element.children).trim().is_empty() && !has_image(element);
                let address = element.attribute("href").or_else(|| element.attribute("src"));
                addresses.extend(address.filter(|_| !is_empty).map(str::to_owned));
                text.push_str(element.attribute("alt").unwrap_or_default());
                collect(&element.children, text, addresses);
            }
        }
    }
}

fn has_image(element: &tree::Element) -> bool {
    element
        .children
        .iter()
        .any(|node| matches!(node, tree::Node::Element(child) if child.name == "img" || has_image(child)))
}

fn has_no_nested_links(source: &str) -> bool {
    source.split("<a ").skip(1).all(|link| link.contains("</a>"))
}

/// HTML as people and editors write it.
fn markup() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-zé .,!?()\\[\\]*_`#>+=~|:\\\\-]{1,12}",
        "[0-9]{1,3}[.)] ",
        Just("&amp;".to_owned()),
        Just("&lt;i&gt; &amp;copy;".to_owned()),
        Just("<br>".to_owned()),
        Just("\n".to_owned()),
        Just("https://a.example/b_c".to_owned()),
        "https://a\\.example/[a-z*_`~\\[\\]()!.。（）「」\\\\]{0,8}",
    ];
    let image = "[a-z_()*]{1,6}".prop_map(|name| format!("<img src=\"https://i.example/{name}.png\" alt=\"{name}\">"));
    let leaf = prop_oneof![8 => text, 1 => image];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let several = prop::collection::vec(inner, 1..5).prop_map(|parts| parts.concat());
        let tag = prop::sample::select(vec![
            "p", "b", "i", "em", "strong", "del", "code", "blockquote", "div", "span", "h3", "u", "s", "pre", "unknown",
        ]);
        prop_oneof![
            4 => (tag, several.clone()).prop_map(|(tag, inside)| format!("<{tag}>{inside}</{tag}>")),
            1 => prop::collection::vec(several.clone(), 1..4)
                .prop_map(|items| format!("<ul><li>{}</li></ul>", items.join("</li><li>"))),
            1 => (several.clone(), "[a-z()_*&;?=]{0,8}")
                .prop_map(|(inside, path)| format!("<a href=\"https://a.example/{}\">{inside}</a>", path.replace('&', "&amp;"))),
            2 => several,
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn markdown_renders_to_the_same_text_links_and_images_as_the_source(source in markup().prop_filter("links do not nest", |source| has_no_nested_links(source))) {
        let markdown = from_html(&source);
        prop_assert_eq!(rendered(&markdown), oracle(&source), "{}", markdown);
    }

    #[test]
    fn any_text_becomes_markdown_that_renders_to_the_same_text(source in "\\PC{0,80}") {
        let markdown = from_html(&source);
        let text = tree::text(&tree::parse(&source));
        let text = text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
        prop_assert_eq!(rendered(&markdown), (text, Vec::new()), "{}", markdown);
    }
}
