//! Bounds the memory of parsers. Values that are too long are cut before a parser sees them, and the bytes of each record are
//! counted.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use shared::domain::mend::Mend;

/// The most bytes of a value, as written. No person typed a longer one.
pub(super) const MAX_VALUE: usize = 1 << 20;
/// The most bytes of a record, which is in memory as a whole.
pub(super) const MAX_RECORD: u64 = 16 << 20;

/// The syntax of a text, which determines where its values end.
#[derive(Clone, Copy, Debug)]
pub enum Syntax {
    Json,
    /// JSON from an export of this service, which needs no mending.
    Native,
    Xml,
}

/// Problems found while a record was read.
#[derive(Clone, Debug)]
pub struct Watch {
    cut: Rc<Cell<bool>>,
    /// Bytes dropped from the text.
    dropped: Rc<Cell<u64>>,
    /// How often U+FFFD replaced bytes that aren't a character.
    replaced: Rc<Cell<u64>>,
    /// Bytes that the current record has left.
    room: Rc<Cell<u64>>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { cut: Rc::default(), dropped: Rc::default(), replaced: Rc::default(), room: Rc::new(Cell::new(u64::MAX)) }
    }
}

impl Watch {
    /// Begins a record and bounds its size. The next cut belongs to this record, because a value that is cut is far longer
    /// than the read-ahead buffer.
    pub fn begin(&self) {
        self.cut.set(false);
        self.room.set(MAX_RECORD);
    }

    /// Ends the record. Returns whether one of its values was cut.
    pub fn end(&self) -> bool {
        self.room.set(u64::MAX);
        self.cut.take()
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    pub(super) fn replace(&self, times: u64) {
        self.replaced.set(self.replaced.get() + times);
    }

    pub(super) fn replaced(&self) -> u64 {
        self.replaced.get()
    }

    pub(super) fn pass(&self, bytes: usize) -> io::Result<()> {
        let room = self.room.get();
        if room == u64::MAX {
            return Ok(());
        }
        let left = room.checked_sub(bytes as u64);
        self.room.set(left.ok_or_else(|| io::Error::other(format!("a record has more than {} MB", MAX_RECORD >> 20)))?);
        Ok(())
    }

    fn drop_byte(&self) {
        self.cut.set(true);
        self.dropped.set(self.dropped.get() + 1);
    }
}

/// Copies a text, without the excess of values that are too long.
#[derive(Debug)]
pub enum Scan {
    Plain,
    Json(Mend, Json),
    Native(Json),
    Xml(Xml),
}

impl Scan {
    pub fn of(syntax: Syntax) -> Self {
        match syntax {
            Syntax::Json => Self::Json(Mend::default(), Json::default()),
            Syntax::Native => Self::Native(Json::default()),
            Syntax::Xml => Self::Xml(Xml::default()),
        }
    }

    pub fn pass(&mut self, chunk: &[u8], out: &mut Vec<u8>, watch: &Watch) -> io::Result<()> {
        match self {
            Self::Plain => out.extend_from_slice(chunk),
            Self::Json(mend, json) => {
                let mut mended = Vec::with_capacity(chunk.len());
                let before = mend.replaced();
                mend.pass(chunk, &mut mended);
                watch.replace(mend.replaced() - before);
                for byte in mended {
                    json.pass(byte, out, watch);
                }
            }
            Self::Native(json) => chunk.iter().for_each(|byte| json.pass(*byte, out, watch)),
            Self::Xml(xml) => return chunk.iter().try_for_each(|byte| xml.pass(*byte, out, watch)),
        }
        Ok(())
    }
}

/// Bounds the strings in JSON.
#[derive(Debug, Default)]
pub struct Json {
    is_string: bool,
    length: usize,
    unit: Unit,
    is_cut: bool,
}

/// Parser state within one character of a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    #[default]
    Whole,
    Backslash,
    /// The remaining digits of `\u`, and the number so far.
    Digits(u8, u32),
    /// After the first half of a surrogate pair.
    Half,
}

impl Unit {
    fn next(self, byte: u8) -> Self {
        match self {
            Self::Backslash if byte == b'u' => Self::Digits(4, 0),
            Self::Digits(left, number) => {
                let number = number << 4 | char::from(byte).to_digit(16).unwrap_or_default();
                match (left, number) {
                    (1, 0xD800..0xDC00) => Self::Half,
                    (1, _) => Self::Whole,
                    _ => Self::Digits(left - 1, number),
                }
            }
            Self::Whole | Self::Half if byte == b'\\' => Self::Backslash,
            Self::Backslash | Self::Whole | Self::Half => Self::Whole,
        }
    }
}

impl Json {
    fn pass(&mut self, byte: u8, out: &mut Vec<u8>, watch: &Watch) {
        if !self.is_string {
            *self = Self { is_string: byte == b'"', ..Self::default() };
            return out.push(byte);
        }
        if byte == b'"' && matches!(self.unit, Unit::Whole | Unit::Half) {
            self.is_string = false;
            return out.push(byte);
        }
        // Cuts only between two characters.
        let may_end = self.unit == Unit::Whole && byte & 0xC0 != 0x80;
        self.is_cut |= self.length >= MAX_VALUE && may_end;
        self.unit = self.unit.next(byte);
        if self.is_cut {
            return watch.drop_byte();
        }
        self.length += 1;
        out.push(byte);
    }
}

