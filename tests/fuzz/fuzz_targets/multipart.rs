//! Fuzzes uploads. The input is a line with the content type, then the body. The extracted file must be part of the
//! body and no larger than allowed.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use media::multipart::read_file;

const MAX: u64 = 4_096;

fuzz_target!(|data: &[u8]| {
    let line = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (kind, body) = (std::str::from_utf8(&data[..line]).ok(), data.get(line + 1..).unwrap_or_default());
    let read = fuzz::runtime().block_on(read_file(kind, Bytes::copy_from_slice(body), MAX));
    if let Ok(file) = read {
        assert!(file.len() as u64 <= MAX && body.windows(file.len().max(1)).any(|part| part == file));
    }
});
