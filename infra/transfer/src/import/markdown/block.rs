//! Turns HTML into the elements of Markdown: blocks, with inline content in them.

use shared::domain::markdown::MAX_NESTING;
use url::Url;

use super::tree::{self, Element, Node};

#[derive(Debug, PartialEq)]
pub(super) enum Block {
    Paragraph(Vec<Inline>),
    Heading(usize, Vec<Inline>),
    Quote(Vec<Block>),
    List {
        /// The first number of an ordered list.
        start: Option<u64>,
        items: Vec<Vec<Block>>,
    },
    Code {
        language: String,
        text: String,
    },
    /// The cells of each row. The first row is the head, and no other row is longer.
    Table(Vec<Vec<Vec<Inline>>>),
    Rule,
}

#[derive(Debug, PartialEq)]
pub(super) enum Inline {
    /// Text without line feeds.
    Text(String),
    Code(String),
    /// Emphasized or struck-through text, and the mark around it in Markdown.
    Marked(&'static str, Vec<Inline>),
    Link {
        address: String,
        content: Vec<Inline>,
    },
    Image {
        address: String,
        text: String,
    },
    Break,
}

pub(super) fn blocks(nodes: &[Node], has_emphasis: bool) -> Vec<Block> {
    let place = Place { depth: 0, has_emphasis };
    let mut reader = BlockReader { place, ..BlockReader::default() };
    reader.nodes(nodes);
    reader.finish()
}

#[derive(Default)]
struct BlockReader {
    blocks: Vec<Block>,
    /// The paragraph that is being read.
    open: Vec<Inline>,
    place: Place,
}

#[derive(Clone, Copy, Default)]
struct Place {
    /// Levels of quotes, lists, emphasis and links around the current node.
    depth: usize,
    /// Whether emphasis is kept, not only its text.
    has_emphasis: bool,
}

impl Place {
    fn may_nest(self) -> bool {
        self.depth < MAX_NESTING
    }

    fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl BlockReader {
    fn finish(mut self) -> Vec<Block> {
        self.end_paragraph();
        self.blocks
    }

    fn end_paragraph(&mut self) {
        let inlines = trimmed(std::mem::take(&mut self.open));
        if !inlines.is_empty() {
            self.blocks.push(Block::Paragraph(inlines));
        }
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Text(text) => push_text(&mut self.open, text),
                Node::Element(element) => self.element(element),
            }
        }
    }

    fn element(&mut self, element: &Element) {
        match element.name.as_str() {
            "script" | "style" => {}
            "blockquote" if self.place.may_nest() => {
                let inside = self.inside(&element.children);
                self.push((!inside.is_empty()).then_some(Block::Quote(inside)));
            }
            "ul" | "ol" if self.place.may_nest() => {
                let list = self.list(element);
                self.push(list);
            }
            "pre" | "xmp" if !tree::has_links(&element.children) => self.push(code_block(element)),
            // Code in Markdown can't contain links or images, so this code becomes ordinary text.
            "pre" | "xmp" => {
                self.end_paragraph();
                self.nodes(&tree::with_breaks_and_links(element.children.clone(), false));
                self.end_paragraph();
            }
            "code" if has_lines(element) => self.push(code_block(element)),
            "hr" => self.push(Some(Block::Rule)),
            "table" if let Some(rows) = self.table(element) => self.push(Some(Block::Table(rows))),
            "td" | "th" => {
                push_text(&mut self.open, " ");
                self.nodes(&element.children);
            }
            "br" if self.ends_with_break() => self.end_paragraph(),
            name if let Some(level) = heading_level(name) => self.heading(level, element),
            name if tree::is_block(name) => {
                self.end_paragraph();
                self.nodes(&element.children);
                self.end_paragraph();
            }
            name if name != "a" && has_block(&element.children) => self.nodes(&element.children),
            _ => inline(&mut self.open, element, self.place),
        }
    }

