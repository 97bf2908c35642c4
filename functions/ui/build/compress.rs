//! Compression at build time. It takes longer than that of an answer, and saves a twentieth.

use std::io;

use zopfli::{Format, Options};

pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    zopfli::compress(Options::default(), Format::Gzip, bytes, &mut compressed)?;
    Ok(compressed)
}
