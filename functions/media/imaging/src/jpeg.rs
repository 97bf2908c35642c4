//! Decodes JPEGs in gray, YCbCr, RGB and CMYK. Encodes gray or YCbCr: pictures as baseline files, thumbnails as
//! progressive ones.

use super::{Format, Output, Picture, Refused, as_seen, check_pixels};
use image::{DynamicImage, GrayImage, RgbImage};
use jpeg_encoder::{ColorType, Encoder};
use zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};
use zune_jpeg::JpegDecoder;

/// Qualities to try in turn, until the file is at most a quarter larger than the upload.
const QUALITIES: [u8; 3] = [88, 80, 72];
/// Maximum scans of a progressive file. Encoders write about ten, but a few bytes can repeat a scan over all pixels.
const MAX_SCANS: usize = 40;

pub(super) fn decode(bytes: &[u8]) -> Result<DynamicImage, Refused> {
    let bytes = first_image(bytes)?;
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_max_scans(MAX_SCANS);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|_| Refused::Damaged)?;
    let info = decoder.info().ok_or(Refused::Damaged)?;
    let (width, height) = (u32::from(info.width), u32::from(info.height));
    check_pixels(width, height)?;

    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let out = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(out));
    let samples = decoder.decode().map_err(|_| Refused::Damaged)?;
    let pixels = if grey {
        GrayImage::from_raw(width, height, samples).map(DynamicImage::from)
    } else {
        RgbImage::from_raw(width, height, samples).map(DynamicImage::from)
    };
    let icc = decoder.icc_profile();
    let exif = decoder.exif().map(Vec::as_slice);
    Ok(as_seen(pixels.ok_or(Refused::Damaged)?, icc.as_deref(), exif))
}

/// Returns the bytes from the start to the first end-of-image marker. Without a marker, the file was cut short and
/// counts as damaged.
///
/// A baseline file with more than one scan is refused, because the decoder gets its colors wrong.
fn first_image(bytes: &[u8]) -> Result<&[u8], Refused> {
    let mut at = 2;
    let (mut scans, mut baseline) = (0, false);
    loop {
        let byte = |at: usize| bytes.get(at).copied().ok_or(Refused::Damaged);
        if byte(at)? != 0xFF {
            // Skips coded pixels, and stray bytes between segments, which the decoder handles.
            at += 1;
            continue;
        }
        at += 1;
        match byte(at)? {
            0xFF => {}
            0xD9 if baseline && scans > 1 => return Err(Refused::UnsupportedJpeg),
            0xD9 => return Ok(&bytes[..=at]),
            0x00 | 0x01 | 0xD0..=0xD8 => at += 1,
            marker => {
                scans += usize::from(marker == 0xDA);
                baseline |= matches!(marker, 0xC0 | 0xC1);
                at += 1 + usize::from(u16::from_be_bytes([byte(at + 1)?, byte(at + 2)?]));
            }
        }
    }
}

/// Encodes at the highest of [`QUALITIES`] whose file is at most a quarter larger than the upload (`source_len` bytes), or
/// else at the lowest.
pub(super) fn encode(pixels: &DynamicImage, source_len: usize) -> Result<Picture, Refused> {
    let mut best = None;
    for quality in QUALITIES {
        let bytes = encode_with(pixels, quality, |_| {})?;
        let done = bytes.len() <= source_len + source_len / 4;
        best = Some(bytes);
        if done {
            break;
        }
    }
    best.map(|bytes| picture(pixels, bytes)).ok_or(Refused::Incompressible)
}

/// Encodes a thumbnail as small as possible at this quality.
pub(super) fn encode_small(pixels: &DynamicImage, quality: u8) -> Result<Picture, Refused> {
    let bytes = encode_with(pixels, quality, |encoder| {
        encoder.set_progressive(true);
        encoder.set_optimized_huffman_tables(true);
    })?;
    Ok(picture(pixels, bytes))
}

fn picture(pixels: &DynamicImage, bytes: Vec<u8>) -> Picture {
    Picture { bytes, format: Format::Jpeg, width: pixels.width(), height: pixels.height() }
}

fn encode_with(
    pixels: &DynamicImage,
    quality: u8,
    configure: impl FnOnce(&mut Encoder<&mut Output>),
) -> Result<Vec<u8>, Refused> {
    // `check_pixels` and the thumbnail size bound the sides, so they fit into 16 bits.
    let side = |n: u32| u16::try_from(n).map_err(|_| Refused::TooManyPixels);
    let (width, height) = (side(pixels.width())?, side(pixels.height())?);
    let mut out = Output::default();
    let mut encoder = Encoder::new(&mut out, quality);
    configure(&mut encoder);
    match pixels {
        DynamicImage::ImageLuma8(grey) => encoder.encode(grey, width, height, ColorType::Luma),
        DynamicImage::ImageRgb8(rgb) => encoder.encode(rgb, width, height, ColorType::Rgb),
        _ => return Err(Refused::Damaged),
    }
    .map_err(|_| Refused::Incompressible)?;
    Ok(out.0)
}
