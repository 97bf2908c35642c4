//! Rewrites GIFs frame by frame, with one frame in memory at a time. Keeps positions, delays, disposal and the loop.

use super::{
    Format, MAX_ANIMATION_PIXELS, MAX_FRAMES, MAX_PIXELS, Output, Picture, Refused, check_pixels, without_idle_alpha,
};
use gif::{ColorOutput, DecodeOptions, Decoder, Encoder, Frame, MemoryLimit};
use image::{DynamicImage, RgbaImage};
use std::{borrow::Cow, num::NonZeroU64};

const FRAME_BYTES: NonZeroU64 = NonZeroU64::new(MAX_PIXELS).unwrap();

pub(super) fn rewrite(bytes: &[u8]) -> Result<Picture, Refused> {
    let mut decoder = open(bytes)?;
    let (width, height) = (decoder.width(), decoder.height());
    let canvas = u64::from(width) * u64::from(height);
    let global = decoder.global_palette().map(Palette::sorted);

    let mut out = Output::default();
    let colours = global.as_ref().map_or(&[][..], |palette| &palette.colours);
    let mut encoder = Encoder::new(&mut out, width, height, colours).map_err(|_| Refused::Incompressible)?;
    encoder.set_repeat(decoder.repeat()).map_err(|_| Refused::Incompressible)?;
    let mut frames = 0;
    while let Some(frame) = decoder.read_next_frame().map_err(|_| Refused::Damaged)? {
        frames += 1;
        if frames > MAX_FRAMES || canvas * frames as u64 > MAX_ANIMATION_PIXELS {
            return Err(Refused::TooLongAnimation);
        }
        let frame = rewrite_frame(frame, global.as_ref())?;
        encoder.write_frame(&frame).map_err(|_| Refused::Incompressible)?;
    }
    encoder.into_inner().map_err(|_| Refused::Incompressible)?;
    if frames == 0 {
        return Err(Refused::Damaged);
    }
    Ok(Picture { bytes: out.0, format: Format::Gif, width: width.into(), height: height.into() })
}

pub(super) fn first_frame(bytes: &[u8]) -> Result<DynamicImage, Refused> {
    let mut decoder = open(bytes)?;
    let (width, height) = (u32::from(decoder.width()), u32::from(decoder.height()));
    let frame = decoder.read_next_frame().map_err(|_| Refused::Damaged)?.ok_or(Refused::Damaged)?.clone();
    let palette = decoder.palette().map_err(|_| Refused::Damaged)?;
    let mut canvas = RgbaImage::new(width, height);
    for (row, y) in frame.buffer.chunks_exact(frame.width.into()).zip(u32::from(frame.top)..) {
        for (index, x) in row.iter().zip(u32::from(frame.left)..) {
            let colour = palette.get(usize::from(*index) * 3..).and_then(|rest| rest.first_chunk::<3>());
            if let (Some([r, g, b]), true) = (colour, frame.transparent != Some(*index)) {
                canvas.put_pixel(x, y, [*r, *g, *b, 255].into());
            }
        }
    }
    Ok(without_idle_alpha(canvas.into()))
}

fn open(bytes: &[u8]) -> Result<Decoder<&[u8]>, Refused> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(FRAME_BYTES));
    options.check_frame_consistency(true);
    options.allow_unknown_blocks(true);
    let decoder = options.read_info(bytes).map_err(|_| Refused::Damaged)?;
    check_pixels(decoder.width().into(), decoder.height().into())?;
    Ok(decoder)
}

/// Maps the frame's pixels to its sorted palette or, if it has none, to the global one.
fn rewrite_frame(frame: &Frame<'_>, global: Option<&Palette>) -> Result<Frame<'static>, Refused> {
    let local = frame.palette.as_deref().map(Palette::sorted);
    let palette = local.as_ref().or(global).ok_or(Refused::Damaged)?;
    let buffer = frame
        .buffer
        .iter()
        .map(|index| palette.places.get(usize::from(*index)).copied())
        .collect::<Option<Vec<u8>>>()
        .ok_or(Refused::Damaged)?;
    if buffer.is_empty() {
        return Err(Refused::Damaged);
    }
    Ok(Frame {
        transparent: frame.transparent.and_then(|index| palette.places.get(usize::from(index)).copied()),
        palette: local.map(|palette| palette.colours),
        buffer: Cow::Owned(buffer),
        delay: frame.delay,
        dispose: frame.dispose,
        left: frame.left,
        top: frame.top,
        width: frame.width,
        height: frame.height,
        needs_user_input: false,
        interlaced: false,
    })
}

/// Colors in ascending order. A palette is the only part of a GIF whose bytes are kept, and the sender could order them
/// to spell a script.
struct Palette {
    colours: Vec<u8>,
    /// Maps each old index to its new one.
    places: Vec<u8>,
}

impl Palette {
    /// `colours`: at most 256 triples, which the format ensures.
    fn sorted(colours: &[u8]) -> Self {
        let (colours, _) = colours.as_chunks::<3>();
        let mut order: Vec<u8> = (0..=255).take(colours.len()).collect();
        order.sort_by_key(|index| colours[usize::from(*index)]);
        let mut places = vec![0; order.len()];
        for (place, index) in (0..=255).zip(&order) {
            places[usize::from(*index)] = place;
        }
        Self { colours: order.iter().flat_map(|index| colours[usize::from(*index)]).collect(), places }
    }
}
