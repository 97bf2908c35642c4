//! Decodes WebP. Nothing is encoded as WebP, because no maintained Rust encoder supports lossy compression. An
//! animation is reduced to its first frame.
//!
//! This module reads the container, and passes one bare frame to the decoder. Sizes are therefore checked before the
//! decoder allocates, and its animation code never runs.

use super::{Refused, as_seen, check_pixels, without_idle_alpha};
use image::{DynamicImage, RgbImage, RgbaImage, imageops};
use image_webp::WebPDecoder;
use std::io::Cursor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Lossy,
    Lossless,
}

pub(super) fn decode(bytes: &[u8]) -> Result<(DynamicImage, Coding), Refused> {
    let file = Container::read(bytes).ok_or(Refused::Damaged)?;
    let frame = file.frame.ok_or(Refused::Damaged)?;
    let (width, height) = file.canvas.unwrap_or(frame.size);
    check_pixels(width, height)?;
    check_pixels(frame.size.0, frame.size.1)?;
    let fits = frame.x.checked_add(frame.size.0).is_some_and(|right| right <= width)
        && frame.y.checked_add(frame.size.1).is_some_and(|bottom| bottom <= height);
    if !fits {
        return Err(Refused::Damaged);
    }

    let pixels = frame.decode()?;
    let pixels = if frame.size == (width, height) {
        pixels
    } else {
        let mut canvas = RgbaImage::new(width, height);
        imageops::replace(&mut canvas, &pixels.into_rgba8(), frame.x.into(), frame.y.into());
        canvas.into()
    };
    Ok((without_idle_alpha(as_seen(pixels, file.icc, file.exif)), frame.coding))
}

/// The chunks that make up a file's first picture.
#[derive(Default)]
struct Container<'a> {
    canvas: Option<(u32, u32)>,
    frame: Option<Frame<'a>>,
    icc: Option<&'a [u8]>,
    exif: Option<&'a [u8]>,
}

impl<'a> Container<'a> {
    /// Returns `None` if the file or one of its chunks is cut short.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let size = usize::try_from(u32_at(bytes, 4)?).ok()?;
        let mut file = Self::default();
        let mut alpha = None;
        for chunk in Chunks(bytes.get(12..size.checked_add(8)?)?) {
            let (name, data) = chunk?;
            match name {
                b"VP8X" => file.canvas = Some((1 + u24_at(data, 4)?, 1 + u24_at(data, 7)?)),
                b"ICCP" => file.icc = file.icc.or(Some(data)),
                b"EXIF" => file.exif = file.exif.or(Some(data)),
                b"ALPH" => alpha = alpha.or(Some(data)),
                b"VP8 " | b"VP8L" if file.frame.is_none() => file.frame = Some(Frame::read(*name, data, alpha)?),
                b"ANMF" if file.frame.is_none() => file.frame = Some(Frame::read_animated(data)?),
                _ => {}
            }
        }
        Some(file)
    }
}

struct Frame<'a> {
    coding: Coding,
    size: (u32, u32),
    x: u32,
    y: u32,
    data: &'a [u8],
    alpha: Option<&'a [u8]>,
}

impl<'a> Frame<'a> {
    /// Reads the size from the coded data, because the decoder allocates that size.
    fn read(name: [u8; 4], data: &'a [u8], alpha: Option<&'a [u8]>) -> Option<Self> {
        let (coding, size) = if name == *b"VP8L" {
            let bits = u32_at(data, 1)?;
            (Coding::Lossless, (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)))
        } else {
            let sides = u32_at(data, 6)?;
            (Coding::Lossy, (sides & 0x3FFF, sides >> 16 & 0x3FFF))
        };
        let alpha = if coding == Coding::Lossy { alpha } else { None };
        Some(Self { coding, size, x: 0, y: 0, data, alpha })
    }

    fn read_animated(data: &'a [u8]) -> Option<Self> {
        let mut alpha = None;
        for chunk in Chunks(data.get(16..)?) {
            match chunk? {
                (b"ALPH", data) => alpha = Some(data),
                (name @ (b"VP8 " | b"VP8L"), coded) => {
                    let (x, y) = (2 * u24_at(data, 0)?, 2 * u24_at(data, 3)?);
                    return Self::read(*name, coded, alpha).map(|frame| Self { x, y, ..frame });
                }
                _ => {}
            }
        }
        None
    }

    fn decode(&self) -> Result<DynamicImage, Refused> {
        let bare = self.bare_file().ok_or(Refused::Damaged)?;
        let mut decoder = WebPDecoder::new(Cursor::new(bare)).map_err(|_| Refused::Damaged)?;
        let (width, height) = self.size;
        if decoder.dimensions() != self.size {
            return Err(Refused::Damaged);
        }
        let mut samples = vec![0; decoder.output_buffer_size().ok_or(Refused::Damaged)?];
        decoder.read_image(&mut samples).map_err(|_| Refused::Damaged)?;
        if decoder.has_alpha() {
            RgbaImage::from_raw(width, height, samples).map(DynamicImage::from)
        } else {
            RgbImage::from_raw(width, height, samples).map(DynamicImage::from)
        }
        .ok_or(Refused::Damaged)
    }

    /// Returns a still WebP file of this frame and nothing else.
    fn bare_file(&self) -> Option<Vec<u8>> {
        let mut body = b"WEBP".to_vec();
        if let Some(alpha) = self.alpha {
            let mut header = [0; 10];
            header[0] = 0x10;
            header[4..7].copy_from_slice(&(self.size.0 - 1).to_le_bytes()[..3]);
            header[7..].copy_from_slice(&(self.size.1 - 1).to_le_bytes()[..3]);
            push_chunk(&mut body, *b"VP8X", &header)?;
            push_chunk(&mut body, *b"ALPH", alpha)?;
        }
        let name = if self.coding == Coding::Lossy { *b"VP8 " } else { *b"VP8L" };
        push_chunk(&mut body, name, self.data)?;
        let mut file = Vec::with_capacity(body.len() + 8);
        push_chunk(&mut file, *b"RIFF", &body)?;
        Some(file)
    }
}

fn push_chunk(file: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> Option<()> {
    file.extend_from_slice(&name);
    file.extend_from_slice(&u32::try_from(data.len()).ok()?.to_le_bytes());
    file.extend_from_slice(data);
    if data.len() % 2 == 1 {
        file.push(0);
    }
    Some(())
}

/// Iterates over the names and contents of chunks. Yields `None` at a chunk that is cut short.
struct Chunks<'a>(&'a [u8]);

impl<'a> Iterator for Chunks<'a> {
    type Item = Option<(&'a [u8; 4], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let chunk = (|| {
            let (name, rest) = self.0.split_first_chunk::<4>()?;
            let (size, rest) = rest.split_first_chunk::<4>()?;
            let (data, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)?;
            // Some writers omit the last pad byte.
            Some((name, data, rest.get(data.len() % 2..).unwrap_or_default()))
        })();
        self.0 = chunk.map_or(&[], |(_, _, rest)| rest);
        Some(chunk.map(|(name, data, _)| (name, data)))
    }
}

fn u24_at(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..)?.first_chunk::<3>()?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]))
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}
