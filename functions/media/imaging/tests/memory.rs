//! Measures peak memory and time for the largest allowed images and the worst crafted files.
//!
//! Twenty-five megapixels take minutes without optimization, so these tests run only with `cargo test --release`.
#![cfg(not(debug_assertions))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::needless_for_each,
    clippy::trivially_copy_pass_by_ref,
    reason = "bytes of images made by hand"
)]

mod samples;

use image::{DynamicImage, RgbaImage};
use imaging::{MAX_PIXELS, Refused, clean, thumbnail};
use peak_alloc::PeakAlloc;
use samples::*;
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Allows one measurement at a time, because all tests share the process's heap.
static TURN: Mutex<()> = Mutex::new(());

/// Maximum bytes that `clean` and `thumbnail` may allocate at once.
const BOUND: usize = 340 << 20;

fn measured<T>(name: &str, work: impl FnOnce() -> T) -> (T, usize) {
    HEAP.reset_peak_usage();
    let (before, start) = (HEAP.current_usage(), Instant::now());
    let result = work();
    let peak = HEAP.peak_usage() - before;
    println!("{name:45} {:7.1} MiB {:6} ms", peak as f64 / 1_048_576.0, start.elapsed().as_millis());
    (result, peak)
}

fn check(name: &str, file: &[u8]) {
    let (stored, peak) = measured(&format!("clean {name}, {} KiB", file.len() >> 10), || clean(file));
    assert!(peak <= BOUND, "{name}: {peak}");
    let stored = stored.unwrap();
    let kib = stored.bytes.len() >> 10;
    let (small, peak) = measured(&format!("  thumbnail of the result, {kib} KiB"), || thumbnail(&stored.bytes));
    assert!(peak <= BOUND, "{name}: {peak}");
    let small = small.unwrap();
    println!("  thumbnail is {:?}, {} bytes", small.format, small.bytes.len());
}

#[test]
fn a_25_megapixel_image_stays_within_the_bound() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (width, height) = (6_250, 4_000);
    assert_eq!(u64::from(width * height), MAX_PIXELS);
    let pixels = photo(width, height, 1);
    check("baseline 4:2:0 jpeg", &jpeg(&pixels, 75));
    check("rotated baseline jpeg", &with_jpeg_exif(&jpeg(&pixels, 75), 6));
    let full = jpeg_with(&pixels, 60, |e| {
        e.set_progressive(true);
        e.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
    });
    check("rotated progressive 4:4:4 jpeg", &with_jpeg_exif(&full, 6));
    check("lossy webp", &lossy_webp(&DynamicImage::from(pixels), 60.0));
    let flat = DynamicImage::from(screenshot(width, height));
    check("flat png", &png(&flat));
    check("lossless webp", &lossless_webp(&flat));
    drop(flat);
    let clear = RgbaImage::from_fn(width, height, |x, y| {
        let level = ((x / 16 + y / 16) % 251) as u8;
        image::Rgba([level, level / 2, (y / 64) as u8, (x / 25) as u8])
    });
    let clear = DynamicImage::from(clear);
    check("rotated png with alpha", &png_with(&clear, |info| info.exif_metadata = Some(exif(6).into())));
    let lossy = lossy_webp(&clear, 50.0);
    drop(clear);
    check("lossy webp with alpha", &lossy);
    check("gif of 200 megapixels", &full_frames(5_000, 8));
}

#[test]
fn a_png_that_would_come_out_larger_than_the_limit_is_given_up_early() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = Random(1);
    let noise: Vec<u8> = (0..12_500_000).flat_map(|_| random.next().to_le_bytes()).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 6_250, 4_000);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_compression(png::Compression::NoCompression);
    encoder.write_header().unwrap().write_image_data(&noise).unwrap();
    drop(noise);
    let (result, peak) = measured("noise with alpha", || clean(&file));
    assert_eq!(result, Err(Refused::Incompressible));
    assert!(peak <= BOUND, "{peak}");
}

/// Returns a GIF whose frames each cover the canvas with a different pattern.
fn full_frames(side: u16, frames: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let palette: Vec<u8> = (0..=255).flat_map(|n| [n, 255 - n, n / 2]).collect();
    let mut encoder = gif::Encoder::new(&mut file, side, side, &palette).unwrap();
    for n in 0..frames {
        let side = usize::from(side);
        let pixels: Vec<u8> = (0..side * side).map(|i| ((i % side / 90) * (i / side / 70) + n) as u8).collect();
        let frame =
            gif::Frame { width: side as u16, height: side as u16, buffer: pixels.into(), ..gif::Frame::default() };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    file
}

#[test]
fn an_image_of_too_many_pixels_is_refused_before_it_is_decoded() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, file) in bombs(30_000, 30_000) {
        let (result, peak) = measured(name, || clean(&file));
        assert_eq!(result, Err(Refused::TooManyPixels), "{name}");
        assert!(peak < 256 << 10, "{name}: {peak}");
    }
}

#[test]
fn a_png_profile_that_inflates_without_end_stays_within_the_bound() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = png_with(&quarters(8, 8).into(), |info| info.icc_profile = Some(vec![0; 300 << 20].into()));
    let (_, peak) = measured(&format!("profile of 300 MiB in {} KiB", file.len() >> 10), || clean(&file));
    assert!(peak < 64 << 20);
}

#[test]
fn lossless_code_tables_take_at_most_270_bytes_of_memory_per_byte() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = webp_of_code_tables(5_000, 5_000, 4 << 20);
    let (result, peak) = measured(&format!("code tables in {} KiB of webp", file.len() >> 10), || clean(&file));
    assert_eq!(result, Err(Refused::Damaged));
    assert!(peak <= BOUND + 270 * file.len(), "{peak}");
}

#[test]
fn a_progressive_jpeg_of_many_scans_is_refused() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let pixels = screenshot(6_250, 4_000);
    let file = |scans| {
        jpeg_with(&pixels, 60, |e| {
            e.set_progressive(true);
            e.set_progressive_scans(scans);
        })
    };
    let (taken, _) = measured("40 scans", || clean(&file(13)));
    assert!(taken.is_ok());
    let (refused, _) = measured("60 scans", || clean(&file(20)));
    assert_eq!(refused, Err(Refused::Damaged));
}
