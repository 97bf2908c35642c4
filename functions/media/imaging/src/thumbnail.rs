//! Thumbnails: still pictures of at most [`THUMBNAIL_SIDE`] pixels per side.

use super::{Picture, Refused, contained, decode, jpeg, png, without_idle_alpha};
use color_quant::NeuQuant;
use fast_image_resize::{
    PixelType, ResizeOptions, Resizer,
    images::{Image, ImageRef},
};
use image::{ColorType, DynamicImage, RgbaImage};

pub const THUMBNAIL_SIDE: u32 = 320;
const QUALITY: u8 = 75;
/// The palette is made from one pixel in three.
const QUANTIZER_SAMPLING: i32 = 3;

/// Makes a JPEG or a PNG, whichever is smaller. A picture with transparency becomes a PNG of at most 256 colors.
pub fn thumbnail(bytes: &[u8]) -> Result<Picture, Refused> {
    contained(|| {
        let pixels = without_idle_alpha(shrink(decode(bytes)?)?);
        if pixels.color().has_alpha() {
            return png::encode(&reduce_colours(pixels));
        }
        let (jpeg, png) = (jpeg::encode_small(&pixels, QUALITY)?, png::encode(&pixels)?);
        Ok(if jpeg.bytes.len() < png.bytes.len() { jpeg } else { png })
    })
}

/// Reduces the picture to at most 256 colors, transparency included.
fn reduce_colours(pixels: DynamicImage) -> DynamicImage {
    if png::has_few_colours(&pixels) {
        return pixels;
    }
    let mut pixels = pixels.into_rgba8();
    let palette = NeuQuant::new(QUANTIZER_SAMPLING, 256, &pixels);
    for pixel in pixels.pixels_mut() {
        palette.map_pixel(&mut pixel.0);
    }
    pixels.into()
}

/// Scales the picture down in proportion, with at least one pixel per side. A small picture is unchanged.
fn shrink(pixels: DynamicImage) -> Result<DynamicImage, Refused> {
    let longest = pixels.width().max(pixels.height());
    if longest <= THUMBNAIL_SIDE {
        return Ok(pixels);
    }
    // Sides have at most 16 bits, so nothing overflows.
    let scaled = |side: u32| ((side * THUMBNAIL_SIDE + longest / 2) / longest).max(1);
    let (width, height) = (scaled(pixels.width()), scaled(pixels.height()));
    let colours = pixels.color();
    let source = pixels.into_rgba8();
    let source = ImageRef::new(source.width(), source.height(), &source, PixelType::U8x4);
    let source = source.map_err(|_| Refused::Damaged)?;
    let mut small = Image::new(width, height, PixelType::U8x4);
    let options = ResizeOptions::new().use_alpha(colours.has_alpha());
    Resizer::new().resize(&source, &mut small, &options).map_err(|_| Refused::Damaged)?;
    let small = RgbaImage::from_raw(width, height, small.into_vec()).map(DynamicImage::from).ok_or(Refused::Damaged)?;
    Ok(match colours {
        ColorType::L8 => small.into_luma8().into(),
        ColorType::La8 => small.into_luma_alpha8().into(),
        ColorType::Rgb8 => small.into_rgb8().into(),
        _ => small,
    })
}
