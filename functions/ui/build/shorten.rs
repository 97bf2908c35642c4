//! Gives variables short names. Each is renamed everywhere in the script. Two of them get the same short name where none hides the
//! other: no part of the script names both, and at most one is declared at the top level. A part is a statement at the top level,
//! or a member of a class there. No variable may have the name of something else that the script uses of its page, such as
//! `location`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::squeeze::{self, ScannerState};

const KEYWORDS: &str = "as async await break case catch class const continue default delete do else export extends false \
    finally for function get if import in instanceof let new null of return set static super switch this throw true try \
    typeof undefined void while with yield";

/// What a pair of braces, brackets or parentheses is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Block,
    Class,
    /// Brackets, parentheses, and what a template inserts.
    Group,
    Object,
    /// What `const` or `let` takes out of a list.
    List,
    /// What they take out of an object.
    Pattern,
}

struct Pair {
    kind: Kind,
    /// Where it begins.
    start: usize,
}

/// A variable where a script names it.
struct Mention<'a> {
    name: &'a str,
    start: usize,
    /// How many pairs are around it.
    depth: usize,
    part: usize,
    declares: bool,
    /// Whether it declares at the top level.
    is_global: bool,
    /// Whether it names a property too, as in `{ a }`.
    is_property: bool,
}

/// The script with short names.
pub(crate) fn shorten(script: &str) -> String {
    let mentions = mentions(script);
    let names = short_names(&mentions);
    let mut shortened = String::new();
    let mut rest = 0;
    for Mention { name, start, is_property, .. } in mentions {
        let Some(short) = names.get(name) else { continue };
        shortened.push_str(&script[rest..start]);
        if is_property {
            shortened.push_str(name);
            shortened.push(':');
        }
        shortened.push_str(short);
        rest = start + name.len();
    }
    shortened + &script[rest..]
}

/// All mentions of a name.
#[derive(Default)]
struct Variable {
    count: usize,
    /// How many signs of its length a short name saves.
    gain: i32,
    is_declared: bool,
    is_global: bool,
    parts: BTreeSet<usize>,
}

impl Variable {
    fn add(&mut self, mention: &Mention<'_>) {
        self.count += 1;
        self.gain += if mention.is_property { -3 } else { 1 };
        self.is_declared |= mention.declares;
        self.is_global |= mention.is_global;
        self.parts.insert(mention.part);
    }

    /// Whether one would hide the other if they had the same name.
    fn meets(&self, other: &Self) -> bool {
        (self.is_global && other.is_global) || !self.parts.is_disjoint(&other.parts)
    }
}

/// The shortest names for what is mentioned most. A name that mostly stands for a property stays, since it is written anyway.
fn short_names<'a>(mentions: &[Mention<'a>]) -> BTreeMap<&'a str, String> {
    let mut variables = BTreeMap::<&str, Variable>::new();
    for mention in mentions {
        variables.entry(mention.name).or_default().add(mention);
    }
    let mut owners = BTreeMap::<String, Vec<Variable>>::new();
    let mut renamed = Vec::new();
    for (name, mut variable) in variables {
        if variable.is_declared && variable.gain > 0 && name.len() > 1 {
            renamed.push((name, variable));
        } else {
            variable.is_global = true;
            owners.entry(name.to_owned()).or_default().push(variable);
        }
    }
    renamed.sort_by_key(|(_, variable)| Reverse(variable.count));
    let mut names = BTreeMap::new();
    for (name, variable) in renamed {
        let mut number = 0;
        let short = loop {
            let short = squeeze::short_name(number);
            let others = owners.get(&short).map(Vec::as_slice).unwrap_or_default();
            if !is_keyword(&short) && !others.iter().any(|other| other.meets(&variable)) {
                break short;
            }
            number += 1;
        };
        owners.entry(short.clone()).or_default().push(variable);
        names.insert(name, short);
    }
    names
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.split_whitespace().any(|keyword| keyword == word)
}