    /// Whether the open paragraph ends with a break. Another break then ends the paragraph.
    fn ends_with_break(&self) -> bool {
        let mut before =
            self.open.iter().rev().skip_while(|inline| matches!(inline, Inline::Text(text) if text.trim().is_empty()));
        before.next() == Some(&Inline::Break)
    }

    fn push(&mut self, block: Option<Block>) {
        self.end_paragraph();
        self.blocks.extend(block);
    }

    fn inside(&self, nodes: &[Node]) -> Vec<Block> {
        let mut reader = Self { place: self.place.inside(), ..Self::default() };
        reader.nodes(nodes);
        reader.finish()
    }

    /// Content outside of an item becomes an item.
    fn list(&self, element: &Element) -> Option<Block> {
        let mut items = Vec::new();
        for node in &element.children {
            let item = match node {
                Node::Element(child) if child.name == "li" => self.inside(&child.children),
                node => self.inside(std::slice::from_ref(node)),
            };
            if !item.is_empty() {
                items.push(item);
            }
        }
        let start = (element.name == "ol").then(|| {
            let start = element.attribute("start").and_then(|start| start.trim().parse().ok());
            start.filter(|start| *start <= 999_999_999).unwrap_or(1)
        });
        (!items.is_empty()).then_some(Block::List { start, items })
    }

    /// The rows of a table. `None` if Markdown can't express it, for example because it has no head or a cell has
    /// several lines.
    fn table(&self, element: &Element) -> Option<Vec<Vec<Vec<Inline>>>> {
        let mut rows = Vec::new();
        table_rows(&element.children, &mut rows)?;
        let head = rows.first()?.clone();
        let has_head = head.iter().all(|cell| cell.name == "th") && !head.is_empty();
        if !has_head || rows.iter().any(|row| row.len() > head.len()) {
            return None;
        }
        let cell = |cell: &&Element| {
            let inlines = trimmed(inlines(&cell.children, self.place));
            (!has_block(&cell.children) && !inlines.contains(&Inline::Break)).then_some(inlines)
        };
        rows.iter().map(|row| row.iter().map(cell).collect()).collect()
    }

    fn heading(&mut self, level: usize, element: &Element) {
        self.end_paragraph();
        if has_block(&element.children) {
            return self.nodes(&element.children);
        }
        let mut inlines = trimmed(inlines(&element.children, self.place));
        remove_breaks(&mut inlines);
        self.push((!inlines.is_empty()).then_some(Block::Heading(level, inlines)));
    }
}

/// Collects the cells of each row. `None` if the table contains anything else.
fn table_rows<'a>(nodes: &'a [Node], rows: &mut Vec<Vec<&'a Element>>) -> Option<()> {
    for element in elements(nodes)? {
        match element.name.as_str() {
            "thead" | "tbody" | "tfoot" => table_rows(&element.children, rows)?,
            "tr" => {
                let cells = elements(&element.children)?;
                cells.iter().all(|cell| matches!(cell.name.as_str(), "td" | "th")).then(|| rows.push(cells))?;
            }
            _ => return None,
        }
    }
    Some(())
}

/// The elements among the nodes. `None` if there is text other than white space.
fn elements(nodes: &[Node]) -> Option<Vec<&Element>> {
    let mut elements = Vec::new();
    for node in nodes {
        match node {
            Node::Element(element) => elements.push(element),
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Text(_) => return None,
        }
    }
    Some(elements)
}

/// Replaces breaks with spaces, since a heading is a single line.
fn remove_breaks(inlines: &mut [Inline]) {
    for inline in inlines {
        match inline {
            Inline::Break => *inline = Inline::Text(" ".to_owned()),
            Inline::Marked(_, content) | Inline::Link { content, .. } => remove_breaks(content),
            _ => {}
        }
    }
}

fn heading_level(name: &str) -> Option<usize> {
    ["h1", "h2", "h3", "h4", "h5", "h6"].iter().position(|each| *each == name).map(|index| index + 1)
}

fn has_block(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(_) => false,
        Node::Element(element) => tree::is_block(&element.name) || has_lines(element) || has_block(&element.children),
    })
}

