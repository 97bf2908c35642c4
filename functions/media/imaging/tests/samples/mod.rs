//! Generates test images, both valid and crafted.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::needless_for_each,
    clippy::trivially_copy_pass_by_ref,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
#![allow(clippy::missing_panics_doc, reason = "tests are to panic")]

use image::{DynamicImage, GrayImage, Rgb, RgbImage, Rgba, RgbaImage};
use jpeg_encoder::{ColorType, Encoder};

/// A deterministic random number generator.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Returns an image with soft light, round shapes, texture and sensor noise, which compresses about as well as a photo.
pub fn photo(width: u32, height: u32, seed: u64) -> RgbImage {
    let mut random = Random(seed);
    let spots: Vec<[f32; 6]> = (0..14)
        .map(|_| {
            let mut unit = || random.below(1000) as f32 / 1000.0;
            [unit(), unit(), 0.03 + unit() * 0.25, unit() * 255.0, unit() * 255.0, unit() * 255.0]
        })
        .collect();
    RgbImage::from_fn(width, height, |x, y| {
        let (u, v) = (x as f32 / width as f32, y as f32 / height as f32);
        let mut colour = [200.0 - 120.0 * v, 180.0 - 60.0 * v, 150.0 + 80.0 * (1.0 - v)];
        for [cx, cy, r, red, green, blue] in &spots {
            let far = ((u - cx).powi(2) + (v - cy).powi(2)).sqrt() / r;
            if far < 1.0 {
                let shade = 1.0 - far * far * 0.6;
                let texture = 14.0 * ((u * 190.0 * (1.0 + red / 255.0)).sin() * (v * 230.0).cos());
                colour = [red * shade + texture, green * shade + texture, blue * shade + texture];
            }
        }
        let noise = (random.next() % 11) as f32 - 5.0;
        Rgb(colour.map(|c| (c + noise).clamp(0.0, 255.0) as u8))
    })
}

/// Returns an image of flat panels and text-like strokes.
pub fn screenshot(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        if y < height / 10 {
            Rgb([40, 60, 120])
        } else if x < width / 5 {
            Rgb([235, 238, 242])
        } else if y % 22 > 8 && y % 22 < 18 && (x * 7 + y / 22 * 13) % 11 < 4 && (x / 90 + y / 22) % 5 != 0 {
            Rgb([30, 30, 30])
        } else {
            Rgb([255, 255, 255])
        }
    })
}

/// Returns a disc with a soft edge on a transparent background.
pub fn sticker(side: u32) -> RgbaImage {
    RgbaImage::from_fn(side, side, |x, y| {
        let half = side as f32 / 2.0;
        let far = ((x as f32 - half).powi(2) + (y as f32 - half).powi(2)).sqrt() / half;
        let alpha = ((1.0 - far) * 12.0).clamp(0.0, 1.0) * 255.0;
        Rgba([(255.0 * (1.0 - far * 0.7).max(0.0)) as u8, (x * 255 / side) as u8, 90, alpha as u8])
    })
}

/// Four plain quarters, so that every orientation looks different: red, green / blue, white.
pub fn quarters(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => Rgb([255, 0, 0]),
        (false, true) => Rgb([0, 255, 0]),
        (true, false) => Rgb([0, 0, 255]),
        (false, false) => Rgb([255, 255, 255]),
    })
}

pub fn jpeg(pixels: &RgbImage, quality: u8) -> Vec<u8> {
    jpeg_with(pixels, quality, |_| {})
}

pub fn jpeg_with(pixels: &RgbImage, quality: u8, set: impl FnOnce(&mut Encoder<&mut Vec<u8>>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, quality);
    set(&mut encoder);
    encoder.encode(pixels, pixels.width() as u16, pixels.height() as u16, ColorType::Rgb).unwrap();
    out
}

pub fn grey_jpeg(pixels: &GrayImage) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(&mut out, 90).encode(pixels, pixels.width() as u16, pixels.height() as u16, ColorType::Luma).unwrap();
    out
}