/// The variables that a script names, in order.
fn mentions(script: &str) -> Vec<Mention<'_>> {
    let mut states = vec![ScannerState::Code];
    let mut pairs = vec![Pair { kind: Kind::Block, start: 0 }];
    let mut mentions = Vec::new();
    let (mut at, mut part, top) = (0, 0, top(script));
    while let Some(next) = script[at..].chars().next() {
        let (before, rest) = script.split_at(at);
        let in_code = states.last() == Some(&ScannerState::Code);
        if in_code && squeeze::is_word(next) {
            let word = rest.split(|character| !squeeze::is_word(character)).next().unwrap_or_default();
            at += word.len();
            if !next.is_ascii_digit() {
                mentions.extend(
                    mention(word, before, &script[at..], &pairs, top).map(|mention| Mention { part, ..mention }),
                );
            }
            continue;
        }
        if in_code && next == '\n' && is_at_top(&pairs, top) && is_end(before, &rest[1..]) {
            part += 1;
        }
        let line = before.rsplit('\n').next().unwrap_or_default();
        let taken = if in_code {
            squeeze::token(rest, next, line, &mut states)
        } else {
            squeeze::template(rest, next, &mut states)
        };
        let kind = match next {
            '{' if in_code => Some(kind(before, &pairs)),
            '[' if in_code && declares(last_word(before)) => Some(Kind::List),
            '(' | '[' if in_code => Some(Kind::Group),
            '$' if taken == 2 => Some(Kind::Group),
            _ => None,
        };
        pairs.extend(kind.map(|kind| Pair { kind, start: at }));
        at += taken;
        if in_code && matches!(next, '}' | ')' | ']') && pairs.len() > 1 {
            declare_parameters(script, &pairs, at, &mut mentions);
            pairs.pop();
        }
    }
    mentions
}

/// How many pairs are around the top level: a part of a script is inside a function.
fn top(script: &str) -> usize {
    if script.starts_with("export default") { 2 } else { 1 }
}

/// Whether only the top level is around, or a class there.
fn is_at_top(pairs: &[Pair], top: usize) -> bool {
    pairs.len() == top || (pairs.len() == top + 1 && pairs[top].kind == Kind::Class)
}

/// Whether a statement or a member ends with the line: no sign joins the lines.
fn is_end(before: &str, after: &str) -> bool {
    let joins = |sign: char| "=>?:&|+-*/.<([`".contains(sign);
    !before.ends_with(joins) && !after.starts_with(joins)
}

/// What a brace opens.
fn kind(before: &str, pairs: &[Pair]) -> Kind {
    let word = last_word(before);
    let code = before.trim_end_matches('\n');
    let statement = before.rsplit(['\n', ';', '{', '}']).next().unwrap_or_default();
    let in_pattern = pairs.last().is_some_and(|pair| pair.kind == Kind::Pattern);
    if statement.split(' ').any(|word| word == "class") {
        Kind::Class
    } else if declares(word) || (in_pattern && before.ends_with(':')) {
        Kind::Pattern
    } else if ["catch", "do", "else", "finally", "try"].contains(&word)
        || code.is_empty()
        || code.ends_with("=>")
        || code.ends_with([')', '{', '}', ';'])
    {
        Kind::Block
    } else {
        Kind::Object
    }
}

/// Whether names follow this word.
fn declares(word: &str) -> bool {
    ["const", "let"].contains(&word)
}

/// A word as a variable, unless it is a keyword, a property or the flags of a regular expression.
fn mention<'a>(name: &'a str, before: &str, after: &str, pairs: &[Pair], top: usize) -> Option<Mention<'a>> {
    let kind = pairs.last().map_or(Kind::Block, |pair| pair.kind);
    let last = last_word(before);
    let is_marked = ["async", "get", "set", "static"].contains(&last);
    let is_next = before.trim_end_matches('\n').ends_with(['{', '[', ',', '(']);
    let in_object = matches!(kind, Kind::Object | Kind::Pattern);
    let is_member = match kind {
        Kind::Class => is_marked || before.ends_with(['{', '}', ';', '\n']),
        Kind::Object | Kind::Pattern => (is_next || is_marked) && after.starts_with([':', '(']),
        Kind::Block | Kind::Group | Kind::List => false,
    };
    let is_property = before.ends_with('.') && !before.ends_with("...");
    if is_keyword(name) || is_member || is_property || before.ends_with(['#', '/']) {
        return None;
    }
    let declares = declares(last)
        || ["function", "class"].contains(&last)
        || (matches!(kind, Kind::List | Kind::Pattern) && (is_next || before.ends_with([':', '.'])));
    // What a part takes is known at its top level.
    let is_taken = pairs.get(top - 1).is_some_and(|pair| pair.kind == Kind::Group);
    let is_inside = pairs.iter().skip(top).any(|pair| !matches!(pair.kind, Kind::List | Kind::Pattern));
    Some(Mention {
        name,
        start: before.len(),
        depth: pairs.len(),
        part: 0,
        declares,
        is_global: is_taken || (declares && !is_inside),
        is_property: in_object && is_next,
    })
}