/// Bounds the text between XML tags, CDATA sections and comments.
#[derive(Debug, Default)]
pub struct Xml {
    part: Part,
    length: usize,
    /// Bytes of the end marker read so far: up to two of `]]>` or `-->`.
    ending: u8,
    /// The beginning of a tag.
    head: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Text,
    Tag,
    CData,
    Comment,
}

impl Xml {
    fn pass(&mut self, byte: u8, out: &mut Vec<u8>, watch: &Watch) -> io::Result<()> {
        match self.part {
            Part::Text if byte == b'<' => {
                self.begin(Part::Tag);
                self.head.push(byte);
                out.push(byte);
            }
            Part::Text => self.keep(byte, out, watch),
            Part::Tag => {
                if self.length > MAX_VALUE {
                    return Err(io::Error::other(format!("a tag has more than {} MB", MAX_VALUE >> 20)));
                }
                self.length += 1;
                out.push(byte);
                if self.head.len() < CDATA.len() {
                    self.head.push(byte);
                }
                match self.head.as_slice() {
                    COMMENT => self.begin(Part::Comment),
                    CDATA => self.begin(Part::CData),
                    _ if byte == b'>' => self.begin(Part::Text),
                    _ => {}
                }
            }
            Part::CData => self.until(b']', byte, out, watch),
            Part::Comment => self.until(b'-', byte, out, watch),
        }
        Ok(())
    }

    fn begin(&mut self, part: Part) {
        (self.part, self.length, self.ending) = (part, 0, 0);
        self.head.clear();
    }

    fn keep(&mut self, byte: u8, out: &mut Vec<u8>, watch: &Watch) {
        if self.length >= MAX_VALUE {
            return watch.drop_byte();
        }
        self.length += 1;
        out.push(byte);
    }

    /// Reads up to the end marker, which is two `end` bytes and `>`. The marker is never dropped.
    fn until(&mut self, end: u8, byte: u8, out: &mut Vec<u8>, watch: &Watch) {
        if byte == b'>' && self.ending == 2 {
            if self.length >= MAX_VALUE {
                out.extend([end, end]);
            }
            out.push(byte);
            return self.begin(Part::Text);
        }
        self.ending = if byte == end { (self.ending + 1).min(2) } else { 0 };
        self.keep(byte, out, watch);
    }
}

const COMMENT: &[u8] = b"<!--";
const CDATA: &[u8] = b"<![CDATA[";

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(syntax: Syntax, text: &str) -> (String, bool) {
        let (mut scan, mut out, watch) = (Scan::of(syntax), Vec::new(), Watch::default());
        for chunk in text.as_bytes().chunks(7) {
            scan.pass(chunk, &mut out, &watch).unwrap();
        }
        let is_shorter = watch.dropped() > 0;
        let is_cut = watch.end();
        assert_eq!(is_cut, is_shorter);
        (String::from_utf8(out).unwrap(), is_cut)
    }

    #[test]
    fn values_of_ordinary_length_are_passed_as_they_are() {
        for text in [r#"{"a\"b":["\ud83d\ude00\\","é",1],"c":""}"#, "no JSON \" at all \\ "] {
            assert_eq!(scanned(Syntax::Json, text), (text.to_owned(), false));
        }
        for text in ["<a b='>'>x]]&gt;<![CDATA[<b>]]]]></a><!-- <c> -- > --><d/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>"]
        {
            assert_eq!(scanned(Syntax::Xml, text), (text.to_owned(), false));
        }
    }

    #[test]
    fn a_long_string_is_cut_between_two_characters() {
        let long = MAX_VALUE + 100;
        for unit in ["a", "é", "😀", "\\n", "\\\"", "\\u00e9", "\\ud83d\\ude00", "x\\\\"] {
            let text = format!(r#"{{"a":"{}","b":"after"}}"#, unit.repeat(long / unit.len() + 1));
            let (cut, was_cut) = scanned(Syntax::Json, &text);
            let value: serde_json::Value = serde_json::from_str(&cut).unwrap_or_else(|error| panic!("{unit}: {error}"));
            assert!(was_cut && cut.len() < MAX_VALUE + 40 && value["b"] == "after", "{unit}");
        }
    }

    #[test]
    fn long_text_of_xml_is_cut_before_its_end() {
        let long = "ab]- ".repeat(MAX_VALUE / 4);
        for (start, end) in [("<a>", "</a>"), ("<a><![CDATA[", "]]></a>"), ("<a><!--", "--></a>")] {
            let (cut, was_cut) = scanned(Syntax::Xml, &format!("{start}{long}{end}"));
            assert!(
                was_cut && cut.len() < MAX_VALUE + 40 && cut.starts_with(start) && cut.ends_with("</a>"),
                "{start}"
            );
        }
    }
}
