//! Decodes every kind of PNG, and encodes 8 bits per channel or a palette. An animated PNG is reduced to its still
//! image.

use super::{Format, Output, Picture, Refused, as_seen, check_pixels, without_idle_alpha};
use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};
use png::{BitDepth, ColorType, Compression, Decoder, Encoder, EncodingError, Limits, Transformations};
use std::io::{Cursor, Write};

/// Memory limit for the decoder, which holds rows and the color profile. This module allocates the pixels.
const DECODER_BYTES: usize = 16 << 20;
const CHUNK_BYTES: usize = 1 << 20;

pub(super) fn decode(bytes: &[u8]) -> Result<DynamicImage, Refused> {
    let limits = Limits { bytes: DECODER_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let header = decoder.read_header_info().map_err(|_| Refused::Damaged)?;
    let (width, height) = (header.width, header.height);
    check_pixels(width, height)?;

    let mut reader = decoder.read_info().map_err(|_| Refused::Damaged)?;
    let mut samples = vec![0; reader.output_buffer_size().ok_or(Refused::Damaged)?];
    let frame = reader.next_frame(&mut samples).map_err(|_| Refused::Damaged)?;
    // Reads up to the end chunk, so that a file cut short after its pixels is refused too.
    reader.finish().map_err(|_| Refused::Damaged)?;
    if (frame.width, frame.height, frame.bit_depth) != (width, height, BitDepth::Eight) {
        return Err(Refused::Damaged);
    }
    let pixels = match frame.color_type {
        ColorType::Grayscale => GrayImage::from_raw(width, height, samples).map(DynamicImage::from),
        ColorType::GrayscaleAlpha => GrayAlphaImage::from_raw(width, height, samples).map(DynamicImage::from),
        ColorType::Rgb => RgbImage::from_raw(width, height, samples).map(DynamicImage::from),
        ColorType::Rgba => RgbaImage::from_raw(width, height, samples).map(DynamicImage::from),
        ColorType::Indexed => None,
    };
    let info = reader.info();
    let pixels = as_seen(pixels.ok_or(Refused::Damaged)?, info.icc_profile.as_deref(), info.exif_metadata.as_deref());
    Ok(without_idle_alpha(pixels))
}

pub(super) fn encode(pixels: &DynamicImage) -> Result<Picture, Refused> {
    let (width, height) = (pixels.width(), pixels.height());
    let mut out = Output::default();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_compression(Compression::Balanced);
    let indexed = index(pixels);
    let samples = if let Some(indexed) = &indexed {
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(indexed.depth);
        encoder.set_palette(indexed.colours.iter().flat_map(|c| [c[0], c[1], c[2]]).collect::<Vec<_>>());
        if indexed.colours.iter().any(|c| c[3] != 255) {
            encoder.set_trns(indexed.colours.iter().map(|c| c[3]).collect::<Vec<_>>());
        }
        &indexed.samples
    } else {
        encoder.set_depth(BitDepth::Eight);
        encoder.set_color(match pixels {
            DynamicImage::ImageLuma8(_) => ColorType::Grayscale,
            DynamicImage::ImageLumaA8(_) => ColorType::GrayscaleAlpha,
            DynamicImage::ImageRgb8(_) => ColorType::Rgb,
            _ => ColorType::Rgba,
        });
        pixels.as_bytes()
    };
    write(encoder, samples).map_err(|_| Refused::Incompressible)?;
    Ok(Picture { bytes: out.0, format: Format::Png, width, height })
}

/// Encodes in chunks, so that the work stops once the result is too large.
fn write(encoder: Encoder<'_, &mut Output>, samples: &[u8]) -> Result<(), EncodingError> {
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer_with_size(CHUNK_BYTES)?;
    stream.write_all(samples)?;
    stream.finish()?;
    writer.finish()
}

struct Indexed {
    colours: Vec<[u8; 4]>,
    depth: BitDepth,
    samples: Vec<u8>,
}

pub(super) fn has_few_colours(pixels: &DynamicImage) -> bool {
    palette(pixels).is_some()
}

/// Converts to a palette if there are at most 256 colors, so that a palette image doesn't become larger. The palette is
/// in ascending order, so that the sender cannot arrange its bytes.
fn index(pixels: &DynamicImage) -> Option<Indexed> {
    let channels = usize::from(pixels.color().channel_count());
    let colours = palette(pixels)?;
    let (depth, bits) = match colours.len() {
        0..=2 => (BitDepth::One, 1),
        3..=4 => (BitDepth::Two, 2),
        5..=16 => (BitDepth::Four, 4),
        // An 8-bit gray image is no larger without a palette.
        _ if channels == 1 => return None,
        _ => (BitDepth::Eight, 8),
    };
    let width = pixels.width() as usize;
    let row_bytes = (width * bits).div_ceil(8);
    let mut samples = vec![0; row_bytes * pixels.height() as usize];
    let mut last = ([0; 4], 0);
    let rows = pixels.as_bytes().chunks_exact(width * channels);
    for (row, packed) in rows.zip(samples.chunks_exact_mut(row_bytes)) {
        for (x, colour) in row.chunks_exact(channels).map(rgba).enumerate() {
            if x == 0 || last.0 != colour {
                #[expect(clippy::cast_possible_truncation, reason = "at most 256 colours")]
                let place = colours.partition_point(|c| *c < colour) as u8;
                last = (colour, place);
            }
            packed[x * bits / 8] |= last.1 << (8 - bits - x * bits % 8);
        }
    }
    Some(Indexed { colours, depth, samples })
}

fn palette(pixels: &DynamicImage) -> Option<Vec<[u8; 4]>> {
    let channels = usize::from(pixels.color().channel_count());
    let mut colours = Vec::new();
    let mut last = None;
    for colour in pixels.as_bytes().chunks_exact(channels).map(rgba) {
        if last == Some(colour) {
            continue;
        }
        last = Some(colour);
        if let Err(place) = colours.binary_search(&colour) {
            if colours.len() == 256 {
                return None;
            }
            colours.insert(place, colour);
        }
    }
    Some(colours)
}

fn rgba(pixel: &[u8]) -> [u8; 4] {
    match *pixel {
        [l] => [l, l, l, 255],
        [l, a] => [l, l, l, a],
        [r, g, b] => [r, g, b, 255],
        [r, g, b, a, ..] => [r, g, b, a],
        [] => [0; 4],
    }
}
