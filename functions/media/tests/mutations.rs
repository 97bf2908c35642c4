//! Damages valid files at random. Checks that no panic escapes, and that memory stays within the documented bound.
//!
//! Runs for `MUTATION_SECONDS` (default 3) from `MUTATION_SEED` (default 1):
//! `MUTATION_SECONDS=600 cargo test --release --test mutations -- --nocapture`

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::needless_for_each,
    clippy::trivially_copy_pass_by_ref,
    reason = "bytes of images made by hand"
)]

#[path = "../imaging/tests/samples/mod.rs"]
mod samples;

use bytes::Bytes;
use image::DynamicImage;
use imaging::{clean, thumbnail};
use media::multipart::read_file;
use peak_alloc::PeakAlloc;
use samples::*;
use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::Mutex,
    time::{Duration, Instant},
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Maximum bytes allocated at once for small files and blind mutations. `imaging/tests/memory.rs` tests this bound with
/// files made to reach it.
const BOUND: usize = 340 << 20;

/// Number of decoder panics by source location. The code under test catches the panics.
static PANICS: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

#[expect(clippy::disallowed_methods, reason = "duration and seed of a test run")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect(name))
}

fn corpus() -> Vec<Vec<u8>> {
    let pixels = photo(96, 64, 1);
    let picture = DynamicImage::from(pixels.clone());
    let clear = DynamicImage::from(sticker(48));
    let icc = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    let mut files = vec![
        jpeg(&pixels, 80),
        jpeg_with(&pixels, 80, |e| e.set_progressive(true)),
        jpeg_with(&pixels, 95, |e| e.set_restart_interval(4)),
        with_jpeg_exif(&jpeg_with(&pixels, 80, |e| e.add_icc_profile(&icc).unwrap()), 6),
        grey_jpeg(&picture.to_luma8()),
        cmyk_jpeg(24, [9, 99, 200, 30]),
        png(&picture),
        png(&clear),
        png(&DynamicImage::ImageRgb16(picture.to_rgb16())),
        png_with(&picture, |info| {
            info.icc_profile = Some(icc.clone().into());
            info.exif_metadata = Some(exif(8).into());
        }),
        gif(30, 20, 5, gif::Repeat::Infinite),
        lossless_webp(&picture),
        lossless_webp(&DynamicImage::from(screenshot(64, 64))),
        lossy_webp(&picture, 60.0),
        lossy_webp(&clear, 60.0),
        animated_webp(&[picture.clone(), photo(96, 64, 2).into(), photo(96, 64, 3).into()]),
        // libwebp's lossless encoder uses every transform.
        webp::Encoder::from_image(&clear).unwrap().encode_lossless().to_vec(),
        webp::Encoder::from_image(&picture).unwrap().encode_lossless().to_vec(),
        with_webp_chunks(&lossless_webp(&picture), (96, 64), 0x28, &[(b"ICCP", &icc), (b"EXIF", &exif(5))]),
    ];
    files.push(clean(&files[6]).unwrap().bytes);
    files
}

fn mutate(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(6) {
        if file.is_empty() {
            return;
        }
        // Errors in headers have the most effect, so half of the mutations are in the first bytes.
        let reach = if random.below(2) == 0 { file.len() } else { file.len().min(96) };
        let at = random.below(reach);
        let len = random.below(24).min(file.len() - at);
        match random.below(9) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.next() as u8,
            2 => file[at] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF][random.below(6)],
            3 => file.truncate(at),
            4 => drop(file.drain(at..at + len)),
            5 => {
                let copy = file[at..at + len].to_vec();
                let to = random.below(file.len());
                file.splice(to..to, copy);
            }
            6 if !other.is_empty() => {
                let from = random.below(other.len());
                let piece = other[from..(from + len).min(other.len())].to_vec();
                file.splice(at..at, piece);
            }
            7 => file[at..at + len].iter_mut().for_each(|byte| *byte = random.next() as u8),
            _ => {
                let value = (random.next() as u16).to_be_bytes();
                file[at..].iter_mut().zip(value).for_each(|(byte, new)| *byte = new);
            }
        }
    }
    if file.starts_with(b"\x89PNG") && random.below(4) > 0 {
        repair_png(file);
    }
    if file.starts_with(b"RIFF") && file.len() > 8 && random.below(4) > 0 {
        let size = (file.len() as u32 - 8).to_le_bytes();
        file[4..8].copy_from_slice(&size);
    }
}

/// Repairs the checksums, because a wrong checksum would stop nearly every mutation before it reaches the decoder.
fn repair_png(file: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let Some(named) = file.get(at + 4..(at + 8).saturating_add(length)) else {
            return;
        };
        let crc = crc32(named).to_be_bytes();
        let end = at + 8 + length;
        let Some(place) = file.get_mut(end..end + 4) else {
            return;
        };
        place.copy_from_slice(&crc);
        at = end + 4;
    }
}

fn upload(file: &[u8]) -> Vec<u8> {
    let head = b"--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    [&head[..], file, b"\r\n--X--\r\n"].concat()
}

#[test]
fn no_mutation_panics_or_allocates_beyond_the_bound() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        let place = place
            .rsplit_once("/src/")
            .map_or(place.clone(), |(krate, file)| format!("{}/{file}", krate.rsplit('/').next().unwrap_or_default()));
        *PANICS.lock().unwrap().entry(place).or_default() += 1;
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let corpus = corpus();
    let mut random = Random(setting("MUTATION_SEED", 1));
    let end = Instant::now() + Duration::from_secs(setting("MUTATION_SECONDS", 3));
    let (mut runs, mut taken, mut worst, mut slowest) = (0_u64, 0_u64, 0, (Duration::ZERO, Vec::new()));
    let mut failures = Vec::new();

    while Instant::now() < end {
        let mut file = corpus[random.below(corpus.len())].clone();
        mutate(&mut file, &corpus[random.below(corpus.len())], &mut random);
        let mut body = upload(&file);
        if random.below(16) == 0 {
            mutate(&mut body, &corpus[0], &mut random);
        }
        HEAP.reset_peak_usage();
        let (before, start) = (HEAP.current_usage(), Instant::now());
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            let read = runtime.block_on(read_file(Some("multipart/form-data; boundary=X"), Bytes::from(body), 4 << 20));
            let stored = read.ok().and_then(|bytes| clean(&bytes).ok());
            stored.is_some_and(|stored| thumbnail(&stored.bytes).is_ok() || stored.bytes.is_empty())
                | thumbnail(&file).is_ok()
        }));
        let peak = HEAP.peak_usage() - before;
        worst = worst.max(peak);
        if start.elapsed() > slowest.0 {
            slowest = (start.elapsed(), file);
        }
        runs += 1;
        match outcome {
            Ok(good) => taken += u64::from(good),
            Err(_) => failures.push(format!("a panic escaped, run {runs}")),
        }
        if peak > BOUND {
            failures.push(format!("{peak} bytes, run {runs}"));
        }
    }
    let _ = panic::take_hook();
    let panics = PANICS.lock().unwrap();
    let start = Instant::now();
    let again = clean(&slowest.1).map(|stored| (stored.format, stored.width, stored.height, stored.bytes.len()));
    println!("slowest {:?}, cleaned again in {:?}: {again:?}", slowest.0, start.elapsed());
    println!("  it begins {:02X?}", &slowest.1[..slowest.1.len().min(40)]);
    println!("{runs} files, {taken} taken, peak {} KiB, contained panics {panics:#?}", worst >> 10);
    assert!(failures.is_empty(), "{failures:?}");
}
