//! Turns uploaded bytes into a picture that is safe to serve. Pure: no I/O and no clock.
//!
//! No bytes of the upload are copied, except a GIF's palettes, which are sorted. Pixels are decoded and re-encoded, so
//! metadata, comments and appended files don't survive. Each format has a module, which decodes at most [`MAX_PIXELS`]
//! at a time. Decoding and encoding allocate at most 340 MiB at once, plus 270 bytes per byte of a WebP with lossless
//! parts.

mod colour;
mod gif;
mod jpeg;
mod png;
mod thumbnail;
mod webp;

use image::{DynamicImage, metadata::Orientation};
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub use thumbnail::{THUMBNAIL_SIDE, thumbnail};

/// Maximum pixels of a still image or of an animation's canvas.
pub const MAX_PIXELS: u64 = 25_000_000;
/// Maximum canvas pixels of an animation, summed over its frames: the cost of showing it.
pub const MAX_ANIMATION_PIXELS: u64 = 200_000_000;
pub const MAX_FRAMES: usize = 2_000;
/// Maximum bytes of a result. Only crafted uploads, far smaller than their re-encoded pixels, reach this limit.
pub const MAX_OUTPUT_BYTES: usize = 20 << 20;

/// An image we encoded ourselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub bytes: Vec<u8>,
    pub format: Format,
    pub width: u32,
    pub height: u32,
}

impl Picture {
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        self.format.content_type()
    }

    #[must_use]
    pub fn extension(&self) -> &'static str {
        self.format.extension()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Jpeg,
    Png,
    Gif,
    WebP,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Jpeg, Self::Png, Self::Gif, Self::WebP];

    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Jpeg),
            _ if bytes.starts_with(b"\x89PNG\r\n\x1A\n") => Some(Self::Png),
            _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Some(Self::Gif),
            _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some(Self::WebP),
            _ => None,
        }
    }

    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }

    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Gif => "gif",
            Self::WebP => "webp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    UnknownFormat,
    TooManyPixels,
    TooLongAnimation,
    Damaged,
    UnsupportedJpeg,
    Incompressible,
}

/// Makes an upload safe to serve. Returns the picture as viewers show it, with nothing but its pixels.
///
/// A JPEG, PNG or GIF keeps its format. A WebP becomes a JPEG if it is lossy and opaque, else a PNG. A GIF keeps its
/// frames. An animated WebP becomes its first frame, an animated PNG its still image.
pub fn clean(bytes: &[u8]) -> Result<Picture, Refused> {
    contained(|| match Format::of(bytes).ok_or(Refused::UnknownFormat)? {
        Format::Jpeg => jpeg::encode(&jpeg::decode(bytes)?, bytes.len()),
        Format::Png => png::encode(&png::decode(bytes)?),
        Format::Gif => gif::rewrite(bytes),
        Format::WebP => match webp::decode(bytes)? {
            (pixels, webp::Coding::Lossy) if !pixels.color().has_alpha() => jpeg::encode(&pixels, bytes.len()),
            (pixels, _) => png::encode(&pixels),
        },
    })
}

/// Decodes an image, with its color profile and orientation applied: the first frame of an animated GIF or WebP, the still
/// image of an animated PNG.
fn decode(bytes: &[u8]) -> Result<DynamicImage, Refused> {
    match Format::of(bytes).ok_or(Refused::UnknownFormat)? {
        Format::Jpeg => jpeg::decode(bytes),
        Format::Png => png::decode(bytes),
        Format::Gif => gif::first_frame(bytes),
        Format::WebP => webp::decode(bytes).map(|(pixels, _)| pixels),
    }
}

/// Treats a file that makes a decoder panic as damaged. Needs `panic = "unwind"`.
fn contained(work: impl FnOnce() -> Result<Picture, Refused>) -> Result<Picture, Refused> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Refused::Damaged))
}

/// Refuses an image with no or too many pixels, or with a side longer than JPEG and GIF allow. Call it before
/// allocating the pixels.
fn check_pixels(width: u32, height: u32) -> Result<(), Refused> {
    if width.max(height) > u32::from(u16::MAX) {
        return Err(Refused::TooManyPixels);
    }
    match u64::from(width) * u64::from(height) {
        0 => Err(Refused::Damaged),
        1..=MAX_PIXELS => Ok(()),
        _ => Err(Refused::TooManyPixels),
    }
}

/// Applies the file's color profile and orientation to the decoded pixels.
fn as_seen(mut pixels: DynamicImage, icc: Option<&[u8]>, exif: Option<&[u8]>) -> DynamicImage {
    if let Some(icc) = icc {
        colour::convert_to_srgb(&mut pixels, icc);
    }
    let orientation = exif
        .map(|exif| exif.strip_prefix(b"Exif\0\0").unwrap_or(exif))
        .and_then(Orientation::from_exif_chunk)
        .unwrap_or(Orientation::NoTransforms);
    pixels.apply_orientation(orientation);
    pixels
}

/// Drops the alpha channel of an opaque image.
fn without_idle_alpha(pixels: DynamicImage) -> DynamicImage {
    match pixels {
        DynamicImage::ImageRgba8(rgba) if rgba.pixels().all(|p| p.0[3] == 255) => {
            DynamicImage::ImageRgba8(rgba).into_rgb8().into()
        }
        DynamicImage::ImageLumaA8(la) if la.pixels().all(|p| p.0[1] == 255) => {
            DynamicImage::ImageLumaA8(la).into_luma8().into()
        }
        other => other,
    }
}

/// Collects a result of at most [`MAX_OUTPUT_BYTES`].
#[derive(Default)]
struct Output(Vec<u8>);

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