/// Returns an image of one color, given as cyan, magenta, yellow, black.
pub fn cmyk_jpeg(side: u16, ink: [u8; 4]) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(&mut out, 90)
        .encode(&ink.repeat(usize::from(side) * usize::from(side)), side, side, ColorType::Cmyk)
        .unwrap();
    out
}

/// Inserts a segment after the start-of-image marker.
pub fn with_jpeg_segment(jpeg: &[u8], marker: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xFF, marker], &length, data, &jpeg[2..]].concat()
}

/// Returns a TIFF block as a phone writes it, with an orientation and a model name in the first directory and a
/// latitude in the GPS directory.
pub fn exif(orientation: u8) -> Vec<u8> {
    let mut tiff = b"MM\0\x2A\0\0\0\x08".to_vec();
    let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        [&tag.to_be_bytes()[..], &kind.to_be_bytes(), &count.to_be_bytes(), &value].concat()
    };
    tiff.extend([0, 3]);
    tiff.extend(entry(0x0110, 2, 4, *b"SPY\0"));
    tiff.extend(entry(0x0112, 3, 1, [0, orientation, 0, 0]));
    tiff.extend(entry(0x8825, 4, 1, 50_u32.to_be_bytes()));
    tiff.extend([0; 4]);
    tiff.extend([0, 2]);
    tiff.extend(entry(0x0001, 2, 2, *b"N\0\0\0"));
    tiff.extend(entry(0x0002, 5, 3, 80_u32.to_be_bytes()));
    tiff.extend([0; 4]);
    for n in [48_u32, 1, 51, 1, 29_999, 1000] {
        tiff.extend(n.to_be_bytes());
    }
    tiff.extend(b"GPS-SECRET-48.858");
    tiff
}

pub fn with_jpeg_exif(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    with_jpeg_segment(jpeg, 0xE1, &[b"Exif\0\0", &exif(orientation)[..]].concat())
}

pub fn png(pixels: &DynamicImage) -> Vec<u8> {
    png_with(pixels, |_| {})
}

