//! Writes blocks as Markdown.

use std::ops::Range;

use shared::domain::address;

use super::block::{Block, Inline};

pub(super) fn write(blocks: &[Block], is_careful: bool) -> String {
    MarkdownRenderer { is_careful, is_linked: false, is_in_cell: false }.blocks(blocks)
}

#[derive(Clone, Copy)]
struct MarkdownRenderer {
    /// Whether to avoid tables, and to escape every character that can be escaped.
    is_careful: bool,
    /// Whether the output is inside the text of a link.
    is_linked: bool,
    /// Whether the output is inside a table cell, which a `|` would end.
    is_in_cell: bool,
}

impl MarkdownRenderer {
    fn blocks(self, blocks: &[Block]) -> String {
        let written: Vec<String> = blocks.iter().map(|block| self.block(block)).collect();
        written.join("\n\n")
    }

    fn block(self, block: &Block) -> String {
        match block {
            Block::Paragraph(inlines) => self.inlines(inlines),
            Block::Heading(level, inlines) => {
                format!("{} {}", "#".repeat(*level), with_final_sign(self.inlines(inlines)))
            }
            Block::Quote(blocks) => prefixed(&self.blocks(blocks), "> ", "> "),
            Block::List { start, items } => self.list(*start, items),
            Block::Code { language, text } => {
                let fence = fence(text, 3);
                format!("{fence}{language}\n{text}\n{fence}")
            }
            Block::Table(rows) if self.is_careful => {
                let rows = rows.iter().map(|row| self.cells(row).join(" "));
                rows.collect::<Vec<_>>().join("\n\n")
            }
            Block::Table(rows) => Self { is_in_cell: true, ..self }.table(rows),
            Block::Rule => "***".to_owned(),
        }
    }

    fn cells(self, row: &[Vec<Inline>]) -> Vec<String> {
        row.iter().map(|cell| self.inlines(cell)).collect()
    }

    fn table(self, rows: &[Vec<Vec<Inline>>]) -> String {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let mut lines: Vec<String> = rows.iter().map(|row| line(self.cells(row))).collect();
        let columns = rows.first().map_or(0, Vec::len);
        lines.insert(1, line(vec!["---".to_owned(); columns]));
        lines.join("\n")
    }

    fn list(self, start: Option<u64>, items: &[Vec<Block>]) -> String {
        let mut written = Vec::with_capacity(items.len());
        for (number, item) in (start.unwrap_or_default()..).zip(items) {
            let mark = if start.is_some() { format!("{number}. ") } else { "- ".to_owned() };
            written.push(prefixed(&self.blocks(item), &mark, &" ".repeat(mark.len())));
        }
        let is_tight = items.iter().all(|item| item.len() == 1);
        written.join(if is_tight { "\n" } else { "\n\n" })
    }

    fn inlines(self, inlines: &[Inline]) -> String {
        let mut out = String::new();
        for inline in inlines {
            self.inline(&mut out, inline);
        }
        out
    }

    fn inline(self, out: &mut String, inline: &Inline) {
        match inline {
            Inline::Text(text) => self.text(out, text),
            Inline::Code(code) if self.is_in_cell => push_code(out, &code.replace('|', "\\|")),
            Inline::Code(code) => push_code(out, code),
            Inline::Marked(mark, content) => out.extend([*mark, &self.inlines(content), mark]),
            Inline::Link { address, content } if is_autolink(address, content) => out.extend(["<", address, ">"]),
            Inline::Link { address, content } => {
                let content = Self { is_linked: true, ..self }.inlines(content);
                out.extend(["[", &content, "](", &destination(address), ")"]);
            }
            Inline::Image { address, text } => {
                let mut alt = String::new();
                self.escaped(&mut alt, text);
                out.extend(["![", &alt, "](", &destination(address), ")"]);
            }
            Inline::Break => out.push_str("\\\n"),
        }
    }

    /// Adds text, and escapes anything in it that would be markup. Outside links, and unless `is_careful` is set,
    /// doesn't escape addresses, which contain no markup, because a backslash in them would be visible.
    fn text(self, out: &mut String, text: &str) {
        let is_bare = !self.is_careful && !self.is_linked;
        let addresses = if is_bare { address::find(text) } else { Vec::new() };
        let mut written = 0;
        for Range { start, end } in addresses {
            if start == 0 && out.ends_with(address::joins) {
                continue;
            }
            self.escaped(out, &text[written..start]);
            let after = text[end..].trim_start_matches(address::trails);
            written = text.len() - after.strip_prefix('<').unwrap_or(after).len();
            out.push_str(&text[start..written]);
        }
        self.escaped(out, &text[written..]);
    }

    fn escaped(self, out: &mut String, text: &str) {
        let mut rest = text.chars().peekable();
        let mut before = out.chars().next_back();
        let mut at_line_start = matches!(before, None | Some('\n'));
        let mut number = at_line_start;
        while let Some(c) = rest.next() {
            let next = rest.peek().copied();
            let special = match c {
                '\\' | '`' | '*' | '[' | ']' | '<' => true,
                '_' => !(is_word(before) && is_word(next)),
                '&' => next.is_some_and(|next| next == '#' || next.is_ascii_alphanumeric()),
                '!' => next.is_none(),
                '~' => at_line_start || before == Some('~') || matches!(next, None | Some('~')),
                // The delimiter row of a table begins with `|`, `:` or `-`.
                '#' | '>' | '+' | '-' | '=' | ':' => at_line_start,
                '|' => at_line_start || self.is_in_cell,
                '.' | ')' => number && before.is_some_and(|before| before.is_ascii_digit()),
                _ => false,
            };
            if special || (self.is_careful && c.is_ascii_punctuation()) {
                out.push('\\');
            }
            out.push(c);
            number &= c.is_ascii_digit();
            at_line_start = false;
            before = Some(c);
        }
    }
}

/// Escapes a final `#`, which would otherwise close the heading.
fn with_final_sign(text: String) -> String {
    let Some(before) = text.strip_suffix('#') else { return text };
    let backslashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if backslashes % 2 == 0 { format!("{before}\\#") } else { text }
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}

fn prefixed(text: &str, first: &str, other: &str) -> String {
    let lines = text.split('\n').enumerate().map(|(index, line)| {
        let prefix = if index == 0 { first } else { other };
        if line.is_empty() { prefix.trim_end().to_owned() } else { format!("{prefix}{line}") }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A fence of at least `least` backticks, which is longer than any run of backticks in `text`.
fn fence(text: &str, least: usize) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(least.max(longest + 1))
}

fn push_code(out: &mut String, code: &str) {
    let fence = fence(code, 1);
    let space = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    out.extend([&fence, space, code, space, &fence]);
}

fn is_autolink(address: &str, content: &[Inline]) -> bool {
    let is_plain =
        !address.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '&' | '\\'));
    let is_web = address.starts_with("http://") || address.starts_with("https://");
    is_web && is_plain && matches!(content, [Inline::Text(text)] if text == address)
}

fn destination(address: &str) -> String {
    let is_plain = address.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#@!$+,;=%".contains(&byte));
    if is_plain {
        return address.to_owned();
    }
    let escape = |c| matches!(c, '<' | '>' | '\\' | '&').then_some('\\').into_iter().chain([c]);
    format!("<{}>", address.chars().flat_map(escape).collect::<String>())
}