/// Marks parameters as declared, where the last pair has them and ends here.
fn declare_parameters(script: &str, pairs: &[Pair], end: usize, mentions: &mut [Mention<'_>]) {
    let Some(Pair { start, .. }) = pairs.last() else { return };
    let name = last_word(&script[..*start]);
    let is_named = !name.is_empty() && (!is_keyword(name) || name == "catch");
    let is_function = script[end..].starts_with("=>") || (is_named && script[end..].starts_with('{'));
    if !is_function || !script[*start..].starts_with('(') {
        return;
    }
    for mention in mentions.iter_mut().rev().take_while(|mention| mention.start > *start) {
        let is_parameter = script[..mention.start].ends_with(['(', ',', '.']);
        mention.declares |= is_parameter && mention.depth == pairs.len();
    }
}

/// The word before, where at most spaces stand between.
fn last_word(before: &str) -> &str {
    before.trim_end_matches(' ').rsplit(|character| !squeeze::is_word(character)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_short_names_wherever_they_stand() {
        let script = "let thread=1\nfunction show(thread,view){return view+thread}\n[1].map((value)=>value*thread)";
        let short = "let e=1\nfunction a(e,n){return n+e}\n[1].map((t)=>t*e)";
        assert_eq!(shorten(script), short);
    }

    #[test]
    fn variables_that_no_part_of_a_script_has_together_share_a_name() {
        let script = "function first(one){return one}\nfunction last(other){return other}";
        assert_eq!(shorten(script), "function t(e){return e}\nfunction n(e){return e}");
        let members = "class Any{first(one){return one}\nlast(other){return other}}";
        assert_eq!(shorten(members), "class t{first(e){return e}\nlast(e){return e}}");
        let part = format!("export default({{h}})=>{{{script}}}");
        assert_eq!(shorten(&part), "export default({h})=>{function t(e){return e}\nfunction n(e){return e}}");
    }

    #[test]
    fn what_a_part_takes_has_a_name_of_its_own() {
        let part = "export default({other})=>{function first(other){return other+other+other}\nlet last=1\nlast++\nlast++\nlast++}";
        let short = "export default({other:e})=>{function n(e){return e+e+e}\nlet t=1\nt++\nt++\nt++}";
        assert_eq!(shorten(part), short);
    }

    #[test]
    fn no_variable_hides_another_that_is_used_where_it_is_known() {
        let script = "let first=(one,two)=>\nlast(one)\nlet last=1";
        assert_eq!(shorten(script), "let n=(t,a)=>\ne(t)\nlet e=1");
    }

    #[test]
    fn properties_members_and_what_the_page_has_keep_their_names() {
        for script in [
            "location.href=document.title",
            "class A{value=1\nget size(){return this.value}\nasync load(){}}",
            "f({value:1,load(){},...{size:2}})",
            "f(...[\n{value:1,\nsize:2}])",
        ] {
            let declared = format!("let value=0,size=0,load=0\n{script}");
            assert!(shorten(&declared).ends_with(script), "{}", shorten(&declared));
        }
    }

    #[test]
    fn what_is_taken_out_of_an_object_keeps_its_name_there() {
        let script =
            "let{value,size:length=fetch}=options\nf(value,length,value)\ng(value,{value})\nh(value,value,value,value)";
        assert_eq!(shorten(script), "let{value:e,size:t=fetch}=options\nf(e,t,e)\ng(e,{value:e})\nh(e,e,e,e)");
        assert_eq!(shorten("let[first,last]=f()\ng(first,last)"), "let[e,t]=f()\ng(e,t)");
    }

    #[test]
    fn a_name_that_mostly_stands_for_a_property_stays() {
        assert_eq!(shorten("let{value}=f()\ng({value})"), "let{value}=f()\ng({value})");
    }

    #[test]
    fn no_short_name_is_one_that_the_script_has() {
        assert_eq!(shorten("let value=e+t\nfor(let i of value)f(i)"), "let n=e+t\nfor(let i of n)f(i)");
    }

    #[test]
    fn strings_numbers_and_flags_of_regular_expressions_stay_and_templates_have_the_names() {
        let script = "let value=600_000+1e3\nf('value',/value/gu,`value ${value} ${g({value:`${value}`})}`)";
        let short = "let e=600_000+1e3\nf('value',/value/gu,`value ${e} ${g({value:`${e}`})}`)";
        assert_eq!(shorten(script), short);
    }
}
