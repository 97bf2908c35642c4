//! Repairs JSON that a parser would reject because of invalid characters: lone surrogates, which JavaScript leaves where it
//! truncates a string, and bytes that aren't UTF-8.

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The JSON with U+FFFD for each lone surrogate. `None` if it has none, or isn't UTF-8.
#[must_use]
pub fn mended(json: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(json).ok()?;
    let (mut mend, mut out) = (Mend::default(), Vec::with_capacity(json.len()));
    mend.pass(json, &mut out);
    (mend.replaced() > 0).then_some(out)
}

/// Repairs JSON as a stream, chunk by chunk.
#[derive(Debug, Default)]
pub struct Mend {
    /// An incomplete escape or character, perhaps after the first half of a surrogate pair that the escape may complete.
    held: Vec<u8>,
    replaced: u64,
}

/// The decision about the first bytes of [`Mend::held`]: wait for more, or pass or replace this number of bytes.
enum Fate {
    Waits,
    Passes(usize),
    IsReplaced(usize),
}

impl Mend {
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    pub fn pass(&mut self, mut json: &[u8], out: &mut Vec<u8>) {
        while let Some((first, rest)) = json.split_first() {
            if self.held.is_empty() {
                let plain = json.iter().position(|byte| !byte.is_ascii() || *byte == b'\\').unwrap_or(json.len());
                out.extend_from_slice(&json[..plain]);
                json = &json[plain..];
                if plain > 0 {
                    continue;
                }
            }
            self.push(*first, out);
            json = rest;
        }
    }

    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.held.push(byte);
        let done = match fate(&self.held) {
            Fate::Waits => return,
            Fate::Passes(done) => {
                out.extend_from_slice(&self.held[..done]);
                done
            }
            Fate::IsReplaced(done) => {
                out.extend_from_slice(REPLACEMENT);
                self.replaced += 1;
                done
            }
        };
        let rest = self.held.split_off(done);
        self.held.clear();
        self.pass(&rest, out);
    }
}

fn fate(held: &[u8]) -> Fate {
    if held[0] != b'\\' {
        return match std::str::from_utf8(held) {
            Ok(_) => Fate::Passes(held.len()),
            Err(error) => error.error_len().map_or(Fate::Waits, Fate::IsReplaced),
        };
    }
    match held {
        [_] | [_, b'u', ..] if held.len() < 6 => Fate::Waits,
        [_, b'u', digits @ ..] => match (unit(digits), &digits[4..]) {
            (0xd800..0xdc00, [] | [b'\\'] | [b'\\', b'u', ..]) if held.len() < 12 => Fate::Waits,
            (0xd800..0xdc00, [b'\\', b'u', other @ ..]) if (0xdc00..0xe000).contains(&unit(other)) => Fate::Passes(12),
            (0xd800..0xe000, _) => Fate::IsReplaced(6),
            _ => Fate::Passes(6),
        },
        _ => Fate::Passes(2),
    }
}

/// The value of the first four hexadecimal digits, or 0 if there are fewer.
fn unit(digits: &[u8]) -> u32 {
    let digits = digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(json: &[u8]) -> (String, u64) {
        let (mut mend, mut out) = (Mend::default(), Vec::new());
        json.chunks(5).for_each(|chunk| mend.pass(chunk, &mut out));
        (String::from_utf8(out).unwrap(), mend.replaced())
    }

    #[test]
    fn unpaired_surrogates_become_the_replacement_character() {
        for (json, expected, halves) in [
            (r#"{"a\\ud83d":"\ud83d\ude00 \"\n\u00e9 é😀"}"#, r#"{"a\\ud83d":"\ud83d\ude00 \"\n\u00e9 é😀"}"#, 0),
            (r#"["\ud83d"]"#, r#"["�"]"#, 1),
            (r#"["\uDE00x\uD83D\\"]"#, r#"["�x�\\"]"#, 2),
            (r#"["\ud83d\ud83d\ude00\ud83d\u0041\ud83d\n"]"#, r#"["�\ud83d\ude00�\u0041�\n"]"#, 3),
            (r#"["\u12"]"#, r#"["\u12"]"#, 0),
        ] {
            assert_eq!(passed(json.as_bytes()), (expected.to_owned(), halves), "{json}");
            assert_eq!(mended(json.as_bytes()), (halves > 0).then(|| expected.as_bytes().to_vec()), "{json}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced_when_a_file_is_read() {
        assert_eq!(passed(b"\"caf\xe9 \xf0\x9f\x98\x80 \xf0\x9f\x98\""), ("\"caf� 😀 �\"".to_owned(), 2));
        assert_eq!(mended(b"\"caf\xe9 \\ud83d\""), None);
    }
}
