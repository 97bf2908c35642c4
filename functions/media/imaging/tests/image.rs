//! The results of `clean` and `thumbnail` for every kind of upload.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::needless_for_each,
    clippy::trivially_copy_pass_by_ref,
    reason = "bytes of images made by hand"
)]

mod samples;

use image::{DynamicImage, GrayImage, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use imaging::{Format, MAX_FRAMES, Picture, Refused, THUMBNAIL_SIDE, clean, thumbnail};
use samples::*;

fn decoded(picture: &Picture) -> DynamicImage {
    decode(picture.format, &picture.bytes)
}

/// Decodes with the codecs themselves, not with the code under test.
fn decode(format: Format, bytes: &[u8]) -> DynamicImage {
    match format {
        Format::Jpeg => {
            let mut decoder = zune_jpeg::JpegDecoder::new(zune_core::bytestream::ZCursor::new(bytes));
            let samples = decoder.decode().unwrap();
            let (width, height) = decoder.dimensions().unwrap();
            let (width, height) = (width as u32, height as u32);
            match decoder.output_colorspace().unwrap().num_components() {
                1 => GrayImage::from_raw(width, height, samples).unwrap().into(),
                _ => RgbImage::from_raw(width, height, samples).unwrap().into(),
            }
        }
        Format::Png => {
            let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
            decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
            let mut reader = decoder.read_info().unwrap();
            let mut samples = vec![0; reader.output_buffer_size().unwrap()];
            let frame = reader.next_frame(&mut samples).unwrap();
            match frame.color_type {
                png::ColorType::GrayscaleAlpha => {
                    let pixels = image::GrayAlphaImage::from_raw(frame.width, frame.height, samples).unwrap();
                    DynamicImage::from(pixels).into_rgba8().into()
                }
                _ => RgbaImage::from_raw(frame.width, frame.height, samples).unwrap().into(),
            }
        }
        Format::WebP => {
            let decoder = webp::Decoder::new(bytes).decode().unwrap();
            decoder.to_image()
        }
        Format::Gif => {
            let mut options = gif::DecodeOptions::new();
            options.set_color_output(gif::ColorOutput::RGBA);
            let mut decoder = options.read_info(bytes).unwrap();
            let frame = decoder.read_next_frame().unwrap().unwrap();
            RgbaImage::from_raw(frame.width.into(), frame.height.into(), frame.buffer.to_vec()).unwrap().into()
        }
    }
}

fn assert_alike(a: &DynamicImage, b: &DynamicImage, tolerance: u8) {
    assert_eq!((a.width(), a.height()), (b.width(), b.height()));
    for (p, q) in a.to_rgba8().pixels().zip(b.to_rgba8().pixels()) {
        assert!(p.0.iter().zip(q.0).all(|(x, y)| x.abs_diff(y) <= tolerance), "{p:?} {q:?}");
    }
}

fn assert_close(a: &DynamicImage, b: &DynamicImage) {
    assert_eq!((a.width(), a.height()), (b.width(), b.height()));
    let (a, b) = (a.to_rgb8(), b.to_rgb8());
    let error: u64 = a.iter().zip(b.iter()).map(|(x, y)| u64::from(x.abs_diff(*y))).sum();
    assert!(error / a.len() as u64 <= 8, "mean difference {}", error / a.len() as u64);
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

#[test]
fn a_jpeg_stays_a_jpeg_and_looks_the_same() {
    let pixels = photo(300, 200, 1);
    let file = jpeg(&pixels, 90);
    let picture = clean(&file).unwrap();
    assert_eq!((picture.content_type(), picture.extension()), ("image/jpeg", "jpg"));
    assert_eq!((picture.width, picture.height), (300, 200));
    assert!(picture.bytes.len() <= file.len() * 5 / 4);
    assert_close(&decoded(&picture), &pixels.into());
}

#[test]
fn progressive_grey_and_cmyk_jpegs_are_taken() {
    let pixels = photo(120, 80, 2);
    let progressive = jpeg_with(&pixels, 85, |e| e.set_progressive(true));
    assert_close(&decoded(&clean(&progressive).unwrap()), &pixels.into());

    let grey = GrayImage::from_fn(40, 30, |x, _| Luma([(x * 6) as u8]));
    let picture = clean(&grey_jpeg(&grey)).unwrap();
    assert_alike(&decoded(&picture), &grey.into(), 6);

    // The encoder writes amounts of ink, so full cyan shows as no red.
    let cyan = decoded(&clean(&cmyk_jpeg(32, [255, 0, 0, 0])).unwrap()).to_rgb8();
    let Rgb([r, g, b]) = *cyan.get_pixel(16, 16);
    assert!(r < 20 && g > 235 && b > 235, "{r} {g} {b}");
}

#[test]
fn a_baseline_jpeg_of_several_scans_is_refused() {
    // This encoder writes one scan for each component when its tables are optimized.
    let file = jpeg_with(&quarters(64, 32), 85, |e| e.set_optimized_huffman_tables(true));
    assert_eq!(clean(&file), Err(Refused::UnsupportedJpeg));
}

#[test]
fn a_png_keeps_every_pixel() {
    let opaque = DynamicImage::from(photo(90, 60, 3));
    let flat = DynamicImage::from(screenshot(200, 120));
    let clear = DynamicImage::from(sticker(64));
    let grey = DynamicImage::from(GrayImage::from_fn(300, 4, |x, _| Luma([x as u8])));
    for pixels in [opaque, flat, clear, grey] {
        let file = png(&pixels);
        let picture = clean(&file).unwrap();
        assert_eq!(picture.content_type(), "image/png");
        assert_alike(&decoded(&picture), &pixels, 0);
        assert!(picture.bytes.len() <= file.len() + 1024);
    }
}

#[test]
fn palette_and_bilevel_pngs_do_not_grow() {
    for colours in [2, 3, 4, 5, 16, 17, 256] {
        let palette: Vec<u8> = (0..colours).rev().flat_map(|n| [(n * 255 / colours) as u8, 7, n as u8]).collect();
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, 301, 200);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(palette);
        let mut random = Random(5);
        let samples: Vec<u8> = (0..301 * 200).map(|_| random.below(colours) as u8).collect();
        encoder.write_header().unwrap().write_image_data(&samples).unwrap();
        let picture = clean(&out).unwrap();
        assert_alike(&decoded(&picture), &decode(Format::Png, &out), 0);
        assert!(picture.bytes.len() <= out.len() + out.len() / 10, "{colours}: {} {}", picture.bytes.len(), out.len());
    }
}

#[test]
fn sixteen_bit_and_interlaced_pngs_are_taken() {
    let deep = image::ImageBuffer::from_fn(33, 21, |x, y| Rgb([x as u16 * 1900, y as u16 * 3000, 40_000_u16]));
    let picture = clean(&png(&DynamicImage::ImageRgb16(deep))).unwrap();
    assert_eq!(decoded(&picture).to_rgb8().get_pixel(10, 7).0[2], 40_000_u16.to_be_bytes()[0]);

    // One pixel, because such an image has the same data whether it's interlaced or not.
    let mut interlaced = png(&quarters(1, 1).into());
    interlaced[28] = 1;
    let crc = crc32(&interlaced[12..29]).to_be_bytes();
    interlaced[29..33].copy_from_slice(&crc);
    assert_eq!(decoded(&clean(&interlaced).unwrap()).to_rgb8().get_pixel(0, 0), &Rgb([255, 255, 255]));
}

#[test]
fn a_lossless_webp_becomes_a_png_of_every_pixel() {
    for pixels in [DynamicImage::from(screenshot(200, 120)), DynamicImage::from(sticker(64))] {
        let picture = clean(&lossless_webp(&pixels)).unwrap();
        assert_eq!((picture.content_type(), picture.extension()), ("image/png", "png"));
        let (a, b) = (decoded(&picture).to_rgba8(), pixels.to_rgba8());
        for (p, q) in a.pixels().zip(b.pixels()).filter(|(_, q)| q.0[3] > 0) {
            assert_eq!(p, q);
        }
    }
}

#[test]
fn an_opaque_lossy_webp_becomes_a_jpeg_and_one_with_transparency_a_png() {
    let pixels = DynamicImage::from(photo(200, 150, 4));
    let file = lossy_webp(&pixels, 75.0);
    let picture = clean(&file).unwrap();
    assert_eq!((picture.format, picture.width, picture.height), (Format::Jpeg, 200, 150));
    assert_close(&decoded(&picture), &pixels);

    let clear = DynamicImage::from(sticker(120));
    let picture = clean(&lossy_webp(&clear, 75.0)).unwrap();
    assert_eq!(picture.format, Format::Png);
    let shown = decoded(&picture).to_rgba8();
    assert_eq!((shown.get_pixel(0, 0).0[3], shown.get_pixel(60, 60).0[3]), (0, 255));
}

#[test]
fn an_animated_webp_or_png_becomes_its_first_frame() {
    let frames: Vec<_> = (0..3).map(|n| DynamicImage::from(photo(64, 48, n))).collect();
    let picture = clean(&animated_webp(&frames)).unwrap();
    assert_eq!((picture.format, picture.width, picture.height), (Format::Jpeg, 64, 48));

    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, 8, 8);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[200; 192]).unwrap();
    writer.write_image_data(&[10; 192]).unwrap();
    writer.finish().unwrap();
    let picture = clean(&out).unwrap();
    assert_eq!(decoded(&picture).to_rgba8().get_pixel(3, 3), &Rgba([200, 200, 200, 255]));
    assert!(!holds(&picture.bytes, "acTL"));
}