/// Whether this is code with several lines, which other systems show as a block, and without links or images.
fn has_lines(element: &Element) -> bool {
    element.name == "code" && !tree::has_links(&element.children) && tree::code(element).trim().contains(['\n', '\r'])
}

fn code_block(element: &Element) -> Option<Block> {
    let text = tree::code(element).replace("\r\n", "\n").replace('\r', "\n");
    let text = text.trim_end().trim_start_matches('\n').to_owned();
    let inner = element.children.iter().find_map(|node| match node {
        Node::Element(child) if child.name == "code" => child.attribute("class"),
        _ => None,
    });
    let classes = inner.or_else(|| element.attribute("class")).unwrap_or_default();
    let language = classes.split_whitespace().find_map(|class| class.strip_prefix("language-")).unwrap_or_default();
    let is_plain = language.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-#_".contains(&byte));
    let language = if is_plain { language.to_owned() } else { String::new() };
    (!text.trim().is_empty()).then_some(Block::Code { language, text })
}

fn inlines(nodes: &[Node], place: Place) -> Vec<Inline> {
    let mut out = Vec::new();
    each_inline(&mut out, nodes, place);
    out
}

fn each_inline(out: &mut Vec<Inline>, nodes: &[Node], place: Place) {
    for node in nodes {
        match node {
            Node::Text(text) => push_text(out, text),
            Node::Element(element) => inline(out, element, place),
        }
    }
}

fn inline(out: &mut Vec<Inline>, element: &Element, place: Place) {
    let may_nest = place.may_nest();
    let may_mark = may_nest && place.has_emphasis;
    let content = || inlines(&element.children, place.inside());
    match element.name.as_str() {
        "script" | "style" => {}
        "br" => out.push(Inline::Break),
        "b" | "strong" if may_mark => wrap(out, content(), |content| Inline::Marked("**", content)),
        "i" | "em" | "cite" | "dfn" if may_mark => wrap(out, content(), |content| Inline::Marked("*", content)),
        "del" | "s" | "strike" if may_mark => wrap(out, content(), |content| Inline::Marked("~~", content)),
        "code" | "tt" | "kbd" | "samp" if !tree::has_links(&element.children) => {
            // If a block isn't possible, such as in a link, each line becomes a code span.
            for (index, line) in tree::code(element).trim().lines().enumerate() {
                if index > 0 {
                    out.push(Inline::Break);
                }
                push_code(out, collapsed(line).trim());
            }
        }
        "a" if may_nest => link(out, element, content()),
        "img" => image(out, element),
        name if tree::is_block(name) => {
            out.push(Inline::Break);
            each_inline(out, &element.children, place);
            out.push(Inline::Break);
        }
        _ => each_inline(out, &element.children, place),
    }
}

/// Adds a code span. Merges it with a code span right before it, because their marks would run together.
fn push_code(out: &mut Vec<Inline>, code: &str) {
    match out.last_mut() {
        Some(Inline::Code(before)) => before.push_str(code),
        _ if code.is_empty() => {}
        _ => out.push(Inline::Code(code.to_owned())),
    }
}

/// Wraps content in an inline element. Moves white space at the content's ends out of the element, because Markdown
/// allows none just inside the marks.
fn wrap(out: &mut Vec<Inline>, content: Vec<Inline>, kind: impl FnOnce(Vec<Inline>) -> Inline) {
    let starts_with_space = matches!(content.first(), Some(Inline::Text(text)) if text.starts_with(' '));
    let ends_with_space = matches!(content.last(), Some(Inline::Text(text)) if text.ends_with(' '));
    let ends_with_break = content.last() == Some(&Inline::Break);
    if starts_with_space {
        push_text(out, " ");
    }
    let content = trimmed(content);
    if !content.is_empty() {
        out.push(kind(content));
    }
    if ends_with_space {
        push_text(out, " ");
    }
    if ends_with_break {
        out.push(Inline::Break);
    }
}

