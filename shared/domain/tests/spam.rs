//! Tests the configured rules of the spam check.

use domain::markdown::{self, Shown};
use domain::spam::{Action, Rules};

fn rules() -> Rules {
    Rules {
        deny: vec!["Cheap  Pills".into(), "straße".into()],
        review: vec!["casino".into(), "free money".into()],
        review_links: 2,
        deny_links: 4,
    }
}

const PASS: Option<Action> = None;
const REVIEW: Option<Action> = Some(Action::Review);
const DENY: Option<Action> = Some(Action::Deny);

/// The strictest action in the rules' findings.
fn judge_shown(rules: &Rules, shown: Shown) -> Option<Action> {
    rules.judge(&[shown]).into_iter().map(|found| found.action).max()
}

fn judge_body(rules: &Rules, body: &str) -> Option<Action> {
    judge_shown(rules, markdown::shown(body))
}

#[test]
fn a_body_without_phrases_passes() {
    assert_eq!(judge_body(&rules(), "cheap and good, no pills"), PASS);
    assert_eq!(judge_body(&Rules::default(), "cheap pills http://a.example"), PASS);
}

#[test]
fn phrases_match_whatever_their_case() {
    for body in ["CHEAP PILLS", "the cheap pills!", "STRASSE", "Straße"] {
        assert_eq!(judge_body(&rules(), body), DENY, "{body}");
    }
    assert_eq!(judge_body(&rules(), "CaSiNo"), REVIEW);
}

#[test]
fn phrases_match_whatever_form_their_letters_have() {
    for body in ["ＣＡＳＩＮＯ", "𝐜𝐚𝐬𝐢𝐧𝐨", "𝓒asi\u{2099}o", "ⓒⓐⓢⓘⓝⓞ", "ＦＲＥＥ\u{3000}ｍｏｎｅｙ"]
    {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body}");
    }
    let rules = Rules { deny: vec!["ﬁne café ΐ".into()], ..Rules::default() };
    for body in ["fine café ΐ", "FINE CAFE\u{301} Ι\u{308}\u{301}", "ﬁne cafe\u{301} ι\u{308}\u{301}"] {
        assert_eq!(judge_body(&rules, body), DENY, "{body}");
    }
    assert_eq!(judge_body(&rules, "fine cafe ι"), PASS);
}

#[test]
fn white_space_in_a_phrase_is_one_space() {
    for body in ["free \t\n money", "free\u{a0}money", "free\r\nmoney"] {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body:?}");
    }
    assert_eq!(judge_body(&rules(), "freemoney"), PASS);
}

#[test]
fn invisible_characters_do_not_split_a_phrase() {
    for body in ["ca\u{200b}sino", "c\u{200d}a\u{feff}sino", "cas\u{ad}ino", "\u{202e}casi\u{2060}no", "casi\u{fe0f}no"]
    {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body:?}");
    }
}

#[test]
fn a_denied_phrase_outweighs_one_to_review() {
    assert_eq!(judge_body(&rules(), "casino, cheap pills"), DENY);
}

#[test]
fn an_empty_phrase_matches_nothing() {
    let rules = Rules { deny: vec![String::new(), " \u{200b}".into()], ..Rules::default() };
    assert_eq!(judge_body(&rules, "anything"), PASS);
    assert_eq!(judge_body(&rules, ""), PASS);
}

#[test]
fn absolute_addresses_are_counted() {
    for (body, verdict) in [
        ("http://a.example", PASS),
        ("/a //b.example mailto:c@d.example ftp://e.example", PASS),
        ("http://a.example HTTPS://b.example", REVIEW),
        ("[a](http://a.example)<hTTp://b.example>http://c.example", REVIEW),
        ("http://a http://b https://c https://d", DENY),
        ("http://http://http://http://", DENY),
    ] {
        assert_eq!(judge_body(&rules(), body), verdict, "{body}");
    }
}

#[test]
fn a_phrase_is_found_as_it_is_rendered() {
    for body in [
        "c&#97;sino",
        "c&#x61;s&#105;no",
        "**cas**ino",
        "> ca&shy;sino",
        "free&nbsp;money",
        "free\\\nmoney",
        "# free\n\n> money",
        "`casino`",
        "    casino",
        "![casino](x.png)",
        "[cas](x)ino",
        "[x](y \"casino\")",
        "[x](http://casino.example)",
        "[x](//c%61sino.example)",
        "http://c%61sino.example",
        "see\nhttps://a.example/?q=c%61**s**ino https://b.example/c%61sino",
        "[x][y]\n\n[y]: http://c&#97;sino.example",
        "<http://casino.example>",
        "<b>casino",
    ] {
        assert_eq!(judge_body(&rules(), body), REVIEW, "{body:?}");
    }
    for body in [
        "`c&#97;sino`",
        "c%61sino",
        "`http://c%61sino.example`",
        "ca<i></i>sino",
        "ca\\sino",
        "[casino]: x\n\ny",
        "```casino\nx\n```",
    ] {
        assert_eq!(judge_body(&rules(), body), PASS, "{body:?}");
    }
}

#[test]
fn plain_text_is_judged_as_it_was_typed() {
    assert_eq!(judge_shown(&rules(), Shown::plain("[casino]: x")), REVIEW);
    assert_eq!(judge_shown(&rules(), Shown::plain("[a](http://a.example) [b]: http://b.example")), REVIEW);
}

#[test]
fn links_are_counted_as_they_are_rendered() {
    let count = |body: &str| {
        let reached = |limit: &usize| {
            let rules = Rules { review_links: *limit, ..Rules::default() };
            judge_body(&rules, body) == REVIEW
        };
        (1..10).take_while(reached).count()
    };
    for (body, links) in [
        ("http&#58;//a.example", 1),
        ("http:/\\/a.example", 1),
        ("h*tt*p://a.example", 1),
        ("<http://a.example>", 1),
        ("<HTTPS://a.example> http://a.example", 2),
        ("[a](http://a.example)", 1),
        ("[a](http&#58;//a.example 'http://title.example')", 1),
        ("[a](//a.example)", 1),
        ("[a](///a.example)", 1),
        ("[a](https:a.example)", 1),
        ("![a](//a.example)", 1),
        ("[![a](//a.example)](//b.example)", 2),
        ("[a] [a]\n\n[a]: //a.example", 2),
        ("`http://a.example`", 1),
        ("<a href=\"http://a.example\">", 1),
        // A link whose text contains an address counts once. Further addresses in its text count too.
        ("[http://a.example](http://a.example)", 1),
        ("[http://a.example](http://b.example)", 1),
        ("[http://a.example http://b.example](http://c.example)", 2),
        ("[http://a.example http://b.example](/c)", 2),
        // None of these leads to another host.
        ("[a]: http://a.example\n\nb", 0),
        ("[a](/b) [c](d) [e](mailto:f@g.example) <h@i.example>", 0),
        ("[a](ftp://a.example) //b.example", 0),
        ("[a](/\\\\b.example)", 0),
    ] {
        assert_eq!(count(body), links, "{body:?}");
    }
}

#[test]
fn a_limit_of_zero_is_none() {
    let rules = Rules { review_links: 0, deny_links: 0, ..rules() };
    assert_eq!(judge_body(&rules, &"http://a.example ".repeat(100)), PASS);
}