#[test]
fn a_gif_keeps_its_frames_delays_places_and_loop() {
    for repeat in [gif::Repeat::Infinite, gif::Repeat::Finite(3), gif::Repeat::Finite(0)] {
        let file = gif(40, 30, 6, repeat);
        let picture = clean(&file).unwrap();
        assert_eq!((picture.content_type(), picture.width, picture.height), ("image/gif", 40, 30));
        let read = |bytes: &[u8]| {
            let mut options = gif::DecodeOptions::new();
            options.set_color_output(gif::ColorOutput::RGBA);
            let decoder = options.read_info(bytes).unwrap();
            let repeat = decoder.repeat();
            let frames: Vec<_> = decoder
                .into_iter()
                .map(|f| f.unwrap())
                .map(|f| {
                    let pixels: Vec<_> =
                        f.buffer.chunks(4).map(|p| if p[3] == 0 { [0; 4] } else { [p[0], p[1], p[2], 1] }).collect();
                    (f.delay, f.dispose, f.left, f.top, f.width, f.height, pixels)
                })
                .collect();
            (repeat, frames)
        };
        assert_eq!(read(&picture.bytes), read(&file));
        assert!(picture.bytes.len() <= file.len() + 64);
    }
}

#[test]
fn a_rotated_phone_photo_is_stored_upright_without_its_location() {
    // Orientations, with the colors seen in the corners, clockwise from the top left.
    let seen = [(1, "rgwb"), (2, "grbw"), (3, "wbrg"), (4, "bwgr"), (5, "rbwg"), (6, "brgw"), (7, "wgrb"), (8, "gwbr")];
    let stored = quarters(64, 32);
    for (orientation, corners) in seen {
        let exif = exif(orientation);
        let jpeg = with_jpeg_exif(&jpeg(&stored, 95), orientation);
        let png = png_with(&stored.clone().into(), |info| info.exif_metadata = Some(exif.clone().into()));
        let webp = lossless_webp(&stored.clone().into());
        let webp = with_webp_chunks(&webp, (64, 32), 0x08, &[(b"EXIF", &exif)]);
        let prefixed = [b"Exif\0\0", &exif[..]].concat();
        let prefixed = with_webp_chunks(&webp_body(&webp), (64, 32), 0x08, &[(b"EXIF", &prefixed)]);
        for file in [jpeg, png, webp, prefixed] {
            let size = if orientation < 5 { (64, 32) } else { (32, 64) };
            for picture in [clean(&file).unwrap(), thumbnail(&file).unwrap()] {
                assert_eq!((picture.width, picture.height), size, "orientation {orientation}");
                let shown = decoded(&picture).to_rgb8();
                let corner = |x: u32, y: u32| match shown.get_pixel(x, y).0.map(|c| c > 128) {
                    [true, false, false] => 'r',
                    [false, true, false] => 'g',
                    [false, false, true] => 'b',
                    [true, true, true] => 'w',
                    other => panic!("{other:?}"),
                };
                let (right, bottom) = (size.0 - 5, size.1 - 5);
                let found =
                    String::from_iter([corner(4, 4), corner(right, 4), corner(right, bottom), corner(4, bottom)]);
                assert_eq!(found, corners, "orientation {orientation} of a {:?}", Format::of(&file));
                for trace in ["exif", "gps-secret", "SPY", "MM\0*"] {
                    assert!(!holds(&picture.bytes, trace), "{trace} in {:?}", picture.format);
                }
            }
        }
    }
}