fn link(out: &mut Vec<Inline>, element: &Element, content: Vec<Inline>) {
    let address = element.attribute("href").and_then(|href| allowed(href, &["http", "https", "mailto"]));
    match address {
        Some(address) => {
            let address = behind_disqus(&address).unwrap_or(address);
            wrap(out, content, |content| Inline::Link { address, content });
        }
        None => out.extend(content),
    }
}

/// The target of a link through the click counter of Disqus: `https://disq.us/url?url=ADDRESS%3ASIGNATURE`. Earlier
/// comments have `//disq.us`, `http://redirect.disqus.com` or `http://disq.us/?url=ADDRESS&key=KEY`.
fn behind_disqus(address: &str) -> Option<String> {
    let url = Url::parse(address).or_else(|_| Url::parse(&format!("https:{address}"))).ok()?;
    if !matches!(url.host_str(), Some("disq.us" | "redirect.disqus.com")) || !matches!(url.path(), "/url" | "/") {
        return None;
    }
    let (_, signed) = url.query_pairs().find(|(name, _)| name == "url")?;
    let (target, signature) = signed.rsplit_once(':')?;
    let is_signature = url.path() == "/url" && !signature.is_empty() && !signature.contains('/');
    allowed(if is_signature { target } else { &signed }, &["http", "https"])
}

fn image(out: &mut Vec<Inline>, element: &Element) {
    let text = collapsed(element.attribute("alt").unwrap_or_default()).trim().to_owned();
    match element.attribute("src").and_then(|src| allowed(src, &["http", "https"])) {
        Some(address) => out.push(Inline::Image { address, text }),
        None => push_text(out, &text),
    }
}

/// The address, if our renderer links it: a relative address, or one with an allowed scheme. Removes white space around
/// it, and line breaks and tabs in it, as browsers do.
fn allowed(address: &str, schemes: &[&str]) -> Option<String> {
    let address: String = address.trim().chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
    let scheme =
        address.find([':', '/', '?', '#']).filter(|end| address[*end..].starts_with(':')).map(|end| &address[..end]);
    let fits = scheme.is_none_or(|scheme| schemes.iter().any(|each| each.eq_ignore_ascii_case(scheme)));
    (fits && !address.is_empty() && !address.contains(char::is_control)).then_some(address)
}

/// Adds text with its white space collapsed, including where it meets the text before it.
fn push_text(out: &mut Vec<Inline>, text: &str) {
    let text = collapsed(text);
    match out.last_mut() {
        Some(Inline::Text(before)) if before.ends_with(' ') => before.push_str(text.trim_start_matches(' ')),
        Some(Inline::Text(before)) => before.push_str(&text),
        _ if text.is_empty() => {}
        _ => out.push(Inline::Text(text)),
    }
}

/// Collapses the characters that HTML treats as white space, which excludes no-break spaces. Drops control characters.
fn collapsed(text: &str) -> String {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_space(c) {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !c.is_control() {
            out.push(c);
        }
    }
    out
}

/// Removes white space and breaks at both ends, white space around breaks, and repeated breaks.
fn trimmed(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut out: Vec<Inline> = Vec::with_capacity(inlines.len());
    for inline in inlines {
        let at_start = matches!(out.last(), None | Some(Inline::Break));
        match inline {
            Inline::Break => {
                trim_end(&mut out);
                if !matches!(out.last(), None | Some(Inline::Break)) {
                    out.push(Inline::Break);
                }
            }
            Inline::Text(text) if at_start => {
                let text = text.trim_start_matches(' ');
                if !text.is_empty() {
                    out.push(Inline::Text(text.to_owned()));
                }
            }
            other => out.push(other),
        }
    }
    while trim_end(&mut out) || out.pop_if(|last| *last == Inline::Break).is_some() {}
    out
}

/// Trims the end of the last text, and removes the text if nothing is left. Returns whether it was removed.
fn trim_end(out: &mut Vec<Inline>) -> bool {
    if let Some(Inline::Text(text)) = out.last_mut() {
        text.truncate(text.trim_end_matches(' ').len());
    }
    out.pop_if(|last| matches!(last, Inline::Text(text) if text.is_empty())).is_some()
}
