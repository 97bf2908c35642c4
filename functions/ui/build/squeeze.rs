//! Takes comments, empty lines and indentation out of a script. Strings, templates and regular expressions stay as they are.

/// A line of a script without its comments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Whether it stands at the top level, by its indentation.
    pub(crate) is_top: bool,
}

/// What the scanner is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Code between two braces, or at the top level.
    Code,
    Template,
    Comment,
}

/// The lines that are left.
pub(crate) fn lines(source: &str) -> Vec<Line> {
    let mut states = vec![State::Code];
    source.lines().filter_map(|line| Line::read(line, &mut states)).collect()
}

impl Line {
    fn read(line: &str, states: &mut Vec<State>) -> Option<Self> {
        let in_template = states.last() == Some(&State::Template);
        let text = code_of(line, states);
        // Spaces count inside a template.
        let text = if states.last() == Some(&State::Template) { &text[..] } else { text.trim_end() };
        let text = if in_template { text } else { text.trim_start() };
        let is_top = !in_template && !line.starts_with([' ', '\t']);
        (in_template || !text.is_empty()).then(|| Self { text: text.to_owned(), is_top })
    }
}

/// The line without its comments. Moves `states` to the end of the line.
fn code_of(line: &str, states: &mut Vec<State>) -> String {
    let mut code = String::new();
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let taken = match states.last() {
            Some(State::Comment) => {
                let end = rest.find("*/").map(|end| end + 2);
                if end.is_some() {
                    states.pop();
                }
                rest = &rest[end.unwrap_or(rest.len())..];
                continue;
            }
            Some(State::Template) => template(rest, next, states),
            _ if rest.starts_with("//") => break,
            _ if rest.starts_with("/*") => {
                states.push(State::Comment);
                rest = &rest[2..];
                continue;
            }
            _ => token(rest, next, &code, states),
        };
        code.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    code
}

/// The length of what comes next in a template.
fn template(rest: &str, next: char, states: &mut Vec<State>) -> usize {
    if rest.starts_with("${") {
        states.push(State::Code);
        return 2;
    }
    if next == '`' {
        states.pop();
    }
    escaped(rest, next)
}

/// The length of what comes next in code, which follows `before` on the line.
fn token(rest: &str, next: char, before: &str, states: &mut Vec<State>) -> usize {
    match next {
        '`' => states.push(State::Template),
        '\'' | '"' => return quoted(rest, next),
        '/' if begins_expression(before) => return pattern(rest),
        '{' => states.push(State::Code),
        // Of a block, or of what a template has inserted.
        '}' if states.len() > 1 => _ = states.pop(),
        _ => {}
    }
    next.len_utf8()
}

/// The length of a character, with the one that a backslash escapes.
fn escaped(rest: &str, next: char) -> usize {
    let after = if next == '\\' { rest[1..].chars().next() } else { None };
    next.len_utf8() + after.map_or(0, char::len_utf8)
}

/// The length of a string in quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut length = 1;
    while let Some(next) = rest[length..].chars().next() {
        length += escaped(&rest[length..], next);
        if next == quote {
            break;
        }
    }
    length
}

/// The length of a regular expression, without its flags. A slash inside brackets does not end it.
fn pattern(rest: &str) -> usize {
    let mut length = 1;
    let mut in_class = false;
    while let Some(next) = rest[length..].chars().next() {
        length += escaped(&rest[length..], next);
        match next {
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => break,
            _ => {}
        }
    }
    length
}

/// Whether an expression begins after this code, so that a slash is no division.
fn begins_expression(before: &str) -> bool {
    let before = before.trim_end();
    let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    let word = before.rsplit(|character| !is_word(character)).next().unwrap_or_default();
    if word.is_empty() {
        !before.ends_with([')', ']', '}', '\'', '"', '`'])
    } else {
        word == "return" || word == "typeof"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(source: &str) -> String {
        lines(source).into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn comments_empty_lines_and_indentation_go() {
        let source = "/**\n * What it is.\n */\n\nconst a = 1 // one\n  // Alone.\n\n  b(/** @type {any} */ (a))\n";
        assert_eq!(squeezed(source), "const a = 1\nb( (a))");
    }

    #[test]
    fn what_looks_like_a_comment_in_a_string_stays() {
        for code in
            ["accept: 'image/*', b: \"*/\"", "'https://example.org'", r"'it\'s // not' + '/*'", "`//${'`/*'}/*`"]
        {
            assert_eq!(squeezed(code), code);
        }
    }

    #[test]
    fn a_regular_expression_is_no_comment_and_no_string() {
        for code in ["x.replace(/['`\"]/g, '')", r"/[/*]\/\/`/.test(x)", "return /`/", "a / b / c // d"] {
            assert_eq!(squeezed(code), code.trim_end_matches(" // d"));
        }
    }

    #[test]
    fn nothing_changes_inside_a_template() {
        let template = "sheet(`\n  a { b: c }  \n\n  /* d */ // e\n${f({ g: `\n  h\n` })}\n  i\n`)";
        assert_eq!(squeezed(template), template);
        assert_eq!(squeezed("`${\n  a // b\n}\n  c`"), "`${\na\n}\n  c`");
    }

    #[test]
    fn a_line_at_the_top_level_has_no_indentation_and_is_in_no_template() {
        let tops: Vec<bool> = lines("const a = `\nconst b\n`\n  const c").iter().map(|line| line.is_top).collect();
        assert_eq!(tops, [true, false, false, false]);
    }
}