/// Removes the header chunk, because `with_webp_chunks` adds another one.
fn webp_body(extended: &[u8]) -> Vec<u8> {
    [&extended[..12], &extended[30..]].concat()
}

#[test]
fn comments_text_xmp_and_profiles_are_gone() {
    let pixels = quarters(32, 32);
    let secret = b"TOP-SECRET <script>alert(1)</script>";
    let mut jpeg_file = jpeg(&pixels, 90);
    for (marker, data) in [
        (0xFE, secret.to_vec()),
        (0xE1, [b"http://ns.adobe.com/xap/1.0/\0", &secret[..]].concat()),
        (0xED, [b"Photoshop 3.0\0", &secret[..]].concat()),
        (0xE2, [b"ICC_PROFILE\0\x01\x01", &secret[..]].concat()),
        (0xEF, secret.to_vec()),
    ] {
        jpeg_file = with_jpeg_segment(&jpeg_file, marker, &data);
    }
    let mut png_file = png(&pixels.clone().into());
    for name in [b"tEXt", b"iTXt", b"zTXt", b"eXIf", b"prVt", b"iCCP"] {
        png_file = with_png_chunk(&png_file, name, &[b"Comment\0", &secret[..]].concat());
    }
    let webp_file = with_webp_chunks(
        &lossless_webp(&pixels.into()),
        (32, 32),
        0x2C,
        &[(b"ICCP", secret), (b"EXIF", secret), (b"XMP ", secret), (b"what", secret)],
    );
    let mut gif_file = gif(16, 16, 2, gif::Repeat::Infinite);
    let comment = [&[0x21, 0xFE, secret.len() as u8], &secret[..], &[0]].concat();
    let xmp = [b"\x21\xFF\x0BXMP DataXMP", &[secret.len() as u8][..], secret, &[0]].concat();
    let at = 13 + 12;
    gif_file.splice(at..at, [comment, xmp].concat());
    for file in [jpeg_file, png_file, webp_file, gif_file] {
        let picture = clean(&file).unwrap();
        assert!(!holds(&picture.bytes, "secret") && !holds(&picture.bytes, "script"), "{:?}", picture.format);
    }
}

