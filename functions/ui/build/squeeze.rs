//! Takes comments, indentation, and spaces, breaks of lines and commas that separate nothing out of a script, and shortens
//! names of private members. Strings, regular expressions and templates but style sheets stay as they are.

use std::fmt::Write;

/// A line of a script without its comments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Whether it stands at the top level, by its indentation.
    pub(crate) is_top: bool,
}

/// The letters that scripts use most come first: the fewer different ones there are, the better they compress.
const LETTERS: &[u8] = b"etnairslodcmhpubgfkyvwxzjqASCDTLEPRIMNBOFHUGWKVJYXQZ";

/// What the scanner is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScannerState {
    /// Code between two braces, or at the top level.
    Code,
    Template,
    Comment,
}

/// The lines that are left.
pub(crate) fn lines(source: &str) -> Vec<Line> {
    let mut states = vec![ScannerState::Code];
    source.lines().filter_map(|line| Line::read(line, &mut states)).collect()
}

impl Line {
    fn read(line: &str, states: &mut Vec<ScannerState>) -> Option<Self> {
        let in_template = states.last() == Some(&ScannerState::Template);
        let text = code_of(line, states);
        // Spaces count inside a template.
        let text = if states.last() == Some(&ScannerState::Template) { &text[..] } else { text.trim_end() };
        let text = if in_template { text } else { text.trim_start() };
        let is_top = !in_template && !line.starts_with([' ', '\t']);
        (in_template || !text.is_empty()).then(|| Self { text: text.to_owned(), is_top })
    }
}

