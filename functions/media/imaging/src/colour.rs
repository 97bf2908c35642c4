//! Applies color profiles to the pixels. Profiles are not kept, because they can carry the sender's text.

use image::DynamicImage;
use moxcms::{ColorProfile, Layout, ParsingOptions, TransformOptions};

/// Converts RGB pixels to sRGB in place. Ignores all profiles except plain RGB ones (matrix and curves, as cameras and
/// screens have).
pub(super) fn convert_to_srgb(pixels: &mut DynamicImage, icc: &[u8]) {
    let options =
        ParsingOptions { max_profile_size: 64 << 10, max_allowed_clut_size: 64 << 10, ..ParsingOptions::default() };
    let Ok(mut profile) = ColorProfile::new_from_slice_with_options(icc, options) else {
        return;
    };
    // The library prefers tables to the matrix, but tables would require trusting far more code.
    profile.lut_a_to_b_perceptual = None;
    profile.lut_a_to_b_colorimetric = None;
    profile.lut_a_to_b_saturation = None;
    let width = pixels.width() as usize;
    let (layout, row, samples): (_, _, &mut [u8]) = match pixels {
        DynamicImage::ImageRgb8(rgb) => (Layout::Rgb, 3 * width, rgb),
        DynamicImage::ImageRgba8(rgba) => (Layout::Rgba, 4 * width, rgba),
        _ => return,
    };
    let srgb = ColorProfile::new_srgb();
    let Ok(transform) = profile.create_transform_8bit(layout, &srgb, layout, TransformOptions::default()) else {
        return;
    };
    let mut converted = vec![0; row];
    for row in samples.chunks_exact_mut(row) {
        if transform.transform(row, &mut converted).is_ok() {
            row.copy_from_slice(&converted);
        }
    }
}