#[test]
fn a_wide_gamut_photo_keeps_its_look_without_its_profile() {
    let icc = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    let pixels = RgbImage::from_pixel(16, 16, Rgb([200, 60, 60]));
    let expected = DynamicImage::from(RgbImage::from_pixel(16, 16, Rgb([217, 44, 54])));
    let file = png_with(&pixels.clone().into(), |info| info.icc_profile = Some(icc.clone().into()));
    assert_alike(&decoded(&clean(&file).unwrap()), &expected, 3);
    let file = jpeg_with(&pixels, 95, |e| e.add_icc_profile(&icc).unwrap());
    assert_alike(&decoded(&clean(&file).unwrap()), &expected, 6);
    assert!(!holds(&clean(&file).unwrap().bytes, "ICC_PROFILE"));
}

#[test]
fn a_profile_that_changes_nothing_or_makes_no_sense_leaves_the_pixels_alone() {
    let pixels = DynamicImage::from(photo(64, 64, 9));
    let table = (0..256).map(|n: u32| {
        let v = f64::from(n) / 255.0;
        let linear = if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
        (linear * 65_535.0) as u16
    });
    let curve = Some(moxcms::ToneReprCurve::Lut(table.collect()));
    let mut srgb_by_table = moxcms::ColorProfile::new_srgb();
    (srgb_by_table.red_trc, srgb_by_table.green_trc, srgb_by_table.blue_trc) = (curve.clone(), curve.clone(), curve);
    let mut black = moxcms::ColorProfile::new_display_p3();
    (black.red_colorant, black.green_colorant, black.blue_colorant) = Default::default();
    for profile in [srgb_by_table, black, moxcms::ColorProfile::new_gray_with_gamma(2.2)] {
        let icc = profile.encode().unwrap();
        let file = png_with(&pixels, |info| info.icc_profile = Some(icc.into()));
        assert_alike(&decoded(&clean(&file).unwrap()), &pixels, 0);
    }
}

