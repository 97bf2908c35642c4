//! The Markdown of a body, parsed so that an address in its text contains no markup: `https://a.example/__init__.py` is shown
//! as typed. The exception is a delimiter at the end of an address that closes an element opened before the address.
//!
//! The parser has no rule for this, but its events show which addresses are text, not code or links. The markup characters of
//! those addresses are replaced with noncharacters, and restored in the parser's output.
//!
//! GitHub's tables, strikethrough and task lists are supported. A single tilde, which also strikes text on GitHub, is text here.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use crate::address::{self, Extent};
use crate::steps;

/// Maximum levels of nested quotes, lists, emphasis and links. Deeper markup is shown as typed.
pub const MAX_NESTING: usize = 16;

const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Maximum cells in the tables of a body. A cell takes at least 10 bytes of HTML, so hardly more would fit in
/// [`crate::markdown::MAX_HTML`]. Short rows are padded to the width of their table, so a short text could have very
/// many cells.
const MAX_CELLS: usize = 6_000;

/// Characters that are markup inside a line. Each is replaced with the character at the same index in [`SHIELDS`].
const MARKUP: [char; 8] = ['*', '_', '`', '[', ']', '\\', '~', '&'];

/// Noncharacters, which are seldom typed and which the parser treats as letters.
const SHIELDS: [char; 8] =
    ['\u{fdd0}', '\u{fdd1}', '\u{fdd2}', '\u{fdd3}', '\u{fdd4}', '\u{fdd5}', '\u{fdd6}', '\u{fdd7}'];

/// Characters that mark quotes and list items, and noncharacters that replace them where containers are too deep.
const CONTAINERS: [char; 6] = ['>', '-', '+', '*', '.', ')'];
const CONTAINER_SHIELDS: [char; 6] = ['\u{fdd8}', '\u{fdd9}', '\u{fdda}', '\u{fddb}', '\u{fddc}', '\u{fddd}'];

/// Replaces a tilde without another tilde next to it. It is punctuation, so the emphasis around it doesn't change. It
/// belongs to an extinct script, so texts seldom contain it.
const LONE_TILDE: char = '\u{10a58}';

/// Inserted before typed characters that would otherwise count as replacements: the first before noncharacters, the second
/// before [`LONE_TILDE`] and itself. The parser treats an escape like the character after it.
const ESCAPES: [char; 2] = ['\u{fdde}', '\u{10a57}'];

/// Maximum columns before a list item's content: an indent of three, nine digits, a delimiter and four spaces.
const MAX_ITEM_INDENT: usize = 17;

/// Maximum searches for addresses. Shielding the markup in one address may change which other addresses are text, so they are
/// searched for again.
const MAX_PASSES: usize = 4;

/// Markdown that is ready for the parser.
pub struct Source<'a> {
    text: Cow<'a, str>,
    is_shielded: bool,
    options: Options,
}

impl<'a> Source<'a> {
    #[must_use]
    pub fn of(body: &'a str) -> Self {
        Self::with(body, OPTIONS, &MARKUP)
    }

    /// The source of a body from another system, which supports only `extensions` among GitHub's, and decodes entities
    /// in addresses.
    #[must_use]
    pub fn of_other_system(body: &'a str, extensions: Options) -> Self {
        Self::with(body, OPTIONS & extensions, &MARKUP[..MARKUP.len() - 1])
    }

    fn with(body: &'a str, options: Options, markup: &'static [char]) -> Self {
        let text = escaped(body);
        let mut source = Self { is_shielded: matches!(text, Cow::Owned(_)), text, options };
        steps::take(body.len());
        if has_many_cells(body) {
            source.options.remove(Options::ENABLE_TABLES);
        }
        // Deep containers are shown as typed anyway. Unshielded, they would make the parser check them all on each line
        // below.
        source.shield(&deep_containers(&source.text));
        source.shield(&lone_tildes(&source.text));
        if !may_have_markup(body) {
            return source;
        }
        for _ in 0..MAX_PASSES {
            let found = Reader::markup(&source.text, source.options, markup);
            if found.is_empty() {
                break;
            }
            source.shield(&found);
        }
        source
    }

    fn shield(&mut self, markup: &[(usize, char)]) {
        if !markup.is_empty() {
            self.text = Cow::Owned(shielded(&self.text, markup));
            self.is_shielded = true;
        }
    }

