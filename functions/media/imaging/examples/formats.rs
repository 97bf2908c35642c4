//! Compares formats for thumbnails: bytes and milliseconds of each for the same 320 pixels.
//! `cargo run --release --example formats`

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::needless_for_each,
    clippy::trivially_copy_pass_by_ref,
    clippy::wildcard_imports,
    reason = "bytes of images made by hand"
)]

#[path = "../tests/samples/mod.rs"]
mod samples;

use image::DynamicImage;
use samples::*;
use std::time::Instant;

fn main() {
    let images = [
        ("photo", DynamicImage::from(photo(2400, 1600, 1))),
        ("photo 2", photo(2400, 1600, 2).into()),
        ("photo 3", photo(2400, 1600, 3).into()),
        ("screenshot", screenshot(1600, 900).into()),
        ("drawing", quarters(900, 600).into()),
        ("sticker with alpha", sticker(900).into()),
    ];
    println!("bytes, PSNR in dB where something is lost, milliseconds");
    for (name, pixels) in images {
        let small = pixels.thumbnail(320, 320);
        let opaque = small.to_rgb8();
        let smallest = |e: &mut jpeg_encoder::Encoder<&mut Vec<u8>>| {
            e.set_progressive(true);
            e.set_optimized_huffman_tables(true);
        };
        println!("{name}");
        if !small.color().has_alpha() {
            report("jpeg 80 baseline", &small, || jpeg(&opaque, 80));
            report("jpeg 80 progressive", &small, || jpeg_with(&opaque, 80, smallest));
            report("jpeg 70 progressive", &small, || jpeg_with(&opaque, 70, smallest));
        }
        report("webp lossless (image-webp)", &small, || lossless_webp(&small));
        report("png", &small, || png(&small));
        for quality in [70.0, 75.0, 80.0] {
            report(&format!("webp {quality} (libwebp, in C)"), &small, || lossy_webp(&small, quality));
        }
        report("chosen", &small, || imaging::thumbnail(&png(&pixels)).unwrap().bytes);
    }
}

fn report(name: &str, source: &DynamicImage, encode: impl Fn() -> Vec<u8>) {
    let start = Instant::now();
    let bytes = encode();
    let spent = start.elapsed();
    let psnr = psnr(source, &decode(&bytes));
    println!("  {name:28} {:7} {psnr:5.1} {:6.1}", bytes.len(), spent.as_secs_f32() * 1000.0);
}

/// Compares the colors on a white background.
fn psnr(a: &DynamicImage, b: &DynamicImage) -> f64 {
    let shown = |image: &DynamicImage| -> Vec<f64> {
        let pixels = image.to_rgba8();
        let on_white = |p: &image::Rgba<u8>| {
            let alpha = f64::from(p.0[3]) / 255.0;
            [0, 1, 2].map(|c| f64::from(p.0[c]) * alpha + 255.0 * (1.0 - alpha))
        };
        pixels.pixels().flat_map(on_white).collect()
    };
    let (a, b) = (shown(a), shown(b));
    let error: f64 = a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum();
    20.0 * 255_f64.log10() - 10.0 * (error / a.len() as f64).log10()
}

fn decode(bytes: &[u8]) -> DynamicImage {
    use imaging::Format;
    match Format::of(bytes).unwrap() {
        Format::WebP => webp::Decoder::new(bytes).decode().unwrap().to_image(),
        Format::Jpeg => {
            let mut decoder = zune_jpeg::JpegDecoder::new(zune_core::bytestream::ZCursor::new(bytes));
            let samples = decoder.decode().unwrap();
            let (width, height) = decoder.dimensions().unwrap();
            image::RgbImage::from_raw(width as u32, height as u32, samples).unwrap().into()
        }
        _ => {
            let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
            decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
            let mut reader = decoder.read_info().unwrap();
            let mut samples = vec![0; reader.output_buffer_size().unwrap()];
            let frame = reader.next_frame(&mut samples).unwrap();
            image::RgbaImage::from_raw(frame.width, frame.height, samples).unwrap().into()
        }
    }
}