#[test]
fn data_after_or_hidden_in_an_image_is_removed() {
    let pixels = quarters(40, 40);
    let script = b"*/=alert(document.domain);//<script>alert(1)</script>";
    let zip = b"PK\x03\x04\x14\0\0\0\0\0evil.jar PK\x05\x06";
    let with_tail = |file: Vec<u8>| [&file[..], script, zip].concat();

    // 10799 is `/*`: the file begins with `GIF89a/*`, and a GIF comment block closes the script comment.
    let mut gif_script = gif(10_799, 20, 1, gif::Repeat::Infinite);
    let at = 13 + 12;
    gif_script.splice(at..at, [&[0x21, 0xFE, script.len() as u8], &script[..], &[0]].concat());
    assert!(gif_script.starts_with(b"GIF89a/*"));

    let webp = lossless_webp(&pixels.clone().into());
    let mut grown = with_tail(webp.clone());
    let size = (grown.len() as u32 - 8).to_le_bytes();
    grown[4..8].copy_from_slice(&size);

    let mut second_image = jpeg(&pixels, 90);
    second_image.extend(with_jpeg_segment(&jpeg(&pixels, 90), 0xFE, script));

    let files = [
        with_tail(jpeg(&pixels, 90)),
        with_jpeg_segment(&jpeg(&pixels, 90), 0xFE, script),
        second_image,
        with_tail(png(&pixels.clone().into())),
        with_png_chunk(&png(&pixels.into()), b"ruBy", script),
        with_tail(gif(20, 20, 2, gif::Repeat::Infinite)),
        gif_script,
        with_tail(webp),
    ];
    for file in files {
        let picture = clean(&file).unwrap();
        for trace in ["script", "alert", "PK\x03\x04", "evil"] {
            assert!(!holds(&picture.bytes, trace), "{trace:?} in {:?}", picture.format);
        }
        assert_eq!(Format::of(&picture.bytes), Some(picture.format));
    }
    // The declared length includes bytes that aren't a chunk.
    assert_eq!(clean(&grown), Err(Refused::Damaged));
}