    /// The text that the parser reads.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The events of the parser, each with the byte range of this source that it represents.
    pub fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        let restore = |event, range: &Range<usize>| match event {
            // The character of an entity is not a replacement.
            Event::Text(text) if *text != self.text[range.clone()] => Event::Text(text),
            _ if self.is_shielded => restored_event(event),
            _ => event,
        };
        let events = Parser::new_ext(&self.text, self.options).into_offset_iter();
        events.map(move |(event, range)| (restore(event, &range), range))
    }

    /// A part of the source, as it was typed.
    #[must_use]
    pub fn typed(&self, range: Range<usize>) -> CowStr<'_> {
        let text = CowStr::from(&self.text[range]);
        if self.is_shielded { restored(text) } else { text }
    }
}

/// Whether a possible address contains any of the characters in [`MARKUP`].
fn may_have_markup(body: &str) -> bool {
    let mut is_inside = false;
    body.contains("://")
        && body.char_indices().any(|(at, c)| {
            is_inside = (is_inside && !c.is_whitespace() && c != '<') || body[at..].starts_with("://");
            is_inside && MARKUP.contains(&c)
        })
}

/// Replaces markup characters. `markup` has their positions, in order, and their replacements.
fn shielded(text: &str, markup: &[(usize, char)]) -> String {
    let mut out = String::with_capacity(text.len() + markup.len() * 3);
    let mut written = 0;
    for (at, shield) in markup {
        out.push_str(&text[written..*at]);
        out.push(*shield);
        written = at + 1;
    }
    out.push_str(&text[written..]);
    out
}

/// The positions and replacements of single tildes, except those after a backslash. The first tilde of a longer run after a
/// backslash is escaped, and not part of the run.
fn lone_tildes(text: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    if !text.contains('~') {
        return found;
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| **byte == b'~').count();
        if run == 1 {
            found.push((at, LONE_TILDE));
        }
        at += if bytes[at] == b'\\' { 2 } else { run.max(1) };
    }
    found
}

/// The positions and replacements of the marks of containers that are certainly deeper than [`MAX_NESTING`].
fn deep_containers(text: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    let mut start = 0;
    // Faster than one search for both characters.
    for line in text.split_inclusive('\n').flat_map(|line| line.split_inclusive('\r')) {
        found.extend(deep_marks(line).into_iter().filter_map(|at| {
            let mark = char::from(line.as_bytes()[at]);
            let place = CONTAINERS.iter().position(|known| *known == mark)?;
            Some((start + at, CONTAINER_SHIELDS[place]))
        }));
        start += line.len();
    }
    found
}

/// The offsets of the marks of quotes and list items that are too deep, at the beginning of a line. A number's mark is the
/// character after it. A deeply indented mark is inside list items of earlier lines, because it would be code otherwise.
fn deep_marks(line: &str) -> Vec<usize> {
    let (bytes, rule) = (line.as_bytes(), rule_at(line));
    let is_space = |at: usize| bytes.get(at).is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    let (mut marks, mut at, mut column, mut depth) = (Vec::new(), 0, 0, 0);
    loop {
        let mark_end = column;
        while let Some(space @ (b' ' | b'\t')) = bytes.get(at) {
            column += if *space == b'\t' { 4 - column % 4 } else { 1 };
            at += 1;
        }
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        match bytes.get(at + digits) {
            Some(b'>') if digits == 0 => {}
            Some(b'-' | b'+' | b'*') if digits == 0 && at < rule && is_space(at + 1) => {}
            Some(b'.' | b')') if (1..10).contains(&digits) && is_space(at + digits + 1) => {}
            _ => return marks,
        }
        depth += (column - mark_end) / MAX_ITEM_INDENT + 1;
        if depth > MAX_NESTING {
            marks.push(at + digits);
        }
        column += digits + 1;
        at += digits + 1;
    }
}

/// The offset of the horizontal rule at the end of a line, or the line's length. A rule may look like nested lists.
fn rule_at(line: &str) -> usize {
    let end = line.trim_end_matches([' ', '\t', '\n', '\r']);
    let Some(sign @ ('-' | '*')) = end.chars().next_back() else { return line.len() };
    let start = end.trim_end_matches([sign, ' ', '\t']).len();
    if end[start..].matches(sign).count() < 3 { line.len() } else { start }
}