/// A script without comments, without what separates nothing, and with short names of private members.
pub(crate) fn tight(script: &str) -> String {
    let mut states = vec![ScannerState::Code];
    let mut members = Vec::new();
    let mut code = String::new();
    let mut rest = script;
    while let Some(next) = rest.chars().next() {
        let in_code = states.last() == Some(&ScannerState::Code);
        if in_code && is_idle(next, &code, &rest[next.len_utf8()..]) {
            rest = &rest[1..];
            continue;
        }
        if in_code && next == '#' {
            let name = rest[1..].split(|character: char| !is_word(character)).next().unwrap_or_default();
            let place = members.iter().position(|member| *member == name).unwrap_or(members.len());
            if place == members.len() {
                members.push(name);
            }
            let _written = write!(code, "#{}", short_name(place));
            rest = &rest[1 + name.len()..];
            continue;
        }
        // Once it is written, nothing distinguishes them.
        if in_code && rest.starts_with("const") && !code.ends_with(is_word) && !rest[5..].starts_with(is_word) {
            code.push_str("let");
            rest = &rest[5..];
            continue;
        }
        let line = code.rsplit('\n').next().unwrap_or_default();
        let in_styles = !in_code && code[..code.rfind('`').unwrap_or(0)].ends_with("sheet(");
        if in_styles && next.is_ascii_whitespace() && !separates_styles(&code, rest) {
            rest = &rest[1..];
            continue;
        }
        let taken = if in_code { token(rest, next, line, &mut states) } else { template(rest, next, &mut states) };
        code.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    code
}

/// The script with one declaration in place of those that follow each other.
pub(crate) fn merge(script: &str) -> String {
    let mut states = vec![ScannerState::Code];
    // Whether the last statement declares, inside each pair of braces, those of templates too.
    let mut declares = vec![after_let(script).is_some()];
    let mut merged = String::new();
    let mut rest = script;
    while let Some(next) = rest.chars().next() {
        let in_code = states.last() == Some(&ScannerState::Code);
        let declared = after_let(rest.strip_prefix(next).unwrap_or_default());
        if in_code && next == '}' {
            declares.pop();
        }
        if in_code && next == '{' {
            declares.push(declared.is_some());
        }
        if let (true, '\n', Some(last)) = (in_code, next, declares.last_mut()) {
            if let (true, Some(declared)) = (*last, declared) {
                merged.push(',');
                rest = declared;
                continue;
            }
            *last = declared.is_some();
        }
        let line = merged.rsplit('\n').next().unwrap_or_default();
        let taken = if in_code { token(rest, next, line, &mut states) } else { template(rest, next, &mut states) };
        if !in_code && taken == 2 && next == '$' {
            declares.push(false);
        }
        merged.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    merged
}

/// What a declaration declares.
fn after_let(statement: &str) -> Option<&str> {
    let declared = statement.strip_prefix("let")?;
    (!declared.starts_with(is_word)).then(|| declared.trim_start_matches(' '))
}

/// A name for each number, with as few letters as can be.
pub(crate) fn short_name(number: usize) -> String {
    let letter = |place: usize| char::from(LETTERS[place % LETTERS.len()]);
    let first = number.checked_sub(LETTERS.len()).map(|rest| letter(rest / LETTERS.len()));
    first.into_iter().chain([letter(number)]).collect()
}

/// Whether a character separates nothing: spaces where nothing runs together, breaks of lines that end nothing, and last commas.
fn is_idle(character: char, before: &str, after: &str) -> bool {
    let closes = after.trim_ascii_start().starts_with(['}', ')', ']']);
    match character {
        ' ' => !separates(before, after),
        '\n' => closes || before.ends_with(['{', '(', '[', ',']),
        ',' => closes,
        _ => false,
    }
}

/// Whether what stands before and after spaces would be something else without them: two words, two signs, or a slash.
fn separates(before: &str, after: &str) -> bool {
    let is_name = |character: char| is_word(character) || character == '#';
    match (before.chars().next_back(), after.trim_start_matches(' ').chars().next()) {
        (Some(last), Some(next)) => {
            (is_name(last) && is_name(next)) || last == '/' || next == '/' || (last == next && "+-".contains(last))
        }
        _ => false,
    }
}

/// Whether white space in a style sheet means something: it does not beside the signs that end names and values.
fn separates_styles(before: &str, spaces: &str) -> bool {
    let next = spaces.trim_ascii_start().chars().next();
    !before.ends_with([':', ';', ',', '{', '}', '>', '`']) && !next.is_some_and(|next| "{}>`".contains(next))
}

/// The line without its comments. Moves `states` to the end of the line.
fn code_of(line: &str, states: &mut Vec<ScannerState>) -> String {
    let mut code = String::new();
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let taken = match states.last() {
            Some(ScannerState::Comment) => {
                let end = rest.find("*/").map(|end| end + 2);
                if end.is_some() {
                    states.pop();
                }
                rest = &rest[end.unwrap_or(rest.len())..];
                continue;
            }
            Some(ScannerState::Template) => template(rest, next, states),
            _ if rest.starts_with("//") => break,
            _ if rest.starts_with("/*") => {
                states.push(ScannerState::Comment);
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
pub(crate) fn template(rest: &str, next: char, states: &mut Vec<ScannerState>) -> usize {
    if rest.starts_with("${") {
        states.push(ScannerState::Code);
        return 2;
    }
    if next == '`' {
        states.pop();
    }
    escaped(rest, next)
}

/// The length of what comes next in code, which follows `before` on the line.
pub(crate) fn token(rest: &str, next: char, before: &str, states: &mut Vec<ScannerState>) -> usize {
    match next {
        '`' => states.push(ScannerState::Template),
        '\'' | '"' => return quoted(rest, next),
        '/' if begins_expression(before) => return pattern(rest),
        '{' => states.push(ScannerState::Code),
        // The brace ends a block, or what a template has inserted.
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

pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Whether an expression begins after this code, so that a slash is no division.
fn begins_expression(before: &str) -> bool {
    let before = before.trim_end();
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
    fn spaces_that_separate_nothing_go() {
        let source = "const a = { b, c: 1 }\nif (a) return d ? .5 : [1, 2] + +e\nfor (const x of y) f(async () => 'g h' in x / 2)";
        let tight_source = "let a={b,c:1}\nif(a)return d?.5:[1,2]+ +e\nfor(let x of y)f(async()=>'g h'in x / 2)";
        assert_eq!(tight(source), tight_source);
    }

    #[test]
    fn breaks_of_lines_that_end_nothing_go_and_so_do_last_commas() {
        let source = "f(\na,\n{\nb:[\n1,\n2,\n],\n},\n)\nif(a){\nb()\nc()\n}\nd()";
        assert_eq!(tight(source), "f(a,{b:[1,2]})\nif(a){b()\nc()}\nd()");
        assert_eq!(tight("`\n{\na,\n}${[\nb,\n]}`"), "`\n{\na,\n}${[b]}`");
    }

    #[test]
    fn declarations_that_follow_each_other_are_one() {
        let script = "let a=()=>{let b\nlet{c}=b\nf()\nlet d=`\nlet ${b}`\nlet[e]=d}\nlet f=1\nletter()\nlet g=2";
        let merged = "let a=()=>{let b,{c}=b\nf()\nlet d=`\nlet ${b}`,[e]=d},f=1\nletter()\nlet g=2";
        assert_eq!(merge(script), merged);
        for apart in ["let a=b\n? c\n:d\nlet e", "for(let a of b)c(a)\nlet d=1", "a({let:1})\nlet b=1"] {
            assert_eq!(merge(apart), apart);
        }
    }

    #[test]
    fn spaces_that_mean_nothing_go_from_style_sheets() {
        let source = "sheet(`\n  a, b :is(c) { d: e f;\n  g: calc(1px + 2px) }\n@media (i) { j > k { l: m } }\n`)\nh(`\n  n: o`)";
        let tight_source = "sheet(`a,b :is(c){d:e f;g:calc(1px + 2px)}@media (i){j>k{l:m}}`)\nh(`\n  n: o`)";
        assert_eq!(tight(source), tight_source);
    }

    #[test]
    fn private_members_have_short_names_and_hashes_in_strings_stay() {
        let source = "class A{#one=1\nget #two(){return this.#one+'#one'}}";
        assert_eq!(tight(source), "class A{#e=1\nget #t(){return this.#e+'#one'}}");
    }

    #[test]
    fn spaces_stay_in_strings_templates_and_regular_expressions() {
        for code in
            ["a(' b , c ')", "`a { b } ${c({d:' e '})} f : g\n  h`", "x.split(/ = | ; /)", "class A{static c=1}"]
        {
            assert_eq!(tight(code), code);
        }
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