#[test]
fn a_script_spelled_in_a_gif_palette_comes_out_of_order() {
    let script = b"*/=alert(document.cookie);/*";
    let mut palette = script.to_vec();
    palette.resize(48, b'/');
    for local in [false, true] {
        let mut file = Vec::new();
        let mut encoder = gif::Encoder::new(&mut file, 16, 16, if local { &[] } else { &palette[..] }).unwrap();
        let frame = gif::Frame {
            width: 16,
            height: 16,
            palette: local.then(|| palette.clone()),
            buffer: (0..=255).map(|n: u8| n % 16).collect::<Vec<_>>().into(),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
        drop(encoder);
        assert!(holds(&file, "alert(document.cookie)"));
        let picture = clean(&file).unwrap();
        assert!(!holds(&picture.bytes, "alert("));
        assert_alike(&decoded(&picture), &decode(Format::Gif, &file), 0);
    }
}

#[test]
fn other_formats_than_the_four_are_refused() {
    let files: [&[u8]; 12] = [
        b"",
        b"\xFF",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<?xml version='1.0'?><svg/>",
        b"<!doctype html><script>alert(1)</script>",
        b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0",
        b"II\x2A\0\x08\0\0\0",
        b"MM\0\x2A\0\0\0\x08",
        b"%PDF-1.7",
        b"PK\x03\x04",
        b"\0\0\0\x20ftypavif",
        b"RIFF\x24\0\0\0WAVEfmt ",
    ];
    for file in files {
        assert_eq!(clean(file), Err(Refused::UnknownFormat));
        assert_eq!(thumbnail(file), Err(Refused::UnknownFormat));
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let pixels = DynamicImage::from(photo(48, 40, 6));
    let files = [
        jpeg(&pixels.to_rgb8(), 85),
        jpeg_with(&pixels.to_rgb8(), 85, |e| e.set_progressive(true)),
        with_jpeg_exif(&jpeg(&pixels.to_rgb8(), 85), 6),
        png(&pixels),
        gif(20, 20, 3, gif::Repeat::Infinite),
        lossless_webp(&pixels),
        lossy_webp(&pixels, 80.0),
        lossy_webp(&DynamicImage::from(sticker(40)), 80.0),
        animated_webp(&[pixels.clone(), DynamicImage::from(photo(48, 40, 7))]),
    ];
    for file in files {
        assert!(clean(&file).is_ok());
        for len in 0..file.len() {
            assert!(clean(&file[..len]).is_err(), "{len} of {} bytes of a {:?}", file.len(), Format::of(&file));
        }
    }
}

#[test]
fn a_jpeg_that_can_be_decoded_in_part_only_is_refused() {
    for progressive in [false, true] {
        let mut file = jpeg_with(&photo(200, 200, 6), 85, |e| e.set_progressive(progressive));
        // A code of all ones is invalid, and the stuffed zero bytes keep the ones from being markers.
        let middle = file.len() / 2;
        file[middle..middle + 16].copy_from_slice(&[0xFF, 0].repeat(8));
        assert_eq!(clean(&file), Err(Refused::Damaged), "progressive: {progressive}");
    }
}

#[test]
fn a_frame_beyond_its_canvas_is_refused() {
    let mut file = gif(20, 20, 1, gif::Repeat::Infinite);
    let frame = file.windows(5).position(|w| w == [0x2C, 0, 0, 0, 0]).unwrap();
    file[frame + 1] = 15;
    assert_eq!(clean(&file), Err(Refused::Damaged));
    assert_eq!(thumbnail(&file), Err(Refused::Damaged));

    let frames: Vec<_> = (0..2).map(|n| DynamicImage::from(photo(64, 48, n))).collect();
    let mut file = animated_webp(&frames);
    let frame = file.windows(4).position(|w| w == b"ANMF").unwrap();
    file[frame + 8] = 1;
    assert_eq!(clean(&file), Err(Refused::Damaged));
}

#[test]
fn an_unknown_gif_extension_is_skipped() {
    let mut file = gif(20, 20, 2, gif::Repeat::Infinite);
    file.splice(25..25, *b"\x21\x42\x03abc\0");
    assert!(clean(&file).is_ok());
}

#[test]
fn the_format_is_detected_from_the_bytes() {
    let pixels = DynamicImage::from(quarters(10, 10));
    assert_eq!(Format::of(&png(&pixels)), Some(Format::Png));
    let mut disguised = png(&pixels);
    disguised[..3].copy_from_slice(&[0xFF, 0xD8, 0xFF]);
    assert!(clean(&disguised).is_err());
}

#[test]
fn more_than_25_megapixels_are_refused() {
    for (name, file) in bombs(30_000, 30_000) {
        assert_eq!(clean(&file), Err(Refused::TooManyPixels), "{name}");
        assert_eq!(thumbnail(&file), Err(Refused::TooManyPixels), "{name}");
    }
    let ribbon = png(&DynamicImage::from(quarters(65_536, 1)));
    assert_eq!(clean(&ribbon), Err(Refused::TooManyPixels));
    for (name, file) in bombs(5_000, 5_001) {
        assert_eq!(clean(&file), Err(Refused::TooManyPixels), "{name}");
    }
}

#[test]
fn a_gif_with_too_many_frames_or_pixels_over_all_frames_is_refused() {
    let file = gif(2, 2, MAX_FRAMES as u16, gif::Repeat::Infinite);
    assert!(clean(&file).is_ok());
    let file = gif(2, 2, MAX_FRAMES as u16 + 1, gif::Repeat::Infinite);
    assert_eq!(clean(&file), Err(Refused::TooLongAnimation));
    // Each frame counts as a whole canvas, even if it is tiny.
    let mut file = gif(2, 2, 9, gif::Repeat::Infinite);
    file[6..10].copy_from_slice(&[0x88, 0x13, 0x88, 0x13]);
    assert_eq!(clean(&file), Err(Refused::TooLongAnimation));
    assert_eq!(thumbnail(&file).map(|t| (t.width, t.height)), Ok((320, 320)));
}

#[test]
fn a_four_megabyte_photo_is_taken_and_does_not_grow() {
    let mut random = Random(7);
    let pixels = RgbImage::from_fn(1500, 1200, |_, _| {
        let [r, g, b, ..] = random.next().to_le_bytes();
        Rgb([r, g, b])
    });
    let file = jpeg(&pixels, 92);
    assert!(file.len() > 3 << 20 && file.len() < 5 << 20, "{}", file.len());
    let picture = clean(&file).unwrap();
    assert!(picture.bytes.len() <= file.len());
    assert_eq!((picture.width, picture.height), (1500, 1200));
}

#[test]
fn a_crafted_file_that_panics_a_decoder_is_refused() {
    assert_eq!(clean(&webp_with_an_oversubscribed_code()), Err(Refused::Damaged));
}

#[test]
fn a_thumbnail_has_at_most_320_pixels_a_side_and_the_same_shape() {
    for (size, expected) in [
        ((1000, 500), (320, 160)),
        ((500, 1000), (160, 320)),
        ((4000, 3), (320, 1)),
        ((1, 5000), (1, 320)),
        ((65_535, 300), (320, 1)),
        ((321, 321), (320, 320)),
        ((320, 100), (320, 100)),
        ((1, 1), (1, 1)),
    ] {
        let file = png(&DynamicImage::from(quarters(size.0, size.1)));
        let small = thumbnail(&file).unwrap();
        assert_eq!((small.width, small.height), expected);
        let shown = decoded(&small);
        assert_eq!((shown.width(), shown.height()), expected);
        assert!(small.width.max(small.height) <= THUMBNAIL_SIDE);
    }
}

#[test]
fn every_kind_of_stored_image_gets_a_thumbnail() {
    let photo = DynamicImage::from(photo(800, 600, 8));
    let clear = DynamicImage::from(sticker(500));
    let files = [
        jpeg(&photo.to_rgb8(), 85),
        png(&photo),
        png(&clear),
        gif(400, 300, 3, gif::Repeat::Infinite),
        lossless_webp(&clear),
        lossy_webp(&photo, 70.0),
        lossy_webp(&clear, 70.0),
    ];
    for file in files {
        let stored = clean(&file).unwrap();
        let small = thumbnail(&stored.bytes).unwrap();
        assert_eq!(decoded(&small).width(), 320);
        assert!(small.bytes.len() < 40_000, "{} bytes", small.bytes.len());
    }
}

#[test]
fn a_photo_thumbnail_is_a_jpeg_and_a_drawing_or_a_transparent_one_a_png() {
    let format = |pixels: DynamicImage| thumbnail(&png(&pixels)).unwrap().format;
    assert_eq!(format(photo(900, 600, 1).into()), Format::Jpeg);
    assert_eq!(format(quarters(900, 600).into()), Format::Png);
    assert_eq!(format(sticker(700).into()), Format::Png);
}

#[test]
fn transparency_survives_in_a_thumbnail_without_dark_edges() {
    // White on transparent black: if colors were not weighted by alpha, resizing would turn the edge gray.
    let pixels = RgbaImage::from_fn(1000, 1000, |x, _| Rgba(if x < 500 { [255; 4] } else { [0; 4] }));
    let small = decoded(&thumbnail(&png(&pixels.into())).unwrap()).to_rgba8();
    assert_eq!(small.get_pixel(10, 10), &Rgba([255; 4]));
    assert_eq!(small.get_pixel(310, 10).0[3], 0);
    for pixel in small.pixels().filter(|p| p.0[3] > 8) {
        assert!(pixel.0[0] >= 250, "{pixel:?}");
    }
}

#[test]
fn the_thumbnail_of_an_animation_is_its_first_frame_on_its_canvas() {
    let small = thumbnail(&gif(40, 30, 4, gif::Repeat::Infinite)).unwrap();
    assert_ne!(small.format, Format::Gif);
    let shown = decoded(&small).to_rgba8();
    assert_eq!((shown.width(), shown.height()), (40, 30));
    // The first frame is a white square of 15 by 15 pixels at the left. The rest is transparent.
    assert_eq!(shown.get_pixel(3, 3), &Rgba([255; 4]));
    assert_eq!(shown.get_pixel(35, 25).0[3], 0);
}