pub fn png_with(pixels: &DynamicImage, set: impl FnOnce(&mut png::Info<'_>)) -> Vec<u8> {
    use image::ColorType as C;
    let (colour, depth) = match pixels.color() {
        C::L8 => (png::ColorType::Grayscale, png::BitDepth::Eight),
        C::La8 => (png::ColorType::GrayscaleAlpha, png::BitDepth::Eight),
        C::Rgb8 => (png::ColorType::Rgb, png::BitDepth::Eight),
        C::Rgba8 => (png::ColorType::Rgba, png::BitDepth::Eight),
        C::Rgb16 => (png::ColorType::Rgb, png::BitDepth::Sixteen),
        C::Rgba16 => (png::ColorType::Rgba, png::BitDepth::Sixteen),
        other => panic!("{other:?}"),
    };
    let samples = match pixels {
        DynamicImage::ImageRgb16(p) => p.iter().flat_map(|s| s.to_be_bytes()).collect(),
        DynamicImage::ImageRgba16(p) => p.iter().flat_map(|s| s.to_be_bytes()).collect(),
        other => other.as_bytes().to_vec(),
    };
    let mut out = Vec::new();
    let mut info = png::Info::with_size(pixels.width(), pixels.height());
    (info.color_type, info.bit_depth) = (colour, depth);
    set(&mut info);
    let mut writer = png::Encoder::with_info(&mut out, info).unwrap().write_header().unwrap();
    writer.write_image_data(&samples).unwrap();
    writer.finish().unwrap();
    out
}

/// Inserts a chunk before the first chunk of image data.
pub fn with_png_chunk(png: &[u8], name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [&name[..], data].concat();
    let at = 33;
    [&png[..at], &(data.len() as u32).to_be_bytes(), &named, &crc32(&named).to_be_bytes(), &png[at..]].concat()
}

pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// Returns a GIF of a moving square. Each frame has a different delay, and the animation loops `repeat` times.
pub fn gif(width: u16, height: u16, frames: u16, repeat: gif::Repeat) -> Vec<u8> {
    let mut out = Vec::new();
    let palette = [255, 255, 255, 200, 0, 0, 0, 0, 200, 9, 9, 9];
    let mut encoder = gif::Encoder::new(&mut out, width, height, &palette).unwrap();
    encoder.set_repeat(repeat).unwrap();
    for n in 0..frames {
        let side = (width.min(height) / 2).max(1);
        encoder
            .write_frame(&gif::Frame {
                delay: 10 + n,
                dispose: gif::DisposalMethod::Background,
                left: n % (width - side + 1),
                width: side,
                height: side,
                transparent: Some(3),
                buffer: vec![(n % 4) as u8; usize::from(side) * usize::from(side)].into(),
                ..gif::Frame::default()
            })
            .unwrap();
    }
    drop(encoder);
    out
}

pub fn lossless_webp(pixels: &DynamicImage) -> Vec<u8> {
    let mut out = Vec::new();
    let colour = if pixels.color().has_alpha() { image_webp::ColorType::Rgba8 } else { image_webp::ColorType::Rgb8 };
    image_webp::WebPEncoder::new(&mut out).encode(pixels.as_bytes(), pixels.width(), pixels.height(), colour).unwrap();
    out
}

pub fn lossy_webp(pixels: &DynamicImage, quality: f32) -> Vec<u8> {
    webp::Encoder::from_image(pixels).unwrap().encode(quality).to_vec()
}

pub fn animated_webp(frames: &[DynamicImage]) -> Vec<u8> {
    let mut config = webp::WebPConfig::new().unwrap();
    config.quality = 75.0;
    let mut encoder = webp::AnimEncoder::new(frames[0].width(), frames[0].height(), &config);
    for (n, frame) in frames.iter().enumerate() {
        encoder.add_frame(webp::AnimFrame::from_image(frame, n as i32 * 100).unwrap());
    }
    encoder.encode().to_vec()
}

/// Returns a still file with the header chunk that writers add for metadata.
pub fn with_webp_chunks(webp: &[u8], size: (u32, u32), flags: u8, chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut header = vec![flags, 0, 0, 0];
    header.extend(&(size.0 - 1).to_le_bytes()[..3]);
    header.extend(&(size.1 - 1).to_le_bytes()[..3]);
    let mut body = b"WEBP".to_vec();
    let mut push = |name: &[u8], data: &[u8]| {
        body.extend(name);
        body.extend((data.len() as u32).to_le_bytes());
        body.extend(data);
        body.extend(vec![0; data.len() % 2]);
    };
    push(b"VP8X", &header);
    push(&webp[12..16], &webp[20..][..u32::from_le_bytes(webp[16..20].try_into().unwrap()) as usize]);
    for (name, data) in chunks {
        push(*name, data);
    }
    [b"RIFF", &(body.len() as u32).to_le_bytes(), &body[..]].concat()
}

/// Files whose headers declare an image of this size, with little else.
pub fn bombs(width: u16, height: u16) -> Vec<(&'static str, Vec<u8>)> {
    let (w, h) = (u32::from(width), u32::from(height));
    let small = DynamicImage::from(quarters(8, 8));

    let mut png_file = png(&small);
    png_file[16..20].copy_from_slice(&w.to_be_bytes());
    png_file[20..24].copy_from_slice(&h.to_be_bytes());
    let crc = crc32(&png_file[12..29]).to_be_bytes();
    png_file[29..33].copy_from_slice(&crc);

    let mut gif_file = gif(8, 8, 1, gif::Repeat::Infinite);
    gif_file[6..8].copy_from_slice(&width.to_le_bytes());
    gif_file[8..10].copy_from_slice(&height.to_le_bytes());

    let jpeg_sized = |mut file: Vec<u8>, marker: u8| {
        let frame = file.windows(2).position(|w| w == [0xFF, marker]).unwrap();
        file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
        file[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
        file
    };
    let baseline = jpeg_sized(jpeg(&small.to_rgb8(), 80), 0xC0);
    let progressive = jpeg_sized(jpeg_with(&small.to_rgb8(), 80, |e| e.set_progressive(true)), 0xC2);

    let still = lossless_webp(&small);
    let canvas = with_webp_chunks(&still, (w, h), 0, &[]);
    let mut hidden = with_webp_chunks(&lossy_webp(&small, 80.0), (8, 8), 0, &[]);
    let sides = hidden.windows(3).position(|w| w == [0x9D, 0x01, 0x2A]).unwrap() + 3;
    hidden[sides..sides + 2].copy_from_slice(&width.min(0x3FFF).to_le_bytes());
    hidden[sides + 2..sides + 4].copy_from_slice(&height.min(0x3FFF).to_le_bytes());
    let mut lossless = still;
    let bits = u32::from(width.min(0x4000) - 1) | u32::from(height.min(0x4000) - 1) << 14;
    lossless[21..25].copy_from_slice(&bits.to_le_bytes());

    vec![
        ("png", png_file),
        ("gif", gif_file),
        ("jpeg", baseline),
        ("progressive jpeg", progressive),
        ("webp canvas", canvas),
        ("webp frame larger than its canvas", hidden),
        ("lossless webp", lossless),
    ]
}

/// The bit stream of a lossless WebP, least significant bit first.
#[derive(Default)]
pub struct Bits {
    pub bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    pub fn put(&mut self, value: u32, count: usize) {
        for n in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= (((value >> n) & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }

    /// Writes a code with a single symbol below 256. The symbol itself then takes no bits.
    fn put_single(&mut self, symbol: u32) {
        self.put(0b1_0_1, 3);
        self.put(symbol, 8);
    }

    /// Writes a full code: `lengths[n]` is the length of the code of symbol `n`. Each length is written in four bits.
    pub fn put_code(&mut self, lengths: &[u32]) {
        self.put(0, 1);
        self.put(15, 4);
        // The sixteen codes have four bits each, in the format's order 17, 18, 0, 1, 2, 3, 4, 5, 16, 6 … 15.
        for n in 0..19 {
            self.put(if matches!(n, 0 | 1 | 8) { 0 } else { 4 }, 3);
        }
        self.put(1, 1);
        let bits = 7;
        self.put(bits, 3);
        self.put(lengths.len() as u32 - 2, 2 + 2 * bits as usize);
        for length in lengths {
            self.put(length.reverse_bits() >> 28, 4);
        }
    }
}

pub fn lossless_webp_of(bits: Bits) -> Vec<u8> {
    let mut data = bits.bytes;
    data.resize(data.len().next_multiple_of(2) + 16, 0);
    let mut file = b"RIFF".to_vec();
    file.extend((data.len() as u32 + 12).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn lossless_header(width: u32, height: u32) -> Bits {
    let mut bits = Bits::default();
    bits.put(0x2F, 8);
    bits.put(width - 1, 14);
    bits.put(height - 1, 14);
    bits.put(0, 4);
    bits
}

/// Returns a file with too many one-bit symbols for a prefix code, although the sum over its code lengths is right
/// modulo 2^16.
pub fn webp_with_an_oversubscribed_code() -> Vec<u8> {
    let mut bits = lossless_header(8, 8);
    bits.put(0, 3);
    let mut lengths = vec![1, 1];
    lengths.extend([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 1]);
    bits.put_code(&lengths);
    (0..4).for_each(|_| bits.put_single(0));
    lossless_webp_of(bits)
}

/// Returns a file with as many codes as fit in `max_bytes`, each with the largest table.
pub fn webp_of_code_tables(width: u32, height: u32, max_bytes: usize) -> Vec<u8> {
    let mut bits = lossless_header(width, height);
    // No transform and no color cache, but an entropy image: every block of 512 × 512 pixels uses the last group of
    // codes.
    bits.put(0b1_0_0, 3);
    bits.put(7, 3);
    bits.put(0, 1);
    [255, 255, 0, 255, 0].iter().for_each(|symbol| bits.put_single(*symbol));
    let lengths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10];
    while bits.bytes.len() + 40 < max_bytes {
        bits.put_code(&lengths);
    }
    lossless_webp_of(bits)
}