/// Whether tables may have more than [`MAX_CELLS`] cells. Every row up to the next blank line is counted with the maximum
/// columns of the delimiter row.
fn has_many_cells(text: &str) -> bool {
    let (mut cells, mut columns) = (0, 0);
    if !text.contains('|') {
        return false;
    }
    let lines = text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    for line in lines {
        if line.trim_matches(|c: char| c.is_whitespace() || c == '>').is_empty() {
            columns = 0;
        } else if !line.contains(|c: char| c.is_alphabetic()) {
            columns = columns.max(line.matches('|').count() + 1);
        }
        cells += columns;
    }
    cells > MAX_CELLS
}

/// The body with every typed replacement escaped.
fn escaped(body: &str) -> Cow<'_, str> {
    let escape = |c: char| match c {
        '\u{fdd0}'..='\u{fdde}' => Some(ESCAPES[0]),
        '\u{10a57}' | LONE_TILDE => Some(ESCAPES[1]),
        _ => None,
    };
    // Most bodies have none of the bytes with which such characters begin, and a search for a byte is fast.
    let may_have_any = body.as_bytes().contains(&0xef) || body.as_bytes().contains(&0xf0);
    if may_have_any && body.contains(|c| escape(c).is_some()) {
        body.chars().flat_map(|c| escape(c).into_iter().chain([c])).collect::<String>().into()
    } else {
        body.into()
    }
}

/// The original character that `c` replaces.
fn meant(c: char) -> char {
    match c {
        LONE_TILDE => '~',
        _ => {
            let container = || CONTAINER_SHIELDS.iter().position(|shield| *shield == c).map(|place| CONTAINERS[place]);
            let markup = SHIELDS.iter().position(|shield| *shield == c).map(|place| MARKUP[place]);
            markup.or_else(container).unwrap_or(c)
        }
    }
}

fn restored(text: CowStr<'_>) -> CowStr<'_> {
    if text.chars().all(|c| meant(c) == c && !ESCAPES.contains(&c)) {
        return text;
    }
    let mut chars = text.chars();
    let next = || chars.next().and_then(|c| if ESCAPES.contains(&c) { chars.next() } else { Some(meant(c)) });
    std::iter::from_fn(next).collect::<String>().into()
}

fn restored_event(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Text(text) => Event::Text(restored(text)),
        Event::Code(code) => Event::Code(restored(code)),
        Event::Html(html) => Event::Html(restored(html)),
        Event::InlineHtml(html) => Event::InlineHtml(restored(html)),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url: restored(dest_url), title: restored(title), id })
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Image { link_type, dest_url: restored(dest_url), title: restored(title), id })
        }
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(restored(info))))
        }
        other => other,
    }
}

/// Searches the parser's events for addresses that contain markup.
struct Reader<'a> {
    text: &'a str,
    /// The characters to look for: all of [`MARKUP`], or all but the last.
    markup: &'static [char],
    /// The positions of markup in addresses, each with the character that shields it.
    found: Vec<(usize, char)>,
    /// The closing delimiters of open emphasis and strikethrough.
    closing: Vec<Range<usize>>,
    /// The number of open links, images and code blocks.
    verbatim: usize,
    /// The end of the open table cell.
    cell_end: usize,
    /// The character just before the next text, or `None` if no text comes directly before it.
    before: Option<char>,
    /// The text has been searched for addresses up to this position.
    read: usize,
}

impl<'a> Reader<'a> {
    fn markup(text: &'a str, options: Options, markup: &'static [char]) -> Vec<(usize, char)> {
        let mut reader = Reader {
            text,
            markup,
            found: Vec::new(),
            closing: Vec::new(),
            verbatim: 0,
            cell_end: text.len(),
            before: None,
            read: 0,
        };
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            reader.read(&event, range);
        }
        steps::take(text.len());
        reader.found
    }

    fn read(&mut self, event: &Event<'_>, range: Range<usize>) {
        let before = self.before.take();
        match event {
            Event::Text(text) => {
                // A text that differs from its source is an entity, which isn't part of an address.
                if self.verbatim == 0 && **text == self.text[range.clone()] {
                    self.find(text, range, before);
                }
                self.before = text.chars().next_back();
            }
            Event::Start(tag) => match tag.to_end() {
                TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock => self.verbatim += 1,
                TagEnd::TableCell => self.cell_end = range.end,
                emphasis => self.closing.extend(delimiter(emphasis, range.end)),
            },
            Event::End(TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock) => self.verbatim -= 1,
            Event::End(TagEnd::TableCell) => self.cell_end = self.text.len(),
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => drop(self.closing.pop()),
            _ => {}
        }
    }

    /// Looks for addresses that begin in a text event.
    fn find(&mut self, text: &str, range: Range<usize>, before: Option<char>) {
        let mut from = self.read.saturating_sub(range.start);
        while let Some(start) = address::next_start(text, from) {
            if start == 0 && before.is_some_and(|c| self.joins(c, range.start)) {
                from = 1;
                continue;
            }
            self.address(range.start + start);
            from = self.read - range.start;
        }
    }

    /// Whether text at `start` continues a word that ends with `before`. Underscores that begin a word don't count, because
    /// they may open emphasis.
    fn joins(&self, before: char, start: usize) -> bool {
        match before {
            '_' => self.text[..start].trim_end_matches('_').ends_with(address::joins),
            _ => address::joins(before),
        }
    }

    fn address(&mut self, start: usize) {
        let most = self.closed_before_text(start).unwrap_or(self.cell_end);
        let most = start + self.before_entity(&self.text[start..most]).len();
        let mut extent = Extent::of(&self.text[start..most], meant);
        self.read = start + extent.read;
        if let Some(end) = self.ended_by_break(start + extent.end) {
            extent = Extent::of(&self.text[start..end], meant);
            self.read = end;
        }
        if !extent.is_address {
            return;
        }
        let end = start + extent.end;
        let is_open_end = |c| matches!(c, '*' | '_' | '~') || address::trails(c);
        let sure = start + self.text[start..end].trim_end_matches(is_open_end).len();
        let count = self.found.len();
        self.add(start..sure);
        if self.found.len() == count {
            // While other markup in the address is unshielded, the parser may misplace closing delimiters. So they are used
            // only in a pass that finds no such markup.
            let closing = self.closing.iter().take(MAX_NESTING).map(|delimiter| delimiter.start);
            let closing = closing.filter(|at| (sure..end).contains(at)).min();
            self.add(sure..closing.unwrap_or(end));
        }
    }

    /// The text up to an entity that may end an address, if entities aren't part of addresses.
    fn before_entity(&self, text: &'a str) -> &'a str {
        if self.markup.contains(&'&') {
            return text;
        }
        let is_entity = |rest: &str| {
            let end = rest[1..].trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '#');
            end.starts_with(';') && !rest.starts_with("&amp;") && !rest.starts_with("&#38;")
        };
        // No address is longer.
        let near = &text[..text.floor_char_boundary(4 * address::MAX_ADDRESS)];
        let entity = near.match_indices('&').find(|(at, _)| is_entity(&near[*at..]));
        entity.map_or(text, |(at, _)| &text[..at])
    }

    /// The end of the address without a backslash that breaks the line after it. `None` if there is no such backslash.
    fn ended_by_break(&self, end: usize) -> Option<usize> {
        let is_break = self.text[end..].starts_with(['\n', '\r']) && self.text[..end].ends_with('\\');
        is_break.then(|| end - 1)
    }

    /// The position of the first closing delimiter after `start` that non-ASCII text follows: `**https://a.example**へ`.
    /// An address doesn't extend past it. `None` if there is no such delimiter.
    fn closed_before_text(&self, start: usize) -> Option<usize> {
        let is_followed = |at: usize| self.text[at..].starts_with(|c: char| !c.is_ascii());
        let ends = |delimiter: &&Range<usize>| start < delimiter.start && is_followed(delimiter.end);
        self.closing.iter().take(MAX_NESTING).filter(ends).map(|delimiter| delimiter.start).min()
    }

    fn add(&mut self, range: Range<usize>) {
        for (at, c) in self.text[range.clone()].char_indices() {
            if let Some(place) = self.markup.iter().position(|markup| *markup == c) {
                self.found.push((range.start + at, SHIELDS[place]));
            }
        }
    }
}

/// The delimiter that closes an element, if it has one.
fn delimiter(tag: TagEnd, end: usize) -> Option<Range<usize>> {
    let length = match tag {
        TagEnd::Emphasis => 1,
        TagEnd::Strong | TagEnd::Strikethrough => 2,
        _ => return None,
    };
    Some(end - length..end)
}
